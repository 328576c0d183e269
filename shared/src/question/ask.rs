//! The planner's question.

use super::batches::GlobalBatches;
use crate::catalog::{Gpu, Model};
use crate::choices::choices;
use crate::cost::Price;
use crate::decimal::parse_decimal;
use crate::estimate::Interval;
use crate::field::Field;
use crate::gpu_counts::GpuCounts;
use crate::options::TrainingOptions;
use crate::planning::RunSettings;
use crate::precision::Dtype;
use crate::problem::Problem;
use crate::range::ValueRange;
use crate::search::{Locks, StackRules};
use crate::sorting::sorted;
use crate::spec::Spec;
use crate::units::is_same;
use std::borrow::Cow;
use std::str::FromStr;

/// A training run to plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The typed fields.
    pub spec: Spec,
    /// The model.
    pub model: Cow<'static, Model>,
    /// Tokens to train.
    pub tokens: f64,
    /// Whether the tokens are the compute-optimal number, because none was given.
    pub tokens_are_assumed: bool,
    /// Tokens of a sequence.
    pub seq_len: u32,
    /// Global batch sizes to choose from.
    pub gbs: GlobalBatches,
    /// The GPU types to compare.
    pub offers: Vec<GpuOffer>,
    /// The numbers of GPUs to search.
    pub counts: GpuCounts,
    /// What the run must reach.
    pub goal: Goal,
    /// How likely a plan must meet the deadline and the budget.
    pub chance: Chance,
    /// The most that the run may cost, beside a deadline; none with another goal.
    pub max_cost: Option<f64>,
    /// Whether the goal is assumed, because neither it nor numbers of GPUs nor an objective were given.
    pub goal_is_assumed: bool,
    /// Which of the plans that reach it is best.
    pub objective: Objective,
    /// Values that the search must use or avoid.
    pub locks: Locks,
    /// Memory to keep free on each GPU, in bytes.
    pub headroom_bytes: f64,
    /// Failures, saves, prices and power.
    pub settings: RunSettings,
}

/// A precision that a question could permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrecisionChoice {
    /// The precision.
    pub dtype: Dtype,
    /// Whether the search uses it on any GPU type.
    pub is_permitted: bool,
}

impl Question {
    /// Returns the precisions in which the software can compute on any of the GPU types. They include `Fp8`, which leaves the
    /// scaling open, only if that is permitted.
    pub fn precision_choices(&self) -> Vec<PrecisionChoice> {
        let computes = |dtype: Dtype| {
            let can = |offer: &GpuOffer| {
                StackRules::of(offer.options.software.base()).computes_in(dtype, &offer.gpu)
            };
            self.offers.iter().any(can)
        };
        let choice = |dtype: Dtype| PrecisionChoice {
            dtype,
            is_permitted: self.offers.iter().any(|offer| offer.dtypes.contains(&dtype)),
        };
        let choices = Dtype::ALL.into_iter().filter(|dtype| computes(*dtype)).map(choice);
        choices.filter(|choice| choice.is_permitted || choice.dtype != Dtype::Fp8).collect()
    }
}

/// A GPU type with what it costs and runs.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuOffer {
    /// The GPU type.
    pub gpu: Cow<'static, Gpu>,
    /// Precisions to choose from.
    pub dtypes: Vec<Dtype>,
    /// The software and what the search does not choose.
    pub options: TrainingOptions,
    /// Price of a GPU-hour: the user's, or the assumed one of the form of purchase; none if unknown.
    pub price: Option<Price>,
    /// Price of a GPU-hour on demand, if `price` is the assumed one of a reservation.
    pub on_demand: Option<Price>,
}

impl GpuOffer {
    /// Returns the offer with BF16 as its only precision; none if BF16 is not one of several.
    pub fn in_bf16(&self) -> Option<GpuOffer> {
        let is_another = self.dtypes.len() > 1 && self.dtypes.contains(&Dtype::Bf16);
        is_another.then(|| GpuOffer { dtypes: vec![Dtype::Bf16], ..self.clone() })
    }

    /// Returns how many times as much a run costs on demand as with the assumed reservation: the ratios of the low prices, of their
    /// middles and of the high ones, in this order; none if another price is used.
    pub fn on_demand_factor(&self) -> Option<[f64; 3]> {
        let points = |price: Price| {
            let ValueRange { low, high } = price.per_gpu_hour;
            [low, price.middle().per_gpu_hour.high, high]
        };
        let (on_demand, reserved) = (points(self.on_demand?), points(self.price?));
        Some([0, 1, 2].map(|point| on_demand[point] / reserved[point]))
    }
}

