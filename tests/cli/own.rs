//! A user's own model and GPU.

use crate::{json, refusal};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use trainplan_tests::trainplan;

const LLAMA: &str = r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 8192, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}"#;

const OWN: &str = "own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,\
                   tied_embeddings=0,seq_len=8192";

fn file(content: impl AsRef<[u8]>) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("config.json");
    fs::write(&path, content).unwrap();
    (folder, path.to_str().unwrap().to_string())
}

#[test]
fn a_config_json_counts_like_the_published_model() {
    let (folder, path) = file(LLAMA);
    let published = json(&["flops", "--model", "llama3.1-8b", "--seq-len", "8192"]);
    for model in [path.as_str(), folder.path().to_str().unwrap(), OWN] {
        let own = json(&["flops", "--model", model, "--seq-len", "8192"]);
        assert_eq!(own["model_flops_per_sequence"], published["model_flops_per_sequence"], "{model}");
        // A file's parameters include norms.
        assert!(own["model"].as_str().unwrap().starts_with(OWN), "{}", own["model"]);
        assert!((own["parameters"]["total"].as_f64().unwrap() / 8.03e9 - 1.0).abs() < 1e-3, "{model}");
    }
    let of_file = json(&["flops", "--model", &path]);
    assert_eq!(of_file["parameters"]["total"], 8_030_261_248.0);
    let run = trainplan(["flops", "--model", &path, "--format", "table"]);
    assert!(
        run.stdout.starts_with("custom model, 8.03B (8.03B parameters), 32 layers, 8192 tokens"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("head_dim assumed: 128"), "{}", run.stderr);
    assert!(run.stderr.contains(OWN), "{}", run.stderr);
}

#[test]
fn metrics_take_an_own_model_on_an_own_gpu() {
    let (_folder, path) = file(LLAMA);
    let metrics = |gpu: &str| {
        json(&[
            "metrics",
            "--model",
            &path,
            "--gpu",
            gpu,
            "--gpus",
            "8",
            "--gbs",
            "128",
            "--step-time",
            "12.27",
        ])
    };
    let (known, faster) = (metrics("h100"), metrics("h100:bf16_tflops=1978"));
    assert_eq!((known["peak_tflops"].as_f64(), faster["peak_tflops"].as_f64()), (Some(989.0), Some(1978.0)));
    assert_eq!(known["mfu"].as_f64().unwrap(), 2.0 * faster["mfu"].as_f64().unwrap());
    let roomier = metrics("H100-80GB:hbm_gb=96,hbm_tbps=2.4");
    assert_eq!(roomier["mfu"], known["mfu"]);
}

#[test]
fn a_recipe_can_take_an_own_model() {
    let change =
        ["metrics", "--recipe", "llama3.1-8b/h100/fp8/8@25.04", "--model", OWN, "--step-time", "12.39"];
    let own = json(&change);
    assert!(own["recipe"].is_null() && own["mfu"].is_f64(), "{own}");
    let gpu = ["metrics", "--recipe", "llama3.1-8b/h100/fp8/8@25.04", "--gpu", "h100:hbm_gb=96"];
    assert!(
        refusal(&gpu).contains("No step time is published for this scenario"),
        "another GPU has no published step"
    );
}

#[test]
fn a_log_can_be_of_an_own_model_on_an_own_gpu() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/log/nemo2");
    let arguments = [
        "parse",
        log,
        "--model",
        OWN,
        "--gpu",
        "h100:hbm_gb=96",
        "--gpus",
        "8",
        "--gbs",
        "128",
        "--dtype",
        "fp8",
    ];
    let run = trainplan(arguments.iter().chain(&["--window", "last", "--format", "json"]));
    let rows: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(rows[0]["tokens_per_s"].is_f64() && rows[0]["mfu"].is_f64(), "{}", run.stdout);
    assert_eq!((&rows[0]["scenario"]["model"], rows[0]["peak_tflops"].as_f64()), (&OWN.into(), Some(1979.0)));
}

