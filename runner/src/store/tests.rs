use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use trainplan_shared::estimate::Interval;
use trainplan_shared::log::Status;
use trainplan_shared::result::{
    CampaignRun, Comparability, Intake, LaunchRecord, PredictionRecord, Report, SlurmJob, View,
};
use trainplan_shared::spec::Spec;

/// A log of 50 steps, each of these seconds.
fn log(step_time_s: f64) -> Vec<u8> {
    let line = |step| {
        format!(
            "Training epoch 0, iteration {step}/49 | lr: 0.0001 | global_batch_size: 128 | global_step: {step} | \
             reduced_train_loss: 11.0 | train_step_timing in s: {step_time_s} |\n"
        )
    };
    (0..50).map(line).collect::<String>().into_bytes()
}

fn result_of(log: &[u8]) -> RunResult {
    let mut intake = Intake::new("e/log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &Spec::default());
    intake.feed(log);
    intake.finish()
}

/// A result as the runner makes it.
fn carried_out(log: &[u8], cluster: &str) -> RunResult {
    let carried = CampaignRun {
        campaign: "nightly".into(),
        round: None,
        run: "llama-8b".into(),
        repeat: 2,
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
    result_of(log).of_run(Uuid::now_v7(), carried)
}

fn compressed(dir: &TempDir, log: &[u8]) -> PathBuf {
    let path = dir.path().join("training.log.zst");
    fs::write(&path, zstd::encode_all(log, 1).unwrap()).unwrap();
    path
}

async fn open(dir: &TempDir) -> Store {
    open_at(dir.path()).await.unwrap()
}

async fn open_at(path: &Path) -> Result<Store, StoreError> {
    Store::open(&DataDir::open(Some(path.to_path_buf())).unwrap()).await
}

async fn ids(store: &Store, query: Query) -> Vec<String> {
    store.list(&query).await.unwrap().items.into_iter().map(|run| run.id).collect()
}

/// Returns the number of incomplete files.
fn drafts(dir: &TempDir) -> usize {
    fn count(folder: &Path) -> usize {
        let count_one = |entry: fs::DirEntry| match entry.path() {
            path if path.is_dir() => count(&path),
            path => usize::from(path.extension().is_none_or(|ending| ending != "zst")),
        };
        fs::read_dir(folder).unwrap().map(|entry| count_one(entry.unwrap())).sum()
    }
    count(&dir.path().join("blobs"))
}

async fn read_log(store: &Store, id: Uuid) -> Vec<u8> {
    let sha256 = store.log(id).await.unwrap().unwrap();
    let log = store.read_log(&sha256).await.unwrap();
    let read = move || {
        let mut raw = Vec::new();
        log.raw().unwrap().read_to_end(&mut raw).unwrap();
        raw
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

#[tokio::test]
async fn runs_of_the_same_work_are_on_one_line_of_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let own = "m=llama3.1-8b&gpu=h100&n=16&gbs=128&s=8192&mbs=1";
    for (place, launched) in
        ["&tl=00:20:00&acc=a&part=long", "&tl=00:30:00&acc=b", "", "&tp=2"].iter().enumerate()
    {
        let said = trainplan_shared::link::read(&format!("{own}{launched}"));
        assert!(said.problems.is_empty(), "{:?}", said.problems);
        let mut intake = Intake::new("train.log", &said.spec);
        intake.feed(&log(12.0 + place as f64));
        store.put(&intake.finish(), None).await.unwrap();
    }
    let page = store.list(&Query::default()).await.unwrap();
    let lines: Vec<_> = page.items.iter().map(|run| run.line.clone().unwrap()).collect();
    let different: BTreeSet<_> = lines.iter().collect();
    assert_eq!((lines.len(), different.len()), (4, 2), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.contains("tp=2")).count(), 1);
}

#[tokio::test]
async fn stored_results_are_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let run = carried_out(&log(12.39), "eos");
    assert_eq!(open(&dir).await.put(&run, None).await.unwrap(), UploadOutcome::New);

    let store = open(&dir).await;
    assert_eq!(store.get(run.id).await.unwrap().as_ref(), Some(&run));
    let file = zstd::decode_all(store.file(run.id).await.unwrap().unwrap().as_slice()).unwrap();
    assert_eq!(file, result::write(&run).unwrap().into_bytes());
    assert_eq!(store.log(run.id).await.unwrap(), None);
    assert_eq!(store.get(Uuid::now_v7()).await.unwrap(), None);
    assert_eq!(store.log(Uuid::now_v7()).await.unwrap(), None);
}

#[tokio::test]
async fn summaries_agree_with_reports() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let run = carried_out(&log(11.0), "eos");
    store.put(&run, None).await.unwrap();
    let report = result::Report::of(&run, &result::View::default());
    let summary = store.list(&Query::default()).await.unwrap().items.remove(0);
    assert_eq!(summary.id, run.id.to_string());
    assert_eq!((summary.campaign.as_deref(), summary.run.as_deref()), (Some("nightly"), Some("llama-8b")));
    assert_eq!((summary.repeat, summary.cluster.as_deref()), (Some(2), Some("eos")));
    assert_eq!(summary.recipe.as_deref(), Some("llama3.1-8b/h100/fp8/8@25.04"));
    assert_eq!((summary.model.as_deref(), summary.gpu.as_deref()), (Some("llama3.1-8b"), Some("h100")));
    assert_eq!((summary.gpus, summary.dtype.as_deref()), (Some(8), Some("fp8")));
    assert_eq!(summary.step_time_s, report.step_time_s);
    assert_eq!(summary.tokens_per_s, report.tokens_per_s);
    assert_eq!((summary.mfu, summary.convention), (report.mfu, report.convention));
    assert_eq!(summary.baseline, report.baseline);
    assert!(summary.baseline.unwrap().speed_percent.is_some());
    assert_eq!(summary.plan, report.plan);
    assert_eq!(summary.plan.unwrap().within, Some(true));
    // The prediction made before the run counts.
    assert_eq!((summary.prediction, summary.predicted()), (None, report.plan));
    assert!(summary.comparable && !summary.has_log);
    let times = (summary.received_at.clone(), format!("{:.6}", Timestamp::now()));
    assert!(times.0 <= times.1 && times.0.len() == times.1.len(), "{times:?}");
}

