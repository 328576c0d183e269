//! A user's own model: `own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,…`.

use crate::architecture::{Architecture, AttentionKind};
use crate::catalog::{Catalog, Model};
use crate::data_file::{FromRow, Row};
use crate::decimal::{parse_decimal, write_decimal};
use crate::field::Field;
use crate::message;
use crate::message::Message;
use crate::pairs::pairs;
use crate::problem::{Problem, all_of};
use crate::units::{parse_count, significant};
use crate::words::words;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The beginning of the text of an own model.
pub(super) const PREFIX: &str = "own:";

/// The columns of models.csv that describe a model, in the order of the text.
const COLUMNS: [&str; 45] = [
    "title",
    "layers",
    "hidden",
    "ffn",
    "heads",
    "kv_heads",
    "head_dim",
    "vocab",
    "gated",
    "tied_embeddings",
    "seq_len",
    "experts",
    "top_k",
    "moe_ffn",
    "shared_ffn",
    "dense_layers",
    "moe_layers",
    "q_lora",
    "kv_lora",
    "qk_nope",
    "qk_rope",
    "v_head",
    "mtp_layers",
    "mamba_layers",
    "attn_layers",
    "mlp_layers",
    "mamba_heads",
    "mamba_head_dim",
    "mamba_state",
    "mamba_groups",
    "mamba_chunk",
    "linear_layers",
    "linear_key_heads",
    "linear_value_heads",
    "linear_key_dim",
    "linear_value_dim",
    "moe_latent",
    "window",
    "window_layers",
    "attn_gate",
    "sinks",
    "qk_norm",
    "rope_base",
    "params_b",
    "active_b",
];

/// Columns that follow from others; they are left out of the model's id.
const REDUNDANT: [&str; 4] = ["ffn", "attn_layers", "params_b", "active_b"];

const LONGEST_TITLE: usize = 80;

/// Tokens of a training sequence, if no number is given.
const USUAL_SEQ_LEN: u32 = 8192;

impl Model {
    /// Returns the model of a text: `own:` and `column=value` pairs with the columns of models.csv. A missing column has its usual
    /// value if it has one, and is otherwise the same as an empty cell, except that parameters are counted and the title is
    /// generated. A title is form-encoded: `+` is a space, and separators are percent-encoded.
    ///
    /// # Errors
    /// Another beginning; a column that is unknown, missing, out of range or without effect; or a combination that is
    /// not a model.
    pub fn own(text: &str) -> Result<Model, Problem> {
        let text = text.trim();
        let refuse = |message: String| Problem::new(Field::Model, text, message);
        let Some(list) = text.strip_prefix(PREFIX) else {
            let message = "Write a custom model as own: followed by field=value pairs, separated by commas.";
            return Err(refuse(words!("{message} The fields are {}.", COLUMNS.join(", "))));
        };
        let given = pairs(Field::Model, list, &COLUMNS)?;
        for (column, value) in COLUMNS.into_iter().zip(&given) {
            if let Some(value) = value.filter(|_| column != "title") {
                check_value(column, value)?;
            }
        }
        let columns_given = GivenColumns(&given);
        let missing = columns_given.missing();
        if !missing.is_empty() {
            let names = missing.iter().map(|(column, _)| *column);
            let such = missing.iter().map(|(column, value)| format!("{column}={value}"));
            let message = words!(
                "Your own model lacks {}. Add {}, for example.",
                all_of(&names.collect::<Vec<_>>()),
                such.collect::<Vec<_>>().join(",")
            );
            return Err(refuse(message));
        }
        let mut header = ["id", "family", "source", "router_score"].map(Cow::Borrowed).to_vec();
        let mut cells = ["", "own", "given by the user", ""].map(Cow::Borrowed).to_vec();
        let mut title = None;
        for (column, value) in COLUMNS.into_iter().zip(&given) {
            header.push(Cow::Borrowed(column));
            cells.push(match value {
                Some(value) => Cow::Borrowed(*value),
                None => columns_given.usual(column),
            });
            if let ("title", Some(value)) = (column, value) {
                title = Some(decoded_title(value)?);
            }
        }

        let row = Row::alone(&header, &cells);
        let mut model = Model::from_row(&row)
            .map_err(|error| refuse(words!("The custom model is invalid: {}.", error.into_reason())))?;
        model.architecture.check().map_err(|clause| refuse(words!("The custom model {clause}.")))?;
        let bounds = Field::SeqLen.bounds();
        if !bounds.contains(f64::from(model.seq_len), parse_count) {
            let message = words!(
                "The custom model needs a seq_len from {} to {}, not {}.",
                bounds.least,
                bounds.most,
                model.seq_len
            );
            return Err(refuse(message));
        }
        model.count_parameters();
        model.title = title.unwrap_or_else(|| model.made_title());
        model.id = model.to_text();
        for (column, value) in COLUMNS.into_iter().zip(given) {
            let says = value.filter(|value| *value != "0" && !REDUNDANT.contains(&column));
            let known = model.cells().iter().any(|(cell, _)| *cell == column);
            if let (Some(value), false) = (says.filter(|_| column != "title"), known) {
                let message = words!(
                    "\"{column}={value}\" has no effect, because another field that it needs is missing."
                );
                return Err(Problem::new(Field::Model, format_args!("{column}={value}"), message));
            }
        }
        Ok(model)
    }

