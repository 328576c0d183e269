//! Certification of a cluster: a campaign of a release's recipes at one GPU count, and what its runs prove.
//!
//! A run is compared with the best reference that exists: the published result of its recipe, that of the same layout at another
//! GPU count, or, where nothing is published, the prediction.

mod certified_run;
mod html;
mod markdown;
mod reference;
mod selection;

pub use certified_run::{CertifiedRun, RunVerdict};
pub use reference::{LEAST_SPEED_PERCENT, ReferenceSource, RunReference};
pub use selection::{UntestedReason, UntestedRecipe, certification, untested};

use crate::catalog::{Catalog, Release};
use crate::log::Stat;
use crate::units::group_digits;
use certified_run::precise;
use serde::Serialize;
use std::fmt::Write;

/// What a campaign proves about a cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// The cluster's name.
    pub cluster: String,
    /// GPU type.
    pub gpu: String,
    /// GPU count of each run.
    pub gpus: u32,
    /// The release whose recipes ran.
    pub release: Release,
    /// When the runs began: a date and time.
    pub began: String,
    /// The runs.
    pub runs: Vec<CertifiedRun>,
    /// The release's recipes for the GPU type that did not run.
    pub untested: Vec<UntestedRecipe>,
    /// The command that measures it again.
    pub command: String,
}

impl Certificate {
    /// Returns the runs with this verdict.
    pub fn with(&self, verdict: RunVerdict) -> impl Iterator<Item = &CertifiedRun> {
        self.runs.iter().filter(move |run| run.verdict == verdict)
    }

    /// Returns the result as a sentence.
    pub fn summary(&self) -> String {
        let count = |verdict| self.with(verdict).count();
        let (slow, open) = (count(RunVerdict::Slow), count(RunVerdict::NotScored));
        let predicted =
            self.runs.iter().filter(|run| matches!(run.reference, RunReference::Predicted { .. }));
        let mut text = format!("{} of {} runs passed", count(RunVerdict::Passed), self.runs.len());
        if slow > 0 {
            let _ = write!(text, ", {slow} {} slow", if slow == 1 { "is" } else { "are" });
        }
        if open > 0 {
            let _ = write!(text, ", {open} {} not scored", if open == 1 { "was" } else { "were" });
        }
        text += ".";
        match predicted.count() {
            0 => {}
            predicted => {
                let they_were = if predicted == 1 { "it was" } else { "they were" };
                let _ = write!(
                    text,
                    " For {predicted} of them nothing is published: {they_were} compared with the prediction."
                );
            }
        }
        let judged = self.runs.iter().filter(|run| run.verdict != RunVerdict::NotScored);
        match judged.filter(|run| run.missing() > 0).count() {
            0 => {}
            1 => text += " 1 run was judged without all of its repeats.",
            several => {
                let _ = write!(text, " {several} runs were judged without all of their repeats.");
            }
        }
        text
    }

    /// Returns what to check before passes count: a sentence for each run that is much faster than its reference, after its name.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.runs.iter().filter_map(|run| Some(format!("{}: {}", run.run, run.remark.as_ref()?)))
    }

    /// Returns which runs used another container than their references: a sentence for each, after its name.
    pub fn container_remarks(&self) -> impl Iterator<Item = String> {
        self.runs.iter().filter_map(|run| Some(format!("{}: {}", run.run, run.container_remark()?)))
    }

    /// Returns what was not tested: a sentence for each reason.
    pub fn untested_in_words(&self) -> impl Iterator<Item = String> {
        UntestedReason::ALL.into_iter().filter_map(move |reason| {
            let of_reason = self.untested.iter().filter(|recipe| recipe.reason == reason);
            let names: Vec<String> = of_reason.map(UntestedRecipe::in_words).collect();
            let gpus = group_digits(self.gpus.into());
            let why = match reason {
                UntestedReason::GpuCount => format!("the release has no recipe for {gpus} GPUs"),
                UntestedReason::StrongScaling => {
                    "their batch doesn't grow with the GPUs (strong scaling)".to_owned()
                }
                UntestedReason::Proxy => {
                    format!("their recipes for {gpus} GPUs have fewer layers than the model (proxies)")
                }
                UntestedReason::Variant => "they are variants of other recipes".to_owned(),
            };
            (!names.is_empty()).then(|| format!("Not tested because {why}: {}.", names.join(", ")))
        })
    }

    /// Returns the rows of a table: run, measured, reference, speed in percent, verdict.
    pub fn rows(&self) -> impl Iterator<Item = [String; 5]> {
        self.runs.iter().map(|run| {
            let verdict = run.verdict.in_words().to_owned();
            [run.run.clone(), run.measured(), run.reference.written(precise), run.speed(), verdict]
        })
    }

    fn title(&self) -> String {
        format!("Certification of {}", self.cluster)
    }

    /// Returns what was certified, and when: a sentence.
    fn subject(&self, began: &str) -> String {
        let Certificate { gpu, gpus, release, .. } = self;
        let gpu = Catalog::embedded().gpu(gpu).map_or(gpu.as_str(), |gpu| &gpu.name);
        format!("{gpus} × {gpu}, recipes of release {release}, {began}.")
    }
}

/// Returns when a run passes, and how sure that is: sentences.
fn criteria() -> String {
    format!(
        "A run passes if it reaches {LEAST_SPEED_PERCENT} % of the published speed. A published result of the same layout \
         at another GPU count counts, because with weak scaling a step takes the same time. Where nothing is published, the run \
         passes if its step time is not above the 80 % interval of Trainplan's prediction: one healthy cluster in \
         ten is expected to fail that test. Where fewer than {few} steps are scored, a run is judged by the mean of all its steps \
         after the warm-up, because a single step may miss a stall.",
        few = Stat::FEW
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_listed_once_with_the_gpu_counts_of_the_full_size() {
        let certificate = Certificate {
            cluster: "alpha".to_owned(),
            gpu: "h100".to_owned(),
            gpus: 64,
            release: Release::R25_04,
            began: "2026-11-25 02:00".to_owned(),
            runs: Vec::new(),
            untested: untested("h100", 64, Release::R25_04),
            command: "trainplan certify".to_owned(),
        };
        let sentences: Vec<String> = certificate.untested_in_words().collect();
        let said =
            "Not tested because their recipes for 64 GPUs have fewer layers than the model (proxies): ";
        let [proxies] =
            &sentences.iter().filter(|told| told.contains("llama3.1-405b-bf16")).collect::<Vec<_>>()[..]
        else {
            panic!("{sentences:?}")
        };
        let full = "llama3.1-405b-bf16 (full size: 512, 1,024 or 2,048 GPUs)";
        assert!(proxies.starts_with(said) && proxies.contains(full), "{proxies}");
    }
}
