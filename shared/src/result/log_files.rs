//! Which files of a folder are logs or saved results.

use super::{FILE_ENDING, SettingsFile};
use crate::log::{LogName, Role, uncompressed_name};

/// The endings of training logs and of saved results.
const LOG_ENDINGS: [&str; 4] = [".out", ".log", ".txt", FILE_ENDING];

/// Returns whether a file in a folder is read as a log or a saved result. A file that the user names is always read. The environment of
/// a job has the ending of a log, but is not one.
#[must_use]
pub fn is_log_name(path: &str) -> bool {
    LOG_ENDINGS.iter().any(|ending| path.ends_with(ending)) && !SettingsFile::Environment.is_path(path)
}

/// Returns whether a file is the batch script's output, and the training log of the same job beside it contains
/// everything that it says.
#[must_use]
pub fn is_told_elsewhere(name: &LogName, beside: &[LogName]) -> bool {
    let of_same_job = |other: &LogName| other.role == Role::Training && other.job_id == name.job_id;
    name.role == Role::Batch && beside.iter().any(of_same_job)
}

/// Returns whether a file in a log's folder that doesn't name its job can only be that of the log. Beside the training log of a job, the
/// folder must not have that of another job; beside any other log, it must not have a log. `others` are the names of the other files.
#[must_use]
pub fn is_only_log(own: &LogName, others: impl IntoIterator<Item = impl AsRef<str>>) -> bool {
    let is_of_job = own.role == Role::Training && own.job_id.is_some();
    !others.into_iter().any(|other| {
        let other = other.as_ref();
        if is_of_job {
            let other = LogName::of(other);
            other.role == Role::Training && other.job_id != own.job_id
        } else {
            is_log_name(uncompressed_name(other)) && !other.ends_with(FILE_ENDING)
        }
    })
}

/// Returns the places of the logs that are read as one with the one at `place`: those of the starts of its job, in order.
/// None if it is the log of an earlier start. A log that isn't `usable` is left out.
#[must_use]
pub fn parts_of(place: usize, names: &[LogName], usable: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    let own = names.get(place)?;
    let alone = Some(vec![place]);
    if own.role != Role::Training || own.job_id.is_none() || own.restart.is_none() {
        return alone;
    }
    let is_part = |other: &LogName| {
        let of_same_job = other.role == Role::Training && other.job_id == own.job_id;
        of_same_job && other.restart.is_some() && other.experiment == own.experiment
    };
    let parts = names.iter().enumerate().filter(|(place, other)| is_part(other) && usable(*place));
    let mut parts: Vec<(Option<u32>, usize)> = parts.map(|(place, other)| (other.restart, place)).collect();
    parts.sort_unstable();
    // A copy of the same part, such as a compressed one, is another log.
    if parts.windows(2).any(|two| two[0].0 == two[1].0) {
        return alone;
    }
    let parts: Vec<usize> = parts.into_iter().map(|(_, place)| place).collect();
    (parts.last() == Some(&place)).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_a_job_is_no_log() {
        assert!(is_log_name("a/train.log") && is_log_name("env_a.log"));
        assert!(!is_log_name("a/env_12.log") && !is_log_name("llmb-config_12.yaml"));
    }

    #[test]
    fn a_log_is_the_only_one_beside_files_of_other_kinds_and_of_its_job() {
        let alone = |own: &str, others: &[&str]| is_only_log(&LogName::of(own), others);
        let numbered = "log-acct.own_10_0.out";
        assert!(alone(numbered, &["log-acct.own_10_1.out", "sbatch_acct.own_10.out", "train.log"]));
        assert!(!alone(numbered, &["log-acct.own_11_0.out"]));
        assert!(alone("train.log", &["env_10.log", "train.result.json", "configs", "model.bin"]));
        assert!(!alone("train.log", &["other.log.gz"]) && !alone("train.log", &[numbered]));
        assert!(alone("slurm-10.out", &[]) && !alone("slurm-10.out", &["slurm-11.out"]));
    }

    #[test]
    fn the_logs_of_a_jobs_starts_are_read_as_one() {
        let paths = [
            "log-acct.pretrain_llama3.1_8b_fp8_8_71_1.out.gz",
            "log-acct.pretrain_llama3.1_8b_fp8_8_71_0.out",
            "log-acct.pretrain_llama3.1_8b_fp8_8_72_0.out",
            "before.log",
        ];
        let names = paths.map(LogName::of);
        let parts = |place| parts_of(place, &names, |_| true);
        assert_eq!(parts(0), Some(vec![1, 0]));
        assert_eq!(parts(1), None, "it is read with the later start");
        assert_eq!((parts(2), parts(3), parts(4)), (Some(vec![2]), Some(vec![3]), None));
        assert_eq!(parts_of(0, &names, |place| place != 1), Some(vec![0]));
        // Two copies of the first start.
        let twice = [names[0].clone(), names[1].clone(), names[1].clone()];
        assert_eq!(parts_of(0, &twice, |_| true), Some(vec![0]));
    }
}
