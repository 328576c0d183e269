//! `trainplan probe`: measures what a cluster reaches.

use super::output::{self, Format, FormatArg, printable};
use super::{Failure, note, profiles};
use crate::probe::{self, PROGRAM, ProbeProgress};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trainplan_shared::campaign::{Cluster, Name};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::probe::{
    Probe, ProbeFactor, ProbeFigure, ProbeJob, ProbeReport, ProbeVerdict, SlowNode,
};
use trainplan_shared::units::{percent, readable};

/// Measure the speed of a cluster's GPUs and links, without a training run
///
/// Submits one job of at most ten minutes that measures matrix multiplications, attention, memory bandwidth, kernel
/// launches and collectives in and between nodes. It needs a Python with PyTorch (1.13 or newer), or a container with
/// one. Account, partition, GRES and Slurm parameters are those of the cluster's profile. Each figure is shown beside
/// what a healthy machine reaches, and GPUs that are slower than the others are named. The file that it writes adapts
/// estimates to the cluster.
///
/// To show the figures of a file again, give the file instead of a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan probe --cluster alpha --nodes 2
  trainplan probe --cluster alpha --container-image /images/nemo-26.06.sqsh
  trainplan probe --cluster alpha --python /lustre/venv/bin/python --dry-run
  trainplan probe alpha.probe.json
  trainplan search --model llama3.1-70b --gpu h100 --tokens 10T --cluster-factor alpha.probe.json

Without Slurm, run the measuring program yourself, on one node or several:
  trainplan probe --print-program > probe.py
  torchrun --nproc-per-node 8 probe.py --output alpha.probe.json
  torchrun --nnodes 2 --node-rank RANK --master-addr HOST --nproc-per-node 8 probe.py --output alpha.probe.json

Exit codes:
  0  Success
  1  The job failed, Slurm did not accept it, or the file can't be written (it is then printed)
  2  Invalid arguments, profiles or file
  5  The cluster can't be reached")]
pub(super) struct Args {
    /// File of an earlier probe
    #[arg(value_name = "FILE", conflicts_with_all = ["cluster", "clusters", "nodes", "gpus_per_node", "python", "container_image", "output", "dry_run", "print_program"])]
    file: Option<PathBuf>,
    /// Name of the cluster's profile
    #[arg(long, value_name = "NAME", conflicts_with = "print_program")]
    cluster: Option<Name>,
    /// File with your cluster profiles [default: ~/.config/trainplan/clusters.toml]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    clusters: Option<PathBuf>,
    /// Number of nodes. Two are enough to measure the network; with more, the GPUs of the others are checked too
    #[arg(long, value_name = "N", default_value_t = 2, requires = "cluster", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    nodes: u32,
    /// GPUs per node [default: those of the profile or its GPU type]
    #[arg(long, value_name = "N", requires = "cluster", value_parser = clap::value_parser!(u32).range(1..=64))]
    gpus_per_node: Option<u32>,
    /// Path of the Python that has PyTorch, on the cluster's nodes or in the container
    #[arg(long, value_name = "COMMAND", default_value = "python3", requires = "cluster")]
    python: String,
    /// Container image with PyTorch, for Slurm with pyxis
    #[arg(long, value_name = "IMAGE", requires = "cluster")]
    container_image: Option<String>,
    /// File to write [default: NAME.probe.json]
    #[arg(short, long, value_name = "FILE", requires = "cluster")]
    output: Option<PathBuf>,
    /// Print the job instead of submitting it
    #[arg(long, requires = "cluster")]
    dry_run: bool,
    /// Print the measuring program, to run it without Slurm
    #[arg(long)]
    print_program: bool,
    #[command(flatten)]
    format: FormatArg,
}

