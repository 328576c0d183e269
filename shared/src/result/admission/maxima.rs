//! The largest size of each text and list of a result.

use crate::field::Field;
use crate::log::{
    LONGEST_HOST, MOST_CALL_KINDS, MOST_LISTED, MOST_LISTED_HOSTS, MOST_NETWORKS, MOST_SIZES,
    MOST_UNFINISHED, Nccl, StatedSetup, UnfinishedCommunicator,
};
use crate::result::{CampaignRun, RunResult, SlurmJob};

/// The most bytes of a name, such as a campaign's.
pub const LONGEST_NAME: usize = 200;

/// The most bytes of a path or of a scenario's field.
pub const LONGEST_PATH: usize = 4096;

/// The most bytes of a sentence or of a list of nodes.
const LONGEST_SENTENCE: usize = 8192;

/// The most bytes of a whole scenario: of all its fields, or as the query of a share link.
pub const LONGEST_SCENARIO: usize = 16_384;

/// The largest accepted size of a field of a result.
#[derive(Debug)]
pub struct Maximum {
    /// The field's path in the result file.
    pub field: &'static str,
    /// The largest size.
    pub most: usize,
    /// What is counted: bytes, or the items of a list.
    pub unit: &'static str,
    /// Returns the largest size in a result.
    pub(super) size: fn(&RunResult) -> usize,
}

macro_rules! maxima {
    ($($field:literal: $most:expr, $unit:literal, $size:expr;)+) => {
        &[$(Maximum { field: $field, most: $most, unit: $unit, size: $size }),+]
    };
}

