//! Mappings: runs with the same settings are repeats, and are pooled.

use super::configuration::{ConfigurationGroup, ConfigurationRow};
use super::verdict::Verdict;
use super::workload::Workload;
use super::{ComparisonOptions, RunFigures};
use crate::result::RunResult;
use crate::statistics::{MeanDifference, RepeatSpread, RunMean};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The runs of one mapping, pooled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PooledRuns {
    /// The first run's label, and the number of its repeats, such as `job 71 + 2 repeats` for three runs. If there is no other
    /// mapping to compare with, each run is compared with the first one, and this says what the runs have in common.
    pub label: String,
    /// The indices of the runs among the items. A run that is listed twice counts once.
    pub items: Vec<usize>,
    /// The geometric mean of the runs' mean step times, in seconds, over the steady steps.
    pub mean_s: f64,
    /// The lower end of its confidence interval, which includes the variation between runs.
    pub low_s: f64,
    /// The upper end.
    pub high_s: f64,
    /// The standard deviation of the runs' means, in percent; null for one run.
    pub run_to_run_percent: Option<f64>,
    /// The difference from the first mapping; null for the first itself.
    pub against: Option<PooledDifference>,
}

/// The difference of a mapping from the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PooledDifference {
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict with its numbers, in words.
    pub text: String,
    /// The change of the mean step time.
    pub step_time: Option<MeanDifference>,
}

/// The comparable runs of one mapping.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mapping {
    /// What its runs have in common.
    key: MappingKey,
    /// The indices of the items.
    items: Vec<usize>,
    /// Each run, with the number of its repeat in a campaign.
    pub(super) runs: Vec<(String, Option<u32>)>,
    /// The mean of each run.
    pub(super) means: Vec<RunMean>,
    /// Whether its runs are named as repeats: by a campaign, or by the reader.
    pub(super) is_named: bool,
}

/// What repeats have in common.
#[derive(Debug, Clone, PartialEq)]
enum MappingKey {
    /// The reader said which runs belong together: before or behind the first one to compare with.
    Side(bool),
    /// The campaign, run and cluster, or else the experiment that the log's name states; and the settings.
    Settings([Option<String>; 4], Vec<Option<String>>),
}

impl Mapping {
    /// Returns the mappings of the runs that are comparable with the reference, in the order of their first runs.
    pub(super) fn all(
        runs: &[&RunResult],
        items: &[RunFigures],
        workloads: &[Workload],
        configuration: &[ConfigurationRow],
        options: &ComparisonOptions,
    ) -> Vec<Self> {
        let mut mappings: Vec<Self> = Vec::new();
        let Some(reference) =
            workloads.first().filter(|_| items.first().is_some_and(|item| item.comparable.yes))
        else {
            return mappings;
        };
        for (place, ((item, run), workload)) in items.iter().zip(runs).zip(workloads).enumerate() {
            let mean = item.steady.and_then(|steady| RunMean::of(&steady.step_time_s));
            // Settings that are only assumed to be the same are compared run by run, with a note.
            let is_same = reference.unlike(workload).is_empty() && reference.assumed(workload).is_empty();
            let is_comparable = item.comparable.yes && is_same;
            let Some(mean) = mean.filter(|_| is_comparable) else { continue };
            let key = match options.second_side {
                Some(second) => MappingKey::Side(place >= second),
                None => MappingKey::Settings(names(item, run), settings(configuration, place)),
            };
            let is_like = |mapping: &&mut Self| mapping.key == key && mapping.takes(item);
            match mappings.iter_mut().find(is_like) {
                Some(mapping) => mapping.take(place, item, mean),
                None => mappings.push(Self {
                    is_named: options.second_side.is_some() || item.campaign.is_some(),
                    key,
                    items: vec![place],
                    runs: vec![(item.id.clone(), item.repeat)],
                    means: vec![mean],
                }),
            }
        }
        // Two runs with the same settings that nobody named as repeats: the reader asks how they differ.
        match mappings.as_slice() {
            [Self { is_named: false, runs, .. }] if runs.len() < 3 => Vec::new(),
            _ => mappings,
        }
    }

