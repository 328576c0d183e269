//! Typical invocations: exit code, stdout and stderr of each, as a golden file. Half of them are mistakes.

use crate::compare::log;
use crate::snapshots::GoldenFiles;
use std::fs;
use std::process::Command;
use tempfile::TempDir;
use trainplan_tests::{binary, run_of};

const CAMPAIGN: &str = r#"version = 1
name = "nightly"
cluster = "alpha"

[defaults]
repeats = 3

[[run]]
name = "large"
recipe = "llama3.1-405b/h100/fp8/512@25.04"
after = ["small"]
env = { HF_TOKEN = { env = "HF_TOKEN" } }

[[run]]
name = "small"
recipe = "llama3.1-8b/h100/bf16/8@25.04"
repeats = 1
env = { HF_TOKEN = { env = "HF_TOKEN" } }
"#;

const CLUSTERS: &str = r#"version = 1

[cluster.alpha]
ssh = "alpha-login"
account = "research"
partition = "batch"
gpu = "h100"

[cluster.alpha.release."25.04"]
install-path = "/lustre/llmb"
recipe-dir = { "llama3.1" = "/lustre/recipes" }
"#;

const LLAMA: &str = r#"{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16"}"#;

const MEASURED: &str = "\
id,model,gpu,precision,framework,gpus,seq_len,tp,pp,cp,mbs,gbs,step_time_s
known,llama3.1-8b,H100,BF16,NeMo2,8,8192,1,1,2,1,128,12
unknown,my-other,H100,BF16,NeMo2,8,8192,1,1,2,1,128,12
uneven,llama3.1-8b,H100,BF16,NeMo2,8,8192,3,1,2,1,128,12
";

/// The arguments of Llama 3.1 70B on 64 GPUs, as Megatron-LM prints them.
const ARGUMENTS: &str = "\
bf16=True consumed_train_samples=0 context_parallel_size=1 expert_model_parallel_size=1 expert_tensor_parallel_size=4 \
ffn_hidden_size=28672 fp16=False fp8=None fp8_recipe=delayed global_batch_size=128 group_query_attention=True \
hidden_size=8192 kv_channels=128 micro_batch_size=1 num_attention_heads=64 num_experts=None num_layers=80 \
num_query_groups=8 padded_vocab_size=128512 pipeline_model_parallel_size=4 recompute_granularity=None seq_length=8192 \
swiglu=True tensor_model_parallel_size=4 train_iters=50 untie_embeddings_and_output_weights=True \
virtual_pipeline_model_parallel_size=5 vocab_size=None world_size=64";

/// A log of Megatron-LM with its arguments, of fifty steps around `ms` milliseconds.
pub(crate) fn megatron_lm(ms: u32) -> String {
    let argument = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap();
        format!("[default0]:  {key} {} {value}\n", ".".repeat(48 - key.len()))
    };
    let step = |step: u32| {
        let time = f64::from(ms) * f64::from(1000 + step * 7919 % 13) / 1e3;
        format!(
            "[default7]: [2026-10-05 10:49:15] iteration {step:8}/      50 | consumed samples: {:12} | elapsed time per \
             iteration (ms): {time:.1} | learning rate: 3.0E-06 | global batch size:   128 | lm loss: 1.2E+01 | loss \
             scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
            step * 128
        )
    };
    format!(
        "using world size: 64, data-parallel size: 4, tensor-model-parallel size: 4\n\
         [default0]:------------------------ arguments ------------------------\n{}\
         [default0]:-------------------- end of arguments ---------------------\n{}",
        ARGUMENTS.split(' ').map(argument).collect::<String>(),
        (1..51).map(step).collect::<String>()
    )
}

