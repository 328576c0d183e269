//! The best layouts on the plan's GPU count, to sort and to choose from.

use super::Planner;
use super::amounts::{cost_texts, count_text, time_texts, unbroken};
use super::findings::{Findings, OfferFindings};
use super::saved::SaveButton;
use super::state::ORDER_KEY;
use super::trust::{TrustText, trust_text};
use crate::components::gpu_mark::{GpuMark, GpuSign};
use crate::message::search::{AskedGoal, FoundFamily, FoundPlan, Spread};
use leptos::prelude::*;
use std::cmp::Ordering;
use trainplan_shared::estimate::{Interval, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::question::{as_measured, in_time_of_ten};
use trainplan_shared::search::{COUNTED_SPLIT, ORDER};
use trainplan_shared::sorting::order;
use trainplan_shared::units::{below_days, group_digits, group_three_digits, percent};

/// What the abbreviations of a layout mean.
pub(super) const LAYOUT_TERMS: &str = "TP, PP, CP, EP: GPUs for tensor, pipeline, context and expert parallelism. VP: chunks of each \
                                       pipeline stage. MBS: micro batch size, in sequences. FSDP: fully sharded data parallel. Counted \
                                       split: the embedding and the loss count as a layer each.";

/// The note below the table if its first layout ranks below others.
const MOVED_UP: &str =
    " The first layout is moved up, because it finishes in time and those ranked before it don't.";

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
    /// peaks differ, the speed does. A confidence that all rows share is said below the table.
    fn shown(has_deadline: bool, mixed: Mixed) -> Vec<LayoutColumn> {
        let is_shown = |column: &LayoutColumn| match column {
            LayoutColumn::Days | LayoutColumn::Cost | LayoutColumn::Spare => true,
            LayoutColumn::InTime => has_deadline,
            LayoutColumn::Mfu => !has_deadline && !mixed.precision,
            LayoutColumn::Speed => !has_deadline && mixed.precision,
            LayoutColumn::Trust => mixed.trust,
        };
        LayoutColumn::ALL.into_iter().filter(is_shown).collect()
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

    /// Returns the class of its cells.
    fn class(self) -> &'static str {
        match self {
            LayoutColumn::Days => "number of-days",
            LayoutColumn::Cost => "number of-cost",
            LayoutColumn::Spare => "number of-spare",
            LayoutColumn::InTime | LayoutColumn::Mfu | LayoutColumn::Speed => "number of-goal",
            LayoutColumn::Trust => "of-trust",
        }
    }

    fn title(self) -> &'static str {
        match self {
            LayoutColumn::Days => "Days",
            LayoutColumn::Cost => "Cost",
            LayoutColumn::Spare => "Free GiB",
            LayoutColumn::InTime => "In time",
            LayoutColumn::Mfu => "MFU",
            LayoutColumn::Speed => "Tokens/s/GPU",
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
    /// Rows that differ only in VP, the pipeline split or the batch.
    others: Vec<LayoutRow>,
}

impl LayoutRow {
    /// Returns the row and its others.
    fn all(&self) -> impl Iterator<Item = &LayoutRow> {
        std::iter::once(self).chain(&self.others)
    }
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
        others: Vec::new(),
    };
    let marked = |plan: &FoundPlan| row(plan, is_published(plan).map(|(id, _)| id));
    // The published layout has its own row.
    let family = |family: &FoundFamily| LayoutRow {
        others: family.others.iter().map(marked).filter(|other| other.recipe.is_none()).collect(),
        ..marked(&family.best)
    };
    let mut rows: Vec<LayoutRow> = answer.layouts.iter().map(family).collect();
    let is_listed = rows.iter().any(|row| row.recipe.is_some());
    if let Some((id, plan)) = published.filter(|_| !is_listed) {
        rows.push(row(plan, Some(id)));
    }
    let Some(column) = column else { return rows };
    let places = order(rows.len(), &|one, other| column.order(&rows[one].plan, &rows[other].plan));
    places.into_iter().map(|place| rows[place].clone()).collect()
}

/// What differs between rows, so that each says it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Mixed {
    precision: bool,
    trust: bool,
    /// The tokens per step of the first row, which only other ones say.
    batch_tokens: f64,
}

impl Mixed {
    fn of(rows: &[LayoutRow]) -> Mixed {
        let differs = |is_same: fn(&FoundPlan, &FoundPlan) -> bool| {
            let mut all = rows.iter().flat_map(LayoutRow::all);
            all.next().is_some_and(|first| all.any(|row| !is_same(&row.plan, &first.plan)))
        };
        Mixed {
            precision: differs(|one, other| one.precision == other.precision),
            trust: differs(|one, other| one.trust == other.trust),
            batch_tokens: rows.first().map_or(0.0, |first| first.plan.batch_tokens),
        }
    }
}

