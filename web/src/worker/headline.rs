//! The sentences of a comparison on a page. Nothing here needs a browser.

use crate::message::Outcome;
use trainplan_shared::compare::{Comparison, LabelledVerdict, RunComparison, RunFigures, Verdict};
use trainplan_shared::field::Field;
use trainplan_shared::log::{Ending, Status};
use trainplan_shared::result::{Publication, sentence, steady_difference};
use trainplan_shared::tables::cells;
use trainplan_shared::units::{readable_range, signed, significant};

/// The most runs of a kind that the headline names.
const MOST_NAMED: usize = 3;

/// Returns the label of a run of a comparison.
pub(super) fn label(comparison: &Comparison, place: usize) -> &str {
    comparison.items.get(place).map_or("", |item| &item.label)
}

/// The least percentages of the published speed at which a run counts as being as fast as published, and as not much slower.
const AS_PUBLISHED: f64 = 97.0;
const NEARLY_AS_PUBLISHED: f64 = 90.0;

/// Returns the verdict, of several runs the worst; for a run alone, whether it was scored, and how near it comes to the published
/// speed.
pub(super) fn outcome(comparison: &Comparison) -> Outcome {
    let verdicts = comparison.verdicts().into_iter().map(|one| one.verdict);
    match (verdicts.max_by_key(|verdict| severity(*verdict)), comparison.items.first()) {
        (Some(verdict), _) => Outcome::Compared(verdict),
        (None, Some(item)) if item.status != Status::Scored => Outcome::Unscored(item.status),
        // It has a step time, but it failed.
        (None, Some(item)) if matches!(item.ending, Some(Ending::Failed | Ending::Hung)) => {
            Outcome::Unscored(Status::Failed)
        }
        (None, item) => item.and_then(speed_percent).map_or(Outcome::Alone, |percent| match percent {
            AS_PUBLISHED.. => Outcome::AsPublished,
            NEARLY_AS_PUBLISHED.. => Outcome::BelowPublished,
            _ => Outcome::FarBelowPublished,
        }),
    }
}

/// Returns the place of a verdict among those on several runs, the worst last.
const fn severity(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Faster => 0,
        Verdict::NoDifference | Verdict::Mixed => 1,
        Verdict::Inconclusive => 2,
        Verdict::Slower => 3,
        Verdict::NotComparable => 4,
    }
}

/// Returns a run's judged speed in percent of the published one; none without a published number.
fn speed_percent(run: &RunFigures) -> Option<f64> {
    run.baseline?.speed_percent
}

/// Returns that the steady mean judges a run, with the scored step time if it differs. Empty if the scored step time judges the
/// run.
fn basis(run: &RunFigures) -> String {
    let Some((judged_s, scored)) = run.judged_s.zip(run.step_time_s) else { return String::new() };
    if judged_s.total_cmp(&scored.mean).is_eq() {
        return String::new();
    }
    let unlike = steady_difference(scored.mean, judged_s)
        .map(|_| format!(": {} s; scored: {} s", significant(judged_s, 4), significant(scored.mean, 4)));
    format!(" (steady mean{})", unlike.unwrap_or_default())
}

/// Returns the result of a comparison in a sentence or two.
pub(super) fn headline(comparison: &Comparison) -> String {
    let reference = comparison.reference_label();
    let between = match comparison.verdicts().as_slice() {
        [] => None,
        [one] => Some(of_pair(reference, one)),
        several => Some(of_several(reference, several)),
    };
    let told = match comparison.items.as_slice() {
        [_, _, _, ..] => slowest(comparison),
        few => few.last(),
    };
    let own = match (told.and_then(achieved), comparison.items.as_slice()) {
        (None, [alone]) => [step_time(alone).or_else(|| why_alone(alone)), as_predicted(alone)],
        (achieved, _) => [achieved, None],
    };
    let mut sentences: Vec<String> = between.into_iter().chain(own.into_iter().flatten()).collect();
    if comparison.verdict == Some(Verdict::Inconclusive) {
        let slow = |run: &RunFigures| run.slow_steps.as_ref().map(|slow| format!("{}: {slow}", run.label));
        sentences.extend(comparison.items.iter().filter_map(slow));
    }
    // The reason of a run alone that was not scored says it already.
    let is_open = |run: &&RunFigures| comparison.items.len() > 1 || run.status == Status::Scored;
    let ended = |run: &RunFigures| run.ended_early.as_ref().map(|how| format!("{} {how}.", run.label));
    sentences.extend(comparison.items.iter().filter(is_open).filter_map(ended));
    sentences.join(" ")
}

