//! Any path has a name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::log::LogName;

fuzz_target!(|path: &str| {
    let name = LogName::of(path);
    assert!(name.experiment.len() <= path.len());
});