/// The largest accepted size of each text and list of a result.
pub const MAXIMA: &[Maximum] = maxima! {
    "source.path": LONGEST_PATH, "bytes", |run| run.source.path.len();
    "source.written_at": LONGEST_NAME, "bytes", |run| longest(&run.source.written_at);
    "source.began_at": LONGEST_NAME, "bytes", |run| longest(&run.source.began_at);
    "source.cluster": LONGEST_NAME, "bytes", |run| longest(&run.source.cluster);
    "name.experiment": LONGEST_PATH, "bytes", |run| run.name.experiment.len();
    "name.model": LONGEST_NAME, "bytes", |run| longest(&run.name.model);
    "name.size": LONGEST_NAME, "bytes", |run| longest(&run.name.size);
    "name.dtype": LONGEST_NAME, "bytes", |run| longest(&run.name.dtype);
    "identity.scenario.recipe": LONGEST_NAME, "bytes", |run| {
        run.identity.scenario.get(Field::Recipe).map_or(0, str::len)
    };
    "identity.scenario": LONGEST_SCENARIO, "bytes", |run| {
        run.identity.scenario.iter().map(|(_, text)| text.len()).sum()
    };
    "identity.doubts": 100, "items", |run| run.identity.doubts.len();
    "identity.doubts[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.identity.doubts);
    "identity.conflicts": 100, "items", |run| run.identity.conflicts.len();
    "identity.conflicts[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.identity.conflicts);
    "identity.differences": 100, "items", |run| run.identity.differences.len();
    "identity.differences[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.identity.differences);
    "comparable.reasons": 100, "items", |run| run.comparable.reasons.len();
    "comparable.reasons[]": LONGEST_SENTENCE, "bytes", |run| longest(&run.comparable.reasons);
    "log.steps.label": 1_000_000, "items", |run| run.log.steps.len();
    "log.not_finite": 10, "items", |run| run.log.not_finite.len();
    "log.checkpoints": 100_000, "items", |run| run.log.checkpoints.len();
    "log.failures": 1000, "items", |run| run.log.failures.len();
    "log.failures[].ranks": 1000, "items", |run| {
        run.log.failures.iter().map(|failure| failure.ranks.len()).max().unwrap_or_default()
    };
    "log.failures[].text": LONGEST_SENTENCE, "bytes", |run| {
        longest(run.log.failures.iter().map(|failure| &failure.text))
    };
    "log.nccl.communicators": MOST_SIZES, "items", |run| nccl(run).map_or(0, |nccl| nccl.communicators.len());
    "log.nccl.unfinished": MOST_UNFINISHED, "items", |run| unfinished(run).len();
    "log.nccl.unfinished[].waiting": MOST_LISTED, "items", |run| {
        unfinished(run).iter().map(|one| one.waiting.len()).max().unwrap_or_default()
    };
    "log.nccl.unfinished[].missing": MOST_LISTED, "items", |run| {
        unfinished(run).iter().map(|one| one.missing.len()).max().unwrap_or_default()
    };
    "log.nccl.unfinished[].hosts": MOST_LISTED_HOSTS, "items", |run| {
        unfinished(run).iter().map(|one| one.hosts.len()).max().unwrap_or_default()
    };
    "log.nccl.unfinished[].hosts[]": LONGEST_HOST, "bytes", |run| {
        longest(unfinished(run).iter().flat_map(|one| &one.hosts))
    };
    "log.nccl.networks": MOST_NETWORKS, "items", |run| nccl(run).map_or(0, |nccl| nccl.networks.len());
    "log.nccl.networks[].name": LONGEST_NAME, "bytes", |run| {
        longest(nccl(run).into_iter().flat_map(|nccl| &nccl.networks).map(|network| &network.name))
    };
    "log.nccl.calls.kinds": MOST_CALL_KINDS, "items", |run| {
        nccl(run).and_then(|nccl| nccl.calls.as_ref()).map_or(0, |calls| calls.kinds.len())
    };
    "job.parts": 1000, "items", |run| run.job.parts.len();
    "job.parts[].name": LONGEST_NAME, "bytes", |run| longest(run.job.parts.iter().map(|part| &part.name));
    "job.failures": 1000, "items", |run| run.job.failures.len();
    "job.failures[].ranks": 1000, "items", |run| {
        run.job.failures.iter().map(|failure| failure.ranks.len()).max().unwrap_or_default()
    };
    "job.failures[].text": LONGEST_SENTENCE, "bytes", |run| {
        longest(run.job.failures.iter().map(|failure| &failure.text))
    };
    "job.failures[].file": LONGEST_NAME, "bytes", |run| {
        longest(run.job.failures.iter().filter_map(|failure| failure.file.as_ref()))
    };
    "job.settings": 5000, "items", |run| run.job.settings.all().count();
    "job.settings (names)": LONGEST_NAME, "bytes", |run| longest(run.job.settings.all().map(|(name, _)| name));
    "job.settings (values)": LONGEST_PATH, "bytes", |run| {
        longest(run.job.settings.all().map(|(_, value)| value))
    };
    "job.unread": 10, "items", |run| run.job.unread.len();
    "log.arguments": 2000, "items", |run| run.log.arguments.iter().count();
    "log.arguments (names)": LONGEST_NAME, "bytes", |run| {
        longest(run.log.arguments.iter().map(|(name, _)| name))
    };
    "log.arguments (values)": LONGEST_PATH, "bytes", |run| {
        longest(run.log.arguments.iter().map(|(_, value)| value))
    };
    "log.setup.model": LONGEST_NAME, "bytes", |run| setup(run).map_or(0, |setup| longest(&setup.model));
    "log.setup.device": LONGEST_NAME, "bytes", |run| setup(run).map_or(0, |setup| longest(&setup.device));
    "log.scenario": LONGEST_SCENARIO, "bytes", |run| longest(&run.log.scenario);
    "provenance.program": LONGEST_NAME, "bytes", |run| run.provenance.program.len();
    "provenance.scored_at": LONGEST_NAME, "bytes", |run| longest(&run.provenance.scored_at);
    "carried.campaign": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.campaign));
    "carried.run": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.run));
    "carried.cluster": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.cluster));
    "carried.jobs": MOST_JOBS, "items", |run| jobs(run).count();
    "carried.jobs[].id": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.id));
    "carried.jobs[].name": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.name));
    "carried.jobs[].state": LONGEST_NAME, "bytes", |run| longest(jobs(run).map(|job| &job.state));
    "carried.jobs[].submitted": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.submitted.as_ref()));
    "carried.jobs[].started": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.started.as_ref()));
    "carried.jobs[].ended": LONGEST_NAME, "bytes", |run| longest(jobs(run).filter_map(|job| job.ended.as_ref()));
    "carried.jobs[].nodes": LONGEST_SENTENCE, "bytes", |run| longest(jobs(run).filter_map(|job| job.nodes.as_ref()));
    "carried.launch.release": LONGEST_NAME, "bytes", |run| {
        longest(carried(run).and_then(|carried| carried.launch.release.as_ref()))
    };
    "carried.launch.style": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.launch.style));
    "carried.launch.comparable.reasons": 100, "items", |run| launch_reasons(run).count();
    "carried.launch.comparable.reasons[]": LONGEST_SENTENCE, "bytes", |run| longest(launch_reasons(run));
    "carried.plan.basis": LONGEST_NAME, "bytes", |run| longest(carried(run).map(|carried| &carried.plan.basis));
    "carried.plan.calibration": LONGEST_NAME, "bytes", |run| {
        longest(carried(run).map(|carried| &carried.plan.calibration))
    };
};

/// The most jobs of a run.
pub(crate) const MOST_JOBS: usize = 1000;

fn carried(run: &RunResult) -> Option<&CampaignRun> {
    run.carried.as_ref()
}

pub(super) fn jobs(run: &RunResult) -> impl Iterator<Item = &SlurmJob> {
    carried(run).into_iter().flat_map(|carried| &carried.jobs)
}

fn launch_reasons(run: &RunResult) -> impl Iterator<Item = &String> {
    carried(run).into_iter().flat_map(|carried| &carried.launch.comparable.reasons)
}

fn nccl(run: &RunResult) -> Option<&Nccl> {
    run.log.nccl.as_ref()
}

fn setup(run: &RunResult) -> Option<&StatedSetup> {
    run.log.setup.as_ref()
}

fn unfinished(run: &RunResult) -> &[UnfinishedCommunicator] {
    match nccl(run) {
        Some(nccl) => &nccl.unfinished,
        None => &[],
    }
}

/// Returns the bytes of the longest text.
fn longest<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> usize {
    texts.into_iter().map(|text| text.as_ref().len()).max().unwrap_or_default()
}
