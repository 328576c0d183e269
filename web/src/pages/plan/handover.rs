//! Messages between the two programs of the Plan page, apart from the address. The first program loads the second, and
//! names the best plan and all plans on the page. The second says whether the shown plan can run, what its figures are,
//! because a search may not have found it, and what the launch scripts of the plans do.

use crate::message::WorkerMessage;
use crate::message::search::ScriptEffect;
use crate::message::search::{FoundByScripts, Spread};
use leptos::prelude::*;
use leptos::wasm_bindgen::closure::Closure;
use leptos::wasm_bindgen::{JsCast, JsValue};
use leptos::web_sys::{CustomEvent, CustomEventInit, Event, HtmlElement, HtmlScriptElement};
use trainplan_shared::units::parse_count;

/// The id of the element that the details are drawn in.
pub(crate) const DETAILS_ID: &str = "details";

/// The best plan for a question, both as queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BestPlan {
    pub(crate) question: String,
    pub(crate) plan: String,
}

/// The figures of the shown plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanFigures {
    /// The plan, as a query.
    pub(crate) plan: String,
    /// Days to train; none if there are none, as for a proxy.
    pub(crate) days: Option<Spread>,
    pub(crate) cost: Option<Spread>,
    /// The memory that it lacks, as a sentence; none if it may fit.
    pub(crate) lack: Option<String>,
}

/// Whether a plan can run. Only the program of the details has the code that checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanCheck {
    /// The scenario of the plan, as a query.
    pub(crate) plan: String,
    pub(crate) can_run: bool,
}

/// The attributes of that element with the best plan, with the check and the figures of the shown one, and with all plans and their
/// scripts.
const BEST: &str = "data-best";
const QUESTION: &str = "data-question";
const CHECKED: &str = "data-checked";
const CANNOT_RUN: &str = "data-cannot-run";
const SHOWN: &str = "data-shown";
const FIGURES: &str = "data-figures";
const LACK: &str = "data-lack";
const PLANS: &str = "data-plans";
const SCRIPTS: &str = "data-scripts";
const BY_SCRIPTS: &str = "data-by-scripts";

/// The event on the document after a change of these attributes. The element itself may not be drawn yet when the first
/// program begins to listen.
const CHANGED: &str = "handover";

/// The event on the document with the answer for a GPU type by launch scripts.
const FOUND: &str = "found-by-scripts";

/// Returns the element for the details, if this is the Plan page.
pub(crate) fn details_element() -> Option<HtmlElement> {
    document().get_element_by_id(DETAILS_ID)?.dyn_into().ok()
}

fn read(attribute: &str) -> Option<String> {
    details_element()?.get_attribute(attribute)
}

/// Sets attributes, or removes those without a text, and says so.
fn tell<const N: usize>(attributes: [(&str, Option<String>); N]) {
    let Some(element) = details_element() else { return };
    for (name, text) in attributes {
        // It does not fail: the name is valid.
        let _ = match text {
            Some(text) => element.set_attribute(name, &text),
            None => element.remove_attribute(name),
        };
    }
    if let Ok(event) = Event::new(CHANGED) {
        let _ = document().dispatch_event(&event);
    }
}

/// Returns what `read` returns now and after each change.
fn hear<T: PartialEq + Send + Sync + 'static>(read: fn() -> Option<T>) -> ReadSignal<Option<T>> {
    let heard = RwSignal::new(read());
    let changed = Closure::<dyn FnMut()>::new(move || {
        // `try_`: the page may have been left meanwhile.
        let now = read();
        if heard.try_with_untracked(|before| *before != now) == Some(true) {
            heard.set(now);
        }
    });
    let _ = document().add_event_listener_with_callback(CHANGED, changed.as_ref().unchecked_ref());
    // The document stays for as long as the program.
    changed.forget();
    heard.read_only()
}

/// Tells the program of the details which plan is the best one; none while the first search runs.
pub(super) fn name_best(best: Option<BestPlan>) {
    let (question, plan) = best.map(|BestPlan { question, plan }| (question, plan)).unzip();
    tell([(QUESTION, question), (BEST, plan)]);
}

/// Returns the best plan. It follows what the first program says.
pub(crate) fn best_plan() -> ReadSignal<Option<BestPlan>> {
    hear(|| Some(BestPlan { question: read(QUESTION)?, plan: read(BEST)? }))
}

/// Tells the first program whether the shown plan can run.
pub(crate) fn name_check(check: PlanCheck) {
    let PlanCheck { plan, can_run } = check;
    tell([(CHECKED, Some(plan)), (CANNOT_RUN, (!can_run).then(String::new))]);
}

/// Returns whether the shown plan can run. It follows what the program of the details says.
pub(super) fn checked_plan() -> ReadSignal<Option<PlanCheck>> {
    hear(|| Some(PlanCheck { plan: read(CHECKED)?, can_run: read(CANNOT_RUN).is_none() }))
}

/// Tells the first program the figures of the shown plan.
pub(crate) fn name_figures(figures: PlanFigures) {
    let PlanFigures { plan, days, cost, lack } = figures;
    let ends = |spread: Spread| format!("{} {} {}", spread.low, spread.mid, spread.high);
    let text = [days.map(ends), cost.map(ends)].into_iter().flatten().collect::<Vec<_>>().join(" ");
    tell([(SHOWN, Some(plan)), (FIGURES, Some(text)), (LACK, lack)]);
}

/// Tells the program of the details all plans on the page, as queries between spaces.
pub(super) fn name_plans(plans: String) {
    tell([(PLANS, Some(plans))]);
}

