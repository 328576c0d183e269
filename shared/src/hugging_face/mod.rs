//! Reads a model from the `config.json` of a Hugging Face repository.
//!
//! Missing fields take the defaults of the model's family (its configuration class in Hugging Face `transformers`), with a note.
//! A missing field without a default is an error. Unknown fields are listed. A file of an unknown family is read by its fields,
//! if these are Llama's, or the ones that most families use for experts.

mod families;
mod fields;
mod hybrid;
mod mixed;
mod table;
mod unsupported;
mod vectors;

use crate::architecture::{Architecture, AttentionKind};
use crate::catalog::{Catalog, Model};
use crate::units::group_digits;
use families::{Family, KvRule};
use fields::ConfigFields;
use serde_json::Value;
use std::borrow::Cow;
use vectors::VectorWeights;

/// A model read from a `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedModel {
    /// The model; its id is the text that [`Model::own`] reads.
    pub model: Model,
    /// Assumptions for missing fields, with their reasons, as sentences.
    pub notes: Vec<String>,
    /// Fields that are not understood and may change the model's shape.
    pub unknown: Vec<String>,
    /// The file's `model_type`; may be empty.
    pub kind: String,
}

impl ImportedModel {
    /// Returns the model with a name if its file says none: that of `file` without its ending, unless that is `config`; otherwise the
    /// `model_type`. The number of parameters follows.
    #[must_use]
    pub fn named_after(self, file: &str) -> ImportedModel {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        // Browsers number copies: `config (1).json`.
        let is_usual = stem.is_empty() || stem.starts_with("config");
        let name = if is_usual { self.kind.clone() } else { stem.to_string() };
        ImportedModel { model: self.model.named(&name), ..self }
    }
}

/// Why a `config.json` can't be read as a model, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is not JSON.
    #[error("The file is not valid JSON: {0}.")]
    NotJson(String),
    /// The file is JSON, but not an object.
    #[error(
        "The file is not a config.json: it contains {found} instead of an object with fields such as model_type."
    )]
    NotAnObject {
        /// Its contents.
        found: String,
    },
    /// A required field is missing.
    #[error("The file has no {field}, which model_type {family} requires.")]
    Missing {
        /// Its name, the most common one first.
        field: String,
        /// The file's `model_type`.
        family: String,
    },
    /// A field has an invalid value.
    #[error("{field} is {found}; it must be {wanted}.")]
    Wrong {
        /// Its name.
        field: String,
        /// The value.
        found: String,
        /// Description of valid values.
        wanted: String,
    },
    /// The file has neither a family nor the fields of a model.
    #[error(
        "The file describes no model: it has no model_type, and {reason}. Use the config.json of a Hugging Face model."
    )]
    NoModel {
        /// What it lacks.
        reason: String,
    },
    /// The family is unknown and differs from Llama.
    #[error(
        "model_type {found} is unknown, and the model can't be read like Llama: {reason}.{} \
         A file of an unknown type can be read only if its fields are those of Llama, with or without routed experts.",
        closest.map(|name| format!(" Did you mean \"{name}\"?")).unwrap_or_default()
    )]
    UnknownFamily {
        /// The file's `model_type`.
        found: String,
        /// How it differs from Llama.
        reason: String,
        /// The known `model_type` most like it.
        closest: Option<&'static str>,
    },
    /// The family is known, but an architecture can't express it.
    #[error("model_type {found} is not supported: {reason}.")]
    Unsupported {
        /// The file's `model_type`.
        found: String,
        /// What it has that an architecture can't express.
        reason: &'static str,
    },
    /// The fields contradict each other.
    #[error("The file's model {0}.")]
    Unsound(String),
}

/// Objects with the language model of a multimodal model.
const NESTED: [&str; 3] = ["text_config", "llm_config", "language_config"];

