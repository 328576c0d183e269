//! Writes `data/benchmarks.csv` from the measurements, the recipes and the held-out errors.

use super::{PlanObstacle, PrecisionFamily, RunPrecision, tflops};
use crate::architecture::Architecture;
use crate::calibration::{HeldOutErrors, table, thousandth};
use crate::catalog::{Catalog, Document, Recipe, RecipeId};
use crate::cluster_factors::ClusterFactors;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::flops::ModelFlops;
use crate::layout::PipelineSplit;
use crate::link;
use crate::measurements::{self, MeasuredScenario, Measurement, MeasurementUse};
use crate::options::{Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::scenario::Scenario;
use crate::spec::Spec;
use crate::units::{parse_decimal, significant};
use std::collections::BTreeMap;

const HEAD: &str = "\
# Every measured pre-training run, and every recipe that nobody measured, for the Benchmarks page. From measurements.csv, recipes.csv,
# baselines.csv and held_out.csv. `tokens` are tokens per second and GPU, `tflops` model FLOPs with full attention, `recipe` the one
# whose published number the run is, `more` the scenario's other fields, as a query, and `obstacle` says why there is none. Written by
# `trainplan calibrate`.
";

const COLUMNS: [&str; 30] = [
    "id",
    "source",
    "release",
    "model",
    "layers",
    "hidden",
    "gpu",
    "precision",
    "gpus",
    "seq_len",
    "gbs",
    "tp",
    "pp",
    "cp",
    "ep",
    "vp",
    "dp",
    "fsdp",
    "mbs",
    "step_time_s",
    "tokens",
    "tflops",
    "held_out",
    "recipe",
    "obstacle",
    "approximate",
    "more",
    "url",
    "note",
    "tiny",
];

/// The columns of a measurement that [`Measurement`] does not keep.
struct Printed {
    phase: String,
    gpus: String,
    seq_len: String,
    degrees: [String; 6],
    mbs: String,
    gbs: String,
    fsdp: bool,
    tokens: Option<f64>,
    layers: Option<u32>,
    hidden: String,
    notes: String,
}

impl FromRow for Printed {
    fn from_row(row: &Row<'_>) -> Result<Printed, DataError> {
        let [tp, pp, cp, ep, vp, dp] = ["tp", "pp", "cp", "ep", "vp", "dp"].map(|column| row.string(column));
        Ok(Printed {
            phase: row.string("phase")?,
            gpus: row.string("gpus")?,
            seq_len: row.string("seq_len")?,
            degrees: [tp?, pp?, cp?, ep?, vp?, dp?],
            mbs: row.string("mbs")?,
            gbs: row.string("gbs")?,
            fsdp: row.text("fsdp")? == "1",
            tokens: row.optional_number("tokens_per_s_per_gpu")?,
            layers: row.optional("layers")?,
            hidden: row.string("hidden")?,
            notes: row.string("notes")?,
        })
    }
}

/// Returns the file, with these held-out errors.
pub fn write(errors: &HeldOutErrors) -> String {
    let printed: Vec<Printed> = embedded!("measurements.csv");
    let published = published(&printed);
    let rows = measurements::embedded().iter().zip(&printed).filter_map(|(row, printed)| {
        let recipe = published.iter().find(|(run, _)| *run == row.id).map(|(_, recipe)| *recipe);
        measured_row(row, printed, recipe, errors)
    });
    let others = Catalog::embedded().recipes().iter().filter(|recipe| {
        !published.iter().any(|(_, one)| one.id == recipe.id) && !repeats_another_release(recipe)
    });
    format!("{HEAD}{}", table(COLUMNS, rows.chain(others.map(recipe_row))))
}

/// Returns the runs whose numbers are published for a recipe, by their ids, each with the recipe: those of its own document, or the run of
/// another collection that the number is from.
fn published(printed: &[Printed]) -> Vec<(&'static str, &'static Recipe)> {
    let catalog = Catalog::embedded();
    let measured = || measurements::embedded().iter().zip(printed);
    let of_documents = measured().filter(|(row, _)| row.is_of_recipes());
    let mut published: Vec<(&str, &Recipe)> = of_documents
        .filter_map(|(row, printed)| Some((row.id.as_str(), recipe(row, &printed.gpus)?)))
        .collect();
    for recipe in catalog.recipes() {
        let is_listed = published.iter().any(|(_, one)| one.id == recipe.id);
        let Some(baseline) = catalog.baseline(&recipe.id) else { continue };
        if is_listed || repeats_another_release(recipe) {
            continue;
        }
        // The file lists the newest runs of a collection first.
        let is_source = |row: &Measurement, printed: &Printed| {
            has_layout_of(row, printed, recipe)
                && row.step_time_s.is_some_and(|step| (step / baseline.step_time_s - 1.0).abs() < ROUNDING)
        };
        if let Some((row, _)) = measured().find(|(row, printed)| is_source(row, printed)) {
            published.push((row.id.as_str(), recipe));
        }
    }
    published
}

/// The difference, as a fraction, between a run's step time and the same one printed with fewer digits.
const ROUNDING: f64 = 5e-5;

/// Returns whether a run has the model, the GPUs, the precision, the batch and the layout of a recipe.
fn has_layout_of(row: &Measurement, printed: &Printed, recipe: &Recipe) -> bool {
    let degrees = &recipe.degrees;
    let own = [degrees.tp, degrees.pp, degrees.cp, degrees.ep, degrees.vp, recipe.dp()];
    let of_recipe = [recipe.id.gpus, recipe.seq_len, recipe.gbs, recipe.mbs];
    row.model == recipe.id.model
        && Catalog::embedded().gpu(&row.gpu).is_ok_and(|gpu| gpu.id == recipe.id.gpu)
        && precision(row) == RunPrecision::Known(recipe.dtype())
        && [&printed.gpus, &printed.seq_len, &printed.gbs, &printed.mbs]
            .into_iter()
            .zip(of_recipe)
            .all(|(printed, value)| *printed == value.to_string())
        && printed.degrees.iter().zip(own).all(|(printed, degree)| *printed == degree.to_string())
}

/// Returns whether a recipe equals that of the release whose published results are also its own, so that each is listed once.
fn repeats_another_release(recipe: &Recipe) -> bool {
    let release = recipe.id.release.described_as();
    let same = Recipe { id: RecipeId { release, ..recipe.id.clone() }, ..recipe.clone() };
    release != recipe.id.release && Catalog::embedded().recipes().contains(&same)
}

const BEST_HEAD: &str = "\
# The fastest measured run of each model of the catalog on each GPU type, for Plan and `trainplan search`. `tokens` are tokens
# per second and GPU. From measurements.csv, without excluded runs and models with fewer layers. Written by `trainplan calibrate`.
";

/// Returns `data/best_measured.csv`.
pub fn write_best() -> String {
    let printed: Vec<Printed> = embedded!("measurements.csv");
    let errors = HeldOutErrors::default();
    let mut best: BTreeMap<(String, String), (f64, [String; 7])> = BTreeMap::new();
    for (row, printed) in measurements::embedded().iter().zip(&printed) {
        let (Ok(model), Ok(scenario)) = (Catalog::embedded().model(&row.model), &row.scenario) else {
            continue;
        };
        let is_whole = scenario.architecture.layers == model.architecture.layers;
        if row.usage == Some(MeasurementUse::Exclude)
            || !is_whole
            || measured_row(row, printed, None, &errors).is_none()
        {
            continue;
        }
        let Some(step_time_s) = row.step_time_s else { continue };
        let tokens = scenario.batch.tokens() / step_time_s / f64::from(scenario.layout.gpus());
        let tokens = printed.tokens.unwrap_or(tokens);
        let line = [
            model.id.clone(),
            scenario.gpu.id.clone(),
            scenario.layout.gpus().to_string(),
            scenario.dtype.to_string(),
            scenario.batch.seq_len().to_string(),
            significant(tokens, 5),
            row.release_title(),
        ];
        let known = best.entry((model.id.clone(), scenario.gpu.id.clone())).or_insert((0.0, line.clone()));
        if tokens > known.0 {
            *known = (tokens, line);
        }
    }
    let columns = ["model", "gpu", "gpus", "precision", "seq_len", "tokens", "release"];
    format!("{BEST_HEAD}{}", table(columns, best.into_values().map(|(_, line)| line)))
}

/// Returns the line of a measured run, which may be the published one of a recipe; none if it is not a pre-training run with a usable
/// step time.
fn measured_row(
    row: &Measurement,
    printed: &Printed,
    recipe: Option<&Recipe>,
    errors: &HeldOutErrors,
) -> Option<[String; 30]> {
    let is_timed = printed.phase == "pretrain" && row.usage != Some(MeasurementUse::Memory);
    let step_time_s = row.step_time_s.filter(|_| is_timed)?;
    let catalog = Catalog::embedded();
    let number = parse_decimal;
    let (gpus, seq_len) = (number(&printed.gpus)?, number(&printed.seq_len)?);
    let tokens = printed.tokens.or(Some(number(&printed.gbs)? * seq_len / step_time_s / gpus))?;
    let known = catalog.model(&row.model).ok();
    let scenario = row.scenario.as_ref().ok();
    let architecture = scenario.map(|scenario| &scenario.architecture);
    let usual = known.map(|model| &model.architecture);
    let flops = architecture.or(usual.filter(|_| printed.layers.is_none())).map(|architecture| {
        tflops(
            ModelFlops::by_blocks(architecture, seq_len as u32, false).per_sequence,
            seq_len as u32,
            tokens,
        )
    });
    let peak = scenario.and_then(|scenario| scenario.gpu.datasheet_tflops(scenario.dtype));
    if flops.zip(peak).is_some_and(|(flops, peak)| flops > peak) {
        // Faster than the GPU can be: the source's batch was not that of the timed steps.
        return None;
    }
    let layers = architecture.map(|architecture| architecture.layers).or(printed.layers);
    let gpu = catalog.gpu(&row.gpu).map_or_else(|_| row.gpu.to_lowercase(), |gpu| gpu.id.clone());
    let precision = precision(row);
    let is_own = row.is_of_recipes();
    let opened = match (recipe, scenario) {
        (Some(recipe), Some(scenario)) if !is_own => {
            let planned = Spec::default().with(Field::Recipe, recipe.id.to_string()).scenario();
            let same_settings = planned.ok().and_then(|planned| same_settings(&planned, scenario));
            Ok(Opened { is_approximate: same_settings != Some(true), more: String::new() })
        }
        (Some(_), _) => Ok(Opened::default()),
        (None, Some(scenario)) => opened(row, scenario, precision),
        (None, None) if known.is_none() => Err(PlanObstacle::Architecture),
        (None, None) => Err(PlanObstacle::Incomplete),
    };
    let note = match row.usage {
        Some(MeasurementUse::Exclude) if printed.notes.is_empty() => "no reason given",
        Some(MeasurementUse::Exclude) => &printed.notes,
        _ => "",
    };
    let [tp, pp, cp, ep, vp, dp] = printed.degrees.each_ref().map(String::as_str);
    let one = |text: &str| if text.is_empty() { "1" } else { text }.to_string();
    let yes = |is: bool| if is { "yes" } else { "" }.to_string();
    let dp = match scenario {
        Some(scenario) => scenario.layout.dp().to_string(),
        None => dp.to_string(),
    };
    let (obstacle, is_approximate, more) = match &opened {
        Ok(opened) => ("", opened.is_approximate, opened.more.as_str()),
        Err(obstacle) => (obstacle.id(), false, ""),
    };
    Some([
        row.id.clone(),
        row.source.clone(),
        row.release.clone(),
        row.model.clone(),
        layers
            .filter(|layers| usual.is_none_or(|usual| usual.layers != *layers))
            .map_or(String::new(), |layers| layers.to_string()),
        if known.is_none() { printed.hidden.clone() } else { String::new() },
        gpu,
        precision.id().to_string(),
        printed.gpus.clone(),
        printed.seq_len.clone(),
        printed.gbs.clone(),
        one(tp),
        one(pp),
        one(cp),
        one(ep),
        one(vp),
        dp,
        yes(printed.fsdp),
        printed.mbs.clone(),
        step_time_s.to_string(),
        significant(tokens, 5),
        flops.map_or(String::new(), |flops| significant(flops, 4)),
        errors.get(&row.id).map_or(String::new(), |error| thousandth(error.mapping)),
        recipe.map_or(String::new(), |recipe| recipe.id.to_string()),
        obstacle.to_string(),
        yes(is_approximate),
        more.to_string(),
        row.address().unwrap_or_default(),
        note.to_string(),
        yes(row.is_tiny()),
    ])
}

/// Returns the line of a recipe that nobody measured.
fn recipe_row(recipe: &Recipe) -> [String; 30] {
    let catalog = Catalog::embedded();
    let (id, degrees) = (&recipe.id, &recipe.degrees);
    let proxy = if catalog.is_proxy(recipe) { recipe.layers.to_string() } else { String::new() };
    let empty = String::new;
    [
        id.to_string(),
        id.release.software().measured.0.to_string(),
        id.release.to_string(),
        id.model.clone(),
        proxy,
        empty(),
        id.gpu.clone(),
        recipe.dtype().to_string(),
        id.gpus.to_string(),
        recipe.seq_len.to_string(),
        recipe.gbs.to_string(),
        degrees.tp.to_string(),
        degrees.pp.to_string(),
        degrees.cp.to_string(),
        degrees.ep.to_string(),
        degrees.vp.to_string(),
        recipe.dp().to_string(),
        if recipe.fsdp { "yes".to_owned() } else { empty() },
        recipe.mbs.to_string(),
        empty(),
        empty(),
        empty(),
        empty(),
        id.to_string(),
        empty(),
        empty(),
        empty(),
        catalog.document(id).and_then(Document::url).unwrap_or_default(),
        empty(),
        empty(),
    ]
}

/// Returns the precision, if the source gives it.
fn precision(row: &Measurement) -> RunPrecision {
    match &*row.precision {
        "FP8-row" => RunPrecision::Fp8Row,
        "FP8-or-NVFP4" => RunPrecision::Fp8OrNvfp4,
        "FP8-CS" => RunPrecision::Known(Dtype::Fp8Current),
        "FP8-DS" => RunPrecision::Known(Dtype::Fp8Delayed),
        "FP8-SC" => RunPrecision::Known(Dtype::Fp8Block),
        name => RunPrecision::Known(name.parse().unwrap_or(Dtype::Bf16)),
    }
}

/// Returns the recipe that a row of the recipes' documents measures.
fn recipe(row: &Measurement, gpus: &str) -> Option<&'static Recipe> {
    let catalog = Catalog::embedded();
    let gpu = &catalog.gpu(&row.gpu).ok()?.id;
    catalog.recipes().iter().find(|recipe| {
        let id = &recipe.id;
        let is_fp8 = precision(row).family() == PrecisionFamily::Fp8;
        catalog.baseline(id).is_some()
            && (id.model == row.model && id.gpu == *gpu && id.gpus.to_string() == gpus)
            && id.release.to_string() == row.release
            && (id.dtype == Dtype::Fp8) == is_fp8
    })
}

