//! `trainplan search` through the binary.

use crate::{csv, json, refusal};
use serde_json::Value;
use std::fs;
use trainplan_shared::question::CLEARLY_FASTER;
use trainplan_tests::trainplan;

/// The question of the planning guide, for a model.
fn question(model: &str) -> Value {
    json(&[
        "search",
        "--model",
        model,
        "--gpu",
        "h100,b200",
        "--tokens",
        "10T",
        "--deadline",
        "60d",
        "--price",
        "h100=2.95",
    ])
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

pub(crate) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list"))
}

/// Runs a search without a plan and gives its JSON and its error.
pub(crate) fn no_plan(arguments: &[&str]) -> (Value, String) {
    let run = trainplan(["search", "--format", "json"].iter().chain(arguments));
    assert_eq!(run.code, Some(3), "{arguments:?}: {}", run.stderr);
    (serde_json::from_str(&run.stdout).unwrap(), run.stderr)
}

/// Checks that `trainplan estimate` confirms a printed command.
pub(crate) fn confirm(command: &str, plan: &Value) {
    let words: Vec<&str> = command.strip_prefix("trainplan ").unwrap().split(' ').collect();
    let estimate = json(&words);
    assert_eq!(estimate["step_time_s"], plan["step_time_s"], "{command}");
    assert_eq!(estimate["memory"]["margin_bytes"], plan["spare_bytes"], "{command}");
    assert_eq!(estimate["fits"], true, "{command}");
    for end in ["low", "high"] {
        let days = number(&estimate["whole_run"]["days"][end]);
        // The search counts whole steps.
        assert!((days / number(&plan["days_range"][end]) - 1.0).abs() < 1e-3, "{command}: {days}");
        let costs = list(&estimate["whole_run"]["costs"]);
        let cost = number(&plan["cost_range"][end]);
        assert!(
            costs.iter().any(|each| (number(&each["total"][end]) / cost - 1.0).abs() < 1e-3),
            "{command}"
        );
    }
}

#[test]
fn a_question_is_answered_for_each_gpu_type_and_an_estimate_confirms_it() {
    for model in ["llama3.1-70b", "qwen3-235b-a22b"] {
        let result = question(model);
        let answers = list(&result["answers"]);
        assert_eq!(answers.iter().map(|answer| &answer["gpu"]).collect::<Vec<_>>(), ["h100", "b200"]);
        for answer in answers {
            let best = &answer["best"];
            let range = &best["days_range"];
            assert!(number(&range["high"]) <= 60.0 && number(&answer["in_time_of_ten"]) >= 9.0, "{best}");
            assert!(
                number(&range["low"]) < number(&best["days"])
                    && number(&best["days"]) < number(&range["high"])
            );
            confirm(answer["command"].as_str().unwrap(), best);
            // A layout that is nearly as fast may be in time where the fastest is not: it comes first.
            assert_eq!(answer["layouts"][0]["chosen"], best["chosen"], "{best}");
            // Fewer GPUs are too slow, apart from those that were rounded up.
            let fewer = list(&answer["by_gpus"])
                .iter()
                .filter(|plan| number(&plan["gpus"]) * 1.02 < number(&best["gpus"]));
            let is_late = |plan: &Value| {
                let as_measured = plan["days_as_measured"].as_f64().unwrap_or(0.0);
                number(&plan["days_range"]["high"]).max(as_measured) > 60.0
            };
            assert!(fewer.into_iter().all(is_late));
            assert!(!is_late(best), "{best}");
            let even = &answer["with_other_chance"];
            assert!(number(&even["days"]) <= 60.0 && number(&even["gpus"]) < number(&best["gpus"]), "{even}");
            // A plan in 8 bits names the best plan in BF16.
            let in_bf16 = &answer["in_bf16"];
            assert_eq!(in_bf16.is_null(), best["chosen"]["dtype"] == "bf16", "{answer}");
            assert!(in_bf16.is_null() || number(&in_bf16["gpus"]) >= number(&best["gpus"]), "{answer}");
            let considered = &answer["considered"];
            let discarded: f64 =
                list(&considered["discarded"]).iter().map(|rule| number(&rule["layouts"])).sum();
            let known = discarded + number(&considered["fitting"]) + number(&considered["slower"]);
            assert_eq!(known, number(&considered["layouts"]));
        }
        let gpus = |place: usize| number(&answers[place]["best"]["gpus"]);
        assert!(gpus(1) < gpus(0));
        let verdict = result["verdict"].as_str().unwrap();
        assert!(verdict.starts_with("B200 needs ") && verdict.contains("fewer GPUs than H100"), "{verdict}");
    }
}

