//! The classes of predictions.

use crate::choices::choices;
use crate::estimate::Inputs;
use crate::stack::Software;

choices! {
    /// The classes of predictions, each with its own interval. The titles are the names in data files and reports.
    ///
    /// Interpolated: the same model was measured on the same GPU. Extrapolated: it was not. The others are further from
    /// every measurement: see [`Distance`](super::Distance).
    IntervalClass {
        /// Dense model, interpolated.
        DenseInterpolated "dense_interpolated" "dense, interpolated",
        /// Dense model, extrapolated.
        DenseExtrapolated "dense_extrapolated" "dense, extrapolated",
        /// Mixture of experts, interpolated.
        RoutedInterpolated "routed_interpolated" "routed, interpolated",
        /// Mixture of experts, extrapolated.
        RoutedExtrapolated "routed_extrapolated" "routed, extrapolated",
        /// Software without fused kernels, interpolated.
        PlainInterpolated "plain_interpolated" "plain software, interpolated",
        /// Software without fused kernels, extrapolated.
        PlainExtrapolated "plain_extrapolated" "plain software, extrapolated",
        /// Dense model on a GPU type that nobody measured.
        DenseGpu "dense_gpu" "dense, unmeasured GPU type",
        /// Mixture of experts on a GPU type that nobody measured.
        RoutedGpu "routed_gpu" "routed, unmeasured GPU type",
        /// Dense model with a release of NVIDIA's software or of Megatron-LM that nobody measured on the GPU's generation.
        DenseRelease "dense_release" "dense, unmeasured NVIDIA release",
        /// Mixture of experts with such a release.
        RoutedRelease "routed_release" "routed, unmeasured NVIDIA release",
        /// Dense model with other software that nobody measured on the GPU's generation.
        DenseSoftware "dense_software" "dense, unmeasured software",
        /// Mixture of experts with such software.
        RoutedSoftware "routed_software" "routed, unmeasured software",
        /// Dense model on more than twice as many GPUs as anybody measured.
        DenseScale "dense_scale" "dense, unmeasured scale",
        /// Mixture of experts on so many GPUs.
        RoutedScale "routed_scale" "routed, unmeasured scale",
        /// Mixture of experts with parallelism that is rarely measured: see [`Evidence::is_rare`](crate::estimate::Evidence::is_rare).
        RoutedRare "routed_rare" "routed, rarely measured parallelism",
    }
}

impl IntervalClass {
    /// Returns the class of the prediction from `inputs`, if nothing but its model and layout is unmeasured.
    pub fn of(inputs: &Inputs<'_>, is_interpolated: bool) -> IntervalClass {
        IntervalClass::of_model(inputs.architecture.moe.is_some(), &inputs.options.software, is_interpolated)
    }

    pub(super) fn of_model(is_routed: bool, software: &Software, is_interpolated: bool) -> IntervalClass {
        match (software.properties().eager, is_routed, is_interpolated) {
            (true, _, true) => IntervalClass::PlainInterpolated,
            (true, _, false) => IntervalClass::PlainExtrapolated,
            (false, false, true) => IntervalClass::DenseInterpolated,
            (false, false, false) => IntervalClass::DenseExtrapolated,
            (false, true, true) => IntervalClass::RoutedInterpolated,
            (false, true, false) => IntervalClass::RoutedExtrapolated,
        }
    }

    /// Whether its models were measured on the same GPU.
    pub const fn is_interpolated(self) -> bool {
        matches!(
            self,
            IntervalClass::DenseInterpolated
                | IntervalClass::RoutedInterpolated
                | IntervalClass::PlainInterpolated
        )
    }
}
