//! What lists show of a run: one row, without its steps.

use super::database::Statement;
use super::time;
use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{FromRow, Row};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::log::{Stat, StdKind};
use trainplan_shared::result::{Against, AgainstPlan, Report, RunResult, View};
use trainplan_shared::scenario::Scenario;
use utoipa::ToSchema;

/// What lists show of a run, under the names that a [`Report`] has for it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Summary {
    /// The result's id.
    pub(crate) id: String,
    /// When the store received it, RFC 3339 in UTC.
    pub(crate) received_at: String,
    /// When the run ran, as far as that is known; else when it was received.
    pub(crate) ran_at: String,
    /// The log's path as given.
    pub(crate) path: String,
    /// The campaign that lists the run, where we carried it out; so the next three.
    pub(crate) campaign: Option<String>,
    /// Its name there.
    pub(crate) run: Option<String>,
    /// Which of its repeats, from 1.
    pub(crate) repeat: Option<u32>,
    /// The cluster.
    pub(crate) cluster: Option<String>,
    /// The published recipe that it is a run of, if it is one.
    pub(crate) recipe: Option<String>,
    /// The model's id, or an own model as text.
    pub(crate) model: Option<String>,
    /// The GPU type's id, or an own one as text.
    pub(crate) gpu: Option<String>,
    /// How many GPUs.
    pub(crate) gpus: Option<u32>,
    /// The precision.
    pub(crate) dtype: Option<String>,
    /// Whether there is a measurement: `scored`, `failed`, …
    pub(crate) status: String,
    /// Seconds per step.
    pub(crate) step_time_s: Option<Stat>,
    /// Tokens per second of all GPUs.
    pub(crate) tokens_per_s: Option<f64>,
    /// Model FLOPs utilization, a fraction.
    pub(crate) mfu: Option<f64>,
    /// How the MFU's FLOPs are counted.
    pub(crate) convention: Option<String>,
    /// The recipe's published measurement.
    pub(crate) baseline: Option<Against>,
    /// What was predicted before the run started.
    pub(crate) plan: Option<AgainstPlan>,
    /// Whether its times can stand beside others.
    pub(crate) comparable: bool,
    /// What made these numbers.
    pub(crate) parser_version: u32,
    /// What it is one of: the query of a link to its scenario, where that is whole. Runs of one line on one cluster make a history.
    pub(crate) line: Option<String>,
    /// Whether the raw log is here too.
    pub(crate) has_log: bool,
}

impl Summary {
    /// The columns, in the order of [`Summary::insert`].
    const COLUMNS: &str = "id, received_at, ran_at, sha256, log_sha256, path, campaign, run, repeat, cluster, recipe, model, gpu, \
        gpus, dtype, status, step_time_s, step_time_std_s, step_time_std_kind, step_time_n, tokens_per_s, mfu, convention, \
        baseline_step_time_s, speed_percent, plan_low_s, plan_mid_s, plan_high_s, plan_error, is_comparable, parser_version, line, summary_version, token";

    /// The way of making summaries: one more whenever a column changes its meaning or comes in.
    pub(super) const VERSION: i64 = 2;

