//! How a cluster differs from the model: `1.08`, or `1.08,host=1.4,network=0.8,matmul=1.1`. If its own runs show how exact that is,
//! `runs=6,scatter=0.02,scope=5d8c1a2b` follows.

use crate::choices::choices;
use crate::field::Field;
use crate::message;
use crate::pairs::pairs;
use crate::problem::Problem;
use crate::stack::Software;
use crate::units::parse_count;
use crate::words::words;
use std::fmt;
use std::str::FromStr;

choices! {
    /// The quantity that a cluster factor multiplies.
    ClusterFactor {
        /// The whole step time: measured over predicted, with the other factors counted.
        Step "step" "the whole step time",
        /// The host's time to launch kernels.
        Host "host" "the host's time to launch kernels",
        /// The bandwidth between nodes.
        Network "network" "the bandwidth between nodes (below 1 is slower)",
        /// The latency of a step around a ring between nodes.
        Latency "latency" "the latency between nodes",
        /// The throughput of matrix multiplications.
        Matmul "matmul" "the throughput of matrix multiplications (below 1 is slower)",
        /// The fixed time of a step, such as logging and synchronization.
        Fixed "fixed" "the fixed time of a step",
        /// The bandwidth of the GPUs' memory.
        Memory "memory" "the bandwidth of the GPUs' memory (below 1 is slower)",
        /// The bandwidth of NVLink.
        Nvlink "nvlink" "the bandwidth of NVLink (below 1 is slower)",
        /// The throughput of matrix multiplications in FP8 and NVFP4, relative to that of BF16. [`ClusterFactor::Matmul`] counts too.
        Fp8 "fp8" "the throughput of matrix multiplications below 16 bits (below 1 is slower)",
    }
}

/// The smallest factor that is read.
const LEAST: f64 = 0.1;

/// The largest accepted factor: beyond ten times, the runs measured something else.
const MOST: f64 = 10.0;

/// Factors by which a cluster's own runs correct the model of the step time; all are 1 where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterFactors {
    values: [f64; ClusterFactor::ALL.len()],
    own_runs: Option<RunScatter>,
}

/// How far a cluster's own runs scatter around estimates with factors from these runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunScatter {
    /// The number of runs.
    pub runs: u32,
    /// The root mean square of the logarithm of measured over predicted step time, of each run with factors from the others.
    pub scatter: f64,
    /// What ran: see [`RunScatter::scope_of`].
    pub scope: u32,
}

/// The prior standard deviation of the logarithm of a run's step time over its prediction with the best factors.
pub(crate) const USUAL_SCATTER: f64 = 0.1;

/// The names of what [`RunScatter`] holds, in the text of factors.
const OWN_RUNS: [&str; 3] = ["runs", "scatter", "scope"];

impl RunScatter {
    /// Returns a hash of the id of the GPU type, the software and the kind of model, dense or mixture of experts. Runs say nothing
    /// about estimates that differ in one of them.
    pub fn scope_of(gpu: &str, software: &Software, is_routed: bool) -> u32 {
        let kind = if is_routed { "moe" } else { "dense" };
        // FNV-1a, which is the same on every machine.
        format!("{gpu} {software} {kind}")
            .bytes()
            .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
    }

    /// Returns the expected standard deviation of the logarithm of measured over predicted step time for another run.
    /// [`USUAL_SCATTER`] counts as one run, so that a few runs that agree by chance don't promise too much.
    pub(crate) fn spread(&self) -> f64 {
        let runs = f64::from(self.runs);
        ((USUAL_SCATTER * USUAL_SCATTER + runs * self.scatter * self.scatter) / (1.0 + runs)).sqrt()
    }

    fn read(runs: &str, scatter: &str, scope: &str) -> Option<RunScatter> {
        let runs = runs.parse::<u32>().ok().filter(|runs| *runs > 0)?;
        let scatter = parse_count(scatter).filter(|scatter| *scatter <= MOST)?;
        Some(RunScatter { runs, scatter, scope: u32::from_str_radix(scope, 16).ok()? })
    }
}

impl Default for ClusterFactors {
    fn default() -> ClusterFactors {
        ClusterFactors::new([1.0; ClusterFactor::ALL.len()])
    }
}

impl ClusterFactors {
    /// Returns the factors with these values, in the order of [`ClusterFactor::ALL`].
    pub fn new(values: [f64; ClusterFactor::ALL.len()]) -> ClusterFactors {
        ClusterFactors { values, own_runs: None }
    }

    /// Returns the factors with the scatter of the runs that they were fitted to.
    #[must_use]
    pub fn with_own_runs(self, own_runs: Option<RunScatter>) -> ClusterFactors {
        ClusterFactors { own_runs, ..self }
    }

    /// Returns the scatter of the runs that they were fitted to, if it applies to this GPU type, software and kind of model.
    pub(crate) fn own_runs(&self, gpu: &str, software: &Software, is_routed: bool) -> Option<RunScatter> {
        self.own_runs.filter(|own| own.scope == RunScatter::scope_of(gpu, software, is_routed))
    }

    /// Returns one of the factors.
    pub fn of(&self, factor: ClusterFactor) -> f64 {
        self.values[factor as usize]
    }

    /// Whether they change nothing.
    pub fn is_default(&self) -> bool {
        *self == ClusterFactors::default()
    }

    /// Whether all are 1, so that they change no step time. With own runs they may still change its interval.
    pub fn is_neutral(&self) -> bool {
        self.with_own_runs(None).is_default()
    }

    /// Whether they change nothing but the whole step time.
    pub fn is_only_step(&self) -> bool {
        self.values[1..].iter().all(|factor| *factor == 1.0)
    }
}