/// What a run must reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// Done within days, with failures.
    Deadline(f64),
    /// For a budget.
    Budget(f64),
    /// Nothing but the objective.
    Open,
}

choices! {
    /// Which of the plans that reach the goal is best.
    Objective of Field::Objective {
        /// The fewest GPUs.
        FewestGpus "fewest-gpus" "Fewest GPUs",
        /// The fewest days.
        Fastest "fastest" "Fastest",
        /// The fewest days at a cost that is little above the lowest.
        Worthwhile "worthwhile" "Fastest without much waste",
        /// The lowest cost.
        Cheapest "cheapest" "Cheapest",
        /// The most tokens for the budget.
        MostTokens "most-tokens" "Most tokens",
    }
}

/// The properties of a GPU type's best plan that decide which type is best.
#[derive(Debug, Clone, Copy)]
pub struct Contender<C> {
    /// Number of GPUs.
    pub gpus: u32,
    /// Days to train.
    pub days: f64,
    /// Cost with its range; none without a price.
    pub cost: Option<Interval>,
    /// How far the prediction can be trusted: more is better.
    pub confidence: C,
    /// The factor on the days, and so on the GPUs and the cost, before plans are compared: [`doubt`] for a GPU type that nobody
    /// measured, otherwise 1.
    pub doubt: f64,
}

/// Returns the [`Contender::doubt`] of a plan on a GPU type that nobody measured: the slow end of its range as a multiple of the expected
/// days. So it comes before another only if the difference is larger than its uncertainty.
pub fn doubt(expected_days: f64, slowest_days: f64) -> f64 {
    (slowest_days / expected_days).max(1.0)
}

impl<C> Contender<C> {
    fn counted_gpus(&self) -> f64 {
        f64::from(self.gpus) * self.doubt
    }

    fn counted_days(&self) -> f64 {
        self.days * self.doubt
    }

    fn counted_cost(&self) -> Option<Interval> {
        let Interval { low, mid, high } = self.cost?;
        Some(Interval { low: low * self.doubt, mid: mid * self.doubt, high: high * self.doubt })
    }
}

/// Plans that differ by at most this share in the objective are equally good, because no prediction is more
/// exact.
const AS_GOOD: f64 = 0.05;

impl Objective {
    /// Returns the places of plans of different GPU types, the best one first.
    ///
    /// For a deadline, plans whose cost is within the uncertainty of the lowest come in the order of their number of GPUs, and then
    /// those that clearly cost more: a cost whose range doesn't overlap that of the cheapest is a better reason than the number of
    /// GPUs, which differ between types. Without a price for every plan, only the number of GPUs counts. Other objectives order by
    /// days or by cost. Plans that are nearly as good as the best one come in the order of confidence.
    pub fn across_gpu_types<C: Ord>(self, plans: &[Contender<C>]) -> Vec<usize> {
        let is_priced = plans.iter().all(|plan| plan.cost.is_some());
        let costs = plans.iter().filter_map(Contender::counted_cost);
        let cheapest = costs.min_by(|one, other| one.mid.total_cmp(&other.mid));
        let cheapest = cheapest.filter(|_| is_priced && self == Objective::FewestGpus);
        let is_dear = |plan: &Contender<C>| {
            let costs = cheapest.zip(plan.counted_cost());
            costs.is_some_and(|(cheapest, cost)| cost.low > cheapest.high)
        };
        let cost = |plan: &Contender<C>| plan.counted_cost().map_or(f64::INFINITY, |cost| cost.mid);
        let value = |plan: &Contender<C>| match self {
            Objective::Fastest => plan.counted_days(),
            Objective::FewestGpus if !is_dear(plan) => plan.counted_gpus(),
            Objective::FewestGpus | Objective::Worthwhile | Objective::Cheapest | Objective::MostTokens => {
                cost(plan)
            }
        };
        let least = plans.iter().filter(|plan| !is_dear(plan)).map(value).fold(f64::INFINITY, f64::min);
        let is_as_good = |plan: &Contender<C>| !is_dear(plan) && value(plan) <= least * (1.0 + AS_GOOD);
        let places: Vec<usize> = (0..plans.len()).collect();
        sorted(&places, |one, other| {
            let (one, other) = (&plans[*one], &plans[*other]);
            is_dear(one).cmp(&is_dear(other)).then_with(|| match is_as_good(one) && is_as_good(other) {
                true => other.confidence.cmp(&one.confidence).then_with(|| match self {
                    Objective::FewestGpus => {
                        let by_gpus = one.counted_gpus().total_cmp(&other.counted_gpus());
                        by_gpus.then(cost(one).total_cmp(&cost(other)))
                    }
                    _ => one.counted_days().total_cmp(&other.counted_days()),
                }),
                false => value(one).total_cmp(&value(other)),
            })
        })
    }

