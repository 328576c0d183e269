//! The step time that the page shows: typed, published, predicted, or derived from an assumed MFU.

use trainplan_shared::field::Field;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::planning::StepTime;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;

/// A step time with the figures that follow from it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedStep {
    pub(super) metrics: Metrics,
    pub(super) source: StepTimeSource,
    /// Whether it belongs to the previous scenario, shown until the new one is predicted.
    pub(super) is_stale: bool,
}

/// Where a step time comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StepTimeSource {
    /// A release's document.
    Published,
    /// The step time field.
    Typed,
    /// An MFU in the step time field.
    TypedMfu,
    /// The prediction. Its 80 % interval goes from `low` to `high` times the step time.
    Predicted { low: f64, high: f64 },
    /// The recipe's published MFU, if the calculator does not work.
    RecipeMfu,
}

/// The state of the prediction of the current scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PredictionState {
    /// The calculator does not work.
    Broken,
    /// The calculator has not answered yet.
    Pending,
    /// The predicted step time and the ends of its 80 % interval, in seconds.
    Ready { low_s: f64, mid_s: f64, high_s: f64 },
    /// There is nothing to predict.
    None,
}

/// Returns the step time of a scenario: the typed one, else the published one, else the predicted one. While
/// the prediction is pending it returns `before`, marked as stale; if the calculator is broken, the step time
/// at the recipe's MFU. Returns `None` for a typing error in the step time or the tokens.
pub(super) fn plan_step(
    spec: &Spec,
    scenario: &Scenario,
    prediction: PredictionState,
    before: Option<PlannedStep>,
) -> Option<PlannedStep> {
    let typed: Option<StepTime> = spec.parse(Field::StepTime).ok()?;
    let published = scenario.baseline().map(|baseline| StepTime::Seconds(baseline.step_time_s));
    let (step_time, source) = match (typed, published, prediction) {
        (Some(typed @ StepTime::Seconds(_)), ..) => (typed, StepTimeSource::Typed),
        (Some(typed @ StepTime::Mfu(_)), ..) => (typed, StepTimeSource::TypedMfu),
        (None, Some(published), _) => (published, StepTimeSource::Published),
        (None, None, PredictionState::Broken) => {
            (StepTime::Mfu(scenario.recipe_mfu()?), StepTimeSource::RecipeMfu)
        }
        (None, None, PredictionState::Pending) => {
            return before.map(|before| PlannedStep { is_stale: true, ..before });
        }
        (None, None, PredictionState::Ready { low_s, mid_s, high_s }) => {
            let source = StepTimeSource::Predicted { low: low_s / mid_s, high: high_s / mid_s };
            (StepTime::Seconds(mid_s), source)
        }
        (None, None, PredictionState::None) => return None,
    };
    let metrics = spec.metrics_at(scenario, step_time).ok()?;
    Some(PlannedStep { metrics, source, is_stale: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = "llama3.1-405b/h100/fp8/512@25.04";
    const READY: PredictionState = PredictionState::Ready { low_s: 9.0, mid_s: 10.0, high_s: 12.0 };

    fn step(fields: &[(Field, &str)], prediction: PredictionState) -> Option<PlannedStep> {
        let spec = fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
        plan_step(&spec, &spec.scenario().expect("a valid scenario"), prediction, None)
    }

    #[test]
    fn a_published_step_time_comes_before_the_prediction_and_after_a_typed_one() {
        let step = |typed| {
            let step =
                step(&[(Field::Recipe, PUBLISHED), (Field::StepTime, typed)], READY).expect("a step time");
            (step.metrics.step_time_s, step.source)
        };
        assert_eq!(step(""), (12.37, StepTimeSource::Published));
        assert_eq!(step("11"), (11.0, StepTimeSource::Typed));
        assert_eq!(step("40%").1, StepTimeSource::TypedMfu);
    }

    #[test]
    fn an_unpublished_scenario_is_predicted_with_its_interval() {
        let fields = [(Field::Recipe, PUBLISHED), (Field::Gpus, "4096")];
        let predicted = step(&fields, READY).expect("a step time");
        assert_eq!(predicted.metrics.step_time_s, 10.0);
        assert_eq!(predicted.source, StepTimeSource::Predicted { low: 0.9, high: 1.2 });
        assert_eq!(step(&fields, PredictionState::Pending), None);
        let broken = step(&fields, PredictionState::Broken).expect("a step time");
        assert_eq!(broken.source, StepTimeSource::RecipeMfu);
    }

    #[test]
    fn a_pending_prediction_shows_the_previous_step_time_as_stale() {
        let fields = [(Field::Recipe, PUBLISHED)];
        let before = step(&fields, READY).expect("a step time");
        let spec = Spec::default().with(Field::Recipe, PUBLISHED).with(Field::Gpus, "4096");
        let scenario = spec.scenario().expect("a valid scenario");
        let pending = plan_step(&spec, &scenario, PredictionState::Pending, Some(before.clone()));
        assert_eq!(pending, Some(PlannedStep { is_stale: true, ..before }));
    }

    #[test]
    fn a_typing_error_leaves_no_step_time() {
        assert_eq!(step(&[(Field::Recipe, PUBLISHED), (Field::StepTime, "10 s")], READY), None);
        assert_eq!(step(&[(Field::Recipe, PUBLISHED), (Field::Tokens, "many")], READY), None);
    }
}
