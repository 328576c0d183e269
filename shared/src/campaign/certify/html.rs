//! The report of a certification as one HTML file: it opens without a network, and runs no script.

use super::certified_run::{mean, precise};
use super::{
    Certificate, CertifiedRun, LEAST_SPEED_PERCENT, ReferenceSource, RunReference, RunVerdict, criteria,
};
use crate::catalog::{Catalog, Recipe};
use crate::document::{cell, or_dash, page, sentences, table};
use crate::result::{sentence, steady_difference};
use crate::search::Candidate;
use crate::text::html as escaped;
use crate::units::{group_digits, minute, readable, readable_range, significant};

const STYLE: &str = include_str!("style.css");

/// The speed at the end of a bar, in percent of the reference's.
const BAR_PERCENT: f64 = 125.0;

/// How many digits of a script's SHA-256 are shown: enough to recognize it.
const SHA256_DIGITS: usize = 12;

impl Certificate {
    /// Returns the report as a standalone HTML file.
    pub fn html(&self) -> String {
        let content = [
            format!("<p class=\"headline\">{}</p>\n", escaped(&self.summary())),
            paragraph(&self.subject(&minute(&self.began))),
            self.runs_in_html(),
            "<p class=\"soft\">The line across a bar marks the least speed that passes.</p>\n".to_owned(),
            section("Slow runs", &self.slow_runs()),
            section("Much faster than the reference", &self.fast_runs()),
            section("Other containers than the references", &self.other_containers()),
            section("Not tested", &self.untested_in_html()),
            section("How sure this is", &(paragraph(&criteria()) + &paragraph(&self.repeatability()))),
            section("Provenance", &self.provenance()),
            section("Measure it again", &format!("<pre><code>{}</code></pre>\n", escaped(&self.command))),
        ];
        page(&self.title(), STYLE, &content.concat())
    }

    fn runs_in_html(&self) -> String {
        let head = [
            ("Run", false),
            ("Layout", false),
            ("Reference", true),
            ("Measured", true),
            ("Of reference, %", true),
            ("Verdict", false),
        ];
        let rows = self.runs.iter().map(|run| {
            vec![
                cell(&run.run, run.recipe.as_deref().unwrap_or_default()),
                run.layout_cell(),
                run.reference_cell(),
                run.measured_cell(),
                run.speed_cell(),
                run.verdict_cell(),
            ]
        });
        table("Runs", head.into_iter().map(title), rows)
    }

    /// Returns the slow runs, each with what could explain it.
    fn slow_runs(&self) -> String {
        let slow: Vec<(&str, String)> = self
            .with(RunVerdict::Slow)
            .map(|run| {
                let cause = run.cause.as_deref().unwrap_or("No cause is known.");
                (run.run.as_str(), format!("{} % of the reference's speed. {cause}", run.speed()))
            })
            .collect();
        sentences(slow.iter().map(|(run, text)| (*run, text.as_str())))
    }

    /// Returns the runs that are much faster than their reference, each with what to check before its pass counts.
    fn fast_runs(&self) -> String {
        sentences(self.runs.iter().filter_map(|run| Some((run.run.as_str(), run.remark.as_deref()?))))
    }

    /// Returns the runs that used another container than their reference.
    fn other_containers(&self) -> String {
        let remarks: Vec<(&str, String)> =
            self.runs.iter().filter_map(|run| Some((run.run.as_str(), run.container_remark()?))).collect();
        sentences(remarks.iter().map(|(run, remark)| (*run, remark.as_str())))
    }

    fn untested_in_html(&self) -> String {
        let items: String =
            self.untested_in_words().map(|untested| format!("<li>{}</li>\n", escaped(&untested))).collect();
        match items.is_empty() {
            true => paragraph("Every recipe that the release has for this GPU type ran."),
            false => format!("<ul>\n{items}</ul>\n"),
        }
    }

    /// Returns how much the repeats of a run differ: a sentence.
    fn repeatability(&self) -> String {
        let spreads = self.runs.iter().filter_map(CertifiedRun::spread_s);
        match spreads.map(|(fastest_s, slowest_s)| slowest_s / fastest_s - 1.0).reduce(f64::max) {
            Some(spread) => {
                format!(
                    "The step times of a run's repeats differ by at most {} %.",
                    significant(100.0 * spread, 2)
                )
            }
            None => "No run has two scored repeats, so the variation from run to run is unknown.".to_owned(),
        }
    }

