//! The interval of a prediction, from the errors of similar predictions.

use super::evidence::SIMILAR;
use super::{Evidence, EvidenceKind, Inputs};
use crate::catalog::{Catalog, Generation, Gpu};
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::options::TrainingOptions;
use crate::stack::{Software, Stack};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A predicted value with its 80 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Interval {
    /// Lower end: one measurement in ten is expected below.
    pub low: f64,
    /// The prediction.
    pub mid: f64,
    /// Upper end: one measurement in ten is expected above.
    pub high: f64,
}

impl Interval {
    /// Returns the interval with all three values multiplied by `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Interval {
        Interval { low: self.low * factor, mid: self.mid * factor, high: self.high * factor }
    }
}

choices! {
    /// The classes of predictions, each with its own interval. The titles are the names in data files and reports.
    ///
    /// Interpolated: the same model was measured on the same GPU. Extrapolated: it was not. The others are further from
    /// every measurement: see [`Distance`].
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
        /// Mixture of experts with parallelism that is rarely measured: see [`Evidence::is_rare`].
        RoutedRare "routed_rare" "routed, rarely measured parallelism",
    }
}

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
}

impl Distance {
    /// Returns the most GPUs of a generation in a measured run of a mixture of experts or of a dense model; 0 without runs.
    pub(crate) fn most_gpus(generation: Generation, is_routed: bool) -> u32 {
        let extents = MeasuredExtent::embedded().iter().filter(|extent| extent.generation == generation);
        extents.map(|extent| if is_routed { extent.routed } else { extent.dense }).max().unwrap_or(0)
    }
}

/// How many times as many GPUs as were measured are far from any measurement.
pub const FAR: u32 = 2;

/// 80 % of a normal distribution lie within that many standard deviations.
pub(crate) const OF_80_PERCENT: f64 = 1.2816;

/// The least ratio of the widths of two intervals, from the fast end to the slow one, that a reader notices.
const NOTICEABLY_WIDER: f64 = 1.1;

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

impl IntervalClass {
    /// Returns the class of the prediction from `inputs`, if nothing but its model and layout is unmeasured.
    pub fn of(inputs: &Inputs<'_>, is_interpolated: bool) -> IntervalClass {
        IntervalClass::of_model(inputs.architecture.moe.is_some(), &inputs.options.software, is_interpolated)
    }

    fn of_model(is_routed: bool, software: &Software, is_interpolated: bool) -> IntervalClass {
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

/// The intervals of all layouts of a model on some GPUs with some software, around a prediction of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LayoutIntervals {
    interpolated: Ends,
    extrapolated: Ends,
    /// Of layouts with parallelism that is rarely measured.
    rare: Ends,
    /// See [`ClassInterval::per_doubt`] and [`ClassInterval::growth`].
    per_doubt: f64,
    growth: f64,
}

impl LayoutIntervals {
    /// Returns the interval around `mid`, predicted with evidence of that kind, with [`Evidence::unlike`](super::Evidence::unlike),
    /// [`Evidence::doubt`](super::Evidence::doubt) and [`Evidence::is_rare`](super::Evidence::is_rare).
    pub(crate) fn around(
        &self,
        mid: f64,
        evidence: EvidenceKind,
        unlike: f64,
        doubt: f64,
        is_rare: bool,
    ) -> Interval {
        let ends = match evidence {
            _ if is_rare => self.rare,
            EvidenceKind::Modelled => self.extrapolated,
            EvidenceKind::Published | EvidenceKind::Interpolated => {
                self.interpolated.towards(self.extrapolated, distant_share(unlike, self.growth))
            }
        };
        let Ends { low, high } = ends.with_doubt(self.per_doubt * doubt);
        Interval { low: mid * low, mid, high: mid * high }
    }

    /// Returns the least ratio of the slow end to the prediction, without any doubt about the correction: of layouts that may be
    /// similar to a measured run, or of all others with or without parallelism that is rarely measured.
    pub(crate) fn slow_end(&self, may_be_similar: bool, is_rare: bool) -> f64 {
        match (may_be_similar, is_rare) {
            (true, _) => self.interpolated.high.min(self.extrapolated.high),
            (false, false) => self.extrapolated.high,
            (false, true) => self.rare.high,
        }
    }
}

/// The ends of an interval of measured over predicted step times.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ends {
    low: f64,
    high: f64,
}

