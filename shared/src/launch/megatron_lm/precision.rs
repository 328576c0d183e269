//! Number formats.

use super::job::MegatronJob;
use super::support::{NARROW_GRADIENT, NARROW_OPTIMIZER, format};
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::precision::Dtype;
use crate::stack::WeightStorage;

pub(super) fn apply(job: &mut MegatronJob) {
    job.group("Precision");
    job.flag("--bf16");
    let dtype = format(job.scenario);
    if job.scenario.dtype == Dtype::Fp8 && job.scenario.recipe.is_none() {
        job.warn(
            "\"FP8\" is ambiguous without a recipe; per-tensor current scaling is used.",
            message!["Set ", Field::Dtype, " to fp8-current, fp8-delayed, fp8-block or mxfp8."],
        );
    }
    match dtype {
        Dtype::Bf16 => {}
        Dtype::Nvfp4 => {
            job.set("--fp4-format", "e2m1");
            job.set("--fp4-recipe", "nvfp4");
        }
        Dtype::Mxfp8 => {
            eight_bits(job, "e4m3", "mxfp8");
            if gathers_in_eight_bits(job) && job.scenario.options.overlap && !job.scenario.options.fsdp {
                job.flag("--reuse-grad-buf-for-mxfp8-param-ag");
            }
        }
        Dtype::Fp8Block => {
            eight_bits(job, "e4m3", "blockwise");
            if job.on_blackwell() {
                job.warn(
                    "Block scaling is for Hopper. On Blackwell, Transformer Engine emulates it with MXFP8, \
                     or refuses it.",
                    message!["Use ", Setting::new(Field::Dtype, Dtype::Mxfp8), "."],
                );
            }
        }
        Dtype::Fp8Delayed => {
            eight_bits(job, "hybrid", "delayed");
            job.set("--fp8-amax-history-len", 1024);
            job.set("--fp8-amax-compute-algo", "max");
            gathers_in_eight_bits(job);
        }
        Dtype::Fp8 | Dtype::Fp8Current => {
            eight_bits(job, "hybrid", "tensorwise");
            gathers_in_eight_bits(job);
        }
    }
    gradients(job, dtype);
}

/// Stores the weights in FP8 only, if the plan is for software that does. Otherwise BF16 weights stay beside the FP8 ones.
fn gathers_in_eight_bits(job: &mut MegatronJob) -> bool {
    let weights = job.software.properties().weights;
    let alone = weights == WeightStorage::Alone;
    if alone {
        job.flag("--fp8-param-gather");
    }
    alone
}

/// Stores gradients and optimizer state as the planned software does, where flags can: the memory of the plan is then that of
/// the run. Megatron-LM's defaults take more.
fn gradients(job: &mut MegatronJob, dtype: Dtype) {
    let optimizer = job.software.properties().optimizer_bytes;
    if sums_in_bf16(job) {
        job.remark(
            "Gradients are summed in BF16, as the plan's software does. Remove --grad-reduce-in-bf16 to sum",
        );
        job.remark("them in FP32, which takes 2 more bytes of memory per weight.");
        job.flag("--grad-reduce-in-bf16");
    }
    if dtype == Dtype::Bf16 && optimizer <= NARROW_OPTIMIZER {
        // Stores only those bits of the FP32 weights that the BF16 weights lack.
        job.flag("--use-precision-aware-optimizer");
    }
}

/// Returns whether the script sums gradients in BF16.
pub(super) fn sums_in_bf16(job: &MegatronJob) -> bool {
    job.software.properties().gradient_bytes <= NARROW_GRADIENT
}

fn eight_bits(job: &mut MegatronJob, format: &str, recipe: &str) {
    job.set("--fp8-format", format);
    job.set("--fp8-recipe", recipe);
}
