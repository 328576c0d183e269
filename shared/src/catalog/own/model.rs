//! A user's own model: `own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,…`.

use super::pairs;
use crate::architecture::{Architecture, AttentionKind};
use crate::catalog::Model;
use crate::data_file::{FromRow, Row};
use crate::field::Field;
use crate::problem::Problem;
use crate::units::significant;
use std::fmt::Write as _;

/// What every such text starts with.
pub(super) const PREFIX: &str = "own:";

/// The columns of models.csv that make a model, in the order in which a text names them.
const COLUMNS: [&str; 37] = [
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
    "moe_latent",
    "window",
    "window_layers",
    "sinks",
    "params_b",
    "active_b",
];

/// Columns that may say again what others say already; they are left out of the text that a model is known by.
const REDUNDANT: [&str; 4] = ["ffn", "attn_layers", "params_b", "active_b"];

const LONGEST_TITLE: usize = 80;

impl Model {
    /// Reads `own:` and `column=value` pairs with the columns of models.csv. An absent column means what an empty cell
    /// means there, except that parameters are counted and a title is made. In a title `+` is a space, and what would
    /// break the text is percent-encoded, as in a link.
    ///
    /// # Errors
    /// The text does not start so; a column is not known, missing, out of range or without meaning beside the others;
    /// or what they describe is no model.
    pub fn own(text: &str) -> Result<Model, Problem> {
        let text = text.trim();
        let refuse = |what: String| Problem::clause(Field::Model, text, what);
        let listed = || format!("own: and column=value pairs, with the columns {}", COLUMNS.join(", "));
        let Some(list) = text.strip_prefix(PREFIX) else {
            return Err(refuse(format!("does not start with {PREFIX}")).allowed(listed()));
        };
        let given = pairs(Field::Model, list, &COLUMNS)?;
        let mut header = csv::StringRecord::from(["id", "family", "source"].as_slice());
        let mut record = csv::StringRecord::from(["", "own", "given by the user"].as_slice());
        let mut title = None;
        for (column, value) in COLUMNS.into_iter().zip(&given) {
            header.push_field(column);
            let empty = if matches!(column, "params_b" | "active_b") { "0" } else { "" };
            record.push_field(value.unwrap_or(empty));
            match (column, value) {
                (_, None) => {}
                ("title", Some(value)) => title = Some(decoded_title(value)?),
                (column, Some(value)) => check_value(column, value)?,
            }
        }

        let row = Row::alone(&header, &record);
        let mut model = Model::from_row(&row)
            .map_err(|error| refuse(format!("is no model: {}", error.into_reason())).allowed(listed()))?;
        model.architecture.check().map_err(&refuse)?;
        if model.seq_len == 0 {
            return Err(refuse("is trained at no tokens: seq_len is 0".to_string()));
        }
        model.count_parameters();
        model.title = title.unwrap_or_else(|| model.made_title());
        model.id = model.to_text();
        for (column, value) in COLUMNS.into_iter().zip(given) {
            let says = value.filter(|value| *value != "0" && !REDUNDANT.contains(&column));
            let known = model.cells().iter().any(|(cell, _)| *cell == column);
            if let (Some(value), false) = (says.filter(|_| column != "title"), known) {
                let what = "means nothing in this model: another column that it belongs to is missing";
                return Err(Problem::clause(Field::Model, format!("{column}={value}"), what));
            }
        }
        Ok(model)
    }

    /// The model as [`Model::own`] reads it; the same for equal models.
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
                let _ = write!(text, "{column}={given},");
            }
        }
        text.pop();
        text
    }

    /// A model that nobody named and whose parameters nobody counted.
    pub(crate) fn from_architecture(
        architecture: Architecture,
        seq_len: u32,
        title: Option<&str>,
        source: &str,
    ) -> Model {
        let mut model = Model {
            id: String::new(),
            title: String::new(),
            family: "own".to_string(),
            architecture,
            seq_len,
            params_b: 0.0,
            active_b: 0.0,
            source: source.to_string(),
        };
        model.count_parameters();
        let title = title.and_then(|title| checked_title(title).ok());
        model.title = title.unwrap_or_else(|| model.made_title());
        model.id = model.to_text();
        model
    }

    /// Counts the parameters that nobody gave.
    fn count_parameters(&mut self) {
        if self.params_b == 0.0 {
            self.params_b = self.architecture.parameters() / 1e9;
        }
        if self.active_b == 0.0 {
            self.active_b = self.architecture.active_parameters() / 1e9;
        }
    }

    fn made_title(&self) -> String {
        match self.params_b < 1.0 {
            true => format!("own model, {}M", significant(self.params_b * 1e3, 3)),
            false => format!("own model, {}B", significant(self.params_b, 3)),
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
        cells.extend(it.moe.as_ref().and_then(|moe| moe.latent).map(|latent| ("moe_latent", latent)));
        if let Some(window) = &it.attention.window {
            cells.extend([("window", window.tokens), ("window_layers", window.layers)]);
        }
        cells.extend(it.attention.sinks.then_some(("sinks", 1)));
        cells
    }
}

