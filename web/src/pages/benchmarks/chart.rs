//! The scatter of the shown runs.

use super::table::plan_link;
use super::{Benchmarks, CHART_X, CHART_Y, COLOUR};
use crate::components::chart::{COLOURS, Chart, Drawing, axis, behind, count_gpus, legend_text};
use crate::components::gpu_mark::GpuMark;
use leptos::prelude::*;
use serde_json::{Value, json};
use trainplan_shared::benchmarks::{Benchmark, BenchmarkQuantity, PrecisionFamily};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::tables::BenchmarkColumn;
use trainplan_shared::units::group_digits;

/// The least width, in pixels, at which an axis of sizes has room for 1, 2 and 5.
const SIZE_WIDTH: f64 = 560.0;

/// With more runs than this, markers are smaller and lighter, so that they don't hide each other.
const CROWDED: usize = 200;

/// The diameter of the legend's markers, in pixels: more than that of the points, so that their colours can be told apart.
const LEGEND_SIZE: u32 = 10;

/// What the chart is drawn over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The size of the model, because throughput says little beside that of a model of another size.
    Size,
    Gpus,
    GpuType,
}

impl Over {
    const ALL: [Over; 3] = [Over::Size, Over::Gpus, Over::GpuType];

    /// Returns its value in the address.
    const fn id(self) -> &'static str {
        match self {
            Over::Size => "size",
            Over::Gpus => "gpus",
            Over::GpuType => "gpu",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Over::Size => "model size",
            Over::Gpus => "number of GPUs",
            Over::GpuType => "GPU type",
        }
    }

    /// Returns the axis that suits these runs: the model size, or the number of GPUs if all models have one
    /// size.
    fn usual(points: &[Point]) -> Over {
        let first = points.first().and_then(|point| point.size_b);
        let differ = points.iter().any(|point| point.size_b != first);
        if differ { Over::Size } else { Over::Gpus }
    }
}

/// What the colours distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    GpuType,
    Precision,
}

/// The symbols of the precisions, so that they differ not only by colour.
const PRECISION_SYMBOLS: [&str; 5] = ["circle", "diamond", "square", "triangle-up", "triangle-down"];

/// A point of the chart.
#[derive(Debug, Clone, PartialEq)]
struct Point {
    place: usize,
    gpus: f64,
    /// Billions of active parameters; none of an unpublished model.
    size_b: Option<f64>,
    /// The index of the GPU type in the catalog.
    gpu: usize,
    /// The index of the colour and the symbol.
    group: usize,
    value: f64,
    text: String,
}

