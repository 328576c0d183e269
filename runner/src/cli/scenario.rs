//! The flags that describe a scenario, the same for every command.

use super::fields::field_args;
use super::note;
use super::stack_file::with_files;
use std::path::Path;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

field_args! {
    /// The flags that describe a scenario and how its FLOPs are counted.
    ScenarioArgs, "Scenario",
    Field::of_group(FieldGroup::Scenario).chain(Field::of_group(FieldGroup::Counting))
}

impl ScenarioArgs {
    /// Returns what was typed, with the files of an own model and stack as texts and a short recipe id in full, which a note reports.
    ///
    /// # Errors
    /// The recipe is unknown, or a file can't be used.
    pub(super) fn spec(&self) -> Result<Spec, Problem> {
        let mut spec = with_files(self.0.clone(), Path::new(""))?;
        if let Some(short) = spec.get(Field::Recipe).filter(|id| !id.contains('@')) {
            let recipe = Catalog::embedded().recipe(short)?;
            let why = match Catalog::embedded().baseline(&recipe.id) {
                Some(_) => "with a published result",
                None => "that lists it",
            };
            note(&format!("using {}, from the newest release {why}", recipe.id));
            let full = recipe.id.to_string();
            spec.set(Field::Recipe, full);
        }
        Ok(spec)
    }
}
