//! The best layouts on as many GPUs as the plan, to sort and to choose from.

use super::Planner;
use super::findings::{Findings, OfferFindings};
use super::saved::SaveButton;
use super::state::ORDER_KEY;
use super::trust::{TrustText, trust_text};
use super::verdict::{LAYOUT_TERMS, cost_texts, unbroken};
use crate::components::gpu_mark::{GpuMark, GpuSign};
use crate::message::search::{AskedGoal, FoundPlan, Spread};
use leptos::prelude::*;
use std::cmp::Ordering;
use trainplan_shared::estimate::{Interval, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::question::in_time_of_ten;
use trainplan_shared::search::ORDER;
use trainplan_shared::sorting::order;
use trainplan_shared::units::{
    group_digits, group_three_digits, percent, readable_days, readable_range, rounded_count,
};

/// A column that the table can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayoutColumn {
    Days,
    Cost,
    Spare,
    InTime,
    Mfu,
    Speed,
    Trust,
}

impl LayoutColumn {
    const ALL: [LayoutColumn; 7] = [
        LayoutColumn::Days,
        LayoutColumn::Cost,
        LayoutColumn::Spare,
        LayoutColumn::InTime,
        LayoutColumn::Mfu,
        LayoutColumn::Speed,
        LayoutColumn::Trust,
    ];

    /// Returns the columns of a table. With a deadline, the chance to meet it takes the place of MFU, and in several precisions, whose
    /// peaks differ, the speed does.
    fn shown(has_deadline: bool, is_mixed: bool) -> impl Iterator<Item = LayoutColumn> {
        let one = match (has_deadline, is_mixed) {
            (true, _) => LayoutColumn::InTime,
            (false, false) => LayoutColumn::Mfu,
            (false, true) => LayoutColumn::Speed,
        };
        let is_one_of_these =
            |column| matches!(column, LayoutColumn::InTime | LayoutColumn::Mfu | LayoutColumn::Speed);
        LayoutColumn::ALL.into_iter().filter(move |column| *column == one || !is_one_of_these(*column))
    }

    fn id(self) -> &'static str {
        match self {
            LayoutColumn::Days => "days",
            LayoutColumn::Cost => "cost",
            LayoutColumn::Spare => "spare",
            LayoutColumn::InTime => "in-time",
            LayoutColumn::Mfu => "mfu",
            LayoutColumn::Speed => "speed",
            LayoutColumn::Trust => "trust",
        }
    }

    fn title(self) -> &'static str {
        match self {
            LayoutColumn::Days => "Days",
            LayoutColumn::Cost => "Cost",
            LayoutColumn::Spare => "Free GiB",
            LayoutColumn::InTime => "In time",
            LayoutColumn::Mfu => "MFU",
            LayoutColumn::Speed => "Tokens/s per GPU",
            LayoutColumn::Trust => "Confidence",
        }
    }

    /// Returns the order of two plans, the better one first.
    fn order(self, one: &FoundPlan, other: &FoundPlan) -> Ordering {
        match self {
            LayoutColumn::Days => one.days.mid.total_cmp(&other.days.mid),
            LayoutColumn::Cost => {
                let cost = |plan: &FoundPlan| plan.cost.map_or(f64::INFINITY, |cost| cost.mid);
                cost(one).total_cmp(&cost(other))
            }
            LayoutColumn::Spare => other.spare_gib.total_cmp(&one.spare_gib),
            LayoutColumn::InTime => one.days.high.total_cmp(&other.days.high),
            LayoutColumn::Mfu => other.mfu.total_cmp(&one.mfu),
            LayoutColumn::Speed => other.tokens_per_s_per_gpu.total_cmp(&one.tokens_per_s_per_gpu),
            LayoutColumn::Trust => other.trust.cmp(&one.trust),
        }
    }
}

/// A row: a plan, with the id of the recipe that publishes its layout.
#[derive(Debug, Clone, PartialEq)]
struct LayoutRow {
    /// The id of the GPU type.
    gpu: String,
    plan: FoundPlan,
    recipe: Option<String>,
    /// How many of ten such runs meet the deadline, and whether that is often enough; none without a deadline.
    in_time: Option<(u32, bool)>,
}

