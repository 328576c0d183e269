//! Plans that the user saved in this browser, or that came with a link, side by side.

use super::Planner;
use super::amounts::{
    cost_range, cost_texts, count_text, energy_range, limit_text, price_text, rounded_count, time_texts,
    unbroken,
};
use super::findings::{Findings, OfferFindings, effect_on};
use super::handover;
use super::question::{self, has_scenario, with_plan};
use super::search::Search;
use super::state::PLANS_KEY;
use super::trust::trust_text;
use crate::address::{self, Address};
use crate::components::copy::{CopyButton, DownloadButton};
use crate::components::focus::focus;
use crate::components::gpu_mark::{GpuMark, GpuSign};
use crate::components::passing_note::PassingNote;
use crate::message::search::ScriptEffect;
use crate::message::search::{AskedGoal, FoundPlan, Spread};
use crate::storage::{Kept, json};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::question::{chance_text, in_time_of_ten};
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::TextTable;
use trainplan_shared::units::{
    below_days, group_digits, group_three_digits, percent, readable, readable_range, signed_percent,
};

/// Where the browser stores the plans. Another name for another format.
const KEY: &str = "plans-1";

/// The most plans that are kept, so that they can be read side by side.
const MOST: usize = 4;
/// Why another plan is not saved.
const FULL: &str = "Four plans are saved, as many as fit side by side. Remove one to save another.";

/// A plan with what it trains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedPlan {
    /// The title of the model.
    model: String,
    tokens: f64,
    /// The name of the GPU type.
    gpu: String,
    software: String,
    currency: String,
    /// The price of a GPU-hour, as people read it.
    #[serde(default)]
    price: Option<String>,
    /// How many times as much it costs on demand as reserved.
    #[serde(default)]
    on_demand_factor: Option<Spread>,
    /// What a GPU costs for the whole term of a reservation.
    #[serde(default)]
    whole_term: Option<(f64, f64)>,
    /// Days at the throughput of the fastest measured run, if the plan is predicted to be clearly faster.
    #[serde(default)]
    as_measured_days: Option<f64>,
    /// What the launch script does otherwise than planned; none if that is not known, or if the figures are those of measured software.
    #[serde(default)]
    script: Option<ScriptEffect>,
    /// The deadline of the question, in days.
    #[serde(default)]
    limit_days: Option<f64>,
    /// The plan with the question that it answers, as a query; empty if an older version of the page saved it.
    #[serde(default)]
    link: String,
    plan: FoundPlan,
}

impl SavedPlan {
    /// Returns its GPUs: `512 × H100`.
    fn name(&self) -> String {
        format!("{} × {}", group_digits(self.plan.gpus.into()), self.gpu)
    }

    /// Returns the query that opens it. Two plans are the same if it is.
    fn query(&self) -> &str {
        if self.link.is_empty() { &self.plan.query } else { &self.link }
    }

    fn mark(&self) -> GpuMark {
        GpuMark::of(link::read(&self.plan.query).spec.raw(Field::Gpu))
    }
}

/// A fact about a plan: a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanFact {
    Model,
    Tokens,
    Gpu,
    Gpus,
    Precision,
    Layout,
    Software,
    Days,
    AsMeasured,
    ByScript,
    InTime,
    Price,
    Cost,
    OnDemand,
    WholeTerm,
    Energy,
    BatchTokens,
    StepTime,
    TokensPerGpu,
    Mfu,
    FreeMemory,
    Confidence,
}

impl SavedPlan {
    /// Returns the days with the software of the launch script.
    fn days_by_script(&self) -> Spread {
        self.plan.days.times(self.script.map_or(1.0, |script| script.slowdown))
    }

    /// Returns how many of ten such runs, by the launch script, end within the time of the question; none if it has none.
    fn in_time_of_ten(&self) -> Option<u32> {
        let Spread { low, mid, high } = self.days_by_script();
        self.limit_days.map(|limit| in_time_of_ten(Interval { low, mid, high }, limit))
    }

    /// Returns the cost on demand instead of that of a reservation; none if another price is used or that on demand is unknown.
    fn on_demand_cost(&self) -> Option<Spread> {
        Some(self.plan.cost?.product(self.on_demand_factor?))
    }
}

