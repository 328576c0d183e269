//! The worker. It is a separate program with the code that would make pages slow to load; the browser loads
//! it after the page. [`crate::message`] defines the messages between the two.
//!
//! For the Plan page it predicts, writes launch scripts and imports models ([`plan`]), and words what the search worker refuses. For
//! the pages of results it reads logs one at a time ([`files`]), sends requests to the server ([`server`]) and compares
//! runs ([`compare`]), and returns the rows, charts and sentences to show.

mod compare;
mod files;
mod headline;
mod history;
mod live;
mod log_text;
mod plan;
mod runs;
mod server;
mod share;
mod typography;
mod upload;

use crate::deadline;
use crate::message::plan::CalculatorRequest;
use crate::message::results::{ForPage, ForWorker};
use crate::message::search::{RefusalReply, SearchRequest};
use crate::message::{Answer, Question, Refusal, RequestError, WorkerMessage};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::log::Window;
use trainplan_shared::problem::Problem;
use trainplan_shared::result::View;
use trainplan_shared::spec::Spec;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::js_sys::global;
use web_sys::{DedicatedWorkerGlobalScope, File, MessageEvent};

/// Starts to answer the messages of the page.
pub(crate) fn start() {
    let hear = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        let data = match event.data().dyn_into::<File>() {
            Ok(file) => return spawn_local(files::take(file)),
            Err(data) => data,
        };
        if let Some(message) = ForWorker::from_js(data.clone()) {
            hear(message);
        } else if let Some(request) = SearchRequest::from_js(data.clone()) {
            refuse(request);
        } else if let Some(request) = CalculatorRequest::from_js(data) {
            plan::answer(request);
        }
    });
    scope().set_onmessage(Some(hear.as_ref().unchecked_ref()));
    hear.forget();
    post(&ForPage::Ready);
}

fn hear(message: ForWorker) {
    match message {
        ForWorker::Take { number, path, parts } => files::expect(number, path, parts),
        ForWorker::Stop => files::stop(),
        ForWorker::Clear => files::clear(),
        ForWorker::View { query } => files::look(view(&query)),
        ForWorker::Save { format } => post(&ForPage::Saved(files::save(format))),
        ForWorker::SaveResults => post(&ForPage::Saved(files::save_results())),
        ForWorker::SignIn { token } => server::sign_in(token),
        ForWorker::Listen => spawn_local(live::listen()),
        ForWorker::Ask { number, question } => spawn_local(async move {
            let answer = answer(question).await;
            post(&ForPage::Answer { number, answer });
        }),
    }
}

/// Sends the problems of a question that the search worker refused.
fn refuse(SearchRequest { number, query }: SearchRequest) {
    let problems = deadline::question(link::read(&query).spec).err().unwrap_or_default();
    let refusals = problems.into_iter().map(Refusal::from).collect();
    post(&RefusalReply::Refused { number, refusals });
}

async fn answer(question: Question) -> Result<Answer, RequestError> {
    match question {
        Question::Runs { query } => runs::page(&query).await.map(Answer::Runs),
        Question::Unmet { query } => runs::unmet(&query).await.map(Answer::Unmet),
        Question::Comparison { ids, query } => {
            compare::compare(ids, view(&query)).await.map(|compared| Answer::Comparison(Box::new(compared)))
        }
        Question::Newest => {
            compare::compare_newest().await.map(|compared| Answer::Comparison(Box::new(compared)))
        }
        Question::ComparisonFile { ids, query, format } => {
            compare::file(ids, view(&query), format).await.map(Answer::File)
        }
        Question::ResultFile { id } => runs::file(&id).await.map(Answer::File),
        Question::Scores { id } => runs::scores(&id).await.map(Answer::Scores),
        Question::Lines { id, from, find } => runs::lines(&id, from, &find).await.map(Answer::Lines),
        Question::LogFault { id } => runs::log_fault(&id).await.map(Answer::LogFault),
        Question::LogFile { id } => runs::log_address(&id).await.map(Answer::Address),
        Question::Live => live::running().await.map(Answer::Live),
        Question::History { query } => history::read(&query).await.map(Answer::History),
        Question::Upload => upload::upload().await.map(Answer::UploadSummary),
        Question::Rescore { id, recipe } => {
            let said = Spec::default().with(Field::Recipe, recipe);
            runs::rescore(&id, &said).await.map(|()| Answer::Done)
        }
        Question::Delete { id } => runs::delete(&id).await.map(|()| Answer::Done),
        Question::Acknowledge { run, reason } => {
            history::acknowledge(&run, reason).await.map(|()| Answer::Done)
        }
        Question::Scope => server::scope().await.map(Answer::Scope),
        Question::Regressions => history::regressions().await.map(Answer::History),
        Question::Opened => share::opened().await.map(Answer::Opened),
        Question::Shares => share::list().await.map(Answer::Shares),
        Question::Share { ids, days } => share::create(ids, days).await,
        Question::Revoke { id } => share::revoke(&id).await,
        Question::LogFields { query } => {
            Ok(Answer::Wrong(log_fields(&query).filter_map(Result::err).map(Refusal::from).collect()))
        }
        Question::Identify { ids, query } => {
            Ok(Answer::Checked(files::identify(&ids, &link::read(&query).spec)))
        }
    }
}

fn scope() -> DedicatedWorkerGlobalScope {
    global().unchecked_into()
}

fn post(message: &impl WorkerMessage) {
    // It fails only if the page is closed.
    let _ = message.to_js().and_then(|message| scope().post_message(&message));
}

/// Returns the recipe and the GPU type of a query of the page's address, or what is wrong with them. Other fields of the address,
/// such as the server's filters, say nothing about the logs.
fn log_fields(query: &str) -> impl Iterator<Item = Result<(Field, String), Problem>> {
    let (typed, catalog) = (link::read(query).spec, Catalog::embedded());
    [Field::Recipe, Field::Gpu].into_iter().filter_map(move |field| {
        let text = typed.get(field)?;
        let wrong = match field {
            Field::Recipe => catalog.recipe(text).err(),
            _ => catalog.gpu_or_own(text).err(),
        };
        Some(wrong.map_or_else(|| Ok((field, text.to_string())), Err))
    })
}

/// Returns the window, convention, recipe and GPU type of a query of the page's address, without invalid ones: the page shows
/// their problems.
fn view(query: &str) -> View {
    let typed = link::read(query).spec;
    let said = log_fields(query).filter_map(Result::ok);
    View {
        window: typed.get(Field::Window).and_then(|text| text.parse::<Window>().ok()),
        convention: typed.parse(Field::Convention).ok().flatten(),
        spec: said.fold(Spec::default(), |spec, (field, text)| spec.with(field, text)),
    }
}
