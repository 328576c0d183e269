//! Lines over GPU counts, over steps or over time, with the levels to compare them with. `drawing` turns them into Plotly's traces.

mod drawing;
mod end_labels;
#[cfg(test)]
mod tests;

use super::Drawing;
use super::short_names::short_names;
use crate::message::{Plot, PlotLevel, PlotLine};
use drawing::lines;
use end_labels::end_labels;
use serde_json::Value;
use trainplan_shared::compare::sustained_peak;

/// Lines over GPU counts or over steps.
#[derive(Debug, Clone)]
pub(crate) struct LineChart {
    pub(super) lines: Vec<ChartLine>,
    /// A highlighted point, with its name.
    mark: Option<(String, f64, f64)>,
    /// Highlighted points.
    markers: Vec<ChartMarkers>,
    /// Values to compare the lines with, drawn as horizontal lines.
    levels: Vec<PlotLevel>,
    /// A shaded range of x.
    window: Option<(f64, f64)>,
    x: XAxis,
    /// The quantity on the y axis, with its unit.
    y_title: String,
    /// Whether the y axis is logarithmic.
    pub(super) y_log: bool,
    /// The range of y, if it is not that of the values.
    range: Option<(f64, f64)>,
    /// Whether the values are days, which have their own format.
    has_days: bool,
    /// Returns the names of the lines as annotations at their ends, which replace the legend where the chart is wide enough, and the
    /// ends of the y axis. A function, so that only the programs that use it contain it.
    labels: Option<PlaceLabels>,
}

/// Returns the annotations of a chart in a colour and of a height in pixels, and the ends of its y axis.
type PlaceLabels = fn(&LineChart, &str, f64) -> (Vec<Value>, [f64; 2]);

/// The quantity on the x axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XAxis {
    /// GPU counts, on a logarithmic axis.
    Gpus,
    /// Training steps.
    Steps,
    /// Times, in milliseconds since 1970.
    Time,
    /// The numbers of runs, the oldest first.
    Runs,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartLine {
    /// The name in the legend.
    pub(crate) name: String,
    /// The index of the colour, which the lines of a group share.
    pub(crate) group: usize,
    /// The index of the dash and the marker.
    pub(crate) style: usize,
    /// The x and y of each point.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether each value holds until the next one: a stepped line without markers.
    pub(crate) is_level: bool,
}

/// Highlighted points of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChartMarkers {
    /// The name in the legend.
    pub(crate) name: &'static str,
    /// Plotly's name of the symbol.
    pub(crate) symbol: &'static str,
    /// Whether they are shown in the colour of errors.
    pub(crate) is_bad: bool,
    /// Whether the points have a y. Those without one are at the bottom of the chart.
    pub(crate) has_values: bool,
    /// The x and y of each point.
    pub(crate) points: Vec<(f64, f64)>,
}

impl LineChart {
    /// Returns a chart of lines over GPU counts.
    pub(crate) fn over_gpus(lines: Vec<ChartLine>, y_title: &str, y_log: bool) -> LineChart {
        LineChart { y_log, ..LineChart::new(lines, XAxis::Gpus, y_title) }
    }

    fn new(lines: Vec<ChartLine>, x: XAxis, y_title: &str) -> LineChart {
        let (y_title, y_log) = (y_title.to_string(), false);
        let (mark, markers, levels, window, range) = (None, Vec::new(), Vec::new(), None, None);
        LineChart {
            lines,
            mark,
            markers,
            levels,
            window,
            x,
            y_title,
            y_log,
            range,
            has_days: false,
            labels: None,
        }
    }

    /// Writes the values under the pointer as days, if they are.
    pub(crate) fn of_days(self, has_days: bool) -> LineChart {
        LineChart { has_days, ..self }
    }

