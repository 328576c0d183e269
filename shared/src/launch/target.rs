//! The recipe that runs a scenario. Most scripts of a release fix the layout and the global batch size: other values are
//! refused here, with the values that work.

use super::choice::Style;
use super::chunks::schedule_problem;
use super::configuration;
use super::facts::{Limits, ReleaseScript};
use super::forced;
use super::offers;
use super::options::LaunchOptions;
use crate::catalog::Recipe;
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::problem::Problem;
use crate::releases::{BatchRule, ExperimentName, Release, ScriptContract};
use crate::scenario::Scenario;
use crate::units::{group_digits, nearest_multiples};

/// The recipe and the script that run a scenario.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) script: &'static ReleaseScript,
    pub(super) rules: &'static ScriptContract,
    pub(super) limits: &'static Limits,
    /// The recipe, or the one of its series with the nearest number of GPUs.
    pub(super) recipe: &'static Recipe,
    pub(super) gpus_per_node: u32,
    /// The GPU counts that the release publishes for the series, smallest first.
    pub(super) scales: Vec<u32>,
}

impl Target {
    /// Finds the recipe for a scenario. If neither a release nor a recipe was named and the usual release doesn't run the scenario,
    /// another one with the planned software may.
    ///
    /// # Errors
    /// If no release runs such a scenario, or the chosen one fixes a field at another value.
    pub(super) fn find(scenario: &Scenario, options: &LaunchOptions) -> Result<Target, Vec<Problem>> {
        if let Some(release) = options.release {
            return Target::of(release, scenario, options);
        }
        let usual = offers::usual_release(scenario)?;
        Target::of(usual, scenario, options).or_else(|problems| {
            let is_free = Target::is_free(scenario, options);
            let mut others = offers::with_planned_software(scenario).into_iter().filter(|_| is_free);
            others.find_map(|release| Target::of(release, scenario, options).ok()).ok_or(problems)
        })
    }

    /// Returns whether a launch can choose its release: neither a release nor a recipe is given, nor a style that only some
    /// releases have.
    pub(super) fn is_free(scenario: &Scenario, options: &LaunchOptions) -> bool {
        let fits_style = options.style.is_none_or(|style| style == Style::TrainSh);
        scenario.recipe.is_none() && options.release.is_none() && fits_style
    }

