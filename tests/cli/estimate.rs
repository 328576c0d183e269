//! `trainplan estimate` through the binary.

use crate::{csv, json, refusal};
use serde_json::Value;
use trainplan_tests::trainplan;

const RECIPE: [&str; 3] = ["estimate", "--recipe", "llama3.1-405b/h100/fp8/512@25.04"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RECIPE[..], more].concat()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn every_field_of_the_output_is_there_and_adds_up() {
    let estimate = json(&with(&["--tokens", "15T"]));
    for range in ["step_time_s", "time_to_train_days"] {
        let [low, mid, high] = ["low", "mid", "high"].map(|end| number(&estimate[range][end]));
        assert!(0.0 < low && low < mid && mid < high, "{range}");
    }
    let step_time_s = number(&estimate["step_time_s"]["mid"]);
    let parts: f64 = estimate["breakdown"].as_object().unwrap().values().map(number).sum();
    assert!(number(&estimate["breakdown"]["matmul"]) > 0.0);
    assert!((parts / step_time_s - 1.0).abs() < 1e-9);
    let (modelled_s, correction) =
        (number(&estimate["basis"]["modelled_s"]), number(&estimate["basis"]["correction"]));
    let correction_s = number(&estimate["breakdown"]["correction"]);
    assert!((correction_s - modelled_s * (correction - 1.0)).abs() < 1e-9);
    let days = 15e12 / number(&estimate["tokens_per_s"]) / 86_400.0;
    assert!((days / number(&estimate["time_to_train_days"]["mid"]) - 1.0).abs() < 1e-9);
    let per_gpu = number(&estimate["tokens_per_s"]) / 512.0;
    assert!((per_gpu / number(&estimate["tokens_per_s_per_gpu"]) - 1.0).abs() < 1e-9);

    let memory = &estimate["memory"];
    let held: f64 = ["weights", "gradients", "optimizer", "activations", "other"]
        .map(|part| number(&memory[part]))
        .iter()
        .sum();
    assert!((held / number(&memory["total_bytes"]) - 1.0).abs() < 1e-9);
    let left = number(&memory["capacity_bytes"]) - number(&memory["reserved_bytes"]) - held;
    assert!((left - number(&memory["margin_bytes"])).abs() < 1.0);
    let stages = memory["stages"].as_array().unwrap();
    let of = |stage: &Value| stage.as_object().unwrap().values().map(number).sum::<f64>();
    let fullest = stages.iter().map(of).fold(0.0, f64::max);
    assert_eq!(stages.len(), 8);
    assert_eq!(of(&stages[memory["stage"].as_u64().unwrap() as usize]), fullest);

    assert_eq!((&estimate["fits"], &estimate["convention"]), (&true.into(), &"recipe".into()));
    assert!(number(&estimate["mfu"]) > 0.0 && number(&estimate["peak_tflops"]) == 1979.0);
    let none = Value::Array(Vec::new());
    assert_eq!((&estimate["warnings"], &estimate["remedies"]), (&none, &none));
    let basis = &estimate["basis"];
    assert_eq!(basis["kind"], "published");
    assert!(number(&basis["modelled_s"]) > 0.0 && number(&basis["correction"]) > 0.0);
    let nearest = &basis["anchors"][0];
    assert!(
        nearest["what"].as_str().unwrap().contains("Llama 3.1 405B on 512 H100")
            && nearest["likeness"].is_f64()
    );
    let run = &nearest["runs"][0];
    assert_eq!((&run["release"], &run["step_time_s"]), (&"DGX Cloud recipes 25.04".into(), &12.37.into()));
    // 256 sequences of 8192 tokens on 512 GPUs.
    assert!((number(&run["tokens_per_s_per_gpu"]) / (4096.0 / 12.37) - 1.0).abs() < 1e-4);
    let document = "https://github.com/NVIDIA/dgxc-benchmarking/blob/v25.04/llama3.1/README.md";
    assert_eq!(run["url"], document);
    assert!(run["held_out_error"].is_f64());
    let scenario = &estimate["scenario"];
    let said = ["model", "gpu", "dtype", "gpus", "gbs"].map(|field| scenario[field].clone());
    assert_eq!(said, ["llama3.1-405b".into(), "h100".into(), "fp8".into(), 512.into(), Value::from(256)]);
    assert_eq!((&scenario["layout"]["tp"], &scenario["options"]["fsdp"]), (&8.into(), &false.into()));
}

