//! Judgements of a plan: how it compares with another layout, and its doubtful points.

use super::{Goal, Objective, PlannedRun, Question};
use crate::estimate::{Interval, MemoryMargin, MemoryVerdict};
use crate::field::Field;
use crate::gpu_counts::GpuCounts;
use crate::message;
use crate::message::Message;
use crate::units::{group_digits, percent, rounded_count, significant};

/// An MFU below which a plan wastes its GPUs. Published runs of dense models reach 35 to 60 %, of sparse ones 20 to 45 %.
const LOW_MFU: f64 = 0.15;

/// Days of a plan that nobody would start: ten years.
const LONG_DAYS: f64 = 3652.5;

/// Tokens of a step beyond every published run: DeepSeek-V3 reached 63M.
const LARGE_BATCH_TOKENS: f64 = 60e6;

/// How many standard deviations the ends of an 80 % interval are from the middle of a normal distribution.
const END_OF_INTERVAL: f64 = 1.2816;

/// Returns how many of ten runs with this median and 80 % interval, of days or of costs, stay within a limit. Each half of the interval
/// is taken for half of a log-normal distribution.
pub fn in_time_of_ten(days: Interval, limit: f64) -> u32 {
    let side = if limit < days.mid { days.mid / days.low } else { days.high / days.mid };
    let deviations = END_OF_INTERVAL * libm::log(limit / days.mid) / libm::log(side);
    // The logistic function is within 1 % of the normal distribution.
    let share = 1.0 / (1.0 + libm::exp(-1.702 * deviations));
    if share.is_nan() {
        return 10 * u32::from(limit >= days.mid);
    }
    let of_ten = (share * 10.0).round() as u32;
    // Nine is the wanted chance, so a lower one is never rounded to it.
    if limit < days.high { of_ten.min(8) } else { of_ten }
}

/// Returns a number of ten as a chance: `about 6 times in 10`.
pub fn chance_text(of_ten: u32) -> String {
    match of_ten {
        0 => "less than 1 time in 10".to_string(),
        1 => "about 1 time in 10".to_string(),
        10 => "more than 9 times in 10".to_string(),
        of_ten => format!("about {of_ten} times in 10"),
    }
}

impl PlannedRun {
    /// Returns how many of ten such runs end within a limit.
    pub fn in_time_of_ten(&self, limit: f64) -> u32 {
        let (low, high) = (self.time.low.days, self.time.high.days);
        in_time_of_ten(Interval { low, mid: self.days, high }, limit)
    }

    /// Returns how many of ten such runs stay within a budget; none without a price. The ends of the range of prices count like those
    /// of an 80 % interval.
    pub fn within_budget_of_ten(&self, budget: f64) -> Option<u32> {
        let (total, mid) = (self.cost?.total, self.expected_cost?);
        Some(in_time_of_ten(Interval { low: total.low, mid, high: total.high }, budget))
    }

    /// Returns how many times as fast as `other` it is, per sequence, with the 80 % interval.
    ///
    /// The errors of the two predictions count as independent. Those of similar layouts are alike, so the interval is rather
    /// too wide.
    pub fn speed_over(&self, other: &PlannedRun) -> Interval {
        let mid = other.layout.s_per_sequence() / self.layout.s_per_sequence();
        let (own, its) = (self.layout.step_time_s, other.layout.step_time_s);
        let spread = |one: f64, two: f64| libm::hypot(libm::log(one), libm::log(two));
        let below = spread(own.high / own.mid, its.mid / its.low);
        let above = spread(own.mid / own.low, its.high / its.mid);
        Interval { low: mid * libm::exp(-below), mid, high: mid * libm::exp(above) }
    }

    /// Returns what to doubt in the plan, with the fields to change.
    pub fn cautions(&self, question: &Question) -> Vec<Message> {
        let facts = PlanFacts {
            mfu: self.mfu,
            days: self.days,
            batch_tokens: f64::from(self.layout.candidate.gbs) * f64::from(question.seq_len),
            memory: self.layout.memory,
            needs_its_gpus: !question.is_in_time(self) || self.has_fewest_gpus(question),
        };
        let spares = self.gpus_beside_spares(question);
        let spares = spares.map(|gpus| spares_in_addition(self.gpus, self.time.paid_gpus, gpus));
        facts.cautions().into_iter().chain(spares).collect()
    }

    /// Returns how many GPUs train if the spare nodes have to be among the only number of GPUs that the question names; none if it names
    /// no single number, if it names the spare nodes too, or if there are none.
    pub fn gpus_beside_spares(&self, question: &Question) -> Option<u32> {
        let is_single = matches!(&question.counts, GpuCounts::Only(counts) if counts.len() == 1);
        if !is_single || question.spec.get(Field::SpareNodes).is_some() {
            return None;
        }
        let node = (self.time.paid_gpus - self.gpus).checked_div(self.time.spare_nodes)?;
        let nodes = self.gpus.checked_div(node)?;
        Some(question.settings.disruptions.training_nodes(nodes) * node)
    }

