//! A user's own models and GPUs: `column=value` pairs with the columns of the data files, short enough for links and
//! flags. Each has one normal form, which is its id.

mod gpu;
mod model;

use super::{Catalog, Gpu, Model};
use crate::problem::Problem;
use std::borrow::Cow;

impl Catalog {
    /// Returns the model with this id, or the user's own model: `own:layers=32,hidden=4096,…`.
    ///
    /// # Errors
    /// Those of [`Catalog::model`] and [`Model::own`].
    pub fn model_or_own(&'static self, text: &str) -> Result<Cow<'static, Model>, Problem> {
        match text.trim().starts_with(model::PREFIX) {
            true => Model::own(text).map(Cow::Owned),
            false => self.model(text).map(Cow::Borrowed),
        }
    }

    /// Returns how people call the model with this id: its id, or the title of a user's own model.
    pub(crate) fn model_label(&'static self, text: &str) -> String {
        match self.model_or_own(text) {
            Ok(own) if own.id.starts_with(model::PREFIX) => own.title.clone(),
            _ => text.to_owned(),
        }
    }

    /// Returns the GPU type with this id or alias, or the user's own: `h100:hbm_gb=96`.
    ///
    /// # Errors
    /// Those of [`Catalog::gpu`] and [`Gpu::own`].
    pub fn gpu_or_own(&'static self, text: &str) -> Result<Cow<'static, Gpu>, Problem> {
        match text.contains(':') {
            true => Gpu::own(text, self).map(Cow::Owned),
            false => self.gpu(text).map(Cow::Borrowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;
    use crate::field::Field;
    use crate::link;
    use crate::spec::Spec;

    #[test]
    fn own_texts_travel_in_links_and_make_scenarios() {
        let model = "own:title=Mine%2C+all+mine,layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,\
                     vocab=128256,gated=1,tied_embeddings=0,seq_len=8192";
        let typed =
            [(Field::Model, model), (Field::Gpu, "h100:hbm_gb=96"), (Field::Gpus, "8"), (Field::Gbs, "128")];
        let spec = typed.into_iter().fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
        let spec = link::read(&link::write(&spec)).spec;
        let scenario = spec.scenario().unwrap();
        assert_eq!((scenario.model.id.as_str(), scenario.model.title.as_str()), (model, "Mine, all mine"));
        assert_eq!((scenario.gpu.id.as_str(), scenario.gpu.hbm_gb), ("h100:hbm_gb=96", 96.0));
        assert_eq!(spec.with(Field::Layers, "16").scenario().unwrap().architecture.layers, 16);
    }

    #[test]
    fn a_model_with_a_known_architecture_is_trained_as_fast_as_that_one() {
        let known = Catalog::embedded().model("qwen3-30b-a3b").unwrap();
        let seconds = |model: &str| {
            let typed = [
                (Field::Model, model),
                (Field::Gpu, "h100"),
                (Field::Gpus, "256"),
                (Field::Ep, "16"),
                (Field::Mbs, "2"),
                (Field::Gbs, "2048"),
                (Field::SeqLen, "4096"),
            ];
            let spec = typed.into_iter().fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
            spec.estimate().unwrap().estimate.step_time_s
        };
        assert_eq!(seconds(&known.to_text()), seconds(&known.id));
    }

    #[test]
    fn both_mistakes_are_named_at_once() {
        let spec = Spec::default().with(Field::Model, "own:layers=x").with(Field::Gpu, "h100:hbm_gb=x");
        let problems = spec.scenario().unwrap_err();
        let given: Vec<&str> = problems.iter().map(|problem| problem.given.as_str()).collect();
        assert_eq!(given[..2], ["layers=x", "hbm_gb=x"]);
    }
}
