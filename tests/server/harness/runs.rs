//! Results to upload, with their logs.

use serde_json::{Value, json};
use trainplan_shared::estimate::Interval;
use trainplan_shared::result::{
    self, CampaignRun, Comparability, Intake, LaunchRecord, PredictionRecord, RunResult, SlurmJob,
};
use trainplan_shared::spec::Spec;
use uuid::Uuid;

/// Returns the file of a result.
pub(crate) fn file_of(run: &RunResult) -> Vec<u8> {
    result::write(run).unwrap().into_bytes()
}

/// A result with its log.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) run: RunResult,
    pub(crate) log: Vec<u8>,
}

/// Returns a run with this step time that no campaign launched: its id follows from its log.
pub(crate) fn made(step_time_s: f64) -> Made {
    made_of(log(step_time_s, 50))
}

/// Returns the run of a log.
pub(crate) fn made_of(log: Vec<u8>) -> Made {
    let mut intake = Intake::new("e/log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &Spec::default());
    intake.feed(&log);
    Made { run: intake.finish(), log }
}

/// Returns a run that a campaign launched on a cluster.
pub(crate) fn carried(step_time_s: f64, cluster: &str) -> Made {
    let made = made(step_time_s);
    let carried = CampaignRun {
        campaign: "nightly".into(),
        round: None,
        run: "llama-8b".into(),
        repeat: 1,
        cluster: cluster.into(),
        jobs: vec![SlurmJob { id: "12345".into(), ..SlurmJob::default() }],
        launch: LaunchRecord {
            release: Some("25.04".into()),
            style: "launch-sh".into(),
            script_sha256: "0".repeat(64),
            steps: 50,
            comparable: Comparability { yes: true, reasons: Vec::new() },
        },
        plan: PredictionRecord {
            step_time_s: Interval { low: 9.0, mid: 10.0, high: 12.0 },
            memory_bytes: 6e10,
            capacity_bytes: 8e10,
            basis: "published".into(),
            calibration: "trainplan 0.1.0".into(),
        },
    };
    Made { run: made.run.of_run(Uuid::now_v7(), carried), ..made }
}

/// Returns a log with this many steps of this many seconds.
pub(crate) fn log(step_time_s: f64, steps: usize) -> Vec<u8> {
    let last = steps - 1;
    let line = |step| {
        format!(
            "Training epoch 0, iteration {step}/{last} | lr: 0.0001 | global_batch_size: 128 | global_step: {step} | \
             reduced_train_loss: 11.0 | train_step_timing in s: {step_time_s} |\n"
        )
    };
    (0..steps).map(line).collect::<String>().into_bytes()
}

/// Returns a run whose log has at least this many bytes and hardly compresses.
pub(crate) fn made_long(bytes: usize) -> Made {
    let mut text = log(12.39, 50);
    while text.len() < bytes {
        let random: String = (0..100).map(|_| fastrand::alphanumeric()).collect();
        text.extend_from_slice(random.as_bytes());
        text.push(b'\n');
    }
    made_of(text)
}

/// Returns a progress report.
pub(crate) fn progress(step: u64) -> Value {
    json!({
        "campaign": "nightly", "run": "llama-8b", "repeat": 1, "cluster": "eos", "recipe": null, "state": "running",
        "step": step, "steps": 50, "step_time_s": 12.4, "planned_s": 12.0, "jobs": ["12345"], "at": "2026-11-21T12:00:00Z"
    })
}