    /// Returns which software ran, and where each recipe, script and result is from.
    fn provenance(&self) -> String {
        let software = format!(
            "The containers of release {} have this software: {}.",
            self.release,
            self.release.software().stack.title()
        );
        let head = [
            "Run",
            "Recipe read from",
            "Reference from",
            "Run in",
            "Launch",
            "SHA-256 of the script",
            "Results",
        ];
        let rows = self.runs.iter().map(|run| {
            let source = run.catalog_recipe().and_then(|recipe| Catalog::embedded().source_of(recipe));
            let launch = run.launch.as_ref();
            let steps =
                launch.map_or(String::new(), |launch| format!("{} steps", group_digits(launch.steps.into())));
            let script = launch
                .map_or(String::new(), |launch| launch.script_sha256.chars().take(SHA256_DIGITS).collect());
            vec![
                escaped(&run.run),
                cell(&source.unwrap_or_default(), ""),
                run.reference_source_cell(),
                cell(run.container.as_deref().unwrap_or_default(), ""),
                cell(launch.map_or("", |launch| &launch.style), &steps),
                cell(&script, ""),
                cell(&run.results.join(", "), ""),
            ]
        });
        paragraph(&software) + &table("Provenance", head.into_iter().map(|name| title((name, false))), rows)
    }
}

impl CertifiedRun {
    fn catalog_recipe(&self) -> Option<&'static Recipe> {
        Catalog::embedded().recipe(self.recipe.as_deref()?).ok()
    }

    fn layout_cell(&self) -> String {
        self.catalog_recipe().map_or_else(
            || or_dash("").to_owned(),
            |recipe| {
                let layout = Candidate::of_recipe(recipe, recipe.dtype(), recipe.gbs).to_string();
                cell(&layout, &format!("GBS {}", group_digits(recipe.gbs.into())))
            },
        )
    }

    /// Returns the reference's step time, with its class, who published it, and the container in which it was measured.
    fn reference_cell(&self) -> String {
        let seconds = |number: String| format!("{number} s");
        let class = self.reference.class();
        match self.reference {
            RunReference::Published { step_time_s } | RunReference::WeakScaled { step_time_s, .. } => {
                let source = self.source.as_ref().map_or(String::new(), ReferenceSource::in_words);
                cell(&seconds(precise(step_time_s)), &format!("{class}: {source}"))
            }
            RunReference::Predicted { step_time_s } => {
                let range = readable_range((step_time_s.low, step_time_s.high), readable);
                cell(&seconds(readable(step_time_s.mid)), &format!("{class}, 80 % interval {range} s"))
            }
        }
    }

    /// Returns who published the reference, and the container in which it was measured.
    fn reference_source_cell(&self) -> String {
        let Some(source) = &self.source else { return or_dash("").to_owned() };
        cell(&source.publication, source.container.as_deref().unwrap_or_default())
    }

    /// Returns the step time that judges it, with the range of its repeats.
    fn measured_cell(&self) -> String {
        let Some((scored_s, judged_s)) = mean(&self.step_times_s).zip(self.judged_s) else {
            return or_dash("").to_owned();
        };
        let range = self.spread_s().map(|ends| format!("{} s", readable_range(ends, precise)));
        let scored =
            steady_difference(scored_s, judged_s).map(|_| format!("scored: {} s", precise(scored_s)));
        let details: Vec<String> = self.averaged().into_iter().chain(range).chain(scored).collect();
        cell(&format!("{} s", precise(judged_s)), &details.join(", "))
    }

    /// Returns its speed in percent of the reference's as a number and a bar, with a line at the least speed that passes.
    fn speed_cell(&self) -> String {
        let Some(percent) = self.judged_speed_percent else { return or_dash("").to_owned() };
        let least = 100.0 * self.reference.step_time_s() / self.reference.limit_s();
        let [length, least] = [percent, least].map(|percent| percent.clamp(0.0, BAR_PERCENT));
        format!(
            "{}<svg class=\"bar\" viewBox=\"0 0 {BAR_PERCENT} 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect class=\"{}\" width=\"{length:.1}\" height=\"8\"/>\
             <line x1=\"{least:.1}\" x2=\"{least:.1}\" y1=\"0\" y2=\"8\"/></svg>",
            self.speed(),
            self.verdict.class()
        )
    }

    /// Returns its verdict with the reason.
    fn verdict_cell(&self) -> String {
        let is_predicted = matches!(self.reference, RunReference::Predicted { .. });
        let limit = match (self.verdict, is_predicted) {
            (RunVerdict::Passed, false) => {
                Some(format!("at least {LEAST_SPEED_PERCENT} % of the published speed"))
            }
            (RunVerdict::Passed, true) => Some("not slower than the 80 % interval".to_owned()),
            (RunVerdict::Slow, false) => {
                Some(format!("below {LEAST_SPEED_PERCENT} % of the published speed"))
            }
            (RunVerdict::Slow, true) => Some("slower than the 80 % interval".to_owned()),
            (RunVerdict::NotScored, _) => None,
        };
        let limit = limit.map(|limit| sentence(&limit));
        let reasons: Vec<&str> = limit.iter().chain(&self.reasons).map(String::as_str).collect();
        let verdict = format!("<b class=\"{}\">{}</b>", self.verdict.class(), self.verdict.in_words());
        format!("{verdict}<small>{}</small>", escaped(&reasons.join(" ")))
    }
}

