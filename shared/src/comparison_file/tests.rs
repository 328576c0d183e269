use super::ComparisonDocument;
use crate::compare::{Comparison, ComparisonOptions};
use crate::field::Field;
use crate::result::{Intake, RunResult};
use crate::spec::Spec;
use proptest::prelude::*;

fn run(name: &str, ms: u32) -> RunResult {
    run_of(Intake::new(name, &Spec::default()), ms)
}

fn run_of(mut intake: Intake, ms: u32) -> RunResult {
    for step in 0..50 {
        let time = f64::from(ms + step % 7) / 1000.0;
        let line = format!(
            "Training epoch 0, iteration {step}/49 | reduced_train_loss: {} | train_step_timing in s: {time} |\n",
            12 - step / 10
        );
        intake.feed(line.as_bytes());
    }
    intake.finish()
}

fn llama(job: u32, ms: u32) -> RunResult {
    run(&format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out"), ms)
}

/// A run whose log ends with an error of NCCL after step 44 of 49.
fn died(job: u32) -> RunResult {
    let mut intake =
        Intake::new(format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out"), &Spec::default());
    for step in 0..45 {
        let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: 9.4 |\n");
        intake.feed(line.as_bytes());
    }
    intake.feed(b"[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp\n");
    intake.finish()
}

#[test]
fn a_run_that_died_is_named_in_the_title_and_in_its_verdict() {
    let comparison = compare(&[llama(1, 9400), died(2)]);
    let ending = "failed after step 44: NCCL reported an error";
    assert!(comparison.difference.each[0].text.ends_with(&format!("It {ending}.")));
    let html = ComparisonDocument::new(&comparison, None).to_html();
    let title = format!(" (job 1): job 2 {ending}</h1>");
    assert!(html.contains(&title), "{html}");
}

fn compare(runs: &[RunResult]) -> Comparison {
    Comparison::of(&runs.iter().collect::<Vec<_>>(), &ComparisonOptions::default())
}

#[test]
fn both_formats_have_the_verdict_the_figures_and_the_settings() {
    let comparison = compare(&[llama(1, 12_000), llama(2, 12_600)]);
    let document = ComparisonDocument::new(&comparison, None);
    let (markdown, html) = (document.to_markdown(), document.to_html());
    let verdict = &comparison.difference.each[0].text;
    assert!(verdict.starts_with("slower: step time +5.00 %"), "{verdict}");
    assert!(html.contains(&format!("<b>pretrain_llama3.1_8b_fp8_8 (job 2)</b>: {verdict}")), "{html}");
    assert!(
        markdown.contains(&format!("- **pretrain\\_llama3.1\\_8b\\_fp8\\_8 (job 2)**: {verdict}")),
        "{markdown}"
    );
    for text in ["+5.00 %", "SHA-256 of the log", "12.002–12.004", "corrected for autocorrelation"] {
        assert!(html.contains(text) && markdown.contains(text), "{text}: {markdown}");
    }
    assert!(html.contains("<th scope=\"row\">Log: Window</th><td>49</td><td>49</td>"), "{html}");
    assert!(!html.contains("49-49") && !markdown.contains("49-49"), "{markdown}");
    // The charts have both curves and the published level.
    let charts: Vec<&str> = html.split("<figure>").skip(1).collect();
    assert_eq!(charts.len(), 2, "step time and loss");
    assert_eq!(charts[0].matches("<path class=").count(), 2, "{}", charts[0]);
    assert!(charts[0].contains("</svg> Published: 9.33 s</li>"), "{}", charts[0]);
    assert!(charts[0].contains("</svg> Predicted: "), "{}", charts[0]);
    assert_eq!(
        charts[0].matches("<line class=\"level all\" x1=\"64\"").count(),
        2,
        "both runs have the same levels"
    );
    let row = "<tr><th scope=\"row\" class=\"number\">49</th><td class=\"number\">12</td><td class=\"number\">12.6</td></tr>";
    assert!(html.contains(row), "the chart's data: {html}");
    // Every line of a Markdown table has as many cells as its head.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    for table in markdown.split("\n\n").filter(|part| part.starts_with('|')) {
        let mut lines = table.lines().filter(|line| line.starts_with('|'));
        let head = cells(lines.next().unwrap());
        assert!(lines.all(|line| cells(line) == head), "{table}");
    }
}

#[test]
fn pooled_repeats_have_their_table() {
    let run = |tp: &str, job: u32, ms: u32| {
        let said = Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04").with(Field::Tp, tp);
        run_of(Intake::new(format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out"), &said), ms)
    };
    let runs = [run("1", 1, 12_000), run("1", 2, 12_060), run("2", 3, 13_000), run("2", 4, 13_050)];
    let comparison = compare(&runs);
    assert_eq!(comparison.pooled.len(), 2, "{:?}", comparison.pooled);
    let document = ComparisonDocument::new(&comparison, None);
    let (markdown, html) = (document.to_markdown(), document.to_html());
    assert!(html.contains("<caption>Repeats</caption>") && html.contains("Run to run %"), "{html}");
    assert!(markdown.contains("| repeats pooled | mean s |"), "{markdown}");
    assert!(html.contains("(job 3) + 1 repeat</b>: slower"), "{html}");
    assert!(!html.contains("(job 4)</b>: slower"), "a pooled run has no verdict of its own: {html}");
}

#[test]
fn a_file_fetches_nothing_and_runs_no_script() {
    let comparison = compare(&[llama(1, 12_000), llama(2, 12_600)]);
    let html = ComparisonDocument::new(&comparison, None).to_html();
    assert!(html.contains("default-src 'none'"));
    for way in ["http://", "https://", "src=", "href=", "@import", "<script", "<iframe", "javascript:"] {
        assert!(!html.contains(way), "{way}");
    }
    let nothing = ComparisonDocument::new(&compare(&[]), None).to_html();
    assert!(nothing.contains("<h1>No runs</h1>"), "{nothing}");
}

/// Returns the tags of an HTML text, by name.
fn tags(html: &str) -> Vec<String> {
    html.split('<')
        .skip(1)
        .map(|tag| tag.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '/').collect())
        .collect()
}

proptest! {
    #[test]
    fn no_name_of_a_log_adds_a_tag_or_a_line(name in "[a-z<>\"'&|`*\\[\\]!\\\\\n\t/=:()]{1,30}") {
        let plain = compare(&[run("a", 12_000), run("b", 12_600)]);
        let mut hostile = plain.clone();
        hostile.items[1].label.clone_from(&name);
        hostile.items[1].notes.push(name.clone());
        hostile.difference.each[0].text.clone_from(&name);
        hostile.configuration[0].label.clone_from(&name);
        hostile.configuration[0].values[1] = Some(name.clone());
        let mut harmless = hostile.clone();
        harmless.items[1].label = "b".into();
        if let Some(note) = harmless.items[1].notes.last_mut() {
            *note = "b".into();
        }
        harmless.difference.each[0].text = "b".into();
        harmless.configuration[0].label = "b".into();
        harmless.configuration[0].values[1] = Some("b".into());
        let (hostile, harmless) = (ComparisonDocument::new(&hostile, None), ComparisonDocument::new(&harmless, None));
        prop_assert_eq!(tags(&hostile.to_html()), tags(&harmless.to_html()));
        prop_assert_eq!(hostile.to_markdown().lines().count(), harmless.to_markdown().lines().count());
    }
}
