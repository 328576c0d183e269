//! The launch panel: the commands that start the scenario, with every option of its release.

use super::Plan;
use crate::components::copy::{CopyButton, DownloadButton};
use crate::components::field::{AreaField, ChoiceField, ProblemText, SwitchField, TextField};
use leptos::prelude::*;
use trainplan_shared::catalog::Release;
use trainplan_shared::launch::{ClusterType, Launch, Options, Step, Style, Warning, launch};
use trainplan_shared::problem::{Field, Problem};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;

/// The launch of a scenario, or why there is none: by a release, or by Megatron-LM where nobody chose and no release
/// runs it.
pub(super) fn launched(spec: &Spec, scenario: &Scenario) -> Result<Launch, Vec<Problem>> {
    let options = Options::from_spec(spec)?;
    let nobody_chose = options.style.is_none() && options.release.is_none();
    match launch(scenario, &options) {
        Err(problems) if nobody_chose && problems.iter().all(|problem| problem.field.is_of_scenario()) => {
            let own = Options { style: Some(Style::MegatronLm), ..options };
            launch(scenario, &own).map_err(|own| problems.into_iter().chain(own).collect())
        }
        launch => launch,
    }
}

/// Why no release runs it, where Megatron-LM does and nobody asked for that.
fn why_no_release(spec: &Spec, scenario: &Scenario) -> Vec<Problem> {
    let options = Options::from_spec(spec).ok().filter(|options| options.style.is_none());
    options.and_then(|options| launch(scenario, &options).err()).unwrap_or_default()
}

/// The launch panel.
#[component]
pub(super) fn LaunchPanel() -> impl IntoView {
    let plan = Plan::of_page();
    let ready = move |launch: Option<Result<Launch, Vec<Problem>>>| launch.and_then(Result::ok);
    view! {
        <section class="launch" aria-labelledby="launch-title">
            <h2 id="launch-title">"Launch it"</h2>
            <ClusterFields />
            <RunFields />
            {move || match plan.launch.get() {
                None => view! { <p>"There is no command for a scenario that can't run."</p> }.into_any(),
                Some(Err(problems)) => view! { <Refusals problems kind="notice wrong" title="There is no command for this as it is:" /> }.into_any(),
                Some(Ok(_)) => {
                    let problems = plan.spec.with(|spec| plan.scenario.with(|scenario| {
                        scenario.as_ref().map_or(Vec::new(), |scenario| why_no_release(spec, scenario))
                    }));
                    (!problems.is_empty()).then(|| view! {
                        <Refusals problems kind="notice warn" title="No release runs this as it is, so Megatron-LM does:" />
                    }).into_any()
                }
            }}
            <Show when=move || plan.launch.with(|launch| matches!(launch, Some(Ok(_))))>
                <Script launch=Signal::derive(move || ready(plan.launch.get())) />
            </Show>
        </section>
    }
}

/// Where the launch runs.
#[component]
fn ClusterFields() -> impl IntoView {
    let ids = |ids: Vec<&'static str>| {
        ids.into_iter().map(|id| (id.to_string(), id.to_string())).collect::<Vec<_>>()
    };
    let plan = Plan::of_page();
    let chosen = move |value: fn(&Launch) -> String| {
        Signal::derive(move || match plan.launch.get() {
            Some(Ok(launch)) => format!("{} (default)", value(&launch)),
            _ => "default".into(),
        })
    };
    let per_node = Signal::derive(move || {
        plan.scenario.with(|scenario| {
            scenario.as_ref().map_or(String::new(), |scenario| scenario.gpu.gpus_per_node.to_string())
        })
    });
    view! {
        <div class="controls">
            <TextField field=Field::Account default="from $SBATCH_ACCOUNT" numeric=false />
            <TextField field=Field::Partition default="from $SBATCH_PARTITION" numeric=false />
            <TextField field=Field::GpusPerNode default=per_node />
            <ChoiceField field=Field::Style options=ids(Style::ALL.map(Style::id).to_vec()) default=chosen(|launch| launch.style.to_string()) />
        </div>
        <details>
            <summary>"More about the cluster"</summary>
            <div class="controls">
                <ChoiceField field=Field::Release options=ids(Release::ALL.map(Release::id).to_vec()) default=chosen(|launch| launch.release.map_or("none", Release::id).to_string()) />
                <ChoiceField field=Field::ClusterType options=ids(ClusterType::ALL.map(ClusterType::id).to_vec()) default="slurm (default)" />
                <TextField field=Field::Gres default="none" numeric=false help="Such as gpu:8, where the cluster needs it." />
                <TextField field=Field::InstallPath default="from the environment" numeric=false help="STAGE_PATH or LLMB_INSTALL; for megatron-lm its checkout." />
                <TextField field=Field::RecipeDir default="as installed" numeric=false help="Where the recipe's scripts are." />
                <TextField field=Field::Venv default="already active" numeric=false help="Python environment to activate." />
                <TextField field=Field::SlurmParams default="none" numeric=false help="nodelist=n1,n2;exclusive" />
                <TextField field=Field::Mounts default="none" numeric=false />
                <TextField field=Field::ContainerImage default="none" numeric=false help="For megatron-lm, as Slurm's pyxis takes it." />
                <AreaField field=Field::Env help="NAME=value, one on each line. Secrets only by reference: $NAME." />
            </div>
        </details>
    }
}

