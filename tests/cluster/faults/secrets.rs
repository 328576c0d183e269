//! Secrets stay on the cluster, and one that can't be read stops its own run only.

use super::{EIGHT, OTHERS, SMALL, SOON, of, one, summary, summary_of};
use crate::cluster::wait_for;
use crate::laptop::{Laptop, assert_submitted_once};
use crate::{Cluster, Site};
use std::process::Command;

#[test]
#[ignore = "needs root and Slurm"]
fn a_secret_that_a_launcher_prints_stays_on_the_cluster() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "WORKLOAD_PRINT = \"HF_TOKEN\", WORKLOAD_SUBMIT = \"refuse\"");
    let (code, events) = laptop.start("one", &[]).end();
    assert_eq!(code, Some(4), "{events:?}");
    let why = summary(&events)["why"].as_str().unwrap();
    assert!(why.contains("HF_TOKEN=(secret)"), "{why}");
    let grep = Command::new("grep").args(["-rla", "hf_sesame"]).arg(laptop.path(".")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&grep.stdout), "");
    assert!(!format!("{events:?}").contains("hf_sesame"));
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_secret_that_can_not_be_read_concerns_its_run_only() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.5")]);
    let laptop = Laptop::new(&cluster, &site);
    let locked =
        "env = { HF_TOKEN = { command = [\"sh\", \"-c\", \"test ! -e locked && echo hf_sesame\"] } }";
    laptop.campaign(
        "keys",
        &[
            ("long", EIGHT),
            ("later", &format!("{}{locked}", OTHERS[0])),
            ("never", &format!("{}{locked}", OTHERS[1])),
        ],
    );
    // One run at a time is submitted; then the keys are locked.
    let mut runner = laptop.start("keys", &["--at-once", "1"]);
    runner.wait_for("found", |event| event["run"] == "long");
    runner.kill();
    laptop.write("locked", "");
    let refused = laptop.run(&["run", "keys.campaign.toml"]);
    assert!(refused.stderr.contains("Can't get HF_TOKEN"), "{}", refused.stderr);
    let runner = laptop.follow("keys");
    let others = ["later", "never"];
    let told = |run: &str| laptop.errors().matches(&format!("{run}: Can't get HF_TOKEN")).count();
    wait_for("complaint", SOON, || others.iter().all(|run| told(run) > 0).then_some(()));
    // Cancelling does not wait for the key.
    let cancelled = laptop.run(&["jobs", "cancel", "later", "never"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    let (_, events) = runner.end();
    assert_eq!(summary_of(&events, "long")["outcome"], "scored", "{events:?}");
    assert_eq!(of(&events, "unseen").len(), 0, "{events:?}");
    for run in others {
        assert!(summary_of(&events, run)["why"].as_str().unwrap().contains("cancelled before"), "{events:?}");
        assert_eq!(told(run), 1, "{}", laptop.errors());
    }
    assert_submitted_once(&cluster, 1);
}
