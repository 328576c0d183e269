//! The card of a GPU type: its best plan.

mod changes;
mod days;
mod evidence;
mod grid;
mod limits;
mod no_layout;
mod other_counts;

use super::Planner;
use super::amounts::{self, cost_texts, count_text, energy_range, price_text, time_texts, unbroken};
use super::findings::{Findings, OfferFindings, is_within};
use super::layouts::LAYOUT_TERMS;
use super::saved::SaveButton;
use super::trust::TrustMark;
use super::verdict::{beyond_budget, script_sentence};
use crate::components::gpu_mark::{GpuMark, GpuSign};
use crate::message::search::{AskedGoal, FoundPlan, ScriptEffect, Trust};
use changes::Changes;
use days::Days;
use evidence::Evidence;
use grid::card_span;
use leptos::prelude::*;
use limits::{missed, needs_its_gpus};
use no_layout::{NoLayout, obstacle};
use other_counts::{count_button, faster_for_little, more_tokens};
use trainplan_shared::benchmarks::BestMeasured;
use trainplan_shared::estimate::MemoryVerdict;
use trainplan_shared::question::{Chance, as_measured};
use trainplan_shared::units::{duration, group_digits, group_three_digits, percent};

/// The card of a GPU type.
#[component]
pub(super) fn Card(
    /// The index of the GPU type.
    index: usize,
    /// The place among the cards.
    place: usize,
) -> impl IntoView {
    let plan = Planner::of_page();
    let findings = plan.search.findings;
    let offer = Memo::new(move |_| {
        findings.with(|findings| {
            let offer = findings.offers.get(index).cloned().unwrap_or_default();
            // All cards are filled at once, because then they take their places.
            match findings.is_answered() {
                true => offer,
                false => OfferFindings { answer: None, ..offer },
            }
        })
    });
    let goal = Memo::new(move |_| findings.with(Findings::goal));
    let currency = move || {
        findings
            .with(|findings| findings.asked.as_ref().map_or(String::new(), |asked| asked.currency.clone()))
    };
    // One scale for all cards, so that their bars can be compared.
    let longest = Memo::new(move |_| {
        findings.with(|findings| {
            let plans = findings.offers.iter().filter_map(|offer| offer.answer.as_ref()?.judged());
            let ends = plans.map(|plan| plan.days.high);
            let limit = if let AskedGoal::Deadline(days) = findings.goal() { days } else { 0.0 };
            let measured = findings.offers.iter().filter_map(|offer| findings.best_as_measured_days(offer));
            ends.chain(measured).fold(limit, f64::max) * 1.05
        })
    });
    let known = Memo::new(move |_| findings.with(CardRows::of));
    let count = Memo::new(move |_| findings.with(|findings| findings.offers.len()));
    let spans = move || [2, 3, 4].map(|most| card_span(place, count.get(), most).to_string()).join(" ");
    let script = Memo::new(move |_| {
        let script = offer.with(|offer| offer.script);
        script.filter(|effect| effect.is_unavailable || !effect.is_none())
    });
    let is_provisional = Memo::new(move |_| findings.with(|findings| findings.is_provisional(index)));
    let badge = move || findings.with(|findings| findings.badge(index));
    let is_selected = move || {
        let best = offer.with(|offer| offer.answer.as_ref()?.plan.clone());
        best.is_some_and(|best| plan.is_shown(&best))
    };
    view! {
        <article
            class="gpu-card"
            class:selected=is_selected
            class:provisional=move || is_provisional.get()
            style:--series=move || offer.with(|offer| match &offer.answer {
                Some(_) => GpuMark::of(&offer.gpu.id).colour,
                // The style has another colour then.
                None => "",
            })
            data-spans=spans
            data-badge=badge
            aria-label=move || offer.with(|offer| offer.gpu.name.clone())
        >
            // On the edge of the card, so that it moves nothing.
            <p class="checking">
                {move || is_provisional.get().then_some("Checking the launch script; figures may change …")}
            </p>
            <div class="card-body">
                {move || offer.with(|offer| {
                    card(plan, offer, (known.get(), script.get()), (goal.get(), &currency(), longest.get()))
                })}
            </div>
        </article>
    }
}

/// The rows of a card that only some questions have. All cards have the same, so that they can be read across.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CardRows {
    measured: bool,
    in_bf16: bool,
    spares: bool,
}

impl CardRows {
    fn of(findings: &Findings) -> CardRows {
        let any = |has: &dyn Fn(&OfferFindings) -> bool| findings.offers.iter().any(has);
        CardRows {
            measured: any(&|offer| findings.best_measured(offer).is_some()),
            in_bf16: any(&is_another_than_bf16),
            spares: findings.plans().any(|(_, plan)| plan.paid_gpus > plan.gpus),
        }
    }
}

