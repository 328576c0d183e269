//! How accurate the estimate is: makes the whole calibration again from the measurements and the frozen split, holds the
//! repository's files to it byte for byte, and holds the errors of rows that were held out to their bars.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use trainplan_shared::calibration::validate::Validator;
use trainplan_shared::calibration::{By, Calibrator, Files, HeldOut, Split, Summary, fit, spreads};
use trainplan_shared::estimate::{Anchors, Constants, Features, Kinship, Known, Memory, fits};
use trainplan_shared::measurements::{Measurement, Subject, embedded, parse};

/// A calibration made from scratch, with every fold judged.
struct Calibration {
    files: Files,
    judged: [Vec<HeldOut<'static>>; 3],
}

/// The calibration that all tests here look at, made once.
static CALIBRATION: LazyLock<Calibration> = LazyLock::new(|| {
    let calibrator = Calibrator::new(embedded());
    let values = calibrator.fit();
    let judged = By::ALL.map(|by| {
        side_by_side(&calibrator.folds(by), |fold| calibrator.judge(fold, &values))
            .into_iter()
            .flatten()
            .collect()
    });
    Calibration { files: calibrator.finish(&values, &judged, embedded()), judged }
});

/// What `work` makes of each item, in their order, on every processor.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return done };
            done.push((place, work(item)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(share)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, made)| made).collect()
}

fn subject(row: &Measurement) -> &Subject {
    row.subject.as_ref().unwrap()
}

fn is_nvidia(row: &Measurement) -> bool {
    subject(row).options.stack.is_nvidia_megatron()
}

fn is_routed(row: &Measurement) -> bool {
    subject(row).architecture.moe.is_some()
}

/// Rows held out that way.
fn judged(by: By) -> &'static [HeldOut<'static>] {
    &CALIBRATION.judged[By::ALL.iter().position(|one| *one == by).unwrap()]
}

/// Says of the mean absolute error of corrected predictions that it is no more than `bar`, of so many rows.
#[track_caller]
fn assert_within(bar: f64, rows: usize, by: By, counts: impl Fn(&Measurement) -> bool) {
    let held_out = judged(by).iter().filter(|one| counts(one.row));
    let summary = Summary::of(held_out.map(|one| one.anchored_s / one.step_time_s - 1.0)).unwrap();
    assert_eq!(summary.n, rows, "rows that count");
    assert!(summary.mape <= bar, "{:.2} % held out by {}, bar {bar}", summary.mape * 100.0, by.title());
}

#[track_caller]
fn assert_same(made: &str, kept: &str) {
    let differing = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
    if let Some((made, kept)) = differing {
        panic!("made:\n{made}\nkept:\n{kept}\n`trainplan calibrate --output DIR` writes the files anew");
    }
    assert!(made == kept, "one goes on where the other ends");
}

#[test]
fn a_calibration_from_scratch_comes_to_the_files_of_the_repository() {
    let files = &CALIBRATION.files;
    assert_same(&files.constants, include_str!("../data/calibration.csv"));
    assert_same(&files.anchors, include_str!("../data/anchors.csv"));
    assert_same(&files.intervals, include_str!("../data/intervals.csv"));
    assert_same(&files.report, include_str!("../../docs/accuracy.md"));
    assert_same(&files.scatter, include_str!("../../docs/accuracy.svg"));
}

#[test]
fn dense_models_of_nvidia() {
    assert_within(0.05, 257, By::Model, |row| is_nvidia(row) && !is_routed(row));
}

#[test]
fn routed_models_of_nvidia() {
    assert_within(0.10, 91, By::Mapping, |row| is_nvidia(row) && is_routed(row));
}

#[test]
fn vtrain_on_one_node() {
    assert_within(0.07, 990, By::Model, |row| row.source == "vtrain-single");
}

#[test]
fn vtrain_on_many_nodes() {
    assert_within(0.08, 83, By::Mapping, |row| row.source == "vtrain-multi");
}

#[test]
fn calculons_points() {
    assert_within(0.03, 4, By::Mapping, |row| row.source == "megatron-seqsel");
}

#[test]
fn simumax() {
    assert_within(0.056, 22, By::Mapping, |row| row.source == "simumax-b200");
}

#[test]
fn four_of_five_rows_lie_in_their_intervals() {
    let spreads = spreads(&CALIBRATION.judged);
    assert_eq!(spreads.len(), 4);
    for spread in &spreads {
        assert!((0.70..=0.90).contains(&spread.coverage), "{spread:?}");
    }
    let inside: f64 = spreads.iter().map(|spread| spread.coverage * spread.n as f64).sum();
    let rows: usize = spreads.iter().map(|spread| spread.n).sum();
    assert!((0.75..=0.85).contains(&(inside / rows as f64)), "{inside} of {rows}");
}

