//! The table `runs`: one row for each run, with the columns of lists.

use super::blobs::LogHash;
use super::database::Statement;
use super::now;
use super::packed::PackedValue;
use super::summary::{LONGEST_REASON, summary};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{Any, Decode, FromRow, Row, Type};
use std::marker::PhantomData;
use trainplan_shared::api::{LogFault, RunSummary};
use trainplan_shared::convention::Convention;
use trainplan_shared::estimate::Interval;
use trainplan_shared::log::{Ending, STEP_TIMES, Stat, Status, StdKind};
use trainplan_shared::result::{
    BaselineComparison, LONGEST_NAME, LONGEST_PATH, LONGEST_SCENARIO, PlanComparison, RunResult, RunStepTimes,
};

/// Declares a row and its columns. The field's name is the column's name.
macro_rules! columns {
    ($($(#[$meta:meta])* $visible:vis $name:ident: $type:ty,)+) => {
        /// A row of the table `runs`.
        #[derive(Debug, Clone, PartialEq)]
        pub(super) struct RunRow {
            $($(#[$meta])* $visible $name: $type,)+
            /// The columns whose stored values are invalid. The row has the default of their type instead.
            pub(super) damaged: Vec<&'static str>,
        }

        impl RunRow {
            /// Reads the wanted columns of a row. The others have the default of their type.
            fn read(row: &AnyRow, is_wanted: impl Fn(&str) -> bool) -> sqlx::Result<RunRow> {
                let mut damaged = Vec::new();
                let mut row = RunRow {
                    $($name: match is_wanted(stringify!($name)) {
                        true => value(row, stringify!($name), &mut damaged)?,
                        false => Default::default(),
                    },)+
                    damaged,
                };
                row.drop_invalid();
                row.damaged.retain(|column| is_wanted(column));
                Ok(row)
            }

            /// Returns SQLite's expression for the wanted columns of a row as a JSON array.
            fn packed(is_wanted: impl Fn(&str) -> bool) -> String {
                let mut items = Vec::new();
                $(
                    if is_wanted(stringify!($name)) {
                        items.push(<$type as PackedValue>::item(stringify!($name)));
                    }
                )+
                format!("json_array({})", items.join(", "))
            }

            /// Reads the wanted columns of a row, like [`RunRow::read`], from the array of [`RunRow::packed`].
            fn unpack(packed: &str, is_wanted: impl Fn(&str) -> bool) -> serde_json::Result<RunRow> {
                let mut items = serde_json::from_str::<Vec<Value>>(packed)?.into_iter();
                let mut damaged = Vec::new();
                let mut row = RunRow {
                    $($name: match is_wanted(stringify!($name)) {
                        true => unpacked(items.next(), stringify!($name), &mut damaged),
                        false => Default::default(),
                    },)+
                    damaged,
                };
                row.drop_invalid();
                row.damaged.retain(|column| is_wanted(column));
                Ok(row)
            }

            const COLUMNS: &[&str] = &[$(stringify!($name)),+];

            /// Returns the columns that follow from the run's result and differ between two rows.
            pub(super) fn differing(&self, other: &RunRow) -> Vec<&'static str> {
                let mut differing = Vec::new();
                $(
                    let is_derived = !Self::KEPT.contains(&stringify!($name));
                    if is_derived && self.$name != other.$name {
                        differing.push(stringify!($name));
                    }
                )+
                differing
            }

            /// Returns the statement that inserts all columns; what to do about an existing row is added to
            /// it.
            fn values(&self) -> Statement<'_> {
                let mut insert = Statement::new(format!("INSERT INTO runs ({}) VALUES (", Self::COLUMNS.join(", ")));
                $(insert.bind_column(&self.$name);)+
                insert.push(")");
                insert
            }
        }
    };
}

columns! {
    pub(super) id: String,
    pub(super) received_at: String,
    ran_at: String,
    /// The SHA-256 of the result's file.
    pub(super) sha256: String,
    /// The raw log's SHA-256, if the store has that log.
    pub(super) log_sha256: Option<LogHash>,
    /// The id of the log's known fault.
    log_fault: Option<String>,
    /// The id of the known fault of the result's file.
    result_fault: Option<String>,
    /// The id of the known fault of the newest score's file.
    score_fault: Option<String>,
    path: String,
    campaign: Option<String>,
    round: Option<i64>,
    run: Option<String>,
    repeat: Option<i64>,
    attempt: Option<i64>,
    attempts: Option<i64>,
    job: Option<i64>,
    cluster: Option<String>,
    recipe: Option<String>,
    model: Option<String>,
    gpu: Option<String>,
    gpus: Option<i64>,
    dtype: Option<String>,
    status: String,
    ending: Option<String>,
    step_time_s: Option<f64>,
    step_time_std_s: Option<f64>,
    step_time_std_kind: Option<String>,
    step_time_n: Option<i64>,
    judged_s: Option<f64>,
    steady_mean_s: Option<f64>,
    tokens_per_s: Option<f64>,
    mfu: Option<f64>,
    convention: Option<String>,
    baseline_step_time_s: Option<f64>,
    speed_percent: Option<f64>,
    plan_low_s: Option<f64>,
    plan_mid_s: Option<f64>,
    plan_high_s: Option<f64>,
    plan_error: Option<f64>,
    prediction_low_s: Option<f64>,
    prediction_mid_s: Option<f64>,
    prediction_high_s: Option<f64>,
    /// That of the plan, or else of the prediction.
    prediction_error: Option<f64>,
    /// 0 or 1: PostgreSQL and SQLite have no common boolean.
    is_comparable: i64,
    reason: Option<String>,
    parser_version: i64,
    line: Option<String>,
    /// [`SUMMARY_VERSION`] when the row was written.
    pub(super) summary_version: i64,
    /// The id of the token that uploaded the run.
    token: Option<String>,
}

/// Reads a column of a row. If its value is invalid, records that, and returns the default.
fn value<'r, T>(row: &'r AnyRow, column: &'static str, damaged: &mut Vec<&'static str>) -> sqlx::Result<T>
where
    T: Decode<'r, Any> + Type<Any> + Default,
{
    match row.try_get::<T, _>(column) {
        Err(sqlx::Error::ColumnDecode { .. }) => {
            damaged.push(column);
            Ok(T::default())
        }
        read => read,
    }
}

/// Reads an item of a packed row. If its value is invalid, records that, and returns the default.
fn unpacked<T: PackedValue + Default>(
    item: Option<Value>,
    column: &'static str,
    damaged: &mut Vec<&'static str>,
) -> T {
    item.and_then(T::unpack).unwrap_or_else(|| {
        damaged.push(column);
        T::default()
    })
}

/// More than any figure that follows from an accepted result.
const LARGEST_FIGURE: f64 = 1e100;

/// The most bytes of a column with a name, with a path and with fields of a scenario. An accepted text may have three times as
/// many bytes here: each NUL is replaced by a longer character, and links escape bytes. Links also have keys.
const LONGEST_TEXTS: [usize; 3] = [3 * LONGEST_NAME, 3 * LONGEST_PATH, 4 * LONGEST_SCENARIO];

/// The version of the columns' meaning. Increase it when a column is added or changes its meaning, and when predictions or
/// the reasons of runs change: rows of older versions are then recomputed.
pub(super) const SUMMARY_VERSION: i64 = 11;

impl RunRow {
    /// The columns that keep their values when a run is scored again.
    const KEPT: [&str; 8] =
        ["id", "received_at", "sha256", "log_sha256", "log_fault", "result_fault", "score_fault", "token"];

    /// Replaces values that no run can have by the default of their type, and records them.
    fn drop_invalid(&mut self) {
        let mut invalid = Vec::new();
        for (column, time) in [("received_at", &mut self.received_at), ("ran_at", &mut self.ran_at)] {
            if time.parse::<Timestamp>().is_err() {
                time.clear();
                invalid.push(column);
            }
        }
        let [name, path, scenario] = LONGEST_TEXTS;
        if self.path.len() > path {
            self.path.clear();
            invalid.push("path");
        }
        for (column, text, most) in [
            ("campaign", &mut self.campaign, name),
            ("run", &mut self.run, name),
            ("cluster", &mut self.cluster, name),
            ("recipe", &mut self.recipe, name),
            ("model", &mut self.model, scenario),
            ("gpu", &mut self.gpu, scenario),
            ("dtype", &mut self.dtype, scenario),
            ("line", &mut self.line, scenario),
            ("reason", &mut self.reason, LONGEST_REASON),
        ] {
            if text.take_if(|text| text.len() > most).is_some() {
                invalid.push(column);
            }
        }
        for (column, figure, possible) in [
            ("step_time_s", &mut self.step_time_s, STEP_TIMES),
            ("step_time_std_s", &mut self.step_time_std_s, 0.0..STEP_TIMES.end),
            ("judged_s", &mut self.judged_s, STEP_TIMES),
            ("steady_mean_s", &mut self.steady_mean_s, STEP_TIMES),
            ("baseline_step_time_s", &mut self.baseline_step_time_s, STEP_TIMES),
            ("plan_low_s", &mut self.plan_low_s, STEP_TIMES),
            ("plan_mid_s", &mut self.plan_mid_s, STEP_TIMES),
            ("plan_high_s", &mut self.plan_high_s, STEP_TIMES),
            ("plan_error", &mut self.plan_error, -LARGEST_FIGURE..LARGEST_FIGURE),
            ("prediction_low_s", &mut self.prediction_low_s, 0.0..LARGEST_FIGURE),
            ("prediction_mid_s", &mut self.prediction_mid_s, 0.0..LARGEST_FIGURE),
            ("prediction_high_s", &mut self.prediction_high_s, 0.0..LARGEST_FIGURE),
            ("prediction_error", &mut self.prediction_error, -LARGEST_FIGURE..LARGEST_FIGURE),
            ("tokens_per_s", &mut self.tokens_per_s, 0.0..LARGEST_FIGURE),
            ("mfu", &mut self.mfu, 0.0..LARGEST_FIGURE),
            ("speed_percent", &mut self.speed_percent, 0.0..LARGEST_FIGURE),
        ] {
            if figure.take_if(|figure| !possible.contains(figure)).is_some() {
                invalid.push(column);
            }
        }
        for (column, count) in [
            ("round", &mut self.round),
            ("repeat", &mut self.repeat),
            ("attempt", &mut self.attempt),
            ("attempts", &mut self.attempts),
            ("job", &mut self.job),
            ("gpus", &mut self.gpus),
            ("step_time_n", &mut self.step_time_n),
        ] {
            if count.take_if(|count| *count < 1).is_some() {
                invalid.push(column);
            }
        }
        if !Status::ALL.iter().any(|status| status.id() == self.status) {
            self.status.clear();
            invalid.push("status");
        }
        for (column, id, known) in [
            ("step_time_std_kind", &mut self.step_time_std_kind, &StdKind::ALL.map(StdKind::id)[..]),
            ("convention", &mut self.convention, &Convention::ALL.map(Convention::id)[..]),
            ("ending", &mut self.ending, &Ending::ALL.map(Ending::id)[..]),
        ] {
            if id.take_if(|id| !known.contains(&id.as_str())).is_some() {
                invalid.push(column);
            }
        }
        for (column, fault) in [
            ("log_fault", &mut self.log_fault),
            ("result_fault", &mut self.result_fault),
            ("score_fault", &mut self.score_fault),
        ] {
            if fault.take_if(|fault| LogFault::from_id(fault).is_none()).is_some() {
                invalid.push(column);
            }
        }
        if !matches!(self.is_comparable, 0 | 1) {
            invalid.push("is_comparable");
        }
        if u32::try_from(self.parser_version).is_err() {
            invalid.push("parser_version");
        }
        // Some are known already.
        invalid.retain(|column| !self.damaged.contains(column));
        self.damaged.extend(invalid);
    }

    /// Returns the row of a run, with the hashes of its result file and of its stored log.
    pub(super) fn new(
        run: &RunSummary,
        sha256: &str,
        log_sha256: Option<&LogHash>,
        token: Option<&str>,
    ) -> RunRow {
        let run = run.clone();
        let (step_time, baseline, plan, predicted) =
            (run.step_time_s, run.baseline, run.plan, run.predicted());
        let planned = plan.map(|plan| plan.step_time_s);
        let prediction = run.prediction.map(|prediction| prediction.step_time_s);
        RunRow {
            id: run.id,
            received_at: run.received_at,
            ran_at: run.ran_at,
            sha256: sha256.to_owned(),
            log_sha256: log_sha256.cloned(),
            log_fault: None,
            result_fault: None,
            score_fault: None,
            path: run.path,
            campaign: run.campaign,
            round: run.round.map(i64::from),
            run: run.run,
            repeat: run.repeat.map(i64::from),
            attempt: run.attempt.map(i64::from),
            attempts: run.attempts.map(i64::from),
            job: run.job.and_then(|job| i64::try_from(job).ok()).filter(|job| *job > 0),
            cluster: run.cluster,
            recipe: run.recipe,
            model: run.model,
            gpu: run.gpu,
            gpus: run.gpus.map(i64::from),
            dtype: run.dtype,
            status: run.status.id().to_owned(),
            ending: run.ending.map(|ending| ending.id().to_owned()),
            step_time_s: step_time.map(|stat| stat.mean),
            step_time_std_s: step_time.and_then(|stat| stat.std),
            step_time_std_kind: step_time.map(|stat| stat.std_kind.id().to_owned()),
            step_time_n: step_time.map(|stat| stat.n as i64),
            judged_s: run.judged_s,
            steady_mean_s: run.steady_mean_s,
            tokens_per_s: run.tokens_per_s,
            mfu: run.mfu,
            convention: run.convention.map(|convention| convention.id().to_owned()),
            baseline_step_time_s: baseline.map(|baseline| baseline.step_time_s),
            speed_percent: baseline.and_then(|baseline| baseline.speed_percent),
            plan_low_s: planned.map(|planned| planned.low),
            plan_mid_s: planned.map(|planned| planned.mid),
            plan_high_s: planned.map(|planned| planned.high),
            plan_error: plan.and_then(|plan| plan.error),
            prediction_low_s: prediction.map(|prediction| prediction.low),
            prediction_mid_s: prediction.map(|prediction| prediction.mid),
            prediction_high_s: prediction.map(|prediction| prediction.high),
            prediction_error: predicted.and_then(|predicted| predicted.error),
            is_comparable: i64::from(run.comparable),
            reason: run.reason,
            parser_version: i64::from(run.parser_version),
            line: run.line,
            summary_version: SUMMARY_VERSION,
            token: token.map(str::to_owned),
            damaged: Vec::new(),
        }
    }

    /// Returns the row of this run for its newest result. Its time is this one's; other columns that stay are empty.
    pub(super) fn computed_again(&self, newest: &RunResult) -> RunRow {
        let received_at = match self.received_at.as_str() {
            // It is damaged.
            "" => now(),
            known => known.to_owned(),
        };
        RunRow::new(&summary(newest, received_at, false), "", None, None)
    }

    /// Returns the statement that inserts the row unless the run is stored.
    pub(super) fn insert(&self) -> Statement<'_> {
        let mut insert = self.values();
        insert.push(" ON CONFLICT (id) DO NOTHING");
        insert
    }

    /// Returns the statement that replaces the row of a stored run, except for the columns that stay. Those in `also` are
    /// replaced too, but not the result's hash, which is stored with its file.
    pub(super) fn update(&self, also: &[&str]) -> Statement<'_> {
        let is_changed =
            |column: &str| !Self::KEPT.contains(&column) || (also.contains(&column) && column != "sha256");
        let changed = Self::COLUMNS.iter().filter(|column| is_changed(column));
        let changed: Vec<String> = changed.map(|column| format!("{column} = excluded.{column}")).collect();
        let mut update = self.values();
        update.push(" ON CONFLICT (id) DO UPDATE SET ").push(changed.join(", "));
        update
    }

    /// Returns the same row of another run.
    pub(super) fn of_run(&self, id: &str) -> RunRow {
        RunRow { id: id.to_owned(), ..self.clone() }
    }

    /// Returns the statement that replaces the whole row of a stored run.
    pub(super) fn replace(&self) -> Statement<'_> {
        let columns = Self::COLUMNS.iter().filter(|column| **column != "id");
        let changed: Vec<String> = columns.map(|column| format!("{column} = excluded.{column}")).collect();
        let mut replace = self.values();
        replace.push(" ON CONFLICT (id) DO UPDATE SET ").push(changed.join(", "));
        replace
    }
}

