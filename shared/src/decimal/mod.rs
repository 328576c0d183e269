//! Reading and writing decimal numbers, with less code than the standard library needs: programs for the browser contain it.

mod reading;
mod writing;

pub use reading::parse_decimal;
pub(crate) use writing::{write_decimal, write_exponential, write_rounded};