impl PlanFact {
    const ALL: [PlanFact; 22] = [
        PlanFact::Model,
        PlanFact::Tokens,
        PlanFact::Gpu,
        PlanFact::Gpus,
        PlanFact::Precision,
        PlanFact::Layout,
        PlanFact::Software,
        PlanFact::Days,
        PlanFact::AsMeasured,
        PlanFact::ByScript,
        PlanFact::InTime,
        PlanFact::Price,
        PlanFact::Cost,
        PlanFact::OnDemand,
        PlanFact::WholeTerm,
        PlanFact::Energy,
        PlanFact::BatchTokens,
        PlanFact::StepTime,
        PlanFact::TokensPerGpu,
        PlanFact::Mfu,
        PlanFact::FreeMemory,
        PlanFact::Confidence,
    ];

    fn title(self) -> &'static str {
        match self {
            PlanFact::Model => "Model",
            PlanFact::Tokens => "Tokens",
            PlanFact::Gpu => "GPU",
            PlanFact::Gpus => "GPUs",
            PlanFact::Precision => "Precision",
            PlanFact::Layout => "Layout",
            PlanFact::Software => "Software",
            PlanFact::Days => "Days",
            PlanFact::AsMeasured => "Days at the measured speed",
            PlanFact::ByScript => "Days with the launch script",
            PlanFact::InTime => "In time",
            PlanFact::Price => "Price",
            PlanFact::Cost => "Cost",
            PlanFact::OnDemand => "Cost on demand",
            PlanFact::WholeTerm => "Whole reservation",
            PlanFact::Energy => "Energy",
            PlanFact::BatchTokens => "Tokens per step",
            PlanFact::StepTime => "Step time, s",
            PlanFact::TokensPerGpu => "Tokens/s/GPU",
            PlanFact::Mfu => "MFU",
            PlanFact::FreeMemory => "Free memory, GiB",
            PlanFact::Confidence => "Confidence",
        }
    }

    fn text(self, saved: &SavedPlan) -> String {
        let plan = &saved.plan;
        let range = |value: Spread| {
            format!("{} ({})", readable(value.mid), readable_range((value.low, value.high), readable))
        };
        match self {
            PlanFact::Model => saved.model.clone(),
            PlanFact::Tokens => rounded_count(saved.tokens),
            PlanFact::Gpu => saved.gpu.clone(),
            PlanFact::Gpus => group_digits(plan.gpus.into()),
            PlanFact::Precision => plan.precision.clone(),
            PlanFact::Layout => plan.layout.clone(),
            PlanFact::Software => saved.software.clone(),
            PlanFact::Days => days_text(plan.days),
            PlanFact::ByScript => match saved.script {
                None => "–".into(),
                Some(script) if script.is_unavailable => "no script".into(),
                Some(script) => {
                    let lacks = if script.may_lack_memory { ", may not fit in memory" } else { "" };
                    match script.slowdown == 1.0 {
                        true => format!("as planned{lacks}"),
                        false => format!("{}{lacks}", days_text(saved.days_by_script())),
                    }
                }
            },
            PlanFact::AsMeasured => saved.as_measured_days.map_or("–".into(), below_days),
            PlanFact::InTime => {
                let chance = saved.limit_days.zip(saved.in_time_of_ten());
                chance.map_or("–".into(), |(limit, of_ten)| {
                    format!("{} within {}", chance_text(of_ten), limit_text(limit))
                })
            }
            PlanFact::Price => saved.price.clone().unwrap_or("–".into()),
            PlanFact::OnDemand => saved.on_demand_cost().map_or("–".into(), |cost| {
                let (cost, range) = cost_texts(cost, &saved.currency);
                format!("{cost} ({range})")
            }),
            PlanFact::WholeTerm => {
                let term = saved.whole_term;
                term.map_or("–".into(), |term| cost_range(term, plan.paid_gpus, &saved.currency))
            }
            PlanFact::Cost => plan.cost.map_or("–".into(), |cost| {
                let (cost, range) = cost_texts(cost, &saved.currency);
                format!("{cost} ({range})")
            }),
            PlanFact::Energy => {
                let (energy, range) = energy_range(plan.mwh);
                format!("{energy} ({range})")
            }
            PlanFact::BatchTokens => count_text(plan.batch_tokens),
            PlanFact::StepTime => range(plan.step_s),
            PlanFact::TokensPerGpu => group_three_digits(plan.tokens_per_s_per_gpu),
            PlanFact::Mfu => percent(plan.mfu),
            PlanFact::FreeMemory => format!("{:.1}", plan.spare_gib),
            PlanFact::Confidence => trust_text(plan.trust).word.into(),
        }
    }

    /// Returns the value of a fact that is compared in percent.
    fn value(self, saved: &SavedPlan) -> Option<f64> {
        let plan = &saved.plan;
        match self {
            PlanFact::Gpus => Some(plan.gpus.into()),
            PlanFact::Days => Some(plan.days.mid),
            PlanFact::Cost => Some(plan.cost?.mid),
            PlanFact::Energy => Some(plan.mwh.mid),
            PlanFact::StepTime => Some(plan.step_s.mid),
            PlanFact::TokensPerGpu => Some(plan.tokens_per_s_per_gpu),
            _ => None,
        }
    }

    /// Returns the range of a fact whose best value is marked. Others are not better if they are less, as the number of GPUs.
    fn range(self, saved: &SavedPlan) -> Option<Spread> {
        match self {
            PlanFact::Days => Some(saved.plan.days),
            PlanFact::Cost => saved.plan.cost,
            PlanFact::Energy => Some(saved.plan.mwh),
            _ => None,
        }
    }

    /// Returns the place of the plan with the least value; none if its range overlaps with that of another plan.
    fn best(self, plans: &[SavedPlan]) -> Option<usize> {
        let ranges = plans.iter().enumerate().filter_map(|(place, saved)| Some((place, self.range(saved)?)));
        let ranges: Vec<(usize, Spread)> = ranges.collect();
        let (best, least) =
            ranges.iter().min_by(|(_, one), (_, other)| one.mid.total_cmp(&other.mid)).copied()?;
        let is_clear = |(place, range): &(usize, Spread)| *place == best || !range.overlaps(least);
        (ranges.len() > 1 && ranges.iter().all(is_clear)).then_some(best)
    }

    /// Returns how a plan compares with the first one: `−25.0 %`, and from twice as much on `3.0 times`; none if both have the same value
    /// or the fact is not a number.
    fn difference(self, first: &SavedPlan, saved: &SavedPlan) -> Option<String> {
        let (one, other) = (self.value(first)?, self.value(saved)?);
        let ratio = other / one;
        (one != other && one > 0.0).then(|| match ratio {
            2.0.. => format!("{ratio:.1} times"),
            _ => signed_percent(ratio - 1.0),
        })
    }
}

