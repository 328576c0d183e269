//! Results: what a log is a run of, what is reported of it, and the file that keeps it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod figures;
mod file;
mod identity;

use trainplan_shared::catalog::{Recipe, Release};
use trainplan_shared::result::{Intake, Report, RunResult, View};
use trainplan_shared::spec::Spec;

fn run_said(path: &str, log: &str, said: &Spec) -> RunResult {
    let mut intake = Intake::new(path, said);
    intake.feed(log.as_bytes());
    intake.finish()
}

fn run(path: &str, log: &str) -> RunResult {
    run_said(path, log, &Spec::default())
}

fn report(path: &str, log: &str) -> Report {
    Report::of(&run(path, log), &View::default())
}

/// Fifty steps as NeMo 2 prints them, of `time` each, of a batch of `gbs`.
fn nemo2(gbs: u32, time: &str, more: &str) -> String {
    let step = |label: u64| {
        format!(
            "Training epoch 0, iteration {label}/49 | global_batch_size: {gbs} | global_step: {label} | \
             reduced_train_loss: 11.5 | train_step_timing in s: {time}{more} | consumed_samples: {}\n",
            u64::from(gbs) * (label + 1)
        )
    };
    (0..50).map(step).collect()
}

/// As NeMo 1 prints them.
fn nemo1(time: &str) -> String {
    format!(
        "Epoch 0: : 100%|##########| 50/50 [07:57<00:00, reduced_train_loss=7.310, global_step=49.00, \
         train_step_timing in s={time}]\n"
    )
}

/// As Megatron-Bridge prints them, each `ms` milliseconds long.
fn bridge(gbs: u32, ms: &str) -> String {
    let step = |step: u64| {
        format!(
            "iteration {step}/50 | consumed samples: {} | elapsed time per iteration (ms): {ms} | global batch \
             size: {gbs} | lm loss: 1.2E+01 |\n",
            u64::from(gbs) * step
        )
    };
    (1..51).map(step).collect()
}

/// The name that a recipe's release gives its log, and its log.
fn log_of(recipe: &Recipe) -> (String, String) {
    let id = &recipe.id;
    let (family, size) = id.model.rsplit_once('-').unwrap();
    let family = family.replace('-', "");
    let (dtype, gpus) = (id.dtype, id.gpus);
    let degrees = &recipe.degrees;
    let vp = match degrees.vp {
        1 => "None".to_owned(),
        vp => vp.to_string(),
    };
    let layout = format!(
        "gpus{gpus}_tp{}_pp{}_cp{}_vp{vp}_mbs{}_gbs{}",
        degrees.tp, degrees.pp, degrees.cp, recipe.mbs, recipe.gbs
    );
    match id.release {
        Release::R24_11 => (
            format!("results/24.11/{dtype}/{size}/{gpus}/log-nemo_{family}_{size}_{gpus}_389757.out"),
            nemo1("350"),
        ),
        Release::R25_04 => (
            format!("experiments/x/log-acct.pretrain_{family}_{size}_{dtype}_{gpus}_389757_0.out"),
            nemo2(recipe.gbs, "350", ""),
        ),
        Release::R25_05 | Release::R25_12 => (
            format!("log-acct-x.pretrain_{family}_{size}_{dtype}_{layout}_389757_0.out"),
            nemo2(recipe.gbs, "350", " | TFLOPS_per_GPU: 800"),
        ),
        Release::R26_06_01 => {
            let id = id.to_string();
            let names = include_str!("../launch/releases/26.06.01.tsv").lines();
            let of_recipe =
                names.map(|line| line.split('\t').collect::<Vec<_>>()).find(|cells| cells[0] == id);
            let experiment = of_recipe.unwrap()[1];
            (format!("log-acct-x.{experiment}_389757_0.out"), bridge(recipe.gbs, "350000.0"))
        }
        Release::BridgeMain | Release::Bridge060 => {
            let version = if id.release == Release::Bridge060 { "_v060" } else { "" };
            let id = id.to_string().replace("bridge-0.6.0", "bridge-main");
            let names = include_str!("../launch/releases/bridge-main.tsv").lines();
            let of_recipe =
                names.map(|line| line.split('\t').collect::<Vec<_>>()).find(|cells| cells[0] == id);
            let name = of_recipe.unwrap()[1].replace("_config", version);
            (
                format!("experiments/{name}/{name}_1764000000/training/log-acct-x.training_389757_0.out"),
                bridge(recipe.gbs, "350000.0"),
            )
        }
    }
}
