//! Batches: the tokens of a step and how they are divided.

use crate::field::Field;
use crate::layout::Layout;
use crate::message;
use crate::message::Message;
use crate::problem::Problem;
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
        let mut problems: Vec<Problem> = [(Field::SeqLen, seq_len), (Field::Mbs, mbs), (Field::Gbs, gbs)]
            .into_iter()
            .filter(|(_, value)| *value == 0)
            .map(|(field, value)| {
                Problem::new(field, value, message![field, " must be at least 1."]).suggest([1])
            })
            .collect();
        // Each rank takes an early and a late piece, so that the work of causal attention is even.
        let pieces = u64::from(layout.cp()) * if layout.cp() > 1 { 2 } else { 1 };
        if !u64::from(seq_len).is_multiple_of(pieces) {
            let nearest =
                u32::try_from(pieces).map(|step| nearest_multiples(seq_len, step)).unwrap_or_default();
            let cp = layout.cp();
            let message = format!("{seq_len} tokens can't be divided into {pieces} pieces (2 × CP {cp}).");
            problems.push(Problem::new(Field::SeqLen, seq_len, message).suggest(nearest));
        }
        let (dp, shard) = (layout.dp(), u64::from(mbs) * u64::from(layout.dp()));
        if problems.is_empty() && !u64::from(gbs).is_multiple_of(shard) {
            let nearest = u32::try_from(shard).map(|step| nearest_multiples(gbs, step)).unwrap_or_default();
            let message = format!("GBS {gbs} is not a multiple of {shard} (MBS {mbs} × DP {dp}).");
            problems.push(Problem::new(Field::Gbs, gbs, message).suggest(nearest));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Batch { seq_len, mbs, gbs, ga: (u64::from(gbs) / shard) as u32 })
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
}
