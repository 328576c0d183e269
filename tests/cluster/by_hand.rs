//! The cluster for manual tests that `make cluster` starts. Ctrl-C ends it.

use crate::laptop::Laptop;
use crate::{Cluster, Options, Site};
use std::thread;
use std::time::Duration;

#[test]
#[ignore = "for trying things by hand"]
fn by_hand() {
    let cluster = Cluster::start(&Options { nodes: 64, accounting: true, slurm_conf: &[] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.4")]);
    let laptop = Laptop::new(&cluster, &site);
    let home = laptop.path("");
    println!(
        "\nA cluster of 64 nodes, with all recipes for H100. In another shell:\n\n  \
         export HOME={0} XDG_RUNTIME_DIR={0} THE_TOKEN=none; cd\n  trainplan doctor --cluster loop\n",
        home.display()
    );
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}
