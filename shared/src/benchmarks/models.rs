//! Models in the order of demand.

use super::BestMeasured;
use crate::catalog::{Catalog, Model};
use crate::field::Field;
use crate::matching::places_matching;
use crate::problem::Problem;
use crate::sorting::sorted;

/// The most models that a problem names.
const MOST_NAMED: usize = 4;

/// Returns all models: the most widely measured series first, and each series by size. People mostly look for measured
/// models: "70b" finds Llama 3.1 before Llama 2, and "deepseek" finds DeepSeek-V3 before V2.
#[must_use]
pub fn models_by_use() -> Vec<&'static Model> {
    let models: Vec<&Model> = Catalog::embedded().models().iter().collect();
    let measured = |series: &str| {
        let its = models.iter().filter(|model| series_of(model) == series);
        its.map(|model| BestMeasured::gpu_types(&model.id)).max()
    };
    sorted(&models, |one, other| {
        let series = [one, other].map(|model| series_of(model));
        let by_series = measured(series[1]).cmp(&measured(series[0])).then(series[0].cmp(series[1]));
        let is_unknown = [one, other].map(|model| BestMeasured::gpu_types(&model.id) == 0);
        let by_series = by_series.then(is_unknown[0].cmp(&is_unknown[1]));
        by_series.then(one.architecture.parameters().total_cmp(&other.architecture.parameters()))
    })
}

/// Returns the series of a model: `llama3.1` of `llama3.1-70b`.
fn series_of(model: &Model) -> &str {
    model.id.split('-').next().unwrap_or_default()
}

/// Returns a problem. If the names of known models contain the words of an unknown model, the problem suggests these models, in
/// the order of [`models_by_use`].
#[must_use]
pub fn with_named_models(problem: Problem) -> Problem {
    if problem.field != Field::Model || problem.allowed.is_empty() {
        return problem;
    }
    let mut models = models_by_use();
    models.retain(|model| problem.allowed.contains(&model.id));
    let names: Vec<String> = models.iter().map(|model| format!("{} {}", model.title, model.id)).collect();
    let places = places_matching(&names, &problem.given.replace(['-', '_'], " "));
    let mut named = places.into_iter().take(MOST_NAMED).map(|place| models[place].id.clone());
    match named.next() {
        Some(first) => Problem { closest: Some(first), suggestions: named.collect(), ..problem },
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_model_names_those_that_people_ask_for() {
        let said = |text: &str| with_named_models(Catalog::embedded().model(text).unwrap_err()).to_string();
        for (text, meant) in [
            ("deepseek", "deepseek-v3, deepseek-v2-lite or deepseek-v2"),
            ("DeepSeek_v2", "deepseek-v2-lite or deepseek-v2"),
            ("llama-70b", "llama3.1-70b or llama2-70b"),
            ("qwen3-235b", "qwen3-235b-a22b"),
            // A misspelt name contains none of the words.
            ("deepsek-v3", "deepseek-v3"),
        ] {
            let wanted =
                format!("Unknown model \"{text}\". Did you mean {meant}? `trainplan models` lists all.");
            assert_eq!(said(text), wanted);
        }
        assert_eq!(said("qwen").matches("qwen").count(), 1 + MOST_NAMED, "{}", said("qwen"));
    }

    #[test]
    fn other_problems_stay() {
        let catalog = Catalog::embedded();
        let own = catalog.model_or_own("own:hiden=4096").unwrap_err();
        assert_eq!(with_named_models(own.clone()), own);
        let gpu = catalog.gpu("h10").unwrap_err();
        assert_eq!(with_named_models(gpu.clone()), gpu);
    }
}
