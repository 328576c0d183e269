//! A shell script to run on a cluster, and the values it is given.

use super::frame::Frame;
use super::quote::quote;
use std::fmt;

/// What the login shell is told to run. Every one of them (sh, bash, csh, tcsh, fish) takes these words alike, and the
/// script itself, which only `/bin/sh` reads, comes over standard input: no list of processes shows it.
pub(super) const SHELL: &str = "exec /bin/sh -s";

/// Finds Slurm's commands where only a login shell knows them, and nothing else of what such a shell sets.
///
/// It is another process that reads the profile: one that fails, or ends the shell, harms nobody.
const PRELUDE: &str = r#"
command -v sbatch >/dev/null 2>&1 || {
  trainplan_path=$(bash -l -c 'printf "\n%s\n%s\n" "$PATH" "${SLURM_CONF-}"' 2>/dev/null </dev/null | tail -n 2)
  trainplan_conf=$(printf '%s\n' "$trainplan_path" | tail -n 1)
  trainplan_path=$(printf '%s\n' "$trainplan_path" | head -n 1)
  case $trainplan_path in /*) export PATH="$trainplan_path" ;; esac
  case $trainplan_conf in /*) export SLURM_CONF="$trainplan_conf" ;; esac
}
"#;

/// A shell script, and the values of its variables.
///
/// The body runs in a subshell of `/bin/sh`, with nothing on its standard input; a large value is read back by `printf
/// %s "$name"`, which takes any length.
#[derive(Clone)]
pub(crate) struct Script {
    name: &'static str,
    body: &'static str,
    variables: Vec<Variable>,
}

#[derive(Clone)]
struct Variable {
    name: String,
    value: String,
    reach: Reach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The script alone knows it.
    Script,
    /// The commands it runs as well, but no log.
    Secret,
}

impl Script {
    /// A script; the name is for logs and errors.
    pub(crate) fn new(name: &'static str, body: &'static str) -> Script {
        Script { name, body, variables: Vec::new() }
    }

    /// Sets a variable of the script that the commands it runs don't see.
    pub(crate) fn set(self, name: &'static str, value: impl Into<String>) -> Script {
        self.with(name, value.into(), Reach::Script)
    }

    /// Sets a variable for the script and the commands it runs, and keeps its value out of logs and errors.
    pub(crate) fn secret(self, name: &str, value: impl Into<String>) -> Script {
        self.with(name, value.into(), Reach::Secret)
    }

    fn with(mut self, name: &str, value: String, reach: Reach) -> Script {
        self.variables.push(Variable { name: name.to_string(), value, reach });
        self
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The text without any secret that stands in it.
    pub(super) fn redact(&self, text: &str) -> String {
        let secrets = self.variables.iter().filter(|variable| variable.reach == Reach::Secret);
        // A shorter one would blot out half of what is said, and hides nothing.
        let secrets = secrets.map(|variable| variable.value.as_str()).filter(|value| value.len() >= 4);
        secrets.fold(text.to_string(), |text, secret| text.replace(secret, "(secret)"))
    }

    /// Whether a shell can be given it.
    ///
    /// # Errors
    /// Which variable it can't be given.
    pub(super) fn check(&self) -> Result<(), String> {
        for Variable { name, value, .. } in &self.variables {
            if !is_name(name) {
                return Err(format!("a shell has no variable “{name}”"));
            }
            if value.contains('\0') {
                return Err(format!("{name}: a shell's variable can't hold a NUL byte"));
            }
        }
        Ok(())
    }

    /// The text for `/bin/sh`, as a program of two parts: definitions, and one compound command that the shell reads to
    /// its end before it begins. A text that is cut off in transport runs nothing.
    pub(super) fn text(&self, frame: &Frame) -> Vec<u8> {
        let mut text = PRELUDE.as_bytes().to_vec();
        for Variable { name, value, reach } in &self.variables {
            if *reach != Reach::Script {
                text.extend_from_slice(b"export ");
            }
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            quote(value.as_bytes(), &mut text);
            text.push(b'\n');
        }
        let (body, begin, end) = (self.body, frame.begin(), frame.end());
        let program = format!(
            "trainplan_script() {{\n:\n{body}\n}}\n\
             {{\n\
             printf '{begin}'\nprintf '{begin}' >&2\n\
             (trainplan_script) </dev/null\n\
             trainplan_code=$?\n\
             printf '{end}' 0 >&2\nprintf '{end}' \"$trainplan_code\"\n\
             exit 0\n\
             }}\n"
        );
        text.extend_from_slice(program.as_bytes());
        text
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct(self.name);
        for Variable { name, value, reach } in &self.variables {
            let value = if *reach == Reach::Secret { "(secret)" } else { value };
            shown.field(name, &value);
        }
        shown.finish()
    }
}
