//! The shape of a model, from the arguments that Megatron-LM printed into the log.

use crate::architecture::{Architecture, Attention, AttentionKind, Mlp, Moe};
use crate::catalog::{Catalog, Model};
use crate::field::Field;
use crate::log::Arguments;
use crate::units::{group_digits, parse_count};
use std::borrow::Cow;

/// How far a vocabulary may differ from the model's, as a fraction. Megatron-LM pads it to a multiple of TP, and the
/// sizes of published models are padded, too.
const PADDING: f64 = 0.02;

/// A model's shape. Unprinted parts are unknown, except that a log without experts has none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelShape {
    pub(super) layers: u32,
    hidden: u32,
    heads: u32,
    kv_heads: Option<u32>,
    head_dim: Option<u32>,
    ffn: Option<u32>,
    vocab: Option<u32>,
    seq_len: Option<u32>,
    gated: Option<bool>,
    tied_embeddings: Option<bool>,
    latent_attention: Option<[u32; 5]>,
    experts: Option<Experts>,
    mtp_layers: u32,
    is_hybrid: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Experts {
    count: u32,
    top_k: u32,
    ffn: Option<u32>,
    shared_ffn: u32,
    latent: Option<u32>,
    /// The routed layers; none if their order is given in an unknown notation.
    layers: Option<u32>,
}

