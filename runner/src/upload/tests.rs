use super::*;
use crate::data::DataDir;
use crate::journal::{Event, Journal, Plan, UploadState};
use crate::serve::{ServeOptions, serve};
use crate::store::Store;
use proptest::prelude::*;
use std::io::Read as _;
use std::net::SocketAddr;
use std::time::Instant;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use trainplan_shared::api::{RunState, TokenScope};
use trainplan_shared::result::{Comparability, Intake, RunResult, write};
use trainplan_shared::spec::Spec;

/// A server with its own store, and a token for it.
struct Served {
    dir: TempDir,
    at: SocketAddr,
    token: String,
    task: JoinHandle<()>,
}

impl Served {
    async fn begin() -> Served {
        let dir = tempfile::tempdir().unwrap();
        let token = store(&dir).await.create_token("t", TokenScope::Admin, None, None).await.unwrap().secret;
        let at = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let task = tokio::spawn(async {});
        let mut served = Served { dir, at, token, task };
        served.start().await;
        served
    }

    /// Starts it, again perhaps, where it was.
    async fn start(&mut self) {
        let (at, data) = (self.at, data(&self.dir));
        let options = ServeOptions { behind_tls: true, ..ServeOptions::default() };
        self.task = tokio::spawn(async move { serve(at, data, options).await.unwrap() });
        while TcpStream::connect(at).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn kill(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    fn server(&self) -> Server {
        format!("http://{}", self.at).parse().unwrap()
    }

    fn remote(&self) -> Remote {
        Remote::new(&self.server(), &self.token).unwrap()
    }

    /// The log that it has of a run.
    async fn log(&self, id: Uuid) -> Option<Vec<u8>> {
        let store = store(&self.dir).await;
        let log = store.log(id).await.unwrap()?;
        let mut log = store.read_log(&log).await.unwrap().raw().unwrap();
        let read = tokio::task::spawn_blocking(move || {
            let mut all = Vec::new();
            log.read_to_end(&mut all).unwrap();
            all
        });
        Some(read.await.unwrap())
    }
}

fn data(dir: &TempDir) -> DataDir {
    DataDir::open(Some(dir.path().into())).unwrap()
}

async fn store(dir: &TempDir) -> Store {
    Store::open(&data(dir)).await.unwrap()
}

/// The result of a log, and its file as it is sent.
fn result(log: &[u8]) -> (RunResult, Bytes) {
    let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &Spec::default());
    intake.feed(log);
    let run = intake.finish();
    let packed = packed(&run);
    (run, packed)
}

fn packed(run: &RunResult) -> Bytes {
    zstd::bulk::compress(write(run).unwrap().as_bytes(), 3).unwrap().into()
}

fn text(seconds: f64) -> Vec<u8> {
    let step = |step| {
        format!(
            "Training epoch 0, iteration {step}/49 | global_batch_size: 128 | train_step_timing in s: {seconds} |\n"
        )
    };
    (0..50).map(step).collect::<String>().into_bytes()
}

fn file(dir: &TempDir, bytes: &[u8]) -> std::path::PathBuf {
    let path = dir.path().join("log");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[tokio::test]
async fn sending_twice_has_no_effect() {
    let served = Served::begin().await;
    let (remote, log) = (served.remote(), text(12.39));
    let (run, file_bytes) = result(&log);
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir, &zstd::encode_all(&log[..], 3).unwrap());
    assert_eq!(remote.put_result(run.id, file_bytes.clone()).await.unwrap(), UploadOutcome::New);
    assert_eq!(remote.put_result(run.id, file_bytes).await.unwrap(), UploadOutcome::Known);
    assert!(remote.put_log(run.id, &mut RawLog::of_file(&path)).await.unwrap());
    assert!(!remote.put_log(run.id, &mut RawLog::of_file(&path)).await.unwrap());
    assert_eq!(served.log(run.id).await.unwrap(), log);
    // Another under its id.
    let mut other = run.clone();
    other.comparable = Comparability { yes: false, reasons: vec!["another".into()] };
    let refused = remote.put_result(run.id, packed(&other)).await.unwrap_err();
    assert!(matches!(&refused, UploadError::Conflict(_)), "{refused}");
    assert!(refused.to_string().contains("results never change"), "{refused}");
}

#[tokio::test]
async fn empty_logs_are_sent() {
    let served = Served::begin().await;
    let (run, file_bytes) = result(b"");
    let dir = tempfile::tempdir().unwrap();
    served.remote().put_result(run.id, file_bytes).await.unwrap();
    served.remote().put_log(run.id, &mut RawLog::of_file(&file(&dir, b""))).await.unwrap();
    assert!(store(&served.dir).await.log(run.id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_wrong_log_is_refused_and_the_right_one_can_follow() {
    let served = Served::begin().await;
    let (remote, log) = (served.remote(), text(12.39));
    let (run, file_bytes) = result(&log);
    remote.put_result(run.id, file_bytes).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let wrong = file(&dir, &text(1.0));
    let refused = remote.put_log(run.id, &mut RawLog::of_file(&wrong)).await.unwrap_err();
    assert!(matches!(&refused, UploadError::Refused(why) if why.contains("is not the log")), "{refused}");
    // Somebody sent the beginning of another one, longer than the whole, and left.
    let half = Piece { packed: zstd::bulk::compress(&[7; 9000], 3).unwrap().into(), is_last: false };
    remote.put_piece(run.id, 0, half).await.unwrap();
    assert!(remote.put_log(run.id, &mut RawLog::of_file(&file(&dir, &log))).await.unwrap());
    assert_eq!(served.log(run.id).await.unwrap(), log);
}

#[tokio::test]
async fn a_token_without_upload_rights_is_denied() {
    let served = Served::begin().await;
    let (run, file_bytes) = result(&text(12.39));
    let stranger = Remote::new(&served.server(), "tp_nobody").unwrap();
    let denied = stranger.put_result(run.id, file_bytes.clone()).await.unwrap_err();
    assert!(matches!(&denied, UploadError::Denied { why, .. } if why.contains("token")), "{denied}");
    // Nobody listens there.
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nowhere = Remote::new(&format!("http://{nobody}").parse().unwrap(), "t").unwrap();
    let away = nowhere.put_result(run.id, file_bytes).await.unwrap_err();
    assert!(matches!(&away, UploadError::Unreachable { why, .. } if why.contains("refused")), "{away}");
}

/// Answers each connection with the next of these texts, regardless of the request.
async fn actor(answers: Vec<&'static str>) -> Remote {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            // A small request comes in one piece.
            let _ = stream.read(&mut [0; 1 << 16]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let remote = Remote::new(&format!("http://{at}").parse().unwrap(), "t").unwrap().with_attempts(5);
    Remote { pause: Duration::from_millis(1), ..remote }
}

const NEW: &str = "HTTP/1.1 201 Created\r\nconnection: close\r\ncontent-length: 73\r\n\r\n\
    {\"id\":\"\",\"outcome\":\"new\",\"log\":{\"sha256\":\"\",\"offset\":0,\"complete\":false}}";

#[tokio::test]
async fn temporary_failures_are_retried_and_others_are_not() {
    let put = async |answers: Vec<&'static str>| {
        let remote = actor(answers).await;
        remote.put_result(Uuid::nil(), Bytes::from_static(b"x")).await
    };
    let busy = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let slow = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let begun = Instant::now();
    let often =
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(put(vec![busy, slow, "", often, NEW]).await.unwrap(), UploadOutcome::New);
    assert!(begun.elapsed() >= Duration::from_secs(1), "it waits as long as the server asks");
    assert!(matches!(put(vec![busy; 5]).await, Err(UploadError::Unreachable { .. })));
    let broken = "HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(put(vec![broken, broken, NEW]).await.unwrap(), UploadOutcome::New);
    let failed = put(vec![broken; 5]).await.unwrap_err();
    assert!(matches!(&failed, UploadError::Failed { why, .. } if why.contains("500")), "{failed}");
    // A quota says nothing of how long.
    let quota = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert!(matches!(put(vec![quota]).await, Err(UploadError::Denied { .. })));
    // Something else than a server: a page to log in at, a proxy that knows no such path, one that sends us
    // elsewhere.
    let page = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 6\r\n\r\n<html>";
    let none = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 6\r\n\r\n<html>";
    let moved = "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://elsewhere/\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for (answer, told) in [(page, "not a Trainplan server"), (none, "404"), (moved, "http://elsewhere/")] {
        let denied = put(vec![answer]).await.unwrap_err();
        assert!(matches!(&denied, UploadError::Denied { why, .. } if why.contains(told)), "{denied}");
    }
}

/// A proxy to a server that cuts its first connections, each after a number of our bytes, and later ones
/// never.
async fn breaking(to: SocketAddr, cuts: Vec<usize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut cuts = cuts.into_iter();
        while let Ok((ours, _)) = listener.accept().await {
            let most = cuts.next().map_or(u64::MAX, |cut| cut as u64);
            tokio::spawn(async move {
                let theirs = TcpStream::connect(to).await.unwrap();
                let (from_us, mut to_us) = ours.into_split();
                let (mut from_them, mut to_them) = theirs.into_split();
                let there = async {
                    // What is sent on may arrive, whatever becomes of the answer.
                    let _ = tokio::io::copy(&mut from_us.take(most), &mut to_them).await;
                };
                tokio::select! {
                    () = there => {}
                    _ = tokio::io::copy(&mut from_them, &mut to_us) => {}
                }
            });
        }
    });
    at
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_log_arrives_whole_wherever_it_is_cut(
        log in proptest::collection::vec(any::<u8>(), 0..200_000),
        piece in 1_000_u64..120_000,
        cuts in proptest::collection::vec(0_usize..80_000, 0..8),
        packed in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let served = Served::begin().await;
            let (run, file_bytes) = result(&log);
            served.remote().put_result(run.id, file_bytes).await.unwrap();
            let at = breaking(served.at, cuts).await;
            let remote = Remote::new(&format!("http://{at}").parse().unwrap(), &served.token).unwrap();
            let remote = Remote { pause: Duration::from_millis(1), ..remote.with_attempts(20) };
            let dir = tempfile::tempdir().unwrap();
            let path = file(&dir, &if packed { zstd::encode_all(&log[..], 1).unwrap() } else { log.clone() });
            // Random bytes may begin as zstd does.
            let mut raw = RawLog::of_file(&path).in_pieces_of(piece);
            remote.put_log(run.id, &mut raw).await.unwrap();
            assert!(served.log(run.id).await.unwrap() == log);
        });
    }
}

