//! What the recipes of a software switch on or off for a model, beside layout and recomputation.

use super::{CudaGraphs, Stack, StackProperties};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::precision::Dtype;
use serde::Serialize;
use std::sync::LazyLock;

/// What a recipe switches on or off; `None` for the software's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Switches {
    /// Whether CUDA graphs launch the kernels.
    pub graphs: Option<bool>,
    /// Whether the exchange of tokens between experts overlaps with another micro batch.
    pub hidden_experts: Option<bool>,
    /// Whether a token is sent once to each NVLink domain for all experts there.
    pub sent_once: Option<bool>,
    /// Whether tensor parallelism's communication overlaps with computation.
    pub hidden_tp: Option<bool>,
}

impl Switches {
    /// Returns what differs from the software's defaults, for people.
    pub fn in_words(self) -> impl Iterator<Item = &'static str> {
        let Switches { graphs, hidden_experts, sent_once, hidden_tp } = self;
        [
            (graphs, "with CUDA graphs", "without CUDA graphs"),
            (
                hidden_experts,
                "with the exchange between experts hidden",
                "with the exchange between experts exposed",
            ),
            (sent_once, "with tokens sent once to each NVLink domain", "with tokens sent to each expert"),
            (hidden_tp, "with tensor parallelism hidden", "with tensor parallelism exposed"),
        ]
        .into_iter()
        .filter_map(|(switch, on, off)| switch.map(|is_on| if is_on { on } else { off }))
    }

    /// Returns them without what software with these properties can't do.
    pub(crate) fn within(self, properties: &StackProperties) -> Switches {
        let unless_on = |switch: Option<bool>, has: bool| switch.filter(|on| has || !on);
        Switches {
            graphs: unless_on(self.graphs, properties.cuda_graphs != CudaGraphs::None),
            hidden_experts: unless_on(self.hidden_experts, properties.hides_experts),
            sent_once: unless_on(self.sent_once, properties.sends_once_per_domain),
            hidden_tp: unless_on(self.hidden_tp, properties.overlaps_tp),
        }
    }

    /// Returns what the recipes of a software switch for a model on a GPU type in a precision.
    pub(crate) fn of_recipes(stack: Stack, model: &str, gpu: &str, dtype: Dtype) -> Switches {
        // A user's own GPU type is written as h100:hbm_gb=96.
        let gpu = gpu.split(':').next().unwrap_or(gpu);
        let names = |row: &&SwitchRow| {
            row.model == model
                && has(&row.stacks, stack.id())
                && (row.gpus.is_empty() || has(&row.gpus, gpu))
                && (row.precisions.is_empty() || has(&row.precisions, dtype.id()))
        };
        let Some(row) = SwitchRow::all().iter().find(names) else { return Switches::default() };
        let switch = |name: &str| has(&row.on, name).then_some(true).or(has(&row.off, name).then_some(false));
        Switches {
            graphs: switch("graphs"),
            hidden_experts: switch("hidden_experts"),
            sent_once: switch("sent_once"),
            hidden_tp: switch("hidden_tp"),
        }
    }
}

/// Returns whether a list of words has one.
fn has(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// A line of `recipe_switches.csv`. Its lists stay text, which makes programs for the browser smaller; a test reads them.
struct SwitchRow {
    stacks: String,
    model: String,
    gpus: String,
    precisions: String,
    on: String,
    off: String,
}

impl SwitchRow {
    fn all() -> &'static [SwitchRow] {
        static ROWS: LazyLock<Vec<SwitchRow>> = LazyLock::new(|| embedded!("recipe_switches.csv"));
        &ROWS
    }
}

impl FromRow for SwitchRow {
    fn from_row(row: &Row<'_>) -> Result<SwitchRow, DataError> {
        Ok(SwitchRow {
            stacks: row.string("stacks")?,
            model: row.string("model")?,
            gpus: row.string("gpus")?,
            precisions: row.string("precisions")?,
            on: row.string("on")?,
            off: row.string("off")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn the_first_line_of_a_model_that_names_gpu_and_precision_counts() {
        let of = |model, gpu, dtype| Switches::of_recipes(Stack::Bridge2606, model, gpu, dtype);
        let without_graphs = Switches { graphs: Some(false), ..Switches::default() };
        assert_eq!(of("llama3.1-405b", "h100", Dtype::Bf16), without_graphs);
        let of_nvfp4 = Switches { hidden_tp: Some(false), ..without_graphs };
        assert_eq!(of("llama3.1-405b", "gb300", Dtype::Nvfp4), of_nvfp4);
        // A line without switches keeps the defaults from the lines below.
        assert_eq!(of("llama3.1-70b", "b200", Dtype::Bf16), Switches::default());
        assert_eq!(of("llama3.1-405b", "h100:hbm_gb=96", Dtype::Bf16), without_graphs);
        assert_eq!(of("an-unknown-model", "h100", Dtype::Bf16), Switches::default());
        assert_eq!(
            Switches::of_recipes(Stack::Nemo2, "llama3.1-405b", "h100", Dtype::Bf16),
            Switches::default()
        );
    }

    #[test]
    fn every_line_names_what_exists() {
        let catalog = Catalog::embedded();
        let switches = ["graphs", "hidden_experts", "sent_once", "hidden_tp"];
        let words = |text: &'static str| text.split(' ').filter(|word| !word.is_empty());
        for row in SwitchRow::all() {
            assert!(catalog.model(&row.model).is_ok(), "{}", row.model);
            assert!(words(&row.stacks).all(|stack| stack.parse::<Stack>().is_ok()), "{}", row.stacks);
            assert!(words(&row.gpus).all(|gpu| catalog.gpu(gpu).is_ok()), "{}", row.gpus);
            assert!(words(&row.precisions).all(|dtype| dtype.parse::<Dtype>().is_ok()), "{}", row.precisions);
            assert!(words(&row.on).chain(words(&row.off)).all(|name| switches.contains(&name)), "{}", row.on);
        }
    }

    #[test]
    fn software_switches_nothing_on_that_it_cannot_do() {
        let on = Switches {
            graphs: Some(true),
            hidden_experts: Some(true),
            sent_once: Some(true),
            hidden_tp: Some(true),
        };
        assert_eq!(on.within(Stack::Bridge2606.properties()), on);
        assert_eq!(on.within(Stack::Pytorch.properties()), Switches::default());
        let off = Switches { graphs: Some(false), ..Switches::default() };
        assert_eq!(off.within(Stack::Pytorch.properties()), off);
    }
}
