//! Every example command of the five documents, as a person types it there, beside the script that comes of
//! the options which mean the same: both must call the same program, in the same directory, with the same
//! arguments and with the same settings, where a setting that nobody made is the release's default.

mod llmb;
mod stage_path;

use crate::launched;
use crate::shell::{Place, SHELLS, Seen};
use std::collections::BTreeMap;
use trainplan_shared::catalog::{Catalog, RecipeId};
use trainplan_shared::field::Field;

/// An example of a document.
struct Example {
    /// As typed there, with values in place of `<...>`.
    typed: &'static str,
    recipe: &'static str,
    fields: &'static [(Field, &'static str)],
}

const fn example(
    typed: &'static str,
    recipe: &'static str,
    fields: &'static [(Field, &'static str)],
) -> Example {
    Example { typed, recipe, fields }
}

/// A document's script: what it reads, each with its default.
type Reads = &'static [(&'static str, &'static str)];

/// Where a person who follows the document stands, and what the shell holds.
const SETTING: &[(&str, &str)] = &[
    ("SBATCH_ACCOUNT", "acct"),
    ("SBATCH_PARTITION", "batch"),
    ("SLURM_ACCOUNT", "acct"),
    ("SLURM_PARTITION", "batch"),
    ("HF_TOKEN", "a-secret"),
];

/// Runs each example and its launch in every shell, with and without what an earlier launch left behind.
fn check(place: &Place, directory: &str, root: (&str, &str), reads: Reads, examples: &[Example]) {
    let root = (root.0, place.text(root.1));
    let recipe_dir = place.text(directory);
    let repository = place.path(directory).parent().unwrap().to_str().unwrap().to_string();
    let mut env = SETTING.to_vec();
    env.extend([(root.0, root.1.as_str()), ("RECIPE_DIR", &recipe_dir), ("LLMB_REPO", &repository)]);
    let mut littered = env.clone();
    littered.extend(
        reads
            .iter()
            .filter(|(name, _)| !env.iter().any(|(known, _)| known == name))
            .map(|(name, _)| (*name, "17")),
    );
    for Example { typed, recipe, fields } in examples {
        let typed = place.run("bash", &format!("cd '{recipe_dir}'\n{typed}\n"), &env);
        let script = launched(recipe, fields).script;
        for shell in SHELLS {
            for env in [&env, &littered] {
                let ours = place.run(shell, &script, env);
                assert_eq!((&ours.program, &ours.args), (&typed.program, &typed.args), "{script}");
                assert_eq!(settings(&ours, reads), settings(&typed, reads), "{script}");
                if typed.program == "launch.sh" {
                    assert_eq!(ours.cwd, typed.cwd, "{script}");
                }
            }
        }
    }
}

fn settings(seen: &Seen, reads: Reads) -> BTreeMap<&'static str, String> {
    let read = reads.iter().map(|(name, default)| {
        (
            *name,
            seen.env.get(*name).filter(|value| !value.is_empty()).cloned().unwrap_or((*default).to_string()),
        )
    });
    read.collect()
}

/// Set-up commands of the documents.
#[test]
fn preparation() {
    let place = Place::new();
    place.stand_in("bin/bash");
    let command = |recipe: &str, program: &str| {
        let steps = launched(recipe, &[]).prepare;
        let commands = steps.into_iter().flat_map(|step| step.commands);
        commands.filter(|command| command.starts_with(program)).collect::<Vec<_>>()
    };
    let same = |typed: &str, ours: &[String]| {
        let setting = [SETTING, &[("LLMB_INSTALL", "/lustre/llmb")]].concat();
        let [typed, ours] = [typed, ours[0].as_str()].map(|line| place.run("sh", line, &setting));
        assert_eq!((typed.program, typed.args), (ours.program, ours.args));
    };
    let submit = "sbatch -A ${SBATCH_ACCOUNT} -p ${SBATCH_PARTITION} -N 1 ./setup.sh";
    same(submit, &command("nemotron4-15b/h100/bf16/16@25.04", "sbatch"));
    same(submit, &command("llama3.1-8b/h100/bf16/8@25.04", "sbatch"));
    same("bash ./setup.sh", &command("nemotron4-340b/h100/fp8/128@24.11", "bash"));
    // The document wraps the same in bash -c.
    same(
        "srun --account ${SBATCH_ACCOUNT} --partition ${SBATCH_PARTITION} enroot import --output ${LLMB_INSTALL}/images/nvidia+nemo+25.04.01.sqsh docker://nvcr.io#nvidia/nemo:25.04.01",
        &command("nemotron-h-56b/h100/fp8/256@25.05", "srun"),
    );
}

#[test]
fn every_recipe_launches_by_the_program_of_its_release() {
    let place = Place::new();
    for directory in ["nemotron", "llama3.1", "nemotronh", "llmb_repo/nemotron4-340b"] {
        place.stand_in(&format!("top/{directory}/launch.sh"));
    }
    place.stand_in("top/scripts/training/train.sh");
    let top = place.text("top");
    let tops = [("STAGE_PATH", &*top), ("LLMB_INSTALL", &top), ("NEMORUN_HOME", &top), ("RECIPE_DIR", &top)];
    let env = [SETTING, &tops].concat();
    for recipe in Catalog::embedded().recipes() {
        let launch = launched(&recipe.id.to_string(), &[]);
        let fits = launch.comparable.yes && launch.steps == 50 && launch.outputs.jobs.len() == 1;
        assert!(fits && launch.release == Some(recipe.id.release), "{}", recipe.id);
        let reference = Catalog::embedded().reference(recipe);
        let measured =
            reference.map(|reference| RecipeId { gpus: reference.gpus, ..recipe.id.clone() }.to_string());
        assert_eq!(launch.comparable.baseline, measured);
        let program = match recipe.id.release.id() {
            "24.11" => "sbatch",
            // Its own directory is the caller's to name.
            "25.04" => continue,
            "bridge-main" | "bridge-0.6.0" => "train.sh",
            _ => "llmb-run",
        };
        let seen = place.run("sh", &launch.script, &env);
        assert_eq!(seen.program, program);
        let has_gpus = seen.args.contains(&recipe.id.gpus.to_string());
        assert!(has_gpus || ["sbatch", "train.sh"].contains(&program));
    }
}