#[test]
fn a_clearly_faster_but_less_certain_layout_is_named_without_a_deadline() {
    let mut named = 0;
    for (model, gpus) in [("qwen3-30b-a3b", "16"), ("llama3.1-8b", "64")] {
        let question = ["search", "--model", model, "--gpu", "h100", "--gpus", gpus, "--tokens", "1T"];
        let answer = &json(&question)["answers"][0];
        let limit = number(&answer["best"]["days"]) * CLEARLY_FASTER;
        let is_faster = list(&answer["layouts"]).iter().any(|layout| number(&layout["days"]) <= limit);
        let sentence = "but that prediction is less certain.";
        for format in ["table", "markdown"] {
            let text = trainplan(question.iter().chain(&["--format", format])).stdout;
            assert_eq!(text.contains(sentence), is_faster, "{text}");
        }
        named += u32::from(is_faster);
        let text = trainplan(question.iter().chain(&["--deadline", "900d", "--format", "table"])).stdout;
        assert!(!text.contains(sentence), "{text}");
    }
    assert!(named > 0, "none of these models shows it any more; choose another");
}

#[test]
fn a_plan_for_a_planned_gpu_says_that_nobody_has_measured_one() {
    let run = trainplan([
        "search",
        "--model",
        "llama3.1-8b",
        "--gpu",
        "vr200",
        "--tokens",
        "1T",
        "--format",
        "table",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout.contains("The VR200 is not available yet, so nobody has measured it."),
        "{}",
        run.stdout
    );
}

#[test]
fn what_is_left_out_is_assumed_and_named() {
    let run = trainplan(["search", "--model", "llama3.1-8b", "--gpus", "64", "--format", "table"]);
    for part in [
        "assumed: compute-optimal",
        "on H100 or B200",
        "--batch-tokens",
        "assumed: reserved",
        "trainplan estimate --model",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert_eq!(run.code, Some(0));
}

#[test]
fn a_deadline_that_cannot_be_met_exits_with_3_and_names_the_fastest_plan() {
    let (result, error) = no_plan(&[
        "--model",
        "llama3.1-8b",
        "--gpu",
        "h100",
        "--gpus",
        "8..64",
        "--tokens",
        "1T",
        "--deadline",
        "1d",
    ]);
    let unmet = &result["answers"][0]["unmet"];
    assert_eq!(unmet["why"], "too_slow");
    let days = list(&result["answers"][0]["by_gpus"]).iter().map(|plan| number(&plan["days_range"]["high"]));
    assert_eq!(number(&unmet["days"]), days.fold(f64::INFINITY, f64::min));
    assert!(
        unmet["text"]
            .as_str()
            .unwrap()
            .contains("days, not 1, on 64 GPUs, the most that were searched. It works with --gpus "),
        "{unmet}"
    );
    assert!(error.contains("No plan fits, or none reaches the goal."), "{error}");
}

#[test]
fn a_change_that_is_named_where_no_layout_works_reaches_the_deadline_or_says_that_it_misses_it() {
    let on_seven = |deadline| {
        let common = ["--model", "llama3.1-70b", "--gpu", "h100", "--gpus", "7", "--tokens", "10T"];
        no_plan(&[&common[..], &["--deadline", deadline]].concat()).0["answers"][0]["unmet"].clone()
    };
    let unmet = on_seven("60d");
    let [change] = &list(&unmet["changes"])[..] else { panic!("{unmet}") };
    assert_eq!(unmet["why"], "no_layout");
    assert_eq!(change["flag"], "gpus");
    assert!(
        change["reaches_goal"] == true && number(&change["plan"]["days_range"]["high"]) <= 60.0,
        "{unmet}"
    );
    let unmet = on_seven("0.05d");
    assert_eq!(unmet["changes"][0]["reaches_goal"], false, "{unmet}");
    assert!(
        unmet["text"].as_str().unwrap().ends_with(" GPUs), but no single change reaches the goal."),
        "{unmet}"
    );
}

#[test]
fn how_many_layouts_the_software_can_run_does_not_depend_on_how_many_are_listed() {
    let considered = |top| {
        let question =
            ["search", "--model", "llama3.1-70b", "--gpu", "b200", "--gpus", "592", "--tokens", "10T"];
        let text = trainplan(question.iter().chain(&["--top", top, "--format", "table"])).stdout;
        let line = text.lines().find(|line| line.starts_with("Considered "));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let [few, many] = ["5", "60"].map(considered);
    assert_eq!(few, many);
    assert!(few.contains(" layouts; the software can run "), "{few}");
}

#[test]
fn a_budget_is_kept_or_the_tokens_that_it_buys_are_named() {
    let common = ["--model", "llama3.1-8b", "--gpu", "h100", "--tokens", "1T", "--price", "2"];
    let with = |budget| [&["search"], &common[..], &["--budget", budget]].concat();
    let best = &json(&with("200K"))["answers"][0]["best"];
    assert!(number(&best["cost"]) <= 200e3, "{best}");
    let (result, _) = no_plan(&with("2K")[1..]);
    let unmet = &result["answers"][0]["unmet"];
    assert!(number(&unmet["cost"]) > 2e3 && number(&unmet["tokens"]) < 1e12, "{unmet}");
    let (result, _) =
        no_plan(&["--model", "llama3.1-8b", "--gpu", "gh200", "--budget", "2K", "--gpus", "64"]);
    assert_eq!(result["answers"][0]["unmet"]["why"], "no_price");
    assert!(result["verdict"].as_str().unwrap().contains("--price gh200="), "{result}");
}

#[test]
fn a_budget_is_kept_with_its_chance_and_tokens_that_are_named_work() {
    let search = |more: &[&str]| {
        let common = ["search", "--model", "llama3.1-8b", "--gpu", "h100", "--price", "2"];
        json(&[&common[..], more].concat())
    };
    let answer = &search(&["--tokens", "1T", "--budget", "200K"])["answers"][0];
    assert!(number(&answer["best"]["cost_range"]["high"]) <= 200e3, "{answer}");
    assert!(number(&answer["within_budget_of_ten"]) >= 9.0, "{answer}");
    let even = search(&["--tokens", "1T", "--budget", "200K", "--chance", "even"]);
    assert_eq!(even["question"]["chance"], "even");
    assert!(number(&even["answers"][0]["best"]["cost"]) <= 200e3, "{even}");
    let most = search(&["--budget", "200K", "--objective", "most-tokens"]);
    let tokens = number(&most["question"]["tokens"]).to_string();
    let again = search(&["--budget", "200K", "--tokens", &tokens]);
    assert!(!again["answers"][0]["best"].is_null(), "{again}");
    // With fewer tokens, it says so.
    let fewer = search(&["--budget", "200K", "--objective", "most-tokens", "--tokens", "10B"]);
    let (verdict, most) = (fewer["verdict"].as_str().unwrap(), number(&most["question"]["tokens"]) / 1e12);
    assert!(verdict.contains(&format!("The limits allow at least {most}T tokens on ")), "{verdict}");
}

#[test]
fn the_most_tokens_by_a_deadline_have_a_plan_if_the_launch_script_is_slower() {
    let model = ["search", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "16384"];
    let found = json(&[&model[..], &["--deadline", "60d", "--objective", "most-tokens"]].concat());
    assert!(!found["answers"][0]["best"].is_null(), "{found}");
    assert!(found["headline"].as_str().unwrap().starts_with("16,384 H100 GPUs train at least "), "{found}");
}

#[test]
fn what_the_launch_script_makes_of_the_best_plan_is_said() {
    // No release runs FSDP for this model, so that the script runs Megatron-LM, and TP 8 makes the difference felt.
    let question = [
        "search",
        "--model",
        "llama3.1-70b",
        "--gpu",
        "b200",
        "--tokens",
        "10T",
        "--deadline",
        "60d",
        "--lock",
        "fsdp=on,tp=8",
    ];
    let script = &json(&question)["answers"][0]["script"];
    assert_eq!(script["as_planned"], false, "{script}");
    assert!(script["software"].as_str().unwrap().starts_with("Megatron-LM"), "{script}");
    assert_eq!(number(&script["days_range"]["high"]) <= 60.0, script["reaches_goal"] == true, "{script}");
    let text = script["text"].as_str().unwrap();
    assert!(text.starts_with("The launch script runs Megatron-LM") && text.contains(" days"), "{text}");
    let in_format = |format| trainplan(question.iter().chain(&["--format", format]));
    assert!(in_format("table").stdout.contains(text));
    assert!(in_format("markdown").stdout.contains("The launch script runs Megatron-LM"));
    let csv = in_format("csv");
    assert!(csv.stderr.contains(&format!("note: B200: {text}")), "{}", csv.stderr);
}

#[test]
fn a_csv_file_says_what_launches_each_layout() {
    let launched_with = |lock: &str| {
        let search =
            ["search", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "64", "--top", "1", "--lock"];
        let (header, rows) = csv(&[&search[..], &[lock]].concat());
        let column = header.iter().position(|title| title == "launched_with").unwrap();
        rows[0][column].clone()
    };
    assert_eq!(["fsdp=no", "fsdp=yes"].map(launched_with), ["bridge-main", "megatron-lm"]);
}

#[test]
fn locks_headroom_and_precisions_are_kept() {
    let (header, rows) = csv(&[
        "search",
        "--model",
        "llama3.1-70b",
        "--gpu",
        "h100",
        "--gpus",
        "256",
        "--dtype",
        "bf16",
        "--lock",
        "tp=4|8,recompute!=full",
        "--headroom",
        "10",
        "--top",
        "8",
    ]);
    let column = |name: &str| header.iter().position(|title| title == name).unwrap();
    let ranked: Vec<_> = rows.iter().filter(|row| !row[column("rank")].is_empty()).collect();
    assert_eq!(ranked.len(), 8);
    for row in ranked {
        assert!(
            ["4", "8"].contains(&row[column("tp")].as_str()) && row[column("recompute")] != "full",
            "{row:?}"
        );
        assert!(row[column("spare_bytes")].parse::<f64>().unwrap() >= 10.0 * 1_073_741_824.0, "{row:?}");
        assert_eq!((row[column("dtype")].as_str(), row[column("gpus")].as_str()), ("bf16", "256"));
    }
    // Without the flag, 4 GiB stay free; `--headroom 0` takes all memory.
    let least_spare = |headroom: &[&str]| {
        let search = ["search", "--model", "llama3.1-70b", "--gpu", "h100", "--gpus", "256", "--top", "100"];
        let (header, rows) = csv(&[&search, headroom].concat());
        let column = |name: &str| header.iter().position(|title| title == name).unwrap();
        let ranked = rows.iter().filter(|row| !row[column("rank")].is_empty());
        let spare_gib =
            ranked.map(|row| row[column("spare_bytes")].parse::<f64>().unwrap() / 1_073_741_824.0);
        spare_gib.fold(f64::INFINITY, f64::min)
    };
    assert!(least_spare(&[]) >= 4.0);
    assert!(least_spare(&["--headroom", "0"]) < 4.0);
    let (result, _) = no_plan(&[
        "--model",
        "llama3.1-405b",
        "--gpu",
        "h100",
        "--gpus",
        "512",
        "--lock",
        "tp=1,pp=1,fsdp=off",
    ]);
    let change = &result["answers"][0]["unmet"]["changes"][0];
    assert_eq!(change["flag"], "lock");
    let helped = json(&[
        "search",
        "--model",
        "llama3.1-405b",
        "--gpu",
        "h100",
        "--gpus",
        "512",
        "--lock",
        change["value"].as_str().unwrap(),
    ]);
    let answer = &helped["answers"][0];
    assert!(!answer["best"].is_null(), "{helped}");
    if answer["script"]["as_planned"] == true {
        assert_eq!(answer["best"]["step_time_s"], change["plan"]["step_time_s"]);
    }
}

#[test]
fn the_published_layout_stands_beside_the_best() {
    let arguments = [
        "search",
        "--model",
        "llama3.1-405b",
        "--gpu",
        "h100",
        "--gpus",
        "512",
        "--gbs",
        "256",
        "--dtype",
        "fp8",
        "--stack",
        "nemo-2",
    ];
    let published = &json(&arguments)["answers"][0]["published"];
    assert!(published["recipe"].as_str().unwrap().starts_with("llama3.1-405b/h100/fp8/512@"), "{published}");
    assert!(
        published["text"].as_str().unwrap().contains("the one published for llama3.1-405b/h100/fp8/512@")
    );
    let speed = &published["speed_of_best"];
    assert!(number(&speed["low"]) < number(&speed["mid"]) && number(&speed["mid"]) < number(&speed["high"]));
    let (header, rows) = csv(&arguments);
    let recipe = header.iter().position(|title| title == "recipe").unwrap();
    assert_eq!(rows.iter().filter(|row| !row[recipe].is_empty()).count(), 1);
}

#[test]
fn a_model_of_ones_own_is_searched_and_its_command_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let llama = r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
        "max_position_embeddings": 8192, "tie_word_embeddings": false}"#;
    fs::write(&config, llama).unwrap();
    let of = |model| json(&["search", "--model", model, "--gpu", "h100", "--gpus", "64", "--tokens", "1T"]);
    let (own, known) = (of(config.to_str().unwrap()), of("llama3.1-8b"));
    let (own, known) = (&own["answers"][0], &known["answers"][0]);
    assert_eq!(own["best"]["chosen"], known["best"]["chosen"]);
    let command = own["command"].as_str().unwrap();
    assert!(command.contains(&format!("--model {}", config.display())), "{command}");
    confirm(command, &own["best"]);
}

#[test]
fn an_absurd_plan_is_doubted_with_the_flags_to_change() {
    let search = |more: &[&str]| {
        let run = trainplan(
            [&["search", "--model", "llama3.1-8b", "--gpu", "h100", "--format", "json"], more].concat(),
        );
        assert_eq!(run.code, Some(0), "{more:?}: {}", run.stderr);
        run.stderr
    };
    let wasteful = search(&["--gpus", "16384"]);
    assert!(wasteful.contains("note: H100: The MFU is only") && wasteful.contains("--gpus"), "{wasteful}");
    let endless = search(&["--gpus", "8", "--tokens", "500T"]);
    assert!(endless.contains("years") && endless.contains("--tokens"), "{endless}");
    let large = search(&["--gpus", "64", "--batch-tokens", "128M"]);
    assert!(large.contains("A step has 134M tokens") && large.contains("--batch-tokens or --gbs"), "{large}");
    assert!(!search(&["--gpus", "64"]).contains("note: H100"));
}

#[test]
fn mistakes_name_the_flags_of_a_search() {
    let text = refusal(&["search", "--model", "llama3.1-8b", "--gpu", "a100", "--dtype", "fp8"]);
    assert!(text.contains("--dtype lists no precision that"), "{text}");
    assert!(!text.contains("--precisions") && !text.contains("--gpu-types"), "{text}");
    assert!(refusal(&["search", "--gpu", "h100"]).contains("Missing: --model"));
    assert!(refusal(&["search", "--model", "llama3.1-8b", "--campaign", "new.toml"]).contains("--cluster"));
}

#[test]
fn a_search_lists_up_to_100_layouts() {
    let question = ["search", "--model", "qwen3-30b-a3b", "--gpu", "h100", "--gpus", "64", "--top"];
    let layouts = |top| list(&json(&[&question[..], &[top]].concat())["answers"][0]["layouts"]).clone();
    let most = layouts("100");
    assert_eq!(most.len(), 100);
    assert_eq!(layouts("12"), most[..12]);
    assert!(refusal(&[&question[..], &["101"]].concat()).contains("101"));
    // Trusting their order costs more than with a dense model.
    for format in ["table", "markdown"] {
        let page = trainplan([&question[..], &["3", "--format", format]].concat()).stdout;
        assert!(page.contains("Measure the best few layouts before a long run"), "{page}");
    }
}

#[test]
fn markdown_has_a_table_for_each_gpu_type_and_the_commands() {
    let arguments = [
        "search",
        "--model",
        "llama3.1-70b",
        "--gpu",
        "h100,b200",
        "--gpus",
        "512",
        "--top",
        "3",
        "--tokens",
        "10T",
        "--format",
        "markdown",
    ];
    let run = trainplan(arguments);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let page = &run.stdout;
    // The only notes are about spare nodes, and they are in the page too.
    assert_eq!(
        run.stderr.matches(" 536 GPUs in all: ").count(),
        run.stderr.lines().count(),
        "{}",
        run.stderr
    );
    assert_eq!(page.matches("\nNote: This takes 536 GPUs in all: ").count(), 2, "{page}");
    let tables: Vec<Vec<&str>> = page
        .split("\n\n")
        .filter(|block| block.starts_with("| "))
        .map(|block| block.lines().collect())
        .collect();
    // The best plans, and of each type three layouts and the published one.
    assert_eq!(tables.iter().map(Vec::len).collect::<Vec<_>>(), [2 + 2, 2 + 3 + 1, 2 + 3 + 1], "{page}");
    for table in tables {
        let borders = |line: &str| line.matches('|').count();
        let first = borders(table[0]);
        assert!(table.iter().all(|line| borders(line) == first), "{table:?}");
    }
    let verdict = json(&arguments[..11])["verdict"].as_str().unwrap().to_owned();
    assert!(page.contains(&format!("**{verdict}**")), "{verdict}: {page}");
    let commands = page.lines().filter(|line| line.starts_with("trainplan ")).collect::<Vec<_>>();
    assert!(commands[2].starts_with("trainplan launch ") && commands.len() == 4, "{page}");
    // The last command gives the same page.
    let words: Vec<&str> = commands[3].split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
    assert_eq!(trainplan(words).stdout, *page);
}

#[test]
fn a_slip_is_refused_with_the_flag_the_range_and_a_value_that_works() {
    let search = ["search", "--model", "llama3.1-8b", "--gpu", "h100"];
    let estimate = ["estimate", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "8", "--gbs", "128"];
    let of_both = [
        ("--failure-rate", "2", "from 0 to 1, such as 2e-5"),
        ("--failure-rate", "-1e-5", "from 0 to 1, such as 2e-5"),
        ("--price", "1e20", "from 0.01 to 1M, such as 2.95"),
        ("--price", "-2", "from 0.01 to 1M, such as 2.95"),
        ("--overhead", "1000", "from 0 to 100, such as 5"),
        ("--overhead", "-5%", "from 0 to 100, such as 5"),
        ("--restart-time", "-5m", "from 0s to 30d, such as 90s"),
        ("--save-time", "1e9", "from 0s to 1d, such as 90s"),
        ("--electricity", "-1", "from 0.001 to 10,000, such as 0.08"),
        ("--power", "-1", "from 0.05 to 20, such as 1.7"),
        ("--tokens", "-1T", "from 1M to 1,000T, such as 10T"),
        ("--seq-len", "0", "from 1 to 16,777,216, such as 8192"),
        ("--gbs", "4294967295", "from 1 to 4,194,304, such as 512"),
    ];
    let of_search = [
        ("--deadline", "1e9d", "from 0.01d to 3650d, such as 60d"),
        ("--deadline", "-5d", "from 0.01d to 3650d, such as 60d"),
        ("--budget", "-5M", "from 1 to 1,000T, such as 5M"),
        ("--headroom", "-4", "from 0 to 1,000, such as 4"),
        ("--gpus", "-8", "from 1 to 1,000,000, such as 1024"),
    ];
    let commands =
        [(&search[..], &of_both[..]), (&search[..], &of_search[..]), (&estimate[..], &of_both[..])];
    for (command, slips) in commands {
        for (flag, value, allowed) in slips {
            let said = refusal(&[command, &[*flag, *value]].concat());
            let is_said = said.starts_with(&format!("error: {flag} must be ")) && said.contains(*allowed);
            assert!(is_said && said.contains(&format!("not \"{value}\".")), "{said}");
        }
    }
    // Another flag is not taken for a value.
    let said = refusal(&[&search[..], &["--price", "--budget", "5M"]].concat());
    assert!(said.contains("a value is required for '--price"), "{said}");
}

#[test]
fn a_deadline_may_be_a_date() {
    let date = jiff::Zoned::now().date().saturating_add(jiff::Span::new().days(90)).to_string();
    let question = [
        "search",
        "--model",
        "llama3.1-8b",
        "--gpu",
        "h100",
        "--gpus",
        "64",
        "--tokens",
        "100B",
        "--deadline",
    ];
    let run = trainplan(question.iter().chain(&[&*date, "--format", "json"]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(result["question"]["deadline_date"], date.as_str());
    // Midnight may pass meanwhile.
    let days = number(&result["question"]["goal"]["deadline_days"]);
    assert!((89.0..=90.0).contains(&days), "{days}");
    assert!(
        run.stderr.contains(&format!("note: the deadline {date} is {days} days from today, ")),
        "{}",
        run.stderr
    );
    let page = trainplan(question.iter().chain(&[&*date, "--format", "markdown"])).stdout;
    assert!(page.contains(&format!(" days, by {date} (9 times in 10)")), "{page}");
    // On another day, the command gives the same answer.
    assert!(page.contains(" --deadline 90d ") || page.contains(" --deadline 89d "), "{page}");
    let said = refusal(&[&question[..], &["2020-01-01"]].concat());
    assert!(said.contains("--deadline must be a date from 1d to 3650d after today, "), "{said}");
    assert!(said.ends_with(", or a time such as 60d, not \"2020-01-01\".\n"), "{said}");
    let days = json(&[&question[..], &["60d"]].concat());
    assert!(days["question"].get("deadline_date").is_none(), "{days}");
}

#[test]
fn more_gpus_that_are_slower_are_explained() {
    let said = |gpus: &str| {
        let question = [
            "search",
            "--model",
            "qwen3-235b-a22b",
            "--gpu",
            "b200",
            "--tokens",
            "10T",
            "--gpus",
            gpus,
            "--format",
            "table",
        ];
        trainplan(question).stdout
    };
    let text = said("384, 392");
    let (_, sentence) = text.split_once("392 GPUs would take ").unwrap_or_else(|| panic!("{text}"));
    assert!(sentence.contains(", longer than 384 GPUs ("), "{text}");
    assert!(sentence.contains("), because fewer layouts divide that number."), "{text}");
    assert!(!said("384, 448").contains("fewer layouts"), "{text}");
}
