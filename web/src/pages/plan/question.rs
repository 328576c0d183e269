//! The question of the page: which of its fields are typed, and which are assumed.

use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::planning::Outline;
use trainplan_shared::question::{Objective, USUAL_GPU_TYPES, usual_precisions};
use trainplan_shared::search::{CHOSEN_FIELDS, StackRules};
use trainplan_shared::spec::Spec;
use trainplan_shared::stack::Software;
use trainplan_shared::units::{group_digits, parse_days, parse_decimal};

/// The question of an address that asks none: a model that many know, by a deadline.
pub(super) const FIRST_MODEL: &str = "llama3.1-70b";
pub(super) const FIRST_TOKENS: &str = "10T";
pub(super) const FIRST_DEADLINE: &str = "60d";

/// The tokens of a question that asks for the most of them, until these are known: so few that every plan is within the limits.
const FEW_TOKENS: &str = "1B";

/// The fields that a question may have in addition to those of the search and of the run.
const SHARED_FIELDS: [Field; 7] = [
    Field::Model,
    Field::Tokens,
    Field::SeqLen,
    Field::Stack,
    Field::Overlap,
    Field::GemmTflops,
    Field::ClusterFactor,
];

/// What the run must reach, as the bar shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoalKind {
    Deadline,
    Gpus,
    Budget,
    GpusByDeadline,
    DeadlineAndBudget,
    GpusForBudget,
    All,
    /// The most tokens on some GPUs by a deadline.
    TokensByDeadline,
    /// The most tokens for a budget.
    TokensForBudget,
}

/// Returns whether the question bar has a field, beside the chance to meet the deadline.
pub(super) fn is_in_bar(field: Field) -> bool {
    let others = [Field::Model, Field::Tokens, Field::GpuTypes, Field::Price, Field::Purchase];
    others.contains(&field) || GoalKind::FIELDS.contains(&field)
}

impl GoalKind {
    pub(super) const ALL: [GoalKind; 9] = [
        GoalKind::Deadline,
        GoalKind::Gpus,
        GoalKind::Budget,
        GoalKind::GpusByDeadline,
        GoalKind::DeadlineAndBudget,
        GoalKind::GpusForBudget,
        GoalKind::All,
        GoalKind::TokensByDeadline,
        GoalKind::TokensForBudget,
    ];

    /// The fields of all values.
    pub(super) const FIELDS: [Field; 3] = [Field::Deadline, Field::GpuRange, Field::Budget];

    /// Returns the fields of its values.
    pub(crate) fn fields(self) -> &'static [Field] {
        match self {
            GoalKind::Deadline => &[Field::Deadline],
            GoalKind::Gpus => &[Field::GpuRange],
            GoalKind::Budget | GoalKind::TokensForBudget => &[Field::Budget],
            GoalKind::GpusByDeadline | GoalKind::TokensByDeadline => &[Field::GpuRange, Field::Deadline],
            GoalKind::DeadlineAndBudget => &[Field::Deadline, Field::Budget],
            GoalKind::GpusForBudget => &[Field::GpuRange, Field::Budget],
            GoalKind::All => &[Field::GpuRange, Field::Deadline, Field::Budget],
        }
    }

    /// Returns its name among the choices of the page.
    pub(crate) fn id(self) -> &'static str {
        match self {
            GoalKind::Deadline => "deadline",
            GoalKind::Gpus => "gpus",
            GoalKind::Budget => "budget",
            GoalKind::GpusByDeadline => "gpus-by-deadline",
            GoalKind::DeadlineAndBudget => "both",
            GoalKind::GpusForBudget => "gpus-for-budget",
            GoalKind::All => "all",
            GoalKind::TokensByDeadline => "tokens-by-deadline",
            GoalKind::TokensForBudget => "tokens-for-budget",
        }
    }

    /// Whether it asks for the most tokens.
    pub(crate) fn seeks_tokens(self) -> bool {
        matches!(self, GoalKind::TokensByDeadline | GoalKind::TokensForBudget)
    }

    /// Returns its title: the names of its fields, in their order.
    pub(crate) fn title(self) -> &'static str {
        match self {
            GoalKind::Deadline => "Deadline",
            GoalKind::Gpus => "GPU count",
            GoalKind::Budget => "Budget",
            GoalKind::GpusByDeadline => "GPU count + deadline",
            GoalKind::DeadlineAndBudget => "Deadline + budget",
            GoalKind::GpusForBudget => "GPU count + budget",
            GoalKind::All => "GPU count + deadline + budget",
            GoalKind::TokensByDeadline => "Most tokens: GPU count + deadline",
            GoalKind::TokensForBudget => "Most tokens: budget",
        }
    }

    /// Returns the kind whose field a question sets.
    pub(crate) fn of(question: &Spec) -> GoalKind {
        let seeks_tokens = question.get(Field::Objective) == Some(Objective::MostTokens.id());
        let has = |kind: &GoalKind, field: Field| kind.fields().contains(&field);
        let is_set = |kind: &GoalKind| match kind.seeks_tokens() {
            // No limit is left out: the bar would not show it.
            true => {
                let is_as_set = |field: &Field| question.get(*field).is_some() == has(kind, *field);
                seeks_tokens && GoalKind::FIELDS.iter().all(is_as_set)
            }
            false => kind.fields().iter().all(|field| question.get(*field).is_some()),
        };
        // Of the others, the last one has the most fields.
        GoalKind::ALL.into_iter().rev().find(is_set).unwrap_or(GoalKind::Deadline)
    }
}

