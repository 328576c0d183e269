//! Files that someone drops or chooses, folders included, each with its path.

use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::js_sys::{Array, Function, Promise, Reflect};
use leptos::web_sys::{
    DataTransfer, File, FileList, FileSystemDirectoryEntry, FileSystemDirectoryReader, FileSystemEntry,
    FileSystemFileEntry,
};
use trainplan_shared::log::Name;
use trainplan_shared::result::{is_log_name, is_told_elsewhere};
use wasm_bindgen_futures::JsFuture;

/// A file and where it was, as far as the browser says.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) path: String,
    pub(crate) file: File,
}

/// The files of a file input; of a chosen folder only what looks like a log.
pub(crate) fn chosen(list: Option<FileList>) -> Vec<Found> {
    let files = list.into_iter().flat_map(|list| (0..list.length()).filter_map(move |index| list.get(index)));
    let found = files
        .filter_map(|file| {
            let inside = Reflect::get(&file, &"webkitRelativePath".into())
                .ok()
                .and_then(|path| path.as_string())
                .unwrap_or_default();
            let path = if inside.is_empty() { file.name() } else { inside.clone() };
            (inside.is_empty() || is_log_name(&path)).then_some(Found { path, file })
        })
        .collect();
    without_batch_output(found)
}

/// Without what batch scripts printed beside the training log of the same job, in the same folder.
fn without_batch_output(found: Vec<Found>) -> Vec<Found> {
    let folder = |found: &Found| found.path.rsplit_once('/').map(|(folder, _)| folder.to_string());
    let all: Vec<(Option<String>, Name)> =
        found.iter().map(|found| (folder(found), Name::of(&found.path))).collect();
    let is_told = |(folder, name): &(Option<String>, Name)| {
        let beside: Vec<Name> =
            all.iter().filter(|other| other.0 == *folder).map(|other| other.1.clone()).collect();
        // What lies in no folder was chosen by itself.
        folder.is_some() && is_told_elsewhere(name, &beside)
    };
    found.into_iter().zip(&all).filter(|(_, names)| !is_told(names)).map(|(found, _)| found).collect()
}

/// Something that was dropped.
pub(crate) enum Dropped {
    /// From a disk: a file, or a folder to walk.
    Entry(FileSystemEntry),
    /// From another program: a file that lies nowhere.
    Loose(File),
}

/// What was dropped. The browser forgets it when the event is over, so it is taken at once and read later.
pub(crate) fn dropped(transfer: Option<DataTransfer>) -> Vec<Dropped> {
    let Some(items) = transfer.map(|transfer| transfer.items()) else { return Vec::new() };
    let each = (0..items.length()).filter_map(|index| items.get(index));
    let taken = each.filter_map(|item| match item.webkit_get_as_entry() {
        Ok(Some(entry)) => Some(Dropped::Entry(entry)),
        _ => item.get_as_file().ok().flatten().map(Dropped::Loose),
    });
    taken.collect()
}

/// The files of what was dropped; of folders, however deep, only what looks like a log.
pub(crate) async fn walk(dropped: Vec<Dropped>) -> Result<Vec<Found>, JsValue> {
    let mut found = Vec::new();
    let mut open: Vec<(FileSystemEntry, bool)> = Vec::new();
    for dropped in dropped {
        match dropped {
            Dropped::Entry(entry) => open.push((entry, true)),
            Dropped::Loose(file) => found.push(Found { path: file.name(), file }),
        }
    }
    while let Some((entry, named)) = open.pop() {
        let path = entry.full_path().trim_start_matches('/').to_string();
        if entry.is_directory() {
            let reader = entry.unchecked_into::<FileSystemDirectoryEntry>().create_reader();
            open.extend(list(&reader).await?.into_iter().map(|entry| (entry, false)));
        } else if named || is_log_name(&path) {
            let file = file(&entry.unchecked_into()).await?;
            found.push(Found { path, file });
        }
    }
    Ok(without_batch_output(found))
}

/// All entries of a folder: a browser gives a hundred at a time, and none at the end.
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

/// Waits for an old function that calls back.
async fn called_back(call: impl Fn(&Function, &Function)) -> Result<JsValue, JsValue> {
    JsFuture::from(Promise::new(&mut |resolve, reject| call(&resolve, &reject))).await
}
