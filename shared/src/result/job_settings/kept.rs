//! Which settings of the files beside a log are kept: those that identify a run or affect its speed, and no secrets.

use super::SettingsFile;

/// The settings of Megatron-Bridge, in alphabetical order.
const BRIDGE: [&str; 78] = [
    "comm_overlap.overlap_grad_reduce",
    "comm_overlap.overlap_moe_expert_parallel_comm",
    "comm_overlap.overlap_param_gather",
    "comm_overlap.tp_comm_overlap",
    "dataset.seq_length",
    "dataset.sequence_length",
    "ddp.average_in_collective",
    "ddp.bucket_size",
    "ddp.data_parallel_sharding_strategy",
    "ddp.fp8_param_gather",
    "ddp.grad_reduce_in_fp32",
    "ddp.nccl_ub",
    "ddp.overlap_grad_reduce",
    "ddp.overlap_param_gather",
    "ddp.use_distributed_optimizer",
    "ddp.use_megatron_fsdp",
    "dist.use_megatron_fsdp",
    "dist.use_torch_fsdp2",
    "mixed_precision",
    "mixed_precision.bf16",
    "mixed_precision.fp4",
    "mixed_precision.fp4_recipe",
    "mixed_precision.fp8",
    "mixed_precision.fp8_param_gather",
    "mixed_precision.fp8_recipe",
    "mixed_precision.grad_reduce_in_fp32",
    "model.account_for_embedding_in_pipeline_split",
    "model.account_for_loss_in_pipeline_split",
    "model.bf16",
    "model.context_parallel_size",
    "model.cp_comm_type",
    "model.cpu_offloading",
    "model.cpu_offloading_num_layers",
    "model.cuda_graph_impl",
    "model.cuda_graph_scope",
    "model.expert_model_parallel_size",
    "model.expert_tensor_parallel_size",
    "model.fp16",
    "model.fp4",
    "model.fp4_recipe",
    "model.fp8",
    "model.fp8_recipe",
    "model.gradient_accumulation_fusion",
    "model.hidden_size",
    "model.moe_enable_deepep",
    "model.moe_flex_dispatcher_backend",
    "model.moe_router_force_load_balancing",
    "model.moe_token_dispatcher_type",
    "model.num_layers",
    "model.num_layers_in_first_pipeline_stage",
    "model.num_layers_in_last_pipeline_stage",
    "model.num_moe_experts",
    "model.overlap_moe_expert_parallel_comm",
    "model.overlap_p2p_comm",
    "model.pipeline_model_parallel_size",
    "model.recompute_granularity",
    "model.recompute_method",
    "model.recompute_modules",
    "model.recompute_num_layers",
    "model.seq_length",
    "model.sequence_parallel",
    "model.tensor_model_parallel_size",
    "model.tp_comm_overlap",
    "model.use_te_rng_tracker",
    "model.use_transformer_engine_op_fuser",
    "model.virtual_pipeline_model_parallel_size",
    "model.vocab_size",
    "optimizer.optimizer",
    "optimizer.optimizer_cpu_offload",
    "optimizer.overlap_param_gather",
    "optimizer.overlap_param_gather_with_optimizer_step",
    "optimizer.use_distributed_optimizer",
    "optimizer.use_precision_aware_optimizer",
    "profiling.use_nsys_profiler",
    "train.global_batch_size",
    "train.manual_gc",
    "train.micro_batch_size",
    "train.train_iters",
];

/// The settings of llmb-run, in alphabetical order. It also lists overrides: see [`OVERRIDDEN_VARIABLES`] and [`MODEL_OVERRIDES`].
const LLMB: [&str; 17] = [
    "cluster_info.cluster_name",
    "cluster_info.gpus_per_node",
    "container_info.images",
    "job_config.profile_enabled",
    "job_config.proxy",
    "job_config.strong_scaling",
    "job_info.launcher_type",
    "model_info.dtype",
    "model_info.gpu_type",
    "model_info.model_name",
    "model_info.model_size",
    "model_info.scale",
    "workload_info.framework",
    "workload_info.fw_version",
    "workload_info.gsw_version",
    "workload_info.synthetic_dataset",
    "workload_info.workload_type",
];

/// What the names of overridden environment variables begin with in llmb-run's file.
const VARIABLE_OVERRIDES: &str = "job_config.env_overrides.";

/// What the names of overridden recipe variables, such as `tp`, begin with in llmb-run's file.
const MODEL_OVERRIDES: &str = "job_config.model_overrides.";

/// The variables of launch scripts that are kept if llmb-run overrides them, beside those of [`VARIABLES`].
const OVERRIDDEN_VARIABLES: [&str; 7] = [
    "CONFIG_OVERRIDES",
    "CONFIG_VARIANT",
    "ENABLE_PCT_BINDING",
    "ENABLE_VBOOST",
    "FP8_RECIPE",
    "MAX_STEPS",
    "TP_COMM_OVERLAP",
];

/// The environment variables that are kept, where `*` stands for any text.
const VARIABLES: [&str; 22] = [
    "*_COMMIT",
    "*_LAYERNORM_SM_MARGIN",
    "*_VERSION",
    "CUBLAS*",
    "CUDA_*",
    "CUDNN_*",
    "FI_*",
    "KMP_*",
    "MKL_*",
    "NCCL_*",
    "NUM_OF_HYBRID_EP_*",
    "NVLINK_DOMAIN_SIZE",
    "NVSHMEM_*",
    "NVTE_*",
    "OMP_*",
    "PYTORCH_*",
    "SHARP_*",
    "TORCH*",
    "TRITON_*",
    "UB_*",
    "UCX_*",
    "USE_MNNVL",
];

