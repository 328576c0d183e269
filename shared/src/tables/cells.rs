//! The figures of runs as people read them, the same on every page.

use super::PageCell;
use crate::catalog::{Catalog, RecipeId};
use crate::convention::Convention;
use crate::estimate::Interval;
use crate::field::Field;
use crate::launch::container_image;
use crate::log::{Ending, Stat, Status};
use crate::range::ValueRange;
use crate::result::{BaselineComparison, PlanComparison, Report, steady_difference};
use crate::stack::Stack;
use crate::units::{
    alike, group_digits, one_decimal, readable, readable_days, readable_range, significant, time_unit,
};

/// What the heading says of [`step_time`].
pub(super) const STEP_TIME: &str = "The mean of the scored steps, with their standard deviation (SD): of the sample, or for NeMo's logs of the population. If fewer than 5 steps are scored, the mean of all steps after the warm-up; below it, the scored step time";

/// Returns the step time in seconds by which a run is judged. Below it is the standard deviation, or the scored step time if it is
/// unlike.
#[must_use]
pub fn step_time(scored: Option<Stat>, judged_s: Option<f64>) -> PageCell {
    let is_judged = |stat: &Stat| judged_s.is_some_and(|judged_s| judged_s.total_cmp(&stat.mean).is_eq());
    let std = scored.filter(|stat| stat.n > 1 && is_judged(stat)).and_then(|stat| stat.std);
    let std = std.map(|std| format!("SD {}", significant(std, 2)));
    PageCell::new(judged_s.map(seconds), std.or_else(|| scored_beside(scored, judged_s)))
}

/// Returns the scored step time, to show beside the one that judges the run: `scored 14.199`. None if they round to the same
/// text.
pub(super) fn scored_beside(scored: Option<Stat>, judged_s: Option<f64>) -> Option<String> {
    let scored = seconds(scored?.mean);
    (scored != seconds(judged_s?)).then(|| format!("scored {scored}"))
}

/// Returns whether the scored step time differs from the one by which the run is judged, so that figures which follow from it are
/// marked.
fn is_unlike(scored: Option<Stat>, judged_s: Option<f64>) -> bool {
    let times = scored.zip(judged_s);
    times.is_some_and(|(scored, judged_s)| steady_difference(scored.mean, judged_s).is_some())
}

/// Marks a figure that follows from the scored step time, if the run is judged by a different one.
pub(super) fn of_scored(mut cell: PageCell, scored: Option<Stat>, judged_s: Option<f64>) -> PageCell {
    if !cell.text.is_empty() && is_unlike(scored, judged_s) {
        cell.detail += if cell.detail.is_empty() { "scored" } else { ", scored" };
    }
    cell
}

/// Marks such a figure for a terminal: `41.2 scored`.
pub(super) fn of_scored_text(
    text: Option<String>,
    scored: Option<Stat>,
    judged_s: Option<f64>,
) -> Option<String> {
    if is_unlike(scored, judged_s) { text.map(|text| text + " scored") } else { text }
}

/// Returns the MFU in percent, and below it the convention and the peak that it uses.
#[must_use]
pub fn mfu(mfu: Option<f64>, convention: Option<Convention>, peak_tflops: Option<f64>) -> PageCell {
    let peak = peak_tflops.map_or(String::new(), |peak| format!(", peak {} TFLOPS", group_digits(peak)));
    let counting = convention.filter(|_| mfu.is_some()).map(|convention| format!("{convention}{peak}"));
    PageCell::new(mfu.map(|mfu| readable(mfu * 100.0)), counting)
}

/// The label of a figure from the log itself, used where too little is known to compute the figure.
const AS_LOGGED: &str = "as logged";

/// Returns the cell of a computed figure, or else that of the log.
pub(super) fn or_logged(computed: PageCell, logged: Option<String>) -> PageCell {
    if logged.is_some() && computed.text.is_empty() {
        PageCell::new(logged, Some(AS_LOGGED.to_owned()))
    } else {
        computed
    }
}

