//! What launch scripts do otherwise than planned.

use crate::message::search::ScriptEffect;
use crate::pages::plan::findings::Findings;
use trainplan_shared::units::longer;

/// Returns what the launch scripts of the plans do otherwise than planned, as a sentence. The figures are those of the scripts.
pub(super) fn by_script(findings: &Findings) -> String {
    if findings.by_scripts().is_some() {
        return "Searching again with the step times of the launch scripts …".to_string();
    }
    let plans = findings.reaching().into_iter().filter_map(|index| {
        let offer = findings.offers.get(index)?;
        let effect = offer.script.filter(|effect| !effect.is_none())?;
        Some(format!("on {}, {}", offer.gpu.name, script_text(effect)))
    });
    let plans: Vec<String> = plans.collect();
    if plans.is_empty() {
        String::new()
    } else {
        format!("These figures are for the launch scripts: {}.", plans.join("; "))
    }
}

/// Returns how much longer than planned the steps of a launch script take, and whether it may not fit in memory: `21 % longer than
/// planned`.
fn script_text(ScriptEffect { slowdown, may_lack_memory, .. }: ScriptEffect) -> String {
    let time = if slowdown == 1.0 { "as long as planned".to_string() } else { longer(slowdown, "planned") };
    let lacks = if may_lack_memory { ", and may not fit in memory" } else { "" };
    time + lacks
}

/// Returns what the launch script of a plan does otherwise than planned, as sentences.
pub(in crate::pages::plan) fn script_sentence(effect: ScriptEffect) -> String {
    match effect {
        ScriptEffect { is_unavailable: true, .. } => {
            "No launch script can be written for this plan.".to_string()
        }
        ScriptEffect { slowdown: 1.0, .. } => format!("The launch script takes {}.", script_text(effect)),
        _ => format!("The launch script takes {}. These figures include that.", script_text(effect)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{for_budget, lead};
    use super::*;
    use crate::pages::plan::findings::tests::plan;

    #[test]
    fn the_times_of_launch_scripts_are_said_to_be_counted() {
        let mut findings = for_budget(plan(512, 60.0, 2e6));
        let effect = ScriptEffect {
            slowdown: 1.2,
            may_lack_memory: false,
            is_unavailable: false,
            runs_megatron_lm: false,
        };
        findings.offers[0].script = Some(effect);
        let rest = lead(&findings).1;
        assert!(
            rest.starts_with("These figures are for the launch scripts: on B200, 20 % longer than planned."),
            "{rest}"
        );
        let effect = ScriptEffect {
            slowdown: 1.0,
            may_lack_memory: true,
            is_unavailable: false,
            runs_megatron_lm: false,
        };
        assert_eq!(script_text(effect), "as long as planned, and may not fit in memory");
        assert_eq!(
            script_sentence(effect),
            "The launch script takes as long as planned, and may not fit in memory."
        );
    }
}
