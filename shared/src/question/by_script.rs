//! The search by launch scripts: which plan is the best one if each has the time and the cost of its script.

use super::{GpuAnswer, GpuOffer, PlanScript, PlannedRun, Question, Survey, TrainableTokens};
use crate::precision::Dtype;
use crate::sorting::order;

/// Layouts among which another one is sought if the launch script does not run the best one as planned: as many as the Plan page has.
const LAUNCHED_LAYOUTS: usize = 60;

impl Survey<'_> {
    /// Searches everything that is left. Returns the answer, and the launch script of the plan to show if it was written.
    ///
    /// The best plan has the time and the cost of its launch script. If the script of a plan is slower than planned, misses the goal or may
    /// lack memory, the best one may be another layout or another number of GPUs. Layouts that were passed over have the times of their own
    /// scripts, and are left out if these can't be relied on. The scripts of all other layouts and numbers of GPUs are taken to be as slow
    /// as that of the best plan.
    pub fn finish_as_launched(mut self) -> (GpuAnswer, Option<PlanScript>) {
        // Software that is not built on Megatron-Core is run without these scripts.
        let (question, offer) = (self.question, self.offer);
        if !offer.options.software.properties().transformer_engine {
            let answer = self.finish();
            let script = answer.best().map(|best| best.script(question, offer));
            return (answer, script);
        }
        // Those whose scripts were written, and plans whose scripts can't be relied on.
        let (mut scripts, mut unsure): (Vec<Launched>, Vec<PlannedRun>) = (Vec::new(), Vec::new());
        let pick = |points: &[PlannedRun]| question.choose(points).or_else(|| question.nearest(points));
        loop {
            // A slower script may need more GPUs, and the numbers below those are searched then.
            while self.step().is_ok() {}
            let Some(index) = pick(&self.points) else { break };
            let gpus = self.points[index].gpus;
            if scripts.iter().any(|known| known.gpus == gpus) {
                break;
            }
            let (run, script, passed) = self.best_launched(self.points[index].clone());
            match &script {
                PlanScript::AsPlanned => self.points[index] = run,
                PlanScript::Other(plan) if !plan.script.may_lack_memory => {
                    self.points[index] = plan.run.clone();
                }
                PlanScript::Other(_) | PlanScript::Unavailable(_) => {
                    self.points.remove(index);
                    self.has_no_plan(gpus);
                    // Its script counts too.
                    unsure.push(if let PlanScript::Other(plan) = &script { plan.run.clone() } else { run });
                }
            }
            scripts.push(Launched { gpus, script, passed });
        }
        if question.choose(&self.points).is_none() {
            // A plan whose script can't be relied on is better than none.
            self.points.extend(unsure);
            self.points.sort_by_key(|point| point.gpus);
        }
        let launched_on = |gpus: u32| scripts.iter().find(|known| known.gpus == gpus);
        let chosen = pick(&self.points).and_then(|index| launched_on(self.points[index].gpus));
        let best = match chosen.map(|chosen| &chosen.script) {
            Some(PlanScript::Other(plan)) => plan.script.slowdown,
            _ => 1.0,
        };
        // A faster one changes nothing, so that the best plan stays the best.
        let slowed = |run: PlannedRun| if best > 1.0 { run.slowed(question, offer, best) } else { run };
        for point in &mut self.points {
            if launched_on(point.gpus).is_none() {
                *point = slowed(point.clone());
            }
        }
        let listed = self.listed;
        let reordering = chosen.filter(|chosen| !chosen.passed.is_empty());
        if reordering.is_some() {
            self.listed = listed.max(LAUNCHED_LAYOUTS);
        }
        let mut answer = self.answer();
        answer.slowdown = best.max(1.0);
        let script = answer.shown().map(|run| match launched_on(run.gpus) {
            Some(launched) => launched.script.clone(),
            None => run.script(question, offer),
        });
        if let Some(chosen) = reordering {
            let as_launched = |run: PlannedRun| chosen.as_launched(&run).unwrap_or_else(|| slowed(run));
            answer.published = answer.published.map(|(recipe, run)| (recipe, as_launched(run)));
            let mut layouts = answer.layouts.into_iter();
            let first = layouts.next();
            // The same ones whatever is listed, so that a longer list begins like a shorter one.
            let near = layouts.by_ref().take(LAUNCHED_LAYOUTS - 1);
            let near: Vec<PlannedRun> = near.filter(|run| chosen.can_launch(run)).map(as_launched).collect();
            let all = first.into_iter().chain(in_order(&near)).chain(layouts.map(slowed));
            answer.layouts = all.take(listed.max(1)).collect();
            answer.first_is_moved_up &= match &answer.layouts[..] {
                [first, next, ..] => {
                    first.counted_days() > next.counted_days()
                        && question.is_in_time(first)
                        && !question.is_in_time(next)
                }
                _ => false,
            };
        }
        (answer, script)
    }

    /// Returns a plan with its launch script, and the other plans whose scripts were written. If the script does not run the plan as
    /// planned, it is the layout on as many GPUs that is fastest with its script.
    fn best_launched(&self, plan: PlannedRun) -> (PlannedRun, PlanScript, Vec<(PlannedRun, PlanScript)>) {
        let (question, offer, gpus) = (self.question, self.offer, plan.gpus);
        let search = self.search_of(&plan);
        let script = plan.script(question, offer);
        let (mut best, mut passed) = ((plan, script), Vec::new());
        if best.1 == PlanScript::AsPlanned {
            return (best.0, best.1, passed);
        }
        let is_good =
            |(run, script): &(PlannedRun, PlanScript)| question.reaches(run) && script.reaches_goal();
        for layout in search.best(gpus, LAUNCHED_LAYOUTS) {
            let run = PlannedRun::new(question, offer, gpus, layout);
            // A script is hardly faster than planned.
            if is_good(&best) && run.counted_days() >= best.1.counted_days(&best.0) {
                continue;
            }
            let measured = run.with_measured_software(search.space(), question, offer);
            let run = PlannedRun { days_as_measured: measured.map(|(_, run)| run.days), ..run };
            let script = run.script(question, offer);
            let other = (run, script);
            let is_faster = other.1.counted_days(&other.0) < best.1.counted_days(&best.0);
            let is_better =
                is_good(&other) && !is_good(&best) || is_good(&other) == is_good(&best) && is_faster;
            passed.push(if is_better { std::mem::replace(&mut best, other) } else { other });
        }
        (best.0, best.1, passed)
    }
}

