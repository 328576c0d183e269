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

    /// Returns whose rule this window is, as the start of a sentence: `Release 25.04`.
    pub(super) fn rule(&self) -> String {
        match self.source {
            WindowSource::Chosen => "The chosen window".to_owned(),
            WindowSource::Release(release) => format!("Release {release}"),
            WindowSource::Default => "The default window".to_owned(),
        }
    }

    /// Returns which step the `recipe` or the release scores, which an unfinished log lacks, and how to score the log's own steps
    /// (`labels`); none if they don't score the last step.
    pub(super) fn missed(&self, recipe: Option<&str>, planned: Option<u64>, labels: Span) -> Option<String> {
        let WindowSource::Release(release) = self.source else { return None };
        let planned = planned.filter(|planned| self.window == Window::Last && *planned > labels.last)?;
        let who = recipe.map_or_else(|| format!("Release {release}"), |recipe| format!("Recipe {recipe}"));
        Some(format!("{who} scores step {planned}. To score this log, choose a window within {labels}."))
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
    fn an_unfinished_log_is_told_which_step_its_recipe_scores() {
        let labels = Span { first: 1, last: 60 };
        let missed = |chosen: &str, release: &str, planned| {
            let recipe = Some("llama3.1-8b/h100/bf16/8@25.04");
            Scoring::of(chosen.parse().ok(), release.parse().ok()).missed(recipe, planned, labels)
        };
        assert_eq!(
            missed("", "25.04", Some(100)).as_deref(),
            Some(
                "Recipe llama3.1-8b/h100/bf16/8@25.04 scores step 100. To score this log, choose a window within 1-60."
            )
        );
        let without = Scoring::of(None, "25.04".parse().ok()).missed(None, Some(100), labels);
        assert!(without.is_some_and(|text| text.starts_with("Release 25.04 scores step 100.")));
        // The window of a later release ends earlier, and a chosen one is nobody's rule.
        for none in [
            missed("", "25.12", Some(100)),
            missed("70-80", "25.04", Some(100)),
            missed("", "25.04", Some(60)),
        ] {
            assert_eq!(none, None);
        }
    }

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