#[test]
fn memory_that_simumax_measured() {
    let errors = embedded().iter().filter(|row| row.source == "simumax-b200").filter_map(|row| {
        let predicted = Memory::of(&subject(row).inputs()).total_bytes();
        row.memory_bytes.map(|measured| predicted / measured - 1.0)
    });
    let summary = Summary::of(errors).unwrap();
    assert_eq!(summary.n, 22);
    assert!(summary.mape <= 0.01, "{summary:?}");
}

/// One row only is known to have run out of memory, and it is no pre-training, so that nothing is said of it at all. What
/// can't fit whatever the software does is added: 16 bytes per parameter of the smallest share are more than the GPU.
#[test]
fn nothing_that_runs_out_of_memory_is_said_to_fit() {
    // The column `knobs` is no part of a row as it is read.
    let file = include_str!("../data/measurements.csv");
    let ran_out: Vec<&str> = file
        .lines()
        .filter(|line| line.contains(";OOM"))
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(ran_out, ["r2559"]);
    for row in embedded().iter().filter(|row| ran_out.contains(&&*row.id)) {
        assert!(row.subject.as_ref().is_err_and(|reason| reason == "sft is no pre-training"), "{row:?}");
    }
    let impossible = parse(
        "model,gpu,precision,framework,gpus,seq_len,tp,pp,cp,gbs\n\
         llama3.1-70b,h100,BF16,nemo2,8,8192,8,1,1,8\n\
         llama3.1-405b,h100,BF16,nemo2,64,8192,8,8,1,64\n\
         deepseek-v3,b200,BF16,Megatron-Bridge,32,4096,1,1,1,32\n",
    )
    .unwrap();
    for row in &impossible {
        assert!(!fits(&subject(row).inputs()), "{row:?}");
    }
}

#[test]
fn every_fitted_row_has_its_folds_in_the_file_by_the_rule() {
    let file = include_str!("../data/split.csv");
    let text: String =
        file.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let frozen: BTreeMap<String, [String; 3]> = reader
        .records()
        .map(|record| {
            let record = record.unwrap();
            (record[0].to_string(), [1, 2, 3].map(|column| record[column].to_string()))
        })
        .collect();
    for one in judged(By::Mapping) {
        assert_eq!(frozen.get(&one.row.id), Some(&Split::derive(one.row)), "{}", one.row.id);
    }
}

/// A row is predicted by what was fitted to the rows of all other folds, so that whatever shares a fold is unseen.
#[test]
fn rows_that_belong_together_are_held_out_together_and_once() {
    let split = Split::embedded();
    for by in By::ALL {
        let rows: Vec<&Measurement> = judged(by).iter().map(|one| one.row).collect();
        let ids: BTreeSet<&str> = rows.iter().map(|row| &*row.id).collect();
        assert_eq!((ids.len(), rows.len()), (1744, 1744), "held out by {}", by.title());
        let mut folds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            let Subject { mapping, shape, gpu, .. } = subject(row);
            let unnamed = matches!(&*row.model, "gpt-custom" | "bloom-proxy");
            let model = if unnamed { shape } else { &row.model };
            let together = match by {
                By::Model => model.clone(),
                By::ModelGpu => format!("{model} {}", gpu.id),
                By::Mapping => mapping.clone(),
            };
            folds.entry(together).or_default().insert(split.fold(row, by));
        }
        for (together, folds) in folds {
            assert_eq!(folds.len(), 1, "{together} is in {folds:?}");
        }
    }
}

/// `trainplan validate` predicts a row as if no run of its mapping had ever been measured.
#[test]
fn validation_corrects_no_row_by_its_own_mapping() {
    let constants = Constants::embedded();
    let validator = Validator::default();
    let good: Vec<&Measurement> = embedded()
        .iter()
        .filter(|row| row.step_time_s.is_some() && matches!(&*row.usage, "fit" | "small"))
        .collect();
    for row in good.iter().step_by(40) {
        let own = subject(row);
        let without = good.iter().filter(|other| subject(other).mapping != own.mapping);
        let known = without.map(|other| Known {
            what: other.id.clone(),
            features: Features::of(&subject(other).inputs()),
            missed: libm::log(other.step_time_s.unwrap() / fit::predict(other, constants).unwrap()),
        });
        let modelled_s = fit::predict(row, constants).unwrap();
        let basis = Anchors::new(Kinship::embedded(), known.collect()).basis(&own.inputs(), modelled_s);
        let absurd = Measurement { step_time_s: Some(1e6), ..(*row).clone() };
        for row in [row, &absurd] {
            assert_eq!(validator.row(row).predicted_s, Some(modelled_s * basis.correction), "{}", row.id);
        }
    }
}
