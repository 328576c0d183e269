//! The worker of pages: what would make them too large to wait for. It is a program of its own, fetched after the page
//! stands; messages are described in [`crate::message`], which both sides share.
//!
//! For the Plan page it predicts, launches and reads models ([`plan`]). For the Results page it reads logs, one at a time
//! as the page hands them over, asks the server for its results ([`server`]), keeps what they measured, and says what of
//! it to show.

#[path = "../message.rs"]
mod message;
mod plan;
mod server;

use message::{Cell, Curve, ForPage, ForWorker, Row, Saved};
use std::cell::RefCell;
use trainplan_shared::estimate::Interval;
use trainplan_shared::link;
use trainplan_shared::log::{Column, Status, Window};
use trainplan_shared::problem::Field;
use trainplan_shared::result::{
    AgainstPlan, Carried, FILE_ENDING, Intake, Job, Report, RunResult, View, csv, read, write,
};
use trainplan_shared::spec::Spec;
use trainplan_shared::units::{group_digits, significant};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::js_sys::{Reflect, Uint8Array, global};
use web_sys::{DedicatedWorkerGlobalScope, File, MessageEvent};

/// Bytes that are read at a time: enough to be fast, little enough to say often how far it is.
const CHUNK: f64 = 4.0 * 1024.0 * 1024.0;

/// A file that has been taken.
struct Taken {
    number: u32,
    path: String,
    /// What it measured, or why it can't be read.
    run: Result<RunResult, String>,
}

/// Everything taken, and how the page looks at it.
#[derive(Default)]
struct Desk {
    taken: Vec<Taken>,
    view: View,
    /// The number and the path of the file that comes next.
    next: (u32, String),
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
}

fn main() {
    let hear = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let data = match event.data().dyn_into::<File>() {
            Ok(file) => return spawn_local(take(file)),
            Err(data) => data,
        };
        match ForWorker::from_js(data) {
            Some(ForWorker::Take { number, path }) => DESK.with_borrow_mut(|desk| desk.next = (number, path)),
            Some(ForWorker::View { query }) => look(&query),
            Some(ForWorker::Ask) => spawn_local(server::ask()),
            Some(ForWorker::Save { form }) => post(&ForPage::Saved(save(&form))),
            Some(ForWorker::Predict { query }) => {
                if let Some(prediction) = plan::predict(&query) {
                    post(&ForPage::Predicted { query, prediction });
                }
            }
            Some(ForWorker::Launch { query }) => {
                if let Some(launched) = plan::launch(&query) {
                    post(&ForPage::Launched { query, launched });
                }
            }
            Some(ForWorker::Import { text }) => post(&ForPage::Imported(plan::import(&text))),
            None => {}
        }
    });
    scope().set_onmessage(Some(hear.as_ref().unchecked_ref()));
    // It hears for as long as the worker lives.
    hear.forget();
    post(&ForPage::Ready);
}

fn scope() -> DedicatedWorkerGlobalScope {
    global().unchecked_into()
}

fn post(message: &ForPage) {
    // If the page has gone, nobody is left to be told.
    let _ = message.to_js().and_then(|message| scope().post_message(&message));
}

/// Reads a file to its end and says what it measured.
async fn take(file: File) {
    let (number, path) = DESK.with_borrow(|desk| desk.next.clone());
    let run = if path.ends_with(FILE_ENDING) { saved(&file).await } else { log(&file, &path).await };
    settle(Taken { number, path, run });
}

/// Keeps what was read, and says what to show of it.
fn settle(taken: Taken) {
    let (row, curve) = DESK.with_borrow_mut(|desk| {
        desk.taken.push(taken);
        desk.taken.last().map(|taken| (taken.row(&desk.view), taken.curve())).unzip()
    });
    if let (Some(row), Some(curve)) = (row, curve) {
        post(&ForPage::Read { row, curve });
    }
}

async fn log(file: &File, path: &str) -> Result<RunResult, String> {
    let mut intake = Intake::new(path, &Spec::default());
    let mut done = 0.0;
    while done < file.size() {
        intake.feed(&piece(file, done).await?);
        done = (done + CHUNK).min(file.size());
        post(&ForPage::Progress(done));
    }
    Ok(intake.finish())
}

/// A result that was saved before.
async fn saved(file: &File) -> Result<RunResult, String> {
    let mut bytes = Vec::new();
    while (bytes.len() as f64) < file.size() {
        bytes.extend(piece(file, bytes.len() as f64).await?);
    }
    read(&bytes).map_err(|error| error.to_string())
}

async fn piece(file: &File, from: f64) -> Result<Vec<u8>, String> {
    let broken = |error: JsValue| {
        let message = Reflect::get(&error, &"message".into()).ok().and_then(|message| message.as_string());
        let message = message.unwrap_or_else(|| "it may have moved, or lacks permission".into());
        format!("the browser could not read it: {message}")
    };
    let piece = file.slice_with_f64_and_f64(from, (from + CHUNK).min(file.size())).map_err(broken)?;
    let bytes = JsFuture::from(piece.array_buffer()).await.map_err(broken)?;
    Ok(Uint8Array::new(&bytes).to_vec())
}

