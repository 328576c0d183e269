//! The measurements behind a predicted step time, and how far they can be trusted.

use crate::choices::choices;
use crate::cluster_factors::ClusterFactors;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::decimal::parse_decimal;
use crate::precision::Dtype;
use crate::range::ValueRange;
use crate::stack::Stack;
use crate::units::{signed_percent, significant};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Likeness above which a measured run on the same GPU counts as a similar layout.
pub(super) const SIMILAR: f64 = 0.6;

/// How much longer a step must take with the software of measured runs before an estimate or a plan warns.
pub const MUCH_BY_SOFTWARE: f64 = 0.05;

/// The measurements behind a predicted step time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// How close the nearest measurements are.
    pub kind: EvidenceKind,
    /// Step time by the physical model alone, s.
    pub modelled_s: f64,
    /// Factor by which measurements correct the physical model.
    pub correction: f64,
    /// How much of the correction may not apply, as a logarithm of the step time: the less alike the nearest run, the more. The
    /// correction counts as at least what the error of the nearest run contributes, even where other runs outweigh it.
    #[serde(skip)]
    pub doubt: f64,
    /// The share of the model's error, as a variance, that the nearest run doesn't explain.
    #[serde(skip)]
    pub unlike: f64,
    /// The step times of measured runs of the scenario itself, as factors on the prediction; none if it was not measured. They differ from
    /// 1 because similar runs pull the prediction away from each run, by up to the spread of repeated measurements or more if the
    /// runs contradict each other.
    #[serde(skip)]
    pub measured: Option<ValueRange>,
    /// Whether a mixture of experts uses parallelism or recomputation that few of them were measured with (context parallelism, expert
    /// tensor parallelism, full recomputation or FSDP) and that no similar run of the model used.
    #[serde(skip)]
    pub is_rare: bool,
    /// The software of the nearest run on the scenario's GPU type; none if a run there used the scenario's software, or none was
    /// measured there.
    #[serde(skip)]
    pub measured_with: Option<Stack>,
    /// The names of the settings in which a run of the scenario's layout and software differs; none if there is no such run, or if
    /// what differs is not known.
    #[serde(skip)]
    pub other_settings: Vec<&'static str>,
    /// The precision of the nearest run in a similar layout, and the scenario's, if no such run has the scenario's.
    #[serde(skip)]
    pub other_precision: Option<[Dtype; 2]>,
    /// The factors of the user's cluster, which the prediction includes.
    #[serde(skip)]
    pub cluster: ClusterFactors,
    /// All of those on the scenario's GPU type, then the nearest of the others; each part nearest first.
    pub anchors: Vec<Anchor>,
}

/// How close the nearest measurements are to a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// The scenario itself was measured.
    Published,
    /// The same model was measured on the same GPU in a similar layout.
    Interpolated,
    /// Only distant runs of the model were measured, or none.
    Modelled,
}

impl EvidenceKind {
    /// Returns how far a prediction can be trusted, by whether any run of its model was measured.
    pub(super) const fn confidence(self, is_measured: bool) -> Confidence {
        match (self, is_measured) {
            (EvidenceKind::Published, _) => Confidence::High,
            (EvidenceKind::Interpolated, _) => Confidence::Medium,
            (EvidenceKind::Modelled, true) => Confidence::Low,
            (EvidenceKind::Modelled, false) => Confidence::Lowest,
        }
    }

    /// Returns the id that JSON and stored plans use.
    pub const fn id(self) -> &'static str {
        match self {
            EvidenceKind::Published => "published",
            EvidenceKind::Interpolated => "interpolated",
            EvidenceKind::Modelled => "modelled",
        }
    }
}

/// A measured run that corrects a prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "NamedAnchor")]
pub struct Anchor {
    /// Its layout in one line: `TP 4 · PP 2 · MBS 1`.
    pub layout: String,
    /// How close it is to the scenario.
    pub closeness: Closeness,
    /// How strongly its error is correlated with the error of the scenario's prediction, from 0 to 1.
    pub likeness: f64,
    /// Its records: one for each software that it was measured with.
    pub records: Vec<Record>,
}

/// An anchor in JSON.
#[derive(Serialize)]
struct NamedAnchor {
    /// Model, GPUs, precision and layout of the measured run, for display.
    what: String,
    closeness: Closeness,
    likeness: f64,
    /// Its measurements: once, or once for each release that measured it.
    runs: Vec<MeasuredRun>,
}

impl From<Anchor> for NamedAnchor {
    fn from(anchor: Anchor) -> NamedAnchor {
        let runs = anchor.runs().cloned().collect();
        NamedAnchor { what: anchor.what(), closeness: anchor.closeness, likeness: anchor.likeness, runs }
    }
}

