//! Where a release's scripts differ from their documents, and what makes a run of it comparable.

use super::choice::Style;
use super::configuration;
use super::facts::Fault;
use super::plan::{LaunchPlan, LaunchWarning, NEGLIGIBLE, WarningTopic};
use super::readme;
use crate::catalog::{Catalog, Reference};
use crate::estimate::{Breakdown, Constants, Estimate, Inputs};
use crate::field::Field;
use crate::message;
use crate::message::{Message, Setting};
use crate::precision::Dtype;
use crate::problem::Problem;
use crate::releases::{BatchRule, Fp8Scaling, LoggedTflops, TokenUse, TraceRun};
use crate::stack::Software;
use crate::units::longer;

pub(super) fn apply(plan: &mut LaunchPlan) {
    borrowed_recipe(plan);
    software(plan);
    match plan.rules().token {
        TokenUse::OnCommandLine => token_on_command_line(plan),
        TokenUse::Always => {
            plan.need("HF_TOKEN", "your Hugging Face token, to read the configuration of the model");
        }
        TokenUse::Never | TokenUse::ForCheckpoints => {}
    }
    if plan.has_own_jobs() {
        own_jobs(plan);
    }
    if plan.rules().logged_tflops == LoggedTflops::Invalid {
        plan.warn(
            "The TFLOPS_per_GPU in these logs are wrong, as the release's own document says.",
            "Use the step time: Trainplan counts the model's FLOPs itself.",
        );
    }
    let Fp8Scaling { runs, documented } = plan.release().software().fp8;
    if plan.target.recipe.dtype() == Dtype::Fp8 && runs != documented {
        let (runs, documented) = (runs.title(), documented.title());
        plan.warn(format!("This release runs {runs}, although its document says {documented}."), "");
    }
    for fault in Fault::of(&plan.target.recipe.id) {
        plan.warn(fault.text.as_str(), fault.fix.as_str());
    }
    if let Some(difference) = readme::difference(plan) {
        plan.warn(difference, "");
    }
    unpublished_scale(plan);
}

/// Marks runs on a GPU type without published numbers, or with other nodes than the published runs had.
fn borrowed_recipe(plan: &mut LaunchPlan) {
    if plan.target.recipe.id.gpu != plan.scenario.gpu.id {
        plan.incomparable
            .push(format!("the release has no published number for the {}", plan.scenario.gpu.name));
    }
    let usual = plan.target.limits.gpus_per_node;
    if matches!(plan.contract().batch, BatchRule::PerNode(_)) && plan.target.gpus_per_node != usual {
        plan.incomparable.push(format!("the release sets the global batch size by nodes of {usual} GPUs"));
    }
}

/// Returns the software that the script runs: the release's, without what the plan's changes turn off.
pub(super) fn software_of_script(plan: &LaunchPlan) -> Software {
    match plan.style {
        Style::TrainSh => configuration::software(plan.target.recipe, plan.scenario),
        _ => plan.release().software().stack.into(),
    }
}

/// Returns the step time with the script's software as a multiple of the estimated one; none if they hardly differ.
pub(super) fn slowdown(plan: &LaunchPlan) -> Option<f64> {
    let (scenario, runs) = (plan.scenario, software_of_script(plan));
    if scenario.options.software == runs {
        return None;
    }
    let options = scenario.options.with_software(runs);
    let with = Inputs { options: &options, ..scenario.inputs() };
    let [planned, with] = [scenario.inputs(), with].map(|inputs| match runs.known() {
        Some(_) => Estimate::from_embedded(&inputs).step_time_s.mid,
        // Known software with a feature turned off is unmeasured.
        None => Breakdown::of(&inputs, Constants::embedded()).step_time_s(),
    });
    Some(with / planned).filter(|ratio| (ratio - 1.0).abs() >= NEGLIGIBLE)
}

