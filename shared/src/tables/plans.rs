//! The plans of a search: the answer for each GPU type, the best layouts, and the CSV file of `trainplan search`.

use super::{PageCell, SortValue, cells, number, whole};
use crate::catalog::RecipeId;
use crate::launch::Style;
use crate::question::{GpuOffer, Objective, PlannedRun, Question};
use crate::releases::Release;
use crate::units::{group_digits, readable, readable_range, rounded_count, significant};

/// A plan of a search.
#[derive(Debug, Clone, Copy)]
pub struct PlanRow<'a> {
    /// The question.
    pub question: &'a Question,
    /// The GPU type.
    pub offer: &'a GpuOffer,
    /// The plan.
    pub run: &'a PlannedRun,
    /// Its place among the layouts on as many GPUs, from 1; none if it is not among those listed.
    pub rank: Option<u32>,
    /// Whether it is the best plan of its GPU type.
    pub is_best: bool,
    /// The recipe that publishes its layout.
    pub recipe: Option<&'a RecipeId>,
    /// The title of the software that its figures are for, if it differs from the question's.
    pub software: Option<&'a str>,
}

impl PlanRow<'_> {
    fn currency(&self) -> &str {
        self.question.settings.currency.label()
    }

    fn days(&self) -> String {
        cells::days(self.run.days, self.run.time.days())
    }

    fn energy(&self) -> String {
        self.run.energy.mwh.readable(readable)
    }

    fn mfu(&self) -> String {
        significant(self.run.mfu * 100.0, 3)
    }

    fn precision(&self) -> String {
        self.run.layout.candidate.dtype.title().to_owned()
    }
}

