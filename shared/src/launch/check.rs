//! How to check a run and read its results.

use super::plan::LaunchPlan;
use super::prepare::Instruction;
use super::{ClusterType, Outputs};
use crate::field::Field;
use crate::log::Window;
use crate::message;
use crate::message::{Message, Setting};
use crate::releases::ExperimentName;

pub(super) fn steps(plan: &LaunchPlan, outputs: &Outputs) -> Vec<Instruction> {
    let options = plan.options;
    let log = outputs.log_glob.shell();
    let mut steps = vec![follow(plan), step_times(plan, outputs)];
    if let Some(profiles) = &outputs.profile_glob {
        let note = format!(
            "{} Copy them to a machine with the Nsight Systems client and open them there. Its \
             multi-report analysis opens several at once.",
            plan.contract().profiled_ranks
        );
        steps.push(Instruction::new("Open the profiles", [format!("ls {}", profiles.shell())], note));
    }
    if let Some(trace) = &outputs.trace_glob {
        steps.push(Instruction::new(
            "Read the NCCL trace",
            [format!("grep 'NCCL INFO' {} | less", trace.shell())],
            "The log can exceed 1 GB.",
        ));
    }
    let by_bridge = plan.rules().experiment == ExperimentName::Bridge;
    if let Some(checkpoints) = outputs.checkpoint_dir.as_ref().filter(|_| by_bridge) {
        let saved = checkpoints.clone().then("/iter_").then_any();
        let note = message!["To start from it, set ", Field::LoadCheckpoint, " to the directory above it."];
        steps.push(Instruction::new(
            "Check the saved checkpoint",
            [format!("ls -d {}", saved.shell())],
            note,
        ));
    }
    if let Some(checkpoints) = outputs.checkpoint_dir.as_ref().filter(|_| !by_bridge) {
        let weights = checkpoints.clone().then("/").then_any().then("/weights/").then_any().then(".distcp");
        steps.push(Instruction::new(
            "Check the saved checkpoint",
            [format!("ls {}", weights.shell()), format!("grep 'Global Checkpoint Save' {log}")],
            message!["To start from it, set ", Field::LoadCheckpoint, " to the directory above weights."],
        ));
    }
    if options.load_checkpoint.is_some() && !by_bridge {
        steps.push(Instruction::new(
            "Check that the checkpoint was loaded",
            [format!("grep 'Global Checkpoint Load' {log}")],
            "",
        ));
    }
    steps
}

fn follow(plan: &LaunchPlan) -> Instruction {
    if plan.options.cluster_type == ClusterType::Runai {
        return Instruction::new("Follow the job", [], "The Run:ai web interface lists it in its project.");
    }
    let mut note = Message::default();
    if plan.contract().one_job_at_a_time {
        note = note.and("Only one job of this name runs at a time; a second one waits. ");
    }
    if plan.options.gres.is_none() {
        note = note
            .and("If sbatch finds no GPUs or requires them as a resource, set ")
            .and(Setting::new(Field::Gres, "gpu"))
            .and(".");
    }
    Instruction::new("Follow the job", ["squeue --me".to_string()], note)
}

fn step_times(plan: &LaunchPlan, outputs: &Outputs) -> Instruction {
    let who = plan.contract().scoring_program.unwrap_or("This release");
    let scored = match plan.contract().window {
        Window::Last => format!("{who} scores the last step."),
        Window::Labels(labels) => format!("{who} scores iterations {} to {}.", labels.first, labels.last),
    };
    let directory = outputs.experiment_dir.shell();
    Instruction::new("Read the step times", [format!("trainplan parse {directory}")], scored)
}
