//! Measured runs and published recipes: the Benchmarks page and its CSV file.

use super::{PageCell, SortValue, number, whole};
use crate::benchmarks::Benchmark;
use crate::catalog::{Baseline, Catalog};
use crate::range::ValueRange;
use crate::units::{group_digits, readable, readable_days, signed_percent, significant};

columns! {
    /// The columns of a table of benchmarks.
    BenchmarkColumn of Benchmark;

    Id "id" {
        csv 0 "id" => |row| Some(row.id.clone());
    }
    Model "model" {
        page "Model" => |row| PageCell::new(Some(row.model_title().to_owned()), row.shape());
        csv 3 "model" => |row| Some(row.model.clone());
        sort => |row| SortValue::Text(row.model_title().to_owned());
    }
    Gpu "gpu" {
        page "GPU" [main] => |row| row.gpu_title().to_owned().into();
        csv 5 "gpu" => |row| Some(row.gpu.clone());
        sort => |row| SortValue::Text(row.gpu_title().to_owned());
    }
    Gpus "gpus" {
        page "GPUs" [number, main] => |row| group_digits(row.gpus.into()).into();
        csv 6 "gpus" => |row| whole(Some(row.gpus));
        sort => |row| SortValue::Number(Some(row.gpus.into()));
    }
    Dtype "dtype" {
        page "Precision" [main] => |row| {
            let series = row.recipe.is_some_and(|recipe| recipe.id.strong).then(|| "strong scaling".to_owned());
            PageCell::new(Some(row.precision.title().to_owned()), series)
        };
        csv 7 "precision" => |row| Some(row.precision.title().to_owned());
        sort => |row| SortValue::Text(row.precision.title().to_owned());
    }
    TokensPerGpu "tokens-per-gpu" {
        page "Tokens/s/GPU" [number, main] => |row| row.tokens_per_s_per_gpu.map(throughput).into();
        csv 8 "tokens_per_s_per_gpu" => |row| number(row.tokens_per_s_per_gpu);
        sort => |row| SortValue::Number(row.tokens_per_s_per_gpu);
    }
    Tflops "tflops" {
        page "TFLOPS/GPU" [number, main] => |row| row.tflops.map(throughput).into();
        csv 22 "model_tflops_per_gpu" => |row| number(row.tflops);
        sort => |row| SortValue::Number(row.tflops);
    }
    Mfu "mfu" {
        page "MFU of BF16, %" [number] => |row| {
            let printed = baseline(row).map(|baseline| format!("{} printed", baseline.printed_mfu_pct));
            PageCell::new(row.mfu_of_bf16().map(|mfu| readable(mfu * 100.0)), printed)
        };
        csv 9 "mfu_of_bf16_peak" => |row| number(row.mfu_of_bf16());
        sort => |row| SortValue::Number(row.mfu_of_bf16());
    }
    Cost "cost" {
        page "$ per 1M tokens" [number] => |row| row.cost_per_1m().map(|cost| cost.readable(readable)).into();
        csv 10 "usd_per_1m_tokens_low" => |row| number(row.cost_per_1m().map(|cost| cost.low));
        sort => |row| SortValue::Number(row.cost_per_1m().map(middle));
    }
    CostHigh "cost-high" {
        csv 11 "usd_per_1m_tokens_high" => |row| number(row.cost_per_1m().map(|cost| cost.high));
    }
    StepTime "step-time" {
        page "Step, s" [number] => |row| row.step_time_s.map(|time| significant(time, 4)).into();
        csv 12 "step_time_s" => |row| number(row.step_time_s);
        sort => |row| SortValue::Number(row.step_time_s);
    }
    Tokens "tokens" {
        csv 13 "tokens_per_s" => |row| number(row.tokens_per_s());
        sort => |row| SortValue::Number(row.tokens_per_s());
    }
    Days "days" {
        page "Days for 1T" [number] => |row| row.days_for_1t().map(readable_days).into();
        csv 14 "days_for_1t_tokens" => |row| number(row.days_for_1t());
        sort => |row| SortValue::Number(row.days_for_1t());
    }
    Layout "layout" {
        page "Layout" => |row| row.layout_text().into();
        csv 15 "layout" => |row| Some(row.layout_text());
    }
    Gbs "gbs" {
        page "GBS" [number] => |row| {
            let mbs = row.layout.mbs.map(|mbs| format!("MBS {mbs}"));
            PageCell::new(Some(group_digits(row.gbs.into())), mbs)
        };
        csv 16 "gbs" => |row| whole(Some(row.gbs));
        sort => |row| SortValue::Number(Some(row.gbs.into()));
    }
    Mbs "mbs" {
        csv 17 "mbs" => |row| whole(row.layout.mbs);
    }
    SeqLen "seq_len" {
        csv 18 "seq_len" => |row| whole(Some(row.seq_len));
    }
    Layers "layers" {
        csv 4 "layers" => |row| whole(row.layers);
    }
    Error "error" {
        page "Prediction error" [number] => |row| row.held_out_error.map(signed_percent).into();
        csv 19 "held_out_error" => |row| number(row.held_out_error);
        sort => |row| SortValue::Number(row.held_out_error.map(f64::abs));
    }
    Source "source" {
        csv 1 "source" => |row| Some(row.source.clone());
    }
    Release "release" {
        page "Source" => |row| {
            let reference = row.reference_of().map(|of| format!("reference of {of}"));
            PageCell::new(Some(row.source_title()), reference)
        };
        csv 2 "release" => |row| Some(row.release.clone());
        // By date, as the names of releases don't sort.
        sort => |row| SortValue::Text(row.released());
    }
    Url "url" {
        csv 20 "url" => |row| row.source_url().map(str::to_owned);
    }
    Recipe "recipe" {
        csv 23 "recipe" => |row| row.recipe.map(|recipe| recipe.id.to_string());
    }
    Note "note" {
        csv 21 "not_used_for_fit" => |row| Some(row.note.clone()).filter(|note| !note.is_empty());
    }
}