    /// Returns the rule of [`Objective::across_gpu_types`] after "First": "the fewest GPUs, of the GPU types that don't clearly cost
    /// more than the cheapest".
    pub const fn first_rule(self) -> &'static str {
        match self {
            Objective::FewestGpus => {
                "the fewest GPUs, of the GPU types that don't clearly cost more than the cheapest"
            }
            Objective::Fastest => "the fewest days",
            Objective::Worthwhile | Objective::Cheapest | Objective::MostTokens => "the lowest cost",
        }
    }

    /// Returns why a plan comes before that of another GPU type in [`Objective::across_gpu_types`], about the first GPU type: "it
    /// costs less"; none if they are as good, or if it is better in every known way, which needs no explanation.
    pub fn why_first<C: Ord>(self, first: &Contender<C>, other: &Contender<C>) -> Option<&'static str> {
        let is_less = |one: f64, than: f64| one < than && !is_same(one, than);
        // Plans that are nearly as good are ordered by something else.
        let is_clearly_less = |one: f64, than: f64| one * (1.0 + AS_GOOD) < than;
        // A type counts as worse if it is unmeasured, but that alone is not a reason.
        let is_better_known = first.confidence > other.confidence || first.doubt < other.doubt;
        let known = is_better_known.then_some("its speed is better known");
        let is_faster = || is_less(first.counted_days(), other.days).then_some("it is faster");
        let costs = first.counted_cost().zip(other.cost);
        match self {
            Objective::FewestGpus => {
                let (gpus, than) = (first.counted_gpus(), f64::from(other.gpus));
                let is_as_cheap = costs.is_none_or(|(cost, than)| !is_less(than.mid, cost.mid));
                // The comparison says what is better in both ways.
                match costs.is_some_and(|(cost, than)| cost.high < than.low) {
                    true => (gpus >= than).then_some("it clearly costs less"),
                    false if is_clearly_less(gpus, than) => (!is_as_cheap).then_some("it needs fewer GPUs"),
                    false => known.or((gpus < than && !is_as_cheap).then_some("it needs fewer GPUs")),
                }
            }
            Objective::Fastest if is_clearly_less(first.counted_days(), other.days) => Some("it is faster"),
            Objective::Fastest => known.or_else(is_faster),
            Objective::Worthwhile | Objective::Cheapest | Objective::MostTokens => match costs {
                Some((cost, than)) if is_clearly_less(cost.mid, than.mid) => Some("it costs less"),
                _ => known.or_else(is_faster),
            },
        }
    }
}

choices! {
    /// How likely a plan must meet a deadline or a budget.
    Chance {
        /// The slow end of its range of days meets the deadline, and the expensive end of its range of costs the budget.
        NineInTen "9-in-10" "9 times in 10",
        /// Its expected days and its expected cost do.
        Even "even" "5 times in 10",
    }
}

impl FromStr for Chance {
    type Err = Problem;

    /// Reads the id, a fraction or a percentage: `9-in-10`, `0.9` or `90%`.
    fn from_str(text: &str) -> Result<Chance, Problem> {
        let wanted = text.trim();
        let fraction = match wanted.strip_suffix('%') {
            Some(percent) => parse_decimal(percent.trim_end()).map(|percent| percent / 100.0),
            None => parse_decimal(wanted),
        };
        let is_wanted =
            |chance: &Chance| wanted.eq_ignore_ascii_case(chance.id()) || fraction == Some(chance.fraction());
        let found = Chance::ALL.into_iter().find(is_wanted);
        found.ok_or_else(|| Problem::unknown(Field::Chance, text, Chance::ALL.map(Chance::id)))
    }
}

impl Chance {
    /// Returns the chance as a fraction.
    const fn fraction(self) -> f64 {
        match self {
            Chance::NineInTen => 0.9,
            Chance::Even => 0.5,
        }
    }

