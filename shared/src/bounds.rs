//! The bounds of each field's numbers: one table that every front end reads.

use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::range::ValueRange;
use crate::units::parse_count;

/// The smallest and the largest number of a field. They are texts as people write them, so that an error shows what was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldBounds {
    /// The smallest number.
    pub least: &'static str,
    /// The largest number.
    pub most: &'static str,
    /// What an error says that a value must be, before the bounds.
    what: &'static str,
    /// What an error names after the bounds: values that work.
    such_as: &'static str,
}

impl Field {
    /// Returns the numbers that the field takes. A field without its own entry takes whole numbers, as the degrees of parallelism
    /// do.
    ///
    /// Bounds exclude typing errors and values that make results meaningless, not unusual plans. Prices are in any currency, and
    /// some are worth 1/30,000 of a dollar.
    pub const fn bounds(self) -> FieldBounds {
        let (what, least, most, such_as) = match self {
            Field::Tokens => ("a number", "1M", "1,000T", ", such as 10T, 1.5e12 or 500B"),
            Field::GpuRange => (
                "a number of GPUs",
                "1",
                "1,000,000",
                ", such as 1024, a limit, such as <=1024, a list, such as 512,1024, or a range, such as 512..4096",
            ),
            // From the sequences of tests to more than any model reads.
            Field::SeqLen => ("a whole number", "1", "16,777,216", ", such as 8192"),
            // 32 bits hold the micro batches of a step times the chunks of a pipeline.
            Field::Gbs => ("a whole number", "1", "4,194,304", ", such as 512"),
            Field::OffloadLayers => ("a whole number", "0", "1,000,000", ""),
            Field::MaxSteps | Field::ProfileStartStep | Field::ProfileStopStep => {
                ("a whole number", "1", "100,000,000", "")
            }
            // The peak of the GPU type limits it further.
            Field::GemmTflops => ("a number of TFLOPS", "0.1", "100,000", ", such as 640"),
            Field::StepTime => (
                "a number of seconds per step",
                "0.001",
                "1,000,000",
                ", such as 12.37, or an MFU from 0.01% to 100%, such as 40%",
            ),
            // A GPU that fails every hour; studies found one failure in 8,000 to 50,000 hours.
            Field::FailureRate => {
                ("a number of failures per GPU-hour", "0", "1", ", such as 2e-5 or 2e-5..1e-4")
            }
            Field::RestartTime => ("a time", "0s", "30d", ", such as 90s, 10m or 1h"),
            Field::SaveTime => ("a time", "0s", "1d", ", such as 90s, 10m or 1h"),
            Field::CheckpointBandwidth => ("a number of GB/s", "0.001", "100,000", ", such as 40"),
            Field::Overhead | Field::SpareNodes => ("a percentage", "0", "100", ", such as 5"),
            Field::Price => (
                "0, or the price of a GPU-hour",
                "0.01",
                "1M",
                ", such as 2.95, 1.99..3.50 or h100=2.95,b200=4.50",
            ),
            Field::Power => (
                "a number of kW per GPU, with cooling and network,",
                "0.05",
                "20",
                ", such as 1.7, or the GPU's TDP times a PUE from 1 to 3, such as tdp*1.3",
            ),
            Field::Electricity => ("the price of a kWh", "0.001", "10,000", ", such as 0.08"),
            Field::Deadline => ("a time", "0.01d", "3650d", ", such as 60d, 8w or 2mo"),
            Field::Budget => ("an amount", "1", "1,000T", ", such as 5M or 250k"),
            Field::Headroom => ("a number of GiB", "0", "1,000", ", such as 4 or 0.5"),
            _ => ("a whole number", "1", "1,000,000", ""),
        };
        FieldBounds { least, most, what, such_as }
    }

    /// Returns the problem of a text that is not a number within the bounds.
    pub(crate) fn refuse(self, text: &str) -> Problem {
        let FieldBounds { least, most, what, such_as } = self.bounds();
        let message = [" must be ", what, " from ", least, " to ", most, such_as, ", not \"", text, "\"."];
        Problem::new(self, text, message![self, message.concat()])
    }
}

impl FieldBounds {
    /// Returns the number of a text; none if it is not within the bounds. `read` reads the text and the bounds.
    pub fn number(self, text: &str, read: fn(&str) -> Option<f64>) -> Option<f64> {
        read(text).filter(|number| self.contains(*number, read))
    }

    /// Whether a number is within the bounds.
    pub(crate) fn contains(self, number: f64, read: fn(&str) -> Option<f64>) -> bool {
        self.nearest(number, read) == number
    }

