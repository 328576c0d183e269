//! The JSON output of a search.

use super::found::SearchedGpu;
use super::sentences::{
    beside_measured, beside_measured_software, beside_published, by_script, unmet_sentence,
};
use serde::Serialize;
use trainplan_shared::benchmarks::BestMeasured;
use trainplan_shared::catalog::ParameterCounts;
use trainplan_shared::cost::{Price, RunCost};
use trainplan_shared::deadline::date_of;
use trainplan_shared::estimate::{Confidence, Interval, MemoryVerdict};
use trainplan_shared::goodput::RunTime;
use trainplan_shared::gpu_counts::GpuCounts;
use trainplan_shared::message::Front;
use trainplan_shared::precision::Dtype;
use trainplan_shared::question::{
    Chance, Goal, Objective, PlanScript, PlannedRun, Question, TrainableTokens, Unmet,
};
use trainplan_shared::range::ValueRange;
use trainplan_shared::search::{Candidate, Rule, SearchCounts};
use trainplan_shared::stack::Software;
use trainplan_shared::tables::PlanRow;

/// The question and the answer for each GPU type.
#[derive(Debug, Serialize)]
pub(super) struct SearchOutput<'a> {
    question: QuestionOutput<'a>,
    /// The answer in a sentence.
    headline: String,
    /// The comparison of the GPU types in words.
    verdict: String,
    answers: Vec<AnswerOutput<'a>>,
}

/// The question, with every assumption.
#[derive(Debug, Serialize)]
struct QuestionOutput<'a> {
    /// Id of the model, or its description.
    model: &'a str,
    parameters: ParameterCounts,
    tokens: f64,
    /// Whether the number of tokens is the compute-optimal one, because none was given.
    tokens_are_assumed: bool,
    seq_len: u32,
    /// Global batch sizes to choose from, in sequences.
    gbs: &'a [u32],
    /// Whether the global batch was assumed from the model's size.
    gbs_is_assumed: bool,
    goal: GoalOutput,
    /// The date that was typed as the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_date: Option<&'a str>,
    /// How likely a plan must meet the deadline and the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    chance: Option<Chance>,
    /// The most that the run may cost, beside a deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_cost: Option<f64>,
    objective: Objective,
    gpus: GpuCountsOutput<'a>,
    /// The training software.
    stack: String,
    /// As typed: `tp=4|8,recompute!=full`; empty without locks.
    locks: String,
    headroom_bytes: f64,
    currency: &'a str,
    /// Failures per GPU-hour.
    failure_rate: ValueRange,
    failure_rate_source: String,
}

/// What a plan must reach.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum GoalOutput {
    DeadlineDays(f64),
    Budget(f64),
    Open,
}

/// The numbers of GPUs that were searched.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum GpuCountsOutput<'a> {
    /// Round counts up to this one, and every whole node below the best of them.
    UpTo(u32),
    Range {
        least: u32,
        most: u32,
    },
    Only(&'a [u32]),
}

