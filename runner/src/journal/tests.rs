use super::event::Disturbance;
use super::*;
use crate::slurm::{End, Launcher, Sighting, State, StateSource};
use sqlx::Executor as _;
use trainplan_shared::campaign::Secret;
use trainplan_shared::estimate::Interval;
use trainplan_shared::result::{Comparability, LaunchRecord, PredictionRecord};

pub(crate) fn plan(name: &str) -> Plan {
    Plan {
        name: name.into(),
        repeat: 1,
        repeats: 1,
        after: Vec::new(),
        after_success: Vec::new(),
        retries: 0,
        retry: 0,
        exclude: None,
        singleton: false,
        queue_budget_s: None,
        recipe: None,
        scenario: "m=llama3.1-8b".into(),
        gpus: 8,
        script: "#!/bin/sh\n".into(),
        is_job: false,
        secrets: vec![("HF_TOKEN".into(), Secret::Env("HF_TOKEN".into()))],
        job_names: vec!["a".into()],
        experiment_dir: "/x".into(),
        log_glob: "/x/log*.out".into(),
        launched: LaunchRecord {
            release: None,
            style: "launch-sh".into(),
            script_sha256: "0".into(),
            steps: 50,
            comparable: Comparability { yes: true, reasons: Vec::new() },
        },
        predicted: PredictionRecord {
            step_time_s: Interval { low: 1.0, mid: 2.0, high: 3.0 },
            memory_bytes: 1.0,
            capacity_bytes: 2.0,
            basis: "modelled".into(),
            calibration: "here".into(),
        },
        baseline_s: None,
        upload: None,
    }
}

pub(crate) fn round(id: &str) -> Round {
    let text = |text: &str| text.to_string();
    Round {
        id: text(id),
        campaign: text("nightly"),
        cluster: text("alpha"),
        ssh: text("alpha-login"),
        sha256: text("0"),
        begun_ms: 1,
        seen_ms: None,
        ended_ms: None,
        number: 1,
        is_newest: true,
    }
}

fn observed(job: &str, state: State) -> Event {
    Event::Observed { job: job.into(), sighting: Sighting::new(state, StateSource::Squeue) }
}

fn submitted(jobs: &[&str], launcher: Launcher) -> Event {
    let jobs = jobs.iter().map(ToString::to_string).collect();
    Event::Submitted { jobs, launcher, marked: Some(true), by_name: false }
}

fn status(events: &[Event]) -> RunStatus {
    let mut status = RunStatus::default();
    for (at_ms, event) in events.iter().enumerate() {
        status.apply(at_ms as i64, event);
    }
    status
}

#[tokio::test]
async fn a_round_is_open_until_it_ends_and_has_jobs_from_the_first_launch() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let journal = Journal::open(&data).await.unwrap();
    assert!(Journal::file(&data).exists());
    journal.begin(&round("one"), &[("r1".into(), plan("a")), ("r2".into(), plan("b"))]).await.unwrap();
    let open = journal.open_round("nightly", "alpha").await.unwrap();
    assert_eq!(open.map(|round| round.id).as_deref(), Some("one"));
    assert!(journal.open_round("nightly", "beta").await.unwrap().is_none());
    assert!(!has_jobs(&journal.runs("one").await.unwrap()));
    journal.write("r2", 1, &Event::Intended { attempt: 1, token: "t".into() }).await.unwrap();
    assert!(has_jobs(&journal.runs("one").await.unwrap()));
    journal.end("one", 2).await.unwrap();
    assert!(journal.open_round("nightly", "alpha").await.unwrap().is_none());
}

#[tokio::test]
async fn the_next_process_reads_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let journal = Journal::open(&data).await.unwrap();
    let (one, two) = (("r1".to_string(), plan("a")), ("r2".to_string(), plan("b")));
    journal.begin(&round("one"), &[one.clone(), two]).await.unwrap();
    let events = [
        Event::Intended { attempt: 1, token: "t".into() },
        submitted(&["7"], Launcher::Ended(0)),
        observed("7", State::Running),
    ];
    for (at, event) in events.iter().enumerate() {
        journal.write("r1", at as i64 + 2, event).await.unwrap();
    }
    let copied =
        Copied { job: "7".into(), path: "/x/log_7_0.out".into(), inode: u64::MAX, offset: 5, kept: 3 };
    journal.set_copied([("r1", &copied)]).await.unwrap();
    drop(journal);

    let journal = Journal::open(&data).await.unwrap();
    assert_eq!(journal.rounds().await.unwrap(), [round("one")]);
    let runs = journal.runs("one").await.unwrap();
    assert_eq!((runs.len(), &runs[0].plan), (2, &one.1));
    assert_eq!(runs[0].status.phase, Phase::Submitted);
    assert_eq!(runs[0].status.jobs[0].1.as_ref().unwrap().state, State::Running);
    assert_eq!((runs[1].status.phase, runs[0].status.submitted_ms), (Phase::Planned, Some(3)));
    assert_eq!(journal.copied("r1").await.unwrap(), [copied]);
    let of_run: Vec<Event> =
        journal.events("r1", 0).await.unwrap().into_iter().map(|(_, _, event)| event).collect();
    assert_eq!(of_run[1..], events);
}

