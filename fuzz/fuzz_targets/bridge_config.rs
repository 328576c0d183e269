//! Any bytes: a file beside a log that lists settings of its job is read, and comes back equal from JSON, or it is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::result::{Intake, JobFiles, JobSettings, SettingsFile};
use trainplan_shared::spec::Spec;

fuzz_target!(|bytes: &[u8]| {
    for file in SettingsFile::ALL {
        let job = JobFiles::default().with(file, file.read(bytes));
        assert_eq!(job.settings.of(file).is_empty(), !job.unread.is_empty());
        let json = serde_json::to_string(&job.settings).expect("settings are JSON");
        assert_eq!(serde_json::from_str::<JobSettings>(&json).expect("they are read back"), job.settings);
        // They complete a log that says nothing.
        let run = Intake::new("train.log", &Spec::default()).with_job(job.clone()).finish();
        assert_eq!(run.job, job);
    }
});
