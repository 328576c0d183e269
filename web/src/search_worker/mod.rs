//! The worker that searches for plans. It is a separate program, which the browser loads after the page.
//!
//! It searches one number of GPUs at a time and reads its messages in between, so that a newer question replaces an
//! older one within milliseconds. [`crate::message::search`] defines the messages.

pub(crate) mod found;

use crate::deadline;
use crate::message::WorkerMessage;
use crate::message::search::{SearchNews, SearchReply, SearchRequest};
use std::cell::Cell;
use trainplan_shared::gpu_counts::GpuCounts;
use trainplan_shared::link;
use trainplan_shared::question::{GpuOffer, PlannedRun, Question, Survey};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::js_sys::{Date, Promise, Reflect, global};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

/// How long the worker searches before it reads its messages, in milliseconds.
const TURN_MS: f64 = 12.0;

thread_local! {
    /// The number of the newest question.
    static NEWEST: Cell<u32> = const { Cell::new(0) };
    /// When the worker last read its messages, in milliseconds since 1970.
    static LAST_PAUSE: Cell<f64> = const { Cell::new(0.0) };
}

/// Starts to answer the messages of the page.
pub(crate) fn start() {
    let hear = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        if let Some(SearchRequest { number, query }) = request(&event.data()) {
            NEWEST.set(number);
            spawn_local(async move {
                // An error means that a newer question came.
                let _ = answer(number, &query).await;
            });
        }
    });
    scope().set_onmessage(Some(hear.as_ref().unchecked_ref()));
    hear.forget();
    send(&SearchReply::Ready);
}

/// Returns the request in a message; none if there is none. It reads field by field, because a deserializer would make the worker larger.
fn request(message: &JsValue) -> Option<SearchRequest> {
    let field = |name: &str| Reflect::get(message, &name.into()).ok();
    Some(SearchRequest { number: field("number")?.as_f64()? as u32, query: field("query")?.as_string()? })
}

/// A newer question replaced this one.
struct Replaced;

async fn answer(number: u32, query: &str) -> Result<(), Replaced> {
    let say = |news: SearchNews| send(&SearchReply::News { number, news });
    // Typing sends several questions at once: only the last one is read.
    pause(number).await?;
    let Ok(question) = deadline::question(link::read(query).spec) else {
        say(SearchNews::Refused);
        return Ok(());
    };
    say(SearchNews::Asked(found::asked(&question)));
    // For the chart, every question is answered on round numbers of GPUs too.
    let round = Question { counts: GpuCounts::default(), ..question.clone() };
    let bf16: Vec<Option<GpuOffer>> = question.offers.iter().map(GpuOffer::in_bf16).collect();
    let all = 0..question.offers.len();
    let answers = all.clone().map(|index| (Task::Answer, index));
    let in_bf16 = all.clone().filter(|index| bf16[*index].is_some()).map(|index| (Task::InBf16, index));
    let on_round = all.filter(|_| question.counts != round.counts).map(|index| (Task::OnRoundCounts, index));
    let mut surveys: Vec<Survey<'_>> = Vec::new();
    // One loop: each further one would make the worker larger.
    for (task, index) in answers.chain(in_bf16).chain(on_round) {
        let asked = if task == Task::OnRoundCounts { &round } else { &question };
        let offer = bf16[index].as_ref().filter(|_| task == Task::InBf16).unwrap_or(&asked.offers[index]);
        let plan = |run: &PlannedRun| Box::new(found::plan(asked, offer, run));
        let first = surveys.get(index);
        let survey = first.map_or_else(|| Survey::new(asked, offer), |first| first.again(asked, offer));
        let mut survey = survey.listing(found::LISTED);
        pause(number).await?;
        while let Ok(point) = survey.step() {
            if let Some(run) = point.filter(|_| task != Task::InBf16) {
                say(SearchNews::Point { offer: index, plan: plan(run) });
            }
            pause(number).await?;
        }
        match task {
            Task::Answer => {
                let answer = Box::new(found::answer(asked, offer, &survey.answer()));
                say(SearchNews::Answered { offer: index, answer });
                surveys.push(survey);
            }
            Task::InBf16 => say(SearchNews::InBf16 { offer: index, plan: survey.best().map(plan) }),
            Task::OnRoundCounts => {}
        }
    }
    say(SearchNews::Done);
    Ok(())
}

/// What a GPU type is searched for.
#[derive(Clone, Copy, PartialEq)]
enum Task {
    /// The answer.
    Answer,
    /// The best plan in BF16.
    InBf16,
    /// The chart, which shows round numbers of GPUs too.
    OnRoundCounts,
}

/// Lets the worker read its messages, unless it just did.
///
/// # Errors
/// One of them is a newer question.
async fn pause(number: u32) -> Result<(), Replaced> {
    if Date::now() - LAST_PAUSE.get() < TURN_MS {
        return Ok(());
    }
    let turn = Promise::new(&mut |resolve, _| {
        // It can't fail for a function.
        let _ = scope().set_timeout_with_callback(&resolve);
    });
    let _: Result<JsValue, JsValue> = JsFuture::from(turn).await;
    LAST_PAUSE.set(Date::now());
    if NEWEST.get() == number { Ok(()) } else { Err(Replaced) }
}

fn scope() -> DedicatedWorkerGlobalScope {
    global().unchecked_into()
}

fn send(message: &SearchReply) {
    // It fails only if the page is closed.
    let _ = message.to_js().and_then(|message| scope().post_message(&message));
}
