//! The job's Slurm options: the lines that sbatch reads from the script.

use super::job::MegatronJob;
use crate::estimate::Estimate;
use crate::field::Field;
use crate::launch::checkpoint::not_mountable;
use crate::launch::environment::relative_mount;
use crate::launch::measuring::short_limit;
use crate::launch::request::JobRequest;
use crate::launch::slurm::swallowed;
use crate::launch::target::partial_nodes;
use crate::launch::values::Gres;
use crate::message;
use crate::problem::Problem;

/// Refuses partial nodes, and values that sbatch would not read as meant. Warns of a time limit that may be too short, with the
/// `slowdown` of the script's software, and if there is none.
pub(super) fn check(job: &mut MegatronJob, slowdown: Option<f64>) {
    let (gpus, per_node) = (job.scenario.layout.gpus(), job.per_node);
    if !gpus.is_multiple_of(per_node) {
        job.refuse(partial_nodes(gpus, per_node));
    }
    let options = job.options;
    if let Some(count) = options.gres.as_ref().and_then(Gres::count).filter(|count| *count < per_node) {
        let message =
            message![Field::Gres, format!(" requests {count} GPUs per node, but the job uses {per_node}.")];
        job.refuse(Problem::new(Field::Gres, count, message).suggest([format!("gpu:{per_node}")]));
    }
    for (field, given) in [(Field::Account, &options.account), (Field::Partition, &options.partition)] {
        if let Some(word) = given.as_ref().filter(|word| word.variables().next().is_some()) {
            let variable = if field == Field::Account { "SBATCH_ACCOUNT" } else { "SBATCH_PARTITION" };
            let message = message![
                field,
                format!(
                    " \"{word}\" refers to a variable, which sbatch doesn't read in a script. Give the \
                     name, or export {variable} before submitting."
                )
            ];
            job.refuse(Problem::new(field, word, message));
        }
    }
    let shown = options.mounts.as_ref().map(ToString::to_string).unwrap_or_default();
    let relative = shown.split(',').find(|mount| !mount.is_empty() && !mount.starts_with(['/', '$']));
    if let Some(mount) = relative.filter(|_| options.container_image.is_some()) {
        job.refuse(relative_mount(mount));
    }
    if options.container_image.is_some() {
        let paths =
            [(Field::InstallPath, &options.install_path), (Field::LoadCheckpoint, &options.load_checkpoint)];
        let paths = paths.into_iter().filter_map(|(field, path)| Some((field, path.as_ref()?)));
        job.problems.extend(paths.filter_map(|(field, path)| not_mountable(field, path, ",:")));
    }
    match options.time_limit {
        Some(limit) => {
            let step_time_s = Estimate::of(job.scenario).step_time_s.times(slowdown.unwrap_or(1.0));
            // Published numbers are of other software.
            job.warnings.extend(short_limit(limit, job.steps, step_time_s, None));
        }
        // The time limit is the only option that sets sbatch's --time.
        None => job.warn(
            "The script sets no time limit, so the partition's default applies.",
            message!["Set ", Field::TimeLimit, " if that is too short."],
        ),
    }
    for param in options.slurm_params.iter() {
        if let Some(other) = param.swallowed() {
            let (text, fix) = swallowed(param, other);
            job.warn(text, fix);
        }
    }
}

/// Returns what the job asks Slurm for.
pub(super) fn request(job: &MegatronJob) -> JobRequest {
    JobRequest {
        nodes: job.nodes,
        gpus_per_node: job.per_node,
        asks_for_gpus: true,
        time_limit: job.options.time_limit,
        qos: job.options.qos(),
    }
}

/// Returns the lines, without `#SBATCH`.
pub(super) fn lines(job: &MegatronJob) -> Vec<String> {
    let options = job.options;
    let given = |key: &str| options.slurm_params.iter().any(|param| param.key == key);
    let mut lines = vec![
        format!("--job-name={}", job.name),
        format!("--nodes={}", job.nodes),
        "--ntasks-per-node=1".into(),
        match &options.gres {
            Some(gres) => format!("--gres=gpu:{}", gres.per_node(job.per_node)),
            None => format!("--gpus-per-node={}", job.per_node),
        },
    ];
    if let Some(nodes) = segment(job).filter(|_| !given("segment")) {
        lines.push(format!("--segment={nodes}"));
    }
    // A job with all GPUs of a node also gets all cores and memory.
    if job.whole_nodes {
        let whole = [("exclusive", "--exclusive"), ("mem", "--mem=0")];
        lines.extend(whole.iter().filter(|(key, _)| !given(key)).map(|(_, line)| (*line).to_string()));
    }
    let words = [("account", &options.account), ("partition", &options.partition)];
    lines.extend(words.iter().filter_map(|(key, word)| Some(format!("--{key}={}", (*word).as_ref()?))));
    lines.extend(options.time_limit.map(|limit| format!("--time={limit}")));
    if !given("output") {
        lines.push("--output=sbatch_%x_%j.out".into());
    }
    lines.extend(options.slurm_params.iter().map(|param| format!("--{param}")));
    lines.iter().map(|line| quote(line)).collect()
}

/// Nodes of an NVLink domain that jobs use where they can, of the 18 of an NVL72: NVIDIA's recipes leave two to spare.
const USUAL_SEGMENT: u32 = 16;

/// Returns how many nodes Slurm must place in one NVLink domain, where a domain has several nodes. Slurm requires a divisor of
/// the job's nodes. None if no segment helps.
fn segment(job: &MegatronJob) -> Option<u32> {
    let (gpu, layout) = (&job.scenario.gpu, &job.scenario.layout);
    let of_domain = gpu.nvlink_domain / job.per_node.max(1);
    if of_domain < 2 || job.nodes < 2 {
        return None;
    }
    // Nodes of the largest group that exchanges most over NVLink. It must not be divided between domains.
    let group = (layout.ep() * layout.expert_tp()).max(layout.tp()).div_ceil(job.per_node.max(1));
    let divisors = || (2..=of_domain.min(job.nodes)).filter(|nodes| job.nodes.is_multiple_of(*nodes));
    let whole = divisors().filter(|nodes| nodes.is_multiple_of(group));
    let usual = whole.clone().find(|nodes| *nodes == USUAL_SEGMENT);
    usual.or(whole.max()).or(divisors().max())
}

/// Returns the options of `srun` for the container, if any.
pub(super) fn container(job: &MegatronJob) -> Vec<String> {
    let Some(image) = &job.options.container_image else { return Vec::new() };
    let mut words =
        vec![format!("--container-image={}", image.shell()), "--container-mounts=\"$mounts\"".to_string()];
    // An image's own variables override the job's, unless they are named here.
    let names: Vec<&str> = job.env.iter().map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        words.push(format!("--container-env={}", names.join(",")));
    }
    words
}

/// Quotes an argument for sbatch: white space separates, `#` starts a comment, quotes group, and a backslash
/// escapes the next character, also within quotes.
fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:;=+/@%&|!*?()[]{}<>^~$".contains(c);
    if text.chars().all(plain) {
        return text.to_string();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
