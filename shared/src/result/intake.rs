//! Reads a log: parsed and hashed in one pass.

use super::admission::is_time;
use super::first_time::FirstTime;
use super::log_id::id_of;
use super::{Comparability, Identity, JobFiles, Provenance, RunResult, Source, VERSION};
use crate::log::{LogName, Parser};
use crate::spec::Spec;
use sha2::{Digest, Sha256};

/// Reads a log in chunks of any size.
#[derive(Clone)]
pub struct Intake {
    path: String,
    written_at: Option<String>,
    said: Spec,
    job: JobFiles,
    parser: Parser,
    first_time: FirstTime,
    hash: Sha256,
}

impl Intake {
    /// Starts to read the log at `path`. The scenario fields in `said` are set by the user: they complete what the log and
    /// its name contain, and take precedence.
    #[must_use]
    pub fn new(path: impl Into<String>, said: &Spec) -> Self {
        let (path, said) = (path.into(), said.clone());
        let (parser, first_time) = (Parser::new(), FirstTime::default());
        let job = JobFiles::default();
        Self { path, written_at: None, said, job, parser, first_time, hash: Sha256::new() }
    }

    /// Sets when the log was last written, as RFC 3339 in UTC. A time that no store accepts, of a file whose clock was wrong,
    /// stays unknown.
    #[must_use]
    pub fn written_at(self, written_at: Option<String>) -> Self {
        Self { written_at: written_at.filter(|at| is_time(at)), ..self }
    }

    /// Sets what the files beside the log say. It completes what the log and its name contain.
    #[must_use]
    pub fn with_job(self, job: JobFiles) -> Self {
        Self { job, ..self }
    }

    /// Reads the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.feed_hashed_elsewhere(bytes);
        self.hash.update(bytes);
    }

    /// Reads the next bytes without hashing them. The caller hashes them and gives the hash to
    /// [`finish_with`](Self::finish_with).
    pub fn feed_hashed_elsewhere(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes);
        self.first_time.feed(bytes);
    }

    /// Returns the result of the bytes so far.
    #[must_use]
    pub fn so_far(&self) -> RunResult {
        self.clone().finish()
    }

    /// Returns the result.
    #[must_use]
    pub fn finish(self) -> RunResult {
        let hash = self.hash.clone().finalize().into();
        self.finish_with(hash)
    }

    /// Returns the result of a log with this SHA-256.
    #[must_use]
    pub fn finish_with(self, hash: [u8; 32]) -> RunResult {
        let (name, log) = (LogName::of(&self.path), self.parser.finish());
        RunResult {
            version: VERSION,
            id: id_of(&hash),
            identity: Identity::of(&self.path, &name, &log, &self.job.settings, &self.said),
            comparable: Comparability::of(&name, &log),
            source: Source {
                path: self.path,
                sha256: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
                written_at: self.written_at,
                began_at: self.first_time.settle(),
                cluster: None,
            },
            name,
            log,
            job: self.job,
            provenance: Provenance::here(),
            carried: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunClock;
    use super::super::id_of_log;
    use super::*;

    #[test]
    fn a_run_is_dated_by_its_log_and_only_without_a_date_by_the_file() {
        let run = |log: &str| {
            let written = Some("2026-11-28T01:07:00Z".to_owned());
            let mut intake = Intake::new("a.log", &Spec::default()).written_at(written);
            intake.feed(log.as_bytes());
            intake.finish()
        };
        let dated =
            run(" [2026-05-01 10:00:12] iteration 1/50 | elapsed time per iteration (ms): 12000.0 |\n");
        assert_eq!(dated.ran_at(), Some(("2026-05-01T10:00:12Z", RunClock::Log)));
        let undated = run("iteration 1/50 | elapsed time per iteration (ms): 12000.0 |\n");
        assert_eq!(undated.ran_at(), Some(("2026-11-28T01:07:00Z", RunClock::File)));
    }

    #[test]
    fn the_id_is_the_start_of_the_hash_for_any_chunks() {
        let mut whole = Intake::new("a.log", &Spec::default());
        whole.feed(b"abc");
        let mut pieces = Intake::new("b.log", &Spec::default());
        b"abc".iter().for_each(|byte| pieces.feed(&[*byte]));
        let (whole, pieces) = (whole.finish(), pieces.finish());
        // FIPS 180-2, appendix B.1, with the version and variant bits set.
        assert_eq!(whole.source.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(whole.id.to_string(), "ba7816bf-8f01-8fea-8141-40de5dae2223");
        assert_eq!((whole.id, &whole.log), (pieces.id, &pieces.log));
        assert_eq!(whole.file_name(), "ba7816bf-8f01-8fea-8141-40de5dae2223.result.json");
        assert_eq!(id_of_log(&whole.source.sha256), Some(whole.id));
        for other in ["", "ba7816bf", &format!("+{}", &whole.source.sha256[1..]), &"é".repeat(32)] {
            assert_eq!(id_of_log(other), None, "{other}");
        }
    }
}
