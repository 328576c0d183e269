//! What the releases have recipes of, for a scenario that may lack one.

use super::facts::{Limits, Script};
use crate::catalog::{Catalog, Recipe, Release};
use crate::field::Field;
use crate::precision::Dtype;
use crate::problem::{Problem, most_alike};
use crate::scenario::Scenario;

/// A release's recipes of the scenario's model.
pub(super) fn recipes(release: Release, scenario: &Scenario) -> Vec<&'static Recipe> {
    let all = Catalog::embedded().recipes().iter();
    all.filter(|recipe| recipe.id.release == release && recipe.id.model == scenario.model.id).collect()
}

/// The release that runs a scenario when nobody names one: its recipe's, or else the newest that comes near.
pub(super) fn usual_release(scenario: &Scenario) -> Result<Release, Vec<Problem>> {
    let recipe = scenario.recipe.or_else(|| scenario.published_as());
    recipe.map(|recipe| recipe.id.release).or_else(|| releases(scenario).last().copied()).ok_or_else(|| {
        let all = Catalog::embedded().recipes().iter();
        let models = distinct(all.map(|recipe| recipe.id.model.as_str()));
        let problem = Problem::clause(Field::Model, &scenario.model.id, "has a recipe in no release");
        let nearest = most_alike(&scenario.model.id, models.iter().copied());
        vec![problem.nearest(nearest).allowed(models.join(", "))]
    })
}

/// The release has no recipe of the model.
pub(super) fn no_model(scenario: &Scenario, release: Release) -> Problem {
    let releases: Vec<&str> = releases(scenario).into_iter().map(Release::id).collect();
    let what = format!("has no recipe of {}", scenario.model.title);
    Problem::clause(Field::Release, release, what).allowed(releases.join(", "))
}

/// The release does not run the model on the GPU type.
pub(super) fn no_gpu(scenario: &Scenario, release: Release) -> Problem {
    let gpus = Limits::gpus(release, &scenario.model.id);
    let mut what = format!("is no GPU type that release {release} runs {} on", scenario.model.title);
    if Catalog::embedded().recipes().iter().any(|recipe| is_close(scenario, recipe)) {
        let others: Vec<&str> = releases(scenario).into_iter().map(Release::id).collect();
        what += &format!("; release {} does", others.join(" or "));
    }
    Problem::clause(Field::Gpu, &scenario.gpu.id, what)
        .nearest(most_alike(&scenario.gpu.id, gpus.iter().copied()))
        .allowed(gpus.join(", "))
}

/// The release does not run the model in the precision.
pub(super) fn no_dtype(scenario: &Scenario, release: Release, recipes: &[&Recipe]) -> Problem {
    let dtypes = distinct(recipes.iter().map(|recipe| recipe.id.dtype));
    let nearest = dtypes.iter().find(|dtype| dtype.width() == scenario.dtype.width());
    let allowed: Vec<&str> = dtypes.iter().copied().map(Dtype::id).collect();
    let what = format!("is no precision that release {release} runs {} in", scenario.model.title);
    Problem::clause(Field::Dtype, scenario.dtype, what).nearest(nearest).allowed(allowed.join(", "))
}

/// The release has no strong scaling on the GPU type, if it has none.
pub(super) fn no_strong(scenario: &Scenario, release: Release, recipes: &[&Recipe]) -> Option<Problem> {
    let gpus =
        distinct(recipes.iter().filter(|recipe| recipe.id.strong).map(|recipe| recipe.id.gpu.as_str()));
    (!gpus.contains(&scenario.gpu.id.as_str())).then(|| {
        let what = format!(
            "has no strong scaling in release {release}: its script stops; start from the weak series and \
             set --gbs instead"
        );
        Problem::clause(Field::Gpu, &scenario.gpu.id, what).allowed(gpus.join(", "))
    })
}

/// The problem of an option that a release's script lacks, with the releases that have it for the scenario's
/// model and GPU type.
pub(super) fn elsewhere(scenario: &Scenario, problem: Problem) -> Problem {
    let (model, gpu) = (&*scenario.model, &*scenario.gpu);
    let has_it = |release: &&Release| {
        Limits::of(**release, &model.id, &gpu.id).is_some()
            && Script::of(**release, model).is_some_and(|script| script.variable_of(problem.field).is_some())
    };
    let releases: Vec<&str> = Release::ALL.iter().filter(has_it).map(|release| release.id()).collect();
    match releases.as_slice() {
        [] => {
            let nowhere = format!(" No release offers it for this model on {}.", gpu.name);
            Problem { message: problem.message.and(nowhere), ..problem }
        }
        [release] => problem.allowed(format!("release {release}")),
        releases => problem.allowed(format!("releases {}", releases.join(" and "))),
    }
}

/// The releases that have recipes of the scenario's model for its GPU type and precision, or else of its
/// model.
fn releases(scenario: &Scenario) -> Vec<Release> {
    let all = Catalog::embedded().recipes().iter();
    let of_model: Vec<&Recipe> = all.filter(|recipe| recipe.id.model == scenario.model.id).collect();
    let close: Vec<&Recipe> = of_model.iter().filter(|recipe| is_close(scenario, recipe)).copied().collect();
    distinct(if close.is_empty() { of_model } else { close }.into_iter().map(|recipe| recipe.id.release))
}

fn is_close(scenario: &Scenario, recipe: &Recipe) -> bool {
    let id = &recipe.id;
    id.model == scenario.model.id && id.gpu == scenario.gpu.id && id.dtype == scenario.dtype
}

/// Each once, in the catalog's order.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for each in all {
        if !once.contains(&each) {
            once.push(each);
        }
    }
    once
}
