//! Certifies a cluster from logs of runs that are over.

use super::cause;
use crate::cli::output::printable;
use crate::cli::{Failure, parse};
use std::path::PathBuf;
use trainplan_shared::campaign::{Campaign, CertifiedRun, RunVerdict};
use trainplan_shared::catalog::{Catalog, Release};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::problem::Problem;
use trainplan_shared::result::{Report, RunResult, View};
use trainplan_shared::spec::Spec;

/// The logs of a cluster's runs.
pub(super) struct ClusterLogs {
    logs: Vec<ClusterLog>,
    /// The reports on files without a result.
    unread: Vec<Report>,
}

struct ClusterLog {
    run: RunResult,
    report: Report,
}

impl ClusterLog {
    /// Returns the scored step time and the one by which the run is judged, in seconds; none if it was not scored or did not run
    /// its recipe as published.
    fn times(&self) -> Option<(f64, f64)> {
        let scored = self.report.step_time_s.filter(|_| self.report.comparable.yes)?;
        Some((scored.mean, self.report.judged_s?))
    }

    /// Returns why the run has no such times.
    fn reason(&self) -> Option<String> {
        if self.times().is_some() {
            return None;
        }
        let reasons = &self.report.comparable.reasons;
        let reason = self.report.reason.clone().filter(|_| self.report.step_time_s.is_none());
        Some(reason.or_else(|| reasons.first().cloned()).unwrap_or_else(|| "it was not scored".to_owned()))
    }
}

impl ClusterLogs {
    /// Reads logs, saved results and folders of them. Most logs don't state the GPU type.
    ///
    /// # Errors
    /// The GPU type is invalid.
    pub(super) fn read(paths: &[PathBuf], gpu: &str) -> Result<ClusterLogs, Failure> {
        let view = View::of(Spec::default().with(Field::Gpu, gpu), None)?;
        let (mut logs, mut unread) = (Vec::new(), Vec::new());
        for found in paths.iter().flat_map(|path| parse::runs(path, &view)) {
            match found {
                Ok(run) => logs.push(ClusterLog { report: Report::of(&run, &view), run }),
                Err(report) => unread.push(*report),
            }
        }
        Ok(ClusterLogs { logs, unread })
    }

    /// Returns the release of the logs' recipes.
    ///
    /// # Errors
    /// They are of none, or of several.
    pub(super) fn release(&self) -> Result<Release, Failure> {
        let recipes = self.logs.iter().filter_map(|log| log.report.recipe.as_deref());
        let mut releases: Vec<Release> = recipes
            .filter_map(|id| Catalog::embedded().recipe(id).ok())
            .map(|recipe| recipe.id.release)
            .collect();
        releases.sort_unstable();
        releases.dedup();
        match releases.as_slice() {
            [one] => Ok(*one),
            [] => Err(Failure::Refused("no log matches a recipe. `trainplan parse` says why")),
            several => {
                let message = "The logs are of several releases. Choose one of them.";
                Err(Problem::new(Field::Release, "", message).suggest(several).into())
            }
        }
    }

    /// Returns the runs of a certification, each with the logs of its recipe as repeats.
    ///
    /// # Errors
    /// A recipe can't be predicted.
    pub(super) fn certified(
        &self,
        campaign: &Campaign,
        gpus: u32,
        predicted: impl Fn(&str) -> Result<Interval, Failure>,
    ) -> Result<Vec<CertifiedRun>, Failure> {
        let mut certified = Vec::new();
        for run in &campaign.runs {
            let recipe = run.settings.spec.get(Field::Recipe).unwrap_or_default();
            let logs: Vec<&ClusterLog> = self.of_recipe(recipe).collect();
            let times: Vec<(f64, f64)> = logs.iter().filter_map(|log| log.times()).collect();
            let reasons = match logs.is_empty() {
                true => vec!["no log of this recipe was found".to_owned()],
                false => logs.iter().filter_map(|log| log.reason()).collect(),
            };
            let repeats = (logs.len().max(1), times);
            let mut of_run = CertifiedRun::new(
                run.name.as_str(),
                Some(recipe),
                gpus,
                repeats,
                predicted(recipe)?,
                reasons,
            );
            if let Some(container) = logs.iter().find_map(|log| log.run.job.settings.container()) {
                of_run.container = Some(container.to_owned());
            }
            if of_run.verdict == RunVerdict::Slow {
                of_run.cause = logs.iter().find_map(|log| cause(&log.report));
            }
            certified.push(of_run);
        }
        Ok(certified)
    }

    /// Returns when the first run of a certification began, as RFC 3339; none if no log says it.
    pub(super) fn began(&self, runs: &[CertifiedRun]) -> Option<String> {
        let recipes = runs.iter().filter_map(|run| run.recipe.as_deref());
        let times = recipes.flat_map(|recipe| self.of_recipe(recipe)).filter_map(|log| log.run.ran_at());
        times.map(|(at, _)| at.to_owned()).min()
    }

    /// Returns why logs are of no run of a certification: a text for each log.
    pub(super) fn left_out(&self, runs: &[CertifiedRun]) -> Vec<String> {
        let is_of_run = |log: &&ClusterLog| {
            runs.iter().any(|run| run.recipe.is_some() && run.recipe == log.report.recipe)
        };
        let others = self.logs.iter().filter(|log| !is_of_run(log)).map(|log| {
            let report = &log.report;
            let why = match &report.recipe {
                Some(recipe) => format!("It ran {recipe}, which this certification doesn't have."),
                None => report.notes.first().or(report.reason.as_ref()).cloned().unwrap_or_default(),
            };
            (report, why)
        });
        let unread = self.unread.iter().map(|report| (report, report.reason.clone().unwrap_or_default()));
        others.chain(unread).map(|(report, why)| format!("{}: {why}", printable(&report.path))).collect()
    }

    fn of_recipe(&self, recipe: &str) -> impl Iterator<Item = &ClusterLog> {
        self.logs.iter().filter(move |log| log.report.recipe.as_deref() == Some(recipe))
    }
}
