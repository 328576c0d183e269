//! Batches: the tokens of a step, how they are divided, and how interleaved pipelines group their micro batches.

use crate::field::Field;
use crate::layout::Layout;
use crate::message;
use crate::message::Message;
use crate::problem::{Problem, Refusals, Unworded};
use crate::stack::Software;
use crate::units::nearest_multiples;
use serde::Serialize;

/// The batch of a step, divided evenly, as checked by [`Batch::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Batch {
    seq_len: u32,
    mbs: u32,
    gbs: u32,
    ga: u32,
}

impl Batch {
    /// Returns the batch of these sizes for a layout.
    ///
    /// # Errors
    /// The sequence can't be divided by 2·CP, or the global batch by MBS·DP.
    pub fn new(seq_len: u32, mbs: u32, gbs: u32, layout: &Layout) -> Result<Batch, Vec<Problem>> {
        let mut problems = Vec::new();
        Batch::checked(seq_len, mbs, gbs, layout, &mut problems).ok_or(problems)
    }

    /// Returns the batch of these sizes for a layout; none if it has a problem.
    pub(crate) fn valid(seq_len: u32, mbs: u32, gbs: u32, layout: &Layout) -> Option<Batch> {
        Batch::checked(seq_len, mbs, gbs, layout, &mut Unworded::default())
    }

    fn checked(
        seq_len: u32,
        mbs: u32,
        gbs: u32,
        layout: &Layout,
        problems: &mut impl Refusals,
    ) -> Option<Batch> {
        let all = [(Field::SeqLen, seq_len), (Field::Mbs, mbs), (Field::Gbs, gbs)].into_iter();
        for (field, value) in all.filter(|(_, value)| *value == 0) {
            problems.add(|| Problem::new(field, value, message![field, " must be at least 1."]).suggest([1]));
        }
        // Each rank takes an early and a late piece, so that the work of causal attention is even.
        let pieces = u64::from(layout.cp()) * if layout.cp() > 1 { 2 } else { 1 };
        if !u64::from(seq_len).is_multiple_of(pieces) {
            problems.add(|| {
                let nearest =
                    u32::try_from(pieces).map(|step| nearest_multiples(seq_len, step)).unwrap_or_default();
                let cp = layout.cp();
                let message =
                    format!("{seq_len} tokens can't be divided into {pieces} pieces (2 × CP {cp}).");
                Problem::new(Field::SeqLen, seq_len, message).suggest(nearest)
            });
        }
        let (dp, shard) = (layout.dp(), u64::from(mbs) * u64::from(layout.dp()));
        if problems.is_empty() && !u64::from(gbs).is_multiple_of(shard) {
            problems.add(|| {
                let nearest =
                    u32::try_from(shard).map(|step| nearest_multiples(gbs, step)).unwrap_or_default();
                let message = format!("GBS {gbs} is not a multiple of {shard} (MBS {mbs} × DP {dp}).");
                Problem::new(Field::Gbs, gbs, message).suggest(nearest)
            });
        }
        if !problems.is_empty() {
            return None;
        }
        Some(Batch { seq_len, mbs, gbs, ga: (u64::from(gbs) / shard) as u32 })
    }

    /// Returns the batch of a layout with `dp` data-parallel ranks. A search calls it for sizes that obey its rules.
    pub(crate) fn of_ranks(seq_len: u32, mbs: u32, gbs: u32, dp: u32) -> Batch {
        debug_assert_eq!(gbs % (mbs * dp), 0, "the search checks its rules first");
        Batch { seq_len, mbs, gbs, ga: gbs / (mbs * dp) }
    }

    /// Returns the sequence length, in tokens.
    pub fn seq_len(&self) -> u32 {
        self.seq_len
    }
    /// Returns the micro batch size, in sequences.
    pub fn mbs(&self) -> u32 {
        self.mbs
    }
    /// Returns the global batch size, in sequences.
    pub fn gbs(&self) -> u32 {
        self.gbs
    }
    /// Returns the gradient accumulation: micro batches per step and data-parallel rank, GBS / (MBS·DP).
    pub fn ga(&self) -> u32 {
        self.ga
    }
    /// Returns the tokens of a step.
    pub fn tokens(&self) -> f64 {
        f64::from(self.seq_len) * f64::from(self.gbs)
    }

