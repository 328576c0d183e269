use super::*;
use proptest::prelude::*;

fn key() -> TimeLineKey {
    TimeLineKey { recipe: Some("r".into()), cluster: Some("alpha".into()), ..TimeLineKey::default() }
}

fn point(place: usize, step_time_s: f64) -> TimeLinePoint {
    TimeLinePoint {
        id: format!("run {place}"),
        at: format!("2026-01-01T{:02}:{:02}:00Z", place / 60, place % 60),
        step_time_s: Some(step_time_s),
        n: 50,
        comparable: true,
        ..TimeLinePoint::default()
    }
}

fn line(times: &[f64]) -> TimeLine {
    let points = times.iter().enumerate().map(|(place, time)| point(place, *time)).collect();
    TimeLine::of(key(), points, &Thresholds::default())
}

/// Times around `mean` by up to `percent`, always the same.
fn around(mean: f64, percent: f64, n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
    };
    // Twelve uniform numbers make a normal one.
    (0..n).map(|_| mean * (1.0 + percent / 100.0 * (0..12).map(|_| uniform()).sum::<f64>())).collect()
}

fn outcome(line: &TimeLine, kind: ThresholdKind) -> CheckOutcome {
    line.checks.iter().find(|check| check.kind == kind).map_or(CheckOutcome::NotJudged, |check| check.outcome)
}

#[test]
fn a_change_is_found_at_its_place() {
    let times = [around(10.0, 0.5, 20, 1), around(10.6, 0.5, 12, 2)].concat();
    let line = line(&times);
    let [change] = &line.change_points[..] else { panic!("{:?}", line.change_points) };
    assert_eq!((change.index, change.point.as_str()), (20, "run 20"));
    assert!((change.percent - 6.0).abs() < 0.5 && change.p < 1e-6, "{change:?}");
    assert_eq!(outcome(&line, ThresholdKind::Change), CheckOutcome::Fine, "it is more than ten runs ago");
    let fresh = super::TimeLine::of(key(), line.points[..28].to_vec(), &Thresholds::default());
    assert_eq!(outcome(&fresh, ThresholdKind::Change), CheckOutcome::Regression);
    let alert = fresh.alerts.iter().find(|alert| alert.kind == ThresholdKind::Change).unwrap();
    assert!(
        alert.text.starts_with("step times changed by +5.7 % on 2026-01-01 00:20 UTC, from "),
        "{}",
        alert.text
    );
}

#[test]
fn a_fast_run_after_a_change_ends_the_regression() {
    let line = line(&[&[10.0; 20][..], &[10.6; 8], &[10.01]].concat());
    let text = "step times changed by +5.3 % on 2026-01-01 00:20 UTC, from 10 s to 10.53 s; a later run took 10.01 s, \
                as before the change";
    let check = line.checks.iter().find(|check| check.kind == ThresholdKind::Change).unwrap();
    assert_eq!((check.outcome, check.text.as_str()), (CheckOutcome::Fine, text));
}

#[test]
fn a_run_at_a_limit_is_fine_and_one_above_it_is_a_regression() {
    use ThresholdKind::{Baseline, Previous, Sigma};
    let published = |seconds: f64| {
        let point = TimeLinePoint { baseline_step_time_s: Some(9.5), ..point(0, seconds) };
        TimeLine::of(key(), vec![point], &Thresholds::default())
    };
    let after_ten = |seconds: f64| line(&[&[10.0; 10][..], &[seconds]].concat());
    for (kind, at, above) in [
        // 95 % of the published speed; 5 % and 1 % above the median.
        (Baseline, published(10.0), published(10.01)),
        (Previous, after_ten(10.5), after_ten(10.51)),
        (Sigma, after_ten(10.1), after_ten(10.11)),
    ] {
        let check = |line: &TimeLine| line.checks.iter().find(|check| check.kind == kind).cloned().unwrap();
        let (at, above) = (check(&at), check(&above));
        assert_eq!(at.measured_s, at.limit_s, "{kind:?}");
        assert_eq!((at.outcome, above.outcome), (CheckOutcome::Fine, CheckOutcome::Regression), "{kind:?}");
        if kind == Baseline {
            assert!(at.text.ends_with("95.0 % of the published speed, at or above 95 %"), "{}", at.text);
            assert!(above.text.ends_with("94.9 % of the published speed, below 95 %"), "{}", above.text);
        }
    }
}