#[test]
fn the_whole_run_has_a_range_of_days_and_a_cost_with_its_source() {
    let estimate = json(&with(&["--tokens", "15T"]));
    let run = &estimate["whole_run"];
    let ends = |value: &Value| ["low", "high"].map(|end| number(&value[end]));
    let [low, high] = ends(&run["days"]);
    let days = &estimate["time_to_train_days"];
    assert!(low > number(&days["low"]) && high > number(&days["high"]));
    let [worst, best] = ends(&run["goodput"]);
    assert!(0.8 < worst && worst < best && best < 1.0);
    assert!((number(&run["time"]["low"]["days"]) * best / number(&days["low"]) - 1.0).abs() < 1e-9);
    assert!(run["failure_rate_source"].as_str().unwrap().contains("Llama 3 405B"));
    let costs = run["costs"].as_array().unwrap();
    let forms: Vec<_> = costs.iter().map(|cost| cost["price"]["source"]["assumed"]["form"].clone()).collect();
    assert_eq!(forms, ["owned", "reserved", "on-demand"]);
    for cost in costs {
        let [low, high] = ends(&cost["total"]);
        assert!(0.0 < low && low < high);
    }
    assert!(run["explain"].as_array().unwrap().len() > 10);
    // 512 GPUs of 1.73 kW.
    let hours = number(&run["days"]["high"]) * 24.0;
    assert!((number(&run["energy"]["mwh"]["high"]) / (hours * 512.0 * 1.73 / 1000.0) - 1.0).abs() < 1e-9);
}

#[test]
fn own_numbers_replace_what_is_assumed() {
    let flags = [
        "--price",
        "2",
        "--currency",
        "EUR",
        "--failure-rate",
        "0",
        "--save-time",
        "0",
        "--spare-nodes",
        "0",
    ];
    let estimate = json(&with(&flags));
    let run = &estimate["whole_run"];
    assert_eq!((&run["currency"], &run["costs"][0]["price"]["source"]), (&"EUR".into(), &"yours".into()));
    let hours = number(&estimate["time_to_train_days"]["high"]) * 24.0 * 512.0;
    assert!((number(&run["costs"][0]["total"]["high"]) / (hours * 2.0) - 1.0).abs() < 1e-9);
    assert_eq!(
        json(&with(&["--layers", "16", "--pp", "1", "--vp", "1"]))["whole_run"],
        Value::Null,
        "a proxy"
    );
    let flags = ["--price", "cheap", "--spare-nodes", "900", "--gpus", "many"];
    let text = refusal(&with(&flags));
    for flag in ["--price must be", "--spare-nodes must be", "--gpus must be"] {
        assert!(text.contains(flag), "{flag}: {text}");
    }
}

#[test]
fn a_run_that_never_ends_says_so_in_the_place_of_figures() {
    let endless = with(&["--failure-rate", "1"]);
    let run = trainplan([&endless[..], &["--format", "table"]].concat());
    let why = "so the run never ends. Lower --failure-rate (published: 1.97e-5..1.2e-4) or --restart-time.";
    assert!(
        run.stderr.contains("A job on 512 GPUs fails every 7.03 s") && run.stderr.contains(why),
        "{}",
        run.stderr
    );
    for line in ["days for 1T tokens", "days with failures", "energy"] {
        let line = run.stdout.lines().find(|text| text.trim_start().starts_with(line)).unwrap();
        assert!(line.contains('∞'), "{line}");
    }
    let run = &json(&endless)["whole_run"];
    assert_eq!((&run["expected_days"], run["goodput"]["high"].as_f64()), (&Value::Null, Some(0.0)));
    let search =
        ["search", "--model", "llama3.1-405b", "--gpu", "h100", "--gpus", "512", "--failure-rate", "1"];
    assert!(refusal(&search).contains("a restart takes 600 s, so the run never ends. Lower --failure-rate"));
}

#[test]
fn the_published_measurement_is_the_one_that_recipes_prints() {
    let estimate = json(&RECIPE);
    let recipes = json(&["recipes", "--model", "llama3.1-405b", "--gpus", "512", "--dtype", "fp8"]);
    assert_eq!(estimate["recipe"], recipes[0]["id"]);
    assert_eq!(estimate["baseline"], recipes[0]["baseline"]);
    let off = number(&estimate["step_time_s"]["mid"]) / 12.37 - 1.0;
    assert!((off - number(&estimate["difference_from_baseline"])).abs() < 1e-9);
}

