//! The global batch sizes that a question permits.

use crate::sorting::ascending;

/// The largest share that an assumed batch may change by to suit a number of GPUs.
///
/// With less freedom, few layouts could divide the batch on some numbers of GPUs, such as 592.
const MOST_CHANGE: f64 = 0.25;

/// The largest unit of a batch, as a share of it: multiples on both sides are near.
const LARGEST_UNIT: f64 = 0.3;

/// Global batch sizes to choose from, in sequences.
///
/// Data-parallel ranks share a batch evenly, so a batch of 1,024 sequences excludes most layouts on 768 GPUs. A batch that is
/// not typed as one number may therefore change with the number of GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalBatches {
    /// Ascending, and never empty.
    sizes: Vec<u32>,
    freedom: Freedom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freedom {
    /// One number was typed.
    Fixed,
    /// A range was typed: any number in it.
    Range,
    /// Nothing was typed: numbers near the assumed one.
    Assumed,
}

impl GlobalBatches {
    /// Returns exactly this batch.
    pub fn fixed(gbs: u32) -> GlobalBatches {
        GlobalBatches { sizes: vec![gbs], freedom: Freedom::Fixed }
    }

    /// Returns the batch that is usual for a model, and numbers near it.
    pub fn assumed(gbs: u32) -> GlobalBatches {
        GlobalBatches { sizes: vec![gbs], freedom: Freedom::Assumed }
    }

    /// Returns the batches of a range: its ends, and every power of two between them, which divides by most degrees.
    pub fn range(least: u32, most: u32) -> GlobalBatches {
        if least == most {
            return GlobalBatches::fixed(least);
        }
        let powers = (0..32).map(|power| 1_u32 << power).filter(|size| (least..=most).contains(size));
        let sizes: Vec<u32> = powers.chain([least, most]).collect();
        GlobalBatches { sizes: ascending(&sizes), freedom: Freedom::Range }
    }

    /// Returns the batches that are tried on every number of GPUs, ascending.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Whether every plan has the same batch.
    pub fn are_fixed(&self) -> bool {
        self.freedom == Freedom::Fixed
    }

    /// Whether the batch is assumed from the model's size.
    pub fn are_assumed(&self) -> bool {
        self.freedom == Freedom::Assumed
    }

    /// Returns other permitted batches that suit a number of GPUs, ascending: multiples of the number itself, and multiples of
    /// its odd divisor and a power of two on both sides of the assumed batch or near the upper end of the range. Empty if the
    /// usual batches suit the number, or no other is permitted.
    pub fn suited(&self, gpus: u32) -> Vec<u32> {
        let odd = gpus.checked_shr(gpus.trailing_zeros()).unwrap_or(0);
        let (Some(least), Some(most)) = (self.sizes.first(), self.sizes.last()) else { return Vec::new() };
        if odd == 0 {
            return Vec::new();
        }
        let near = f64::from(*most);
        // The largest unit that still has a multiple close by.
        let unit = |share: f64| {
            let fits = move |unit: &u32| f64::from(*unit) <= near * share;
            std::iter::successors(Some(odd), |unit| unit.checked_mul(2)).take_while(fits).last()
        };
        let around = |unit: u32| [most / unit, most / unit + 1].map(|times| times * unit);
        let sizes: Vec<u32> = match self.freedom {
            Freedom::Fixed => Vec::new(),
            Freedom::Assumed if odd == 1 => Vec::new(),
            Freedom::Assumed => {
                let is_near = |size: &u32| (f64::from(*size) / near - 1.0).abs() <= MOST_CHANGE;
                let units = unit(LARGEST_UNIT).into_iter().chain([gpus]);
                units.flat_map(around).filter(is_near).collect()
            }
            Freedom::Range => {
                let units = unit(LARGEST_UNIT / 2.0).into_iter().chain([gpus]);
                units.map(|unit| most / unit * unit).filter(|size| size >= least).collect()
            }
        };
        ascending(&sizes).into_iter().filter(|size| !self.sizes.contains(size)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assumed_batch_changes_a_little_to_suit_the_gpus() {
        let batches = GlobalBatches::assumed(1024);
        assert_eq!(
            [512, 768, 576, 1000, 640].map(|gpus| batches.suited(gpus)),
            [vec![], vec![768, 960, 1152], vec![864, 1152], vec![1000, 1250], vec![960, 1120, 1280]]
        );
        // FSDP over all GPUs needs a multiple of them.
        assert_eq!(batches.suited(896), [896, 1120]);
        for gpus in (8..4096).step_by(8) {
            for size in batches.suited(gpus) {
                assert!((768..=1280).contains(&size), "{gpus}: {size}");
            }
        }
    }

    #[test]
    fn a_typed_batch_stays_and_a_range_is_not_left() {
        assert!(GlobalBatches::fixed(1024).suited(768).is_empty());
        assert!(GlobalBatches::assumed(1024).suited(0).is_empty());
        let range = GlobalBatches::range(732, 1220);
        assert_eq!(range.sizes(), [732, 1024, 1220]);
        assert_eq!(range.suited(768), [768, 1152]);
        assert!(GlobalBatches::range(1100, 1120).suited(768).is_empty());
        assert!(range.suited(0).is_empty());
    }
}
