//! A shell script to run on a cluster, with the values of its variables.

use super::frame::Frame;
use super::quote::quote;
use crate::secrets;
use std::fmt;

/// The command for the login shell, which sh, bash, csh, tcsh and fish read alike. The script goes over
/// standard input, so that no list of processes shows it.
pub(super) const SHELL: &str = "exec /bin/sh -s";

/// Finds Slurm's commands if only a login shell has them in its PATH, and takes nothing else from that shell.
///
/// Another process reads the profile, since a profile may fail or end its shell.
const PRELUDE: &str = r#"
command -v sbatch >/dev/null 2>&1 || {
  trainplan_path=$(bash -l -c 'printf "\n%s\n%s\n" "$PATH" "${SLURM_CONF-}"' 2>/dev/null </dev/null | tail -n 2)
  trainplan_conf=$(printf '%s\n' "$trainplan_path" | tail -n 1)
  trainplan_path=$(printf '%s\n' "$trainplan_path" | head -n 1)
  case $trainplan_path in /*) export PATH="$trainplan_path" ;; esac
  case $trainplan_conf in /*) export SLURM_CONF="$trainplan_conf" ;; esac
}
"#;

/// A shell script with the values of its variables.
///
/// The body runs in a subshell of `/bin/sh` with an empty standard input. `printf %s "$name"` prints a value
/// of any length.
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
    /// Visible to the script only.
    Script,
    /// Exported to the script's commands, and kept out of logs.
    Secret,
}

impl Script {
    /// Returns a script. The name is for logs and errors.
    pub(crate) fn new(name: &'static str, body: &'static str) -> Script {
        Script { name, body, variables: Vec::new() }
    }

    /// Sets a variable that is not exported.
    pub(crate) fn set(self, name: &'static str, value: impl Into<String>) -> Script {
        self.with(name, value.into(), Reach::Script)
    }

    /// Sets an exported variable whose value is kept out of logs and errors.
    pub(crate) fn secret(self, name: &str, value: impl Into<String>) -> Script {
        self.with(name, value.into(), Reach::Secret)
    }

    fn with(mut self, name: &str, value: String, reach: Reach) -> Script {
        self.variables.push(Variable { name: name.to_string(), value, reach });
        self
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the text with the values of secrets replaced.
    pub(super) fn redact(&self, text: &str) -> String {
        let secrets = self.variables.iter().filter(|variable| variable.reach == Reach::Secret);
        secrets::redact(text, secrets.map(|variable| variable.value.as_str()))
    }

    /// Checks that a shell can hold the variables.
    ///
    /// # Errors
    /// The first one that it can't hold.
    pub(super) fn check(&self) -> Result<(), String> {
        for Variable { name, value, .. } in &self.variables {
            if !is_name(name) {
                return Err(format!("{name:?} is not a valid name for a shell variable"));
            }
            if value.contains('\0') {
                return Err(format!("the value of {name} contains a NUL byte"));
            }
        }
        Ok(())
    }

    /// Returns the text for `/bin/sh`: definitions, then one compound command, which the shell reads to its
    /// end before it starts. So a text that is cut off in transport runs nothing.
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