#[test]
fn every_published_recipe_is_predicted_near_its_measurement() {
    for recipe in json(&["recipes", "--measured"]).as_array().unwrap() {
        let published = number(&recipe["baseline"]["step_time_s"]);
        let id = recipe["id"].as_str().unwrap();
        let estimate = json(&["estimate", "--recipe", id]);
        let off = number(&estimate["step_time_s"]["mid"]) / published - 1.0;
        assert!(off.abs() < 0.15, "{id}: {off}");
        // With activations in CPU memory, some recipes fill the GPU to within the error of the estimate.
        if number(&estimate["scenario"]["options"]["offload_layers"]) == 0.0 {
            assert_eq!(estimate["fits"], true, "{id} ran");
        }
        assert_ne!(estimate["verdict"], "does-not-fit", "{id} ran");
        assert_eq!(estimate["time_to_train_days"].is_null(), recipe["proxy"] == true, "{id}");
    }
}

#[test]
fn a_changed_option_changes_the_right_parts() {
    let before = json(&RECIPE);
    let after = json(&with(&["--recompute", "full"]));
    assert!(number(&after["memory"]["activations"]) < 0.5 * number(&before["memory"]["activations"]));
    assert!(number(&after["breakdown"]["matmul"]) > 1.2 * number(&before["breakdown"]["matmul"]));
    assert!(after["baseline"].is_null(), "the published run had another layout");
    let slower = json(&with(&["--cluster-factor", "1.1"]));
    let ratio = number(&slower["step_time_s"]["mid"]) / number(&before["step_time_s"]["mid"]);
    assert!((1.05..1.2).contains(&ratio), "{ratio}");
    let weaker = json(&with(&["--gemm-tflops", "500"]));
    assert!(number(&weaker["breakdown"]["matmul"]) > number(&before["breakdown"]["matmul"]));
}

#[test]
fn the_factor_on_fp8_scales_the_products_below_16_bits_only() {
    let matmul = |recipe: &str, factor: &str| {
        let estimate = json(&["estimate", "--recipe", recipe, "--cluster-factor", factor]);
        number(&estimate["breakdown"]["matmul"])
    };
    let (bf16, fp8) = ("llama3.1-70b/h100/bf16/64@25.04", "llama3.1-70b/h100/fp8/64@25.04");
    assert_eq!(matmul(bf16, "fp8=0.5"), matmul(bf16, "1"));
    for recipe in [fp8, "llama3.1-70b/gb300/nvfp4/64@26.06.01"] {
        let [before, slower, all_slower] =
            ["1", "fp8=0.5", "matmul=0.5"].map(|factor| matmul(recipe, factor));
        assert!(slower > 1.3 * before, "{recipe}: {before} {slower}");
        // The output layer multiplies in BF16.
        assert!(slower < all_slower, "{recipe}: {slower} {all_slower}");
    }
    // They multiply: the rate of FP8 is relative to that of BF16.
    assert!(matmul(fp8, "matmul=0.5,fp8=2") < matmul(fp8, "matmul=0.5"));
}

#[test]
fn a_scenario_that_does_not_fit_exits_with_3_and_names_changes_that_make_it_fit() {
    let scenario =
        ["estimate", "--model", "llama3.1-70b", "--gpu", "h100", "--gpus", "64", "--tp", "2", "--gbs", "128"];
    let run = trainplan(scenario);
    assert_eq!(run.code, Some(3));
    let estimate: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(estimate["fits"], false);
    assert!(number(&estimate["memory"]["margin_bytes"]) < 0.0);
    assert!(run.stderr.contains("error: The plan does not fit in GPU memory."), "{}", run.stderr);

    let remedies = estimate["remedies"].as_array().unwrap();
    assert!(!remedies.is_empty());
    for remedy in remedies {
        let flags = remedy["flags"].as_str().unwrap();
        assert!(run.stderr.contains(flags), "{flags}: {}", run.stderr);
        let changed: Vec<&str> = flags.split(' ').collect();
        // Changed flags replace the old ones.
        let kept = scenario[1..].chunks(2).filter(|flag| !changed.contains(&flag[0])).flatten();
        let changed: Vec<&str> = ["estimate"].iter().chain(kept).chain(&changed).copied().collect();
        let fitting = json(&changed);
        assert_eq!(fitting["fits"], true, "{flags}");
        assert_eq!(fitting["step_time_s"]["mid"], remedy["step_time_s"], "{flags}");
    }
}

