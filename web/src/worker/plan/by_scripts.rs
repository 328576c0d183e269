//! The answer for a GPU type by the launch scripts of plans.

use crate::deadline;
use crate::message::search::FoundByScripts;
use crate::message::search::ScriptEffect;
use crate::search_worker::found;
use trainplan_shared::link;
use trainplan_shared::question::{PlanScript, PlannedRun, Survey};

/// Returns the answer to a question for the GPU type with an index; none if there is none.
pub(super) fn find(query: &str, index: usize) -> Option<FoundByScripts> {
    let question = deadline::question(link::read(query).spec).ok()?;
    let offer = question.offers.get(index)?;
    let (answer, script) = Survey::new(&question, offer).listing(found::LISTED).finish_as_launched();
    let plan = |run: &PlannedRun| found::plan(&question, offer, run);
    let (slowdown, may_lack_memory) = match &script {
        Some(PlanScript::Other(plan)) => (plan.script.slowdown, plan.script.may_lack_memory),
        _ => (1.0, false),
    };
    let is_unavailable = matches!(script, Some(PlanScript::Unavailable(_)));
    Some(FoundByScripts {
        query: query.to_string(),
        offer: index,
        points: answer.points.iter().map(plan).collect(),
        in_bf16: answer.launched_in_bf16(&question, offer).as_ref().map(|run| Box::new(plan(run))),
        answer: found::answer(&question, offer, &answer),
        // The page learns it with the new plans, from `script_effect`.
        effect: ScriptEffect { slowdown, may_lack_memory, is_unavailable, runs_megatron_lm: false },
    })
}
