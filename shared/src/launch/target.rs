//! Which recipe of which release runs a scenario. A release's script fixes the layout and, all but one, the global
//! batch: what it can't run is refused here, with what it would run instead.

use super::facts::{Limits, Script};
use super::options::Options;
use crate::catalog::{Catalog, Recipe, Release};
use crate::problem::{Field, Problem, most_alike};
use crate::scenario::Scenario;

/// What a release's script makes of a scenario.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) script: &'static Script,
    pub(super) limits: &'static Limits,
    /// The recipe of its series; the scenario's own where there is one, else the one nearest in GPUs.
    pub(super) recipe: &'static Recipe,
    pub(super) gpus_per_node: u32,
    /// The GPU counts that the release publishes for the series, smallest first.
    pub(super) scales: Vec<u32>,
}

impl Target {
    /// Finds it.
    ///
    /// # Errors
    /// No release runs such a scenario, or the chosen one fixes something at another value.
    pub(super) fn find(scenario: &Scenario, options: &Options) -> Result<Target, Vec<Problem>> {
        let release = options.release.map_or_else(|| usual_release(scenario), Ok)?;
        let no_recipe = || vec![not_of_release(scenario, release)];
        let script = Script::of(release, scenario.model).ok_or_else(no_recipe)?;
        let recipes: Vec<&'static Recipe> = Catalog::embedded().recipes().iter().collect();
        let of_model = |recipe: &&&Recipe| recipe.id.release == release && recipe.id.model == scenario.model.id;
        let of_model: Vec<&Recipe> = recipes.iter().filter(of_model).copied().collect();
        if of_model.is_empty() {
            return Err(no_recipe());
        }
        let limits = Limits::of(release, &scenario.model.id, &scenario.gpu.id)
            .ok_or_else(|| vec![no_gpu(scenario, release)])?;
        let gpus_per_node = options.gpus_per_node.unwrap_or(limits.gpus_per_node);
        let gpus = scenario.layout.gpus();
        let target = |recipe: &'static Recipe| {
            let series = of_model.iter().filter(|other| other.id.same_series(&recipe.id));
            let mut scales: Vec<u32> = series.map(|recipe| recipe.id.gpus).collect();
            scales.sort_unstable();
            Target { script, limits, recipe, gpus_per_node, scales }
        };
        let wants_strong = scenario.recipe.is_some_and(|recipe| recipe.id.strong);
        let (target, differences) = candidates(scenario, &of_model)
            .into_iter()
            .map(target)
            .map(|target| (target.differences(scenario), target))
            .min_by_key(|(differences, target)| {
                let apart = target.recipe.id.gpus.abs_diff(gpus);
                (differences.len(), target.recipe.id.strong != wants_strong, apart)
            })
            .map(|(differences, target)| (target, differences))
            .ok_or_else(|| vec![no_dtype(scenario, release, &of_model)])?;
        let mut problems: Vec<Problem> =
            differences.into_iter().map(|difference| target.refuse(scenario, difference)).collect();
        if wants_strong && !of_model.iter().any(|recipe| recipe.id.strong && recipe.id.gpu == scenario.gpu.id) {
            problems.insert(0, no_strong(scenario, release, &of_model));
        }
        if !gpus.is_multiple_of(gpus_per_node) {
            let what = format!("fill no whole number of nodes of {gpus_per_node} GPUs");
            let nearest = crate::units::nearest_multiples(gpus, gpus_per_node);
            problems.push(Problem::new(Field::Gpus, gpus, what).nearest(nearest));
        }
        if problems.is_empty() { Ok(target) } else { Err(problems) }
    }

    /// The release whose script it is.
    pub(super) fn release(&self) -> Release {
        self.script.release
    }

    /// Whether the release publishes the series at that GPU count.
    pub(super) fn publishes(&self, gpus: u32) -> bool {
        self.scales.contains(&gpus)
    }

    /// The release's global batch for a scenario's GPU count.
    pub(super) fn gbs(&self, scenario: &Scenario) -> u64 {
        let gpus = u64::from(scenario.layout.gpus());
        let (gbs, per) = (u64::from(self.recipe.gbs), u64::from(self.recipe.id.gpus));
        match self.release() {
            // Its configure.sh counts nodes, not GPUs.
            Release::R24_11 => 2 * gpus / u64::from(self.gpus_per_node),
            _ if self.recipe.id.strong => gbs,
            _ => gbs * gpus / per,
        }
    }

    /// Whether the global batch can be given from outside.
    pub(super) fn takes_gbs(&self) -> bool {
        self.script.variable_of(Field::Gbs).is_some() && !self.recipe.id.strong
    }

    /// Where a scenario differs from what the script fixes.
    fn differences(&self, scenario: &Scenario) -> Vec<Difference> {
        let (layout, batch, fixed) = (&scenario.layout, &scenario.batch, &self.recipe.degrees);
        let values = [
            (Field::Layers, scenario.architecture.layers.to_string(), self.recipe.layers.to_string()),
            (Field::SeqLen, batch.seq_len().to_string(), self.recipe.seq_len.to_string()),
            (Field::Tp, layout.tp().to_string(), fixed.tp.to_string()),
            (Field::Pp, layout.pp().to_string(), fixed.pp.to_string()),
            (Field::Cp, layout.cp().to_string(), fixed.cp.to_string()),
            (Field::Ep, layout.ep().to_string(), fixed.ep.to_string()),
            (Field::ExpertTp, layout.expert_tp().to_string(), fixed.expert_tp.to_string()),
            (Field::Vp, layout.vp().to_string(), fixed.vp.to_string()),
            (Field::PipelineSplit, layout.split().to_string(), fixed.split.to_string()),
            (Field::Mbs, batch.mbs().to_string(), self.recipe.mbs.to_string()),
            (Field::Gbs, batch.gbs().to_string(), self.gbs(scenario).to_string()),
        ];
        values
            .into_iter()
            .filter(|(field, given, fixed)| given != fixed && (*field != Field::Gbs || !self.takes_gbs()))
            .map(|(field, given, fixed)| Difference { field, given, fixed })
            .collect()
    }

    fn refuse(&self, scenario: &Scenario, Difference { field, given, fixed }: Difference) -> Problem {
        let (release, gpus) = (self.release(), scenario.layout.gpus());
        let mut what = format!("can't be given to release {release}, whose script sets {fixed}");
        if field == Field::Gbs && release == Release::R24_11 {
            what += &format!(" (2 for each of {} nodes)", gpus / self.gpus_per_node);
        }
        let runs = match scenario.published_as() {
            Some(recipe) => format!("; the scenario as it is belongs to {}", recipe.id),
            None => String::new(),
        };
        Problem::new(field, given, what)
            .nearest([fixed])
            .allowed(format!("what {} sets{runs}", self.recipe.id))
    }
}