/// The answer for one GPU type.
#[derive(Debug, Serialize)]
struct AnswerOutput<'a> {
    gpu: &'a str,
    /// Precisions to choose from.
    dtypes: &'a [Dtype],
    /// Price of a GPU-hour; null if none is known.
    price: Option<Price>,
    /// The best plan; null if no plan reaches the goal.
    best: Option<PlanOutput<'a>>,
    /// The `trainplan estimate` command of the best plan.
    command: Option<String>,
    /// The `trainplan launch` command of the best plan; null if no script can be written.
    launch_command: Option<String>,
    /// How many of ten such runs meet the deadline; null without a deadline.
    in_time_of_ten: Option<u32>,
    /// How many of ten such runs stay within the budget; null without a budget or a price.
    within_budget_of_ten: Option<u32>,
    /// The most tokens that the limits allow on the GPUs of the best plan; null if nothing limits them.
    most_tokens: Option<TokensOutput>,
    /// What the launch script makes of the best plan.
    script: Option<PlanScriptOutput>,
    /// What the best plan costs on demand, if the price is the assumed one of a reservation.
    on_demand_cost: Option<f64>,
    on_demand_cost_range: Option<ValueRange>,
    /// What its GPUs cost for the whole term of the reservation, if the price is the assumed one of a reservation.
    whole_term_cost: Option<ValueRange>,
    /// What to doubt in the best plan.
    warnings: Vec<String>,
    /// The best plan if the goal had to be reached with the other chance; null if none reaches it.
    with_other_chance: Option<PlanOutput<'a>>,
    /// The best plan if only BF16 may be used; null if the best plan does, or another precision is not a choice.
    in_bf16: Option<PlanOutput<'a>>,
    /// Why no plan reaches the goal; null if one does.
    unmet: Option<UnmetOutput<'a>>,
    /// The best layouts on as many GPUs as the best plan, or as the plan nearest to the goal, whose layout comes first; best first.
    layouts: Vec<PlanOutput<'a>>,
    /// The layout of a published recipe of the model, on as many GPUs.
    published: Option<PublishedOutput<'a>>,
    /// The fastest measured run of the model on this GPU type, at any scale.
    measured: Option<MeasuredOutput>,
    /// The best plan with the software of the nearest measured run on this GPU type, if nobody measured the plan's software there and
    /// it is predicted to be clearly faster.
    with_measured_software: Option<SoftwareOutput<'a>>,
    /// The best plan on each number of GPUs that has one.
    by_gpus: Vec<PlanOutput<'a>>,
    /// How many layouts were considered for `layouts`.
    considered: ConsideredOutput,
}

/// Why no plan reaches the goal.
#[derive(Debug, Serialize)]
struct UnmetOutput<'a> {
    why: UnmetKind,
    /// The reason and what would help, in words.
    text: String,
    /// Days of the fastest plan, if it is too slow.
    days: Option<f64>,
    /// The cost that the cheapest plan doesn't exceed at the chosen chance, if it is too expensive.
    cost: Option<f64>,
    /// The most tokens that a plan trains within the goal, rounded down, if the cheapest plan is too expensive.
    tokens: Option<f64>,
    /// Changes of the question that make a plan work; each was tried.
    changes: Vec<ChangeOutput<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum UnmetKind {
    NoLayout,
    TooSlow,
    TooExpensive,
    NoPrice,
}

/// A change of the question that makes a plan work.
#[derive(Debug, Serialize)]
struct ChangeOutput<'a> {
    /// The flag to change, without dashes.
    flag: &'static str,
    /// Its new value; empty to leave it out.
    value: &'a str,
    /// The plan with it.
    plan: PlanOutput<'a>,
    /// Whether that reaches the goal. If not, no change that was tried does.
    reaches_goal: bool,
}

/// Tokens that the limits of a question allow on the GPUs of the best plan.
#[derive(Debug, Serialize)]
struct TokensOutput {
    /// Rounded down.
    tokens: f64,
    /// Expected days.
    days: f64,
    /// Expected cost; null without a price.
    cost: Option<f64>,
}

/// What a launch script makes of a plan.
#[derive(Debug, Serialize)]
struct PlanScriptOutput {
    /// Whether it runs the plan as predicted.
    as_planned: bool,
    /// The software that it runs, if not as predicted; null if no script can be written.
    software: Option<String>,
    /// Step time as a multiple of the planned one.
    slowdown: Option<f64>,
    /// Expected days with that software.
    days: Option<f64>,
    days_range: Option<ValueRange>,
    /// Expected cost with that software; null without a price.
    cost: Option<f64>,
    /// Whether the plan reaches the goal by its script, and surely fits in memory.
    reaches_goal: bool,
    /// The difference in words.
    text: Option<String>,
}

/// A plan with other software.
#[derive(Debug, Serialize)]
struct SoftwareOutput<'a> {
    /// The id of the software.
    stack: &'static str,
    plan: PlanOutput<'a>,
    /// How it compares, in words.
    text: Option<String>,
}

