//! This file calls the Plotly script. It loads the script, draws charts and images with it, and reads events and places of charts.

use super::labels::escaped;
use super::{Drawing, behind, plot};
use leptos::prelude::{document, window};
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::js_sys::{Array, Function, Promise, Reflect};
use leptos::web_sys::{HtmlElement, HtmlScriptElement};
use serde::Serialize as _;
use serde_json::json;
use serde_wasm_bindgen::Serializer;
use wasm_bindgen_futures::JsFuture;

/// The place of a chart's axes in its element, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChartFrame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The values at the bottom and at the top; on a logarithmic axis, their logarithms to base 10.
    pub(crate) y: (f64, f64),
}

/// Returns a chart as a PNG image in a data URL, in the colours of the page, with a title.
///
/// # Errors
/// Plotly isn't loaded, or the browser can't make the image.
pub(crate) async fn png(chart: &Drawing, title: &str) -> Result<String, JsValue> {
    const SIZE: (u32, u32) = (1200, 675);
    let body = document().body().ok_or(JsValue::NULL)?;
    let ink = window().get_computed_style(&body)?.ok_or(JsValue::NULL)?.get_property_value("color")?;
    let mut figure = plot(chart, &ink, (SIZE.0.into(), SIZE.1.into()));
    let layout = &mut figure["layout"];
    layout["paper_bgcolor"] = behind(&ink).into();
    layout["title"] = json!({ "text": escaped(title), "x": 0.02, "xanchor": "left", "font": { "size": 16 } });
    layout["margin"]["t"] = 64.into();
    let options = json!({ "format": "png", "width": SIZE.0, "height": SIZE.1, "scale": 2 });
    let serializer = Serializer::json_compatible();
    let (figure, options) = (figure.serialize(&serializer)?, options.serialize(&serializer)?);
    let image = plotly_function("toImage")?.call2(&JsValue::NULL, &figure, &options)?;
    JsFuture::from(image.dyn_into::<Promise>()?).await?.as_string().ok_or(JsValue::NULL)
}

pub(super) async fn draw(place: &HtmlElement, chart: &Drawing) -> Result<(), JsValue> {
    load_plotly().await?;
    let ink = window().get_computed_style(place)?.ok_or(JsValue::NULL)?.get_property_value("color")?;
    let size = (place.client_width().into(), place.client_height().into());
    let plot = plot(chart, &ink, size);
    let before = place.client_height();
    if let Some(height) = plot["layout"]["meta"].as_u64() {
        place.style().set_property("min-height", &format!("{height}px"))?;
    }
    // A chart becomes wider when the one beside it goes. One that is hidden has no width.
    let is_resized = |drawn: f64| size.0 > 0.0 && (drawn - size.0).abs() > 1.0;
    if place.client_height() != before || drawn_width(place).is_some_and(is_resized) {
        // Otherwise Plotly keeps the size of an earlier drawing.
        plotly_function("purge")?.call1(&JsValue::NULL, place)?;
    }
    let plot = plot.serialize(&Serializer::json_compatible())?;
    let part = |name: &str| Reflect::get(&plot, &name.into());
    let arguments = [place.into(), part("data")?, part("layout")?, part("config")?];
    let drawn = plotly_function("react")?.apply(&JsValue::NULL, &arguments.into_iter().collect())?;
    JsFuture::from(drawn.dyn_into::<Promise>()?).await?;
    Ok(())
}

/// Returns the width of a drawn chart, in pixels; none before it is drawn.
fn drawn_width(place: &HtmlElement) -> Option<f64> {
    let layout = Reflect::get(place, &"_fullLayout".into()).ok()?;
    Reflect::get(&layout, &"width".into()).ok()?.as_f64()
}

/// Calls `heard` for an event of the chart, and no earlier listener.
pub(super) fn listen(place: &HtmlElement, event: &str, heard: &JsValue) -> Result<(), JsValue> {
    let method = |name: &str| Reflect::get(place, &name.into())?.dyn_into::<Function>();
    method("removeAllListeners")?.call1(place, &event.into())?;
    method("on")?.call2(place, &event.into(), heard)?;
    Ok(())
}

/// Reads the place of the axes of a drawn chart.
pub(super) fn frame(place: &HtmlElement) -> Result<ChartFrame, JsValue> {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into());
    let number = |of: &JsValue, name: &str| get(of, name)?.as_f64().ok_or(JsValue::NULL);
    let layout = get(place, "_fullLayout")?;
    let (x, y) = (get(&layout, "xaxis")?, get(&layout, "yaxis")?);
    let range = get(&y, "range")?;
    Ok(ChartFrame {
        left: number(&x, "_offset")?,
        top: number(&y, "_offset")?,
        width: number(&x, "_length")?,
        height: number(&y, "_length")?,
        y: (number(&range, "0")?, number(&range, "1")?),
    })
}

/// Returns the keys of the points of an event, the nearest to the pointer first.
pub(super) fn keys(event: &JsValue) -> Vec<String> {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).ok();
    let key = |point: JsValue| get(&point, "customdata")?.as_string();
    let points = get(event, "points").map(|points| Array::from(&points));
    points.map_or(Vec::new(), |points| points.iter().filter_map(key).collect())
}

/// Lets a drawn chart be scaled: print styles fit it to the paper.
pub(super) fn make_scalable(place: &HtmlElement) -> Result<(), JsValue> {
    let layers = place.get_elements_by_class_name("main-svg");
    for layer in (0..layers.length()).filter_map(|index| layers.item(index)) {
        let size = |name: &str| layer.get_attribute(name).unwrap_or_default();
        layer.set_attribute("viewBox", &format!("0 0 {} {}", size("width"), size("height")))?;
    }
    Ok(())
}

/// Returns a function of Plotly.
pub(super) fn plotly_function(name: &str) -> Result<Function, JsValue> {
    let plotly = Reflect::get(&window(), &"Plotly".into())?;
    Reflect::get(&plotly, &name.into())?.dyn_into()
}

/// Loads Plotly unless it is loaded or loading, and waits for it.
async fn load_plotly() -> Result<(), JsValue> {
    const SCRIPT_ID: &str = "plotly-script";
    if plotly_function("react").is_ok() {
        return Ok(());
    }
    let document = document();
    let script: HtmlScriptElement = match document.get_element_by_id(SCRIPT_ID) {
        Some(script) => script.dyn_into()?,
        None => {
            let meta = document.query_selector("meta[name=plotly-src]")?.ok_or(JsValue::NULL)?;
            let script: HtmlScriptElement = document.create_element("script")?.dyn_into()?;
            script.set_id(SCRIPT_ID);
            script.set_src(&meta.get_attribute("content").unwrap_or_default());
            document.head().ok_or(JsValue::NULL)?.append_child(&script)?;
            script
        }
    };
    let loaded = Promise::new(&mut |resolve, reject| {
        // These calls can't fail for a script element.
        let _ = script.add_event_listener_with_callback("load", &resolve);
        let _ = script.add_event_listener_with_callback("error", &reject);
    });
    JsFuture::from(loaded).await.map(|_| ())
}
