//! Measured training runs, which the estimate is fitted to and compared with.

pub(crate) mod address;
#[cfg(test)]
mod links;
mod machine;
mod published;
mod row;
mod scenario;

pub use row::{Measurement, MeasurementUse, Outcome};
pub use scenario::MeasuredScenario;

use crate::data_file::read_with;
use crate::stack::Software;
use std::sync::LazyLock;

/// Returns the embedded measurements.
pub fn embedded() -> &'static [Measurement] {
    static EMBEDDED: LazyLock<Vec<Measurement>> = LazyLock::new(|| {
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        parse(include_str!("../../data/measurements.csv"), None)
            .expect("the embedded measurements are well formed")
    });
    &EMBEDDED
}

/// Parses a file with the columns of `measurements.csv`; columns that would be empty may be missing. `own` is the software
/// of rows whose framework is `own`.
///
/// # Errors
/// The text is not a CSV table. A row that can't be predicted is not an error; its scenario has the reason.
pub fn parse(text: &str, own: Option<Software>) -> Result<Vec<Measurement>, String> {
    read_with("measurements", text, |row| Measurement::from_row(row, own)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Modules, Recompute, TrainingOptions};
    use crate::precision::Dtype;
    use crate::stack::Stack;

    const HEAD: &str = "model,gpu,precision,framework,gpus,seq_len,tp,pp,cp,ep,mbs,gbs,recompute,knobs,use,layers,\
                        hidden,heads,kv_heads,ffn,vocab,experts,topk,moe_ffn,step_time_s\n";

    /// Reads a row with those columns.
    fn row(cells: &str) -> Measurement {
        parse(&format!("{HEAD}{cells}\n"), None).unwrap().remove(0)
    }

    fn scenario(cells: &str) -> MeasuredScenario {
        *row(cells).scenario.unwrap()
    }

    #[test]
    fn every_row_for_fitting_is_a_scenario() {
        let rows = embedded();
        assert_eq!(rows.len(), 3415);
        for row in rows.iter().filter(|row| row.is_for_fitting()) {
            assert!(row.scenario.is_ok(), "{}: {}", row.id, row.scenario.as_ref().unwrap_err());
        }
    }

    #[test]
    fn collections_name_frameworks_and_precisions_in_their_own_ways() {
        let of = |gpu: &str, precision: &str, framework: &str| {
            let read = scenario(&format!(
                "llama3.1-8b,{gpu},{precision},{framework},8,4096,1,1,1,1,1,8,,,fit,,,,,,,,,,1"
            ));
            (read.gpu.id, read.dtype, read.options.software.known())
        };
        for (gpu, precision, framework, read) in [
            ("A800-80GB", "BF16", "Megatron-Core 0.6.0", ("a800", Dtype::Bf16, Stack::MegatronCore)),
            (
                "A100-80GB",
                "FP16 (O2)",
                "PaddlePaddle 2.5.1 (PaddleNLP)",
                ("a100", Dtype::Bf16, Stack::PaddleNlp),
            ),
            (
                "H800-80GB",
                "FP8(blockwise)",
                "FlagScale (Megatron)",
                ("h800", Dtype::Fp8Block, Stack::MegatronCore),
            ),
            (
                "GB200",
                "FP8(mxfp8)",
                "Megatron-Bridge (NeMo 26.06.00)",
                ("gb200", Dtype::Mxfp8, Stack::Bridge2606),
            ),
            ("GB200", "FP4", "MLPerf submission (NeMo)", ("gb200", Dtype::Nvfp4, Stack::MlPerf)),
            (
                "GH200-96GB",
                "BF16",
                "not stated (PyTorch DDP/FSDP)",
                ("gh200-96gb", Dtype::Bf16, Stack::Pytorch),
            ),
        ] {
            let (id, dtype, stack) = read;
            assert_eq!(of(gpu, precision, framework), (id.to_string(), dtype, Some(stack)), "{framework}");
        }
    }

    #[test]
    fn a_row_describes_a_mixture_of_experts() {
        let read = |knobs: &str| {
            scenario(&format!(
                "moe:proxy,H100,BF16,Megatron-LM CI,8,1024,2,1,1,2,1,8,,{knobs},small,12,512,8,8,2048,50000,8,2,1024,1"
            ))
        };
        let plain = read("transformer-impl=local");
        let moe = plain.architecture.moe.as_ref().unwrap();
        assert_eq!((moe.layers, moe.experts, moe.top_k, moe.ffn, moe.shared_ffn), (12, 8, 2, 1024, 0));
        assert!(plain.architecture.mlp.is_none() && !moe.gated && plain.architecture.tied_embeddings);
        // Megatron-LM divides experts like the rest by default, and the sequence only if a flag says so.
        assert_eq!((plain.layout.expert_tp(), plain.options.sequence_parallel), (2, Some(false)));
        let told = read(
            "transformer-impl=local;expert-tensor-parallel-size=1;sequence-parallel;swiglu;\
             moe-shared-expert-intermediate-size=256;untie-embeddings-and-output-weights",
        );
        let moe = told.architecture.moe.as_ref().unwrap();
        assert_eq!((moe.gated, moe.shared_ffn, told.architecture.tied_embeddings), (true, 256, false));
        assert_eq!((told.layout.expert_tp(), told.options.sequence_parallel), (1, Some(true)));
    }

    #[test]
    fn a_row_that_can_t_be_described_says_why() {
        let reason = |model: &str, knobs: &str, usage: &str| {
            row(&format!(
                "{model},H100,BF16,Megatron-LM CI,8,1024,1,1,1,1,1,8,,{knobs},{usage},12,512,8,8,2048,50000,,,,1"
            ))
            .scenario
            .unwrap_err()
        };
        assert_eq!(
            reason("t5:small", "", "small"),
            "The columns can't describe a model with an encoder and a decoder."
        );
        assert_eq!(
            reason("gpt:mla", "multi-latent-attention", "small"),
            "The columns can't describe a model with multi-latent-attention."
        );
        assert_eq!(reason("gpt:layer", "", "kernel"), "The row measures a layer, not a training step.");
    }

    /// Returns the options of an embedded row.
    fn options(id: &str) -> TrainingOptions {
        embedded().iter().find(|row| row.id == id).unwrap().scenario.as_ref().unwrap().options
    }

    #[test]
    fn a_run_of_a_published_recipe_has_the_recipe_s_settings() {
        // DeepSeek-V3 on GB200 in MXFP8: 26.06 recomputes another module than 26.04.01, and overlaps the exchange between experts.
        let (earlier, later) = (options("r0088"), options("r0001"));
        assert_eq!(earlier.modules, Modules { mlp: true, ..Modules::default() });
        assert_eq!((earlier.switches.hidden_experts, earlier.switches.graphs), (Some(false), Some(true)));
        assert_eq!(later.modules, Modules { mla_up_proj: true, ..Modules::default() });
        assert_eq!((later.switches.hidden_experts, later.switches.graphs), (Some(true), Some(true)));
        assert!(later.sends_once_per_domain() && later.overlaps_tp());
        // Qwen3 235B on H100 sends each copy of a token, and waits for tensor parallelism.
        let qwen = options("r0105");
        assert!(!qwen.sends_once_per_domain() && !qwen.overlaps_tp());
        // Nemotron 3 Super on H100 recomputes attention and the experts. The row says so itself.
        let super_120b = options("mc00016");
        assert_eq!(super_120b.recompute, Recompute::Selective);
        assert!(super_120b.modules.moe && super_120b.modules.layernorm && super_120b.modules.moe_act);
        // A row that names other modules than the recipe keeps them.
        let norm_and_act = Modules { layernorm: true, moe_act: true, ..Modules::default() };
        assert_eq!(options("r0851").modules, norm_and_act);
    }

    #[test]
    fn a_known_model_keeps_the_width_of_its_heads() {
        // The row repeats what the catalog has: 64 heads of 128, in a model that is 4096 wide.
        let read = scenario(
            "qwen3-235b-a22b,H800-80GB,BF16,Megatron-Core (Pai),256,4096,2,8,1,32,1,2048,selective:moe_act,DeepEP,fit,\
             94,4096,64,4,12288,151936,128,8,1536,25",
        );
        let model = crate::catalog::Catalog::embedded().model("qwen3-235b-a22b").unwrap();
        assert_eq!(read.architecture, model.architecture);
        assert!(read.options.modules.moe_act && read.options.recompute == crate::options::Recompute::None);
        // DeepEP sends a token once to each node; nothing else differs from Megatron-Core.
        let software = read.options.software;
        assert_eq!((software.base(), software.known()), (Stack::MegatronCore, None));
        assert!(software.properties().sends_once_per_domain);
    }
}