/// A folder with the files that the invocations name.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let own = "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"";
        let too_large = "model = \"llama3.1-70b\"\ngpus = 8\ngbs = 8\nstyle = \"megatron-lm\"";
        let steps = |count: usize| {
            log(128, 9400).lines().take(count).map(|line| format!("{line}\n")).collect::<String>()
        };
        for (name, text) in [
            ("nightly.campaign.toml", CAMPAIGN.to_string()),
            ("large.campaign.toml", CAMPAIGN.replace(own, too_large)),
            ("unknown-key.campaign.toml", CAMPAIGN.replace("repeats = 3", "repeat = 3")),
            ("unknown-recipe.campaign.toml", CAMPAIGN.replace("llama3.1-405b/", "llama3.1-450b/")),
            ("unknown-run.campaign.toml", CAMPAIGN.replace("after = [\"small\"]", "after = [\"smal\"]")),
            ("unknown-cluster.campaign.toml", CAMPAIGN.replace("\"alpha\"", "\"alhpa\"")),
            ("newer.campaign.toml", CAMPAIGN.replace("version = 1", "version = 7")),
            ("not-toml.campaign.toml", CAMPAIGN.replace("repeats = 3", "repeats = 3 4")),
            ("open-secret.campaign.toml", CAMPAIGN.replace("{ env = \"HF_TOKEN\" }", "\"hunter2\"")),
            ("uneven.campaign.toml", CAMPAIGN.replace("repeats = 1", "tp = 8")),
            (
                "control-character.campaign.toml",
                CAMPAIGN.replace("repeats = 1", "account = \"re\\u001bsearch\""),
            ),
            ("slurm-params.campaign.toml", CAMPAIGN.replace("repeats = 1", "slurm-params = \"account=x\"")),
            (
                "upload-text.campaign.toml",
                CAMPAIGN.replace("[defaults]", "upload = \"https://results.example\"\n\n[defaults]"),
            ),
            ("clusters.toml", CLUSTERS.to_string()),
            ("bad-clusters.toml", CLUSTERS.replace("account", "acount").replace("alpha-login", "-oX=y")),
            ("config.json", LLAMA.to_string()),
            ("unknown/config.json", LLAMA.replace("llama", "lama")),
            ("broken/config.json", LLAMA[..80].to_string()),
            ("measured.csv", MEASURED.to_string()),
            ("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out", log(128, 9400)),
            ("log-acct.pretrain_llama3.1_8b_fp8_8_2_0.out", log(128, 9870)),
            ("log-acct.pretrain_llama3.1_8b_fp8_16_3_0.out", log(256, 9400)),
            ("log-acct.pretrain_llama3.1_8b_fp8_8_4_0.out", steps(20)),
            ("before.log", megatron_lm(18_900)),
            ("after.log", megatron_lm(18_200)),
            ("train.log", log(128, 9400)),
            ("empty.log", String::new()),
            ("notes.log", "nothing about training\n".to_string()),
        ] {
            let path = place.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    /// Runs a command line in the folder, with nothing of this machine in its environment.
    fn run(&self, line: &str) -> String {
        let home = self.0.path();
        let output = Command::new(binary())
            .args(line.split(' ').filter(|word| !word.is_empty()))
            .current_dir(home)
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin")
            .envs([("COLUMNS", "100"), ("NO_COLOR", "1"), ("TZ", "UTC"), ("LC_ALL", "C")])
            .output()
            .unwrap();
        let run = run_of(&output);
        let code = run.code.map_or("none".into(), |code| code.to_string());
        let text =
            format!("$ trainplan {line}\n{}--- stderr\n{}--- exit code {code}\n", run.stdout, run.stderr);
        text.replace(&home.display().to_string(), "[DIR]")
    }
}

