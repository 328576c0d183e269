//! What the store holds, for programs: `/api/v1`, described by the document that it serves.

mod access;
mod compare;
mod events;
mod history;
mod log;
mod progress;
mod runs;

pub(crate) use progress::Progress;

use super::Server;
use super::guard::{Caller, identify};
use super::problem::Problem;
use axum::extract::{Extension, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use trainplan_shared::api::{ProblemDetails, ServerLimits};
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

#[derive(OpenApi)]
#[openapi(
    info(title = "Trainplan", description = "Results of training runs: upload, keep, watch and compare."),
    security((), ("token" = [])),
    components(schemas(ProblemDetails))
)]
struct Document;

/// Everything below `/api/v1`.
pub(super) fn routes(server: &Server) -> Router<Server> {
    let (router, document) = described();
    let document = document.to_pretty_json().unwrap_or_default();
    router
        .route("/openapi.json", get(move || async move { (JSON, document) }))
        .fallback(|| async { nowhere("there is nothing at this address: see /api/v1/openapi.json") })
        .method_not_allowed_fallback(|| async {
            let detail = "this address does not do that: see /api/v1/openapi.json";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
        })
        .layer(from_fn_with_state(server.clone(), identify))
        .layer(map_response(as_problem))
}

fn described() -> (Router<Server>, utoipa::openapi::OpenApi) {
    let (router, mut document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(limits))
        .routes(routes!(runs::list))
        .routes(routes!(runs::result, runs::put, runs::delete))
        .routes(routes!(runs::summary))
        .routes(routes!(runs::scores, runs::rescore))
        .routes(routes!(log::whole, log::put, log::arrived))
        .routes(routes!(log::lines))
        .routes(routes!(progress::post))
        .routes(routes!(progress::list))
        .routes(routes!(events::watch))
        .routes(routes!(compare::compare))
        .routes(routes!(history::history))
        .routes(routes!(history::alerts))
        .routes(routes!(access::me))
        .routes(routes!(access::tokens, access::create_token))
        .routes(routes!(access::revoke_token))
        .routes(routes!(access::shares, access::create_share))
        .routes(routes!(access::revoke_share))
        .split_for_parts();
    for item in document.paths.paths.values_mut() {
        let all = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.head];
        for operation in all.into_iter().flatten() {
            operation.responses.responses.insert("default".into(), problem());
        }
    }
    document.servers = Some(vec![utoipa::openapi::Server::new("/api/v1")]);
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme("token", token);
    (router, document)
}

/// What every operation may answer as well.
fn problem() -> RefOr<utoipa::openapi::Response> {
    let schema = Ref::from_schema_name("ProblemDetails");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().description("What went wrong (RFC 9457)");
    RefOr::T(response.content("application/problem+json", content).build())
}

const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

/// Someone else may use the same browser later.
const NEVER_KEPT: [(HeaderName, &str); 2] =
    [(header::CACHE_CONTROL, "no-store"), (header::VARY, "accept-encoding, authorization")];

/// What the server takes
#[utoipa::path(get, path = "/limits", responses((status = 200, body = ServerLimits)))]
async fn limits(State(server): State<Server>) -> Response {
    (NEVER_KEPT, Json(server.options.limits)).into_response()
}

/// A run's id in an address. What is none names no run.
fn id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| nowhere(&format!("there is no run {text}: give its whole id")))
}

fn no_run(id: &str) -> Problem {
    nowhere(&format!("there is no run {id}"))
}

/// What was refused before any of our functions saw it, such as a path that is no text, is refused in the same form.
async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    if status.as_u16() < 400 || kind.is_some_and(|kind| kind == "application/problem+json") {
        return response;
    }
    Problem::new(status, "this request can't be read: see /api/v1/openapi.json").into_response()
}

fn nowhere(detail: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, detail)
}

/// Who asks, as a handler takes it.
type By = Extension<Caller>;
