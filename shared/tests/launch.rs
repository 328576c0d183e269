//! Launches: every recipe has one.

use trainplan_shared::catalog::Catalog;
use trainplan_shared::launch::{Options, launch};
use trainplan_shared::problem::Field;
use trainplan_shared::spec::Spec;

#[test]
fn every_recipe_launches() {
    for recipe in Catalog::embedded().recipes() {
        let spec = Spec::default().with(Field::Recipe, recipe.id.to_string());
        let launch = launch(&spec.scenario().unwrap(), &Options::from_spec(&spec).unwrap()).unwrap();
        assert_eq!(launch.release, recipe.id.release);
        if recipe.id.gpus == 512 || recipe.id.gpus == 32 { println!("{}\n{:#?}", launch.script, launch.outputs.log_glob.shell()); }
    }
}
