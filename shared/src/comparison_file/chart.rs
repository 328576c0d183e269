//! Line charts as inline SVG, in the colours of the page.

use crate::compare::{Curve, ReferenceLevel, ReferenceLevelKind, sustained_peak};
use crate::text::html as escaped;
use crate::units::significant;
use std::fmt::Write as _;

/// The size of a chart, in the units of its `viewBox`.
const SIZE: (f64, f64) = (760.0, 300.0);
/// The edges of its axes.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 744.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 262.0;

/// The distances from one tick to the next, in tenths of a power of ten.
const TICKS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// The number of colours of the style sheet, and of dash patterns, so that lines differ not only by colour.
const COLOURS: usize = 8;
const DASHES: [&str; 4] = ["none", "2 3", "8 4", "8 3 2 3"];

/// A chart of curves over steps.
pub(super) struct CurveChart<'a> {
    pub(super) title: &'static str,
    pub(super) curves: &'a [Curve],
    pub(super) levels: &'a [ReferenceLevel],
    /// The label of each run.
    pub(super) labels: &'a [&'a str],
}

/// A level of one or several runs.
struct SharedLevel {
    kind: ReferenceLevelKind,
    step_time_s: f64,
    items: Vec<usize>,
}

impl SharedLevel {
    /// Returns the class of its line: the run's colour, or that of text for several runs.
    fn class(&self) -> String {
        match self.items.as_slice() {
            [one] => format!("c{}", one % COLOURS),
            _ => "all".to_owned(),
        }
    }
}

/// A linear map from values to the places of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
struct AxisScale {
    from: (f64, f64),
    to: (f64, f64),
}

impl AxisScale {
    fn place(self, value: f64) -> f64 {
        let share = (value - self.from.0) / (self.from.1 - self.from.0);
        self.to.0 + share * (self.to.1 - self.to.0)
    }

    /// Returns round values within the scale, about six.
    fn ticks(self) -> Vec<f64> {
        let rough = (self.from.1 - self.from.0) / 6.0;
        let power = libm::pow(10.0, libm::log10(rough).floor());
        let step = TICKS.iter().map(|tick| tick * power).find(|step| *step >= rough).unwrap_or(rough);
        let first = (self.from.0 / step).ceil();
        let count = ((self.from.1 / step).floor() - first).clamp(0.0, 20.0) as u32;
        (0..=count).map(|tick| (first + f64::from(tick)) * step).collect()
    }
}

impl CurveChart<'_> {
    /// Returns the chart as a figure with its legend; nothing without a curve.
    pub(super) fn to_html(&self) -> String {
        let Some((x, y, outliers)) = self.scales() else { return String::new() };
        let title = escaped(self.title);
        let mut text = format!(
            "<figure><figcaption>{title} by step</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{title} by step\">\n\
             <clipPath id=\"clip-{}\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
            SIZE.0,
            SIZE.1,
            self.id(),
            RIGHT - LEFT,
            BOTTOM - TOP
        );
        text += &axes(x, y);
        let _ = writeln!(text, "<g clip-path=\"url(#clip-{})\">", self.id());
        for level in self.shared_levels() {
            let place = y.place(level.step_time_s);
            let class = level.class();
            let _ = writeln!(
                text,
                "<line class=\"level {class}\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{place:.1}\" y2=\"{place:.1}\"/>"
            );
        }
        for curve in self.curves {
            let points = curve.steps.iter().zip(&curve.values);
            let path: Vec<String> = points
                .map(|(step, value)| format!("{:.1} {:.1}", x.place(*step as f64), y.place(*value)))
                .collect();
            let (colour, dash) = (curve.item % COLOURS, DASHES[curve.item % DASHES.len()]);
            let _ = writeln!(
                text,
                "<path class=\"c{colour}\" stroke-dasharray=\"{dash}\" d=\"M{}\"/>",
                path.join("L")
            );
        }
        text += "</g></svg>\n<ul class=\"legend\">";
        text += &self.legend();
        if outliers > 0 {
            let _ = write!(text, "<li>{outliers} outliers are off the scale.</li>");
        }
        text + "</ul></figure>\n"
    }

    fn id(&self) -> String {
        self.title.chars().filter(char::is_ascii_alphanumeric).collect()
    }

    fn legend(&self) -> String {
        let label = |item: usize| escaped(self.labels.get(item).copied().unwrap_or_default());
        let key = |class: &str, dash: &str| {
            format!(
                "<svg viewBox=\"0 0 28 8\" aria-hidden=\"true\"><line class=\"{class}\" stroke-dasharray=\"{dash}\" x1=\"0\" \
                 x2=\"28\" y1=\"4\" y2=\"4\"/></svg>"
            )
        };
        let curves = self.curves.iter().map(|curve| {
            let class = format!("c{}", curve.item % COLOURS);
            let dash = DASHES[curve.item % DASHES.len()];
            format!("<li>{} {}</li>", key(&class, dash), label(curve.item))
        });
        let levels = self.shared_levels();
        let levels = levels.iter().map(|level| {
            let kind = match level.kind {
                ReferenceLevelKind::Plan => "Planned",
                ReferenceLevelKind::Prediction => "Predicted",
                ReferenceLevelKind::Published => "Published",
            };
            let of = match level.items.as_slice() {
                [one] if self.labels.len() > 1 => format!(" for {}", label(*one)),
                all if all.len() < self.labels.len() => format!(" for {} of the runs", all.len()),
                _ => String::new(),
            };
            let value = significant(level.step_time_s, 5);
            format!("<li>{} {kind}{of}: {value} s</li>", key(&format!("level {}", level.class()), "1 4"))
        });
        curves.chain(levels).collect()
    }

    /// Returns each level once, with the runs that have it.
    fn shared_levels(&self) -> Vec<SharedLevel> {
        let mut shared: Vec<SharedLevel> = Vec::new();
        for ReferenceLevel { item, kind, step_time_s, .. } in self.levels.iter().copied() {
            let same = |level: &&mut SharedLevel| level.kind == kind && level.step_time_s == step_time_s;
            match shared.iter_mut().find(same) {
                Some(level) => level.items.push(item),
                None => shared.push(SharedLevel { kind, step_time_s, items: vec![item] }),
            }
        }
        shared
    }

    /// Returns the scales, and the number of values above the upper end. A few values far above the others, such as the
    /// first step, are left out: at most 5 %, and at most two consecutive ones of a curve.
    fn scales(&self) -> Option<(AxisScale, AxisScale, usize)> {
        let steps = || self.curves.iter().flat_map(|curve| &curve.steps).map(|step| *step as f64);
        let mut values: Vec<f64> = self.curves.iter().flat_map(|curve| &curve.values).copied().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let sustained = self.curves.iter().filter_map(|curve| sustained_peak(&curve.values));
        let usual = sustained.fold(*values.get(values.len() * 19 / 20)?, f64::max);
        let levels = self.levels.iter().map(|level| level.step_time_s);
        let (low, high) = levels.fold((least, usual), |(low, high), level| (low.min(level), high.max(level)));
        let high = if most > high + 2.0 * (high - low) { high } else { high.max(most) };
        let margin = if high > low { 0.08 * (high - low) } else { 0.05 * high.abs().max(1e-9) };
        let (first, last) =
            (steps().fold(f64::INFINITY, f64::min), steps().fold(f64::NEG_INFINITY, f64::max));
        let x = AxisScale { from: (first, last.max(first + 1.0)), to: (LEFT, RIGHT) };
        let y = AxisScale { from: (low - margin, high + margin), to: (BOTTOM, TOP) };
        let outliers = values.iter().filter(|value| **value > y.from.1).count();
        let is_finite = [x.from.0, x.from.1, y.from.0, y.from.1].iter().all(|end| end.is_finite());
        is_finite.then_some((x, y, outliers))
    }
}

