//! The ticks of an axis of GPU counts.

use super::labels::log10;
use serde_json::Value;

/// Makes an axis logarithmic, with ticks at powers of two that fit a chart of a width in pixels.
pub(crate) fn count_gpus(axis: &mut Value, counts: impl Iterator<Item = f64>, width: f64) {
    let (least, most) =
        counts.fold((f64::INFINITY, 0.0_f64), |(least, most), count| (least.min(count), most.max(count)));
    let powers = (0..24).map(|power| f64::from(1_u32 << power));
    let powers: Vec<f64> = powers.filter(|power| (least..=most).contains(power)).collect();
    let most = ((width / COUNT_WIDTH) as usize).max(1);
    let ticks: Vec<f64> = powers.iter().copied().step_by(powers.len().div_ceil(most).max(1)).collect();
    axis["type"] = "log".into();
    if ticks.len() > 1 {
        axis["ticktext"] = ticks.iter().map(|tick| short_count(*tick)).collect();
        axis["tickvals"] = ticks.into();
    }
}

/// The width of a GPU count below an axis, with a gap, in pixels.
const COUNT_WIDTH: f64 = 44.0;

/// Returns a power of two as people write GPU counts: `512`, `4k`.
fn short_count(count: f64) -> String {
    if count >= 1024.0 { format!("{}k", count / 1024.0) } else { count.to_string() }
}

/// Returns the GPU counts whose labels have room below an axis, ascending. The axis is logarithmic, in a chart of a width in pixels.
pub(super) fn spaced(mut counts: Vec<f64>, width: f64) -> Vec<f64> {
    /// The width of a count of five digits, with a gap, and that of the chart's margins.
    const LABEL: f64 = 56.0;
    const MARGINS: f64 = 80.0;
    counts.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (counts.first().copied(), counts.last().copied()) else {
        return counts;
    };
    let apart = (log10(last) - log10(first)) * LABEL / (width - MARGINS).max(LABEL);
    let mut ticks: Vec<f64> = Vec::new();
    for count in counts {
        if ticks.last().is_none_or(|tick| count > *tick && log10(count) - log10(*tick) >= apart) {
            ticks.push(count);
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::chart::axis;
    use serde_json::json;

    #[test]
    fn a_narrow_axis_has_fewer_gpu_counts() {
        let texts = |width: f64| {
            let mut x = axis("GPUs");
            count_gpus(&mut x, [8.0, 72.0, 4096.0].into_iter(), width);
            x["ticktext"].clone()
        };
        assert_eq!(texts(800.0), json!(["8", "16", "32", "64", "128", "256", "512", "1k", "2k", "4k"]));
        assert_eq!(texts(300.0), json!(["8", "32", "128", "512", "2k"]));
    }

    #[test]
    fn a_narrow_axis_leaves_out_counts_that_would_overlap() {
        let counts = vec![1024.0, 512.0, 592.0, 4096.0, 512.0];
        assert_eq!(spaced(counts.clone(), 900.0), [512.0, 592.0, 1024.0, 4096.0]);
        assert_eq!(spaced(counts, 310.0), [512.0, 1024.0, 4096.0]);
        assert_eq!(spaced(vec![64.0, 64.0], 310.0), [64.0]);
        assert!(spaced(Vec::new(), 310.0).is_empty());
    }
}
