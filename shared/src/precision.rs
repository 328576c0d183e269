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
