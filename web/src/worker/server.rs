//! What the server has: its newest results, taken as if someone had dropped their files.

use crate::message::ForPage;
use crate::{DESK, Taken, post, scope, settle};
use serde::Deserialize;
use std::cell::RefCell;
use trainplan_shared::result::read;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;
use web_sys::js_sys::Uint8Array;

/// As many results as are shown without being asked for.
const MOST: usize = 100;

/// A page of the server's list: short, since most often nothing is new.
const RUNS: &str = "/api/v1/runs";
const LIMIT: usize = 20;

thread_local! {
    /// Whether an answer is awaited; for ever where there is nobody to answer.
    static ASKING: RefCell<bool> = const { RefCell::new(false) };
}

/// Why there is no answer.
enum Silence {
    /// Whoever serves the page has no results: a static host.
    NoServer,
    /// The network failed; it may work the next time.
    NoNetwork,
    /// The server says that something is wrong.
    Problem(String),
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Item>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
    path: String,
}

#[derive(Deserialize)]
struct Problem {
    detail: String,
}

/// Takes what the server has and the desk has not.
pub(crate) async fn ask() {
    if ASKING.replace(true) {
        return;
    }
    let problem = match take_new().await {
        Err(Silence::NoServer) => return,
        Err(Silence::Problem(problem)) => format!("The server can't give its results: {problem}."),
        Err(Silence::NoNetwork) | Ok(()) => String::new(),
    };
    post(&ForPage::Server(problem));
    ASKING.set(false);
}

async fn take_new() -> Result<(), Silence> {
    let mut address = format!("{RUNS}?limit={LIMIT}");
    for _ in 0..MOST / LIMIT {
        let page = get(&address).await?;
        let page: Page = serde_json::from_slice(&page).map_err(|_| Silence::NoServer)?;
        let count = page.items.len();
        let new: Vec<Item> = page.items.into_iter().filter(|item| !is_taken(number(&item.id))).collect();
        // Whoever has a run has those before it.
        let is_end = new.len() < count;
        for Item { id, path } in new {
            let run = match get(&format!("{RUNS}/{id}")).await {
                Ok(file) => read(&file).map_err(|error| error.to_string()),
                Err(Silence::Problem(problem)) => Err(problem),
                Err(silence) => return Err(silence),
            };
            settle(Taken { number: number(&id), path, run });
        }
        match page.next_cursor {
            Some(cursor) if !is_end => address = format!("{RUNS}?limit={LIMIT}&cursor={cursor}"),
            _ => break,
        }
    }
    Ok(())
}

fn is_taken(number: u32) -> bool {
    DESK.with_borrow(|desk| desk.taken.iter().any(|taken| taken.number == number))
}

/// What the page calls a result: always the same, and none of the small numbers that the page gives to files. The end
/// of an id differs even where its beginning is the time.
fn number(id: &str) -> u32 {
    let end = id.get(id.len().saturating_sub(8)..).and_then(|end| u32::from_str_radix(end, 16).ok());
    end.unwrap_or_default() | 1 << 31
}

async fn get(address: &str) -> Result<Vec<u8>, Silence> {
    let response = JsFuture::from(scope().fetch_with_str(address)).await.map_err(|_| Silence::NoNetwork)?;
    let response: Response = response.unchecked_into();
    let kind = response.headers().get("content-type").ok().flatten().unwrap_or_default();
    if !kind.contains("json") && (response.ok() || response.status() == 404) {
        return Err(Silence::NoServer);
    }
    let body = response.array_buffer().map_err(|_| Silence::NoNetwork)?;
    let body = JsFuture::from(body).await.map_err(|_| Silence::NoNetwork)?;
    let body = Uint8Array::new(&body).to_vec();
    if response.ok() {
        return Ok(body);
    }
    let told = serde_json::from_slice(&body).map(|problem: Problem| problem.detail);
    Err(Silence::Problem(told.unwrap_or_else(|_| format!("it answers with status {}", response.status()))))
}