#[test]
fn up_and_down_are_two_changes() {
    let times = [around(10.0, 0.5, 15, 1), around(11.0, 0.5, 8, 2), around(10.0, 0.5, 15, 3)].concat();
    let line = line(&times);
    let places: Vec<usize> = line.change_points.iter().map(|change| change.index).collect();
    assert_eq!(places, [15, 23]);
    assert!(line.change_points[0].percent > 0.0 && line.change_points[1].percent < 0.0);
}

#[test]
fn noise_and_single_outliers_are_not_changes() {
    let found = (0..300).filter(|seed| !line(&around(10.0, 2.0, 40, *seed)).change_points.is_empty()).count();
    assert!(found <= 9, "{found} of 300");
    let mut times = around(10.0, 0.5, 30, 1);
    times[12] = 15.0;
    assert!(line(&times).change_points.is_empty());
    assert!(line(&[10.0; 30]).change_points.is_empty());
}

#[test]
fn changes_without_noise_are_found() {
    let times = [[10.0; 5], [10.5; 5]].concat();
    assert_eq!(line(&times).change_points.len(), 1);
    // A tenth of a percent does not matter, however sure it is.
    assert_eq!(line(&[[10.0; 5], [10.01; 5]].concat()).change_points, []);
}

#[test]
fn the_newest_run_is_judged_by_each_threshold() {
    let mut times = around(10.0, 0.3, 12, 1);
    times.push(10.2);
    let slow = line(&times);
    assert_eq!(outcome(&slow, ThresholdKind::Baseline), CheckOutcome::NotJudged);
    assert_eq!(outcome(&slow, ThresholdKind::Previous), CheckOutcome::Fine);
    assert_eq!(outcome(&slow, ThresholdKind::Sigma), CheckOutcome::Regression);
    times[12] = 10.6;
    let slower = line(&times);
    assert_eq!(outcome(&slower, ThresholdKind::Previous), CheckOutcome::Regression);
    let alert = &slower.alerts[0];
    assert_eq!((alert.kind, alert.point.as_str()), (ThresholdKind::Previous, "run 12"));
    assert!((alert.limit_s - 1.05 * alert.expected_s).abs() < 1e-12);

    let few = line(&[10.0, 10.0, 20.0]);
    assert!(!few.is_judged() && few.alerts.is_empty());
    assert_eq!(few.checks[1].text, "only 2 previous runs; 5 are needed");
}

#[test]
fn the_spread_of_the_previous_runs_is_in_words() {
    let line = line(&[9.9, 10.0, 10.0, 10.1, 10.2, 10.05]);
    let check = line.checks.iter().find(|check| check.kind == ThresholdKind::Sigma).unwrap();
    // The median of the distances from 10 s is 0.1 s.
    let text = "10.05 s; the median of the last 5 runs is 10 s (typical spread 0.15 s), so the limit is 10.44 s (3 times this \
                spread above the median, at least 1 %)";
    assert_eq!((check.outcome, check.text.as_str()), (CheckOutcome::Fine, text));
}

#[test]
fn the_published_speed_needs_no_history() {
    let judged = |time: f64| {
        let point = TimeLinePoint { baseline_step_time_s: Some(9.5), ..point(0, time) };
        TimeLine::of(key(), vec![point], &Thresholds::default())
    };
    // 9.5 of 10 s is 95 % to the last bit.
    assert_eq!(outcome(&judged(9.5 * 100.0 / 95.0), ThresholdKind::Baseline), CheckOutcome::Fine);
    let slow = judged(10.1);
    assert_eq!(slow.alerts.len(), 1);
    assert_eq!(slow.alerts[0].text, "10.1 s is 94.1 % of the published speed, below 95 %");
    // More than the published speed isn't a regression, but may be other work.
    for (time, has_remark) in [(9.5 / 1.09, false), (9.5 / 1.22, true)] {
        let fast = &judged(time).checks[0];
        assert_eq!(fast.outcome, CheckOutcome::Fine);
        assert_eq!(fast.text.contains("; this is more than a healthy cluster explains: check"), has_remark);
    }
}

