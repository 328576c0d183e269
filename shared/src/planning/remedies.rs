//! Changes that make a scenario fit into its GPUs' memory.

use crate::estimate::{Estimate, fits};
use crate::field::Field;
use crate::message::{Message, Setting};
use crate::options::Recompute;
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::search::{StackRules, Unsupported};
use crate::spec::Spec;
use std::iter;

/// Changes of a scenario that make it fit into its GPUs' memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// The fields to change, with their new values.
    pub changes: Vec<Setting>,
    /// Predicted step time with these changes, s.
    pub step_time_s: f64,
}

impl Remedy {
    /// Returns the changes, separated by `separator`: `--pp 16 --recompute full` in the terminal, `PP 16, …`
    /// on a page.
    pub fn changes(&self, separator: &'static str) -> Message {
        let mut changes = Message::default();
        for (place, change) in self.changes.iter().enumerate() {
            changes = changes.and(if place > 0 { separator } else { "" }).and(change.clone());
        }
        changes
    }
}

/// Remedies that are returned at most.
const MOST: usize = 3;

/// How often a suggestion is doubled, at most, until the scenario fits.
const MOST_DOUBLINGS: u32 = 3;

/// Fields that one remedy changes at most.
const MOST_CHANGES: usize = 3;

/// Slowest remedy, as a multiple of the step time with enough memory.
const SLOWEST: f64 = 2.0;

/// A field with the values to try.
type Choice = (Field, Vec<String>);

impl Spec {
    /// Returns the changes that make the scenario fit, fastest first, and only the fastest for each set of
    /// fields.
    ///
    /// Tries single changes first, then two at once, then three.
    pub(super) fn remedies(&self, scenario: &Scenario, step_time_s: f64) -> Vec<Remedy> {
        let choices = choices(scenario);
        let with = |changes| {
            let mut found = Vec::new();
            self.try_changes(&choices, changes, &mut Vec::new(), &mut found);
            found.retain(|remedy| remedy.step_time_s <= SLOWEST * step_time_s);
            found
        };
        let mut remedies = (1..=MOST_CHANGES).map(with).find(|found| !found.is_empty()).unwrap_or_default();
        remedies.sort_by(|a, b| a.step_time_s.total_cmp(&b.step_time_s));
        let mut seen: Vec<Vec<Field>> = Vec::new();
        remedies.retain(|remedy| {
            let fields = remedy.changes.iter().map(|change| change.field).collect();
            let new = !seen.contains(&fields);
            seen.push(fields);
            new
        });
        remedies.truncate(MOST);
        remedies
    }

    /// Keeps only the suggestions that fit into the GPUs' memory. If none fits, a multiple of the largest that fits replaces them.
    /// A problem without any such value keeps its suggestions, and says so.
    pub fn prefer_fitting(&self, problems: &mut [Problem]) {
        for problem in problems {
            let fits_with = |value: &String| {
                let scenario = self.clone().with(problem.field, value).scenario().ok()?;
                Some(fits(&scenario.inputs()))
            };
            // `None`: other problems remain, so that nothing is known.
            let known: Vec<Option<bool>> = problem.suggestions.iter().map(fits_with).collect();
            if known.contains(&Some(true)) {
                let mut known = known.iter();
                problem.suggestions.retain(|_| known.next() != Some(&Some(false)));
            } else if !known.is_empty() && !known.contains(&None) {
                let largest = problem.suggestions.iter().filter_map(|value| value.parse::<u32>().ok()).max();
                let mut larger =
                    (1..=MOST_DOUBLINGS).filter_map(|times| Some((largest? << times).to_string()));
                let works = |value: &String| {
                    let scenario = self.clone().with(problem.field, value).scenario();
                    // Tensor parallelism across NVLink domains is too slow to suggest.
                    scenario.is_ok_and(|it| fits(&it.inputs()) && it.layout.tp() <= it.gpu.nvlink_domain)
                };
                if let Some(larger) = larger.find(works) {
                    problem.suggestions = vec![larger];
                } else {
                    let message = std::mem::take(&mut problem.message);
                    problem.message = message.and(" With the suggested value, it would not fit in memory.");
                }
            }
        }
    }