/// Returns the run that is slowest relative to its published number, of those that are comparable with the reference.
fn slowest(comparison: &Comparison) -> Option<&RunFigures> {
    let is_unlike =
        |place: usize| comparison.difference.each.iter().any(|one| one.item == place && !one.comparable);
    let comparable = comparison.items.iter().enumerate().filter(|(place, _)| !is_unlike(*place));
    let speeds = comparable.filter_map(|(_, run)| Some((speed_percent(run)?, run)));
    speeds.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, run)| run)
}

/// Returns the speed of a run relative to its published number and its plan; none if it has neither.
fn achieved(run: &RunFigures) -> Option<String> {
    let of_published = speed_percent(run).map(|speed| format!("{speed:.1} % of the published speed"));
    let of_plan = run.plan.and_then(|plan| {
        let speed = cells::of_predicted(Some(plan))?;
        let place = if plan.within? { "within" } else { "outside" };
        Some(format!("{speed} % of the planned speed, {place} the interval"))
    });
    let both: Vec<String> = of_published.into_iter().chain(of_plan).collect();
    (!both.is_empty()).then(|| format!("{} runs at {}{}.", run.label, both.join(" and "), basis(run)))
}

/// Returns the step time of a scored run; none of another run.
fn step_time(run: &RunFigures) -> Option<String> {
    let judged_s = run.judged_s.filter(|_| run.status == Status::Scored)?;
    Some(format!("{} s per step{}.", significant(judged_s, 4), basis(run)))
}

/// Returns how a comparable run that has no published number took compared with its prediction; none without a prediction.
fn as_predicted(run: &RunFigures) -> Option<String> {
    let prediction = run.prediction.filter(|_| run.comparable.yes && run.plan.is_none())?;
    let place = if prediction.within? { "within" } else { "outside" };
    let speed = cells::of_predicted(Some(prediction))?;
    let assumed = run.assumed_software.map(|software| format!(" This assumes {}.", software.title()));
    Some(format!(
        "It runs at {speed} % of the predicted speed, {place} the 80 % range.{}",
        assumed.unwrap_or_default()
    ))
}

/// Returns why a run alone was not scored, or why it has no published number to compare with; none if it is compared with one.
pub(super) fn why_alone(run: &RunFigures) -> Option<String> {
    if achieved(run).is_some() {
        return None;
    }
    if let Some(reason) = &run.reason {
        return Some(sentence(reason));
    }
    Some(match &run.publication {
        Publication::Measured if run.comparable.yes => return None,
        Publication::Measured => "Not comparable with the published number.".to_string(),
        Publication::Unknown | Publication::Custom if !run.comparable.yes => {
            "Not compared with a published number: the log contradicts the recipe.".to_string()
        }
        // The notes below say what is missing.
        Publication::Unknown => "No published number to compare with.".to_string(),
        Publication::Custom => "No measurement is published for this scenario.".to_string(),
        unpublished => return unpublished.note(),
    })
}

/// Returns which of two runs is faster, by how much, and the interval.
fn of_pair(reference: &str, against: &LabelledVerdict<'_>) -> String {
    let (other, change) = (against.label, against.step_time);
    let interval = change.and_then(|change| Some((change.low?, change.high?)));
    match (against.verdict, change, interval) {
        (verdict @ (Verdict::Faster | Verdict::Slower), Some(change), Some((low, high))) => {
            let (word, sign) = if verdict == Verdict::Slower { ("longer", 1.0) } else { ("less", -1.0) };
            let ends = readable_range((low * sign, high * sign), |end| format!("{end:.2}"));
            let percent = change.percent * sign;
            format!("{other} takes {percent:.2} % {word} per step than {reference} ({ends} %).")
        }
        // The reasons are listed below the headline.
        (Verdict::NotComparable, ..) => format!("{other} is not comparable with {reference}."),
        // The text's further sentences are in the headline or among the notes.
        _ => {
            let numbers = against.text.split_once(". ").map_or(against.text, |(numbers, _)| numbers);
            format!("{other} compared with {reference}: {}", sentence_end(numbers))
        }
    }
}

