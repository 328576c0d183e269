//! Which degrees of parallelism an architecture and its GPUs allow, with the nearest values that work.

use super::Degrees;
use crate::architecture::{Architecture, AttentionKind, Moe};
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::problem::{Problem, Refusals};
use crate::units::{greatest_common_divisor, group_digits, nearest_divisors, nearest_multiples};
use crate::words::words;

pub(super) fn count_of_gpus(gpus: u32) -> String {
    match gpus {
        1 => "1 GPU".to_string(),
        _ => format!("{} GPUs", group_digits(f64::from(gpus))),
    }
}

pub(super) fn check_zeros(degrees: &Degrees, problems: &mut impl Refusals) {
    let all = [
        (Field::Gpus, degrees.gpus),
        (Field::Tp, degrees.tp),
        (Field::Pp, degrees.pp),
        (Field::Cp, degrees.cp),
        (Field::Ep, degrees.ep),
        (Field::ExpertTp, degrees.expert_tp),
        (Field::Vp, degrees.vp),
    ];
    for (field, degree) in all.into_iter().filter(|(_, degree)| *degree == 0) {
        problems.add(|| Problem::new(field, degree, message![field, " must be at least 1."]).suggest([1]));
    }
}

/// Returns the problem of context parallelism with linear attention. `__post_init__` of transformer_config.py in Megatron-Core 0.16
/// asserts that a model with `gated_delta_net` has none.
pub(crate) fn cp_problem(cp: u32, architecture: &Architecture) -> Option<Problem> {
    (cp > 1 && architecture.linear.is_some()).then(|| {
        let message = message![
            Setting::new(Field::Cp, cp),
            " is not supported: the model's linear attention needs whole sequences on a GPU."
        ];
        Problem::new(Field::Cp, cp, message).suggest([1])
    })
}

pub(crate) fn tp_problem(tp: u32, architecture: &Architecture) -> Option<Problem> {
    let widths = architecture.tp_widths();
    let common = widths.iter().fold(0, |common, (_, width)| greatest_common_divisor(common, *width));
    if let Some((name, width)) = widths.iter().find(|(_, width)| !width.is_multiple_of(tp)) {
        return Some(
            Problem::new(Field::Tp, tp, words!("The model's {name} ({width}) can't be divided by TP {tp}."))
                .suggest(nearest_divisors(tp, common)),
        );
    }
    match architecture.attention.kind {
        // With more ranks than query groups, each rank holds a whole copy of a group.
        AttentionKind::Gqa { kv_heads, .. }
            if !kv_heads.is_multiple_of(tp) && !tp.is_multiple_of(kv_heads) =>
        {
            let message =
                words!("TP {tp} is neither a divisor nor a multiple of the model's {kv_heads} KV heads.");
            Some(Problem::new(Field::Tp, tp, message).suggest(nearest_divisors(tp, kv_heads)))
        }
        _ => None,
    }
}

/// Returns the problem of an EP that does not divide the experts, without suggestions.
pub(crate) fn ep_problem(ep: u32, moe: &Moe) -> Option<Problem> {
    let message = || words!("The model's {} experts can't be divided by EP {ep}.", moe.experts);
    (!moe.experts.is_multiple_of(ep)).then(|| Problem::new(Field::Ep, ep, message()))
}

pub(super) fn check_experts(degrees: &Degrees, architecture: &Architecture, problems: &mut impl Refusals) {
    let Degrees { gpus, pp, ep, expert_tp, .. } = *degrees;
    let Some(moe) = &architecture.moe else {
        let both = [(Field::Ep, ep), (Field::ExpertTp, expert_tp)].into_iter();
        for (field, degree) in both.filter(|(_, degree)| *degree > 1) {
            problems.add(|| {
                let message =
                    message![Setting::new(field, degree), " needs experts, but the model has none."];
                Problem::new(field, degree, message).suggest([1])
            });
        }
        return;
    };
    let ep_problem = ep_problem(ep, moe);
    let are_divided = ep_problem.is_none() && moe.ffn.is_multiple_of(expert_tp);
    if let Some(problem) = ep_problem {
        problems.add(|| {
            let divisors = nearest_degrees(ep, moe.experts, gpus, u64::from(expert_tp) * u64::from(pp));
            problem.suggest(divisors)
        });
    }
    if !moe.ffn.is_multiple_of(expert_tp) {
        problems.add(|| {
            let message =
                format!("An expert's FFN width ({}) can't be divided by expert TP {expert_tp}.", moe.ffn);
            let divisors = nearest_degrees(expert_tp, moe.ffn, gpus, u64::from(ep) * u64::from(pp));
            Problem::new(Field::ExpertTp, expert_tp, message).suggest(divisors)
        });
    }
    let expert_parallel = (u64::from(expert_tp) * u64::from(ep)).saturating_mul(u64::from(pp));
    // With another degree, the groups are others.
    if are_divided && !u64::from(gpus).is_multiple_of(expert_parallel) {
        problems.add(|| {
            let message = format!(
                "{} can't be split into groups of {expert_parallel} (expert TP {expert_tp} × EP {ep} × PP {pp}).",
                count_of_gpus(gpus)
            );
            Problem::new(Field::Gpus, gpus, message).suggest(nearest_counts(degrees, architecture))
        });
    }
}

