//! The measurements behind the estimate.

use super::Plan;
use super::estimate::EstimateFrame;
use super::step_time::StepTimeSource;
use crate::message::EvidenceRun;
use leptos::prelude::*;
use trainplan_shared::estimate::MeasuredRun;
use trainplan_shared::range::ValueRange;
use trainplan_shared::units::{group_three_digits, percent, signed_percent, significant};

/// The measurements behind the estimate.
#[component]
pub(super) fn EvidencePanel() -> impl IntoView {
    let plan = Plan::of_page();
    let is_predicted = move || {
        let source = plan.step.with(|step| step.as_ref().map(|step| step.source));
        matches!(source, Some(StepTimeSource::Predicted { .. }))
    };
    view! {
        <EstimateFrame title="Evidence">
            // The sentence above the tabs says it of a predicted step time.
            <Show when=move || !is_predicted()>
                <p>{move || plan.prediction().basis}</p>
            </Show>
            <EvidenceTable />
        </EstimateFrame>
    }
}

/// The table of the measured runs behind the estimate.
#[component]
fn EvidenceTable() -> impl IntoView {
    let plan = Plan::of_page();
    /// The rows that are shown at first, nearest first.
    const FIRST: usize = 8;
    let runs = move || grouped(plan.prediction().evidence);
    let is_whole = RwSignal::new(false);
    let shown = move || if is_whole.get() { usize::MAX } else { FIRST };
    let is_cut = move || runs().len() > shown();
    view! {
        <Show when=move || !runs().is_empty()>
            <div class="scroll" tabindex="0" role="region" aria-labelledby="evidence-title">
                <table class="cards evidence">
                    <caption id="evidence-title">"Nearest measured runs"</caption>
                    <thead>
                        <tr>
                            <th scope="col">"Run and layout"</th>
                            <th scope="col" class="number">"Measured"</th>
                            <th scope="col" class="number">"Predicted without it"</th>
                            <th scope="col">"Similarity"</th>
                        </tr>
                    </thead>
                    <tbody>{move || runs().into_iter().take(shown()).filter_map(evidence_row).collect_view()}</tbody>
                </table>
            </div>
            <Show when=is_cut>
                <button type="button" class="link" on:click=move |_| is_whole.set(true)>
                    {move || format!("Show all {} rows", runs().len())}
                </button>
            </Show>
            <p class="basis">
                "Runs that differ only in their layouts share a row. "
                "Predicted without it: the step time that is predicted with every measurement of that run left out, and its error. "
                "A dash means that the run was not used to test predictions."
            </p>
        </Show>
    }
}

