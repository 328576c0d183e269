//! Any path has a name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::log::Name;

fuzz_target!(|path: &str| {
    let name = Name::of(path);
    assert!(name.experiment.len() <= path.len());
});
