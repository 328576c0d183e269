//! The fields of the search and of the whole run that the question bar does not show.

use super::{Plan, SettingsGroup};
use crate::components::field::{ChoiceField, FormField};
use crate::deadline;
use leptos::prelude::*;
use trainplan_shared::assumption::Assumption;
use trainplan_shared::cost::Currency;
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::goodput::FailureRate;
use trainplan_shared::precision::Dtype;
use trainplan_shared::question::{Objective, PrecisionChoice};
use trainplan_shared::units::{readable, significant};

/// The fields of the search and of the whole run that are set elsewhere: in the question bar, in a tab or by a lock.
pub(super) const IN_BAR: [Field; 10] = [
    Field::Tokens,
    Field::StepTime,
    Field::Price,
    Field::Purchase,
    Field::GpuTypes,
    Field::Deadline,
    Field::Chance,
    Field::Budget,
    Field::GpuRange,
    Field::Lock,
];

/// The fields, in two groups.
#[component]
pub(super) fn RunFields() -> impl IntoView {
    let of = move |group: FieldGroup| {
        Field::of_group(group)
            .filter(|field| !IN_BAR.contains(field))
            .map(|field| view! { <RunField field /> })
            .collect_view()
    };
    view! {
        <SettingsGroup title="Search" note="What the search may use, and how it ranks plans.">
            <div class="grid">{of(FieldGroup::Search)}</div>
        </SettingsGroup>
        <SettingsGroup title="Run" note="Failures, checkpoints, power and currency of the whole run.">
            <div class="grid">{of(FieldGroup::Goal)}</div>
        </SettingsGroup>
    }
}

/// A field: a list if it has only a few values, otherwise a text that shows its default.
#[component]
fn RunField(field: Field) -> impl IntoView {
    let help = field.hint();
    match field {
        Field::Objective => {
            let options: Vec<_> =
                Objective::ALL.map(|each| (each.id().to_string(), each.title().to_string())).into();
            view! { <ChoiceField field options default="By the goal" help /> }.into_any()
        }
        Field::Precisions => view! { <PrecisionsField /> }.into_any(),
        _ => view! { <FormField field default=default_of(field) help /> }.into_any(),
    }
}

/// The precisions that the search may use: as text, and a switch for each.
#[component]
fn PrecisionsField() -> impl IntoView {
    let plan = Plan::of_page();
    let field = Field::Precisions;
    // While the question has a problem, the choices stay.
    let choices = Memo::new(move |before: Option<&Vec<PrecisionChoice>>| {
        let asked = deadline::question(plan.question.get());
        asked.map_or_else(|_| before.cloned().unwrap_or_default(), |asked| asked.precision_choices())
    });
    let switches = move || {
        let choices = choices.get();
        let is_only = choices.iter().filter(|choice| choice.is_permitted).count() == 1;
        let switch = |PrecisionChoice { dtype, is_permitted }: PrecisionChoice| {
            let text = switched(&choices, dtype);
            view! {
                <button
                    type="button"
                    class="chip"
                    aria-pressed=is_permitted.to_string()
                    disabled=is_only && is_permitted
                    on:click=move |_| plan.state.ask(&[(field, &text)])
                >{dtype.title()}</button>
            }
        };
        choices.iter().copied().map(switch).collect_view()
    };
    view! {
        <div class="precisions">
            <FormField field default=default_of(field) help=field.hint() />
            <div class="chips" role="group" aria-label=field.label()>{switches}</div>
        </div>
    }
}

/// Returns the text of the permitted precisions after one was switched on or off.
fn switched(choices: &[PrecisionChoice], dtype: Dtype) -> String {
    let permitted = choices.iter().filter(|choice| choice.is_permitted != (choice.dtype == dtype));
    permitted.map(|choice| choice.dtype.id()).collect::<Vec<_>>().join(",")
}

/// Returns the value that applies while a field is empty.
fn default_of(field: Field) -> String {
    let of = |assumption: Assumption, factor: f64| significant(assumption.value() * factor, 3);
    match field {
        Field::FailureRate => FailureRate::Studies.per_gpu_hour().readable(|rate| format!("{rate:e}")),
        Field::RestartTime => format!("{} minutes", of(Assumption::RecoveryTime, 1.0 / 60.0)),
        Field::SaveTime => "size ÷ bandwidth".into(),
        Field::CheckpointBandwidth => format!("{} GB/s per GPU", of(Assumption::SaveBandwidth, 1.0)),
        Field::Overhead => of(Assumption::Overhead, 100.0),
        Field::SpareNodes => of(Assumption::SpareNodes, 100.0),
        Field::Electricity => readable(Assumption::ElectricityPrice.value()),
        Field::Power => "as published".into(),
        Field::Currency => Currency::default().to_string(),
        Field::Headroom => of(Assumption::Headroom, 1.0),
        Field::Precisions => "BF16 and FP8".into(),
        Field::BatchTokens => "by the model’s size".into(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_switched_on_and_off() {
        let choice = |dtype, is_permitted| PrecisionChoice { dtype, is_permitted };
        let choices =
            [choice(Dtype::Bf16, true), choice(Dtype::Fp8Current, false), choice(Dtype::Mxfp8, true)];
        assert_eq!(switched(&choices, Dtype::Mxfp8), "bf16");
        assert_eq!(switched(&choices, Dtype::Fp8Current), "bf16,fp8-current,mxfp8");
    }

    #[test]
    fn every_text_field_shows_its_default() {
        let fields = [FieldGroup::Search, FieldGroup::Goal].into_iter().flat_map(Field::of_group);
        for field in fields.filter(|field| !IN_BAR.contains(field)) {
            assert_eq!(default_of(field).is_empty(), field == Field::Objective, "{field:?}");
        }
        assert_eq!(default_of(Field::RestartTime), "10 minutes");
        assert_eq!(default_of(Field::Headroom), "4");
    }
}
