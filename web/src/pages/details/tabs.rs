//! The tabs below the shown plan.

use super::Plan;
use super::estimate::{MemoryPanel, TimePanel};
use super::evidence::EvidencePanel;
use super::launch::LaunchPanel;
use super::scaling::Scaling;
use super::time_fields::TimeFields;
use crate::pages::plan::state::{DetailsTab, TAB_KEY};
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

/// The tabs, and the panel of the open one.
#[component]
pub(super) fn Tabs() -> impl IntoView {
    let plan = Plan::of_page();
    let open = Memo::new(move |_| DetailsTab::of(&plan.address.own(TAB_KEY)));
    let turn = move |tab: DetailsTab| plan.address.set_own(TAB_KEY, tab.id());
    let key = move |event: KeyboardEvent| {
        let place = DetailsTab::ALL.iter().position(|tab| *tab == open.get_untracked()).unwrap_or(0);
        let next = match event.key().as_str() {
            "ArrowRight" => place + 1,
            "ArrowLeft" => place + DetailsTab::ALL.len() - 1,
            _ => return,
        };
        let tab = DetailsTab::ALL[next % DetailsTab::ALL.len()];
        turn(tab);
        if let Some(button) = document().get_element_by_id(&tab.button_id()) {
            use leptos::wasm_bindgen::JsCast;
            if let Ok(button) = button.dyn_into::<leptos::web_sys::HtmlElement>() {
                let _ = button.focus();
            }
        }
    };
    view! {
        <section class="tabs" aria-label="Details of the plan">
            <div role="tablist" aria-label="Details of the plan" on:keydown=key>
                {DetailsTab::ALL.map(|tab| view! {
                    <button
                        type="button"
                        role="tab"
                        data-title=tab.title()
                        id=tab.button_id()
                        aria-selected=move || (open.get() == tab).to_string()
                        aria-controls="tab-panel"
                        tabindex=move || if open.get() == tab { "0" } else { "-1" }
                        on:click=move |_| turn(tab)
                    >{tab.title()}</button>
                })}
            </div>
            <div role="tabpanel" id="tab-panel" aria-labelledby=move || open.get().button_id() tabindex="-1">
                {move || match open.get() {
                    DetailsTab::Time => view! { <TimePanel /><TimeFields /> }.into_any(),
                    DetailsTab::Memory => view! { <MemoryPanel /> }.into_any(),
                    DetailsTab::Scaling => view! { <Scaling /> }.into_any(),
                    DetailsTab::Evidence => view! { <EvidencePanel /> }.into_any(),
                    DetailsTab::Launch => view! { <LaunchPanel /> }.into_any(),
                }}
            </div>
        </section>
    }
}
