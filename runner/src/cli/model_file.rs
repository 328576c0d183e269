//! `--model` with the `config.json` of a Hugging Face repository.

use super::note_once;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::hugging_face::{self, ImportedModel};
use trainplan_shared::message;
use trainplan_shared::problem::Problem;

/// Far larger than any description, in bytes.
const LARGEST: u64 = 4 << 20;

/// Returns the model of a file as text, or none if `text` is not a path. A relative path is below `folder`. Notes report
/// what was assumed.
///
/// # Errors
/// The file can't be read, or is not a known kind of model.
pub(super) fn read(folder: &Path, text: &str) -> Result<Option<String>, Problem> {
    let Some(path) = path(folder, text) else { return Ok(None) };
    let refuse = |why: String| {
        Problem::new(
            Field::Model,
            path.display(),
            message![Field::Model, format!(" {}: {why}", path.display())],
        )
    };
    let content = content(&path).map_err(|error| refuse(format!("The file can't be read: {error}.")))?;
    let content = String::from_utf8(content)
        .map_err(|_| refuse("The file is not valid JSON: it is not UTF-8 text.".to_string()))?;
    let ImportedModel { model, notes, unknown, .. } =
        hugging_face::read(&content).map_err(|error| refuse(error.to_string()))?;
    let file = path.display();
    for assumed in notes {
        note_once(&format!("{file}: {assumed}"));
    }
    for field in unknown {
        note_once(&format!("{file}: Ignored field (may affect the result): {field}."));
    }
    note_once(&format!("{file}: To use this model without the file, give --model {}", model.id));
    Ok(Some(model.id))
}

/// The file that `text` names. A published model's name stays its name, whatever lies in the folder.
fn path(folder: &Path, text: &str) -> Option<PathBuf> {
    if text.starts_with("own:") || Catalog::embedded().model(text).is_ok() {
        return None;
    }
    let path = folder.join(text);
    let inside = path.join("config.json");
    if inside.is_file() {
        return Some(inside);
    }
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    (is_json || path.is_file()).then_some(path)
}

/// Returns what is in a file of reasonable size.
pub(super) fn content(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a named pipe would wait until another program writes to it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut content)?;
    match content.len() as u64 > LARGEST {
        true => Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20))),
        false => Ok(content),
    }
}
