//! The scenario of the shown plan in numbers, beside the published figures.

use super::Plan;
use crate::pages::plan::amounts::count_text;
use leptos::prelude::*;
use trainplan_shared::catalog::{Reference, ReferenceClass};
use trainplan_shared::message::Front;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::units::{group_digits, readable};

/// The warnings, the layout and batch with the numbers that follow from them, and the published figures.
#[component]
pub(super) fn ScenarioSummary() -> impl IntoView {
    let plan = Plan::of_page();
    let rows = move || plan.scenario.with(|scenario| scenario.as_ref().map_or(Vec::new(), summary));
    let warnings =
        move || plan.scenario.with(|scenario| scenario.as_ref().map_or(Vec::new(), Scenario::warnings));
    let published = move || plan.scenario.with(|scenario| scenario.as_ref().ok().and_then(published));
    view! {
        {move || warnings().into_iter().map(|warning| view! {
            <p class="notice warn">{warning.text(Front::Page)}</p>
        }).collect_view()}
        <dl class="facts">
            {move || rows().into_iter().map(|(name, value)| view! {
                <div><dt>{name}</dt><dd>{value}</dd></div>
            }).collect_view()}
        </dl>
        {move || published().map(|published| view! { <p class="published">{published}</p> })}
    }
}

fn summary(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let (layout, batch) = (&scenario.layout, &scenario.batch);
    let mut parallel =
        format!("TP {} · PP {} · CP {} · DP {}", layout.tp(), layout.pp(), layout.cp(), layout.dp());
    if layout.ep() > 1 {
        parallel += &format!(" · EP {}", layout.ep());
    }
    if layout.vp() > 1 {
        parallel += &format!(" · VP {}", layout.vp());
    }
    if layout.expert_tp() > 1 {
        parallel += &format!(" · expert TP {}", layout.expert_tp());
    }
    if scenario.options.fsdp {
        parallel += " · FSDP";
    }
    let batch_text = format!(
        "GBS {} = MBS {} × DP {} × GA {}; {} tokens per sequence",
        group_digits(batch.gbs().into()),
        batch.mbs(),
        layout.dp(),
        batch.ga(),
        group_digits(batch.seq_len().into())
    );
    let mut rows = vec![("Layout", parallel), ("Batch", batch_text)];
    if layout.pp() > 1 {
        rows.push(("Layers per stage", layers_per_stage(layout.stages())));
    }
    rows.push(("Tokens per step", count_text(batch.tokens())));
    rows
}

/// Returns the layers of each stage, with equal neighbours grouped: "15, 6 × 16, 15".
fn layers_per_stage(stages: &[u32]) -> String {
    let groups = stages.chunk_by(|a, b| a == b).map(|group| match group {
        [one] => one.to_string(),
        group => format!("{} × {}", group.len(), group[0]),
    });
    groups.collect::<Vec<_>>().join(", ")
}

/// Returns the figures as they are published: for the scenario, or for the same layout at another GPU count.
fn published(scenario: &Scenario) -> Option<String> {
    let Reference { baseline, gpus, class } = scenario.reference()?;
    if class == ReferenceClass::WeakScaled {
        return Some(format!(
            "As published on {gpus} GPUs, by weak scaling: {}\u{a0}s per step.",
            readable(baseline.step_time_s)
        ));
    }
    let mut figures = vec![
        format!("{}\u{a0}s per step", baseline.step_time_s),
        format!("{} tokens/s", group_digits(baseline.printed_tokens()?)),
    ];
    // Megatron-Bridge publishes no MFU and no days.
    if !baseline.printed_mfu_pct.is_empty() {
        figures.push(format!("{}\u{a0}% MFU", baseline.printed_mfu_pct));
    }
    match baseline.printed_days_1t.as_str() {
        "" if scenario.is_proxy() => figures.push("no days (a proxy)".into()),
        "" => {}
        days => figures.push(format!("{days} days for 1T tokens")),
    }
    Some(format!("As published: {}.", figures.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbouring_stages_are_grouped() {
        assert_eq!(layers_per_stage(&[15, 16, 16, 16, 15]), "15, 3 × 16, 15");
    }

    #[test]
    fn a_published_recipe_shows_the_figures_of_its_document() {
        let spec = trainplan_shared::link::read("r=llama3.1-405b/h100/fp8/512@25.04").spec;
        let scenario = spec.scenario().expect("a valid scenario");
        let published = published(&scenario).expect("published figures");
        assert!(
            published.starts_with("As published: 12.37\u{a0}s per step, 169,535 tokens/s, 44.35\u{a0}% MFU"),
            "{published}"
        );
    }
}
