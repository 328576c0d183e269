//! Reads the queries of requests. The fuzz target `query` includes this file, so it uses nothing else of the server, and of the
//! store only `query.rs`.

use crate::store::{InvalidCursor, Query, time};
use jiff::Timestamp;
use std::collections::BTreeSet;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::compare::ComparisonOptions;
use trainplan_shared::convention::Convention;
use trainplan_shared::field::Field;
use trainplan_shared::history::Thresholds;
use trainplan_shared::log::{Status, Window};
use trainplan_shared::result::{LONGEST_NAME, LONGEST_PATH, LONGEST_SCENARIO, View, id_of_log};
use trainplan_shared::spec::Spec;
use uuid::Uuid;

/// The most parameters of a query. No operation knows half as many.
const MOST_PARAMETERS: usize = 64;

/// The longest pattern with `*`, in bytes: databases refuse much longer ones.
const LONGEST_PATTERN: usize = 500;

/// The longest text to search a log for, in bytes: each line is compared with it.
const LONGEST_SEARCH: usize = 1000;

/// The most lines of a log in a response.
pub(super) const MOST_LINES: usize = 2000;

/// The number of lines of a log in a response, unless the query sets it.
const LINES: usize = 500;

/// Why a query is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryProblem {
    /// A parameter is unknown, repeated or not UTF-8, or its value invalid.
    #[error("{0}")]
    Invalid(String),
    /// A parameter is too long, or there are too many.
    #[error("{0}")]
    TooLong(String),
    /// A text is not the id of a run.
    #[error("{0}")]
    NotARun(String),
}

fn invalid(detail: impl Into<String>) -> QueryProblem {
    QueryProblem::Invalid(detail.into())
}

fn unknown(name: &str, allowed: &str) -> QueryProblem {
    invalid(format!("Unknown parameter \"{name}\". Allowed: {allowed}."))
}

/// Refuses queries that are too long, repeat a parameter or are not UTF-8, before anything else is done with them.
pub(super) fn bound(query: &str) -> Result<(), QueryProblem> {
    let refuse = |detail| Err(QueryProblem::TooLong(detail));
    let count = form_urlencoded::parse(query.as_bytes()).count();
    if count > MOST_PARAMETERS {
        return refuse(format!(
            "The query has {count} parameters; at most {MOST_PARAMETERS} are accepted. Send each once."
        ));
    }
    let mut names = BTreeSet::new();
    // The parser skips empty parts too.
    let parts = query.split('&').filter(|part| !part.is_empty());
    for (part, (name, value)) in parts.zip(form_urlencoded::parse(query.as_bytes())) {
        if name.len() > LONGEST_NAME {
            return refuse(format!(
                "The query has a parameter name of {} bytes; at most {LONGEST_NAME} are accepted.",
                name.len()
            ));
        }
        let most = longest_value(&name);
        if value.len() > most {
            return refuse(format!("{name} has {} bytes; at most {most} are accepted.", value.len()));
        }
        // The parser replaces invalid bytes, so the value would be another one than the client sent.
        if !is_utf8(part) {
            return Err(invalid(format!("The parameter \"{name}\" is not UTF-8. Encode its text as UTF-8.")));
        }
        if names.contains(&name) {
            return Err(invalid(format!("The query repeats the parameter \"{name}\". Send it once.")));
        }
        names.insert(name);
    }
    Ok(())
}