/// Returns the runs in groups that differ only in their layouts, each in the order of the runs.
fn grouped(runs: Vec<EvidenceRun>) -> Vec<Vec<EvidenceRun>> {
    let mut groups: Vec<Vec<EvidenceRun>> = Vec::new();
    for run in runs {
        let is_its = |group: &&mut Vec<EvidenceRun>| {
            let of = &group[0];
            of.what == run.what && of.closeness == run.closeness && releases(of) == releases(&run)
        };
        match groups.iter_mut().find(is_its) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

/// Returns the releases that measured a run, each once.
fn releases(run: &EvidenceRun) -> Vec<&str> {
    let mut releases: Vec<&str> = run.runs.iter().map(|one| &*one.release).collect();
    releases.dedup();
    releases
}

/// The row of measured runs that differ only in their layouts, nearest first.
fn evidence_row(group: Vec<EvidenceRun>) -> Option<impl IntoView> {
    let [times, tokens] = measured(&group)?;
    let [without, error] = predicted_without(&group).unwrap_or_else(|| ["–".to_string(), String::new()]);
    let likeness = ValueRange::around(group.iter().map(|run| run.likeness))?;
    let (least, most) = (percent(likeness.low), percent(likeness.high));
    let similarity = if least == most { most } else { format!("{least} to {most}") };
    let mut runs = group.into_iter();
    let nearest = runs.next()?;
    let other_layouts: Vec<EvidenceRun> = runs.collect();
    let others = (!other_layouts.is_empty()).then(|| {
        let title = match other_layouts.len() {
            1 => "1 more layout".to_string(),
            count => format!("{count} more layouts"),
        };
        let line =
            |other: EvidenceRun| view! { <li>{other.layout} ": " {linked(other.runs, step_time)}</li> };
        view! {
            <details>
                <summary>{title}</summary>
                <ul class="plain">{other_layouts.into_iter().map(line).collect_view()}</ul>
            </details>
        }
    });
    let source: fn(&MeasuredRun) -> String = match nearest.runs.len() {
        1 => |run: &MeasuredRun| run.release.clone(),
        _ => |run: &MeasuredRun| format!("{}: {}", run.release, step_time(run)),
    };
    Some(view! {
        <tr>
            <th scope="row">
                {nearest.what} " " <small>{nearest.layout}</small> " "
                <small>"Measured by " {linked(nearest.runs, source)}</small> {others}
            </th>
            <td data-label="Measured" class="number">{times} " " <small>{tokens}</small></td>
            <td data-label="Predicted without it" class="number">{without} " " <small>{error}</small></td>
            <td data-label="Similarity">{similarity} " · " <small>{nearest.closeness.title()}</small></td>
        </tr>
    })
}

/// Returns a text for each run, as a link to its source if its address is known.
fn linked(runs: Vec<MeasuredRun>, text: fn(&MeasuredRun) -> String) -> impl IntoView {
    let links = runs.into_iter().enumerate().map(|(place, run)| {
        let comma = (place > 0).then_some(", ");
        let text = text(&run);
        let link = match run.url {
            Some(url) => view! { <a href=url rel="external noopener noreferrer">{text}</a> }.into_any(),
            None => text.into_any(),
        };
        view! { {comma} {link} }
    });
    links.collect_view()
}

/// Returns the step time of a run for people.
fn step_time(run: &MeasuredRun) -> String {
    step_times(ValueRange::of(run.step_time_s))
}

/// Returns step times for people, with four digits, so that readers find the number in the source.
fn step_times(range: ValueRange) -> String {
    format!("{}\u{a0}s", range.readable(|seconds| significant(seconds, 4)))
}

/// Returns the step times of measured runs, and their tokens per second of each GPU; none without measurements.
fn measured(runs: &[EvidenceRun]) -> Option<[String; 2]> {
    let all = || runs.iter().flat_map(|run| &run.runs);
    let times = ValueRange::around(all().map(|run| run.step_time_s))?;
    let tokens = ValueRange::around(all().map(|run| run.tokens_per_s_per_gpu))?;
    Some([step_times(times), format!("{} tokens/s per GPU", tokens.readable(group_three_digits))])
}

/// Returns the step times that were predicted without the runs themselves, and their errors; none if no prediction was judged on
/// the runs.
fn predicted_without(runs: &[EvidenceRun]) -> Option<[String; 2]> {
    let judged = || {
        let all = runs.iter().flat_map(|run| &run.runs);
        all.filter_map(|run| Some((run.step_time_s, run.held_out_error?)))
    };
    let times = ValueRange::around(judged().map(|(measured_s, error)| measured_s * (1.0 + error)))?;
    let errors = ValueRange::around(judged().map(|(_, error)| error))?;
    let (low, high) = (signed_percent(errors.low), signed_percent(errors.high));
    Some([step_times(times), if low == high { low } else { format!("{low} to {high}") }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::estimate::Closeness;

    fn evidence(what: &str, layout: &str, measured: &[(&str, f64, Option<f64>)]) -> EvidenceRun {
        let run = |(release, step_time_s, held_out_error): &(&str, f64, Option<f64>)| MeasuredRun {
            release: (*release).into(),
            step_time_s: *step_time_s,
            tokens_per_s_per_gpu: 40_960.0 / step_time_s,
            url: None,
            held_out_error: *held_out_error,
        };
        EvidenceRun {
            what: what.into(),
            layout: layout.into(),
            runs: measured.iter().map(run).collect(),
            closeness: Closeness::Distant,
            likeness: 0.04,
        }
    }

    #[test]
    fn measured_step_times_are_shown_beside_the_predictions_without_them() {
        let one = |error| [evidence("405B", "TP 4", &[("DGX Cloud 25.04", 12.374, error)])];
        assert_eq!(measured(&one(None)).unwrap(), ["12.37\u{a0}s", "3,310 tokens/s per GPU"]);
        assert_eq!(predicted_without(&one(None)), None);
        assert_eq!(predicted_without(&one(Some(0.0311))).unwrap(), ["12.76\u{a0}s", "+3.1 %"]);
        let several = [
            evidence("405B", "TP 4", &[("MLPerf 5.0", 10.0, Some(0.02)), ("MLPerf 5.1", 8.0, None)]),
            evidence("405B", "TP 8", &[("MLPerf 5.0", 12.5, Some(-0.02))]),
        ];
        assert_eq!(measured(&several).unwrap(), ["8–12.5\u{a0}s", "3,280–5,120 tokens/s per GPU"]);
        assert_eq!(predicted_without(&several).unwrap(), ["10.2–12.25\u{a0}s", "−2.0 % to +2.0 %"]);
    }

    #[test]
    fn runs_that_differ_only_in_their_layouts_share_a_row() {
        let once = [("MLPerf 5.0", 10.0, None)];
        let twice = [("MLPerf 5.0", 10.0, None), ("MLPerf 5.0", 11.0, None)];
        let groups = grouped(vec![
            evidence("405B on 512 B200", "TP 4", &once),
            evidence("70B on 64 B200", "TP 2", &once),
            evidence("405B on 512 B200", "TP 8", &twice),
            evidence("405B on 512 B200", "TP 1", &[("MLPerf 5.1", 10.0, None)]),
        ]);
        let layouts = |group: &Vec<EvidenceRun>| -> Vec<String> {
            group.iter().map(|run| run.layout.clone()).collect()
        };
        let layouts: Vec<Vec<String>> = groups.iter().map(layouts).collect();
        assert_eq!(layouts, [vec!["TP 4", "TP 8"], vec!["TP 2"], vec!["TP 1"]]);
    }
}
