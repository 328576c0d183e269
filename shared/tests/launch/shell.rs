//! A place with stand-ins, and shells to run scripts in.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const SHELLS: [&str; 3] = ["sh", "bash", "dash"];

/// Writes down its name, directory, arguments and environment, each behind a NUL; as scontrol it names two
/// nodes.
const STAND_IN: &str = r#"#!/bin/sh
[ "${0##*/}" != scontrol ] || { printf '%s\n' node1 node2; exit; }
{ printf '%s\0' "${0##*/}" "$(pwd -P)" "$#" "$@"; env -0; } > "$RECORD"
"#;

/// The stand-in's file, to which all others are links. It is written once, before any test starts a program:
/// a file that another thread's child still holds open for writing can't be run.
static STAND_IN_FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (draft, file) =
        (directory.join(format!("stand-in-{}", std::process::id())), directory.join("stand-in"));
    fs::write(&draft, STAND_IN).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(draft, &file).unwrap();
    file
});

/// What a stand-in saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) program: String,
    pub(crate) cwd: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
}

/// A directory of its own with the stand-ins in it; it goes when this does.
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("launch-{}-{number}", std::process::id()));
        fs::create_dir_all(root.join("bin")).unwrap();
        let place = Place { root: root.canonicalize().unwrap() };
        for program in ["sbatch", "srun", "scontrol", "llmb-run"] {
            place.stand_in(&format!("bin/{program}"));
        }
        place
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.path(path).to_str().unwrap().to_string()
    }

    /// Puts a stand-in at a path within, with the directories above it.
    pub(crate) fn stand_in(&self, path: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&*STAND_IN_FILE, path).unwrap();
    }

    /// Runs a script from a file, with nothing else in the environment but what is given.
    pub(crate) fn execute(&self, shell: &str, script: &str, env: &[(&str, &str)]) -> Output {
        let file = self.path("script.sh");
        fs::write(&file, script).unwrap();
        let path = format!("{}:/usr/bin:/bin", self.text("bin"));
        Command::new(shell)
            .arg(&file)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path(""))
            .env("RECORD", self.path("record"))
            .envs(env.iter().copied())
            .current_dir(self.path(""))
            .output()
            .unwrap()
    }

    /// Runs a script and reads what the stand-in saw, which must have been called.
    pub(crate) fn run(&self, shell: &str, script: &str, env: &[(&str, &str)]) -> Seen {
        let _ = fs::remove_file(self.path("record"));
        let output = self.execute(shell, script, env);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{shell}: {stderr}\n{script}");
        self.seen().unwrap_or_else(|| panic!("{shell}: no stand-in was called by\n{script}"))
    }

    /// What the stand-in saw that was called last, if one was.
    pub(crate) fn seen(&self) -> Option<Seen> {
        let record = fs::read(self.path("record")).ok()?;
        let mut fields =
            record.split(|byte| *byte == 0).map(|field| String::from_utf8(field.to_vec()).unwrap());
        let (program, cwd) = (fields.next()?, fields.next()?.into());
        let count = fields.next()?.parse().unwrap();
        let args = fields.by_ref().take(count).collect();
        let env = fields
            .filter_map(|pair| Some(pair.split_once('=')?).map(|(k, v)| (k.into(), v.into())))
            .collect();
        Some(Seen { program, cwd, args, env })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
