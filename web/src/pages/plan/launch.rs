//! The launch panel: the script that starts the scenario, and its options.

use super::Plan;
use crate::components::copy::{CopyButton, DownloadButton};
use crate::components::field::{AreaField, ChoiceField, ProblemText, SwitchField, TextField};
use crate::message::{Launch, Refusal, Step, Warning};
use leptos::prelude::*;
use trainplan_shared::catalog::Release;
use trainplan_shared::field::Field;
use trainplan_shared::launch::{ClusterType, Style};
use trainplan_shared::problem::Problem;

/// The launch panel.
#[component]
pub(super) fn LaunchPanel() -> impl IntoView {
    let plan = Plan::of_page();
    let launched = plan.calculator.launch;
    let has_launch = move || launched.latest().is_some_and(|launched| launched.launch.is_some());
    let refusals = move || {
        let launched = launched.latest().filter(|launched| !launched.refusals.is_empty())?;
        let (kind, title) = match launched.launch {
            None => ("notice wrong", "Can't generate a launch script yet:"),
            Some(_) => ("notice warn", "This script uses Megatron-LM directly:"),
        };
        Some(view! { <Refusals refusals=launched.refusals.clone() kind title /> })
    };
    let instead = move || match plan.scenario.with(Result::is_err) {
        true => Some("Fix the layout above to see a launch script."),
        false if plan.calculator.is_broken() => Some(super::BROKEN),
        false => None,
    };
    view! {
        <section class="launch" aria-labelledby="launch-title">
            <h2 id="launch-title">"Launch it"</h2>
            <ClusterFields />
            <RunFields />
            {move || instead().map(|text| view! { <p>{text}</p> })}
            {refusals}
            <Show when=has_launch>
                <Script />
            </Show>
        </section>
    }
}

/// The fields of the cluster.
#[component]
fn ClusterFields() -> impl IntoView {
    let ids = |ids: Vec<&'static str>| {
        ids.into_iter().map(|id| (id.to_string(), id.to_string())).collect::<Vec<_>>()
    };
    let plan = Plan::of_page();
    let chosen = move |value: fn(&Launch) -> &str| {
        Signal::derive(move || {
            let launched = plan.calculator.launch.latest();
            let launch = launched.as_ref().and_then(|launched| launched.launch.as_ref());
            launch.map_or("default".into(), |launch| format!("{} (default)", value(launch)))
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
            <ChoiceField field=Field::Style options=ids(Style::ALL.map(Style::id).to_vec()) default=chosen(|launch| &launch.style) />
        </div>
        <details>
            <summary>"More about the cluster"</summary>
            <div class="controls">
                <ChoiceField field=Field::Release options=ids(Release::ALL.map(Release::id).to_vec()) default=chosen(|launch| &launch.release) />
                <ChoiceField field=Field::ClusterType options=ids(ClusterType::ALL.map(ClusterType::id).to_vec()) default="slurm (default)" />
                <TextField field=Field::Gres default="none" numeric=false help="For example gpu:8, if the cluster needs it." />
                <TextField field=Field::InstallPath default="from the environment" numeric=false help="STAGE_PATH or LLMB_INSTALL, or the Megatron-LM checkout." />
                <TextField field=Field::RecipeDir default="as installed" numeric=false help="Directory of the recipe's scripts." />
                <TextField field=Field::Venv default="already active" numeric=false help="Python environment to activate." />
                <TextField field=Field::SlurmParams default="none" numeric=false help="nodelist=n1,n2;exclusive" />
                <TextField field=Field::Mounts default="none" numeric=false />
                <TextField field=Field::ContainerImage default="none" numeric=false help="For megatron-lm, in the form that Slurm's pyxis takes." />
                <AreaField field=Field::Env help="NAME=value, one per line. Secrets only as references: $NAME." />
            </div>
        </details>
    }
}

/// The fields of the job: steps, profile, checkpoints.
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
                <TextField field=Field::LoadCheckpoint default="none" numeric=false help="The directory above weights." />
            </div>
        </details>
    }
}

/// Why there is no script, or none of a release.
#[component]
fn Refusals(refusals: Vec<Refusal>, kind: &'static str, title: &'static str) -> impl IntoView {
    let plan = Plan::of_page();
    view! {
        <div class=kind role="status">
            <p>{title}</p>
            <ul>
                {refusals.into_iter().map(Problem::from).map(|problem| view! {
                    <li><ProblemText problem address=plan.address /></li>
                }).collect_view()}
            </ul>
        </div>
    }
}

/// The script, its warnings, and the instructions before and after the launch.
#[component]
fn Script() -> impl IntoView {
    let launched = Plan::of_page().calculator.launch;
    let launch = move || launched.latest().and_then(|launched| launched.launch.clone()).unwrap_or_default();
    let of = move |value: fn(Launch) -> String| Signal::derive(move || value(launch()));
    let steps = move |value: fn(Launch) -> Vec<Step>| Signal::derive(move || value(launch()));
    let script = of(|launch| launch.script);
    let name = of(|launch| launch.name);
    // While a new script is on its way, the old one can't be copied.
    let is_old = Signal::derive(move || launched.is_pending());
    view! {
        {move || launch().warnings.into_iter().map(|Warning { text, fix }| view! {
            <p class="notice warn">{text} " " {(!fix.is_empty()).then(|| view! { <strong>{fix}</strong> })}</p>
        }).collect_view()}
        <p class="basis">{of(|launch| launch.runs)}</p>
        <pre tabindex="0" aria-label="Launch script" data-script>{script}</pre>
        <div class="buttons">
            <CopyButton text=script label="Copy command" primary=true disabled=is_old />
            <DownloadButton text=script name label="Download" disabled=is_old />
            <DownloadButton text=of(|launch| launch.campaign) name="planned.campaign.toml" label="Download campaign" disabled=is_old />
        </div>
        <p class="basis">{of(|launch| launch.comparable)}</p>
        <details>
            <summary>"Before the first launch"</summary>
            <Steps steps=steps(|launch| launch.prepare) />
        </details>
        <details>
            <summary>"Logs and results"</summary>
            <dl class="facts">
                <div><dt>"Run directory"</dt><dd><code>{of(|launch| launch.directory)}</code></dd></div>
                <div><dt>"Training log"</dt><dd><code>{of(|launch| launch.log)}</code></dd></div>
            </dl>
            <Steps steps=steps(|launch| launch.check) />
        </details>
    }
}

/// Instructions.
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