/// A number of GPUs with the launch script of its plan.
struct Launched {
    gpus: u32,
    script: PlanScript,
    /// Plans with other layouts that were passed over, each with its script.
    passed: Vec<(PlannedRun, PlanScript)>,
}

impl Launched {
    /// Returns the plan with the layout of another one that was passed over, with its script.
    fn passed_with_layout(&self, run: &PlannedRun) -> Option<&(PlannedRun, PlanScript)> {
        self.passed.iter().find(|(passed, _)| passed.layout.candidate == run.layout.candidate)
    }

    /// Returns a plan that was passed over as its script runs it; none for all others, and without a script.
    fn as_launched(&self, run: &PlannedRun) -> Option<PlannedRun> {
        match self.passed_with_layout(run)? {
            (planned, PlanScript::AsPlanned) => Some(planned.clone()),
            (_, PlanScript::Other(plan)) => Some(plan.run.clone()),
            (_, PlanScript::Unavailable(_)) => None,
        }
    }

    /// Whether nothing is known that prevents the launch of a plan.
    fn can_launch(&self, run: &PlannedRun) -> bool {
        let passed = self.passed_with_layout(run);
        passed.is_none_or(|(planned, script)| script.counted_days(planned).is_finite())
    }
}

/// Returns plans on as many GPUs in the order of a search.
fn in_order(plans: &[PlannedRun]) -> impl Iterator<Item = PlannedRun> {
    let least_s = plans.iter().map(|run| run.layout.counted_s()).fold(f64::INFINITY, f64::min);
    let places = order(plans.len(), &|one, other| plans[one].layout.compare(&plans[other].layout, least_s));
    places.into_iter().map(move |place| plans[place].clone())
}

impl Question {
    /// Returns the most tokens that a GPU type can train with launch scripts, on as many GPUs as train the most as predicted; none without
    /// a layout or a price.
    pub(super) fn most_tokens_as_launched(&self, offer: &GpuOffer) -> Option<TrainableTokens> {
        let predicted = self.most_tokens_of(offer)?;
        // Software that is not built on Megatron-Core is run without these scripts.
        if !offer.options.software.properties().transformer_engine {
            return Some(predicted);
        }
        let question = Question { tokens: predicted.tokens, ..self.clone() };
        let mut survey = Survey::new(&question, offer);
        // It prepares the search of the batches that suit the number of GPUs.
        survey.best_run(predicted.run.gpus);
        let (run, script, _) = survey.best_launched(predicted.run.clone());
        match script {
            PlanScript::AsPlanned if run.layout.candidate == predicted.run.layout.candidate => {
                Some(predicted)
            }
            PlanScript::AsPlanned => question.within_limits(offer, &run),
            PlanScript::Other(plan) => question.within_limits(offer, &plan.run),
            PlanScript::Unavailable(_) => Some(predicted),
        }
    }
}