#[tokio::test]
async fn runs_without_a_plan_are_listed_with_the_prediction_for_their_scenario() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut unknown = Intake::new("train.log", &Spec::default());
    unknown.feed(&log(12.5));
    let unknown = unknown.finish();
    for run in [&result_of(&log(11.0)), &result_of(&log(8.0)), &unknown] {
        store.put(run, None).await.unwrap();
        let report = Report::of(run, &View::default());
        let summary = store.summary(run.id).await.unwrap().unwrap();
        assert_eq!((summary.plan, summary.prediction), (None, report.prediction));
        assert_eq!(summary.prediction.is_none(), run.id == unknown.id);
        if let Some(prediction) = summary.prediction {
            let measured = summary.step_time_s.unwrap().mean;
            assert_eq!(prediction.error, Some(measured / prediction.step_time_s.mid - 1.0));
        }
    }
    let query = Query { sort: "-prediction_error".parse().unwrap(), ..Query::default() };
    let listed = store.list(&query).await.unwrap().items;
    assert_eq!(listed[2].id, unknown.id.to_string());
    let errors: Vec<f64> = listed[..2].iter().filter_map(|run| run.prediction?.error).collect();
    assert!(errors.len() == 2 && errors[0] > errors[1], "{errors:?}");
}

#[tokio::test]
async fn lists_say_which_attempt_a_retried_run_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    for (place, attempt) in [None, Some(1), Some(2)].into_iter().enumerate() {
        let mut run = carried_out(&log(11.0 + place as f64), "eos");
        let carried = run.carried.as_mut().unwrap();
        carried.round = u32::try_from(place).ok().filter(|round| *round > 0);
        let job = &mut carried.jobs[0];
        (job.attempt, job.attempts) = (attempt, attempt.map(|_| 3));
        store.put(&run, None).await.unwrap();
    }
    let query = Query { sort: "step_time_s".parse().unwrap(), ..Query::default() };
    let items = store.list(&query).await.unwrap().items;
    let attempts: Vec<_> = items.iter().map(|run| (run.attempt, run.attempts)).collect();
    assert_eq!(attempts, [(None, None), (Some(1), Some(3)), (Some(2), Some(3))]);
    let words: Vec<_> = items.iter().map(trainplan_shared::api::RunSummary::attempt_words).collect();
    assert_eq!(words, ["", "", ", attempt 2 of 3"]);
    let names: Vec<_> = items.iter().filter_map(trainplan_shared::api::RunSummary::name).collect();
    let expected = ["nightly/llama-8b#2", "nightly@1/llama-8b#2", "nightly@2/llama-8b#2, attempt 2 of 3"];
    assert_eq!(names, expected);
}