    /// Returns whether a run of this mapping's settings belongs to it. Two runs with the same repeat number come from
    /// different rounds of a campaign, between which more may have changed.
    fn takes(&self, item: &RunFigures) -> bool {
        let is_of_side = matches!(self.key, MappingKey::Side(_));
        let is_other_round = |(id, repeat): &(String, Option<u32>)| *id != item.id && *repeat == item.repeat;
        is_of_side || item.repeat.is_none() || !self.runs.iter().any(is_other_round)
    }

    fn take(&mut self, place: usize, item: &RunFigures, mean: RunMean) {
        self.items.push(place);
        if self.runs.iter().all(|(id, _)| *id != item.id) {
            self.runs.push((item.id.clone(), item.repeat));
            self.means.push(mean);
        }
    }

    /// Returns the label of the only mapping. None of its runs counts as a repeat of another.
    fn common_label(&self, items: &[RunFigures]) -> String {
        match self.key {
            MappingKey::Settings(..) => format!("{} runs with the same settings", self.runs.len()),
            MappingKey::Side(_) => self.label(items),
        }
    }

    fn label(&self, items: &[RunFigures]) -> String {
        let first = self.items.first().and_then(|first| items.get(*first));
        let first = first.map_or("", |item| item.label.as_str());
        match self.runs.len() - 1 {
            0 => first.to_owned(),
            1 => format!("{first} + 1 repeat"),
            repeats => format!("{first} + {repeats} repeats"),
        }
    }
}

impl PooledRuns {
    /// Returns the mappings with their means and differences; none if no mapping has several runs.
    pub(super) fn all(mappings: &[Mapping], items: &[RunFigures], margin_percent: f64) -> Vec<Self> {
        let Some(spread) = RepeatSpread::of(mappings.iter().map(|mapping| mapping.means.as_slice())) else {
            return Vec::new();
        };
        let reference = mappings.first().filter(|first| first.items.first() == Some(&0));
        let pooled = mappings.iter().enumerate().filter_map(|(place, mapping)| {
            let (mean_s, [low_s, high_s]) = spread.mean(&mapping.means)?;
            let own = RepeatSpread::of([mapping.means.as_slice()]);
            let reference = reference.filter(|_| place > 0);
            Some(Self {
                label: if mappings.len() > 1 { mapping.label(items) } else { mapping.common_label(items) },
                items: mapping.items.clone(),
                mean_s,
                low_s,
                high_s,
                run_to_run_percent: own.map(|own| 100.0 * own.deviation),
                against: reference
                    .map(|reference| PooledDifference::of(spread, reference, mapping, margin_percent)),
            })
        });
        pooled.collect()
    }
}

impl PooledDifference {
    fn of(spread: RepeatSpread, reference: &Mapping, mapping: &Mapping, margin_percent: f64) -> Self {
        let step_time = spread.difference(&reference.means, &mapping.means);
        let verdict = Verdict::of(step_time, false, margin_percent);
        Self { verdict, text: verdict.text(step_time, &[], margin_percent), step_time }
    }
}

/// Returns names that distinguish the runs.
fn names(item: &RunFigures, run: &RunResult) -> [Option<String>; 4] {
    let experiment = item.campaign.is_none().then(|| run.name.experiment.clone());
    [item.campaign.clone(), item.run.clone(), item.cluster.clone(), experiment]
}

/// Returns a run's settings that change what it does, or which software does it.
fn settings(configuration: &[ConfigurationRow], place: usize) -> Vec<Option<String>> {
    let kept: BTreeSet<&str> = ["release", "framework", "launch.release", "launch.style"].into();
    configuration
        .iter()
        .filter(|row| row.group == ConfigurationGroup::Scenario || kept.contains(row.key.as_str()))
        .map(|row| row.values.get(place).cloned().flatten())
        .collect()
}
