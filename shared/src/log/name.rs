//! Reads the name of a log or an experiment, into which the releases write most of a run's configuration.
//!
//! Examples: `log-acct-x.pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512_389757_0.out` (25.05 and
//! later), `log-acct.pretrain_llama3.1_70b_fp8_256_nsys_12345_0.out` (25.04), `log-nemo_nemotron4_340b_256_12345.out`
//! (24.11), `log-torchtitan_deepseek_v3_256gpus_12345_0.out`, `sbatch_acct.pretrain_..._12345.out`. Our own launches by
//! Megatron-LM write `log-megatron-lm_llama3.1_405b_fp8_gpus512_..._12345_0.out`. People rename files, so every part is
//! optional and nothing is an error.

use serde::{Deserialize, Serialize};

/// The parts of a log's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogName {
    /// The kind of file.
    pub role: Role,
    /// The experiment, without account, job and restart, which all its jobs share.
    pub experiment: String,
    /// The model's family as written, as `nemotron4` or `deepseek_v3`.
    pub model: Option<String>,
    /// The model's size as written, as `340b` or `235b_a22b`.
    pub size: Option<String>,
    /// The precision in our own words: bf16, fp8, fp8-current, fp8-delayed, fp8-block, mxfp8, nvfp4.
    pub dtype: Option<String>,
    /// The number of GPUs.
    pub gpus: Option<u32>,
    /// Tensor-parallel size.
    pub tp: Option<u32>,
    /// Pipeline-parallel size.
    pub pp: Option<u32>,
    /// Context-parallel size.
    pub cp: Option<u32>,
    /// Virtual-pipeline size; none too if the name says `vpNone`.
    pub vp: Option<u32>,
    /// Expert-parallel size.
    pub ep: Option<u32>,
    /// Micro batch size.
    pub mbs: Option<u32>,
    /// Global batch size.
    pub gbs: Option<u32>,
    /// Slurm's job id.
    pub job_id: Option<u64>,
    /// How often Slurm had started the job before.
    pub restart: Option<u32>,
    /// Whether Nsight recorded the run (`_nsys`).
    pub profiled: bool,
    /// Whether NCCL was traced (`_nccltrace`).
    pub traced: bool,
}

/// What kind of file a name names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The training log, where the steps are: `log-*`.
    Training,
    /// What the batch script printed: `sbatch_*` or `slurm-*`. It has no steps, but says why a job did not start.
    Batch,
    /// Anything else, an experiment's directory for one.
    #[default]
    Other,
}

/// What an experiment's name starts with, behind the account.
const OPENINGS: [&str; 4] = ["megatron-lm_", "pretrain_", "torchtitan_", "nemo_"];

/// Slurm counts a job's restarts from zero; a larger number is a job id.
const MOST_RESTARTS: u32 = 1000;

/// From here on, a number behind the name of a directory is the time it was made, in seconds since 1970.
const EARLIEST_TIME: u64 = 1_000_000_000;

impl LogName {
    /// Returns whether our script for Megatron-LM named the experiment.
    #[must_use]
    pub fn is_of_megatron_lm(&self) -> bool {
        self.experiment.starts_with("megatron-lm_")
    }