/// Returns days with their range.
fn days_text(days: Spread) -> String {
    format!("{} ({})", below_days(days.mid), time_texts(days).1)
}

/// The saved plans.
#[derive(Clone, Copy)]
pub(super) struct SavedPlans {
    plans: RwSignal<Vec<SavedPlan>>,
    /// What the last click on a star did.
    note: RwSignal<Option<String>>,
    /// Whether the address names the plans. It also keeps their changes: stored in the browser, they would replace the user's.
    are_linked: bool,
    /// The plans of the address that are still searched, as queries.
    sought: RwSignal<Vec<String>>,
    /// Whether the search no longer finds one of them.
    lacks_some: RwSignal<bool>,
}

impl SavedPlans {
    /// Provides the plans that the address names, or else those that this browser stored, and keeps every change of them there.
    pub(super) fn provide(address: Address) {
        let linked = untrack(|| address.own(PLANS_KEY));
        let linked: Vec<String> = linked.split_whitespace().take(MOST).map(str::to_string).collect();
        let are_linked = !linked.is_empty();
        let plans = if are_linked { Vec::new() } else { Kept::InBrowser.get(KEY).unwrap_or_default() };
        let saved = SavedPlans {
            plans: RwSignal::new(plans),
            note: RwSignal::new(are_linked.then(|| "The link compares plans side by side.".into())),
            are_linked,
            sought: RwSignal::new(linked),
            lacks_some: RwSignal::new(false),
        };
        provide_context(saved);
        if are_linked {
            saved.seek();
        }
        Effect::new(move |before: Option<()>| {
            let plans = saved.plans.get();
            // The address keeps the plans that are still searched, and those that the search no longer finds.
            let is_incomplete =
                untrack(|| !saved.sought.with(Vec::is_empty) || saved.lacks_some.get()) || before.is_none();
            match are_linked {
                _ if is_incomplete => {}
                true => {
                    let queries = queries(&plans);
                    // The plans also change when it is known what their scripts do.
                    if untrack(|| address.own(PLANS_KEY)) != queries {
                        address.set_own(PLANS_KEY, queries);
                    }
                }
                // Without access to storage, the plans stay until the page is left.
                false => Kept::InBrowser.set(KEY, &plans),
            }
        });
    }

