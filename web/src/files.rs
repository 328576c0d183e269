//! The dropped or chosen files, including those in folders, with their paths.

use crate::message::results::LogSection;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::js_sys::{Array, Function, Promise, Reflect};
use leptos::web_sys::{
    DataTransfer, File, FileList, FilePropertyBag, FileSystemDirectoryEntry, FileSystemDirectoryReader,
    FileSystemEntry, FileSystemFileEntry,
};
use trainplan_shared::log::{LogName, uncompressed_name};
use trainplan_shared::result::{SettingsFile, is_log_name, is_told_elsewhere, parts_of};
use wasm_bindgen_futures::JsFuture;

/// A file with its path; the browser gives the path within a chosen or dropped folder only.
#[derive(Debug, Clone)]
pub(crate) struct FoundFile {
    pub(crate) path: String,
    pub(crate) file: File,
    /// The logs of a job's starts that the file is joined from; empty for a single log.
    pub(crate) parts: Vec<LogSection>,
}

impl FoundFile {
    fn single(path: String, file: File) -> FoundFile {
        FoundFile { path, file, parts: Vec::new() }
    }

    /// Joins the logs of a job's starts. The browser keeps references to the files, not copies.
    fn joined(all: &[FoundFile]) -> Option<FoundFile> {
        let last = all.last()?;
        if all.len() == 1 {
            return Some(last.clone());
        }
        let section = |found: &FoundFile| LogSection { name: found.file.name(), bytes: found.file.size() };
        let options = FilePropertyBag::new();
        options.set_last_modified(last.file.last_modified());
        let files: Array = all.iter().map(|found| found.file.clone()).collect();
        let file = File::new_with_blob_sequence_and_options(&files, &last.file.name(), &options).ok()?;
        Some(FoundFile { path: last.path.clone(), file, parts: all.iter().map(section).collect() })
    }
}

/// Returns the files of a file input. From a chosen folder it takes only logs, and files that list settings of their jobs, by their names.
pub(crate) fn chosen(list: Option<FileList>) -> Vec<FoundFile> {
    let files = list.into_iter().flat_map(|list| (0..list.length()).filter_map(move |index| list.get(index)));
    let found = files
        .filter_map(|file| {
            let inside = Reflect::get(&file, &"webkitRelativePath".into())
                .ok()
                .and_then(|path| path.as_string())
                .unwrap_or_default();
            let path = if inside.is_empty() { file.name() } else { inside.clone() };
            (inside.is_empty() || is_read(&path)).then_some(FoundFile::single(path, file))
        })
        .collect();
    joined(&without_batch_output(found))
}

/// Returns whether a file of a folder looks like a log, which may be compressed, or lists settings of a job.
fn is_read(path: &str) -> bool {
    is_log_name(uncompressed_name(path)) || SettingsFile::of_path(path).is_some()
}

/// Joins the logs of each job's starts in a folder.
fn joined(found: &[FoundFile]) -> Vec<FoundFile> {
    let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
    let of = |parts: Vec<usize>| {
        let parts: Vec<FoundFile> = parts.into_iter().filter_map(|place| found.get(place).cloned()).collect();
        FoundFile::joined(&parts)
    };
    all_parts(&paths).into_iter().filter_map(of).collect()
}

/// Returns for each log the places of its parts. A file without a folder was chosen alone and has no other
/// parts.
fn all_parts(paths: &[&str]) -> Vec<Vec<usize>> {
    let folder = |place: usize| paths.get(place)?.rsplit_once('/').map(|(folder, _)| folder);
    let names: Vec<LogName> = paths.iter().map(|path| LogName::of(path)).collect();
    let parts = |place: usize| match folder(place) {
        None => Some(vec![place]),
        own => parts_of(place, &names, |other| folder(other) == own),
    };
    (0..paths.len()).filter_map(parts).collect()
}

/// Removes the output of batch scripts if the training log of the same job is in the same folder.
fn without_batch_output(found: Vec<FoundFile>) -> Vec<FoundFile> {
    let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
    let is_output = are_batch_output(&paths);
    found.into_iter().zip(is_output).filter(|(_, is_output)| !is_output).map(|(found, _)| found).collect()
}

/// Returns for each path whether it is such an output. A file without a folder was chosen alone, so it is not
/// one.
fn are_batch_output(paths: &[&str]) -> Vec<bool> {
    let split =
        |path: &&str| (path.rsplit_once('/').map(|(folder, _)| folder.to_string()), LogName::of(path));
    let all: Vec<(Option<String>, LogName)> = paths.iter().map(split).collect();
    let is_output = |(folder, name): &(Option<String>, LogName)| {
        let same_folder = all.iter().filter(|other| other.0 == *folder);
        let names: Vec<LogName> = same_folder.map(|other| other.1.clone()).collect();
        folder.is_some() && is_told_elsewhere(name, &names)
    };
    all.iter().map(is_output).collect()
}

