//! The launch of a scenario, in the page's words.

use super::campaign::campaign;
use crate::message::search::ScriptEffect;
use crate::message::{Launch as Shown, Launched, Refusal, Step as ShownStep, Warning as ShownWarning};
use trainplan_shared::catalog::Release;
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::launch::{
    BridgeCommand, Instruction, Launch, LaunchComparability, LaunchOptions, LaunchWarning, Style,
    launch as release, launch_or_fall_back,
};
use trainplan_shared::link;
use trainplan_shared::message::Front;
use trainplan_shared::problem::Problem;
use trainplan_shared::question::ScriptRun;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::group_digits;

/// Returns the launch of a query's scenario, or the problems. Without a chosen style or release, a scenario
/// that no release runs is launched with Megatron-LM. `None` if the query describes no scenario.
pub(super) fn launch(query: &str) -> Option<Launched> {
    let spec = link::read(query).spec;
    let scenario = spec.scenario().ok()?;
    let (problems, launch) = launched(&spec, &scenario);
    Some(Launched {
        refusals: problems.into_iter().map(Refusal::from).collect(),
        launch: launch.map(|launch| Shown {
            campaign: campaign(&spec, &scenario, &launch).unwrap_or_default(),
            runs: runs(&launch, steps_to_train(&spec, &scenario)),
            ..shown(&launch)
        }),
        styles: values_that_launch(&spec, &scenario, Field::Style, &Style::ALL.map(Style::id)),
        releases: values_that_launch(&spec, &scenario, Field::Release, &Release::ALL.map(Release::id)),
    })
}

/// Returns how the launch script of a query's scenario differs from the plan, or that there is none.
pub(super) fn script_effect(query: &str) -> ScriptEffect {
    let spec = link::read(query).spec;
    let written = spec.scenario().ok().and_then(|scenario| {
        let (options, launch) = script(&spec, &scenario)?;
        let is_of_nvidia = scenario.options.software.base().is_nvidia_megatron();
        let runs_megatron_lm = is_of_nvidia && launch.release.is_none();
        Some((differing(&scenario, &options, &launch), runs_megatron_lm))
    });
    let is_unavailable = written.is_none();
    let (script, runs_megatron_lm) = written.unwrap_or_default();
    ScriptEffect {
        slowdown: script.as_ref().map_or(1.0, |script| script.slowdown),
        may_lack_memory: script.is_some_and(|script| script.may_lack_memory),
        is_unavailable,
        runs_megatron_lm,
    }
}

/// Returns how the launch script of a scenario differs from the plan, if at all; none if no script can be written. Its days are
/// multiples of the planned ones.
pub(super) fn script_run(spec: &Spec, scenario: &Scenario) -> Option<Option<ScriptRun>> {
    let (options, launch) = script(spec, scenario)?;
    Some(differing(scenario, &options, &launch))
}

/// Returns the launch script of a scenario with its options; none if it can't be written.
fn script(spec: &Spec, scenario: &Scenario) -> Option<(LaunchOptions, Launch)> {
    let options = LaunchOptions::from_spec(spec).ok()?;
    let launch = launch_or_fall_back(scenario, &options).ok()?;
    Some((options, launch))
}

fn differing(scenario: &Scenario, options: &LaunchOptions, launch: &Launch) -> Option<ScriptRun> {
    let script = ScriptRun::of(scenario, options, launch, Interval { low: 1.0, mid: 1.0, high: 1.0 });
    // Software that is not built on Megatron-Core is run without these scripts.
    script.filter(|_| scenario.options.software.properties().transformer_engine)
}

/// Returns the values of a field that make the scenario launchable.
fn values_that_launch(spec: &Spec, scenario: &Scenario, field: Field, values: &[&str]) -> Vec<String> {
    let launches = |value: &&&str| {
        let options = LaunchOptions::from_spec(&spec.clone().with(field, **value));
        options.is_ok_and(|options| release(scenario, &options).is_ok())
    };
    values.iter().filter(launches).map(|value| (*value).to_string()).collect()
}

/// Returns the launch of a scenario, with the problems that prevent one, or one with a release.
fn launched(spec: &Spec, scenario: &Scenario) -> (Vec<Problem>, Option<Launch>) {
    match LaunchOptions::from_spec(spec).and_then(|options| launch_or_fall_back(scenario, &options)) {
        Ok(mut launch) => {
            let fallback = launch.fallback.take();
            (fallback.map(|fallback| fallback.problems).unwrap_or_default(), Some(launch))
        }
        Err(problems) => (problems, None),
    }
}

