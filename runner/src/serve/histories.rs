//! Keeps the newest histories as they were sent. After a change, only the runs that changed are read again, and only their time
//! lines are judged again.

use super::Server;
use super::problem::Problem;
use super::turns::patiently;
use crate::side_by_side;
use crate::store::{Query, RecentRun, RecentRuns, Store, StoreError};
use axum::body::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use trainplan_shared::history::{Thresholds, TimeLine, TimeLineKey};

/// The most bytes of all kept histories together.
const MOST: usize = 64 << 20;

/// The bytes that a kept history takes in addition to its texts and its runs, at most.
const FRAME: usize = 16 << 10;

/// The kept histories, the most recently read last.
pub(super) struct Histories(Mutex<Vec<Arc<KeptHistory>>>);

/// The history of a query.
struct KeptHistory {
    query: String,
    /// Held by the request that makes the history. Others wait for its answer instead of making it too.
    making: tokio::sync::Mutex<()>,
    made: Mutex<Option<Arc<MadeHistory>>>,
}

/// A history as it was sent.
struct MadeHistory {
    recent: RecentRuns,
    lines: Arc<BTreeMap<TimeLineKey, MadeLine>>,
    json: Bytes,
    /// The time from before it was last compared with the store. It has every change from before then.
    as_of: Instant,
    /// The bytes of memory that it takes.
    memory: usize,
}

/// A time line of a history as it was sent.
struct MadeLine {
    runs: Vec<Arc<RecentRun>>,
    /// The place of its JSON within the history's.
    json: Range<usize>,
}

impl Histories {
    pub(super) fn new() -> Histories {
        Histories(Mutex::default())
    }

    /// Returns the history of a query as JSON. `text` is the query as it was received.
    pub(super) async fn answer(
        &self,
        server: &Server,
        text: &str,
        query: &Query,
        thresholds: Thresholds,
    ) -> Result<Bytes, Problem> {
        let received = Instant::now();
        let kept = self.of(text);
        if let Some(json) = kept.current(&server.store).await? {
            return Ok(json);
        }
        let _making = patiently(kept.making.lock()).await?;
        let before = kept.made();
        // Another request may have made it meanwhile.
        if let Some(made) = before.as_ref().filter(|made| made.as_of >= received) {
            return Ok(made.json.clone());
        }
        let _turn = server.turns.read().await?;
        let as_of = Instant::now();
        let recent = match &before {
            Some(before) => server.store.refreshed(query, &before.recent).await?,
            None => server.store.recent_runs(query).await?,
        };
        let make = move || MadeHistory::new(recent, before.as_deref(), &thresholds, as_of);
        let made = tokio::task::spawn_blocking(make).await.map_err(Problem::broken)?;
        let made = made.map_err(Problem::broken)?;
        let json = made.json.clone();
        self.keep(&kept, made);
        Ok(json)
    }

    /// Returns the kept history of a query, which may be yet to be made.
    fn of(&self, query: &str) -> Arc<KeptHistory> {
        let mut all = self.lock();
        let place = all.iter().position(|kept| kept.query == query);
        let kept = match place {
            Some(place) => all.remove(place),
            None => Arc::new(KeptHistory {
                query: query.to_owned(),
                making: tokio::sync::Mutex::default(),
                made: Mutex::default(),
            }),
        };
        all.push(Arc::clone(&kept));
        make_room(&mut all);
        kept
    }

