//! How to launch a scenario, in the words of the page.

use super::campaign::campaign;
use crate::message::{Launch as Shown, Launched, Refusal, Step as ShownStep, Warning as ShownWarning};
use trainplan_shared::catalog::Release;
use trainplan_shared::launch::{Comparable, Launch, Options, Step, Style, launch as release};
use trainplan_shared::link;
use trainplan_shared::problem::Problem;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;

/// The launch of a query's scenario, or why there is none: by a release, or by Megatron-LM where nobody chose and no
/// release runs it. None where the query describes no scenario.
pub(super) fn launch(query: &str) -> Option<Launched> {
    let spec = link::read(query).spec;
    let scenario = spec.scenario().ok()?;
    let (problems, launch) = launched(&spec, &scenario);
    Some(Launched {
        refusals: problems.into_iter().map(Refusal::from).collect(),
        launch: launch.map(|launch| Shown {
            campaign: campaign(&spec, &scenario, &launch).unwrap_or_default(),
            ..shown(&launch)
        }),
    })
}

fn launched(spec: &Spec, scenario: &Scenario) -> (Vec<Problem>, Option<Launch>) {
    let options = match Options::from_spec(spec) {
        Ok(options) => options,
        Err(problems) => return (problems, None),
    };
    let nobody_chose = options.style.is_none() && options.release.is_none();
    match release(scenario, &options) {
        Ok(launch) => (Vec::new(), Some(launch)),
        Err(problems) if nobody_chose && problems.iter().all(|problem| problem.field.is_of_scenario()) => {
            match release(scenario, &Options { style: Some(Style::MegatronLm), ..options }) {
                Ok(launch) => (problems, Some(launch)),
                Err(own) => (problems.into_iter().chain(own).collect(), None),
            }
        }
        Err(problems) => (problems, None),
    }
}

fn shown(launch: &Launch) -> Shown {
    let job = launch.outputs.jobs.first().map_or("run", String::as_str);
    let warnings = launch.warnings.iter();
    Shown {
        release: launch.release.map_or("none", Release::id).to_string(),
        style: launch.style.to_string(),
        script: launch.script.clone(),
        campaign: String::new(),
        name: format!("launch-{job}.sh"),
        runs: runs(launch),
        comparable: comparable(&launch.comparable),
        warnings: warnings
            .map(|warning| ShownWarning { text: warning.text.clone(), fix: warning.fix.clone() })
            .collect(),
        prepare: launch.prepare.iter().map(step).collect(),
        check: launch.check.iter().map(step).collect(),
        directory: launch.outputs.experiment_dir.shell(),
        log: launch.outputs.log_glob.shell(),
    }
}

fn step(step: &Step) -> ShownStep {
    ShownStep { title: step.title.clone(), commands: step.commands.clone(), note: step.note.clone() }
}

fn runs(launch: &Launch) -> String {
    let steps = match launch.steps {
        1 => "1 step".to_string(),
        steps => format!("{steps} steps"),
    };
    let how = match launch.comparable.yes && launch.comparable.baseline.is_some() {
        true => "it measures, as the published numbers were made",
        false => "it measures, and does not train the model to its end",
    };
    format!("Runs {steps} on synthetic data: {how}.")
}

fn comparable(comparable: &Comparable) -> String {
    match (comparable.yes, &comparable.baseline) {
        (true, Some(baseline)) => {
            format!("The run can be compared with the published number of {baseline}.")
        }
        (true, None) => {
            "The run measures what a published number would; none is published for it.".to_string()
        }
        (false, _) => {
            format!("The run can't be compared with a published number: {}.", comparable.reasons.join("; "))
        }
    }
}
