//! The state of the Plan page, as both of its programs derive it from the address.

use super::handover::BestPlan;
use super::question::{self, GoalKind, has_scenario};
use crate::address::Address;
use crate::components::field::ValueTitle;
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Recipe};
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::parse_decimal;

/// The recipe of an address that describes a scenario, but names neither a recipe nor a model: the largest well-known
/// one.
pub(crate) const FIRST_RECIPE: &str = "llama3.1-405b/h100/fp8/512@25.04";

/// The id of the button that opens all settings.
pub(crate) const SETTINGS_ID: &str = "all-settings";

/// The key of the address for the open tab of the details.
pub(crate) const TAB_KEY: &str = "tab";
/// The key of the address for the quantity of the chart.
pub(super) const Y_KEY: &str = "y";
/// The key of the address for the order of the layouts.
pub(super) const ORDER_KEY: &str = "order";
/// The key of the address for plans to compare side by side: the query of each, between spaces.
pub(super) const PLANS_KEY: &str = "plans";

/// The key of the address for the measured step time of a benchmark that was opened in Plan: a [`MeasuredStep`].
pub(crate) const MEASURED_KEY: &str = "ran";

/// The measured step time of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MeasuredStep {
    pub(crate) step_time_s: f64,
    /// The collection and its release.
    pub(crate) source: String,
}

impl MeasuredStep {
    /// Returns its text under [`MEASURED_KEY`] in the address of a plan. It holds only as long as the plan is the measured one, so
    /// it includes a hash of the plan's fields.
    pub(crate) fn text(&self, plan: &Spec) -> String {
        format!("{} {:x} {}", self.step_time_s, plan_hash(plan), self.source)
    }

    /// Reads a text of an address; none if it belongs to another plan than the address describes.
    pub(crate) fn read(text: &str, plan: &Spec) -> Option<MeasuredStep> {
        let mut words = text.splitn(3, ' ');
        let step_time_s = parse_decimal(words.next()?).filter(|time| time.is_finite() && *time > 0.0)?;
        let hash = u32::from_str_radix(words.next()?, 16).ok()?;
        let source = words.next()?.to_string();
        (hash == plan_hash(plan)).then_some(MeasuredStep { step_time_s, source })
    }
}

/// Returns a hash of the fields of a plan's scenario (FNV-1a).
fn plan_hash(plan: &Spec) -> u32 {
    link::write(&plan.only_scenario())
        .bytes()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A tab of the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailsTab {
    Time,
    Memory,
    Scaling,
    Evidence,
    Launch,
}

impl DetailsTab {
    pub(crate) const ALL: [DetailsTab; 5] =
        [DetailsTab::Time, DetailsTab::Memory, DetailsTab::Scaling, DetailsTab::Evidence, DetailsTab::Launch];

    /// Returns its text under [`TAB_KEY`] in the address.
    pub(crate) fn id(self) -> &'static str {
        match self {
            DetailsTab::Time => "",
            DetailsTab::Memory => "memory",
            DetailsTab::Scaling => "scaling",
            DetailsTab::Evidence => "evidence",
            DetailsTab::Launch => "launch",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            DetailsTab::Time => "Time",
            DetailsTab::Memory => "Memory",
            DetailsTab::Scaling => "Scaling",
            DetailsTab::Evidence => "Evidence",
            DetailsTab::Launch => "Launch",
        }
    }

    /// Returns the id of its button.
    pub(crate) fn button_id(self) -> String {
        format!("tab-{}", self.title().to_ascii_lowercase())
    }

    pub(crate) fn of(id: &str) -> DetailsTab {
        DetailsTab::ALL.into_iter().find(|tab| tab.id() == id).unwrap_or(DetailsTab::Time)
    }
}

/// The question and the shown plan.
#[derive(Clone, Copy)]
pub(crate) struct PlanState {
    pub(crate) address: Address,
    /// The question: the typed fields with those that are assumed.
    pub(crate) question: Memo<Spec>,
    /// The best plan; none while the first search runs.
    pub(crate) best: Memo<Option<BestPlan>>,
    /// The fields of the shown plan: those of the address if it describes a scenario, with [`FIRST_RECIPE`] where it
    /// names neither recipe nor model; otherwise those of the best plan. While another question is searched, they stay those
    /// of the answered one.
    pub(crate) spec: Memo<Spec>,
    /// Whether the shown plan can run; none while that is not known, and while the first search runs.
    pub(super) can_run: Memo<Option<bool>>,
}