    /// Tries every change of `more` fields in addition to `changed`.
    fn try_changes(
        &self,
        choices: &[Choice],
        more: usize,
        changed: &mut Vec<Setting>,
        found: &mut Vec<Remedy>,
    ) {
        if more == 0 {
            found.extend(self.remedy(changed));
            return;
        }
        for (place, (field, values)) in choices.iter().enumerate() {
            for value in values {
                changed.push(Setting::new(*field, value));
                self.try_changes(&choices[place + 1..], more - 1, changed, found);
                changed.pop();
            }
        }
    }

    /// Returns the changes as a remedy; `None` if they are invalid or the scenario still does not fit.
    fn remedy(&self, changes: &[Setting]) -> Option<Remedy> {
        let changed =
            changes.iter().fold(self.clone(), |spec, change| spec.with(change.field, change.value.as_str()));
        let fits = |scenario: &Scenario| unsupported(scenario).is_none() && fits(&scenario.inputs());
        let scenario = changed.scenario().ok().filter(fits)?;
        let step_time_s = Estimate::of(&scenario).step_time_s.mid;
        Some(Remedy { changes: changes.to_vec(), step_time_s })
    }
}

/// Returns what a scenario needs that its software doesn't have.
pub(super) fn unsupported(scenario: &Scenario) -> Option<Unsupported> {
    let options = &scenario.options;
    StackRules::of(options.software.base()).unsupported(&scenario.layout, options.fsdp)
}

/// Returns the fields to change, with the values to try.
fn choices(scenario: &Scenario) -> Vec<Choice> {
    let Scenario { layout, batch, options, .. } = scenario;
    let halves = iter::successors(Some(batch.mbs() / 2), |mbs| Some(mbs / 2)).take_while(|mbs| *mbs > 0);
    let texts = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    // Tensor parallelism across NVLink domains is too slow to suggest.
    let joined = layout.gpus().min(scenario.gpu.nvlink_domain);
    let experts = scenario.architecture.moe.as_ref().map_or(1, |moe| moe.experts);
    vec![
        (Field::Mbs, halves.map(|mbs| mbs.to_string()).collect()),
        (
            Field::Recompute,
            match options.recompute {
                Recompute::None => texts(&["selective", "full"]),
                Recompute::Selective => texts(&["full"]),
                Recompute::Full => texts(&[]),
            },
        ),
        (Field::Fsdp, if options.fsdp { texts(&[]) } else { texts(&["on"]) }),
        (Field::Tp, doublings(layout.tp(), joined)),
        (Field::Pp, doublings(layout.pp(), layout.gpus())),
        (Field::Cp, doublings(layout.cp(), layout.gpus())),
        (Field::Ep, doublings(layout.ep(), experts.min(layout.gpus()))),
    ]
}