/// Returns the divisors of a dimension next to a degree, of those that also split the GPUs, which `others` splits before. If that is
/// impossible, another problem says so.
fn nearest_degrees(degree: u32, dimension: u32, gpus: u32, others: u64) -> Vec<u32> {
    let ranks = u64::from(gpus).is_multiple_of(others).then(|| (u64::from(gpus) / others) as u32);
    nearest_divisors(degree, ranks.map_or(dimension, |ranks| greatest_common_divisor(dimension, ranks)))
}

/// Returns the numbers of GPUs next to the given one that can be split into the groups of all layers, and into those of experts.
pub(super) fn nearest_counts(degrees: &Degrees, architecture: &Architecture) -> Vec<u32> {
    let Degrees { gpus, tp, pp, cp, ep, expert_tp, .. } = *degrees;
    let product = |sizes: [u32; 3]| sizes.into_iter().try_fold(1, u32::checked_mul);
    let splits_experts = |experts: u32, ffn: u32| experts.is_multiple_of(ep) && ffn.is_multiple_of(expert_tp);
    let moe = architecture.moe.as_ref().filter(|moe| splits_experts(moe.experts, moe.ffn));
    let groups = product([tp, pp, cp]).zip(product(moe.map_or([1; 3], |_| [expert_tp, ep, pp])));
    let step = groups.and_then(|(one, other)| (one / greatest_common_divisor(one, other)).checked_mul(other));
    step.map_or(Vec::new(), |step| nearest_multiples(gpus, step))
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::super::tests::{model, refused};
    use super::*;

    #[test]
    fn gpus_that_do_not_divide_name_the_nearest() {
        let degrees = Degrees { gpus: 500, tp: 8, pp: 8, cp: 2, ..Degrees::default() };
        let problem = refused(&degrees, "llama3.1-405b");
        assert_eq!(
            (problem.field, problem.suggestions.as_slice()),
            (Field::Gpus, &["384".into(), "512".into()][..])
        );
        assert!(problem.to_string().contains("groups of 128 (TP 8 × PP 8 × CP 2)"), "{problem}");
    }

    #[test]
    fn tp_must_cut_every_width() {
        let degrees = Degrees { gpus: 24, tp: 3, ..Degrees::default() };
        assert_eq!(refused(&degrees, "llama3.1-8b").suggestions, ["2", "4"]);
        // Groups of 3 can't be, so that no number of GPUs for them is suggested.
        let problems = Layout::new(&Degrees { gpus: 1024, ..degrees }, model("llama3.1-8b")).unwrap_err();
        assert_eq!(problems.iter().map(|problem| problem.field).collect::<Vec<_>>(), [Field::Tp]);
        // 16 is more than the 8 KV heads, and holds whole copies of them.
        let degrees = Degrees { gpus: 16, tp: 16, ..Degrees::default() };
        assert!(Layout::new(&degrees, model("llama3.1-8b")).is_ok());
        // Mamba's groups are cut as well.
        assert!(Layout::new(&degrees, model("nemotron-h-56b")).is_err());
    }

    #[test]
    fn experts_need_experts() {
        let degrees = Degrees { gpus: 8, ep: 8, ..Degrees::default() };
        assert_eq!(refused(&degrees, "llama3.1-8b").field, Field::Ep);
        let degrees = Degrees { gpus: 384, ep: 96, ..Degrees::default() };
        assert_eq!(refused(&degrees, "deepseek-v3").suggestions, ["64", "128"]);
    }

    #[test]
    fn suggestions_for_experts_work_with_the_rest() {
        let problems = |gpus, tp, ep| {
            let degrees = Degrees { gpus, tp, ep, ..Degrees::default() };
            Layout::new(&degrees, model("deepseek-v3")).unwrap_err()
        };
        let problem = &problems(250, 1, 8)[0];
        assert_eq!((problem.field, &*problem.suggestions), (Field::Gpus, &["248".into(), "256".into()][..]));
        assert!(problem.to_string().ends_with("(expert TP 1 × EP 8 × PP 1). Use 248 or 256."), "{problem}");
        // Both groups, of 16 and of 32, need other counts, and 240 would be one of the first alone.
        let both = problems(250, 16, 32);
        assert!(both.iter().all(|problem| problem.suggestions == ["224", "256"]), "{both:?}");
        assert_eq!(both.len(), 2);
        // 4 and 8 divide the experts, but only 2 divides the GPUs.
        let alone = problems(250, 1, 7);
        assert_eq!((alone.len(), alone[0].field, &*alone[0].suggestions), (1, Field::Ep, &["2".into()][..]));
        // No number of GPUs makes up for a degree that can't be.
        assert_eq!(problems(250, 4, 7)[1].suggestions, ["248", "252"]);
    }
}
