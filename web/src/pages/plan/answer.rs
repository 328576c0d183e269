//! The answer: a sentence, and a card for each GPU type.

use super::Planner;
use super::amounts::{count_text, limit_text};
use super::bar::{BarProblems, PROBLEMS_ID, Samples};
use super::cards::Card;
use super::findings::CardOrder;
use super::headline::headline;
use super::locks::{self, LockChips};
use super::most_tokens;
use super::question::has_scenario;
use super::report::PrintButton;
use super::state::SETTINGS_ID;
use super::verdict::needs_reservation;
use crate::address::{can_undo, undo};
use crate::components::focus::focus;
use leptos::prelude::*;
use trainplan_shared::cost::PurchaseForm;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::problem::all_of;
use trainplan_shared::search::{CHOSEN_FIELDS, Lock, Locks};
use trainplan_shared::units::group_digits;

/// The verdict and the cards.
#[component]
pub(super) fn Answer() -> impl IntoView {
    let plan = Planner::of_page();
    let findings = plan.search.findings;
    let has_problems =
        Memo::new(move |_| plan.lacks_gpu.get() || findings.with(|findings| !findings.problems.is_empty()));
    let is_busy = move || findings.with(|findings| findings.is_searching() || findings.is_behind);
    let shown = headline(plan);
    let is_provisional = move || findings.with(|findings| findings.by_scripts().is_some());
    let has_changed = move || {
        plan.address.spec();
        can_undo()
    };
    let is_empty = move || shown.with(|headline| headline.lead.is_empty());
    let searching = move || {
        plan.search.findings.with(|findings| {
            let all = findings.offers.len();
            let done = findings.offers.iter().filter(|offer| offer.answer.is_some()).count();
            if all == 0 {
                return "Searching layouts …".to_string();
            }
            format!("Searching layouts: {done} of {all} GPU types done …")
        })
    };
    // The last answer stays, and only one message says that it is outdated.
    let outdated = move || match (is_empty(), plan.bar_problems().is_empty() && !plan.lacks_gpu.get()) {
        (true, _) => "",
        (false, true) => "Fix the marked field. Until then, the page answers the last valid question.",
        (false, false) => "Until then, the page answers the last valid question.",
    };
    let is_other = Memo::new(move |_| shown.with(|headline| headline.is_other));
    let more = Memo::new(move |_| shown.with(|headline| headline.more.clone()));
    let names = Memo::new(move |_| findings.with(|findings| findings.offers.len()));
    let skeletons = move || if names.get() == 0 && !has_problems.get() { 2 } else { 0 };
    let ordered = Memo::new(move |before: Option<&CardOrder>| {
        findings.with(|findings| CardOrder::next(before, findings))
    });
    let order = Memo::new(move |_| ordered.with(|order| order.types.clone()));
    // Otherwise rows have cards of different widths, and the wide ones would have another layout.
    let is_roomy = move || matches!(names.get(), 0 | 1 | 2 | 4);
    let assumptions = move || {
        findings.with(|findings| {
            let asked = findings.asked.as_ref().filter(|_| findings.is_answered())?;
            let (least, most) = asked.batch_tokens;
            let batch = match least == most {
                true => count_text(least),
                false => format!("{}–{}", count_text(least), count_text(most)),
            };
            let (about, assumed) = match (least == most, asked.batch_is_assumed) {
                // The search also tries batches nearby.
                (true, true) => ("About ", " (assumed)"),
                (false, true) => ("", " (assumed)"),
                (_, false) => ("", ""),
            };
            let sequences = findings.own_sequences().map_or(String::new(), |tokens| {
                format!(" · sequences of {} tokens, assumed from the imported model", group_digits(tokens.into()))
            });
            let software = asked.offers.first().map_or(String::new(), |gpu| format!(" · {}", gpu.software));
            let megatron_lm = findings.on_megatron_lm();
            let launched = match megatron_lm.is_empty() {
                true => String::new(),
                false => format!(" (the launch script runs Megatron-LM on {})", all_of(&megatron_lm)),
            };
            let longest = asked.longest_days.map_or(String::new(), |days| {
                format!(" · only plans of at most {}; set a deadline to change that", limit_text(days))
            });
            let first = asked.objective.filter(|_| asked.offers.len() > 1);
            let first = first.map_or(String::new(), |objective| format!(" · first: {}", objective.first_rule()));
            // Those that were not found may have some.
            let mut plans = findings.plans().peekable();
            let has_spares = plans.peek().is_none() || plans.any(|(_, plan)| plan.paid_gpus > plan.gpus);
            let spares = if has_spares { ", restarts and spare nodes" } else { " and restarts, but no spare nodes" };
            Some(format!(
                "{about}{batch} tokens per step{assumed}{sequences}{software}{launched}{longest} · includes failures{spares} · energy includes cooling and network{first}"
            ))
        })
    };
    let back = move || {
        let best = move |_| plan.state.ask(&[]);
        let name = findings.with(|findings| match (findings.best_plan(), &*findings.reaching()) {
            (None, _) => None,
            (_, []) => Some("Show the nearest plan"),
            _ => Some("Show the best plan"),
        });
        name.filter(|_| is_other.get()).map(|name| {
            view! {
                <button type="button" class="link" on:click=best>{name}</button>
            }
        })
    };
    let search_own = move || {
        let own = own_values(plan)?;
        let title = format!("Find the best plan with {}", locks::summary(&own));
        let find = move |_| {
            let locks = plan.question.with_untracked(|question| locks::read(question.raw(Field::Lock)));
            plan.state.ask(&[(Field::Lock, &locks.with(&own).to_string())]);
        };
        Some(view! { <button type="button" class="link" on:click=find>{title}</button> " " })
    };
    let on_demand = move || {
        let set = move |_| plan.state.ask(&[(Field::Purchase, PurchaseForm::OnDemand.id())]);
        findings.with(needs_reservation).then(|| {
            view! { <button type="button" class="link" on:click=set>"Use on-demand prices"</button> " " }
        })
    };
    view! {
        <section class="answer" class:stale=move || plan.is_outdated() class:provisional=is_provisional aria-labelledby="verdict" aria-busy=move || is_busy().to_string()>
            <div class="verdict-line">
                // Below the bar, where most changes are made.
                <div class="verdict-tools">
                    {move || has_changed().then(|| view! {
                        <button type="button" class="action" id="undo" title="Ctrl Z" on:click=move |_| undo()>"↶ Undo"</button>
                    })}
                    <button
                        type="button"
                        class="action"
                        on:click=move |_| focus(SETTINGS_ID)
                    >"Settings"</button>
                    // The script on every page opens them (register.js).
                    <button
                        type="button"
                        class="action commands"
                        title="Commands: ? or Ctrl K"
                        aria-haspopup="dialog"
                        aria-keyshortcuts="? Control+K"
                    >"Commands " <kbd>"?"</kbd></button>
                </div>
                <h1 id="verdict" aria-live="polite">
                    {move || match (plan.search.is_broken(), is_empty()) {
                        (true, _) => "The search failed to start. Reload the page.".to_string(),
                        (false, true) if has_problems.get() => "Fix the marked field to see plans.".to_string(),
                        (false, true) => searching(),
                        (false, false) => shown.get().lead,
                    }}
                </h1>
                // Below the problems it keeps its place, so that these move nothing.
                <p class:unseen=move || has_problems.get()>
                    {move || most_tokens::sentence(plan)} {move || shown.get().rest} " " {on_demand} {search_own} {back}
                </p>
                {move || has_problems.get().then(|| view! {
                    <p class="problems" id=PROBLEMS_ID>
                        <BarProblems /> " " <strong class="outdated">{outdated}</strong>
                    </p>
                })}
                <LockChips />
            </div>
            <div class="cards-row" class:roomy=is_roomy>
                {move || order.get().into_iter().enumerate().map(|(place, index)| view! { <Card index place /> }).collect_view()}
                {move || (0..skeletons()).map(|_| view! {
                    <div class="gpu-card" aria-hidden="true" data-spans="6 6 6"><div class="card-body">
                        <span class="bone"></span><span class="bone hero"></span>
                        <span class="bone wide"></span><span class="bone wide"></span><span class="bone wide"></span>
                    </div></div>
                }).collect_view()}
            </div>
            <div class="answer-foot">
                <small>{assumptions}</small>
                {move || Some(more.get()).filter(|more| !more.is_empty()).map(|more| view! {
                    <details class="more"><summary>"About the costs"</summary><p>{more}</p></details>
                })}
                <div class="verdict-actions">
                    <Samples />
                    {move || (!is_empty()).then(|| view! { <PrintButton /> })}
                </div>
            </div>
        </section>
    }
}

/// Returns the values of the address's plan that differ from the best plan on its GPU type, as locks; none if the search found
/// the plan.
fn own_values(plan: Planner) -> Option<Locks> {
    let spec = plan.address.spec();
    plan.search.findings.with(|findings| {
        let gpu = spec.get(Field::Gpu).unwrap_or_default();
        let best = findings.best_plan_on(gpu).or_else(|| findings.best_plan())?;
        let best = link::read(&best.query).spec;
        if !has_scenario(&spec) || findings.plans().any(|(_, found)| plan.is_shown(found)) {
            return None;
        }
        let typed = CHOSEN_FIELDS.into_iter().filter_map(|field| {
            let value = spec.get(field).filter(|value| best.get(field) != Some(value))?;
            Some(Lock::on(field, value))
        });
        let locks = Locks(typed.collect());
        (!locks.is_empty() && Locks::parse(&locks.to_string(), Field::Lock).is_ok()).then_some(locks)
    })
}
