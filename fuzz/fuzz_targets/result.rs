//! Any bytes: a result file that is read is written and read back equal and has a report, or it is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::log::{Span, Window};
use trainplan_shared::field::Field;
use trainplan_shared::result::{Report, View, read, write};
use trainplan_shared::spec::Spec;

fuzz_target!(|bytes: &[u8]| {
    let Ok(run) = read(bytes) else { return };
    let saved = write(&run).expect("a result is JSON");
    assert_eq!(read(saved.as_bytes()).expect("it is read back"), run);

    let window = Some(Window::Labels(Span { first: 35, last: 44 }));
    let spec = Spec::default().with(Field::Gpu, "b200");
    for view in [View::default(), View { window, spec, ..View::default() }] {
        let report = Report::of(&run, &view);
        serde_json::to_string(&report).expect("a report is JSON");
    }
});