    /// Returns the text that [`Model::own`] reads; equal models have the same text.
    pub fn to_text(&self) -> String {
        let mut text = PREFIX.to_string();
        if self.title != self.made_title() {
            text.push_str("title=");
            text.extend(form_urlencoded::byte_serialize(self.title.as_bytes()));
            text.push(',');
        }
        for (column, value) in self.cells() {
            // Writing to a string can't fail.
            let _ = write!(text, "{column}={value},");
        }
        for (column, given, counted) in [
            ("params_b", self.params_b, self.architecture.parameters() / 1e9),
            ("active_b", self.active_b, self.architecture.active_parameters() / 1e9),
        ] {
            if given != counted {
                let _ = write!(text, "{column}={},", write_decimal(given));
            }
        }
        text.pop();
        text
    }

    /// Returns the id of the model whose recipes say what software switches on or off for this one: for a user's own, that of the
    /// catalog's model with the same architecture, if there is one.
    pub fn id_in_recipes(&self) -> &str {
        if !self.id.starts_with(PREFIX) {
            return &self.id;
        }
        // By their texts: comparing architectures would make programs for the browser larger.
        let is_alike = |known: &&Model| {
            Model { architecture: known.architecture.clone(), ..self.clone() }.to_text() == self.id
        };
        Catalog::embedded().models().iter().find(is_alike).map_or(&self.id, |known| &known.id)
    }

    /// Returns a model of the user. `other_weights` are the weights that the architecture does not count, such as
    /// norms and biases: their total, and the part that a token uses.
    pub(crate) fn from_architecture(
        architecture: Architecture,
        other_weights: [f64; 2],
        seq_len: u32,
        title: Option<&str>,
    ) -> Model {
        let [other, other_active] = other_weights;
        let params_b = (architecture.parameters() + other) / 1e9;
        let active_b = (architecture.active_parameters() + other_active) / 1e9;
        let mut model = Model {
            id: String::new(),
            title: String::new(),
            family: "own".to_string(),
            architecture,
            seq_len,
            qk_norm: false,
            rope_base: None,
            router: None,
            params_b,
            active_b,
        };
        let title = title.and_then(|title| checked_title(title).ok());
        model.title = title.unwrap_or_else(|| model.made_title());
        model.id = model.to_text();
        model
    }

