//! Where runs are that are not over.

use super::super::Server;
use super::super::limits::whole;
use super::super::problem::Problem;
use super::runs::unprocessable;
use super::{By, NEVER_KEPT, id};
use crate::slurm::{End, State as JobState};
use crate::store::{Scope, time};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a run says of itself while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Progress {
    /// The campaign that lists the run.
    pub(crate) campaign: String,
    /// Its name there.
    pub(crate) run: String,
    /// Which of its repeats, from 1.
    pub(crate) repeat: u32,
    /// The cluster.
    pub(crate) cluster: String,
    /// The recipe, where it is of one.
    pub(crate) recipe: Option<String>,
    /// Where it is, in a word: `waiting`, `running`, …
    pub(crate) state: String,
    /// The newest step in its log.
    pub(crate) step: Option<u64>,
    /// How many there will be.
    pub(crate) steps: Option<u64>,
    /// The mean of its newest steps, in seconds.
    pub(crate) step_time_s: Option<f64>,
    /// Seconds per step as planned.
    pub(crate) planned_s: Option<f64>,
    /// Its jobs.
    #[serde(default)]
    pub(crate) jobs: Vec<String>,
    /// When that was seen, RFC 3339.
    pub(crate) at: String,
}

impl Progress {
    /// Whether its job has ended, by one of the words that a runner has for that.
    fn is_over(&self) -> bool {
        End::ALL.iter().any(|end| JobState::Ended(*end).to_string() == self.state)
    }
}

/// A run that ended without a result is shown for so long.
const SHOWN_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// No run has more to say of itself.
const LARGEST: usize = 64 * 1024;

/// Say where a run is that is not over; the newest word counts, until its result is here
#[utoipa::path(
    post, path = "/runs/{id}/progress", params(("id" = String, Path)), request_body = Progress,
    responses((status = 204, description = "Taken"))
)]
pub(super) async fn post(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
    body: Body,
) -> Result<Response, Problem> {
    by.may(Scope::Upload)?;
    let id = id(&path)?;
    let (body, _room) = whole(body, LARGEST, &server.room).await?;
    let progress: Progress = serde_json::from_slice(&body)
        .map_err(|error| unprocessable(&format!("that is no progress: {error}")))?;
    let text = serde_json::to_string(&progress).map_err(Problem::broken)?;
    server.store.progress(id, &text).await?;
    server.stir();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A run that has no result yet.
#[derive(Debug, Serialize, ToSchema)]
struct Live {
    /// The id that its result will have.
    id: String,
    /// When the server last heard of it.
    received_at: String,
    /// Whether it ended: then this is its last word.
    is_over: bool,
    #[serde(flatten)]
    progress: Progress,
}

/// The runs that have no result yet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LiveRuns {
    /// The one that was last heard of first.
    items: Vec<Live>,
}

/// List the runs that are not over, and for an hour those that ended without a result
#[utoipa::path(get, path = "/progress", responses((status = 200, body = LiveRuns)))]
pub(super) async fn list(State(server): State<Server>, Extension(by): By) -> Result<Response, Problem> {
    by.may(Scope::Read)?;
    let ended_since = time(Timestamp::now() - SHOWN_AFTER);
    let items = server.store.live().await?.into_iter().filter_map(|live| {
        let progress: Progress = serde_json::from_str(&live.body).ok()?;
        let is_over = progress.is_over();
        let is_shown = !is_over || live.received_at > ended_since;
        is_shown.then_some(Live { id: live.id, received_at: live.received_at, is_over, progress })
    });
    Ok((NEVER_KEPT, Json(LiveRuns { items: items.collect() })).into_response())
}
