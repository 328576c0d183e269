//! A layout on a number of GPUs, with what the whole run takes.

use super::{BeyondBudget, Chance, GpuOffer, Question};
use crate::cost::{Power, Price, RunCost, RunEnergy};
use crate::estimate::{Interval, MUCH_BY_SOFTWARE};
use crate::field::Field;
use crate::flops::ModelFlops;
use crate::goodput::{RunLoad, RunTime, checkpoint_bytes};
use crate::search::{LayoutSearch, RankedLayout, SearchSpace};
use crate::spec::Spec;
use crate::stack::Stack;
use crate::units::TERA;

/// The default number of layouts in an answer.
pub(super) const LISTED_LAYOUTS: usize = 10;

/// A layout on a number of GPUs, with the time, the cost and the energy of the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRun {
    /// Number of GPUs that train.
    pub gpus: u32,
    /// The layout and its step time.
    pub layout: RankedLayout,
    /// Model FLOPs utilization, a fraction, with attention counted in full.
    pub mfu: f64,
    /// Tokens per second of one GPU.
    pub tokens_per_s_per_gpu: f64,
    /// Days without and with failures, as ranges.
    pub time: RunTime,
    /// Days with failures at the predicted step time, and at the middle of the failure rates.
    pub days: f64,
    /// The expected days with the software of the nearest measured run of the model on the GPU type; none if the plan's software was
    /// measured there, or that one is hardly slower.
    pub days_as_measured: Option<f64>,
    /// Cost as a range; none without a price.
    pub cost: Option<RunCost>,
    /// Cost at the expected days and the middle of the prices: what a reader gets who multiplies them.
    pub expected_cost: Option<f64>,
    /// Energy.
    pub energy: RunEnergy,
}

impl PlannedRun {
    /// Returns the whole run of a layout.
    pub fn new(question: &Question, offer: &GpuOffer, gpus: u32, layout: RankedLayout) -> PlannedRun {
        let architecture = &question.model.architecture;
        let (gbs, step_time_s) = (f64::from(layout.candidate.gbs), layout.step_time_s);
        let load = RunLoad {
            gpus,
            gpus_per_node: offer.gpu.gpus_per_node,
            step_time_s,
            steps: (question.tokens / (gbs * f64::from(question.seq_len))).ceil(),
            checkpoint_bytes: checkpoint_bytes(architecture.parameters()),
        };
        let settings = &question.settings;
        let time = RunTime::of(&load, &settings.disruptions);
        let expected = load.expected(&settings.disruptions);
        let dtype = layout.candidate.dtype;
        let gpu = &offer.gpu;
        let power = Power::of(gpu, settings.power);
        let cost = |time: &RunTime, price: Price| settings.cost(time, question.tokens, price, power);
        let peak = gpu.mfu_tflops(dtype);
        let flops = ModelFlops::per_sequence_by_blocks(architecture, question.seq_len, false);
        let per_gpu = gbs / step_time_s.mid / f64::from(gpus);
        PlannedRun {
            gpus,
            layout,
            mfu: flops * per_gpu / (peak * TERA),
            tokens_per_s_per_gpu: per_gpu * f64::from(question.seq_len),
            days: expected.high.days,
            days_as_measured: None,
            time,
            cost: offer.price.map(|price| cost(&time, price)),
            expected_cost: offer.price.map(|price| cost(&expected, price.middle()).total.high),
            energy: RunEnergy::of(&time, power, settings.electricity()),
        }
    }

