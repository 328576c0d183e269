//! Dropped files: logs and result files, read one at a time and kept while the page is open.

use super::log_text::{LogText, slice, unpacked};
use super::typography::{page_cells, unbroken};
use super::{post, server};
use crate::message::results::{ForPage, LogSection};
use crate::message::{LogCurve, Refusal, RequestError, Row, RowStatus, Saved, TableFormat};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use trainplan_shared::api::RunPage;
use trainplan_shared::log::{Column, LogName, Status};
use trainplan_shared::result::{
    FILE_ENDING, Intake, JobFiles, LARGEST_SETTINGS_FILE, LogPart, Report, RunResult, SettingValues,
    SettingsFile, SlurmJob, UnreadReason, View, is_only_log, read, run_name, sentence, write,
};
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::LogColumn;
use wasm_bindgen_futures::spawn_local;
use web_sys::js_sys::{Array, Date};
use web_sys::{Blob, File};

/// A dropped file that was read.
struct Taken {
    number: u32,
    path: String,
    /// The result, or why the file can't be read.
    run: Result<Rc<RunResult>, String>,
    /// The fields that the user set for this file alone.
    said: Spec,
    /// The file, if it is a log.
    log: Option<DroppedLog>,
    /// The id of the server's run of the same log, if it has one.
    stored: Option<String>,
    /// Whether the server was asked for that run.
    is_looked_up: bool,
}

/// A dropped log, perhaps joined from the logs of a job's starts.
#[derive(Debug, Clone)]
pub(super) struct DroppedLog {
    file: File,
    parts: Vec<LogSection>,
}

impl DroppedLog {
    /// Returns the bytes of the dropped files.
    pub(super) fn size(&self) -> f64 {
        self.file.size()
    }

    /// Returns the logs that it is joined from, each as it was dropped.
    fn sections(&self) -> Result<Vec<Blob>, String> {
        if self.parts.is_empty() {
            return Ok(vec![self.file.clone().into()]);
        }
        let mut from = 0.0;
        let sections = self.parts.iter().map(|part| {
            let begin = from;
            from += part.bytes;
            self.file.slice_with_f64_and_f64(begin, from)
        });
        sections.collect::<Result<_, _>>().map_err(|_| "the browser could not read it".to_string())
    }

    /// Returns the text of the log, decompressed, as the command line uploads it.
    pub(super) async fn text(&self) -> Result<Blob, String> {
        let texts = Array::new();
        for section in self.sections()? {
            let text = unpacked(&section).await?;
            texts.push(&text);
        }
        Blob::new_with_blob_sequence(&texts).map_err(|_| "the browser could not read it".to_string())
    }
}

/// The files that were read, and the page's view.
#[derive(Default)]
struct DroppedFiles {
    taken: Vec<Taken>,
    /// The files that list settings of jobs, with their paths.
    settings: Vec<(String, File)>,
    view: View,
    /// The number, the path and the parts of the next file.
    next: (u32, String, Vec<LogSection>),
    /// How often reading was stopped. Files that were started before the last stop are dropped.
    stops: u32,
    /// Whether a server answered.
    has_server: bool,
}

impl DroppedFiles {
    fn rows(&self) -> Vec<Row> {
        self.taken.iter().map(|taken| taken.row(&self.view)).collect()
    }

    /// Returns the id and the log's hash of a run that the server was not asked for.
    fn next_to_look_up(&self) -> Option<(String, String)> {
        let mut taken = self.taken.iter().filter(|taken| self.has_server && !taken.is_looked_up);
        let run = taken.find_map(|taken| taken.run.as_ref().ok())?;
        Some((run.id.to_string(), run.source.sha256.clone()))
    }
}

thread_local! {
    static DESK: RefCell<DroppedFiles> = RefCell::default();
}

/// Sets the next file.
pub(super) fn expect(number: u32, path: String, parts: Vec<LogSection>) {
    DESK.with_borrow_mut(|desk| desk.next = (number, path, parts));
}

/// Drops the file that is being read.
pub(super) fn stop() {
    DESK.with_borrow_mut(|desk| desk.stops += 1);
}

/// Forgets all files.
pub(super) fn clear() {
    DESK.with_borrow_mut(|desk| {
        desk.taken.clear();
        desk.settings.clear();
    });
}

/// Returns the dropped run with this id, and whether that is the id of a run on the server.
pub(super) fn run(id: &str) -> Option<(Rc<RunResult>, bool)> {
    DESK.with_borrow(|desk| {
        let taken = desk.taken.iter().find(|taken| taken.is(id))?;
        Some((taken.run.clone().ok()?, taken.stored.as_deref() == Some(id)))
    })
}

