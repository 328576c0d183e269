//! The table of intervals, and what widens them for a cluster, its GPUs and its software.

use super::ends::Ends;
use super::{Distance, Interval, IntervalClass, LayoutIntervals};
use crate::catalog::Gpu;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::estimate::{Evidence, Inputs};
use crate::options::TrainingOptions;
use crate::words::words;
use std::sync::LazyLock;

/// 80 % of a normal distribution lie within that many standard deviations.
pub(crate) const OF_80_PERCENT: f64 = 1.2816;

/// The least ratio of the widths of two intervals, from the fast end to the slow one, that a reader notices.
const NOTICEABLY_WIDER: f64 = 1.1;

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
    /// How late the interval grows with the distance to the nearest run: see [`distant_share`](super::layouts::distant_share).
    growth: f64,
}

impl FromRow for ClassInterval {
    fn from_row(row: &Row<'_>) -> Result<ClassInterval, DataError> {
        let title = row.text("class")?;
        let class = IntervalClass::ALL.into_iter().find(|class| class.title() == title);
        let class = class.ok_or_else(|| row.error(words!("the class \"{title}\" is unknown")))?;
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
        let interval = self.of_layouts(gpu, gpus, is_routed, inputs.options).around(
            mid,
            evidence.kind,
            evidence.unlike,
            evidence.doubt,
            evidence.is_rare,
        );
        interval.containing(evidence.measured.map(|measured| measured.times(mid)))
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
    use super::super::FAR;
    use super::*;
    use crate::catalog::{Catalog, Generation};
    use crate::cluster_factors::{ClusterFactors, RunScatter};
    use crate::estimate::EvidenceKind;
    use crate::stack::{Software, Stack};

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
