//! Large campaigns and logs. Run by `make stress`.

use crate::laptop::Laptop;
use crate::{Cluster, Options, Site};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Returns a value of /proc/PID/status, in KiB.
fn memory_kib(process: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .trim_matches([':', ' ', '\t', 'k', 'B'])
        .trim()
        .parse()
        .ok()
}

/// Returns the CPU time of a process, user and system, in seconds.
fn cpu_s(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let cells: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some((cells[11].parse::<f64>().ok()? + cells[12].parse::<f64>().ok()?) / 100.0)
}

#[test]
#[ignore = "stress: 500 jobs"]
fn stress_500_jobs_are_followed_through_one_connection() {
    let cluster = Cluster::start(&Options { nodes: 64, accounting: false, slurm_conf: &["MinJobAge=3600"] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.5")]);
    let laptop = Laptop::new(&cluster, &site);
    let recipes: Vec<String> = [("llama3.1-8b", "8 16 32 64"), ("nemotron4-15b", "16 32 64")]
        .iter()
        .flat_map(|(model, gpus)| gpus.split(' ').map(move |gpus| (model, gpus)))
        .flat_map(|(model, gpus)| ["bf16", "fp8"].map(|dtype| format!("{model}/h100/{dtype}/{gpus}@25.04")))
        .chain(["llama3.1-70b/h100/bf16/64@25.04".to_string(), "llama3.1-70b/h100/fp8/64@25.04".to_string()])
        .collect();
    let repeats = 500usize.div_ceil(recipes.len());
    let entries: Vec<(String, String)> = recipes
        .iter()
        .enumerate()
        .map(|(n, recipe)| {
            (format!("r{n}"), format!("recipe = \"{recipe}\"\nrepeats = {repeats}\nmax-steps = 20"))
        })
        .collect();
    let entries: Vec<(&str, &str)> =
        entries.iter().map(|(name, lines)| (name.as_str(), lines.as_str())).collect();
    laptop.campaign("many", &entries);
    let start = Instant::now();
    let mut runner = laptop.start("many", &["-v", "--interval", "5"]);
    let process = runner.process();
    let (mut peak_kib, mut cpu, mut submitted) = (0, 0.0, None);
    let watcher = thread::spawn(move || {
        while let (Some(kib), Some(used)) = (memory_kib(process, "VmHWM"), cpu_s(process)) {
            (peak_kib, cpu) = (kib, used);
            thread::sleep(Duration::from_millis(200));
        }
        (peak_kib, cpu)
    });
    let all = repeats * recipes.len();
    let mut jobs = 0;
    while let Some(event) = runner.next() {
        if event["event"] == "submitted" {
            jobs += 1;
            if jobs == all {
                submitted = Some(start.elapsed());
            }
        }
    }
    let (code, events) = runner.end();
    let (peak_kib, cpu) = watcher.join().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{all} jobs: all submitted after {submitted:?}, over after {seconds:.0} s; {peak_kib} KiB at most, {cpu:.1} s of CPU"
    );
    println!(
        "{}",
        laptop.errors().lines().filter(|line| line.contains("remote commands")).collect::<String>()
    );
    assert_eq!(code, Some(0), "{}", laptop.errors());
    assert_eq!(events.iter().filter(|event| event["event"] == "stored").count(), all);
    assert!(peak_kib < 200 << 10, "{peak_kib} KiB");
}

#[test]
#[ignore = "stress: 1 GB of log"]
fn stress_a_log_of_a_gigabyte_is_copied_and_scored() {
    let cluster = Cluster::start(&Options { nodes: 2, accounting: false, slurm_conf: &[] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.5")]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign("big", &[("a", "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"")]);
    let start = Instant::now();
    let mut runner = laptop.start("big", &["-v"]);
    let process = runner.process();
    let found = runner.wait_for("found", |_| true);
    let path = found["path"].as_str().unwrap().to_string();
    // All ranks write lines.
    let line = "[rank3]: NCCL INFO Channel 03/0 : 3[3] -> 4[4] via P2P/IPC/read, and much more of the kind\n";
    let block = line.repeat((8 << 20) / line.len());
    for _ in 0..128 {
        let mut log = fs::File::options().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut log, block.as_bytes()).unwrap();
    }
    let written = start.elapsed();
    let mut peak_kib = 0;
    while let Some(event) = runner.next() {
        peak_kib = memory_kib(process, "VmHWM").unwrap_or(peak_kib);
        if event["event"] == "drained" {
            assert!(event["bytes"].as_u64().unwrap() > 1 << 30, "{event}");
            println!(
                "{} bytes written after {written:?}, copied after {:?}; {peak_kib} KiB at most",
                event["bytes"],
                start.elapsed()
            );
        }
    }
    let (code, events) = runner.end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert!(peak_kib < 200 << 10, "{peak_kib} KiB");
    println!(
        "{}",
        laptop.errors().lines().filter(|line| line.contains("remote commands")).collect::<String>()
    );
}
