//! What the job tells Slurm, in the lines that sbatch reads from the script.

use super::job::Job;
use crate::field::Field;
use crate::launch::values::Gres;
use crate::problem::Problem;
use crate::units::nearest_multiples;

/// Whole nodes, all of their GPUs, and nothing that sbatch would not read as it is meant.
pub(super) fn check(job: &mut Job) {
    let (gpus, per_node) = (job.scenario.layout.gpus(), job.per_node);
    if !gpus.is_multiple_of(per_node) {
        let what = format!("fill no whole number of nodes of {per_node} GPUs");
        job.refuse(Problem::clause(Field::Gpus, gpus, what).nearest(nearest_multiples(gpus, per_node)));
    }
    let options = job.options;
    if let Some(count) = options.gres.as_ref().and_then(Gres::count).filter(|count| *count < per_node) {
        let what = format!("is fewer than the {per_node} GPUs that the job takes of a node");
        job.refuse(Problem::clause(Field::Gres, count, what).nearest([format!("gpu:{per_node}")]));
    }
    for (field, given) in [(Field::Account, &options.account), (Field::Partition, &options.partition)] {
        if let Some(word) = given.as_ref().filter(|word| word.variables().next().is_some()) {
            let what = "refers to a variable, which sbatch does not look up in a script";
            let variable = if field == Field::Account { "SBATCH_ACCOUNT" } else { "SBATCH_PARTITION" };
            let allowed = format!("a name, or none and export {variable} before");
            job.refuse(Problem::clause(field, word, what).allowed(allowed));
        }
    }
    let shown = options.mounts.as_ref().map(ToString::to_string).unwrap_or_default();
    let relative = shown.split(',').find(|mount| !mount.is_empty() && !mount.starts_with(['/', '$']));
    if let Some(mount) = relative.filter(|_| options.container_image.is_some()) {
        let problem = Problem::clause(Field::Mounts, mount, "is no absolute path");
        job.refuse(problem.allowed("PATH:PATH-IN-THE-CONTAINER, with commas between several"));
    }
    for param in options.slurm_params.iter() {
        if let Some(other) = param.swallowed() {
            job.warn(
                format!("--{param} is taken as one parameter, with {other} in its value."),
                format!("Put ; between parameters: ;{other} if it is one of its own."),
            );
        }
    }
}

/// The lines, without their `#SBATCH`.
pub(super) fn lines(job: &Job) -> Vec<String> {
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
    // All of a node's cores and memory with all of its GPUs.
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

/// What `srun` adds to the step: the container, if there is one.
pub(super) fn container(job: &Job) -> Vec<String> {
    let Some(image) = &job.options.container_image else { return Vec::new() };
    let mut words =
        vec![format!("--container-image={}", image.shell()), "--container-mounts=\"$mounts\"".to_string()];
    // What an image sets itself counts for more than what the job exports, unless it is named.
    let names: Vec<&str> = job.env.iter().map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        words.push(format!("--container-env={}", names.join(",")));
    }
    words
}

/// As sbatch reads a line: white space parts, `#` begins a comment, quotes group, a backslash takes the next character
/// as it is, within quotes too.
fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:;=+/@%&|!*?()[]{}<>^~$".contains(c);
    if text.chars().all(plain) {
        return text.to_string();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