    /// Whether the best plan shows that fewer GPUs miss the deadline: the objective is the fewest GPUs, and fewer
    /// were searched.
    fn has_fewest_gpus(&self, question: &Question) -> bool {
        let are_fewer_searched = match &question.counts {
            GpuCounts::Only(counts) => counts.iter().any(|count| *count < self.gpus),
            GpuCounts::UpTo(_) | GpuCounts::Range(..) => true,
        };
        let has_deadline = matches!(question.goal, Goal::Deadline(_));
        has_deadline && question.objective == Objective::FewestGpus && are_fewer_searched
    }
}

/// Returns that the spare GPUs of a plan are in addition to `gpus`, which were named, as a sentence and the beginning of another one:
/// what to do if the named GPUs are all.
pub fn gpus_in_all(gpus: u32, paid_gpus: u32) -> String {
    let [named, in_all, spare] =
        [gpus, paid_gpus, paid_gpus.saturating_sub(gpus)].map(|gpus| group_digits(gpus.into()));
    format!(
        "This takes {in_all} GPUs in all: {named} for training and {spare} spare. If you have {named} in all"
    )
}

/// Returns that the spare GPUs of a plan are in addition to `gpus`, which were named, and that `beside_spares` leave room for them.
fn spares_in_addition(gpus: u32, paid_gpus: u32, beside_spares: u32) -> Message {
    message![
        gpus_in_all(gpus, paid_gpus) + ", set ",
        Field::GpuRange,
        format!(" to {}, or ", group_digits(beside_spares.into())),
        Field::SpareNodes,
        " to 0 for none."
    ]
}

/// What may be absurd in a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanFacts {
    /// Model FLOPs utilization, a fraction.
    pub mfu: f64,
    /// Days with failures.
    pub days: f64,
    /// Tokens of a step.
    pub batch_tokens: f64,
    /// The free memory of the fullest GPU.
    pub memory: MemoryMargin,
    /// Whether fewer GPUs would not do: it takes longer than the question allows, or has the fewest GPUs that meet the deadline.
    pub needs_its_gpus: bool,
}