/// Whether the best plan uses another precision than BF16, which may be used too.
fn is_another_than_bf16(offer: &OfferFindings) -> bool {
    let plan = offer.answer.as_ref().and_then(|answer| answer.plan.as_ref());
    offer.gpu.is_bf16_one_of_several && plan.is_some_and(|plan| !plan.is_in_bf16)
}

fn card(
    plan: Planner,
    offer: &OfferFindings,
    (known, script): (CardRows, Option<ScriptEffect>),
    (goal, currency, longest): (AskedGoal, &str, f64),
) -> AnyView {
    let (chance, budget) = plan.search.findings.with_untracked(|findings| {
        (findings.asked.as_ref().and_then(|asked| asked.chance), findings.budget())
    });
    let (name, mark) = (offer.gpu.name.clone(), GpuMark::of(&offer.gpu.id));
    let price = price_text(&offer.gpu, currency);
    // The buttons come before the figures, as the keyboard reaches them.
    let head = |trust: Option<Trust>, buttons: Option<AnyView>| {
        view! {
            <header>
                <h2><GpuSign mark />{name.clone()}</h2>
                {trust.map(|trust| view! { <TrustMark trust /> })}
                {buttons}
                <small>{price.clone()}</small>
            </header>
        }
        .into_any()
    };
    let Some(answer) = &offer.answer else {
        let searched = offer.points.len();
        // Without its name, as the cards change places once all types are answered.
        return view! {
            <span class="bone"></span><span class="bone hero"></span><span class="bone wide"></span>
            <small>{(searched > 0).then(|| format!("GPU counts searched: {searched}"))}</small>
        }
        .into_any();
    };
    // The figures are those by which it misses the goal.
    let (Some(planned), Some(found)) = (&answer.plan, answer.judged()) else {
        let by_locks =
            plan.search.findings.with_untracked(|findings| obstacle(findings, offer, &answer.changes));
        return view! {
            {head(None, None)}
            <NoLayout by_locks discarded=answer.discarded.clone() changes=answer.changes.clone() />
        }
        .into_any();
    };
    let missed = plan.search.findings.with_untracked(|findings| missed(findings, answer, planned, currency));
    let measured_software = found.measured_software.as_deref();
    let with_measured = answer.with_measured_software.as_ref().map(|(_, days)| *days);
    let with_measured = with_measured.filter(|_| measured_software.is_none());
    let other = answer.with_other_chance.clone().filter(|other| other.gpus != found.gpus);
    let other = other.zip(chance).map(|(other, chance)| {
        let cost = other.cost.map_or(String::new(), |cost| format!(", for {}", cost_texts(cost, currency).0));
        let time = duration(other.days.mid);
        let over = match is_within(&other, budget, chance == Chance::Even) {
            true => "",
            false => ", over the budget",
        };
        let reach =
            if matches!(goal, AskedGoal::Budget(_)) { "stay within the budget" } else { "meet the deadline" };
        let says = format!(" {reach} {}: {time}{cost}{over}", chance.other().title());
        view! { <p class="other-chance">{count_button(plan, &other)} {says}</p> }
    });
    let take = {
        let query = found.query.clone();
        move |_| plan.state.choose(&query)
    };
    let shown = found.clone();
    let (measured_days, measured) = plan
        .search
        .findings
        .with_untracked(|findings| (findings.best_as_measured_days(offer), findings.best_measured(offer)));
    let measured = known.measured.then(|| fastest_measured(measured, offer, found));
    let by_slow_end = chance == Some(Chance::NineInTen);
    let faster =
        answer.unmet.is_none().then(|| faster_for_little(offer, found, budget, by_slow_end)).flatten();
    let more_tokens = plan.search.findings.with_untracked(|findings| more_tokens(findings, answer, currency));
    let more_tokens = more_tokens.map(|text| view! { <p class="faster">{text}</p> });
    // It may be the one that is named anyway.
    let faster = faster
        .filter(|faster| answer.with_other_chance.as_ref().is_none_or(|other| other.gpus != faster.gpus));
    let faster = faster.cloned().map(|faster| {
        let time = duration(faster.days.mid);
        let cost =
            faster.cost.map_or(String::new(), |cost| format!(", for {}", cost_texts(cost, currency).0));
        view! { <p class="faster">{count_button(plan, &faster)} {format!(" would take {time}{cost}")}</p> }
    });
    // Its place is kept until it is known.
    let in_bf16 = known.in_bf16.then(|| {
        let missing = match (offer.in_bf16.is_some(), goal) {
            _ if !is_another_than_bf16(offer) => "–",
            (false, _) => "…",
            (true, AskedGoal::Deadline(_)) if budget.is_some() => "not within the limits",
            (true, AskedGoal::Deadline(_)) => "not in time",
            (true, AskedGoal::Budget(_)) => "over budget",
            (true, AskedGoal::Open) => "doesn’t fit",
        };
        let bf16 = offer.in_bf16.clone().flatten().map(|bf16| {
            let cost = bf16.cost.map_or(String::new(), |cost| format!(", {}", cost_texts(cost, currency).0));
            (count_button(plan, &bf16), format!("{}{cost}", duration(bf16.days.mid)))
        });
        let (value, note) = bf16.unwrap_or_else(|| (missing.into_any(), String::new()));
        card_row("In BF16", value, note, None)
    });
    let (cost, cost_range) =
        found.cost.map_or(("–".to_string(), String::new()), |cost| cost_texts(cost, currency));
    let on_demand = found.cost.zip(offer.gpu.on_demand_factor);
    let on_demand = on_demand.map(|(cost, factor)| cost_texts(cost.product(factor), currency));
    let whole_term = offer.gpu.whole_term.map(|term| amounts::cost_range(term, found.paid_gpus, currency));
    // What the run's share of a reservation doesn't say.
    let purchase = offer.gpu.purchase.as_ref().filter(|_| amounts::outlasts(&offer.gpu, found.days.mid));
    let in_all = purchase.zip(whole_term.as_ref()).map(|(purchase, whole_term)| {
        format!("GPUs {purchase} cost {whole_term} in all. The cost above is the run's share of that.")
    });
    let figures_with = measured_software.map(|software| {
        view! { <p><small>{format!("Figures {}", as_measured(Some(software)))}</small></p> }
    });
    let small = |text: String| view! { <p><small>{text}</small></p> };
    let is_beyond = answer.unmet.is_none() && beyond_budget(&offer.gpu, found, budget).whole_term;
    let in_all = in_all.map(|text| match is_beyond {
        true => view! { <p class="missed">{text}" The budget pays only for that share."</p> }.into_any(),
        false => small(text).into_any(),
    });
    let spares = found.spares().map(|(text, changes)| view! { {small(text)} <Changes changes /> });
    let (energy, energy_spread) = energy_range(found.mwh);
    let is_pressed = move || plan.is_shown(&shown);
    let other_shown = {
        let (gpu, best) = (offer.gpu.id.clone(), found.clone());
        move || {
            let gpus = shown_gpus(plan, &gpu).filter(|_| !plan.is_shown(&best))?;
            let text = format!("Shown: another plan, on {} GPUs", group_digits(gpus.into()));
            Some(view! { <p class="other-shown">{text}</p> })
        }
    };
    let [spare, per_gpu, mfu, batch] = [
        format!("{} GPUs", group_digits(found.paid_gpus.into())),
        group_three_digits(found.tokens_per_s_per_gpu),
        percent(found.mfu),
        count_text(found.batch_tokens),
    ];
    let row = |name: &'static str, value: String, note: String| card_row(name, value.into_any(), note, None);
    let (time, time_range) = time_texts(found.days);
    let mut main_rows = vec![row("Time", time, time_range), row("Cost", cost, cost_range)];
    // What a run costs that is shorter than the reservation whose price the cost assumes.
    main_rows.extend(on_demand.map(|(cost, range)| row("On demand", cost, range)));
    let mut money_rows = Vec::new();
    money_rows.extend(whole_term.map(|cost| row("Whole reservation", cost, String::new())));
    money_rows.push(row("Energy", energy, energy_spread));
    if known.spares {
        money_rows.push(row("With spare nodes", spare, String::new()));
    }
    money_rows.extend(in_bf16);
    let mut speed_rows = vec![row("Tokens/s/GPU", per_gpu, String::new())];
    speed_rows.extend(measured);
    speed_rows.push(row("MFU (full)", mfu, String::new()));
    speed_rows.push(row("Tokens per step", batch, String::new()));
    let other_batch = plan.search.findings.with_untracked(|findings| other_batch(findings, found));
    let missed = missed.map(|missed| view! { <p class="missed">{missed}</p> });
    let needs_its_gpus = plan.search.findings.with_untracked(|findings| needs_its_gpus(findings, offer));
    let doubts = found.cautions(needs_its_gpus).into_iter();
    let doubts = doubts.map(|doubt| view! { <p class="missed">{doubt}</p> }).collect_view();
    let more = plan.more_figures;
    let by_script = script.map(script_sentence);
    let buttons = view! {
        <div class="card-foot">
            <SaveButton gpu=offer.gpu.id.clone() plan=found.clone() />
            <button
                type="button"
                class="action"
                aria-pressed=move || is_pressed().to_string()
                on:click=take
            >
                {
                    let shown = found.clone();
                    move || if plan.is_shown(&shown) { "✓ Shown" } else { "Show this plan" }
                }
            </button>
        </div>
    };
    view! {
        {head(Some(found.trust), Some(buttons.into_any()))}
        {missed}
        <div class="card-columns">
            <div>
                <p class="hero">
                    <strong>{group_digits(found.gpus.into())}</strong>
                    " GPUs"
                    {(found.paid_gpus > found.gpus).then(|| format!(" + {} spare", group_digits((found.paid_gpus - found.gpus).into())))}
                </p>
                <dl class="mini main">{main_rows}</dl>
                {figures_with}
                {in_all}
                {spares}
            </div>
            <div>
                <p class="layout-line" title=LAYOUT_TERMS><small>"Layout"</small> <strong>{layout_title(found)}</strong>{other_batch.map(|text| view! { " " <small>{text}</small> })}</p>
                <Gauge spare=found.spare_gib capacity=offer.gpu.memory_gib verdict=found.memory />
                // One switch for all cards, so that they can be read across. The report shows the figures anyway.
                <button
                    type="button"
                    class="fold"
                    aria-expanded=move || more.get().to_string()
                    on:click=move |_| more.update(|more| *more = !*more)
                >"More figures"</button>
            </div>
        </div>
        <div class="more-figures" class:folded=move || !more.get()>
            <dl class="mini">{money_rows}</dl>
            <dl class="mini">{speed_rows}</dl>
        </div>
        <Days
            days=found.days
            goal
            longest
            as_measured=measured_days
            by_script
            software=found.measured_software.clone()
            with_measured
            by_slow_end
        />
        <div class="other-counts">{other} {faster} {more_tokens}</div>
        {doubts}
        <Changes changes=answer.changes.clone() is_by_measured=measured_software.is_some() />
        <Evidence offer=offer.clone() found=found.clone() />
        {other_shown}
    }.into_any()
}