/// The chart, with the choice of its axes and colours, and the run that was chosen in it.
#[component]
pub(super) fn Scatter() -> impl IntoView {
    let state = Benchmarks::of_page();
    let address = state.address;
    let quantity = Memo::new(move |_| {
        let text = address.own(CHART_Y);
        BenchmarkQuantity::ALL
            .into_iter()
            .find(|quantity| quantity.id() == text)
            .unwrap_or(BenchmarkQuantity::TokensPerGpu)
    });
    let colour =
        Memo::new(
            move |_| if address.own(COLOUR) == "precision" { Colour::Precision } else { Colour::GpuType },
        );
    // In the order of the file, so that sorting the table does not change the chart.
    let points = Memo::new(move |_| {
        let mut shown = state.shown.get();
        shown.sort_unstable();
        state.rows.with(|rows| {
            let point = |place: usize| point(&rows[place], place, quantity.get(), colour.get());
            shown.into_iter().filter_map(point).collect::<Vec<Point>>()
        })
    });
    let over = Memo::new(move |_| {
        let text = address.own(CHART_X);
        let chosen = Over::ALL.into_iter().find(|over| over.id() == text);
        chosen.unwrap_or_else(|| points.with(|points| Over::usual(points)))
    });
    let chart = Signal::derive(move || {
        let (quantity, over, colour) = (quantity.get(), over.get(), colour.get());
        let points = points.get();
        let picked = state.picked.get();
        Drawing::new(move |ink, (width, _)| scatter(&points, quantity, over, colour, picked, (ink, width)))
    });
    let summary = Signal::derive(move || {
        let count = points.with(Vec::len);
        let title = quantity.get().title();
        format!("Chart of {title} of {} runs. The table below has the same runs.", group_digits(count as f64))
    });
    let left_out = move || {
        let is_drawn = |point: &&Point| over.get() != Over::Size || point.size_b.is_some();
        let drawn = points.with(|points| points.iter().filter(is_drawn).count());
        let shown = state.shown.with(Vec::len);
        let [drawn, shown, without] = [drawn, shown, shown - drawn].map(|count| group_digits(count as f64));
        (drawn != shown)
            .then(|| format!("{drawn} of {shown} are in the chart; {without} lack the measurement or a published model size."))
    };
    let pick = Callback::new(move |key: String| state.picked.set(key.parse().ok()));
    let choose = move |key: &'static str| move |event| address.set_own(key, event_target_value(&event));
    view! {
        <section class="scaling" aria-label="Chart of runs">
            <div class="choices">
                <div class="field inline">
                    <label for="scatter-y">"Show"</label>
                    <select id="scatter-y" on:change=choose(CHART_Y)>
                        {BenchmarkQuantity::ALL.map(|each| {
                            let value = if each == BenchmarkQuantity::TokensPerGpu { "" } else { each.id() };
                            view! { <option value=value prop:selected=move || quantity.get() == each>{each.title()}</option> }
                        }).collect_view()}
                    </select>
                </div>
                <div class="field inline">
                    <label for="scatter-x">"by"</label>
                    <select id="scatter-x" on:change=choose(CHART_X)>
                        {Over::ALL.map(|each| view! {
                            <option value=each.id() prop:selected=move || over.get() == each>{each.title()}</option>
                        }).collect_view()}
                    </select>
                </div>
                <div class="field inline">
                    <label for="scatter-colour">"Colour"</label>
                    <select id="scatter-colour" on:change=choose(COLOUR)>
                        <option value="" prop:selected=move || colour.get() == Colour::GpuType>"GPU type"</option>
                        <option value="precision" prop:selected=move || colour.get() == Colour::Precision>"precision"</option>
                    </select>
                </div>
            </div>
            <Chart chart summary pick />
            {move || left_out().map(|text| view! { <p class="basis">{text}</p> })}
            <Picked />
        </section>
    }
}

/// The run that was chosen in the chart.
#[component]
fn Picked() -> impl IntoView {
    let state = Benchmarks::of_page();
    let picked = move || {
        let place = state.picked.get()?;
        state.with_row(place, |row| {
            let url = row.source_url().unwrap_or_default().to_string();
            view! {
                <div class="notice picked-run" role="status">
                    <p><strong>{row.title()}</strong>" · "{facts(row).join(" · ")}</p>
                    <p class="buttons">
                        {plan_link(row)}
                        <a href=url rel="external noreferrer">{row.source_title()}</a>
                    </p>
                </div>
            }
        })
    };
    view! { <Show when=move || state.picked.get().is_some()>{picked}</Show> }
}

/// Returns a run as a point; none if nobody measured it, or if its quantity is unknown.
fn point(row: &Benchmark, place: usize, quantity: BenchmarkQuantity, colour: Colour) -> Option<Point> {
    let value = row.value(quantity)?;
    let gpu = Catalog::embedded().gpus().iter().position(|gpu| gpu.id == row.gpu)?;
    let group = match colour {
        Colour::GpuType => gpu,
        Colour::Precision => row.precision.family() as usize,
    };
    let lines = [vec![row.title()], facts(row)].concat();
    let text = lines.iter().map(|line| legend_text(line)).collect::<Vec<_>>().join("<br>");
    let size_b = row.active_parameters().map(|active| active / 1e9);
    Some(Point { place, gpus: row.gpus.into(), size_b, gpu, group, value, text })
}

/// Returns the facts that the chart shows about a run.
fn facts(row: &Benchmark) -> Vec<String> {
    let cell =
        |column: BenchmarkColumn| column.page_cell(row).map(|cell| cell.text).filter(|text| !text.is_empty());
    let with = |column, write: fn(String) -> String| cell(column).map(write);
    let facts = [
        with(BenchmarkColumn::TokensPerGpu, |text| format!("{text} tokens/s per GPU")),
        with(BenchmarkColumn::Tflops, |text| format!("{text} TFLOPS per GPU")),
        with(BenchmarkColumn::Mfu, |text| format!("MFU {text} % of the BF16 peak")),
        with(BenchmarkColumn::Cost, |text| format!("${text} per 1M tokens")),
        with(BenchmarkColumn::StepTime, |text| format!("{text} s per step")),
        cell(BenchmarkColumn::Layout),
        with(BenchmarkColumn::Error, |text| format!("prediction {text}")),
        cell(BenchmarkColumn::Release),
        row.reference_of().map(|of| format!("reference of {of}")),
    ];
    facts.into_iter().flatten().collect()
}

