//! The card of a GPU type: its best plan.

use super::Planner;
use super::amounts::{
    self, chance_within, cost_text, cost_texts, count_text, energy_range, limit_text, money, price_text,
    rounded_count, time_text, time_texts, unbroken,
};
use super::findings::{Findings, OfferFindings, is_within};
use super::layouts::LAYOUT_TERMS;
use super::locks;
use super::question::value_title;
use super::saved::SaveButton;
use super::trust::{TrustMark, trust_text};
use super::verdict::{at_measured_speed, enough_for, script_text};
use crate::components::gpu_mark::{GpuMark, GpuSign};
use crate::message::search::ScriptEffect;
use crate::message::search::{AskedGoal, FoundAnswer, FoundChange, FoundPlan, Spread, Trust};
use leptos::prelude::*;
use trainplan_shared::benchmarks::BestMeasured;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::estimate::MemoryVerdict;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::question::{Chance, Objective, Unmet, as_measured};
use trainplan_shared::search::{Lock, USED_OF_NVL72};
use trainplan_shared::units::{duration, group_digits, group_three_digits, parse_count, percent};

/// How many times the tokens are worth a word that the budget is enough for.
const WORTH_MORE_TOKENS: f64 = 1.1;

/// The share of a deadline below which the slow end of a plan's range doesn't come near it. Tokens that are rounded down leave up to a
/// tenth of it.
const EARLY: f64 = 0.85;

/// How many times the cost of the best plan is hardly more.
const LITTLE_MORE: f64 = 1.05;

/// The share of the days of the best plan that is much faster.
const MUCH_FASTER: f64 = 0.8;

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
    let offer =
        Memo::new(move |_| findings.with(|findings| findings.offers.get(index).cloned().unwrap_or_default()));
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
    let badge = move || findings.with(|findings| findings.badge(index));
    let is_selected = move || {
        let best = offer.with(|offer| offer.answer.as_ref()?.plan.clone());
        best.is_some_and(|best| plan.is_shown(&best))
    };
    view! {
        <article
            class="gpu-card"
            class:selected=is_selected
            style:--series=move || offer.with(|offer| GpuMark::of(&offer.gpu.id).colour)
            data-spans=spans
            data-badge=badge
            aria-label=move || offer.with(|offer| offer.gpu.name.clone())
        >
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
        format!(
            "GPUs {purchase} cost {whole_term} in all, if you have no other use for the rest of the term."
        )
    });
    let figures_with = measured_software.map(|software| {
        view! { <p><small>{format!("Figures {}", as_measured(Some(software)))}</small></p> }
    });
    let small = |text: String| view! { <p><small>{text}</small></p> };
    let (in_all, spares) = (in_all.map(small), found.spares().map(small));
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
    speed_rows.push(row("MFU", mfu, String::new()));
    speed_rows.push(row("Tokens per step", batch, String::new()));
    let other_batch = plan.search.findings.with_untracked(|findings| other_batch(findings, found));
    let missed = missed.map(|missed| view! { <p class="missed">{missed}</p> });
    let needs_its_gpus = plan.search.findings.with_untracked(|findings| needs_its_gpus(findings, offer));
    let doubts = found.cautions(needs_its_gpus).into_iter();
    let doubts = doubts.map(|doubt| view! { <p class="missed">{doubt}</p> }).collect_view();
    let more = plan.more_figures;
    let by_script = script.map(|effect| match effect.is_unavailable {
        true => "No launch script can be written for this plan.".to_string(),
        false => format!("The launch script takes {}. These figures include that.", script_text(effect)),
    });
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
        />
        <div class="other-counts">{other} {faster} {more_tokens}</div>
        {doubts}
        <Changes changes=answer.changes.clone() is_by_measured=measured_software.is_some() />
        <Evidence offer=offer.clone() found=found.clone() />
        {other_shown}
    }.into_any()
}