    /// Returns the range that a person wrote, as [`ValueRange::parse`] reads it; none if an end is not within the bounds.
    pub(crate) fn range(self, text: &str) -> Option<ValueRange> {
        let contains = |end| self.contains(end, parse_count);
        ValueRange::parse(text).filter(|range| contains(range.low) && contains(range.high))
    }

    /// Returns the number within the bounds that is nearest to another one.
    pub(crate) fn nearest(self, number: f64, read: fn(&str) -> Option<f64>) -> f64 {
        let bound = |text| read(text).unwrap_or(number);
        number.max(bound(self.least)).min(bound(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldGroup;
    use crate::planning::StepTime;
    use crate::spec::Spec;
    use crate::units::{parse_days, parse_seconds};

    /// Returns how the bounds of a field are read.
    fn reader(field: Field) -> fn(&str) -> Option<f64> {
        match field {
            Field::Deadline => parse_days,
            Field::RestartTime | Field::SaveTime => parse_seconds,
            _ => parse_count,
        }
    }

    /// Returns the fields that have their own bounds.
    fn numeric() -> impl Iterator<Item = Field> {
        Field::ALL.iter().copied().filter(|field| field.bounds() != Field::Model.bounds())
    }

    #[test]
    fn both_bounds_are_read_back_and_are_allowed() {
        for field in Field::ALL.iter().copied() {
            let (bounds, read) = (field.bounds(), reader(field));
            let [least, most] = [bounds.least, bounds.most].map(|bound| bounds.number(bound, read));
            assert!(least.is_some() && least < most, "{field:?}");
            assert_eq!(bounds.nearest(f64::MAX, read), most.unwrap(), "{field:?}");
            assert_eq!(bounds.nearest(0.0, read), least.unwrap(), "{field:?}");
        }
    }

    /// Reads a text as the value of a field.
    fn read(field: Field, text: &str) -> Result<(), Problem> {
        let spec = Spec::default().with(Field::Model, "llama3.1-8b").with(field, text);
        match field {
            Field::StepTime => spec.parse::<StepTime>(field).map(drop),
            Field::MaxSteps | Field::ProfileStartStep | Field::ProfileStopStep | Field::OffloadLayers => {
                spec.whole(field).map(drop)
            }
            _ => spec.question().map(drop).map_err(|mut problems| problems.remove(0)),
        }
    }

    #[test]
    fn the_readers_take_both_bounds_and_refuse_what_is_beyond_them() {
        for field in numeric() {
            let bounds = field.bounds();
            // A GPU type narrows them.
            if field != Field::GemmTflops {
                for bound in [bounds.least, bounds.most] {
                    // Another field may refuse it: a million GPUs fail faster than they restart.
                    let refused = read(field, bound).err().filter(|problem| problem.field == field);
                    assert_eq!(refused, None, "{field:?}");
                }
            }
            for text in ["-2", "1e300", "x"] {
                let problem = read(field, text).unwrap_err();
                let message = problem.to_string();
                let allowed = format!(" from {} to {}", bounds.least, bounds.most);
                assert!(problem.field == field && message.contains(&allowed), "{message}");
                assert!(message.contains(&format!("not \"{text}\"")), "{message}");
            }
        }
    }

    #[test]
    fn slips_are_refused() {
        for (field, text) in [
            (Field::FailureRate, "2"),
            (Field::FailureRate, "1e-5..2"),
            (Field::Price, "1e20"),
            (Field::Price, "0.001"),
            (Field::Price, "h100=2,b200=1e9"),
            (Field::Deadline, "1e9d"),
            (Field::Deadline, "1e-9d"),
            (Field::Overhead, "1000"),
            (Field::SeqLen, "0"),
            (Field::Gbs, "4294967295"),
            (Field::Electricity, "1e9"),
            (Field::Power, "tdp*1e9"),
            (Field::Power, "700"),
            (Field::RestartTime, "1e9d"),
            (Field::StepTime, "1e-9%"),
            (Field::Headroom, "1e9"),
            (Field::Budget, "$0.5"),
        ] {
            assert_eq!(read(field, text).unwrap_err().field, field, "{text}");
        }
    }

    #[test]
    fn the_help_names_the_bounds() {
        let is_of_goal = |field: &Field| matches!(field.group(), FieldGroup::Goal | FieldGroup::Search);
        for field in numeric().filter(is_of_goal).chain([Field::SeqLen, Field::Gbs]) {
            let FieldBounds { least, most, .. } = field.bounds();
            assert!(field.help().contains(&format!("from {least} to {most}")), "{}", field.help());
        }
    }
}
