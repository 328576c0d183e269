//! Answers by the launch scripts of plans, for the first program. They take as long as a search, so a separate worker finds them.
//! Another question stops it.

use super::handover;
use crate::message::plan::{CalculatorReply, CalculatorRequest};
use crate::reader::{PageWorker, WORKER};
use leptos::prelude::*;

/// Answers the first program's questions, always only the latest one.
pub(super) fn answer_questions() {
    let asked = handover::asked_by_scripts();
    let worker = StoredValue::new_local(None::<PageWorker>);
    Effect::new(move |_| {
        let Some((query, offers)) = asked.with(|asked| read(asked.as_deref()?)) else {
            return worker.set_value(None);
        };
        let started = PageWorker::start(WORKER, move |reply: Option<CalculatorReply>| match reply {
            Some(CalculatorReply::Ready) => {
                let request = CalculatorRequest::ByScripts { query: query.clone(), offers: offers.clone() };
                // Without an answer, the plans keep the figures of the planned software, and the details say so.
                let _ = worker.try_with_value(|worker| worker.as_ref().map(|worker| worker.send(&request)));
            }
            Some(CalculatorReply::FoundByScripts(found)) => handover::tell_by_scripts(&found),
            _ => {}
        });
        worker.set_value(started.ok());
    });
}

/// Reads a question with the indices of its GPU types.
fn read(text: &str) -> Option<(String, Vec<usize>)> {
    let mut words = text.split(' ');
    let query = words.next()?.to_string();
    Some((query, words.filter_map(|word| word.parse().ok()).collect()))
}
