//! How many of NVIDIA's published numbers have a recipe in the catalog: counts the table in `docs/planning.md`.

use super::Measurement;
use crate::catalog::{Catalog, Collection, Recipe};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::precision::Dtype;
use std::collections::BTreeMap;

const DOCUMENT: &str = include_str!("../../../docs/planning.md");

/// The collections of measurements that NVIDIA published for its recipes.
const COLLECTIONS: [&str; 4] = ["dgxc-seed", "dgxc-upstream", "megatron-bridge", "mbridge-cards"];

/// Precisions of one scale for each tensor. Many documents call all of them FP8.
const FP8_OF_TENSORS: [Dtype; 3] = [Dtype::Fp8, Dtype::Fp8Current, Dtype::Fp8Delayed];

/// The nearest recipe of a published number: one of the same model, GPU type and precision.
#[derive(Clone, Copy)]
enum RecipeLink {
    /// It has the same layout, batch and GPU count.
    Exact,
    /// It has the same layout, and a batch in proportion to another GPU count.
    WeakScaled,
    /// It has another layout or batch.
    OtherLayout,
    /// The catalog has no recipe of its model, GPU type and precision.
    NoRecipe,
}

/// What a row prints. A cell without a whole number is 0, or 1 for a degree, and 0 fits no recipe.
struct PrintedRun {
    is_pretraining: bool,
    layers: Option<u32>,
    gpus: u32,
    seq_len: u32,
    /// TP, PP, CP, EP and VP.
    degrees: [u32; 5],
    fsdp: bool,
    mbs: u32,
    gbs: u32,
}

impl FromRow for PrintedRun {
    fn from_row(row: &Row<'_>) -> Result<PrintedRun, DataError> {
        let whole = |column: &str| row.text(column).map(|text| text.parse::<u32>().ok());
        let number = |column: &str| whole(column).map(Option::unwrap_or_default);
        let degree = |column: &str| whole(column).map(|degree| degree.unwrap_or(1));
        Ok(PrintedRun {
            is_pretraining: row.text("phase")? == "pretrain",
            layers: whole("layers")?,
            gpus: number("gpus")?,
            seq_len: number("seq_len")?,
            degrees: [degree("tp")?, degree("pp")?, degree("cp")?, degree("ep")?, degree("vp")?],
            fsdp: row.text("fsdp")? == "1",
            mbs: number("mbs")?,
            gbs: number("gbs")?,
        })
    }
}

impl RecipeLink {
    fn of(row: &Measurement, run: &PrintedRun) -> RecipeLink {
        let catalog = Catalog::embedded();
        let (Ok(gpu), Some(dtype)) = (catalog.gpu(&row.gpu), precision(&row.precision)) else {
            return RecipeLink::NoRecipe;
        };
        let is_alike = |recipe: &&Recipe| {
            recipe.id.model == row.model && recipe.id.gpu == gpu.id && has_precision(recipe, dtype)
        };
        let alike: Vec<&Recipe> = catalog.recipes().iter().filter(is_alike).collect();
        let mut same_layout: Vec<&Recipe> = alike.clone();
        same_layout.retain(|recipe| has_layout(recipe, run));
        let same_batch = |recipe: &Recipe| {
            u64::from(recipe.gbs) * u64::from(run.gpus) == u64::from(run.gbs) * u64::from(recipe.id.gpus)
        };
        match () {
            () if same_layout.iter().any(|recipe| same_batch(recipe) && recipe.id.gpus == run.gpus) => {
                RecipeLink::Exact
            }
            () if same_layout.iter().any(|recipe| same_batch(recipe)) => RecipeLink::WeakScaled,
            () if alike.is_empty() => RecipeLink::NoRecipe,
            () => RecipeLink::OtherLayout,
        }
    }
}

/// Returns the precision that a row names.
fn precision(name: &str) -> Option<Dtype> {
    match name {
        "FP8-CS" => Some(Dtype::Fp8Current),
        "FP8-DS" => Some(Dtype::Fp8Delayed),
        "FP8-SC" => Some(Dtype::Fp8Block),
        name => name.to_ascii_lowercase().parse().ok(),
    }
}

fn has_precision(recipe: &Recipe, dtype: Dtype) -> bool {
    let both = [recipe.dtype(), dtype];
    let says_fp8_only = both.contains(&Dtype::Fp8);
    recipe.dtype() == dtype || says_fp8_only && both.iter().all(|one| FP8_OF_TENSORS.contains(one))
}

fn has_layout(recipe: &Recipe, run: &PrintedRun) -> bool {
    let degrees = &recipe.degrees;
    run.layers.is_none_or(|layers| layers == recipe.layers)
        && [degrees.tp, degrees.pp, degrees.cp, degrees.ep, degrees.vp] == run.degrees
        && (recipe.mbs, recipe.seq_len, recipe.fsdp) == (run.mbs, run.seq_len, run.fsdp)
}

#[test]
fn the_document_counts_the_published_numbers_with_a_recipe() {
    let printed: Vec<PrintedRun> = embedded!("measurements.csv");
    let mut counts: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for (row, run) in super::embedded().iter().zip(&printed) {
        if run.is_pretraining && COLLECTIONS.contains(&row.source.as_str()) {
            // A card's release also has its day.
            let release = row.release.split(' ').next().unwrap_or_default();
            let place = RecipeLink::of(row, run) as usize;
            counts.entry(Collection::with_release(&row.source, release)).or_default()[place] += 1;
        }
    }
    let total =
        counts.values().fold([0_usize; 4], |sum, one| std::array::from_fn(|place| sum[place] + one[place]));
    let line = |name: &str, counts: &[usize; 4]| {
        let [exact, weak_scaled, other, none] = counts;
        let all: usize = counts.iter().sum();
        format!("| {name} | {all} | {exact} | {weak_scaled} | {other} | {none} |\n")
    };
    let lines: String = counts.iter().map(|(name, counts)| line(name, counts)).collect();
    let table = format!("{lines}{}", line("all", &total));
    assert!(DOCUMENT.contains(&table), "the table in docs/planning.md should be:\n{table}");
}