/// What the names of variables end with that say where something is. That differs from job to job, and is nobody's business.
const PLACES: [&str; 9] =
    ["_ADDR", "_DEBUG_FILE", "_DIR", "_DIRECTORY", "_HOME", "_PATH", "_PORT", "_ROOT", "_TEMP_FILE"];

/// The parts of a name, or of a list of overrides, that may be or have a secret.
const SECRET: [&str; 6] = ["AUTH", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN"];

/// The longest name of a variable or of an override.
const LONGEST_NAME: usize = 100;

/// Returns whether a setting of a file is kept.
pub(super) fn is_kept(file: SettingsFile, name: &str, value: &str) -> bool {
    let is_listed = match file {
        SettingsFile::BridgeConfig => BRIDGE.contains(&name),
        SettingsFile::LlmbConfig => LLMB.contains(&name) || is_override(name, value),
        SettingsFile::Environment => is_variable(name) && !has_secret(value),
    };
    is_listed && !has_password(value)
}

/// Returns whether an override of llmb-run is kept. One of them can be a list of others.
fn is_override(name: &str, value: &str) -> bool {
    let variable = name.strip_prefix(VARIABLE_OVERRIDES);
    let is_known = |name: &str| OVERRIDDEN_VARIABLES.contains(&name) || is_variable(name);
    (variable.is_some_and(is_known) || name.strip_prefix(MODEL_OVERRIDES).is_some_and(is_harmless))
        && !has_secret(value)
}

/// Returns whether an environment variable is kept.
fn is_variable(name: &str) -> bool {
    let fits = |pattern: &&str| match pattern.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
        None => name == *pattern,
    };
    is_harmless(name) && VARIABLES.iter().any(fits) && !PLACES.iter().any(|place| name.ends_with(place))
}

/// Returns whether a name is an identifier without a word for a secret.
fn is_harmless(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_plain) && !has_secret(name)
}

fn has_secret(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    SECRET.iter().any(|word| text.contains(word))
}

/// Returns whether a text has an address with a password, such as `https://me:sesame@alpha`.
fn has_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '#', ' ']).next().unwrap_or_default();
        host.split_once('@').is_some_and(|(login, _)| login.contains(':'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_sorted_and_unique() {
        assert!(BRIDGE.is_sorted_by(|one, next| one < next));
        assert!(LLMB.is_sorted_by(|one, next| one < next));
        assert!(OVERRIDDEN_VARIABLES.is_sorted_by(|one, next| one < next));
        assert!(VARIABLES.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn secrets_and_places_are_not_kept() {
        for (name, is_kept) in [
            ("NCCL_ALGO", true),
            ("TORCH_NCCL_HIGH_PRIORITY", true),
            ("MCORE_COMMIT", true),
            ("USE_MNNVL", true),
            ("USE_MNNVL_2", false),
            ("_VERSION", true),
            ("VERSION", false),
            ("HOME", false),
            ("HF_TOKEN", false),
            ("NCCL_Api_Key", false),
            ("TORCH_HOME", false),
            ("NCCL_DEBUG_FILE", false),
            ("WANDB_API_KEY_VERSION", false),
        ] {
            assert_eq!(is_variable(name), is_kept, "{name}");
        }
        for (name, value, is_kept) in [
            ("job_config.env_overrides.NCCL_ALGO", "Ring", true),
            ("job_config.env_overrides.FP8_RECIPE", "mx", true),
            ("job_config.env_overrides.HF_TOKEN", "hf_sesame", false),
            ("job_config.env_overrides.USER", "me", false),
            ("job_config.env_overrides.CONFIG_OVERRIDES", "-E HF_TOKEN=hf_sesame", false),
            ("job_config.env_overrides.CONFIG_OVERRIDES", "train.manual_gc=true", true),
            ("job_config.model_overrides.seq_len", "8192", true),
            ("job_config.model_overrides.", "1", false),
            ("cluster_info.slurm_account", "me", false),
            ("cluster_info.cluster_name", "alpha", true),
        ] {
            assert_eq!(is_override(name, value) || LLMB.contains(&name), is_kept, "{name}");
        }
    }

    #[test]
    fn values_with_secrets_are_not_kept() {
        let (environment, llmb) = (SettingsFile::Environment, SettingsFile::LlmbConfig);
        for (file, name, value, expected) in [
            (environment, "PYTORCH_INDEX", "https://alpha/simple", true),
            (environment, "PYTORCH_INDEX", "https://alpha/simple?token=sesame", false),
            (environment, "PYTORCH_INDEX", "https://me:sesame@alpha/simple", false),
            (llmb, "container_info.images", "docker://alpha:5000#nemo@sha256:0", true),
            (llmb, "container_info.images", "docker://me:sesame@alpha#nemo", false),
            (llmb, "job_config.env_overrides.CONFIG_OVERRIDES", "a=http://me:sesame@alpha", false),
        ] {
            assert_eq!(is_kept(file, name, value), expected, "{name} {value}");
        }
    }
}