/// Returns which limits the plan of an answer doesn't hold, as sentences; none if it holds them.
fn missed(findings: &Findings, answer: &FoundAnswer, found: &FoundPlan, currency: &str) -> Option<String> {
    let unmet = answer.unmet?;
    if unmet == Unmet::NoPrice {
        return Some("No price is known. Enter one per GPU-hour.".to_string());
    }
    let late = findings.most_days().filter(|_| matches!(unmet, Unmet::TooSlow { .. })).map(|most| {
        let has_deadline = matches!(findings.goal(), AskedGoal::Deadline(_));
        let misses = match (found.days.mid <= most, has_deadline) {
            (true, true) => "May miss the deadline of",
            (false, true) => "Misses the deadline of",
            (true, false) => "May take longer than",
            (false, false) => "Takes longer than",
        };
        format!("{misses} {}", limit_text(most))
    });
    let is_over = |budget: &f64| {
        matches!(unmet, Unmet::TooExpensive { .. })
            || !is_within(found, Some(*budget), findings.is_by_slow_end())
    };
    let over = findings.budget().filter(is_over).map(|budget| {
        let verb = match (is_within(found, Some(budget), false), late.is_some()) {
            (true, true) => "may exceed",
            (true, false) => "May exceed",
            (false, true) => "exceeds",
            (false, false) => "Exceeds",
        };
        format!("{verb} the budget of {}", money(budget, currency))
    });
    let limits: Vec<String> = late.into_iter().chain(over).collect();
    let limits = limits.join(" and ");
    let takes = |plan: &FoundPlan| {
        let cost = plan.cost.map_or(String::new(), |cost| format!(", {}", cost_text(cost.mid, currency)));
        time_text(plan.days) + &cost
    };
    let measured = answer.judged().and_then(|judged| Some((judged.measured_software.as_ref()?, judged)));
    Some(match (measured, unmet) {
        (Some((software, judged)), _) => {
            format!("{limits}. As predicted: {}; with {software}: {}.", takes(found), takes(judged))
        }
        // The button below names the same number.
        (None, Unmet::TooExpensive { tokens, gpus, .. }) if tokens > 0.0 => {
            format!("{limits}, which is {}.", enough_for(tokens, gpus))
        }
        _ => format!("{limits}."),
    })
}

/// Returns why no layout works because of the question's locks, as a sentence; none without locks.
fn obstacle(findings: &Findings, offer: &OfferFindings, changes: &[FoundChange]) -> Option<String> {
    let question = link::read(&findings.query).spec;
    let locks = locks::read(question.raw(Field::Lock)).0;
    let gpu = Catalog::embedded().gpu_or_own(&offer.gpu.id).ok()?;
    let most = gpu.nvlink_domain.min(USED_OF_NVL72);
    let is_too_large = |value: &String| value.parse::<u32>().is_ok_and(|tp| tp > most);
    let leaves =
        |lock: &&Lock| lock.field == Field::Tp && !lock.excludes && lock.values.iter().all(is_too_large);
    if let Some(lock) = locks.iter().find(leaves) {
        let tp = locks::lock_text(lock);
        return Some(format!(
            "TP {tp} is too large: jobs use {most} GPUs of an NVLink domain, so TP is at most {most}."
        ));
    }
    let kept = changes.iter().find(|change| change.key == Field::Lock.key());
    let kept = kept.map_or(Vec::new(), |change| locks::read(&change.value).0);
    let removed = locks.into_iter().filter(|lock| !kept.contains(lock));
    let removed = removed.map(|lock| format!("{} {}", lock.field.label(), locks::lock_text(&lock)));
    let removed: Vec<String> = removed.collect();
    (!removed.is_empty()).then(|| format!("No layout works with {}.", removed.join(", ")))
}