/// How a run opens in the planner.
#[derive(Default)]
struct Opened {
    /// Whether the planner has no fields for some of its settings.
    is_approximate: bool,
    /// The fields beside those that the page makes from the columns.
    more: String,
}

/// Returns the fields that make the planner's scenario the row's.
fn opened(
    row: &Measurement,
    scenario: &MeasuredScenario,
    precision: RunPrecision,
) -> Result<Opened, PlanObstacle> {
    let MeasuredScenario { architecture, dtype, layout, options, .. } = scenario;
    let Ok(model) = Catalog::embedded().model(&row.model) else { return Err(PlanObstacle::Shape) };
    let Ok(usual) = model.architecture.with_layers(architecture.layers) else {
        return Err(PlanObstacle::Shape);
    };
    if usual != *architecture {
        return Err(PlanObstacle::Shape);
    }
    let mut more = Spec::default();
    if precision != RunPrecision::Known(*dtype) {
        more.set(Field::Dtype, dtype.id());
    }
    if *layout.split() != PipelineSplit::Even {
        more.set(Field::PipelineSplit, layout.split().to_string());
    }
    if layout.expert_tp() > 1 {
        more.set(Field::ExpertTp, layout.expert_tp().to_string());
    }
    if options.recompute != Recompute::None {
        more.set(Field::Recompute, options.recompute.id());
    }
    if !options.overlap {
        more.set(Field::Overlap, "off");
    }
    more.set(Field::Stack, options.software.to_string());
    if let Some(tflops) = options.gemm_tflops {
        more.set(Field::GemmTflops, tflops.to_string());
    }
    let described = super::Benchmark {
        more: link::write(&more),
        ..from_scenario(row, scenario, precision, &model.architecture)
    };
    let planned = described.spec().and_then(|spec| spec.scenario().ok()).ok_or(PlanObstacle::Layout)?;
    let same_settings = same_settings(&planned, scenario).ok_or(PlanObstacle::Layout)?;
    Ok(Opened { is_approximate: !same_settings, more: described.more })
}