    /// Searches for the plans of the address, one question at a time, so that all figures are those of the same estimate.
    fn seek(self) {
        let question = Memo::new(move |before: Option<&Spec>| {
            let next = self.sought.with(|sought| sought.first().map(|query| question_of(query)));
            next.or_else(|| before.cloned()).unwrap_or_default()
        });
        let search = Search::start(question);
        Effect::new(move |_| {
            let Some(query) = self.sought.with(|sought| sought.first().cloned()) else { return };
            let asked = question.with(link::write);
            let is_refused = search.findings.with(|found| found.is_done && !found.problems.is_empty());
            if is_refused || search.is_broken() {
                // Whether a later question was refused too can't be seen.
                self.lacks_some.set(true);
                return self.sought.set(Vec::new());
            }
            let found = search.findings.with(|findings| {
                let is_answered = findings.is_done && !findings.is_behind && findings.query == asked;
                is_answered.then(|| found_again(findings, &query))
            });
            let Some(found) = found else { return };
            match found {
                Some(plan) => self.plans.update(|plans| plans.push(plan)),
                None => self.lacks_some.set(true),
            }
            self.sought.update(|sought| drop(sought.remove(0)));
        });
    }

    fn of_page() -> SavedPlans {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Plan page provides the saved plans")
    }

    fn contains(self, query: &str) -> bool {
        self.plans.with(|plans| plans.iter().any(|saved| saved.query() == query))
    }

    fn is_full(self) -> bool {
        self.plans.with(|plans| plans.len() >= MOST)
    }

    fn remove(self, query: &str) {
        self.plans.update(|plans| plans.retain(|saved| saved.query() != query));
    }
}

/// Asks the program of the details what the launch scripts of all plans on the page do otherwise than planned, and keeps its answers.
pub(super) fn compare_scripts(planner: Planner) {
    let saved = SavedPlans::of_page();
    let findings = planner.search.findings;
    let named = Memo::new(move |_| {
        let of_page = findings.with(Findings::queries_to_launch).into_iter();
        let kept =
            saved.plans.with(|plans| plans.iter().map(|saved| saved.plan.query.clone()).collect::<Vec<_>>());
        let shown = planner.address.with_spec(has_scenario).then(|| planner.shown_query()).flatten();
        of_page.chain(kept).chain(shown).collect::<Vec<_>>().join(" ")
    });
    Effect::new(move |_| handover::name_plans(named.get()));
    let told = handover::named_scripts();
    Effect::new(move |_| {
        let scripts = told.with(|told| told.as_deref().map_or(Vec::new(), handover::read_scripts));
        saved.plans.maybe_update(|plans| {
            let mut has_changed = false;
            for plan in plans.iter_mut() {
                let script = effect_on(&scripts, &plan.plan.query).or(plan.script);
                let script = script.filter(|_| plan.plan.measured_software.is_none());
                has_changed |= plan.script != script;
                plan.script = script;
            }
            has_changed
        });
        findings.update(|findings| findings.scripts = scripts);
    });
    let asked = Memo::new(move |_| findings.with(Findings::by_scripts));
    Effect::new(move |_| handover::ask_by_scripts(asked.get()));
    handover::hear_by_scripts(move |found| {
        // `try_`: the page may have been left meanwhile.
        findings.try_update(|findings| findings.hear_by_scripts(found));
    });
}

/// Returns a plan of a GPU type with what it trains.
fn saved_plan(findings: &Findings, offer: &OfferFindings, plan: &FoundPlan) -> SavedPlan {
    let asked = findings.asked.clone().unwrap_or_default();
    let measured = plan.measured_software.clone();
    let is_planned = measured.is_none();
    SavedPlan {
        model: asked.model,
        tokens: asked.tokens,
        gpu: offer.gpu.name.clone(),
        software: measured.unwrap_or_else(|| offer.gpu.software.clone()),
        price: price_text(&offer.gpu, &asked.currency),
        on_demand_factor: offer.gpu.on_demand_factor,
        whole_term: offer.gpu.whole_term,
        as_measured_days: findings.as_measured_days(offer, plan),
        script: effect_on(&findings.scripts, &plan.query).filter(|_| is_planned),
        limit_days: match asked.goal {
            AskedGoal::Deadline(limit) => Some(limit),
            AskedGoal::Budget(_) | AskedGoal::Open => None,
        },
        link: link_of(findings, plan),
        currency: asked.currency,
        // With the planned software, since its own script is counted.
        plan: plan.slowed(1.0 / offer.script.filter(|_| is_planned).map_or(1.0, |effect| effect.slowdown)),
    }
}

