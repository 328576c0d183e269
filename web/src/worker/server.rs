//! The server that the page came from, if it has results.

use crate::message::{RequestError, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use trainplan_shared::api::{CallerAccess, ProblemDetails, TokenScope};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::js_sys::Uint8Array;
use web_sys::{Headers, RequestInit, Response};

thread_local! {
    static TOKEN: RefCell<String> = RefCell::default();
}

/// Shows this from now on.
pub(super) fn sign_in(token: String) {
    TOKEN.set(token);
}

/// What the server lets us do.
pub(super) async fn scope() -> Result<Scope, RequestError> {
    let CallerAccess { scope, .. } = get("/me").await?;
    Ok(match scope {
        None => Scope::None,
        Some(TokenScope::Read) => Scope::Read,
        Some(TokenScope::Upload) => Scope::Upload,
        Some(TokenScope::Admin) => Scope::Admin,
    })
}

/// What lies at a path below `/api/v1`.
pub(super) async fn get<T: DeserializeOwned>(path: &str) -> Result<T, RequestError> {
    let bytes = bytes(path).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        RequestError::Other(format!("what the server answers is not understood, reload the page: {error}"))
    })
}

/// The same as it comes.
pub(super) async fn bytes(path: &str) -> Result<Vec<u8>, RequestError> {
    body(&send("GET", path, None).await?).await
}

/// Has the server make something, and gives what it says of it.
pub(super) async fn create<T: DeserializeOwned>(path: &str, of: &impl Serialize) -> Result<T, RequestError> {
    let json = serde_json::to_string(of).map_err(|error| RequestError::Other(error.to_string()))?;
    let response = send("POST", path, Some(&json)).await?;
    let told = body(&response).await?;
    serde_json::from_slice(&told).map_err(|error| RequestError::Other(error.to_string()))
}

pub(super) async fn delete(path: &str) -> Result<(), RequestError> {
    send("DELETE", path, None).await.map(|_| ())
}

/// Sends a request; only a response that says yes comes back.
pub(super) async fn send(method: &str, path: &str, json: Option<&str>) -> Result<Response, RequestError> {
    let headers = json.map(|_| ("Content-Type", "application/json"));
    send_body(method, path, json.map(JsValue::from), headers.as_slice()).await
}

/// Puts a body under a path, and gives what the server says of it.
pub(super) async fn put<T: DeserializeOwned>(
    path: &str,
    of: JsValue,
    headers: &[(&str, &str)],
) -> Result<T, RequestError> {
    let response = send_body("PUT", path, Some(of), headers).await?;
    let told = body(&response).await?;
    serde_json::from_slice(&told).map_err(|error| RequestError::Other(error.to_string()))
}

async fn send_body(
    method: &str,
    path: &str,
    of: Option<JsValue>,
    headers: &[(&str, &str)],
) -> Result<Response, RequestError> {
    let request = request(method, of, headers).map_err(|_| RequestError::NoNetwork)?;
    let address = format!("/api/v1{path}");
    let response = super::scope().fetch_with_str_and_init(&address, &request);
    let response: Response =
        JsFuture::from(response).await.map_err(|_| RequestError::NoNetwork)?.unchecked_into();
    let kind = response.headers().get("content-type").ok().flatten().unwrap_or_default();
    // A static host answers with a page of its own.
    if kind.starts_with("text/html") {
        return Err(RequestError::NoServer);
    }
    if response.ok() {
        return Ok(response);
    }
    let status = response.status();
    let problem =
        body(&response).await.ok().and_then(|body| serde_json::from_slice::<ProblemDetails>(&body).ok());
    let told = problem.map(|problem| problem.detail);
    Err(match (status, told) {
        (401, told) => RequestError::SignIn(told.unwrap_or_else(|| "this server asks for a token".into())),
        (404, None) => RequestError::NoServer,
        (_, Some(told)) => RequestError::Other(told),
        (status, None) => RequestError::Other(format!("the server answers with status {status}")),
    })
}

fn request(method: &str, of: Option<JsValue>, more: &[(&str, &str)]) -> Result<RequestInit, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in more {
        headers.set(name, value)?;
    }
    let token = TOKEN.with_borrow(String::clone);
    if !token.is_empty() {
        headers.set("Authorization", &format!("Bearer {token}"))?;
    }
    let request = RequestInit::new();
    request.set_method(method);
    if let Some(of) = of {
        request.set_body(&of);
    }
    request.set_headers(&headers);
    Ok(request)
}

async fn body(response: &Response) -> Result<Vec<u8>, RequestError> {
    let body = response.array_buffer().map_err(|_| RequestError::NoNetwork)?;
    let body = JsFuture::from(body).await.map_err(|_| RequestError::NoNetwork)?;
    Ok(Uint8Array::new(&body).to_vec())
}
