//! Judges Slurm itself: its programs, its controller, and what it keeps of jobs.

use super::super::Finding;
use super::super::answers::{Answers, CommandOutput};
use super::seen;

/// Without accounting, a shorter MinJobAge gives a warning.
const SHORT_MEMORY_S: u32 = 60;

/// Judges whether Slurm answers. Returns its configuration if it does.
pub(super) fn slurm<'a>(
    answers: &'a Answers,
    is_whole: bool,
    found: &mut Vec<Finding>,
) -> Option<CommandOutput<'a>> {
    let lacks = answers.all("lacks-slurm");
    if !lacks.is_empty() {
        found.push(Finding::problem(
            "Slurm",
            format!("missing: {}", lacks.join(", ")),
            "If this is not a login node, set ssh in the profile to one. Otherwise add Slurm's directory \
             to PATH in your ~/.bash_profile there.",
        ));
        return None;
    }
    if is_whole {
        found.push(match answers.output("version") {
            Some(said) if said.code == 0 => Finding::ok("Slurm", said.text()),
            said => Finding::problem("Slurm", seen(said), "Check that `sbatch --version` works there."),
        });
    }
    let controller = answers.output("controller");
    let Some(config) = answers.output("config") else {
        found.push(Finding::problem(
            "slurmctld",
            seen(controller),
            "Wait until Slurm's controller is up again. Until then, jobs can't be submitted or queried.",
        ));
        return None;
    };
    found.push(Finding::ok("slurmctld", seen(controller)));
    Some(config)
}

/// Judges whether a held job kept its comment.
pub(super) fn comments(answers: &Answers) -> Finding {
    const WITHOUT: &str = "If sbatch's answer is lost, Trainplan looks for the job by its name and the time, and \
                           doesn't launch the run again. Don't give your other jobs the names of runs.";
    let refused = answers.output("probe").filter(|said| said.code != 0);
    match (answers.output("comment"), answers.one("mark"), refused) {
        (_, _, Some(said)) => Finding::warning(
            "comments",
            format!("can't be tested, because Slurm refused a held job: {}", said.text()),
            "Check that `sbatch --hold --wrap=true` works there with the account and partition of the profile.",
        ),
        (Some(said), Some(mark), None) if said.code == 0 => {
            match said.lines.iter().any(|line| line == mark) {
                true => Finding::ok("comments", "kept by a held job, which was cancelled"),
                false => Finding::warning(
                    "comments",
                    format!(
                        "a held job got the comment \"{}\"",
                        said.lines.first().map_or("", String::as_str)
                    ),
                    WITHOUT,
                ),
            }
        }
        (said, ..) => Finding::warning("comments", seen(said), WITHOUT),
    }
}

/// Judges how long Slurm knows how a job ended.
pub(super) fn job_history(config: CommandOutput, answers: &Answers, found: &mut Vec<Finding>) {
    let sacct = answers.output("sacct");
    let accounts = sacct.is_some_and(|said| said.code == 0);
    let age = config.setting("MinJobAge").and_then(|age| age.split_whitespace().next()?.parse::<u32>().ok());
    let remembers = age.map_or("unknown".to_string(), |age| format!("{age} s"));
    found.push(match accounts {
        true => Finding::ok("accounting", "sacct answers"),
        false => Finding::warning(
            "accounting",
            seen(sacct),
            format!(
                "Runs work without accounting, but Slurm forgets how a job ended after {remembers}. If \
                 trainplan is not running in that time, the end state of a killed job may be unknown."
            ),
        ),
    });
    let seen = format!("Slurm keeps finished jobs for {remembers} (MinJobAge)");
    found.push(match age {
        Some(age) if age < SHORT_MEMORY_S && !accounts => Finding::warning(
            "job history",
            seen,
            "Ask the site for accounting, or for a MinJobAge of 300 s, the default.",
        ),
        _ => Finding::ok("job history", seen),
    });
}