    /// Returns the model with a name, followed by the number of parameters, if it has none and this can be one.
    pub(crate) fn named(mut self, name: &str) -> Model {
        let title = checked_title(&self.sized(name));
        if let (Ok(title), true) = (title, !name.is_empty() && self.title == self.made_title()) {
            self.title = title;
            self.id = self.to_text();
        }
        self
    }

    /// Returns the model with the properties of its attention other than the shape.
    pub(crate) fn with_attention(mut self, qk_norm: bool, rope_base: Option<u32>) -> Model {
        (self.qk_norm, self.rope_base) = (qk_norm, rope_base);
        self.id = self.to_text();
        self
    }

    /// Counts the parameters that the text doesn't give.
    fn count_parameters(&mut self) {
        if self.params_b == 0.0 {
            self.params_b = self.architecture.parameters() / 1e9;
        }
        if self.active_b == 0.0 {
            self.active_b = self.architecture.active_parameters() / 1e9;
        }
    }

    fn made_title(&self) -> String {
        self.sized("custom model")
    }

    /// Returns a name, followed by the number of parameters.
    fn sized(&self, name: &str) -> String {
        match self.params_b < 1.0 {
            true => format!("{name}, {}M", significant(self.params_b * 1e3, 3)),
            false => format!("{name}, {}B", significant(self.params_b, 3)),
        }
    }

    /// The columns that say something of this model, except its title and its parameters.
    fn cells(&self) -> Vec<(&'static str, u32)> {
        let it = &self.architecture;
        let mut cells = vec![("layers", it.layers), ("hidden", it.hidden)];
        let some = |column, value: u32| Some((column, value)).filter(|_| value > 0);
        cells.extend(it.mlp.as_ref().map(|mlp| ("ffn", mlp.ffn)));
        cells.push(("heads", it.attention.heads));
        if let AttentionKind::Gqa { kv_heads, head_dim } = it.attention.kind {
            cells.extend([("kv_heads", kv_heads), ("head_dim", head_dim)]);
        }
        cells.push(("vocab", it.vocab));
        let gated = it.mlp.as_ref().map(|mlp| mlp.gated).or(it.moe.as_ref().map(|moe| moe.gated));
        cells.extend(gated.map(|gated| ("gated", u32::from(gated))));
        cells.extend([("tied_embeddings", u32::from(it.tied_embeddings)), ("seq_len", self.seq_len)]);
        if let Some(moe) = &it.moe {
            cells.extend([("experts", moe.experts), ("top_k", moe.top_k), ("moe_ffn", moe.ffn)]);
            cells.extend(some("shared_ffn", moe.shared_ffn));
            let dense = it.mlp.as_ref().filter(|_| it.mamba.is_none());
            cells.extend(dense.map(|mlp| ("dense_layers", mlp.layers)));
            cells.push(("moe_layers", moe.layers));
        }
        if let AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } = it.attention.kind {
            cells.extend(some("q_lora", q_lora));
            cells.extend([("kv_lora", kv_lora), ("qk_nope", qk_nope), ("qk_rope", qk_rope)]);
            cells.push(("v_head", v_head));
        }
        cells.extend(some("mtp_layers", it.mtp_layers));
        if let Some(mamba) = &it.mamba {
            cells.extend([("mamba_layers", mamba.layers), ("attn_layers", it.attention.layers)]);
            cells.extend(it.mlp.as_ref().map(|mlp| ("mlp_layers", mlp.layers)));
            cells.extend([("mamba_heads", mamba.heads), ("mamba_head_dim", mamba.head_dim)]);
            cells.extend([("mamba_state", mamba.state), ("mamba_groups", mamba.groups)]);
            cells.extend(mamba.chunk.map(|chunk| ("mamba_chunk", chunk)));
        }
        if let Some(linear) = &it.linear {
            cells.extend([("linear_layers", linear.layers), ("linear_key_heads", linear.key_heads)]);
            cells.extend([("linear_value_heads", linear.value_heads), ("linear_key_dim", linear.key_dim)]);
            cells.push(("linear_value_dim", linear.value_dim));
        }
        cells.extend(it.moe.as_ref().and_then(|moe| moe.latent).map(|latent| ("moe_latent", latent)));
        if let Some(window) = &it.attention.window {
            cells.extend([("window", window.tokens), ("window_layers", window.layers)]);
        }
        cells.extend(it.attention.output_gate.then_some(("attn_gate", 1)));
        cells.extend(it.attention.sinks.then_some(("sinks", 1)));
        cells.extend(self.qk_norm.then_some(("qk_norm", 1)));
        cells.extend(self.rope_base.map(|base| ("rope_base", base)));
        cells
    }
}