/// SQLite packs the rows of a list, but not the row of one run.
#[tokio::test]
async fn lists_have_exactly_the_stored_values() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let run = carried_out(&log(12.39), "eos");
    store.put(&run, None).await.unwrap();
    let texts = ["", "a\"b\\c'd", "\u{1}\t\n\u{7f}\u{2028}", "Größe 😀", "null"];
    let mut seed = 1_u64;
    for (exponent, text) in (-300..100).step_by(7).zip(texts.into_iter().cycle()) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number: f64 = format!("{}e{}", seed >> 11, exponent - 16).parse().unwrap();
        let mut writing = store.database.write().await.unwrap();
        let update = "UPDATE runs SET tokens_per_s = $1, plan_error = -$1, mfu = $2, path = $3, campaign = $3, repeat = $4";
        let update = sqlx::query(update).bind(number).bind(1.0 / 3.0).bind(text).bind(i64::from(u32::MAX));
        update.execute(&mut *writing).await.unwrap();
        store.commit(writing).await.unwrap();
        let listed = store.list(&Query::default()).await.unwrap().items;
        assert_eq!((listed[0].tokens_per_s, listed[0].path.as_str()), (Some(number), text));
        assert_eq!(listed, [store.summary(run.id).await.unwrap().unwrap()]);
        assert_eq!(listed[0].result_fault, None);
    }
}

#[tokio::test]
async fn logs_without_steps_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let run = result_of(b"srun: error: node down\n");
    store.put(&run, None).await.unwrap();
    let summary = store.list(&Query::default()).await.unwrap().items.remove(0);
    assert_eq!((summary.step_time_s, summary.plan, summary.campaign), (None, None, None));
    assert_ne!(summary.status, Status::Scored);
}

#[tokio::test]
async fn storing_twice_has_no_effect_and_other_results_under_the_id_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let run = result_of(&log(12.39));
    assert_eq!(store.put(&run, None).await.unwrap(), UploadOutcome::New);
    assert_eq!(store.put(&run, None).await.unwrap(), UploadOutcome::Known);
    let mut copied = run.clone();
    copied.source.path = "elsewhere.out".into();
    copied.source.written_at = Some("2026-11-21T12:00:00Z".into());
    assert_eq!(store.put(&copied, None).await.unwrap(), UploadOutcome::Known);
    let mut other = copied;
    other.comparable = Comparability { yes: false, reasons: vec!["it was profiled".into()] };
    let refused = store.put(&other, None).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { id, .. } if id == run.id), "{refused}");
    assert_eq!(store.get(run.id).await.unwrap(), Some(run));
    assert_eq!(ids(&store, Query::default()).await.len(), 1);
}