/// Whether fewer GPUs would not do for the plan of an answer: it is too slow, or has the fewest GPUs that meet the deadline.
fn needs_its_gpus(findings: &Findings, offer: &OfferFindings) -> bool {
    let Some(answer) = &offer.answer else { return false };
    let wants_fewest =
        findings.asked.as_ref().and_then(|asked| asked.objective) == Some(Objective::FewestGpus);
    let has_deadline = matches!(findings.goal(), AskedGoal::Deadline(_));
    let gpus = answer.plan.as_ref().map_or(0, |plan| plan.gpus);
    match answer.unmet {
        Some(unmet) => matches!(unmet, Unmet::TooSlow { .. }),
        // Fewer were searched.
        None => wants_fewest && has_deadline && offer.points.iter().any(|point| point.gpus < gpus),
    }
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

/// Returns a button that shows a plan, named by its number of GPUs.
fn count_button(plan: Planner, found: &FoundPlan) -> AnyView {
    let (title, query) = (format!("{} GPUs", group_digits(found.gpus.into())), found.query.clone());
    let show = move |_| plan.state.choose(&query);
    view! { <button type="button" class="link" on:click=show>{title}</button> }.into_any()
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

/// What the plan of a card rests on, and what it takes if that turns out to be wrong.
#[component]
fn Evidence(offer: OfferFindings, found: FoundPlan) -> impl IntoView {
    let plan = Planner::of_page();
    let is_planned = Catalog::embedded().gpu(&offer.gpu.id).is_ok_and(|gpu| gpu.generation.is_planned());
    let why = match is_planned {
        true => format!("The {} is not available yet, so nobody has measured it.", offer.gpu.name),
        false => trust_text(found.trust).why.to_string(),
    };
    let beyond = plan.search.findings.with_untracked(|findings| findings.best_as_measured_days(&offer));
    let beyond = beyond.map(|days| format!(" {}", at_measured_speed(&offer.gpu.name, days)));
    let safe = plan.search.findings.with_untracked(|findings| findings.in_time_as_measured(&offer));
    let safe = safe.map(|safe| {
        let cost = plan.search.findings.with_untracked(|findings| {
            let currency = &findings.asked.as_ref()?.currency;
            Some(format!(", for {},", cost_text(safe.cost?.mid, currency)))
        });
        view! { " " {count_button(plan, &safe)} {cost} " would still meet the deadline." }
    });
    // One warning is enough: the speed of a measured run counts its software.
    let answer = offer.answer.filter(|_| beyond.is_none() && found.measured_software.is_none());
    let software = answer.and_then(|answer| {
        let (software, days) = answer.with_measured_software?;
        let enough = answer.enough_as_predicted.map_or(String::new(), |gpus| {
            format!(
                " At the predicted speed, {} GPUs would be enough, but not with that software.",
                group_digits(gpus.into())
            )
        });
        Some(format!(" The plan takes {} {}.{enough}", time_text(days), as_measured(Some(&software))))
    });
    let is_doubtful = is_planned || beyond.is_some() || software.is_some();
    view! {
        <p class="card-evidence" class:doubtful=is_doubtful>
            {why} {beyond} {safe} {software}
        </p>
    }
}

/// Returns the fastest plan on more GPUs that is much faster than the best one for hardly more money, and within the budget.
fn faster_for_little<'a>(
    offer: &'a OfferFindings,
    best: &FoundPlan,
    budget: Option<f64>,
    by_slow_end: bool,
) -> Option<&'a FoundPlan> {
    let cost = best.cost?.mid;
    let is_little = |plan: &&FoundPlan| {
        let is_cheap = plan.cost.is_some_and(|its| its.mid <= cost * LITTLE_MORE);
        is_cheap
            && is_within(plan, budget, by_slow_end)
            && plan.gpus > best.gpus
            && plan.days.mid <= best.days.mid * MUCH_FASTER
    };
    offer.points.iter().filter(is_little).min_by(|one, other| one.days.mid.total_cmp(&other.days.mid))
}