/// What a list reads of a run: its whole row, or some columns.
pub(super) trait ListedRow: for<'r> FromRow<'r, AnyRow> + Send + Unpin + 'static {
    /// The columns that are read.
    const READ: &'static [&'static str];

    /// Returns whether a column is read.
    fn reads(column: &str) -> bool {
        Self::READ.contains(&column)
    }

    /// Returns the row. Columns that were not read have the default of their type.
    fn into_row(self) -> RunRow;

    /// Returns the beginning of a statement that reads rows; conditions are added with `AND`.
    fn select<'a>() -> Statement<'a> {
        Statement::new(format!("SELECT {} FROM runs WHERE TRUE", Self::READ.join(", ")))
    }

    /// Completes a statement, so that it reads at most `count` rows.
    fn limit(select: &mut Statement<'_>, count: i64) {
        select.push(" LIMIT ").bind(count);
    }
}

impl<'r> FromRow<'r, AnyRow> for RunRow {
    fn from_row(row: &'r AnyRow) -> sqlx::Result<RunRow> {
        RunRow::read(row, Self::reads)
    }
}

impl ListedRow for RunRow {
    const READ: &'static [&'static str] = Self::COLUMNS;

    fn reads(_: &str) -> bool {
        true
    }

    fn into_row(self) -> RunRow {
        self
    }
}

