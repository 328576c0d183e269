//! The History page: step times over time, and regressions.

mod acknowledge;
mod open_regressions;

use crate::address::{Address, name_page};
use crate::components::chart::{Chart, ChartLine, ChartMarkers, LineChart};
use crate::components::field::AddressProblems;
use crate::components::filters::{Filter, Filters, NothingFound, asked, is_any};
use crate::components::run_table::{compare_href, run_href};
use crate::components::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Answer, PlotLevel, Question, TimeLine, TimePoint};
use leptos::prelude::*;
use leptos_router::components::A;
use std::sync::Arc;

/// The filters of the address.
const FILTERS: [Filter; 2] = [("recipe", "Recipe"), ("cluster", "Cluster")];
const KEYS: [&str; 2] = ["recipe", "cluster"];

/// The chart's axis is time if runs are at least this many milliseconds apart on average.
const LEAST_GAP: f64 = 60_000.0;

/// What the heading of the step times says.
const STEP_TIME: &str =
    "The mean of the scored steps. If fewer than 5 are scored, the mean of all steps after the warm-up";

/// The History page.
#[component]
pub(crate) fn HistoryPage() -> impl IntoView {
    let address = Address::provide_routed("/history", &KEYS);
    name_page(|| "History".into());
    let desk = Desk::of_app();
    desk.follow();
    let query = Memo::new(move |_| asked(address, &FILTERS));
    let lines = desk.answer(
        move || {
            desk.track_runs();
            Some(Question::History { query: query.get() })
        },
        |answer| if let Answer::History(lines) = answer { Some(lines) } else { None },
    );
    let has_any = move || lines.get().is_some_and(|lines| !lines.is_empty());
    let has_filters = move || is_any(address, &FILTERS);
    let known = Callback::new(move |key| known(&lines.get().unwrap_or_default(), key));
    // The filters stay while the last one is cleared, because the user is still in its field.
    let is_filtered = Memo::new(move |before| before == Some(&true) || has_any() || has_filters());
    let shown = Memo::new(move |_| lines.get().unwrap_or_default());
    let keys = move || shown.with(|lines| lines.iter().map(|line| line.key.clone()).collect::<Vec<_>>());
    view! {
        <div class="results-page">
            <h1 tabindex="-1">"History"</h1>
            <AddressProblems address />
            <RequestErrorNote trouble=Signal::derive(move || lines.trouble()) alone="The history needs a server, which collects runs over time. Ask the person who runs your server for its address, or read logs on the Results page." />
            <Show when=move || is_filtered.get()>
                <Filters filters=&FILTERS known />
            </Show>
            <Show when=move || lines.get().is_some() && !has_any()>
                <Show when=has_filters fallback=begin>
                    <NothingFound filters=&FILTERS />
                </Show>
            </Show>
            <open_regressions::OpenRegressions lines=shown />
            // Keyed, so that an opened table stays open when runs arrive.
            <For each=keys key=String::clone children=move |key| view! { <TimeLineSection line=line_of(shown, key) /> } />
        </div>
    }
}

/// Returns the time line with a key; an empty one while it is gone.
fn line_of(lines: Memo<Arc<Vec<TimeLine>>>, key: String) -> Memo<TimeLine> {
    Memo::new(move |_| {
        let line = lines.with(|lines| lines.iter().find(|line| line.key == key).cloned());
        line.unwrap_or_default()
    })
}

/// What the page shows before there is a history.
fn begin() -> impl IntoView {
    let origin = window().location().origin().unwrap_or_default();
    let upload = format!("TRAINPLAN_TOKEN=… TRAINPLAN_SERVER={origin} trainplan upload experiments/");
    view! {
        <div class="begin">
            <div>
                <h2>"No history yet"</h2>
                <p>
                    "Here you will see how the step time of each recipe changes from run to run, with a warning when it gets worse. "
                    "It starts with the first uploaded run whose recipe is recognised."
                </p>
                <p>"Upload logs on the Results page, or from your cluster: " <code>{upload}</code></p>
                <p>
                    "Both need a token with the scope upload. If the server runs on this machine, it printed one when it started. "
                    "Otherwise, ask its administrator for one."
                </p>
                <p class="buttons"><A href="/results" attr:class="action primary">"Upload logs"</A></p>
            </div>
        </div>
    }
}

