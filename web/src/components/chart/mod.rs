//! Charts, drawn by Plotly, whose script is loaded with the first chart.
//!
//! Each chart must have a table of the same data beside it, for people who can't see the chart.

mod bars;
mod gpu_ticks;
mod labels;
mod lines;
mod plotly;
mod short_names;

pub(crate) use bars::{BarChart, BarKind};
pub(crate) use gpu_ticks::count_gpus;
pub(crate) use labels::{by_height, label_shifts, legend_text, log10};
pub(crate) use lines::{ChartLine, ChartMarkers, LineChart};
pub(crate) use plotly::{ChartFrame, png};

use crate::components::theme::Theme;
use leptos::html::Div;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::closure::Closure;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::js_sys::Function;
use plotly::{draw, frame, keys, listen, make_scalable, plotly_function};
use serde_json::{Value, json};
use std::sync::Arc;

/// The content of a chart. It holds a function, so that each program contains only the kinds of charts that it draws.
#[derive(Clone)]
pub(crate) struct Drawing {
    draw: Arc<Draw>,
    /// Whether it is a chart of bars, which is as high as its bars need.
    has_bars: bool,
}

/// Makes Plotly's traces and layout from the colour of texts and the width and the height of the chart in pixels.
type Draw = dyn Fn(&str, (f64, f64)) -> TracesAndLayout + Send + Sync;

/// Plotly's traces, and its layout.
type TracesAndLayout = (Vec<Value>, Value);

impl Drawing {
    /// Returns a drawing whose traces and layout are made from the colour of texts and the width and the height in pixels.
    pub(crate) fn new(draw: impl Fn(&str, (f64, f64)) -> TracesAndLayout + Send + Sync + 'static) -> Drawing {
        Drawing { draw: Arc::new(draw), has_bars: false }
    }
}

/// A chart.
#[component]
pub(crate) fn Chart(
    /// The content.
    #[prop(into)]
    chart: Signal<Drawing>,
    /// A description for screen readers.
    #[prop(into)]
    summary: Signal<String>,
    /// Called with the key of a point that is clicked.
    #[prop(optional)]
    pick: Option<Callback<String>>,
    /// Called with the keys of the points under the pointer, one for each line; with none when it leaves.
    #[prop(optional)]
    hover: Option<Callback<Vec<String>>>,
    /// Called with the place of the axes whenever they are drawn. Such a chart fits the paper in print.
    #[prop(optional)]
    drawn: Option<Callback<ChartFrame>>,
) -> impl IntoView {
    let place = NodeRef::<Div>::new();
    let failed = RwSignal::new(false);
    let on_drawn = StoredValue::new_local(drawn.map(|drawn| {
        Closure::<dyn FnMut(JsValue)>::new(move |_: JsValue| {
            let Some(place) = place.try_get_untracked().flatten() else { return };
            // A failure cuts the chart in print.
            let _ = make_scalable(&place);
            if let Ok(frame) = frame(&place) {
                drawn.run(frame);
            }
        })
    }));
    // Plotly calls it for as long as the chart is shown.
    let on_click = StoredValue::new_local(pick.map(|pick| {
        Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| {
            if let Some(key) = keys(&event).into_iter().next() {
                pick.run(key);
            }
        })
    }));
    let on_hover = StoredValue::new_local(hover.map(|hover| {
        let enter = Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| hover.run(keys(&event)));
        (enter, Closure::<dyn FnMut()>::new(move || hover.run(Vec::new())))
    }));
    Effect::new(move |_| {
        Theme::track();
        let chart = chart.get();
        let Some(place) = place.get() else { return };
        spawn_local(async move {
            if draw(&place, &chart).await.is_err() {
                // `try_set`: the page may have been left meanwhile.
                failed.try_set(true);
                return;
            }
            on_click.try_with_value(|on_click| {
                if let Some(on_click) = on_click {
                    // A failure leaves the table, whose rows can be chosen too.
                    let _ = listen(&place, "plotly_click", on_click.as_ref());
                }
            });
            on_hover.try_with_value(|on_hover| {
                if let Some((enter, leave)) = on_hover {
                    // A failure leaves the table, which has the same values.
                    let _ = listen(&place, "plotly_hover", enter.as_ref());
                    let _ = listen(&place, "plotly_unhover", leave.as_ref());
                }
            });
            on_drawn.try_with_value(|on_drawn| {
                if let Some(on_drawn) = on_drawn {
                    // A failure leaves the chart without what is laid over it.
                    let _ = listen(&place, "plotly_afterplot", on_drawn.as_ref());
                    let _ =
                        on_drawn.as_ref().unchecked_ref::<Function>().call1(&JsValue::NULL, &JsValue::NULL);
                }
            });
        });
    });
    let has_bars = move || chart.with(|chart| chart.has_bars);
    on_cleanup(move || {
        // Otherwise Plotly keeps listening to resizes of the window.
        if let Some(place) = place.try_get_untracked().flatten() {
            let _ = plotly_function("purge").and_then(|purge| purge.call1(&JsValue::NULL, &place));
        }
    });
    view! {
        <div class="chart" class:bars=has_bars role="img" aria-label=summary node_ref=place></div>
        {move || failed.get().then(|| view! {
            <p class="error">"The chart couldn't be drawn. Its data is in the table below."</p>
        })}
    }
}

/// Returns an axis with the settings that all charts share.
pub(crate) fn axis(title: &str) -> Value {
    json!({ "title": { "text": title }, "gridcolor": GRID, "zeroline": false, "automargin": true })
}

