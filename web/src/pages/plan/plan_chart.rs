//! The drawing of all plans: GPUs against days, cost or energy, with a line and a band for each GPU type.

use crate::components::chart::{
    Drawing, axis, by_height, count_gpus, label_shifts, legend_text, log10, text_colour,
};
use crate::components::gpu_mark::GpuMark;
use serde_json::{Value, json};

/// Plans over GPU counts, with a line and a band for each GPU type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlanChart {
    pub(super) lines: Vec<PlanLine>,
    /// The quantity on the y axis, with its unit.
    pub(super) y_title: String,
    /// The value to stay below, with its label.
    pub(super) limit: Option<(f64, String)>,
    /// Whether the page lays a handle with a label over the limit, so that the drawing has none.
    pub(super) has_handle: bool,
    /// The highlighted point.
    pub(super) selected: Option<(f64, f64)>,
    /// The point that the arrow keys have reached.
    pub(super) cursor: Option<ChartCursor>,
}

/// A point of a chart, by the indices of its line and of the point on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChartCursor {
    pub(super) line: usize,
    pub(super) point: usize,
}

/// A step of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorStep {
    Back,
    Forward,
    First,
    Last,
    /// To the line whose value is the next larger one at about as many GPUs.
    Above,
    /// To the line whose value is the next smaller one.
    Below,
}

impl PlanChart {
    /// Returns the point of a cursor.
    pub(super) fn at(&self, cursor: ChartCursor) -> Option<&PlanPoint> {
        self.lines.get(cursor.line)?.points.get(cursor.point)
    }

    /// Whether a point was measured.
    pub(super) fn has_measured(&self) -> bool {
        self.lines.iter().flat_map(|line| &line.points).any(|point| point.is_measured)
    }

    /// Returns the points with these keys, in the order of the lines, each with the mark of its GPU type.
    pub(super) fn with_keys(&self, keys: &[String]) -> Vec<(GpuMark, &PlanPoint)> {
        let lines = self.lines.iter().filter_map(|line| {
            let point = line.points.iter().find(|point| keys.contains(&point.key))?;
            Some((line.mark, point))
        });
        lines.collect()
    }

    /// Returns the initial cursor: the point nearest to the marked plan, or the first one. A plan of the user's own may
    /// not be on a line.
    pub(super) fn start(&self) -> Option<ChartCursor> {
        let mut places = self.lines.iter().enumerate().flat_map(|(line, of)| {
            of.points.iter().enumerate().map(move |(point, at)| (ChartCursor { line, point }, at))
        });
        let start = match self.selected {
            None => places.next(),
            Some((gpus, value)) => {
                let distance = |at: &PlanPoint| [(at.gpus - gpus).abs(), (at.value - value).abs()];
                places.reduce(|best, other| if distance(other.1) < distance(best.1) { other } else { best })
            }
        };
        start.map(|(cursor, _)| cursor)
    }

    /// Returns the cursor after a step; the same one at an end.
    pub(super) fn step(&self, from: ChartCursor, step: CursorStep) -> ChartCursor {
        let (Some(line), Some(at)) = (self.lines.get(from.line), self.at(from)) else { return from };
        let on_line = |point: usize| ChartCursor { point, ..from };
        match step {
            CursorStep::Back => on_line(from.point.saturating_sub(1)),
            CursorStep::Forward => on_line((from.point + 1).min(line.points.len() - 1)),
            CursorStep::First => on_line(0),
            CursorStep::Last => on_line(line.points.len() - 1),
            CursorStep::Above | CursorStep::Below => {
                let is_up = step == CursorStep::Above;
                let others = self.lines.iter().enumerate().filter(|(index, _)| *index != from.line);
                let beside = others.filter_map(|(line, of)| {
                    let point = nearest(&of.points, at.gpus)?;
                    Some((ChartCursor { line, point }, of.points[point].value))
                });
                // Lines of equal values are ordered by their indices.
                let own = (at.value, from.line);
                let is_beyond = |(cursor, value): &(ChartCursor, f64)| {
                    if is_up { (*value, cursor.line) > own } else { (*value, cursor.line) < own }
                };
                let distance = |value: f64| (value - at.value).abs();
                beside
                    .filter(is_beyond)
                    .min_by(|one, other| distance(one.1).total_cmp(&distance(other.1)))
                    .map_or(from, |(cursor, _)| cursor)
            }
        }
    }
}

