//! Where a release's README prints other values for a recipe than its script runs: `data/launch_readme.csv`.

use super::forced::is_forced;
use super::plan::LaunchPlan;
use crate::catalog::{RecipeId, Release};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::message::{Message, Setting};
use crate::precision::Dtype;
use std::sync::LazyLock;

/// What a README says of recipes that differ in the number of GPUs only, where that isn't what runs.
#[derive(Debug)]
struct ReadmeRow {
    release: Release,
    model: String,
    gpu: String,
    precision: Dtype,
    gpus: Vec<u32>,
    /// The values that differ, by the fields that set them; empty if the README has no row for the recipes.
    printed: Vec<(Field, String)>,
    /// The file, with the line if there is one.
    source: String,
}

impl ReadmeRow {
    fn of(id: &RecipeId) -> Option<&'static ReadmeRow> {
        static ROWS: LazyLock<Vec<ReadmeRow>> = LazyLock::new(|| embedded!("launch_readme.csv"));
        ROWS.iter().find(|row| {
            (row.release, &row.model, &row.gpu, row.precision) == (id.release, &id.model, &id.gpu, id.dtype)
                && row.gpus.contains(&id.gpus)
        })
    }
}

impl FromRow for ReadmeRow {
    fn from_row(row: &Row<'_>) -> Result<ReadmeRow, DataError> {
        let pair = |word: &str| {
            let (flag, value) = word.split_once('=')?;
            Some((Field::from_flag(flag)?, value.to_owned()))
        };
        let printed = row.text("printed")?.split_whitespace().map(|word| {
            pair(word).ok_or_else(|| row.error(format!("\"{word}\" in the column printed sets no field")))
        });
        Ok(ReadmeRow {
            release: row.value("release")?,
            model: row.string("model")?,
            gpu: row.string("gpu")?,
            precision: row.value("precision")?,
            gpus: row.list("gpus")?,
            printed: printed.collect::<Result<_, _>>()?,
            source: row.string("source")?,
        })
    }
}

/// Returns what the README prints for a plan's recipe, where the script runs another value: `mbs=2`.
pub(super) fn printed(plan: &LaunchPlan) -> Vec<String> {
    let printed = ReadmeRow::of(&plan.recipe_id()).map_or(&[][..], |row| &row.printed);
    printed.iter().map(|(field, value)| format!("{}={value}", field.flag())).collect()
}

/// Returns how the README differs from what a plan runs: sentences. `None` if it doesn't.
pub(super) fn difference(plan: &LaunchPlan) -> Option<Message> {
    let row = ReadmeRow::of(&plan.recipe_id())?;
    let readme = format!("The README of release {} ({})", row.release, row.source);
    if row.printed.is_empty() {
        let text = "has no row for this recipe. The release's metadata offers it, and its script runs it.";
        return Some(format!("{readme} {text}").into());
    }
    // Leaves out what the user set.
    let taken = plan.target.taken(plan.scenario);
    let fixed = row.printed.iter().filter(|(field, _)| taken.iter().all(|(set, _)| set != field));
    let (printed, runs): (Vec<_>, Vec<_>) = fixed
        .filter_map(|(field, value)| {
            let runs = plan.scenario.value(*field)?;
            Some((Setting::new(*field, value), Setting::new(*field, runs)))
        })
        .unzip();
    let who = match runs.iter().all(|setting| is_forced(&plan.target.recipe.id, setting.field)) {
        true => "its script sets ",
        false => "Megatron-Bridge's configuration, from which its script starts, sets ",
    };
    let list = |settings: Vec<Setting>| {
        settings.into_iter().map(Message::from).reduce(|list, setting| list.and(", ").and(setting))
    };
    let (printed, runs) = (list(printed)?, list(runs)?);
    let text = Message::from(format!("{readme} lists ")).and(printed).and(" for this recipe, but ");
    Some(text.and(who).and(runs).and("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn readmes_differ_for_22_recipes() {
        let all = Catalog::embedded().recipes().iter();
        let rows: Vec<_> = all.filter_map(|recipe| Some((recipe, ReadmeRow::of(&recipe.id)?))).collect();
        let without = rows.iter().filter(|(_, row)| row.printed.is_empty()).count();
        assert_eq!((rows.len() - without, without), (13, 9));
        let listed: Vec<ReadmeRow> = embedded!("launch_readme.csv");
        assert_eq!(listed.iter().map(|row| row.gpus.len()).sum::<usize>(), rows.len());
        for (recipe, row) in rows {
            for (field, printed) in &row.printed {
                let runs = match field {
                    Field::Pp => recipe.degrees.pp,
                    Field::Cp => recipe.degrees.cp,
                    Field::Vp => recipe.degrees.vp,
                    Field::Ep => recipe.degrees.ep,
                    Field::Mbs => recipe.mbs,
                    other => panic!("{other:?} is not compared"),
                };
                assert_ne!(*printed, runs.to_string(), "{}", recipe.id);
            }
        }
    }
}