/// A dropped result worth keeping.
pub(super) struct KeptRun {
    /// The result, as a run of what the user set.
    pub(super) run: Rc<RunResult>,
    /// The fields that the user set for it.
    pub(super) said: Spec,
    /// Its log, if that was dropped.
    pub(super) log: Option<DroppedLog>,
    /// Whether the server has the log under another id: that of a campaign's run.
    pub(super) is_of_campaign: bool,
}

/// Returns the results worth keeping, each once.
pub(super) fn worth_keeping() -> Vec<KeptRun> {
    DESK.with_borrow(|desk| {
        let kept = |(run, taken): (&Rc<RunResult>, &Taken)| {
            // A campaign's run has its recipe from the campaign.
            let of_view =
                Some(&desk.view.spec).filter(|said| **said != Spec::default() && run.carried.is_none());
            KeptRun {
                run: of_view.map_or_else(|| run.clone(), |said| Rc::new(run.identified(said))),
                said: of_view.unwrap_or(&taken.said).clone(),
                log: taken.log.clone(),
                is_of_campaign: taken.stored.as_ref().is_some_and(|id| *id != run.id.to_string()),
            }
        };
        worth(&desk.taken).map(kept).collect()
    })
}

/// Sets whether the server has the run with this id. [`show`] shows it.
pub(super) fn note(id: &str, is_stored: bool) {
    DESK.with_borrow_mut(|desk| {
        for taken in desk.taken.iter_mut().filter(|taken| taken.is(id)) {
            taken.stored = is_stored.then(|| id.to_string());
        }
    });
}

/// Notes that a server answers, and asks it for the runs of the dropped logs.
pub(super) fn note_server() {
    DESK.with_borrow_mut(|desk| desk.has_server = true);
    spawn_local(look_up());
}

/// Asks the server, once for each dropped file, for its run of the same log.
async fn look_up() {
    let mut is_found = false;
    while let Some((id, sha256)) = DESK.with_borrow(DroppedFiles::next_to_look_up) {
        // Without an answer, the next answer to another question starts this again.
        let Ok(stored) = stored_run(&id, &sha256).await else { break };
        is_found |= stored.is_some();
        DESK.with_borrow_mut(|desk| {
            for taken in desk.taken.iter_mut().filter(|taken| taken.is(&id)) {
                taken.is_looked_up = true;
                taken.stored = taken.stored.take().or_else(|| stored.clone());
            }
        });
    }
    if is_found {
        show();
    }
}

/// Posts the rows of all files.
pub(super) fn show() {
    let rows = DESK.with_borrow(DroppedFiles::rows);
    post(&ForPage::Rows(rows));
}

/// Returns the id of the server's run of the log with this SHA-256, if it has one: the run with this id, or else the newest.
async fn stored_run(id: &str, sha256: &str) -> Result<Option<String>, RequestError> {
    let RunPage { items, .. } = server::get(&format!("/runs?log={sha256}")).await?;
    let run = items.iter().find(|run| run.id == id).or(items.first());
    Ok(run.map(|run| run.id.clone()))
}

/// Returns all dropped runs, each with its id on pages.
pub(super) fn runs() -> Vec<(String, Rc<RunResult>)> {
    let known = |taken: &Taken| Some((taken.id()?, taken.run.clone().ok()?));
    DESK.with_borrow(|desk| desk.taken.iter().filter_map(known).collect())
}

/// Sets the scenario of dropped logs and posts the new rows. Without fields, the logs' own facts count. Returns the problems of
/// the fields.
pub(super) fn identify(ids: &[String], said: &Spec) -> Option<Refusal> {
    if let Err(problems) = View::of(said.clone(), None) {
        return problems.into_iter().next().map(Refusal::from);
    }
    DESK.with_borrow_mut(|desk| {
        for taken in &mut desk.taken {
            if ids.iter().any(|id| taken.is(id))
                && let Ok(run) = &mut taken.run
            {
                *run = Rc::new(run.identified(said));
                taken.said = said.clone();
            }
        }
    });
    show();
    None
}

/// Changes the view and posts the new rows.
pub(super) fn look(view: View) {
    DESK.with_borrow_mut(|desk| desk.view = view);
    show();
}

/// Reads a file and posts its row. A file that lists settings of a job is kept for the log beside it, which comes later.
pub(super) async fn take(file: File) {
    let ((number, path, parts), stops) = DESK.with_borrow(|desk| (desk.next.clone(), desk.stops));
    if SettingsFile::of_path(&path).is_some() {
        return DESK.with_borrow_mut(|desk| {
            desk.settings.retain(|(other, _)| *other != path);
            desk.settings.push((path, file));
        });
    }
    let is_stopped = || DESK.with_borrow(|desk| desk.stops != stops);
    let is_log = !path.ends_with(FILE_ENDING);
    let dropped = DroppedLog { file, parts };
    let run = if is_log { log(&dropped, &path, is_stopped).await } else { saved(&dropped.file).await };
    if !is_stopped() {
        let log = is_log.then_some(dropped);
        let (run, said) = (run.map(Rc::new), Spec::default());
        settle(Taken { number, path, run, said, log, stored: None, is_looked_up: false });
        look_up().await;
    }
}

