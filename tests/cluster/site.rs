//! The installed recipes of a site, with a stand-in for programs that need GPUs.

use crate::Cluster;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Releases, the directories of their recipes, and the families in the names of experiments.
const RECIPES: [(&str, &str, &str); 10] = [
    ("24.11", "nemotron", "nemotron4"),
    ("25.04", "nemotron", "nemotron4"),
    ("25.04", "llama3.1", "llama3.1"),
    ("25.05", "nemotronh", "nemotronh"),
    ("25.12", "nemotron4-340b", "nemotron4"),
    ("26.06.01", "llama3.1", "llama3.1"),
    ("26.06.01", "gpt-oss/pretrain", "gpt-oss"),
    ("26.06.01", "qwen3/pretrain", "qwen3"),
    ("26.06.01", "nemotron3", "nemotron-3"),
    ("26.06.01", "nemotron-h", "nemotron-h"),
];

/// The recorded calls of release 26.06.01, by which its stand-in names experiments.
const RECORDED: &str = include_str!("../../shared/tests/launch/releases/26.06.01.tsv");

/// The sbatch directives of launch.sh in 24.11.
const JOB: &str = "#SBATCH --job-name=nemotron\n#SBATCH --dependency=singleton\n#SBATCH --exclusive\n\
                   #SBATCH --mem=0\n#SBATCH --time=01:00:00\n";

/// All releases installed on a cluster, each in `site/RELEASE`.
#[derive(Debug)]
pub(crate) struct Site {
    folder: PathBuf,
}

impl Site {
    /// The account and partition of jobs.
    pub(crate) const ACCOUNT: &str = "team_loop";
    pub(crate) const PARTITION: &str = "batch";

    /// Installs the recipes. The variables are defaults for the stand-in (see workload.sh).
    pub(crate) fn install(cluster: &Cluster, variables: &[(&str, &str)]) -> Self {
        let site = Self { folder: cluster.folder().join("site") };
        let workload = site.folder.join("workload");
        write_script(&workload, include_str!("workload.sh"));
        fs::write(site.folder.join("recorded.tsv"), RECORDED).unwrap();
        let workload = workload.display();
        let set: String = variables
            .iter()
            .map(|(name, value)| format!("export {name}=\"${{{name}:-{value}}}\"\n"))
            .collect();
        for (release, directory, family) in RECIPES {
            let sbatch = if release == "24.11" { JOB } else { "" };
            let script = format!("#!/bin/bash\n{sbatch}{set}exec {workload} launch {release} {family}\n");
            write_script(&site.recipe(release, directory).join("launch.sh"), &script);
            let config = format!(
                "launcher:\n  gpu_type: h100\nslurm:\n  account: {}\n  gpu_partition: {}\n",
                Self::ACCOUNT,
                Self::PARTITION
            );
            fs::write(site.top(release).join("cluster_config.yaml"), config).unwrap();
        }
        let llmb_run = format!("#!/bin/bash\nexec {workload} llmb-run \"$@\"\n");
        write_script(&cluster.folder().join("bin/llmb-run"), &llmb_run);
        // The program that Megatron-LM's job starts on every node.
        let torchrun = format!("#!/bin/bash\n{set}exec {workload} torchrun \"$@\"\n");
        write_script(&cluster.folder().join("bin/torchrun"), &torchrun);
        site
    }

    /// Returns the directory of a release: STAGE_PATH or LLMB_INSTALL.
    pub(crate) fn top(&self, release: &str) -> PathBuf {
        self.folder.join(release)
    }

    /// Returns the directory of a recipe's launch.sh.
    pub(crate) fn recipe(&self, release: &str, directory: &str) -> PathBuf {
        let top = self.top(release);
        match release {
            "24.11" => top,
            "25.04" => top.join("checkout").join(directory),
            _ => top.join("llmb_repo").join(directory),
        }
    }

    /// Returns shell commands that set the variables that a launch needs.
    pub(crate) fn exports(&self, release: &str, directory: &str) -> String {
        let (account, partition) = (Self::ACCOUNT, Self::PARTITION);
        let top = self.top(release);
        let top = top.display();
        let recipe = self.recipe(release, directory);
        let recipe = recipe.display();
        match release {
            "24.11" => {
                format!("export STAGE_PATH='{top}' SLURM_ACCOUNT={account} SLURM_PARTITION={partition}\n")
            }
            "25.04" => format!(
                "export STAGE_PATH='{top}' RECIPE_DIR='{recipe}' HF_TOKEN=none\n\
                 export SBATCH_ACCOUNT={account} SBATCH_PARTITION={partition}\n"
            ),
            _ => format!(
                "export LLMB_INSTALL='{top}' LLMB_REPO='{top}/llmb_repo'\n\
                 export SBATCH_ACCOUNT={account} SBATCH_PARTITION={partition}\n"
            ),
        }
    }
}

fn write_script(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