    /// Keeps a history, unless it is too large. Makes room by dropping the least recently read ones.
    fn keep(&self, kept: &KeptHistory, made: MadeHistory) {
        let is_kept = made.memory + kept.query.len() + FRAME <= MOST;
        *kept.lock() = is_kept.then(|| Arc::new(made));
        make_room(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<KeptHistory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the first histories until the others have room.
fn make_room(all: &mut Vec<Arc<KeptHistory>>) {
    while all.iter().map(|kept| kept.memory()).sum::<usize>() > MOST {
        all.remove(0);
    }
}

impl KeptHistory {
    /// Returns the history as JSON, if it is made and no run changed since then.
    async fn current(&self, store: &Store) -> Result<Option<Bytes>, StoreError> {
        let Some(made) = self.made() else { return Ok(None) };
        let as_of = Instant::now();
        let Some(recent) = store.still_recent(&made.recent).await? else { return Ok(None) };
        let json = made.json.clone();
        let again =
            MadeHistory { recent, lines: Arc::clone(&made.lines), json: json.clone(), as_of, ..*made };
        let mut now = self.lock();
        // Another request may have made it again.
        if now.as_ref().is_some_and(|now| Arc::ptr_eq(now, &made)) {
            *now = Some(Arc::new(again));
        }
        Ok(Some(json))
    }

    fn made(&self) -> Option<Arc<MadeHistory>> {
        self.lock().clone()
    }

    fn memory(&self) -> usize {
        FRAME + self.query.len() + self.lock().as_ref().map_or(0, |made| made.memory)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<MadeHistory>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MadeHistory {
    /// Makes the history of some runs. Time lines that have the same runs as before are not judged again.
    fn new(
        recent: RecentRuns,
        before: Option<&MadeHistory>,
        thresholds: &Thresholds,
        as_of: Instant,
    ) -> serde_json::Result<MadeHistory> {
        let mut runs_by_line: BTreeMap<&TimeLineKey, Vec<Arc<RecentRun>>> = BTreeMap::new();
        for run in recent.runs().iter().filter(|run| run.key.is_one_scenario()) {
            runs_by_line.entry(&run.key).or_default().push(Arc::clone(run));
        }
        let runs_by_line: Vec<_> = runs_by_line.into_iter().collect();
        let known = runs_by_line.iter().map(|(key, runs)| before.and_then(|before| before.line(key, runs)));
        let known: Vec<Option<&[u8]>> = known.collect();
        let changed = runs_by_line.iter().zip(&known).filter(|(_, known)| known.is_none());
        let changed: Vec<_> = changed.map(|(line, _)| line).collect();
        let judged = side_by_side::map(&changed, |(key, runs)| {
            let points = runs.iter().map(|run| run.point.clone()).collect();
            serde_json::to_vec(&TimeLine::of((*key).clone(), points, thresholds))
        });
        let mut judged = judged.into_iter();
        // As serde writes `RunHistories`.
        let mut json = br#"{"series":["#.to_vec();
        let mut lines = BTreeMap::new();
        for ((key, runs), known) in runs_by_line.into_iter().zip(known) {
            if !lines.is_empty() {
                json.push(b',');
            }
            let start = json.len();
            match known {
                Some(line) => json.extend_from_slice(line),
                None => json.extend(judged.next().transpose()?.unwrap_or_default()),
            }
            lines.insert(key.clone(), MadeLine { runs, json: start..json.len() });
        }
        json.extend_from_slice(format!("],\"is_cut\":{}}}", recent.is_cut()).as_bytes());
        let json = Bytes::from(json);
        let memory = json.len() + recent.memory();
        Ok(MadeHistory { recent, lines: Arc::new(lines), json, as_of, memory })
    }

    /// Returns the JSON of a time line, if it has exactly these runs.
    fn line(&self, key: &TimeLineKey, runs: &[Arc<RecentRun>]) -> Option<&[u8]> {
        let line = self.lines.get(key)?;
        let is_same = line.runs.len() == runs.len()
            && line.runs.iter().zip(runs).all(|(one, other)| Arc::ptr_eq(one, other));
        if is_same { self.json.get(line.json.clone()) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataDir;
    use crate::history::point;
    use crate::store::{Sort, read_again};
    use jiff::Timestamp;
    use tempfile::TempDir;
    use trainplan_shared::api::RunHistories;
    use trainplan_shared::field::Field;
    use trainplan_shared::history::time_lines;
    use trainplan_shared::result::{Intake, RunResult};
    use trainplan_shared::spec::Spec;

    async fn store(dir: &TempDir) -> Store {
        Store::open(&DataDir::open(Some(dir.path().into())).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn those_that_were_not_read_for_the_longest_time_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let recent = store(&dir).await.recent_runs(&Query::default()).await.unwrap();
        let histories = Histories::new();
        let is_kept = |query: &str| histories.of(query).made().is_some();
        let keep = |query: &str, memory: usize| {
            let as_of = Instant::now();
            let made = MadeHistory::new(recent.clone(), None, &Thresholds::default(), as_of).unwrap();
            histories.keep(&histories.of(query), MadeHistory { memory, ..made });
        };
        keep("a", MOST / 3);
        keep("b", MOST / 3);
        assert!(is_kept("a"));
        keep("c", MOST / 3);
        assert_eq!(["a", "b", "c"].map(is_kept), [true, false, true]);
        // One that is too large alone is not kept.
        keep("d", MOST);
        assert_eq!(["a", "c", "d"].map(is_kept), [true, true, false]);
    }

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

    /// One of two recipes, or none.
    fn scenario(rng: &mut fastrand::Rng) -> Spec {
        match rng.usize(..3) {
            0 => Spec::default(),
            1 => Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04"),
            _ => Spec::default().with(Field::Recipe, "llama3.1-8b/h100/bf16/8@25.04"),
        }
    }

    fn some_time(rng: &mut fastrand::Rng) -> Option<String> {
        Some(Timestamp::from_second(1_767_225_600 + rng.i64(0..40) * 3600).unwrap().to_string())
    }

    /// Adds, corrects, deletes or restores a run, at random.
    async fn change(store: &Store, known: &mut Vec<(RunResult, Vec<u8>)>, rng: &mut fastrand::Rng) {
        let (place, what) = (rng.usize(..known.len().max(1)), rng.usize(..10));
        let Some((run, log)) = known.get(place).filter(|_| what < 5) else {
            let log = log(10.0 + rng.f64());
            let mut intake = Intake::new("train.log", &scenario(rng));
            intake.feed(&log);
            let mut run = intake.finish();
            run.source.written_at = some_time(rng);
            store.put(&run, None).await.unwrap();
            known.push((run, log));
            return;
        };
        match what {
            0 | 1 => {
                store.delete(run.id).await.unwrap();
            }
            2 => {
                store.restore(run.id).await.unwrap();
                store.put(run, None).await.unwrap();
            }
            // Another recipe, or another time.
            _ => {
                let mut again = read_again(run, &scenario(rng), &log[..]).unwrap();
                again.source.written_at = some_time(rng);
                again.provenance.scored_at = Some(Timestamp::now().to_string());
                store.put_score(&again).await.unwrap();
            }
        }
    }

    async fn from_scratch(store: &Store, query: &Query, thresholds: &Thresholds) -> Vec<u8> {
        let page = store.list(query).await.unwrap();
        let series = time_lines(page.items.iter().map(point), thresholds);
        serde_json::to_vec(&RunHistories { series, is_cut: page.next_cursor.is_some() }).unwrap()
    }

    #[tokio::test]
    async fn after_any_changes_a_kept_history_equals_one_that_is_made_from_scratch() {
        let thresholds = Thresholds::default();
        let newest = Query { sort: Sort::NEWEST_RUN, limit: Some(1000), ..Query::default() };
        let queries = [
            newest.clone(),
            Query { limit: Some(4), ..newest.clone() },
            Query { recipe: Some("*fp8*".into()), limit: Some(2), ..newest },
        ];
        for seed in 0..6 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let dir = tempfile::tempdir().unwrap();
            // The second one is that of another server.
            let stores = [store(&dir).await, store(&dir).await];
            let (mut known, mut kept) = (Vec::new(), Vec::new());
            for query in &queries {
                let recent = stores[0].recent_runs(query).await.unwrap();
                kept.push(MadeHistory::new(recent, None, &thresholds, Instant::now()).unwrap());
            }
            for step in 0..40 {
                for _ in 0..rng.usize(1..4) {
                    change(&stores[rng.usize(..2)], &mut known, &mut rng).await;
                }
                for (query, kept) in queries.iter().zip(&mut kept) {
                    let recent = stores[0].refreshed(query, &kept.recent).await.unwrap();
                    *kept = MadeHistory::new(recent, Some(&*kept), &thresholds, Instant::now()).unwrap();
                    let wanted = from_scratch(&stores[0], query, &thresholds).await;
                    assert_eq!(
                        String::from_utf8_lossy(&kept.json),
                        String::from_utf8_lossy(&wanted),
                        "seed {seed}, step {step}, {query:?}"
                    );
                    assert!(stores[0].still_recent(&kept.recent).await.unwrap().is_some());
                }
            }
            assert!(known.len() > 20, "{}", known.len());
        }
    }
}
