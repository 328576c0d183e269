//! What pages are made of.

pub(crate) mod chart;
pub(crate) mod copy;
pub(crate) mod field;
pub(crate) mod maths;
pub(crate) mod numbers;
pub(crate) mod theme;