/// The colours of lines and parts: quieter than those of the GPU types, and none of them, so that a colour has one meaning on a
/// page. They have a contrast of at least 3:1 with the white and with the dark background, and of 4.5:1 with black texts.
pub(crate) const COLOURS: [&str; 8] =
    ["#9b7bb8", "#7d8a1f", "#b0607a", "#2e8b7a", "#b58863", "#8c8c8c", "#5a9e3a", "#6b8fb5"];

/// The colours of the parts of stacked bars: none is among [`COLOURS`], and they have the same contrasts.
const STACK_COLOURS: [&str; 8] =
    ["#3d92a0", "#a5852a", "#8080c8", "#c0705a", "#b06ab0", "#4f9a66", "#9a8478", "#7a8c8c"];

/// Returns a background for texts in the colour `ink`, such as `rgb(20, 24, 32)`: that of the page's cards.
pub(crate) fn behind(ink: &str) -> &'static str {
    let red = ink.split(|sign: char| !sign.is_ascii_digit()).find(|digits| !digits.is_empty());
    match red.and_then(|red| red.parse::<u32>().ok()) {
        Some(128..) => "rgb(26, 30, 37)",
        _ => BEHIND_DARK,
    }
}

/// The background for dark texts.
const BEHIND_DARK: &str = "rgb(255, 255, 255)";

/// Returns a colour such as `#2f7de1`, which suits lines on any background, mixed with a quarter of black or white, so that texts in
/// it have a contrast of at least 4.5:1 with the background of the colour `ink`.
pub(crate) fn text_colour(colour: &str, ink: &str) -> String {
    let colour = colour.get(1..).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0);
    // Of each of the three bytes.
    let three_quarters = ((colour >> 1) & 0x7f_7f7f) + ((colour >> 2) & 0x3f_3f3f);
    let white = if behind(ink) == BEHIND_DARK { 0 } else { 0x40_4040 };
    format!("#{:06x}", three_quarters + white)
}

/// Returns Plotly's data, layout and configuration. The `plotly` crate would do the same, but it would make
/// the page 50 kB larger, where this takes 7 kB. `size` has the width and the height of the chart in pixels.
fn plot(chart: &Drawing, ink: &str, size: (f64, f64)) -> Value {
    let (traces, mut layout) = (chart.draw)(ink, size);
    // Plotly would write 0.5 as 500m.
    if traces.iter().any(has_fraction) {
        let y = &mut layout["yaxis"];
        y["exponentformat"] = "none".into();
        y["separatethousands"] = true.into();
        if y["tickformat"] == SI_PREFIXES {
            y["tickformat"] = ",~r".into();
        }
    }
    layout["paper_bgcolor"] = "rgba(0,0,0,0)".into();
    layout["plot_bgcolor"] = "rgba(0,0,0,0)".into();
    layout["font"] = json!({ "family": "system-ui, sans-serif", "color": ink, "size": 13 });
    layout["legend"] = json!({
        "orientation": "h", "xref": "container", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom", "traceorder": "normal",
    });
    let config = json!({ "responsive": true, "displayModeBar": false, "showTips": false });
    json!({ "data": traces, "layout": layout, "config": config })
}

/// Returns whether a trace has a value below 1.
fn has_fraction(trace: &Value) -> bool {
    trace["y"]
        .as_array()
        .is_some_and(|values| values.iter().filter_map(Value::as_f64).any(|value| value < 1.0))
}

/// The format of ticks such as 20k.
const SI_PREFIXES: &str = "~s";

const GRID: &str = "rgba(128,128,128,0.35)";

/// The colour of errors.
const BAD: &str = "#d63c3c";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::gpu_mark::GpuMark;
    use trainplan_shared::catalog::Catalog;

    #[test]
    fn no_colour_is_that_of_a_gpu_type() {
        for gpu in Catalog::embedded().gpus() {
            assert!(!COLOURS.contains(&GpuMark::of(&gpu.id).colour), "{}", gpu.name);
        }
        assert!(STACK_COLOURS.iter().all(|colour| !COLOURS.contains(colour)));
    }

    #[test]
    fn lines_and_texts_in_their_colour_can_be_read() {
        #[expect(clippy::disallowed_methods, reason = "a contrast, not a result")]
        let luminance = |colour: &str| {
            let part = |at: usize| {
                let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
                if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let contrast = |one: &str, other: &str| {
            let (one, other) = (luminance(one), luminance(other));
            (one.max(other) + 0.05) / (one.min(other) + 0.05)
        };
        let of_gpus = Catalog::embedded().gpus().iter().map(|gpu| GpuMark::of(&gpu.id).colour);
        for line in of_gpus.chain(COLOURS).chain(STACK_COLOURS) {
            for (ink, ground) in [("rgb(21, 24, 29)", "#ffffff"), ("rgb(232, 234, 238)", "#181c22")] {
                let of_line = contrast(line, ground);
                assert!(of_line >= 3.0, "{line} on {ground} has {of_line:.2}");
                let colour = text_colour(line, ink);
                let of_text = contrast(&colour, ground);
                assert!(of_text >= 4.5, "{colour} of {line} on {ground} has {of_text:.1}");
            }
        }
    }

    #[test]
    fn ticks_below_one_have_no_prefix() {
        let format = |days: f64| {
            let points = vec![(512.0, days), (1024.0, 2000.0)];
            let line = ChartLine { name: "FP8".into(), group: 0, style: 0, points, is_level: false };
            plot(&LineChart::over_gpus(vec![line], "Days", true).into(), "#000", (600.0, 400.0))["layout"]["yaxis"]["tickformat"].clone()
        };
        assert_eq!([format(0.4), format(4.0)], [json!(",~r"), json!("~s")]);
    }
}
