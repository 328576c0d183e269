//! The tabs below the shown plan.

use super::Plan;
use super::answers::TimeFields;
use super::estimate::{EvidencePanel, MemoryPanel, TimePanel};
use super::launch::LaunchPanel;
use super::scaling::Scaling;
use crate::pages::plan::state::TAB_KEY;
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Time,
    Memory,
    Scaling,
    Evidence,
    Launch,
}

impl Tab {
    const ALL: [Tab; 5] = [Tab::Time, Tab::Memory, Tab::Scaling, Tab::Evidence, Tab::Launch];

    /// Returns its id in the address, and its title.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Tab::Time => ("", "Time"),
            Tab::Memory => ("memory", "Memory"),
            Tab::Scaling => ("scaling", "Scaling"),
            Tab::Evidence => ("evidence", "Evidence"),
            Tab::Launch => ("launch", "Launch"),
        }
    }

    fn of(id: &str) -> Tab {
        Tab::ALL.into_iter().find(|tab| tab.names().0 == id).unwrap_or(Tab::Time)
    }
}

/// The tabs, and the panel of the open one.
#[component]
pub(super) fn Tabs() -> impl IntoView {
    let plan = Plan::of_page();
    let open = Memo::new(move |_| Tab::of(&plan.address.own(TAB_KEY)));
    let turn = move |tab: Tab| plan.address.set_own(TAB_KEY, tab.names().0);
    let key = move |event: KeyboardEvent| {
        let place = Tab::ALL.iter().position(|tab| *tab == open.get_untracked()).unwrap_or(0);
        let next = match event.key().as_str() {
            "ArrowRight" => place + 1,
            "ArrowLeft" => place + Tab::ALL.len() - 1,
            _ => return,
        };
        let tab = Tab::ALL[next % Tab::ALL.len()];
        turn(tab);
        if let Some(button) = document().get_element_by_id(&button_id(tab)) {
            use leptos::wasm_bindgen::JsCast;
            if let Ok(button) = button.dyn_into::<leptos::web_sys::HtmlElement>() {
                let _ = button.focus();
            }
        }
    };
    view! {
        <section class="tabs" aria-label="Details of the plan">
            <div role="tablist" aria-label="Details of the plan" on:keydown=key>
                {Tab::ALL.map(|tab| view! {
                    <button
                        type="button"
                        role="tab"
                        id=button_id(tab)
                        aria-selected=move || (open.get() == tab).to_string()
                        aria-controls="tab-panel"
                        tabindex=move || if open.get() == tab { "0" } else { "-1" }
                        on:click=move |_| turn(tab)
                    >{tab.names().1}</button>
                })}
            </div>
            <div role="tabpanel" id="tab-panel" aria-labelledby=move || button_id(open.get()) tabindex="-1">
                {move || match open.get() {
                    Tab::Time => view! { <TimePanel /><TimeFields /> }.into_any(),
                    Tab::Memory => view! { <MemoryPanel /> }.into_any(),
                    Tab::Scaling => view! { <Scaling /> }.into_any(),
                    Tab::Evidence => view! { <EvidencePanel /> }.into_any(),
                    Tab::Launch => view! { <LaunchPanel /> }.into_any(),
                }}
            </div>
        </section>
    }
}

fn button_id(tab: Tab) -> String {
    format!("tab-{}", tab.names().1.to_ascii_lowercase())
}
