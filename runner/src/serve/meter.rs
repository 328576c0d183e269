//! What the server did, in numbers, for Prometheus: `/metrics`.

use super::Server;
use super::guard::Caller;
use super::problem::Problem;
use crate::store::Scope;
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    method: String,
    /// As it is written in the API's document: no ids, so that there are few.
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Came {
    outcome: String,
}

/// All numbers.
pub(super) struct Meter {
    registry: Registry,
    requests: Family<Asked, Counter>,
    seconds: Family<Asked, Histogram, fn() -> Histogram>,
    uploads: Family<Came, Counter>,
    webhooks: Family<Came, Counter>,
    watchers: Gauge,
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
            registry: Registry::default(),
        };
        registry.register("requests", "Requests that were answered", meter.requests.clone());
        registry.register("request_seconds", "How long answers took to begin", meter.seconds.clone());
        registry.register("uploads", "Results that came in", meter.uploads.clone());
        registry.register("webhooks", "Alerts that were told", meter.webhooks.clone());
        registry.register("watchers", "Who watches what happens", meter.watchers.clone());
        Meter { registry, ..meter }
    }

    /// Counts a result that came in.
    pub(super) fn uploaded(&self, outcome: &str) {
        self.uploads.get_or_create(&Came { outcome: outcome.into() }).inc();
    }

    /// Counts an alert that was told, or could not be.
    pub(super) fn told(&self, outcome: &str) {
        self.webhooks.get_or_create(&Came { outcome: outcome.into() }).inc();
    }
}

fn histogram() -> Histogram {
    Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0])
}

/// Counts requests as they are answered.
pub(super) async fn count(State(server): State<Server>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let method = request.method().as_str().to_owned();
    let response = next.run(request).await;
    let asked = Asked { method, route, status: response.status().as_u16() };
    server.meter.requests.get_or_create(&asked).inc();
    server.meter.seconds.get_or_create(&asked).observe(begun.elapsed().as_secs_f64());
    response
}

/// Answers `/metrics`, to who may read.
pub(super) async fn respond(
    State(server): State<Server>,
    Extension(by): Extension<Caller>,
) -> Result<Response, Problem> {
    by.may(Scope::Read)?;
    server.meter.watchers.set(i64::try_from(server.watch.listeners()).unwrap_or(i64::MAX));
    let mut text = String::new();
    encode(&mut text, &server.meter.registry).map_err(Problem::broken)?;
    let kind = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    Ok((kind, text).into_response())
}