/// Returns how many of several runs, or of their groups, are slower, faster or alike, with the names of the outstanding ones. The
/// table has all of them.
fn of_several(reference: &str, several: &[LabelledVerdict<'_>]) -> String {
    // What one run does, what several do, and how the reference follows.
    const KINDS: [(Verdict, &str, &str, &str); 5] = [
        (Verdict::Slower, "is slower", "are slower", "than"),
        (Verdict::Faster, "is faster", "are faster", "than"),
        (Verdict::NoDifference, "shows no difference", "show no difference", "from"),
        (Verdict::Inconclusive, "is inconclusive", "are inconclusive", "compared with"),
        (Verdict::NotComparable, "is not comparable", "are not comparable", "with"),
    ];
    // Repeats are pooled: their groups are counted.
    let counted = if several.iter().any(|one| one.run.is_none()) { "groups of runs" } else { "runs" };
    let mut sentences: Vec<String> = Vec::new();
    for (kind, one, more, link) in KINDS {
        let of_kind: Vec<&LabelledVerdict<'_>> =
            several.iter().filter(|against| against.verdict == kind).collect();
        let count = of_kind.len();
        if count == 0 {
            continue;
        }
        let names = match kind {
            Verdict::NoDifference => String::new(),
            _ => format!(": {}", named(&of_kind)),
        };
        let does = if count == 1 { one } else { more };
        let (who, does) = match (several.len(), kind) {
            (2, Verdict::NotComparable) if count == 2 => {
                (format!("Neither of the {counted}"), "is comparable")
            }
            (all, Verdict::NotComparable) if count == all => {
                (format!("None of the {all} {counted}"), "is comparable")
            }
            (2, _) if count == 2 => (format!("Both {counted}"), does),
            (all, _) if count == all => (format!("All {all} {counted}"), does),
            (all, _) => (format!("{count} of {all} {counted}"), does),
        };
        // The first sentence says what is counted.
        sentences.push(match sentences.is_empty() {
            true => format!("{who} {does} {link} {reference}{names}."),
            false => format!("{count} {does}{names}."),
        });
        let why = common_reason(&of_kind).filter(|_| kind == Verdict::NotComparable && count > MOST_NAMED);
        sentences.extend(why.map(|why| format!("The reason for each: {}", sentence(why))));
    }
    sentences.join(" ")
}

/// Returns the names of the first runs, with their changes, and how many others there are: `a (+9.4 %), b (+7.3 %) and 2 more`.
fn named(runs: &[&LabelledVerdict<'_>]) -> String {
    let name = |one: &&LabelledVerdict<'_>| {
        let percent = one.step_time.filter(|_| one.verdict != Verdict::NotComparable);
        let percent = percent.map_or(String::new(), |change| format!(" ({} %)", signed(change.percent, 1)));
        format!("{}{percent}", one.label)
    };
    let mut names: Vec<String> = runs.iter().take(MOST_NAMED).map(name).collect();
    let last = match runs.len().checked_sub(MOST_NAMED) {
        None | Some(0) => names.pop().unwrap_or_default(),
        Some(others) => format!("{others} more"),
    };
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

/// Returns the first reason why none of several runs is comparable; none if they have different reasons.
fn common_reason<'a>(runs: &[&LabelledVerdict<'a>]) -> Option<&'a str> {
    fn reasons<'b>(one: &LabelledVerdict<'b>) -> &'b [String] {
        match one.run {
            Some(run) => &run.reasons,
            None => &[],
        }
    }
    let (first, others) = runs.split_first()?;
    let is_common = |reason: &&String| others.iter().all(|other| reasons(other).contains(reason));
    reasons(first).iter().find(is_common).map(String::as_str)
}

/// Returns why runs are not comparable with the reference, a text for each. It names the run if there are several; of a pair, the
/// headline says which is not comparable.
pub(super) fn not_comparable(comparison: &Comparison) -> Vec<String> {
    let each = &comparison.difference.each;
    let of = |against: &RunComparison| {
        let name = match each.len() {
            1 => String::new(),
            _ => format!("{}: ", label(comparison, against.item)),
        };
        let reasons: Vec<String> = against.reasons.iter().map(|reason| sentence(reason)).collect();
        let remedy = match against.unknown_fields().is_empty() {
            true => String::new(),
            false => format!(" Set the recipe under {}.", Field::Recipe.label()),
        };
        format!("{name}{}{remedy}", reasons.join(" "))
    };
    each.iter().filter(|against| !against.comparable).map(of).collect()
}

/// Returns the notes on the comparisons, with the runs' labels; of a scored run alone, why it isn't compared
/// with a published number.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    if let [alone] = comparison.items.as_slice() {
        return why_alone(alone).filter(|_| step_time(alone).is_some()).into_iter().collect();
    }
    let of = |against: &RunComparison| {
        let other = label(comparison, against.item).to_string();
        against.notes.iter().map(move |note| format!("{other}: {note}")).collect::<Vec<_>>()
    };
    comparison.difference.each.iter().flat_map(of).collect()
}