/// The fastest measured run of the model on a GPU type.
#[derive(Debug, Serialize)]
struct MeasuredOutput {
    tokens_per_s_per_gpu: f64,
    gpus: u32,
    dtype: Dtype,
    seq_len: u32,
    release: &'static str,
    /// How the best plan compares with it.
    text: Option<String>,
}

/// A published layout beside the best one.
#[derive(Debug, Serialize)]
struct PublishedOutput<'a> {
    recipe: String,
    plan: PlanOutput<'a>,
    /// How many times as fast as the published layout the best one is, with the 80 % interval.
    speed_of_best: Option<Interval>,
    /// The comparison in words.
    text: Option<String>,
}

/// A layout on a number of GPUs, with the whole run.
#[derive(Debug, Serialize)]
struct PlanOutput<'a> {
    gpus: u32,
    /// The layout in one line.
    layout: String,
    /// Every value that the search chose.
    chosen: &'a Candidate,
    /// The recipe that publishes the layout.
    recipe: Option<String>,
    step_time_s: Interval,
    tokens_per_s_per_gpu: f64,
    /// A fraction, with attention counted in full.
    mfu: f64,
    /// Free memory of the fullest GPU.
    spare_bytes: f64,
    /// Whether it surely fits, or is too close to call.
    memory: MemoryVerdict,
    confidence: Confidence,
    /// Expected days, with failures.
    days: f64,
    days_range: ValueRange,
    /// Expected days with measured software, if the plan's software is unmeasured and the measured one is slower.
    #[serde(skip_serializing_if = "Option::is_none")]
    days_as_measured: Option<f64>,
    /// Expected cost; null without a price.
    cost: Option<f64>,
    cost_range: Option<ValueRange>,
    mwh: ValueRange,
    /// Failures, saves and goodput of the run.
    time: &'a RunTime,
    /// The cost in detail.
    cost_detail: Option<&'a RunCost>,
}

/// How many layouts there are, and why others were discarded. The numbers of fitting and of slower ones, and of those that need too much
/// memory, depend on how many layouts are listed: the memory of slower ones is not tested.
#[derive(Debug, Serialize)]
struct ConsideredOutput {
    /// Combinations of all values.
    layouts: u64,
    /// Those that fit, with their exact step time.
    fitting: u64,
    /// Those that obey every rule, but whose computation alone takes longer than the best layouts.
    slower: u64,
    discarded: Vec<DiscardedOutput>,
}

/// The layouts that a rule discards.
#[derive(Debug, Serialize)]
struct DiscardedOutput {
    rule: Rule,
    reason: &'static str,
    layouts: u64,
}

impl<'a> SearchOutput<'a> {
    pub(super) fn new(
        question: &'a Question,
        found: &[SearchedGpu<'a>],
        headline: String,
        verdict: String,
    ) -> SearchOutput<'a> {
        SearchOutput {
            question: QuestionOutput {
                deadline_date: found.first().and_then(|first| date_of(first.typed)),
                ..QuestionOutput::from(question)
            },
            headline,
            verdict,
            answers: found.iter().map(AnswerOutput::new).collect(),
        }
    }
}

