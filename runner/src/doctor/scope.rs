//! What is checked: a whole cluster, or what the jobs of some runs depend on.

use crate::ssh::Script;
use trainplan_shared::campaign::{Cluster, Installation, Planned, UsedPath};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{JobRequest, LaunchOptions};
use trainplan_shared::spec::Spec;

/// What is checked.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Without names, the whole check looks at the default partition.
    pub(super) partitions: Vec<String>,
    pub(super) accounts: Vec<String>,
    pub(super) qos: Vec<QosUse>,
    /// The requests of the runs' jobs; empty for a whole cluster.
    pub(super) requests: Vec<RunsRequest>,
    pub(super) installations: Vec<Installation>,
    /// Whether everything is checked. Otherwise it is what the jobs of some runs depend on.
    pub(super) is_whole: bool,
}

/// A quality of service, and the account that uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QosUse {
    pub(super) name: String,
    /// `None` for the user's default account.
    pub(super) account: Option<String>,
}

/// The request that the jobs of some runs share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunsRequest {
    /// The names of the runs.
    pub(super) runs: Vec<String>,
    /// The partitions. A job runs in one of them.
    pub(super) partitions: Vec<String>,
    /// The account; `None` for the user's default one, or if only the launch script knows it.
    pub(super) account: Option<String>,
    pub(super) job: JobRequest,
}

impl Scope {
    /// Returns all of a cluster.
    pub(super) fn of_cluster(cluster: &Cluster) -> Scope {
        let account = cluster.spec.get(Field::Account).map(str::to_string);
        // The fields of a profile are valid.
        let names = LaunchOptions::from_spec(&cluster.spec).unwrap_or_default().qos();
        Scope {
            partitions: partitions(&cluster.spec),
            qos: qos_uses(names, account.as_deref()),
            accounts: account.into_iter().collect(),
            installations: cluster.installations(),
            is_whole: true,
            ..Scope::default()
        }
    }

    /// Returns what some runs depend on.
    pub(super) fn of_runs(planned: &[Planned]) -> Scope {
        let mut scope = Scope::default();
        for run in planned {
            let configured = run.launch.style.configures();
            // Only the launch script knows the value of a variable.
            let is_known = |name: &str| !name.starts_with('$');
            let given = |field| Some(&run.spec).filter(|_| !configured.contains(&field));
            let of_run = given(Field::Partition).map(partitions).unwrap_or_default();
            let account = given(Field::Account).and_then(|spec| spec.get(Field::Account));
            let job = &run.launch.job;
            for name in of_run.iter().filter(|name| is_known(name)) {
                add_new(&mut scope.partitions, name.clone());
            }
            for name in account.into_iter().filter(|name| is_known(name)) {
                add_new(&mut scope.accounts, name.to_string());
            }
            let account = account.filter(|name| is_known(name));
            for used in qos_uses(job.qos.clone(), account) {
                add_new(&mut scope.qos, used);
            }
            if !of_run.is_empty() && of_run.iter().all(|name| is_known(name)) {
                scope.request(run.run.name.as_str(), of_run, account, job);
            }
            let mut installation = run.installation.clone();
            if configured.contains(&Field::RecipeDir) {
                installation.recipe_dirs.clear();
            }
            if !scope.installations.iter_mut().any(|known| known.absorbs(&installation)) {
                scope.installations.push(installation);
            }
        }
        for names in [&mut scope.partitions, &mut scope.accounts] {
            names.sort_unstable();
        }
        scope
    }

    /// Adds the request of a run.
    fn request(&mut self, run: &str, partitions: Vec<String>, account: Option<&str>, job: &JobRequest) {
        let new = RunsRequest {
            runs: vec![run.to_string()],
            partitions,
            account: account.map(str::to_string),
            job: job.clone(),
        };
        let is_same = |known: &RunsRequest| {
            (&known.partitions, &known.account, &known.job) == (&new.partitions, &new.account, &new.job)
        };
        match self.requests.iter().position(is_same) {
            Some(known) => self.requests[known].runs.push(run.to_string()),
            None => self.requests.push(new),
        }
    }

    /// Returns the remote script that collects the facts to judge.
    pub(super) fn questions(&self) -> Script {
        let mut places = String::new();
        for (index, place) in self.installations.iter().enumerate() {
            let mut add = |kind: &str, file: &str, path: &str| {
                places += &format!("{}\t{kind}\t{file}\t{path}\n", key(index));
            };
            if let Some(path) = &place.install_path {
                add("install", ".", path);
            }
            for (model, path) in &place.recipe_dirs {
                add(&recipe_kind(model), place.launcher(), path);
            }
            for (kind, path) in &place.used {
                add(used_kind(*kind), ".", path);
            }
        }
        let mut programs = Vec::new();
        for program in self.installations.iter().filter_map(Installation::needed_program) {
            add_new(&mut programs, program);
        }
        let mut qos: Vec<&str> = self.qos.iter().map(|used| used.name.as_str()).collect();
        qos.sort_unstable();
        qos.dedup();
        Script::new("doctor", include_str!("questions.sh"))
            .set("partitions", self.partitions.join(" "))
            .set("accounts", self.accounts.join(" "))
            .set("qos", qos.join(" "))
            .set("programs", programs.join(" "))
            .set("places", places)
            .set("whole", if self.is_whole { "yes" } else { "" })
    }
}

/// Returns the partitions that a profile or a run names.
fn partitions(spec: &Spec) -> Vec<String> {
    let names = spec.get(Field::Partition).unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_string).collect()
}

/// Returns the uses of these qualities of service with an account. A name that is more than one word for a shell is left out.
fn qos_uses(names: Vec<String>, account: Option<&str>) -> Vec<QosUse> {
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c));
    let used = |name| QosUse { name, account: account.map(str::to_string) };
    names.into_iter().filter(is_plain).map(used).collect()
}

/// Adds what a list doesn't have yet.
fn add_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Returns how an installation is named in keys.
pub(super) fn key(index: usize) -> String {
    format!("place{index}")
}

/// Returns how the directory of a model's recipe is named in keys.
pub(super) fn recipe_kind(model: &str) -> String {
    format!("recipe:{model}")
}

/// Returns how a path is named in keys.
pub(super) fn used_kind(used: UsedPath) -> &'static str {
    match used {
        UsedPath::Venv => "venv",
        UsedPath::Image => "container",
        UsedPath::Mount => "mount",
        UsedPath::Checkpoint => "checkpoint",
    }
}
