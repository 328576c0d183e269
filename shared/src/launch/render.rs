//! The script of a release's launch, to paste into a shell or run with `sh`.

use super::plan::LaunchPlan;
use super::release::reference;
use super::script::ShellScript;
use super::style::Invocation;
use super::word::ShellWord;

/// Returns a command, quoted for a shell.
pub(super) fn line(words: &[ShellWord]) -> String {
    let words: Vec<String> = words.iter().map(ShellWord::shell).collect();
    words.join(" ")
}

pub(super) fn script(plan: &LaunchPlan, invocation: &Invocation) -> ShellScript {
    let mut setup = vec!["#!/bin/sh".to_string(), format!("# {} by {}", plan.recipe_id(), plan.style)];
    setup.push(format!("# {}", what_it_does(plan)));
    setup.push(
        "# Run it on a login node, outside of any job. Clears settings left over from earlier launches."
            .into(),
    );
    // A subshell: a failure doesn't end the shell that it is pasted into, and no variables stay behind.
    setup.push("(".into());
    setup.push("set -eu".into());
    let mut lines = Vec::new();
    for need in &plan.needs {
        lines.push(format!(": \"${{{}:?set it to {}}}\"", need.name, need.what));
    }
    if !plan.needs.is_empty() {
        let names: Vec<&str> = plan.needs.iter().map(|need| need.name.as_str()).collect();
        lines.push(format!("export {}", names.join(" ")));
    }
    lines.extend(plan.env.iter().map(|(name, value)| format!("export {name}={}", value.shell())));
    // After the exports, which may refer to these variables.
    lines.extend(unset(&plan.leftovers()));
    lines.push(format!("cd {}", invocation.cwd.shell()));
    lines.push(line(&invocation.command));
    lines.push(")".into());
    ShellScript::new(&setup, &lines)
}

fn what_it_does(plan: &LaunchPlan) -> String {
    let steps = match plan.steps {
        1 => "1 training step".to_string(),
        steps => format!("{steps} training steps"),
    };
    match plan.incomparable.is_empty() && reference(plan).is_some() {
        true => format!("Benchmark: {steps} on synthetic data, same method as the published numbers."),
        false => format!("Runs {steps} on synthetic data; not comparable with a published number."),
    }
}

/// Returns `unset` commands for the names, in lines of readable width.
fn unset(names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < 100 => *line += &format!(" {name}"),
            _ => lines.push(format!("unset {name}")),
        }
    }
    lines
}
