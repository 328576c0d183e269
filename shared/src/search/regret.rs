//! What trusting a search costs, from measured layouts.

use crate::architecture::Architecture;
use crate::data_file::{DataError, FromRow, Row, embedded};
use std::sync::LazyLock;

/// How much slower the layout predicted to be fastest is than the fastest measured one, for a class of models (`regret.csv`).
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRegret {
    is_moe: bool,
    /// The groups of measured layouts that it was observed in.
    pub groups: u32,
    /// The mean of the groups, as a fraction of the step time.
    pub mean: f64,
}

impl FromRow for SearchRegret {
    fn from_row(row: &Row<'_>) -> Result<SearchRegret, DataError> {
        Ok(SearchRegret {
            is_moe: row.text("models")? == "moe",
            groups: row.value("groups")?,
            mean: row.number("mean")?,
        })
    }
}

impl SearchRegret {
    /// Returns the regret of searches for a model.
    pub fn of(architecture: &Architecture) -> Option<&'static SearchRegret> {
        static EMBEDDED: LazyLock<Vec<SearchRegret>> = LazyLock::new(|| embedded!("regret.csv"));
        EMBEDDED.iter().find(|regret| regret.is_moe == architecture.moe.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn mean(model: &str) -> f64 {
        let model = Catalog::embedded().model(model).unwrap();
        SearchRegret::of(&model.architecture).unwrap().mean
    }

    #[test]
    fn a_search_costs_more_where_tokens_are_routed() {
        assert!(0.0 < mean("llama3.1-8b") && mean("llama3.1-8b") < mean("deepseek-v3"));
    }

    #[test]
    fn the_guide_says_what_the_file_does() {
        let guide = include_str!("../../../docs/planning.md");
        for model in ["llama3.1-8b", "deepseek-v3"] {
            let percent = format!("{:.1} %", 100.0 * mean(model));
            assert!(guide.contains(&percent), "{percent}");
        }
    }
}
