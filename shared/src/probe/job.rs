//! The Slurm jobs of a probe and of a check of GPUs.

use crate::launch::LaunchOptions;
use crate::problem::Problem;
use crate::spec::Spec;

/// The time limit of a probe in minutes.
const MINUTES: u32 = 10;

/// The time limit of a check of GPUs in minutes: nvidia-smi and an all-reduce, each with its own time limit.
const CHECK_MINUTES: u32 = 5;

/// The seconds that the measurements may take; the rest is for starting and ending.
const MEASURING_S: u32 = 360;

/// Nodes with a container find the program there.
const IN_CONTAINER: &str = "/trainplan-probe";

/// The Slurm job of a probe: one process per GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeJob {
    /// The cluster's account, partition, GPUs and other parameters.
    options: LaunchOptions,
    /// Number of nodes.
    pub nodes: u32,
    /// GPUs on each node.
    pub gpus_per_node: u32,
    /// The Python that has PyTorch.
    pub python: String,
}

impl ProbeJob {
    /// Returns the job on a cluster with these fields.
    ///
    /// # Errors
    /// Fields of the cluster are invalid.
    pub fn new(
        cluster: &Spec,
        nodes: u32,
        gpus_per_node: u32,
        python: String,
    ) -> Result<ProbeJob, Vec<Problem>> {
        Ok(ProbeJob { options: LaunchOptions::from_spec(cluster)?, nodes, gpus_per_node, python })
    }

    /// Returns the arguments of sbatch before the script's name.
    pub fn sbatch_arguments(&self) -> Vec<String> {
        sbatch_arguments(&self.options, self.nodes, self.gpus_per_node, self.gpus_per_node, MINUTES)
    }

    /// Returns the job's script. It runs `probe.py` of the folder in which it is submitted, which gets `result`.
    pub fn script(&self) -> String {
        let mut command = vec!["srun".to_string(), "--kill-on-bad-exit=0".to_string()];
        let folder = match &self.options.container_image {
            Some(image) => {
                command.push(format!("--container-image={}", image.shell()));
                command.push(format!("--container-mounts=\"$PWD\":{IN_CONTAINER}"));
                IN_CONTAINER.to_string()
            }
            None => "\"$PWD\"".to_string(),
        };
        command.push(word(&self.python));
        command.push(format!("{folder}/probe.py --output {folder}/result --seconds {MEASURING_S}"));
        format!(
            "#!/bin/bash\n\
             # Measures what this cluster reaches, for trainplan probe.\n\
             set -u\n\
             MASTER_ADDR=$(hostname)\n\
             MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))\n\
             export MASTER_ADDR MASTER_PORT\n\
             {}\n",
            command.join(" ")
        )
    }
}

/// The Slurm job that looks at the GPUs of some nodes: one process per node.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuCheckJob {
    /// The cluster's account, partition, GPUs and other parameters.
    options: LaunchOptions,
    /// Number of nodes.
    pub nodes: u32,
    /// GPUs on each node.
    pub gpus_per_node: u32,
}

impl GpuCheckJob {
    /// Returns the job on a cluster with these fields.
    ///
    /// # Errors
    /// Fields of the cluster are invalid.
    pub fn new(cluster: &Spec, nodes: u32, gpus_per_node: u32) -> Result<GpuCheckJob, Vec<Problem>> {
        Ok(GpuCheckJob { options: LaunchOptions::from_spec(cluster)?, nodes, gpus_per_node })
    }

    /// Returns the arguments of sbatch before the script's name.
    pub fn sbatch_arguments(&self) -> Vec<String> {
        sbatch_arguments(&self.options, self.nodes, 1, self.gpus_per_node, CHECK_MINUTES)
    }
}

/// Returns the arguments of sbatch for a job of whole nodes.
fn sbatch_arguments(
    options: &LaunchOptions,
    nodes: u32,
    tasks_per_node: u32,
    gpus_per_node: u32,
    minutes: u32,
) -> Vec<String> {
    let mut arguments = vec![
        "--parsable".to_string(),
        "--no-requeue".to_string(),
        format!("--nodes={nodes}"),
        format!("--ntasks-per-node={tasks_per_node}"),
        match &options.gres {
            Some(gres) => format!("--gres=gpu:{}", gres.per_node(gpus_per_node)),
            None => format!("--gpus-per-node={gpus_per_node}"),
        },
        format!("--time={minutes}"),
        "--output=job.log".to_string(),
    ];
    let words = [("account", &options.account), ("partition", &options.partition)];
    arguments.extend(words.iter().filter_map(|(key, word)| Some(format!("--{key}={}", (*word).as_ref()?))));
    arguments.extend(options.slurm_params.iter().map(|param| format!("--{param}")));
    arguments
}

/// Returns a text as one word of a shell.
fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;

    #[test]
    fn the_job_asks_for_the_gpus_and_runs_one_process_for_each() {
        let cluster = Spec::default().with(Field::Account, "dgx").with(Field::Gres, "gpu:h100");
        let job = ProbeJob::new(&cluster, 2, 8, "python3".into()).unwrap();
        let arguments = job.sbatch_arguments().join(" ");
        assert!(
            arguments.contains("--nodes=2 --ntasks-per-node=8 --gres=gpu:h100:8 --time=10"),
            "{arguments}"
        );
        assert!(arguments.ends_with("--account=dgx"), "{arguments}");
        assert!(job.script().contains("srun --kill-on-bad-exit=0 'python3' \"$PWD\"/probe.py --output"));
    }

    #[test]
    fn a_check_runs_one_process_per_node() {
        let job = GpuCheckJob::new(&Spec::default().with(Field::Partition, "batch"), 3, 4).unwrap();
        let arguments = job.sbatch_arguments().join(" ");
        assert!(
            arguments.contains("--nodes=3 --ntasks-per-node=1 --gpus-per-node=4 --time=5"),
            "{arguments}"
        );
        assert!(arguments.ends_with("--partition=batch"), "{arguments}");
    }

    #[test]
    fn a_container_finds_the_program_where_it_is_mounted() {
        let cluster = Spec::default().with(Field::ContainerImage, "/images/nemo 26.06.sqsh");
        let script = ProbeJob::new(&cluster, 1, 4, "it's python".into()).unwrap().script();
        assert!(script.contains(
            "--container-mounts=\"$PWD\":/trainplan-probe 'it'\\''s python' /trainplan-probe/probe.py"
        ));
        assert!(script.contains("--container-image="), "{script}");
    }
}