    /// Returns warnings about a batch that works, but slower than another would, or not in every release of `software`.
    pub fn warnings(&self, layout: &Layout, software: Software) -> Vec<Message> {
        let mut warnings = Vec::new();
        let (ga, pp) = (self.ga, layout.pp());
        if layout.vp() > 1 && !ga.is_multiple_of(pp) && software.properties().whole_rounds {
            warnings.push(Message::from(format!(
                "Gradient accumulation ({ga}) is not a multiple of PP ({pp}). The interleaved schedule of Megatron \
                 releases up to 2024 requires that."
            )));
        } else if ga < pp {
            warnings.push(Message::from(format!(
                "Gradient accumulation ({ga}) is less than PP ({pp}), so most of the pipeline is idle."
            )));
        }
        warnings
    }
}

/// How Megatron-Core's interleaved schedule groups the micro batches of a step. A chunk computes one group before the next chunk
/// of its stage begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MicrobatchGroups {
    /// As by default: one micro batch per stage in each group, or no interleaved chunks at all.
    Usual,
    /// A number of micro batches that a launch script must set.
    Of(u32),
    /// No group fits, because there are fewer micro batches than stages.
    Impossible,
}

impl MicrobatchGroups {
    /// Returns the smallest groups with which the schedule runs: larger ones keep more activations. Launch scripts set them, and the
    /// estimate of memory counts them.
    ///
    /// By forward_backward_pipelining_with_interleaving (Megatron-LM, core/pipeline_parallel/schedules.py), a group has from PP to
    /// all micro batches of the step, and the last group may be smaller than the others but not smaller than PP.
    pub(crate) fn of(layout: &Layout, batch: &Batch) -> MicrobatchGroups {
        let (pp, ga) = (layout.pp(), batch.ga());
        if pp == 1 || layout.vp() == 1 || ga.is_multiple_of(pp) {
            return MicrobatchGroups::Usual;
        }
        let runs = |group: &u32| ga.is_multiple_of(*group) || ga % *group >= pp;
        (pp..=ga).find(runs).map_or(MicrobatchGroups::Impossible, MicrobatchGroups::Of)
    }

    /// Returns the micro batches of a group in a pipeline of `pp` stages; the default number if no group fits.
    pub(crate) fn size(self, pp: u32) -> u32 {
        match self {
            MicrobatchGroups::Of(group) => group,
            MicrobatchGroups::Usual | MicrobatchGroups::Impossible => pp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::layout::Degrees;

    fn layout(gpus: u32, cp: u32) -> Layout {
        let model = Catalog::embedded().model("llama3.1-8b").unwrap();
        Layout::new(&Degrees { gpus, cp, ..Degrees::default() }, &model.architecture).unwrap()
    }

    #[test]
    fn accumulation_follows() {
        let batch = Batch::new(8192, 1, 128, &layout(8, 2)).unwrap();
        assert_eq!((batch.ga(), batch.tokens()), (32, 1_048_576.0));
    }

    #[test]
    fn a_batch_that_does_not_divide_names_the_nearest() {
        let problem = Batch::new(8192, 1, 130, &layout(8, 2)).unwrap_err().remove(0);
        assert_eq!(problem.to_string(), "GBS 130 is not a multiple of 4 (MBS 1 × DP 4). Use 128 or 132.");
        assert!(Batch::new(8191, 1, 128, &layout(8, 2)).is_err());
        assert!(Batch::new(8192, 0, 128, &layout(8, 2)).is_err());
    }

    #[test]
    fn groups_are_the_smallest_that_the_schedule_accepts() {
        let groups = |pp: u32, vp: u32, ga: u32| {
            let model = Catalog::embedded().model("llama3.1-8b").unwrap();
            let degrees = Degrees { gpus: pp, pp, vp, ..Degrees::default() };
            let layout = Layout::new(&degrees, &model.architecture).unwrap();
            let groups = MicrobatchGroups::of(&layout, &Batch::new(8192, 1, ga, &layout).unwrap());
            (groups, groups.size(pp))
        };
        assert_eq!(groups(4, 2, 8), (MicrobatchGroups::Usual, 4));
        assert_eq!(groups(4, 1, 6), (MicrobatchGroups::Usual, 4));
        // Groups of 4 would leave 2, and groups of 5 would leave 1.
        assert_eq!(groups(4, 2, 6), (MicrobatchGroups::Of(6), 6));
        // Groups of 5 leave 4.
        assert_eq!(groups(4, 2, 9), (MicrobatchGroups::Of(5), 5));
        assert_eq!(groups(4, 2, 3), (MicrobatchGroups::Impossible, 4));
    }
}
