//! Which recipes of a release a certification runs, and why it leaves out the others.

use crate::campaign::{Campaign, Name, Run, Settings};
use crate::catalog::{Catalog, Recipe, Release};
use crate::field::Field;
use crate::problem::{Problem, one_of};
use crate::spec::Spec;
use crate::units::group_digits;
use serde::Serialize;
use std::fmt::Write;

/// Returns the campaign that certifies a cluster: every recipe of a release at full size for a GPU type and a GPU count.
///
/// # Errors
/// The release has no such recipe; the problem names the GPU counts that have some.
pub fn certification(
    cluster: &Name,
    gpu: &str,
    gpus: u32,
    release: Release,
    repeats: u32,
) -> Result<Campaign, Problem> {
    let catalog = Catalog::embedded();
    let on_gpu = |recipe: &&Recipe| {
        recipe.id.release == release && recipe.id.gpu == gpu && exclusion(recipe).is_none()
    };
    let recipes = || catalog.recipes().iter().filter(on_gpu);
    let runs: Vec<Run> = recipes().filter(|recipe| recipe.id.gpus == gpus).map(run).collect();
    if runs.is_empty() {
        let mut counts: Vec<u32> = recipes().map(|recipe| recipe.id.gpus).collect();
        counts.sort_unstable();
        counts.dedup();
        let title = catalog.gpu(gpu).map_or(gpu, |gpu| &gpu.name);
        return Err(match counts.is_empty() {
            true => {
                let message = format!("Release {release} has no recipe for the {title}.");
                Problem::new(Field::Release, release, message)
            }
            false => {
                let message = format!("Release {release} has no recipe for {gpus} {title}s.");
                Problem::new(Field::Gpus, gpus, message).allow(counts)
            }
        });
    }
    let defaults = Settings { repeats: Some(repeats).filter(|repeats| *repeats > 1), ..Settings::default() };
    Ok(Campaign {
        name: Name::closest(&format!("certify-{gpu}-{gpus}-{release}")),
        cluster: cluster.clone(),
        defaults,
        runs,
    })
}

/// Returns the name of a recipe's run: its model and precision.
fn run_name(recipe: &Recipe) -> String {
    format!("{}-{}", recipe.id.model, recipe.id.dtype)
}

fn run(recipe: &Recipe) -> Run {
    let spec = Spec::default().with(Field::Recipe, recipe.id.to_string());
    Run {
        name: Name::closest(&run_name(recipe)),
        after: Vec::new(),
        settings: Settings { spec, ..Settings::default() },
    }
}

/// Why a certification doesn't run a recipe of its release and GPU type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UntestedReason {
    /// The model has recipes in this precision, but only for other GPU counts.
    GpuCount,
    /// Its batch doesn't grow with the GPUs.
    StrongScaling,
    /// Its recipe for this GPU count has fewer layers than the model.
    Proxy,
    /// It is a variant of another recipe.
    Variant,
}

impl UntestedReason {
    pub(super) const ALL: [UntestedReason; 4] = [
        UntestedReason::GpuCount,
        UntestedReason::StrongScaling,
        UntestedReason::Proxy,
        UntestedReason::Variant,
    ];
}

/// A recipe that a certification doesn't run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UntestedRecipe {
    /// Its model and precision, named like a run, and its variant.
    pub recipe: String,
    /// Why it doesn't run.
    pub reason: UntestedReason,
    /// The GPU counts for which the release has it; in place of a proxy, those for which it has the full size.
    pub gpus: Vec<u32>,
}

impl UntestedRecipe {
    /// Returns its name, with the GPU counts that it needs if these are why it didn't run.
    pub(super) fn in_words(&self) -> String {
        let counts: Vec<String> = self.gpus.iter().map(|gpus| group_digits(f64::from(*gpus))).collect();
        let counts = one_of(&counts);
        match self.reason {
            UntestedReason::GpuCount => format!("{} ({counts} GPUs)", self.recipe),
            UntestedReason::Proxy if !counts.is_empty() => {
                format!("{} (full size: {counts} GPUs)", self.recipe)
            }
            _ => self.recipe.clone(),
        }
    }
}

/// Returns why no certification runs a recipe, whatever the GPU count.
fn exclusion(recipe: &Recipe) -> Option<UntestedReason> {
    if recipe.id.strong {
        return Some(UntestedReason::StrongScaling);
    }
    if recipe.id.variant.is_some() {
        return Some(UntestedReason::Variant);
    }
    Catalog::embedded().is_proxy(recipe).then_some(UntestedReason::Proxy)
}