/// Returns the grid, with a number at each line.
fn axes(x: AxisScale, y: AxisScale) -> String {
    let mut text = String::new();
    for tick in y.ticks() {
        let place = y.place(tick);
        let _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{place:.1}\" y2=\"{place:.1}\"/><text x=\"{}\" \
             y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            place + 4.0,
            significant(tick, 6)
        );
    }
    for tick in x.ticks() {
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x.place(tick),
            BOTTOM + 18.0,
            significant(tick, 9)
        );
    }
    text + &format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">Step</text>\n",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 34.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_scale() {
        let scale = AxisScale { from: (11.93, 12.71), to: (0.0, 100.0) };
        let ticks = scale.ticks();
        let wanted = [12.0, 12.2, 12.4, 12.6];
        assert!(
            ticks.len() == 4 && ticks.iter().zip(wanted).all(|(one, other)| (one - other).abs() < 1e-9),
            "{ticks:?}"
        );
        assert_eq!(AxisScale { from: (0.0, 49.0), to: (0.0, 1.0) }.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
    }

    #[test]
    fn a_slow_first_step_is_off_the_scale() {
        let values: Vec<f64> =
            (0..50).map(|step| if step == 0 { 90.0 } else { 10.0 + f64::from(step % 3) / 10.0 }).collect();
        let curves = [Curve { item: 0, steps: (0..50).collect(), values }];
        let chart = CurveChart { title: "Step time, s", curves: &curves, levels: &[], labels: &["one"] };
        let (_, y, outliers) = chart.scales().unwrap();
        assert_eq!(outliers, 1);
        assert!(y.from.1 < 11.0, "{y:?}");
        assert!(CurveChart { curves: &[], ..chart }.to_html().is_empty());
    }

    #[test]
    fn consecutive_slow_steps_are_on_the_scale() {
        let curve = |item: usize| {
            let time = |step: u64| match step {
                0 => 90.0,
                36..=38 if item == 0 => 13.5,
                _ => 10.0 + (step % 3) as f64 / 10.0,
            };
            Curve { item, steps: (0..50).collect(), values: (0..50).map(time).collect() }
        };
        let curves = [0, 1, 2].map(curve);
        let labels = ["one", "two", "three"];
        let chart = CurveChart { title: "Step time, s", curves: &curves, levels: &[], labels: &labels };
        let (_, y, outliers) = chart.scales().unwrap();
        assert_eq!(outliers, 3, "the first steps");
        assert!((13.5..20.0).contains(&y.from.1), "{y:?}");
    }
}