/// Returns 2, 4, 8, … times `of`, up to `most`.
fn doublings(of: u32, most: u32) -> Vec<String> {
    let doubled = iter::successors(of.checked_mul(2), |degree| degree.checked_mul(2));
    doubled.take_while(|degree| *degree <= most).map(|degree| degree.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Front;

    fn spec(model: &str, gpus: &str, more: &[(Field, &str)]) -> Spec {
        let fields = [(Field::Model, model), (Field::Gpu, "h100"), (Field::Gpus, gpus), (Field::Gbs, "512")];
        let fields = fields.iter().chain(more);
        fields.fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text))
    }

    fn remedies(spec: &Spec) -> Vec<Remedy> {
        let predicted = spec.estimate().unwrap();
        assert!(!predicted.estimate.memory.fits());
        predicted.remedies
    }

    #[test]
    fn remedies_make_the_scenario_fit() {
        let one = spec("llama3.1-70b", "64", &[(Field::Tp, "2")]);
        let three = spec("llama3.1-405b", "512", &[]);
        let routed = spec("mixtral-8x7b", "64", &[(Field::Mbs, "2")]);
        for spec in [one, three, routed] {
            let remedies = remedies(&spec);
            assert!(!remedies.is_empty() && remedies.len() <= MOST);
            assert!(remedies.is_sorted_by_key(|remedy| remedy.step_time_s));
            for remedy in remedies {
                let changed = remedy.changes.iter().fold(spec.clone(), |spec, change| {
                    assert_ne!(spec.get(change.field), Some(change.value.as_str()));
                    spec.with(change.field, &change.value)
                });
                let (before, changed) = (spec.estimate().unwrap(), changed.estimate().unwrap());
                assert!(changed.estimate.memory.fits(), "{remedy:?}");
                assert_eq!(changed.estimate.step_time_s.mid, remedy.step_time_s);
                assert!(remedy.step_time_s <= SLOWEST * before.estimate.step_time_s.mid);
            }
        }
    }

    #[test]
    fn remedies_are_layouts_that_the_software_runs() {
        let fields = [
            (Field::Gpus, "1024"),
            (Field::Dtype, "fp8-current"),
            (Field::Tp, "8"),
            (Field::Pp, "8"),
            (Field::Vp, "8"),
            (Field::Cp, "2"),
            (Field::PipelineSplit, "counted"),
            (Field::Mbs, "2"),
            (Field::Gbs, "2048"),
        ];
        let found = remedies(&spec("llama3.1-405b", "1024", &fields));
        let changes: Vec<Field> =
            found.iter().flat_map(|remedy| &remedy.changes).map(|change| change.field).collect();
        assert!(!changes.is_empty() && !changes.contains(&Field::Fsdp), "{found:?}");
    }

    #[test]
    fn suggestions_that_fit_are_preferred() {
        let after = |model: &str| {
            let spec = spec(model, "16", &[(Field::Gpu, "h200"), (Field::Tp, "6")]);
            let mut problems = spec.scenario().unwrap_err();
            assert_eq!(problems[0].suggestions, ["4", "8"], "{model}");
            spec.prefer_fitting(&mut problems);
            (
                problems[0].suggestions.join(" "),
                problems[0].message.text(Front::Page).contains("not fit in memory"),
            )
        };
        assert_eq!(after("qwen3-32b"), ("4 8".to_string(), false));
        assert_eq!(after("llama3.1-70b"), ("8".to_string(), false));
        assert_eq!(after("llama3.1-405b"), ("4 8".to_string(), true));
        // The nearest values are too small, and a larger one is not.
        let fields = [(Field::Gpu, "h200"), (Field::Tp, "3"), (Field::Pp, "7"), (Field::Gbs, "1024")];
        let spec = spec("llama3.1-405b", "896", &fields);
        let mut problems = spec.scenario().unwrap_err();
        spec.prefer_fitting(&mut problems);
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        assert_eq!((problem.field, &problem.suggestions[..]), (Field::Tp, &["8".to_string()][..]));
        assert!(!problem.message.text(Front::Page).contains("not fit in memory"));
    }

    #[test]
    fn a_hopeless_scenario_has_no_remedy() {
        let hopeless = spec("llama3.1-405b", "8", &[]);
        assert_eq!(remedies(&hopeless), []);
        let warnings = hopeless.estimate().unwrap().warnings;
        assert!(warnings.iter().any(|warning| warning.to_string().contains("Use more GPUs")), "{warnings:?}");
    }

    #[test]
    fn each_front_end_names_the_changes_in_its_own_way() {
        let changes = vec![Setting::new(Field::Pp, 16), Setting::new(Field::Recompute, "full")];
        let remedy = Remedy { changes, step_time_s: 1.0 };
        assert_eq!(remedy.changes(" ").to_string(), "--pp 16 --recompute full");
        assert_eq!(remedy.changes(", ").text(Front::Page), "PP 16, Recompute full");
    }
}
