//! Conventions of counting model FLOPs.

use crate::choices::choices;
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::problem::Problem;

choices! {
    /// How model FLOPs are counted.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Convention of Field::Convention {
        /// As in the recipe's own README.
        Recipe "recipe",
        /// Query groups and full attention.
        Full "full",
        /// Query groups and half of attention: what a causal mask leaves.
        Causal "causal",
    }
}

impl Convention {
    /// Returns the problem of counting as in a recipe's README without a recipe.
    pub(crate) fn needs_recipe() -> Problem {
        let message = message![
            Setting::new(Field::Convention, "recipe"),
            " counts FLOPs as in the recipe's README, but no recipe is given.",
        ];
        Problem::new(Field::Convention, "recipe", message).suggest(["full", "causal"])
    }
}