/// Names and command lines. They run in this order, in one folder.
const INVOCATIONS: [(&str, &str); LINES] = [
    ("no-command", ""),
    ("unknown-command", "recipe"),
    ("recipes", "recipes --model llama3.1-405b --format table"),
    ("recipes-csv", "recipes --model llama3.1-405b --gpu h100 --format csv"),
    ("recipes-unknown-model", "recipes --model llama3-405b"),
    ("recipes-unknown-gpu", "recipes --gpu h1000"),
    ("recipes-unknown-flag", "recipes --gpuz h100"),
    ("recipes-unknown-format", "recipes --format xml"),
    ("flops", "flops --model llama3.1-8b --format table"),
    ("flops-config", "flops --model config.json --format table"),
    ("flops-unknown-family", "flops --model unknown/config.json"),
    ("flops-broken-config", "flops --model broken/config.json"),
    ("flops-no-file", "flops --model none/config.json"),
    ("flops-unknown-convention", "flops --model llama3.1-8b --convention half"),
    ("metrics", "metrics --recipe llama3.1-405b/h100/fp8/512 --tokens 15T --format table"),
    ("metrics-step-time", "metrics --recipe llama3.1-8b/h100/fp8/8@25.04 --step-time 9.5 --format table"),
    ("metrics-bad-step-time", "metrics --recipe llama3.1-8b/h100/fp8/8@25.04 --step-time 0"),
    ("metrics-bad-tokens", "metrics --recipe llama3.1-8b/h100/fp8/8@25.04 --tokens 10zillion"),
    (
        "search",
        "search --model llama3.1-70b --gpu h100,b200 --tokens 10T --deadline 60d --price h100=2.95 --format table",
    ),
    (
        "search-published",
        "search --model llama3.1-405b --gpu h100 --gpus 512,1024 --gbs 512 --dtype fp8 --top 3 --format table",
    ),
    (
        "search-own-model",
        "search --model config.json --gpu h100:hbm_gb=96 --batch-tokens 2M..4M --budget 10K --format table",
    ),
    (
        "search-markdown",
        "search --model llama3.1-405b --gpu h100 --gpus 512,1024 --gbs 512 --dtype fp8 --top 2 --format markdown",
    ),
    ("search-too-slow", "search --model llama3.1-70b --tokens 10T --deadline 5d --top 1 --format table"),
    (
        "search-too-expensive",
        "search --model llama3.1-70b --gpu gh200,b200 --gpus 256 --tokens 10T --budget 1M --top 1 --format table",
    ),
    (
        "search-no-layout",
        "search --model llama3.1-405b --gpu h100 --gpus 512 --lock tp=1,pp=1,fsdp=off --format table",
    ),
    ("search-wasteful", "search --model llama3.1-8b --gpu h100 --gpus 16384 --top 1 --format csv"),
    (
        "search-mistakes",
        "search --gpu h1000 --gpus few --dtype fp9 --deadline soon --objective best --lock tq=8 --headroom much --price free",
    ),
    ("search-not-on-gpu", "search --model llama3.1-8b --gpu a100,b200 --dtype fp8 --stack nemo-1"),
    ("estimate", "estimate --recipe llama3.1-405b/h100/fp8/512@25.04 --format table"),
    ("estimate-changed", "estimate --recipe llama3.1-405b/h100/fp8/512@25.04 --tp 4 --pp 16 --format table"),
    ("estimate-does-not-fit", "estimate --model llama3.1-70b --gpu h100 --gpus 8 --gbs 8 --format table"),
    (
        "estimate-own-price",
        "estimate --model llama3.1-8b --gpu b300 --gpus 64 --gbs 512 --price 3.10..4 --failure-rate 5e-5 --format table",
    ),
    (
        "estimate-bad-price",
        "estimate --recipe llama3.1-405b/h100/fp8/512@25.04 --price h10=2.95 --overhead all",
    ),
    ("estimate-unknown-model", "estimate --model llama-70b --gpus 8 --gbs 8"),
    ("estimate-unknown-recipe", "estimate --recipe llama3.1-405b/h100/fp8/500"),
    ("estimate-missing", "estimate --model llama3.1-8b"),
    ("estimate-not-a-number", "estimate --model llama3.1-8b --gpu h100 --gpus many --gbs 128"),
    (
        "estimate-uneven-gpus",
        "estimate --model llama3.1-405b --gpu h100 --gpus 1200 --tp 4 --pp 8 --gbs 1200",
    ),
    ("estimate-uneven-batch", "estimate --model llama3.1-8b --gpu h100 --gpus 8 --gbs 100 --mbs 3"),
    ("estimate-uneven-heads", "estimate --model llama3.1-8b --gpu h100 --gpus 9 --tp 3 --gbs 9"),
    ("estimate-fp8-on-a100", "estimate --model llama3.1-8b --gpu a100-80gb --gpus 8 --gbs 128 --dtype fp8"),
    ("estimate-all-errors", "estimate --model llama3.1-70b --gpu h100 --gpus 60 --tp 8"),
    ("estimate-uneven-tp", "estimate --model llama3.1-70b --gpu h100 --gpus 56 --tp 7"),
    (
        "estimate-unknown-stack",
        "estimate --model llama3.1-8b --gpu h100 --gpus 8 --gbs 128 --stack megatron-bridge-25.07",
    ),
    ("launch", "launch --recipe llama3.1-405b/h100/fp8/512@25.04"),
    ("launch-megatron-lm", "launch --model llama3.1-8b --gpu h100 --gpus 8 --gbs 128 --style megatron-lm"),
    ("launch-unknown-release", "launch --recipe llama3.1-405b/h100/fp8/512@25.04 --release 25.4"),
    ("launch-unknown-style", "launch --recipe llama3.1-405b/h100/fp8/512@25.04 --style bash"),
    (
        "launch-not-published",
        "launch --model qwen3-235b-a22b --gpu h100 --gpus 256 --gbs 2048 --release 25.12",
    ),
    ("validate", "validate measured.csv --format table"),
    ("validate-no-file", "validate none.csv"),
    ("calibrate-no-file", "calibrate none.csv"),
    ("parse", "parse log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out --format table"),
    ("parse-incomplete", "parse log-acct.pretrain_llama3.1_8b_fp8_8_4_0.out --format table"),
    ("parse-unknown-run", "parse train.log --format table"),
    ("parse-arguments", "parse before.log --format table"),
    ("parse-arguments-gpu", "parse before.log --gpu h100 --format table"),
    (
        "parse-arguments-other-recipe",
        "parse before.log --recipe llama3.1-405b/h100/fp8/512@25.04 --format table",
    ),
    ("parse-one-step", "parse log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out --window last --format table"),
    ("compare-arguments", "compare before.log after.log --format table"),
    ("parse-nothing", "parse empty.log notes.log none.log --format table"),
    ("parse-bad-window", "parse train.log --window 40-30"),
    ("parse-save", "parse log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out --save results --format table"),
    ("import", "import results --data-dir data --format table"),
    ("import-not-a-result", "import train.log none.json --data-dir data --format table"),
    ("results", "results list --data-dir data --format table"),
    ("results-unknown-run", "results delete 00000000 --data-dir data"),
    ("results-no-store", "results list --data-dir none"),
    ("reparse-unknown-run", "reparse 00000000 --data-dir data"),
    ("check", "check --data-dir data --format table"),
    ("check-nothing", "check --data-dir data --recipe llama3.1-70b --format table"),
    ("check-bad-threshold", "check --data-dir data --sigma many"),
    ("export", "export exported --data-dir data"),
    (
        "compare",
        "compare log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out log-acct.pretrain_llama3.1_8b_fp8_8_2_0.out --format table",
    ),
    (
        "compare-not-alike",
        "compare log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out log-acct.pretrain_llama3.1_8b_fp8_16_3_0.out --format table",
    ),
    ("compare-nothing", "compare empty.log notes.log --format table"),
    ("compare-no-file", "compare train.log none.log"),
    ("token-create", "token create --name nightly --scope upload --data-dir served --format table"),
    ("token-unknown-scope", "token create --name nightly --scope write --data-dir served"),
    ("token-bad-expiry", "token create --name nightly --scope upload --expires tomorrow --data-dir served"),
    ("token-unknown", "token revoke none --data-dir served"),
    ("serve-bad-address", "serve --listen nonsense"),
    ("serve-bad-database", "serve --listen 127.0.0.1:0 --data-dir served --database-url mysql://here"),
    ("upload-nothing", "upload"),
    ("upload-no-token", "upload results --to https://results.example --data-dir data"),
    ("upload-bad-server", "upload results --to results.example --data-dir data"),
    ("run-dry", "run nightly.campaign.toml --clusters clusters.toml --dry-run --format table"),
    ("run-does-not-fit", "run large.campaign.toml --clusters clusters.toml"),
    ("run-no-profiles", "run nightly.campaign.toml"),
    ("run-no-secret", "run nightly.campaign.toml --clusters clusters.toml --data-dir data"),
    ("run-no-campaign", "run none.campaign.toml --clusters clusters.toml"),
    ("run-bad-profiles", "run unknown-key.campaign.toml --clusters bad-clusters.toml"),
    ("run-unknown-recipe", "run unknown-recipe.campaign.toml --clusters clusters.toml"),
    ("run-unknown-run", "run unknown-run.campaign.toml --clusters clusters.toml"),
    ("run-unknown-cluster", "run unknown-cluster.campaign.toml --clusters clusters.toml"),
    ("run-newer-campaign", "run newer.campaign.toml --clusters clusters.toml"),
    ("run-not-toml", "run not-toml.campaign.toml --clusters clusters.toml"),
    ("run-open-secret", "run open-secret.campaign.toml --clusters clusters.toml"),
    ("run-uneven", "run uneven.campaign.toml --clusters clusters.toml"),
    (
        "run-control-character",
        "run control-character.campaign.toml --clusters clusters.toml --dry-run --format table",
    ),
    ("run-slurm-params", "run slurm-params.campaign.toml --clusters clusters.toml --dry-run --format table"),
    ("run-upload-text", "run upload-text.campaign.toml --clusters clusters.toml"),
    ("run-bad-interval", "run nightly.campaign.toml --interval 0"),
    ("jobs-nothing", "jobs list --data-dir data --format table"),
    ("jobs-unknown-run", "jobs show large --data-dir data"),
    ("jobs-failures-nothing", "jobs failures --data-dir data --format table"),
    ("jobs-failures-unknown-cluster", "jobs failures --data-dir data --cluster alpha"),
    ("jobs-nothing-to-follow", "jobs follow --data-dir data"),
    ("jobs-unknown-campaign", "jobs follow weekly --data-dir data"),
    ("connect-nowhere", "connect"),
    ("connect-bad-time", "connect --cluster alpha --clusters clusters.toml --for 8x"),
    ("doctor-unknown-cluster", "doctor --cluster beta --clusters clusters.toml"),
    ("completions-unknown-shell", "completions tcsh"),
    ("licenses-conflict", "licenses --text --format json"),
];

const LINES: usize = 114;

#[test]
fn golden_invocations() {
    let place = Place::new();
    let mut golden = GoldenFiles::new("invocations");
    for (name, line) in INVOCATIONS {
        golden.check(name, &place.run(line));
    }
    golden.finish();
}
