//! The report of a certification in Markdown.

use super::{Certificate, CertifiedRun, criteria};
use std::fmt::Write;

impl Certificate {
    /// Returns the report to hand on, in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n{}\n\n{}\n\n| Run | Step time | Reference | Speed, % | Verdict |\n|---|--:|---|--:|---|\n",
            self.title(),
            self.subject(&self.began),
            self.summary()
        );
        for cells in self.rows() {
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        let _ = write!(text, "\n{}\n", criteria());
        let reasons: Vec<String> = self
            .runs
            .iter()
            .flat_map(|run| run.reasons.iter().map(|why| format!("- {}: {why}\n", run.run)))
            .collect();
        let remarks: Vec<String> = self.remarks().map(|remark| format!("- {remark}\n")).collect();
        if !remarks.is_empty() {
            let _ =
                write!(text, "\nRuns that are much faster than their references:\n\n{}", remarks.concat());
        }
        let containers: Vec<String> =
            self.container_remarks().map(|remark| format!("- {remark}\n")).collect();
        if !containers.is_empty() {
            let _ =
                write!(text, "\nRuns in other containers than their references:\n\n{}", containers.concat());
        }
        if !reasons.is_empty() {
            let _ = write!(text, "\nWhy runs or repeats were not scored:\n\n{}", reasons.concat());
        }
        let causes: Vec<String> = self
            .runs
            .iter()
            .filter_map(|run| Some(format!("- {}: {}\n", run.run, run.cause.as_ref()?)))
            .collect();
        if !causes.is_empty() {
            let _ = write!(text, "\nWhat could explain slow runs:\n\n{}", causes.concat());
        }
        for untested in self.untested_in_words() {
            let _ = writeln!(text, "\n{untested}");
        }
        text += "\n| Run | Reference | Published by | Measured in | Run in |\n|---|---|---|---|---|\n";
        for run in &self.runs {
            let _ = writeln!(text, "| {} | {} |", run.run, run.origin().join(" | "));
        }
        let _ = writeln!(text, "\nTo measure it again:\n\n    {}", self.command);
        text
    }
}

impl CertifiedRun {
    /// Returns the class of its reference, who published it, the container in which it was measured, and that of the run.
    pub(super) fn origin(&self) -> [String; 4] {
        let source = self.source.as_ref();
        let publication = source.map(|source| source.publication.clone());
        let containers = [source.and_then(|source| source.container.clone()), self.container.clone()];
        let [measured_in, run_in] = containers.map(or_dash);
        [self.reference.class(), or_dash(publication), measured_in, run_in]
    }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::certified_run::tests::of;
    use super::super::untested;
    use super::*;
    use crate::catalog::Release;

    #[test]
    fn a_report_says_what_was_compared_with_what() {
        let certificate = Certificate {
            cluster: "alpha".to_owned(),
            gpu: "h100".to_owned(),
            gpus: 64,
            release: Release::R26_06_01,
            began: "2026-11-25 02:00".to_owned(),
            runs: vec![
                of("llama3.1-70b/h100/fp8/64@26.06.01", &[20.0]),
                of("llama3.1-8b/h100/bf16/64@26.06.01", &[12.0]),
            ],
            untested: untested("h100", 64, Release::R26_06_01),
            command: "trainplan certify".to_owned(),
        };
        let text = certificate.markdown();
        assert!(!text.contains("much faster"), "{text}");
        let fast = vec![of("llama3.1-70b/h100/fp8/64@26.06.01", &[10.0])];
        let text_of_fast = Certificate { runs: fast, ..certificate.clone() }.markdown();
        assert!(
            text_of_fast.contains("\n- run: It ran at 197 % of the reference's speed,"),
            "{text_of_fast}"
        );
        assert!(text.contains("1 of 2 runs passed, 1 is slow. For 1 of them nothing is published"), "{text}");
        assert!(text.contains("19.69 s, published |") && text.contains("(9.00–11.0), predicted"), "{text}");
        let origins = "| run | exact | Megatron-Bridge 26.04.01 | nemo:26.04.01 | nemo:26.04.01 |\n\
                       | run | predicted | - | - | nemo:26.04.01 |\n";
        assert!(text.contains(origins) && !text.contains("other containers"), "{text}");
        let card = vec![of("gpt-oss-120b/gb200/bf16/64@bridge-main", &[5.0])];
        let text_of_card = Certificate { runs: card, ..certificate }.markdown();
        assert!(text_of_card.contains("\n- run: It uses nemo:26.08, but its reference"), "{text_of_card}");
        assert!(text.contains("\n\nNot tested because the release has no recipe for 64 GPUs: "), "{text}");
        assert!(text.contains("llama3.1-405b-bf16 (1,024 GPUs)"), "{text}");
        assert!(text.contains("qwen3-235b-a22b-bf16 (256 or 512 GPUs)"), "{text}");
    }
}
