//! A comparison as rows, for spreadsheets and programs.

use super::{Against, Comparison, Item};
use crate::statistics::Sample;

/// What stands in a column, of a run and of what it is against the first.
type Cell = fn(&Item, Option<&Against>) -> String;

/// The columns of [`Comparison::csv`].
const COLUMNS: [(&str, Cell); 48] = [
    ("label", |item, _| item.label.clone()),
    ("id", |item, _| item.id.clone()),
    ("path", |item, _| item.path.clone()),
    ("campaign", |item, _| text(&item.campaign)),
    ("run", |item, _| text(&item.run)),
    ("repeat", |item, _| whole(item.repeat)),
    ("cluster", |item, _| text(&item.cluster)),
    ("recipe", |item, _| text(&item.recipe)),
    ("gpus", |item, _| whole(item.gpus)),
    ("status", |item, _| item.status.id().into()),
    ("window", |item, _| text(&item.window)),
    ("steps", |item, _| item.steps.to_string()),
    ("step_time_s_mean", |item, _| number(item.step_time_s.map(|stat| stat.mean))),
    ("step_time_s_std", |item, _| number(item.step_time_s.and_then(|stat| stat.std))),
    ("std_kind", |item, _| item.step_time_s.map_or(String::new(), |stat| stat.std_kind.id().into())),
    ("n", |item, _| whole(item.step_time_s.map(|stat| stat.n))),
    ("steady_first", |item, _| whole(item.steady.map(|steady| steady.first))),
    ("steady_last", |item, _| whole(item.steady.map(|steady| steady.last))),
    ("steady_mean_s", |item, _| number(sample(item).map(|sample| sample.mean))),
    ("steady_low_s", |item, _| number(sample(item).and_then(|sample| sample.low))),
    ("steady_high_s", |item, _| number(sample(item).and_then(|sample| sample.high))),
    ("steady_n_effective", |item, _| number(sample(item).and_then(|sample| sample.n_effective))),
    ("steady_p5_s", |item, _| number(sample(item).map(|sample| sample.p5))),
    ("steady_median_s", |item, _| number(sample(item).map(|sample| sample.median))),
    ("steady_p95_s", |item, _| number(sample(item).map(|sample| sample.p95))),
    ("tokens_per_s", |item, _| number(item.tokens_per_s)),
    ("tokens_per_s_per_gpu", |item, _| number(item.tokens_per_s_per_gpu)),
    ("mfu", |item, _| number(item.mfu)),
    ("convention", |item, _| item.convention.map_or(String::new(), |convention| convention.to_string())),
    ("peak_tflops", |item, _| number(item.peak_tflops)),
    ("model_tflops_per_gpu", |item, _| number(item.model_tflops_per_gpu)),
    ("plan_low_s", |item, _| number(item.plan.map(|plan| plan.step_time_s.low))),
    ("plan_mid_s", |item, _| number(item.plan.map(|plan| plan.step_time_s.mid))),
    ("plan_high_s", |item, _| number(item.plan.map(|plan| plan.step_time_s.high))),
    ("plan_error", |item, _| number(item.plan.and_then(|plan| plan.error))),
    ("published_step_time_s", |item, _| number(item.baseline.map(|baseline| baseline.step_time_s))),
    ("speed_percent", |item, _| number(item.baseline.and_then(|baseline| baseline.speed_percent))),
    ("memory_peak_bytes", |item, _| number(item.memory.peak_bytes)),
    ("loss_first", |item, _| number(item.loss.first)),
    ("loss_last", |item, _| number(item.loss.last)),
    ("verdict", |_, against| against.map_or("reference", |against| against.verdict.id()).into()),
    ("change_percent", |_, against| {
        number(against.and_then(|against| against.step_time).map(|change| change.percent))
    }),
    ("change_low_percent", |_, against| {
        number(against.and_then(|against| against.step_time).and_then(|change| change.low))
    }),
    ("change_high_percent", |_, against| {
        number(against.and_then(|against| against.step_time).and_then(|change| change.high))
    }),
    ("p", |_, against| number(against.and_then(|against| against.step_time).and_then(|change| change.p))),
    ("effect_size", |_, against| number(against.and_then(|against| against.effect_size))),
    ("tokens_per_s_per_gpu_percent", |_, against| {
        number(against.and_then(|against| against.tokens_per_s_per_gpu_percent))
    }),
    ("not_comparable_because", |item, against| {
        against.map_or(&item.comparable.reasons, |against| &against.reasons).join("; ")
    }),
];

impl Comparison {
    /// As CSV: a header, then a row for every run. An empty cell is what is not known.
    ///
    /// # Errors
    /// None that memory does not give.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS.map(|(name, _)| name))?;
        for (place, item) in self.items.iter().enumerate() {
            let against = self.difference.each.iter().find(|against| against.item == place);
            writer.write_record(COLUMNS.map(|(_, cell)| cell(item, against)))?;
        }
        let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn sample(item: &Item) -> Option<Sample> {
    item.steady.map(|steady| steady.step_time_s)
}

fn text(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

fn number(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

fn whole(number: Option<impl Into<u64>>) -> String {
    number.map_or(String::new(), |number| number.into().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Options;
    use crate::result::{Intake, RunResult};
    use crate::spec::Spec;
    use std::collections::HashMap;

    fn run(job: u32, ms: u32) -> RunResult {
        let name = format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out");
        let mut intake = Intake::new(name, &Spec::default());
        for step in 0..50 {
            let time = f64::from(ms + step % 7) / 1000.0;
            let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time} |\n");
            intake.feed(line.as_bytes());
        }
        intake.finish()
    }

    #[test]
    fn every_row_says_what_the_comparison_says() {
        let runs = [run(1, 12_000), run(2, 12_600)];
        let comparison = Comparison::of(&runs.iter().collect::<Vec<_>>(), &Options::default());
        let text = comparison.csv().unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<HashMap<String, String>> = reader.deserialize().map(Result::unwrap).collect();
        assert!(rows.iter().all(|row| row.len() == COLUMNS.len()), "a name comes twice: {text}");
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0]["verdict"].as_str(), rows[1]["verdict"].as_str()), ("reference", "slower"));
        assert_eq!(rows[0]["change_percent"], "");
        let change = comparison.difference.each[0].step_time.unwrap();
        assert_eq!(rows[1]["change_percent"].parse(), Ok(change.percent));
        assert_eq!(rows[1]["steady_first"], "10");
        assert_eq!(rows[1]["id"], comparison.items[1].id);
    }
}