#[test]
fn ignored_fields_are_noted() {
    let (_folder, path) = file(LLAMA.replacen('{', r#"{"index_topk": 2048, "#, 1));
    let run = trainplan(["flops", "--model", &path]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stderr.contains("Ignored field (may affect the result): index_topk = 2048"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_invalid_file_is_refused_with_the_reason() {
    let said = |content: &[u8]| {
        let (_folder, path) = file(content);
        refusal(&["flops", "--model", &path])
    };
    assert!(said(b"").contains("The file is not valid JSON: "));
    assert!(said(b"{\"model_type\": \"llama\xff\"}").contains("it is not UTF-8 text"));
    assert!(said(LLAMA.replace("4096", "4096.5").as_bytes()).contains("hidden_size is 4096.5"));
    assert!(
        said(LLAMA.replace("\"hidden_size\": 4096,", "").as_bytes()).contains("The file has no hidden_size")
    );
    assert!(said(LLAMA.replace(": 8,", ": 7,").as_bytes()).contains("among 7 KV heads"));
    assert!(said(LLAMA.replace("\"llama\"", "\"rwkv\"").as_bytes()).contains("\"rwkv\" is not supported"));
    assert!(said(LLAMA.replace("\"llama\"", "\"lama\"").as_bytes()).contains("Did you mean \"llama\"?"));
    assert!(said(&vec![b' '; 5 << 20]).contains("larger than 4 MiB"));
    let missing = refusal(&["flops", "--model", "nowhere/config.json"]);
    assert!(
        missing.contains("--model nowhere/config.json: The file can't be read: No such file"),
        "{missing}"
    );
    // A text that is not a path is read as a name.
    assert!(refusal(&["flops", "--model", "nowhere"]).contains("Unknown model \"nowhere\""));
}

#[test]
fn a_named_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("config.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let said = refusal(&["flops", "--model", pipe.to_str().unwrap()]);
    assert!(said.contains("The file can't be read: it is not a regular file."), "{said}");
}

#[test]
fn a_text_that_is_no_model_or_gpu_says_why() {
    let model = |from: &str, to: &str| refusal(&["flops", "--model", &OWN.replace(from, to)]);
    assert!(model("hidden=", "hiden=").contains("Did you mean hidden?"));
    assert!(model("hidden=4096,", "").contains("lacks hidden. Add hidden=4096"));
    assert!(model("heads=32", "heads=30").contains("30 heads, which can't be divided among 8 KV heads"));
    let gpu = |gpu: &str| refusal(&["metrics", "--model", OWN, "--gpu", gpu, "--gpus", "8", "--gbs", "128"]);
    assert!(gpu("h10:hbm_gb=96").contains("Did you mean h100?"));
    assert!(gpu("h100:hbm=96").contains("Did you mean hbm_gb?"));
    assert!(gpu("h100:hbm_gb=-1").contains("must be a number from 4 to 4000"));
}

#[test]
fn another_unit_is_refused() {
    let metrics = ["metrics", "--recipe", "llama3.1-8b/h100/fp8/8@25.04"];
    let said = |more: &[&str]| refusal(&[&metrics[..], more].concat());
    for (gpu, range) in
        [("h100:hbm_tbps=3350", "from 0.1 to 100 TB/s"), ("h100:hbm_gb=80000", "from 4 to 4000 GiB")]
    {
        let said = said(&["--gpu", gpu]);
        assert!(said.contains(range), "{said}");
    }
    let range = "--gemm-tflops must be from 20 to 989 TFLOPS, the dense BF16 peak of the H100, not ";
    for tflops in ["0.7", "1200"] {
        let said = said(&["--gemm-tflops", tflops]);
        assert!(said.contains(&format!("{range}{tflops}.")), "{said}");
    }
    let search = ["search", "--model", "llama3.1-8b", "--gpu", "h100,b200", "--gemm-tflops", "1200"];
    let said = refusal(&search);
    assert!(said.contains(range) && !said.contains("B200"), "{said}");
}