/// Looks at everything in another way, as the query of the page's address has it.
fn look(query: &str) {
    let typed = link::read(query).spec;
    let view = View {
        // What can't be understood the page has marked already.
        window: typed.get(Field::Window).and_then(|text| text.parse::<Window>().ok()),
        convention: typed.parse(Field::Convention).ok().flatten(),
        spec: Spec::default().with(Field::Recipe, typed.get(Field::Recipe).unwrap_or_default()),
    };
    let rows = DESK.with_borrow_mut(|desk| {
        desk.view = view;
        desk.taken.iter().map(|taken| taken.row(&desk.view)).collect()
    });
    post(&ForPage::Rows(rows));
}

/// The files that the page asked for.
fn save(form: &str) -> Vec<Saved> {
    DESK.with_borrow(|desk| {
        let reports: Vec<Report> = desk.taken.iter().map(|taken| taken.report(&desk.view)).collect();
        let file = |name: &str, text: Option<String>| text.map(|text| Saved { name: name.to_string(), text });
        match form {
            "csv" => file("trainplan-results.csv", csv(&reports).ok()).into_iter().collect(),
            "json" => file("trainplan-results.json", serde_json::to_string_pretty(&reports).ok())
                .into_iter()
                .collect(),
            _ => results(&desk.taken),
        }
    })
}

/// The result files: one as it is, several in an archive, since browsers refuse more than a few files at once. What
/// holds no step is not kept, and what came twice is kept once.
fn results(taken: &[Taken]) -> Vec<Saved> {
    let mut files: Vec<Saved> = Vec::new();
    for run in
        taken.iter().filter_map(|taken| taken.run.as_ref().ok()).filter(|run| !run.log.steps.is_empty())
    {
        let name = run.file_name();
        if let (false, Ok(text)) = (files.iter().any(|file| file.name == name), write(run)) {
            files.push(Saved { name, text });
        }
    }
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

/// What stands in the columns of the page's table, in their order.
fn cells(report: &Report) -> Vec<Cell> {
    let cell = |text: Option<String>, more: Option<String>| Cell {
        text: text.unwrap_or_default(),
        more: more.unwrap_or_default(),
    };
    let of_several = report.step_time_s.filter(|stat| stat.n > 1);
    let step_time = report.step_time_s.map(|stat| {
        let std = of_several.and_then(|stat| stat.std);
        let spread = std.map_or(String::new(), |std| format!(" ± {}", significant(std, 2)));
        format!("{}{spread}", significant(stat.mean, 5))
    });
    let convention = report.convention.filter(|_| report.mfu.is_some());
    let speed = report.baseline.and_then(|baseline| baseline.speed_percent);
    let seconds = |seconds| significant(seconds, 4);
    let planned = report.plan.map(|AgainstPlan { step_time_s: Interval { low, mid, high }, .. }| {
        format!("{} ({} to {})", seconds(mid), seconds(low), seconds(high))
    });
    let off_plan = report.plan.map(|plan| match plan.error {
        Some(error) => {
            format!("took {:.1} % {}", error.abs() * 100.0, if error < 0.0 { "less" } else { "more" })
        }
        None => "not scored".into(),
    });
    vec![
        cell(report.recipe.clone(), None),
        cell(Some(group_digits(report.steps as f64)), None),
        cell(report.window.map(|window| window.to_string()), None),
        cell(step_time, of_several.map(|stat| format!("{} std", stat.std_kind.id()))),
        cell(report.tokens_per_s.map(group_digits), None),
        cell(
            report.mfu.map(|mfu| format!("{:.2}", mfu * 100.0)),
            convention.map(|convention| convention.to_string()),
        ),
        cell(speed.map(|percent| format!("{percent:.1}")), None),
        cell(planned, off_plan),
    ]
}

/// What a run is called that we carried out: its name tells more than that of its log.
fn title(carried: &Carried) -> String {
    let Carried { campaign, run, repeat, cluster, .. } = carried;
    let repeat = if *repeat > 1 { format!(" #{repeat}") } else { String::new() };
    format!("{campaign}/{run} on {cluster}{repeat}")
}

/// Which job of the cluster it was, so that one finds its files there.
fn job(job: &Job) -> String {
    let nodes = job.nodes.as_ref().map_or(String::new(), |nodes| format!(" on {nodes}"));
    format!("job {} {}{nodes}", job.id, job.state.to_lowercase())
}

impl Taken {
    fn report(&self, view: &View) -> Report {
        match &self.run {
            Ok(run) => Report::of(run, view),
            Err(reason) => Report::without(&self.path, Status::Unreadable, Some(reason.clone())),
        }
    }

    fn row(&self, view: &View) -> Row {
        let report = self.report(view);
        let cells = cells(&report);
        let mut remarks: Vec<String> = report.reason.into_iter().collect();
        // Of what was not scored the reason says enough.
        let reasons = report.comparable.reasons.iter().filter(|_| report.status == Status::Scored);
        remarks.extend(reasons.map(|reason| format!("Not comparable: {reason}.")));
        remarks.extend(report.notes);
        let carried = self.run.as_ref().ok().and_then(|run| run.carried.as_ref());
        remarks.extend(carried.into_iter().flat_map(|carried| &carried.jobs).map(job));
        Row {
            number: self.number,
            status: report.status.id().to_string(),
            remarks,
            cells,
            path: carried.map_or(report.path, title),
        }
    }

    fn curve(&self) -> Curve {
        let Ok(run) = &self.run else { return Curve::default() };
        let steps = &run.log.steps;
        let column = |column: &Column| (0..steps.len()).map(|row| column.get(row)).collect();
        Curve {
            labels: steps.label.iter().map(|label| *label as f64).collect(),
            step_time_s: column(&steps.step_time_s),
            loss: column(&steps.loss),
        }
    }
}