fn shown(launch: &Launch) -> Shown {
    let job = launch.outputs.jobs.first().map_or("run", String::as_str);
    Shown {
        release: launch.release.map_or("none", Release::id).to_string(),
        style: launch.style.to_string(),
        script: launch.script.to_string(),
        campaign: String::new(),
        name: format!("launch-{job}.sh"),
        runs: String::new(),
        call: launch.runs.as_ref().map(call).unwrap_or_default(),
        by_recipe: by_recipe(&launch.by_recipe),
        comparable: comparable(&launch.comparable),
        slowdown: launch.slowdown,
        memory: launch.memory,
        warnings: launch.warnings.iter().map(warning).collect(),
        prepare: launch.prepare.iter().map(step).collect(),
        check: launch.check.iter().map(step).collect(),
        directory: launch.outputs.experiment_dir.shell(),
        log: launch.outputs.log_glob.shell(),
    }
}

fn warning(warning: &LaunchWarning) -> ShownWarning {
    let settings = warning.fix.settings().map(|set| (set.field.flag().to_string(), set.value.clone()));
    ShownWarning {
        topic: warning.topic,
        text: warning.text.text(Front::Page),
        fix: warning.fix.text(Front::Page),
        settings: settings.collect(),
    }
}

fn step(step: &Instruction) -> ShownStep {
    ShownStep {
        title: step.title.clone(),
        commands: step.commands.clone(),
        note: step.note.text(Front::Page),
    }
}

/// Returns the call that the release's script makes, an argument to a line.
fn call(BridgeCommand { command, env, .. }: &BridgeCommand) -> String {
    let env: String = env.iter().map(|(name, value)| format!("{name}={value} \\\n")).collect();
    env + &command.replace(" -", " \\\n  -")
}

/// Returns the steps that train the model on the tokens of a plan; none for a proxy, or without a number of tokens.
fn steps_to_train(spec: &Spec, scenario: &Scenario) -> Option<f64> {
    let tokens = spec.count(Field::Tokens).ok().flatten().filter(|_| !scenario.is_proxy())?;
    Some((tokens / scenario.batch.tokens()).ceil())
}

/// Returns what the script runs, and what the real run needs instead.
fn runs(launch: &Launch, to_train: Option<f64>) -> String {
    let is_benchmark = launch.comparable.yes && launch.comparable.baseline.is_some();
    let method = if is_benchmark { ", same method as the published numbers" } else { "" };
    let what = match launch.steps {
        1 => "Runs 1 step on synthetic data.".to_string(),
        steps => format!("{steps}-step benchmark on synthetic data{method}."),
    };
    let steps =
        to_train.map_or("the number of steps".to_string(), |steps| format!("{} steps", group_digits(steps)));
    format!("{what} It doesn't train the model to the end: for that, set {steps}, your data and checkpoints.")
}

/// Returns which parts of the layout come from the recipe, as a sentence.
fn by_recipe(layout: &[(Field, String)]) -> String {
    if layout.is_empty() {
        return String::new();
    }
    let parts: Vec<String> =
        layout.iter().map(|(field, value)| format!("{} {value}", field.label())).collect();
    format!("From the recipe, so not in the script: {}.", parts.join(" · "))
}

fn comparable(comparable: &LaunchComparability) -> String {
    match (comparable.yes, &comparable.baseline) {
        (true, Some(baseline)) if comparable.by_weak_scaling => {
            format!("Comparable by weak scaling with the published number for {baseline}.")
        }
        (true, Some(baseline)) => format!("Comparable with the published number for {baseline}."),
        (true, None) => "No published number to compare this run with.".to_string(),
        (false, _) => format!("Not comparable with a published number: {}.", comparable.reasons.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_that_the_script_does_not_name_comes_from_the_recipe() {
        let shown = |query: &str| launch(query).and_then(|launched| launched.launch).expect("a launch");
        let recipe = "r=qwen3-235b-a22b/h100/bf16/256@bridge-main";
        let usual = shown(recipe).by_recipe;
        for part in ["From the recipe, so not in the script: ", " EP 32", "Pipeline split counted"] {
            assert!(usual.contains(part), "{part}: {usual}");
        }
        // What the plan changes is in the script.
        let changed = shown(&format!("{recipe}&ep=16"));
        assert!(
            !changed.by_recipe.contains(" EP ") && changed.script.contains("-ep 16"),
            "{}",
            changed.by_recipe
        );
    }

    #[test]
    fn a_benchmark_says_what_the_real_run_needs() {
        let runs = |query: &str| launch(query).and_then(|launched| launched.launch).expect("a launch").runs;
        let plan = "r=llama3.1-405b/h100/fp8/512@25.04";
        let spec = link::read(plan).spec;
        let steps = (15e12 / spec.scenario().expect("a scenario").batch.tokens()).ceil();
        assert_eq!(
            runs(&format!("{plan}&t=15T")),
            format!(
                "50-step benchmark on synthetic data, same method as the published numbers. It doesn't train the model to the \
                 end: for that, set {} steps, your data and checkpoints.",
                group_digits(steps)
            )
        );
        assert!(runs(plan).ends_with("set the number of steps, your data and checkpoints."));
    }
}
