//! How many tokens a step takes, and in what pieces.

use crate::field::Field;
use crate::layout::Layout;
use crate::problem::Problem;
use crate::units::nearest_multiples;
use serde::Serialize;

/// The batch of a step, in sequences that divide evenly; made by [`Batch::new`] alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Batch {
    seq_len: u32,
    mbs: u32,
    gbs: u32,
    ga: u32,
}

impl Batch {
    /// Checks a batch against the layout that carries it.
    ///
    /// # Errors
    /// A sequence that context parallelism can't cut, or a global batch that does not divide by MBS·DP.
    pub fn new(seq_len: u32, mbs: u32, gbs: u32, layout: &Layout) -> Result<Batch, Vec<Problem>> {
        let mut problems: Vec<Problem> = [(Field::SeqLen, seq_len), (Field::Mbs, mbs), (Field::Gbs, gbs)]
            .into_iter()
            .filter(|(_, value)| *value == 0)
            .map(|(field, value)| {
                Problem::clause(field, value, "leaves nothing to train on").allowed("1 or more")
            })
            .collect();
        // Each rank takes one early and one late piece, so that causal attention is shared evenly.
        let pieces = u64::from(layout.cp()) * if layout.cp() > 1 { 2 } else { 1 };
        if !u64::from(seq_len).is_multiple_of(pieces) {
            let nearest =
                u32::try_from(pieces).map(|step| nearest_multiples(seq_len, step)).unwrap_or_default();
            problems.push(
                Problem::clause(Field::SeqLen, seq_len, format!("does not divide by 2·CP = {pieces}"))
                    .nearest(nearest),
            );
        }
        let (dp, shard) = (layout.dp(), u64::from(mbs) * u64::from(layout.dp()));
        if problems.is_empty() && !u64::from(gbs).is_multiple_of(shard) {
            let nearest = u32::try_from(shard).map(|step| nearest_multiples(gbs, step)).unwrap_or_default();
            problems.push(
                Problem::clause(Field::Gbs, gbs, format!("does not divide by MBS·DP = {mbs}·{dp} = {shard}"))
                    .nearest(nearest),
            );
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Batch { seq_len, mbs, gbs, ga: (u64::from(gbs) / shard) as u32 })
    }

    /// Tokens of a sequence.
    pub fn seq_len(&self) -> u32 {
        self.seq_len
    }
    /// Micro batch size, sequences.
    pub fn mbs(&self) -> u32 {
        self.mbs
    }
    /// Global batch size, sequences.
    pub fn gbs(&self) -> u32 {
        self.gbs
    }
    /// Gradient accumulation: micro batches per step and data-parallel rank, GBS / (MBS·DP).
    pub fn ga(&self) -> u32 {
        self.ga
    }
    /// Tokens of a step.
    pub fn tokens(&self) -> f64 {
        f64::from(self.seq_len) * f64::from(self.gbs)
    }

    /// What works but not as well as its neighbours would.
    pub fn warnings(&self, layout: &Layout) -> Vec<String> {
        let mut warnings = Vec::new();
        let (ga, pp) = (self.ga, layout.pp());
        if layout.vp() > 1 && !ga.is_multiple_of(pp) {
            warnings.push(format!(
                "GA = {ga} is no multiple of PP = {pp}: the interleaved schedule of Megatron releases up to 2024 refuses that"
            ));
        } else if ga < pp {
            warnings.push(format!("GA = {ga} is less than PP = {pp}: most of the pipeline stands idle"));
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
        assert_eq!(
            problem.to_string(),
            "--gbs: “130” does not divide by MBS·DP = 1·4 = 4; nearest: 128 or 132"
        );
        assert!(Batch::new(8191, 1, 128, &layout(8, 2)).is_err());
        assert!(Batch::new(8192, 0, 128, &layout(8, 2)).is_err());
    }
}
