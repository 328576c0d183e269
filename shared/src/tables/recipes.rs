//! Published recipes: the Recipes page, `trainplan recipes` and its CSV file.

use super::{PageCell, SortValue, number, whole};
use crate::catalog::{Baseline, Catalog, Recipe, Scaling};
use crate::field::Field;
use crate::launch::container_image;
use crate::metrics::{DEFAULT_TOKENS, Metrics};
use crate::scenario::Scenario;
use crate::spec::Spec;
use crate::units::group_digits;

columns! {
    /// The columns of a table of recipes.
    RecipeColumn of &'static Recipe;

    Id "id" {
        terminal "recipe" => |recipe| {
            let proxy = if Catalog::embedded().is_proxy(recipe) { " (proxy)" } else { "" };
            Some(format!("{}{proxy}", recipe.id))
        };
        csv 0 "id" => |recipe| Some(recipe.id.to_string());
    }
    Model "model" {
        page "Model" => |recipe| {
            let is_proxy = Catalog::embedded().is_proxy(recipe);
            PageCell::new(Some(model(recipe)), is_proxy.then(|| format!("proxy, {} layers", recipe.layers)))
        };
        csv 2 "model" => |recipe| Some(recipe.id.model.clone());
        sort => |recipe| SortValue::Text(model(recipe));
    }
    Gpu "gpu" {
        page "GPU" => |recipe| gpu(recipe).into();
        csv 3 "gpu" => |recipe| Some(recipe.id.gpu.clone());
        sort => |recipe| SortValue::Text(gpu(recipe));
    }
    Gpus "gpus" {
        page "GPUs" [number] => |recipe| recipe.id.gpus.to_string().into();
        csv 6 "gpus" => |recipe| whole(Some(recipe.id.gpus));
        sort => |recipe| SortValue::Number(Some(recipe.id.gpus.into()));
    }
    Dtype "dtype" {
        page "Precision" => |recipe| {
            PageCell::new(Some(recipe.id.dtype.title().to_owned()), recipe.id.strong.then(|| "strong scaling".to_owned()))
        };
        csv 4 "dtype" => |recipe| Some(recipe.id.dtype.to_string());
        sort => |recipe| SortValue::Text(recipe.id.dtype.title().to_owned());
    }
    Layers "layers" {
        terminal "layers" [number, extra(11)] => |recipe| whole(Some(recipe.layers));
        csv 8 "layers" => |recipe| whole(Some(recipe.layers));
    }
    SeqLen "seq_len" {
        terminal "seq" [number, extra(10)] => |recipe| whole(Some(recipe.seq_len));
        csv 7 "seq_len" => |recipe| whole(Some(recipe.seq_len));
    }
    Layout "layout" {
        page "Layout" => |recipe| {
            let degrees = &recipe.degrees;
            let vp = if degrees.vp > 1 { format!(" · VP {}", degrees.vp) } else { String::new() };
            let (tp, pp, cp, dp) = (degrees.tp, degrees.pp, degrees.cp, recipe.dp());
            PageCell::new(Some(format!("TP {tp} · PP {pp} · CP {cp} · DP {dp}{vp}")), memory_savings(recipe))
        };
    }
    Tp "tp" {
        terminal "TP" [number, extra(4)] => |recipe| whole(Some(recipe.degrees.tp));
        csv 9 "tp" => |recipe| whole(Some(recipe.degrees.tp));
    }
    Pp "pp" {
        terminal "PP" [number, extra(4)] => |recipe| whole(Some(recipe.degrees.pp));
        csv 10 "pp" => |recipe| whole(Some(recipe.degrees.pp));
    }
    Cp "cp" {
        terminal "CP" [number, extra(4)] => |recipe| whole(Some(recipe.degrees.cp));
        csv 11 "cp" => |recipe| whole(Some(recipe.degrees.cp));
    }
    Ep "ep" {
        terminal "EP" [number, extra(4)] => |recipe| whole(recipe.printed_ep);
        csv 12 "ep" => |recipe| whole(recipe.printed_ep);
    }
    ExpertTp "expert-tp" {
        terminal "ETP" [number, extra(13)] => |recipe| whole(expert_tp(recipe));
        csv 26 "expert_tp" => |recipe| whole(expert_tp(recipe));
    }
    Vp "vp" {
        terminal "VP" [number, extra(6)] => |recipe| whole(vp(recipe));
        csv 13 "vp" => |recipe| whole(vp(recipe));
    }
    Dp "dp" {
        terminal "DP" [number, extra(7)] => |recipe| whole(Some(scenario(recipe)?.layout.dp()));
        csv 14 "dp" => |recipe| whole(Some(scenario(recipe)?.layout.dp()));
    }
    MemorySavings "memory-savings" {
        terminal "memory" [extra(5)] => |recipe| memory_savings(recipe);
    }
    Fsdp "fsdp" {
        csv 29 "fsdp" => |recipe| Some(recipe.fsdp.to_string());
    }
    OffloadLayers "offload-layers" {
        csv 30 "offload_layers" => |recipe| whole(Some(recipe.offload_layers));
    }
    Mbs "mbs" {
        terminal "MBS" [number, extra(8)] => |recipe| whole(Some(recipe.mbs));
        csv 15 "mbs" => |recipe| whole(Some(recipe.mbs));
    }
    Gbs "gbs" {
        page "GBS" [number] => |recipe| recipe.gbs.to_string().into();
        terminal "GBS" [number, extra(2)] => |recipe| whole(Some(recipe.gbs));
        csv 16 "gbs" => |recipe| whole(Some(recipe.gbs));
        sort => |recipe| SortValue::Number(Some(recipe.gbs.into()));
    }
    Ga "ga" {
        page "MBS · GA" [number] => |recipe| format!("{} · {}", recipe.mbs, recipe.ga()).into();
        terminal "GA" [number, extra(9)] => |recipe| whole(Some(scenario(recipe)?.batch.ga()));
        csv 17 "ga" => |recipe| whole(Some(scenario(recipe)?.batch.ga()));
    }
    StepTime "step-time" {
        page "Step, s" [number] => |recipe| step_time(recipe).map(|time| time.to_string()).into();
        terminal "step s" [number] => |recipe| number(step_time(recipe));
        csv 20 "step_time_s" => |recipe| number(step_time(recipe));
        sort => |recipe| SortValue::Number(step_time(recipe));
    }
    Tokens "tokens" {
        page "Tokens/s" [number] => |recipe| tokens(recipe).map(group_digits).into();
        terminal "tokens/s" [number, extra(5)] => |recipe| number(tokens(recipe));
        csv 21 "tokens_per_s" => |recipe| number(tokens(recipe));
        sort => |recipe| SortValue::Number(tokens(recipe));
    }
    Mfu "mfu" {
        page "MFU, %" [number] => |recipe| {
            baseline(recipe).map(|baseline| baseline.printed_mfu_pct.clone()).into()
        };
        terminal "MFU %" [number, extra(1)] => |recipe| {
            mfu(recipe).or_else(|| computed(recipe)?.mfu).map(super::cells::percent)
        };
        csv 22 "mfu" => |recipe| number(mfu(recipe));
        sort => |recipe| SortValue::Number(mfu(recipe));
    }
    Days "days" {
        page "Days for 1T" [number] => |recipe| {
            baseline(recipe).map(|baseline| baseline.printed_days_1t.clone()).into()
        };
        terminal "days 1T" [number, extra(3)] => |recipe| {
            let two_decimals = |days: f64| format!("{days:.2}");
            number(days(recipe)).or_else(|| computed(recipe)?.time_to_train_days.map(two_decimals))
        };
        csv 23 "time_to_train_days" => |recipe| number(days(recipe));
        sort => |recipe| SortValue::Number(days(recipe));
    }
    Container "container" {
        terminal "container" [extra(12)] => |recipe| container_image(&recipe.id);
        csv 25 "container" => |recipe| container_image(&recipe.id);
    }
    Release "release" {
        page "Release" => |recipe| recipe.id.release.to_string().into();
        csv 1 "release" => |recipe| Some(recipe.id.release.to_string());
        sort => |recipe| SortValue::Text(recipe.id.release.to_string());
    }
    Scaling "scaling" {
        csv 5 "scaling" => |recipe| recipe.scaling.map(|scaling| Scaling::id(scaling).to_owned());
    }
    Proxy "proxy" {
        csv 18 "proxy" => |recipe| Some(Catalog::embedded().is_proxy(recipe).to_string());
    }
    Source "source" {
        csv 19 "source" => |recipe| Catalog::embedded().source_of(recipe);
    }
    Note "note" {
        csv 24 "note" => |recipe| Some(recipe.note.clone());
    }
    ComputedMfu "computed-mfu" {
        csv 27 "computed_mfu" => |recipe| number(computed(recipe).and_then(|metrics| metrics.mfu));
    }
    ComputedDays "computed-days" {
        csv 28 "computed_time_to_train_days" => |recipe| {
            number(computed(recipe).and_then(|metrics| metrics.time_to_train_days))
        };
    }
}