impl GpuAnswer {
    /// Returns the best plan by its launch script if only BF16 may be used; none if the best plan uses it, or another precision is not a
    /// choice.
    pub fn launched_in_bf16(&self, question: &Question, offer: &GpuOffer) -> Option<PlannedRun> {
        let offer = offer
            .in_bf16()
            .filter(|_| self.best().is_some_and(|run| run.layout.candidate.dtype != Dtype::Bf16))?;
        Survey::new(question, &offer).finish_as_launched().0.best().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::question::{ScriptRun, Unmet};
    use crate::spec::Spec;

    fn question(fields: &[(Field, &str)]) -> Question {
        fields
            .iter()
            .fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
            .question()
            .unwrap()
    }

    #[test]
    fn the_best_plan_takes_as_long_as_its_launch_script() {
        let fields = [
            (Field::Model, "llama3.1-70b"),
            (Field::GpuTypes, "b200"),
            (Field::Tokens, "10T"),
            (Field::Deadline, "60d"),
            (Field::Lock, "fsdp=on,tp=8"),
        ];
        let question = question(&fields);
        let offer = &question.offers[0];
        let planned = Survey::new(&question, offer).finish();
        let (answer, script) = Survey::new(&question, offer).finish_as_launched();
        let Some(PlanScript::Other(plan)) = &script else { panic!("{script:?}") };
        let ScriptRun { slowdown, days, planned_days, gpus, software, planned: of_plan, .. } = &plan.script;
        let best = answer.best().expect("a plan");
        assert_eq!((best.gpus, best.days, &answer.layouts[0]), (*gpus, plan.run.days, best));
        assert!(software.starts_with("Megatron-LM") && of_plan.starts_with("Megatron-Bridge"), "{software}");
        // Failures and saves are counted again.
        assert_eq!([days.mid, days.high], [plan.run.days, plan.run.time.high.days]);
        assert!((days.mid / planned_days.mid / slowdown - 1.0).abs() < 0.01);
        // A slower script never needs fewer GPUs for the deadline.
        assert!(plan.reaches_goal && question.reaches(best), "{best:?}");
        assert!(best.gpus >= planned.best().expect("a plan").gpus);
        // The scripts of other plans are taken to be as slow, those on fewer GPUs that a bolder deadline allows too.
        let of_planned = |run: &PlannedRun| planned.points.iter().find(|point| point.gpus == run.gpus);
        let slowed = answer.points.iter().filter_map(|point| Some(point.days / of_planned(point)?.days));
        let slowed: Vec<f64> = slowed.collect();
        assert!(slowed.len() > 9 && slowed.iter().all(|ratio| *ratio > 1.02), "{slowed:?}");
        let bolder = answer.with_other_chance.as_ref().expect("a plan");
        assert!(bolder.days <= 60.0 && answer.points.contains(bolder), "{bolder:?}");
    }

    #[test]
    fn a_layout_whose_script_reaches_the_goal_is_the_best_one() {
        let fields = [
            (Field::Model, "deepseek-v3"),
            (Field::GpuTypes, "a100"),
            (Field::GpuRange, "2048"),
            (Field::Tokens, "5T"),
            (Field::Deadline, "120d"),
        ];
        let question = question(&fields);
        let offer = &question.offers[0];
        // No release runs on A100, and Megatron-LM's flags don't turn on all of the planned software.
        let planned = Survey::new(&question, offer).finish();
        assert!(!planned.best().expect("a plan").script(&question, offer).reaches_goal());
        let (answer, script) = Survey::new(&question, offer).finish_as_launched();
        let best = answer.best().expect("a plan");
        assert!(question.reaches(best) && script.expect("a script").reaches_goal());
        assert_eq!(answer.layouts[0].layout.candidate, best.layout.candidate);
        assert_ne!(best.layout.candidate, planned.best().expect("a plan").layout.candidate);
    }

    #[test]
    fn a_plan_whose_every_script_is_too_slow_misses_the_goal() {
        let fields = [
            (Field::Model, "llama3.1-70b"),
            (Field::GpuTypes, "b200"),
            (Field::GpuRange, "512"),
            (Field::Tokens, "10T"),
            (Field::Lock, "fsdp=on,tp=8"),
            (Field::Chance, "even"),
        ];
        let days = |deadline: &str| {
            let question = question(&[&fields[..], &[(Field::Deadline, deadline)]].concat());
            let offer = &question.offers[0];
            let planned = Survey::new(&question, offer).finish();
            let (launched, _) = Survey::new(&question, offer).finish_as_launched();
            let expected = |answer: &GpuAnswer| answer.shown().expect("a plan").days;
            (expected(&planned), expected(&launched), planned.best().is_some(), launched.best().is_some())
        };
        let (planned, launched, ..) = days("900d");
        assert!(launched > planned, "{launched} {planned}");
        let (.., is_planned, is_launched) = days(&format!("{}d", planned * 1.002));
        assert_eq!((is_planned, is_launched), (true, false), "{planned} {launched}");
    }

    #[test]
    fn a_plan_that_misses_the_goal_has_the_figures_of_its_script_too() {
        let fields = [
            (Field::Model, "mixtral-8x7b"),
            (Field::GpuTypes, "b200"),
            (Field::GpuRange, "64"),
            (Field::Tokens, "10T"),
            (Field::Deadline, "20d"),
        ];
        let question = question(&fields);
        let offer = &question.offers[0];
        let planned = Survey::new(&question, offer).finish();
        let (answer, script) = Survey::new(&question, offer).finish_as_launched();
        let Some(PlanScript::Other(plan)) = &script else { panic!("{script:?}") };
        let Some(Unmet::TooSlow { days }) = answer.unmet else { panic!("{:?}", answer.unmet) };
        assert_eq!(answer.shown(), Some(&plan.run));
        assert!(plan.script.slowdown > 1.1 && days >= plan.run.time.high.days, "{days}");
        let Some(Unmet::TooSlow { days: planned }) = planned.unmet else { panic!("{:?}", planned.unmet) };
        assert!(days > planned, "{days} {planned}");
        // Other layouts are slower with their scripts.
        let best = plan.run.counted_days();
        assert!(answer.layouts.iter().all(|layout| layout.counted_days() >= 0.999 * best));
    }

    #[test]
    fn a_layout_that_is_passed_over_has_the_time_of_its_own_script() {
        // DeepEP does not work with this width, so that a script with experts on several nodes is slower than planned.
        let fields = [
            (
                Field::Model,
                "own:layers=44,hidden=2304,heads=36,kv_heads=4,head_dim=64,vocab=131072,gated=1,tied_embeddings=0,\
                 seq_len=8192,experts=112,top_k=8,moe_ffn=832,moe_layers=44,qk_norm=1",
            ),
            (Field::GpuTypes, "h100"),
            (Field::GpuRange, "256"),
            (Field::Tokens, "3T"),
        ];
        let question = question(&fields);
        let offer = &question.offers[0];
        let planned = Survey::new(&question, offer).finish().best().expect("a plan").clone();
        let (answer, _) = Survey::new(&question, offer).finish_as_launched();
        let best = answer.best().expect("a plan");
        assert_ne!(planned.layout.candidate, best.layout.candidate);
        // None is moved up, because all are ordered by the times of their scripts.
        assert!(!answer.first_is_moved_up && answer.layouts.len() > 5);
        let first = best.counted_days();
        assert!(answer.layouts.iter().all(|layout| layout.counted_days() >= first), "{:?}", answer.layouts);
        let PlanScript::Other(script) = planned.script(&question, offer) else { panic!("as planned") };
        assert!(script.run.counted_days() > first && script.run.days > planned.days);
    }

    #[test]
    fn the_most_tokens_are_as_many_as_the_launch_script_trains() {
        let fields = [
            (Field::Model, "mixtral-8x7b"),
            (Field::GpuTypes, "b200"),
            (Field::GpuRange, "64"),
            (Field::Deadline, "60d"),
            (Field::Objective, "most-tokens"),
        ];
        let asked = question(&fields);
        let offer = &asked.offers[0];
        let predicted = asked.most_tokens_of(offer).expect("tokens").tokens;
        let most = asked.with_most_tokens().unwrap();
        assert!(most.tokens < predicted, "{} {predicted}", most.tokens);
        let (answer, _) = Survey::new(&most, offer).finish_as_launched();
        assert!(answer.best().is_some_and(|best| most.reaches(best)), "{:?}", answer.unmet);
        // With fewer tokens, as many are named as can be trained.
        let fewer = question(&[&fields[..], &[(Field::Tokens, "10B")]].concat());
        let (answer, _) = Survey::new(&fewer, offer).finish_as_launched();
        let named = answer.most_tokens(&fewer, offer).expect("tokens").tokens;
        assert!(named < predicted && named >= most.tokens, "{named} {}", most.tokens);
    }
}
