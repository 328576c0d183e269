//! Words why a log of a known model matches no recipe.

use super::facts::{GBS, GPUS};
use super::values::{is_precision_of, value};
use crate::catalog::{Catalog, Model, Recipe};
use crate::field::Field;
use crate::precision::Dtype;
use crate::problem::all_of;
use crate::releases::{BridgeModel, Release};
use crate::sorting::sorted;

/// A log of a model that matches no recipe.
pub(super) struct Unmatched<'a> {
    pub(super) model: &'a Model,
    pub(super) release: Option<Release>,
    /// The experiment in the log's name.
    pub(super) experiment: &'a str,
    /// The known numbers, in the order of [`super::facts::LogFacts::numbers`].
    pub(super) wanted: &'a [(Field, Option<u32>)],
    pub(super) dtype: Option<Dtype>,
}

impl Unmatched<'_> {
    /// The most recipes that are named.
    const MOST_NAMED: usize = 3;

    /// Returns why the log matches no recipe, which ones are nearest, and what to set, as sentences.
    pub(super) fn text(&self) -> String {
        let title = &self.model.title;
        let nearest = self.nearest();
        let why = match (self.release, self.named_otherwise(&nearest)) {
            (Some(release), _) => format!("release {release} has no recipe for this model"),
            (None, Some(how)) => how,
            (None, None) => "its name and format match no known release".to_owned(),
        };
        let is_unknown = |place: usize| self.wanted.get(place).is_none_or(|(_, number)| number.is_none());
        let needed = [(true, "GPU type"), (is_unknown(GPUS), "GPU count"), (is_unknown(GBS), "GBS")];
        let missing: Vec<&str> =
            needed.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| what).collect();
        format!(
            "Couldn't match this {title} log to a recipe: {why}.{} Set the recipe, or the {}, which the log lacks.",
            self.named(&nearest),
            all_of(&missing)
        )
    }

    /// Returns the recipes of the model, those with the fewest differences from the log first.
    fn nearest(&self) -> Vec<&'static Recipe> {
        let of_model = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.model == self.model.id);
        let of_model: Vec<(usize, &Recipe)> =
            of_model.map(|recipe| (self.differences(recipe).len(), recipe)).collect();
        let nearest = sorted(&of_model, |(one, _), (other, _)| one.cmp(other));
        nearest.into_iter().map(|(_, recipe)| recipe).collect()
    }

    /// Returns how the log's name differs from the names of the nearest recipe whose release uses this form of names; none if
    /// no release does.
    fn named_otherwise(&self, nearest: &[&Recipe]) -> Option<String> {
        nearest.iter().find_map(|recipe| {
            let release = recipe.id.release;
            let beginning = BridgeModel::of(release, &self.model.id)?.missed_beginning(self.experiment)?;
            let as_long = self.experiment.split('_').take(beginning.matches('_').count());
            let own = as_long.collect::<Vec<_>>().join("_");
            Some(format!(
                "release {release} names jobs of this model \"{beginning}…\", but this name begins with \"{own}\""
            ))
        })
    }

    /// Returns a sentence that names the first of these recipes, with their differences from the log; nothing if there are none.
    fn named(&self, nearest: &[&Recipe]) -> String {
        let name = |recipe: &&Recipe| match self.differences(recipe).as_slice() {
            [] => recipe.id.to_string(),
            some => format!("{} ({})", recipe.id, some.join(", ")),
        };
        let named: Vec<String> = nearest.iter().take(Self::MOST_NAMED).map(name).collect();
        if named.is_empty() { String::new() } else { format!(" Nearest: {}.", named.join("; ")) }
    }

    /// Returns the fields in which a recipe differs from what is known of the log: `GPUs 8 instead of 16`.
    fn differences(&self, recipe: &Recipe) -> Vec<String> {
        let numbers = self.wanted.iter().filter_map(|(field, number)| {
            let (own, wanted) = (value(recipe, *field), (*number)?);
            (own != wanted).then(|| format!("{} {own} instead of {wanted}", field.label()))
        });
        let dtype = self.dtype.filter(|dtype| !is_precision_of(recipe, *dtype));
        let dtype =
            dtype.map(|dtype| format!("{} {} instead of {dtype}", Field::Dtype.label(), recipe.id.dtype));
        numbers.chain(dtype).collect()
    }
}