/// Whether the fields describe a scenario: a recipe, a number of GPUs, or a part of a layout. Otherwise they ask for
/// the best one.
pub(crate) fn has_scenario(spec: &Spec) -> bool {
    let is_open = |field: Field| match field {
        Field::Recipe | Field::Gpus => true,
        // With GPU types to compare, a batch size belongs to the question.
        Field::Gpu | Field::Gbs => !is_asked(spec),
        field => CHOSEN_FIELDS.contains(&field),
    };
    spec.iter().any(|(field, _)| is_open(field))
}

/// Whether any field of the search is typed.
fn is_asked(spec: &Spec) -> bool {
    spec.iter().any(|(field, _)| field.group() == FieldGroup::Search)
}

/// Returns every field of the question: the typed ones, and where they are missing those of `plan`, which the
/// address describes, or of the first question.
pub(crate) fn question(spec: &Spec, plan: Option<&Outline>) -> Spec {
    let belongs = |field: Field| {
        let is_of_run = field.group() == FieldGroup::Goal && field != Field::StepTime;
        is_of_run || field.group() == FieldGroup::Search || SHARED_FIELDS.contains(&field)
    };
    let typed = spec.iter().filter(|(field, _)| belongs(*field));
    let mut question = typed.fold(Spec::default(), |question, (field, text)| question.with(field, text));
    let mut assume = |field: Field, value: &str| {
        if question.get(field).is_none() {
            question.set(field, value);
        }
    };
    let recipe = spec.get(Field::Recipe).and_then(|id| Catalog::embedded().recipe(id).ok());
    let of_recipe = recipe.map(|recipe| recipe.id.model.as_str());
    let model = plan.map(|plan| plan.model.id.as_str());
    // The usual precisions may leave out the plan's own.
    if let Some(plan) = plan.filter(|_| !is_asked(spec)) {
        let rules = StackRules::of(plan.software.base());
        let dtype = plan.dtype;
        if !usual_precisions(rules, &plan.gpu).into_iter().any(|usual| usual.may_be(dtype)) {
            assume(Field::Precisions, &format!("bf16,mxfp8,{}", dtype.id()));
        }
    }
    // An own model has no id in the catalog, but then it is typed.
    assume(Field::Model, model.or(of_recipe).unwrap_or(FIRST_MODEL));
    let tokens = match (has_scenario(spec), GoalKind::of(spec).seeks_tokens()) {
        (true, _) => "1T",
        (false, true) => FEW_TOKENS,
        (false, false) => FIRST_TOKENS,
    };
    assume(Field::Tokens, tokens);
    assume(Field::GpuTypes, &gpu_types(spec, plan));
    if !is_asked(spec)
        && let Some(plan) = plan
    {
        let node = plan.gpu.gpus_per_node;
        // A search takes no number of GPUs that fills no whole nodes.
        if plan.gpus < node || plan.gpus.is_multiple_of(node) {
            assume(Field::GpuRange, &plan.gpus.to_string());
        } else {
            assume(Field::Deadline, FIRST_DEADLINE);
        }
        if !plan.is_proxy {
            assume(Field::SeqLen, &plan.seq_len.to_string());
            assume(Field::Gbs, &plan.gbs.to_string());
        }
    } else if GoalKind::FIELDS.iter().all(|field| spec.get(*field).is_none()) {
        assume(Field::Deadline, FIRST_DEADLINE);
    }
    if let Some(gbs) = spec.get(Field::Gbs).filter(|_| is_asked(spec) && !has_scenario(spec)) {
        question.set(Field::Gbs, gbs);
    }
    question
}