    /// The default chance of plans. A plan that misses its deadline or its budget every other time is of little use, and more
    /// GPUs for fewer days cost about the same.
    pub const USUAL: Chance = Chance::NineInTen;

    /// Returns the other one.
    #[must_use]
    pub const fn other(self) -> Chance {
        match self {
            Chance::NineInTen => Chance::Even,
            Chance::Even => Chance::NineInTen,
        }
    }
}

/// Days of the deadline that is assumed where nothing says how large the run may be.
pub(super) const USUAL_DAYS: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::{Chance, Contender, Objective, doubt};
    use crate::estimate::Interval;

    fn spread(mid: f64) -> Interval {
        Interval { low: mid * 0.9, mid, high: mid * 1.1 }
    }

    #[test]
    fn the_reason_for_the_first_gpu_type_is_what_orders_them() {
        let plan = |gpus: u32, days: f64, cost: f64, confidence: u32| Contender {
            gpus,
            days,
            cost: Some(spread(cost)),
            confidence,
            doubt: 1.0,
        };
        let why = |objective: Objective, plans: [Contender<u32>; 2]| {
            let order = objective.across_gpu_types(&plans);
            (order[0], objective.why_first(&plans[order[0]], &plans[order[1]]))
        };
        let [h100, b200] = [plan(1000, 58.0, 4e6, 1), plan(500, 59.0, 3e6, 1)];
        assert_eq!(why(Objective::FewestGpus, [h100, b200]), (1, None));
        let many = plan(2000, 59.0, 3e6, 1);
        assert_eq!(why(Objective::FewestGpus, [h100, many]), (1, Some("it clearly costs less")));
        // Their ranges overlap.
        let slightly_cheaper = plan(2000, 59.0, 3.8e6, 1);
        assert_eq!(why(Objective::FewestGpus, [slightly_cheaper, h100]), (1, Some("it needs fewer GPUs")));
        // Within 5 %, confidence decides.
        let known = plan(520, 59.0, 3.1e6, 2);
        assert_eq!(why(Objective::FewestGpus, [b200, known]), (1, Some("its speed is better known")));
        let fewer = plan(400, 59.0, 3.1e6, 1);
        assert_eq!(why(Objective::FewestGpus, [known, fewer]), (1, None));
        assert_eq!(why(Objective::FewestGpus, [b200, fewer]), (1, Some("it needs fewer GPUs")));
        assert_eq!(why(Objective::Fastest, [b200, plan(500, 50.0, 4e6, 1)]), (1, Some("it is faster")));
        assert_eq!(why(Objective::Cheapest, [b200, b200]), (0, None));
    }

    #[test]
    fn a_gpu_type_that_nobody_measured_comes_first_only_beyond_its_uncertainty() {
        let plan = |gpus: u32, doubt: f64| Contender { gpus, days: 50.0, cost: None, confidence: 1, doubt };
        let first = |unmeasured: Contender<u32>| {
            let plans = [unmeasured, plan(288, 1.0)];
            let order = Objective::FewestGpus.across_gpu_types(&plans);
            (order[0], Objective::FewestGpus.why_first(&plans[order[0]], &plans[order[1]]))
        };
        assert_eq!(first(plan(200, 1.0)), (0, None));
        // 200 may turn out to be 340.
        assert_eq!(first(plan(200, doubt(35.0, 59.5))), (1, Some("its speed is better known")));
        assert_eq!(first(plan(144, doubt(35.0, 59.5))), (0, None));
        let cost = |doubt: f64, cost: f64| Contender { cost: Some(spread(cost)), ..plan(200, doubt) };
        let plans = [cost(1.7, 3e6), cost(1.0, 4e6)];
        assert_eq!(Objective::Cheapest.across_gpu_types(&plans), [1, 0]);
    }

    #[test]
    fn a_chance_is_also_a_fraction_or_a_percentage() {
        for text in ["9-in-10", "9-IN-10", "0.9", "90%", " 90 % ", "90.0%"] {
            assert_eq!(text.parse(), Ok(Chance::NineInTen), "{text}");
        }
        for text in ["even", "0.5", ".5", "50%"] {
            assert_eq!(text.parse(), Ok(Chance::Even), "{text}");
        }
        for text in ["", "%", "90", "0.8", "80%", "sure"] {
            assert!(text.parse::<Chance>().is_err(), "{text}");
        }
    }
}