/// A column's value on its own: a number of its kind.
fn check_value(column: &str, value: &str) -> Result<(), Problem> {
    let refuse = |what: &str, allowed: &str| {
        Err(Problem::clause(Field::Model, format!("{column}={value}"), what).allowed(allowed))
    };
    match column {
        "params_b" | "active_b" => match value.parse::<f64>() {
            Ok(billions) if billions > 0.0 && billions < 1e9 => Ok(()),
            _ => refuse("is no number of parameters", "billions, a number above 0"),
        },
        "gated" | "tied_embeddings" if !matches!(value, "0" | "1") => refuse("is neither yes nor no", "1, 0"),
        _ if value.parse::<u32>().is_err() || value.starts_with('+') => {
            refuse("is no whole number in range", "digits, 0 or more")
        }
        _ => Ok(()),
    }
}

fn decoded_title(text: &str) -> Result<String, Problem> {
    // A bare & would end the only word that there is.
    let text = text.replace('&', "%26").replace('=', "%3D");
    let title = form_urlencoded::parse(text.as_bytes()).next().map(|(title, _)| title.into_owned());
    checked_title(&title.unwrap_or_default())
}

fn checked_title(title: &str) -> Result<String, Problem> {
    let title = title.trim();
    let refuse = |what: &str| Err(Problem::clause(Field::Model, title.escape_debug(), what));
    match title {
        "" => refuse("is no title"),
        _ if title.chars().count() > LONGEST_TITLE => {
            refuse(&format!("is too long for a title: {LONGEST_TITLE} characters at most"))
        }
        _ if title.chars().any(char::is_control) => refuse("holds a character that no title can show"),
        _ => Ok(title.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Attention, Mamba, Mlp, Moe, Window};
    use crate::catalog::Catalog;
    use proptest::prelude::*;

    const LLAMA: &str = "own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,\
                         gated=1,tied_embeddings=0,seq_len=8192";

    #[test]
    fn the_columns_are_those_of_the_file() {
        let file = include_str!("../../../data/models.csv");
        let header = file.lines().find(|line| !line.starts_with('#')).unwrap();
        let columns: Vec<&str> =
            header.split(',').filter(|column| !matches!(*column, "id" | "family" | "source")).collect();
        assert_eq!(columns, COLUMNS);
    }

    #[test]
    fn an_own_model_is_what_its_columns_say() {
        let own = Model::own(LLAMA).unwrap();
        let published = Catalog::embedded().model("llama3.1-8b").unwrap();
        assert_eq!(own.architecture, published.architecture);
        assert_eq!((own.id.as_str(), own.title.as_str()), (LLAMA, "own model, 8.03B"));
        assert!((own.params_b / published.params_b - 1.0).abs() < 1e-3);
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
        assert!(said("hidden=", "hiden=").contains("\"hiden=4096\" names no known column. Use hidden."));
        assert!(said("hidden=4096,", "").contains("is no model: there is no value in column hidden"));
        assert!(said("hidden=4096", "hidden=0").contains("needs hidden width of 1 or more"));
        assert!(said("hidden=4096", "hidden=4k").contains("\"hidden=4k\" is no whole number"));
        assert!(said("hidden=4096", "hidden=-1").contains("is no whole number"));
        assert!(said("hidden=4096", "hidden=99999999999").contains("is no whole number in range"));
        assert!(said("gated=1", "gated=yes").contains("Allowed: 1, 0."));
        assert!(said("gated=1", "gated=1,gated=1").contains("second time"));
        assert!(said("gated=1", "gated=").contains("has no value"));
        assert!(said("gated=1", "gated").contains("is no column=value. Use gated=…."));
        assert!(said("kv_heads=8", "kv_heads=5").contains("5 KV heads do not share evenly"));
        assert!(said("gated=1", "gated=1,moe_ffn=8").contains("\"moe_ffn=8\" means nothing in this model"));
        assert!(said("gated=1", "gated=1,window=8").contains("\"window=8\" means nothing"));
        assert!(said("seq_len=8192", "seq_len=0").contains("seq_len is 0"));
        assert!(said("own:", "").contains("does not start with own:"));
    }

    prop_compose! {
        /// Any model that can be, with blocks of any kinds.
        fn models()(
            counts in (1u32..50, 0u32..50, 0u32..50, 0u32..50),
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
            let attention = if hybrid { attention } else { layers };
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
                    window: window.map(|tokens| Window { tokens, layers: attention.div_ceil(2) }),
                    sinks: gated,
                },
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
                Model::from_architecture(architecture, seq_len, title.as_deref(), "given by the user");
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
