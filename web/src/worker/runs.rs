//! Runs: dropped on the page, or on the server.

use super::typography::page_cells;
use super::{files, server};
use crate::message::LINES;
use crate::message::{RequestError, Row, RowStatus, Runs, Saved, Table};
use std::cell::RefCell;
use std::rc::Rc;
use trainplan_shared::api::{
    LogFault, LogLines, RunPage, RunSummary, ScoreSummary, ScoreVersion, ScoreVersions,
};
use trainplan_shared::field::Field;
use trainplan_shared::log::{LogName, Status};
use trainplan_shared::result::{RunResult, read};
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::StoredRunColumn;
use trainplan_shared::units::{minute, readable, significant};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, Url};

/// The number of the server's runs that are kept, so that a change of the view needs no request.
const KEPT: usize = 32;

/// The number of rows per page.
const ROWS: usize = 50;

thread_local! {
    static FETCHED: RefCell<Vec<Rc<RunResult>>> = RefCell::default();
}

/// Returns a page of the server's runs.
pub(super) async fn page(query: &str) -> Result<Runs, RequestError> {
    let RunPage { items, next_cursor } = list(query, ROWS).await?;
    files::note_server();
    Ok(Runs { rows: items.into_iter().map(row).collect(), next: next_cursor })
}

pub(super) async fn list(query: &str, limit: usize) -> Result<RunPage, RequestError> {
    let and = if query.is_empty() { "" } else { "&" };
    server::get(&format!("/runs?{query}{and}limit={limit}")).await
}

/// Returns the filters of a query that match no run by themselves.
pub(super) async fn unmet(query: &str) -> Result<Vec<String>, RequestError> {
    let mut unmet = Vec::new();
    for filter in query.split('&').filter(|filter| !filter.is_empty()) {
        if list(filter, 1).await?.items.is_empty() {
            unmet.extend(filter.split('=').next().map(str::to_string));
        }
    }
    Ok(unmet)
}

fn row(summary: RunSummary) -> Row {
    let title = match (summary.name(), &summary.cluster) {
        (Some(name), Some(cluster)) => format!("{name} on {cluster}"),
        _ => called(summary.path.clone()),
    };
    let is_unlike = !summary.comparable && summary.status == Status::Scored;
    let faults = [("Log", summary.log_fault), ("Result", summary.result_fault)];
    let faults = faults.into_iter().filter_map(|(what, fault)| Some(format!("{what} {}", fault?.id())));
    let software = summary.predicted_software().map(|software| format!("Predicted for {software}."));
    let is_unlike = is_unlike.then(|| "Not comparable".to_string());
    Row {
        number: 0,
        id: summary.id.clone(),
        path: title,
        remarks: is_unlike.into_iter().chain(faults).chain(software).collect(),
        status: RowStatus::of(summary.status, summary.ending),
        cells: page_cells(StoredRunColumn::page_cells(&summary)),
        recipe: summary.recipe,
        campaign: summary.campaign,
        cluster: summary.cluster,
    }
}

/// Returns the experiment and the job of a log, as comparisons label it; else its path.
fn called(path: String) -> String {
    let LogName { experiment, job_id, .. } = LogName::of(&path);
    match job_id.filter(|_| !experiment.is_empty()) {
        Some(job) => format!("{experiment} (job {job})"),
        None => path,
    }
}

/// Returns a run, and whether the server has it. A stored run whose log was also dropped has what the dropped log adds.
pub(super) async fn find(id: &str) -> Result<(Rc<RunResult>, bool), RequestError> {
    let Some((dropped, is_stored)) = files::run(id) else {
        return Ok((stored(id).await?, true));
    };
    // It may have been deleted from the server meanwhile.
    let stored = if is_stored { stored(id).await.ok() } else { None };
    Ok(match stored {
        Some(stored) => (Rc::new(RunResult::clone(&stored).completed_by(&dropped)), true),
        None => (dropped, false),
    })
}

