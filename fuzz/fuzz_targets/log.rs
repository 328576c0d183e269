//! Any log: no panic, the same whatever the chunks, a score that says something, and JSON that comes back equal.
//! The first two bytes say how the log is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::log::{Log, Parser, Score, Span, Status, StdKind, Window, parse, score};

fuzz_target!(|input: &[u8]| {
    let [first, second, bytes @ ..] = input else { return };
    let size = 1 + (usize::from(*first) << 8 | usize::from(*second));
    // Sometimes enough of it to go beyond the parser's buffer.
    let long = bytes.repeat(if first & 15 == 15 { 1 + 80_000 / (bytes.len() + 1) } else { 1 });

    let log = parse(&long);
    let mut parser = Parser::new();
    long.chunks(size).for_each(|chunk| parser.feed(chunk));
    assert_eq!(parser.finish(), log);

    assert!(log.steps.label.is_sorted_by(|one, next| one < next));
    for window in [Window::Last, Window::Labels(Span { first: 35, last: 44 })] {
        for std_kind in [StdKind::Population, StdKind::Sample] {
            let score = score(&log, window, std_kind);
            assert!(score.reason.is_some() || score.status == Status::Scored);
            let json = serde_json::to_string(&score).expect("a score is JSON");
            assert_eq!(serde_json::from_str::<Score>(&json).expect("it is read back"), score);
        }
    }
    let json = serde_json::to_string(&log).expect("a log is JSON");
    assert_eq!(serde_json::from_str::<Log>(&json).expect("it is read back"), log);
});
