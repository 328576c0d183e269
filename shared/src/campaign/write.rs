//! Writes a campaign as text. There is one form: reading and writing it again gives the same file.

use super::environment::{Env, Secret, VariableValue, is_variable};
use super::{After, AfterEnd, Campaign, Settings, Upload, VERSION, is_setting};
use crate::field::{Field, FieldValue};
use std::fmt::Write;

impl Campaign {
    /// Returns the file's text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        line(&mut out, "version", &VERSION.to_string());
        line(&mut out, "name", &quoted(self.name.as_str()));
        line(&mut out, "cluster", &quoted(self.cluster.as_str()));
        upload(&mut out, "upload", self.defaults.upload.as_ref());
        if (Settings { upload: None, ..self.defaults.clone() }) != Settings::default() {
            out += "\n[defaults]\n";
            settings(&mut out, &self.defaults);
            env(&mut out, "defaults.env", &self.defaults.env);
        }
        for run in &self.runs {
            out += "\n[[run]]\n";
            line(&mut out, "name", &quoted(run.name.as_str()));
            if !run.after.is_empty() {
                let after: Vec<String> = run.after.iter().map(after_text).collect();
                line(&mut out, "after", &format!("[{}]", after.join(", ")));
            }
            settings(&mut out, &run.settings);
            upload(&mut out, "run.upload", run.settings.upload.as_ref());
            env(&mut out, "run.env", &run.settings.env);
        }
        out
    }
}

fn after_text(after: &After) -> String {
    let run = quoted(after.run.as_str());
    match after.on {
        AfterEnd::Any => run,
        on => format!("{{ run = {run}, on = {} }}", quoted(on.word())),
    }
}

fn settings(out: &mut String, settings: &Settings) {
    let Settings { spec, env: _, repeats, retries, exclude, singleton, queue_budget, upload: _ } = settings;
    for (field, text) in spec.iter().filter(|(field, _)| is_setting(*field)) {
        line(out, field.flag(), &value(field, text.trim()));
    }
    if let Some(repeats) = repeats {
        line(out, "repeats", &repeats.to_string());
    }
    if let Some(retries) = retries {
        line(out, "retries", &retries.to_string());
    }
    if let Some(exclude) = exclude {
        line(out, "exclude", &quoted(exclude.as_str()));
    }
    if let Some(singleton) = singleton {
        line(out, "singleton", &singleton.to_string());
    }
    if let Some(budget) = queue_budget {
        line(out, "queue-budget", &quoted(&budget.to_string()));
    }
}

fn upload(out: &mut String, table: &str, upload: Option<&Upload>) {
    let Some(upload) = upload else { return };
    // Default values are omitted.
    let Upload { token, logs, progress, .. } = Upload::to(upload.to.clone());
    let _ = writeln!(out, "\n[{table}]");
    line(out, "to", &quoted(upload.to.as_str()));
    if upload.token != token {
        line(out, "token", &reference(&upload.token));
    }
    if upload.logs != logs {
        line(out, "logs", &upload.logs.to_string());
    }
    if upload.progress != progress {
        line(out, "progress", &upload.progress.to_string());
    }
}

fn env(out: &mut String, table: &str, env: &Env) {
    if env.0.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n[{table}]");
    for (name, setting) in &env.0 {
        let name = if is_variable(name) { name.clone() } else { quoted(name) };
        let value = match setting {
            VariableValue::Text(text) => quoted(text),
            VariableValue::Secret(secret) => reference(secret),
        };
        line(out, &name, &value);
    }
}

fn reference(secret: &Secret) -> String {
    match secret {
        Secret::Env(variable) => format!("{{ env = {} }}", quoted(variable)),
        Secret::Command(words) => format!("{{ command = {} }}", list(words.iter().map(String::as_str))),
    }
}

fn line(out: &mut String, key: &str, value: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "{key} = {value}");
}

/// Returns whole numbers and switches without quotes, and everything else as a string.
fn value(field: Field, text: &str) -> String {
    let is_whole = || {
        let digits = text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && !text.is_empty() && (text == "0" || !text.starts_with('0'))
    };
    let bare = match field.value() {
        FieldValue::Whole => is_whole(),
        FieldValue::Switch => matches!(text, "true" | "false"),
        FieldValue::Number | FieldValue::Text | FieldValue::Variables => false,
    };
    if bare { text.to_string() } else { quoted(text) }
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quoted).collect::<Vec<_>>().join(", "))
}

/// Returns a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
