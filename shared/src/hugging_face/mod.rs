//! Reading a model from the `config.json` of a Hugging Face repository.
//!
//! What a file leaves unsaid is taken from the defaults that its family documents (Hugging Face `transformers`, each
//! family's configuration class) and noted; what nobody can know is an error; what the file says and this module does
//! not understand is listed, never passed over.

mod families;
mod fields;
mod hybrid;

use crate::architecture::Architecture;
use crate::catalog::Model;
use families::Family;
use fields::Fields;
use serde_json::Value;
use std::borrow::Cow;

/// A model read from a `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The model; its id is the text that [`Model::own`] reads.
    pub model: Model,
    /// What was assumed because the file is silent, and why.
    pub notes: Vec<String>,
    /// What the file says of the model's shape that is not understood: with any, the model may be another.
    pub unknown: Vec<String>,
}

/// Why a `config.json` is no model; a clause about the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No JSON.
    #[error("is no JSON: {0}")]
    NotJson(String),
    /// JSON, but no object.
    #[error("is no config.json: it holds {found} where an object with fields such as model_type is wanted")]
    NotAnObject {
        /// What stands there.
        found: String,
    },
    /// A field without which the model can't be known.
    #[error("lacks {field}, without which a model of type {family} can't be known")]
    Missing {
        /// Its name, the usual one first where there are several.
        field: String,
        /// The file's `model_type`.
        family: String,
    },
    /// A field that holds what it can't.
    #[error("has {field} = {found}, where {wanted} is wanted")]
    Wrong {
        /// Its name.
        field: String,
        /// What stands there.
        found: String,
        /// What could.
        wanted: String,
    },
    /// A family that is not known, and that can't be read as if it were Llama's.
    #[error(
        "has model_type {found}, which is not known and can't be read like a Llama ({reason}); known: {}",
        families::known()
    )]
    UnknownFamily {
        /// The file's `model_type`.
        found: String,
        /// Why it can't.
        reason: String,
    },
    /// Fields that each make sense and that together are no model.
    #[error("describes no model: it {0}")]
    Unsound(String),
}

/// Objects that hold the language model of a model that can also see or hear.
const NESTED: [&str; 3] = ["text_config", "llm_config", "language_config"];

/// Reads the text of a `config.json`.
///
/// # Errors
/// It is no JSON, lacks a field, or describes what is no model.
pub fn read(text: &str) -> Result<Imported, ConfigError> {
    let value = parse(text)?;
    let Value::Object(file) = &value else {
        return Err(ConfigError::NotAnObject { found: fields::shown(&value) });
    };
    let nested = NESTED.iter().find_map(|name| Some((*name, file.get(*name)?.as_object()?)));
    let mut fields = Fields::of(nested.map_or(file, |(_, nested)| nested));
    let mut outer = Fields::of(file);
    let own_type = fields.text("model_type")?.or(outer.text("model_type")?).unwrap_or_default();
    let known = Family::of(own_type);
    (fields.family, fields.is_known) = (own_type.to_string(), known.is_some());
    let family = known.unwrap_or(Family::LLAMA);

    let tied = match fields.flag("tie_word_embeddings")?.or(outer.flag("tie_word_embeddings")?) {
        Some(tied) => tied,
        None => {
            let says = if family.tied { "shared" } else { "not shared" };
            fields.note(format!("tie_word_embeddings is not given: {says}, {}", fields.default_of_family()));
            family.tied
        }
    };
    let unlike = |reason| ConfigError::UnknownFamily { found: shown_type(own_type), reason };
    let architecture = match family.is_hybrid() {
        true => hybrid::architecture(&mut fields, tied),
        false => family.architecture(&mut fields, tied),
    };
    let architecture = architecture.map_err(|error| match error {
        ConfigError::Missing { field, .. } if known.is_none() => unlike(format!("it lacks {field}")),
        error => error,
    })?;
    architecture.check().map_err(ConfigError::Unsound)?;
    let seq_len = sequence(&mut fields)?;
    let name = outer.text("_name_or_path")?.or(fields.text("_name_or_path")?);
    let title = name.and_then(|name| name.rsplit('/').next()).filter(|title| !title.starts_with('.'));

    let mut unknown = fields.left_over();
    if known.is_none() {
        if let Some(reason) = unlike_llama(&mut fields, &unknown)? {
            return Err(unlike(reason));
        }
        let found = shown_type(own_type);
        unknown
            .insert(0, format!("model_type {found} is not known: the file is read as if it were a Llama's"));
    }
    if let Some((name, _)) = nested {
        fields.note(format!("only the language model, {name}, is read"));
        unknown.extend(outer.left_over().into_iter().filter(|field| !field.contains("_config ")));
    }
    let source = format!("config.json, model_type {own_type}");
    let model = Model::from_architecture(architecture, seq_len, title, &source);
    Ok(Imported { model, notes: fields.notes, unknown })
}