/// The columns of an own model that were given; every value was checked.
struct GivenColumns<'a>(&'a [Option<&'a str>]);

impl GivenColumns<'_> {
    fn get(&self, column: &str) -> Option<&str> {
        let place = COLUMNS.iter().position(|known| *known == column)?;
        *self.0.get(place)?
    }

    fn has(&self, column: &str) -> bool {
        self.get(column).is_some()
    }

    /// Returns the number in a column; none if it was not given.
    fn number(&self, column: &str) -> Option<u32> {
        self.get(column)?.parse().ok()
    }

    /// Returns the required columns that were not given, each with an example. Without experts and Mamba-2, every layer has an MLP.
    fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let mut required = vec![("layers", "32"), ("hidden", "4096"), ("heads", "32"), ("vocab", "128256")];
        let has_dense_layers = match (self.has("mamba_layers"), self.has("experts")) {
            (true, _) => self.number("mlp_layers").is_some_and(|layers| layers > 0),
            (false, true) => self.number("dense_layers").is_some_and(|layers| layers > 0),
            (false, false) => true,
        };
        if has_dense_layers {
            required.push(("ffn", "14336"));
        }
        if self.has("experts") {
            required.extend([("top_k", "8"), ("moe_ffn", "1408")]);
        }
        if self.has("kv_lora") {
            required.extend([("qk_nope", "128"), ("qk_rope", "64"), ("v_head", "128")]);
        } else if self.has("hidden") && self.has("heads") && self.usual_head_dim().is_none() {
            required.push(("head_dim", "128"));
        }
        required.retain(|(column, _)| !self.has(column));
        required
    }

    /// Returns the usual value of a missing column: gated MLPs, untied embeddings, plain attention with heads that divide the
    /// hidden width, sequences of 8,192 tokens, and experts in every layer that is not dense. An empty text for other columns.
    fn usual(&self, column: &str) -> Cow<'static, str> {
        let is_latent = self.has("kv_lora");
        let number = match column {
            "params_b" | "active_b" | "tied_embeddings" => Some(0),
            "gated" => Some(1),
            "seq_len" => Some(USUAL_SEQ_LEN),
            "kv_heads" if !is_latent => self.number("heads"),
            "head_dim" if !is_latent => self.usual_head_dim(),
            "moe_layers" if self.has("experts") && !self.has("mamba_layers") => {
                let dense = self.number("dense_layers").unwrap_or(0);
                self.number("layers").and_then(|layers| layers.checked_sub(dense))
            }
            _ => None,
        };
        number.map_or(Cow::Borrowed(""), |number| Cow::Owned(number.to_string()))
    }

    fn usual_head_dim(&self) -> Option<u32> {
        let (hidden, heads) = (self.number("hidden")?, self.number("heads")?);
        hidden.checked_div(heads).filter(|_| hidden.is_multiple_of(heads))
    }
}