#[test]
fn a_hopeless_scenario_gets_the_advice_to_use_more_gpus() {
    let run =
        trainplan(["estimate", "--model", "llama3.1-405b", "--gpu", "h100", "--gpus", "8", "--gbs", "8"]);
    assert_eq!(run.code, Some(3));
    assert!(run.stderr.contains("Use more GPUs"), "{}", run.stderr);
}

#[test]
fn own_models_and_own_gpus_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let llama = r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        "max_position_embeddings": 8192, "tie_word_embeddings": false}"#;
    std::fs::write(&config, llama).unwrap();
    let text = "own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,\
                tied_embeddings=0,seq_len=8192";
    let with = |model, gpu, stack| {
        let scenario =
            ["estimate", "--model", model, "--gpu", gpu, "--gpus", "8", "--gbs", "128", "--cp", "2"];
        json(&[&scenario[..], &["--stack", stack]].concat())
    };
    // Recipes of this software switch nothing for the model that the catalog knows.
    let plain = "megatron-lm-0.14";
    let known = with("llama3.1-8b", "h100", plain);
    for model in [config.to_str().unwrap(), text] {
        let own = with(model, "h100", plain);
        assert_eq!((&own["step_time_s"], &own["memory"]), (&known["step_time_s"], &known["memory"]));
    }
    let of = |model, gpu| with(model, gpu, "megatron-bridge-26.06");
    let known = of("llama3.1-8b", "h100");
    let slower = of(text, "h100:hbm_tbps=2.0");
    assert!(number(&slower["step_time_s"]["mid"]) > number(&known["step_time_s"]["mid"]));
    let roomier = of(text, "h100:hbm_gb=96");
    let margin = |estimate: &Value| number(&estimate["memory"]["margin_bytes"]);
    assert!(margin(&roomier) > margin(&known) + 15e9);
    assert!(roomier["warnings"][0].as_str().unwrap().contains("was never measured"));
    let unknown = of(&text.replace("ffn=14336", "ffn=14337"), "h100");
    assert_eq!(unknown["basis"]["kind"], "modelled");
    assert!(
        unknown["warnings"][0]
            .as_str()
            .unwrap()
            .contains("No measurement of this model is published. The 80 % interval is"),
        "{unknown}"
    );
}

#[test]
fn the_table_shows_the_interval_the_confidence_and_the_fit() {
    let run = trainplan(with(&["--format", "table"]));
    for part in [
        "step time",
        "-0.0",
        "published",
        "MFU",
        "Matrix multiplication",
        "Correction by measured runs",
        "Stage 2 (fullest)",
        "High confidence",
    ] {
        assert_eq!(run.stdout.contains(part), part != "-0.0", "{part}: {}", run.stdout);
    }
    // The first days are those of a search.
    let days = run.stdout.lines().find(|line| line.contains("days for 1T tokens")).unwrap();
    assert!(days.ends_with(", with failures"), "{days}");
    let (_, whole_run) = run.stdout.split_once("GiB free.\n").unwrap();
    for part in ["days with failures", "goodput", "Meta RSC", "cost, owned", "USD", "MWh"] {
        assert!(whole_run.contains(part), "{part}: {}", run.stdout);
    }
}

#[test]
fn csv_has_every_number_by_its_path() {
    let (header, rows) = csv(&RECIPE);
    assert_eq!(header, ["metric", "value"]);
    let paths: Vec<&str> = rows.iter().map(|row| &*row[0]).collect();
    assert!(paths.contains(&"step_time_s.mid") && paths.contains(&"memory.stages.7.weights"), "{paths:?}");
    assert!(paths.contains(&"whole_run.days.high") && !paths.iter().any(|path| path.contains("explain")));
}

#[test]
fn an_invalid_option_is_refused_with_the_allowed_values() {
    assert!(refusal(&with(&["--recompute", "some"])).contains("none, selective, full"));
    assert!(refusal(&with(&["--stack", "nemo"])).contains("nemo-1"));
    let both = refusal(&with(&["--tp", "7", "--tokens", "many"]));
    assert!(
        both.contains("can't be divided by TP 7. Use 4 or 8.") && both.contains("--tokens must be"),
        "{both}"
    );
}