    /// The summary of a run that is received at this time.
    pub(super) fn of(run: &RunResult, received_at: String, has_log: bool) -> Summary {
        let report = Report::of(run, &View::default());
        let scenario = report.scenario.scenario().ok();
        // What is in doubt leaves no scenario, but may leave single fields.
        let known = |field: Field, of: fn(&Scenario) -> String| {
            scenario.as_ref().map(of).or_else(|| report.scenario.get(field).map(str::to_owned))
        };
        let carried = run.carried.as_ref();
        // PostgreSQL takes no text with a NUL in it.
        let text = |text: &str| text.replace('\0', "\u{fffd}");
        let known = |field, of| known(field, of).map(|known| text(&known));
        Summary {
            id: run.id.to_string(),
            ran_at: ran_at(run).unwrap_or_else(|| received_at.clone()),
            received_at,
            model: known(Field::Model, |scenario| scenario.model.id.clone()),
            gpu: known(Field::Gpu, |scenario| scenario.gpu.id.clone()),
            gpus: known(Field::Gpus, |scenario| scenario.layout.gpus().to_string())
                .and_then(|gpus| gpus.parse().ok()),
            dtype: known(Field::Dtype, |scenario| scenario.dtype.id().to_owned()),
            path: text(&report.path),
            campaign: carried.map(|carried| text(&carried.campaign)),
            run: carried.map(|carried| text(&carried.run)),
            repeat: carried.map(|carried| carried.repeat),
            cluster: carried.map(|carried| text(&carried.cluster)),
            line: scenario.is_some().then(|| link::write(&report.scenario)),
            recipe: report.recipe,
            status: report.status.id().to_owned(),
            step_time_s: report.step_time_s,
            tokens_per_s: report.tokens_per_s,
            mfu: report.mfu,
            convention: report.convention.map(|convention| convention.id().to_owned()),
            baseline: report.baseline,
            plan: report.plan,
            comparable: report.comparable.yes,
            parser_version: run.provenance.parser_version,
            has_log,
        }
    }

    /// The statement that enters it, with the hashes of the result's file and of the log that is here, unless it is there.
    pub(super) fn insert<'a>(
        &'a self,
        sha256: &'a str,
        log_sha256: Option<&'a str>,
        token: Option<&'a str>,
    ) -> Statement<'a> {
        let mut insert = self.values(sha256, log_sha256, token);
        insert.push(" ON CONFLICT (id) DO NOTHING");
        insert
    }

    /// The statement that makes the summary of a run that is there anew.
    pub(super) fn update(&self) -> Statement<'_> {
        const STAY: [&str; 5] = ["id", "received_at", "sha256", "log_sha256", "token"];
        let mut update = self.values("", None, None);
        update.push(" ON CONFLICT (id) DO UPDATE SET ");
        let columns = Self::COLUMNS.split(", ").filter(|column| !STAY.contains(column));
        let columns: Vec<String> = columns.map(|column| format!("{column} = excluded.{column}")).collect();
        update.push(columns.join(", "));
        update
    }

    fn values<'a>(
        &'a self,
        sha256: &'a str,
        log_sha256: Option<&'a str>,
        token: Option<&'a str>,
    ) -> Statement<'a> {
        let step_time = self.step_time_s;
        let plan = self.plan.map(|plan| plan.step_time_s);
        let mut insert = Statement::new(format!("INSERT INTO runs ({}) ", Self::COLUMNS));
        insert.push("VALUES (");
        insert.bind(&self.id).push(", ");
        insert.bind(&self.received_at).push(", ");
        insert.bind(&self.ran_at).push(", ");
        insert.bind(sha256).push(", ");
        insert.bind(log_sha256).push(", ");
        insert.bind(&self.path).push(", ");
        insert.bind(&self.campaign).push(", ");
        insert.bind(&self.run).push(", ");
        insert.bind(self.repeat.map(i64::from)).push(", ");
        insert.bind(&self.cluster).push(", ");
        insert.bind(&self.recipe).push(", ");
        insert.bind(&self.model).push(", ");
        insert.bind(&self.gpu).push(", ");
        insert.bind(self.gpus.map(i64::from)).push(", ");
        insert.bind(&self.dtype).push(", ");
        insert.bind(&self.status).push(", ");
        insert.bind(step_time.map(|stat| stat.mean)).push(", ");
        insert.bind(step_time.and_then(|stat| stat.std)).push(", ");
        insert.bind(step_time.map(|stat| stat.std_kind.id())).push(", ");
        insert.bind(step_time.map(|stat| stat.n as i64)).push(", ");
        insert.bind(self.tokens_per_s).push(", ");
        insert.bind(self.mfu).push(", ");
        insert.bind(&self.convention).push(", ");
        insert.bind(self.baseline.map(|baseline| baseline.step_time_s)).push(", ");
        insert.bind(self.baseline.and_then(|baseline| baseline.speed_percent)).push(", ");
        insert.bind(plan.map(|plan| plan.low)).push(", ");
        insert.bind(plan.map(|plan| plan.mid)).push(", ");
        insert.bind(plan.map(|plan| plan.high)).push(", ");
        insert.bind(self.plan.and_then(|plan| plan.error)).push(", ");
        insert.bind(i64::from(self.comparable)).push(", ");
        insert.bind(i64::from(self.parser_version)).push(", ");
        insert.bind(&self.line).push(", ");
        insert.bind(Self::VERSION).push(", ");
        insert.bind(token).push(")");
        insert
    }

    /// The start of every statement that reads summaries.
    pub(super) fn select<'a>() -> Statement<'a> {
        Statement::new(format!("SELECT {} FROM runs WHERE TRUE", Self::COLUMNS))
    }
}