impl Ends {
    /// Returns the ends, moved away from the prediction by an independent error of `log`, a logarithm.
    fn with_doubt(self, log: f64) -> Ends {
        let side = |end: f64| (libm::pow(libm::log(end).max(0.0), 2.0) + log * log).sqrt();
        Ends { low: libm::exp(-side(1.0 / self.low)), high: libm::exp(side(self.high)) }
    }

    /// Returns the ends, moved towards wider ones by a share of the difference of the variances.
    fn towards(self, wider: Ends, share: f64) -> Ends {
        let side = |own: f64, wide: f64| {
            let (own, wide) = (libm::log(own).max(0.0), libm::log(wide).max(0.0));
            (own * own + (wide * wide - own * own).max(0.0) * share).sqrt()
        };
        let low = side(1.0 / self.low, 1.0 / wider.low);
        Ends { low: libm::exp(-low), high: libm::exp(side(self.high, wider.high)) }
    }

    /// Returns the ends, but none further from the prediction than that of `most`.
    fn within(self, most: Ends) -> Ends {
        Ends { low: self.low.max(most.low), high: self.high.min(most.high) }
    }

    /// Returns the ends, but none nearer to the prediction than `log`, a logarithm.
    fn at_least(self, log: f64) -> Ends {
        Ends { low: self.low.min(libm::exp(-log)), high: self.high.max(libm::exp(log)) }
    }

    /// Returns the ends, wider by what each of `wider` exceeds `usual`. Errors with different causes are independent, so the
    /// squares of their logarithms add up.
    fn widened(self, usual: Ends, wider: &[Ends]) -> Ends {
        if wider.is_empty() {
            return self;
        }
        // Of the end's distance from the prediction; 0 if the end is on the other side of it.
        let side = |end: fn(&Ends) -> f64| {
            let square = |ends: &Ends| {
                let log = libm::log(end(ends)).max(0.0);
                log * log
            };
            let more = wider.iter().map(|ends| (square(ends) - square(&usual)).max(0.0)).sum::<f64>();
            (square(&self) + more).sqrt()
        };
        Ends { low: libm::exp(-side(|ends| 1.0 / ends.low)), high: libm::exp(side(|ends| ends.high)) }
    }
}

/// Returns how far the interval of an interpolated prediction is on its way to that of an extrapolated one, from 0 for a measured
/// layout to 1 where the nearest run is hardly similar, by [`Evidence::unlike`](super::Evidence::unlike): the larger `growth`, the
/// later. So no interval changes abruptly from a layout to the next.
pub(crate) fn distant_share(unlike: f64, growth: f64) -> f64 {
    libm::pow((unlike / (1.0 - SIMILAR * SIMILAR)).min(1.0), growth)
}

/// The interval of each class of predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalTable(Vec<ClassInterval>);

/// The 80 % interval of measured over predicted step times in one class.
#[derive(Debug, Clone, PartialEq)]
struct ClassInterval {
    class: IntervalClass,
    low: f64,
    high: f64,
    /// How many times the doubt about a correction widens the interval, as a logarithm; 0 of distant classes.
    per_doubt: f64,
    /// How late the interval grows with the distance to the nearest run: see [`distant_share`].
    growth: f64,
}

impl FromRow for ClassInterval {
    fn from_row(row: &Row<'_>) -> Result<ClassInterval, DataError> {
        let title = row.text("class")?;
        let class = IntervalClass::ALL.into_iter().find(|class| class.title() == title);
        let class = class.ok_or_else(|| row.error(format!("the class \"{title}\" is unknown")))?;
        Ok(ClassInterval {
            class,
            low: row.number("low")?,
            high: row.number("high")?,
            per_doubt: row.number("per_doubt")?,
            growth: row.number("growth")?,
        })
    }
}