    /// Reads the name of a file or directory. If it does not contain the model, the directories above it may.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let mut parts = path.rsplit(['/', '\\']);
        let mut name = Self::of_part(parts.next().unwrap_or_default());
        if name.model.is_none() {
            let above = parts.map(Self::of_part).find(|above| above.size.is_some() && above.gpus.is_some());
            if let Some(above) = above {
                name = Self {
                    role: name.role,
                    job_id: name.job_id.or(above.job_id),
                    restart: name.restart,
                    profiled: name.profiled || above.profiled,
                    traced: name.traced || above.traced,
                    ..above
                };
            }
        }
        name
    }

    fn of_part(part: &str) -> Self {
        let part = uncompressed_name(part);
        let stem = [".out", ".err", ".log", ".txt"].iter().find_map(|ending| part.strip_suffix(ending));
        let stem = stem.unwrap_or(part);
        let (role, stem) = if let Some(rest) = stem.strip_prefix("log-") {
            (Role::Training, rest)
        } else if let Some(rest) = stem.strip_prefix("sbatch_").or_else(|| stem.strip_prefix("slurm-")) {
            (Role::Batch, rest)
        } else {
            (Role::Other, stem)
        };
        let opening = OPENINGS.iter().find_map(|opening| Some((stem.find(opening)?, *opening)));
        let (start, opening) = opening.unwrap_or((0, ""));
        let mut words: Vec<&str> = stem[start..].split('_').collect();

        let mut name = Self { role, ..Self::default() };
        name.take_job(&mut words, opening);
        name.experiment = words.join("_");
        let skipped = usize::from(!opening.is_empty());
        name.take_words(words.get(skipped..).unwrap_or_default(), !opening.is_empty());
        name
    }

    /// Takes the job id and the restart off the end of a name.
    fn take_job(&mut self, words: &mut Vec<&str>, opening: &str) {
        let mut numbers = words.iter().rev().map_while(|word| number::<u64>(word)).count();
        let gpus_are_named = words.iter().any(|word| gpus(word).is_some());
        // Only the logs of nemo-run end with a restart.
        if self.role == Role::Training && opening != "nemo_" && numbers > 1 {
            self.restart = words.last().and_then(|word| number(word)).filter(|count| *count < MOST_RESTARTS);
            if self.restart.is_some() {
                words.pop();
                numbers -= 1;
            }
        }
        // In the name of an experiment, a lone number is how many GPUs it has.
        if numbers > 1 || numbers == 1 && (self.role != Role::Other || gpus_are_named) {
            self.job_id = words.pop().and_then(number);
        }
        if self.role == Role::Other {
            self.job_id = self.job_id.filter(|id| *id < EARLIEST_TIME);
        }
    }

    /// Reads the words of an experiment's name: the model comes first, then what is known by its form.
    /// A number alone is the number of GPUs only in the name of an experiment: `mbridge_2.log` is the second of some logs.
    fn take_words(&mut self, words: &[&str], is_of_experiment: bool) {
        let mut model = Vec::new();
        let mut before = "";
        let numbers_are_gpus = is_of_experiment && !words.iter().any(|word| gpus(word).is_some());
        for word in words {
            // Another number before the first known part belongs to the model: nemotron_3_nano.
            let is_known = numbers_are_gpus || number::<u32>(word).is_none();
            if is_known && self.take(word, before) {
                before = word;
            } else if before.is_empty() {
                model.push(*word);
            }
        }
        // A name without any known part isn't an experiment's name.
        self.model = Some(model.join("_")).filter(|model| !model.is_empty() && !before.is_empty());
    }

    /// Reads a word that its form identifies, where `before` is the previous word. Returns false for other
    /// words.
    fn take(&mut self, word: &str, before: &str) -> bool {
        if let Some(dtype) = dtype(word, before) {
            self.dtype = Some(dtype.to_owned());
            return true;
        }
        if is_size(word) {
            self.size.get_or_insert_with(|| word.to_owned());
            return true;
        }
        if is_size(before) && word.strip_prefix('a').is_some_and(is_size) {
            self.size = Some(format!("{before}_{word}"));
            return true;
        }
        match word {
            "nsys" => self.profiled = true,
            "nccltrace" => self.traced = true,
            "pinned" | "vpNone" => {}
            _ => return self.take_number(word),
        }
        true
    }

    fn take_number(&mut self, word: &str) -> bool {
        let fields: [(&str, &mut Option<u32>); 7] = [
            ("tp", &mut self.tp),
            ("pp", &mut self.pp),
            ("cp", &mut self.cp),
            ("vp", &mut self.vp),
            ("ep", &mut self.ep),
            ("mbs", &mut self.mbs),
            ("gbs", &mut self.gbs),
        ];
        for (key, field) in fields {
            if let Some(value) = word.strip_prefix(key).and_then(number) {
                *field = Some(value);
                return true;
            }
        }
        match gpus(word).or_else(|| number(word)) {
            Some(gpus) => {
                self.gpus.get_or_insert(gpus);
                true
            }
            None => false,
        }
    }
}