/// Returns the query of a plan with the question that it answers.
fn link_of(findings: &Findings, plan: &FoundPlan) -> String {
    let [question, plan] = [&findings.query, &plan.query].map(|query| link::read(query).spec);
    link::write(&with_plan(&question, &question, &plan))
}

/// Returns the question in the query of a plan.
fn question_of(query: &str) -> Spec {
    let spec = link::read(query).spec;
    question::question(&spec, spec.outline().as_ref())
}

/// Returns the plan of a query, if the search has found it.
fn found_again(findings: &Findings, query: &str) -> Option<SavedPlan> {
    let (offer, plan) = findings.plans().find(|(_, plan)| link_of(findings, plan) == query)?;
    Some(saved_plan(findings, offer, plan))
}

/// Returns the link to plans side by side. The page shows the first one.
fn comparison_link(plans: &[SavedPlan]) -> String {
    let shown = link::read(plans.first().map(SavedPlan::query).unwrap_or_default()).spec;
    let origin = window().location().origin().unwrap_or_default();
    format!("{origin}/?{}", address::query(&shown, &[(PLANS_KEY, queries(plans))]))
}

/// Returns the queries of plans, as an address names them.
fn queries(plans: &[SavedPlan]) -> String {
    plans.iter().map(SavedPlan::query).collect::<Vec<_>>().join(" ")
}

/// A button that saves a plan, or removes it from the saved ones.
#[component]
pub(super) fn SaveButton(
    /// The GPU type's id.
    gpu: String,
    plan: FoundPlan,
) -> impl IntoView {
    let (planner, saved) = (Planner::of_page(), SavedPlans::of_page());
    let query = planner.search.findings.with_untracked(|findings| link_of(findings, &plan));
    let opened = query.clone();
    let is_saved = Memo::new(move |_| saved.contains(&opened));
    let name = format!("Save {} GPUs, {}", group_digits(plan.gpus.into()), plan.layout);
    let toggle = move |event: leptos::ev::MouseEvent| {
        // The row below the button would choose its plan.
        event.stop_propagation();
        if is_saved.get_untracked() {
            saved.remove(&query);
            return saved.note.set(Some("The plan is no longer saved.".into()));
        }
        if untrack(|| saved.is_full()) {
            return saved.note.set(Some(FULL.into()));
        }
        planner.search.findings.with_untracked(|findings| {
            if let Some(offer) = findings.offers.iter().find(|offer| offer.gpu.id == gpu) {
                let new = saved_plan(findings, offer, &plan);
                let (name, model) = (new.name(), new.model.clone());
                saved.plans.update(|plans| plans.push(new));
                let count = saved.plans.with_untracked(Vec::len);
                let [does, kept] = match saved.are_linked {
                    true => ["Added", " in the link"],
                    false => ["Saved", ""],
                };
                saved.note.set(Some(format!("{does}: {model} on {name}. {count} of {MOST} plans{kept}.")));
            }
        });
    };
    let is_refused = move || !is_saved.get() && saved.is_full();
    view! {
        <button
            type="button"
            class="save"
            aria-label=name
            aria-pressed=move || is_saved.get().to_string()
            // It can be clicked, and then says why it does nothing.
            aria-disabled=move || is_refused().to_string()
            title=move || match (is_saved.get(), is_refused()) {
                (true, _) => "Remove from the saved plans",
                (false, true) => FULL,
                (false, false) => "Save, to compare side by side",
            }
            on:click=toggle
        >
            {move || if is_saved.get() { "★" } else { "☆" }}
        </button>
    }
}