/// The measurement: the record itself, or its place among the embedded ones. So a search, which shows no records, doesn't
/// need to embed them.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A record that is not embedded.
    Own(MeasuredConfiguration),
    /// The place in `anchor_runs.csv`.
    Embedded(usize),
}

/// A configuration with its measurements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredConfiguration {
    /// Model, GPUs and precision, for display.
    pub what: String,
    /// Its measurements.
    pub runs: Vec<MeasuredRun>,
}

impl FromRow for MeasuredConfiguration {
    fn from_row(row: &Row<'_>) -> Result<MeasuredConfiguration, DataError> {
        let releases: Vec<&str> = row.text("releases")?.split("; ").collect();
        // A column has one value for each release.
        let values = |column: &str| {
            let values: Vec<&str> = row.text(column)?.split(' ').collect();
            match values.len() == releases.len() {
                true => Ok(values),
                false => Err(row.error(format!("{} {column} for {} releases", values.len(), releases.len()))),
            }
        };
        let number =
            |text: &str| parse_decimal(text).ok_or_else(|| row.error(format!("\"{text}\" is not a number")));
        let address = |text: &str| match text.starts_with("https://") {
            true => Ok(text.to_string()),
            false => Err(row.error(format!("\"{text}\" is not an https address"))),
        };
        let (step_times, tokens) = (values("step_time_s")?, values("tokens")?);
        let (errors, urls) = (values("held_out")?, values("urls")?);
        let run = |(place, release): (usize, &&str)| -> Result<MeasuredRun, DataError> {
            Ok(MeasuredRun {
                release: (*release).to_string(),
                step_time_s: number(step_times[place])?,
                tokens_per_s_per_gpu: number(tokens[place])?,
                url: known(urls[place]).map(address).transpose()?,
                held_out_error: known(errors[place]).map(number).transpose()?,
            })
        };
        let runs: Result<Vec<MeasuredRun>, DataError> = releases.iter().enumerate().map(run).collect();
        Ok(MeasuredConfiguration { what: row.string("what")?, runs: runs? })
    }
}

/// Returns a value of `anchor_runs.csv`; none if it is unknown.
fn known(value: &str) -> Option<&str> {
    (value != "?").then_some(value)
}

impl Record {
    /// Returns what was measured.
    pub fn configuration(&self) -> &MeasuredConfiguration {
        static EMBEDDED: LazyLock<Vec<MeasuredConfiguration>> =
            LazyLock::new(|| embedded!("anchor_runs.csv"));
        static UNKNOWN: MeasuredConfiguration =
            MeasuredConfiguration { what: String::new(), runs: Vec::new() };
        match self {
            Record::Own(configuration) => configuration,
            Record::Embedded(place) => EMBEDDED.get(*place).unwrap_or(&UNKNOWN),
        }
    }
}

/// A measurement of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRun {
    /// The collection and its release, for display.
    pub release: String,
    /// Measured seconds per step.
    pub step_time_s: f64,
    /// Tokens per second of each GPU, from the step time.
    pub tokens_per_s_per_gpu: f64,
    /// The address of the table, log or paper, else of the collection; none of a run from an unknown collection.
    pub url: Option<String>,
    /// The error of its prediction without any measurement of its mapping: predicted over measured, minus 1.
    pub held_out_error: Option<f64>,
}

choices! {
    /// How close a measured run is to a scenario, closest first.
    Closeness {
        /// The same run: software, layout, batch, precision and every other setting agree.
        Same "same" "same layout",
        /// The same layout and software, with other settings: the pipeline split, overlap, recomputed modules, or the speed
        /// of the user's cluster.
        OtherSettings "other_settings" "same layout, other settings",
        /// The same GPU and software in a similar layout, in the same precision or another one of as many bits.
        Similar "similar" "similar layout",
        /// The same layout with other software.
        OtherSoftware "other_software" "same layout, other software",
        /// Another GPU, software or number of bits, or a layout that is far away.
        Distant "distant" "distant",
    }
}

/// How many of the releases that measured a run its line names.
const LISTED_RELEASES: usize = 2;

impl Anchor {
    /// Returns model, GPUs, precision and layout of the measured run, for display.
    pub fn what(&self) -> String {
        let what = self.records.first().map_or("", |record| &record.configuration().what);
        format!("{what}, {}", self.layout)
    }

    /// Returns its measurements.
    pub fn runs(&self) -> impl Iterator<Item = &MeasuredRun> {
        self.records.iter().flat_map(|record| &record.configuration().runs)
    }

