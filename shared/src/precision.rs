//! The number formats a step computes in.

use crate::field::Field;
use crate::problem::Problem;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The precision of the matrix multiplications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dtype {
    /// BF16.
    Bf16,
    /// FP8 with the recipe's own scaling.
    Fp8,
    /// FP8, per-tensor current scaling.
    Fp8Current,
    /// FP8, per-tensor delayed scaling.
    Fp8Delayed,
    /// FP8, block scaling.
    Fp8Block,
    /// MXFP8.
    Mxfp8,
    /// NVFP4.
    Nvfp4,
}

impl Dtype {
    /// Every precision.
    pub const ALL: [Dtype; 7] = [
        Dtype::Bf16,
        Dtype::Fp8,
        Dtype::Fp8Current,
        Dtype::Fp8Delayed,
        Dtype::Fp8Block,
        Dtype::Mxfp8,
        Dtype::Nvfp4,
    ];

    /// Its name in flags, files and links.
    pub const fn id(self) -> &'static str {
        match self {
            Dtype::Bf16 => "bf16",
            Dtype::Fp8 => "fp8",
            Dtype::Fp8Current => "fp8-current",
            Dtype::Fp8Delayed => "fp8-delayed",
            Dtype::Fp8Block => "fp8-block",
            Dtype::Mxfp8 => "mxfp8",
            Dtype::Nvfp4 => "nvfp4",
        }
    }

    /// Its name as people print it.
    pub fn title(self) -> String {
        match self {
            Dtype::Fp8Current | Dtype::Fp8Delayed | Dtype::Fp8Block => self.id().replace("fp8-", "FP8 "),
            _ => self.id().to_ascii_uppercase(),
        }
    }

    /// The column of a GPU's peaks that it runs at.
    pub const fn width(self) -> Width {
        match self {
            Dtype::Bf16 => Width::Bf16,
            Dtype::Nvfp4 => Width::Nvfp4,
            Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed | Dtype::Fp8Block | Dtype::Mxfp8 => Width::Fp8,
        }
    }
}

/// The width of the tensor cores' operands, which decides the peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 16 bits.
    Bf16,
    /// 8 bits.
    Fp8,
    /// 4 bits.
    Nvfp4,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Dtype {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Dtype, Problem> {
        let wanted = text.trim().to_ascii_lowercase();
        Dtype::ALL
            .into_iter()
            .find(|dtype| dtype.id() == wanted)
            .ok_or_else(|| Problem::unknown(Field::Dtype, text, Dtype::ALL.map(Dtype::id)))
    }
}

impl Serialize for Dtype {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl<'de> serde::Deserialize<'de> for Dtype {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Dtype, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
