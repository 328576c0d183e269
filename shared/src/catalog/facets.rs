//! Chooses a recipe by model, GPU and so on. Each choice selects the recipe that agrees best with the previous one,
//! so there always is one.

use super::{Catalog, Recipe, RecipeId};
use crate::choices::choices;
use crate::units::significant;
use std::cmp::{Ordering, Reverse};

choices! {
    /// A property that distinguishes recipes, the most important first.
    Facet {
        /// The model.
        Model "model",
        /// GPU type.
        Gpu "gpu",
        /// Precision.
        Dtype "dtype",
        /// Weak or strong scaling.
        Scaling "scaling",
        /// GPU count, with the variant.
        Gpus "gpus",
        /// Release.
        Release "release",
    }
}

/// A value of a facet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetValue {
    /// The value in a recipe's id.
    pub value: String,
    /// The name for people.
    pub title: String,
}

impl Facet {
    /// Returns the recipe's value.
    pub fn value(self, id: &RecipeId) -> String {
        match self {
            Facet::Model => id.model.clone(),
            Facet::Gpu => id.gpu.clone(),
            Facet::Dtype => id.dtype.to_string(),
            Facet::Scaling => if id.strong { "strong" } else { "weak" }.to_string(),
            Facet::Gpus => id.scale(),
            Facet::Release => id.release.to_string(),
        }
    }

    fn value_title(self, catalog: &Catalog, recipe: &Recipe) -> String {
        let id = &recipe.id;
        match self {
            Facet::Model => catalog.model(&id.model).map_or(id.model.clone(), |model| model.title.clone()),
            Facet::Gpu => catalog.gpu(&id.gpu).map_or(id.gpu.clone(), |gpu| gpu.name.clone()),
            Facet::Dtype => id.dtype.title().to_string(),
            Facet::Gpus if catalog.is_proxy(recipe) => {
                format!("{} (proxy, {} layers)", id.gpus, recipe.layers)
            }
            Facet::Scaling | Facet::Gpus | Facet::Release => self.value(id),
        }
    }
}

impl Catalog {
    /// Whether a recipe has fewer layers than its model.
    pub fn is_proxy(&self, recipe: &Recipe) -> bool {
        self.model(&recipe.id.model).is_ok_and(|model| model.architecture.layers != recipe.layers)
    }

    /// The values that a facet takes among the recipes that agree with `current` in every stronger facet.
    pub fn choices(&self, current: &RecipeId, facet: Facet) -> Vec<FacetValue> {
        let stronger = Facet::ALL.into_iter().take_while(|stronger| *stronger != facet);
        let stronger: Vec<(Facet, String)> = stronger.map(|facet| (facet, facet.value(current))).collect();
        let mut choices: Vec<FacetValue> = Vec::new();
        for recipe in self.recipes() {
            let agrees = stronger.iter().all(|(facet, value)| facet.value(&recipe.id) == *value);
            let value = facet.value(&recipe.id);
            if agrees && !choices.iter().any(|choice| choice.value == value) {
                choices.push(FacetValue { title: facet.value_title(self, recipe), value });
            }
        }
        // Counts grow, the newest release comes first; the others stand as the documents list them.
        choices.sort_by(|a, b| match facet {
            Facet::Gpus => {
                let gpus = |value: &str| value.split('+').next().and_then(|gpus| gpus.parse::<u32>().ok());
                gpus(&a.value).cmp(&gpus(&b.value)).then_with(|| a.value.cmp(&b.value))
            }
            Facet::Release => b.value.cmp(&a.value),
            Facet::Model => a.title.cmp(&b.title),
            Facet::Gpu | Facet::Dtype | Facet::Scaling => Ordering::Equal,
        });
        choices
    }