/// Keeps a file and posts its row.
fn settle(taken: Taken) {
    let (has_changed, (row, curve)) = DESK.with_borrow_mut(|desk| {
        let has_changed = taken.log.is_some() && disown(&mut desk.taken, &taken.path);
        desk.taken.push(taken);
        (has_changed, desk.taken.last().map(|taken| (taken.row(&desk.view), taken.curve())).unzip())
    });
    if let (Some(row), Some(curve)) = (row, curve) {
        post(&ForPage::Read { row, curve });
    }
    if has_changed {
        show();
    }
}

/// Removes a configuration that doesn't name its job from the other logs in the folder of a new one, if it may be that of the new
/// one. Returns whether there was any.
fn disown(taken: &mut [Taken], path: &str) -> bool {
    let (folder, name) = split(path);
    let mut has_changed = false;
    for other in taken.iter_mut().filter(|other| other.log.is_some()) {
        let (own_folder, own) = split(&other.path);
        let Ok(run) = &mut other.run else { continue };
        let is_apart = own_folder != folder || own == name || is_only_log(&LogName::of(own), [name]);
        if is_apart || run.job.settings.bridge_config.is_empty() {
            continue;
        }
        let mut job = run.job.clone().with(SettingsFile::BridgeConfig, Err(UnreadReason::Ambiguous));
        job.settings.bridge_config = SettingValues::default();
        let without = RunResult { job, ..RunResult::clone(run) };
        *run = Rc::new(without.identified(&other.said));
        has_changed = true;
    }
    has_changed
}

/// Returns the folder of a path, which is empty for a file that was dropped alone, and the name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns what the files beside a log say about its job.
async fn job_files(path: &str) -> JobFiles {
    let (folder, name) = split(path);
    let own = LogName::of(name);
    let mut job = JobFiles::default();
    for file in SettingsFile::ALL {
        let found = DESK.with_borrow(|desk| {
            let beside = file.path(own.job_id)?;
            let is_beside = |settings: &str| match folder {
                // Files that were dropped alone have no folder.
                "" => settings == beside || settings == split(&beside).1,
                _ => settings.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) == Some(&*beside),
            };
            let (_, settings) = desk.settings.iter().find(|(path, _)| is_beside(path))?;
            let logs = desk.taken.iter().filter(|other| other.log.is_some()).map(|other| split(&other.path));
            let others = logs.filter(|other| other.0 == folder && other.1 != name).map(|other| other.1);
            let is_own = file.names_its_job() || is_only_log(&own, others);
            Some(if is_own { Ok(settings.clone()) } else { Err(UnreadReason::Ambiguous) })
        });
        let read = match found {
            None => continue,
            Some(Err(why)) => Err(why),
            Some(Ok(settings)) => read_settings(file, &settings).await,
        };
        job = job.with(file, read);
    }
    job
}

async fn read_settings(file: SettingsFile, settings: &File) -> Result<SettingValues, UnreadReason> {
    let end = settings.size().min(LARGEST_SETTINGS_FILE as f64 + 1.0);
    let bytes = slice(settings, 0.0, end).await.map_err(|_| UnreadReason::Unreadable)?;
    file.read(&bytes)
}

async fn log(dropped: &DroppedLog, path: &str, is_stopped: impl Fn() -> bool) -> Result<RunResult, String> {
    let mut intake = Intake::new(path, &Spec::default()).written_at(written_at(&dropped.file));
    let mut before = 0.0;
    for part in dropped.sections()? {
        let mut text = LogText::open(&part).await?;
        while let Some(piece) = text.next().await?
            && !is_stopped()
        {
            intake.feed(&piece);
            post(&ForPage::Progress(before + text.done()));
        }
        before += part.size();
    }
    let part = |part: &LogSection| LogPart { name: part.name.clone(), idle_s: None };
    let parts = dropped.parts.iter().map(part).collect();
    Ok(intake.with_job(JobFiles { parts, ..job_files(path).await }).finish())
}

/// Returns when a file was last written, if known.
fn written_at(file: &File) -> Option<String> {
    let written = Date::new(&file.last_modified().into());
    written.get_time().is_finite().then(|| written.to_iso_string().into())
}

/// Reads a saved result.
async fn saved(file: &File) -> Result<RunResult, String> {
    let bytes = slice(file, 0.0, file.size()).await?;
    read(&bytes).map_err(|error| error.to_string())
}