/// Returns the plans as data: numbers without formatting, one column for each value and each end of a range.
fn data(plans: &[SavedPlan]) -> TextTable {
    type Value = fn(&SavedPlan) -> Option<String>;
    let columns: [(&str, Value); 33] = [
        ("model", |saved| Some(saved.model.clone())),
        ("tokens", |saved| Some(saved.tokens.to_string())),
        ("gpu", |saved| Some(saved.gpu.clone())),
        ("gpus", |saved| Some(saved.plan.gpus.to_string())),
        ("dtype", |saved| Some(saved.plan.precision.clone())),
        ("layout", |saved| Some(saved.plan.layout.clone())),
        ("software", |saved| Some(saved.software.clone())),
        ("days", |saved| Some(saved.plan.days.mid.to_string())),
        ("days_low", |saved| Some(saved.plan.days.low.to_string())),
        ("days_high", |saved| Some(saved.plan.days.high.to_string())),
        ("limit_days", |saved| Some(saved.limit_days?.to_string())),
        ("in_time_of_ten", |saved| Some(saved.in_time_of_ten()?.to_string())),
        ("days_as_measured", |saved| Some(saved.as_measured_days?.to_string())),
        ("days_by_script", |saved| {
            saved.script.filter(|script| !script.is_unavailable)?;
            Some(saved.days_by_script().mid.to_string())
        }),
        ("price", |saved| saved.price.clone()),
        ("cost", |saved| Some(saved.plan.cost?.mid.to_string())),
        ("cost_low", |saved| Some(saved.plan.cost?.low.to_string())),
        ("cost_high", |saved| Some(saved.plan.cost?.high.to_string())),
        ("cost_on_demand", |saved| Some(saved.on_demand_cost()?.mid.to_string())),
        ("whole_term_cost_low", |saved| {
            Some((saved.whole_term?.0 * f64::from(saved.plan.paid_gpus)).to_string())
        }),
        ("whole_term_cost_high", |saved| {
            Some((saved.whole_term?.1 * f64::from(saved.plan.paid_gpus)).to_string())
        }),
        ("currency", |saved| saved.plan.cost.map(|_| saved.currency.clone())),
        ("mwh", |saved| Some(saved.plan.mwh.mid.to_string())),
        ("mwh_low", |saved| Some(saved.plan.mwh.low.to_string())),
        ("mwh_high", |saved| Some(saved.plan.mwh.high.to_string())),
        ("tokens_per_step", |saved| Some(saved.plan.batch_tokens.to_string())),
        ("step_time_s", |saved| Some(saved.plan.step_s.mid.to_string())),
        ("step_time_s_low", |saved| Some(saved.plan.step_s.low.to_string())),
        ("step_time_s_high", |saved| Some(saved.plan.step_s.high.to_string())),
        ("tokens_per_s_per_gpu", |saved| Some(saved.plan.tokens_per_s_per_gpu.to_string())),
        ("mfu", |saved| Some(saved.plan.mfu.to_string())),
        ("spare_gib", |saved| Some(saved.plan.spare_gib.to_string())),
        ("confidence", |saved| Some(trust_text(saved.plan.trust).word.to_ascii_lowercase())),
    ];
    TextTable {
        titles: columns.map(|(title, _)| title).to_vec(),
        numbers: vec![false; columns.len()],
        rows: plans.iter().map(|saved| columns.map(|(_, value)| value(saved)).to_vec()).collect(),
    }
}

/// Returns the plans as a table for people, with a row for each.
fn table(plans: &[SavedPlan]) -> TextTable {
    let facts = PlanFact::ALL;
    let is_number = |fact: PlanFact| plans.iter().any(|saved| fact.value(saved).is_some());
    TextTable {
        titles: facts.map(PlanFact::title).to_vec(),
        numbers: facts.map(is_number).to_vec(),
        rows: plans.iter().map(|saved| facts.map(|fact| Some(fact.text(saved))).to_vec()).collect(),
    }
}

/// The id of the heading of the saved plans.
pub(super) const TITLE_ID: &str = "saved-title";