/// Returns the recipes of a release for a GPU type that a certification at this GPU count doesn't run.
pub fn untested(gpu: &str, gpus: u32, release: Release) -> Vec<UntestedRecipe> {
    let recipes = Catalog::embedded().recipes().iter();
    let recipes: Vec<&Recipe> =
        recipes.filter(|recipe| recipe.id.release == release && recipe.id.gpu == gpu).collect();
    let runs = |recipe: &Recipe| recipe.id.gpus == gpus && exclusion(recipe).is_none();
    let is_tested = |name: &str| recipes.iter().any(|recipe| runs(recipe) && run_name(recipe) == name);
    let is_proxy = |recipe: &Recipe| exclusion(recipe) == Some(UntestedReason::Proxy);
    let has_proxy = |name: &str| {
        recipes.iter().any(|recipe| recipe.id.gpus == gpus && is_proxy(recipe) && run_name(recipe) == name)
    };
    let mut found: Vec<UntestedRecipe> = Vec::new();
    for recipe in &recipes {
        let mut name = run_name(recipe);
        let reason = match exclusion(recipe) {
            Some(reason) if recipe.id.gpus == gpus => reason,
            None if is_tested(&name) => continue,
            None if has_proxy(&name) => UntestedReason::Proxy,
            None => UntestedReason::GpuCount,
            _ => continue,
        };
        if let Some(variant) = &recipe.id.variant {
            let _ = write!(name, "+{variant}");
        }
        let counts = (!is_proxy(recipe)).then_some(recipe.id.gpus);
        match found.iter_mut().find(|known| known.reason == reason && known.recipe == name) {
            Some(known) => known.gpus.extend(counts),
            None => found.push(UntestedRecipe { recipe: name, reason, gpus: counts.into_iter().collect() }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: Release = Release::R26_06_01;

    #[test]
    fn a_certification_runs_every_recipe_of_a_size() {
        let cluster: Name = "alpha".parse().unwrap();
        let campaign = certification(&cluster, "h100", 64, RELEASE, 2).unwrap();
        assert_eq!((campaign.name.as_str(), campaign.runs.len()), ("certify-h100-64-26.06.01", 8));
        let (read, _) = Campaign::parse_with_lines(&campaign.to_text()).unwrap();
        assert_eq!(read, campaign);
        let problem = certification(&cluster, "h100", 48, RELEASE, 1).unwrap_err();
        assert!(problem.allowed.contains(&"64".to_owned()) && problem.field == Field::Gpus);
        assert_eq!(certification(&cluster, "a100", 64, RELEASE, 1).unwrap_err().field, Field::Release);
    }

    #[test]
    fn recipes_that_do_not_run_have_a_reason() {
        let of = |gpu: &str, gpus: u32, release: Release, name: &str| -> Vec<UntestedReason> {
            let named = untested(gpu, gpus, release).into_iter().filter(|recipe| recipe.recipe == name);
            named.map(|recipe| recipe.reason).collect()
        };
        assert!(of("h100", 64, RELEASE, "llama3.1-70b-fp8").is_empty());
        assert_eq!(of("h100", 64, RELEASE, "deepseek-v3-fp8"), [UntestedReason::GpuCount]);
        let strong = of("gb200", 128, Release::R25_12, "nemotron4-340b-bf16");
        assert!(strong.contains(&UntestedReason::StrongScaling), "{strong:?}");
        let proxy = of("h100", 64, Release::R25_04, "llama3.1-405b-bf16");
        assert_eq!(proxy, [UntestedReason::Proxy]);
        // Proxies for other GPU counts are not listed.
        assert!(!of("h100", 512, Release::R25_04, "llama3.1-405b-bf16").contains(&UntestedReason::Proxy));
        let variant = of("h100", 256, Release::BridgeMain, "qwen3-235b-a22b-bf16+hybridep_dev");
        assert_eq!(variant, [UntestedReason::Variant]);
    }

    #[test]
    fn the_gpu_counts_of_an_untested_recipe_are_a_list() {
        let gpus = vec![16, 32, 64, 1024];
        let reason = UntestedReason::GpuCount;
        let untested = UntestedRecipe { recipe: "llama3.1-8b".to_owned(), reason, gpus };
        assert_eq!(untested.in_words(), "llama3.1-8b (16, 32, 64 or 1,024 GPUs)");
    }
}