fn model(recipe: &Recipe) -> String {
    Catalog::embedded().model(&recipe.id.model).map_or(recipe.id.model.clone(), |model| model.title.clone())
}

fn gpu(recipe: &Recipe) -> String {
    Catalog::embedded().gpu(&recipe.id.gpu).map_or(recipe.id.gpu.clone(), |gpu| gpu.name.clone())
}

fn vp(recipe: &Recipe) -> Option<u32> {
    Some(recipe.degrees.vp).filter(|vp| *vp > 1)
}

fn expert_tp(recipe: &Recipe) -> Option<u32> {
    Some(recipe.degrees.expert_tp).filter(|expert_tp| *expert_tp > 1)
}

/// Returns how a recipe's script saves memory beyond its degrees of parallelism.
fn memory_savings(recipe: &Recipe) -> Option<String> {
    Some(recipe.options().memory_savings().join(", ")).filter(|savings| !savings.is_empty())
}

fn scenario(recipe: &Recipe) -> Option<Scenario> {
    Spec::default().with(Field::Recipe, recipe.id.to_string()).scenario().ok()
}

fn baseline(recipe: &Recipe) -> Option<&'static Baseline> {
    Catalog::embedded().baseline(&recipe.id)
}

fn step_time(recipe: &Recipe) -> Option<f64> {
    baseline(recipe).map(|baseline| baseline.step_time_s)
}

