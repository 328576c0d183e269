//! `--cluster-factor` with the file of a probe.

use super::{model_file, note_once};
use std::path::Path;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::message;
use trainplan_shared::probe::{Probe, ProbeReport};
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// Returns the factors of a probe's file as text, or none if `text` is not a path. A relative path is below `folder`. A note
/// says which factors these are.
///
/// # Errors
/// The file can't be read, is not that of a probe, or measured another GPU type than that of `spec`.
pub(super) fn read(folder: &Path, text: &str, spec: &Spec) -> Result<Option<String>, Problem> {
    if !Probe::is_file_name(text) {
        return Ok(None);
    }
    let path = folder.join(text);
    let refuse = |why: String| {
        Problem::new(
            Field::ClusterFactor,
            text,
            message![Field::ClusterFactor, format!(" {}: {why}", path.display())],
        )
    };
    let content =
        model_file::content(&path).map_err(|error| refuse(format!("The file can't be read: {error}.")))?;
    let content =
        String::from_utf8(content).map_err(|_| refuse("The file is not UTF-8 text.".to_string()))?;
    let probe = Probe::parse(&content).map_err(|problem| refuse(problem.to_string()))?;
    let report = ProbeReport::of(&probe, Catalog::embedded());
    let Some(measured) = &report.gpu else {
        return Err(refuse(match probe.accelerator.as_str() {
            "cpu" => "It was measured on CPUs.".to_string(),
            _ => format!("It was measured on {}, which Trainplan does not know.", probe.device),
        }));
    };
    let other = wanted(spec).into_iter().find(|gpu| gpu != measured);
    if let Some(other) = other {
        return Err(refuse(format!(
            "It was measured on {measured}, but this is about {other}. Ask only about {measured}."
        )));
    }
    note_once(&match report.cluster_factor.as_str() {
        "1" => format!("{text}: measured on {measured}; as fast as a healthy cluster, so nothing changes"),
        factors => format!("{text}: measured on {measured}; the same as --cluster-factor {factors}"),
    });
    if !report.slow_gpus.is_empty() {
        note_once(&format!(
            "{text}: some GPUs are slower than the others; this holds for a run that leaves them out"
        ));
    }
    Ok(Some(report.cluster_factor))
}

/// Returns the ids of the GPU types that the fields name, alone or by a recipe.
fn wanted(spec: &Spec) -> Vec<String> {
    let catalog = Catalog::embedded();
    let named = [Field::Gpu, Field::GpuTypes].into_iter().filter_map(|field| spec.get(field));
    let names = named.flat_map(|names| names.split(','));
    let mut wanted: Vec<String> =
        names.filter_map(|name| catalog.gpu(name.trim()).ok()).map(|gpu| gpu.id.clone()).collect();
    if wanted.is_empty()
        && let Some(recipe) = spec.get(Field::Recipe).and_then(|id| catalog.recipe(id).ok())
    {
        wanted.push(recipe.id.gpu.to_string());
    }
    wanted
}