/// Returns a computed figure, or else that of the log, for a terminal.
pub(super) fn or_logged_text(computed: Option<String>, logged: Option<String>) -> Option<String> {
    computed.or_else(|| Some(format!("{} {AS_LOGGED}", logged?)))
}

/// Returns the tokens per second that a log reports per GPU: `6,144 per GPU`.
pub(super) fn per_gpu(tokens: f64) -> String {
    format!("{} per GPU", group_digits(tokens))
}

/// Returns the recipe that a run matches, or the one that its settings differ from.
pub(super) fn recipe_of(report: &Report) -> PageCell {
    let set = report.scenario.get(Field::Recipe).filter(|_| report.recipe.is_none());
    let detail = set.map(|_| "with other settings".to_owned());
    PageCell::new(report.recipe.clone().or_else(|| set.map(str::to_owned)), detail)
}

/// Returns a recipe with the container image of its release: `llama3.1-8b/h100/fp8/8@25.04 (nemo:25.02.01)`.
#[must_use]
pub fn recipe(recipe: &RecipeId) -> String {
    container_image(recipe).map_or_else(|| recipe.to_string(), |image| format!("{recipe} ({image})"))
}

/// What readers of the columns below should know: published and predicted times are compared by the speed.
pub(super) const OF_PUBLISHED: &str = "Speed as a percentage of the published speed; below 100 is slower";
pub(super) const OF_PREDICTED: &str = "Speed as a percentage of the predicted speed; below 100 is slower";
pub(super) const RAN: &str = "When the run began, according to Slurm or to the first timestamp in its log; without either, when the file was last written";

/// Returns the speed in percent of the published one, by the step time by which the run is judged.
#[must_use]
pub fn of_published(baseline: Option<BaselineComparison>) -> Option<String> {
    Some(format!("{:.1}", baseline?.speed_percent?))
}

/// Returns the speed in percent of the predicted one, by the step time by which the run is judged.
#[must_use]
pub fn of_predicted(predicted: Option<PlanComparison>) -> Option<String> {
    Some(format!("{:.1}", predicted?.speed_percent?))
}

/// Returns the predicted step time, and below it its interval and the run's speed in percent of it. `software` is a clause on the
/// software that the prediction is for: `assuming Megatron-LM 0.14`.
#[must_use]
pub fn planned(plan: Option<PlanComparison>, software: Option<String>) -> PageCell {
    let Some(Interval { low, mid, high }) = plan.map(|plan| plan.step_time_s) else {
        return PageCell::default();
    };
    let write = |seconds| significant(seconds, 4);
    let speed = match of_predicted(plan) {
        Some(percent) => format!("{percent} % of it"),
        None => "not scored".into(),
    };
    let details: Vec<String> =
        [readable_range((low, high), write), speed].into_iter().chain(software).collect();
    PageCell::new(Some(write(mid)), Some(details.join(", ")))
}

/// Returns a status on a terminal: its id, or in words that the run was scored and then ended early.
pub(super) fn status(status: Status, ending: Option<Ending>) -> String {
    match ending.filter(|_| status == Status::Scored) {
        Some(ending) => ending.status_title().to_owned(),
        None => status.id().to_owned(),
    }
}

/// Returns the software that a prediction assumes, as a clause.
pub(super) fn assuming(software: Option<Stack>) -> Option<String> {
    software.map(|software| format!("assuming {}", software.title()))
}

/// Returns the recipe of a run, or else its model.
pub(super) fn recipe_or_model(recipe: Option<&str>, model: Option<&str>) -> Option<String> {
    recipe.map(str::to_owned).or_else(|| model.map(|model| Catalog::embedded().model_label(model)))
}

/// Returns an amount of money with three significant digits: `4.12M USD`, `980k USD`.
#[must_use]
pub fn money(amount: f64, currency: &str) -> String {
    let unit = MoneyUnit::of(amount);
    format!("{}{} {currency}", unit.digits(amount), unit.suffix)
}