/// Returns how many tokens the budget and the deadline would train, on the GPUs of the best plan unless the most tokens are asked
/// for, as a sentence; none if that is hardly more.
fn more_tokens(findings: &Findings, answer: &FoundAnswer, currency: &str) -> Option<String> {
    let (tokens, plan) = answer.most_tokens.as_ref()?;
    let asked = findings.asked.as_ref().map_or(f64::INFINITY, |asked| asked.tokens);
    // Slower, measured software may limit them, which no range counts.
    let is_early = matches!((findings.goal(), findings.budget()), (AskedGoal::Deadline(limit), None)
        if plan.days.high < limit * EARLY);
    (*tokens >= asked * WORTH_MORE_TOKENS && !is_early).then(|| {
        let cost = plan.cost.map_or(String::new(), |cost| format!(", for {}", cost_text(cost.mid, currency)));
        let limit = match (findings.goal(), findings.budget()) {
            (AskedGoal::Deadline(_), Some(_)) => "Within the limits",
            (AskedGoal::Deadline(_), None) => "By the deadline",
            _ => "Within the budget",
        };
        let gpus = match answer.plan.as_ref().is_some_and(|best| best.gpus == plan.gpus) {
            true => "these GPUs".to_string(),
            false => format!("{} GPUs", group_three_digits(plan.gpus.into())),
        };
        format!(
            "{limit}, {gpus} can train at least {} tokens, in {}{cost}",
            rounded_count(*tokens),
            duration(plan.days.mid)
        )
    })
}

/// The range of the days as a bar on the scale of all cards, and the chance to meet the deadline.
#[component]
fn Days(
    days: Spread,
    goal: AskedGoal,
    /// The end of the scale.
    longest: f64,
    /// The days at the throughput of the fastest measured run, if the plan is predicted to be clearly faster.
    as_measured: Option<f64>,
    /// What the launch script does otherwise than planned, or that there is none, as a sentence.
    by_script: Option<String>,
    /// The measured software whose figures these are; none if they are as predicted.
    software: Option<String>,
    /// The days with software that was measured, if nobody published a run of the model with that of the plan.
    with_measured: Option<Spread>,
) -> impl IntoView {
    let share = move |value: f64| format!("{:.1}%", (value / longest * 100.0).clamp(0.0, 100.0));
    let limit = if let AskedGoal::Deadline(limit) = goal { Some(limit) } else { None };
    view! {
        <div class="days">
            <div class="scale" aria-hidden="true">
                <span>"0"</span>
                <div class="range">
                    <span class="span" style:left=share(days.low) style:width=share(days.high - days.low)></span>
                    <span class="mid" style:left=share(days.mid)></span>
                    {limit.map(|limit| view! { <span class="limit" style:left=share(limit)></span> })}
                    {as_measured.map(|days| view! { <span class="as-measured" style:left=share(days)></span> })}
                </div>
                <span>{duration(longest)}</span>
            </div>
            <div class="range-key">
                <span class="of-span">"80 % range"</span>
                {limit.map(|_| view! { <span class="of-limit">"deadline"</span> })}
                {as_measured.map(|_| view! { <span class="of-as-measured">"at the measured speed"</span> })}
            </div>
            {by_script.map(|text| view! { <p class="card-note">{text}</p> })}
            {limit.map(|limit| view! { <small>{in_time(days, with_measured, limit)} {software.map(|software| format!(" with {software}"))}</small> })}
        </div>
    }
}

