//! What a search says first and last: the answer in a sentence, and the command that launches the best plan.

use crate::json;
use crate::search::{confirm, list, no_plan, number};
use trainplan_tests::trainplan;

/// Runs the launch command of a search, and gives its script.
fn launch(command: &str) -> String {
    let words = command.strip_prefix("trainplan ").unwrap().split(' ').map(|word| word.trim_matches('\''));
    let run = trainplan(words);
    assert_eq!(run.code, Some(0), "{command}: {}", run.stderr);
    assert!(run.stdout.starts_with("#!"), "{command}: {}", run.stdout);
    run.stderr
}

#[test]
fn a_search_begins_with_its_answer_and_ends_with_a_launch_command_that_works() {
    let question =
        ["search", "--model", "llama3.1-70b", "--gpu", "h100,b200", "--tokens", "10T", "--deadline", "60d"];
    let result = json(&question);
    let headline = result["headline"].as_str().unwrap();
    let text = trainplan(question.iter().chain(&["--format", "table"])).stdout;
    assert_eq!(text.lines().next(), Some(headline));
    let first = list(&result["answers"]).iter().find(|answer| {
        let gpus = number(&answer["best"]["gpus"]).to_string();
        headline.replace(',', "").starts_with(&format!("{gpus} "))
    });
    let first = first.unwrap_or_else(|| panic!("{headline}"));
    assert!(
        headline.contains(" take about ") && headline.contains(" USD with GPUs reserved for 3 years, or "),
        "{headline}"
    );
    let command = first["launch_command"].as_str().unwrap();
    assert_eq!(text.lines().last(), Some(&*format!("Launch it: {command}")));
    launch(command);
    // The best type comes first.
    let table = text.lines().skip_while(|line| !line.contains("confidence")).nth(1).unwrap();
    assert!(table.trim_start().starts_with(headline.split(' ').nth(1).unwrap()), "{table}");
    // Layouts are listed on demand.
    assert!(!text.contains("Layouts on "), "{text}");
    let listed = trainplan(question.iter().chain(&["--top", "2", "--format", "table"])).stdout;
    assert_eq!(listed.matches("Layouts on ").count(), 2, "{listed}");
    assert!(text.len() < listed.len(), "{} {}", text.len(), listed.len());
}

#[test]
fn the_launch_of_the_best_plan_takes_as_long_as_the_plan() {
    for model in ["mixtral-8x7b", "llama3.1-70b"] {
        let question =
            ["search", "--model", model, "--gpu", "b200,gb300", "--tokens", "10T", "--deadline", "60d"];
        for answer in list(&json(&question)["answers"]) {
            let (best, script) = (&answer["best"], &answer["script"]);
            assert!(
                script["reaches_goal"] == true && number(&best["days_range"]["high"]) <= 60.0,
                "{answer}"
            );
            let said = launch(answer["launch_command"].as_str().unwrap());
            assert!(!said.contains("teps take about"), "{said}");
            let command = answer["command"].as_str().unwrap();
            if script["as_planned"] == true {
                confirm(command, best);
                continue;
            }
            // The estimate of the script's software.
            assert_eq!(best["days"], script["days"], "{answer}");
            let words: Vec<&str> = command.split(' ').skip(1).collect();
            let estimated = number(&json(&words)["step_time_s"]["mid"]);
            let searched = number(&best["step_time_s"]["mid"]);
            assert!((estimated / searched - 1.0).abs() < 0.08, "{command}: {estimated} {searched}");
        }
    }
}

#[test]
fn a_goal_that_no_plan_reaches_is_said_first_with_the_least_change_that_reaches_it() {
    let question = [
        "--model",
        "llama3.1-70b",
        "--gpu",
        "h100,b200",
        "--gpus",
        "<=2048",
        "--tokens",
        "10T",
        "--deadline",
        "10d",
    ];
    let (result, _) = no_plan(&question);
    let headline = result["headline"].as_str().unwrap();
    let nearest = "No plan finishes within 10 days 9 times in 10. The nearest takes ";
    assert!(headline.starts_with(nearest) && headline.contains(" on 2,048 B200 GPUs"), "{headline}");
    let (_, change) = headline.split_once(" It works with ").unwrap();
    let (flag, value) = change.split_once(' ').unwrap();
    let (value, _) = value.split_once(" (").unwrap();
    // The goal is missed by a factor of two, and it would take more than twice as many GPUs.
    assert!(["--deadline", "--tokens"].contains(&flag), "{headline}");
    let changed = [&["search"], &question[..], &[flag, value]].concat();
    assert!(list(&json(&changed)["answers"]).iter().any(|answer| !answer["best"].is_null()), "{headline}");
    let text = trainplan(["search", "--format", "table"].iter().chain(&question)).stdout;
    assert_eq!(text.lines().next(), Some(headline));
    assert!(!text.to_lowercase().contains("best plan") && !text.contains("trainplan launch"), "{text}");
}

