//! Release 26.06.01 calls Megatron-Bridge's launcher: what Trainplan says of a call is what the real scripts did.

use crate::{launched, refused, warns};
use trainplan_shared::catalog::{Catalog, Release};
use trainplan_shared::field::Field;

const RECORDED: &str = include_str!("releases/26.06.01.tsv");

/// A recorded call.
struct Recorded {
    id: &'static str,
    experiment: &'static str,
    env: &'static str,
    arguments: &'static str,
}

fn recorded() -> impl Iterator<Item = Recorded> {
    RECORDED.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap();
        Recorded { id: cell(), experiment: cell(), env: cell(), arguments: cell() }
    })
}

#[test]
fn every_recipe_runs_with_the_arguments_that_its_script_gives() {
    let mut calls = 0;
    for Recorded { id, experiment, env, arguments } in recorded() {
        let made = launched(id, &[(Field::Account, "acct"), (Field::Partition, "part")]);
        let runs = made.runs.unwrap_or_else(|| panic!("{id} has no call"));
        let plain = runs.command.replace("${LLMB_INSTALL}", "$LLMB_INSTALL").replace(['\'', '"'], "");
        assert_eq!(plain.strip_prefix("python3 "), Some(arguments), "{id}");
        let set: Vec<String> = runs.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(set.join(" "), env, "{id}");
        assert_eq!(made.outputs.jobs, [experiment], "{id}");
        calls += 1;
    }
    let release: Release = "26.06.01".parse().unwrap();
    let recipes = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.release == release);
    assert_eq!((calls, recipes.count()), (288, 288));
}

#[test]
fn a_script_takes_another_layout_through_its_variables() {
    let made = launched("llama3.1-70b/h100/fp8/64@26.06.01", &[(Field::Tp, "2"), (Field::Gbs, "512")]);
    let set = |name: &str| made.env.get(name).map(ToString::to_string);
    assert_eq!((set("TP"), set("GBS"), set("PP")), (Some("2".into()), Some("512".into()), None));
    assert!(!made.comparable.yes && made.runs.is_none());
}

#[test]
fn what_a_script_forces_is_refused() {
    let problem = refused("gpt-oss-120b/b200/bf16/64@26.06.01", &[(Field::Ep, "64")]);
    assert_eq!((problem.field, problem.suggestions), (Field::Ep, vec!["8".to_owned()]));
}

#[test]
fn a_known_fault_is_a_warning() {
    assert!(warns(&launched("deepseek-v3/b200/fp8/256@26.06.01", &[]), "illegal memory access"));
    assert!(!warns(&launched("deepseek-v3/b300/fp8/256@26.06.01", &[]), "illegal memory access"));
}
