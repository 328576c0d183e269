//! The planned run as a campaign file, for `trainplan run`.

use trainplan_shared::campaign::{Campaign, Env, Name, Run, Settings, VariableValue};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{EnvOverrides, Launch};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;

const HEAD: &str = "\
# Run it with: trainplan run THIS_FILE
# Replace my-cluster with a cluster from your clusters.toml.
";

/// Returns the file's text.
pub(super) fn campaign(spec: &Spec, scenario: &Scenario, launch: &Launch) -> Option<String> {
    let mut spec = spec.clone();
    if let Some(recipe) = scenario.recipe {
        // With its release, so that newer releases don't change it.
        spec.set(Field::Recipe, recipe.id.to_string());
    }
    if launch.release.is_none() {
        spec.set(Field::Style, launch.style.to_string());
    }
    let env: EnvOverrides = spec.parse(Field::Env).ok()?.unwrap_or_default();
    let env = env.iter().map(|(name, value)| (name.to_string(), VariableValue::Text(value.to_string())));
    let env = Env(env.collect());
    let gpus = scenario.layout.gpus();
    let run = Run {
        name: name(&format!("{}-{gpus}-{}", scenario.gpu.id, scenario.dtype.id()))?,
        after: Vec::new(),
        settings: Settings { spec, env, ..Settings::default() },
    };
    let campaign = Campaign {
        name: name(&scenario.model.id)?,
        cluster: name("my-cluster")?,
        defaults: Settings::default(),
        runs: vec![run],
    };
    Some(format!("{HEAD}{}", campaign.to_text()))
}

/// Returns the text as a name, with other characters replaced.
fn name(text: &str) -> Option<Name> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    let text: String = text.chars().map(plain).collect();
    let text = text.trim_start_matches(['.', '_', '-']);
    text.get(..text.len().min(64))?.parse().ok()
}