    /// Returns the run in one line: what it was, who measured it, its step time, how close it is, and the error of its prediction
    /// without its own measurements.
    pub fn line(&self) -> String {
        let mut releases: Vec<&str> = Vec::new();
        for run in self.runs() {
            if !releases.contains(&&*run.release) {
                releases.push(&run.release);
            }
        }
        let more = releases.len().saturating_sub(LISTED_RELEASES);
        releases.truncate(LISTED_RELEASES);
        let mut releases = releases.join(", ");
        if more > 0 {
            releases += &format!(" and {more} more");
        }
        // Four digits, so that readers find the number in the source.
        let four_digits = |value| significant(value, 4);
        if let Some(range) = ValueRange::around(self.runs().map(|run| run.step_time_s)) {
            releases += &format!(": {} s per step", range.readable(four_digits));
        }
        let (what, closeness) = (self.what(), self.closeness.title());
        let held_out = match ValueRange::around(self.runs().filter_map(|run| run.held_out_error)) {
            None => String::new(),
            Some(ValueRange { low, high }) if signed_percent(low) == signed_percent(high) => {
                format!("; predicted without this run: {}", signed_percent(low))
            }
            Some(ValueRange { low, high }) => {
                format!("; predicted without these runs: {} to {}", signed_percent(low), signed_percent(high))
            }
        };
        format!("{what} ({releases}), {closeness}{held_out}")
    }
}

choices! {
    /// How far a prediction can be trusted.
    Confidence {
        /// No run of the model was measured.
        Lowest "lowest",
        /// Only distant runs of the model were measured.
        Low "low",
        /// The model was measured on the same GPU in a similar layout.
        Medium "medium",
        /// The scenario itself was measured.
        High "high",
    }
}

impl Evidence {
    /// Returns the held-out error of the scenario's own run, as measured by a release; none if that release did not measure the
    /// scenario.
    pub fn held_out_error(&self, release: &str) -> Option<f64> {
        let mut own = self.anchors.iter().filter(|anchor| anchor.closeness == Closeness::Same);
        own.find_map(|anchor| anchor.runs().find(|run| run.release == release)?.held_out_error)
    }

    /// Whether a measured run is that close.
    fn is_near(&self, closeness: Closeness) -> bool {
        self.anchors.iter().any(|anchor| anchor.closeness == closeness)
    }

    /// Returns how far the prediction can be trusted.
    pub fn confidence(&self) -> Confidence {
        self.kind.confidence(!self.anchors.is_empty())
    }