/// Returns the question `before` with what the address says about the search. Locks follow the values that are typed into a
/// plan, also while it can't run.
pub(super) fn retyped(before: &Spec, typed: &Spec) -> Spec {
    let of_search = typed.iter().filter(|(field, _)| field.group() == FieldGroup::Search);
    let question = before.clone().with(Field::Lock, "");
    of_search.fold(question, |question, (field, text)| question.with(field, text))
}

/// Returns the GPU types to compare, if none is typed: that of the plan, and the usual ones on which its software runs.
fn gpu_types(spec: &Spec, plan: Option<&Outline>) -> String {
    let own = plan.map(|plan| plan.gpu.id.as_str()).or(spec.get(Field::Gpu));
    let software: Software = spec.parse(Field::Stack).ok().flatten().unwrap_or_default();
    let runs_on = |id: &str| {
        let gpu = Catalog::embedded().gpu(id);
        gpu.is_ok_and(|gpu| StackRules::of(software.base()).runs_on(gpu.generation))
    };
    let is_other = |usual: &&str| own.is_none_or(|own| own != *usual) && runs_on(usual);
    let usual = USUAL_GPU_TYPES.split(',').filter(is_other);
    own.into_iter().chain(usual).collect::<Vec<_>>().join(",")
}

/// Returns the fields without those of a scenario, so that they ask for the best one.
pub(crate) fn without_plan(spec: &Spec, question: &Spec) -> Spec {
    let is_kept = |field: Field| !field.is_of_scenario() || SHARED_FIELDS.contains(&field);
    let kept = spec.iter().filter(|(field, _)| is_kept(*field) && *field != Field::StepTime);
    let spec = kept.fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
    // What was assumed because of the scenario stays.
    let assumed = [Field::Model, Field::Tokens, Field::GpuTypes].into_iter().chain(GoalKind::FIELDS);
    assumed.fold(spec, |spec, field| spec.with(field, question.raw(field)))
}

/// Returns the fields with the scenario of a plan, and with the question that it answers.
pub(crate) fn with_plan(spec: &Spec, question: &Spec, plan: &Spec) -> Spec {
    let spec = without_plan(spec, question);
    let of_plan = plan.iter().filter(|(field, _)| field.is_of_scenario());
    of_plan.fold(spec, |spec, (field, text)| spec.with(field, text))
}

/// Returns the fields of a plan that the address does not describe, with those of the address that are not of a scenario.
pub(crate) fn shown(typed: &Spec, plan: &Spec) -> Spec {
    plan.iter()
        .filter(|(field, _)| field.is_of_scenario())
        .fold(typed.clone(), |spec, (field, text)| spec.with(field, text))
}

