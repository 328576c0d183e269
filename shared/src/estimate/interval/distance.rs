//! In which ways a prediction is far from every measurement.

use super::IntervalClass;
use crate::catalog::{Catalog, Generation, Gpu};
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::stack::{Software, Stack};
use std::sync::LazyLock;

choices! {
    /// What of a prediction no run measured, whatever its model.
    Distance {
        /// The GPU type, or a known one that the user changed.
        Gpu "gpu" "GPU type",
        /// The release of NVIDIA's software or of Megatron-LM on the GPU's generation, or a release that the user changed in a few
        /// properties.
        Release "release" "NVIDIA release",
        /// Other software on the GPU's generation, any software on a generation that nobody measured, or any that the user changed.
        Software "software" "software",
        /// So many GPUs of the generation: more than twice as many as in any run.
        Scale "scale" "scale",
    }
}

/// How many times as many GPUs as were measured are far from any measurement.
pub const FAR: u32 = 2;

/// The properties, at most, in which an own software differs from one of NVIDIA's no more than NVIDIA's next release does: NeMo 2
/// differs in 4 from NeMo 1 and from the first Megatron-Bridge.
const RELEASE_CHANGES: usize = 4;

impl Distance {
    /// Returns the class of predictions that are this far from every measurement, and close in all other ways.
    pub const fn class(self, is_routed: bool) -> IntervalClass {
        match (self, is_routed) {
            (Distance::Gpu, false) => IntervalClass::DenseGpu,
            (Distance::Gpu, true) => IntervalClass::RoutedGpu,
            (Distance::Release, false) => IntervalClass::DenseRelease,
            (Distance::Release, true) => IntervalClass::RoutedRelease,
            (Distance::Software, false) => IntervalClass::DenseSoftware,
            (Distance::Software, true) => IntervalClass::RoutedSoftware,
            (Distance::Scale, false) => IntervalClass::DenseScale,
            (Distance::Scale, true) => IntervalClass::RoutedScale,
        }
    }

    /// Returns how a prediction with `software` is distant if nobody measured that software.
    pub fn of_software(software: &Software) -> Distance {
        let base = software.base();
        // Its recent releases are what NVIDIA builds on.
        let is_of_nvidia = base.is_nvidia_megatron() || base == Stack::MegatronLm014;
        match is_of_nvidia && software.count_changes() <= RELEASE_CHANGES {
            true => Distance::Release,
            false => Distance::Software,
        }
    }

    /// Returns in which ways a prediction is far from every measurement.
    pub(crate) fn all_of(gpu: &Gpu, gpus: u32, is_routed: bool, software: &Software) -> Vec<Distance> {
        let extents = MeasuredExtent::embedded();
        let is_of =
            |extent: &MeasuredExtent, stack| extent.stack == stack && extent.generation == gpu.generation;
        let is_measured_software =
            software.known().is_some_and(|stack| extents.iter().any(|extent| is_of(extent, stack)));
        let of_software = match extents.iter().any(|extent| extent.generation == gpu.generation) {
            true => Distance::of_software(software),
            // No release is close to one that was measured on such GPUs.
            false => Distance::Software,
        };
        let most = Distance::most_gpus(gpu.generation, is_routed);
        [
            (!extents.iter().any(|extent| extent.gpu == gpu.id)).then_some(Distance::Gpu),
            (!is_measured_software).then_some(of_software),
            (gpus > most.saturating_mul(FAR)).then_some(Distance::Scale),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns the most GPUs of a generation in a measured run of a mixture of experts or of a dense model; 0 without runs.
    pub(crate) fn most_gpus(generation: Generation, is_routed: bool) -> u32 {
        let extents = MeasuredExtent::embedded().iter().filter(|extent| extent.generation == generation);
        extents.map(|extent| if is_routed { extent.routed } else { extent.dense }).max().unwrap_or(0)
    }
}

/// What was measured of a software on a GPU type: a row of `measured_extent.csv`.
#[derive(Debug, Clone, PartialEq)]
struct MeasuredExtent {
    gpu: String,
    generation: Generation,
    stack: Stack,
    /// The most GPUs on which a dense model was measured; 0 if none was.
    dense: u32,
    /// The most GPUs on which a mixture of experts was measured; 0 if none was.
    routed: u32,
}

impl FromRow for MeasuredExtent {
    fn from_row(row: &Row<'_>) -> Result<MeasuredExtent, DataError> {
        let known = Catalog::embedded().gpu(row.text("gpu")?);
        // Not the problem's text: the search worker has no other use for the code that writes it.
        let generation = known.map_err(|_| row.error("the GPU type is unknown".to_string()))?.generation;
        let (dense, routed) = (row.value("dense_gpus")?, row.value("routed_gpus")?);
        let stack = row.value("stack")?;
        Ok(MeasuredExtent { gpu: row.string("gpu")?, generation, stack, dense, routed })
    }
}

impl MeasuredExtent {
    fn embedded() -> &'static [MeasuredExtent] {
        static EMBEDDED: LazyLock<Vec<MeasuredExtent>> = LazyLock::new(|| embedded!("measured_extent.csv"));
        &EMBEDDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_gpu_and_software_is_near() {
        let h100 = Catalog::embedded().gpu("h100").unwrap();
        assert_eq!(Distance::all_of(h100, 512, false, &Stack::Bridge2606.into()), []);
        let gh200 = Catalog::embedded().gpu("gh200").unwrap();
        let far = Distance::all_of(gh200, 1 << 20, true, &Stack::Composer.into());
        assert_eq!(far, [Distance::Gpu, Distance::Scale]);
        assert_eq!(Distance::of_software(&Stack::Bridge2606.into()), Distance::Release);
        assert_eq!(Distance::of_software(&Stack::Pytorch.into()), Distance::Software);
    }
}
