//! The arguments that Megatron-LM prints before the first step.
//!
//! Rank 0 prints each argument on a separate line, sorted by name, between two titles:
//!
//! ```text
//! ------------------------ arguments ------------------------
//!   add_bias_linear ................................. False
//!   world_size ...................................... 64
//! -------------------- end of arguments ---------------------
//! ```
//!
//! Only the arguments in [`KEYS`] are kept. If a log has several dumps, because a job was restarted into it, the last
//! counts. The vocabulary is padded later, and a separate line names the padded size.

use super::hit::Hit;
use super::text::{excerpt, plain};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) const OPENING: &[u8] = b"- arguments -";
pub(super) const CLOSING: &[u8] = b"- end of arguments -";
/// The end of a name and its leader. Megatron-LM fills names up to 48 characters, and the longest of [`KEYS`] has 36.
pub(super) const LEADER: &[u8] = b" ..........";
pub(super) const PADDED_VOCABULARY: &[u8] = b" > padded vocab (size:";

/// The longest value that is kept, in bytes. A list of layers is the longest one known.
const LONGEST_VALUE: usize = 1024;

/// The arguments that are kept, in alphabetical order.
const KEYS: [&str; 64] = [
    "account_for_loss_in_pipeline_split",
    "bf16",
    "context_parallel_size",
    "data_parallel_sharding_strategy",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "ffn_hidden_size",
    "fp16",
    "fp4",
    "fp4_format",
    "fp8",
    "fp8_format",
    "fp8_param_gather",
    "fp8_recipe",
    "global_batch_size",
    "grad_reduce_in_bf16",
    "group_query_attention",
    "hidden_size",
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
    "is_hybrid_model",
    "kv_channels",
    "kv_lora_rank",
    "micro_batch_size",
    "moe_ffn_hidden_size",
    "moe_latent_size",
    "moe_layer_freq",
    "moe_router_topk",
    "moe_shared_expert_intermediate_size",
    "moe_token_dispatcher_type",
    "mtp_num_layers",
    "multi_latent_attention",
    "num_attention_heads",
    "num_experts",
    "num_layers",
    "num_query_groups",
    "overlap_grad_reduce",
    "overlap_moe_expert_parallel_comm",
    "overlap_param_gather",
    "padded_vocab_size",
    "pipeline_model_parallel_layout",
    "pipeline_model_parallel_size",
    "q_lora_rank",
    "qk_head_dim",
    "qk_pos_emb_head_dim",
    "recompute_granularity",
    "recompute_method",
    "recompute_modules",
    "recompute_num_layers",
    "seq_length",
    "sequence_parallel",
    "swiglu",
    "tensor_model_parallel_size",
    "tp_comm_overlap",
    "train_iters",
    "untie_embeddings_and_output_weights",
    "use_distributed_optimizer",
    "use_megatron_fsdp",
    "v_head_dim",
    "virtual_pipeline_model_parallel_size",
    "vocab_size",
    "world_size",
];

/// Megatron-LM's arguments in a log, as printed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Returns whether the log has no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the arguments with their values as printed, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns a value as printed; none if it is absent or `None`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| *value != "None")
    }

    /// Returns a value that is a whole number.
    #[must_use]
    pub fn whole(&self, key: &str) -> Option<u32> {
        self.text(key)?.parse().ok()
    }

    /// Returns a value that is `True` or `False`.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.text(key)? {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }

    /// Returns whether an argument was printed as `None`.
    #[must_use]
    pub fn is_unset(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| value == "None")
    }
}

/// The arguments found so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ArgumentDump {
    arguments: Arguments,
    /// Whether the dump has not ended yet.
    is_open: bool,
}

impl ArgumentDump {
    /// Starts another dump, which replaces the one before.
    pub(super) fn open(&mut self) {
        *self = Self { is_open: true, ..Self::default() };
    }

    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// Adds the argument of a line in the dump. Torn and incomplete lines are ignored.
    pub(super) fn note(&mut self, hit: &Hit) {
        if !self.is_open || !hit.is_whole() {
            return;
        }
        let before = plain(hit.before());
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let start = before.len() - before.iter().rev().take_while(|byte| is_of_name(byte)).count();
        let Some(key) = KEYS.iter().find(|key| key.as_bytes() == &before[start..]) else { return };
        let rest = plain(hit.after());
        let dots = rest.iter().take_while(|byte| **byte == b'.').count();
        let Some(value) = rest[dots..].strip_prefix(b" ") else { return };
        if value.len() <= LONGEST_VALUE {
            self.arguments.0.insert((*key).to_owned(), excerpt(value, LONGEST_VALUE));
        }
    }

    /// Adds the padded vocabulary: ` > padded vocab (size: 128256) with 768 dummy tokens (new size: 129024)`.
    pub(super) fn note_vocabulary(&mut self, hit: &Hit) {
        let after = hit.after();
        let Some(at) = memmem::find(after, b"(new size: ") else { return };
        let size = &after[at + b"(new size: ".len()..];
        let digits = size.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !self.arguments.is_empty() && (1..10).contains(&digits) && size.get(digits) == Some(&b')') {
            let size = String::from_utf8_lossy(&size[..digits]).into_owned();
            self.arguments.0.insert("padded_vocab_size".to_owned(), size);
        }
    }

