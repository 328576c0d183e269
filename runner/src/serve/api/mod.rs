//! The HTTP API, `/api/v1`, and the OpenAPI document that describes it.

mod access;
mod compare;
mod events;
mod history;
mod log;
mod progress;
mod query;
mod runs;

use super::Server;
use super::guard::identify;
use super::limits::{read_body, refuse_compressed};
use super::problem::Problem;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use query::QueryProblem;
use serde::de::DeserializeOwned;
use trainplan_shared::api::{ProblemDetails, ServerLimits};
use trainplan_shared::result::{DEEPEST, LONGEST_TEXT, MAXIMA, UNKNOWN_BYTES};
use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::schema::{Schema, SchemaType, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Trainplan",
        description = "Upload, store, watch and compare the results of training runs. Each operation names the scope that \
            a token needs for it: `read`, `upload`, which includes `read`, or `admin`, which includes both. Where an \
            operation also lists no token, the server may let everyone read. `GET /limits` and `GET /me` never need one. \
            A query has each parameter at most once; a repeated one, and one that is not UTF-8, is refused with 400."
    ),
    components(schemas(ProblemDetails))
)]
struct Document;

/// Returns the routes below `/api/v1`.
pub(super) fn routes(server: &Server) -> Router<Server> {
    let (router, document) = documented_routes();
    let document = document.to_pretty_json().unwrap_or_default();
    router
        .route("/openapi.json", get(move || async move { (JSON, document) }))
        .fallback(unknown_address)
        .method_not_allowed_fallback(|| async {
            let detail =
                "This address does not support the method. GET /api/v1/openapi.json lists all operations.";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
        })
        .layer(from_fn(bound_query))
        .layer(from_fn_with_state(server.clone(), identify))
        .layer(map_response(as_problem))
}

/// Answers requests to addresses that the API does not have.
pub(super) async fn unknown_address() -> Problem {
    not_found("The API has no such address. GET /api/v1/openapi.json lists all.")
}

fn documented_routes() -> (Router<Server>, utoipa::openapi::OpenApi) {
    let (router, mut document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(limits))
        .routes(routes!(runs::list))
        .routes(routes!(runs::result, runs::put, runs::delete))
        .routes(routes!(runs::summary))
        .routes(routes!(runs::restore))
        .routes(routes!(runs::scores, runs::rescore))
        .routes(routes!(log::download, log::put, log::progress))
        .routes(routes!(log::lines))
        .routes(routes!(progress::post))
        .routes(routes!(progress::list))
        .routes(routes!(events::watch))
        .routes(routes!(compare::compare))
        .routes(routes!(history::history))
        .routes(routes!(history::alerts))
        .routes(routes!(history::acknowledge, history::withdraw))
        .routes(routes!(access::me))
        .routes(routes!(access::tokens, access::create_token))
        .routes(routes!(access::revoke_token))
        .routes(routes!(access::shares, access::create_share))
        .routes(routes!(access::revoke_share))
        .split_for_parts();
    for item in document.paths.paths.values_mut() {
        let all = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.head];
        for operation in all.into_iter().flatten() {
            operation.responses.responses.insert("default".into(), problem_response());
            document_maxima(operation);
        }
    }
    document.servers = Some(vec![utoipa::openapi::Server::new("/api/v1")]);
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme("token", token);
    (router, document)
}

/// States the maxima of an operation's query parameters, and of the fields of a result that it receives.
fn document_maxima(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        if parameter.parameter_in != ParameterIn::Query {
            continue;
        }
        if let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema {
            let is_text = match &schema.schema_type {
                SchemaType::Type(one) => *one == Type::String,
                SchemaType::Array(several) => several.contains(&Type::String),
                SchemaType::AnyValue => false,
            };
            schema.max_length = is_text.then(|| query::longest_value(&parameter.name));
        }
    }
    if let Some(RefOr::T(body)) = &mut operation.request_body
        && body.description.as_ref().is_some_and(|text| text.starts_with("A result file"))
    {
        let fields = MAXIMA
            .iter()
            .map(|maximum| format!("- `{}`: at most {} {}\n", maximum.field, maximum.most, maximum.unit));
        let text = body.description.get_or_insert_default();
        text.push_str(". Its texts and lists have maxima; others are refused with 422:\n\n");
        text.extend(fields);
        text.push_str(&format!(
            "\nOther fields are stored too. In the whole file, arrays and objects are nested at most {DEEPEST} deep, and a text \
            or number has at most {LONGEST_TEXT} bytes. All unknown fields together have at most {UNKNOWN_BYTES} bytes, or as \
            many as the known ones."
        ));
    }
}

/// Refuses requests with a query that is too long, repeats a parameter or is not UTF-8, before anything is done with it.
async fn bound_query(request: Request, next: Next) -> Result<Response, Problem> {
    query::bound(request.uri().query().unwrap_or_default())?;
    Ok(next.run(request).await)
}

impl From<QueryProblem> for Problem {
    fn from(problem: QueryProblem) -> Problem {
        let status = match &problem {
            QueryProblem::Invalid(_) => StatusCode::BAD_REQUEST,
            QueryProblem::TooLong(_) => StatusCode::UNPROCESSABLE_ENTITY,
            QueryProblem::NotARun(_) => StatusCode::NOT_FOUND,
        };
        Problem::new(status, problem.to_string())
    }
}

/// Returns the error response of every operation.
fn problem_response() -> RefOr<utoipa::openapi::Response> {
    let schema = Ref::from_schema_name("ProblemDetails");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().description("An error (RFC 9457)");
    RefOr::T(response.content("application/problem+json", content).build())
}

const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

/// Keeps responses out of caches: the next user of the browser may have other rights.
const NEVER_KEPT: [(HeaderName, &str); 2] =
    [(header::CACHE_CONTROL, "no-store"), (header::VARY, "accept-encoding, authorization")];

/// The largest JSON body of a request other than a result, in bytes.
const LARGEST_JSON: usize = 64 * 1024;

/// Read the server's limits
#[utoipa::path(get, path = "/limits", tag = "server", security(()), responses((status = 200, body = ServerLimits)))]
async fn limits(State(server): State<Server>) -> Response {
    (NEVER_KEPT, Json(server.options.limits)).into_response()
}

/// Reads a small JSON body.
async fn json<T: DeserializeOwned>(server: &Server, headers: &HeaderMap, body: Body) -> Result<T, Problem> {
    refuse_compressed(headers)?;
    let (body, _room) = read_body(body, LARGEST_JSON, &server.room).await?;
    serde_json::from_slice(&body)
        .map_err(|error| unprocessable(&format!("The body does not have the documented form: {error}.")))
}

/// Reads a run's id from a path or query.
fn id(text: &str) -> Result<Uuid, Problem> {
    query::run_id(text).map_err(Problem::from)
}

fn no_run(id: &str) -> Problem {
    not_found(&format!("The server has no run {id}."))
}

/// Gives errors of the framework, such as a path that is not UTF-8, the form of ours.
async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    if status.as_u16() < 400 || kind.is_some_and(|kind| kind == "application/problem+json") {
        return response;
    }
    Problem::new(status, "The request is malformed. GET /api/v1/openapi.json describes all operations.")
        .into_response()
}

fn not_found(detail: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, detail)
}

fn unprocessable(detail: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

fn bad_request(detail: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}
