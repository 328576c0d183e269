//! The file that keeps a result.

use crate::{nemo2, run};
use proptest::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{FileError, Intake, Report, RunResult, Source, View, read, write};
use trainplan_shared::spec::Spec;

#[test]
fn more_may_be_said_of_a_saved_run_later() {
    let path = "log-a.pretrain_nemotron4_340b_fp8_gpus256_tp8_pp4_cp1_vp12_mbs1_gbs64_389757_0.out";
    let run = run(path, &nemo2(64, "3", " | TFLOPS_per_GPU: 1600"));
    let open = Report::of(&run, &View::default());
    assert_eq!((open.recipe, open.mfu), (None, None));
    let notes = [
        "The log doesn't contain the GPU type. Set it to gb200, gb300 or b200.",
        "As logged: 1,600 TFLOP/s per GPU.",
    ];
    assert_eq!(open.notes, notes);
    assert_eq!(open.tokens_per_s, Some(4096.0 * 64.0 / 3.0));
    let view = View { spec: Spec::default().with(Field::Gpu, "b200"), ..View::default() };
    let told = Report::of(&run, &view);
    assert_eq!(told.recipe.as_deref(), Some("nemotron4-340b/b200/fp8/256@25.12"));
    assert!(told.mfu.is_some());
}

#[test]
fn a_stored_run_keeps_what_it_says_and_gets_what_another_reading_of_its_log_adds() {
    let known = run("log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &nemo2(128, "12.39", ""));
    let renamed = RunResult {
        source: Source { written_at: Some("2026-11-27T10:00:00Z".into()), ..known.source.clone() },
        ..run("train.log", &nemo2(128, "12.39", ""))
    };
    assert_eq!(known.id, renamed.id);
    let completed = known.clone().completed_by(&renamed);
    assert_eq!((&completed.identity, &completed.log), (&known.identity, &known.log));
    assert_eq!(completed.source.written_at, renamed.source.written_at);
    // The identity that the stored run lacks.
    let completed = renamed.clone().completed_by(&known);
    assert_eq!((&completed.identity, completed.id), (&known.identity, known.id));
    // What a newer parser read, with the identity that somebody set.
    let mut old = known.clone();
    old.provenance.parser_version -= 1;
    old.log.steps.label.clear();
    let completed = old.completed_by(&renamed);
    assert_eq!((&completed.log, &completed.provenance), (&renamed.log, &renamed.provenance));
    assert_eq!((&completed.identity, &completed.comparable), (&known.identity, &known.comparable));
}

/// Version 1, which every later program must read.
const VERSION_1: &str = include_str!("../fixtures/version-1.result.json");

#[test]
fn version_1_is_read_for_ever() {
    let run = read(VERSION_1.as_bytes()).unwrap();
    assert_eq!((run.version, run.id.to_string().as_str()), (1, "1bd42e64-a37c-81a1-a605-f2835b77109b"));
    let report = Report::of(&run, &View::default());
    assert_eq!(report.status, Status::Scored);
    assert_eq!(report.recipe.as_deref(), Some("llama3.1-8b/h100/fp8/8@25.04"));
    assert_eq!((report.steps, report.step_time_s.unwrap().mean), (3, 12.39));
    assert_eq!(format!("{:.4}", report.mfu.unwrap()), "0.3093");
    assert_eq!((report.checkpoint.save_s, report.failures.len()), (Some(4.389), 1));
    // While it is the newest version, it is also what is written.
    assert_eq!(write(&run).unwrap(), VERSION_1);
}

#[test]
fn a_file_that_is_no_result_says_what_it_is() {
    let newer = VERSION_1.replacen("\"version\":1", "\"version\":2,\"colour\":3", 1);
    assert!(matches!(read(newer.as_bytes()), Err(FileError::Newer(2))));
    let more = VERSION_1.replacen("\"version\":1", "\"version\":1,\"colour\":3", 1);
    assert_eq!(read(more.as_bytes()).unwrap(), read(VERSION_1.as_bytes()).unwrap());
    for text in ["", "{}", "[]", "1", "null", "hello", "{\"version\":-1}"] {
        assert!(matches!(read(text.as_bytes()), Err(FileError::NotAResult(_))), "{text}");
    }
    assert!(matches!(read(b"{\"version\":1}"), Err(FileError::Damaged(_))));
    for (good, bad) in [("[47,48,49]", "[47,47,49]"), ("[47,48,49]", "[47,48]"), ("[47,48,49]", "[49,48,47]")]
    {
        assert!(matches!(read(VERSION_1.replacen(good, bad, 1).as_bytes()), Err(FileError::Steps)), "{bad}");
    }
    let cut = &VERSION_1.as_bytes()[..VERSION_1.len() / 2];
    assert!(read(cut).unwrap_err().to_string().contains("or the log itself"));
}

proptest! {
    #[test]
    fn a_saved_run_reports_what_the_log_did(
        path in "([a-z]{0,9}/)?(log-a.pretrain_(llama3.1_70b|nemotronh_56b)_(fp8|bf16)_(gpus)?(256|96)(_nsys)?_7_0.out|\\PC{0,20})",
        times in prop::collection::vec((1..100_000_u32, any::<bool>()), 0..60),
        gbs in prop::option::of(1..2000_u32),
        junk in prop::collection::vec(any::<u8>(), 0..200),
        said in prop::option::of(prop::sample::select(&["h100", "b200", "nonsense"][..])),
        window in prop::option::of((0..50_u64, 0..50_u64)),
    ) {
        let mut said_spec = Spec::default();
        said_spec.set(Field::Gpu, said.unwrap_or_default());
        let mut intake = Intake::new(path, &said_spec);
        intake.feed(&junk);
        for (label, (time, nan)) in times.iter().enumerate() {
            let gbs = gbs.map_or(String::new(), |gbs| format!(" | global_batch_size: {gbs}"));
            let loss = if *nan { "nan".to_owned() } else { (f64::from(*time) / 7.0).to_string() };
            intake.feed(
                format!(
                    "\nTraining epoch 0, iteration {label}/49{gbs} | reduced_train_loss: {loss} | \
                     train_step_timing in s: {}\n", f64::from(*time) / 3.0
                )
                .as_bytes(),
            );
        }
        let run = intake.finish();
        let window = window.map(|(from, more)| Window::labels(from, from + more).unwrap());
        let saved = write(&run).unwrap();
        let back = read(saved.as_bytes()).unwrap();
        prop_assert_eq!(&back, &run);
        prop_assert_eq!(write(&back).unwrap(), saved);
        for view in [
            View { window, ..View::default() },
            View { window, spec: Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04"), ..View::default() },
        ] {
            let (one, other) = (Report::of(&run, &view), Report::of(&back, &view));
            prop_assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&other).unwrap());
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let _ = read(&bytes);
        let mut changed = VERSION_1.as_bytes().to_vec();
        let at = at.index(changed.len());
        changed[at] = byte;
        if let Ok(run) = read(&changed) {
            let report = Report::of(&run, &View::default());
            prop_assert!(serde_json::to_string(&report).is_ok());
        }
    }
}
