//! What launch scripts make of the plans that were found, and the answers by launch scripts.

use super::{Findings, OfferFindings};
use crate::message::search::{FoundByScripts, ScriptEffect};

impl Findings {
    /// Returns the GPU types whose plans must be searched by launch scripts, because that of the best plan doesn't run it as planned: their
    /// indices, after the question. None while the latest question is searched.
    pub(in crate::pages::plan) fn by_scripts(&self) -> Option<String> {
        let mut text = self.query.clone();
        for index in (0..self.offers.len()).filter(|index| self.is_provisional(*index)) {
            text += &format!(" {index}");
        }
        (text != self.query).then_some(text)
    }

    /// Whether the plans of a GPU type are searched again by launch scripts, so that its answer may change.
    pub(in crate::pages::plan) fn is_provisional(&self, index: usize) -> bool {
        let is_slowed = |offer: &OfferFindings| {
            let plan = offer.answer.as_ref().and_then(|answer| answer.plan.as_ref());
            let effect = plan.and_then(|plan| effect_on(&self.scripts, &plan.query));
            offer.script.is_none() && effect.is_some_and(|effect| !effect.is_none() || effect.is_unavailable)
        };
        self.is_done && self.next.is_none() && self.offers.get(index).is_some_and(is_slowed)
    }

    /// Keeps the answer for a GPU type by launch scripts, if it is one to this question.
    pub(in crate::pages::plan) fn hear_by_scripts(&mut self, found: FoundByScripts) {
        let FoundByScripts { query, offer, answer, points, in_bf16, effect } = found;
        let Some(offer) = self.offers.get_mut(offer).filter(|_| query == self.query) else { return };
        // The question may not contain the round numbers of GPUs, which only the chart shows.
        for point in &mut offer.points {
            *point = point.slowed(effect.slowdown);
        }
        for point in points {
            offer.add(point);
        }
        offer.in_bf16 = Some(in_bf16);
        offer.answer = Some(answer);
        offer.script = Some(effect);
    }

    /// Returns the names of the GPU types on which the launch script of the best plan runs Megatron-LM in the place of the planned
    /// software.
    pub(in crate::pages::plan) fn on_megatron_lm(&self) -> Vec<String> {
        let runs_it = |offer: &&OfferFindings| {
            let plan = offer.answer.as_ref().and_then(|answer| answer.plan.as_ref());
            let effect = plan.and_then(|plan| effect_on(&self.scripts, &plan.query));
            effect.is_some_and(|effect| effect.runs_megatron_lm)
        };
        self.offers.iter().filter(runs_it).map(|offer| offer.gpu.name.clone()).collect()
    }

    /// Returns the queries of the plans whose launch scripts matter: the best plan of each GPU type.
    pub(in crate::pages::plan) fn queries_to_launch(&self) -> Vec<String> {
        let best = self.offers.iter().filter_map(|offer| offer.answer.as_ref()?.plan.as_ref());
        best.map(|plan| plan.query.clone()).collect()
    }
}

/// Returns what the launch script of a plan, given as a query, does; none if it is not known.
pub(in crate::pages::plan) fn effect_on(
    scripts: &[(String, ScriptEffect)],
    query: &str,
) -> Option<ScriptEffect> {
    scripts.iter().find(|(plan, _)| plan == query).map(|(_, effect)| *effect)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{answered, plan};
    use super::*;
    use crate::message::search::{FoundAnswer, FoundPlan};

    #[test]
    fn plans_have_the_figures_of_launch_scripts_where_these_differ() {
        let of =
            |query: &str, gpus: u32, days: f64| FoundPlan { query: query.into(), ..plan(gpus, days, 4e6) };
        let mut findings =
            answered(&[("H100", Some(of("a", 1024, 55.0))), ("B200", Some(of("b", 512, 55.0)))]);
        findings.query = "t=5T".into();
        findings.offers[1].points = vec![of("c", 256, 110.0), of("b", 512, 55.0)];
        assert_eq!(
            (findings.queries_to_launch(), findings.by_scripts()),
            (vec!["a".into(), "b".into()], None)
        );
        let effect = |slowdown: f64| ScriptEffect {
            slowdown,
            may_lack_memory: false,
            is_unavailable: false,
            runs_megatron_lm: false,
        };
        findings.scripts = vec![("a".into(), effect(1.0)), ("b".into(), effect(1.2))];
        assert_eq!(findings.by_scripts().as_deref(), Some("t=5T 1"));
        assert_eq!([0, 1].map(|index| findings.is_provisional(index)), [false, true]);
        assert!(findings.on_megatron_lm().is_empty());
        findings.scripts[0].1.runs_megatron_lm = true;
        assert_eq!(findings.on_megatron_lm(), ["H100"]);
        let found = FoundByScripts {
            query: "t=5T".into(),
            offer: 1,
            answer: FoundAnswer { plan: Some(of("d", 640, 50.0)), ..FoundAnswer::default() },
            points: vec![of("d", 640, 50.0), of("b", 512, 66.0)],
            in_bf16: None,
            effect: effect(1.1),
        };
        let mut other = findings.clone();
        other.hear_by_scripts(FoundByScripts { query: "t=6T".into(), ..found.clone() });
        assert_eq!(other, findings);
        findings.hear_by_scripts(found);
        assert!(!findings.is_provisional(1));
        let points: Vec<(u32, f64)> =
            findings.offers[1].points.iter().map(|point| (point.gpus, point.days.mid.round())).collect();
        assert_eq!(points, [(256, 121.0), (512, 66.0), (640, 50.0)]);
        assert_eq!(findings.best_plan_on("b200").map(|plan| plan.gpus), Some(640));
        // It is asked once.
        findings.scripts.push(("d".into(), effect(1.1)));
        assert_eq!(findings.by_scripts(), None);
        assert_eq!([0, 1].map(|index| findings.badge(index)), [None, Some("Best")]);
        findings.offers[1].script = Some(ScriptEffect { may_lack_memory: true, ..effect(1.1) });
        assert_eq!([0, 1].map(|index| findings.badge(index)), [Some("Best"), None]);
    }
}