/// The columns of a row that a point of a time line needs. Reading all takes three times as long.
#[derive(Debug)]
pub(super) struct PointRow(RunRow);

impl<'r> FromRow<'r, AnyRow> for PointRow {
    fn from_row(row: &'r AnyRow) -> sqlx::Result<PointRow> {
        RunRow::read(row, Self::reads).map(PointRow)
    }
}

impl ListedRow for PointRow {
    const READ: &'static [&'static str] = &[
        "id",
        "ran_at",
        "cluster",
        "recipe",
        "model",
        "gpu",
        "gpus",
        "dtype",
        "line",
        "status",
        "step_time_s",
        "step_time_std_s",
        "step_time_n",
        "steady_mean_s",
        "baseline_step_time_s",
        "is_comparable",
        "reason",
        "campaign",
        "round",
        "run",
        "repeat",
        "attempt",
        "attempts",
        "job",
        "path",
    ];

    fn into_row(self) -> RunRow {
        self.0
    }
}

/// A row of SQLite with the same columns as `R`, read as one text.
#[derive(Debug)]
pub(super) struct PackedRow<R>(RunRow, PhantomData<R>);

impl<'r, R: ListedRow> FromRow<'r, AnyRow> for PackedRow<R> {
    fn from_row(row: &'r AnyRow) -> sqlx::Result<PackedRow<R>> {
        let packed: &str = row.try_get(0)?;
        let row = RunRow::unpack(packed, R::reads).map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok(PackedRow(row, PhantomData))
    }
}