/// A catalog's models that have a shape.
pub(super) enum ShapeMatch {
    /// The model, with this shape's widths; its layers may be fewer, as in a proxy.
    One(Box<Cow<'static, Model>>),
    /// Several models that differ only in what the log does not contain.
    Several(Vec<&'static Model>),
    /// None, and the shape is too incomplete for a custom model.
    None,
}

impl ModelShape {
    /// Returns the shape; none if its layers, width or heads are unknown.
    pub(super) fn of(arguments: &Arguments) -> Option<Self> {
        let whole = |key| arguments.whole(key);
        let (layers, hidden) = (whole("num_layers")?, whole("hidden_size")?);
        let heads = whole("num_attention_heads")?;
        let kv_heads = match arguments.flag("group_query_attention") {
            Some(true) => whole("num_query_groups"),
            Some(false) => Some(heads),
            None => None,
        };
        let latent = arguments.flag("multi_latent_attention") == Some(true);
        let latent_attention = latent.then(|| {
            Some([
                whole("q_lora_rank").unwrap_or(0),
                whole("kv_lora_rank")?,
                whole("qk_head_dim")?,
                whole("qk_pos_emb_head_dim")?,
                whole("v_head_dim")?,
            ])
        });
        let ffn = whole("ffn_hidden_size");
        let experts = whole("num_experts").map(|count| Experts {
            count,
            top_k: whole("moe_router_topk").unwrap_or(2),
            ffn: whole("moe_ffn_hidden_size").or(ffn),
            shared_ffn: whole("moe_shared_expert_intermediate_size").unwrap_or(0),
            latent: whole("moe_latent_size"),
            layers: routed_layers(arguments.text("moe_layer_freq"), layers),
        });
        let lengths = Field::SeqLen.bounds();
        let has_pattern = ["hybrid_layer_pattern", "hybrid_override_pattern"];
        Some(Self {
            layers,
            hidden,
            heads,
            kv_heads,
            head_dim: whole("kv_channels"),
            ffn,
            vocab: whole("padded_vocab_size").or_else(|| whole("vocab_size")),
            seq_len: whole("seq_length").filter(|tokens| lengths.contains(f64::from(*tokens), parse_count)),
            gated: arguments.flag("swiglu"),
            tied_embeddings: arguments.flag("untie_embeddings_and_output_weights").map(|untied| !untied),
            latent_attention: latent_attention.flatten(),
            experts,
            mtp_layers: whole("mtp_num_layers").unwrap_or(0),
            is_hybrid: arguments.flag("is_hybrid_model") == Some(true)
                || has_pattern.iter().any(|key| arguments.text(key).is_some()),
        })
    }

    /// Returns the catalog's model of this shape, or else a custom model.
    pub(super) fn model(&self) -> ShapeMatch {
        let models = Catalog::embedded().models();
        let mut alike: Vec<&Model> =
            models.iter().filter(|model| self.differences(&model.architecture).is_empty()).collect();
        if alike.iter().any(|model| model.architecture.layers == self.layers) {
            alike.retain(|model| model.architecture.layers == self.layers);
        }
        match alike.as_slice() {
            [model] => ShapeMatch::One(Box::new(Cow::Borrowed(*model))),
            [] => self
                .own_model()
                .map_or(ShapeMatch::None, |model| ShapeMatch::One(Box::new(Cow::Owned(model)))),
            _ => ShapeMatch::Several(alike),
        }
    }

    /// Returns where an architecture differs from this shape, as `hidden_size 8,192 (not 16,384)`. The number of layers is
    /// not compared, because a proxy has another one.
    pub(super) fn differences(&self, model: &Architecture) -> Vec<String> {
        let mut found = Differences::default();
        found.number("hidden_size", Some(self.hidden), model.hidden);
        found.number("num_attention_heads", Some(self.heads), model.attention.heads);
        match (model.attention.kind.clone(), self.latent_attention) {
            (AttentionKind::Gqa { kv_heads, head_dim }, None) => {
                found.number("num_query_groups", self.kv_heads, kv_heads);
                found.number("kv_channels", self.head_dim, head_dim);
            }
            (AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head }, Some(told)) => {
                let names =
                    ["q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"];
                let known = [q_lora, kv_lora, qk_nope, qk_rope, v_head];
                for (name, (told, known)) in names.into_iter().zip(told.into_iter().zip(known)) {
                    found.number(name, Some(told), known);
                }
            }
            (_, told) => found.flag("multi_latent_attention", Some(told.is_some()), told.is_none()),
        }
        if let Some(mlp) = &model.mlp {
            found.number("ffn_hidden_size", self.ffn, mlp.ffn);
        }
        let gated = model.mlp.as_ref().map(|mlp| mlp.gated).or(model.moe.as_ref().map(|moe| moe.gated));
        found.flag("swiglu", self.gated, gated.unwrap_or(false));
        let (told, known) = (self.experts.as_ref(), model.moe.as_ref());
        let count = told.map_or(0, |told| told.count);
        found.number("num_experts", Some(count), known.map_or(0, |moe| moe.experts));
        if let (Some(told), Some(known)) = (told, known) {
            found.number("moe_router_topk", Some(told.top_k), known.top_k);
            found.number("moe_ffn_hidden_size", told.ffn, known.ffn);
            found.number("moe_shared_expert_intermediate_size", Some(told.shared_ffn), known.shared_ffn);
        }
        let untied = self.tied_embeddings.map(|tied| !tied);
        found.flag("untie_embeddings_and_output_weights", untied, !model.tied_embeddings);
        let near = |told: u32| (f64::from(told) / f64::from(model.vocab) - 1.0).abs() <= PADDING;
        found.number("vocab_size", self.vocab.filter(|told| !near(*told)), model.vocab);
        found.flag("is_hybrid_model", Some(self.is_hybrid), model.mamba.is_some());
        found.0
    }

    /// Returns a model of this shape; none if a part of it is unknown or it is a hybrid.
    fn own_model(&self) -> Option<Model> {
        let moe = match &self.experts {
            None => None,
            Some(experts) => Some(Moe {
                layers: experts.layers?,
                experts: experts.count,
                top_k: experts.top_k,
                ffn: experts.ffn?,
                shared_ffn: experts.shared_ffn,
                latent: experts.latent,
                gated: self.gated?,
            }),
        };
        let dense = self.layers.checked_sub(moe.as_ref().map_or(0, |moe| moe.layers))?;
        let mlp = match dense {
            0 => None,
            layers => Some(Mlp { layers, ffn: self.ffn?, gated: self.gated? }),
        };
        let kind = match self.latent_attention {
            Some([q_lora, kv_lora, qk_nope, qk_rope, v_head]) => {
                AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head }
            }
            None => {
                let head_dim = self.head_dim.or(self.hidden.checked_div(self.heads))?;
                AttentionKind::Gqa { kv_heads: self.kv_heads?, head_dim }
            }
        };
        let architecture = Architecture {
            layers: self.layers,
            hidden: self.hidden,
            vocab: self.vocab?,
            tied_embeddings: self.tied_embeddings?,
            attention: Attention {
                layers: self.layers,
                heads: self.heads,
                kind,
                window: None,
                output_gate: false,
                sinks: false,
            },
            linear: None,
            mlp,
            moe,
            mamba: None,
            mtp_layers: self.mtp_layers,
        };
        if self.is_hybrid || architecture.check().is_err() {
            return None;
        }
        Some(Model::from_architecture(architecture, [0.0; 2], self.seq_len?, None))
    }
}