/// What the launch does beside training.
#[component]
fn RunFields() -> impl IntoView {
    view! {
        <details>
            <summary>"Steps, profiling and checkpoints"</summary>
            <div class="controls">
                <TextField field=Field::MaxSteps default="50" />
                <TextField field=Field::TimeLimit default="the release's" numeric=false help="HH:MM:SS" />
                <SwitchField field=Field::Profile />
                <TextField field=Field::ProfileStartStep default="the release's" />
                <TextField field=Field::ProfileStopStep default="the release's" />
                <SwitchField field=Field::GpuMetrics />
                <SwitchField field=Field::NcclTrace />
                <SwitchField field=Field::SaveCheckpoint />
                <TextField field=Field::LoadCheckpoint default="none" numeric=false help="The directory above its weights." />
            </div>
        </details>
    }
}

/// Why there is no command, or none of a release.
#[component]
fn Refusals(problems: Vec<Problem>, kind: &'static str, title: &'static str) -> impl IntoView {
    let plan = Plan::of_page();
    view! {
        <div class=kind role="status">
            <p>{title}</p>
            <ul>
                {problems.into_iter().map(|problem| view! {
                    <li><strong>{problem.field.label()} ":"</strong> " " <ProblemText problem address=plan.address /></li>
                }).collect_view()}
            </ul>
        </div>
    }
}

/// The script with what to know of it, what comes before and what comes after.
#[component]
fn Script(launch: Signal<Option<Launch>>) -> impl IntoView {
    let of = move |value: fn(&Launch) -> String| {
        Signal::derive(move || launch.with(|launch| launch.as_ref().map_or(String::new(), value)))
    };
    let steps =
        move |value: fn(Launch) -> Vec<Step>| Signal::derive(move || launch.get().map_or(Vec::new(), value));
    let script = of(|launch| launch.script.clone());
    let name =
        of(|launch| format!("launch-{}.sh", launch.outputs.jobs.first().map_or("run", String::as_str)));
    let warnings = move || launch.get().map_or(Vec::new(), |launch| launch.warnings);
    let comparable = move || launch.get().map(|launch| launch.comparable);
    view! {
        {move || warnings().into_iter().map(|Warning { text, fix }| view! {
            <p class="notice warn">{text} " " {(!fix.is_empty()).then(|| view! { <strong>{fix}</strong> })}</p>
        }).collect_view()}
        <p class="basis">{of(what_runs)}</p>
        <pre tabindex="0" aria-label="Launch script" data-script>{script}</pre>
        <div class="buttons">
            <CopyButton text=script label="Copy command" primary=true />
            <DownloadButton text=script name label="Download" />
        </div>
        {move || comparable().map(|comparable| match (comparable.yes, comparable.baseline) {
            (true, Some(baseline)) => format!("The run can be compared with the published number of {baseline}."),
            (true, None) => "The run measures what a published number would; none is published for it.".into(),
            (false, _) => format!("The run can't be compared with a published number: {}.", comparable.reasons.join("; ")),
        }).map(|text| view! { <p class="basis">{text}</p> })}
        <details>
            <summary>"Before the first launch"</summary>
            <Steps steps=steps(|launch| launch.prepare) />
        </details>
        <details>
            <summary>"Where logs and results will be"</summary>
            <dl class="facts">
                <div><dt>"Directory of the run"</dt><dd><code>{of(|launch| launch.outputs.experiment_dir.shell())}</code></dd></div>
                <div><dt>"Training log"</dt><dd><code>{of(|launch| launch.outputs.log_glob.shell())}</code></dd></div>
            </dl>
            <Steps steps=steps(|launch| launch.check) />
        </details>
    }
}

/// What the script trains, which is not the plan: releases ship measurements.
fn what_runs(launch: &Launch) -> String {
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

/// Steps for a person to follow.
#[component]
fn Steps(steps: Signal<Vec<Step>>) -> impl IntoView {
    view! {
        <ol>
            {move || steps.get().into_iter().map(|Step { title, commands, note }| view! {
                <li>
                    <strong>{title}</strong>
                    {(!commands.is_empty()).then(|| view! { <pre tabindex="0">{commands.join("\n")}</pre> })}
                    {(!note.is_empty()).then(|| view! { <p><small>{note}</small></p> })}
                </li>
            }).collect_view()}
        </ol>
    }
}
