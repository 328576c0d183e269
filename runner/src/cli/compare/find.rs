//! The runs that a person means: by files, or by what they are called in the store.

use super::super::data_dir::StoreArgs;
use super::super::stored::Stored;
use super::super::{Failure, note, parse, side_by_side};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use trainplan_shared::api::RunSummary;
use trainplan_shared::result::{RunResult, View};

/// The shortest beginning of an id that is taken for one.
const SHORTEST: usize = 4;

/// The runs of the command line, in its order. All that is wrong with them is told at once.
pub(super) fn all(names: &[String], view: &View, data: &StoreArgs) -> Result<Vec<RunResult>, Failure> {
    let files = side_by_side::map(names, |name| is_path(name).then(|| of_path(Path::new(name), view)));
    let from_store = FromStore { data, stored: OnceCell::new() };
    let (mut runs, mut failures) = (Vec::new(), Vec::new());
    for (name, file) in names.iter().zip(files) {
        match file.unwrap_or_else(|| from_store.run(name)) {
            Ok(run) => runs.push(run),
            // The store itself can't be read: that is no mistake in a name.
            Err(failure @ (Failure::Store(_) | Failure::DataDir(_) | Failure::Output(_))) => {
                return Err(failure);
            }
            Err(failure) => failures.push(failure),
        }
    }
    match failures.len() {
        0 => Ok(runs),
        _ => Err(Failure::Several(failures)),
    }
}

fn is_path(name: &str) -> bool {
    name == "-" || Path::new(name).symlink_metadata().is_ok()
}

/// The one run that a path holds.
fn of_path(path: &Path, view: &View) -> Result<RunResult, Failure> {
    let wrong = |what| Failure::Contents { path: PathBuf::from(path), what };
    let mut found = parse::runs(path, view);
    match (found.pop(), found.len()) {
        (Some(Ok(run)), 0) => Ok(run),
        (Some(Err(report)), 0) => Err(wrong(report.reason.unwrap_or_else(|| "it holds no run".into()))),
        (_, more) => Err(wrong(format!("it holds {} logs: name one of them", more + 1))),
    }
}

/// The store, opened when the first name asks for it.
struct FromStore<'a> {
    data: &'a StoreArgs,
    stored: OnceCell<(Stored, Vec<RunSummary>)>,
}

impl FromStore<'_> {
    fn run(&self, name: &str) -> Result<RunResult, Failure> {
        let (stored, runs) = match self.stored.get() {
            Some(open) => open,
            None => {
                let stored = Stored::open(self.data)?;
                let runs = stored.summaries()?;
                self.stored.get_or_init(|| (stored, runs))
            }
        };
        let id = identify(name, runs).map_err(|why| {
            Failure::NoRun(format!(
                "{name}: there is no such file, and in the store {} {why}",
                stored.place()
            ))
        })?;
        stored.result(id)?.ok_or_else(|| Failure::NoRun(format!("{name}: {id} was deleted meanwhile")))
    }
}

/// The id of the run that a name means among `runs`, which stand newest first.
fn identify<'a>(name: &str, runs: &'a [RunSummary]) -> Result<&'a str, String> {
    let lower = name.to_ascii_lowercase();
    let begins = |run: &&RunSummary| name.len() >= SHORTEST && run.id.starts_with(&lower);
    let is_short = name.len() < SHORTEST && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let by_id: Vec<&RunSummary> = runs.iter().filter(begins).collect();
    match by_id[..] {
        [run] => return Ok(&run.id),
        [first, second, ..] => {
            return Err(format!(
                "{} ids begin so, such as {} and {}: give more of the id",
                by_id.len(),
                first.id,
                second.id
            ));
        }
        [] => {}
    }
    let (plain, repeat) = match name.rsplit_once('#') {
        Some((plain, repeat)) => (plain.trim_end(), repeat.parse::<u32>().ok()),
        None => (name, None),
    };
    let is_called = |run: &&RunSummary| {
        let (Some(campaign), Some(called)) = (&run.campaign, &run.run) else { return false };
        let named = plain == called || plain.split_once('/') == Some((campaign, called));
        named && (repeat.is_none() || run.repeat == repeat)
    };
    let by_name: Vec<&RunSummary> = runs.iter().filter(is_called).collect();
    if let [newest, _, ..] = by_name[..] {
        note(&format!("{name} means {}, the newest of {} such runs", newest.id, by_name.len()));
    }
    by_name.first().map(|run| run.id.as_str()).ok_or_else(|| match is_short {
        true => format!("no run has such a name; of an id give {SHORTEST} digits at least"),
        false => format!(
            "none of {} runs has an id that begins so, or such a name: `trainplan results list` has both",
            runs.len()
        ),
    })
}