/// Returns the batch of a plan beside the one that is assumed; none if it hardly differs.
fn other_batch(findings: &Findings, found: &FoundPlan) -> Option<String> {
    let asked = findings.asked.as_ref().filter(|asked| asked.batch_is_assumed)?;
    let assumed = asked.batch_tokens.0;
    ((found.batch_tokens / assumed - 1.0).abs() >= 0.045).then(|| {
        format!(
            "{} tokens per step instead of the assumed {}",
            count_text(found.batch_tokens),
            count_text(assumed)
        )
    })
}

/// Returns the precision and the layout of a plan, without line breaks within their parts.
fn layout_title(found: &FoundPlan) -> String {
    unbroken(&format!("{} · {}", found.precision, found.layout))
}

/// Returns a row of a card: what it is, its value, and its range or a note, which may be empty, each in a column of its own.
fn card_row(name: &'static str, value: AnyView, note: String, title: Option<String>) -> AnyView {
    // The space separates them for those who copy or hear the text.
    let note = (!note.is_empty()).then(|| view! { " " <dd class="note">{note}</dd> });
    view! { <div><dt>{name}</dt><dd title=title>{value}</dd>{note}</div> }.into_any()
}

/// Returns the number of GPUs of the shown plan, if it runs on the GPU type.
fn shown_gpus(plan: Planner, gpu: &str) -> Option<u32> {
    plan.shown.with(|shown| Some(shown.as_ref().filter(|shown| shown.id == gpu)?.count))
}