/// A probe with what it says, as JSON.
#[derive(Serialize)]
struct ProbeAnswer<'a> {
    file: &'a Path,
    probe: &'a Probe,
    report: &'a ProbeReport,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        if self.print_program {
            return output::text(PROGRAM);
        }
        let format = self.format.choose();
        if let Some(file) = &self.file {
            let text = profiles::read(file).map_err(|failure| match failure {
                Failure::File { path, error } => {
                    Failure::Contents { path, what: format!("The file can't be read: {error}.") }
                }
                other => other,
            })?;
            let probe = Probe::parse(&text)
                .map_err(|problem| Failure::Contents { path: file.clone(), what: problem.to_string() })?;
            return show(file, &probe, format);
        }
        let Some(name) = &self.cluster else {
            return Err(Failure::Refused("Give the cluster with --cluster, or the file of an earlier probe"));
        };
        let cluster = profiles::cluster(name, self.clusters.clone())?;
        let job = self.job(&cluster)?;
        if self.dry_run {
            let command = job.sbatch_arguments().join(" ");
            return output::text(&format!("# sbatch {command} job.sh\n{}", job.script()));
        }
        let file = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.probe.json")));
        // The job may wait for hours.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            let what = format!("The folder {} does not exist.", folder.display());
            return Err(Failure::Contents { path: file, what });
        }
        let measured = self.measure(&cluster, &job, &file);
        let probe = tokio::runtime::Runtime::new()?.block_on(measured)?;
        show(&file, &probe, format)
    }

    /// Returns the job on a cluster.
    fn job(&self, cluster: &Cluster) -> Result<ProbeJob, Failure> {
        let gpus_per_node = self.gpus_per_node.unwrap_or_else(|| cluster.gpus_per_node());
        let spec = cluster.spec.clone();
        let spec = match &self.container_image {
            Some(image) => spec.with(Field::ContainerImage, image),
            None => spec,
        };
        Ok(ProbeJob::new(&spec, self.nodes, gpus_per_node, self.python.clone())?)
    }

    /// Submits the job, waits for its result and writes the file. The cluster keeps the result until that has succeeded.
    async fn measure(&self, cluster: &Cluster, job: &ProbeJob, file: &Path) -> Result<Probe, Failure> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let submitted = probe::submit(cluster, job, id).await?;
        note(&format!(
            "Job {} measures {} with {} on each. Ctrl-C cancels it.",
            submitted.job(),
            counted(job.nodes, "node"),
            counted(job.gpus_per_node, "GPU")
        ));
        let mut last = String::new();
        let result = submitted.result(|ProbeProgress { state, line, .. }| {
            let now = if line.is_empty() { state } else { format!("{state}: {line}") };
            if now != last {
                note(&now);
                last = now;
            }
        });
        let measured = tokio::select! {
            result = result => result.map_err(Failure::from),
            _ = tokio::signal::ctrl_c() => {
                let _ = tokio::time::timeout(Duration::from_secs(30), submitted.cancel()).await;
                Err(Failure::Refused("The probe was interrupted, and its job cancelled"))
            }
        };
        let mut probe = measured?;
        probe.cluster = Some(cluster.name.to_string());
        probe.gpu = cluster.gpu_type().map(|gpu| gpu.id.clone()).filter(|_| probe.accelerator != "cpu");
        let copy = format!("{} cat {} >FILE", cluster.ssh_command(), submitted.place());
        write(file, &probe, copy)?;
        submitted.remove().await;
        Ok(probe)
    }
}

/// Writes the file of a probe. If that fails, it prints the file: another measurement may have to wait for hours. `copy` is the
/// command that copies the file from the cluster.
fn write(file: &Path, probe: &Probe, copy: String) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(probe).map_err(|error| Failure::Format(error.to_string()))?;
    text.push('\n');
    fs::write(file, &text).map_err(|error| Failure::ProbeFile {
        path: file.to_path_buf(),
        error,
        is_printed: output::text(&text).is_ok(),
        copy,
    })
}

/// Prints a probe.
fn show(file: &Path, probe: &Probe, format: Format) -> Result<(), Failure> {
    let report = &ProbeReport::of(probe, Catalog::embedded());
    match format {
        Format::Json => output::json(&ProbeAnswer { file, probe, report }),
        Format::Csv => {
            let rows = report.figures.iter().map(|figure| {
                let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
                let (factor, value) =
                    figure.factor.map(|ProbeFactor { factor, value }| (factor, value)).unzip();
                [
                    figure.figure.id().to_string(),
                    figure.measured.to_string(),
                    number(figure.limit),
                    figure.unit.to_string(),
                    number(figure.score),
                    factor.map_or(String::new(), |factor| factor.id().to_string()),
                    number(value),
                ]
            });
            output::csv(["figure", "measured", "limit", "unit", "score", "factor", "value"], rows)
        }
        Format::Table => table(file, probe, report),
    }
}

