//! How many tokens a model of some size should be trained on.

use crate::assumption::Assumption;

/// Returns the compute-optimal number of tokens for a number of parameters: 20 for each (Hoffmann et al. 2022,
/// arXiv:2203.15556, table 3).
///
/// The study trained dense models and counted all of their parameters. For a mixture of experts pass
/// [`active_parameters`](crate::architecture::Architecture::active_parameters), because the compute of a token grows with
/// those; no study of that size confirms the factor for it. Models that are used a lot are trained on many more tokens.
pub fn compute_optimal_tokens(parameters: f64) -> f64 {
    Assumption::TokensPerParameter.value() * parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinchilla_has_20_tokens_per_parameter() {
        assert_eq!(compute_optimal_tokens(70e9), 1.4e12);
        // Table 3 of the paper: 67B parameters, 1.5T tokens.
        assert!((compute_optimal_tokens(67e9) / 1.5e12 - 1.0).abs() < 0.12);
    }
}
