//! What the arguments of Megatron-LM switch on or off in the software that a prediction assumes.

use crate::log::Arguments;
use crate::stack::{Software, Stack, WeightStorage};

/// Returns a software with what a run's arguments switch on or off. What doesn't matter on the run's GPUs stays, so that the
/// software differs from the known one only if the run does.
pub(super) fn as_switched(stack: Stack, arguments: &Arguments) -> Software {
    let size = |key| arguments.whole(key).unwrap_or(1).max(1);
    let (tp, pp) = (size("tensor_model_parallel_size"), size("pipeline_model_parallel_size"));
    let mut own = *stack.properties();
    if tp > 1 {
        own.overlaps_tp = arguments.flag("tp_comm_overlap").unwrap_or(own.overlaps_tp);
        own.sequence_parallel = arguments.flag("sequence_parallel").unwrap_or(own.sequence_parallel);
    }
    // Context-parallel ranks exchange gradients, too.
    if size("world_size") > tp.saturating_mul(pp) {
        if let Some(shares) = arguments.flag("use_distributed_optimizer") {
            (own.shares_optimizer, own.shares_optimizer_step) = (shares, shares);
        }
        if let Some(overlaps_gradients) = arguments.flag("overlap_grad_reduce") {
            // Ranks that share the optimizer exchange weights as well, as many bytes as of gradients.
            let overlaps_weights =
                !own.shares_optimizer || arguments.flag("overlap_param_gather") == Some(true);
            own.overlaps_dp = overlaps_gradients && overlaps_weights;
        }
    }
    if arguments.text("num_experts").is_some() && size("expert_model_parallel_size") > 1 {
        // The flexible dispatcher is DeepEP or HybridEP.
        let dispatcher = arguments.text("moe_token_dispatcher_type");
        own.sends_once_per_domain = dispatcher.map_or(own.sends_once_per_domain, |name| name == "flex");
        let hides_experts = arguments.flag("overlap_moe_expert_parallel_comm");
        own.hides_experts = hides_experts.unwrap_or(own.hides_experts);
    }
    // Otherwise gradients are summed in FP32. How long their exchange takes is fitted to measured runs.
    if arguments.flag("grad_reduce_in_bf16") == Some(true) {
        own.gradient_bytes = own.gradient_bytes.min(2.0);
    }
    // Block scaling and FP4 keep the BF16 weights.
    let is_fp8 = ["fp8", "fp8_format"].iter().any(|key| arguments.text(key).is_some())
        && ["fp4", "fp4_format"].iter().all(|key| arguments.text(key).is_none())
        && arguments.text("fp8_recipe") != Some("blockwise");
    if is_fp8 && arguments.flag("fp8_param_gather") == Some(true) {
        own.weights = WeightStorage::Alone;
    }
    Software::new(stack, own)
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{LLAMA_70B, dump};
    use super::super::{Intake, Report, View};
    use super::*;
    use crate::field::Field;
    use crate::log::parse;
    use crate::spec::Spec;

    fn switched(changes: &[(&str, &str)]) -> String {
        let arguments = parse(dump(&LLAMA_70B, changes).as_bytes()).arguments;
        as_switched(Stack::MegatronLm014, &arguments).to_string()
    }

    #[test]
    fn arguments_switch_what_the_software_does() {
        assert_eq!(switched(&[]), "megatron-lm-0.14");
        let usual = [
            ("grad_reduce_in_bf16", "False"),
            ("overlap_grad_reduce", "False"),
            ("overlap_moe_expert_parallel_comm", "False"),
            ("overlap_param_gather", "False"),
            ("sequence_parallel", "True"),
            ("tp_comm_overlap", "False"),
            ("use_distributed_optimizer", "True"),
        ];
        assert_eq!(switched(&usual), "megatron-lm-0.14");
        for (changes, properties) in [
            (&[("tp_comm_overlap", "True")][..], "overlaps_tp=yes"),
            (&[("sequence_parallel", "False")], "sequence_parallel=no"),
            (&[("grad_reduce_in_bf16", "True")], "gradient_bytes=2"),
            (&[("overlap_grad_reduce", "True"), ("overlap_param_gather", "True")], "overlaps_dp=yes"),
            (
                &[("overlap_grad_reduce", "True"), ("use_distributed_optimizer", "False")],
                "overlaps_dp=yes,shares_optimizer=no,shares_optimizer_step=no",
            ),
        ] {
            assert_eq!(switched(changes), format!("megatron-lm-0.14:{properties}"));
        }
        let experts = [
            ("expert_model_parallel_size", "8"),
            ("moe_token_dispatcher_type", "flex"),
            ("num_experts", "64"),
            ("overlap_moe_expert_parallel_comm", "True"),
        ];
        assert_eq!(switched(&experts), "megatron-lm-0.14:sends_once_per_domain=yes,hides_experts=yes");
        let narrow = [("fp8", "hybrid"), ("fp8_param_gather", "True"), ("fp8_recipe", "tensorwise")];
        assert_eq!(switched(&narrow), "megatron-lm-0.14:weights=alone");
    }

    #[test]
    fn what_does_not_matter_for_the_layout_stays() {
        // Half of the weights' exchange is exposed, so the whole counts as exposed.
        assert_eq!(switched(&[("overlap_grad_reduce", "True")]), "megatron-lm-0.14");
        let one_rank = [("tensor_model_parallel_size", "1"), ("tp_comm_overlap", "True")];
        assert_eq!(switched(&one_rank), "megatron-lm-0.14");
        let one_replica =
            [("overlap_grad_reduce", "True"), ("overlap_param_gather", "True"), ("world_size", "16")];
        assert_eq!(switched(&one_replica), "megatron-lm-0.14");
        assert_eq!(switched(&[("moe_token_dispatcher_type", "flex")]), "megatron-lm-0.14");
        // BF16 runs and block scaling have BF16 weights.
        assert_eq!(switched(&[("fp8_param_gather", "True")]), "megatron-lm-0.14");
        let by_blocks = [("fp8", "e4m3"), ("fp8_param_gather", "True"), ("fp8_recipe", "blockwise")];
        assert_eq!(switched(&by_blocks), "megatron-lm-0.14");
    }

    #[test]
    fn a_run_is_predicted_with_what_its_arguments_switch() {
        let report = |changes: &[(&str, &str)]| {
            let mut intake = Intake::new("train.log", &Spec::default().with(Field::Gpu, "h100"));
            intake.feed(dump(&LLAMA_70B, changes).as_bytes());
            for step in 1..51 {
                let line = format!(
                    "iteration {step}/50 | consumed samples: {} | elapsed time per iteration (ms): 20000.0 | global \
                     batch size: 128 | lm loss: 1.2E+01 |\n",
                    step * 128
                );
                intake.feed(line.as_bytes());
            }
            Report::of(&intake.finish(), &View::default())
        };
        let [off, on] = ["False", "True"].map(|value| report(&[("tp_comm_overlap", value)]));
        assert_eq!(off.scenario.get(Field::Stack), Some("megatron-lm-0.14"));
        assert_eq!(on.scenario.get(Field::Stack), Some("megatron-lm-0.14:overlaps_tp=yes"));
        // The log still doesn't say which Megatron-LM it was.
        assert_eq!(on.assumed_software, Some(Stack::MegatronLm014));
        assert!(on.prediction.is_some() && on.prediction != off.prediction);
    }
}