/// Returns whether the planner has fields for all settings of a measured scenario; none if what it plans is another scenario.
fn same_settings(planned: &Scenario, measured: &MeasuredScenario) -> Option<bool> {
    let MeasuredScenario { architecture, gpu, dtype, layout, batch, options, .. } = measured;
    let is_same = planned.layout == *layout
        && planned.batch == *batch
        && planned.architecture == *architecture
        && planned.gpu.id == gpu.id
        && planned.dtype == *dtype;
    // What the planner has no field for is left at the software's default.
    let same_options = planned.options == TrainingOptions { cluster: ClusterFactors::default(), ..*options };
    is_same.then_some(same_options && planned.gpu.nic_gbit == gpu.nic_gbit)
}

/// Returns the benchmark of a scenario, with the sources of the planner's fields.
fn from_scenario(
    row: &Measurement,
    scenario: &MeasuredScenario,
    precision: RunPrecision,
    usual: &Architecture,
) -> super::Benchmark {
    let MeasuredScenario { architecture, gpu, layout, batch, options, .. } = scenario;
    super::Benchmark {
        id: row.id.clone(),
        source: row.source.clone(),
        release: row.release.clone(),
        model: row.model.clone(),
        layers: Some(architecture.layers).filter(|layers| *layers != usual.layers),
        hidden: None,
        gpu: gpu.id.clone(),
        precision,
        gpus: layout.gpus(),
        seq_len: batch.seq_len(),
        gbs: batch.gbs(),
        layout: super::RunLayout {
            tp: layout.tp(),
            pp: layout.pp(),
            cp: layout.cp(),
            ep: layout.ep(),
            vp: layout.vp(),
            dp: Some(layout.dp()),
            fsdp: options.fsdp,
            mbs: Some(batch.mbs()),
        },
        step_time_s: row.step_time_s,
        tokens_per_s_per_gpu: None,
        tflops: None,
        held_out_error: None,
        recipe: None,
        obstacle: None,
        is_approximate: false,
        more: String::new(),
        url: String::new(),
        note: String::new(),
        is_tiny: row.is_tiny(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::estimate::{Estimate, EvidenceKind};
    use crate::measurements::address::RECIPES;
    use std::collections::BTreeSet;

    #[test]
    fn the_file_follows_from_the_other_files() {
        let written = write(&HeldOutErrors::embedded());
        assert!(
            written == include_str!("../../data/benchmarks.csv"),
            "`trainplan calibrate --output DIR` writes it again"
        );
        let rows = parse(&written).unwrap();
        assert!(rows.len() > 1800, "{}", rows.len());
        assert_eq!(rows.iter().filter(|row| row.recipe.is_some()).count(), 704);
        assert_eq!(rows.iter().filter(|row| row.is_tiny).count(), 990);
    }

    #[test]
    fn a_published_number_is_listed_once_beside_its_recipe() {
        let rows = parse(&write(&HeldOutErrors::embedded())).unwrap();
        let catalog = Catalog::embedded();
        let published =
            |recipe: &&Recipe| catalog.baseline(&recipe.id).is_some() && !repeats_another_release(recipe);
        let mut elsewhere = 0;
        for recipe in catalog.recipes().iter().filter(published) {
            let own = rows.iter().filter(|row| row.recipe == Some(recipe));
            let own: Vec<_> = own.collect();
            assert!(!own.is_empty() && own.iter().all(|row| row.step_time_s.is_some()), "{}", recipe.id);
            elsewhere += usize::from(own.iter().all(|row| row.source != RECIPES));
        }
        assert!(elsewhere >= 40, "{elsewhere}");
        // The numbers of release 26.06.01 are those of Megatron-Bridge.
        let run = rows.iter().find(|row| {
            row.recipe.is_some_and(|recipe| recipe.id.to_string() == "llama3.1-405b/gb300/fp8/256@26.06.01")
        });
        let run = run.map(|row| (&*row.source, &*row.release, row.url.contains("/Megatron-Bridge/")));
        assert_eq!(run, Some(("megatron-bridge", "26.04.01", true)));
    }

    #[test]
    fn the_fastest_runs_follow_from_the_measurements() {
        let kept = include_str!("../../data/best_measured.csv");
        assert!(write_best() == kept, "`trainplan calibrate --output DIR` writes it again");
        assert!(kept.lines().count() > 60, "{}", kept.lines().count());
    }

    #[test]
    fn no_run_is_faster_than_its_gpu() {
        let rows = parse(&write(&HeldOutErrors::embedded())).unwrap();
        let fastest = rows.iter().filter_map(super::super::Benchmark::mfu_of_bf16).fold(0.0, f64::max);
        // NVFP4 has several times the peak of BF16.
        assert!(fastest < 2.5, "{fastest}");
    }

    #[test]
    fn every_run_without_an_obstacle_opens_as_its_own_scenario() {
        let rows = parse(include_str!("../../data/benchmarks.csv")).unwrap();
        let open = rows.iter().filter_map(|row| Some((row, row.spec()?)));
        let mut count = 0;
        for (row, spec) in open {
            let scenario = spec.scenario().unwrap_or_else(|problems| panic!("{}: {problems:?}", row.id));
            assert_eq!((scenario.layout.gpus(), scenario.batch.gbs()), (row.gpus, row.gbs), "{}", row.id);
            count += 1;
        }
        assert!(count > 570, "{count}");
    }

    #[test]
    fn a_run_that_opens_exactly_is_its_own_evidence() {
        let fitted = measurements::embedded().iter().filter(|row| row.is_for_fitting() && !row.is_tiny());
        let fitted: BTreeSet<&str> = fitted.map(|row| &*row.id).collect();
        let rows = parse(include_str!("../../data/benchmarks.csv")).unwrap();
        let mut count = 0;
        for row in rows.iter().filter(|row| fitted.contains(&*row.id) && !row.is_approximate) {
            let Some(scenario) = row.spec().and_then(|spec| spec.scenario().ok()) else { continue };
            assert_eq!(Estimate::of(&scenario).evidence.kind, EvidenceKind::Published, "{}", row.id);
            count += 1;
        }
        assert!(count > 570, "{count}");
    }
}
