//! How to see what a run did once it is there.

use super::plan::Plan;
use super::prepare::Step;
use super::{ClusterType, Outputs};
use crate::catalog::Release;

pub(super) fn steps(plan: &Plan, outputs: &Outputs) -> Vec<Step> {
    let options = plan.options;
    let log = outputs.log_glob.shell();
    let mut steps = vec![follow(plan), step_times(plan, outputs)];
    if let Some(profiles) = &outputs.profile_glob {
        let ranks = match plan.release() {
            Release::R24_11 | Release::R25_04 => "Ranks 0 to 7 write one each.",
            Release::R25_05 => "Every rank writes one, though the document says 0 to 8.",
            Release::R25_12 => "The document says that ranks 0 to 8 write one each.",
        };
        let note = format!(
            "{ranks} Copy them to a machine with the Nsight Systems client and open them there; its \
             multi-report analysis takes several at once."
        );
        steps.push(Step::new("Open the profiles", [format!("ls {}", profiles.shell())], note));
    }
    if let Some(trace) = &outputs.trace_glob {
        steps.push(Step::new(
            "Read the NCCL trace",
            [format!("grep 'NCCL INFO' {} | less", trace.shell())],
            "The log may grow beyond 1 GB.",
        ));
    }
    if let Some(checkpoints) = &outputs.checkpoint_dir {
        let weights = checkpoints.clone().then("/").then_any().then("/weights/").then_any().then(".distcp");
        steps.push(Step::new(
            "Check the saved checkpoint",
            [format!("ls {}", weights.shell()), format!("grep 'Global Checkpoint Save' {log}")],
            "To start from it, give --load-checkpoint the directory that holds weights.",
        ));
    }
    if options.load_checkpoint.is_some() {
        steps.push(Step::new(
            "Check that the checkpoint was loaded",
            [format!("grep 'Global Checkpoint Load' {log}")],
            "",
        ));
    }
    steps
}

fn follow(plan: &Plan) -> Step {
    if plan.options.cluster_type == ClusterType::Runai {
        return Step::new("Follow the job", [], "The Run:ai web interface lists it under its project.");
    }
    let mut notes = Vec::new();
    if plan.release() == Release::R24_11 {
        notes.push("The release runs one job of its name at a time: a second one waits for the first.");
    }
    if plan.options.gres.is_none() {
        notes.push("If sbatch finds no GPUs, or asks for them, the cluster counts them: give --gres gpu.");
    }
    Step::new("Follow the job", ["squeue --me".to_string()], notes.join(" "))
}

fn step_times(plan: &Plan, outputs: &Outputs) -> Step {
    let scored = match plan.release() {
        Release::R24_11 | Release::R25_04 => "The release goes by the last step's time.",
        Release::R25_05 => "The release's own common/parse_train_timing.sh scores iterations 11 to 44.",
        Release::R25_12 => "The release's own common/parse_train_timing.sh scores iterations 35 to 44.",
    };
    let directory = outputs.experiment_dir.shell();
    Step::new("Read the step times", [format!("trainplan parse {directory}")], scored)
}