#[test]
fn a_plan_that_misses_the_deadline_only_with_measured_software_shows_that_in_every_place() {
    let question = [
        "--model",
        "qwen3-235b-a22b",
        "--gpu",
        "b200",
        "--tokens",
        "10T",
        "--deadline",
        "60d",
        "--gpus",
        "384",
    ];
    let (result, _) = no_plan(&question);
    let answer = &result["answers"][0];
    let days = number(&answer["unmet"]["days"]);
    // Otherwise this shows nothing: choose a number of GPUs whose range ends in time.
    assert!(number(&answer["layouts"][0]["days_range"]["high"]) <= 60.0 && days > 60.0, "{answer}");
    let text = trainplan(["search", "--format", "table"].iter().chain(&question)).stdout;
    let headline = text.lines().next().unwrap();
    let tests = "No plan finishes within 60 days both at the predicted speed, 9 times in 10, and at the measured speed. \
                 The nearest is predicted to take about ";
    assert!(headline.starts_with(tests), "{headline}");
    let software = "Megatron-Bridge 25.09 to 25.11";
    let decided =
        format!(", but would take {days:.0} days at the measured speed of {software}, on 384 B200 GPUs");
    assert!(headline.contains(&decided), "{headline}");
    // The row has the figures with that software.
    let mut table = text.lines().skip_while(|line| !line.contains("confidence"));
    let (titles, row) = (table.next().unwrap(), table.next().unwrap());
    assert!(titles.contains(" with ") && row.contains(software), "{titles}\n{row}");
    assert!(row.contains(&format!("  {days:.0} (")), "{row}");
    let text = trainplan(["search", "--top", "2", "--format", "table"].iter().chain(&question)).stdout;
    let layouts = text.lines().skip_while(|line| !line.starts_with("Layouts on "));
    let mut table = layouts.skip_while(|line| !line.contains("confidence"));
    let (titles, row) = (table.next().unwrap(), table.next().unwrap());
    assert!(titles.contains(" with ") && row.contains(software), "{titles}\n{row}");
    assert!(row.contains(&format!("  {days:.0} (")), "{row}");
}

#[test]
fn the_most_tokens_for_a_budget_are_said_first() {
    let question = [
        "search",
        "--model",
        "llama3.1-70b",
        "--gpu",
        "b200",
        "--objective",
        "most-tokens",
        "--budget",
        "5M",
    ];
    let text = trainplan(question.iter().chain(&["--format", "table"])).stdout;
    let headline = text.lines().next().unwrap();
    let (_, after) = headline.split_once("5.00M USD trains at least ").unwrap();
    let (tokens, plan) = after.split_once(" tokens on ").unwrap();
    assert!(plan.contains(" B200 GPUs in ") && plan.contains(" days, for "), "{headline}");
    let row = text.lines().skip_while(|line| !line.contains("confidence")).nth(1).unwrap();
    assert!(row.contains(&format!(" {tokens} ")), "{row}");
}

#[test]
fn the_least_change_is_that_of_any_gpu_type() {
    // No type has a layout on 8 GPUs, and B200s need fewer than H100s.
    let question = [
        "--model",
        "llama3.1-405b",
        "--gpu",
        "h100,b200",
        "--gpus",
        "8",
        "--tokens",
        "15T",
        "--deadline",
        "60d",
    ];
    let (result, _) = no_plan(&question);
    let gpus = list(&result["answers"]).iter().map(|answer| {
        let changes = list(&answer["unmet"]["changes"]).iter().filter(|change| change["flag"] == "gpus");
        changes.map(|change| number(&change["plan"]["gpus"])).fold(f64::INFINITY, f64::min)
    });
    let least = gpus.fold(f64::INFINITY, f64::min);
    let headline = result["headline"].as_str().unwrap();
    assert!(headline.contains(&format!(" B200 works with --gpus {least} (")), "{headline}");
}

#[test]
fn gpus_that_do_not_fill_nodes_are_noted_with_the_nearest_that_do() {
    let said = |gpus: &str| {
        let question =
            ["search", "--model", "llama3.1-8b", "--gpu", "h100", "--tokens", "1T", "--gpus", gpus];
        trainplan(question.iter().chain(&["--format", "table"])).stderr
    };
    let note =
        |gpus: &str| format!("note: {gpus} GPUs don't fill nodes of 8 H100. The nearest that do: --gpus ");
    assert!(said("7").contains(&format!("{}8.", note("7"))), "{}", said("7"));
    // More than one node is refused.
    assert!(
        said("20").contains("error: 20 GPUs don't fill whole nodes of 8. Use 16 or 24."),
        "{}",
        said("20")
    );
    for whole in ["4", "16"] {
        assert!(!said(whole).contains("fill nodes"), "{whole}");
    }
}

#[test]
fn spare_nodes_beyond_the_gpus_that_were_named_are_noted_with_the_number_that_leaves_room_for_them() {
    let said = |gpus: &str| {
        let question =
            ["search", "--model", "llama3.1-8b", "--gpu", "h100", "--tokens", "1T", "--gpus", gpus];
        trainplan(question.iter().chain(&["--format", "table"])).stderr
    };
    let lacking = "note: H100: This takes 1,072 GPUs in all: 1,024 for training and 48 spare. If you have 1,024 in \
                   all, set --gpus to 976, or --spare-nodes to 0 for none.";
    assert!(said("1024").contains(lacking), "{}", said("1024"));
    assert!(!said("976,1024").contains(" in all"), "{}", said("976,1024"));
}