/// Returns the table to save; none if it can't be written.
pub(super) fn save(format: TableFormat) -> Vec<Saved> {
    let reports: Vec<Report> =
        DESK.with_borrow(|desk| desk.taken.iter().map(|taken| taken.report(&desk.view)).collect());
    let text = match format {
        TableFormat::Csv => LogColumn::csv(&reports).to_csv().ok(),
        TableFormat::Json => serde_json::to_string_pretty(&reports).ok(),
    };
    let name = format!("trainplan-results.{}", format.extension());
    text.map(|text| Saved { name, text }).into_iter().collect()
}

/// Returns the result files to save.
pub(super) fn save_results() -> Vec<Saved> {
    DESK.with_borrow(|desk| results(&desk.taken))
}

/// Returns the results with steps, each once.
fn worth(taken: &[Taken]) -> impl Iterator<Item = (&Rc<RunResult>, &Taken)> {
    let mut seen = BTreeSet::new();
    // If a run comes as a log and as a result file, the log says more.
    let (logs, others): (Vec<_>, Vec<_>) = taken.iter().partition(|taken| taken.log.is_some());
    let runs = logs.into_iter().chain(others).filter_map(|taken| Some((taken.run.as_ref().ok()?, taken)));
    runs.filter(move |(run, _)| !run.log.steps.is_empty() && seen.insert(run.id))
}

/// Returns the result files, several of them as an archive, because browsers block many downloads at once.
fn results(taken: &[Taken]) -> Vec<Saved> {
    let file = |(run, _): (&Rc<RunResult>, _)| Some(Saved { name: run.file_name(), text: write(run).ok()? });
    let files: Vec<Saved> = worth(taken).filter_map(file).collect();
    if files.len() < 2 {
        return files;
    }
    let mut archive = tar::Builder::new(Vec::new());
    for Saved { name, text } in &files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        // Writing to memory does not fail.
        let _ = archive.append_data(&mut header, name, text.as_bytes());
    }
    // Names, texts and the zeros between them are text as well.
    let text = archive.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(|text| Saved { name: "trainplan-results.tar".into(), text }).into_iter().collect()
}

/// Returns the id, state and nodes of a job, to find its files on the cluster.
fn job(job: &SlurmJob) -> String {
    let nodes = job.nodes.as_ref().map_or(String::new(), |nodes| format!(" on {nodes}"));
    format!("job {} {}{nodes}", job.id, job.state.to_lowercase())
}

impl Taken {
    /// Returns whether it is the run with this id, or the server's run of its log.
    fn is(&self, id: &str) -> bool {
        self.stored.as_deref() == Some(id) || self.run.as_ref().is_ok_and(|run| run.id.to_string() == id)
    }

    /// Returns the run's id on pages: the server's, if the server has the run too.
    fn id(&self) -> Option<String> {
        self.stored.clone().or_else(|| Some(self.run.as_ref().ok()?.id.to_string()))
    }

    fn report(&self, view: &View) -> Report {
        match &self.run {
            Ok(run) => Report::of(run, view),
            Err(reason) => Report::without(&self.path, Status::Unreadable, Some(reason.clone())),
        }
    }

    fn row(&self, view: &View) -> Row {
        let report = self.report(view);
        let cells = page_cells(LogColumn::page_cells(&report));
        let mut remarks: Vec<String> = report.reason.into_iter().collect();
        // For runs that were not scored, the reason says enough.
        let reasons = report.comparable.reasons.iter().filter(|_| report.status == Status::Scored);
        remarks.extend(reasons.map(|reason| format!("Not comparable: {}", sentence(reason))));
        remarks.extend(report.notes);
        if self.stored.is_some() {
            remarks.insert(0, "Also on the server: this opens the stored run.".to_string());
        }
        let carried = self.run.as_ref().ok().and_then(|run| run.carried.as_ref());
        remarks.extend(carried.into_iter().flat_map(|carried| &carried.jobs).map(job));
        let title = carried
            .map(|of| format!("{} on {}", run_name(&of.campaign, of.round, &of.run, of.repeat), of.cluster));
        Row {
            number: self.number,
            // The same in both tables, so that both rows are one run.
            id: report.id.map(|id| self.stored.clone().unwrap_or(id)).unwrap_or_default(),
            status: RowStatus::of(report.status, report.ending),
            remarks: remarks.iter().map(|remark| unbroken(remark)).collect(),
            campaign: carried.map(|carried| carried.campaign.clone()),
            cluster: carried.map(|carried| carried.cluster.clone()),
            recipe: None,
            cells,
            path: title.unwrap_or(report.path),
        }
    }

    fn curve(&self) -> LogCurve {
        let Ok(run) = &self.run else { return LogCurve::default() };
        let steps = &run.log.steps;
        let column = |column: &Column| (0..steps.len()).map(|row| column.get(row)).collect();
        LogCurve {
            labels: steps.label.iter().map(|label| *label as f64).collect(),
            step_time_s: column(&steps.step_time_s),
            loss: column(&steps.loss),
        }
    }
}
