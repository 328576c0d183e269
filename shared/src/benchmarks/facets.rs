//! Facets of benchmarks: the values of their filters, with the number of runs for each value.

use super::{Benchmark, ModelKind, PrecisionFamily, release_date};
use crate::catalog::{Catalog, Collection, measured_model_title};
use crate::choices::choices;
use crate::field::Field;
use crate::precision::Dtype;
use crate::releases::Release;
use std::collections::BTreeMap;

choices! {
    /// A property that filters benchmarks.
    BenchmarkFacet {
        /// The model.
        Model "m" "Model",
        /// The GPU type.
        Gpu "gpu" "GPU type",
        /// The number of GPUs.
        Gpus "n" "GPU count",
        /// The family of the precision.
        Precision "d" "Precision",
        /// The collection.
        Source "src" "Source",
        /// The release of the collection or of the software.
        Release "rel" "Release",
        /// The series of a recipe: weak or strong scaling.
        Series "scal" "Recipe series",
        /// Whether somebody measured it.
        Measured "meas" "Measured",
        /// The kind of the model: named, an unnamed shape, or tiny.
        Kind "kind" "Kind of model",
    }
}

impl BenchmarkFacet {
    /// Returns the field whose text in the address is the selection; none if the page has its own key for it.
    pub const fn field(self) -> Option<Field> {
        match self {
            BenchmarkFacet::Model => Some(Field::Model),
            BenchmarkFacet::Gpu => Some(Field::Gpu),
            BenchmarkFacet::Gpus => Some(Field::Gpus),
            BenchmarkFacet::Precision => Some(Field::Dtype),
            BenchmarkFacet::Source | BenchmarkFacet::Kind => None,
            BenchmarkFacet::Release => Some(Field::Release),
            BenchmarkFacet::Series => Some(Field::Scaling),
            BenchmarkFacet::Measured => Some(Field::Measured),
        }
    }

    /// Returns the values of a benchmark: one, or none if the facet does not apply to it. The reference of another collection's
    /// recipe has two sources and releases.
    fn values(self, benchmark: &Benchmark) -> Vec<String> {
        let value = match self {
            BenchmarkFacet::Model => Some(benchmark.model.clone()),
            BenchmarkFacet::Gpu => Some(benchmark.gpu.clone()),
            BenchmarkFacet::Gpus => Some(benchmark.gpus.to_string()),
            BenchmarkFacet::Precision => Some(benchmark.precision.family().id().to_string()),
            BenchmarkFacet::Source => {
                let mut sources: Vec<String> =
                    benchmark.origins().into_iter().map(|(source, _)| source.to_string()).collect();
                sources.dedup();
                return sources;
            }
            BenchmarkFacet::Release => {
                let origins = benchmark.origins().into_iter();
                return origins.map(|(source, release)| release_value(source, release)).collect();
            }
            BenchmarkFacet::Series => {
                let scaling = benchmark.recipe.and_then(|recipe| recipe.scaling);
                scaling.map(|scaling| scaling.id().to_string())
            }
            BenchmarkFacet::Kind => Some(benchmark.model_kind().id().to_string()),
            BenchmarkFacet::Measured => {
                Some(if benchmark.step_time_s.is_some() { YES } else { NO }.to_string())
            }
        };
        value.into_iter().collect()
    }

    /// Returns the name of a value for people.
    fn value_title(self, value: &str) -> String {
        match self {
            BenchmarkFacet::Model => measured_model_title(value).to_string(),
            BenchmarkFacet::Gpu => {
                Catalog::embedded().gpu(value).map_or(value.to_string(), |gpu| gpu.name.clone())
            }
            BenchmarkFacet::Precision => {
                let family = PrecisionFamily::ALL.into_iter().find(|family| family.id() == value);
                family.map_or_else(|| value.to_string(), |family| family.title().to_string())
            }
            BenchmarkFacet::Source => {
                Collection::of(value).map_or(value.to_string(), |source| source.title.clone())
            }
            BenchmarkFacet::Kind => {
                let kind = ModelKind::ALL.into_iter().find(|kind| kind.id() == value);
                kind.map_or_else(|| value.to_string(), |kind| kind.title().to_string())
            }
            BenchmarkFacet::Measured if value == YES => "measured".to_string(),
            BenchmarkFacet::Measured => "recipe only".to_string(),
            BenchmarkFacet::Release => release_title(value),
            BenchmarkFacet::Gpus | BenchmarkFacet::Series => value.to_string(),
        }
    }

