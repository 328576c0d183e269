//! Whether a scenario fits, as surely as the estimate can say.

use super::reserve::capacity_bytes;
use crate::catalog::Gpu;
use crate::choices::choices;
use crate::stack::Software;

choices! {
    /// Whether a scenario fits into the memory of its GPUs.
    #[derive(Default)]
    MemoryVerdict {
        /// It fits, even if the estimate is off by as much as it was in measured runs.
        #[default]
        Fits "fits",
        /// The margin is smaller than the error of the estimate.
        TooClose "too-close",
        /// It does not fit, even if the estimate is off.
        DoesNotFit "does-not-fit",
    }
}

/// The free memory of the fullest GPU, and how far the estimate may be off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryMargin {
    /// Free memory, bytes; negative if the estimate exceeds the GPU's memory.
    pub free_bytes: f64,
    /// The error of the estimate, bytes: a share of the need, `memory_error` of the software.
    pub error_bytes: f64,
}

impl MemoryMargin {
    /// Returns the margin on a GPU with `free_bytes` of free memory by the estimate.
    pub fn new(gpu: &Gpu, software: Software, free_bytes: f64) -> MemoryMargin {
        let needed = capacity_bytes(gpu) - free_bytes;
        MemoryMargin { free_bytes, error_bytes: software.properties().memory_error * needed }
    }

    /// Returns whether the scenario fits.
    pub fn verdict(&self) -> MemoryVerdict {
        match self.free_bytes {
            free if free >= self.error_bytes => MemoryVerdict::Fits,
            free if free >= -self.error_bytes => MemoryVerdict::TooClose,
            _ => MemoryVerdict::DoesNotFit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::stack::Stack;

    const GIB: f64 = 1_073_741_824.0;

    #[test]
    fn a_margin_below_the_error_is_too_close_to_call() {
        let h100 = Catalog::embedded().gpu("h100").unwrap();
        let verdict =
            |stack: Stack, free_gib: f64| MemoryMargin::new(h100, stack.into(), free_gib * GIB).verdict();
        // 5 % of 76 GiB are 3.8 GiB, of 77 GiB 3.85.
        assert_eq!(verdict(Stack::Bridge2606, 4.0), MemoryVerdict::Fits);
        assert_eq!(verdict(Stack::Bridge2606, 3.0), MemoryVerdict::TooClose);
        assert_eq!(verdict(Stack::Bridge2606, -4.0), MemoryVerdict::TooClose);
        assert_eq!(verdict(Stack::Bridge2606, -5.0), MemoryVerdict::DoesNotFit);
        // Plain software is known less well.
        assert_eq!(verdict(Stack::Nanotron, 4.0), MemoryVerdict::TooClose);
        assert_eq!(verdict(Stack::Nanotron, 12.0), MemoryVerdict::Fits);
        assert_eq!(verdict(Stack::Nanotron, -10.0), MemoryVerdict::TooClose);
    }
}