    /// Returns the arguments.
    pub(super) fn settle(self) -> Arguments {
        self.arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Parser, parse};
    use proptest::prelude::*;

    /// A dump as Megatron-LM prints it, each line after a prefix.
    fn dump(prefix: &str, arguments: &[(&str, &str)]) -> String {
        let mut text = format!("{prefix}------------------------ arguments ------------------------\n");
        for (key, value) in arguments {
            text += &format!("{prefix}  {key} {} {value}\n", ".".repeat(48 - key.len()));
        }
        text + prefix + "-------------------- end of arguments ---------------------\n"
    }

    #[test]
    fn the_keys_are_sorted_and_leave_room_for_the_leader() {
        assert!(KEYS.is_sorted());
        assert!(KEYS.iter().all(|key| 48 - key.len() >= LEADER.len() - 1));
    }

    #[test]
    fn a_dump_is_read_behind_any_prefix() {
        let said = [
            ("bf16", "True"),
            ("fp8", "None"),
            ("grad_reduce_in_bf16", "True"),
            ("no_such_argument", "1"),
            ("pipeline_model_parallel_layout", "Ettt|(tt|)*29,m|L"),
            ("recompute_modules", "['core_attn']"),
            ("untie_embeddings_and_output_weights", "True"),
            ("virtual_pipeline_model_parallel_size", "5"),
            ("world_size", "64"),
        ];
        for prefix in ["", "[default0]:", "2026-01-02 03:04:05.678 [INFO] ", "0: ", "\x1b[32m[rank0]\x1b[0m "]
        {
            let read = parse(dump(prefix, &said).as_bytes()).arguments;
            assert_eq!(read.whole("world_size"), Some(64), "{prefix}");
            assert_eq!(read.whole("virtual_pipeline_model_parallel_size"), Some(5));
            assert_eq!(read.flag("untie_embeddings_and_output_weights"), Some(true));
            assert_eq!(read.flag("grad_reduce_in_bf16"), Some(true));
            assert_eq!(read.text("pipeline_model_parallel_layout"), Some("Ettt|(tt|)*29,m|L"));
            assert_eq!((read.text("fp8"), read.is_unset("fp8")), (None, true));
            assert_eq!(read.text("recompute_modules"), Some("['core_attn']"));
            assert_eq!(read.iter().count(), 8);
        }
    }

    #[test]
    fn lines_outside_a_dump_and_torn_lines_say_nothing() {
        let line = |value: &str| format!("  world_size ...................................... {value}");
        let opening = "------------------------ arguments ------------------------\n";
        assert!(parse((line("64") + "\n").as_bytes()).arguments.is_empty());
        assert!(parse((dump("", &[]) + &line("64") + "\n").as_bytes()).arguments.is_empty());
        let unfinished = parse((opening.to_owned() + &line("6")).as_bytes());
        assert!(unfinished.arguments.is_empty());
        let glued = parse((opening.to_owned() + &line("6[rank3]: 4") + "\n").as_bytes());
        assert_eq!(glued.arguments.whole("world_size"), None);
        let joined = opening.to_owned() + &line("64") + "  num_layers ............... 80\n";
        let joined = parse(joined.as_bytes()).arguments;
        assert_eq!((joined.whole("world_size"), joined.whole("num_layers")), (None, Some(80)));
    }

    #[test]
    fn the_last_dump_counts() {
        let log =
            dump("", &[("num_layers", "80"), ("world_size", "64")]) + &dump("", &[("world_size", "32")]);
        let read = parse(log.as_bytes()).arguments;
        assert_eq!((read.whole("num_layers"), read.whole("world_size")), (None, Some(32)));
    }

    #[test]
    fn the_vocabulary_is_padded_after_the_dump() {
        let padding = " > padded vocab (size: 128256) with 768 dummy tokens (new size: 129024)\n";
        let log = dump("", &[("padded_vocab_size", "None"), ("world_size", "64")]) + padding;
        assert_eq!(parse(log.as_bytes()).arguments.whole("padded_vocab_size"), Some(129_024));
        assert!(parse(padding.as_bytes()).arguments.is_empty());
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter_and_nothing_is_invented(
            words in prop::collection::vec(prop::sample::select(&[
                "- arguments -", "- end of arguments -", "\n", "\r", "world_size", "num_layers", " ", " ..........",
                "..", "64", "None", "x", "[rank1]:", " > padded vocab (size:", "(new size: ", "9)", "\u{1b}[1m",
            ][..]), 0..60),
            sizes in prop::collection::vec(1..20_usize, 1..9),
        ) {
            let log = words.concat();
            let whole = parse(log.as_bytes());
            let (mut parser, mut rest) = (Parser::new(), log.as_bytes());
            for size in sizes.iter().cycle() {
                let (chunk, later) = rest.split_at((*size).min(rest.len()));
                if chunk.is_empty() {
                    break;
                }
                parser.feed(chunk);
                rest = later;
            }
            prop_assert_eq!(&parser.finish(), &whole);
            prop_assert!(whole.arguments.iter().all(|(key, _)| KEYS.contains(&key)));
        }
    }
}