/// A dropped item.
pub(crate) enum DroppedItem {
    /// A file or a folder of the file system.
    Entry(FileSystemEntry),
    /// A file that another program provides, without a path.
    Loose(File),
}

/// Returns the dropped items. Call it in the event handler: the browser discards them afterwards.
pub(crate) fn dropped(transfer: Option<DataTransfer>) -> Vec<DroppedItem> {
    let Some(items) = transfer.map(|transfer| transfer.items()) else { return Vec::new() };
    let each = (0..items.length()).filter_map(|index| items.get(index));
    let taken = each.filter_map(|item| match item.webkit_get_as_entry() {
        Ok(Some(entry)) => Some(DroppedItem::Entry(entry)),
        _ => item.get_as_file().ok().flatten().map(DroppedItem::Loose),
    });
    taken.collect()
}

/// Returns the dropped files. From folders, at any depth, it takes only logs, and files that list settings of their jobs, by their names.
pub(crate) async fn walk(dropped: Vec<DroppedItem>) -> Result<Vec<FoundFile>, JsValue> {
    let mut found = Vec::new();
    let mut open: Vec<(FileSystemEntry, bool)> = Vec::new();
    for dropped in dropped {
        match dropped {
            DroppedItem::Entry(entry) => open.push((entry, true)),
            DroppedItem::Loose(file) => found.push(FoundFile::single(file.name(), file)),
        }
    }
    while let Some((entry, named)) = open.pop() {
        let path = entry.full_path().trim_start_matches('/').to_string();
        if entry.is_directory() {
            let reader = entry.unchecked_into::<FileSystemDirectoryEntry>().create_reader();
            open.extend(list(&reader).await?.into_iter().map(|entry| (entry, false)));
        } else if named || is_read(&path) {
            let file = file(&entry.unchecked_into()).await?;
            found.push(FoundFile::single(path, file));
        }
    }
    Ok(joined(&without_batch_output(found)))
}

/// Returns all entries of a folder. The browser returns a hundred at a time, and an empty list at the end.
async fn list(reader: &FileSystemDirectoryReader) -> Result<Vec<FileSystemEntry>, JsValue> {
    let mut all = Vec::new();
    loop {
        let some = called_back(|resolve, reject| {
            let _ = reader.read_entries_with_callback_and_callback(resolve, reject);
        });
        let some: Array = some.await?.unchecked_into();
        if some.length() == 0 {
            return Ok(all);
        }
        all.extend(some.iter().map(JsCast::unchecked_into::<FileSystemEntry>));
    }
}

async fn file(entry: &FileSystemFileEntry) -> Result<File, JsValue> {
    let file = called_back(|resolve, reject| entry.file_with_callback_and_callback(resolve, reject));
    file.await.map(JsCast::unchecked_into)
}

/// Waits for a function that takes callbacks.
async fn called_back(call: impl Fn(&Function, &Function)) -> Result<JsValue, JsValue> {
    JsFuture::from(Promise::new(&mut |resolve, reject| call(&resolve, &reject))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logs_of_a_jobs_starts_are_joined_within_their_folder() {
        let log = |folder: &str, restart: u32| {
            format!("{folder}log-acct.pretrain_llama3.1_8b_fp8_8_71_{restart}.out")
        };
        let paths = [log("a/", 1), log("a/", 0), log("b/", 0), log("", 0), log("", 1)];
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(all_parts(&paths), [vec![1, 0], vec![2], vec![3], vec![4]]);
        assert!(is_read("run/log-x_1_0.out.gz") && !is_read("run/model.bin.gz"));
        assert!(is_read("run/configs/ConfigContainer.yaml") && !is_read("run/configs/config.yaml"));
    }

    #[test]
    fn batch_output_is_left_out_beside_the_training_log_of_its_job_only() {
        let log = "log-acct.pretrain_llama3.1_405b_fp8_512_71_0.out";
        let output = "sbatch_acct.pretrain_llama3.1_405b_fp8_512_71.out";
        let in_folder = |name: &str| format!("run/{name}");
        let paths = [in_folder(log), in_folder(output)];
        assert_eq!(are_batch_output(&[&paths[0], &paths[1]]), [false, true]);
        assert_eq!(are_batch_output(&[&paths[1]]), [false]);
        assert_eq!(are_batch_output(&[log, output]), [false, false]);
    }
}
