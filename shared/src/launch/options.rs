//! The options of a launch, read from a [`Spec`].

use super::choice::{ClusterType, Style};
use super::values::{self, EnvOverrides, Gres, SlurmParams, TimeLimit};
use super::word::ShellWord;
use crate::catalog::Release;
use crate::field::Field;
use crate::problem::Problem;
use crate::spec::Spec;
use std::str::FromStr;

/// The options of a launch. They are the same for every release; [`launch`](super::launch) warns where a
/// release ignores one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchOptions {
    /// The release whose scripts run it; `None` for the recipe's.
    pub release: Option<Release>,
    /// The launcher; `None` for the one that suits the release and the other options.
    pub style: Option<Style>,
    /// The cluster manager.
    pub cluster_type: ClusterType,
    /// The Slurm account; `None` if the script reads it from its environment.
    pub account: Option<ShellWord>,
    /// The Slurm partition; `None` if the script reads it from its environment.
    pub partition: Option<ShellWord>,
    /// GPUs per node; `None` for what the release assumes for the GPU type.
    pub gpus_per_node: Option<u32>,
    /// What to request from a Slurm that counts GPUs.
    pub gres: Option<Gres>,
    /// The top directory: STAGE_PATH or LLMB_INSTALL, or the checkout of Megatron-LM.
    pub install_path: Option<ShellWord>,
    /// The directory of the recipe's scripts.
    pub recipe_dir: Option<ShellWord>,
    /// The Python environment, made by venv, uv or conda; `None` for the active one.
    pub venv: Option<ShellWord>,
    /// Training steps.
    pub max_steps: Option<u32>,
    /// The job's time limit.
    pub time_limit: Option<TimeLimit>,
    /// Whether to profile with Nsight Systems.
    pub profile: bool,
    /// The first profiled step.
    pub profile_start_step: Option<u32>,
    /// The last profiled step.
    pub profile_stop_step: Option<u32>,
    /// Whether the profile contains GPU metrics.
    pub gpu_metrics: bool,
    /// Whether NCCL logs its calls.
    pub nccl_trace: bool,
    /// Whether to save a checkpoint at the end.
    pub save_checkpoint: bool,
    /// The checkpoint to load: the parent of its `weights`.
    pub load_checkpoint: Option<ShellWord>,
    /// Additional sbatch parameters.
    pub slurm_params: SlurmParams,
    /// Directories to mount in the container, or Run:ai volume claims, separated by commas.
    pub mounts: Option<ShellWord>,
    /// The container image for Megatron-LM; `None` to run outside a container.
    pub container_image: Option<ShellWord>,
    /// Environment variables to set.
    pub env: EnvOverrides,
}

impl LaunchOptions {
    /// Reads every launch field. A missing one keeps its default.
    ///
    /// # Errors
    /// Every field that can't be read.
    pub fn from_spec(spec: &Spec) -> Result<LaunchOptions, Vec<Problem>> {
        let mut reader = FieldReader { spec, problems: Vec::new() };
        let options = LaunchOptions {
            release: reader.parsed(Field::Release),
            style: reader.parsed(Field::Style),
            cluster_type: reader.parsed(Field::ClusterType).unwrap_or_default(),
            account: reader.plain(Field::Account, ShellWord::value),
            partition: reader.plain(Field::Partition, ShellWord::value),
            gpus_per_node: reader.whole(Field::GpusPerNode),
            gres: reader.parsed(Field::Gres),
            install_path: reader.word(Field::InstallPath, ShellWord::path),
            recipe_dir: reader.word(Field::RecipeDir, ShellWord::path),
            venv: reader.word(Field::Venv, ShellWord::path),
            max_steps: reader.whole(Field::MaxSteps),
            time_limit: reader.parsed(Field::TimeLimit),
            profile: reader.switch(Field::Profile),
            profile_start_step: reader.whole(Field::ProfileStartStep),
            profile_stop_step: reader.whole(Field::ProfileStopStep),
            gpu_metrics: reader.switch(Field::GpuMetrics),
            nccl_trace: reader.switch(Field::NcclTrace),
            save_checkpoint: reader.switch(Field::SaveCheckpoint),
            load_checkpoint: reader.word(Field::LoadCheckpoint, ShellWord::path),
            slurm_params: reader.parsed(Field::SlurmParams).unwrap_or_default(),
            mounts: reader.word(Field::Mounts, ShellWord::with_references),
            container_image: reader.word(Field::ContainerImage, ShellWord::with_references),
            env: reader.parsed(Field::Env).unwrap_or_default(),
        };
        if reader.problems.is_empty() { Ok(options) } else { Err(reader.problems) }
    }
}

/// Reads fields and collects their problems.
struct FieldReader<'a> {
    spec: &'a Spec,
    problems: Vec<Problem>,
}

impl FieldReader<'_> {
    fn parsed<T: FromStr<Err = Problem>>(&mut self, field: Field) -> Option<T> {
        let parsed = self.spec.parse(field);
        self.keep(parsed)
    }

    fn whole(&mut self, field: Field) -> Option<u32> {
        let whole = self.spec.whole(field);
        self.keep(whole)
    }

    fn switch(&mut self, field: Field) -> bool {
        let on = self.spec.get(field).map(|text| values::switch(field, text)).transpose();
        self.keep(on).unwrap_or_default()
    }

    /// Reads a word. Where a release's script expands it without quotes, it is checked when the plan takes it.
    fn word(
        &mut self,
        field: Field,
        read: impl Fn(Field, &str) -> Result<ShellWord, Problem>,
    ) -> Option<ShellWord> {
        let word = self.spec.get(field).map(|text| read(field, text)).transpose();
        self.keep(word)
    }

    /// Reads a name of Slurm's, which contains nothing that a shell would split or replace.
    fn plain(
        &mut self,
        field: Field,
        read: impl Fn(Field, &str) -> Result<ShellWord, Problem>,
    ) -> Option<ShellWord> {
        let word = self.spec.get(field).map(|text| {
            let word = read(field, text)?;
            match word.unquoted_problem(field) {
                None => Ok(word),
                Some(problem) => Err(problem),
            }
        });
        self.keep(word.transpose())
    }

    fn keep<T>(&mut self, read: Result<Option<T>, Problem>) -> Option<T> {
        read.unwrap_or_else(|problem| {
            self.problems.push(problem);
            None
        })
    }
}