/// Sequences that models are mostly trained at: beyond it `max_position_embeddings` says what a model can read.
const LONGEST_USUAL: u32 = 8192;

/// The sequence length that a file lets one guess; `--seq-len` says better.
fn sequence(fields: &mut Fields<'_>) -> Result<u32, ConfigError> {
    const NAMES: [&str; 5] =
        ["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length"];
    let reach = fields.whole(&NAMES)?;
    let mut original = fields.whole(&["original_max_position_embeddings", "initial_context_length"])?;
    for name in ["rope_scaling", "rope_parameters"] {
        if let Some(mut scaling) = fields.object(name)? {
            original = original.or(scaling.whole(&["original_max_position_embeddings"])?);
        }
    }
    let seq_len = original.or(reach).filter(|tokens| *tokens > 0).unwrap_or(LONGEST_USUAL).min(LONGEST_USUAL);
    fields.note(match (reach, original) {
        (Some(reach), _) if reach != seq_len => {
            format!("sequences of {seq_len} tokens are assumed, though the model can read {reach}: say what it trains at")
        }
        (None, None) => format!("no sequence length is given: {seq_len} tokens are assumed"),
        _ => format!("sequences of {seq_len} tokens are assumed, as the file says"),
    });
    Ok(seq_len)
}

/// Why a file of an unknown family can't be read as if it were a Llama's, if it can't.
fn unlike_llama(fields: &mut Fields<'_>, unknown: &[String]) -> Result<Option<String>, ConfigError> {
    // Whether an MLP is gated decides over a third of the model.
    let activation = fields.text("hidden_act")?;
    if !matches!(activation, Some("silu" | "swish")) {
        let says = activation.map_or("is not given".to_string(), |name| format!("is “{name}”"));
        return Ok(Some(format!("hidden_act {says}, so that its MLP may have another form")));
    }
    const OTHER_BLOCKS: [&str; 8] =
        ["expert", "moe", "lora_rank", "mamba", "ssm", "linear_", "conv", "layer_types"];
    let other = unknown.iter().find(|field| OTHER_BLOCKS.iter().any(|word| field.contains(word)));
    Ok(other.map(|field| format!("it has {field}")))
}

fn shown_type(model_type: &str) -> String {
    fields::shown(&Value::from(model_type))
}

/// Reads JSON, and what Python writes in its place for numbers that JSON does not have.
fn parse(text: &str) -> Result<Value, ConfigError> {
    let text = text.trim_start_matches('\u{feff}');
    let broken = |error: serde_json::Error| ConfigError::NotJson(error.to_string());
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => match without_infinities(text) {
            Cow::Borrowed(_) => Err(broken(error)),
            Cow::Owned(text) => serde_json::from_str(&text).map_err(broken),
        },
    }
}

/// `Infinity` and `NaN` outside of strings as nulls.
fn without_infinities(text: &str) -> Cow<'_, str> {
    const WORDS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !WORDS.iter().any(|word| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut quoted) = (text, false);
    while let Some(next) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !quoted && rest.starts_with(**word));
        let taken = match (word, next) {
            (Some(word), _) => {
                out.push_str("null");
                rest = &rest[word.len()..];
                continue;
            }
            (None, '\\') if quoted => rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at),
            (None, _) => next.len_utf8(),
        };
        quoted ^= next == '"';
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