columns! {
    /// The columns of a table of plans: the best of each GPU type, or all in a file.
    PlanColumn of PlanRow<'_>;

    Gpu "gpu" {
        page "GPU" [main] => |row| row.offer.gpu.name.clone().into();
        terminal "GPU" => |row| Some(row.offer.gpu.name.clone());
        csv 0 "gpu" => |row| Some(row.offer.gpu.id.clone());
    }
    Gpus "gpus" {
        page "GPUs" [number] => |row| group_digits(row.run.gpus.into()).into();
        terminal "GPUs" [number] => |row| Some(group_digits(row.run.gpus.into()));
        csv 1 "gpus" => |row| whole(Some(row.run.gpus));
        sort => |row| SortValue::Number(Some(row.run.gpus.into()));
    }
    Rank "rank" {
        csv 2 "rank" => |row| whole(row.rank);
    }
    Best "best" {
        csv 3 "best" => |row| Some(row.is_best.to_string());
    }
    Recipe "recipe" {
        csv 4 "recipe" => |row| row.recipe.map(ToString::to_string);
    }
    Tokens "tokens" {
        terminal "tokens" [number] => |row| {
            let are_sought = row.question.objective == Objective::MostTokens;
            are_sought.then(|| rounded_count(row.question.tokens))
        };
    }
    Layout "layout" {
        page "Layout" => |row| row.run.layout.candidate.to_string().into();
        terminal "layout" [wraps] => |row| Some(row.run.layout.candidate.to_string());
    }
    Precision "dtype" {
        page "Precision" => |row| row.precision().into();
        terminal "precision" [extra(1)] => |row| Some(row.precision());
        csv 5 "dtype" => |row| Some(row.run.layout.candidate.dtype.to_string());
    }
    Tp "tp" {
        csv 6 "tp" => |row| whole(Some(row.run.layout.candidate.tp));
    }
    Pp "pp" {
        csv 7 "pp" => |row| whole(Some(row.run.layout.candidate.pp));
    }
    Cp "cp" {
        csv 8 "cp" => |row| whole(Some(row.run.layout.candidate.cp));
    }
    Ep "ep" {
        csv 9 "ep" => |row| whole(Some(row.run.layout.candidate.ep));
    }
    ExpertTp "expert-tp" {
        csv 10 "expert_tp" => |row| whole(Some(row.run.layout.candidate.expert_tp));
    }
    Vp "vp" {
        csv 11 "vp" => |row| whole(Some(row.run.layout.candidate.vp));
    }
    Split "pipeline-split" {
        csv 12 "pipeline_split" => |row| Some(row.run.layout.candidate.split.to_string());
    }
    Mbs "mbs" {
        csv 13 "mbs" => |row| whole(Some(row.run.layout.candidate.mbs));
    }
    Gbs "gbs" {
        csv 14 "gbs" => |row| whole(Some(row.run.layout.candidate.gbs));
    }
    Recompute "recompute" {
        csv 15 "recompute" => |row| Some(row.run.layout.candidate.recompute.to_string());
    }
    Fsdp "fsdp" {
        csv 16 "fsdp" => |row| Some(row.run.layout.candidate.fsdp.to_string());
    }
    StepTime "step-time" {
        csv 17 "step_time_s" => |row| number(Some(row.run.layout.step_time_s.mid));
    }
    StepTimeLow "step-time-low" {
        csv 18 "step_time_s_low" => |row| number(Some(row.run.layout.step_time_s.low));
    }
    StepTimeHigh "step-time-high" {
        csv 19 "step_time_s_high" => |row| number(Some(row.run.layout.step_time_s.high));
    }
    Software "software" {
        terminal "with" [wraps] => |row| row.software.map(str::to_owned);
    }
    Days "days" {
        page "Days" [number] => |row| row.days().into();
        terminal "days" [number] => |row| Some(row.days());
        csv 20 "days" => |row| number(Some(row.run.days));
        sort => |row| SortValue::Number(Some(row.run.days));
    }
    DaysLow "days-low" {
        csv 21 "days_low" => |row| number(Some(row.run.time.days().low));
    }
    DaysHigh "days-high" {
        csv 22 "days_high" => |row| number(Some(row.run.time.days().high));
    }
    Cost "cost" {
        page "Cost" [number] => |row| cost(row).into();
        terminal "cost" [number] => cost;
        csv 23 "cost" => |row| number(row.run.expected_cost);
        sort => |row| SortValue::Number(row.run.expected_cost);
    }
    CostLow "cost-low" {
        csv 24 "cost_low" => |row| number(row.run.cost.map(|cost| cost.total.low));
    }
    CostHigh "cost-high" {
        csv 25 "cost_high" => |row| number(row.run.cost.map(|cost| cost.total.high));
    }
    Currency "currency" {
        csv 26 "currency" => |row| row.run.cost.map(|_| row.currency().to_owned());
    }
    Energy "energy" {
        page "MWh" [number] => |row| row.energy().into();
        terminal "MWh" [number, extra(3)] => |row| Some(row.energy());
        csv 27 "mwh_low" => |row| number(Some(row.run.energy.mwh.low));
        sort => |row| SortValue::Number(Some(row.run.energy.mwh.low));
    }
    EnergyHigh "energy-high" {
        csv 28 "mwh_high" => |row| number(Some(row.run.energy.mwh.high));
    }
    Mfu "mfu" {
        page "MFU, % (full)" [number] => |row| row.mfu().into();
        terminal "MFU % (full)" [number, extra(4)] => |row| Some(row.mfu());
        csv 29 "mfu" => |row| number(Some(row.run.mfu));
        sort => |row| SortValue::Number(Some(row.run.mfu));
    }
    TokensPerGpu "tokens-per-gpu" {
        csv 30 "tokens_per_s_per_gpu" => |row| number(Some(row.run.tokens_per_s_per_gpu));
    }
    Spare "spare" {
        page "Spare GiB" [number] => |row| cells::gib(row.run.layout.memory.free_bytes).into();
        terminal "spare GiB" [number, extra(5)] => |row| Some(cells::gib(row.run.layout.memory.free_bytes));
        csv 31 "spare_bytes" => |row| number(Some(row.run.layout.memory.free_bytes));
        sort => |row| SortValue::Number(Some(row.run.layout.memory.free_bytes));
    }
    Confidence "confidence" {
        page "Confidence" => |row| row.run.layout.confidence.to_string().into();
        terminal "confidence" [extra(2)] => |row| Some(row.run.layout.confidence.to_string());
        csv 32 "confidence" => |row| Some(row.run.layout.confidence.to_string());
    }
    LaunchedWith "launched-with" {
        csv 33 "launched_with" => |row| {
            let release = row.run.launching_release(row.question, row.offer).ok()?;
            Some(release.map_or(Style::MegatronLm.id(), Release::id).to_owned())
        };
    }
}