/// Returns a throughput: whole, or with three digits if it is low.
fn throughput(value: f64) -> String {
    if value < 100.0 { readable(value) } else { group_digits(value) }
}

fn middle(range: ValueRange) -> f64 {
    (range.low + range.high) / 2.0
}

fn baseline(row: &Benchmark) -> Option<&'static Baseline> {
    Catalog::embedded().baseline(&row.recipe?.id).filter(|baseline| !baseline.printed_mfu_pct.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::{ModelKind, parse};

    fn rows() -> Vec<Benchmark> {
        parse(include_str!("../../data/benchmarks.csv")).unwrap()
    }

    #[test]
    fn links_of_the_recipes_page_sort_as_they_did() {
        let sortable = BenchmarkColumn::ALL.iter().filter(|column| column.is_sortable());
        let keys: Vec<&str> = sortable.map(|column| column.key()).collect();
        for key in ["model", "gpu", "gpus", "dtype", "gbs", "step-time", "tokens", "mfu", "days", "release"] {
            assert!(keys.contains(&key), "{key}");
        }
    }

    #[test]
    fn models_of_any_size_compare_by_model_flops() {
        let rows = rows();
        let named = || rows.iter().filter(|row| row.model_kind() == ModelKind::Named && !row.is_proxy());
        let best = |column: BenchmarkColumn| {
            let value = |row: &&Benchmark| column.sort_value(row).unwrap();
            named().min_by(|one, other| value(one).order(&value(other), true)).unwrap()
        };
        let size = |column| best(column).active_parameters().unwrap();
        // By tokens per second, the smallest models are the best.
        assert!(size(BenchmarkColumn::TokensPerGpu) < 1e9);
        assert!(size(BenchmarkColumn::Tflops) > 1e10);
    }

    #[test]
    fn fp8_and_bf16_of_one_model_compare_by_one_peak() {
        let rows = rows();
        let of = |dtype: &str| {
            let id = format!("llama3.1-405b/h100/{dtype}/512@25.04");
            let row = rows.iter().find(|row| row.recipe.is_some_and(|recipe| recipe.id.to_string() == id));
            row.and_then(Benchmark::mfu_of_bf16).unwrap()
        };
        // By its own peak, twice as high, FP8 would look worse than BF16.
        assert!(of("fp8") > 1.3 * of("bf16"), "{} {}", of("fp8"), of("bf16"));
    }

    #[test]
    fn a_row_shows_what_was_printed_and_what_was_counted_anew() {
        let rows = rows();
        let row = rows
            .iter()
            .find(|row| {
                row.recipe.is_some_and(|recipe| recipe.id.to_string() == "llama3.1-405b/h100/fp8/512@25.04")
            })
            .unwrap();
        let text = |column: BenchmarkColumn| column.page_cell(row).unwrap();
        assert_eq!(text(BenchmarkColumn::StepTime).text, "12.37");
        assert_eq!(text(BenchmarkColumn::Gbs).detail, "MBS 1");
        assert!(text(BenchmarkColumn::Mfu).detail.ends_with("printed"));
        assert_eq!(text(BenchmarkColumn::Release).text, "DGX Cloud recipes 25.04");
        assert_eq!(text(BenchmarkColumn::Days).text, "68");
    }
}