/// Reads the text of a `config.json`.
///
/// # Errors
/// It is not JSON, a required field is missing, a value is invalid, or fields contradict each other.
pub fn read(text: &str) -> Result<ImportedModel, ConfigError> {
    let value = parse(text)?;
    let Value::Object(file) = &value else {
        return Err(ConfigError::NotAnObject { found: fields::shown(&value) });
    };
    let nested = NESTED.iter().find_map(|name| Some((*name, file.get(*name)?.as_object()?)));
    let mut fields = ConfigFields::of(nested.map_or(file, |(_, nested)| nested));
    let mut outer = ConfigFields::of(file);
    let (nested_type, outer_type) = (fields.text("model_type")?, outer.text("model_type")?);
    let own_type = nested_type.or(outer_type).unwrap_or_default();
    for found in [nested_type, outer_type].into_iter().flatten() {
        if let Some(reason) = unsupported::reason(found) {
            return Err(ConfigError::Unsupported { found: shown_type(found), reason });
        }
    }
    let known = table::family(own_type);
    (fields.family, fields.is_known) = (own_type.to_string(), known.is_some());
    let unlike = |reason| match own_type {
        "" => ConfigError::NoModel { reason },
        _ => ConfigError::UnknownFamily {
            found: shown_type(own_type),
            reason,
            closest: table::most_alike(own_type),
        },
    };
    let family = known.unwrap_or(&table::LLAMA_LIKE);

    let (nested_tied, outer_tied) = (fields.flag("tie_word_embeddings")?, outer.flag("tie_word_embeddings")?);
    let tied = match outer_tied.or(nested_tied) {
        Some(tied) => tied,
        None => {
            fields.note(format!(
                "tie_word_embeddings assumed: {} ({}).",
                family.tied,
                fields.default_reason()
            ));
            family.tied
        }
    };
    let shape = shape(&mut fields, family, tied).map_err(|error| match error {
        error if known.is_some() || own_type.is_empty() && !matches!(error, ConfigError::Missing { .. }) => {
            error
        }
        ConfigError::Missing { field, .. } => unlike(format!("{field} is missing")),
        error => unlike(error.to_string().trim_end_matches('.').to_string()),
    })?;
    let Shape { architecture, vectors, normalizes_qk } = shape;
    let seq_len = sequence(&mut fields)?;
    let rope_base = rope_base(&mut fields).filter(|_| architecture.mamba.is_none());
    let name = outer.text("_name_or_path")?.or(fields.text("_name_or_path")?);
    let title = name.and_then(|name| name.rsplit('/').next()).filter(|title| !title.starts_with('.'));
    if fields.has("vision_config") | fields.has("audio_config") {
        fields.note("Only the language model is read, without vision_config and audio_config.".to_string());
    }
    if fields.has("quantization_config") || outer.has("quantization_config") {
        fields
            .note("quantization_config is ignored: training uses the precision that you choose.".to_string());
    }

    let mut unknown = fields.left_over();
    if known.is_none() {
        if let Some(reason) = unlike_llama(&mut fields, &unknown)? {
            return Err(unlike(reason));
        }
        let found = shown_type(own_type);
        let like = match &architecture.moe {
            None => "like Llama".to_string(),
            Some(moe) => format!(
                "like Llama with {} experts of width {}, {} for each token, in {} of {} layers",
                moe.experts, moe.ffn, moe.top_k, moe.layers, architecture.layers
            ),
        };
        unknown.insert(0, format!("model_type = {found} (read {like})"));
    }
    if let Some((name, _)) = nested {
        fields.note(format!("Only the language model ({name}) is read."));
        unknown.extend(outer.left_over().into_iter().filter(|field| !field.contains("_config ")));
    }
    let known = Catalog::embedded().models().iter().find(|model| model.architecture == architecture);
    if let Some(known) = known {
        fields.note(format!(
            "This is the shape of {}: choose that model to plan with its recipes.",
            known.title
        ));
    }
    let model = Model::from_architecture(architecture, [vectors.all, vectors.active], seq_len, title)
        .with_attention(normalizes_qk, rope_base);
    Ok(ImportedModel { model, notes: fields.notes, unknown, kind: own_type.to_string() })
}

/// What the fields say about the model's weights.
struct Shape {
    architecture: Architecture,
    vectors: VectorWeights,
    normalizes_qk: bool,
}