/// Returns the fields that a change made. If the change begins a new scenario, it gets the question and the rest of the
/// plan that the page showed.
pub(crate) fn completed(before: &Spec, changed: Spec, question: &Spec, shown: Option<&Spec>) -> Spec {
    let Some(shown) = shown.filter(|_| !has_scenario(before) && has_scenario(&changed)) else {
        return changed;
    };
    if changed.get(Field::Recipe).is_some() {
        return changed;
    }
    let kept =
        question.iter().filter(|(field, _)| field.group() == FieldGroup::Search || *field == Field::Tokens);
    let missing = shown.iter().chain(kept).filter(|(field, _)| changed.get(*field).is_none());
    missing.fold(changed.clone(), |spec, (field, text)| spec.with(field, text))
}

/// Returns a value of a field as people say it: the name of a model or a GPU type, and `60 days` for `60d`.
pub(crate) fn value_title(field: Field, value: &str) -> String {
    let catalog = Catalog::embedded();
    match field {
        Field::Model => catalog.model(value).map_or_else(|_| value.to_string(), |model| model.title.clone()),
        Field::Gpu | Field::GpuTypes => {
            catalog.gpu(value).map_or_else(|_| value.to_string(), |gpu| gpu.name.clone())
        }
        Field::Deadline => days_text(value),
        _ => parse_decimal(value).map_or_else(|| value.to_string(), group_digits),
    }
}