    /// Returns a chart of the lines of a plot over steps.
    pub(crate) fn of_plot(plot: &Plot, y_title: &str, y_log: bool) -> LineChart {
        let names: Vec<&str> = plot.lines.iter().map(|line| line.name.as_str()).collect();
        let names = short_names(&names);
        let line = |(index, line): (usize, &PlotLine)| ChartLine {
            name: names[index].clone(),
            group: index,
            style: index,
            points: line.steps.iter().copied().zip(line.values.iter().copied()).collect(),
            is_level: false,
        };
        let lines = plot.lines.iter().enumerate().map(line).collect();
        let mut levels = plot.levels.clone();
        for level in &mut levels {
            for (line, short) in plot.lines.iter().zip(&names) {
                level.name = level.name.replace(&line.name, short);
            }
        }
        let window = plot.window;
        let range = LineChart::range(plot).filter(|_| !y_log);
        LineChart { levels, window, y_log, range, ..LineChart::new(lines, XAxis::Steps, y_title) }
    }

    /// Returns the range of y if Plotly's own doesn't suit: it leaves out outliers, if a few values, 5 % at most, and at most two
    /// consecutive ones of a line, are far above the others; and that of step times is wide enough that noise looks small.
    pub(crate) fn range(plot: &Plot) -> Option<(f64, f64)> {
        let mut values: Vec<f64> = plot.lines.iter().flat_map(|line| &line.values).copied().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let sustained = plot.lines.iter().filter_map(|line| sustained_peak(&line.values));
        let usual = sustained.fold(values[values.len() * 19 / 20], f64::max);
        let ends = plot.levels.iter().map(|level| level.interval.unwrap_or((level.value, level.value)));
        let (low, high) = ends.fold((least, usual), |(low, high), (from, to)| (low.min(from), high.max(to)));
        let span = high - low;
        let (range, has_outliers) = match most > high + 2.0 * span {
            true => ((low - 0.1 * span, high + 0.2 * span), true),
            false => (padded(low, high.max(most)), false),
        };
        match plot.is_time {
            true => Some(around(values[values.len() / 2], range)),
            false => has_outliers.then_some(range),
        }
    }

    /// Returns a chart of step times over time, in milliseconds since 1970, or over the numbers of runs, with highlighted points and
    /// horizontal lines.
    pub(crate) fn over_time(
        lines: Vec<ChartLine>,
        mut markers: Vec<ChartMarkers>,
        levels: Vec<PlotLevel>,
        y_title: &str,
        is_numbered: bool,
    ) -> LineChart {
        let x = if is_numbered { XAxis::Runs } else { XAxis::Time };
        let points = lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let mut values: Vec<f64> = points.chain(levels.iter().map(|level| level.value)).collect();
        values.sort_by(f64::total_cmp);
        let ends = values.first().zip(values.last());
        let range = ends.map(|(low, high)| around(values[values.len() / 2], padded(*low, *high)));
        for marker in markers.iter_mut().filter(|marker| !marker.has_values) {
            match range {
                Some((low, high)) => {
                    for point in &mut marker.points {
                        point.1 = low + 0.04 * (high - low);
                    }
                }
                None => marker.points.clear(),
            }
        }
        LineChart { markers, levels, range, ..LineChart::new(lines, x, y_title) }
    }

    /// Writes the names of the lines at their ends, instead of a legend, where the chart is wide enough.
    pub(crate) fn with_labels(self) -> LineChart {
        LineChart { labels: Some(end_labels), ..self }
    }

    /// Adds a highlighted point with its name.
    pub(crate) fn with_mark(self, mark: Option<(String, f64, f64)>) -> LineChart {
        LineChart { mark, ..self }
    }
}

/// Returns the ends of values with a margin.
fn padded(low: f64, high: f64) -> (f64, f64) {
    let margin = 0.1 * (high - low);
    (low - margin, high + margin)
}

/// Returns a range of step times that contains at least 10 % on both sides of `median`, because a narrower one would magnify noise. It
/// begins at 0 if that at most doubles it.
fn around(median: f64, (low, high): (f64, f64)) -> (f64, f64) {
    let (low, high) = (low.min(0.9 * median), high.max(1.1 * median));
    (if low < 0.5 * high { 0.0 } else { low }, high)
}

impl From<LineChart> for Drawing {
    fn from(chart: LineChart) -> Drawing {
        Drawing::new(move |ink, size| lines(&chart, ink, size))
    }
}