    /// The recipe with that value that agrees best with `current`: in the strongest facets first, then the one
    /// with a published number, the nearest GPU count and the newest release.
    pub fn choose(&self, current: &RecipeId, facet: Facet, value: &str) -> Option<&Recipe> {
        let agreement = |recipe: &Recipe| {
            let agrees = Facet::ALL.map(|facet| facet.value(&recipe.id) == facet.value(current));
            let distance = recipe.id.gpus.abs_diff(current.gpus);
            let [model, gpu, dtype, scaling, gpus, release] = agrees;
            (
                [model, gpu, dtype, scaling, gpus],
                !self.is_proxy(recipe),
                recipe.id.variant.is_none(),
                self.is_measured(&recipe.id),
                release,
                Reverse(distance),
                recipe.id.release,
            )
        };
        self.recipes()
            .iter()
            .filter(|recipe| facet.value(&recipe.id) == value)
            .max_by_key(|recipe| agreement(recipe))
    }

    /// A recipe in words: "Llama 3.1 405B on 512 × H100, FP8".
    pub fn title(&self, id: &RecipeId) -> String {
        let model = self.model(&id.model).map_or(id.model.as_str(), |model| &model.title);
        let gpu = self.gpu(&id.gpu).map_or(id.gpu.as_str(), |gpu| &gpu.name);
        let variant = id.variant.as_ref().map_or(String::new(), |variant| format!(", {variant}"));
        format!("{model} on {} × {gpu}, {}{variant}", significant(f64::from(id.gpus), 9), id.dtype.title())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RecipeId {
        Catalog::embedded().recipe(text).unwrap().id.clone()
    }

    fn chosen(from: &str, facet: Facet, value: &str) -> String {
        Catalog::embedded().choose(&id(from), facet, value).unwrap().id.to_string()
    }

    #[test]
    fn choosing_keeps_what_can_be_kept() {
        let from = "llama3.1-405b/h100/fp8/512@25.04";
        assert_eq!(chosen(from, Facet::Gpus, "1024"), "llama3.1-405b/h100/fp8/1024@25.04");
        assert_eq!(chosen(from, Facet::Dtype, "bf16"), "llama3.1-405b/h100/bf16/512@25.04");
        assert_eq!(chosen(from, Facet::Model, "llama3.1-8b"), "llama3.1-8b/h100/fp8/128@25.04");
        assert_eq!(chosen(from, Facet::Model, "nemotron4-340b"), "nemotron4-340b/h100/fp8/512@25.04");
        assert_eq!(chosen(from, Facet::Gpu, "gb200"), "llama3.1-405b/gb200/fp8/512@26.06.01");
    }

    #[test]
    fn choices_are_those_of_the_stronger_facets() {
        let catalog = Catalog::embedded();
        let values = |from: &str, facet| {
            let choices = catalog.choices(&id(from), facet);
            choices.into_iter().map(|choice| choice.value).collect::<Vec<_>>()
        };
        let from = "llama3.1-405b/h100/fp8/512@25.04";
        assert_eq!(values(from, Facet::Model).len(), 15);
        assert_eq!(values(from, Facet::Gpus), ["32", "64", "128", "512", "1024", "2048"]);
        assert_eq!(catalog.choices(&id(from), Facet::Gpus)[0].title, "32 (proxy, 8 layers)");
        assert_eq!(values("nemotron4-340b/h100/fp8/256@25.04", Facet::Release), ["25.12", "25.04", "24.11"]);
        assert_eq!(values("nemotron4-340b/b200/fp8/256@25.12", Facet::Scaling), ["weak", "strong"]);
    }

    #[test]
    fn every_choice_leads_to_a_recipe() {
        let catalog = Catalog::embedded();
        for recipe in catalog.recipes() {
            for facet in Facet::ALL {
                for choice in catalog.choices(&recipe.id, facet) {
                    assert!(catalog.choose(&recipe.id, facet, &choice.value).is_some());
                }
                let same = catalog.choose(&recipe.id, facet, &facet.value(&recipe.id)).unwrap();
                assert_eq!(same.id.without_release(), recipe.id.without_release());
            }
        }
    }

    #[test]
    fn a_title_reads_as_people_say_it() {
        let title = Catalog::embedded().title(&id("llama3.1-405b/h100/fp8/512@25.04"));
        assert_eq!(title, "Llama 3.1 405B on 512 × H100, FP8");
    }
}
