//! What the plans assume, below the printed report.

use super::Plan;
use leptos::prelude::*;
use trainplan_shared::assumption::Assumption;
use trainplan_shared::catalog::{Catalog, Release};
use trainplan_shared::cost::PriceSource;
use trainplan_shared::field::Field;
use trainplan_shared::goodput::{Disruptions, FailureRate, FailureStudy, SaveTime};
use trainplan_shared::question::split_gpu_types;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::{readable_days, significant};

/// The assumptions of the question, only in print.
#[component]
pub(super) fn Assumptions() -> impl IntoView {
    let plan = Plan::of_page();
    let lines = move || {
        let lines = plan.question.with(assumptions).into_iter();
        lines.map(|line| view! { <p>{line}</p> }).collect_view()
    };
    let script = move || {
        let launched = plan.calculator.launch.latest()?;
        let launch = launched.launch.as_ref()?;
        // Megatron-LM itself is launched without a release.
        let is_of_release = Release::ALL.iter().any(|release| release.id() == launch.release);
        let release = if is_of_release { format!(", release {}", launch.release) } else { String::new() };
        Some(view! { <p>{format!("Launch script: {}{release}. {}", launch.style, launch.runs)}</p> })
    };
    view! { <div class="printed assumptions"><h2>"Assumptions"</h2>{lines}{script}</div> }
}

/// Returns what the plans assume, as lines.
fn assumptions(question: &Spec) -> Vec<String> {
    let Ok(settings) = question.run_settings() else { return Vec::new() };
    let Disruptions { failure_rate, recovery, save, overhead, spare_share } = settings.disruptions;
    let headroom = question.count(Field::Headroom).ok().flatten().unwrap_or(Assumption::Headroom.value());
    let number = |value: f64| significant(value, 3);
    let rates = failure_rate.per_gpu_hour().times(1e6).readable(readable_days);
    let studies = match failure_rate {
        FailureRate::Studies => {
            let titles = FailureStudy::all().iter().map(|study| study.title.as_str());
            format!(" ({})", titles.collect::<Vec<_>>().join(", "))
        }
        FailureRate::Own(_) => String::new(),
    };
    let save_time = match save {
        SaveTime::Seconds(seconds) => format!("{} s per save", number(seconds)),
        SaveTime::Bandwidth(bytes_per_s) => format!("{} GB/s", number(bytes_per_s / 1e9)),
        SaveTime::Assumed => format!("{} GB/s per GPU", number(Assumption::SaveBandwidth.value())),
    };
    let types = split_gpu_types(question.raw(Field::GpuTypes));
    let mut usual = types.iter().filter_map(|id| settings.usual_price(id));
    let paid = if usual.clone().all(|price| price.is_of_owned()) { "" } else { ", paid for as well" };
    // Where the GPUs cost nothing, the cost is mostly that of electricity.
    let electricity = settings.electricity().per_kwh().filter(|_| usual.any(|price| price.is_free()));
    let electricity = electricity
        .map(|price| format!("Electricity: {} {} per kWh", significant(price, 3), settings.currency.label()));
    let prices = types.iter().filter_map(|id| match settings.usual_price(id)?.source {
        PriceSource::Assumed { source, date, .. } => {
            Some(format!("Price of the {}: {source}, {date}", Catalog::embedded().gpu(id).ok()?.name))
        }
        PriceSource::Yours => None,
    });
    let lines = [
        format!("Failures: {rates} per million GPU-hours{studies}"),
        format!("Recovery from a failure: {} min", number(recovery.seconds() / 60.0)),
        format!("Spare nodes{paid}: {} %", number(spare_share * 100.0)),
        format!("Checkpoints: {save_time}"),
        format!("Evaluation and warm-up: {} % more time", number(overhead * 100.0)),
        format!("Free memory: at least {} GiB on each GPU", number(headroom)),
        "Energy: the whole site, including cooling and network".into(),
        "Ranges: 80 % intervals".into(),
    ];
    lines.into_iter().chain(electricity).chain(prices).collect()
}
