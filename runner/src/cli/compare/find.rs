//! Finds the runs of the command line: files, or stored runs by id or name.

use super::super::data_dir::StoreArgs;
use super::super::stored::Stored;
use super::super::{Failure, note, parse};
use crate::side_by_side;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use trainplan_shared::api::RunSummary;
use trainplan_shared::result::{RunResult, View};

/// The fewest digits of an id.
const SHORTEST: usize = 4;

/// Returns the runs of the command line, in its order, or all errors at once.
pub(super) fn all(names: &[String], view: &View, data: &StoreArgs) -> Result<Vec<RunResult>, Failure> {
    let files = side_by_side::map(names, |name| is_path(name).then(|| of_path(Path::new(name), view)));
    let from_store = FromStore { data, stored: OnceCell::new() };
    let (mut runs, mut failures) = (Vec::new(), Vec::new());
    for (name, file) in names.iter().zip(files) {
        match file.unwrap_or_else(|| from_store.run(name)) {
            Ok(run) => runs.push(run),
            // The store can't be read: that is not an error of a name.
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

/// Returns the only run of a path.
fn of_path(path: &Path, view: &View) -> Result<RunResult, Failure> {
    let wrong = |what| Failure::Contents { path: PathBuf::from(path), what };
    let mut found = parse::runs(path, view);
    match (found.pop(), found.len()) {
        (Some(Ok(run)), 0) => Ok(run),
        (Some(Err(report)), 0) => Err(wrong(report.reason.unwrap_or_else(|| "contains no run".into()))),
        (_, more) => Err(wrong(format!("contains {} logs; choose one", more + 1))),
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
                "{name} is not a file, and doesn't identify a run in the store {}. {why}",
                stored.place()
            ))
        })?;
        stored.result(id)?.ok_or_else(|| Failure::NoRun(format!("{name}: the run {id} was just deleted")))
    }
}

/// Returns the id of the run with this name among `runs`, which are sorted by age, the newest first.
fn identify<'a>(name: &str, runs: &'a [RunSummary]) -> Result<&'a str, String> {
    let lower = name.to_ascii_lowercase();
    let has_digits = |run: &&RunSummary| {
        name.len() >= SHORTEST && (run.id.starts_with(&lower) || run.id.ends_with(&lower))
    };
    let is_short = name.len() < SHORTEST && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let by_id: Vec<&RunSummary> = runs.iter().filter(has_digits).collect();
    match by_id[..] {
        [run] => return Ok(&run.id),
        [first, second, ..] => {
            return Err(format!(
                "{} ids start or end with these digits, such as {} and {}. Use more digits.",
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
        let is_of = |name: &str| {
            name == campaign || run.round.is_some_and(|round| name == format!("{campaign}@{round}"))
        };
        let named =
            plain == called || plain.split_once('/').is_some_and(|(of, name)| name == called && is_of(of));
        named && (repeat.is_none() || run.repeat == repeat)
    };
    let by_name: Vec<&RunSummary> = runs.iter().filter(is_called).collect();
    if let [newest, _, ..] = by_name[..] {
        note(&format!("{name} is {}, the newest of {} runs with this name", newest.id, by_name.len()));
    }
    by_name.first().map(|run| run.id.as_str()).ok_or_else(|| match is_short {
        _ if runs.is_empty() => "The store has no runs.".to_owned(),
        true => format!("No run has this name. To find a run by its id, use at least {SHORTEST} digits."),
        false => {
            format!(
                "None of its {} runs has this id or name. `trainplan results list` shows both.",
                runs.len()
            )
        }
    })
}
