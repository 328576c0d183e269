//! How to see what a run did once it is there.

use super::plan::Plan;
use super::prepare::Step;
use super::{ClusterType, Outputs};
use crate::log::Window;

pub(super) fn steps(plan: &Plan, outputs: &Outputs) -> Vec<Step> {
    let options = plan.options;
    let log = outputs.log_glob.shell();
    let mut steps = vec![follow(plan), step_times(plan, outputs)];
    if let Some(profiles) = &outputs.profile_glob {
        let note = format!(
            "{} Copy them to a machine with the Nsight Systems client and open them there; its \
             multi-report analysis takes several at once.",
            plan.contract().profiled_ranks
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
    if plan.contract().one_job_at_a_time {
        notes.push("The release runs one job of its name at a time: a second one waits for the first.");
    }
    if plan.options.gres.is_none() {
        notes.push("If sbatch finds no GPUs, or asks for them, the cluster counts them: give --gres gpu.");
    }
    Step::new("Follow the job", ["squeue --me".to_string()], notes.join(" "))
}

fn step_times(plan: &Plan, outputs: &Outputs) -> Step {
    let who = plan.contract().scoring_program.unwrap_or("This release");
    let scored = match plan.contract().window {
        Window::Last => format!("{who} scores the last step."),
        Window::Labels(labels) => format!("{who} scores iterations {} to {}.", labels.first, labels.last),
    };
    let directory = outputs.experiment_dir.shell();
    Step::new("Read the step times", [format!("trainplan parse {directory}")], scored)
}