#[tokio::test]
async fn logs_are_stored_under_their_hash() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let (log, other) = (log(12.39), log(13.0));
    let (run, file) = (result_of(&log), compressed(&dir, &log));
    // The result first, then its log as well, then both again.
    store.put(&run, None).await.unwrap();
    assert_eq!(store.put(&run, Some(&file)).await.unwrap(), UploadOutcome::Known);
    assert_eq!(store.put(&run, Some(&file)).await.unwrap(), UploadOutcome::Known);
    let kept = store.log_name(run.id).await.unwrap().unwrap();
    let sha256 = &run.source.sha256;
    assert!(kept.ends_with(&format!("blobs/{}/{sha256}.zst", &sha256[..2])), "{kept}");
    assert_eq!(zstd::decode_all(fs::File::open(&kept).unwrap()).unwrap(), log);
    assert_eq!(read_log(&store, run.id).await, log);
    assert!(store.list(&Query::default()).await.unwrap().items[0].has_log);
    // Another run of the same log needs no second copy.
    fs::remove_file(&file).unwrap();
    store.put(&carried_out(&log, "eos"), Some(&file)).await.unwrap();
    store.put(&carried_out(&other, "eos"), None).await.unwrap();
    assert_eq!(drafts(&dir), 0);
}

#[tokio::test]
async fn broken_and_wrong_logs_are_refused_without_leftovers() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let log = log(12.39);
    let (run, file) = (result_of(&log), compressed(&dir, &log));
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let torn = store.put(&run, Some(&file)).await.unwrap_err();
    assert!(matches!(torn, StoreError::Blob(BlobError::Read { .. })), "{torn}");
    fs::write(&file, zstd::encode_all(&b"another log"[..], 1).unwrap()).unwrap();
    let other = store.put(&run, Some(&file)).await.unwrap_err();
    assert!(other.to_string().contains("is not the log that the result was made from"), "{other}");
    let mut outside = run.clone();
    outside.source.sha256 = "../../../../tmp/x".into();
    let no_hash = store.put(&outside, Some(&file)).await.unwrap_err();
    assert!(matches!(no_hash, StoreError::Invalid(_)), "{no_hash}");
    assert_eq!(store.list(&Query::default()).await.unwrap().items, []);
    assert_eq!(drafts(&dir), 0);
    // And what is right goes in afterwards.
    fs::write(&file, whole).unwrap();
    assert_eq!(store.put(&run, Some(&file)).await.unwrap(), UploadOutcome::New);
}

#[tokio::test]
async fn unreferenced_logs_are_deleted_after_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let (kept, left, fresh) = (log(12.39), log(13.0), log(14.0));
    let run = result_of(&kept);
    store.put(&run, Some(&compressed(&dir, &kept))).await.unwrap();
    let path = |log: &[u8]| {
        let sha256 = hex(&Sha256::digest(log));
        dir.path().join(format!("blobs/{}/{sha256}.zst", &sha256[..2]))
    };
    // As a server leaves them that was killed before it could remove them.
    for log in [&left, &fresh] {
        fs::create_dir_all(path(log).parent().unwrap()).unwrap();
        fs::write(path(log), zstd::encode_all(log.as_slice(), 1).unwrap()).unwrap();
    }
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    for log in [&kept, &left] {
        fs::File::open(path(log)).unwrap().set_modified(long_ago).unwrap();
    }
    store.sweep().await.unwrap();
    assert_eq!([&kept, &left, &fresh].map(|log| path(log).exists()), [true, false, true]);
    assert_eq!(read_log(&store, run.id).await, kept);
    assert!(store.delete(run.id).await.unwrap());
    assert!(!path(&kept).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_log_stays_while_another_run_with_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let log = log(12.39);
    let file = compressed(&dir, &log);
    let upload = async |run: &RunResult| {
        let prepared = store.prepare(run, result::write(run)?.as_bytes())?;
        store.put_upload(run, prepared, "ann").await
    };
    for round in 0..60 {
        let [old, new] = [(); 2].map(|()| carried_out(&log, "eos"));
        store.put(&old, Some(&file)).await.unwrap();
        let come = async {
            match round % 3 {
                0 => store.put(&new, Some(&file)).await.map(drop),
                1 => upload(&new).await.map(drop),
                _ => {
                    upload(&new).await?;
                    let mut arriving = store.arriving(new.id).await?;
                    arriving.put(arriving.pack(&log)?).await?;
                    store.finish_log(new.id, &arriving, &LogHash::parse(&new.source.sha256)?).await
                }
            }
        };
        let (deleted, came) = tokio::join!(store.delete(old.id), come);
        assert!(deleted.unwrap() && came.is_ok(), "{came:?}");
        // One that came without its log may have come too late for that.
        if store.log(new.id).await.unwrap().is_some() || round % 3 != 1 {
            assert_eq!(read_log(&store, new.id).await, log);
        }
        assert!(store.delete(new.id).await.unwrap());
    }
}