impl<'a> From<&'a Question> for QuestionOutput<'a> {
    fn from(question: &'a Question) -> QuestionOutput<'a> {
        let failure_rate = question.settings.disruptions.failure_rate;
        QuestionOutput {
            model: &question.model.id,
            parameters: question.model.parameters_of(&question.model.architecture),
            tokens: question.tokens,
            tokens_are_assumed: question.tokens_are_assumed,
            seq_len: question.seq_len,
            gbs: question.gbs.sizes(),
            gbs_is_assumed: question.gbs.are_assumed(),
            goal: match question.goal {
                Goal::Deadline(days) => GoalOutput::DeadlineDays(days),
                Goal::Budget(budget) => GoalOutput::Budget(budget),
                Goal::Open => GoalOutput::Open,
            },
            deadline_date: None,
            chance: match question.goal {
                Goal::Deadline(_) | Goal::Budget(_) => Some(question.chance),
                Goal::Open => None,
            },
            max_cost: question.max_cost,
            objective: question.objective,
            gpus: match &question.counts {
                GpuCounts::UpTo(most) => GpuCountsOutput::UpTo(*most),
                GpuCounts::Range(least, most) => GpuCountsOutput::Range { least: *least, most: *most },
                GpuCounts::Only(counts) => GpuCountsOutput::Only(counts),
            },
            stack: question
                .offers
                .first()
                .map_or_else(Software::default, |offer| offer.options.software)
                .to_string(),
            locks: question.locks.to_string(),
            headroom_bytes: question.headroom_bytes,
            currency: question.settings.currency.label(),
            failure_rate: failure_rate.per_gpu_hour(),
            failure_rate_source: failure_rate.source(),
        }
    }
}