/// Returns the recipes or the clusters of the time lines, each once.
fn known(lines: &[TimeLine], key: &str) -> Vec<String> {
    let of = |line: &TimeLine| if key == "cluster" { line.cluster.clone() } else { line.recipe.clone() };
    let mut values: Vec<String> = lines.iter().filter_map(of).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// A time line: its newest comparable run judged, its chart and its table.
#[component]
fn TimeLineSection(line: Memo<TimeLine>) -> impl IntoView {
    let address = Address::of_page();
    let chart = Signal::derive(move || line.with(chart).into());
    let summary = Signal::derive(move || line.with(|line| line.summary.clone()));
    let count = Memo::new(move |_| line.with(|line| line.points.len()));
    let title = line.with_untracked(|line| line.title.clone());
    let rows = move || {
        line.with(|line| {
            let first = line.points.iter().position(|point| point.step_time_s.is_some());
            let points = line.points.iter().enumerate().rev();
            points.map(|(place, point)| row(address, point.clone(), Some(place) == first)).collect_view()
        })
    };
    view! {
        <section class="scaling" aria-label=title.clone()>
            <h2>{title.clone()}</h2>
            {move || line.with(|line| slower(address, line))}
            {move || line.with(not_judged)}
            <Show when=move || { count.get() > 1 }><Chart chart summary /></Show>
            {move || line.with(not_compared).map(|text| view! { <p class="basis">{text}</p> })}
            {move || line.with(judged)}
            <acknowledge::AlertNote alert=Memo::new(move |_| line.with(|line| line.alert.clone())) />
            <p class="buttons">{move || line.with(|line| comparisons(address, line))}</p>
            <details>
                <summary>{move || format!("Show data: {}", runs(count.get()))}</summary>
                <div class="scroll tall" tabindex="0" role="region" aria-label=format!("Runs of {title}")>
                    <table class="numbers times">
                        <thead><tr><th scope="col">"Ran"</th><th scope="col">"Run"</th><th scope="col" class="number" title=STEP_TIME>"Step time, s"</th><th scope="col">"Notes"</th></tr></thead>
                        <tbody>{rows}</tbody>
                    </table>
                </div>
            </details>
        </section>
    }
}

/// Why the newest run has no comparable step time; nothing if it has one.
fn not_judged(line: &TimeLine) -> impl IntoView + use<> {
    line.not_judged.clone().map(|text| view! { <div class="notice warn"><p>{text}</p></div> })
}

/// By how much the newest comparable run is slower, with the first run after the change; nothing if it is not a regression.
fn slower(address: Address, line: &TimeLine) -> impl IntoView + use<> {
    let first = line.first_changed.as_ref();
    let first = first.map(|id| view! { " " <A href=run_href(address, id)>"First run after the change"</A> });
    let class = if line.is_open() { "notice wrong" } else { "notice" };
    line.slower.clone().map(|text| view! { <div class=class><p>{text} {first}</p></div> })
}

/// The newest comparable run judged by each threshold, as a closed list.
fn judged(line: &TimeLine) -> impl IntoView + use<> {
    let items = line.judgements.iter().map(|text| view! { <li>{text.clone()}</li> }).collect_view();
    line.judged.clone().map(|summary| {
        view! { <details class="basis"><summary>{summary}</summary><ul class="plain">{items}</ul></details> }
    })
}

/// Links to comparisons: of the newest two runs, and of the runs before and after the newest change.
fn comparisons(address: Address, line: &TimeLine) -> impl IntoView + use<> {
    let scored: Vec<&TimePoint> = line.points.iter().filter(|point| point.step_time_s.is_some()).collect();
    let compare = |points: &[&TimePoint], label| {
        let ids: Vec<String> = points.iter().map(|point| point.id.clone()).collect();
        view! { <A href=compare_href(address, &ids)>{label}</A> }
    };
    let newest = match scored.as_slice() {
        [] => None,
        [only] if line.points.len() == 1 => Some(compare(&[only], "Compare the only run with its plan")),
        [only] => Some(compare(&[only], "Compare the only scored run with its plan")),
        [.., before, newest] => Some(compare(&[before, newest], "Compare the two newest runs")),
    };
    let change = scored.iter().rposition(|point| point.is_change);
    let around = change.and_then(|place| {
        let pair = [scored.get(place.checked_sub(1)?)?, *scored.last()?];
        Some(compare(&pair, "Compare before and after the change"))
    });
    (newest, around)
}

/// Returns how many runs have no step time to compare; none if all have one, or there is no chart.
fn not_compared(line: &TimeLine) -> Option<String> {
    let missing = line.points.iter().filter(|point| point.step_time_s.is_none()).count();
    let have = if missing == 1 { "run has" } else { "runs have" };
    (missing > 0 && line.points.len() > 1)
        .then(|| format!("{missing} {have} no comparable step time. The data below says why."))
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".into() } else { format!("{count} runs") }
}

/// A row of the table. The first run with a step time can't be a regression: it is only slower than published.
fn row(address: Address, point: TimePoint, is_first: bool) -> impl IntoView {
    let alert = if is_first { "Below the published speed" } else { "Regression" };
    let notes = match (point.is_alert, point.notes.is_empty()) {
        (false, _) => point.notes,
        (true, true) => alert.to_string(),
        (true, false) => format!("{alert}. {}", point.notes),
    };
    view! {
        <tr>
            <th scope="row">{point.at.clone()}</th>
            <td><A href=run_href(address, &point.id)>{point.run}</A></td>
            <td class="number">{point.step_time}</td>
            <td>{notes}</td>
        </tr>
    }
}

fn chart(line: &TimeLine) -> LineChart {
    let span = line.points.first().zip(line.points.last()).map(|(first, last)| last.at_ms - first.at_ms);
    // Runs this close would cover each other, on an axis of fractions of a second.
    let is_numbered = span.is_some_and(|span| span < LEAST_GAP * (line.points.len() - 1) as f64);
    let points = |of: fn(&TimePoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = (1_u32..).zip(&line.points).filter_map(|(number, point)| {
            let x = if is_numbered { f64::from(number) } else { point.at_ms };
            Some((x, of(point)?))
        });
        points.collect()
    };
    let line_of = |name: &str, number, points| ChartLine {
        name: name.into(),
        group: number,
        style: number,
        points,
        is_level: number > 0,
    };
    let runs = line_of("Runs", 0, points(|point| point.step_time_s));
    let usual = line_of("Usual", 1, points(|point| point.usual_s));
    let lines = [runs, usual].into_iter().filter(|line| !line.points.is_empty()).collect();
    let marks = vec![
        ChartMarkers {
            name: "Change",
            symbol: "triangle-up-open",
            is_bad: false,
            has_values: true,
            points: points(|point| point.step_time_s.filter(|_| point.is_change)),
        },
        ChartMarkers {
            name: "Regression",
            symbol: "circle-open",
            is_bad: true,
            has_values: true,
            points: points(|point| point.step_time_s.filter(|_| point.is_alert)),
        },
        ChartMarkers {
            name: "Not compared",
            symbol: "x-open",
            is_bad: false,
            has_values: false,
            points: points(|point| point.step_time_s.is_none().then_some(0.0)),
        },
    ];
    let published =
        line.published_s.map(|value| PlotLevel { name: "Published".into(), value, interval: None });
    LineChart::over_time(lines, marks, published.into_iter().collect(), "Step time, s", is_numbered)
}