    /// Returns the best plan of a search on a number of GPUs; none if no layout works there.
    pub(super) fn best_of(
        search: &LayoutSearch<'_>,
        question: &Question,
        offer: &GpuOffer,
        gpus: u32,
    ) -> Option<PlannedRun> {
        let run = |layout: RankedLayout| {
            let run = PlannedRun::new(question, offer, gpus, layout);
            let measured = run.with_measured_software(search.space(), question, offer);
            PlannedRun { days_as_measured: measured.map(|(_, run)| run.days), ..run }
        };
        let best = run(*search.best(gpus, 1).first()?);
        let is_near = |limit| !question.is_in_time(&best) && best.time.low.days <= limit;
        let may_be_in_time = question.most_days().is_some_and(is_near);
        if !may_be_in_time {
            return Some(best);
        }
        // One that is nearly as fast, or less certain but faster, may be in time.
        let listed = search.best(gpus, LISTED_LAYOUTS).into_iter().map(run);
        listed.into_iter().find(|run| question.is_in_time(run)).or(Some(best))
    }

    /// Returns the software of the nearest measured run of the model on the GPU type, and the same plan with it; none if the plan's
    /// software was measured there, or that one is hardly slower.
    pub(super) fn with_measured_software(
        &self,
        space: &SearchSpace<'_>,
        question: &Question,
        offer: &GpuOffer,
    ) -> Option<(Stack, PlannedRun)> {
        let (software, layout) = space.with_measured_software(&self.layout.candidate, self.gpus)?;
        let is_slower = layout.s_per_sequence() >= self.layout.s_per_sequence() * (1.0 + MUCH_BY_SOFTWARE);
        is_slower.then(|| (software, PlannedRun::new(question, offer, self.gpus, layout)))
    }

    /// Returns the days within which such a run ends with a chance.
    pub fn days_with(&self, chance: Chance) -> f64 {
        match chance {
            // The range doesn't count that nobody measured the software.
            Chance::NineInTen => self.days_as_measured.unwrap_or(0.0).max(self.time.high.days),
            Chance::Even => self.days,
        }
    }

    /// Returns the cost within which such a run stays with a chance; none without a price.
    pub fn cost_with(&self, chance: Chance) -> Option<f64> {
        let (cost, expected) = (self.cost?, self.expected_cost?);
        Some(match chance {
            Chance::NineInTen => {
                // The range doesn't count that nobody measured the software.
                let as_measured = self.days_as_measured.map_or(0.0, |days| expected * days / self.days);
                as_measured.max(cost.total.high)
            }
            Chance::Even => expected,
        })
    }

    /// Returns the cost on demand with its range; none if the price is not the assumed one of a reservation, or that on demand is
    /// unknown.
    pub fn on_demand_cost(&self, offer: &GpuOffer) -> Option<Interval> {
        let ([low, mid, high], total) = (offer.on_demand_factor()?, self.cost?.total);
        Some(Interval { low: total.low * low, mid: self.expected_cost? * mid, high: total.high * high })
    }

    /// Returns what would exceed the budget at another price than its share of a reservation; nothing without a budget.
    pub fn beyond_budget(&self, question: &Question, offer: &GpuOffer) -> BeyondBudget {
        let Some(budget) = question.budget() else { return BeyondBudget::default() };
        let price = offer.price.filter(|price| price.term_beyond(self.days).is_some());
        let term = price.and_then(|price| Some(price.whole_term()?.times(self.time.paid_gpus.into())));
        BeyondBudget {
            whole_term: term.is_some_and(|term| term.low > budget),
            on_demand: self.on_demand_cost(offer).is_some_and(|cost| cost.mid > budget),
        }
    }

    /// Returns the fields of its scenario: the model, the GPUs and the layout.
    pub fn spec(&self, question: &Question, offer: &GpuOffer) -> Spec {
        let kept = [Field::Model, Field::SeqLen, Field::Tokens, Field::Stack, Field::Overlap];
        let kept = kept.into_iter().chain([Field::GemmTflops, Field::ClusterFactor, Field::Convention]);
        let typed = kept.filter_map(|field| Some((field, question.spec.get(field)?)));
        let spec = typed.fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
        let spec = spec
            .with(Field::Model, question.model.id.as_str())
            .with(Field::Gpu, offer.gpu.id.as_str())
            .with(Field::Gpus, self.gpus.to_string());
        self.layout.candidate.apply(spec)
    }
}
