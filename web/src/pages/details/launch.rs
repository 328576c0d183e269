//! The launch panel: the script that starts the scenario, and its options.

use super::Plan;
use super::fit::{launch_misfit, launch_warnings};
use crate::components::copy::{CopyButton, DownloadButton};
use crate::components::field::{ChoiceField, FormField, ProblemText};
use crate::message::{Launch, Launched, Refusal, Step, Warning};
use leptos::prelude::*;
use trainplan_shared::catalog::Release;
use trainplan_shared::field::{Field, FieldGroup};
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
        true if plan.state.is_waiting() => Some("Searching …"),
        true => Some("Fix the marked field to see a launch script."),
        false if plan.calculator.is_broken() => Some(super::BROKEN),
        false => None,
    };
    view! {
        <section class="launch" aria-label="Launch">
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

/// The fields of the cluster that are always visible.
const MAIN_FIELDS: [Field; 4] = [Field::Account, Field::Partition, Field::GpusPerNode, Field::Style];

/// The fields of the cluster.
#[component]
fn ClusterFields() -> impl IntoView {
    let others = Field::of_group(FieldGroup::Cluster).filter(|field| !MAIN_FIELDS.contains(field));
    view! {
        <div class="controls">{MAIN_FIELDS.map(|field| view! { <LaunchField field /> }).collect_view()}</div>
        <details>
            <summary>"More about the cluster"</summary>
            <div class="controls">{others.map(|field| view! { <LaunchField field /> }).collect_view()}</div>
        </details>
    }
}

/// The fields of the job: steps, profile, checkpoints.
#[component]
fn RunFields() -> impl IntoView {
    let fields = Field::of_group(FieldGroup::Job);
    view! {
        <details>
            <summary>"Steps, profiling and checkpoints"</summary>
            <div class="controls">{fields.map(|field| view! { <LaunchField field /> }).collect_view()}</div>
        </details>
    }
}

/// A field of the launch.
#[component]
fn LaunchField(field: Field) -> impl IntoView {
    let plan = Plan::of_page();
    let chosen = move |value: fn(&Launch) -> &str| {
        Signal::derive(move || {
            let launched = plan.calculator.launch.latest();
            let launch = launched.as_ref().and_then(|launched| launched.launch.as_ref());
            launch.map_or("default".into(), |launch| format!("{} (default)", value(launch)))
        })
    };
    // Those that launch the scenario, or all if none does. The default is listed as such.
    let usable =
        move |value: fn(&Launched) -> &[String], own: fn(&Launch) -> &str, all: Vec<(String, String)>| {
            Signal::derive(move || {
                let launched = plan.calculator.launch.latest();
                let usable = launched.as_ref().map(|launched| ids(value(launched)));
                let usable = usable.filter(|usable| !usable.is_empty()).unwrap_or_else(|| all.clone());
                let launch = launched.as_ref().and_then(|launched| launched.launch.as_ref());
                let is_unset = plan.address.with_spec(|spec| spec.get(field).is_none());
                let default = launch.map(own).filter(|_| is_unset);
                usable.into_iter().filter(|(id, _)| default != Some(id.as_str())).collect()
            })
        };
    match field {
        Field::Style => {
            let default = chosen(|launch| &launch.style);
            let options =
                usable(|launched| &launched.styles, |launch| &launch.style, ids(&Style::ALL.map(Style::id)));
            view! { <ChoiceField field options default /> }.into_any()
        }
        Field::Release => {
            let default = chosen(|launch| &launch.release);
            let options = usable(
                |launched| &launched.releases,
                |launch| &launch.release,
                ids(&Release::ALL.map(Release::id)),
            );
            view! { <ChoiceField field options default /> }.into_any()
        }
        Field::ClusterType => {
            let options = ids(&ClusterType::ALL.map(ClusterType::id));
            view! { <ChoiceField field options default="slurm (default)" /> }.into_any()
        }
        Field::GpusPerNode => {
            let default = Signal::derive(move || {
                plan.scenario.with(|scenario| {
                    scenario.as_ref().map_or(String::new(), |scenario| scenario.gpu.gpus_per_node.to_string())
                })
            });
            view! { <FormField field default help="" /> }.into_any()
        }
        _ => {
            let (usual, help) = default_and_help(field);
            let default = Signal::derive(move || {
                let launched = plan.calculator.launch.latest();
                let launch = launched.as_ref().and_then(|launched| launched.launch.as_ref());
                let style =
                    launch.and_then(|launch| Style::ALL.into_iter().find(|style| style.id() == launch.style));
                let is_configured = style.is_some_and(|style| style.configures().contains(&field));
                if is_configured { "as llmb-run is set up" } else { usual }.to_string()
            });
            view! { <FormField field default help /> }.into_any()
        }
    }
}

fn ids<T: AsRef<str>>(ids: &[T]) -> Vec<(String, String)> {
    ids.iter().map(|id| (id.as_ref().to_string(), id.as_ref().to_string())).collect()
}

/// Returns the grey text of an empty field, and the note below it.
fn default_and_help(field: Field) -> (&'static str, &'static str) {
    match field {
        Field::Account => ("$SBATCH_ACCOUNT", ""),
        Field::Partition => ("$SBATCH_PARTITION", ""),
        Field::Gres => ("none", "For example gpu:8, if the cluster needs it."),
        Field::InstallPath => {
            ("from the environment", "STAGE_PATH or LLMB_INSTALL, or the Megatron-LM checkout.")
        }
        Field::RecipeDir => ("as installed", "Directory of the recipe's scripts."),
        Field::Venv => ("already active", "Python environment to activate."),
        Field::SlurmParams => ("none", "nodelist=n1,n2;exclusive"),
        Field::ContainerImage => ("none", "For megatron-lm, in the form that Slurm's pyxis takes."),
        Field::Env => ("", "NAME=value, one per line. Secrets only as references: $NAME."),
        Field::MaxSteps => ("50", ""),
        Field::TimeLimit => ("the release's", "HH:MM:SS"),
        Field::ProfileStartStep | Field::ProfileStopStep => ("the release's", ""),
        Field::LoadCheckpoint => ("none", "The directory that contains the weights directory."),
        _ => ("none", field.hint()),
    }
}

/// The reasons that prevent a script, or one of a release.
#[component]
fn Refusals(refusals: Vec<Refusal>, kind: &'static str, title: &'static str) -> impl IntoView {
    let plan = Plan::of_page();
    let problems: Vec<Problem> = refusals.into_iter().map(Problem::from).collect();
    // One by one, the values may not fit together.
    let only = |problem: &Problem| match &*problem.suggestions {
        [only] => Some((problem.field, only.clone())),
        _ => None,
    };
    let all: Option<Vec<(Field, String)>> = problems.iter().map(only).collect();
    let all = all.filter(|all| all.len() > 1).map(|all| {
        let take = move |_| plan.address.commit_all(all.clone());
        view! { <button type="button" class="nearest" on:click=take>"Use all of these values"</button> }
    });
    let text = |problem: Problem| view! { <ProblemText problem address=plan.address /> };
    match <[Problem; 1]>::try_from(problems) {
        Ok([problem]) => {
            view! { <div class=kind role="status"><p>{title} " " {text(problem)}</p></div> }.into_any()
        }
        Err(problems) => view! {
            <div class=kind role="status">
                <p>{title} " " {all}</p>
                <ul>
                    {problems.into_iter().map(|problem| view! { <li>{text(problem)}</li> }).collect_view()}
                </ul>
            </div>
        }
        .into_any(),
    }
}

/// The script, its warnings, and the instructions before and after the launch.
#[component]
fn Script() -> impl IntoView {
    let plan = Plan::of_page();
    let launched = plan.calculator.launch;
    let warnings = move || {
        // The page says above all tabs that the launch doesn't fit.
        let above = launch_misfit(plan);
        launch_warnings(plan).into_iter().filter(move |warning| Some(warning) != above.as_ref())
    };
    let launch = move || launched.latest().and_then(|launched| launched.launch.clone()).unwrap_or_default();
    let of = move |value: fn(Launch) -> String| Signal::derive(move || value(launch()));
    let steps = move |value: fn(Launch) -> Vec<Step>| Signal::derive(move || value(launch()));
    let script = of(|launch| launch.script);
    let name = of(|launch| launch.name);
    let campaign = of(|launch| launch.campaign);
    let call = of(|launch| launch.call);
    // The script of the previous plan can't be copied: while a new one is on its way, or if the plan can't run.
    let is_old = Signal::derive(move || launched.is_pending() || plan.cannot_run());
    view! {
        <p class="basis">{of(|launch| launch.runs)}</p>
        {move || warnings().map(|warning| view! { <LaunchWarning warning /> }).collect_view()}
        <pre tabindex="0" aria-label="Launch script" data-script>{script}</pre>
        <div class="buttons">
            <CopyButton text=script label="Copy script" primary=true disabled=is_old />
            <DownloadButton text=script name label="Download" disabled=is_old />
            <DownloadButton text=campaign name="planned.campaign.toml" label="Download campaign" disabled=is_old />
        </div>
        {move || Some(launch().by_recipe).filter(|text| !text.is_empty()).map(|text| view! { <p class="basis">{text}</p> })}
        <p class="basis">{of(|launch| launch.comparable)}</p>
        <details>
            <summary>"Before the first launch"</summary>
            <Steps steps=steps(|launch| launch.prepare) />
        </details>
        <Show when=move || call.with(|call| !call.is_empty())>
            <details>
                <summary>"What launch.sh runs"</summary>
                <p class="basis">
                    "The call of Megatron-Bridge's launcher, with every value that the script forces. Recorded from the release's own script."
                </p>
                <pre tabindex="0" aria-label="What launch.sh runs">{call}</pre>
            </details>
        </Show>
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

/// A warning, with a button that makes the settings of its fix.
#[component]
fn LaunchWarning(warning: Warning) -> impl IntoView {
    let address = Plan::of_page().address;
    let Warning { text, fix, settings, .. } = warning;
    let settings: Vec<(Field, String)> =
        settings.into_iter().filter_map(|(flag, value)| Some((Field::from_flag(&flag)?, value))).collect();
    let names: Vec<String> =
        settings.iter().map(|(field, value)| format!("{} {value}", field.label())).collect();
    let button = (!settings.is_empty()).then(|| {
        view! {
            <button type="button" class="action" aria-label=format!("Apply: {}", names.join(", ")) on:click=move |_| address.update(|spec| {
                settings.iter().for_each(|(field, value)| spec.set(*field, value.as_str()));
            })>"Apply"</button>
        }
    });
    view! {
        <p class="notice warn">
            {text} " " {(!fix.is_empty()).then(|| view! { <strong>{fix}</strong> })} " " {button}
        </p>
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