    /// Returns the values that a text of a link selects: the value itself, another name of it, every model that begins with it, or
    /// every collection's release of that name.
    fn selects<'a>(self, text: &str, known: &'a [String]) -> Vec<&'a String> {
        let wanted = text.trim().to_ascii_lowercase();
        let other_name = match self {
            BenchmarkFacet::Gpu => Catalog::embedded().gpu(&wanted).ok().map(|gpu| gpu.id.clone()),
            BenchmarkFacet::Precision => wanted
                .parse::<Dtype>()
                .ok()
                .map(|dtype| super::RunPrecision::Known(dtype).family().id().to_string()),
            // Also reads `latest`.
            BenchmarkFacet::Release => wanted.parse::<Release>().ok().map(|release| release.to_string()),
            _ => None,
        };
        let exact = other_name.unwrap_or_else(|| wanted.clone());
        match known.iter().find(|value| value.eq_ignore_ascii_case(&exact)) {
            Some(value) => vec![value],
            None if self == BenchmarkFacet::Model && !wanted.is_empty() => {
                known.iter().filter(|value| value.starts_with(&wanted)).collect()
            }
            None if self == BenchmarkFacet::Release => {
                known.iter().filter(|value| release_name(value).eq_ignore_ascii_case(&wanted)).collect()
            }
            None => Vec::new(),
        }
    }
}

/// Between the source and the release of a release's value.
const OF_RELEASE: char = '@';

/// Returns the value of a collection's release: `26.06.01` for a release of recipes, as in the names of recipes, and
/// `megatron-bridge@26.06.01` for another one, which may have the same name.
fn release_value(source: &str, release: &str) -> String {
    match release_of_recipes(release).is_some_and(|known| known.software().measured.0 == source) {
        true => release.to_string(),
        false => format!("{source}{OF_RELEASE}{release}"),
    }
}

/// Returns the name of a release from its value.
fn release_name(value: &str) -> &str {
    value.split_once(OF_RELEASE).map_or(value, |(_, release)| release)
}

/// Returns the name of a release's value for people, with its collection.
fn release_title(value: &str) -> String {
    match (value.split_once(OF_RELEASE), release_of_recipes(value)) {
        (Some((source, release)), _) => Collection::with_release(source, release),
        (None, Some(release)) => Collection::with_release(release.software().measured.0, value),
        (None, None) => value.to_string(),
    }
}

fn release_of_recipes(name: &str) -> Option<Release> {
    Release::ALL.into_iter().find(|release| release.id() == name)
}

/// The value of a measured run.
const YES: &str = "yes";
/// The value of a recipe that nobody measured.
const NO: &str = "no";

/// The text that selects every kind of model.
const ALL_KINDS: &str = "all";

/// Returns the selection of [`BenchmarkFacet::Kind`] where none is given: the models that people know.
fn usual_kinds() -> Vec<String> {
    vec![ModelKind::Named.id().to_string()]
}

/// A value of a facet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetCount {
    /// The value in links.
    pub value: String,
    /// The name for people.
    pub title: String,
    /// The number of benchmarks with the value that the other facets select.
    pub count: usize,
    /// Whether it is selected.
    pub is_selected: bool,
}

/// A selection of benchmarks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BenchmarkFilter {
    /// The selected values of each facet; every value if none is selected.
    selected: BTreeMap<BenchmarkFacet, Vec<String>>,
}

impl BenchmarkFilter {
    /// Reads the selection of each facet from its text, which lists values with commas between them. Also returns the texts
    /// that select nothing, with the known values of their facet.
    ///
    /// Without a text for the kind of model, only named models are selected, unless a text names another model, or a source
    /// without named models.
    pub fn read(
        rows: &[Benchmark],
        text: impl Fn(BenchmarkFacet) -> String,
    ) -> (BenchmarkFilter, Vec<(BenchmarkFacet, String, Vec<String>)>) {
        let mut filter = BenchmarkFilter::default();
        let mut unknown = Vec::new();
        for facet in BenchmarkFacet::ALL {
            let text = text(facet);
            if facet == BenchmarkFacet::Kind && text.trim() == ALL_KINDS {
                continue;
            }
            let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
            let mut known: Option<Vec<String>> = None;
            for text in texts {
                let known = known.get_or_insert_with(|| facet_values(rows, facet));
                let found = facet.selects(text, known);
                if found.is_empty() {
                    unknown.push((facet, text.to_string(), known.clone()));
                }
                let selected = filter.selected.entry(facet).or_default();
                for value in found {
                    if !selected.contains(value) {
                        selected.push(value.clone());
                    }
                }
            }
            if facet == BenchmarkFacet::Kind
                && text.trim().is_empty()
                && filter.selects_named_models_only(rows)
            {
                filter.selected.insert(facet, usual_kinds());
            }
        }
        (filter, unknown)
    }

