//! The window that a run is scored by, and why that one.

use crate::log::{Span, Window};
use crate::releases::Release;

/// The window for runs of no known release, unless one is chosen.
const DEFAULT: Window = Window::Labels(Span { first: 35, last: 44 });

/// The window that a run is scored by, and why that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scoring {
    /// The window.
    pub window: Window,
    source: WindowSource,
}

/// Why a window was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowSource {
    /// The user chose it.
    Chosen,
    /// The run's release scores by it.
    Release(Release),
    /// The run's release is unknown.
    Default,
}

impl Scoring {
    /// Returns the `chosen` window, if any, else the one of the run's release.
    #[must_use]
    pub fn of(chosen: Option<Window>, release: Option<Release>) -> Self {
        let own = release.map_or(Self { window: DEFAULT, source: WindowSource::Default }, |release| Self {
            window: release.contract().window,
            source: WindowSource::Release(release),
        });
        match chosen {
            Some(window) if window != own.window => Self { window, source: WindowSource::Chosen },
            _ => own,
        }
    }

    /// Returns why this window was taken, as the end of a sentence.
    fn reason(&self) -> String {
        match self.source {
            WindowSource::Chosen => "as you chose".to_owned(),
            WindowSource::Release(release) => format!("as release {release} does"),
            WindowSource::Default => "the default for runs of an unknown release".to_owned(),
        }
    }

    /// Returns who chose this window, in a word or two: `release 25.04`.
    #[must_use]
    pub fn source(&self) -> String {
        match self.source {
            WindowSource::Chosen => "chosen".to_owned(),
            WindowSource::Release(release) => format!("release {release}"),
            WindowSource::Default => "default".to_owned(),
        }
    }

    /// Returns a sentence that says which steps were `scored`, by the labels that the log prints, and why.
    #[must_use]
    pub fn sentence(&self, scored: &str) -> String {
        let steps = match (self.window, scored.split_once('-')) {
            (Window::Last, Some((_, last))) => format!("Step {last} is scored, the last in the log"),
            (_, Some((first, last))) if first == last => format!("Step {last} is scored"),
            _ => format!("Steps {} are scored", scored.replace('-', "–")),
        };
        format!("{steps}, {}.", self.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_the_scored_steps_and_why_they_were_taken() {
        for (chosen, release, scored, window, sentence) in [
            ("", "25.04", "49-49", "last", "Step 49 is scored, the last in the log, as release 25.04 does."),
            ("", "25.12", "35-44", "35-44", "Steps 35–44 are scored, as release 25.12 does."),
            ("", "", "35-44", "35-44", "Steps 35–44 are scored, the default for runs of an unknown release."),
            ("20-30", "25.05", "20-30", "20-30", "Steps 20–30 are scored, as you chose."),
            ("7-7", "25.05", "7-7", "7-7", "Step 7 is scored, as you chose."),
            // Choosing the release's own window changes nothing.
            ("11-44", "25.05", "11-44", "11-44", "Steps 11–44 are scored, as release 25.05 does."),
        ] {
            let scoring = Scoring::of(chosen.parse().ok(), release.parse().ok());
            assert_eq!(
                (scoring.window.to_string().as_str(), scoring.sentence(scored).as_str()),
                (window, sentence)
            );
        }
    }
}