fn tokens(recipe: &Recipe) -> Option<f64> {
    baseline(recipe).and_then(Baseline::printed_tokens)
}

fn mfu(recipe: &Recipe) -> Option<f64> {
    baseline(recipe).and_then(Baseline::printed_mfu)
}

fn days(recipe: &Recipe) -> Option<f64> {
    baseline(recipe).and_then(Baseline::printed_days)
}

/// Returns the metrics of the published step time, as `trainplan metrics` computes them.
fn computed(recipe: &Recipe) -> Option<Metrics> {
    let step_time_s = step_time(recipe)?;
    Some(Metrics::new(&scenario(recipe)?, step_time_s, DEFAULT_TOKENS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_without_a_measurement_come_last_in_either_direction() {
        let mut recipes: Vec<&'static Recipe> = Catalog::embedded().recipes().iter().collect();
        for descending in [false, true] {
            recipes.sort_by(|one, other| {
                let value = |recipe: &&'static Recipe| RecipeColumn::StepTime.sort_value(recipe).unwrap();
                value(one).order(&value(other), descending)
            });
            let first_unmeasured = recipes.iter().position(|recipe| step_time(recipe).is_none()).unwrap();
            assert!(recipes[first_unmeasured..].iter().all(|recipe| step_time(recipe).is_none()));
            let times = recipes[..first_unmeasured].iter().filter_map(|recipe| step_time(recipe));
            assert!(times.is_sorted_by(|a, b| if descending { a >= b } else { a <= b }));
        }
    }

    #[test]
    fn a_layout_names_fsdp_and_offloading() {
        let layout = |id: &str| {
            let recipe = Catalog::embedded().recipe(id).unwrap();
            RecipeColumn::Layout.page_cell(&recipe).unwrap().detail
        };
        assert_eq!(layout("llama3.1-70b/gb200/fp8/64@26.06.01"), "40 layers offloaded, FSDP");
        assert_eq!(layout("llama3.1-70b/b300/fp8/64@26.06.01"), "FSDP");
        assert_eq!(layout("llama3.1-8b/h100/fp8/8@25.04"), "");
    }

    #[test]
    fn sortable_columns_keep_the_keys_of_saved_links() {
        let sortable = RecipeColumn::ALL.iter().filter(|column| column.is_sortable());
        let keys: Vec<&str> = sortable.map(|column| column.key()).collect();
        assert_eq!(
            keys,
            ["model", "gpu", "gpus", "dtype", "gbs", "step-time", "tokens", "mfu", "days", "release"]
        );
    }
}