/// Checks that a value is a number in the range of its column.
fn check_value(column: &str, value: &str) -> Result<(), Problem> {
    let refuse = |wanted: &str| {
        let message = words!("The field {column} of a custom model must be {wanted}, not \"{value}\".");
        Err(Problem::new(Field::Model, format_args!("{column}={value}"), message))
    };
    match column {
        "params_b" | "active_b" => match parse_decimal(value) {
            Some(billions) if billions > 0.0 && billions < 1e9 => Ok(()),
            _ => refuse("a number of billions above 0"),
        },
        "gated" | "tied_embeddings" if !matches!(value, "0" | "1") => refuse("1 (yes) or 0 (no)"),
        _ if value.parse::<u32>().is_err() || value.starts_with('+') => {
            refuse("a whole number from 0 to 4294967295")
        }
        _ => Ok(()),
    }
}

fn decoded_title(text: &str) -> Result<String, Problem> {
    // The parser treats & and = as separators.
    let text = text.replace('&', "%26").replace('=', "%3D");
    let title = form_urlencoded::parse(text.as_bytes()).next().map(|(title, _)| title.into_owned());
    checked_title(&title.unwrap_or_default())
}

fn checked_title(title: &str) -> Result<String, Problem> {
    let title = title.trim();
    let refuse = |message: Message| Err(Problem::new(Field::Model, title.escape_debug(), message));
    match title {
        "" => refuse(message!["The title of a custom model can't be empty."]),
        _ if title.chars().count() > LONGEST_TITLE => refuse(message![format!(
            "The title of a custom model can have at most {LONGEST_TITLE} characters."
        )]),
        _ if title.chars().any(char::is_control) => {
            refuse(message!["The title of a custom model can't have control characters."])
        }
        _ => Ok(title.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Attention, LinearAttention, Mamba, Mlp, Moe, SlidingWindow};
    use proptest::prelude::*;

    const LLAMA: &str = "own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,\
                         gated=1,tied_embeddings=0,seq_len=8192";

    #[test]
    fn the_columns_are_those_of_the_file() {
        let file = include_str!("../../../data/models.csv");
        let header = file.lines().find(|line| !line.starts_with('#')).unwrap();
        // The router changes neither time nor memory, so that a model of the user leaves it out.
        let is_own =
            |column: &&str| !matches!(*column, "id" | "family" | "source") && !column.starts_with("router_");
        let columns: Vec<&str> = header.split(',').filter(is_own).collect();
        assert_eq!(columns, COLUMNS);
    }

    #[test]
    fn an_own_model_is_what_its_columns_say() {
        let own = Model::own(LLAMA).unwrap();
        let published = Catalog::embedded().model("llama3.1-8b").unwrap();
        assert_eq!(own.architecture, published.architecture);
        assert_eq!((own.id.as_str(), own.title.as_str()), (LLAMA, "custom model, 8.03B"));
        assert!((own.params_b / published.params_b - 1.0).abs() < 1e-3);
    }

    #[test]
    fn columns_that_are_left_out_have_usual_values() {
        let own = |text: &str| Model::own(text).unwrap().id;
        assert_eq!(
            own("own:layers=64,hidden=6144,ffn=20480,heads=48,kv_heads=8,vocab=152064"),
            "own:layers=64,hidden=6144,ffn=20480,heads=48,kv_heads=8,head_dim=128,vocab=152064,gated=1,tied_embeddings=0,\
             seq_len=8192"
        );
        let sparse = Model::own(
            "own:layers=28,hidden=2048,ffn=8192,heads=16,vocab=102400,experts=64,top_k=6,moe_ffn=1408,dense_layers=1",
        );
        let architecture = sparse.unwrap().architecture;
        assert_eq!(architecture.moe.unwrap().layers, 27);
        assert_eq!(architecture.attention.kind, AttentionKind::Gqa { kv_heads: 16, head_dim: 128 });
        // Without dense layers, no width of theirs is needed.
        own("own:layers=28,hidden=2048,heads=16,vocab=102400,experts=64,top_k=6,moe_ffn=1408");
    }

    #[test]
    fn order_and_blanks_do_not_matter() {
        let mut pairs: Vec<&str> = LLAMA.strip_prefix(PREFIX).unwrap().split(',').collect();
        pairs.reverse();
        let text = format!(" own: {} , ", pairs.join(" , "));
        assert_eq!(Model::own(&text).unwrap().id, LLAMA);
    }

    #[test]
    fn every_published_model_can_be_written_and_read() {
        for model in Catalog::embedded().models() {
            let own = Model::own(&model.to_text()).unwrap();
            let Model { id, title, architecture, seq_len, params_b, active_b, .. } = &own;
            assert_eq!((id, title, architecture), (&model.to_text(), &model.title, &model.architecture));
            assert_eq!((*seq_len, *params_b, *active_b), (model.seq_len, model.params_b, model.active_b));
        }
    }

    #[test]
    fn a_model_with_a_known_architecture_has_the_recipes_of_that_one() {
        let known = Catalog::embedded().model("qwen3-30b-a3b").unwrap();
        assert_eq!(known.id_in_recipes(), known.id);
        let own = Model::own(&Model { seq_len: 2048, qk_norm: false, ..known.clone() }.to_text()).unwrap();
        assert_eq!(own.id_in_recipes(), known.id);
        let moe = known.architecture.moe.clone().map(|moe| Moe { top_k: 4, ..moe });
        let architecture = Architecture { moe, ..known.architecture.clone() };
        let other = Model::from_architecture(architecture, [0.0; 2], 4096, None);
        assert_eq!(other.id_in_recipes(), other.id);
    }

    #[test]
    fn a_title_may_hold_anything_that_can_be_shown() {
        let titled = Model::own(&LLAMA.replace("own:", "own:title=a+b%2C+50%25+%3D+½,")).unwrap();
        assert_eq!(titled.title, "a b, 50% = ½");
        assert_eq!(Model::own(&titled.id).unwrap(), titled);
        assert_eq!(Model::own(&LLAMA.replace("own:", "own:title=R&D,")).unwrap().title, "R&D");
        for title in ["%0A", "+", &"x".repeat(81)] {
            assert!(Model::own(&LLAMA.replace("own:", &format!("own:title={title},"))).is_err(), "{title}");
        }
    }

    #[test]
    fn every_mistake_is_named() {
        let said = |from: &str, to: &str| Model::own(&LLAMA.replace(from, to)).unwrap_err().to_string();
        assert!(
            said("hidden=", "hiden=")
                .contains("Unknown field \"hiden\" in \"hiden=4096\". Did you mean hidden?")
        );
        assert_eq!(
            said("hidden=4096,ffn=14336,", ""),
            "Your own model lacks hidden and ffn. Add hidden=4096,ffn=14336, for example."
        );
        assert!(
            said("heads=32,kv_heads=8,head_dim=128", "heads=24")
                .contains("lacks head_dim. Add head_dim=128,")
        );
        assert!(said("hidden=4096", "hidden=0").contains("needs hidden width of 1 or more"));
        assert!(said("hidden=4096", "hidden=4k").contains("hidden of a custom model must be a whole number"));
        assert!(said("hidden=4096", "hidden=-1").contains("must be a whole number"));
        assert!(said("hidden=4096", "hidden=99999999999").contains("must be a whole number"));
        assert!(said("gated=1", "gated=yes").contains("1 (yes) or 0 (no)"));
        assert!(said("gated=1", "gated=1,gated=1").contains("twice"));
        assert!(said("gated=1", "gated=").contains("has no value"));
        assert!(said("gated=1", "gated").contains("\"gated\" must be field=value. Did you mean gated=…?"));
        assert!(said("kv_heads=8", "kv_heads=5").contains("can't be divided among 5 KV heads"));
        assert!(said("gated=1", "gated=1,moe_ffn=8").contains("\"moe_ffn=8\" has no effect"));
        assert!(said("gated=1", "gated=1,window=8").contains("\"window=8\" has no effect"));
        for seq_len in ["0", "16777217"] {
            let said = said("seq_len=8192", &format!("seq_len={seq_len}"));
            assert!(said.contains(&format!("seq_len from 1 to 16,777,216, not {seq_len}.")), "{said}");
        }
        assert!(said("own:", "").contains("Write a custom model as own:"));
    }

    prop_compose! {
        /// Any model that can be, with blocks of any kinds.
        fn models()(
            counts in (1u32..50, 0u32..50, 0u32..50, 0u32..50),
            linear_layers in 0u32..50,
            (hidden, vocab, kv_heads, shares, head_dim) in (1u32..9999, 1u32..9999, 1u32..9, 1u32..9, 1u32..99),
            (q_lora, kv_lora) in (0u32..9, proptest::option::of(1u32..9)),
            (experts, latent, shared_ffn) in (1u32..99, proptest::option::of(1u32..99), 0u32..99),
            (chunk, window) in (proptest::option::of(1u32..99), proptest::option::of(1u32..99)),
            (gated, tied_embeddings, mtp_layers) in (any::<bool>(), any::<bool>(), 0u32..3),
            (title, seq_len) in (proptest::option::of("\\PC{1,40}"), 1u32..99999),
            given_b in proptest::option::of(0.001f64..1e6),
        ) -> Model {
            let (attention, mlp, moe, mamba) = counts;
            let hybrid = mamba > 0;
            // In a transformer attention stands in every layer, beside an MLP.
            let mlp = if hybrid || mlp + moe > 0 { mlp } else { attention };
            let layers = if hybrid { attention + mlp + moe + mamba } else { mlp + moe };
            let linear = if hybrid { 0 } else { linear_layers.min(layers - 1) };
            let attention = if hybrid { attention } else { layers - linear };
            let kind = match kv_lora {
                None => AttentionKind::Gqa { kv_heads, head_dim },
                Some(kv_lora) => AttentionKind::Mla { q_lora, kv_lora, qk_nope: 7, qk_rope: 3, v_head: 5 },
            };
            let architecture = Architecture {
                layers,
                hidden,
                vocab,
                tied_embeddings,
                attention: Attention {
                    layers: attention,
                    heads: kv_heads * shares,
                    kind,
                    window: window.map(|tokens| SlidingWindow { tokens, layers: attention.div_ceil(2) }),
                    output_gate: tied_embeddings,
                    sinks: gated,
                },
                linear: (linear > 0).then_some(LinearAttention {
                    layers: linear, key_heads: kv_heads, value_heads: kv_heads * shares, key_dim: head_dim, value_dim: 7,
                }),
                mlp: (mlp > 0).then_some(Mlp { layers: mlp, ffn: 4 * hidden, gated }),
                moe: (moe > 0).then_some(Moe {
                    layers: moe, experts, top_k: experts.div_ceil(4), ffn: hidden, shared_ffn, latent, gated,
                }),
                mamba: hybrid.then_some(Mamba {
                    layers: mamba, heads: 2 * kv_heads, head_dim, state: 16, groups: kv_heads, chunk,
                }),
                mtp_layers,
            };
            let mut model =
                Model::from_architecture(architecture, [0.0; 2], seq_len, title.as_deref());
            model.params_b = given_b.unwrap_or(model.params_b);
            model.title = if title.is_some() { model.title } else { model.made_title() };
            model.id = model.to_text();
            model
        }
    }

    proptest! {
        #[test]
        fn a_model_is_read_as_written(model in models()) {
            prop_assert_eq!(model.architecture.check(), Ok(()));
            prop_assert_eq!(Model::own(&model.id), Ok(model));
        }

        #[test]
        fn no_text_panics(text in "own:([a-z_,=]{0,20}|(layers|hidden|title|ffn)=[0-9%+]{0,11},){0,9}") {
            if let Ok(model) = Model::own(&text) {
                prop_assert_eq!(Model::own(&model.id), Ok(model));
            }
        }
    }
}