impl FromRow<'_, AnyRow> for Summary {
    fn from_row(row: &AnyRow) -> sqlx::Result<Summary> {
        let number = |column| row.try_get::<Option<f64>, _>(column);
        let small = |column| {
            let number: Option<i64> = row.try_get(column)?;
            Ok::<_, sqlx::Error>(number.and_then(|number| u32::try_from(number).ok()))
        };
        let std_kind = match row.try_get::<Option<&str>, _>("step_time_std_kind")? {
            Some("population") => StdKind::Population,
            _ => StdKind::Sample,
        };
        let (std, n) = (number("step_time_std_s")?, row.try_get::<Option<i64>, _>("step_time_n")?);
        let step_time_s = number("step_time_s")?.map(|mean| Stat {
            mean,
            std,
            std_kind,
            n: n.unwrap_or_default().unsigned_abs(),
        });
        let speed_percent = number("speed_percent")?;
        let plan = (number("plan_low_s")?, number("plan_mid_s")?, number("plan_high_s")?);
        let plan = match plan {
            (Some(low), Some(mid), Some(high)) => Some(AgainstPlan {
                step_time_s: Interval { low, mid, high },
                error: number("plan_error")?,
                within: step_time_s.map(|stat| (low..=high).contains(&stat.mean)),
            }),
            _ => None,
        };
        Ok(Summary {
            id: row.try_get("id")?,
            received_at: row.try_get("received_at")?,
            ran_at: row.try_get("ran_at")?,
            path: row.try_get("path")?,
            campaign: row.try_get("campaign")?,
            run: row.try_get("run")?,
            repeat: small("repeat")?,
            cluster: row.try_get("cluster")?,
            recipe: row.try_get("recipe")?,
            model: row.try_get("model")?,
            gpu: row.try_get("gpu")?,
            gpus: small("gpus")?,
            dtype: row.try_get("dtype")?,
            status: row.try_get("status")?,
            step_time_s,
            tokens_per_s: number("tokens_per_s")?,
            mfu: number("mfu")?,
            convention: row.try_get("convention")?,
            baseline: number("baseline_step_time_s")?
                .map(|step_time_s| Against { step_time_s, speed_percent }),
            plan,
            comparable: row.try_get::<i64, _>("is_comparable")? != 0,
            parser_version: small("parser_version")?.unwrap_or_default(),
            line: row.try_get("line")?,
            has_log: row.try_get::<Option<&str>, _>("log_sha256")?.is_some(),
        })
    }
}

/// When the first of its jobs started, or else when its log was last written to.
fn ran_at(run: &RunResult) -> Option<String> {
    let started = run.carried.as_ref().and_then(|carried| carried.jobs.first()?.started.as_ref());
    Some(time(started.or(run.source.written_at.as_ref())?.parse().ok()?))
}