/// Returns a time for people: `60d` as `60 days`, `1w` as `1 week`; other texts unchanged.
pub(crate) fn days_text(value: &str) -> String {
    let value = value.trim();
    if parse_days(value).is_none() {
        return value.to_string();
    }
    let number = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match value.as_bytes().get(number.len()) {
        Some(b'w' | b'W') => "week",
        Some(b'm' | b'M') => "month",
        _ => "day",
    };
    let number = number.trim_end();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::link;

    fn read(query: &str) -> Spec {
        link::read(query).spec
    }

    #[test]
    fn times_have_their_units_in_words() {
        let texts = ["60d", "60", "1d", "1w", "8 weeks", "2mo", "1 Month", "soon"].map(days_text);
        let words = ["60 days", "60 days", "1 day", "1 week", "8 weeks", "2 months", "1 month", "soon"];
        assert_eq!(texts, words);
    }

    fn asked(query: &str) -> String {
        let spec = read(query);
        let plan = has_scenario(&spec).then(|| spec.outline()).flatten();
        link::write(&question(&spec, plan.as_ref()))
    }

    #[test]
    fn a_run_is_compared_on_the_gpu_types_that_its_software_runs_on() {
        let of = |stack: &str| {
            let spec = read(&format!("m=llama3.1-405b&gpu=h100&n=512&tp=8&pp=16&gbs=512&{stack}"));
            question(&spec, spec.outline().as_ref()).raw(Field::GpuTypes).to_string()
        };
        assert_eq!(of(""), "h100,b200");
        assert_eq!(of("stack=meta-llama3"), "h100");
    }

    #[test]
    fn an_empty_address_asks_the_first_question() {
        let expected = read("m=llama3.1-70b&t=10T&gs=h100,b200&by=60d");
        assert_eq!(asked(""), link::write(&expected));
        assert!(!has_scenario(&Spec::default()));
    }

    #[test]
    fn typed_fields_replace_the_assumed_ones() {
        let expected = read("m=llama3.1-405b&t=10T&gs=h100,b200&bud=50M");
        assert_eq!(asked("m=llama3.1-405b&bud=50M"), link::write(&expected));
    }

    #[test]
    fn a_goal_may_be_a_deadline_with_a_budget() {
        let kind = |query: &str| GoalKind::of(&read(query));
        assert_eq!(kind("by=60d&bud=5M"), GoalKind::DeadlineAndBudget);
        assert_eq!(
            [kind("by=60d"), kind("bud=5M"), kind("")].map(|kind| kind.fields()[0]),
            [Field::Deadline, Field::Budget, Field::Deadline]
        );
        assert_eq!(kind("nr=1024"), GoalKind::Gpus);
        assert_eq!(kind("nr=1024&by=60d"), GoalKind::GpusByDeadline);
        assert_eq!(kind("nr=1024&bud=5M"), GoalKind::GpusForBudget);
        assert_eq!(kind("nr=1024&by=60d&bud=5M"), GoalKind::All);
    }

    #[test]
    fn the_most_tokens_are_a_goal_with_the_limits_that_the_bar_shows() {
        let kind = |query: &str| GoalKind::of(&read(&format!("obj=most-tokens&{query}")));
        assert_eq!(kind("nr=1024&by=30d"), GoalKind::TokensByDeadline);
        assert_eq!(kind("bud=5M"), GoalKind::TokensForBudget);
        assert_eq!(kind("by=60d&bud=5M"), GoalKind::DeadlineAndBudget);
        assert_eq!(GoalKind::of(&read("nr=1024&by=30d&obj=cheapest")), GoalKind::GpusByDeadline);
        let tokens = |query: &str| read(&asked(query)).raw(Field::Tokens).to_string();
        assert_eq!(tokens("nr=1024&by=30d&obj=most-tokens"), FEW_TOKENS);
        assert_eq!(tokens("nr=1024&by=30d&obj=most-tokens&t=5T"), "5T");
    }

    #[test]
    fn an_old_link_asks_about_its_own_number_of_gpus() {
        let spec = read(&asked("r=llama3.1-405b/h100/fp8/512@25.04"));
        let texts = [Field::Model, Field::GpuTypes, Field::GpuRange, Field::Tokens]
            .map(|field| spec.raw(field).to_string());
        assert_eq!(texts, ["llama3.1-405b", "h100,b200", "512", "1T"]);
        assert_eq!(spec.get(Field::Deadline), None);
    }

    #[test]
    fn a_link_to_a_plan_that_cannot_run_asks_about_its_gpus() {
        let valid = "m=llama3.1-70b&gpu=h100&n=1024&tp=4&gbs=1024";
        let invalid = valid.replace("tp=4", "tp=3");
        assert!(read(valid).scenario().is_ok() && read(&invalid).scenario().is_err());
        assert_eq!(asked(&invalid), asked(valid));
        assert_eq!(read(&asked(valid)).get(Field::GpuRange), Some("1024"));
        let part_of_a_node = read(&asked("r=llama3.1-405b/h100/fp8/512@25.04&n=500"));
        assert_eq!(part_of_a_node.get(Field::GpuRange), None);
        assert_eq!(part_of_a_node.get(Field::Deadline), Some("60d"));
    }

    #[test]
    fn a_chosen_plan_keeps_its_question_and_leaving_it_restores_the_address() {
        let spec = read("acc=research");
        let asked = question(&spec, None);
        let plan = read("m=llama3.1-70b&gpu=h100&n=1024&tp=4&gbs=1024&t=10T");
        let chosen = with_plan(&spec, &asked, &plan);
        assert!(has_scenario(&chosen));
        assert_eq!(question(&chosen, chosen.outline().as_ref()), asked);
        assert_eq!(chosen.get(Field::Account), Some("research"));
        assert!(!has_scenario(&without_plan(&chosen, &asked)));
    }

    #[test]
    fn locks_follow_a_plan_that_cannot_run() {
        let before = read("m=llama3.1-70b&t=10T&gs=b200&by=60d&lock=tp%3D8");
        let typed = read("m=llama3.1-70b&gpu=b200&n=784&tp=3&t=10T&gs=b200&by=60d&lock=tp%3D3");
        assert_eq!(retyped(&before, &typed), before.clone().with(Field::Lock, "tp=3"));
        assert_eq!(retyped(&before, &typed.with(Field::Lock, "")).get(Field::Lock), None);
    }

    #[test]
    fn a_typed_degree_takes_the_rest_of_the_shown_plan() {
        let shown = read("m=llama3.1-70b&gpu=h100&n=1024&tp=4&gbs=1024");
        let spec = completed(&Spec::default(), read("pp=2"), &question(&Spec::default(), None), Some(&shown));
        assert_eq!((spec.raw(Field::Pp), spec.raw(Field::Gpus), spec.raw(Field::Tp)), ("2", "1024", "4"));
        let before = read("n=8");
        assert_eq!(completed(&before, read("n=16"), &Spec::default(), Some(&shown)), read("n=16"));
    }
}