/// Returns the index of the point whose number of GPUs is nearest, as a ratio.
fn nearest(points: &[PlanPoint], gpus: f64) -> Option<usize> {
    let distance = |point: &PlanPoint| (log10(point.gpus) - log10(gpus)).abs();
    let order = |one: &usize, other: &usize| distance(&points[*one]).total_cmp(&distance(&points[*other]));
    (0..points.len()).min_by(order)
}

/// The plans of a GPU type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanLine {
    pub(super) name: String,
    pub(super) mark: GpuMark,
    pub(super) points: Vec<PlanPoint>,
}

/// A plan of a chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PlanPoint {
    pub(super) gpus: f64,
    /// The value, with the ends of its range.
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) is_measured: bool,
    /// Whether it has a marker; otherwise it only bends the line.
    pub(super) has_marker: bool,
    /// The plan and its value in words.
    pub(super) text: String,
    /// Its precision and layout.
    pub(super) layout: String,
    /// The argument of the chart's `pick`.
    pub(super) key: String,
}

impl From<PlanChart> for Drawing {
    fn from(chart: PlanChart) -> Drawing {
        Drawing::new(move |ink, size| plans(&chart, ink, size))
    }
}

/// The width below which a chart spends no margin on the title of its y axis, in pixels.
const NARROW: f64 = 480.0;

/// Returns lines with bands, both axes logarithmic, each line with its name at its end. Texts have no bold parts: Plotly would
/// add inline styles for them, which the content security policy forbids.
fn plans(chart: &PlanChart, ink: &str, (width, height): (f64, f64)) -> (Vec<Value>, Value) {
    let mut traces = Vec::new();
    for line in &chart.lines {
        let colour = line.mark.colour;
        let ahead = line.points.iter().map(|point| (point.gpus, point.high));
        let back = line.points.iter().rev().map(|point| (point.gpus, point.low));
        let (x, y): (Vec<f64>, Vec<f64>) = ahead.chain(back).unzip();
        traces.push(json!({
            "type": "scatter", "mode": "lines", "x": x, "y": y, "fill": "toself", "fillcolor": format!("{colour}26"),
            "line": { "width": 0 }, "hoverinfo": "skip",
        }));
    }
    for line in &chart.lines {
        let colour = line.mark.colour;
        let of = |value: fn(&PlanPoint) -> Value| line.points.iter().map(value).collect::<Value>();
        traces.push(json!({
            "type": "scatter", "mode": "lines+markers", "name": legend_text(&line.name),
            "x": of(|point| point.gpus.into()), "y": of(|point| point.value.into()),
            "customdata": of(|point| point.key.as_str().into()),
            // The page shows what is under the pointer above the chart, where it covers nothing.
            "hoverinfo": "none", "line": { "color": colour, "width": 2 },
            "marker": {
                "color": colour, "size": 7, "opacity": of(|point| u8::from(point.has_marker).into()), "line": { "width": 1.5, "color": colour },
                "symbol": line.points.iter().map(|point| symbol(line, point)).collect::<Value>(),
            },
        }));
    }
    if let Some((x, y)) = chart.selected {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "x": [x], "y": [y], "hoverinfo": "skip",
            "marker": { "color": ink, "size": 17, "symbol": "circle-open", "line": { "width": 2 } },
        }));
    }
    if let Some((cursor, point)) = chart.cursor.and_then(|cursor| Some((cursor, chart.at(cursor)?))) {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "x": [point.gpus], "y": [point.value], "hoverinfo": "skip",
            "marker": {
                "color": chart.lines[cursor.line].mark.colour, "size": 14,
                "line": { "width": 3, "color": ink },
            },
        }));
    }
    let is_narrow = width < NARROW;
    let (mut x, mut y) = (axis("GPUs"), axis(if is_narrow { "" } else { &chart.y_title }));
    for axis in [&mut x, &mut y] {
        axis["type"] = "log".into();
        axis["dtick"] = "D2".into();
        axis["tickformat"] = "~s".into();
    }
    // Its title would double the margin, even without a text.
    y["automargin"] = (!is_narrow).into();
    count_gpus(&mut x, chart.lines.iter().flat_map(|line| &line.points).map(|point| point.gpus), width);
    x["showspikes"] = true.into();
    x["spikemode"] = "across".into();
    x["spikethickness"] = (-1).into();
    x["spikedash"] = "dot".into();
    x["spikecolor"] = "rgb(128, 128, 128)".into();
    // The labels at the ends of the lines need no margin: Plotly makes the axis longer for them.
    let (left, top, bottom) = if is_narrow { (40, 24, 44) } else { (56, 12, 44) };
    let mut notes: Vec<Value> = line_ends(chart, (height - f64::from(top + bottom)).max(1.0))
        .into_iter()
        .map(|(line, x, y, shift)| {
            json!({
                "text": legend_text(&format!("{} {}", line.mark.sign, line.name)), "x": log10(x), "y": log10(y),
                "xanchor": "left", "xshift": 8, "yshift": shift, "showarrow": false,
                "font": { "color": text_colour(line.mark.colour, ink) },
            })
        })
        .collect();
    if is_narrow {
        notes.push(json!({
            "text": legend_text(&chart.y_title), "xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": 1,
            "yanchor": "bottom", "showarrow": false,
        }));
    }
    let mut shapes = Vec::new();
    if let Some((limit, label)) = &chart.limit {
        shapes.push(json!({
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": limit, "y1": limit,
            "line": { "color": ink, "width": 1.5, "dash": "dash" },
        }));
        if !chart.has_handle {
            notes.push(json!({
                "text": legend_text(label), "xref": "paper", "x": 1, "xanchor": "right", "y": log10(*limit),
                "yanchor": "bottom", "showarrow": false,
            }));
        }
    }
    let margin = json!({ "l": left, "r": 12, "t": top, "b": bottom });
    let layout = json!({
        "xaxis": x, "yaxis": y, "hovermode": "x unified", "margin": margin,
        "shapes": shapes, "annotations": notes, "showlegend": false,
    });
    (traces, layout)
}