fn group_title(group: usize, colour: Colour) -> String {
    match colour {
        Colour::GpuType => Catalog::embedded().gpus()[group].name.clone(),
        Colour::Precision => PrecisionFamily::ALL[group].title().to_string(),
    }
}

/// Returns the colour and the symbol of a group.
fn group_mark(group: usize, colour: Colour) -> (&'static str, &'static str) {
    match colour {
        Colour::GpuType => {
            let GpuMark { colour, symbol, .. } = GpuMark::of(&Catalog::embedded().gpus()[group].id);
            (colour, symbol)
        }
        Colour::Precision => (COLOURS[group], PRECISION_SYMBOLS[group]),
    }
}

/// Returns where a run is drawn beside others of the same value, from -0.5 to 0.5: a number that looks random and never changes.
fn spread(place: usize) -> f64 {
    f64::from((place as u32).wrapping_mul(2_654_435_761) >> 16) / 65_536.0 - 0.5
}

/// Returns a trace for each group, and the layout.
fn scatter(
    points: &[Point],
    quantity: BenchmarkQuantity,
    over: Over,
    colour: Colour,
    picked: Option<usize>,
    (ink, width): (&str, f64),
) -> (Vec<Value>, Value) {
    let mut types: Vec<usize> = points.iter().map(|point| point.gpu).collect();
    types.sort_unstable();
    types.dedup();
    let x = |point: &Point| match over {
        // Most sizes are those of one model, whose runs would make a single line.
        Over::Size => point.size_b.unwrap_or(f64::NAN) * (1.0 + spread(point.place) * 0.1),
        Over::Gpus => point.gpus,
        Over::GpuType => {
            let column = types.iter().position(|gpu| *gpu == point.gpu).unwrap_or_default() as f64;
            column + spread(point.place) * 0.7
        }
    };
    let mut groups: Vec<usize> = points.iter().map(|point| point.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let (size, opacity) = if points.len() > CROWDED { (6, 0.55) } else { (8, 0.75) };
    let mut traces: Vec<Value> = groups
        .into_iter()
        .map(|group| {
            let of = || points.iter().filter(|point| point.group == group);
            let (mark, symbol) = group_mark(group, colour);
            json!({
                "type": "scatter", "mode": "markers", "name": group_title(group, colour),
                "x": of().map(x).collect::<Vec<f64>>(), "y": of().map(|point| point.value).collect::<Vec<f64>>(),
                "text": of().map(|point| point.text.as_str()).collect::<Vec<&str>>(),
                "customdata": of().map(|point| point.place.to_string()).collect::<Vec<String>>(),
                "hovertemplate": "%{text}<extra></extra>",
                // The legend shows the marker of the trace, and the points that of unselected ones, because none is selected.
                "marker": { "color": mark, "size": LEGEND_SIZE, "symbol": symbol },
                "selectedpoints": [],
                "unselected": { "marker": { "size": size, "opacity": opacity } },
            })
        })
        .collect();
    if let Some(point) = points.iter().find(|point| Some(point.place) == picked) {
        traces.push(json!({
            "type": "scatter", "mode": "markers", "x": [x(point)], "y": [point.value], "hoverinfo": "skip",
            "showlegend": false,
            "marker": { "color": ink, "size": 17, "symbol": "circle-open", "line": { "width": 2 } },
        }));
    }
    let mut x_axis = axis(match over {
        Over::Size => "Active parameters, billions",
        Over::Gpus => "GPUs",
        Over::GpuType => "",
    });
    match over {
        Over::Size => {
            x_axis["type"] = "log".into();
            // On a phone, only powers of ten have room.
            x_axis["dtick"] = if width < SIZE_WIDTH { 1.into() } else { "D2".into() };
            x_axis["tickformat"] = "~g".into();
        }
        Over::Gpus => {
            count_gpus(&mut x_axis, points.iter().map(|point| point.gpus), width);
        }
        Over::GpuType => {
            x_axis["tickvals"] = (0..types.len()).collect();
            x_axis["ticktext"] =
                types.iter().map(|gpu| Catalog::embedded().gpus()[*gpu].name.as_str()).collect();
            x_axis["showgrid"] = false.into();
        }
    }
    let mut y_axis = axis(quantity.title());
    match quantity {
        BenchmarkQuantity::Mfu => y_axis["rangemode"] = "tozero".into(),
        BenchmarkQuantity::TokensPerGpu | BenchmarkQuantity::Cost => {
            y_axis["type"] = "log".into();
            y_axis["dtick"] = "D2".into();
            y_axis["tickformat"] = if quantity == BenchmarkQuantity::Cost { "~g" } else { "~s" }.into();
        }
    }
    let layout = json!({
        "xaxis": x_axis, "yaxis": y_axis, "hovermode": "closest", "showlegend": true,
        "margin": { "l": 56, "r": 12, "t": 12, "b": 48 },
        "hoverlabel": { "font": { "color": ink }, "bgcolor": behind(ink), "bordercolor": "rgb(128, 128, 128)", "align": "left" },
    });
    (traces, layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::benchmarks::parse;

    fn points(quantity: BenchmarkQuantity, colour: Colour) -> Vec<Point> {
        let rows = parse(include_str!("../../../../shared/data/benchmarks.csv")).expect("the file");
        rows.iter().enumerate().filter_map(|(place, row)| point(row, place, quantity, colour)).collect()
    }

    #[test]
    fn every_measured_run_is_a_point_that_tells_its_name() {
        let points = points(BenchmarkQuantity::TokensPerGpu, Colour::GpuType);
        assert!(points.len() > 1800, "{}", points.len());
        assert!(points[0].text.starts_with("DeepSeek-V3 on 256 GB200, MXFP8"), "{}", points[0].text);
        let (traces, layout) = scatter(
            &points,
            BenchmarkQuantity::TokensPerGpu,
            Over::GpuType,
            Colour::GpuType,
            Some(0),
            ("#000", 800.0),
        );
        assert_eq!(traces.last().map(|trace| &trace["showlegend"]), Some(&false.into()));
        assert_eq!(layout["xaxis"]["ticktext"].as_array().map(Vec::len), Some(traces.len() - 1));
    }

    #[test]
    fn runs_of_several_models_are_drawn_by_size() {
        let points = points(BenchmarkQuantity::TokensPerGpu, Colour::GpuType);
        assert_eq!(Over::usual(&points), Over::Size);
        let size =
            |id: &str| points.iter().find(|point| point.text.starts_with(id)).and_then(|point| point.size_b);
        assert_eq!(size("Llama 3.1 405B").map(f64::round), Some(406.0));
        assert_eq!(size("DeepSeek-V3").map(f64::round), Some(38.0));
        let one: Vec<Point> =
            points.into_iter().filter(|point| point.text.starts_with("Llama 3.1 70B on")).collect();
        assert_eq!(Over::usual(&one), Over::Gpus);
    }

    #[test]
    fn many_runs_have_small_markers_side_by_side() {
        let all = points(BenchmarkQuantity::TokensPerGpu, Colour::GpuType);
        let marker_size = |points: &[Point]| {
            let (traces, _) = scatter(
                points,
                BenchmarkQuantity::TokensPerGpu,
                Over::Size,
                Colour::GpuType,
                None,
                ("#000", 800.0),
            );
            // The legend's markers have the same size, whatever the size of the points.
            assert_eq!(traces[0]["marker"]["size"], LEGEND_SIZE);
            traces[0]["unselected"]["marker"]["size"].as_u64()
        };
        assert_eq!((marker_size(&all), marker_size(&all[..CROWDED])), (Some(6), Some(8)));
        assert!((0..1000).all(|place| spread(place).abs() <= 0.5));
        assert!((spread(1) - spread(2)).abs() > 0.1);
    }

    #[test]
    fn a_group_is_a_precision() {
        let points = points(BenchmarkQuantity::Mfu, Colour::Precision);
        let (traces, _) =
            scatter(&points, BenchmarkQuantity::Mfu, Over::Gpus, Colour::Precision, None, ("#000", 800.0));
        let names: Vec<&str> = traces.iter().filter_map(|trace| trace["name"].as_str()).collect();
        assert_eq!(names, ["BF16", "FP8", "MXFP8", "NVFP4", "FP8 or NVFP4"]);
    }
}
