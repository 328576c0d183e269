//! The search over layouts: which parallelism, micro batch and recomputation train a model fastest on some GPUs.
//!
//! The search is exhaustive: a [`Ranking`] equals what estimating every valid layout would give. [`StackRules`] says which
//! layouts the software runs; [`SearchCounts`] says which rule discarded how many.

mod blocks;
mod candidate;
mod locks;
mod rank;
mod regret;
mod rules;
mod space;

pub use candidate::{COUNTED_SPLIT, Candidate};
pub(crate) use locks::PUBLISHED_SPLIT;
pub use locks::{CHOSEN_FIELDS, Lock, Locks};
pub use rank::{LayoutSearch, ORDER, RankedLayout, Ranking};
pub use regret::SearchRegret;
pub use rules::{FsdpSupport, Rule, StackRules, USED_OF_NVL72, Unsupported};
pub use space::{PublishedSplit, SearchCounts, SearchSpace};

#[cfg(test)]
mod tests;
