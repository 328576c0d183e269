//! The fastest measured run of each model on each GPU type, to hold a prediction against.

use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::precision::Dtype;
use crate::units::{duration, group_digits, parse_decimal, significant};
use std::sync::LazyLock;

/// The fastest measured run of a model on a GPU type, by tokens per second of each GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct BestMeasured {
    model: String,
    gpu: String,
    /// GPUs of the run.
    pub gpus: u32,
    /// Precision.
    pub dtype: Dtype,
    /// Sequence length, tokens.
    pub seq_len: u32,
    /// Tokens per second of each GPU.
    pub tokens_per_s_per_gpu: f64,
    /// The collection and its release.
    pub release: String,
}

impl FromRow for BestMeasured {
    fn from_row(row: &Row<'_>) -> Result<BestMeasured, DataError> {
        Ok(BestMeasured {
            model: row.string("model")?,
            gpu: row.string("gpu")?,
            gpus: row.value("gpus")?,
            dtype: row.value("precision")?,
            seq_len: row.value("seq_len")?,
            tokens_per_s_per_gpu: row.number("tokens")?,
            release: row.string("release")?,
        })
    }
}

impl BestMeasured {
    /// Returns the run of a model on a GPU type, by their ids; none if nobody published one.
    pub fn of(model: &str, gpu: &str) -> Option<&'static BestMeasured> {
        BestMeasured::all().iter().find(|run| run.model == model && run.gpu == gpu)
    }

    /// Returns on how many GPU types a model was measured.
    pub fn gpu_types(model: &str) -> usize {
        BestMeasured::all().iter().filter(|run| run.model == model).count()
    }

    fn all() -> &'static [BestMeasured] {
        static ALL: LazyLock<Vec<BestMeasured>> = LazyLock::new(|| embedded!("best_measured.csv"));
        &ALL
    }

    /// Returns the run in words: `256 GPUs, MXFP8, 4,096 tokens per sequence, Megatron-Bridge 25.11`.
    pub fn configuration(&self) -> String {
        format!(
            "{} GPUs, {}, {} tokens per sequence, {}",
            group_digits(self.gpus.into()),
            self.dtype.title(),
            group_digits(self.seq_len.into()),
            self.release
        )
    }

    /// Returns how many times as many tokens a plan is predicted to train per second as this run did.
    pub fn exceeded(&self, predicted_tokens_per_s_per_gpu: f64) -> f64 {
        predicted_tokens_per_s_per_gpu / self.tokens_per_s_per_gpu
    }

    /// Returns how a plan's predicted throughput compares with it, as sentences. `days` are the plan's.
    pub fn compared(&self, gpu_name: &str, predicted_tokens_per_s_per_gpu: f64, days: f64) -> String {
        let ratio = self.exceeded(predicted_tokens_per_s_per_gpu);
        let share = ((ratio - 1.0) * 100.0).round();
        // Less than that is noise.
        let slower = match share >= 5.0 {
            true => format!(" At the measured throughput, the plan would take {}.", duration(days * ratio)),
            false => String::new(),
        };
        let than = match share {
            0.0 => "as much as this plan is predicted to reach".to_string(),
            share if share > 0.0 => format!("this plan is predicted to reach {share} % more"),
            share => format!("this plan is predicted to reach {} % less", -share),
        };
        let reached = parse_decimal(&significant(self.tokens_per_s_per_gpu, 4));
        format!(
            "The fastest measured run of this model on {gpu_name} reached {} tokens/s per GPU ({}); {than}.{slower}",
            group_digits(reached.unwrap_or(self.tokens_per_s_per_gpu)),
            self.configuration()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_run_is_found_and_compared() {
        let best = BestMeasured::of("llama3.1-405b", "b200").unwrap();
        let said = |ratio: f64| best.compared("B200", best.tokens_per_s_per_gpu * ratio, 50.0);
        assert!(said(1.4).contains("on B200 reached") && said(1.4).contains("40 % more."), "{}", said(1.4));
        assert!(
            said(1.4).ends_with("At the measured throughput, the plan would take 70 days."),
            "{}",
            said(1.4)
        );
        assert!(said(0.8).ends_with("20 % less.") && said(1.0).contains("as much as"));
        assert_eq!(BestMeasured::of("llama3.1-405b", "gh200"), None);
    }
}