columns! {
    /// The columns of a table of layouts on as many GPUs of one type.
    LayoutColumn of PlanRow<'_>;

    Rank "rank" {
        terminal "" [number] => |row| Some(row.rank.map_or(String::new(), |rank| rank.to_string()));
    }
    Layout "layout" {
        page "Layout" [main] => |row| {
            PageCell::new(Some(row.run.layout.candidate.to_string()), row.recipe.map(ToString::to_string))
        };
        terminal "layout" [wraps] => |row| Some(row.run.layout.candidate.to_string());
    }
    Precision "dtype" {
        page "Precision" => |row| row.precision().into();
        terminal "precision" [extra(1)] => |row| Some(row.precision());
    }
    Gbs "gbs" {
        page "GBS" [number] => |row| row.run.layout.candidate.gbs.to_string().into();
        terminal "GBS" [number, extra(3)] => |row| {
            let is_chosen = !row.question.gbs.are_fixed();
            is_chosen.then(|| row.run.layout.candidate.gbs.to_string())
        };
        sort => |row| SortValue::Number(Some(row.run.layout.candidate.gbs.into()));
    }
    Software "software" {
        terminal "with" [wraps] => |row| row.software.map(str::to_owned);
    }
    StepTime "step-time" {
        page "Step, s" [number] => |row| {
            let step = row.run.layout.step_time_s;
            PageCell::new(Some(readable(step.mid)), Some(readable_range((step.low, step.high), readable)))
        };
        terminal "step s" [number, extra(4)] => |row| {
            let step = row.run.layout.step_time_s;
            Some(format!("{} ({})", readable(step.mid), readable_range((step.low, step.high), readable)))
        };
        sort => |row| SortValue::Number(Some(row.run.layout.step_time_s.mid));
    }
    Days "days" {
        page "Days" [number] => |row| row.days().into();
        terminal "days" [number] => |row| Some(row.days());
        sort => |row| SortValue::Number(Some(row.run.days));
    }
    Cost "cost" {
        page "Cost" [number] => |row| cost(row).into();
        terminal "cost" [number] => cost;
        sort => |row| SortValue::Number(row.run.expected_cost);
    }
    Mfu "mfu" {
        page "MFU, % (full)" [number] => |row| row.mfu().into();
        terminal "MFU % (full)" [number, extra(5)] => |row| Some(row.mfu());
        sort => |row| SortValue::Number(Some(row.run.mfu));
    }
    Spare "spare" {
        page "Spare GiB" [number] => |row| cells::gib(row.run.layout.memory.free_bytes).into();
        terminal "spare GiB" [number, extra(6)] => |row| Some(cells::gib(row.run.layout.memory.free_bytes));
        sort => |row| SortValue::Number(Some(row.run.layout.memory.free_bytes));
    }
    Confidence "confidence" {
        page "Confidence" => |row| row.run.layout.confidence.to_string().into();
        terminal "confidence" [extra(2)] => |row| Some(row.run.layout.confidence.to_string());
    }
    Published "published" {
        terminal "published by" [extra(7)] => |row| row.recipe.map(cells::recipe);
    }
}

/// Returns the expected cost with its range.
fn cost(row: &PlanRow<'_>) -> Option<String> {
    let (cost, expected) = row.run.cost.zip(row.run.expected_cost)?;
    Some(cells::money_range(expected, cost.total, row.currency()))
}
