//! The pages, one module each.

pub(crate) mod benchmarks;
pub(crate) mod compare;
pub(crate) mod details;
pub(crate) mod history;
pub(crate) mod not_found;
pub(crate) mod plan;
pub(crate) mod results;
pub(crate) mod run;