/// A journal whose runs are stored and due, beside a store that has their results.
struct Kept {
    dir: TempDir,
    journal: Journal,
    store: Store,
    ids: Vec<Uuid>,
}

impl Kept {
    async fn make(upload: &Upload, runs: usize) -> Kept {
        let dir = tempfile::tempdir().unwrap();
        let (journal, store) = (Journal::open(&data(&dir)).await.unwrap(), store(&dir).await);
        let (mut plans, mut ids) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let log = text(1.0 + run as f64);
            let (result, _) = result(&log);
            let path = file(&dir, &zstd::encode_all(&log[..], 3).unwrap());
            store.put(&result, Some(&path)).await.unwrap();
            plans.push((
                result.id.to_string(),
                Plan { upload: Some(upload.clone()), ..crate::journal::tests::plan("a") },
            ));
            ids.push(result.id);
        }
        journal.begin(&crate::journal::tests::round("one"), &plans).await.unwrap();
        for id in &ids {
            journal.write(&id.to_string(), 5, &Event::Stored { result: id.to_string() }).await.unwrap();
        }
        Kept { dir, journal, store, ids }
    }

    async fn sending(&self) -> Vec<Option<UploadState>> {
        self.journal.runs("one").await.unwrap().into_iter().map(|run| run.status.sending).collect()
    }

    async fn events(&self, id: Uuid) -> Vec<Event> {
        let events = self.journal.events(&id.to_string(), 0).await.unwrap();
        events.into_iter().map(|(_, _, event)| event).collect()
    }

    /// As the end of a round does.
    async fn finish(&self) -> Vec<SendUpdate> {
        let mut outbox = Outbox::start(&self.journal, &self.store);
        outbox.finish();
        let mut all = Vec::new();
        while let Some(news) = outbox.next().await {
            all.push(news);
        }
        all
    }
}