impl PlanFacts {
    /// Returns what to doubt in the plan, with the fields to change.
    pub fn cautions(&self) -> Vec<Message> {
        let mut cautions = Vec::new();
        if self.mfu < LOW_MFU {
            let wasted =
                format!("The MFU is only {}: most of the GPUs' time would be wasted.", percent(self.mfu));
            let less = match self.needs_its_gpus || self.days > LONG_DAYS {
                true => message![wasted, " A"],
                false => message![wasted, " Fewer GPUs (", Field::GpuRange, ") or a"],
            };
            let batch = message![" larger global batch (", Field::BatchTokens, ") would waste less."];
            cautions.push(less.and(batch));
        }
        if self.days > LONG_DAYS {
            cautions.push(message![
                format!(
                    "The run takes {} years. Use more GPUs (",
                    significant(self.days / LONG_DAYS * 10.0, 2)
                ),
                Field::GpuRange,
                ") or train fewer tokens (",
                Field::Tokens,
                ")."
            ]);
        }
        let memory = self.memory;
        if memory.verdict() == MemoryVerdict::TooClose {
            let gib = |bytes: f64| significant(bytes / f64::from(1 << 30), 2);
            cautions.push(message![
                format!(
                    "Memory is too close to call: {} GiB are free, but the estimate may be off by {} GiB. Test one step \
                     before you plan on it, or keep memory free (",
                    gib(memory.free_bytes),
                    gib(memory.error_bytes)
                ),
                Field::Headroom,
                ")."
            ]);
        }
        let tokens = self.batch_tokens;
        if tokens > LARGE_BATCH_TOKENS {
            cautions.push(message![
                format!(
                    "A step has {} tokens, more than we know of any published run. A model may learn less from each token. \
                     Set a smaller batch (",
                    rounded_count(tokens)
                ),
                Field::BatchTokens,
                " or ",
                Field::Gbs,
                ")."
            ]);
        }
        cautions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Front;
    use crate::question::Survey;
    use crate::spec::Spec;

    fn question(gpus: &str, tokens: &str) -> Question {
        let spec = Spec::default().with(Field::Model, "llama3.1-8b").with(Field::GpuTypes, "h100");
        spec.with(Field::GpuRange, gpus).with(Field::Tokens, tokens).question().unwrap()
    }

    #[test]
    fn a_layout_is_as_fast_as_itself_and_the_interval_is_wider_than_that_of_a_prediction() {
        let question = question("64", "1T");
        let layouts = Survey::new(&question, &question.offers[0]).finish().layouts;
        let (one, other) = (&layouts[0], &layouts[9]);
        assert_eq!(one.speed_over(one).mid, 1.0);
        let (speed, back) = (one.speed_over(other), other.speed_over(one));
        assert!(speed.mid >= 1.0 && speed.low < speed.mid && speed.mid < speed.high);
        assert!((speed.low * back.high - 1.0).abs() < 1e-12 && (speed.mid * back.mid - 1.0).abs() < 1e-12);
        let own = one.layout.step_time_s;
        assert!(speed.high / speed.mid > own.mid / own.low);
    }

    #[test]
    fn the_ends_of_an_interval_are_one_and_nine_of_ten() {
        let days = Interval { low: 52.0, mid: 59.0, high: 67.0 };
        let chances = [40.0, 52.0, 59.0, 60.0, 66.0, 67.0, 90.0].map(|limit| in_time_of_ten(days, limit));
        assert_eq!(chances, [0, 1, 5, 6, 8, 9, 10]);
        let sure = Interval { low: 59.0, mid: 59.0, high: 59.0 };
        assert_eq!([58.0, 59.0, 60.0].map(|limit| in_time_of_ten(sure, limit)), [0, 10, 10]);
        assert_eq!([1, 6].map(chance_text), ["about 1 time in 10", "about 6 times in 10"]);
    }

    #[test]
    fn only_an_absurd_plan_is_doubted() {
        let cautions = |gpus: &str, tokens: &str| {
            let question = question(gpus, tokens);
            let best = Survey::new(&question, &question.offers[0]).finish().best().unwrap().clone();
            let cautions = best.cautions(&question);
            cautions.iter().map(|caution| caution.text(Front::Search)).collect::<Vec<_>>()
        };
        assert_eq!(cautions("64", "1T"), [""; 0]);
        let [years] = &cautions("8", "500T")[..] else { panic!("one caution") };
        assert!(years.contains(" years. Use more GPUs (--gpus)"), "{years}");
        let [waste, _] = &cautions("16384", "1T")[..] else { panic!("two cautions") };
        assert!(waste.contains("The MFU is only ") && waste.contains("Fewer GPUs"), "{waste}");
        let memory = MemoryMargin { free_bytes: 1e11, error_bytes: 0.0 };
        let slow = PlanFacts { mfu: 0.09, days: 90.0, batch_tokens: 4e6, memory, needs_its_gpus: true };
        let [waste] = &slow.cautions()[..] else { panic!("one caution") };
        assert!(!waste.text(Front::Search).contains("Fewer GPUs"));
    }

    #[test]
    fn spare_nodes_beyond_the_only_number_of_gpus_are_named() {
        let said = |gpus: &str, spares: &str| {
            let spec = question(gpus, "1T").spec.with(Field::SpareNodes, spares);
            let question = spec.question().unwrap();
            let best = Survey::new(&question, &question.offers[0]).finish().best().unwrap().clone();
            best.cautions(&question).iter().map(|caution| caution.text(Front::Search)).collect::<Vec<_>>()
        };
        let expected = "This takes 1,072 GPUs in all: 1,024 for training and 48 spare. If you have 1,024 in \
                        all, set --gpus to 976, or --spare-nodes to 0 for none.";
        assert!(said("1024", "").iter().any(|caution| caution == expected), "{:?}", said("1024", ""));
        // A limit, or another share, is what the user wants.
        for (gpus, spares) in [("1024", "5"), ("1024", "0"), ("up to 1024", ""), ("64", "")] {
            let said = said(gpus, spares);
            assert!(said.iter().all(|caution| !caution.contains(" in all")), "{said:?}");
        }
    }

    #[test]
    fn fewer_gpus_are_not_suggested_for_the_plan_with_the_fewest_that_are_in_time() {
        let has_fewest = |gpus: &str, deadline: &str, objective: &str| {
            let spec =
                question(gpus, "1T").spec.with(Field::Deadline, deadline).with(Field::Objective, objective);
            let question = spec.question().unwrap();
            let best = Survey::new(&question, &question.offers[0]).finish().best().unwrap().clone();
            best.has_fewest_gpus(&question)
        };
        assert!(has_fewest("up to 512", "60d", "fewest-gpus") && has_fewest("8, 512", "60d", "fewest-gpus"));
        assert!(!has_fewest("512", "60d", "fewest-gpus") && !has_fewest("up to 512", "60d", "fastest"));
    }
}