/// The throughput of the fastest measured run, below the predicted one.
fn fastest_measured(run: Option<&BestMeasured>, offer: &OfferFindings, found: &FoundPlan) -> AnyView {
    let title = run.map(|run| run.compared(&offer.gpu.name, found.tokens_per_s_per_gpu, found.days.mid));
    let tokens = run.map_or("–".to_string(), |run| group_three_digits(run.tokens_per_s_per_gpu));
    let gpus = run.map(|run| format!("{}, {} GPUs", run.dtype.title(), group_digits(run.gpus.into())));
    card_row("Fastest measured", tokens.into_any(), gpus.unwrap_or_default(), title)
}

/// The memory of the fullest GPU.
#[component]
fn Gauge(spare: f64, capacity: f64, verdict: MemoryVerdict) -> impl IntoView {
    let used = ((capacity - spare) / capacity * 100.0).clamp(0.0, 100.0);
    let is_tight = verdict != MemoryVerdict::Fits;
    view! {
        <div class="gauge">
            <div class="range" aria-hidden="true"><span class="span" style:left="0" style:width=format!("{used:.1}%")></span></div>
            <small class:tight=is_tight>
                {format!("Memory: {spare:.1} of {capacity:.0} GiB free")}{is_tight.then_some(", too close to call")}
            </small>
        </div>
    }
}