/// Returns whether a part of a query is UTF-8 once its `%` escapes are decoded. `%` without two hexadecimal digits stands for
/// itself.
fn is_utf8(part: &str) -> bool {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match (digit(after.first()), digit(after.get(1))) {
            (Some(high), Some(low)) if *first == b'%' => {
                decoded.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    std::str::from_utf8(&decoded).is_ok()
}

/// Returns the most bytes of a parameter's value.
pub(super) fn longest_value(name: &str) -> usize {
    match name {
        "line" => LONGEST_SCENARIO,
        "q" => LONGEST_SEARCH,
        "recipe" | "cluster" | "campaign" | "status" | "log" | "sort" | "since" | "until" | "cursor"
        | "window" | "convention" => LONGEST_NAME,
        _ => LONGEST_PATH,
    }
}

/// Reads a run's id.
pub(super) fn run_id(text: &str) -> Result<Uuid, QueryProblem> {
    let refuse = |_| QueryProblem::NotARun(format!("{text} is not a run's id. Use the whole id, a UUID."));
    text.parse().map_err(refuse)
}

/// Reads the ids of runs, separated by commas.
fn run_ids(text: &str) -> Result<Vec<Uuid>, QueryProblem> {
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(run_id).collect()
}

/// Reads the query of `GET /alerts`: the runs whose alerts are wanted; none for those of all runs. The length of a parameter limits
/// their number.
pub(super) fn alerts(text: &str) -> Result<Option<Vec<Uuid>>, QueryProblem> {
    let mut ids = None;
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        match name.as_ref() {
            "ids" => ids = Some(run_ids(&value)?),
            _ => return Err(unknown(&name, "ids")),
        }
    }
    Ok(ids)
}

/// Reads the query of `GET /runs`, with pages of at most `most` runs.
pub(super) fn filters(text: &str, most: u32) -> Result<Query, QueryProblem> {
    let mut query = Query::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        set_filter(&mut query, &name, &value, most)?;
    }
    completed(query)
}

/// Reads the query of `GET /history`: filters of at most `most` runs, and thresholds, which replace those given.
pub(super) fn history(
    text: &str,
    mut thresholds: Thresholds,
    most: u32,
) -> Result<(Thresholds, Query), QueryProblem> {
    let mut query = Query::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        if Thresholds::NAMES.contains(&name.as_ref()) {
            thresholds.set(&name, &value).map_err(|error| invalid(error.to_string()))?;
        } else {
            set_filter(&mut query, &name, &value, most)?;
        }
    }
    Ok((thresholds, completed(query)?))
}

/// Sets a filter, the order or the page.
fn set_filter(query: &mut Query, name: &str, value: &str, most: u32) -> Result<(), QueryProblem> {
    let refuse = |why: String| invalid(format!("{name}={value}: {why}."));
    // No stored text has one, and PostgreSQL fails at it.
    if value.contains('\0') {
        return Err(refuse("the value contains a NUL character".into()));
    }
    if value.contains('*') && value.len() > LONGEST_PATTERN && name != "line" {
        return Err(refuse(format!("a pattern with * may have at most {LONGEST_PATTERN} bytes")));
    }
    let text = Some(value.to_owned());
    let at = || {
        let read = value.parse::<Timestamp>();
        read.map(time).map_err(|_| {
            refuse("not a time up to 9999-12-30T22:00:00Z; use RFC 3339, such as 2026-11-01T00:00:00Z".into())
        })
    };
    match name {
        "recipe" => query.recipe = text,
        "cluster" => query.cluster = text,
        "campaign" => query.campaign = text,
        "model" => query.model = text,
        "gpu" => query.gpu = text,
        "dtype" => query.dtype = text,
        "line" => query.line = text,
        "log" if id_of_log(value).is_some() => query.log = Some(value.to_ascii_lowercase()),
        "log" => return Err(refuse("not a SHA-256 of 64 hexadecimal digits".into())),
        "gpus" => match value.parse() {
            Ok(gpus) => query.gpus = Some(gpus),
            Err(_) => return Err(refuse("not a whole number".into())),
        },
        "since" => query.since = Some(at()?),
        "until" => query.until = Some(at()?),
        "status" if Status::ALL.iter().any(|status| status.id() == value) => query.status = text,
        "status" => {
            let all = Status::ALL.map(Status::id).join(", ");
            return Err(refuse(format!("unknown status; allowed: {all}")));
        }
        "sort" => query.sort = value.parse().map_err(|error| refuse(format!("{error}")))?,
        "limit" => match value.parse() {
            Ok(limit) if (1..=most).contains(&limit) => query.limit = Some(limit),
            _ => return Err(refuse(format!("must be a number from 1 to {most}"))),
        },
        "cursor" => {
            query.cursor = Some(value.parse().map_err(|error: InvalidCursor| refuse(error.to_string()))?);
        }
        _ => {
            let all = "recipe, cluster, campaign, status, model, gpu, gpus, dtype, line, log, since, until, sort, limit, cursor";
            return Err(unknown(name, all));
        }
    }
    Ok(())
}

