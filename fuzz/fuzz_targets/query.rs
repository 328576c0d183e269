//! Any text as the query of any operation of the API is read, or refused with a reason; what is read keeps to the limits, and a
//! page's cursor is read back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use query::{QueryProblem, alerts, bound, comparison, filters, history, lines, repeated, scenario};
use trainplan_shared::history::Thresholds;

#[allow(dead_code, reason = "the server uses the rest")]
#[path = "../../runner/src/serve/api/query.rs"]
mod query;
#[allow(dead_code, reason = "the server uses the rest")]
#[path = "../../runner/src/store/query.rs"]
mod store;

const MOST_RUNS: u32 = 1000;
const MOST_COMPARED: usize = 16;

fuzz_target!(|text: &str| {
    // As in the server: what is longer is not read.
    let Some(()) = checked(bound(text)) else { return };
    for query in [
        checked(filters(text, MOST_RUNS)),
        checked(history(text, Thresholds::default(), MOST_RUNS)).map(|(_, query)| query),
    ] {
        let Some(query) = query else { continue };
        assert!(query.limit.is_none_or(|limit| (1..=MOST_RUNS).contains(&limit)));
        if let Some(cursor) = query.cursor {
            assert!(cursor.suits(query.sort));
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }
    if let Some((ids, _)) = checked(comparison(text, MOST_COMPARED)) {
        assert!((1..=MOST_COMPARED).contains(&ids.len()));
        assert_eq!(repeated(&ids), None);
    }
    if let Some(wanted) = checked(lines(text)) {
        assert!(wanted.from > 0 && (1..=query::MOST_LINES).contains(&wanted.count));
    }
    checked(alerts(text));
    checked(scenario(text));
});

/// Returns what was read; of a refused query, makes sure that it has a reason.
fn checked<T>(read: Result<T, QueryProblem>) -> Option<T> {
    read.inspect_err(|problem| assert!(!problem.to_string().is_empty())).ok()
}