/// Returns a log's name without the ending of its compression.
#[must_use]
pub fn uncompressed_name(name: &str) -> &str {
    [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// A number of GPUs that is marked as such: `gpus128` or `128gpus`.
fn gpus(word: &str) -> Option<u32> {
    number(word.strip_prefix("gpus").or_else(|| word.strip_suffix("gpus"))?)
}

/// A whole number, digits alone.
fn number<N: std::str::FromStr>(word: &str) -> Option<N> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.parse().ok() } else { None }
}

/// A precision in our own words. The releases distinguish the kinds of fp8 by a separate word.
fn dtype(word: &str, before: &str) -> Option<&'static str> {
    match (before, word) {
        ("fp8", "cs") => Some("fp8-current"),
        ("fp8", "ds") => Some("fp8-delayed"),
        ("fp8", "sc") => Some("fp8-block"),
        ("fp8", "mx") | (_, "mxfp8") => Some("mxfp8"),
        (_, "bf16") => Some("bf16"),
        (_, "fp8") => Some("fp8"),
        (_, "nvfp4") => Some("nvfp4"),
        _ => None,
    }
}

/// A model's size: `340b`, `1.5b`, `1t`, `8x7b`.
fn is_size(word: &str) -> bool {
    let Some(digits) = word.strip_suffix(['b', 't', 'm']) else { return false };
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'x'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_25_05_and_later() {
        let name = LogName::of(
            "x/log-acct-x.pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512_389757_0.out",
        );
        let wanted = LogName {
            role: Role::Training,
            experiment: "pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512".into(),
            model: Some("nemotron4".into()),
            size: Some("340b".into()),
            dtype: Some("fp8".into()),
            gpus: Some(128),
            tp: Some(8),
            pp: Some(4),
            cp: Some(1),
            vp: Some(12),
            mbs: Some(1),
            gbs: Some(512),
            job_id: Some(389_757),
            restart: Some(0),
            ..LogName::default()
        };
        assert_eq!(name, wanted);
        // As the 25.12 document's table prints it, and as the batch log is named.
        let table = LogName::of("pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512_389757");
        assert_eq!(table, LogName { role: Role::Other, restart: None, ..wanted.clone() });
        let batch = LogName::of(
            "sbatch_acct-x.pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512_389757.out",
        );
        assert_eq!(batch, LogName { role: Role::Batch, restart: None, ..wanted });

        let hybrid = LogName::of(
            "log-a.pretrain_nemotronh_56b_fp8_gpus128_tp8_pp1_cp1_vpNone_mbs1_gbs768_nccltrace_7_2.out",
        );
        assert_eq!((hybrid.vp, hybrid.gbs, hybrid.traced), (None, Some(768), true));
        assert_eq!((hybrid.job_id, hybrid.restart), (Some(7), Some(2)));
    }

    #[test]
    fn names_of_25_04_have_the_gpus_as_a_bare_number() {
        let name = LogName::of("log-acct.pretrain_llama3.1_70b_fp8_256_12345_0.out");
        assert_eq!((name.model.as_deref(), name.size.as_deref()), (Some("llama3.1"), Some("70b")));
        assert_eq!((name.gpus, name.job_id, name.restart), (Some(256), Some(12345), Some(0)));
        let profiled = LogName::of("log-acct.pretrain_nemotron4_15b_bf16_64_pinned_nsys_12345_0.out");
        assert_eq!((profiled.gpus, profiled.job_id, profiled.profiled), (Some(64), Some(12345), true));
        assert_eq!(profiled.experiment, "pretrain_nemotron4_15b_bf16_64_pinned_nsys");
        for directory in
            ["pretrain_llama3.1_70b_fp8_256", "experiments/pretrain_llama3.1_70b_fp8_256_1744407969"]
        {
            let name = LogName::of(directory);
            assert_eq!((name.gpus, name.job_id, name.role), (Some(256), None, Role::Other), "{directory}");
        }
    }

    #[test]
    fn the_other_families_of_names() {
        let first = LogName::of("results/24.11/fp8/340b/256/log-nemo_nemotron4_340b_256_389757.out");
        assert_eq!((first.model.as_deref(), first.size.as_deref()), (Some("nemotron4"), Some("340b")));
        assert_eq!(
            (first.gpus, first.job_id, first.restart, first.dtype),
            (Some(256), Some(389_757), None, None)
        );
        let titan = LogName::of("log-torchtitan_deepseek_v3_256gpus_12345_0.out");
        assert_eq!((titan.model.as_deref(), titan.gpus), (Some("deepseek_v3"), Some(256)));
        assert_eq!((titan.job_id, titan.restart), (Some(12345), Some(0)));
        let moe = LogName::of("log-a.pretrain_qwen3_235b_a22b_fp8_mx_gpus64_tp1_pp8_cp1_ep32_12_0.out");
        assert_eq!((moe.size.as_deref(), moe.dtype.as_deref()), (Some("235b_a22b"), Some("mxfp8")));
        assert_eq!((moe.ep, moe.gpus), (Some(32), Some(64)));
    }

    #[test]
    fn names_of_our_own_launches() {
        let name = LogName::of(
            "experiments/x/log-megatron-lm_qwen3_30b_a3b_fp8_cs_gpus64_tp1_pp2_cp1_vp4_ep8_mbs1_gbs512_77_0.out",
        );
        assert_eq!((name.model.as_deref(), name.size.as_deref()), (Some("qwen3"), Some("30b_a3b")));
        assert_eq!((name.gpus, name.vp, name.ep, name.gbs), (Some(64), Some(4), Some(8), Some(512)));
        assert_eq!(
            (name.dtype.as_deref(), name.job_id, name.restart),
            (Some("fp8-current"), Some(77), Some(0))
        );
        let directory = LogName::of("megatron-lm_llama3.1_8b_bf16_gpus8_tp1_pp1_cp1_vp1_mbs1_gbs128_4711");
        assert_eq!((directory.gpus, directory.job_id, directory.role), (Some(8), Some(4711), Role::Other));
        let batch = LogName::of(
            "sbatch_megatron-lm_nemotron3nano_30b_bf16_gpus8_tp1_pp1_cp1_vp1_mbs1_gbs128_4711.out",
        );
        assert_eq!((batch.role, batch.model.as_deref()), (Role::Batch, Some("nemotron3nano")));
    }

    #[test]
    fn a_directory_tells_what_the_file_does_not() {
        let name = LogName::of("/lustre/experiments/nemotron4_340b_fp8_gpus256/1744407969/slurm-389757.out");
        assert_eq!((name.role, name.job_id, name.gpus), (Role::Batch, Some(389_757), Some(256)));
        assert_eq!((name.model.as_deref(), name.dtype.as_deref()), (Some("nemotron4"), Some("fp8")));
    }

    #[test]
    fn what_is_no_name_of_ours_tells_nothing() {
        for path in ["", "/", "notes.txt", "log-.out", "my_run.log", "train", "ünïcode_ß.out"] {
            let name = LogName::of(path);
            assert_eq!((name.model, name.gpus, name.job_id), (None, None, None), "{path}");
        }
    }

    proptest! {
        #[test]
        fn anything_is_read(path in ".*") {
            let _ = LogName::of(&path);
        }

        #[test]
        fn what_is_written_is_read_back(
            gpus in 1..4096_u32, tp in 1..64_u32, vp in prop::option::of(1..32_u32), gbs in 1..8192_u32,
            job in 0..100_000_000_u64, restart in 0..9_u32,
        ) {
            let virtual_size = vp.map_or("None".to_owned(), |vp| vp.to_string());
            let name = LogName::of(&format!(
                "log-a-b.pretrain_llama3.1_405b_bf16_gpus{gpus}_tp{tp}_pp8_cp2_vp{virtual_size}_mbs1_gbs{gbs}_{job}_{restart}.out"
            ));
            prop_assert_eq!((name.gpus, name.tp, name.vp, name.gbs), (Some(gpus), Some(tp), vp, Some(gbs)));
            prop_assert_eq!((name.job_id, name.restart), (Some(job), Some(restart)));
        }
    }
}