    /// Returns whether every selected model and source has runs of named models.
    fn selects_named_models_only(&self, rows: &[Benchmark]) -> bool {
        let has_named = |facet: BenchmarkFacet, value: &String| {
            let mut named = rows.iter().filter(|row| row.model_kind() == ModelKind::Named);
            named.any(|row| facet.values(row).contains(value))
        };
        [BenchmarkFacet::Model, BenchmarkFacet::Source].into_iter().all(|facet| {
            let selected = self.selected.get(&facet).into_iter().flatten();
            selected.into_iter().all(|value| has_named(facet, value))
        })
    }

    /// Returns whether nothing but the usual kind of model is selected.
    pub fn is_empty(&self) -> bool {
        BenchmarkFacet::ALL.into_iter().all(|facet| self.count_of(facet) == 0)
            && self.selected.contains_key(&BenchmarkFacet::Kind)
    }

    /// Returns the number of selected values of a facet; 0 for the usual selection of the kind of model.
    pub fn count_of(&self, facet: BenchmarkFacet) -> usize {
        let selected = self.selected.get(&facet);
        let selected =
            selected.filter(|selected| facet != BenchmarkFacet::Kind || **selected != usual_kinds());
        selected.map_or(0, Vec::len)
    }

    /// Returns the selected values with their names, facet by facet.
    pub fn selection(&self) -> Vec<(BenchmarkFacet, String, String)> {
        let values = self.selected.iter().flat_map(|(facet, values)| {
            values.iter().map(|value| (*facet, value.clone(), facet.value_title(value)))
        });
        values.collect()
    }

    /// Returns whether a benchmark matches.
    pub fn keeps(&self, benchmark: &Benchmark) -> bool {
        self.keeps_without(benchmark, None)
    }

    fn keeps_without(&self, benchmark: &Benchmark, left_out: Option<BenchmarkFacet>) -> bool {
        let mut facets = self.selected.iter().filter(|(facet, _)| Some(**facet) != left_out);
        facets.all(|(facet, selected)| facet.values(benchmark).iter().any(|value| selected.contains(value)))
    }

    /// Returns the values of a facet with their counts under the selection of the other facets. The order does not depend on
    /// the selection: numbers and kinds by value, releases by date, all others by the number of runs of named models.
    pub fn counts(&self, rows: &[Benchmark], facet: BenchmarkFacet) -> Vec<FacetCount> {
        // For each value: the runs of named models, all runs, and those that the other facets keep.
        let mut all: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
        for row in rows {
            for value in facet.values(row) {
                let (named, total, kept) = all.entry(value).or_default();
                *named += usize::from(row.model_kind() == ModelKind::Named);
                *total += 1;
                *kept += usize::from(self.keeps_without(row, Some(facet)));
            }
        }
        let mut all: Vec<(String, (usize, usize, usize))> = all.into_iter().collect();
        match facet {
            BenchmarkFacet::Gpus => all.sort_by_key(|(value, _)| value.parse::<u32>().unwrap_or(u32::MAX)),
            // The newest first.
            BenchmarkFacet::Release => all.sort_by_key(|(value, _)| {
                (std::cmp::Reverse(release_date(release_name(value))), value.clone())
            }),
            BenchmarkFacet::Kind => {
                let place = |value: &str| ModelKind::ALL.iter().position(|kind| kind.id() == value);
                all.sort_by_key(|(value, _)| place(value));
            }
            _ => all.sort_by_key(|(_, (named, total, _))| std::cmp::Reverse((*named, *total))),
        }
        let selected = self.selected.get(&facet);
        all.into_iter()
            .map(|(value, (_, _, count))| FacetCount {
                title: facet.value_title(&value),
                is_selected: selected.is_some_and(|selected| selected.contains(&value)),
                value,
                count,
            })
            .collect()
    }

    /// Returns the text of a facet after a value was selected or no longer selected.
    pub fn toggled(&self, facet: BenchmarkFacet, value: &str) -> String {
        let mut values = self.selected.get(&facet).cloned().unwrap_or_default();
        match values.iter().position(|selected| selected == value) {
            Some(place) => {
                values.remove(place);
            }
            None => values.push(value.to_string()),
        }
        match facet == BenchmarkFacet::Kind && values.is_empty() {
            true => ALL_KINDS.to_string(),
            false => values.join(","),
        }
    }
}

