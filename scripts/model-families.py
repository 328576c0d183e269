#!/usr/bin/env python3
"""Writes shared/tests/data/model_families.jsonl: each causal language model of transformers, with its parameters.

For each model_type, the default config is instantiated on the meta device, which allocates no memory, and its parameters
are counted. shared/tests/model_families.rs compares our own count with them. `make test` does not run this script.

    python3 -m venv /tmp/hf && /tmp/hf/bin/pip install torch transformers==5.23.0
    /tmp/hf/bin/python scripts/model-families.py > shared/tests/data/model_families.jsonl
"""

import json
import sys
import warnings

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

# Fields without which the default config is not a model.
CHANGES = {
    # By default a token visits no routed expert; these are DeepSeek-V2-Lite's.
    "deepseek_v2": {"num_experts_per_tok": 6},
    # Dots.llm1's experts, of which the default has none.
    "dots1": {
        "n_routed_experts": 128,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "first_k_dense_replace": 1,
        "hidden_size": 4096,
    },
    # The default width of a head is the hidden width / heads, rounded down from 42.67.
    "glm4_moe": {"head_dim": 128},
    # No layer has attention by default.
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "granitemoehybrid": {"layer_types": (["mamba"] * 9 + ["attention"] + ["mamba"] * 6) * 2},
    # The default has no width of a head, or no experts.
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128, "num_experts": 16},
    "ministral": {"head_dim": 128},
    "nemotron": {"head_dim": 128, "num_key_value_heads": 48},
}

# Further configs, whose fields choose what the default does not have.
VARIANTS = [
    ("llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 8, "tie_word_embeddings": True}),
    ("bloom", {"n_layer": 24, "hidden_size": 1024, "n_head": 16}),
    ("cohere", {"use_qk_norm": True}),
    ("deepseek_v3", {"q_lora_rank": None, "num_hidden_layers": 27}),
    ("ernie4_5", {"use_bias": True}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 8, "num_attention_heads": 64, "hidden_size": 4096}),
    ("falcon_h1", {"mamba_rms_norm": True}),
    ("glm4_moe", {"head_dim": 128, "use_qk_norm": True, "attention_bias": True}),
    ("gpt_bigcode", {"multi_query": False}),
    ("granitemoehybrid", {"num_local_experts": 0, "layer_types": ["mamba", "attention"] * 16}),
    ("granitemoehybrid", {"num_local_experts": 0, "layer_types": ["attention"] * 32}),
    ("olmoe", {"num_key_value_heads": 4}),
    ("opt", {"hidden_size": 2048, "word_embed_proj_dim": 2048, "ffn_dim": 8192, "num_attention_heads": 32}),
    ("phi", {"num_key_value_heads": 8, "tie_word_embeddings": True}),
    ("qwen2_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [1, 3]}),
    ("qwen3_moe", {"head_dim": 128, "tie_word_embeddings": True}),
    ("stablelm", {"use_qkv_bias": True}),
    ("starcoder2", {"use_bias": False}),
]

# Parts of a multimodal model that are not its language model.
OTHER_MODALITIES = ("vision", "visual", "audio", "image", "video", "speech", "multi_modal", "projector", "extend", "codec")

# Names of the fields with the routed experts that exist and those that a token visits.
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k")


def language_config(config):
    """The config of the language model within a multimodal one."""
    return config.get_text_config(decoder=True)


def first(config, names):
    """The value of the first field that the config has."""
    return next((value for name in names if isinstance(value := getattr(config, name, None), int)), None)


def routed_share(config):
    """The share of the routed experts that a token visits."""
    config = getattr(language_config(config), "ffn_config", None) or language_config(config)
    experts, visited = first(config, EXPERTS), first(config, TOP_K)
    return visited / experts if experts and visited else 1.0


def is_routed(name):
    """Whether a parameter belongs to the routed experts."""
    return ".experts." in name and "shared" not in name


def counted(model, config):
    """The parameters of the language model, and those that a token visits."""
    sizes = {
        name: parameter.numel()
        for name, parameter in model.named_parameters()
        if not any(part in name for part in OTHER_MODALITIES)
    }
    routed = sum(size for name, size in sizes.items() if is_routed(name))
    total = sum(sizes.values())
    return total, round(total - routed * (1 - routed_share(config))), routed


def family(model_type, changes):
    """The line of one model_type with some fields changed."""
    line = {"model_type": model_type}
    config = None
    try:
        config = CONFIG_MAPPING[model_type](**changes)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        total, active, routed = counted(model, config)
        line |= {"parameters": total} | ({"active": active} if routed else {})
    except Exception as error:  # Some defaults contradict themselves; the reason goes into the file.
        line |= {"error": str(error).splitlines()[0][:120] if str(error) else type(error).__name__}
    return line | {"config": json.loads(config.to_json_string(use_diff=True)) if config else {"model_type": model_type}}


def main():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    print(f"# Causal language models of transformers {transformers.__version__}, with default configs and some others, on the")
    print("# meta device, from scripts/model-families.py: parameters of the language model, and those that a token visits.")
    defaults = [(name, CHANGES.get(name, {})) for name in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)]
    for model_type, changes in defaults + VARIANTS:
        print(json.dumps(family(model_type, changes), separators=(",", ":")), flush=True)
        print(model_type, file=sys.stderr)


if __name__ == "__main__":
    main()
