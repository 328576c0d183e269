//! A row of a file of measurements.

use super::scenario::MeasuredScenario;
use crate::catalog::{Catalog, Collection, measured_model_title};
use crate::choices::choices;
use crate::data_file::{DataError, Row};
use crate::estimate::MemoryEstimate;
use crate::stack::Software;

choices! {
    /// What a measurement is used for.
    MeasurementUse {
        /// A complete, timed pre-training run.
        Fit "fit",
        /// The same of a tiny model on one node.
        Small "small",
        /// Long sequences.
        LongContext "longctx",
        /// Fine-tuning.
        FineTuning "finetune",
        /// Pre-training with natural routing or real data, whose experts are not evenly loaded.
        RealData "realdata",
        /// A run whose source omits something that decides its time.
        Partial "partial",
        /// One kernel or layer, not a training step.
        Kernel "kernel",
        /// A mapping that was measured again in another release.
        Repeat "repeat",
        /// Memory only.
        Memory "memory",
        /// Nothing: the row's notes say why.
        Exclude "exclude",
    }
}

choices! {
    /// How a measured run ended.
    Outcome {
        /// It worked.
        Worked "ok",
        /// It ran out of memory.
        OutOfMemory "oom",
        /// It failed for another reason.
        Failed "other",
    }
}

/// A measured training run.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Id in the file, or the row's number.
    pub id: String,
    /// Collection of the measurement.
    pub source: String,
    /// Release of the software or of the collection.
    pub release: String,
    /// Model: the catalog's name, or the file's.
    pub model: String,
    /// GPU type, as the file names it.
    pub gpu: String,
    /// Precision, as the file names it.
    pub precision: String,
    /// Software, as the file names it.
    pub framework: String,
    /// Column `use`; none if it is empty.
    pub usage: Option<MeasurementUse>,
    /// How the run ended.
    pub outcome: Outcome,
    /// Seconds per step, if measured.
    pub step_time_s: Option<f64>,
    /// Memory of the fullest GPU, bytes, if measured.
    pub memory_bytes: Option<f64>,
    /// How the memory was measured, as the source says it.
    pub memory_kind: String,
    /// Where the run was published, as the file writes it.
    pub reference: String,
    /// The scenario, or why the row can't be predicted.
    pub scenario: Result<Box<MeasuredScenario>, String>,
}

/// Returns the catalog's name of a model that collections name in another way. Models of equal shape have one name, so that they
/// are held out together.
fn catalog_name(model: &str) -> &str {
    match model {
        "nemotron-3-nano-30b-a3b" => "nemotron-3-nano-30b",
        "llama-7b" => "llama2-7b",
        "llama-13b" => "llama2-13b",
        "llama3-8b" => "llama3.1-8b",
        "llama3-70b" => "llama3.1-70b",
        _ => model,
    }
}