    /// Returns the recipe of a release that runs a scenario.
    ///
    /// # Errors
    /// If the release doesn't run such a scenario, or fixes a field at another value.
    pub(super) fn of(
        release: Release,
        scenario: &Scenario,
        options: &LaunchOptions,
    ) -> Result<Target, Vec<Problem>> {
        let recipes = offers::recipes(release, scenario);
        let (script, rules) = ReleaseScript::of(release, &scenario.model)
            .zip(release.contract().script_of(&scenario.model.id))
            .filter(|_| !recipes.is_empty())
            .ok_or_else(|| vec![offers::no_model(scenario, release)])?;
        // A release that the user didn't name isn't to blame.
        let is_named = options.release.is_some() || scenario.recipe.is_some();
        let limits = Limits::of(release, &scenario.model.id, &scenario.gpu.id).ok_or_else(|| {
            vec![match is_named {
                true => offers::no_gpu(scenario, release),
                false => offers::no_recipe(scenario),
            }]
        })?;
        let gpus_per_node = options.gpus_per_node.unwrap_or(limits.gpus_per_node);
        let wants_strong = scenario.recipe.is_some_and(|recipe| recipe.id.strong);
        let variant = scenario.recipe.and_then(|recipe| recipe.id.variant.as_ref());
        let scales = |recipe| scales(recipe, &recipes);
        // A change of a recipe's layout doesn't make it another variant, which also has other settings.
        let is_of_variant = |recipe: &&'static Recipe| match scenario.recipe {
            Some(chosen) if chosen.id.release == release => recipe.id.variant == chosen.id.variant,
            // Nor does a plan that names no recipe become one, except for FSDP, which most models have only as a variant.
            _ => recipe.id.variant.is_none() || recipe.fsdp,
        };
        let nearest = candidates(scenario, release, &recipes)
            .into_iter()
            .filter(is_of_variant)
            .map(|recipe| Target { script, rules, limits, recipe, gpus_per_node, scales: scales(recipe) })
            .map(|target| (target.differences(scenario), target))
            .min_by_key(|(differences, Target { recipe, .. })| {
                let apart = recipe.id.gpus.abs_diff(scenario.layout.gpus());
                let is_other = recipe.id.strong != wants_strong || recipe.id.variant.as_ref() != variant;
                // Of Megatron-Bridge's own recipes, a free plan takes the one whose configuration it changes least.
                let is_free = scenario.recipe.is_none() && runs_own_recipes(rules);
                let changes = if is_free { configuration::assignments(recipe, scenario).len() } else { 0 };
                (differences.len(), is_other, changes, apart)
            });
        let Some((differences, target)) = nearest else {
            return Err(vec![match is_named {
                true => offers::no_dtype(scenario, release, &recipes),
                false => offers::no_recipe(scenario),
            }]);
        };
        let mut problems = Vec::new();
        if wants_strong {
            problems.extend(offers::no_strong(scenario, release, &recipes));
        }
        let broken_node = target.broken_node(scenario.layout.gpus());
        // A batch by nodes can't be compared with the scenario's unless the nodes are whole.
        let by_nodes = matches!(release.contract().batch, BatchRule::PerNode(_));
        let differences = differences
            .into_iter()
            .filter(|difference| broken_node.is_none() || difference.field != Field::Gbs || !by_nodes);
        problems.extend(differences.map(|difference| target.refuse(scenario, difference)));
        problems.extend(broken_node);
        if problems.is_empty() {
            problems.extend(schedule_problem(scenario, runs_own_recipes(rules)));
        }
        if problems.is_empty() { Ok(target) } else { Err(problems) }
    }

    /// Returns the recipe's release.
    pub(super) fn release(&self) -> Release {
        self.recipe.id.release
    }

    /// Returns whether the release publishes the series at this GPU count.
    pub(super) fn publishes(&self, gpus: u32) -> bool {
        self.scales.contains(&gpus)
    }

    /// Returns the release's global batch size for the scenario's GPU count.
    pub(super) fn gbs(&self, scenario: &Scenario) -> u64 {
        let gpus = u64::from(scenario.layout.gpus());
        let (gbs, per) = (u64::from(self.recipe.gbs), u64::from(self.recipe.id.gpus));
        match self.release().contract().batch {
            BatchRule::PerNode(each) => by_nodes(each, gpus, self.gpus_per_node),
            BatchRule::AsRecipe if self.recipe.id.strong => gbs,
            BatchRule::AsRecipe => gbs * gpus / per,
        }
    }

    /// Returns whether the script takes a field from a variable, or as an argument, and runs it with the scenario's value.
    pub(super) fn takes(&self, field: Field, scenario: &Scenario) -> bool {
        let is_fixed = self.recipe.id.strong || forced::is_forced(&self.recipe.id, field);
        !is_fixed
            && self.script.variable_of(field).is_some()
            && (!runs_own_recipes(self.rules) || configuration::takes(self.recipe, scenario, field))
    }

    /// Returns the fields that differ from the recipe's and that the script takes.
    pub(super) fn taken(&self, scenario: &Scenario) -> Vec<(Field, String)> {
        let settings = self.settings(scenario).into_iter();
        let differing =
            settings.filter(|(field, given, fixed)| given != fixed && self.takes(*field, scenario));
        differing.map(|(field, given, _)| (field, given)).collect()
    }

    /// Returns the fields of the layout that the recipe sets like the scenario, without degrees of 1, each with its value.
    pub(super) fn layout_by_recipe(&self, scenario: &Scenario) -> Vec<(Field, String)> {
        let is_divided_by_recipe = scenario.layout.pp() > 1
            && (!runs_own_recipes(self.rules) || configuration::divides_alike(self.recipe, scenario));
        let is_of_layout = |field: Field| match field {
            Field::Tp | Field::Pp | Field::Cp | Field::Ep | Field::ExpertTp | Field::Vp => true,
            Field::PipelineSplit => is_divided_by_recipe,
            _ => false,
        };
        let settings = self.settings(scenario).into_iter();
        let by_recipe = settings.filter(|(field, given, fixed)| given == fixed && is_of_layout(*field));
        by_recipe.map(|(field, given, _)| (field, given)).filter(|(_, value)| value != "1").collect()
    }

    /// Returns the fields that a script can fix, with the scenario's value and the recipe's.
    fn settings(&self, scenario: &Scenario) -> [(Field, String, String); 16] {
        let (layout, batch, fixed) = (&scenario.layout, &scenario.batch, &self.recipe.degrees);
        let (chosen, usual) = (scenario.options, self.recipe.options());
        let split = configuration::split(self.recipe, scenario);
        let switch = |on: bool| if on { "on" } else { "off" }.to_string();
        [
            (Field::Recompute, chosen.recompute.to_string(), usual.recompute.to_string()),
            (Field::RecomputeModules, chosen.modules.to_string(), usual.modules.to_string()),
            (Field::OffloadLayers, chosen.offload_layers.to_string(), usual.offload_layers.to_string()),
            (Field::Fsdp, switch(chosen.fsdp), switch(usual.fsdp)),
            (Field::Overlap, switch(chosen.overlap), switch(usual.overlap)),
            (Field::Layers, scenario.architecture.layers.to_string(), self.recipe.layers.to_string()),
            (Field::SeqLen, batch.seq_len().to_string(), self.recipe.seq_len.to_string()),
            (Field::Tp, layout.tp().to_string(), fixed.tp.to_string()),
            (Field::Pp, layout.pp().to_string(), fixed.pp.to_string()),
            (Field::Cp, layout.cp().to_string(), fixed.cp.to_string()),
            (Field::Ep, layout.ep().to_string(), fixed.ep.to_string()),
            (Field::ExpertTp, layout.expert_tp().to_string(), fixed.expert_tp.to_string()),
            (Field::Vp, layout.vp().to_string(), fixed.vp.to_string()),
            (Field::PipelineSplit, layout.split().to_string(), split.to_string()),
            (Field::Mbs, batch.mbs().to_string(), self.recipe.mbs.to_string()),
            (Field::Gbs, batch.gbs().to_string(), self.gbs(scenario).to_string()),
        ]
    }

    /// Returns the fields in which a scenario differs from what the script fixes.
    fn differences(&self, scenario: &Scenario) -> Vec<FixedSetting> {
        self.settings(scenario)
            .into_iter()
            .filter(|(field, given, fixed)| given != fixed && !self.takes(*field, scenario))
            .map(|(field, given, fixed)| FixedSetting { field, given, fixed })
            .collect()
    }

    fn refuse(&self, scenario: &Scenario, FixedSetting { field, given, fixed }: FixedSetting) -> Problem {
        let (release, gpus) = (self.release(), scenario.layout.gpus());
        let mut why = format!("The script of release {release} sets ");
        let mut nodes = String::new();
        if let (Field::Gbs, BatchRule::PerNode(each)) = (field, release.contract().batch) {
            nodes = format!(" ({each} for each of {} nodes)", gpus / self.gpus_per_node);
            let usual = self.limits.gpus_per_node;
            // The batch size fits nodes of the usual size: the size of the nodes is the problem.
            if by_nodes(each, gpus.into(), usual) == u64::from(scenario.batch.gbs()) {
                let per_node = self.gpus_per_node;
                let message = message![
                    format!("With {per_node} GPUs per node, release {release} sets "),
                    Setting::new(Field::Gbs, &fixed),
                    format!("{nodes}, not {given}. Set that, or use nodes of {usual} GPUs.")
                ];
                return Problem::new(Field::GpusPerNode, per_node, message).suggest([usual]);
            }
            why = format!("Release {release} sets ");
        }
        let message = message![
            why,
            Setting::new(field, &fixed),
            format!("{nodes}, not {given}, for {}.", self.recipe.id)
        ];
        let message = match scenario.published_as().filter(|recipe| recipe.id.release != release) {
            Some(recipe) => message.and(format!(" The scenario is {}.", recipe.id)),
            None => message,
        };
        Problem::new(field, given, message).suggest([fixed])
    }

    /// Returns the problem of GPUs that don't fill whole nodes.
    fn broken_node(&self, gpus: u32) -> Option<Problem> {
        let per_node = self.gpus_per_node;
        (!gpus.is_multiple_of(per_node)).then(|| partial_nodes(gpus, per_node))
    }
}