/// Arguments that differ from a model.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn number(&mut self, argument: &str, told: Option<u32>, known: u32) {
        if let Some(told) = told.filter(|told| *told != known) {
            let [told, known] = [told, known].map(|value| group_digits(value.into()));
            self.0.push(format!("{argument} {told} (not {known})"));
        }
    }

    fn flag(&mut self, argument: &str, told: Option<bool>, known: bool) {
        let word = |on: bool| if on { "True" } else { "False" };
        if let Some(told) = told.filter(|told| *told != known) {
            self.0.push(format!("{argument} {} (not {})", word(told), word(known)));
        }
    }
}

/// Returns the number of routed layers: every layer (1), every n-th, or those with a 1 in a list.
fn routed_layers(frequency: Option<&str>, layers: u32) -> Option<u32> {
    let Some(frequency) = frequency else { return Some(layers) };
    if let Some(list) = frequency.strip_prefix('[').and_then(|list| list.strip_suffix(']')) {
        let cells: Vec<&str> = list.split(',').map(str::trim).collect();
        let is_list = cells.len() == layers as usize && cells.iter().all(|cell| matches!(*cell, "0" | "1"));
        return is_list.then(|| cells.iter().filter(|cell| **cell == "1").count() as u32);
    }
    match frequency.parse::<u32>().ok()? {
        0 => None,
        every => Some(layers.div_ceil(every)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::log::parse;

    /// The arguments of Llama 3.1 70B on 64 GPUs, as Megatron-LM prints them.
    pub(crate) const LLAMA_70B: [(&str, &str); 26] = [
        ("bf16", "True"),
        ("context_parallel_size", "1"),
        ("expert_model_parallel_size", "1"),
        ("ffn_hidden_size", "28672"),
        ("fp16", "False"),
        ("fp8", "None"),
        ("global_batch_size", "128"),
        ("group_query_attention", "True"),
        ("hidden_size", "8192"),
        ("kv_channels", "128"),
        ("micro_batch_size", "1"),
        ("num_attention_heads", "64"),
        ("num_experts", "None"),
        ("num_layers", "80"),
        ("num_query_groups", "8"),
        ("padded_vocab_size", "128512"),
        ("pipeline_model_parallel_size", "4"),
        ("recompute_granularity", "None"),
        ("seq_length", "8192"),
        ("swiglu", "True"),
        ("tensor_model_parallel_size", "4"),
        ("train_iters", "50"),
        ("untie_embeddings_and_output_weights", "True"),
        ("virtual_pipeline_model_parallel_size", "5"),
        ("vocab_size", "None"),
        ("world_size", "64"),
    ];

    /// The text of a dump with some values replaced or added.
    pub(crate) fn dump(base: &[(&str, &str)], changes: &[(&str, &str)]) -> String {
        let mut arguments: std::collections::BTreeMap<&str, &str> = base.iter().copied().collect();
        arguments.extend(changes.iter().copied());
        let line = |(key, value): (&&str, &&str)| format!("  {key} {} {value}\n", ".".repeat(48 - key.len()));
        format!(
            "------------------------ arguments ------------------------\n{}\
             -------------------- end of arguments ---------------------\n",
            arguments.iter().map(line).collect::<String>()
        )
    }

    fn shape(changes: &[(&str, &str)]) -> ModelShape {
        ModelShape::of(&parse(dump(&LLAMA_70B, changes).as_bytes()).arguments).unwrap()
    }

    fn found(changes: &[(&str, &str)]) -> String {
        match shape(changes).model() {
            ShapeMatch::One(model) => model.id.clone(),
            ShapeMatch::Several(models) => {
                models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>().join(" or ")
            }
            ShapeMatch::None => "none".into(),
        }
    }

    #[test]
    fn the_vocabulary_tells_models_of_equal_widths_apart() {
        assert_eq!(found(&[]), "llama3.1-70b");
        assert_eq!(found(&[("padded_vocab_size", "129024")]), "llama3.1-70b");
        assert_eq!(found(&[("padded_vocab_size", "32000")]), "llama2-70b");
        assert_eq!(found(&[("padded_vocab_size", "None")]), "llama2-70b or llama3.1-70b");
        assert_eq!(found(&[("num_layers", "16")]), "llama3.1-70b", "a proxy");
    }

    #[test]
    fn another_shape_is_a_model_of_its_own() {
        let own = found(&[("ffn_hidden_size", "30000")]);
        assert!(own.starts_with("own:layers=80,hidden=8192,ffn=30000,heads=64,kv_heads=8"), "{own}");
        assert_eq!(found(&[("ffn_hidden_size", "30000"), ("padded_vocab_size", "None")]), "none");
        assert_eq!(found(&[("is_hybrid_model", "True")]), "none");
    }

    #[test]
    fn every_published_transformer_is_recognised() {
        for model in Catalog::embedded().models() {
            let it = &model.architecture;
            if it.mamba.is_some() {
                continue;
            }
            let (mlp, moe) = (it.mlp.as_ref(), it.moe.as_ref());
            let mut arguments: Vec<(&str, String)> = vec![
                ("num_layers", it.layers.to_string()),
                ("hidden_size", it.hidden.to_string()),
                ("num_attention_heads", it.attention.heads.to_string()),
                ("padded_vocab_size", it.vocab.to_string()),
                (
                    "untie_embeddings_and_output_weights",
                    if it.tied_embeddings { "False" } else { "True" }.into(),
                ),
                ("num_experts", moe.map_or("None".into(), |moe| moe.experts.to_string())),
            ];
            let gated = mlp.map(|mlp| mlp.gated).or(moe.map(|moe| moe.gated)).unwrap();
            arguments.push(("swiglu", if gated { "True" } else { "False" }.into()));
            arguments.extend(mlp.map(|mlp| ("ffn_hidden_size", mlp.ffn.to_string())));
            match it.attention.kind {
                AttentionKind::Gqa { kv_heads, head_dim } => arguments.extend([
                    ("group_query_attention", "True".into()),
                    ("num_query_groups", kv_heads.to_string()),
                    ("kv_channels", head_dim.to_string()),
                ]),
                AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => arguments.extend([
                    ("multi_latent_attention", "True".into()),
                    ("q_lora_rank", q_lora.to_string()),
                    ("kv_lora_rank", kv_lora.to_string()),
                    ("qk_head_dim", qk_nope.to_string()),
                    ("qk_pos_emb_head_dim", qk_rope.to_string()),
                    ("v_head_dim", v_head.to_string()),
                ]),
            }
            if let Some(moe) = moe {
                arguments.extend([
                    ("moe_router_topk", moe.top_k.to_string()),
                    ("moe_ffn_hidden_size", moe.ffn.to_string()),
                    ("moe_shared_expert_intermediate_size", moe.shared_ffn.to_string()),
                ]);
            }
            let arguments: Vec<(&str, &str)> =
                arguments.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let shape = ModelShape::of(&parse(dump(&arguments, &[]).as_bytes()).arguments).unwrap();
            let alike = match shape.model() {
                ShapeMatch::One(found) => found.id == model.id,
                ShapeMatch::Several(models) => models.iter().any(|found| found.id == model.id),
                ShapeMatch::None => false,
            };
            assert!(alike, "{}", model.id);
        }
    }

    #[test]
    fn differences_name_the_argument_and_both_values() {
        let larger = &Catalog::embedded().model("llama3.1-405b").unwrap().architecture;
        assert_eq!(
            shape(&[]).differences(larger),
            [
                "hidden_size 8,192 (not 16,384)",
                "num_attention_heads 64 (not 128)",
                "ffn_hidden_size 28,672 (not 53,248)",
            ]
        );
        let routed = &Catalog::embedded().model("deepseek-v3").unwrap().architecture;
        let said = shape(&[]).differences(routed).join(", ");
        assert!(said.contains("multi_latent_attention False (not True)"), "{said}");
        assert!(said.contains("num_experts 0 (not 256)"), "{said}");
    }

    #[test]
    fn routed_layers_are_a_frequency_or_a_list() {
        assert_eq!(routed_layers(None, 4), Some(4));
        assert_eq!(routed_layers(Some("1"), 4), Some(4));
        assert_eq!(routed_layers(Some("2"), 5), Some(3));
        assert_eq!(routed_layers(Some("[0, 1, 1, 1]"), 4), Some(3));
        for odd in ["[0, 1]", "0", "x", "[", "[2, 1, 1, 1]"] {
            assert_eq!(routed_layers(Some(odd), 4), None, "{odd}");
        }
    }
}