#[tokio::test]
async fn launched_and_uploaded_runs_are_judged_once_and_imported_ones_never() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let [here, sent, kept, gone] =
        [9.0, 10.0, 11.0, 12.0].map(|step_time_s| carried_out(&log(step_time_s), "eos"));
    for _ in 0..2 {
        store.put(&here, None).await.unwrap();
        store
            .put_upload(&sent, store.prepare(&sent, result::write(&sent).unwrap().as_bytes()).unwrap(), "ann")
            .await
            .unwrap();
        store.put_imported(&kept, result::write(&kept).unwrap().as_bytes(), None).await.unwrap();
    }
    store.put(&gone, None).await.unwrap();
    assert!(store.delete(gone.id).await.unwrap());
    assert_eq!(store.unjudged().await.unwrap(), [here.id, sent.id]);
    store.judged(&[here.id]).await.unwrap();
    // Also for who opens it next.
    assert_eq!(open(&dir).await.unjudged().await.unwrap(), [sent.id]);
}

#[tokio::test]
async fn pages_are_newest_first_without_gaps_or_overlaps() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut put = Vec::new();
    for step in 0..7 {
        let run = result_of(&log(f64::from(step) + 10.0));
        store.put(&run, None).await.unwrap();
        put.insert(0, run.id.to_string());
    }
    let mut seen = Vec::new();
    let mut query = Query { limit: Some(3), ..Query::default() };
    loop {
        let page = store.list(&query).await.unwrap();
        seen.extend(page.items.into_iter().map(|run| run.id));
        let Some(cursor) = page.next_cursor else { break };
        // What comes meanwhile belongs to no later page.
        store.put(&carried_out(&log(30.0), "eos"), None).await.unwrap();
        query.cursor = Some(cursor.parse().unwrap());
    }
    assert_eq!(seen, put);
    for text in ["", "x", "2026-01-01T00:00:00Z", "yesterday_0195d5a2-0000-7000-8000-000000000000"] {
        assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
    }
}

#[tokio::test]
async fn filters_combine() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let (own, eos, dgx) =
        (result_of(&log(12.0)), carried_out(&log(13.0), "eos"), carried_out(&log(14.0), "dgx"));
    for run in [&own, &eos, &dgx] {
        store.put(run, None).await.unwrap();
    }
    let some = |text: &str| Some(text.to_owned());
    let (own, eos, dgx) = (own.id.to_string(), eos.id.to_string(), dgx.id.to_string());
    let recipe = some("llama3.1-8b/h100/fp8/8@25.04");
    assert_eq!(
        ids(&store, Query { recipe: recipe.clone(), ..Query::default() }).await,
        [dgx.as_str(), &eos, &own]
    );
    assert_eq!(
        ids(&store, Query { campaign: some("nightly"), ..Query::default() }).await,
        [dgx.as_str(), &eos]
    );
    assert_eq!(ids(&store, Query { cluster: some("eos"), recipe, ..Query::default() }).await, [eos.as_str()]);
    assert_eq!(ids(&store, Query { status: some("failed"), ..Query::default() }).await, [""; 0]);
    let injected = some("eos' OR '1'='1");
    assert_eq!(ids(&store, Query { cluster: injected, ..Query::default() }).await, [""; 0]);
}

