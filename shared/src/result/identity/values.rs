//! Compares single values of a log with those of a recipe or of the user.

use crate::catalog::Recipe;
use crate::field::Field;
use crate::layout::PipelineSplit;
use crate::options::Modules;
use crate::precision::Dtype;

/// Returns whether a log's precision is a recipe's: that of its id, or the one that its script runs.
pub(super) fn is_precision_of(recipe: &Recipe, told: Dtype) -> bool {
    [recipe.id.dtype, recipe.runs()].contains(&told)
}

/// Returns whether a precision is what FP8 without a named scaling can mean.
pub(super) fn is_kind_of(told: Dtype, meant: Dtype) -> bool {
    meant == Dtype::Fp8 && matches!(told, Dtype::Fp8Delayed | Dtype::Fp8Current)
}

/// Returns a recipe's value of an option that [`super::arguments::options`] can return, as text.
pub(super) fn option(recipe: &Recipe, field: Field) -> String {
    match field {
        Field::Recompute => recipe.recompute.to_string(),
        Field::RecomputeModules => recipe.modules.to_string(),
        Field::PipelineSplit => recipe.degrees.split.to_string(),
        _ => if recipe.fsdp { "on" } else { "off" }.to_owned(),
    }
}

/// Returns whether two texts are the same value of an option. Lists of modules may have any order, and lists may have spaces.
pub(super) fn is_same_option(field: Field, one: &str, other: &str) -> bool {
    let modules = |text: &str| text.parse::<Modules>().ok();
    let split = |text: &str| text.parse::<PipelineSplit>().ok();
    one == other
        || field == Field::RecomputeModules && modules(one) == modules(other)
        || field == Field::PipelineSplit && split(one) == split(other)
}

/// The recipe's value of a number that [`super::facts::LogFacts`] lists.
pub(super) fn value(recipe: &Recipe, field: Field) -> u32 {
    let degrees = &recipe.degrees;
    match field {
        Field::Gpus => degrees.gpus,
        Field::Gbs => recipe.gbs,
        Field::Tp => degrees.tp,
        Field::Pp => degrees.pp,
        Field::Cp => degrees.cp,
        Field::Vp => degrees.vp,
        Field::Ep => degrees.ep,
        Field::ExpertTp => degrees.expert_tp,
        Field::SeqLen => recipe.seq_len,
        Field::Layers => recipe.layers,
        _ => recipe.mbs,
    }
}
