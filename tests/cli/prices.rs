//! Prices and the costs that follow from them, through the binary.

use crate::json;
use crate::search::{confirm, list, no_plan, number};
use trainplan_tests::trainplan;

#[test]
fn a_cost_on_demand_has_a_range_and_a_reservation_that_exceeds_the_budget_is_named() {
    let common = ["search", "--model", "llama3.1-70b", "--gpu", "b200", "--tokens", "10T", "--budget", "4M"];
    let result = json(&common);
    let answer = &result["answers"][0];
    let range = &answer["on_demand_cost_range"];
    let cost = number(&answer["on_demand_cost"]);
    assert!(number(&range["low"]) < cost && cost < number(&range["high"]), "{answer}");
    assert!(number(&answer["whole_term_cost"]["low"]) > 4e6, "{answer}");
    let verdict = result["verdict"].as_str().unwrap();
    assert!(
        verdict.contains(
            " for B200, more than the budget of 4.00M USD. To plan without a reservation, set --purchase on-demand."
        ),
        "{verdict}"
    );
    let headline = result["headline"].as_str().unwrap();
    assert!(
        headline.contains(" USD if you already hold GPUs reserved for 3 years; on demand, the run costs "),
        "{headline}"
    );
    assert!(headline.ends_with(" USD, more than the budget."), "{headline}");
    let assumed = "The cost is for GPUs reserved for 3 years; on demand, the run would cost about ";
    assert!(verdict.contains(assumed), "{verdict}");
    let enough = json(&[&common[..7], &["--budget", "900M"]].concat());
    let verdict = enough["verdict"].as_str().unwrap();
    assert!(verdict.contains("the whole term costs ") && !verdict.contains("the budget of"), "{verdict}");
    let headline = enough["headline"].as_str().unwrap();
    assert!(!headline.contains("already hold") && !verdict.contains("--purchase"), "{headline} {verdict}");
}

#[test]
fn a_cost_says_for_which_commitment_it_is() {
    let verdict = |more: &[&str]| {
        let common = ["search", "--model", "llama3.1-8b", "--tokens", "1T", "--gpus", "64"];
        json(&[&common[..], more].concat())["verdict"].as_str().unwrap().to_string()
    };
    // No price of the B300 on demand is known.
    let both = verdict(&["--gpu", "b200,b300"]);
    assert!(
        both.contains("The cost is for GPUs reserved for 3 years; on demand, the run would cost "),
        "{both}"
    );
    assert!(both.contains(" with B200.") && !both.contains(" with B300"), "{both}");
    let mixed = verdict(&["--gpu", "b200,b300", "--price", "b200=3"]);
    assert!(mixed.contains("The cost is for B300 reserved for 3 years."), "{mixed}");
    let one = verdict(&["--gpu", "b300"]);
    assert!(one.contains("The cost is for GPUs reserved for 3 years."), "{one}");
    for other in [&["--price", "2"][..], &["--purchase", "on-demand"], &["--purchase", "owned"]] {
        let text = verdict(&[&["--gpu", "b200"], other].concat());
        assert!(!text.contains("reserved"), "{text}");
    }
}

#[test]
fn owned_gpus_at_a_price_of_0_cost_their_energy_and_the_storage() {
    let common =
        ["--model", "llama3.1-8b", "--gpu", "h100", "--tokens", "1T", "--price", "0", "--purchase", "owned"];
    let search = |more: &[&str]| json(&[&["search"], &common[..], more].concat());
    let result = search(&["--gpus", "64"]);
    let answer = &result["answers"][0];
    let (best, detail) = (&answer["best"], &answer["best"]["cost_detail"]);
    for end in ["low", "high"] {
        assert_eq!(number(&detail["gpus"][end]), 0.0);
        let parts = number(&detail["energy"][end]) + number(&detail["storage"][end]);
        assert!(parts > 0.0 && (number(&detail["total"][end]) / parts - 1.0).abs() < 1e-9, "{detail}");
    }
    // The command of the plan keeps the price and the form.
    let command = answer["command"].as_str().unwrap();
    assert!(command.contains("--price 0 --purchase owned"), "{command}");
    confirm(command, best);
    // The answer names what the cost rests on, and spare nodes cost nothing.
    let text = |more: &[&str]| {
        let run =
            trainplan([&["search", "--format", "table", "--spare-nodes", "5"], &common[..], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout
    };
    let said = text(&["--gpus", "64"]);
    assert!(
        said.contains(" Electricity: 0.0929 USD per kWh (assumed).") && said.contains("Spare nodes: 5 %"),
        "{said}"
    );
    let said = text(&["--gpus", "64", "--electricity", "0.2"]);
    assert!(said.contains(" Electricity: 0.2 USD per kWh (yours)."), "{said}");
    let said = text(&["--gpus", "64", "--price", "2"]);
    assert!(
        !said.contains("Electricity: ")
            && said.contains("Spare nodes: 5 % on top of the training GPUs, also paid for"),
        "{said}"
    );
    // A budget and the lowest cost are about the energy.
    let cost = number(&best["cost_range"]["high"]);
    let [below, above] = [0.5, 1.5].map(|times| (cost * times).to_string());
    let within = search(&["--gpus", "64", "--budget", above.as_str()]);
    assert_eq!(within["answers"][0]["best"]["gpus"], 64);
    let (result, _) = no_plan(&[&common[..], &["--gpus", "64", "--budget", below.as_str()]].concat());
    let unmet = &result["answers"][0]["unmet"];
    assert_eq!(unmet["why"], "too_expensive");
    assert!(number(&unmet["tokens"]) > 0.0 && number(&unmet["tokens"]) < 1e12, "{unmet}");
    let cheapest = search(&["--gpus", "64,256,1024", "--objective", "cheapest"]);
    let answer = &cheapest["answers"][0];
    let costs = list(&answer["by_gpus"]).iter().map(|plan| number(&plan["cost"]));
    assert_eq!(number(&answer["best"]["cost"]), costs.fold(f64::INFINITY, f64::min));
}