/// Returns the rows in an order, the published layout among them.
fn rows(
    offer: &OfferFindings,
    column: Option<LayoutColumn>,
    deadline: Option<(f64, bool)>,
) -> Vec<LayoutRow> {
    let Some(answer) = &offer.answer else { return Vec::new() };
    let published = answer.published.as_ref();
    let is_published = |plan: &FoundPlan| published.filter(|(_, own)| own.query == plan.query);
    let row = |plan: &FoundPlan, recipe: Option<&String>| LayoutRow {
        gpu: offer.gpu.id.clone(),
        recipe: recipe.cloned(),
        in_time: deadline.map(|(limit, is_by_slow_end)| {
            let Spread { low, mid, high } = plan.days;
            let end = if is_by_slow_end { high } else { mid };
            (in_time_of_ten(Interval { low, mid, high }, limit), end <= limit)
        }),
        plan: plan.clone(),
    };
    let mut rows: Vec<LayoutRow> =
        answer.layouts.iter().map(|plan| row(plan, is_published(plan).map(|(id, _)| id))).collect();
    if let Some((id, plan)) = published.filter(|_| rows.iter().all(|row| row.recipe.is_none())) {
        rows.push(row(plan, Some(id)));
    }
    let Some(column) = column else { return rows };
    let places = order(rows.len(), &|one, other| column.order(&rows[one].plan, &rows[other].plan));
    places.into_iter().map(|place| rows[place].clone()).collect()
}

/// What differs between rows, so that each says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Mixed {
    precision: bool,
    batch: bool,
}

impl Mixed {
    fn of(rows: &[LayoutRow]) -> Mixed {
        let differs = |is_same: fn(&FoundPlan, &FoundPlan) -> bool| {
            rows.first().is_some_and(|first| rows.iter().any(|row| !is_same(&row.plan, &first.plan)))
        };
        Mixed {
            precision: differs(|one, other| one.precision == other.precision),
            batch: differs(|one, other| one.batch_tokens == other.batch_tokens),
        }
    }
}

/// The table of layouts.
#[component]
pub(super) fn Layouts() -> impl IntoView {
    let plan = Planner::of_page();
    let findings = plan.search.findings;
    let offer = Memo::new(move |_| {
        let shown = plan
            .state
            .scenario
            .with(|scenario| scenario.as_ref().ok().map(|scenario| scenario.gpu.id.clone()));
        findings.with(|findings| {
            let of_shown = findings.offers.iter().find(|offer| shown.as_ref() == Some(&offer.gpu.id));
            of_shown.or(findings.best().and_then(|best| findings.offers.get(best))).cloned()
        })
    });
    let column = Memo::new(move |_| {
        let id = plan.address.own(ORDER_KEY);
        LayoutColumn::ALL.into_iter().find(|column| column.id() == id)
    });
    let deadline = Memo::new(move |_| {
        findings.with(|findings| match findings.goal() {
            AskedGoal::Deadline(limit) => Some((limit, findings.is_by_slow_end())),
            AskedGoal::Budget(_) | AskedGoal::Open => None,
        })
    });
    let rows = Memo::new(move |_| {
        offer.with(|offer| {
            offer.as_ref().map_or(Vec::new(), |offer| rows(offer, column.get(), deadline.get()))
        })
    });
    let is_answered = Memo::new(move |_| findings.with(Findings::is_answered));
    let mixed = Memo::new(move |_| rows.with(|rows| Mixed::of(rows)));
    let precision = move || {
        let first = rows.with(|rows| rows.first().map(|row| row.plan.precision.clone()));
        first.filter(|_| !mixed.get().precision)
    };
    let title = move || {
        offer.with(|offer| {
            let gpus = offer.as_ref().and_then(|offer| {
                Some((offer.answer.as_ref()?.layouts.first()?.gpus, offer.gpu.name.clone()))
            });
            gpus.map_or("Best layouts".to_string(), |(gpus, name)| {
                let precision = precision().map_or(String::new(), |precision| format!(", {precision}"));
                format!("Best layouts on {} × {name}{precision}", group_digits(gpus.into()))
            })
        })
    };
    let mark = Memo::new(move |_| offer.with(|offer| Some(GpuMark::of(&offer.as_ref()?.gpu.id))));
    let currency = Memo::new(move |_| {
        findings
            .with(|findings| findings.asked.as_ref().map_or(String::new(), |asked| asked.currency.clone()))
    });
    // The number of GPUs of the table, and that of the shown plan, if they differ.
    let others = Memo::new(move |_| {
        let shown = plan.state.scenario.with(|scenario| {
            let scenario = scenario.as_ref().ok()?;
            Some((scenario.gpu.id.clone(), scenario.layout.gpus()))
        });
        let (gpu, shown) = shown?;
        offer.with(|offer| {
            let offer = offer.as_ref().filter(|offer| offer.gpu.id == gpu)?;
            let listed = offer.answer.as_ref()?.layouts.first()?.gpus;
            (listed != shown).then_some((listed, shown))
        })
    });
    let counts = move || {
        offer.with(|offer| {
            let answer = offer.as_ref()?.answer.as_ref()?;
            let (all, works) = (group_digits(answer.considered as f64), group_digits(answer.working as f64));
            let reasons = answer
                .discarded
                .iter()
                .map(|(reason, count)| format!("{}: {reason}", group_digits(*count as f64)));
            Some((format!("{all} layouts considered; {works} pass the rules."), reasons.collect::<Vec<_>>()))
        })
    };
    let sort = move |column: LayoutColumn| plan.address.set_own(ORDER_KEY, column.id());
    view! {
        <section
            class="layouts panel-card"
            aria-labelledby="layouts-title"
            class:stale=move || plan.is_outdated()
        >
            <header><h2 id="layouts-title">{move || mark.get().map(|mark| view! { <GpuSign mark /> })}{title}</h2></header>
            {move || others.get().map(|(listed, shown)| view! {
                <p class="other-count">
                    {format!("The plan below runs on {} GPUs. This table is for {}.", group_digits(shown.into()), group_digits(listed.into()))}
                    " "
                    <button type="button" class="link" on:click=move |_| {
                        let count = shown.to_string();
                        plan.state.ask(&[(Field::GpuRange, &count), (Field::Deadline, ""), (Field::Budget, "")]);
                    }>{format!("Find the best layouts on {}", group_digits(shown.into()))}</button>
                </p>
            })}
            <div class="scroll sideways" tabindex="0" role="region" aria-labelledby="layouts-title">
                <table class="layout-table">
                    <thead>
                        <tr>
                            <th scope="col" title=LAYOUT_TERMS>"Layout"</th>
                            {move || LayoutColumn::shown(deadline.get().is_some(), mixed.get().precision).map(|each| view! {
                                <th
                                    scope="col"
                                    class:number=each != LayoutColumn::Trust
                                    aria-sort=move || if column.get() == Some(each) { "descending" } else { "none" }
                                >
                                    <button type="button" on:click=move |_| sort(each)>{each.title()}</button>
                                </th>
                            }).collect_view()}
                            <td></td>
                        </tr>
                    </thead>
                    <tbody>
                        // Without keys: a price changes a row's figures, but not its plan.
                        {move || rows.get().into_iter().map(|row| view! { <Row row mixed currency /> }).collect_view()}
                        {move || match (rows.with(Vec::is_empty), is_answered.get()) {
                            (false, _) => ().into_any(),
                            (true, true) => view! { <tr><td colspan="7">"No layout works. The cards above say what to change."</td></tr> }.into_any(),
                            (true, false) => (0..8).map(|_| view! {
                                <tr aria-hidden="true"><td colspan="7"><span class="bone wide"></span></td></tr>
                            }).collect_view().into_any(),
                        }}
                    </tbody>
                </table>
            </div>
            <p><small>{ORDER.replace(" %", "\u{a0}%")}</small></p>
            {move || counts().map(|(text, reasons)| view! {
                <details>
                    <summary>{text}</summary>
                    <ul class="plain">{reasons.into_iter().map(|reason| view! { <li>{reason}</li> }).collect_view()}</ul>
                </details>
            })}
        </section>
    }
}