#[tokio::test]
async fn one_process_at_a_time_carries_out_a_campaign() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let (one, other) = (Journal::open(&data).await.unwrap(), Journal::open(&data).await.unwrap());
    let lock = one.lock("nightly", "alpha").unwrap();
    let busy = other.lock("nightly", "alpha").unwrap_err().to_string();
    assert!(busy.contains(&std::process::id().to_string()), "{busy}");
    assert_eq!(other.carried_out_by(&round("one")), Some(std::process::id().to_string()));
    assert_eq!(other.carried_out_by(&Round { cluster: "beta".into(), ..round("one") }), None);
    other.lock("nightly", "beta").unwrap();
    drop(lock);
    other.lock("nightly", "alpha").unwrap();
}

#[tokio::test]
async fn rounds_are_ordered_by_sequence_whatever_the_clock_says() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let journal = Journal::open(&data).await.unwrap();
    // The first is begun with a clock a year ahead.
    for (id, cluster, begun_ms) in [("z", "alpha", 9_000), ("b", "alpha", 1), ("a", "beta", 1)] {
        let begun = Round { cluster: cluster.into(), begun_ms, ..round(id) };
        journal.begin(&begun, &[(format!("run-{id}"), plan("a"))]).await.unwrap();
    }
    let rounds = journal.rounds().await.unwrap();
    let told: Vec<_> = rounds.iter().map(|round| (&*round.id, round.title(), round.is_newest)).collect();
    let expected = [("a", 3, true), ("b", 2, true), ("z", 1, false)];
    assert_eq!(told, expected.map(|(id, number, newest)| (id, format!("nightly@{number}"), newest)));
    // An older round can be carried out beside the newest one of its campaign.
    let newest = journal.lock("nightly", "alpha").unwrap();
    assert!(journal.lock_round(&rounds[1]).is_err());
    let older = journal.lock_round(&rounds[2]).unwrap();
    drop((newest, older));
}

#[tokio::test]
async fn every_event_is_on_disk_when_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let journal = Journal::open(&data).await.unwrap();
    // 2 is FULL: every commit is synchronized, so that it survives a loss of power.
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&journal.pool).await.unwrap();
    assert_eq!(synchronous, 2);
}