#[test]
fn a_newest_run_without_a_step_time_is_reported_as_not_judged() {
    let mut points: Vec<TimeLinePoint> = (0..9).map(|place| point(place, 10.0)).collect();
    points.push(TimeLinePoint { step_time_s: None, ..point(9, 0.0) });
    let line = TimeLine::of(key(), points.clone(), &Thresholds::default());
    assert!(!line.is_judged());
    assert_eq!(line.checks[0].text, "the newest run was not scored");
    points[9].reason = Some("The loss is NaN at step 3.".into());
    let line = TimeLine::of(key(), points.clone(), &Thresholds::default());
    assert_eq!(line.checks[0].text, "the newest run was not scored. The loss is NaN at step 3.");
    points[9] = TimeLinePoint { comparable: false, ..point(9, 99.0) };
    let line = TimeLine::of(key(), points, &Thresholds::default());
    assert!(!line.is_judged() && line.checks[0].text.contains("is not comparable with others"));
}

#[test]
fn a_regression_stands_until_a_later_run_is_comparable_and_within_the_limits() {
    let mut points: Vec<TimeLinePoint> = (0..9).map(|place| point(place, 10.0)).collect();
    points.push(point(9, 11.0));
    let line = |points: &[TimeLinePoint]| TimeLine::of(key(), points.to_vec(), &Thresholds::default());
    let slow = line(&points);
    assert_eq!((slow.regressions(), &slow.last_comparable), (&slow.alerts[..], &None));
    assert!(!slow.alerts.is_empty());

    points.push(TimeLinePoint { step_time_s: None, ..point(10, 0.0) });
    points.push(TimeLinePoint { comparable: false, ..point(11, 10.0) });
    let later = line(&points);
    assert!(later.alerts.is_empty() && !later.is_judged());
    assert_eq!(later.regressions(), &slow.alerts[..]);
    assert_eq!(later.standing_checks(), &slow.checks[..]);

    points.push(point(12, 10.0));
    let over = line(&points);
    assert!(over.is_judged() && over.regressions().is_empty());

    let never = line(&[TimeLinePoint { step_time_s: None, ..point(0, 0.0) }]);
    assert!(never.last_comparable.is_none() && never.regressions().is_empty());
}

#[test]
fn runs_of_the_same_time_are_in_the_order_of_their_jobs_and_names() {
    let run = |id: &str, at: &str, job: Option<u64>, name: &str| TimeLinePoint {
        id: id.into(),
        at: at.into(),
        job,
        name: name.into(),
        ..point(0, 10.0)
    };
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let points = vec![
        run("a", late, Some(1), "x"),
        run("b", early, Some(1000), "x"),
        run("c", early, Some(999), "y"),
        run("d", early, Some(999), "x"),
    ];
    let line = TimeLine::of(key(), points, &Thresholds::default());
    let ids: Vec<&str> = line.points.iter().map(|point| point.id.as_str()).collect();
    assert_eq!(ids, ["d", "c", "b", "a"]);
}

#[test]
fn runs_with_different_keys_are_in_different_time_lines() {
    let other = TimeLineKey { cluster: Some("beta".into()), ..key() };
    let unknown = TimeLineKey { model: Some("m".into()), ..TimeLineKey::default() };
    let points = [
        (other.clone(), point(0, 1.0)),
        (key(), point(1, 1.0)),
        (other, point(2, 1.0)),
        (unknown, point(3, 1.0)),
    ];
    let lines = time_lines(points, &Thresholds::default());
    let told: Vec<(&str, usize)> =
        lines.iter().map(|line| (line.label.as_str(), line.points.len())).collect();
    assert_eq!(told, [("r on alpha", 1), ("r on beta", 2)]);
}