fn sentence_end(text: &str) -> String {
    if text.ends_with('.') { text.to_string() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::compare::ComparisonOptions;
    use trainplan_shared::result::{Intake, RunResult};
    use trainplan_shared::spec::Spec;

    fn run(name: &str, job: u32, ms: u32) -> RunResult {
        let mut intake = Intake::new(format!("log-acct.{name}_{job}_0.out"), &Spec::default());
        for step in 0..50 {
            let time = f64::from(ms + step % 7) / 1000.0;
            let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time} |\n");
            intake.feed(line.as_bytes());
        }
        intake.finish()
    }

    fn compare(runs: &[&RunResult]) -> Comparison {
        Comparison::of(runs, &ComparisonOptions::default())
    }

    const LLAMA: &str = "pretrain_llama3.1_8b_fp8_8";

    #[test]
    fn a_pair_is_compared_in_one_sentence_and_the_last_run_with_its_published_number() {
        let headline = headline(&compare(&[&run(LLAMA, 1, 12_000), &run(LLAMA, 2, 12_600)]));
        assert!(
            headline.starts_with("pretrain_llama3.1_8b_fp8_8 (job 2) takes 5.00 % longer per step"),
            "{headline}"
        );
        // Release 25.04 scores the last step.
        assert!(headline.ends_with("% of the published speed (steady mean)."), "{headline}");
    }

    #[test]
    fn a_run_that_stalls_beside_its_scored_step_is_judged_by_its_steady_mean() {
        let mut intake = Intake::new(format!("log-acct.{LLAMA}_1_0.out"), &Spec::default());
        for step in 0..50 {
            // 5 of the 40 steps from 10 on.
            let time = if step % 8 == 0 { 14.0 } else { 9.0 };
            let line = format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time} |\n");
            intake.feed(line.as_bytes());
        }
        let comparison = compare(&[&intake.finish()]);
        let published_s = comparison.items[0].baseline.expect("a published number").step_time_s;
        let percent = 100.0 * published_s / 9.625;
        assert_eq!(
            headline(&comparison),
            format!(
                "pretrain_llama3.1_8b_fp8_8 (job 1) runs at {percent:.1} % of the published speed (steady mean: 9.625 s; \
                 scored: 9 s)."
            )
        );
        // The scored step alone would be as fast as published.
        assert!(100.0 * published_s / 9.0 > AS_PUBLISHED, "{published_s}");
        assert_eq!(outcome(&comparison), Outcome::BelowPublished);
    }

    #[test]
    fn a_run_alone_is_judged_by_its_published_speed() {
        let outcome = |ms: u32| outcome(&compare(&[&run(LLAMA, 1, ms)]));
        let published =
            speed_percent(&compare(&[&run(LLAMA, 1, 10_000)]).items[0]).expect("a published number");
        let ms_at = |percent: f64| (10_000.0 * published / percent) as u32;
        assert_eq!(outcome(ms_at(99.0)), Outcome::AsPublished);
        assert_eq!(outcome(ms_at(95.0)), Outcome::BelowPublished);
        assert_eq!(outcome(ms_at(75.0)), Outcome::FarBelowPublished);
        assert_eq!(super::outcome(&compare(&[&run("train", 1, 12_000)])), Outcome::Alone);
    }

    #[test]
    fn a_run_alone_without_a_published_number_is_compared_with_its_prediction() {
        let said = Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04").with(Field::Tp, "2");
        let comparison = compare(&[&run(LLAMA, 1, 12_000).identified(&said)]);
        let headline = headline(&comparison);
        assert!(headline.starts_with("12 s per step (steady mean). It runs at "), "{headline}");
        assert!(headline.contains(" % of the predicted speed, "), "{headline}");
        let notes = notes(&comparison);
        assert!(notes[0].starts_with("No measurement is published for llama3.1-8b"), "{notes:?}");
    }

    #[test]
    fn several_runs_have_the_worst_of_their_verdicts() {
        let of = |others: [&RunResult; 2]| compare(&[&run(LLAMA, 1, 12_000), others[0], others[1]]);
        let (faster, alike, slower) = (run(LLAMA, 2, 11_000), run(LLAMA, 3, 12_010), run(LLAMA, 4, 12_600));
        assert_eq!(of([&slower, &faster]).verdict, Some(Verdict::Mixed));
        assert_eq!(outcome(&of([&slower, &faster])), Outcome::Compared(Verdict::Slower));
        assert_eq!(outcome(&of([&alike, &slower])), Outcome::Compared(Verdict::Slower));
        assert_eq!(outcome(&of([&faster, &alike])), Outcome::Compared(Verdict::NoDifference));
        let unlike = run("pretrain_llama3.1_8b_fp8_16", 5, 12_000);
        assert_eq!(outcome(&of([&unlike, &faster])), Outcome::Compared(Verdict::NotComparable));
    }

    #[test]
    fn mappings_with_repeats_are_compared_by_their_pooled_means() {
        let of = |tp: &str, job: u32, ms: u32| {
            let said =
                Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04").with(Field::Tp, tp);
            run(LLAMA, job, ms).identified(&said)
        };
        let runs = [of("1", 1, 12_000), of("1", 2, 12_060), of("2", 3, 13_000), of("2", 4, 13_050)];
        let headline = headline(&compare(&runs.iter().collect::<Vec<_>>()));
        let start = "pretrain_llama3.1_8b_fp8_8 (job 3) + 1 repeat takes 8.";
        assert!(headline.starts_with(start), "{headline}");
        assert!(
            headline.contains(" % longer per step than pretrain_llama3.1_8b_fp8_8 (job 1) + 1 repeat ("),
            "{headline}"
        );
        let more = [&runs[..], &[of("4", 5, 12_010), of("4", 6, 12_070)]].concat();
        let headline = super::headline(&compare(&more.iter().collect::<Vec<_>>()));
        let start = "1 of 2 groups of runs is slower than pretrain_llama3.1_8b_fp8_8 (job 1) + 1 repeat: \
                     pretrain_llama3.1_8b_fp8_8 (job 3) + 1 repeat (";
        assert!(headline.starts_with(start), "{headline}");
    }

    #[test]
    fn runs_of_different_workloads_say_why() {
        let comparison = compare(&[&run(LLAMA, 1, 12_000), &run("pretrain_llama3.1_8b_fp8_16", 2, 12_000)]);
        assert_eq!(outcome(&comparison), Outcome::Compared(Verdict::NotComparable));
        // The headline has their names.
        let why = "Different workload: GBS 256 (reference 128), GPUs 16 (reference 8).";
        assert_eq!(not_comparable(&comparison), [why]);
    }

    #[test]
    fn the_headline_says_why_no_run_is_comparable() {
        let short = |job: u32| {
            let mut intake =
                Intake::new(format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out"), &Spec::default());
            intake.feed(b"Training epoch 0, iteration 0/49 | train_step_timing in s: 12 |\n");
            intake.finish()
        };
        let runs = [run(LLAMA, 1, 12_000), short(2), short(3), short(4), short(5)];
        let headline = headline(&compare(&runs.iter().collect::<Vec<_>>()));
        let said = "None of the 4 runs is comparable with pretrain_llama3.1_8b_fp8_8 (job 1): pretrain_llama3.1_8b_fp8_8 (job 2), \
                    pretrain_llama3.1_8b_fp8_8 (job 3), pretrain_llama3.1_8b_fp8_8 (job 4) and 1 more. The reason for each: It was \
                    not scored.";
        assert!(headline.starts_with(said), "{headline}");
    }

    #[test]
    fn several_runs_are_counted_and_those_that_stand_out_are_named() {
        let of = |times: &[u32]| {
            let runs: Vec<RunResult> = (1..).zip(times).map(|(job, ms)| run(LLAMA, job, *ms)).collect();
            headline(&compare(&runs.iter().collect::<Vec<_>>())).replace(LLAMA, "run")
        };
        let mixed = of(&[12_000, 12_600, 12_010, 11_400, 12_900]);
        let said = "2 of 4 runs are slower than run (job 1): run (job 2) (+5.0 %) and run (job 5) (+7.5 %). 1 is faster: run (job 4) \
                    (−5.0 %). 1 shows no difference.";
        assert!(mixed.starts_with(said), "{mixed}");
        let alike = of(&[12_000, 12_010, 12_010]);
        assert!(alike.starts_with("Both runs show no difference from run (job 1). "), "{alike}");
        let slower = of(&[12_000, 12_600, 12_600, 12_600, 12_600, 12_600]);
        assert!(slower.contains("run (job 3) (+5.0 %), run (job 4) (+5.0 %) and 2 more. "), "{slower}");
    }

    #[test]
    fn an_unknown_run_says_how_to_get_a_published_number() {
        let comparison = compare(&[&run("train", 1, 12_000)]);
        assert_eq!(headline(&comparison), "12 s per step (steady mean).");
        assert_eq!(notes(&comparison), ["No published number to compare with."]);
        let with_known = compare(&[&run(LLAMA, 1, 12_000), &run("train", 2, 12_000)]);
        let why = not_comparable(&with_known);
        assert!(why[0].ends_with("Set the recipe under Recipe.") && !why[0].contains("--"), "{why:?}");
    }
}
