//! Scaling: published results by GPU count, for the charts of the planner.

use crate::catalog::{Catalog, Recipe};
use crate::choices::choices;
use crate::convention::Convention;
use crate::field::Field;
use crate::metrics::DEFAULT_TOKENS;
use crate::metrics::Metrics;
use crate::spec::Spec;

choices! {
    /// The quantity that a chart shows over GPU counts.
    Quantity of Field::Quantity {
        /// Tokens per second of all GPUs.
        TokensPerS "tokens" "Tokens per second",
        /// Tokens per second of each GPU.
        TokensPerSPerGpu "tokens-per-gpu" "Tokens per second per GPU",
        /// Seconds per step.
        StepTime "step-time" "Step time, s",
        /// MFU in percent, with the same FLOP counting for every release.
        MfuFull "mfu-full" "MFU, % (same counting)",
        /// MFU in percent, with the FLOP counting of each recipe's document.
        MfuRecipe "mfu-recipe" "MFU, % (as published)",
        /// Days to train.
        Days "days" "Days to train",
    }
}

impl Quantity {
    /// Returns the title of an axis, without how it is counted, which the caption gives.
    pub fn axis(self) -> &'static str {
        self.title().split(" (").next().unwrap_or_default()
    }

    /// Returns whether a chart needs a logarithmic axis, because the values span orders of magnitude.
    pub const fn spans_decades(self) -> bool {
        matches!(self, Quantity::TokensPerS | Quantity::Days)
    }
}

/// Published results that differ only in GPU count and batch, by GPU count.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalingSeries {
    /// Their common properties: "Llama 3.1 405B, H100, FP8 (25.04)".
    pub title: String,
    /// The model's id, which sets the colour in a chart.
    pub model: String,
    /// The results.
    pub points: Vec<SeriesPoint>,
}

/// A result of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesPoint {
    /// The recipe.
    pub recipe: &'static Recipe,
    /// The metrics of its step time, with the FLOP counting of its document.
    pub metrics: Metrics,
    /// MFU with the convention `full`, a fraction.
    pub mfu_full: f64,
}

impl SeriesPoint {
    /// Returns the value of a quantity.
    pub fn value(&self, quantity: Quantity) -> f64 {
        match quantity {
            Quantity::TokensPerS => self.metrics.tokens_per_s,
            Quantity::TokensPerSPerGpu => self.metrics.tokens_per_s / f64::from(self.recipe.id.gpus),
            Quantity::StepTime => self.metrics.step_time_s,
            Quantity::MfuFull => self.mfu_full * 100.0,
            Quantity::MfuRecipe => self.metrics.mfu.unwrap_or(0.0) * 100.0,
            // Only a proxy has no days, and a series has no proxies.
            Quantity::Days => self.metrics.time_to_train_days.unwrap_or(0.0),
        }
    }
}

/// Returns the series of recipes with published results at several GPU counts. The recipes must be in the order of the catalog.
/// Proxies are left out.
pub fn series(recipes: impl IntoIterator<Item = &'static Recipe>, tokens: Option<f64>) -> Vec<ScalingSeries> {
    let catalog = Catalog::embedded();
    let tokens = tokens.unwrap_or(DEFAULT_TOKENS);
    let mut all: Vec<ScalingSeries> = Vec::new();
    for recipe in recipes {
        let Some(point) = point(recipe, tokens).filter(|_| !catalog.is_proxy(recipe)) else { continue };
        let same = |series: &&mut ScalingSeries| {
            series.points.first().is_some_and(|first| first.recipe.id.same_series(&recipe.id))
        };
        match all.iter_mut().find(same) {
            Some(series) => series.points.push(point),
            None => {
                all.push(ScalingSeries {
                    title: title(recipe),
                    model: recipe.id.model.clone(),
                    points: vec![point],
                });
            }
        }
    }
    all.retain(|series| series.points.len() > 1);
    all
}

fn point(recipe: &'static Recipe, tokens: f64) -> Option<SeriesPoint> {
    let baseline = Catalog::embedded().baseline(&recipe.id)?;
    let spec = Spec::default().with(Field::Recipe, recipe.id.to_string());
    let metrics = Metrics::new(&spec.scenario().ok()?, baseline.step_time_s, tokens);
    let full = spec.with(Field::Convention, Convention::Full.id()).scenario().ok()?;
    let mfu_full = Metrics::new(&full, baseline.step_time_s, tokens).mfu?;
    Some(SeriesPoint { recipe, metrics, mfu_full })
}

fn title(recipe: &Recipe) -> String {
    let (catalog, id) = (Catalog::embedded(), &recipe.id);
    let model = catalog.model(&id.model).map_or(id.model.as_str(), |model| &model.title);
    let gpu = catalog.gpu(&id.gpu).map_or(id.gpu.as_str(), |gpu| &gpu.name);
    format!("{model}, {gpu}, {} ({})", id.dtype.title(), id.release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_69_measurements_of_whole_models_make_13_series() {
        let all = series(Catalog::embedded().recipes(), None);
        let points: usize = all.iter().map(|series| series.points.len()).sum();
        assert_eq!((all.len(), points), (13, 69));
        for series in &all {
            assert!(series.points.is_sorted_by_key(|point| point.recipe.id.gpus));
        }
    }

    #[test]
    fn counted_alike_the_releases_can_be_compared() {
        // 24.11 and 25.04 count 17 % more FLOPs for the 340B than `full` does.
        let all = series(Catalog::embedded().recipes(), None);
        let old = all.iter().find(|series| series.title == "Nemotron-4 340B, H100, BF16 (24.11)").unwrap();
        let ratio = old.points[0].value(Quantity::MfuRecipe) / old.points[0].value(Quantity::MfuFull);
        assert!((ratio - 1.01e16 / 8.621_236_313_653_248e15).abs() < 1e-12);
        // The 405B's document divides by 16 query groups; full takes the model's 8 and the same peak.
        let llama = all.iter().find(|series| series.title.contains("405B, H100, FP8")).unwrap();
        assert!(llama.points[0].value(Quantity::MfuFull) < llama.points[0].value(Quantity::MfuRecipe));
    }
}
