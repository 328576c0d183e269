use crate::{csv, json};
use serde_json::Value;
use trainplan_tests::trainplan;

/// Name and version of every package.
fn packages(licenses: &Value) -> Vec<String> {
    let text = |package: &Value, key: &str| package[key].as_str().unwrap().to_owned();
    let list = licenses["packages"].as_array().unwrap();
    list.iter().map(|package| format!("{} {}", text(package, "name"), text(package, "version"))).collect()
}

#[test]
fn what_is_shipped_has_a_licence_and_its_text() {
    let licenses = json(&["licenses"]);
    let texts = licenses["texts"].as_array().unwrap();
    for package in licenses["packages"].as_array().unwrap() {
        assert_ne!(package["license"], "", "{package}");
        assert!(!package["parts"].as_array().unwrap().is_empty(), "{package}");
        // Some also bring a note of a few words that names the others.
        let texts = package["texts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|number| &texts[number.as_u64().unwrap() as usize]);
        let longest = texts.map(|text| text.as_str().unwrap().len()).max();
        assert!(longest > Some(200), "{package}");
    }
}

#[test]
fn the_program_the_web_app_and_what_is_inside_of_crates_are_all_there() {
    let packages = packages(&json(&["licenses"]));
    let names: Vec<&str> = packages.iter().map(|package| package.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(names[0], "trainplan");
    for name in ["axum", "leptos", "plotly.js-basic-dist-min", "Rust standard library", "SQLite", "Zstandard"]
    {
        assert!(names.contains(&name), "{name}");
    }
    // Tests and build tools are not shipped, nor are other systems.
    for name in ["proptest", "criterion", "cc", "clap_derive", "windows-sys", "trainplan-shared"] {
        assert!(!names.contains(&name), "{name}");
    }
}

#[test]
fn every_package_is_locked_as_listed() {
    let lock = include_str!("../../Cargo.lock");
    let inside = ["Rust standard library", "SQLite", "Zstandard", "plotly.js-basic-dist-min"];
    for package in packages(&json(&["licenses"])) {
        let (name, version) = package.rsplit_once(' ').unwrap();
        let locked = lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n"));
        assert!(locked || inside.contains(&name), "{package}: `make licenses` renews the list");
    }
}

#[test]
fn a_table_has_a_row_for_each_and_texts_come_once() {
    let licenses = json(&["licenses"]);
    let (header, rows) = csv(&["licenses"]);
    assert_eq!(header, ["name", "version", "license", "parts"]);
    assert_eq!(rows.len(), licenses["packages"].as_array().unwrap().len());
    let table = trainplan(["licenses", "--format", "table"]);
    assert_eq!(table.stdout.lines().count(), rows.len() + 1);

    let text = trainplan(["licenses", "--text"]).stdout;
    for row in &rows {
        assert!(text.contains(&format!("\n{} {} ({})\n", row[0], row[1], row[2])), "{row:?}");
    }
    let own = include_str!("../../LICENSE-MIT").trim();
    assert_eq!(text.matches(own).count(), 1);
}
