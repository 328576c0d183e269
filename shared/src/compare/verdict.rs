//! The verdict on a difference.

use crate::choices::choices;
use crate::statistics::{LEVEL, MeanDifference};
use crate::units;

choices! {
    /// The verdict on a run compared with the reference.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Verdict {
        /// Its steps take less time.
        Faster "faster",
        /// Its steps take longer.
        Slower "slower",
        /// No significant difference that matters.
        NoDifference "no_difference" "no difference",
        /// No significant difference, but the interval includes large ones.
        Inconclusive "inconclusive",
        /// The two runs are not comparable.
        NotComparable "not_comparable" "not comparable",
        /// Several runs have different verdicts.
        Mixed "mixed",
    }
}

impl Verdict {
    /// Returns the verdict on a change of the step time. Only a change of at least `margin_percent` matters.
    pub(super) fn of(step_time: Option<MeanDifference>, has_obstacle: bool, margin_percent: f64) -> Self {
        let Some(MeanDifference { percent, low: Some(low), high: Some(high), .. }) = step_time else {
            return Self::NotComparable;
        };
        let matters = percent.abs() >= margin_percent;
        match () {
            () if has_obstacle => Self::NotComparable,
            () if matters && low > 0.0 => Self::Slower,
            () if matters && high < 0.0 => Self::Faster,
            () if low <= 0.0 && high >= 0.0 && is_wide(low, high, margin_percent) => Self::Inconclusive,
            () => Self::NoDifference,
        }
    }

    /// Returns the verdict with its numbers, in words.
    pub(super) fn text(
        self,
        step_time: Option<MeanDifference>,
        reasons: &[String],
        margin_percent: f64,
    ) -> String {
        let figures = step_time.map(|change| match (change.low, change.high) {
            (Some(low), Some(high)) => {
                format!("step time {} % ({} to {} %)", signed(change.percent), signed(low), signed(high))
            }
            _ => format!("step time {} %", signed(change.percent)),
        });
        let words = match self {
            Self::NoDifference => match step_time.and_then(|change| change.p) {
                Some(p) if p < 1.0 - LEVEL => format!("no difference of {margin_percent} % or more"),
                _ => "no significant difference".to_owned(),
            },
            other => other.title().to_owned(),
        };
        let text = match figures {
            Some(figures) => format!("{words}: {figures}"),
            None => words,
        };
        match reasons {
            [] => text,
            reasons => format!("{text}. {}", reasons.join(" ")),
        }
    }

    /// Returns the verdict on several runs; none if there are none.
    pub(super) fn of_all(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let first = all.next()?;
        Some(if all.all(|verdict| verdict == first) { first } else { Self::Mixed })
    }
}

/// Returns whether an interval in percent around 0 includes differences of several times the margin. Which of the two runs is the
/// reference doesn't matter.
fn is_wide(low: f64, high: f64, margin_percent: f64) -> bool {
    /// How many margins.
    const MANY: f64 = 5.0;
    let ratio = |percent: f64| 1.0 + percent / 100.0;
    ratio(high).max(1.0 / ratio(low)) > ratio(MANY * margin_percent)
}

/// Returns percent with a sign. What rounds to 0 has no minus.
fn signed(percent: f64) -> String {
    units::signed(if percent.abs() < 0.005 { 0.0 } else { percent }, 2)
}