#[test]
fn thresholds_are_parsed_from_texts() {
    let texts = [("baseline-percent", "off"), ("previous", "20"), ("sigma", " 2.5 "), ("change", "off")];
    let thresholds = Thresholds::parse(texts).unwrap();
    assert_eq!((thresholds.baseline_percent, thresholds.sigma, thresholds.previous), (None, Some(2.5), 20));
    assert!(!thresholds.change);
    for (name, text) in
        [("sigma", "0"), ("sigma", "x"), ("previous", "1.5"), ("minimum", "0"), ("change", "yes")]
    {
        let error = Thresholds::parse([(name, text)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: '{text}' is invalid; use ")), "{error}");
    }
    let unknown = Thresholds::parse([("speed", "1")]).unwrap_err().to_string();
    assert!(
        unknown.contains("unknown threshold 'speed'") && unknown.contains("baseline-percent"),
        "{unknown}"
    );
    let shown = Thresholds::default().to_string();
    let pairs = shown.split(", ").map(|pair| pair.split_once(' ').unwrap());
    assert_eq!(Thresholds::parse(pairs).unwrap(), Thresholds::default());
}

proptest! {
    #[test]
    fn any_history_is_judged_and_its_order_does_not_matter(
        times in prop::collection::vec(prop_oneof![9 => 0.1..100.0_f64, 1 => prop::num::f64::ANY], 0..60),
        turn in 0..60_usize,
    ) {
        let points: Vec<TimeLinePoint> = times.iter().enumerate().map(|(place, time)| point(place, *time)).collect();
        let one = TimeLine::of(key(), points.clone(), &Thresholds::default());
        let mut turned = points;
        turned.reverse();
        if !turned.is_empty() {
            let turn = turn % turned.len();
            turned.rotate_left(turn);
        }
        // A run that is reported twice is one run.
        turned.extend(turned.first().cloned());
        let other = TimeLine::of(key(), turned, &Thresholds::default());
        prop_assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&other).unwrap());
        prop_assert!(one.change_points.is_sorted_by(|one, next| one.index + LEAST_APART <= next.index));
        prop_assert!(one.alerts.len() <= one.checks.len());
    }

    #[test]
    fn the_unit_of_time_does_not_matter(times in prop::collection::vec(1.0..2.0_f64, 6..40)) {
        let places = |factor: f64| -> Vec<usize> {
            let times: Vec<f64> = times.iter().map(|time| time * factor).collect();
            line(&times).change_points.iter().map(|change| change.index).collect()
        };
        prop_assert_eq!(places(1.0), places(4.0));
    }

    #[test]
    fn much_slower_runs_are_regressions_and_faster_runs_are_not(
        times in prop::collection::vec(9.0..10.0_f64, 5..30),
    ) {
        let newest = |time: f64| line(&[times.clone(), vec![time]].concat());
        prop_assert_eq!(outcome(&newest(20.0), ThresholdKind::Previous), CheckOutcome::Regression);
        let fast = newest(8.0);
        prop_assert!(fast.alerts.is_empty(), "{:?}", fast.alerts);
    }
}

/// Two changes have a segment between them.
const LEAST_APART: usize = 3;

#[test]
fn a_run_that_stalls_beside_its_scored_step_is_a_regression() {
    // Release 25.04 scores one step, which took as long as ever.
    let one_step = |place, steady_mean_s| TimeLinePoint {
        n: 1,
        steady_mean_s: Some(steady_mean_s),
        baseline_step_time_s: Some(13.33),
        ..point(place, 13.39)
    };
    let mut points: Vec<TimeLinePoint> = (0..8).map(|place| one_step(place, 13.4)).collect();
    points.push(one_step(8, 14.4));
    let stalls = TimeLine::of(key(), points.clone(), &Thresholds::default());
    assert_eq!(outcome(&stalls, ThresholdKind::Previous), CheckOutcome::Regression);
    assert_eq!(outcome(&stalls, ThresholdKind::Sigma), CheckOutcome::Regression);
    let [baseline, previous, ..] = &stalls.checks[..] else { panic!("{:?}", stalls.checks) };
    let text = "14.4 s is 92.6 % of the published speed, below 95 %; this steady mean is 7.5 % longer than the scored step time, \
        13.39 s";
    assert_eq!((baseline.outcome, baseline.text.as_str()), (CheckOutcome::Regression, text));
    assert_eq!((baseline.measured_s, previous.measured_s), (Some(14.4), Some(14.4)));
    assert!(previous.text.starts_with("14.4 s is 7.5 % above the median"), "{}", previous.text);

    // The score of enough steps is the mean of steps like the others.
    for point in &mut points {
        point.n = 10;
    }
    let scored = TimeLine::of(key(), points, &Thresholds::default());
    assert_eq!(outcome(&scored, ThresholdKind::Previous), CheckOutcome::Fine);
    assert_eq!(outcome(&scored, ThresholdKind::Baseline), CheckOutcome::Fine);
}
