use crate::{csv, json, refusal};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;
use trainplan_tests::trainplan;

/// A log of release 25.04, of fifty steps around `ms` milliseconds.
pub(crate) fn log(gbs: u32, ms: u32) -> String {
    let step = |step: u32| {
        let time = f64::from(ms) * f64::from(1000 + step * 7919 % 13) / 1e6;
        format!(
            "Training epoch 0, iteration {step}/49 | global_batch_size: {gbs} | global_step: {step} | \
             reduced_train_loss: 11.96 | train_step_timing in s: {time}\n"
        )
    };
    (0..50).map(step).collect()
}

/// Three logs, two of them of the same workload, and a data directory.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.path("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out"), log(128, 9400)).unwrap();
        fs::write(place.path("log-acct.pretrain_llama3.1_8b_fp8_8_2_0.out"), log(128, 9870)).unwrap();
        fs::write(place.path("log-acct.pretrain_llama3.1_8b_fp8_16_3_0.out"), log(256, 9400)).unwrap();
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn log(&self, gpus: u32, job: u32) -> String {
        self.path(&format!("log-acct.pretrain_llama3.1_8b_fp8_{gpus}_{job}_0.out"))
    }
}

#[test]
fn two_logs_beside_each_other() {
    let place = Place::new();
    let (one, other) = (place.log(8, 1), place.log(8, 2));
    let comparison = json(&["compare", &one, &other]);
    for key in ["items", "difference", "verdict", "comparable", "reason", "configuration", "curves"] {
        assert!(comparison.get(key).is_some(), "{key}");
    }
    assert_eq!((&comparison["verdict"], &comparison["comparable"]), (&"slower".into(), &true.into()));
    let change = &comparison["difference"]["each"][0]["step_time"];
    let number = |key: &str| change[key].as_f64().unwrap();
    assert!(number("low") < 5.0 && 5.0 < number("high"), "{change}");
    assert_eq!(comparison["items"][0]["baseline"]["step_time_s"].as_f64(), Some(9.33));
    assert_eq!(comparison["curves"]["step_time_s"][1]["steps"].as_array().unwrap().len(), 50);
    assert_eq!(comparison["configuration"][0]["differs"], true);

    let table = trainplan(["compare", &one, &other, "--format", "table"]).stdout;
    for words in [
        "recipe",
        "llama3.1-8b/h100/fp8/8@25.04",
        "scored s (mean ± std)",
        "  mean s (95 % interval)",
        "differences",
        "slower: step time +5.0",
        "Welch",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let (header, rows) = csv(&["compare", &one, &other]);
    let verdict = header.iter().position(|name| name == "verdict").unwrap();
    assert_eq!((rows[0][verdict].as_str(), rows[1][verdict].as_str()), ("reference", "slower"));
    let window = header.iter().position(|name| name == "window").unwrap();
    assert_eq!(rows[0][window], "49");
    let (header, rows) = csv(&["compare", &one, &other, "--window", "35-44"]);
    let [window, p] = ["window", "p"].map(|name| header.iter().position(|known| known == name).unwrap());
    assert_eq!(rows[0][window], "35-44");
    assert!(rows[1][p].len() < 12, "{}", rows[1][p]);
}

#[test]
fn mfus_of_two_precisions_have_different_peaks() {
    let place = Place::new();
    let (fp8, bf16) = (place.log(8, 1), place.path("log-acct.pretrain_llama3.1_8b_bf16_8_4_0.out"));
    fs::write(&bf16, log(128, 13_000)).unwrap();
    for convention in ["recipe", "full"] {
        let comparison = json(&["compare", &fp8, &bf16, "--convention", convention]);
        let notes = comparison["difference"]["each"][0]["notes"].to_string();
        assert!(notes.contains("MFUs are relative to different peaks: 98"), "{notes}");
        assert!(
            notes.contains("1979 TFLOPS in the reference") && !notes.contains("Set a convention"),
            "{notes}"
        );
    }
}

#[test]
fn logs_without_step_times_say_what_is_missing() {
    let place = Place::new();
    let steps = |tps: u32| -> String {
        let line = |step: u32| {
            let tps = tps + step * 7 % 11;
            format!(
                "step: {step}  loss:  8.1  memory: 50.00GiB(62.00%)  tps: {tps}  tflops: 348.0  mfu: 35.2%\n"
            )
        };
        let batch = "Trainer is initialized with local batch size 2, global batch size 256, gradient accumulation steps 1, \
                     sequence length 8192, total steps 60 (warmup 10)\n";
        batch.to_owned() + &(1..=60).map(line).collect::<String>()
    };
    let (one, other) = (place.path("t8b.log"), place.path("t8b-slow.log"));
    fs::write(&one, steps(6144)).unwrap();
    fs::write(&other, steps(5120)).unwrap();
    let unknown = json(&["compare", &one, &other]);
    assert_eq!(unknown["verdict"], "not_comparable");
    let reasons = unknown["difference"]["each"][0]["reasons"].as_array().unwrap();
    let missing = "Both runs: The log has no step time. To compute it, set the GPU count.";
    assert!(reasons.contains(&missing.into()), "{reasons:?}");
    let table = trainplan(["compare", &one, &other, "--format", "table"]).stdout;
    assert!(table.contains("set the GPU count.") && !table.contains("One step"), "{table}");
    assert_eq!(json(&["compare", &one, &other, "--gpus", "128"])["verdict"], "slower");
}

#[test]
fn the_networks_of_runs_are_compared_and_a_slow_run_says_what_could_explain_it() {
    let place = Place::new();
    let line = |text: &str| format!("node0003:98:1251 [3] NCCL INFO {text}\n");
    let nccl = |network: &str| {
        line("comm 0x7f2b rank 0 nranks 8 cudaDev 0 busId 18000 - Init COMPLETE")
            + &line(&format!("Channel 00/0 : 3[3] -> 8[0] [send] via NET/{network}"))
    };
    let (one, other) = (place.log(8, 1), place.log(8, 2));
    fs::write(&one, nccl("IB/0/GDRDMA") + &log(128, 9400)).unwrap();
    fs::write(&other, nccl("Socket/0") + &log(128, 13_000)).unwrap();
    let comparison = json(&["compare", &one, &other]);
    let configuration = comparison["configuration"].as_array().unwrap();
    let values = |key: &str| &configuration.iter().find(|setting| setting["key"] == key).unwrap()["values"];
    assert_eq!(values("nccl_network"), &serde_json::json!(["IB", "TCP sockets"]));
    assert_eq!(values("gpudirect_rdma"), &serde_json::json!(["yes", "no"]));
    assert_eq!(values("nccl_communicators"), &serde_json::json!(["1 of 8 ranks", "1 of 8 ranks"]));
    let written = |format: &str| trainplan(["compare", &one, &other, "--format", format]).stdout;
    for text in [written("table"), written("markdown"), written("html")] {
        assert!(text.contains("NCCL network") && text.contains("GPUDirect RDMA"), "{text}");
        assert!(text.contains("longer than predicted"), "{text}");
    }
}

#[test]
fn a_slow_period_of_a_run_is_named() {
    let place = Place::new();
    let slow = |(step, line): (u32, &str)| {
        let (start, time) = line.rsplit_once(": ").unwrap();
        let time: f64 = time.parse().unwrap();
        let factor = if (36..=41).contains(&step) { 1.35 } else { 1.0 };
        format!("{start}: {}\n", factor * time)
    };
    let slow: String = (0..).zip(log(128, 9400).lines()).map(slow).collect();
    fs::write(place.log(8, 2), slow).unwrap();
    let table =
        trainplan(["compare", &place.log(8, 1), &place.log(8, 2), "--window", "35-49", "--format", "table"])
            .stdout;
    let named = "\n  job 2: Steps 36–41 took 35 % longer than the others. Without them, the mean is 9.46 s.";
    assert!(table.contains(named), "{table}");
    assert!(!table.contains("job 1: Steps"), "{table}");
}

#[test]
fn long_labels_are_not_repeated_in_every_sentence() {
    let place = Place::new();
    let long = |what: &str| {
        place.path(&format!("nightly_llama_on_the_large_cluster_with_new_network_driver_{what}.log"))
    };
    fs::write(long("before"), log(128, 9400)).unwrap();
    fs::write(long("after"), log(128, 9870)).unwrap();
    let of = |format: &str| {
        let (before, after) = (long("before"), long("after"));
        let recipe = ["--recipe", "llama3.1-8b/h100/fp8/8@25.04"];
        trainplan([&["compare", &before, &after, "--format", format][..], &recipe].concat()).stdout
    };
    let table = of("table");
    assert!(table.contains("network_driver_after"), "the heading: {table}");
    let brief = "\nCompared with driver_before:\n  driver_after: slower: step time +5.";
    assert!(table.contains(brief), "{table}");
    assert!(table.contains("\n  Both runs: The score rests on one step"), "{table}");
    let html = of("html");
    assert!(html.contains("network_driver_after</b>: slower"), "{html}");
    assert!(html.contains("<b>driver_after</b>: The score rests on one step"), "{html}");
}

#[test]
fn repeats_on_either_side_are_pooled() {
    let place = Place::new();
    let repeat = |job: u32, ms: u32| {
        let path = place.log(8, job);
        fs::write(&path, log(128, ms)).unwrap();
        path
    };
    let [old, new] = [[(11, 9400), (12, 9450), (13, 9380)], [(21, 9800), (22, 9850), (23, 9790)]]
        .map(|side| side.map(|(job, ms)| repeat(job, ms)));
    let names = [&old[0], &old[1], &old[2], "--against", &new[0], &new[1], &new[2]];
    let arguments: Vec<&str> = std::iter::once("compare").chain(names).collect();
    let comparison = json(&arguments);
    assert_eq!(
        (&comparison["verdict"], &comparison["difference"]["run_to_run"]["runs"]),
        (&"slower".into(), &6.into())
    );
    assert_eq!(comparison["pooled"][1]["items"], serde_json::json!([3, 4, 5]));
    let method = comparison["difference"]["method"].as_str().unwrap();
    assert!(method.contains("with 4 degrees of freedom"), "{method}");
    let table = trainplan(arguments.iter().chain(&["--format", "table"])).stdout;
    for words in ["repeats pooled", "job 21 + 2 repeats: slower: step time +4.", "Run-to-run variation of 0."]
    {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(!table.contains("job 22: slower"), "a repeat has no verdict of its own: {table}");
}

#[test]
fn a_comparison_is_written_for_a_pull_request_and_as_one_file() {
    let place = Place::new();
    let hostile = place.path("<b>`x`|_1_0.out");
    fs::write(&hostile, log(128, 9870)).unwrap();
    let written =
        |format: &str| trainplan(["compare", &place.log(8, 1), &hostile, "--format", format]).stdout;
    let (markdown, html) = (written("markdown"), written("html"));
    assert!(markdown.starts_with("### Runs compared with pretrain\\_llama3.1"), "{markdown}");
    assert!(markdown.contains(r"| \<b>\`x\`\|"), "{markdown}");
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"), "{html}");
    assert!(html.contains("&lt;b&gt;`x`|") && !html.contains("<b>`"), "{html}");
    assert_eq!(html.matches("<svg viewBox=\"0 0 760 300\"").count(), 2, "step time and loss: {html}");
}

#[test]
fn unlike_runs_say_what_differs() {
    let place = Place::new();
    let comparison = json(&["compare", &place.log(8, 1), &place.log(16, 3)]);
    assert_eq!(
        (&comparison["verdict"], &comparison["comparable"]),
        (&"not_comparable".into(), &false.into())
    );
    let reason = comparison["reason"].as_str().unwrap();
    assert!(reason.contains("GBS 256 (reference 128), GPUs 16 (reference 8)"), "{reason}");
    let tokens = &comparison["difference"]["each"][0]["tokens_per_s_per_gpu_percent"];
    assert!(tokens.as_f64().unwrap().abs() < 1e-9, "{tokens}");
}

#[test]
fn windows_conventions_and_margins_are_those_asked_for() {
    let place = Place::new();
    let logs = [place.log(8, 1), place.log(8, 2)];
    let [one, other] = logs.each_ref().map(String::as_str);
    let window = json(&["compare", one, other, "--window", "35-44", "--convention", "full"]);
    let item = &window["items"][0];
    assert_eq!((&item["window"], &item["convention"]), (&"35-44".into(), &"full".into()));
    assert_eq!(item["steady"]["step_time_s"]["n"], 10);
    assert_eq!(json(&["compare", one, other, "--margin-percent", "10"])["verdict"], "no_difference");
    assert_eq!(json(&["compare", one, other, "--warm-up", "0"])["items"][0]["steady"]["first"], 0);
}

#[test]
fn runs_come_from_the_store_too() {
    let place = Place::new();
    let (results, data) = (place.path("results"), place.path("data"));
    trainplan(["parse", &place.log(8, 1), &place.log(8, 2), "--save", &results]);
    let files: Vec<String> = fs::read_dir(&results)
        .unwrap()
        .map(|file| file.unwrap().path().to_string_lossy().into_owned())
        .collect();
    assert_eq!(trainplan(["import", &results, "--data-dir", &data]).code, Some(0));
    let run: Value = serde_json::from_str(&fs::read_to_string(&files[0]).unwrap()).unwrap();
    let id = run["id"].as_str().unwrap();

    // The same run as a file, by its id, and by what its id begins with.
    let comparison = json(&["compare", &files[0], id, &id[..8], &place.log(8, 1), "--data-dir", &data]);
    let ids: Vec<&str> =
        comparison["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids[..3], [id, id, id]);
    assert_eq!(comparison["difference"]["each"][0]["notes"][0], "This is the same run as the reference.");

    let refused = refusal(&["compare", "abcd1234", &place.path("nothing.log"), "--data-dir", &data]);
    assert!(refused.contains("abcd1234 is not a file, and doesn't identify a run in the store"), "{refused}");
    assert!(refused.contains("nothing.log is not a file"), "{refused}");
}

#[test]
fn runs_of_campaigns_go_by_their_names() {
    let place = Place::new();
    let (results, data) = (place.path("results"), place.path("data"));
    trainplan(["parse", &place.log(8, 1), "--save", &results]);
    let file = fs::read_dir(&results).unwrap().next().unwrap().unwrap().path();
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for (repeat, id) in
        [(1, "0197f2c1-5a3e-7cc0-9d43-1f0b8f0a2b11"), (2, "0197f2c1-6a3e-7cc0-9d43-1f0b8f0a2b11")]
    {
        run["id"] = id.into();
        run["carried"] = serde_json::json!({
            "campaign": "nightly", "run": "llama-8b", "repeat": repeat, "cluster": "alpha",
            "jobs": [{"id": "77", "name": "a", "state": "COMPLETED", "nodes": "n1"}],
            "launch": {
                "release": "25.04", "style": "launch-sh", "script_sha256": "0".repeat(64), "steps": 50,
                "comparable": {"yes": true, "reasons": []}
            },
            "plan": {
                "step_time_s": {"low": 9.0, "mid": 10.0, "high": 11.0}, "memory_bytes": 6e10,
                "capacity_bytes": 8e10, "basis": "published", "calibration": "trainplan 0.1.0"
            }
        });
        let saved = place.path(&format!("{id}.result.json"));
        fs::write(&saved, run.to_string()).unwrap();
        let imported = trainplan(["import", &saved, "--data-dir", &data]);
        assert_eq!(imported.code, Some(0), "{}", imported.stdout);
    }
    let run = trainplan([
        "compare",
        "nightly/llama-8b",
        "llama-8b#1",
        "0197f2c1-5",
        "--data-dir",
        &data,
        "--format",
        "json",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("nightly/llama-8b is 0197f2c1-6a3e"), "{}", run.stderr);
    let comparison: Value = serde_json::from_str(&run.stdout).unwrap();
    let labels: Vec<&str> =
        comparison["items"].as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["nightly/llama-8b#2", "nightly/llama-8b#1", "nightly/llama-8b#1 (2)"]);
    assert_eq!(comparison["items"][0]["plan"]["within"], true);
    // One of them is named twice, and counts once.
    assert_eq!(comparison["difference"]["run_to_run"]["runs"], 2);
    assert_eq!(comparison["pooled"][0]["label"], "2 runs with the same settings");
    let configuration = comparison["configuration"].as_array().unwrap();
    assert!(configuration.iter().any(|setting| setting["key"] == "jobs.1.nodes"));
    let table = trainplan(["compare", "llama-8b", "--data-dir", &data, "--format", "table"]).stdout;
    assert!(table.contains("10 (9–11)") && table.contains("alpha"), "{table}");

    let html = trainplan(["compare", "llama-8b", "--data-dir", &data, "--format", "html"]).stdout;
    let memory = "<th scope=\"row\">Plan: Memory needed per GPU, GiB</th><td>55.9</td>";
    assert!(html.contains(memory), "{html}");
    let memory = configuration.iter().find(|setting| setting["key"] == "plan.memory_bytes").unwrap();
    assert_eq!(memory["label"], "Memory needed per GPU, bytes");

    let ambiguous = refusal(&["compare", "0197f2c1", "--data-dir", &data]);
    assert!(ambiguous.contains("2 ids start or end with these digits, such as 0197f2c1-6a3e"), "{ambiguous}");
    let judged = json(&["check", "--data-dir", &data, "--campaign", "nightly", "--baseline-percent", "80"]);
    assert_eq!(judged["series"][0]["label"], "llama3.1-8b/h100/fp8/8@25.04 on alpha");
}

#[test]
fn what_can_not_be_read_is_refused_and_what_has_no_score_told() {
    let place = Place::new();
    let folder = refusal(&["compare", &place.path(""), &place.log(8, 1)]);
    assert!(folder.contains("contains 3 logs; choose one"), "{folder}");
    let broken = place.path("broken.result.json");
    fs::write(&broken, "{}").unwrap();
    assert!(refusal(&["compare", &broken]).contains("not a result file"));
    assert!(
        refusal(&["compare", &place.log(8, 1), "--margin-percent", "x"]).contains("percentage from 0 to 100")
    );

    let empty = place.path("empty.log");
    fs::write(&empty, "").unwrap();
    let run = trainplan(["compare", &empty, &empty, "--format", "table"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(run.stdout.contains("The file is empty"), "{}", run.stdout);
    let one = trainplan(["compare", &empty, &place.log(8, 1), "--format", "json"]);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert!(one.stdout.contains("It was not scored"));
}