/// One value that a script fixes at another.
#[derive(Debug)]
struct Difference {
    field: Field,
    given: String,
    fixed: String,
}

/// The recipes that a scenario's model, GPU type, precision and GPU count lead a script to: a proxy at exactly its
/// GPU count, the full model at every other.
fn candidates<'a>(scenario: &Scenario, recipes: &[&'a Recipe]) -> Vec<&'a Recipe> {
    // Release 24.11 takes A100s for its H100 layouts.
    let gpu = match recipes.iter().any(|recipe| recipe.id.gpu == scenario.gpu.id) {
        true => scenario.gpu.id.as_str(),
        false => "h100",
    };
    let fitting = recipes.iter().filter(|recipe| recipe.id.gpu == gpu && recipe.id.dtype == scenario.dtype);
    let (proxies, full): (Vec<&Recipe>, Vec<&Recipe>) = fitting.partition(|recipe| recipe.scaling.is_none());
    let proxies: Vec<&Recipe> =
        proxies.into_iter().filter(|proxy| proxy.id.gpus == scenario.layout.gpus()).collect();
    if proxies.is_empty() { full } else { proxies }
}

/// The release that runs a scenario when nobody names one.
fn usual_release(scenario: &Scenario) -> Result<Release, Vec<Problem>> {
    let recipe = scenario.recipe.or_else(|| scenario.published_as());
    let with_model = || releases_of(scenario).into_iter().max();
    recipe.map(|recipe| recipe.id.release).or_else(with_model).ok_or_else(|| {
        let mut models: Vec<&str> =
            Catalog::embedded().recipes().iter().map(|recipe| recipe.id.model.as_str()).collect();
        models.dedup();
        let problem = Problem::new(Field::Model, &scenario.model.id, "has a recipe in no release")
            .nearest(most_alike(&scenario.model.id, models.iter().copied()));
        models.sort_unstable();
        models.dedup();
        vec![problem.allowed(models.join(", "))]
    })
}

/// The releases that have recipes of the scenario's model for its GPU type and precision, or else of its model.
fn releases_of(scenario: &Scenario) -> Vec<Release> {
    let all = Catalog::embedded().recipes().iter();
    let of_model: Vec<&Recipe> = all.filter(|recipe| recipe.id.model == scenario.model.id).collect();
    let closer = |recipe: &&&Recipe| recipe.id.gpu == scenario.gpu.id && recipe.id.dtype == scenario.dtype;
    let close: Vec<&Recipe> = of_model.iter().filter(closer).copied().collect();
    let mut releases: Vec<Release> =
        if close.is_empty() { of_model } else { close }.iter().map(|recipe| recipe.id.release).collect();
    releases.sort_unstable();
    releases.dedup();
    releases
}

fn not_of_release(scenario: &Scenario, release: Release) -> Problem {
    let releases: Vec<&str> = releases_of(scenario).into_iter().map(Release::id).collect();
    let problem = Problem::new(Field::Release, release, format!("has no recipe of {}", scenario.model.title));
    if releases.is_empty() { problem } else { problem.allowed(releases.join(", ")) }
}

fn no_gpu(scenario: &Scenario, release: Release) -> Problem {
    let gpus = Limits::gpus(release, &scenario.model.id);
    let what = format!("is no GPU type that release {release} runs {} on", scenario.model.title);
    Problem::new(Field::Gpu, &scenario.gpu.id, what)
        .nearest(most_alike(&scenario.gpu.id, gpus.iter().copied()))
        .allowed(gpus.join(", "))
}

fn no_dtype(scenario: &Scenario, release: Release, recipes: &[&Recipe]) -> Problem {
    let mut dtypes: Vec<&str> = recipes.iter().map(|recipe| recipe.id.dtype.id()).collect();
    dtypes.sort_unstable();
    dtypes.dedup();
    let what = format!("is no precision that release {release} runs {} in", scenario.model.title);
    let nearest = most_alike(scenario.dtype.id(), dtypes.iter().copied());
    Problem::new(Field::Dtype, scenario.dtype, what).nearest(nearest).allowed(dtypes.join(", "))
}

fn no_strong(scenario: &Scenario, release: Release, recipes: &[&Recipe]) -> Problem {
    let mut gpus: Vec<&str> =
        recipes.iter().filter(|recipe| recipe.id.strong).map(|recipe| recipe.id.gpu.as_str()).collect();
    gpus.dedup();
    let what = format!(
        "has no strong scaling in release {release}: its script stops; start from the weak series and set --gbs instead"
    );
    Problem::new(Field::Gpu, &scenario.gpu.id, what).allowed(gpus.join(", "))
}