/// The saved plans side by side, with their differences.
#[component]
pub(super) fn SavedPanel() -> impl IntoView {
    let saved = SavedPlans::of_page();
    let plans = saved.plans;
    let markdown = Signal::derive(move || plans.with(|plans| table(plans).to_markdown()));
    let csv = Signal::derive(move || plans.with(|plans| data(plans).to_csv().unwrap_or_default()));
    let json = Signal::derive(move || plans.with(|plans| json(plans, 2).unwrap_or_default()));
    let link = Signal::derive(move || plans.with(|plans| comparison_link(plans)));
    let has_any =
        move || !plans.with(Vec::is_empty) || !saved.sought.with(Vec::is_empty) || saved.lacks_some.get();
    let about = move || match (saved.are_linked, saved.sought.with(Vec::is_empty), saved.lacks_some.get()) {
        (false, ..) => "They are stored in this browser. Percentages compare with the first plan.",
        (true, false, _) => "Searching for the plans of the link …",
        (true, true, true) => "The search no longer finds all plans of the link.",
        (true, true, false) => {
            "They are kept in the link, not in this browser. Percentages compare with the first plan."
        }
    };
    // The plans that were removed together, until another is saved.
    let removed = RwSignal::new(Vec::<SavedPlan>::new());
    let remove_all = move |_| {
        removed.set(plans.get_untracked());
        plans.set(Vec::new());
    };
    let was_emptied = move || plans.with(Vec::is_empty) && removed.with(|removed| !removed.is_empty());
    let see = Callback::new(|()| focus(TITLE_ID));
    // A single plan differs from none.
    let only_differences = RwSignal::new(true);
    let is_one_of_several = move || plans.with(|plans| plans.len() > 1);
    view! {
        <PassingNote text=saved.note title="See saved plans" act=see />
        <Show when=was_emptied>
            <p role="status">
                "The saved plans were removed. "
                <button type="button" class="link" on:click=move |_| plans.set(removed.get_untracked())>"Undo"</button>
            </p>
        </Show>
        <Show when=has_any>
            <section class="saved panel-card" aria-labelledby=TITLE_ID>
                <header>
                    <h2 id=TITLE_ID tabindex="-1">"Saved plans"</h2>
                    <div class="buttons">
                        <Show when=is_one_of_several>
                            <button
                                type="button"
                                class="chip"
                                aria-pressed=move || only_differences.get().to_string()
                                on:click=move |_| only_differences.update(|only| *only = !*only)
                            >"Only differences"</button>
                        </Show>
                        <CopyButton text=link label="Copy comparison link" />
                        <CopyButton text=markdown label="Copy as Markdown" />
                        <DownloadButton text=csv name="plans.csv" label="CSV" />
                        <DownloadButton text=json name="plans.json" label="JSON" />
                        <button type="button" class="link" on:click=remove_all>
                            "Remove all"
                        </button>
                    </div>
                </header>
                <div class="scroll" tabindex="0" role="region" aria-labelledby=TITLE_ID>
                    {move || {
                        let is_short = only_differences.get();
                        plans.with(|plans| (!plans.is_empty()).then(|| side_by_side(saved, plans, is_short)))
                    }}
                </div>
                <p role="status"><small>{about}</small></p>
            </section>
        </Show>
    }
}

