//! What a budget doesn't pay for.

/// What would exceed the budget of a run that keeps it at the price of a reservation, because it pays only for its share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BeyondBudget {
    /// Whether the whole term of the reservation costs more than the budget.
    pub whole_term: bool,
    /// Whether the run does on demand.
    pub on_demand: bool,
}
