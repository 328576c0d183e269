//! Number formats.

use crate::choices::choices;

choices! {
    /// The precision of the matrix multiplications.
    Dtype of Field::Dtype {
        /// BF16.
        Bf16 "bf16" "BF16",
        /// FP8 with the recipe's own scaling.
        Fp8 "fp8" "FP8",
        /// FP8, per-tensor current scaling.
        Fp8Current "fp8-current" "FP8 current",
        /// FP8, per-tensor delayed scaling.
        Fp8Delayed "fp8-delayed" "FP8 delayed",
        /// FP8, block scaling.
        Fp8Block "fp8-block" "FP8 block",
        /// MXFP8: blocks of 32 values with a shared scale.
        Mxfp8 "mxfp8" "MXFP8",
        /// NVFP4.
        Nvfp4 "nvfp4" "NVFP4",
    }
}

impl Dtype {
    /// Returns whether two runs may have the same precision. FP8 with the recipe's own scaling may be any FP8.
    pub fn may_be(self, other: Dtype) -> bool {
        let is_open = self == Dtype::Fp8 || other == Dtype::Fp8;
        self == other || (is_open && self.width() == other.width())
    }

    /// Returns the operand width, which decides the GPU's peak.
    pub const fn width(self) -> Width {
        match self {
            Dtype::Bf16 => Width::Bf16,
            Dtype::Nvfp4 => Width::Nvfp4,
            Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed | Dtype::Fp8Block | Dtype::Mxfp8 => Width::Fp8,
        }
    }
}

/// The width of the operands of tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 16 bits.
    Bf16,
    /// 8 bits.
    Fp8,
    /// 4 bits.
    Nvfp4,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp8_without_its_scaling_may_be_any_fp8() {
        assert!(Dtype::Fp8.may_be(Dtype::Fp8Delayed) && Dtype::Mxfp8.may_be(Dtype::Fp8));
        assert!(!Dtype::Fp8Current.may_be(Dtype::Fp8Delayed) && !Dtype::Fp8.may_be(Dtype::Bf16));
    }
}