/// Warns if the script runs other software than the estimate assumes.
fn software(plan: &mut LaunchPlan) {
    let (planned, runs) = (plan.scenario.options.software, software_of_script(plan));
    if planned == runs {
        return;
    }
    // Without a recipe, known software may just be the default.
    let was_set =
        planned.known().is_none() || plan.scenario.changes.iter().any(|change| change.field == Field::Stack);
    let slowdown = slowdown(plan);
    let is_part = planned == runs.base().into();
    if slowdown.is_none() && (is_part || !was_set) {
        return;
    }
    let expect = slowdown.map_or(String::new(), |ratio| {
        format!(" Steps take about {}.", longer(ratio, "with the planned software"))
    });
    let (text, fix) = if is_part {
        let text = format!("Full recomputation turns off CUDA graphs in this script.{expect}");
        (text, Message::default())
    } else {
        let text =
            format!("The plan is for {}, but this script runs {}.{expect}", planned.title(), runs.title());
        (text, message!["Set ", Setting::new(Field::Stack, runs), " for an estimate of this release."])
    };
    plan.warnings.push(LaunchWarning { topic: WarningTopic::Software, text: text.into(), fix });
}

fn token_on_command_line(plan: &mut LaunchPlan) {
    let title = &plan.scenario.model.title;
    plan.need("HF_TOKEN", format!("your Hugging Face token, which needs access to {title}"));
    plan.warn(
        "Security: launch.sh puts HF_TOKEN on its command line, where any user of that machine can see it \
         during submission.",
        "Submit from a machine that others can't log in to, or revoke the token afterwards.",
    );
}

fn own_jobs(plan: &mut LaunchPlan) {
    let options = plan.options;
    if !plan.runs_plain() {
        if !options.profile && !options.nccl_trace {
            let message = message![
                "DISABLE_PERFRUN leaves nothing to run. Set ",
                Field::Profile,
                " or ",
                Field::NcclTrace,
                ", or remove it."
            ];
            plan.refuse(Problem::new(Field::Env, "DISABLE_PERFRUN", message));
        }
        return;
    }
    let instead = |field: Field| {
        message![
            "Measure in a launch without ",
            field,
            ". To skip the plain run in this one, set the environment variable DISABLE_PERFRUN=true."
        ]
    };
    if options.profile {
        let steps = plan.steps;
        let text = format!(
            "A second job is submitted for the profile, and the plain run is also cut to {steps} steps."
        );
        plan.warn(text, instead(Field::Profile));
    }
    if let (true, TraceRun::OwnJob(traced)) = (options.nccl_trace, plan.rules().trace) {
        let text = format!(
            "Another job is submitted for the trace, with {} steps and {} minutes.",
            traced.steps, traced.minutes
        );
        plan.warn(text, instead(Field::NcclTrace));
    }
    if options.profile && options.nccl_trace {
        plan.warn(
            "The document says that profile and NCCL trace can't be combined; the script submits a job \
             for each anyway.",
            "Launch one after the other.",
        );
    }
}

fn unpublished_scale(plan: &mut LaunchPlan) {
    let (release, gpus) = (plan.release(), plan.gpus());
    if plan.target.publishes(gpus) {
        return;
    }
    let scales: Vec<String> = plan.target.scales.iter().map(u32::to_string).collect();
    plan.incomparable.push(format!("release {release} has no published number for {gpus} GPUs"));
    if plan.style != Style::LlmbRun {
        let scales = scales.join(", ");
        plan.warn(
            format!("Release {release} was published for {scales} GPUs; its script accepts {gpus} without a check."),
            format!("For a tested configuration, use {scales} GPUs."),
        );
    }
}

/// Returns the published measurement that the plan's run is compared with.
pub(super) fn reference(plan: &LaunchPlan) -> Option<Reference> {
    let (catalog, id) = (Catalog::embedded(), plan.recipe_id());
    let recipe = catalog.recipes().iter().find(|recipe| recipe.id == id)?;
    catalog.reference(recipe).filter(|_| plan.scenario.gpu.id == id.gpu)
}