#[component]
fn Row(row: LayoutRow, mixed: Memo<Mixed>, currency: Memo<String>) -> impl IntoView {
    let plan = Planner::of_page();
    let LayoutRow { gpu, plan: found, recipe, in_time } = row;
    let (shown, kept) = (found.clone(), found.clone());
    let is_shown = Memo::new(move |_| plan.is_shown(&shown));
    let query = found.query.clone();
    let chance = in_time.map(|(of_ten, is_enough)| {
        let text = match of_ten {
            0 => "<1 in 10".to_string(),
            10 => ">9 in 10".to_string(),
            of_ten => format!("{of_ten} in 10"),
        };
        let why = (!is_enough).then_some("Less often than asked for");
        // A chance that is only less than asked for is not an error.
        let is_unlikely = !is_enough && of_ten < 5;
        view! { <td class="number" class:late=is_unlikely title=why>{text}</td> }
    });
    let (mfu, speed) = (percent(found.mfu), group_three_digits(found.tokens_per_s_per_gpu));
    let speed = in_time.is_none().then(|| {
        view! { <td class="number">{move || if mixed.get().precision { speed.clone() } else { mfu.clone() }}</td> }
    });
    let (precision, batch) = (found.precision.clone(), rounded_count(found.batch_tokens));
    let own = move || {
        let Mixed { precision: has_precision, batch: has_batch } = mixed.get();
        let batch = has_batch.then(|| format!("{batch} tokens per step"));
        has_precision.then(|| precision.clone()).into_iter().chain(batch).collect::<Vec<_>>().join(" · ")
    };
    let TrustText { class, word, why } = trust_text(found.trust);
    let by_button = query.clone();
    view! {
        <tr class:selected=is_shown on:click=move |_| plan.state.choose(&query)>
            <th scope="row">
                <button
                    type="button"
                    class="row-button"
                    aria-pressed=move || is_shown.get().to_string()
                    on:click=move |event| { event.stop_propagation(); plan.state.choose(&by_button); }
                >{unbroken(&found.layout)}</button>
                " " <small>{own}</small>
                {recipe.map(|recipe| view! { <span class="tag" title=recipe>"Published layout"</span> })}
            </th>
            <td class="number">
                {readable_days(found.days.mid)} " "
                <small>{readable_range((found.days.low, found.days.high), readable_days)}</small>
            </td>
            <td class="number">
                {move || found.cost.map(|cost| {
                    let (cost, range) = currency.with(|currency| cost_texts(cost, currency));
                    view! { {cost} " " <small>{range}</small> }
                })}
            </td>
            <td class="number" class:tight={found.memory != MemoryVerdict::Fits}>{format!("{:.1}", found.spare_gib)}</td>
            {chance}
            {speed}
            <td><span class=format!("trust {class}") title=why>{word}</span></td>
            <td><SaveButton gpu plan=kept /></td>
        </tr>
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan};
    use super::*;

    #[test]
    fn a_row_says_how_often_it_is_in_time_and_whether_that_is_enough() {
        let in_time = |is_by_slow_end: bool| {
            let mut findings = answered(&[("H100", Some(plan(64, 58.0, 4e6)))]);
            let answer = findings.offers[0].answer.as_mut().unwrap();
            let days = Spread { low: 50.0, mid: 58.0, high: 66.0 };
            answer.layouts = vec![FoundPlan { days, ..plan(64, 58.0, 4e6) }];
            rows(&findings.offers[0], None, Some((60.0, is_by_slow_end)))[0].in_time
        };
        assert_eq!((in_time(false), in_time(true)), (Some((6, true)), Some((6, false))));
    }

    #[test]
    fn the_published_layout_is_marked_or_added() {
        let mut findings = answered(&[("H100", Some(plan(64, 60.0, 4e6)))]);
        let of = |query: &str, days: f64| FoundPlan { query: query.into(), ..plan(64, days, 4e6) };
        let answer = findings.offers[0].answer.as_mut().unwrap();
        answer.layouts = vec![of("a", 60.0), of("b", 58.0)];
        answer.published = Some(("recipe".into(), of("c", 70.0)));
        let all = rows(&findings.offers[0], Some(LayoutColumn::Days), Some((60.0, false)));
        let queries: Vec<&str> = all.iter().map(|row| row.plan.query.as_str()).collect();
        assert_eq!(queries, ["b", "a", "c"]);
        assert_eq!(all[2].recipe.as_deref(), Some("recipe"));
        let is_late = |row: &LayoutRow| row.in_time.is_some_and(|(_, is_enough)| !is_enough);
        assert_eq!(all.iter().map(is_late).collect::<Vec<_>>(), [false, false, true]);
        findings.offers[0].answer.as_mut().unwrap().published = Some(("recipe".into(), of("a", 60.0)));
        let all = rows(&findings.offers[0], None, None);
        assert_eq!((all.len(), all[0].recipe.is_some()), (2, true));
    }

    #[test]
    fn layouts_in_several_precisions_are_compared_by_speed_and_say_what_differs() {
        let titles = |is_mixed: bool| {
            LayoutColumn::shown(false, is_mixed).map(LayoutColumn::title).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(titles(false), "Days, Cost, Free GiB, MFU, Confidence");
        assert_eq!(titles(true), "Days, Cost, Free GiB, Tokens/s per GPU, Confidence");
        assert!(LayoutColumn::shown(true, true).any(|column| column == LayoutColumn::InTime));
        let mut findings = answered(&[("H100", Some(plan(64, 60.0, 4e6)))]);
        let in_precision = |precision: &str, batch_tokens: f64| FoundPlan {
            precision: precision.into(),
            batch_tokens,
            ..plan(64, 60.0, 4e6)
        };
        let mut mixed = |layouts: Vec<FoundPlan>| {
            findings.offers[0].answer.as_mut().unwrap().layouts = layouts;
            Mixed::of(&rows(&findings.offers[0], None, None))
        };
        assert_eq!(mixed(vec![in_precision("BF16", 8e6), in_precision("BF16", 8e6)]), Mixed::default());
        let both = Mixed { precision: true, batch: true };
        assert_eq!(mixed(vec![in_precision("BF16", 8e6), in_precision("FP8", 9e6)]), both);
    }
}
