//! Writing decimal numbers, with little code where bytes count.
//!
//! `format!` of an `f64` needs 17 kB of code, which a program contains as soon as it formats one. Programs that show errors contain it
//! anyway, because serde does, and it is faster. In the search worker, which has no [words](HAS_WORDS), [`small`] writes the same texts.

mod small;

use crate::words::HAS_WORDS;

/// Returns the shortest text that reads back as the number.
pub(crate) fn write_decimal(number: f64) -> String {
    if HAS_WORDS { number.to_string() } else { small::write_decimal(number) }
}

/// Returns a number with this many decimals.
pub(crate) fn write_rounded(number: f64, decimals: usize) -> String {
    if HAS_WORDS { format!("{number:.decimals$}") } else { small::write_rounded(number, decimals) }
}

/// Returns a number with this many decimals and a power of ten.
pub(crate) fn write_exponential(number: f64, decimals: usize) -> String {
    if HAS_WORDS { format!("{number:.decimals$e}") } else { small::write_exponential(number, decimals) }
}
