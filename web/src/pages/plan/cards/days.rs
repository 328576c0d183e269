//! The days of a plan, and the chance to meet the deadline.

use crate::message::search::{AskedGoal, Spread};
use crate::pages::plan::amounts::{chance_within, time_text};
use leptos::prelude::*;
use trainplan_shared::question;
use trainplan_shared::units::duration;

/// The range of the days as a bar on the scale of all cards, and the chance to meet the deadline.
#[component]
pub(super) fn Days(
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
    /// Whether the plan must meet the deadline 9 times in 10 at the predicted speed.
    by_slow_end: bool,
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
                {as_measured.map(|_| view! { <span class="of-as-measured">"at the fastest measured speed"</span> })}
            </div>
            {by_script.map(|text| view! { <p class="card-note">{text}</p> })}
            {limit.map(|limit| view! { <small>{in_time(days, with_measured, limit, by_slow_end)} {software.map(|software| format!(" {}", question::as_measured(Some(&software))))}</small> })}
        </div>
    }
}

/// Returns the chance that a plan meets a deadline, at the predicted speed and at that of software that was measured, in words, with the
/// chances that are required. The range of the prediction does not count that the software may perform worse.
fn in_time(days: Spread, with_measured: Option<Spread>, limit: f64, by_slow_end: bool) -> String {
    let required = |often: &str| if by_slow_end { format!(" ({often} required)") } else { String::new() };
    let measured = with_measured.map_or(String::new(), |days| {
        format!(
            " at the predicted speed{}, {} at the measured speed{}: {}",
            required("9"),
            chance_within(days, limit),
            required("5"),
            time_text(days)
        )
    });
    format!("Meets the deadline {}{measured}", chance_within(days, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chance_that_rests_on_unmeasured_software_is_beside_that_with_measured_software() {
        let spread = |mid: f64| Spread { low: mid * 0.9, mid, high: mid * 1.1 };
        let says = |with_measured: Option<Spread>| in_time(spread(49.0), with_measured, 60.0, true);
        assert_eq!(says(None), "Meets the deadline more than 9 times in 10");
        assert_eq!(
            says(Some(spread(59.0))),
            "Meets the deadline more than 9 times in 10 at the predicted speed (9 required), about 6 times in 10 at the measured \
             speed (5 required): 59 days (53–65)"
        );
        assert!(!in_time(spread(49.0), Some(spread(59.0)), 60.0, false).contains("required"));
    }
}
