//! One module per page.

pub(crate) mod not_found;
pub(crate) mod plan;
pub(crate) mod recipes;
pub(crate) mod results;