/// Returns the shape that the fields define by the rules of a family.
fn shape(fields: &mut ConfigFields<'_>, family: &Family, tied: bool) -> Result<Shape, ConfigError> {
    let (architecture, layers) = match family.attention {
        KvRule::Mixed => family.mixed(fields, tied)?,
        KvRule::Hybrid => hybrid::architecture(fields, tied).map(|it| (it.clone(), it.layers))?,
        _ => family.architecture(fields, tied).map(|it| (it.clone(), it.layers))?,
    };
    architecture.check().map_err(ConfigError::Unsound)?;
    let normalizes_qk = family.vectors.normalizes_qk(fields)?
        || matches!(architecture.attention.kind, AttentionKind::Mla { .. });
    let vectors = family.vectors.count(fields, &architecture, layers)?;
    Ok(Shape { architecture, vectors, normalizes_qk })
}

/// Returns the base of the rotary embedding if the file has one other than 10,000. A fraction is left out: Megatron-LM
/// takes whole numbers.
fn rope_base(fields: &mut ConfigFields<'_>) -> Option<u32> {
    const NAMES: [&str; 3] = ["rope_theta", "rotary_emb_base", "rotary_base"];
    let of_file = fields.whole(&NAMES).ok().flatten();
    let of_parameters = || fields.object("rope_parameters").ok()??.whole(&NAMES).ok()?;
    of_file.or_else(of_parameters).filter(|base| !matches!(base, 0 | 10_000))
}

/// Longest usual training sequence. A larger `max_position_embeddings` is the model's maximum after training.
const LONGEST_USUAL: u32 = 8192;

/// Names of the longest sequence.
const POSITIONS: [&str; 5] =
    ["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_sequence_length"];

/// Returns the training sequence length that the file suggests, with a note.
fn sequence(fields: &mut ConfigFields<'_>) -> Result<u32, ConfigError> {
    // BLOOM has only seq_length. Other families use it for something else, beside one of the usual names.
    let reach = match fields.whole(&POSITIONS)? {
        Some(reach) => Some(reach),
        None => fields.whole(&["seq_length"])?,
    };
    let mut original = fields.whole(&["original_max_position_embeddings", "initial_context_length"])?;
    for name in ["rope_scaling", "rope_parameters"] {
        if let Some(mut scaling) = fields.object(name)? {
            original = original.or(scaling.whole(&["original_max_position_embeddings"])?);
        }
    }
    let seq_len = original.or(reach).filter(|tokens| *tokens > 0).unwrap_or(LONGEST_USUAL).min(LONGEST_USUAL);
    fields.note(match (reach, original) {
        (Some(reach), _) if reach != seq_len => {
            let [assumed, maximum] = [seq_len, reach].map(|tokens| group_digits(tokens.into()));
            format!("Training sequence length assumed: {assumed} (model maximum {maximum}).")
        }
        (None, None) => {
            let assumed = group_digits(seq_len.into());
            format!("Training sequence length assumed: {assumed} (the file has none).")
        }
        _ => format!("Training sequence length: {} (from the file).", group_digits(seq_len.into())),
    });
    Ok(seq_len)
}

/// Returns how a file of an unknown family differs from Llama, if it does.
fn unlike_llama(fields: &mut ConfigFields<'_>, unknown: &[String]) -> Result<Option<String>, ConfigError> {
    // A gated MLP has a third more weights, so the activation must be known.
    let activation = fields.text("hidden_act")?;
    if !matches!(activation, Some("silu" | "swish")) {
        let says = activation.map_or("is missing".to_string(), |name| format!("is \"{name}\""));
        return Ok(Some(format!("hidden_act {says}, so its MLP may have another form")));
    }
    const OTHER_BLOCKS: [&str; 8] =
        ["expert", "moe", "lora_rank", "mamba", "ssm", "linear_", "conv", "layer_types"];
    let other = unknown.iter().find(|field| OTHER_BLOCKS.iter().any(|word| field.contains(word)));
    Ok(other.map(|field| format!("the file has {field}")))
}

fn shown_type(model_type: &str) -> String {
    fields::shown(&Value::from(model_type))
}

/// Parses JSON, including Python's `Infinity` and `NaN`.
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

/// Replaces `Infinity` and `NaN` outside strings by null.
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