/// Returns whether a script runs Megatron-Bridge's own recipes, whose whole configuration can change.
fn runs_own_recipes(rules: &ScriptContract) -> bool {
    rules.experiment == ExperimentName::BridgeRecipe
}

/// Returns the problem of GPUs that don't fill whole nodes.
pub(super) fn partial_nodes(gpus: u32, per_node: u32) -> Problem {
    let message =
        format!("{} GPUs don't fill whole nodes of {per_node} GPUs.", group_digits(f64::from(gpus)));
    Problem::new(Field::Gpus, gpus, message).suggest(nearest_multiples(gpus, per_node))
}

/// Returns the global batch of a release that counts nodes, with `each` sequences for a node.
fn by_nodes(each: u32, gpus: u64, gpus_per_node: u32) -> u64 {
    u64::from(each) * gpus / u64::from(gpus_per_node)
}

/// A field that the script fixes at another value.
#[derive(Debug)]
struct FixedSetting {
    field: Field,
    given: String,
    fixed: String,
}

/// Returns the published GPU counts of a recipe's series, smallest first.
fn scales(recipe: &Recipe, recipes: &[&Recipe]) -> Vec<u32> {
    let series = recipes.iter().filter(|other| other.id.same_series(&recipe.id));
    let mut scales: Vec<u32> = series.map(|recipe| recipe.id.gpus).collect();
    scales.sort_unstable();
    scales
}

/// Returns the recipes that a script takes for a scenario's model, GPU type, precision and GPU count: a proxy
/// at exactly its GPU count, the full model at every other.
fn candidates(scenario: &Scenario, release: Release, recipes: &[&'static Recipe]) -> Vec<&'static Recipe> {
    let own = scenario.gpu.id.as_str();
    let has_own = recipes.iter().any(|recipe| recipe.id.gpu == own);
    let gpu = release.contract().stand_in_gpu.filter(|_| !has_own).unwrap_or(own);
    let fits = |recipe: &&&Recipe| recipe.id.gpu == gpu && scenario.has_precision_of(recipe);
    let (proxies, full): (Vec<_>, Vec<_>) =
        recipes.iter().filter(fits).copied().partition(|recipe| recipe.scaling.is_none());
    let proxy = proxies.into_iter().find(|proxy| proxy.id.gpus == scenario.layout.gpus());
    proxy.map_or(full, |proxy| vec![proxy])
}