/// Returns the values of a facet.
fn facet_values(rows: &[Benchmark], facet: BenchmarkFacet) -> Vec<String> {
    let mut values: Vec<String> = rows.iter().flat_map(|row| facet.values(row)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::significant;

    fn rows() -> Vec<Benchmark> {
        super::super::parse(include_str!("../../data/benchmarks.csv")).unwrap()
    }

    fn read(rows: &[Benchmark], texts: &[(BenchmarkFacet, &str)]) -> BenchmarkFilter {
        let text =
            |facet| texts.iter().find(|(other, _)| *other == facet).map_or("", |(_, text)| text).to_string();
        let (filter, unknown) = BenchmarkFilter::read(rows, text);
        assert_eq!(unknown, []);
        filter
    }

    fn kept<'a>(rows: &'a [Benchmark], texts: &[(BenchmarkFacet, &str)]) -> Vec<&'a Benchmark> {
        let filter = read(rows, texts);
        rows.iter().filter(|row| filter.keeps(row)).collect()
    }

    #[test]
    fn counts_follow_the_other_facets_and_not_their_own() {
        let rows = rows();
        let filter = read(&rows, &[(BenchmarkFacet::Gpu, "h100"), (BenchmarkFacet::Precision, "nvfp4")]);
        // No H100 computes in NVFP4.
        assert_eq!(rows.iter().filter(|row| filter.keeps(row)).count(), 0);
        let gpus = filter.counts(&rows, BenchmarkFacet::Gpu);
        let of = |gpu: &str| gpus.iter().find(|count| count.value == gpu).unwrap();
        assert_eq!((of("h100").count, of("h100").is_selected), (0, true));
        assert!(of("gb200").count > 0 && !of("gb200").is_selected);
        let precisions = filter.counts(&rows, BenchmarkFacet::Precision);
        assert!(precisions.iter().any(|count| count.value == "bf16" && count.count > 100));
    }

    #[test]
    fn links_of_the_recipes_page_select_what_they_did() {
        let rows = rows();
        let filter = read(
            &rows,
            &[
                (BenchmarkFacet::Model, "llama3.1"),
                (BenchmarkFacet::Precision, "fp8"),
                (BenchmarkFacet::Measured, "yes"),
            ],
        );
        assert_eq!(filter.count_of(BenchmarkFacet::Model), 3);
        let kept: Vec<&Benchmark> = rows.iter().filter(|row| filter.keeps(row)).collect();
        assert!(
            kept.iter()
                .all(|row| row.precision.family() == PrecisionFamily::Fp8 && row.step_time_s.is_some())
        );
        let (_, unknown) = BenchmarkFilter::read(&rows, |facet| match facet {
            BenchmarkFacet::Gpu => "h1000".to_string(),
            _ => String::new(),
        });
        assert_eq!((unknown.len(), &*unknown[0].1), (1, "h1000"));
    }

    #[test]
    fn a_value_is_added_and_removed() {
        let rows = rows();
        let filter = read(&rows, &[(BenchmarkFacet::Gpu, "h100,b200")]);
        assert_eq!(filter.toggled(BenchmarkFacet::Gpu, "gb200"), "h100,b200,gb200");
        assert_eq!(filter.toggled(BenchmarkFacet::Gpu, "h100"), "b200");
    }

    #[test]
    fn named_models_are_selected_unless_another_kind_is_asked_for() {
        let rows = rows();
        let kept = |texts: &[(BenchmarkFacet, &str)]| {
            let filter = read(&rows, texts);
            rows.iter().filter(|row| filter.keeps(row)).count()
        };
        let of_kind = |kind: ModelKind| rows.iter().filter(|row| row.model_kind() == kind).count();
        let usual = read(&rows, &[]);
        assert!(usual.is_empty());
        assert_eq!(usual.toggled(BenchmarkFacet::Kind, "named"), "all");
        assert_eq!(kept(&[]), of_kind(ModelKind::Named));
        assert_eq!(kept(&[(BenchmarkFacet::Kind, "tiny")]), 990);
        assert_eq!(kept(&[(BenchmarkFacet::Kind, "all")]), rows.len());
        assert!(!read(&rows, &[(BenchmarkFacet::Kind, "all")]).is_empty());
        // A link to the runs of a shape shows them.
        let shape = [(BenchmarkFacet::Model, "nanotron-3.57b")];
        assert_eq!(kept(&shape), rows.iter().filter(|row| row.model == "nanotron-3.57b").count());
    }

    #[test]
    fn the_counts_of_a_facet_add_up_to_the_rows() {
        let rows = rows();
        let filter = read(&rows, &[]);
        let shown = rows.iter().filter(|row| filter.keeps(row)).count();
        for facet in [BenchmarkFacet::Model, BenchmarkFacet::Gpu, BenchmarkFacet::Measured] {
            let counts = filter.counts(&rows, facet);
            assert_eq!(counts.iter().map(|count| count.count).sum::<usize>(), shown, "{facet:?}");
        }
        let kinds = filter.counts(&rows, BenchmarkFacet::Kind);
        assert_eq!(kinds.iter().map(|count| count.count).sum::<usize>(), rows.len());
        let models = filter.counts(&rows, BenchmarkFacet::Model);
        let first_empty = models.iter().position(|count| count.count == 0).unwrap();
        assert!(models[first_empty..].iter().all(|count| count.count == 0), "known models come first");
    }

    #[test]
    fn a_release_of_recipes_has_all_its_recipes_with_their_references() {
        let rows = rows();
        let catalog = Catalog::embedded();
        // Recipes that repeat those of another release are listed once.
        for release in Release::ALL.into_iter().filter(|release| release.described_as() == *release) {
            let shown =
                kept(&rows, &[(BenchmarkFacet::Release, release.id()), (BenchmarkFacet::Kind, "all")]);
            for recipe in catalog.recipes().iter().filter(|recipe| recipe.id.release == release) {
                let row = shown.iter().find(|row| row.recipe == Some(recipe));
                let step_time_s = row.unwrap_or_else(|| panic!("{} is missing", recipe.id)).step_time_s;
                let published_s = catalog.baseline(&recipe.id).map(|baseline| baseline.step_time_s);
                let [shown, published] =
                    [step_time_s, published_s].map(|time| time.map(|time| significant(time, 4)));
                assert_eq!(shown, published, "{}", recipe.id);
            }
        }
        let gb300 = kept(&rows, &[(BenchmarkFacet::Gpu, "gb300"), (BenchmarkFacet::Release, "26.06.01")]);
        let references: Vec<&Benchmark> =
            gb300.iter().copied().filter(|row| row.step_time_s.is_some()).collect();
        assert_eq!((gb300.len(), references.len()), (74, 9));
        let deepseek = references.iter().find(|row| row.model == "deepseek-v3").unwrap();
        assert_eq!(deepseek.source_title(), "Megatron-Bridge 26.04.01");
        assert_eq!(deepseek.reference_of().as_deref(), Some("DGX Cloud recipes 26.06.01"));
        let of_source = kept(&rows, &[(BenchmarkFacet::Source, "dgxc-seed"), (BenchmarkFacet::Gpu, "gb300")]);
        assert!(of_source.contains(deepseek));
        assert_eq!(
            gb300,
            kept(&rows, &[(BenchmarkFacet::Gpu, "gb300"), (BenchmarkFacet::Release, "latest")])
        );
    }

    #[test]
    fn releases_of_the_same_name_are_distinct_and_the_newest_come_first() {
        let rows = rows();
        let filter = read(&rows, &[(BenchmarkFacet::Release, "megatron-bridge@26.06.01")]);
        assert!(rows.iter().filter(|row| filter.keeps(row)).all(|row| row.source == "megatron-bridge"));
        let releases = filter.counts(&rows, BenchmarkFacet::Release);
        let titles: Vec<&str> = releases.iter().map(|count| &*count.title).collect();
        let place = |title: &str| titles.iter().position(|other| *other == title).unwrap();
        assert_eq!(place("DGX Cloud recipes 26.06.01") + 1, place("Megatron-Bridge 26.06.01"));
        assert!(place("Megatron-Bridge 26.06.01") < place("Megatron-Bridge 26.04.01"));
        assert!(place("MLPerf v5.1") < place("DGX Cloud recipes 25.04"));
        let mut distinct = titles.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), titles.len());
        // A name without a collection selects every release of that name, unless it is one of recipes.
        let filter = read(&rows, &[(BenchmarkFacet::Release, "26.04.01")]);
        assert_eq!(filter.selection()[0].2, "Megatron-Bridge 26.04.01");
    }
}