fn table(file: &Path, probe: &Probe, report: &ProbeReport) -> Result<(), Failure> {
    let Probe { nodes, ranks_per_node, device, torch, .. } = probe;
    let device = printable(device);
    output::prose(&format!(
        "{}{} with {}{} ({device}), PyTorch {}, measured {} in {} s.\n",
        probe.cluster.as_ref().map_or(String::new(), |name| format!("Cluster {}: ", printable(name))),
        counted(*nodes, "node"),
        counted(*ranks_per_node, "device"),
        if *nodes == 1 { "" } else { " each" },
        printable(torch),
        printable(&probe.measured_at),
        readable(probe.seconds),
    ))?;
    let rows = report.figures.iter().map(|figure| {
        let sign = if figure.figure.is_time() { "≤" } else { "≥" };
        [
            figure.figure.title().to_string(),
            format!("{} {}", readable(figure.measured), figure.unit),
            figure.limit.map_or("–".into(), |limit| format!("{sign} {} {}", readable(limit), figure.unit)),
            verdict(figure),
            effect(figure),
        ]
    });
    output::table(["measurement", "measured", "expected", "verdict", "estimate"], &[1, 2], rows)?;
    if let Some(memory) = probe.memory {
        let gib = |bytes: u64| readable(bytes as f64 / f64::from(1 << 30));
        let warning = if report.lacks_memory { " WARNING: another process may use the GPUs." } else { "" };
        output::text_line(&format!(
            "\n{} of {} GiB of memory are free after the start.{}",
            gib(memory.free_bytes),
            gib(memory.total_bytes),
            warning
        ))?;
    }
    for skipped in &probe.skipped {
        output::prose(&format!(
            "Not measured: {}: {}",
            printable(&skipped.measurement),
            printable(&skipped.reason)
        ))?;
    }
    let slow = report.slow_nodes();
    for node in slow.iter().take(SlowNode::SHOWN) {
        output::prose(&format!("SLOW: {}", printable(&node.in_words())))?;
    }
    if slow.len() > SlowNode::SHOWN {
        let nodes = slow.len();
        output::prose(&format!(
            "SLOW: {nodes} nodes in all have slow GPUs. `--format json` names the others."
        ))?;
    }
    let path = file.display().to_string();
    output::prose_around(&format!("\n{}", conclusion(probe, report, &path)), &[&path])
}

/// Returns what follows for estimates, as sentences.
fn conclusion(probe: &Probe, report: &ProbeReport, path: &str) -> String {
    let catalog = Catalog::embedded();
    let Some(gpu) = report.gpu.as_ref().and_then(|id| catalog.gpu(id).ok()) else {
        let what = match probe.accelerator.as_str() {
            "cpu" => "This was measured on CPUs".to_string(),
            _ => format!("Trainplan does not know {}", printable(&probe.device)),
        };
        return format!("{what}, so nothing is compared, and the file can't adapt estimates.");
    };
    let mut sentences = vec![match (report.is_sound(), report.cluster_factor.as_str()) {
        (true, _) => {
            format!("Everything measured is as fast as on a healthy {}. Estimates don't change.", gpu.name)
        }
        (false, "1") => "Estimates don't change, but see the warnings above.".to_string(),
        (false, factors) => format!(
            "To adapt estimates to this cluster, pass `--cluster-factor {path}`, or write `cluster-factor = \"{factors}\"` \
             in its profile. The profile can also name the file."
        ),
    }];
    if !report.slow_gpus.is_empty() {
        sentences.push(
            "A run waits for its slowest GPU, so estimates assume that the slow ones are left out.".into(),
        );
    }
    if report.figures.iter().any(|figure| figure.verdict == ProbeVerdict::Implausible) {
        sentences.push("Implausibly high or low figures are ignored.".into());
    }
    if !report.missing.is_empty() {
        let missing: Vec<&str> = report.missing.iter().map(|kind| kind.title()).collect();
        sentences.push(format!("Not measured, and assumed to be healthy: {}.", missing.join("; ")));
    }
    sentences.join(" ")
}

/// Returns a count with its noun: `2 nodes`.
fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn verdict(figure: &ProbeFigure) -> String {
    match (figure.verdict, figure.score) {
        (ProbeVerdict::Slow, Some(score)) if figure.figure.is_time() => {
            format!("SLOW: {}×", readable(1.0 / score))
        }
        (ProbeVerdict::Slow, Some(score)) => format!("SLOW: {}", percent(score)),
        (ProbeVerdict::Implausible, _) => "IMPLAUSIBLE".into(),
        (ProbeVerdict::NotCompared, _) => "not compared".into(),
        _ => "ok".into(),
    }
}

/// Returns what the figure changes in estimates.
fn effect(figure: &ProbeFigure) -> String {
    match figure.factor {
        Some(ProbeFactor { value: 1.0, .. }) => "unchanged".into(),
        Some(ProbeFactor { factor, value }) => format!("{factor}={value}"),
        None => "not used".into(),
    }
}