/// Returns the table of plans; a short one has only the rows in which they differ.
fn side_by_side(saved: SavedPlans, plans: &[SavedPlan], is_short: bool) -> impl IntoView + use<> {
    let head = |plan: &SavedPlan| {
        let query = plan.query().to_string();
        let (name, mark) = (plan.name(), plan.mark());
        // Two plans may differ in nothing else.
        let about = format!("{} · {}", plan.model, unbroken(&plan.plan.layout));
        let label = format!("Remove {name}");
        view! {
            <th scope="col">
                <GpuSign mark /><a href=format!("/?{query}") rel="external">{name}</a>
                <button type="button" class="save" aria-label=label title="Remove" on:click=move |_| saved.remove(&query)>
                    "×"
                </button>
                <small>{about}</small>
            </th>
        }
    };
    let row = |fact: PlanFact| {
        let texts: Vec<String> = plans.iter().map(|plan| fact.text(plan)).collect();
        let differs = texts.iter().any(|text| *text != texts[0]);
        // The head of the table says them.
        let is_in_head = matches!(fact, PlanFact::Model | PlanFact::Layout);
        if is_in_head || (is_short && plans.len() > 1 && !differs) {
            return None;
        }
        let best = fact.best(plans);
        let cells = plans.iter().zip(texts).enumerate().map(|(place, (plan, text))| {
            let difference = fact.difference(&plans[0], plan);
            let is_best = best == Some(place);
            let tag = is_best.then(|| view! { <span class="tag">"best"</span> });
            view! { <td class:best=is_best>{text} " " <small>{difference} {tag}</small></td> }
        });
        Some(
            view! { <tr class:differs=differs><th scope="row">{fact.title()}</th>{cells.collect_view()}</tr> },
        )
    };
    view! {
        <table class="side-by-side">
            <thead><tr><td></td>{plans.iter().map(head).collect_view()}</tr></thead>
            <tbody>{PlanFact::ALL.map(row)}</tbody>
        </table>
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan, spread};
    use super::*;

    fn two() -> Vec<SavedPlan> {
        let findings =
            answered(&[("H100", Some(plan(1000, 58.0, 4e6))), ("B200", Some(plan(500, 58.0, 3e6)))]);
        let saved = |offer: &OfferFindings| {
            saved_plan(
                &findings,
                offer,
                offer.answer.as_ref().and_then(|answer| answer.plan.as_ref()).expect("a plan"),
            )
        };
        findings.offers.iter().map(saved).collect()
    }

    #[test]
    fn numbers_are_compared_with_the_first_plan() {
        let plans = two();
        let difference = |fact: PlanFact| fact.difference(&plans[0], &plans[1]);
        assert_eq!(difference(PlanFact::Gpus).as_deref(), Some("−50.0 %"));
        assert_eq!(difference(PlanFact::Cost).as_deref(), Some("−25.0 %"));
        assert_eq!((difference(PlanFact::Days), difference(PlanFact::Layout)), (None, None));
        let longer = SavedPlan { plan: plan(1000, 173.65, 4e6), ..plans[0].clone() };
        assert_eq!(PlanFact::Days.difference(&plans[0], &longer).as_deref(), Some("3.0 times"));
    }

    #[test]
    fn the_least_value_is_the_best_if_the_ranges_are_apart() {
        let mut plans = two();
        assert_eq!(PlanFact::Cost.best(&plans), Some(1));
        plans[1].plan.cost = Some(spread(3.8e6));
        assert_eq!((PlanFact::Cost.best(&plans), PlanFact::Days.best(&plans)), (None, None));
        assert_eq!((PlanFact::Gpus.best(&plans), PlanFact::TokensPerGpu.best(&plans)), (None, None));
        assert_eq!(PlanFact::Cost.best(&plans[..1]), None);
    }

    #[test]
    fn the_days_by_the_launch_script_decide_whether_a_plan_is_in_time() {
        let mut plans = two();
        let before = plans[0].in_time_of_ten();
        plans[0].script = Some(ScriptEffect { slowdown: 1.5, may_lack_memory: false, is_unavailable: false });
        assert!(plans[0].in_time_of_ten() < before);
        assert_eq!(PlanFact::ByScript.text(&plans[0]), "87 (78–96)");
        assert_eq!(PlanFact::ByScript.text(&plans[1]), "–");
        plans[1].script = Some(ScriptEffect { slowdown: 1.0, may_lack_memory: false, is_unavailable: true });
        assert_eq!(PlanFact::ByScript.text(&plans[1]), "no script");
    }

    #[test]
    fn the_query_of_a_plan_names_its_whole_question_and_finds_the_plan_again() {
        let query = "m=llama3.1-70b&gpu=h100&n=1024&tp=4&gbs=1024".to_string();
        let mut findings =
            answered(&[("H100", Some(FoundPlan { query, ..plan(1024, 58.0, 4e6) })), ("B200", None)]);
        findings.query = "m=llama3.1-70b&t=10T&gs=h100,b200&by=60d&odds=even&price=3".into();
        let query = link_of(&findings, findings.best_plan().expect("a plan"));
        assert_eq!(question_of(&query), link::read(&findings.query).spec);
        assert_eq!(found_again(&findings, &query).map(|saved| saved.link), Some(query));
        assert_eq!(found_again(&findings, "m=llama3.1-8b"), None);
    }

    #[test]
    fn a_table_has_a_row_for_each_plan_and_a_column_for_each_fact() {
        let table = table(&two());
        assert_eq!(table.rows.len(), 2);
        assert!(table.rows.iter().all(|row| row.len() == PlanFact::ALL.len()));
    }

    #[test]
    fn a_csv_file_has_plain_numbers() {
        let csv = data(&two()).to_csv().expect("writing to memory");
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let column = |name: &str| rows[0].iter().position(|title| *title == name).expect("a column");
        let cost: f64 = rows[1][column("cost")].parse().expect("a number");
        assert_eq!((rows.len(), cost, rows[2][column("gpus")]), (3, 4e6, "500"));
    }
}