impl PlanState {
    /// Provides the address, and derives the rest. `find_best` gets the question, and returns the best plan.
    /// `can_run` says whether a scenario can run; none if that is not known yet.
    pub(crate) fn provide(
        find_best: impl FnOnce(Memo<Spec>) -> Memo<Option<BestPlan>>,
        can_run: impl Fn(&Spec) -> Option<bool> + Copy + Send + Sync + 'static,
    ) -> PlanState {
        provide_context(ValueTitle(question::value_title));
        let address = Address::provide_single("/", &[TAB_KEY, Y_KEY, ORDER_KEY, PLANS_KEY, MEASURED_KEY]);
        let question = Memo::new(move |before: Option<&Spec>| {
            let typed = address.spec();
            if !has_scenario(&typed) {
                return question::question(&typed, None);
            }
            let own = own_scenario(&typed);
            match before.filter(|_| can_run(&own) != Some(true)) {
                // While a value of the plan is being typed, the question stays, also until it is known whether the plan can run.
                Some(before) => question::retyped(before, &own),
                None => question::question(&own, own.outline().as_ref()),
            }
        });
        let best = find_best(question);
        let spec = Memo::new(move |before: Option<&Spec>| {
            let typed = address.spec();
            if has_scenario(&typed) {
                return own_scenario(&typed);
            }
            let asked = question.get();
            let typed = typed.with(Field::Tokens, asked.raw(Field::Tokens));
            match (best.get(), before) {
                (Some(best), Some(before)) if best.question != link::write(&asked) => before.clone(),
                (Some(best), _) => question::shown(&typed, &link::read(&best.plan).spec),
                (None, _) => typed,
            }
        });
        let can_run = Memo::new(move |_| if is_waiting(address, best) { None } else { spec.with(can_run) });
        PlanState { address, question, best, spec, can_run }
    }

    /// Whether the first search has yet to find a plan.
    pub(crate) fn is_waiting(self) -> bool {
        is_waiting(self.address, self.best)
    }

    /// Shows a plan that was found, given as a query.
    pub(super) fn choose(self, query: &str) {
        let chosen = link::read(query).spec;
        let asked = self.question.get_untracked();
        self.address.turn_to(|spec| *spec = question::with_plan(spec, &asked, &chosen));
    }

    /// Asks another question about the plan that the address describes, if it describes one, and keeps that plan.
    pub(crate) fn refine(self, field: Field, value: &str) {
        let asked = self.question.get_untracked();
        self.address.turn_to(|spec| {
            if has_scenario(spec) {
                *spec = question::with_plan(spec, &asked, &spec.clone());
            }
            spec.set(field, value);
        });
    }

    /// Asks another question, and leaves the plan that the address describes.
    pub(crate) fn ask(self, changes: &[(Field, &str)]) {
        self.address.turn_to(self.other_question(changes));
    }

    /// Like [`PlanState::ask`]. Several changes of the same field in a row make one entry in the browser's history.
    pub(crate) fn ask_edit(self, field: Field, value: &str) {
        self.address.turn_to_edit(field, self.other_question(&[(field, value)]));
    }

    fn other_question(self, changes: &[(Field, &str)]) -> impl FnOnce(&mut Spec) {
        let asked = self.question.get_untracked();
        let leaves = self.address.with_spec_untracked(has_scenario);
        move |spec: &mut Spec| {
            if leaves {
                *spec = question::without_plan(spec, &asked);
            }
            for (field, value) in changes {
                spec.set(*field, *value);
            }
            // Other limits allow other numbers.
            let has_tokens = changes.iter().any(|(field, _)| *field == Field::Tokens);
            if !has_tokens && GoalKind::of(spec).seeks_tokens() {
                spec.set(Field::Tokens, "");
            }
        }
    }
}

fn is_waiting(address: Address, best: Memo<Option<BestPlan>>) -> bool {
    best.with(Option::is_none) && !address.with_spec(has_scenario)
}

/// Returns the fields of the scenario of an address.
fn own_scenario(typed: &Spec) -> Spec {
    match typed.get(Field::Recipe).is_none() && typed.get(Field::Model).is_none() {
        true => typed.clone().with(Field::Recipe, FIRST_RECIPE),
        false => typed.clone(),
    }
}

/// Returns the recipe with an id; for an unknown id, the most similar one.
pub(crate) fn nearest_recipe(id: &str) -> &'static Recipe {
    let catalog = Catalog::embedded();
    let nearest = |problem: Problem| problem.closest.and_then(|id| catalog.recipe(&id).ok());
    catalog
        .recipe(id)
        .or_else(|problem| nearest(problem).ok_or(()))
        .or_else(|()| catalog.recipe(FIRST_RECIPE))
        .unwrap_or(&catalog.recipes()[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_step_time_holds_for_its_plan_only() {
        let plan = link::read("m=llama3.1-8b&gpu=h100&n=64&gbs=128").spec;
        let measured = MeasuredStep { step_time_s: 1.5, source: "Megatron-Bridge 26.08".into() };
        let text = measured.text(&plan);
        let with = |field: Field, value: &str| MeasuredStep::read(&text, &plan.clone().with(field, value));
        assert_eq!(with(Field::Tokens, "1T"), Some(measured));
        assert_eq!(with(Field::Tp, "2"), None);
        assert_eq!(MeasuredStep::read("many", &plan), None);
    }

    #[test]
    fn an_unknown_recipe_is_replaced_by_the_most_similar_one() {
        assert_eq!(nearest_recipe("llama3.1-405b/h100/fp8/500@25.04").id.to_string(), FIRST_RECIPE);
        assert_eq!(nearest_recipe("?").id.to_string(), FIRST_RECIPE);
        assert_eq!(nearest_recipe(FIRST_RECIPE).id.to_string(), FIRST_RECIPE);
    }
}