/// A token that `printf` knows: a test can't change its environment.
fn upload(served: &Served) -> Upload {
    let token = Secret::Command(vec!["printf".into(), "%s".into(), served.token.clone()]);
    Upload { token, ..Upload::to(served.server()) }
}

fn uploads(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Uploaded { .. })).count()
}

#[tokio::test]
async fn due_results_are_sent_and_settled_once() {
    let served = Served::begin().await;
    let kept = Kept::make(&upload(&served), 3).await;
    assert_eq!(kept.journal.due().await.unwrap().len(), 3);
    assert_eq!(kept.finish().await.len(), 3);
    assert_eq!((kept.journal.due().await.unwrap(), kept.finish().await.len()), (Vec::new(), 0));
    for id in &kept.ids {
        assert_eq!(uploads(&kept.events(*id).await), 1);
        assert!(served.log(*id).await.is_some());
    }
    assert!(kept.sending().await.iter().all(|sending| matches!(sending, Some(UploadState::Sent { .. }))));
    // The journal is there for the next process.
    let journal = Journal::open(&data(&kept.dir)).await.unwrap();
    assert_eq!(journal.due().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn a_send_that_was_killed_before_its_acknowledgement_is_repeated() {
    let served = Served::begin().await;
    let kept = Kept::make(&upload(&served), 1).await;
    let due = kept.journal.due().await.unwrap().remove(0);
    let sent = send_due(&served.remote(), &kept.store, &due).await;
    assert_eq!(sent.unwrap().put, UploadOutcome::New);
    // Here it is killed. The next processes send it again, even two at once.
    let again = send_due(&served.remote(), &kept.store, &due).await;
    assert_eq!(again.as_ref().unwrap(), &Sent { put: UploadOutcome::Known, log: Some(false) });
    let (one, other) = tokio::join!(kept.finish(), kept.finish());
    assert_eq!(one.len() + other.len(), 1);
    assert_eq!(settle(&kept.journal, &due, &again).await.unwrap(), None);
    assert_eq!(uploads(&kept.events(kept.ids[0]).await), 1);
}

#[tokio::test]
async fn an_unreachable_server_receives_results_later() {
    let mut served = Served::begin().await;
    served.kill().await;
    let kept = Kept::make(&upload(&served), 2).await;
    let begun = Instant::now();
    for _ in 0..3 {
        kept.finish().await;
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // One is tried for all, and that is said once.
    let sending = kept.sending().await;
    let put_off = |sending: &&Option<UploadState>| matches!(sending, Some(UploadState::PutOff { why }) if why.contains("can't be reached"));
    assert_eq!((sending.iter().filter(put_off).count(), sending.iter().flatten().count()), (1, 1));
    let mut said = 0;
    for id in &kept.ids {
        let events = kept.events(*id).await;
        said += events.iter().filter(|event| matches!(event, Event::NotUploaded { again: true, .. })).count();
    }
    assert_eq!(said, 1);
    served.start().await;
    assert_eq!(kept.finish().await.len(), 2);
    assert_eq!(kept.journal.due().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn a_silent_server_is_given_up_soon() {
    let frozen = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("http://{}", frozen.local_addr().unwrap()).parse().unwrap();
    let token = Secret::Command(vec!["echo".into(), "t".into()]);
    let kept = Kept::make(&Upload { token, ..Upload::to(to) }, 1).await;
    let outbox = Outbox::start(&kept.journal, &kept.store);
    outbox.finish();
    let begun = Instant::now();
    outbox.silence().await;
    drop(outbox);
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    assert_eq!(kept.journal.due().await.unwrap().len(), 1);
}

#[tokio::test]
async fn refused_results_are_not_sent_again() {
    let served = Served::begin().await;
    let kept = Kept::make(&upload(&served), 1).await;
    // The server has another result under the id.
    let (mut other, _) = result(&text(1.0));
    other.comparable = Comparability { yes: false, reasons: vec!["another".into()] };
    served.remote().put_result(other.id, packed(&other)).await.unwrap();
    kept.finish().await;
    assert!(
        matches!(&kept.sending().await[0], Some(UploadState::Refused { why }) if why.contains("never change"))
    );
    assert_eq!(kept.journal.due().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn logs_are_not_sent_if_that_is_disabled() {
    let served = Served::begin().await;
    let kept = Kept::make(&Upload { logs: false, ..upload(&served) }, 1).await;
    kept.finish().await;
    assert!(matches!(&kept.sending().await[0], Some(UploadState::Sent { .. })));
    assert_eq!(served.log(kept.ids[0]).await, None);
}

#[tokio::test]
async fn results_that_become_due_during_a_round_are_sent() {
    let served = Served::begin().await;
    let kept = Kept::make(&upload(&served), 1).await;
    let mut outbox = Outbox::start(&kept.journal, &kept.store);
    let first = tokio::time::timeout(Duration::from_secs(20), outbox.next()).await.unwrap().unwrap();
    assert!(matches!(first.event, Event::Uploaded { .. }));
    outbox.notify();
    outbox.finish();
    assert!(outbox.next().await.is_none());
}

#[tokio::test]
async fn a_server_receives_the_newest_progress() {
    let served = Served::begin().await;
    let reporter = ProgressReporter::start();
    let id = Uuid::now_v7();
    let progress = |step| RunProgress {
        campaign: "nightly".into(),
        run: "a".into(),
        repeat: 1,
        cluster: "alpha".into(),
        recipe: None,
        state: RunState::Running,
        step: Some(step),
        steps: Some(50),
        step_time_s: None,
        planned_s: Some(2.0),
        jobs: vec!["7".into()],
        at: "2026-11-01T00:00:00Z".into(),
    };
    reporter.report(&upload(&served), id, progress(1));
    reporter.report(&upload(&served), id, progress(2));
    let store = store(&served.dir).await;
    let begun = Instant::now();
    let live = loop {
        match store.unfinished().await.unwrap().pop() {
            Some(run) if run.progress.step == Some(2) => break run,
            _ => assert!(begun.elapsed() < Duration::from_secs(20)),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(live.id, id.to_string());
    assert!(reporter.is_idle());
}

#[test]
fn loopback_addresses_are_recognized() {
    for (address, own) in [
        ("http://127.0.0.1:8080", true),
        ("http://localhost", true),
        ("http://[::1]:80/x", true),
        ("http://127.0.0.1.example.org", false),
        ("http://results.example:8080/localhost", false),
        ("https://[2001:db8::1]", false),
    ] {
        assert_eq!(is_loopback(address), own, "{address}");
    }
}