/// Returns a run of the server.
async fn stored(id: &str) -> Result<Rc<RunResult>, RequestError> {
    let kept = FETCHED.with_borrow(|kept| kept.iter().find(|run| run.id.to_string() == id).cloned());
    if let Some(run) = kept {
        return Ok(run);
    }
    let file = server::bytes(&format!("/runs/{}", segment(id))).await?;
    let run = Rc::new(read(&file).map_err(|error| RequestError::Other(error.to_string()))?);
    FETCHED.with_borrow_mut(|kept| {
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(run.clone());
    });
    files::note_server();
    Ok(run)
}

/// Forgets the fetched runs, which may have changed on the server.
pub(super) fn forget() {
    FETCHED.with_borrow_mut(Vec::clear);
}

/// Has the server score a run again as a run of what the user set.
pub(super) async fn rescore(id: &str, said: &Spec) -> Result<(), RequestError> {
    let value = |(field, text): (Field, &str)| format!("{}={}", field.flag(), segment(text));
    let query: Vec<String> = said.iter().map(value).collect();
    let path = format!("/runs/{}/scores?{}", segment(id), query.join("&"));
    server::send("POST", &path, None).await?;
    forget();
    Ok(())
}

/// Deletes a run from the server.
pub(super) async fn delete(id: &str) -> Result<(), RequestError> {
    server::delete(&format!("/runs/{}", segment(id))).await?;
    files::note(id, false);
    files::show();
    forget();
    Ok(())
}

/// Returns the result file of a run.
pub(super) async fn file(id: &str) -> Result<Saved, RequestError> {
    let (run, _) = find(id).await?;
    let text =
        trainplan_shared::result::write(&run).map_err(|error| RequestError::Other(error.to_string()))?;
    Ok(Saved { name: run.file_name(), text })
}

/// Returns the server's summary of a run.
pub(super) async fn summary(id: &str) -> Result<RunSummary, RequestError> {
    server::get(&format!("/runs/{}/summary", segment(id))).await
}

/// Returns what is wrong with the server's copy of a run's log, if a check found a fault.
pub(super) async fn log_fault(id: &str) -> Result<Option<LogFault>, RequestError> {
    Ok(summary(id).await?.log_fault)
}

/// Returns the scores of a run by parser version.
pub(super) async fn scores(id: &str) -> Result<Table, RequestError> {
    let ScoreVersions::<ScoreSummary> { items } =
        server::get(&format!("/runs/{}/scores", segment(id))).await?;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_string());
    let row = |ScoreVersion { parser_version, scored_at, report }: ScoreVersion<ScoreSummary>| {
        vec![
            format!("Parser {parser_version}"),
            report.status.title().to_string(),
            or_none(report.recipe),
            or_none(report.step_time_s.map(|stat| significant(stat.mean, 5))),
            or_none(report.mfu.map(|mfu| readable(mfu * 100.0))),
            scored_at.map_or_else(|| "as uploaded".to_string(), |at| minute(&at)),
        ]
    };
    Ok(Table {
        caption: "What each version of the parser made of the log".into(),
        head: ["Scored by", "Status", "Recipe", "Scored, s", "MFU, %", "When"].map(String::from).into(),
        rows: items.into_iter().map(row).collect(),
    })
}

/// Returns lines of a run's log.
pub(super) async fn lines(id: &str, from: u64, find: &str) -> Result<LogLines, RequestError> {
    // Asking for a log that is not there would be an error in the browser's eyes.
    if !summary(id).await?.has_log {
        return Err(RequestError::NoServer);
    }
    let find = if find.is_empty() { String::new() } else { format!("&q={}", segment(find)) };
    server::get(&format!("/runs/{}/log/lines?from={from}&count={LINES}{find}", segment(id))).await
}

/// Returns an address of a run's log for the browser, which can't send the token itself.
pub(super) async fn log_address(id: &str) -> Result<String, RequestError> {
    let response = server::send("GET", &format!("/runs/{}/log", segment(id)), None).await?;
    let blob = response.blob().map_err(|_| RequestError::NoNetwork)?;
    let blob: Blob = JsFuture::from(blob).await.map_err(|_| RequestError::NoNetwork)?.unchecked_into();
    Url::create_object_url_with_blob(&blob).map_err(|_| RequestError::NoNetwork)
}

/// Returns a text escaped for an address.
pub(super) fn segment(text: &str) -> String {
    web_sys::js_sys::encode_uri_component(text).into()
}