#[tokio::test]
async fn stores_of_newer_programs_are_refused_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut writing = store.database.write().await.unwrap();
    sqlx::raw_sql("PRAGMA user_version = 99").execute(&mut *writing).await.unwrap();
    writing.commit().await.unwrap();
    let error = open_at(dir.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { version: 99, .. }), "{error}");
    assert!(error.to_string().contains("Use a newer trainplan"), "{error}");
    let version = "SELECT user_version FROM pragma_user_version";
    let version: i64 = sqlx::query_scalar(version).fetch_one(&store.database.readers).await.unwrap();
    assert_eq!(version, 99);
}

#[tokio::test]
async fn an_invalid_database_file_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("store.sqlite"),
        "this text is not a database, but it is long enough".repeat(50),
    )
    .unwrap();
    let error = open_at(dir.path()).await.unwrap_err();
    assert!(error.to_string().contains("store.sqlite"), "{error}");
    assert!(error.to_string().contains("not a database"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_programs_can_create_and_write_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let path = dir.path().to_path_buf();
            tokio::spawn(async move {
                // Each its own pools, as another program would have.
                let store = open_at(&path).await.unwrap();
                for step in 0..5 {
                    let run = result_of(&log(10.0 + f64::from(task * 5 + step)));
                    assert_eq!(store.put(&run, None).await.unwrap(), UploadOutcome::New);
                    store.list(&Query::default()).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(ids(&open(&dir).await, Query::default()).await.len(), 40);
}

#[tokio::test]
async fn an_aborted_transaction_stores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let run = result_of(&log(12.39));
    let row = RunRow::new(&summary(&run, format!("{:.6}", Timestamp::now()), false), "hash", None, None);
    let mut writing = store.database.write().await.unwrap();
    row.insert().query().execute(&mut *writing).await.unwrap();
    drop(writing);
    assert_eq!(store.list(&Query::default()).await.unwrap().items, []);
    assert_eq!(store.put(&run, None).await.unwrap(), UploadOutcome::New);
}

/// Where the child of the next test puts its runs.
const CHILD: &str = "TRAINPLAN_TEST_STORE";

#[test]
fn a_killed_writer_leaves_only_complete_runs() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut written = BTreeSet::new();
    for patience in [150, 220, 310] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::writes_until_it_is_killed", "--ignored", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(patience));
        child.kill().unwrap();
        child.wait().unwrap();

        runtime.block_on(async {
            let store = open(&dir).await;
            let runs = store.list(&Query { limit: Some(100_000), ..Query::default() }).await.unwrap().items;
            let now: BTreeSet<String> = runs.iter().map(|run| run.id.clone()).collect();
            assert!(now.is_superset(&written), "nothing that was there is lost");
            for run in runs {
                let id = run.id.parse().unwrap();
                let result = store.get(id).await.unwrap().unwrap();
                let log = read_log(&store, id).await;
                assert_eq!(hex(&Sha256::digest(&log)), result.source.sha256);
            }
            written = now;
        });
    }
    assert!(!written.is_empty(), "the child had no time to write anything");
}

#[test]
#[ignore = "runs as the child of another test, until that one kills it"]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = open_at(Path::new(&path)).await.unwrap();
        let scratch = tempfile::tempdir_in(&path).unwrap();
        for number in 0.. {
            let mut log = log(f64::from(number) + f64::from(std::process::id()));
            writeln!(log, "{}", "x".repeat(100_000)).unwrap();
            let file = compressed(&scratch, &log);
            store.put(&result_of(&log), Some(&file)).await.unwrap();
        }
    });
}
