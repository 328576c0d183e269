use super::*;
use crate::components::chart::plot;
use serde_json::json;

fn plot_of(values: Vec<f64>) -> Plot {
    let steps = (0..values.len()).map(|step| step as f64).collect();
    let line = PlotLine { name: "run".into(), steps, values };
    Plot { lines: vec![line], ..Plot::default() }
}

#[test]
fn days_are_written_as_everywhere() {
    let line =
        ChartLine { name: "FP8".into(), group: 0, style: 0, points: vec![(512.0, 44.1)], is_level: false };
    let chart =
        LineChart::over_gpus(vec![line], "Days", true).with_mark(Some(("This plan".into(), 512.0, 9.5)));
    let plot = plot(&chart.of_days(true).into(), "#000", (600.0, 400.0));
    assert_eq!([0, 1].map(|trace| plot["data"][trace]["text"][0].clone()), [json!("44"), json!("9.50")]);
}

#[test]
fn a_slow_first_step_is_left_out_of_the_range() {
    let mut values = vec![10.0; 100];
    values[0] = 100.0;
    values[1] = 10.5;
    let (low, high) = LineChart::range(&plot_of(values)).expect("a range");
    assert!(low <= 10.0 && high < 100.0, "{low} to {high}");
    assert_eq!(LineChart::range(&plot_of((0..100).map(f64::from).collect())), None);
    assert_eq!(LineChart::range(&plot_of(Vec::new())), None);
}

#[test]
fn the_range_of_step_times_does_not_magnify_noise() {
    let range = |values: &[f64]| LineChart::range(&Plot { is_time: true, ..plot_of(values.to_vec()) });
    assert_eq!(range(&[9.99, 10.0, 10.02]), Some((9.0, 11.0)));
    // A slow first step is still left out.
    let mut values = vec![10.0; 100];
    values[0] = 100.0;
    assert_eq!(range(&values), Some((9.0, 11.0)));
    let (low, high) = range(&[3.0, 12.0, 13.0]).expect("a range");
    assert!(low == 0.0 && high > 13.0, "{low} to {high}");
    assert_eq!(range(&[]), None);
}

#[test]
fn consecutive_slow_steps_are_within_the_range() {
    let mut values = vec![10.0; 300];
    values[0] = 100.0;
    values[36..42].fill(13.5);
    let (_, high) = LineChart::range(&plot_of(values)).expect("a range");
    assert!((13.5..20.0).contains(&high), "{high}");
}

#[test]
fn names_of_lines_that_end_near_each_other_are_apart() {
    const HEIGHT: f64 = 320.0;
    let ends = [13_739.0, 335.7, 326.1, 293.4, 231.2, 211.6, 206.1];
    let line = |(group, end): (usize, f64)| ChartLine {
        name: format!("line {group}"),
        group,
        style: 0,
        points: vec![(512.0, 1000.0), (2048.0, end)],
        is_level: false,
    };
    for y_log in [true, false] {
        let lines = ends.into_iter().enumerate().map(line).collect();
        let chart = LineChart::over_gpus(lines, "Tokens per second", y_log).with_labels();
        let layout = plot(&chart.into(), "#000", (900.0, HEIGHT))["layout"].clone();
        let number = |value: &Value| value.as_f64().expect("a number");
        let margins = number(&layout["margin"]["t"]) + number(&layout["margin"]["b"]);
        let pixels = HEIGHT - margins;
        let [bottom, top] = [0, 1].map(|end| number(&layout["yaxis"]["range"][end]));
        let place = |note: &Value| (top - number(&note["y"])) / (top - bottom) * pixels + number(&note["ay"]);
        let notes = layout["annotations"].as_array().expect("labels");
        let places: Vec<f64> = notes.iter().map(place).collect();
        assert_eq!(places.len(), ends.len());
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 16.9), "{places:?}");
        assert!(places.iter().all(|place| (-1.0..=pixels + 1.0).contains(place)), "{places:?}");
    }
}

#[test]
fn bands_are_in_the_legend() {
    let level = PlotLevel { name: "Predicted".into(), value: 2.0, interval: Some((1.5, 2.5)) };
    let banded = Plot { levels: vec![level], window: Some((35.0, 44.0)), ..plot_of(vec![2.0; 50]) };
    let drawn = plot(&LineChart::of_plot(&banded, "Step time, s", false).into(), "#000", (900.0, 400.0));
    let names: Vec<_> =
        drawn["data"].as_array().expect("traces").iter().map(|trace| trace["name"].clone()).collect();
    assert_eq!(names, ["run", "Predicted", "Predicted (range)", "Scored steps (35–44)"]);
    assert_eq!(drawn["layout"]["shapes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_level_is_drawn_beside_a_single_scored_run() {
    let runs =
        ChartLine { name: "Runs".into(), group: 0, style: 0, points: vec![(5e12, 13.0)], is_level: false };
    let crosses = ChartMarkers {
        name: "Not compared",
        symbol: "x-open",
        is_bad: false,
        has_values: false,
        points: vec![(1e12, 0.0), (9e12, 0.0)],
    };
    let level = PlotLevel { name: "Published".into(), value: 12.0, interval: None };
    let chart = LineChart::over_time(vec![runs], vec![crosses], vec![level], "Step time, s", false);
    let drawn = plot(&chart.into(), "#000", (900.0, 400.0));
    let traces = drawn["data"].as_array().expect("traces");
    let published = traces.iter().find(|trace| trace["name"] == "Published").expect("a level");
    assert_eq!(published["x"], json!([1e12, 9e12]));
}

#[test]
fn few_steps_have_markers_and_a_tick_each() {
    let of = |count: usize| {
        plot(&LineChart::of_plot(&plot_of(vec![2.0; count]), "Loss", false).into(), "#000", (300.0, 400.0))
    };
    let (few, many) = (of(3), of(40));
    assert_eq!(few["data"][0]["mode"], "lines+markers");
    assert_eq!(few["layout"]["xaxis"]["tickvals"], json!([0.0, 1.0, 2.0]));
    assert_eq!(many["data"][0]["mode"], "lines");
    assert_eq!(many["layout"]["xaxis"]["tickvals"], Value::Null);
}

#[test]
fn a_chart_over_steps_is_higher_with_a_long_legend() {
    let height = |runs: u32, width: f64| {
        let line = |run: u32| PlotLine {
            // Nothing of it can be left out.
            name: run.to_string().repeat(30),
            ..plot_of(vec![2.0]).lines[0].clone()
        };
        let of_runs = Plot { lines: (0..runs).map(line).collect(), ..Plot::default() };
        plot(&LineChart::of_plot(&of_runs, "Loss", false).into(), "#000", (width, 400.0))["layout"]["meta"]
            .as_u64()
    };
    assert!(height(1, 300.0) < height(8, 300.0));
    assert!(height(2, 1000.0) < height(8, 1000.0) && height(8, 1000.0) < height(8, 300.0));
}

#[test]
fn gpu_counts_are_ticks_of_a_logarithmic_axis() {
    let line = ChartLine {
        name: "FP8".into(),
        group: 0,
        style: 0,
        points: vec![(512.0, 1e5), (1024.0, 2e5)],
        is_level: false,
    };
    let mark = Some(("This plan".to_string(), 768.0, 1.5e5));
    let chart = LineChart::over_gpus(vec![line], "Tokens per second", true).with_mark(mark);
    let plot = plot(&chart.into(), "#000", (600.0, 400.0));
    assert_eq!(plot["layout"]["xaxis"]["ticktext"], json!(["512", "768", "1,024"]));
    assert_eq!(plot["data"][1]["name"], "This plan");
}