impl RunVerdict {
    /// Returns its class in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            RunVerdict::Passed => "passed",
            RunVerdict::Slow => "slow",
            RunVerdict::NotScored => "not-scored",
        }
    }
}

/// Returns a column's title as HTML, and whether the column has numbers.
fn title((title, is_number): (&str, bool)) -> (String, bool) {
    (escaped(title), is_number)
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

/// Returns a section whose content is HTML already; nothing if it is empty.
fn section(title: &str, content: &str) -> String {
    match content {
        "" => String::new(),
        content => format!("<h2>{}</h2>\n{content}", escaped(title)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{UntestedRecipe, untested};
    use super::*;
    use crate::catalog::Release;
    use crate::estimate::Interval;
    use crate::result::{Comparability, LaunchRecord};

    const RELEASE: Release = Release::R26_06_01;
    const HOSTILE: &str = "<script src='//x.example'>\"&";

    fn run(recipe: &str, (repeats, times_s): (usize, &[f64]), reasons: &[&str]) -> CertifiedRun {
        let predicted = Interval { low: 9.0, mid: 10.0, high: 11.0 };
        let times = times_s.iter().map(|time_s| (*time_s, *time_s)).collect();
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        let name = recipe.split('/').next().unwrap();
        CertifiedRun {
            launch: Some(LaunchRecord {
                release: Some(RELEASE.to_string()),
                style: "llmb-run".to_owned(),
                script_sha256: "0123456789abcdef".repeat(4),
                steps: 50,
                comparable: Comparability { yes: true, reasons: Vec::new() },
            }),
            results: vec!["0197f2c1-5a3e-7cc0-9d43-1f0b8f0a2b11".to_owned()],
            ..CertifiedRun::new(name, Some(recipe), 64, (repeats, times), predicted, reasons)
        }
    }

    fn certificate(runs: Vec<CertifiedRun>) -> Certificate {
        Certificate {
            cluster: "alpha".to_owned(),
            gpu: "h100".to_owned(),
            gpus: 64,
            release: RELEASE,
            began: "2026-11-25T02:00:00Z".to_owned(),
            runs,
            untested: untested("h100", 64, RELEASE),
            command: "trainplan certify --cluster alpha".to_owned(),
        }
    }

    fn exact(times_s: &[f64]) -> CertifiedRun {
        run("llama3.1-70b/h100/fp8/64@26.06.01", (times_s.len(), times_s), &[])
    }

    #[test]
    fn a_page_has_every_run_with_its_reference_spread_and_reason() {
        let slow = CertifiedRun { cause: Some("The network is slow.".to_owned()), ..exact(&[25.0]) };
        let scaled = run("llama3.1-70b/h100/fp8/512@26.06.01", (1, &[19.7]), &[]);
        assert!(matches!(scaled.reference, RunReference::WeakScaled { .. }));
        let predicted = run("llama3.1-8b/h100/bf16/64@26.06.01", (1, &[10.5]), &[]);
        let lost = run("llama3.1-8b/h100/bf16/64@26.06.01", (1, &[]), &["the job was cancelled"]);
        let html = certificate(vec![exact(&[20.0, 20.2]), slow, scaled, predicted, lost]).html();
        for text in [
            "<h1>Certification of alpha</h1>",
            "3 of 5 runs passed, 1 is slow, 1 was not scored.",
            "recipes of release 26.06.01, 2026-11-25 02:00 UTC.</p>",
            // 1,664 tokens/s per GPU are published: 19.69 s.
            "<td class=\"number\">19.69 s<small>exact: Megatron-Bridge 26.04.01, nemo:26.04.01</small>",
            "<small>weak-scaled from 64 GPUs: ",
            "10.0 s<small>predicted, 80 % interval 9.00–11.0 s</small>",
            "20.1 s<small>mean of 2, 20–20.2 s</small>",
            "<b class=\"slow\">slow</b><small>Below 95 % of the published speed.</small>",
            "<b class=\"not-scored\">not scored</b><small>The job was cancelled.</small>",
            "<li><b>llama3.1-70b</b>: 78.8 % of the reference&#39;s speed. The network is slow.</li>",
            "<li>Not tested because the release has no recipe for 64 GPUs: ",
            "The step times of a run&#39;s repeats differ by at most 1 %.",
            "<td>Megatron-Bridge 26.04.01<small>nemo:26.04.01</small></td><td>nemo:26.04.01</td>",
            "<td>0123456789ab</td>",
            "<td>0197f2c1-5a3e-7cc0-9d43-1f0b8f0a2b11</td>",
            "<pre><code>trainplan certify --cluster alpha</code></pre>",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
        // A bar for each scored run, with the line at 95 %, or at the end of the interval.
        assert_eq!(html.matches("<svg class=\"bar\"").count(), 4, "{html}");
        assert_eq!(html.matches("<line x1=\"95.0\"").count(), 3, "{html}");
        assert_eq!(html.matches("<line x1=\"90.9\"").count(), 1, "{html}");
    }

    #[test]
    fn a_single_run_has_no_spread_and_a_passed_one_no_section_of_slow_runs() {
        let html = certificate(vec![exact(&[20.0])]).html();
        assert!(html.contains("the variation from run to run is unknown"), "{html}");
        assert!(!html.contains("Slow runs") && !html.contains("Much faster"), "{html}");
    }

    #[test]
    fn a_pass_that_is_much_faster_than_its_reference_has_its_remark_on_the_page() {
        let fast = CertifiedRun { run: HOSTILE.to_owned(), ..exact(&[10.0]) };
        let html = certificate(vec![fast]).html();
        let wanted = "<h2>Much faster than the reference</h2>\n<ul>\n<li><b>&lt;script src=&#39;//x.example&#39;&gt;&quot;&amp;</b>: \
                      It ran at 197 % of the reference&#39;s speed,";
        assert!(html.contains(wanted), "{html}");
    }

    #[test]
    fn a_run_in_another_container_than_its_reference_is_remarked_on() {
        let html = certificate(vec![exact(&[20.0])]).html();
        assert!(!html.contains("Other containers"), "{html}");
        let other = CertifiedRun { container: Some(HOSTILE.to_owned()), ..exact(&[20.0]) };
        let html = certificate(vec![other]).html();
        let wanted = "<h2>Other containers than the references</h2>\n<ul>\n<li><b>llama3.1-70b</b>: \
                      It uses &lt;script src=&#39;//x.example&#39;&gt;&quot;&amp;, but its reference was measured in nemo:26.04.01.";
        assert!(html.contains(wanted), "{html}");
    }

    #[test]
    fn a_slow_run_without_a_cause_says_so() {
        let html = certificate(vec![exact(&[25.0])]).html();
        assert!(html.contains("78.8 % of the reference&#39;s speed. No cause is known.</li>"), "{html}");
    }

    #[test]
    fn a_page_fetches_nothing_and_runs_no_script() {
        let html = certificate(vec![exact(&[20.0])]).html();
        assert!(html.contains("default-src 'none'"));
        for way in ["http://", "https://", "src=", "href=", "@import", "<script", "<iframe", "javascript:"] {
            assert!(!html.contains(way), "{way}");
        }
    }

    #[test]
    fn every_text_is_escaped() {
        let slow = exact(&[25.0]);
        let launch = slow.launch.clone().map(|launch| LaunchRecord {
            style: HOSTILE.to_owned(),
            script_sha256: HOSTILE.to_owned(),
            ..launch
        });
        let hostile = CertifiedRun {
            run: HOSTILE.to_owned(),
            recipe: Some(HOSTILE.to_owned()),
            reasons: vec![HOSTILE.to_owned()],
            cause: Some(HOSTILE.to_owned()),
            results: vec![HOSTILE.to_owned()],
            launch,
            ..slow
        };
        let text = || HOSTILE.to_owned();
        let untested = certificate(Vec::new()).untested.into_iter();
        let untested = untested.map(|recipe| UntestedRecipe { recipe: text(), ..recipe });
        let html = Certificate {
            cluster: text(),
            gpu: text(),
            began: text(),
            command: text(),
            untested: untested.collect(),
            ..certificate(vec![hostile])
        }
        .html();
        let wanted = "&lt;script src=&#39;//x.example&#39;&gt;&quot;&amp;";
        assert!(!html.contains("<script") && html.matches(wanted).count() >= 12, "{html}");
    }
}
