//! Stored runs: the Results page's runs on the server, `trainplan results list` and its CSV file.

use super::{cells, number, whole};
use crate::api::RunSummary;
use crate::units::{group_digits, minute};

columns! {
    /// The columns of a table of stored runs.
    StoredRunColumn of RunSummary;

    Id "id" {
        terminal "id" => |run| Some(run.id.clone());
        csv 0 "id" => |run| Some(run.id.clone());
    }
    Recipe "recipe" {
        page "Recipe" => |run| cells::recipe_or_model(run.recipe.as_deref(), run.model.as_deref()).into();
        terminal "recipe or model" => |run| {
            cells::recipe_or_model(run.recipe.as_deref(), run.model.as_deref())
        };
        csv 7 "recipe" => |run| run.recipe.clone();
    }
    Model "model" {
        csv 22 "model" => |run| run.model.clone();
    }
    Gpu "gpu" {
        csv 23 "gpu" => |run| run.gpu.clone();
    }
    Gpus "gpus" {
        csv 24 "gpus" => |run| whole(run.gpus);
    }
    Precision "dtype" {
        csv 25 "dtype" => |run| run.dtype.clone();
    }
    Software "software" {
        terminal "software" [wraps, extra(4)] => RunSummary::software;
        csv 26 "software" => RunSummary::software;
    }
    Ran "ran" {
        page "Ran" [order("-ran_at"), hint(cells::RAN)] => |run| minute(&run.ran_at).into();
        terminal "ran" [extra(1)] => |run| Some(minute(&run.ran_at));
        csv 1 "ran_at" => |run| Some(run.ran_at.clone());
    }
    Received "received" {
        page "Received" [order("-received_at")] => |run| minute(&run.received_at).into();
        csv 2 "received_at" => |run| Some(run.received_at.clone());
    }
    Campaign "campaign" {
        csv 3 "campaign" => |run| run.campaign.clone();
    }
    Run "run" {
        csv 4 "run" => |run| run.run.clone();
    }
    Repeat "repeat" {
        csv 5 "repeat" => |run| whole(run.repeat);
    }
    Cluster "cluster" {
        csv 6 "cluster" => |run| run.cluster.clone();
    }
    Status "status" {
        terminal "status" => |run| Some(cells::status(run.status, run.ending));
        csv 8 "status" => |run| Some(run.status.id().to_owned());
    }
    StepTime "step_time" {
        page "Step time, s" [number, main, order("step_time_s"), hint(cells::STEP_TIME)] => |run| {
            cells::step_time(run.step_time_s, run.judged_s)
        };
        terminal "step s" [number] => |run| run.judged_s.map(cells::seconds);
        csv 9 "step_time_s_mean" => |run| number(run.step_time_s.map(|stat| stat.mean));
    }
    ScoredTime "scored_time" {
        terminal "scored s" [number, extra(6)] => |run| run.step_time_s.map(|stat| cells::seconds(stat.mean));
    }
    JudgedTime "judged_time" {
        csv 28 "judged_s" => |run| number(run.judged_s);
    }
    Steady "steady" {
        csv 27 "steady_mean_s" => |run| number(run.steady_mean_s);
    }
    Tokens "tokens" {
        page "Tokens/s" [number, order("-tokens_per_s")] => |run| {
            cells::of_scored(run.tokens_per_s.map(group_digits).into(), run.step_time_s, run.judged_s)
        };
        terminal "tokens/s" [number, extra(5)] => |run| {
            cells::of_scored_text(run.tokens_per_s.map(group_digits), run.step_time_s, run.judged_s)
        };
        csv 10 "tokens_per_s" => |run| number(run.tokens_per_s);
    }
    Mfu "mfu" {
        page "MFU, %" [number, main, order("-mfu")] => |run| {
            cells::of_scored(cells::mfu(run.mfu, run.convention, None), run.step_time_s, run.judged_s)
        };
        terminal "MFU %" [number, extra(3)] => |run| {
            cells::of_scored_text(run.mfu.map(cells::percent), run.step_time_s, run.judged_s)
        };
        csv 11 "mfu" => |run| number(run.mfu);
    }
    PublishedTime "published_time" {
        csv 20 "published_step_time_s" => |run| number(run.baseline.map(|baseline| baseline.step_time_s));
    }
    OfPublished "of_published" {
        page "Of published, %" [number, main, order("-speed_percent"), hint(cells::OF_PUBLISHED)] => |run| {
            cells::of_published(run.baseline).into()
        };
        terminal "speed % of published" [number, extra(2)] => |run| {
            cells::of_published(run.baseline)
        };
        csv 12 "speed_percent" => |run| number(run.baseline.and_then(|baseline| baseline.speed_percent));
    }
    ScoredOfPublished "scored_of_published" {
        csv 29 "scored_speed_percent" => |run| {
            number(run.baseline.and_then(|baseline| baseline.scored_speed_percent))
        };
    }
    Predicted "predicted" {
        page "Predicted, s" [number, optional, order("-prediction_error"), hint(cells::OF_PREDICTED)] =>
            |run| cells::planned(run.predicted(), None);
        terminal "predicted s" [number, extra(8)] => |run| {
            run.predicted().map(|predicted| cells::interval(predicted.step_time_s))
        };
        csv 17 "predicted_step_time_s" => |run| {
            number(run.predicted().map(|predicted| predicted.step_time_s.mid))
        };
    }
    PredictedLow "predicted_low" {
        csv 16 "predicted_low_s" => |run| number(run.predicted().map(|predicted| predicted.step_time_s.low));
    }
    PredictedHigh "predicted_high" {
        csv 18 "predicted_high_s" => |run| number(run.predicted().map(|predicted| predicted.step_time_s.high));
    }
    PredictionError "prediction_error" {
        terminal "speed % of predicted" [number, extra(7)] => |run| {
            cells::of_predicted(run.predicted())
        };
        csv 19 "prediction_error" => |run| number(run.predicted().and_then(|predicted| predicted.error));
    }
    OfPredicted "of_predicted" {
        csv 21 "predicted_speed_percent" => |run| {
            number(run.predicted().and_then(|predicted| predicted.speed_percent))
        };
    }
    ScoredOfPredicted "scored_of_predicted" {
        csv 30 "scored_predicted_speed_percent" => |run| {
            number(run.predicted().and_then(|predicted| predicted.scored_speed_percent))
        };
    }
    Name "name" {
        terminal "run" [wraps] => |run| Some(run.name().unwrap_or_else(|| run.path.clone()));
        csv 13 "path" => |run| Some(run.path.clone());
    }
    Attempt "attempt" {
        csv 14 "attempt" => |run| whole(run.attempt);
    }
    Attempts "attempts" {
        csv 15 "attempts" => |run| whole(run.attempts);
    }
    Round "round" {
        csv 31 "round" => |run| whole(run.round);
    }
}