impl fmt::Display for ClusterFactors {
    /// Writes the factor on the step time, then each other factor that is not 1, then what the user's own
    /// runs show.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of(ClusterFactor::Step))?;
        let mut others = ClusterFactor::ALL.into_iter().zip(self.values).skip(1);
        others.try_for_each(|(factor, value)| match value == 1.0 {
            true => Ok(()),
            false => write!(f, ",{factor}={value}"),
        })?;
        let Some(RunScatter { runs, scatter, scope }) = self.own_runs else { return Ok(()) };
        let [of_runs, of_scatter, of_scope] = OWN_RUNS;
        write!(f, ",{of_runs}={runs},{of_scatter}={scatter},{of_scope}={scope:08x}")
    }
}

impl FromStr for ClusterFactors {
    type Err = Problem;

    /// Reads the factor on the step time, the others as `name=value`, or both.
    fn from_str(text: &str) -> Result<ClusterFactors, Problem> {
        let number = |(factor, value): (ClusterFactor, &str)| match parse_count(value) {
            Some(number) if (LEAST..=MOST).contains(&number) => Ok(number),
            _ => {
                let field = Field::ClusterFactor;
                let of = if factor == ClusterFactor::Step { String::new() } else { words!(": {factor}") };
                let wanted = words!(
                    "{of} must be a number from {LEAST} to {MOST}, such as 0.95 or 0.95,host=1.2, not \"{value}\"."
                );
                Err(Problem::new(field, value, message![field, wanted]))
            }
        };
        let (first, rest) = text.split_once(',').unwrap_or((text, ""));
        let (step, list) = if first.contains('=') { (None, text) } else { (Some(first.trim()), rest) };
        let names = ClusterFactor::ALL.into_iter().map(ClusterFactor::id).chain(OWN_RUNS);
        let mut values = pairs(Field::ClusterFactor, list, &names.collect::<Vec<&str>>())?;
        let own_runs = values.split_off(ClusterFactor::ALL.len());
        if let Some(step) = step {
            values[0] = Some(step);
        }
        let mut factors = ClusterFactors::default();
        for ((factor, read), value) in ClusterFactor::ALL.into_iter().zip(&mut factors.values).zip(values) {
            *read = value.map_or(Ok(1.0), |value| number((factor, value)))?;
        }
        if let [Some(runs), Some(scatter), Some(scope)] = own_runs[..] {
            factors.own_runs = RunScatter::read(runs, scatter, scope);
        }
        if factors.own_runs.is_none() && own_runs.iter().any(Option::is_some) {
            let field = Field::ClusterFactor;
            let wanted = ": runs, scatter and scope must be as they were computed from your runs, such as \
                          1.08,runs=6,scatter=0.02,scope=5d8c1a2b. Remove all three to use the factors alone.";
            return Err(Problem::new(field, list, message![field, wanted]));
        }
        Ok(factors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(text: &str) -> String {
        text.parse::<ClusterFactors>().unwrap_err().to_string()
    }

    #[test]
    fn one_number_is_the_factor_on_the_step_time() {
        let read =
            |text: &str| ClusterFactor::ALL.map(|factor| text.parse::<ClusterFactors>().unwrap().of(factor));
        assert_eq!(read("1.08"), [1.08, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(read("host=1.4, network=0.8"), [1.0, 1.4, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(
            "host=1.4, network=0.8".parse::<ClusterFactors>().unwrap().to_string(),
            "1,host=1.4,network=0.8"
        );
    }

    #[test]
    fn what_is_not_a_factor_is_refused() {
        assert!(refusal("-1").contains("must be a number from 0.1 to 10"));
        assert!(refusal("1.1,host=fast").contains(": host must be"));
        assert!(refusal("108").contains("not \"108\""));
        assert!(refusal("1.1,hots=2").contains("host"));
        assert!(refusal("1.1,host=2,host=3").contains("twice"));
        assert!(refusal("inf").contains("from 0.1 to 10"));
        for own in
            ["runs=6", "runs=0,scatter=0.1,scope=1", "runs=6,scatter=-1,scope=1", "runs=6,scatter=1,scope=x"]
        {
            assert!(refusal(&format!("1.1,{own}")).contains("Remove all three"), "{own}");
        }
    }

    #[test]
    fn own_runs_tell_of_their_gpu_type_software_and_kind_of_model_only() {
        let [h100, a100] = ["h100", "a100"];
        let [nanotron, titan] = ["nanotron", "torchtitan"].map(|stack| stack.parse::<Software>().unwrap());
        let scope = RunScatter::scope_of(h100, &nanotron, false);
        let own = RunScatter { runs: 6, scatter: 0.02, scope };
        let factors = "1.08,host=1.2".parse::<ClusterFactors>().unwrap().with_own_runs(Some(own));
        assert_eq!(factors.to_string(), format!("1.08,host=1.2,runs=6,scatter=0.02,scope={scope:08x}"));
        assert_eq!(factors.to_string().parse::<ClusterFactors>().unwrap(), factors);
        assert_eq!(factors.own_runs(h100, &nanotron, false), Some(own));
        for (gpu, software, is_routed) in
            [(a100, &nanotron, false), (h100, &titan, false), (h100, &nanotron, true)]
        {
            assert_eq!(factors.own_runs(gpu, software, is_routed), None);
        }
    }

    proptest! {
        #[test]
        fn factors_read_back_as_written(values in prop::array::uniform9(LEAST..MOST)) {
            let factors = ClusterFactors::new(values);
            prop_assert_eq!(factors.to_string().parse::<ClusterFactors>().unwrap(), factors);
        }
    }
}