/// Completes a query whose parameters are all set.
fn completed(mut query: Query) -> Result<Query, QueryProblem> {
    if query.cursor.as_ref().is_some_and(|cursor| !cursor.suits(query.sort)) {
        return Err(invalid(
            "The cursor belongs to another order. Send the same sort as for the previous page.",
        ));
    }
    // Read only once, because a text that is not a recipe is compared with all of them.
    query.recipe = query.recipe.map(|text| match Catalog::embedded().recipe(&text) {
        Ok(recipe) => recipe.id.to_string(),
        Err(_) => text,
    });
    Ok(query)
}

/// Reads the query of `GET /compare`: the runs, at most `most` of them, and how to compare them.
pub(super) fn comparison(text: &str, most: usize) -> Result<(Vec<Uuid>, ComparisonOptions), QueryProblem> {
    let mut ids = Vec::new();
    let mut options = ComparisonOptions::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        match name.as_ref() {
            "ids" => ids.extend(run_ids(&value)?),
            "window" => {
                let window = value.parse::<Window>();
                options.view.window =
                    Some(window.map_err(|error| invalid(format!("window={value}: {error}")))?);
            }
            "convention" => {
                let convention = value.parse::<Convention>();
                let refuse = |error| invalid(format!("convention={value}: {error}"));
                options.view.convention = Some(convention.map_err(refuse)?);
            }
            _ => return Err(unknown(&name, "ids, window, convention")),
        }
    }
    if ids.is_empty() || ids.len() > most {
        let detail = format!("ids has {} runs, but 1 to {most} can be compared: ids=A,B.", ids.len());
        return Err(invalid(detail));
    }
    if let Some(twice) = repeated(&ids) {
        return Err(invalid(format!("ids names {twice} twice. Name each run once.")));
    }
    Ok((ids, options))
}

/// Returns a run that a list names more than once.
pub(super) fn repeated(ids: &[Uuid]) -> Option<Uuid> {
    ids.iter().enumerate().find(|(place, id)| ids[..*place].contains(id)).map(|(_, id)| *id)
}

/// The requested lines of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WantedLines {
    /// The number of the first line, from 1.
    pub(super) from: u64,
    /// The most lines, from 1 to [`MOST_LINES`].
    pub(super) count: usize,
    /// A text in lower case that they contain.
    pub(super) text: String,
}

/// Reads the query of `GET /runs/{id}/log/lines`.
pub(super) fn lines(text: &str) -> Result<WantedLines, QueryProblem> {
    let mut wanted = WantedLines { from: 1, count: LINES, text: String::new() };
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let refuse = || invalid(format!("{name}={value}: must be a whole number from 1."));
        match name.as_ref() {
            "from" => {
                let from = value.parse::<u64>().ok().filter(|from| *from > 0);
                wanted.from = from.ok_or_else(refuse)?;
            }
            "count" => {
                let count = value.parse::<usize>().ok().filter(|count| *count > 0);
                wanted.count = count.ok_or_else(refuse)?.min(MOST_LINES);
            }
            "q" => wanted.text = value.to_lowercase(),
            _ => return Err(unknown(&name, "from, count, q")),
        }
    }
    Ok(wanted)
}

/// Reads the query of `POST /runs/{id}/scores`: the scenario; none if it has no parameters.
pub(super) fn scenario(text: &str) -> Result<Option<Spec>, QueryProblem> {
    let mut spec = Spec::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let field = Field::from_flag(&name).filter(|field| field.is_of_scenario());
        let field = field.ok_or_else(|| unknown(&name, "scenario flags, such as recipe"))?;
        let recipe = Catalog::embedded().recipe(&value).ok().filter(|_| field == Field::Recipe);
        spec.set(field, recipe.map_or_else(|| value.into_owned(), |recipe| recipe.id.to_string()));
    }
    let view = View::of(spec, None).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        invalid(problems.join(" "))
    })?;
    Ok(Some(view.spec).filter(|spec| *spec != Spec::default()))
}
