//! Any text as the file of a probe is refused, or gives a report whose factors can be read and a file that reads back the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::cluster_factors::ClusterFactors;
use trainplan_shared::probe::{Probe, ProbeReport};

fuzz_target!(|text: &str| {
    if let Ok(probe) = Probe::parse(text) {
        let report = ProbeReport::of(&probe, Catalog::embedded());
        report.cluster_factor.parse::<ClusterFactors>().expect("its own factors can be read");
        serde_json::to_string(&report).expect("a report is JSON");
        let written = serde_json::to_string(&probe).expect("a probe is JSON");
        assert_eq!(Probe::parse(&written).expect("its own text is a probe"), probe);
    }
});