/// Returns Plotly's symbol of a point: filled if it was measured.
fn symbol(line: &PlanLine, point: &PlanPoint) -> Value {
    let symbol = line.mark.symbol;
    if point.is_measured { symbol.into() } else { format!("{symbol}-open").into() }
}

/// Returns the last point of each line with the pixels by which its label is moved up, so that labels don't overlap.
/// The axis is `pixels` high.
fn line_ends(chart: &PlanChart, pixels: f64) -> Vec<(&PlanLine, f64, f64, i32)> {
    let ends = by_height(chart.lines.iter().filter_map(|line| {
        let last = line.points.last()?;
        Some((line, last.gpus, last.value))
    }));
    let values = || chart.lines.iter().flat_map(|line| &line.points).map(|point| log10(point.value));
    let least = values().fold(f64::MAX, f64::min);
    // The bands make a short axis longer.
    let axis = (least, values().fold(least + 0.1, f64::max));
    let heights: Vec<f64> = ends.iter().map(|end| log10(end.2)).collect();
    let shifts = label_shifts(&heights, axis, pixels);
    ends.into_iter().zip(shifts).map(|((line, x, y), shift)| (line, x, y, shift)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)]) -> PlanLine {
        let point =
            |(gpus, value): &(f64, f64)| PlanPoint { gpus: *gpus, value: *value, ..PlanPoint::default() };
        PlanLine {
            name: String::new(),
            mark: GpuMark::of("h100"),
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn only_points_with_a_marker_are_drawn_as_such() {
        let mut shown = line(&[(64.0, 90.0), (72.0, 80.0)]);
        shown.points[0].has_marker = true;
        let (traces, _) =
            plans(&PlanChart { lines: vec![shown], ..PlanChart::default() }, "#000", (800.0, 400.0));
        assert_eq!(traces[1]["marker"]["opacity"], json!([1, 0]));
    }

    #[test]
    fn arrow_keys_reach_every_line_and_every_point() {
        let lines =
            vec![line(&[(64.0, 90.0), (128.0, 50.0)]), line(&[(64.0, 40.0), (128.0, 20.0), (256.0, 10.0)])];
        let chart = PlanChart { lines, selected: Some((128.0, 20.0)), ..PlanChart::default() };
        let at = |line, point| ChartCursor { line, point };
        assert_eq!(chart.start(), Some(at(1, 1)));
        assert_eq!(chart.step(at(1, 1), CursorStep::Above), at(0, 1));
        assert_eq!(chart.step(at(0, 1), CursorStep::Above), at(0, 1));
        assert_eq!(chart.step(at(0, 0), CursorStep::Below), at(1, 0));
        assert_eq!(chart.step(at(1, 2), CursorStep::Forward), at(1, 2));
        assert_eq!(chart.step(at(1, 0), CursorStep::Back), at(1, 0));
        assert_eq!(chart.step(at(1, 0), CursorStep::Last), at(1, 2));
        let marking = |selected| PlanChart { selected, ..chart.clone() }.start();
        assert_eq!(marking(Some((64.0, 84.0))), Some(at(0, 0)), "a plan beside the lines");
        assert_eq!(marking(None), Some(at(0, 0)));
        assert_eq!(PlanChart::default().start(), None);
    }
}