/// Returns an expected amount of money with its range: `4.12M USD (3.60–4.90)`.
#[must_use]
pub fn money_range(expected: f64, range: ValueRange, currency: &str) -> String {
    let unit = MoneyUnit::of(expected);
    let end = |amount: f64| if amount.is_finite() { unit.digits(amount) } else { "∞".to_string() };
    let (low, high) = (end(range.low), end(range.high));
    if low == high {
        money(expected, currency)
    } else {
        format!("{} ({low}–{high})", money(expected, currency))
    }
}

/// The unit in which a person reads an amount of money.
struct MoneyUnit {
    factor: f64,
    suffix: &'static str,
}

impl MoneyUnit {
    const fn of(amount: f64) -> MoneyUnit {
        match amount {
            1e9.. => MoneyUnit { factor: 1e9, suffix: "B" },
            1e6.. => MoneyUnit { factor: 1e6, suffix: "M" },
            1e4.. => MoneyUnit { factor: 1e3, suffix: "k" },
            _ => MoneyUnit { factor: 1.0, suffix: "" },
        }
    }

    fn digits(&self, amount: f64) -> String {
        readable(amount / self.factor)
    }
}

/// Returns an expected number of days with its range and the unit that suits it: `41 (36–47) days`, `28 (23–33) minutes`.
#[must_use]
pub fn time(expected: f64, range: ValueRange) -> String {
    let (unit, of_day) = time_unit(expected);
    let expected = readable_days(expected * of_day);
    match range.times(of_day).readable(readable_days) {
        same if same == expected => format!("{same} {unit}"),
        range => format!("{expected} ({range}) {unit}"),
    }
}

/// Returns [`time`] below a heading that says days: `41 (36–47)`, `28 (23–33) minutes`.
#[must_use]
pub fn days(expected: f64, range: ValueRange) -> String {
    let text = time(expected, range);
    match text.strip_suffix(" days") {
        Some(days) => days.to_owned(),
        None => text,
    }
}

/// Returns bytes in GiB.
#[must_use]
pub fn gib(bytes: f64) -> String {
    one_decimal(bytes / f64::from(1 << 30))
}

/// The significant digits of measured seconds.
const MEASURED_DIGITS: usize = 5;

/// Returns measured seconds.
pub(super) fn seconds(seconds: f64) -> String {
    significant(seconds, MEASURED_DIGITS)
}

/// Returns a fraction in percent.
pub(super) fn percent(fraction: f64) -> String {
    format!("{:.2}", fraction * 100.0)
}

/// Returns predicted seconds with their interval: `9.41 (9.02–9.8)`.
pub(super) fn interval(Interval { low, mid, high }: Interval) -> String {
    let write = |seconds| significant(seconds, 4);
    format!("{} ({})", write(mid), readable_range((low, high), write))
}

/// Returns a range of measured seconds: `12.359–12.380`.
pub(super) fn seconds_range(low: f64, high: f64) -> String {
    let [high, low] = alike([high, low], MEASURED_DIGITS);
    format!("{low}–{high}")
}

/// Returns a mean of measured seconds, and its interval: `12.370` and `12.359–12.381`.
pub(super) fn mean_and_interval(mean: f64, low: f64, high: f64) -> (String, String) {
    let [mean, low, high] = alike([mean, low, high], MEASURED_DIGITS);
    (mean, format!("{low}–{high}"))
}

/// Returns how an MFU is counted, on a terminal.
pub(super) fn counting(convention: Option<Convention>, peak_tflops: Option<f64>) -> Option<String> {
    convention.zip(peak_tflops).map(|(convention, peak)| format!("{convention}, peak {peak}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_have_a_unit_of_their_own() {
        let short = (0.0197, ValueRange { low: 0.0163, high: 0.0231 });
        let long = (41.0, ValueRange { low: 36.0, high: 47.0 });
        assert_eq!(
            [short, long].map(|(days, range)| time(days, range)),
            ["28 (23–33) minutes", "41 (36–47) days"]
        );
        assert_eq!([short, long].map(|(of, range)| days(of, range)), ["28 (23–33) minutes", "41 (36–47)"]);
        assert_eq!(time(12.0, ValueRange { low: 12.0, high: 12.0 }), "12 days");
    }
}
