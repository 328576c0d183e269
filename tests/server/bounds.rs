//! Texts and lists beyond their maxima, and figures that make no sense, are refused with the field's name.

use crate::harness::{Answer, Client, Kind, Place, Server, carried, digest, file_of, ids, on_every_store};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

on_every_store! {
    long_texts_and_lists_in_results_are_refused
    impossible_figures_are_refused
    long_query_parameters_are_refused
}

/// Uploads a result after setting a field, by its JSON pointer.
fn put(owner: &Client, pointer: &str, value: Value) -> Answer {
    let run = carried(12.39, "eos").run;
    let mut file: Value = serde_json::from_slice(&file_of(&run)).unwrap();
    match file.pointer_mut(pointer) {
        Some(field) => *field = value,
        None => {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            file.pointer_mut(parent).unwrap()[name] = value;
        }
    }
    let body = file.to_string().into_bytes();
    owner.ask("PUT", &format!("/runs/{}", run.id), &[("content-digest", &digest(&body))], Some(&body))
}

fn long_texts_and_lists_in_results_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let begun = Instant::now();
    for (pointer, value, field) in [
        ("/identity/scenario/recipe", json!("a".repeat(5 << 20)), "identity.scenario.recipe"),
        ("/identity/scenario/model", json!("a".repeat(20_000)), "identity.scenario"),
        ("/source/path", json!("p".repeat(4097)), "source.path"),
        ("/carried/campaign", json!("c".repeat(201)), "carried.campaign"),
        ("/carried/cluster", json!("c".repeat(201)), "carried.cluster"),
        ("/carried/jobs/0/id", json!("1".repeat(201)), "carried.jobs[].id"),
        ("/comparable/reasons", json!(vec!["x"; 101]), "comparable.reasons"),
    ] {
        let detail = put(&owner, pointer, value).problem(422);
        assert!(detail.contains(&format!("{field} has ")) && detail.contains("at most"), "{detail}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(put(&owner, "/source/path", json!("p".repeat(4096))).status, 201);
    assert_eq!(put(&owner, "/carried/campaign", json!("c".repeat(200))).status, 201);
    assert_eq!(owner.all("").len(), 2);
    let document = owner.get("/openapi.json").text();
    assert!(document.contains("`source.path`: at most 4096 bytes"));
}

fn impossible_figures_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    for (pointer, value, field) in [
        ("/log/steps/step_time_s/49", json!(0.0), "log.steps.step_time_s"),
        ("/log/steps/step_time_s/49", json!(-1.0), "log.steps.step_time_s"),
        ("/log/steps/step_time_s/49", json!(1e-300), "log.steps.step_time_s"),
        ("/log/steps/step_time_s/0", json!(1e300), "log.steps.step_time_s"),
        ("/log/steps/global_batch_size/49", json!(-128.0), "log.steps.global_batch_size"),
        ("/source/sha256", json!("../../etc/passwd"), "source.sha256"),
        ("/carried/launch/script_sha256", json!("none"), "carried.launch.script_sha256"),
        ("/carried/plan/step_time_s/low", json!(1e6), "carried.plan.step_time_s"),
    ] {
        let detail = put(&owner, pointer, value).problem(422);
        assert!(detail.contains(&format!("{field} must be ")), "{detail}");
    }
    assert_eq!(ids(&owner.json("/runs?sort=-mfu")), [""; 0]);
}

fn long_query_parameters_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let anyone = server.anyone();
    let long = "a".repeat(40_000);
    for name in ["recipe", "cluster", "campaign", "model", "gpu", "dtype", "line", "sort", "cursor", "since"]
    {
        let detail = anyone.get(&format!("/runs?{name}={long}")).problem(422);
        assert!(detail.starts_with(&format!("{name} has 40000 bytes")), "{detail}");
    }
    anyone.get(&format!("/compare?ids={long}")).problem(422);
    anyone.get(&format!("/runs?{long}=x")).problem(422);
    let document = anyone.json("/openapi.json");
    let parameters = document["paths"]["/runs"]["get"]["parameters"].as_array().unwrap().clone();
    let recipe = parameters.iter().find(|parameter| parameter["name"] == "recipe").unwrap();
    assert_eq!(recipe["schema"]["maxLength"], 200);
}
