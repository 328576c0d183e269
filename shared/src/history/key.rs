//! What the runs of a time line have in common, and its label.

use crate::catalog::Catalog;
use crate::field::Field;
use crate::link;
use crate::stack::Software;
use serde::{Deserialize, Serialize};

/// What the runs of a time line have in common. Null values are unknown for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimeLineKey {
    /// The published recipe.
    pub recipe: Option<String>,
    /// The scenario of runs without a recipe, as the query of a share link.
    pub scenario: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The GPU type.
    pub gpu: Option<String>,
    /// The number of GPUs.
    pub gpus: Option<u32>,
    /// The precision.
    pub dtype: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
}

impl TimeLineKey {
    /// Returns whether the runs are known to have the same scenario.
    #[must_use]
    pub fn is_one_scenario(&self) -> bool {
        self.recipe.is_some() || self.scenario.is_some()
    }

    /// Returns the label of the time line. Runs without a recipe are named after what they ran, such as
    /// `llama3.1-8b/h100/fp8/8@25.04, GBS 64`.
    #[must_use]
    pub fn label(&self) -> String {
        let own = || readable(self.scenario.as_deref().unwrap_or_default());
        let what = self.recipe.clone().unwrap_or_else(own);
        match &self.cluster {
            Some(cluster) => format!("{what} on {cluster}"),
            None => what,
        }
    }
}

/// Returns a scenario as its values with their labels. The query of a newer program, whose fields are all unknown, is returned
/// unchanged.
fn readable(scenario: &str) -> String {
    let value = |(field, text): (Field, &str)| match field {
        Field::Recipe => text.to_owned(),
        Field::Model => Catalog::embedded().model_label(text),
        Field::Stack => text.parse().map_or_else(|_| text.to_owned(), |software: Software| software.title()),
        _ => format!("{} {text}", field.label()),
    };
    let values: Vec<String> = link::read(scenario).spec.iter().map(value).collect();
    match values.is_empty() {
        true => scenario.to_owned(),
        false => values.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_line_without_a_recipe_is_labelled_by_what_it_ran() {
        let label = |recipe: Option<&str>, scenario: Option<&str>| {
            let key = TimeLineKey {
                recipe: recipe.map(str::to_owned),
                scenario: scenario.map(str::to_owned),
                cluster: Some("eos".into()),
                ..TimeLineKey::default()
            };
            key.label()
        };
        assert_eq!(
            label(None, Some("v=1&r=llama3.1-405b/h100/fp8/512@25.04&n=256&gbs=128")),
            "llama3.1-405b/h100/fp8/512@25.04, GPUs 256, GBS 128 on eos"
        );
        let model = "own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,\
                     tied_embeddings=0,seq_len=8192";
        let own = format!("v=1&m={model}&n=256&stack=megatron-lm-0.14:overlaps_tp=yes");
        assert_eq!(
            label(None, Some(&own)),
            "custom model, 8.03B, GPUs 256, Megatron-LM 0.14 with overlaps_tp=yes on eos"
        );
        let recipe = "llama3.1-8b/h100/fp8/8@25.04";
        assert_eq!(label(Some(recipe), None), "llama3.1-8b/h100/fp8/8@25.04 on eos");
        assert_eq!(label(None, Some("v=9")), "v=9 on eos");
    }
}
