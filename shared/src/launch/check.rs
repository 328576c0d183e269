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
        steps.push(Step::new(
            "Open the profiles",
            [format!("ls {}", profiles.shell())],
            "Copy them to a machine with the Nsight Systems client and open them there; its multi-report analysis takes \
             several at once.",
        ));
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
    let (commands, note) = match (plan.options.cluster_type, plan.release()) {
        (ClusterType::Runai, _) => (vec![], "The Run:ai web interface lists it under its project.".to_string()),
        (ClusterType::Slurm, Release::R24_11) => (
            vec!["squeue --me".to_string()],
            "The release runs one job of its name at a time: a second one waits for the first.".to_string(),
        ),
        (ClusterType::Slurm, _) => (vec!["squeue --me".to_string()], String::new()),
    };
    Step::new("Follow the job", commands, note)
}

fn step_times(plan: &Plan, outputs: &Outputs) -> Step {
    let directory = outputs.experiment_dir.shell();
    let own = match plan.release() {
        Release::R24_11 | Release::R25_04 => "The release goes by the last step's time.".to_string(),
        Release::R25_05 => "The release's own common/parse_train_timing.sh scores iterations 11 to 44.".to_string(),
        Release::R25_12 => "The release's own common/parse_train_timing.sh scores iterations 35 to 44.".to_string(),
    };
    Step::new("Read the step times", [format!("trainplan parse {directory}")], own)
}
