//! Metrics for Prometheus: `/metrics`.

use super::Server;
use super::guard::Caller;
use super::problem::Problem;
use crate::store::ResultFile;
use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Instant;
use trainplan_shared::api::TokenScope;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    /// The route's pattern, without ids, so that there are few values.
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    fault: &'static str,
}

/// The methods that are counted by name. A client may send any others, and each name that is counted stays in memory.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// All metrics.
pub(super) struct Meter {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RequestLabels, Histogram, fn() -> Histogram>,
    uploads: Family<OutcomeLabels, Counter>,
    webhooks: Family<OutcomeLabels, Counter>,
    watchers: Gauge,
    bad_logs: Family<FaultLabels, Gauge>,
    bad_results: Family<FaultLabels, Gauge>,
    bad_scores: Family<FaultLabels, Gauge>,
}

impl Meter {
    pub(super) fn new() -> Meter {
        let mut registry = Registry::with_prefix("trainplan");
        let meter = Meter {
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            uploads: Family::default(),
            webhooks: Family::default(),
            watchers: Gauge::default(),
            bad_logs: Family::default(),
            bad_results: Family::default(),
            bad_scores: Family::default(),
            registry: Registry::default(),
        };
        registry.register("requests", "Answered requests", meter.requests.clone());
        registry.register("request_seconds", "Time until an answer began", meter.seconds.clone());
        registry.register("uploads", "Received results", meter.uploads.clone());
        registry.register("webhooks", "Attempts to deliver alerts", meter.webhooks.clone());
        registry.register("watchers", "Open event streams", meter.watchers.clone());
        let bad_logs = meter.bad_logs.clone();
        registry.register("bad_logs", "Stored logs that a check found missing or damaged", bad_logs);
        let bad_results = meter.bad_results.clone();
        registry.register("bad_results", "Stored results that a check found missing or damaged", bad_results);
        let bad_scores = meter.bad_scores.clone();
        registry.register("bad_scores", "Runs whose newest score a check found damaged", bad_scores);
        Meter { registry, ..meter }
    }

    /// Counts a received result.
    pub(super) fn uploaded(&self, outcome: &str) {
        self.uploads.get_or_create(&OutcomeLabels { outcome: outcome.into() }).inc();
    }

    /// Counts an attempt to deliver an alert.
    pub(super) fn delivered(&self, outcome: &str) {
        self.webhooks.get_or_create(&OutcomeLabels { outcome: outcome.into() }).inc();
    }
}

fn histogram() -> Histogram {
    Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0])
}

/// Counts requests as they are answered.
pub(super) async fn count(State(server): State<Server>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let known = METHODS.iter().copied().find(|known| *known == request.method().as_str());
    let method = known.unwrap_or("other").to_owned();
    let response = next.run(request).await;
    let labels = RequestLabels { method, route, status: response.status().as_u16() };
    server.meter.requests.get_or_create(&labels).inc();
    server.meter.seconds.get_or_create(&labels).observe(begun.elapsed().as_secs_f64());
    response
}

/// Answers `/metrics` to callers who may read.
pub(super) async fn respond(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    server.meter.watchers.set(i64::try_from(server.watch.watchers()).unwrap_or(i64::MAX));
    for (fault, count) in server.store.bad_logs().await? {
        server.meter.bad_logs.get_or_create(&FaultLabels { fault: fault.id() }).set(count);
    }
    let files =
        [(ResultFile::Upload, &server.meter.bad_results), (ResultFile::Score, &server.meter.bad_scores)];
    for (which, gauges) in files {
        for (fault, count) in server.store.bad_files(which).await? {
            gauges.get_or_create(&FaultLabels { fault: fault.id() }).set(count);
        }
    }
    let mut text = String::new();
    encode(&mut text, &server.meter.registry).map_err(Problem::broken)?;
    let kind = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    Ok((kind, text).into_response())
}