impl Measurement {
    /// Reads a row. `own` is the software of rows whose framework is `own`.
    pub(super) fn from_row(row: &Row<'_>, own: Option<Software>) -> Result<Measurement, DataError> {
        let cell = |column: &str| {
            let text = row.text(column).unwrap_or("").trim();
            if column == "model" { catalog_name(text) } else { text }.to_string()
        };
        // A cell that is not a positive number is an error, an empty cell is not.
        let number = |column: &str| match &*cell(column) {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(value) if value.is_finite() && value > 0.0 => Ok(Some(value)),
                _ => Err(format!("{column} \"{text}\" is not a positive number.")),
            },
        };
        let (step_time_s, memory_gib) = (number("step_time_s"), number("memory_gib"));
        let usage = match &*cell("use") {
            "" => Ok(None),
            text => {
                let found = MeasurementUse::ALL.into_iter().find(|usage| usage.id() == text).map(Some);
                let ids = MeasurementUse::ALL.map(MeasurementUse::id).join(", ");
                found.ok_or_else(|| format!("use \"{text}\" is unknown. Allowed: {ids}."))
            }
        };
        let outcome = match &*cell("outcome") {
            "" => Ok(Outcome::Worked),
            text => Outcome::ALL.into_iter().find(|outcome| outcome.id() == text).ok_or_else(|| {
                let ids = Outcome::ALL.map(Outcome::id).join(", ");
                format!("outcome \"{text}\" is unknown. Allowed: {ids}.")
            }),
        };
        let wrong = [
            step_time_s.as_ref().err(),
            memory_gib.as_ref().err(),
            usage.as_ref().err(),
            outcome.as_ref().err(),
        ];
        let wrong = wrong.into_iter().flatten().next().cloned();
        let id = match cell("id") {
            id if id.is_empty() => row.place().to_string(),
            id => id,
        };
        Ok(Measurement {
            id,
            source: cell("source"),
            release: cell("release"),
            model: cell("model"),
            gpu: cell("gpu"),
            precision: cell("precision"),
            framework: cell("framework"),
            usage: usage.unwrap_or_default(),
            step_time_s: step_time_s.unwrap_or_default(),
            // What a run had reached when it ran out of memory is not what it needs.
            memory_bytes: memory_gib
                .unwrap_or_default()
                .filter(|_| outcome == Ok(Outcome::Worked))
                .map(|gib| gib * f64::from(1 << 30)),
            outcome: outcome.unwrap_or(Outcome::Worked),
            memory_kind: cell("memory_kind"),
            reference: cell("reference"),
            scenario: wrong.map_or_else(|| MeasuredScenario::read(&cell, own).map(Box::new), Err),
        })
    }
}

impl Measurement {
    /// Whether the row is a complete, timed pre-training run of published measurements.
    pub fn is_for_fitting(&self) -> bool {
        matches!(self.usage, Some(MeasurementUse::Fit | MeasurementUse::Small))
    }

    /// Whether it is one of the tiny models on one node, which resemble no real plan.
    pub fn is_tiny(&self) -> bool {
        self.usage == Some(MeasurementUse::Small)
    }

    /// Returns the memory that the estimate predicts for the row, bytes, counted like the row's own measurement: on the rank
    /// and by the counter that its kind names.
    pub fn predicted_memory_bytes(&self) -> Option<f64> {
        let scenario = self.scenario.as_ref().ok()?;
        let memory = MemoryEstimate::of(&scenario.inputs());
        let says = |word: &str| self.memory_kind.contains(word);
        let stage = match () {
            // Rank 0 is in the first pipeline stage.
            () if says("first") || says("rank 0") || says("rank0") => *memory.stages.first()?,
            () if says("last") => *memory.stages.last()?,
            () => memory.peak(),
        };
        Some(match () {
            () if says("allocated") => stage.total(),
            // What PyTorch's allocator holds: without the CUDA context and NCCL.
            () if says("reserved") => {
                stage.total() * (1.0 + scenario.options.software.properties().fragmentation)
            }
            () => stage.total() + memory.reserved_bytes,
        })
    }

    /// Returns model, GPUs and precision for people; of a proxy also its layers.
    pub fn title(&self) -> String {
        let Ok(scenario) = &self.scenario else { return self.id.clone() };
        let (gpus, gpu) = (scenario.layout.gpus(), &scenario.gpu.name);
        let layers = scenario.architecture.layers;
        let known = Catalog::embedded().model(&self.model).ok().map(|model| model.architecture.layers);
        let depth = match known.filter(|all| *all != layers) {
            Some(all) => format!(" ({layers} of {all} layers)"),
            None => String::new(),
        };
        let title = measured_model_title(&self.model);
        format!("{title}{depth} on {gpus} {gpu}, {}", scenario.dtype.title())
    }

    /// Returns the collection and its release for people.
    pub fn release_title(&self) -> String {
        Collection::with_release(&self.source, &self.release)
    }
}