impl<'a> AnswerOutput<'a> {
    fn new(found: &SearchedGpu<'a>) -> AnswerOutput<'a> {
        let SearchedGpu { question, offer, answer, .. } = *found;
        let best = answer.best();
        let on_demand = best.and_then(|run| run.on_demand_cost(offer));
        AnswerOutput {
            gpu: &offer.gpu.id,
            dtypes: &offer.dtypes,
            price: offer.price,
            best: best.map(|run| PlanOutput::new(run, None)),
            command: best.map(|run| found.command(run)),
            launch_command: best.and_then(|run| found.launch_command(run)),
            in_time_of_ten: best.and_then(|run| match question.goal {
                Goal::Deadline(limit) => Some(run.in_time_of_ten(limit)),
                Goal::Budget(_) | Goal::Open => None,
            }),
            within_budget_of_ten: best.and_then(|run| run.within_budget_of_ten(question.budget()?)),
            most_tokens: answer.most_tokens(question, offer).map(TokensOutput::from),
            script: found.script.map(|script| PlanScriptOutput::new(script, by_script(found))),
            on_demand_cost: on_demand.map(|cost| cost.mid),
            on_demand_cost_range: on_demand.map(|cost| ValueRange { low: cost.low, high: cost.high }),
            whole_term_cost: best
                .and_then(|run| Some(offer.price?.whole_term()?.times(run.time.paid_gpus.into()))),
            warnings: best.map_or_else(Vec::new, |run| {
                run.cautions(question).iter().map(|caution| caution.text(Front::Search)).collect()
            }),
            with_other_chance: answer.with_other_chance.as_ref().map(|run| PlanOutput::new(run, None)),
            in_bf16: found.in_bf16.map(|run| PlanOutput::new(run, None)),
            unmet: answer.unmet.map(|unmet| UnmetOutput::new(unmet, found)),
            layouts: found.layouts().iter().map(PlanOutput::from).collect(),
            published: answer.published.as_ref().map(|(recipe, run)| PublishedOutput {
                recipe: recipe.id.to_string(),
                plan: PlanOutput::new(run, None),
                speed_of_best: answer.layouts.first().map(|best| best.speed_over(run)),
                text: beside_published(found),
            }),
            measured: BestMeasured::of(&question.model.id, &offer.gpu.id).map(|run| MeasuredOutput {
                tokens_per_s_per_gpu: run.tokens_per_s_per_gpu,
                gpus: run.gpus,
                dtype: run.dtype,
                seq_len: run.seq_len,
                release: &run.release,
                text: beside_measured(found),
            }),
            with_measured_software: answer.with_measured_software.as_ref().map(|(software, run)| {
                SoftwareOutput {
                    stack: software.id(),
                    plan: PlanOutput::new(run, None),
                    text: beside_measured_software(found),
                }
            }),
            by_gpus: answer.points.iter().map(|run| PlanOutput::new(run, None)).collect(),
            considered: ConsideredOutput::from(&answer.counts),
        }
    }
}

impl<'a> UnmetOutput<'a> {
    fn new(unmet: Unmet, found: &SearchedGpu<'a>) -> UnmetOutput<'a> {
        let changes = found.answer.relaxations.iter().map(|change| ChangeOutput {
            flag: change.setting.field.search_flag(),
            value: &change.setting.value,
            plan: PlanOutput::new(&change.run, None),
            reaches_goal: change.reaches_goal,
        });
        let text = unmet_sentence(unmet, found);
        let output =
            |why| UnmetOutput { why, text, days: None, cost: None, tokens: None, changes: changes.collect() };
        match unmet {
            Unmet::NoLayout => output(UnmetKind::NoLayout),
            Unmet::TooSlow { days } => UnmetOutput { days: Some(days), ..output(UnmetKind::TooSlow) },
            Unmet::TooExpensive { cost, tokens, .. } => {
                let tokens = Some(tokens).filter(|tokens| *tokens > 0.0);
                UnmetOutput { cost: Some(cost), tokens, ..output(UnmetKind::TooExpensive) }
            }
            Unmet::NoPrice => output(UnmetKind::NoPrice),
        }
    }
}

impl From<TrainableTokens> for TokensOutput {
    fn from(TrainableTokens { tokens, run }: TrainableTokens) -> TokensOutput {
        TokensOutput { tokens, days: run.days, cost: run.expected_cost }
    }
}

impl PlanScriptOutput {
    fn new(script: &PlanScript, text: Option<String>) -> PlanScriptOutput {
        let other = match script {
            PlanScript::Other(plan) => Some(plan),
            PlanScript::AsPlanned | PlanScript::Unavailable(_) => None,
        };
        PlanScriptOutput {
            as_planned: matches!(script, PlanScript::AsPlanned),
            software: other.map(|plan| plan.script.software.clone()),
            slowdown: other.map(|plan| plan.script.slowdown),
            days: other.map(|plan| plan.script.days.mid),
            days_range: other
                .map(|plan| ValueRange { low: plan.script.days.low, high: plan.script.days.high }),
            cost: other.and_then(|plan| plan.run.expected_cost),
            reaches_goal: script.reaches_goal(),
            text,
        }
    }
}

impl<'a> PlanOutput<'a> {
    fn new(run: &'a PlannedRun, recipe: Option<String>) -> PlanOutput<'a> {
        PlanOutput {
            gpus: run.gpus,
            layout: run.layout.candidate.to_string(),
            chosen: &run.layout.candidate,
            recipe,
            step_time_s: run.layout.step_time_s,
            tokens_per_s_per_gpu: run.tokens_per_s_per_gpu,
            mfu: run.mfu,
            spare_bytes: run.layout.memory.free_bytes,
            memory: run.layout.memory.verdict(),
            confidence: run.layout.confidence,
            days: run.days,
            days_range: run.time.days(),
            days_as_measured: run.days_as_measured,
            cost: run.expected_cost,
            cost_range: run.cost.map(|cost| cost.total),
            mwh: run.energy.mwh,
            time: &run.time,
            cost_detail: run.cost.as_ref(),
        }
    }
}

impl<'a> From<&PlanRow<'a>> for PlanOutput<'a> {
    fn from(row: &PlanRow<'a>) -> PlanOutput<'a> {
        PlanOutput::new(row.run, row.recipe.map(ToString::to_string))
    }
}

impl From<&SearchCounts> for ConsideredOutput {
    fn from(counts: &SearchCounts) -> ConsideredOutput {
        let discarded = Rule::ALL.into_iter().map(|rule| DiscardedOutput {
            rule,
            reason: rule.title(),
            layouts: counts.discarded_by(rule),
        });
        ConsideredOutput {
            layouts: counts.combinations,
            fitting: counts.fitting,
            slower: counts.slower,
            discarded: discarded.collect(),
        }
    }
}
