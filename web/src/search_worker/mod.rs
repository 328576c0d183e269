//! The worker that searches for plans, a program of its own that the browser loads after the page.
//!
//! It searches one number of GPUs at a time and reads its messages in between, so that a newer question replaces an
//! older one within milliseconds. [`crate::message::search`] defines the messages.

mod found;

use crate::message::WorkerMessage;
use crate::message::search::{SearchNews, SearchReply, SearchRequest};
use std::cell::Cell;
use trainplan_shared::link;
use trainplan_shared::question::{GpuCounts, GpuOffer, PlannedRun, Question, Survey};
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::js_sys::{Date, Promise, global};
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
        if let Some(SearchRequest { number, query }) = SearchRequest::from_js(event.data()) {
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

/// A newer question replaced this one.
struct Replaced;

async fn answer(number: u32, query: &str) -> Result<(), Replaced> {
    let say = |news: SearchNews| send(&SearchReply::News { number, news });
    // Typing sends several questions at once: only the last one is read.
    pause(number).await?;
    let question = match link::read(query).spec.question() {
        Ok(question) => question,
        Err(problems) => {
            say(SearchNews::Refused(problems.into_iter().map(Into::into).collect()));
            return Ok(());
        }
    };
    say(SearchNews::Asked(found::asked(&question)));
    // For the chart, every question is answered on round numbers of GPUs too.
    let round = Question { counts: GpuCounts::default(), ..question.clone() };
    let point = |question: &Question, index: usize, run: &PlannedRun| {
        let plan = Box::new(found::plan(question, &question.offers[index], run));
        say(SearchNews::Point { offer: index, plan });
    };
    for (index, offer) in question.offers.iter().enumerate() {
        let survey = searched(number, &question, offer, &|run| point(&question, index, run)).await?;
        let answer = Box::new(found::answer(&question, offer, &survey.answer()));
        say(SearchNews::Answered { offer: index, answer });
        pause(number).await?;
    }
    for (index, offer) in question.offers.iter().enumerate() {
        let Some(offer) = offer.in_bf16() else { continue };
        let survey = searched(number, &question, &offer, &|_| {}).await?;
        let plan = survey.best().map(|run| Box::new(found::plan(&question, &offer, run)));
        say(SearchNews::InBf16 { offer: index, plan });
    }
    if question.counts != round.counts {
        for (index, offer) in round.offers.iter().enumerate() {
            searched(number, &round, offer, &|run| point(&round, index, run)).await?;
        }
    }
    say(SearchNews::Done);
    Ok(())
}

/// Searches an offer, and hands over the plan of each number of GPUs.
async fn searched<'a>(
    number: u32,
    question: &'a Question,
    offer: &'a GpuOffer,
    // Not generic: each copy would make the worker larger.
    found: &dyn Fn(&PlannedRun),
) -> Result<Survey<'a>, Replaced> {
    let mut survey = Survey::new(question, offer);
    pause(number).await?;
    while let Ok(point) = survey.step() {
        if let Some(run) = point {
            found(run);
        }
        pause(number).await?;
    }
    Ok(survey)
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