    /// Returns the sentences that the terminal and the page both show under a prediction.
    pub fn summary(&self) -> String {
        let percent = 100.0 * (self.correction - 1.0);
        let size = format!("{:.1} %", percent.abs());
        let estimate = match size.as_str() {
            "0.0 %" => "do not change the physical model's estimate".to_string(),
            _ if percent < 0.0 => format!("lower the physical model's estimate by {size}"),
            _ => format!("raise the physical model's estimate by {size}"),
        };
        let basis = match (self.confidence(), self.other_precision) {
            (Confidence::High, _) => {
                format!(
                    "High confidence: this exact layout was measured with this software. Measurements {estimate}."
                )
            }
            (Confidence::Medium, _) if self.is_near(Closeness::OtherSettings) => {
                let settings = match &*self.other_settings {
                    [] => ", such as the pipeline split, overlap or recomputed modules".to_string(),
                    names => format!(": {}", names.join(", ")),
                };
                format!(
                    "Medium confidence: this layout was measured with this software, but with other settings{settings}. \
                     Measurements {estimate}."
                )
            }
            (Confidence::Medium, Some([measured, own])) => format!(
                "Medium confidence: the same model was measured on this GPU, with this software, in a similar layout, but in \
                 {} instead of {}. Measurements {estimate}.",
                measured.title(),
                own.title()
            ),
            (Confidence::Medium, None) => format!(
                "Medium confidence: the same model was measured on this GPU, with this software and precision, in \
                 similar layouts. They {estimate}."
            ),
            (Confidence::Low, _) => {
                format!(
                    "Low confidence: no measured run of this model has a similar layout with this GPU, software and \
                     precision. Its other measurements {estimate}."
                )
            }
            (Confidence::Lowest, _) => {
                let only = if self.cluster.is_default() { " only" } else { "" };
                format!(
                    "Lowest confidence: no published measurements of this model. Physics-based estimate{only}."
                )
            }
        };
        if self.cluster.is_default() {
            return basis;
        }
        let noun = if self.cluster.is_only_step() { "factor of" } else { "factors" };
        format!("{basis} Calibrated with your cluster {noun} {}.", self.cluster.with_own_runs(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_file::read;

    fn evidence(kind: EvidenceKind, correction: f64, anchors: usize) -> Evidence {
        let layout = "MBS 1".to_string();
        let anchor = Anchor { layout, closeness: Closeness::Same, likeness: 1.0, records: Vec::new() };
        Evidence {
            kind,
            modelled_s: 1.0,
            correction,
            doubt: 0.0,
            unlike: 0.0,
            measured: None,
            is_rare: false,
            measured_with: None,
            other_settings: Vec::new(),
            other_precision: None,
            cluster: ClusterFactors::default(),
            anchors: vec![anchor; anchors],
        }
    }

    #[test]
    fn the_summary_names_confidence_and_correction() {
        let of = |kind, correction, anchors| evidence(kind, correction, anchors).summary();
        assert_eq!(
            of(EvidenceKind::Published, 0.943, 1),
            "High confidence: this exact layout was measured with this software. Measurements lower the physical model's estimate by 5.7 %."
        );
        assert!(
            of(EvidenceKind::Interpolated, 1.02, 1)
                .ends_with("They raise the physical model's estimate by 2.0 %.")
        );
        assert!(
            of(EvidenceKind::Modelled, 0.9999, 1)
                .ends_with("measurements do not change the physical model's estimate.")
        );
        assert_eq!(
            of(EvidenceKind::Modelled, 1.0, 0),
            "Lowest confidence: no published measurements of this model. Physics-based estimate only."
        );
    }

    #[test]
    fn the_summary_names_the_factors_of_the_users_cluster() {
        let of = |factors: &str| {
            let cluster = factors.parse().unwrap();
            Evidence { cluster, ..evidence(EvidenceKind::Modelled, 1.0, 0) }.summary()
        };
        assert!(
            of("1.154").ends_with("Physics-based estimate. Calibrated with your cluster factor of 1.154.")
        );
        assert!(of("1.08,host=1.4").ends_with("Calibrated with your cluster factors 1.08,host=1.4."));
    }

    #[test]
    fn a_line_names_the_releases_once_the_step_time_and_the_error_without_the_run() {
        let run = |release: &str, step_time_s: f64, error: f64| MeasuredRun {
            release: release.to_string(),
            step_time_s,
            tokens_per_s_per_gpu: 4096.0 / step_time_s,
            url: None,
            held_out_error: Some(error),
        };
        let anchor = |likeness, runs| {
            let what = "Llama 3.1 8B on 8 H100, BF16".to_string();
            let record = Record::Own(MeasuredConfiguration { what, runs });
            let closeness = if likeness < 1.0 { Closeness::Distant } else { Closeness::Same };
            Anchor { layout: "MBS 1".to_string(), closeness, likeness, records: vec![record] }
        };
        let one = anchor(1.0, vec![run("Megatron-Bridge 26.06", 4.16, 0.031)]);
        assert_eq!(
            one.line(),
            "Llama 3.1 8B on 8 H100, BF16, MBS 1 (Megatron-Bridge 26.06: 4.16 s per step), same layout; \
             predicted without this run: +3.1 %"
        );
        let runs = vec![
            run("DGX Cloud 25.04", 12.374, 0.02),
            run("DGX Cloud 25.04", 12.0, -0.01),
            run("NeMo 25.07", 12.5, 0.0),
        ];
        let several = anchor(0.18, runs);
        assert!(
            several.line().ends_with(
                "(DGX Cloud 25.04, NeMo 25.07: 12–12.5 s per step), distant; predicted without these runs: −1.0 % to +2.0 %"
            ),
            "{}",
            several.line()
        );
    }

    #[test]
    fn a_row_has_a_valid_value_for_each_release() {
        let of = |times: &str, error: &str, url: &str| {
            let head = "what,releases,step_time_s,tokens,held_out,urls";
            read::<MeasuredConfiguration>(
                "x.csv",
                &format!("{head}\nrun,A 1; B 2,{times},331.1 334.5,0.02 {error},https://a.b/c {url}\n"),
            )
        };
        let rows = of("12.37 12.25", "?", "?").unwrap();
        let [first, second] = &*rows[0].runs else { panic!("{rows:?}") };
        assert_eq!((&*first.release, first.step_time_s, first.tokens_per_s_per_gpu), ("A 1", 12.37, 331.1));
        assert_eq!((first.held_out_error, first.url.as_deref()), (Some(0.02), Some("https://a.b/c")));
        assert_eq!((&*second.release, second.step_time_s, second.held_out_error), ("B 2", 12.25, None));
        assert_eq!(second.url, None);
        for (times, error, url, reason) in [
            ("12.37", "?", "?", "1 step_time_s for 2 releases"),
            ("12.37 ?", "?", "?", "\"?\" is not a number"),
            ("12.37 12.25", "x", "?", "\"x\" is not a number"),
            ("12.37 12.25", "?", "javascript:a", "\"javascript:a\" is not an https address"),
        ] {
            assert_eq!(of(times, error, url).unwrap_err().into_reason(), reason);
        }
    }

    #[test]
    fn ids_are_those_of_json() {
        for kind in [EvidenceKind::Published, EvidenceKind::Interpolated, EvidenceKind::Modelled] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.id());
        }
    }
}
