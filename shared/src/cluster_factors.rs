//! How a cluster differs from the model: `1.08`, or `1.08,host=1.4,network=0.8,matmul=1.1`.

use crate::choices::choices;
use crate::field::Field;
use crate::message;
use crate::pairs::pairs;
use crate::problem::Problem;
use crate::units::parse_count;
use std::fmt;
use std::str::FromStr;

choices! {
    /// What a factor of a cluster is on.
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

/// The largest factor that is read: beyond ten times, the runs measured something else.
const MOST: f64 = 10.0;

/// Factors by which a cluster's own runs correct the model of the step time; all are 1 where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterFactors([f64; ClusterFactor::ALL.len()]);

impl Default for ClusterFactors {
    fn default() -> ClusterFactors {
        ClusterFactors([1.0; ClusterFactor::ALL.len()])
    }
}

impl ClusterFactors {
    /// Returns the factors with these values, in the order of [`ClusterFactor::ALL`].
    pub fn new(values: [f64; ClusterFactor::ALL.len()]) -> ClusterFactors {
        ClusterFactors(values)
    }

    /// Returns one of the factors.
    pub fn of(&self, factor: ClusterFactor) -> f64 {
        self.0[factor as usize]
    }

    /// Whether they change nothing.
    pub fn is_default(&self) -> bool {
        *self == ClusterFactors::default()
    }

    /// Whether they change nothing but the whole step time.
    pub fn is_only_step(&self) -> bool {
        self.0[1..].iter().all(|factor| *factor == 1.0)
    }
}

impl fmt::Display for ClusterFactors {
    /// Writes the factor on the step time, then each other factor that is not 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of(ClusterFactor::Step))?;
        let others = ClusterFactor::ALL.into_iter().zip(self.0).skip(1);
        others
            .filter(|(_, value)| *value != 1.0)
            .try_for_each(|(factor, value)| write!(f, ",{factor}={value}"))
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
                let of = if factor == ClusterFactor::Step { String::new() } else { format!(": {factor}") };
                let wanted = format!(
                    "{of} must be a number from {LEAST} to {MOST}, such as 0.95 or 0.95,host=1.2, not \"{value}\"."
                );
                Err(Problem::new(field, value, message![field, wanted]))
            }
        };
        let (first, rest) = text.split_once(',').unwrap_or((text, ""));
        let (step, list) = if first.contains('=') { (None, text) } else { (Some(first.trim()), rest) };
        let mut values = pairs(Field::ClusterFactor, list, &ClusterFactor::ALL.map(ClusterFactor::id))?;
        if let Some(step) = step {
            values[0] = Some(step);
        }
        let mut factors = ClusterFactors::default();
        for ((factor, read), value) in ClusterFactor::ALL.into_iter().zip(&mut factors.0).zip(values) {
            *read = value.map_or(Ok(1.0), |value| number((factor, value)))?;
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
    }

    proptest! {
        #[test]
        fn factors_read_back_as_written(values in prop::array::uniform9(LEAST..MOST)) {
            let factors = ClusterFactors::new(values);
            prop_assert_eq!(factors.to_string().parse::<ClusterFactors>().unwrap(), factors);
        }
    }
}
