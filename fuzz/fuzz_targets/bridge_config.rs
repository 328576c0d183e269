//! Any bytes: a configuration of Megatron-Bridge is read, and comes back equal from JSON, or it is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::result::{BridgeConfig, Intake, JobFiles};
use trainplan_shared::spec::Spec;

fuzz_target!(|bytes: &[u8]| {
    let Ok(config) = BridgeConfig::read(bytes) else { return };
    assert!(!config.is_empty());
    let json = serde_json::to_string(&config).expect("a configuration is JSON");
    assert_eq!(serde_json::from_str::<BridgeConfig>(&json).expect("it is read back"), config);
    // It completes a log that says nothing.
    let job = JobFiles { config, ..JobFiles::default() };
    let run = Intake::new("train.log", &Spec::default()).with_job(job.clone()).finish();
    assert_eq!(run.job, job);
});
