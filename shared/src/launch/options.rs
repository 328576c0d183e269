//! What a person chose for a launch, read from the texts of a [`Spec`].

use super::choice::{ClusterType, Style};
use super::values::{EnvOverrides, Gres, SlurmParams, Switch, TimeLimit};
use super::word::Word;
use crate::catalog::Release;
use crate::field::Field;
use crate::problem::Problem;
use crate::spec::Spec;
use std::str::FromStr;

/// The options of a launch; each is meant for every release, and [`launch`](super::launch) says where a
/// release has no use for one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The release whose scripts run it; none means the recipe's own.
    pub release: Option<Release>,
    /// What it is handed to; none means what suits the release and the other options.
    pub style: Option<Style>,
    /// What manages the cluster.
    pub cluster_type: ClusterType,
    /// The Slurm account; none means that the script takes it from its environment.
    pub account: Option<Word>,
    /// The Slurm partition; none means that the script takes it from its environment.
    pub partition: Option<Word>,
    /// GPUs of one node, where they are not what the release assumes for the GPU type.
    pub gpus_per_node: Option<u32>,
    /// What to tell a Slurm that counts GPUs.
    pub gres: Option<Gres>,
    /// The top directory: STAGE_PATH or LLMB_INSTALL, or the checkout of Megatron-LM.
    pub install_path: Option<Word>,
    /// The directory of the recipe's scripts.
    pub recipe_dir: Option<Word>,
    /// The Python environment to run in, made by venv, uv or conda; none means the one that is active.
    pub venv: Option<Word>,
    /// Training steps.
    pub max_steps: Option<u32>,
    /// How long the job may run.
    pub time_limit: Option<TimeLimit>,
    /// Whether Nsight Systems profiles it.
    pub profile: bool,
    /// The first profiled step.
    pub profile_start_step: Option<u32>,
    /// The last profiled step.
    pub profile_stop_step: Option<u32>,
    /// Whether the profile holds GPU metrics.
    pub gpu_metrics: bool,
    /// Whether NCCL writes down its calls.
    pub nccl_trace: bool,
    /// Whether a checkpoint is saved at the end.
    pub save_checkpoint: bool,
    /// The checkpoint to start from: the parent of its `weights`.
    pub load_checkpoint: Option<Word>,
    /// Further parameters for sbatch.
    pub slurm_params: SlurmParams,
    /// Directories for the container, or on Run:ai its volume claims; as typed, with commas between them.
    pub mounts: Option<Word>,
    /// The image that Megatron-LM runs in; none means none.
    pub container_image: Option<Word>,
    /// Variables to set besides.
    pub env: EnvOverrides,
}

impl Options {
    /// Reads every launch field; an empty one keeps its default.
    ///
    /// # Errors
    /// Every field that can't be read.
    pub fn from_spec(spec: &Spec) -> Result<Options, Vec<Problem>> {
        let mut reader = Reader { spec, problems: Vec::new() };
        let options = Options {
            release: reader.parsed(Field::Release),
            style: reader.parsed(Field::Style),
            cluster_type: reader.parsed(Field::ClusterType).unwrap_or_default(),
            account: reader.plain(Field::Account, Word::value),
            partition: reader.plain(Field::Partition, Word::value),
            gpus_per_node: reader.whole(Field::GpusPerNode),
            gres: reader.parsed(Field::Gres),
            install_path: reader.plain(Field::InstallPath, Word::path),
            recipe_dir: reader.plain(Field::RecipeDir, Word::path),
            venv: reader.plain(Field::Venv, Word::path),
            max_steps: reader.whole(Field::MaxSteps),
            time_limit: reader.parsed(Field::TimeLimit),
            profile: reader.switch(Field::Profile),
            profile_start_step: reader.whole(Field::ProfileStartStep),
            profile_stop_step: reader.whole(Field::ProfileStopStep),
            gpu_metrics: reader.switch(Field::GpuMetrics),
            nccl_trace: reader.switch(Field::NcclTrace),
            save_checkpoint: reader.switch(Field::SaveCheckpoint),
            load_checkpoint: reader.plain(Field::LoadCheckpoint, Word::path),
            slurm_params: reader.parsed(Field::SlurmParams).unwrap_or_default(),
            mounts: reader.plain(Field::Mounts, Word::with_references),
            container_image: reader.plain(Field::ContainerImage, Word::with_references),
            env: reader.parsed(Field::Env).unwrap_or_default(),
        };
        if reader.problems.is_empty() { Ok(options) } else { Err(reader.problems) }
    }
}

/// Reads fields, gathering problems.
struct Reader<'a> {
    spec: &'a Spec,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn parsed<T: FromStr<Err = Problem>>(&mut self, field: Field) -> Option<T> {
        let parsed = self.spec.parse(field);
        self.keep(parsed)
    }

    fn whole(&mut self, field: Field) -> Option<u32> {
        let whole = self.spec.whole(field, 1);
        self.keep(whole)
    }

    fn switch(&mut self, field: Field) -> bool {
        self.parsed::<Switch>(field).unwrap_or_default().0
    }

    /// A word that no script may take apart: every release's scripts expand accounts and paths without
    /// quotes.
    fn plain(&mut self, field: Field, read: impl Fn(Field, &str) -> Result<Word, Problem>) -> Option<Word> {
        let word = self.spec.get(field).map(|text| {
            let word = read(field, text)?;
            word.must_be_plain(field, "the release's script")?;
            Ok(word)
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