impl IntervalTable {
    /// Returns the embedded table.
    pub fn embedded() -> &'static IntervalTable {
        static EMBEDDED: LazyLock<IntervalTable> =
            LazyLock::new(|| IntervalTable(embedded!("intervals.csv")));
        &EMBEDDED
    }

    /// Returns the interval around `mid`, predicted from `inputs` with that evidence.
    pub fn around(&self, mid: f64, inputs: &Inputs<'_>, evidence: &Evidence) -> Interval {
        let (gpu, gpus) = (inputs.gpu, inputs.layout.gpus());
        let is_routed = inputs.architecture.moe.is_some();
        self.of_layouts(gpu, gpus, is_routed, inputs.options).around(
            mid,
            evidence.kind,
            evidence.unlike,
            evidence.doubt,
            evidence.is_rare,
        )
    }

    /// Returns whether the interval of a prediction is noticeably wider than it would be if GPU type, software and scale were measured.
    pub(crate) fn is_wide(&self, interval: Interval, inputs: &Inputs<'_>, evidence: &Evidence) -> bool {
        let per_doubt = self.row(IntervalClass::of(inputs, true)).map_or(0.0, |row| row.per_doubt);
        let usual = self.ends(IntervalClass::of(inputs, false)).with_doubt(per_doubt * evidence.doubt);
        interval.high / interval.low > NOTICEABLY_WIDER * usual.high / usual.low
    }

    /// Returns the intervals of all layouts of a model on `gpus` GPUs, with the software and the cluster of `options`.
    ///
    /// A cluster's own runs tell how far predictions for its GPU type and software are off, even if nobody else measured them. So what
    /// they leave open replaces what widens the interval for these, if it is less. Other layouts are as uncertain as
    /// without them, and no interval is narrower than the runs scatter. Factors of 1 confirm the estimate, so with them no interval is
    /// wider than without the runs: the scatter of a few may be chance.
    pub(crate) fn of_layouts(
        &self,
        gpu: &Gpu,
        gpus: u32,
        is_routed: bool,
        options: &TrainingOptions,
    ) -> LayoutIntervals {
        let software = &options.software;
        let own_runs = options.cluster.own_runs(&gpu.id, software, is_routed);
        let class = |is_interpolated| IntervalClass::of_model(is_routed, software, is_interpolated);
        let base = |is_interpolated| self.ends(class(is_interpolated));
        let distances = Distance::all_of(gpu, gpus, is_routed, software);
        let ends = |distance: &Distance| self.ends(distance.class(is_routed));
        let unmeasured: Vec<Ends> = distances.iter().map(ends).collect();
        let mut wider = unmeasured.clone();
        let usual = base(false);
        if let Some(own) = own_runs {
            let is_of_machine = |distance: &&Distance| **distance != Distance::Scale;
            let machine: Vec<Ends> = distances.iter().filter(is_of_machine).map(ends).collect();
            let left_open = usual.with_doubt(OF_80_PERCENT * own.spread());
            let machine = usual.widened(usual, &machine).within(left_open);
            wider = distances.iter().filter(|distance| !is_of_machine(distance)).map(ends).collect();
            wider.push(machine);
        }
        let widened = |ends: Ends, rare: &[Ends]| {
            let with_runs = ends.widened(usual, &[&wider[..], rare].concat());
            let Some(own) = own_runs else { return with_runs };
            let scattered = with_runs.at_least(OF_80_PERCENT * own.scatter);
            match options.cluster.is_neutral() {
                true => scattered.within(ends.widened(usual, &[&unmeasured[..], rare].concat())),
                false => scattered,
            }
        };
        // Dense models are measured with everything.
        let rare: Option<Ends> = is_routed.then(|| self.ends(IntervalClass::RoutedRare));
        let interpolated = self.row(class(true));
        LayoutIntervals {
            interpolated: widened(base(true), &[]),
            extrapolated: widened(usual, &[]),
            rare: widened(usual, rare.as_slice()),
            per_doubt: interpolated.map_or(0.0, |row| row.per_doubt),
            growth: interpolated.map_or(1.0, |row| row.growth),
        }
    }

    fn row(&self, class: IntervalClass) -> Option<&ClassInterval> {
        // Every class has a row; if one were missing, the last row is among the widest.
        self.0.iter().find(|row| row.class == class).or(self.0.last())
    }

    fn ends(&self, class: IntervalClass) -> Ends {
        self.row(class).map_or(Ends { low: 0.5, high: 2.0 }, |row| Ends { low: row.low, high: row.high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_factors::{ClusterFactors, RunScatter};

    /// Returns the intervals of layouts on `gpus` of a GPU type, or of one changed by the text.
    fn intervals(gpu: &str, gpus: u32, is_routed: bool, software: &str) -> LayoutIntervals {
        let catalog = Catalog::embedded();
        let gpu = catalog.gpu(gpu).cloned().or_else(|_| Gpu::own(gpu, catalog)).unwrap();
        let options = TrainingOptions { software: software.parse().unwrap(), ..TrainingOptions::default() };
        IntervalTable::embedded().of_layouts(&gpu, gpus, is_routed, &options)
    }

    /// Returns the intervals of layouts of a dense model with own software on H100, without own runs or with some that scatter so.
    fn with_own_runs(gpus: u32, own: Option<(u32, f64)>) -> LayoutIntervals {
        with_factors("1.01", OWN, gpus, own)
    }

    /// Returns them with these factors and this software.
    fn with_factors(factors: &str, software: &str, gpus: u32, own: Option<(u32, f64)>) -> LayoutIntervals {
        let gpu = Catalog::embedded().gpu("h100").unwrap();
        let software: Software = software.parse().unwrap();
        let scope = RunScatter::scope_of(&gpu.id, &software, false);
        let own = own.map(|(runs, scatter)| RunScatter { runs, scatter, scope });
        let cluster = factors.parse::<ClusterFactors>().unwrap().with_own_runs(own);
        let options = TrainingOptions { software, cluster, ..TrainingOptions::default() };
        IntervalTable::embedded().of_layouts(gpu, gpus, false, &options)
    }

    /// Software that differs from NVIDIA's in more than a release does.
    const OWN: &str = "nanotron:overlaps_tp=yes";

    fn contains(wider: Ends, other: Ends) -> bool {
        wider.low <= other.low && wider.high >= other.high && wider != other
    }

    const BRIDGE: &str = "megatron-bridge-26.06";

    #[test]
    fn intervals_grow_with_each_way_in_which_nothing_was_measured() {
        let measured = intervals("h100", 512, false, BRIDGE);
        let own_gpu = intervals("h100:hbm_gb=96", 512, false, BRIDGE);
        let own_software = intervals("h100", 512, false, "nanotron:overlaps_tp=yes");
        let both = intervals("h100:hbm_gb=96", 512, false, "nanotron:overlaps_tp=yes");
        assert!(contains(own_gpu.extrapolated, measured.extrapolated));
        assert!(contains(intervals("gh200", 512, false, BRIDGE).extrapolated, measured.extrapolated));
        assert!(contains(own_software.extrapolated, measured.extrapolated));
        assert!(contains(both.extrapolated, own_gpu.extrapolated));
        // One changed property makes NVIDIA's software another release of it.
        let own_release = intervals("h100", 512, false, "megatron-bridge-26.06:overlaps_tp=no");
        assert!(contains(own_software.extrapolated, own_release.extrapolated));
        assert!(own_release.extrapolated.high <= own_gpu.extrapolated.high);
        // An own GPU that differs in nothing but a larger network is as little measured.
        assert_eq!(intervals("h100:nic_gbit=800", 512, false, BRIDGE), own_gpu);
    }

    #[test]
    fn a_scale_is_far_beyond_twice_the_largest_run_of_the_generation() {
        for generation in [Generation::Ampere, Generation::Hopper, Generation::Blackwell] {
            let gpu = Catalog::embedded().gpus().iter().find(|gpu| gpu.generation == generation).unwrap();
            let most = Distance::most_gpus(generation, false);
            let software: Software = Stack::MegatronLm014.into();
            let is_far = |gpus| Distance::all_of(gpu, gpus, false, &software).contains(&Distance::Scale);
            assert!(most >= 512 && !is_far(FAR * most) && is_far(FAR * most + 1), "{generation:?}: {most}");
        }
        let [near, far] = [64, 1 << 20].map(|gpus| intervals("h100", gpus, true, BRIDGE));
        assert!(
            far.extrapolated.high >= near.extrapolated.high
                && far.interpolated.high >= near.interpolated.high
        );
    }

    #[test]
    fn a_planned_gpu_is_far_in_every_way_and_has_the_widest_interval() {
        let planned = Catalog::embedded().gpu("vr200").unwrap();
        let everything = [Distance::Gpu, Distance::Software, Distance::Scale];
        assert_eq!(Distance::all_of(planned, 8, false, &Stack::Bridge2606.into()), everything);
        for is_routed in [false, true] {
            let [planned, of_known_generation] =
                ["vr200", "gh200"].map(|gpu| intervals(gpu, 256, is_routed, BRIDGE).extrapolated);
            assert!(contains(planned, of_known_generation), "{planned:?} {of_known_generation:?}");
            assert!(planned.high / planned.low > 1.6, "{planned:?}");
        }
    }

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

    #[test]
    fn no_layout_is_slower_than_the_slow_end_of_distant_ones() {
        for gpu in ["h100", "gh200", "b200:nic_gbit=200"] {
            for software in [BRIDGE, "nanotron", "torchtitan", "nanotron:eager=no"] {
                for is_routed in [false, true] {
                    let of = intervals(gpu, 4096, is_routed, software);
                    let (distant, least) = (of.slow_end(false, false), of.slow_end(true, true));
                    let high = |evidence, is_rare| of.around(1.0, evidence, 0.0, 0.0, is_rare).high;
                    assert_eq!(high(EvidenceKind::Modelled, false), distant);
                    assert!(least <= high(EvidenceKind::Published, false) && least <= distant);
                    let rare = of.slow_end(false, true);
                    // Apart from rounding.
                    assert!((high(EvidenceKind::Modelled, true) / rare - 1.0).abs() < 1e-12);
                    assert!(rare >= distant * (1.0 - 1e-12), "{gpu} {software}");
                }
            }
        }
    }

    #[test]
    fn the_more_own_runs_agree_the_narrower_the_interval_of_their_software() {
        let of = |own| with_own_runs(64, own).extrapolated;
        let (none, three, ten) = (of(None), of(Some((3, 0.02))), of(Some((10, 0.02))));
        assert!(contains(none, three) && contains(three, ten), "{none:?} {three:?} {ten:?}");
        // Other layouts remain as uncertain as with software that was measured.
        let measured = intervals("h100", 64, false, "nanotron").extrapolated;
        let all = of(Some((1_000_000, 0.0)));
        assert!(all.high >= measured.high * (1.0 - 1e-12) && all.low <= measured.low * (1.0 + 1e-12));
        assert!(contains(ten, all));
        // So does a scale that nobody measured.
        let far = with_own_runs(1 << 20, Some((10, 0.02))).extrapolated;
        assert!(far.high > ten.high, "{far:?}");
    }

    #[test]
    fn own_runs_that_scatter_narrow_nothing() {
        let (none, own) = (with_own_runs(64, None), with_own_runs(64, Some((10, 0.6))));
        for (none, own) in [
            (none.interpolated, own.interpolated),
            (none.extrapolated, own.extrapolated),
            (none.rare, own.rare),
        ] {
            assert!(contains(own, none), "{own:?} {none:?}");
        }
    }

    #[test]
    fn own_runs_with_factors_of_1_widen_nothing() {
        for (software, scatter) in
            [OWN, "nemo-2"].into_iter().flat_map(|of| [0.0, 0.02, 0.6].map(|by| (of, by)))
        {
            let [none, own] = [None, Some((5, scatter))].map(|own| with_factors("1", software, 64, own));
            for (none, own) in [
                (none.interpolated, own.interpolated),
                (none.extrapolated, own.extrapolated),
                (none.rare, own.rare),
            ] {
                assert!(
                    own.low >= none.low && own.high <= none.high,
                    "{software} {scatter}: {own:?} {none:?}"
                );
            }
        }
        let [none, own] = [None, Some((5, 0.02))].map(|own| with_factors("1", OWN, 64, own).extrapolated);
        assert!(contains(none, own), "{own:?} {none:?}");
    }

    #[test]
    fn no_interval_is_narrower_than_own_runs_scatter() {
        for scatter in [0.0, 0.01, 0.05, 0.1, 0.3] {
            let of = with_own_runs(64, Some((20, scatter)));
            let most = libm::exp(OF_80_PERCENT * scatter) * (1.0 - 1e-12);
            for ends in [of.interpolated, of.extrapolated, of.rare] {
                assert!(ends.high >= most && 1.0 / ends.low >= most, "{scatter}: {ends:?}");
            }
            assert!(of.slow_end(true, false) >= most && of.slow_end(false, false) >= most);
        }
    }

    #[test]
    fn only_mixtures_of_experts_have_wider_intervals_where_their_parallelism_is_rarely_measured() {
        let [dense, routed] = [false, true].map(|is_routed| intervals("h100", 512, is_routed, BRIDGE));
        assert_eq!(dense.rare, dense.extrapolated);
        assert!(contains(routed.rare, routed.extrapolated));
    }
}