/// Returns all plans on the page, as queries between spaces. They follow what the first program says.
pub(crate) fn named_plans() -> ReadSignal<Option<String>> {
    hear(|| read(PLANS))
}

/// Tells the first program what the launch scripts of plans do, each with the query of the plan.
pub(crate) fn name_scripts(scripts: &[(String, ScriptEffect)]) {
    let word = |(plan, effect): &(String, ScriptEffect)| {
        let state = if effect.is_unavailable { 2 } else { u8::from(effect.may_lack_memory) };
        let software = if effect.runs_megatron_lm { "m" } else { "" };
        format!("{plan} {} {state}{software}", effect.slowdown)
    };
    tell([(SCRIPTS, Some(scripts.iter().map(word).collect::<Vec<_>>().join(" ")))]);
}

/// Returns what the launch scripts of plans do, for [`read_scripts`]. It follows what the program of the details says.
pub(super) fn named_scripts() -> ReadSignal<Option<String>> {
    hear(|| read(SCRIPTS))
}

/// Reads what the launch scripts of plans do.
pub(super) fn read_scripts(text: &str) -> Vec<(String, ScriptEffect)> {
    let mut words = text.split(' ');
    let mut scripts = Vec::new();
    while let (Some(plan), Some(slowdown), Some(state)) = (words.next(), words.next(), words.next()) {
        let slowdown = parse_count(slowdown).unwrap_or(1.0);
        let (may_lack_memory, is_unavailable) = (state.starts_with('1'), state.starts_with('2'));
        let runs_megatron_lm = state.ends_with('m');
        let effect = ScriptEffect { slowdown, may_lack_memory, is_unavailable, runs_megatron_lm };
        scripts.push((plan.to_string(), effect));
    }
    scripts
}

/// Asks the program of the details for answers by launch scripts: the query of the question, with the indices of GPU types after it. None
/// if no GPU type needs one.
pub(super) fn ask_by_scripts(question: Option<String>) {
    tell([(BY_SCRIPTS, question)]);
}

/// Returns the question that the first program asks, with the indices of GPU types. It follows what that program says.
pub(crate) fn asked_by_scripts() -> ReadSignal<Option<String>> {
    hear(|| read(BY_SCRIPTS))
}

/// Tells the first program the answer for a GPU type.
pub(crate) fn tell_by_scripts(found: &FoundByScripts) {
    let Ok(detail) = found.to_js() else { return };
    let init = CustomEventInit::new();
    init.set_detail(&detail);
    if let Ok(event) = CustomEvent::new_with_event_init_dict(FOUND, &init) {
        let _ = document().dispatch_event(&event);
    }
}

/// Calls `take` with each answer for a GPU type.
pub(super) fn hear_by_scripts(take: impl Fn(FoundByScripts) + 'static) {
    let heard = Closure::<dyn FnMut(CustomEvent)>::new(move |event: CustomEvent| {
        if let Some(found) = FoundByScripts::from_js(event.detail()) {
            take(found);
        }
    });
    let _ = document().add_event_listener_with_callback(FOUND, heard.as_ref().unchecked_ref());
    // The document stays for as long as the program.
    heard.forget();
}

/// Returns the figures of the shown plan. They follow what the program of the details says.
pub(super) fn shown_figures() -> ReadSignal<Option<PlanFigures>> {
    hear(|| {
        let (days, cost) = spreads(&read(FIGURES)?);
        Some(PlanFigures { plan: read(SHOWN)?, days, cost, lack: read(LACK) })
    })
}

fn spreads(text: &str) -> (Option<Spread>, Option<Spread>) {
    let numbers: Vec<f64> = text.split(' ').filter_map(parse_count).collect();
    let mut spreads =
        numbers.chunks_exact(3).map(|ends| Spread { low: ends[0], mid: ends[1], high: ends[2] });
    (spreads.next(), spreads.next())
}

/// Loads the program of the details.
///
/// # Errors
/// The page does not name the program's script.
pub(super) fn load_details() -> Result<(), JsValue> {
    let document = document();
    let meta = document.query_selector("meta[name=details-src]")?.ok_or(JsValue::NULL)?;
    let script: HtmlScriptElement = document.create_element("script")?.dyn_into()?;
    script.set_type("module");
    script.set_src(&meta.get_attribute("content").unwrap_or_default());
    document.head().ok_or(JsValue::NULL)?.append_child(&script)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_were_written() {
        let days = Spread { low: 58.5, mid: 60.0, high: 66.0 };
        assert_eq!(spreads("58.5 60 66"), (Some(days), None));
        let cost = Spread { low: 1e6, mid: 2e6, high: 3e6 };
        assert_eq!(spreads("58.5 60 66 1000000 2000000 3000000"), (Some(days), Some(cost)));
        assert_eq!(spreads(""), (None, None));
    }

    #[test]
    fn scripts_are_read_as_they_were_written() {
        let effect = ScriptEffect {
            slowdown: 1.184,
            may_lack_memory: true,
            is_unavailable: false,
            runs_megatron_lm: true,
        };
        let none = ScriptEffect {
            slowdown: 1.0,
            may_lack_memory: false,
            is_unavailable: true,
            runs_megatron_lm: false,
        };
        assert_eq!(
            read_scripts("m=llama3.1-70b&n=64 1.184 1m m=llama3.1-8b&n=8 1 2"),
            [("m=llama3.1-70b&n=64".to_string(), effect), ("m=llama3.1-8b&n=8".to_string(), none)]
        );
        assert!(read_scripts("").is_empty());
    }
}
