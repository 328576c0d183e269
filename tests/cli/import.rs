use serde_json::Value;
use std::fs;
use trainplan_tests::{Run, trainplan};

const LINE: &str =
    "Training epoch 0, iteration 49/49 | global_batch_size: 128 | train_step_timing in s: 12.39 |\n";

fn import(paths: &[&str], data: &str) -> (Run, Value) {
    let run = trainplan([&["import", "--format", "json", "--data-dir", data], paths].concat());
    let rows = serde_json::from_str(&run.stdout).unwrap();
    (run, rows)
}

#[test]
fn a_saved_result_goes_into_the_store_once_and_never_changes() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let (log, results, data) =
        (path("log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out"), path("results"), path("data"));
    fs::write(&log, LINE).unwrap();
    trainplan(["parse", &log, "--save", &results]);

    let (run, rows) = import(&[&results], &data);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(0), &"new".into()), "{}", run.stderr);
    let (run, rows) = import(&[&results], &data);
    assert_eq!((run.code, &rows[0]["outcome"]), (Some(0), &"known".into()), "{}", run.stderr);

    let file = format!("{results}/{}.result.json", rows[0]["id"].as_str().unwrap());
    let changed = fs::read_to_string(&file).unwrap().replace("12.39", "11.39");
    fs::write(&file, changed).unwrap();
    let (run, rows) = import(&[&file, &log, &path("missing")], &data);
    assert_eq!(run.code, Some(1));
    let outcomes: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["conflict", "unreadable", "unreadable"]);
    assert!(rows[0]["reason"].as_str().unwrap().contains("results never change"));
    assert!(run.stderr.contains("3 of 3 results could not be stored"), "{}", run.stderr);
}

#[test]
fn pipes_and_endless_files_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let (results, data) = (path("results"), path("data"));
    let log = path("log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out");
    fs::write(&log, LINE).unwrap();
    trainplan(["parse", &log, "--save", &results]);
    let make = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(format!("{results}/{name}")).status();
        assert!(made.unwrap().success());
    };
    let (_, rows) = import(&[&results], &data);
    make(&format!("{}.log.zst", rows[0]["id"].as_str().unwrap()));
    make("pipe.result.json");
    let endless = fs::File::create(format!("{results}/sparse.result.json")).unwrap();
    endless.set_len(1 << 40).unwrap();
    let (_, rows) = import(&[&results], &data);
    let told: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(told, ["bad_log", "unreadable", "unreadable"]);
    assert!(rows[0]["reason"].as_str().unwrap().contains("is not a regular file"), "{rows}");
    assert!(rows[1]["reason"].as_str().unwrap().contains("not a regular file"), "{rows}");
    assert!(rows[2]["reason"].as_str().unwrap().contains("more than 67108864 bytes"), "{rows}");
}