#[tokio::test]
async fn marks_and_jobs_of_earlier_runs_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let journal = Journal::open(&data).await.unwrap();
    let runs = ["r1", "r2", "r3"].map(|id| (id.to_string(), plan(id)));
    journal.begin(&round("one"), &runs).await.unwrap();
    assert!(!journal.marks_survive("alpha").await.unwrap());
    let of = |jobs: &[&str], marked| {
        let jobs = jobs.iter().map(ToString::to_string).collect();
        Event::Submitted { jobs, launcher: Launcher::Ended(0), marked, by_name: false }
    };
    journal.write("r1", 1, &of(&["7", "8"], Some(true))).await.unwrap();
    journal.write("r2", 2, &of(&["9"], None)).await.unwrap();
    assert!(journal.marks_survive("alpha").await.unwrap());
    assert!(!journal.marks_survive("beta").await.unwrap());
    let others = journal.jobs_of_others("alpha", "r1").await.unwrap();
    assert_eq!(others.into_iter().collect::<Vec<_>>(), ["9"]);
    // A job with the name of a run that is being launched may be that run's.
    journal.write("r3", 3, &Event::Intended { attempt: 1, token: "t".into() }).await.unwrap();
    let names = |run| journal.names_being_launched("alpha", run);
    assert_eq!((names("r1").await.unwrap().len(), names("r3").await.unwrap().len()), (1, 0));
    // The site has begun to replace comments.
    journal.write("r3", 3, &of(&["10"], Some(false))).await.unwrap();
    assert!(!journal.marks_survive("alpha").await.unwrap());
    assert_eq!(names("r1").await.unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_processes_open_a_new_journal_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let opened = (0..8).map(|_| {
        let data = DataDir::open(Some(folder.path().into())).unwrap();
        tokio::spawn(async move { Journal::open(&data).await.map(drop) })
    });
    for opened in opened.collect::<Vec<_>>() {
        opened.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn an_older_journal_is_migrated_and_keeps_its_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let journal = Journal::open(&data).await.unwrap();
    journal.begin(&round("one"), &[("r1".to_string(), plan("a"))]).await.unwrap();
    // As version 1 was.
    journal.pool.execute("DROP TABLE outbox; PRAGMA user_version = 1").await.unwrap();
    let stored = Event::Stored { result: "r1".into() };
    assert!(journal.write("r1", 2, &stored).await.is_err());
    drop(journal);
    let journal = Journal::open(&data).await.unwrap();
    journal.write("r1", 2, &stored).await.unwrap();
    assert_eq!(journal.runs("one").await.unwrap()[0].status.phase, Phase::Stored);
    // Its plan names no server.
    assert_eq!(journal.due().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn a_journal_of_a_newer_version_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(Some(folder.path().into())).unwrap();
    let journal = Journal::open(&data).await.unwrap();
    journal.pool.execute("PRAGMA user_version = 9").await.unwrap();
    let refused = Journal::open(&data).await.unwrap_err();
    assert!(matches!(refused, JournalError::Newer { version: 9, .. }), "{refused}");
}

#[test]
fn the_state_of_a_run_follows_from_its_events() {
    let submitted = submitted(&["7", "8"], Launcher::Gone);
    let begun = [Event::Planned, Event::Intended { attempt: 1, token: "t".into() }, submitted];
    let ended = |end| State::Ended(end);
    let with = |more: &[Event]| status(&[&begun[..], more].concat());
    // A run has ended when all its jobs have.
    assert_eq!(with(&[observed("7", ended(End::Completed))]).phase, Phase::Submitted);
    let both = [observed("7", ended(End::Completed)), observed("8", ended(End::Failed))];
    assert_eq!(with(&both).phase, Phase::Ended);
    // A requeued job is not over, and disturbs the measurement.
    let back = with(&[&both[..], &[observed("8", State::Pending)]].concat());
    assert_eq!((back.phase, back.was_requeued()), (Phase::Submitted, true));
    // A suspended one is not over either, and is said once.
    let suspended = observed("7", State::Suspended);
    let paused = with(&[suspended.clone(), observed("7", State::Running), suspended]);
    assert_eq!(paused.disturbances, [Disturbance::Suspended { job: "7".into() }]);
    assert_eq!(paused.phase, Phase::Submitted);
    // Being out of sight does not change the state of a job.
    let unseen = with(&[
        observed("7", State::Running),
        Event::Unseen { why: "no network".into(), last_seen_ms: Some(1) },
    ]);
    assert_eq!(unseen.jobs[0].1.as_ref().unwrap().state, State::Running);
    // Nobody knows since when they are out of sight, only when the cluster last answered.
    assert_eq!(unseen.unseen, Some((1, "no network".into())));
    let again = with(&[Event::Unseen { why: "no network".into(), last_seen_ms: Some(1) }, Event::SeenAgain]);
    assert_eq!(again.unseen, None);
    // After an attempt without a job there is another one, or the run fails.
    let not = |again| Event::NotSubmitted { why: "refused".into(), again };
    assert_eq!(status(&[begun[1].clone(), not(true)]).phase, Phase::Planned);
    assert_eq!(status(&[begun[1].clone(), not(false)]).phase, Phase::Failed);
}

#[test]
fn a_plan_of_another_version_may_differ_in_what_the_program_derives() {
    let begun = plan("a");
    let mut now = Plan { script: "#!/bin/bash\n".into(), baseline_s: Some(9.0), ..begun.clone() };
    assert!(!begun.is_of_other_version(&now), "the same version derives the same");
    now.predicted.calibration = "trainplan 9".into();
    assert!(begun.is_of_other_version(&now));
    let others = [
        Plan { scenario: "m=llama3.1-70b".into(), ..now.clone() },
        Plan { retries: 1, ..now.clone() },
        Plan { secrets: Vec::new(), ..now.clone() },
        Plan { name: "b".into(), ..now },
    ];
    for other in others {
        assert!(!begun.is_of_other_version(&other), "{other:?}");
    }
}

#[test]
fn events_of_older_journals_are_read() {
    let read = |text: &str| serde_json::from_str::<Event>(text).unwrap();
    let restarted = |why| Event::Restarted { job: "7".into(), why };
    for (old, new) in [
        (r#""why":"its log was cut; what was read before is kept""#, LogRestart::Truncated),
        (r#""why":"truncated""#, LogRestart::Truncated),
        (
            r#""why":"another file took the place of its log; what was read before is kept""#,
            LogRestart::Replaced,
        ),
    ] {
        assert_eq!(read(&format!(r#"{{"event":"restarted","job":"7",{old}}}"#)), restarted(new));
    }
    let parsed = read(r#"{"event":"parsed","status":"no_data","reason":"empty"}"#);
    assert!(matches!(parsed, Event::Parsed { status: trainplan_shared::log::Status::NoData, .. }));
}
