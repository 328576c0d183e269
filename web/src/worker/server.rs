//! Requests to the page's server.

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

/// Sets the token of all requests.
pub(super) fn sign_in(token: String) {
    TOKEN.set(token);
}

/// Returns the scope of the user.
pub(super) async fn scope() -> Result<Scope, RequestError> {
    let CallerAccess { scope, .. } = get("/me").await?;
    Ok(match scope {
        None => Scope::None,
        Some(TokenScope::Read) => Scope::Read,
        Some(TokenScope::Upload) => Scope::Upload,
        Some(TokenScope::Admin) => Scope::Admin,
    })
}

/// Gets JSON from a path below `/api/v1`.
pub(super) async fn get<T: DeserializeOwned>(path: &str) -> Result<T, RequestError> {
    let bytes = bytes(path).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        RequestError::Other(format!("The server's answer can't be read. Reload the page. ({error})"))
    })
}

/// Gets the bytes of a path below `/api/v1`.
pub(super) async fn bytes(path: &str) -> Result<Vec<u8>, RequestError> {
    body(&send("GET", path, None).await?).await
}

/// Posts JSON to a path, and returns the answer.
pub(super) async fn create<T: DeserializeOwned>(path: &str, of: &impl Serialize) -> Result<T, RequestError> {
    let json = serde_json::to_string(of).map_err(|error| RequestError::Other(error.to_string()))?;
    let response = send("POST", path, Some(&json)).await?;
    let told = body(&response).await?;
    serde_json::from_slice(&told).map_err(|error| RequestError::Other(error.to_string()))
}

/// Puts JSON to a path whose answer is empty.
pub(super) async fn set(path: &str, of: &impl Serialize) -> Result<(), RequestError> {
    let json = serde_json::to_string(of).map_err(|error| RequestError::Other(error.to_string()))?;
    send("PUT", path, Some(&json)).await.map(|_| ())
}

pub(super) async fn delete(path: &str) -> Result<(), RequestError> {
    send("DELETE", path, None).await.map(|_| ())
}

/// Sends a request, and returns the response if it succeeds.
pub(super) async fn send(method: &str, path: &str, json: Option<&str>) -> Result<Response, RequestError> {
    let headers = json.map(|_| ("Content-Type", "application/json"));
    send_body(method, path, json.map(JsValue::from), headers.as_slice()).await
}

/// Puts a body to a path, and returns the answer.
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
    // A static host answers with one of its pages.
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
        (401, told) => RequestError::SignIn(told.unwrap_or_else(|| "This server requires a token.".into())),
        (404, None) => RequestError::NoServer,
        (_, Some(told)) => RequestError::Other(told),
        (status, None) => RequestError::Other(format!("The server answered with status {status}.")),
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
