//! The releases with recipes for a scenario's model, GPU type and precision.

use super::facts::{Limits, ReleaseScript};
use crate::catalog::{Catalog, Recipe};
use crate::field::Field;
use crate::message;
use crate::problem::{Problem, most_alike, one_of};
use crate::releases::Release;
use crate::scenario::Scenario;
use crate::stack::Software;

/// Returns a release's recipes for the scenario's model.
pub(super) fn recipes(release: Release, scenario: &Scenario) -> Vec<&'static Recipe> {
    let all = Catalog::embedded().recipes().iter();
    all.filter(|recipe| recipe.id.release == release && recipe.id.model == scenario.model.id).collect()
}

/// Returns the release that runs a scenario by default: its recipe's, else the newest with a similar recipe.
///
/// # Errors
/// If no release has a recipe for the model.
pub(super) fn usual_release(scenario: &Scenario) -> Result<Release, Vec<Problem>> {
    let recipe = scenario.recipe.or_else(|| scenario.published_as());
    recipe.map(|recipe| recipe.id.release).or_else(|| releases(scenario).into_iter().max()).ok_or_else(|| {
        let message = format!(
            "NVIDIA's DGX Cloud benchmarking collection has no recipe for {}. Megatron-Bridge may have a recipe of its own.",
            scenario.model.title
        );
        vec![Problem::new(Field::Model, &scenario.model.id, message)]
    })
}

/// Returns the usual release, if any has a recipe for the scenario's model, GPU type and precision.
pub(super) fn nearest_release(scenario: &Scenario) -> Option<Release> {
    let has_recipe = Catalog::embedded().recipes().iter().any(|recipe| is_close(scenario, recipe));
    usual_release(scenario).ok().filter(|_| has_recipe)
}

/// Returns the releases with similar recipes that run exactly the software that was planned, newest first.
pub(super) fn with_planned_software(scenario: &Scenario) -> Vec<Release> {
    let all = releases(scenario).into_iter();
    let mut alike: Vec<Release> =
        all.filter(|release| scenario.options.software == release.software().stack.into()).collect();
    alike.sort_unstable_by(|one, other| other.cmp(one));
    alike
}

/// Returns whether some release runs exactly this software.
pub(super) fn is_released(software: Software) -> bool {
    Release::ALL.into_iter().any(|release| software == release.software().stack.into())
}

/// Returns the problem of a release without a recipe for the model.
pub(super) fn no_model(scenario: &Scenario, release: Release) -> Problem {
    let releases = releases(scenario);
    let others = if releases.is_empty() { " No release has one." } else { "" };
    let message = format!("Release {release} has no recipe for {}.{others}", scenario.model.title);
    Problem::new(Field::Release, release, message).allow(releases)
}

/// Returns the problem of a plan that names no release: none has a recipe for its model on its GPU type in its precision.
pub(super) fn no_recipe(scenario: &Scenario) -> Problem {
    let (model, gpu, dtype) = (&scenario.model, &scenario.gpu.name, scenario.dtype.title());
    let message = format!(
        "NVIDIA's DGX Cloud benchmarking collection has no recipe for {} on the {gpu} in {dtype}.",
        model.title
    );
    Problem::new(Field::Model, &model.id, message)
}

/// Returns the problem of a release that doesn't run the model on the GPU type.
pub(super) fn no_gpu(scenario: &Scenario, release: Release) -> Problem {
    let gpus = Limits::gpus(release, &scenario.model.id);
    let (model, gpu) = (&scenario.model.title, &scenario.gpu.name);
    let mut message = format!("Release {release} has no recipe for {model} on the {gpu}.");
    if Catalog::embedded().recipes().iter().any(|recipe| is_close(scenario, recipe)) {
        let others: Vec<&str> = releases(scenario).into_iter().map(Release::id).collect();
        message += &format!(" Release {} has.", one_of(&others));
    }
    let nearest = most_alike(&scenario.gpu.id, gpus.iter().copied());
    Problem::new(Field::Gpu, &scenario.gpu.id, message).suggest(nearest).allow(gpus)
}

/// Returns the problem of a release that doesn't run the model in the precision.
pub(super) fn no_dtype(scenario: &Scenario, release: Release, recipes: &[&Recipe]) -> Problem {
    let dtypes = distinct(recipes.iter().map(|recipe| recipe.id.dtype));
    let nearest = dtypes.iter().find(|dtype| dtype.width() == scenario.dtype.width());
    let (model, dtype) = (&scenario.model.title, scenario.dtype.title());
    let message = format!("Release {release} has no recipe for {model} in {dtype}.");
    Problem::new(Field::Dtype, scenario.dtype, message).suggest(nearest).allow(&dtypes)
}

/// Returns the problem of a release without strong scaling on the GPU type; `None` if it has it.
pub(super) fn no_strong(scenario: &Scenario, release: Release, recipes: &[&Recipe]) -> Option<Problem> {
    let gpus =
        distinct(recipes.iter().filter(|recipe| recipe.id.strong).map(|recipe| recipe.id.gpu.as_str()));
    (!gpus.contains(&scenario.gpu.id.as_str())).then(|| {
        let message = message![
            format!(
                "Release {release} has no strong scaling on the {}: its script stops. Start from a \
                 weak-scaling recipe and set ",
                scenario.gpu.name
            ),
            Field::Gbs,
            "."
        ];
        Problem::new(Field::Gpu, &scenario.gpu.id, message).allow(gpus)
    })
}

/// Returns the problem with the releases added that have the option for the scenario's model and GPU type.
pub(super) fn elsewhere(scenario: &Scenario, problem: Problem) -> Problem {
    let (model, gpu) = (&*scenario.model, &*scenario.gpu);
    let has_it = |release: &Release| {
        Limits::of(*release, &model.id, &gpu.id).is_some()
            && ReleaseScript::of(*release, model)
                .is_some_and(|script| script.variable_of(problem.field).is_some())
    };
    let releases: Vec<&str> = Release::ALL.into_iter().filter(has_it).map(Release::id).collect();
    let message = match releases.is_empty() {
        true => message![format!(" No release supports it for this model on the {}.", gpu.name)],
        false => message![format!(" Use release {}.", one_of(&releases))],
    };
    Problem { message: problem.message.and(message), ..problem }
}

/// Returns the releases with recipes for the scenario's model, GPU type and precision, else those with
/// recipes for its model.
fn releases(scenario: &Scenario) -> Vec<Release> {
    let all = Catalog::embedded().recipes().iter();
    let of_model: Vec<&Recipe> = all.filter(|recipe| recipe.id.model == scenario.model.id).collect();
    let close: Vec<&Recipe> = of_model.iter().filter(|recipe| is_close(scenario, recipe)).copied().collect();
    distinct(if close.is_empty() { of_model } else { close }.into_iter().map(|recipe| recipe.id.release))
}

fn is_close(scenario: &Scenario, recipe: &Recipe) -> bool {
    let id = &recipe.id;
    id.model == scenario.model.id && id.gpu == scenario.gpu.id && scenario.has_precision_of(recipe)
}

/// Removes duplicates and keeps the order.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for each in all {
        if !once.contains(&each) {
            once.push(each);
        }
    }
    once
}