impl<R: ListedRow> ListedRow for PackedRow<R> {
    const READ: &'static [&'static str] = R::READ;

    fn into_row(self) -> RunRow {
        self.0
    }

    fn select<'a>() -> Statement<'a> {
        let (packed, columns) = (RunRow::packed(R::reads), R::READ.join(", "));
        Statement::new(format!("SELECT {packed} AS packed FROM (SELECT {columns} FROM runs WHERE TRUE"))
    }

    fn limit(select: &mut Statement<'_>, count: i64) {
        // Its own limit keeps the outer statement from being merged with the inner one (rule 13 of SQLite's query flattener).
        // Then SQLite packs only the rows of the page, even if it has to sort many.
        select.push(" LIMIT ").bind(count).push(") LIMIT ").bind(count);
    }
}

impl From<RunRow> for RunSummary {
    fn from(row: RunRow) -> RunSummary {
        let small = |number: i64| u32::try_from(number).ok();
        let fault = |id: &Option<String>| id.as_deref().and_then(LogFault::from_id);
        let result_fault = match row.damaged.is_empty() {
            true => fault(&row.result_fault).or_else(|| fault(&row.score_fault)),
            false => Some(LogFault::Damaged),
        };
        let step_time_s = row.step_time_s.map(|mean| Stat {
            mean,
            std: row.step_time_std_s,
            std_kind: match row.step_time_std_kind.as_deref() {
                Some("population") => StdKind::Population,
                _ => StdKind::Sample,
            },
            n: row.step_time_n.unwrap_or_default().unsigned_abs(),
        });
        let times = step_time_s
            .zip(row.judged_s)
            .map(|(scored, judged_s)| RunStepTimes { scored_s: scored.mean, judged_s });
        let compared = |low: Option<f64>, mid: Option<f64>, high: Option<f64>, error: Option<f64>| {
            let predicted = Interval { low: low?, mid: mid?, high: high? };
            // The next page of a list continues after the stored value.
            Some(PlanComparison { error, ..PlanComparison::of(predicted, times) })
        };
        let plan = compared(row.plan_low_s, row.plan_mid_s, row.plan_high_s, row.plan_error);
        let prediction =
            compared(row.prediction_low_s, row.prediction_mid_s, row.prediction_high_s, row.prediction_error);
        let speed_percent = row.speed_percent;
        let baseline = row.baseline_step_time_s.map(|step_time_s| {
            let may = speed_percent.is_some();
            BaselineComparison { speed_percent, ..BaselineComparison::of(step_time_s, times.filter(|_| may)) }
        });
        // An invalid id was dropped.
        let status = Status::ALL.into_iter().find(|status| status.id() == row.status);
        RunSummary {
            id: row.id,
            received_at: row.received_at,
            ran_at: row.ran_at,
            path: row.path,
            campaign: row.campaign,
            round: row.round.and_then(small),
            run: row.run,
            repeat: row.repeat.and_then(small),
            attempt: row.attempt.and_then(small),
            attempts: row.attempts.and_then(small),
            job: row.job.and_then(|job| u64::try_from(job).ok()),
            cluster: row.cluster,
            recipe: row.recipe,
            model: row.model,
            gpu: row.gpu,
            gpus: row.gpus.and_then(small),
            dtype: row.dtype,
            status: status.unwrap_or(Status::Unreadable),
            ending: Ending::ALL.into_iter().find(|known| Some(known.id()) == row.ending.as_deref()),
            step_time_s,
            judged_s: row.judged_s,
            steady_mean_s: row.steady_mean_s,
            tokens_per_s: row.tokens_per_s,
            mfu: row.mfu,
            convention: Convention::ALL
                .into_iter()
                .find(|known| Some(known.id()) == row.convention.as_deref()),
            baseline,
            plan,
            prediction,
            comparable: row.is_comparable != 0,
            reason: row.reason,
            parser_version: small(row.parser_version).unwrap_or_default(),
            line: row.line,
            has_log: row.log_sha256.is_some(),
            log_fault: fault(&row.log_fault),
            result_fault,
        }
    }
}
