//! `--stack` with a file that describes the user's own software.

use super::{model_file, note_once, probe_file};
use std::path::Path;
use trainplan_shared::field::Field;
use trainplan_shared::message;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::{Software, StackFile};

/// How the name of such a file ends.
const ENDING: &str = ".toml";

/// Returns the software of a file as text, or none if `text` is not a path. A relative path is below `folder`. A note says
/// which software it is.
///
/// # Errors
/// The file can't be read, or doesn't describe software.
pub(super) fn read(folder: &Path, text: &str) -> Result<Option<String>, Problem> {
    if !text.ends_with(ENDING) {
        return Ok(None);
    }
    let path = folder.join(text);
    let place = message![Field::Stack, format!(" {}: ", path.display())];
    let refuse = |why: String| Problem::new(Field::Stack, text, place.clone().and(why));
    let content =
        model_file::content(&path).map_err(|error| refuse(format!("The file can't be read: {error}.")))?;
    let content =
        String::from_utf8(content).map_err(|_| refuse("The file is not UTF-8 text.".to_string()))?;
    let StackFile { name, software } = StackFile::parse(&content)
        .map_err(|problem| Problem { message: place.clone().and(problem.message), ..problem })?;
    note_once(&format!("{text}: {name} is {}. Without the file, give --stack {software}", software.title()));
    Ok(Some(software.to_string()))
}

/// Returns the software of a value of `--stack`, which may be a file.
///
/// # Errors
/// Those of [`read`], and unknown software.
pub(super) fn software(text: &str) -> Result<Software, Problem> {
    let file = read(Path::new(""), text)?;
    file.as_deref().unwrap_or(text).parse()
}

/// Returns the fields with the files of an own model, an own stack and a probe as texts. Relative paths are below `folder`.
///
/// # Errors
/// Those of [`model_file::read`], [`read`] and [`probe_file::read`].
pub(super) fn with_files(mut spec: Spec, folder: &Path) -> Result<Spec, Problem> {
    type Read = fn(&Path, &str, &Spec) -> Result<Option<String>, Problem>;
    let readers: [(Field, Read); 3] = [
        (Field::Model, |folder, text, _| model_file::read(folder, text)),
        (Field::Stack, |folder, text, _| read(folder, text)),
        (Field::ClusterFactor, probe_file::read),
    ];
    for (field, read) in readers {
        if let Some(text) = spec.get(field).map(|text| read(folder, text, &spec)).transpose()?.flatten() {
            spec.set(field, text);
        }
    }
    Ok(spec)
}