/// Returns the chance that a plan meets a deadline, as predicted and with software that was measured, in words. The range of the
/// prediction does not count that the software may perform worse.
fn in_time(days: Spread, with_measured: Option<Spread>, limit: f64) -> String {
    let measured = with_measured.map_or(String::new(), |days| {
        format!(" as predicted, {} with measured software: {}", chance_within(days, limit), time_text(days))
    });
    format!("Meets the deadline {}{measured}", chance_within(days, limit))
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

/// Why no layout works, and changes that help.
#[component]
fn NoLayout(
    /// How the locks prevent it, as a sentence.
    by_locks: Option<String>,
    discarded: Vec<(String, u64)>,
    changes: Vec<FoundChange>,
) -> impl IntoView {
    let all: u64 = discarded.iter().map(|(_, count)| count).sum();
    let main = discarded.into_iter().max_by_key(|(_, count)| *count);
    view! {
        <p class="hero"><strong>"No layout"</strong></p>
        {by_locks.map(|text| view! { <p class="missed">{text}</p> })}
        {main.map(|(reason, count)| view! {
            <p>{discarded_text(all, count, &reason)}</p>
        })}
        <Changes changes />
    }
}

/// Returns how many layouts were discarded, and how many of them for the most frequent reason.
fn discarded_text(all: u64, count: u64, reason: &str) -> String {
    let of_them = match count == all {
        true => String::new(),
        false => format!(", {} of them", group_digits(count as f64)),
    };
    format!("{} layouts were discarded{of_them} because {reason}.", group_digits(all as f64))
}

/// Changes of the question with which a plan works, to choose from.
#[component]
fn Changes(
    changes: Vec<FoundChange>,
    /// Whether measured software decides that the plan misses the goal. It decides only for a chance of 9 times in 10.
    #[prop(optional)]
    is_by_measured: bool,
) -> impl IntoView {
    let plan = Planner::of_page();
    let currency = plan.search.findings.with_untracked(|findings| {
        findings.asked.as_ref().map_or(String::new(), |asked| asked.currency.clone())
    });
    let currency = StoredValue::new(currency);
    let button = move |change: FoundChange| {
        let FoundChange { key, value, reaches_goal } = change;
        let field = Field::from_key(&key)?;
        let note = match field {
            _ if !reaches_goal => " (misses the goal)",
            Field::Chance if is_by_measured => ", only as predicted",
            _ => "",
        };
        let title = currency.with_value(|currency| change_title(field, &value, currency)) + note;
        let set = move |_| plan.state.ask(&[(field, &value)]);
        Some(view! { <button type="button" class="action" on:click=set>{title}</button> })
    };
    (!changes.is_empty()).then(
        || view! { <p class="card-changes">{changes.into_iter().filter_map(button).collect_view()}</p> },
    )
}

/// Returns what a change of the question does, in words.
fn change_title(field: Field, value: &str, currency: &str) -> String {
    let shown = value_title(field, value);
    match field {
        _ if value.is_empty() => format!("Clear {}", field.label().to_ascii_lowercase()),
        Field::Chance if value == Chance::Even.id() => {
            format!("Accept a chance of {}", Chance::Even.title())
        }
        Field::Chance => format!("Require a chance of {}", Chance::NineInTen.title()),
        Field::Deadline => format!("Allow {shown}"),
        Field::Budget => {
            format!("Allow {}", parse_count(value).map_or(shown, |amount| money(amount, currency)))
        }
        Field::Tokens => format!("Train on {} tokens", parse_count(value).map_or(shown, count_text)),
        Field::GpuRange => format!("Use {shown} GPUs"),
        Field::Gbs => format!("Use a global batch of {shown}"),
        Field::Lock => format!("Lock only {}", locks::summary(&locks::read(value))),
        _ => format!("Set {} to {shown}", field.label()),
    }
}

/// The columns of the grid that the cards share.
const GRID_COLUMNS: usize = 12;

/// Returns the columns of the grid that the card at `index` of `count` takes, if a row has room for `most`: rows differ by one
/// card at most, and each is full.
fn card_span(index: usize, count: usize, most: usize) -> usize {
    let rows = count.div_ceil(most).max(1);
    let (least, longer) = (count / rows, count % rows);
    let is_in_longer = index < longer * (least + 1);
    GRID_COLUMNS / if is_in_longer { least + 1 } else { least.max(1) }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan};
    use super::*;
    use crate::message::search::FoundFamily;

    #[test]
    fn a_card_names_the_limits_that_its_own_plan_misses() {
        let judged = |budget: f64, days: f64, unmet: Unmet, judged: Option<FoundPlan>| {
            let found = plan(640, days, 2.3e6);
            let mut findings = answered(&[("B200", Some(found.clone()))]);
            findings.asked.as_mut().expect("a question").max_cost = Some(budget);
            let measured_software = Some("NeMo 2".to_string());
            let judged = judged.map(|best| FoundPlan { measured_software, ..best });
            let layouts = judged.map(|best| FoundFamily { best, others: Vec::new() });
            let layouts = layouts.into_iter().collect();
            let answer = FoundAnswer { unmet: Some(unmet), layouts, ..FoundAnswer::default() };
            missed(&findings, &answer, &found, "USD").expect("a sentence")
        };
        let text = |budget: f64, days: f64, unmet: Unmet| judged(budget, days, unmet, None);
        let expensive = |cost: f64, tokens: f64| Unmet::TooExpensive { cost, tokens, gpus: 40 };
        assert_eq!(
            text(5e4, 49.0, expensive(2.53e6, 2.2e11)),
            "Exceeds the budget of $50k, which is enough for 220B tokens on 40 GPUs."
        );
        // With the software that was measured, it may cost more than the end of its range.
        assert_eq!(
            judged(2.55e6, 49.0, expensive(2.57e6, 0.0), Some(plan(640, 52.0, 2.57e6))),
            "May exceed the budget of $2.55M. As predicted: 49 days (44–54), $2.30M; with NeMo 2: 52 days (47–57), $2.57M."
        );
        assert_eq!(
            text(5e4, 70.0, Unmet::TooSlow { days: 77.0 }),
            "Misses the deadline of 60 days and exceeds the budget of $50k."
        );
        assert_eq!(
            judged(9e6, 49.0, Unmet::TooSlow { days: 61.0 }, Some(plan(640, 61.0, 2.86e6))),
            "May miss the deadline of 60 days. As predicted: 49 days (44–54), $2.30M; with NeMo 2: 61 days (55–67), $2.86M."
        );
        assert_eq!(text(5e4, 70.0, Unmet::NoPrice), "No price is known. Enter one per GPU-hour.");
    }

    #[test]
    fn a_chance_that_rests_on_unmeasured_software_is_beside_that_with_measured_software() {
        let spread = |mid: f64| Spread { low: mid * 0.9, mid, high: mid * 1.1 };
        let says = |with_measured: Option<Spread>| in_time(spread(49.0), with_measured, 60.0);
        assert_eq!(says(None), "Meets the deadline more than 9 times in 10");
        assert_eq!(
            says(Some(spread(59.0))),
            "Meets the deadline more than 9 times in 10 as predicted, about 6 times in 10 with measured software: 59 days (53–65)"
        );
    }

    #[test]
    fn the_plan_with_the_fewest_gpus_in_time_needs_them() {
        let mut findings = answered(&[("B200", Some(plan(640, 50.0, 2e6)))]);
        let needs = |findings: &Findings| needs_its_gpus(findings, &findings.offers[0]);
        assert!(!needs(&findings));
        findings.offers[0].points = vec![plan(320, 90.0, 2e6), plan(640, 50.0, 2e6)];
        assert!(needs(&findings));
        findings.asked.as_mut().expect("a question").objective = Some(Objective::Fastest);
        assert!(!needs(&findings));
        findings.offers[0].answer.as_mut().expect("an answer").unmet = Some(Unmet::TooSlow { days: 70.0 });
        assert!(needs(&findings));
    }

    #[test]
    fn tokens_by_a_deadline_are_those_of_a_plan_that_takes_as_long() {
        let says = |days: f64| {
            let mut findings = answered(&[("B200", Some(plan(640, 40.0, 2e6)))]);
            let most_tokens = Some((2e13, plan(640, days, 3e6)));
            let answer = FoundAnswer { most_tokens, ..FoundAnswer::default() };
            findings.asked.as_mut().expect("a question").tokens = 1e13;
            more_tokens(&findings, &answer, "USD")
        };
        assert!(
            says(53.0).is_some_and(
                |text| text.starts_with("By the deadline, 640 GPUs can train at least 20T tokens")
            )
        );
        assert_eq!(says(40.0), None);
    }

    #[test]
    fn rows_of_cards_are_full_and_differ_by_one_card() {
        let spans = |count: usize, most: usize| {
            (0..count).map(|index| card_span(index, count, most)).collect::<Vec<_>>()
        };
        assert_eq!(spans(2, 4), [6, 6]);
        assert_eq!(spans(7, 4), [3, 3, 3, 3, 4, 4, 4]);
        assert_eq!(spans(7, 3), [4, 4, 4, 6, 6, 6, 6]);
        assert_eq!(spans(5, 4), [4, 4, 4, 6, 6]);
        for (count, most) in [(1, 2), (3, 2), (6, 4), (8, 3), (9, 4)] {
            assert_eq!(
                spans(count, most).iter().sum::<usize>() % GRID_COLUMNS,
                0,
                "{count} in rows of {most}"
            );
        }
    }
}