/// The table of layouts.
#[component]
pub(super) fn Layouts() -> impl IntoView {
    let plan = Planner::of_page();
    let findings = plan.search.findings;
    let offer = Memo::new(move |_| {
        let shown = plan.shown.get().map(|shown| shown.id);
        findings.with(|findings| {
            // Rows that another GPU type replaces a moment later would move under the pointer.
            if !findings.is_answered() {
                return None;
            }
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
                Some((offer.answer.as_ref()?.layouts.first()?.best.gpus, offer.gpu.name.clone()))
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
        let shown = plan.shown.get()?;
        offer.with(|offer| {
            let offer = offer.as_ref().filter(|offer| offer.gpu.id == shown.id)?;
            let listed = offer.answer.as_ref()?.layouts.first()?.best.gpus;
            (listed != shown.count).then_some((listed, shown.count))
        })
    });
    let counts = move || {
        offer.with(|offer| {
            let answer = offer.as_ref()?.answer.as_ref()?;
            let [all, valid] = [answer.considered, answer.valid].map(|count| group_digits(count as f64));
            let reasons = answer
                .discarded
                .iter()
                .map(|(reason, count)| format!("{}: {reason}", group_digits(*count as f64)));
            let says = format!("{valid} of {all} layouts can run, if they fit in memory.");
            Some((says, reasons.collect::<Vec<_>>()))
        })
    };
    let columns = Memo::new(move |_| LayoutColumn::shown(deadline.get().is_some(), mixed.get()));
    let width = move || (columns.with(Vec::len) + 2).to_string();
    let shared_trust = move || {
        let first = rows.with(|rows| rows.first().map(|row| trust_text(row.plan.trust).word));
        let word = first.filter(|_| !mixed.get().trust)?;
        Some(format!("All have {} confidence. ", word.to_ascii_lowercase()))
    };
    let moved_up = move || {
        let is_moved =
            offer.with(|offer| offer.as_ref()?.answer.as_ref().map(|answer| answer.first_is_moved_up));
        (is_moved == Some(true) && column.get().is_none()).then_some(MOVED_UP)
    };
    let counted = move || {
        let is_counted = |row: &LayoutRow| row.plan.layout.contains("counted split");
        rows.with(|rows| rows.iter().flat_map(LayoutRow::all).any(is_counted)).then_some(COUNTED_SPLIT)
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
                    {format!("The shown plan runs on {} GPUs. This table is for {}.", group_digits(shown.into()), group_digits(listed.into()))}
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
                            {move || columns.get().into_iter().map(|each| view! {
                                <th
                                    scope="col"
                                    class=each.class()
                                    aria-sort=move || if column.get() == Some(each) { "descending" } else { "none" }
                                >
                                    <button type="button" on:click=move |_| sort(each)>{each.title()}</button>
                                </th>
                            }).collect_view()}
                            <td class="of-save"></td>
                        </tr>
                    </thead>
                    <tbody>
                        // Without keys: a price changes a row's figures, but not its plan.
                        {move || rows.get().into_iter().map(|row| view! { <Family row columns mixed currency /> }).collect_view()}
                        {move || match (rows.with(Vec::is_empty), is_answered.get()) {
                            (false, _) => ().into_any(),
                            (true, true) => view! { <tr><td colspan=width>"No layout works. The cards above say what to change."</td></tr> }.into_any(),
                            (true, false) => (0..8).map(|_| view! {
                                <tr aria-hidden="true"><td colspan=width><span class="bone wide"></span></td></tr>
                            }).collect_view().into_any(),
                        }}
                    </tbody>
                </table>
            </div>
            // On a phone, it opens what the styles hide.
            <details class="rest"><summary>"All layouts"</summary></details>
            <p><small>{shared_trust} {counted}</small></p>
            <details>
                <summary>"How these are ordered"</summary>
                {ORDER.replace(" %", "\u{a0}%")} {moved_up}
            </details>
            {move || counts().map(|(text, reasons)| view! {
                <details>
                    <summary>{text}</summary>
                    <ul class="plain">{reasons.into_iter().map(|reason| view! { <li>{reason}</li> }).collect_view()}</ul>
                </details>
            })}
        </section>
    }
}

/// The best of the layouts that differ only in VP, the pipeline split or the batch, and the others on demand.
#[component]
fn Family(
    row: LayoutRow,
    columns: Memo<Vec<LayoutColumn>>,
    mixed: Memo<Mixed>,
    currency: Memo<String>,
) -> impl IntoView {
    let plan = Planner::of_page();
    let others = StoredValue::new(row.others.clone());
    // The shown layout is hidden by the user only.
    let is_other_shown =
        Memo::new(move |_| others.with_value(|others| others.iter().any(|other| plan.is_shown(&other.plan))));
    let is_open = RwSignal::new(None::<bool>);
    let is_unfolded = Memo::new(move |_| is_open.get().unwrap_or_else(|| is_other_shown.get()));
    let fold = (!row.others.is_empty()).then_some(Fold { is_open, is_unfolded });
    view! {
        <Row row columns mixed currency fold />
        {move || is_unfolded.get().then(|| {
            let others = others.get_value().into_iter();
            others.map(|row| view! { <Row row columns mixed currency fold=None is_variant=true /> }).collect_view()
        })}
    }
}

/// The state of rows that can be hidden.
#[derive(Clone, Copy)]
struct Fold {
    /// Whether the user opened or closed them; none before that.
    is_open: RwSignal<Option<bool>>,
    /// Whether they are shown.
    is_unfolded: Memo<bool>,
}

#[component]
fn Row(
    row: LayoutRow,
    columns: Memo<Vec<LayoutColumn>>,
    mixed: Memo<Mixed>,
    currency: Memo<String>,
    /// Its others; none if there are none.
    fold: Option<Fold>,
    /// Whether this is one of the others.
    #[prop(optional)]
    is_variant: bool,
) -> impl IntoView {
    let plan = Planner::of_page();
    let LayoutRow { gpu, plan: found, recipe, in_time, others } = row;
    let (shown, kept) = (found.clone(), found.clone());
    let is_shown = Memo::new(move |_| plan.is_shown(&shown));
    let (query, layout) = (found.query.clone(), unbroken(&found.layout));
    let by_button = query.clone();
    let (precision, found_tokens) = (found.precision.clone(), found.batch_tokens);
    let batch = count_text(found_tokens);
    let with = found.measured_software.as_ref().map(|software| as_measured(Some(software)));
    let own = move || {
        let Mixed { precision: has_precision, batch_tokens, .. } = mixed.get();
        let batch = (found_tokens != batch_tokens).then(|| format!("{batch} tokens per step"));
        let precision = has_precision.then(|| precision.clone());
        precision.into_iter().chain(batch).chain(with.clone()).collect::<Vec<_>>().join(" · ")
    };
    let count = others.len();
    let fold = fold.map(|Fold { is_open, is_unfolded }| {
        view! {
            <button
                type="button"
                class="fold"
                aria-expanded=move || is_unfolded.get().to_string()
                on:click=move |event| { event.stop_propagation(); is_open.set(Some(!is_unfolded.get_untracked())); }
            >{format!("{count} variant{}", if count == 1 { "" } else { "s" })}</button>
        }
    });
    let cells = move || {
        let cell = |column: LayoutColumn| currency.with(|currency| cell(column, &found, in_time, currency));
        columns.get().into_iter().map(cell).collect_view()
    };
    view! {
        <tr class:selected=is_shown class:variant=is_variant on:click=move |_| plan.state.choose(&query)>
            <th scope="row">
                <button
                    type="button"
                    class="row-button"
                    aria-pressed=move || is_shown.get().to_string()
                    on:click=move |event| { event.stop_propagation(); plan.state.choose(&by_button); }
                >{layout}</button>
                " " <small>{own}</small>
                {recipe.map(|recipe| view! { <span class="tag" title=recipe>"Published layout"</span> })}
                {fold}
            </th>
            {cells}
            <td class="of-save"><SaveButton gpu plan=kept /></td>
        </tr>
    }
}

/// Returns the cell of a column.
fn cell(column: LayoutColumn, found: &FoundPlan, in_time: Option<(u32, bool)>, currency: &str) -> AnyView {
    let class = column.class();
    let text = |text: String| view! { <td class=class>{text}</td> }.into_any();
    let with_range = |(value, range): (String, String)| {
        view! { <td class=class>{value} " " <small>{range}</small></td> }.into_any()
    };
    match column {
        LayoutColumn::Days => with_range((below_days(found.days.mid), time_texts(found.days).1)),
        LayoutColumn::Cost => {
            with_range(found.cost.map_or_else(Default::default, |cost| cost_texts(cost, currency)))
        }
        LayoutColumn::Spare => {
            let is_tight = found.memory != MemoryVerdict::Fits;
            let spare = format!("{:.1}", found.spare_gib);
            view! { <td class=class class:tight=is_tight>{spare}</td> }.into_any()
        }
        LayoutColumn::InTime => {
            let (of_ten, is_enough) = in_time.unwrap_or_default();
            let chance = match of_ten {
                0 => "<1 in 10".to_string(),
                10 => ">9 in 10".to_string(),
                of_ten => format!("{of_ten} in 10"),
            };
            let why = (!is_enough).then_some("Less often than required");
            // A chance that is merely lower than the wanted one is not an error.
            let is_unlikely = !is_enough && of_ten < 5;
            view! { <td class=class class:late=is_unlikely title=why>{chance}</td> }.into_any()
        }
        LayoutColumn::Mfu => text(percent(found.mfu)),
        LayoutColumn::Speed => text(group_three_digits(found.tokens_per_s_per_gpu)),
        LayoutColumn::Trust => {
            let TrustText { class: of_trust, word, why } = trust_text(found.trust);
            view! { <td class=class><span class=format!("trust {of_trust}") title=why>{word}</span></td> }
                .into_any()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan};
    use super::*;

    fn family(best: FoundPlan) -> FoundFamily {
        FoundFamily { best, others: Vec::new() }
    }

    #[test]
    fn a_row_says_how_often_it_is_in_time_and_whether_that_is_enough() {
        let in_time = |is_by_slow_end: bool| {
            let mut findings = answered(&[("H100", Some(plan(64, 58.0, 4e6)))]);
            let answer = findings.offers[0].answer.as_mut().unwrap();
            let days = Spread { low: 50.0, mid: 58.0, high: 66.0 };
            answer.layouts = vec![family(FoundPlan { days, ..plan(64, 58.0, 4e6) })];
            rows(&findings.offers[0], None, Some((60.0, is_by_slow_end)))[0].in_time
        };
        assert_eq!((in_time(false), in_time(true)), (Some((6, true)), Some((6, false))));
    }

    #[test]
    fn the_published_layout_is_marked_or_added() {
        let mut findings = answered(&[("H100", Some(plan(64, 60.0, 4e6)))]);
        let of = |query: &str, days: f64| FoundPlan { query: query.into(), ..plan(64, days, 4e6) };
        let answer = findings.offers[0].answer.as_mut().unwrap();
        answer.layouts = vec![family(of("a", 60.0)), family(of("b", 58.0))];
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
        let answer = findings.offers[0].answer.as_mut().unwrap();
        answer.layouts[1].others.push(of("c", 70.0));
        answer.published = Some(("recipe".into(), of("c", 70.0)));
        let all = rows(&findings.offers[0], None, None);
        assert_eq!((all.len(), all[1].others.len(), all[2].recipe.as_deref()), (3, 0, Some("recipe")));
    }

    #[test]
    fn layouts_in_several_precisions_are_compared_by_speed_and_say_what_differs() {
        let titles = |precision: bool, trust: bool| {
            let shown = LayoutColumn::shown(false, Mixed { precision, trust, batch_tokens: 8e6 });
            shown.into_iter().map(LayoutColumn::title).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(titles(false, false), "Days, Cost, Free GiB, MFU");
        assert_eq!(titles(true, true), "Days, Cost, Free GiB, Tokens/s/GPU, Confidence");
        assert!(LayoutColumn::shown(true, Mixed::default()).contains(&LayoutColumn::InTime));
        let mut findings = answered(&[("H100", Some(plan(64, 60.0, 4e6)))]);
        let in_precision = |precision: &str, batch_tokens: f64| FoundPlan {
            precision: precision.into(),
            batch_tokens,
            ..plan(64, 60.0, 4e6)
        };
        let mut mixed = |layouts: Vec<FoundPlan>| {
            findings.offers[0].answer.as_mut().unwrap().layouts = layouts.into_iter().map(family).collect();
            Mixed::of(&rows(&findings.offers[0], None, None))
        };
        let alike = Mixed { precision: false, trust: false, batch_tokens: 8e6 };
        assert_eq!(mixed(vec![in_precision("BF16", 8e6), in_precision("BF16", 9e6)]), alike);
        let precisions = mixed(vec![in_precision("BF16", 8e6), in_precision("FP8", 8e6)]);
        assert_eq!(precisions, Mixed { precision: true, ..alike });
    }
}
