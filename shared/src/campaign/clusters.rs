//! Cluster profiles: settings for every run on a cluster.

use super::Name;
use super::environment::Env;
use super::parse::{in_order, version};
use super::problem::CampaignProblem;
use super::read::{Entry, KeyLines, TomlReader};
use crate::catalog::{Catalog, Gpu, Release};
use crate::cluster_factors::ClusterFactors;
use crate::field::Field;
use crate::launch::{LaunchOptions, ShellWord};
use crate::probe::Probe;
use crate::spec::Spec;
use std::collections::BTreeMap;
use toml::de::DeValue;

/// The fields of a cluster, for every run there.
const OF_CLUSTER: [Field; 8] = [
    Field::Account,
    Field::Partition,
    Field::Gpu,
    Field::GpusPerNode,
    Field::Gres,
    Field::SlurmParams,
    Field::GemmTflops,
    Field::ClusterFactor,
];
/// The fields of an installed release, or Megatron-LM.
const OF_INSTALLATION: [Field; 4] = [Field::InstallPath, Field::Venv, Field::ContainerImage, Field::Mounts];

/// The cluster profiles, by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Clusters(BTreeMap<String, Cluster>);

/// The profile of one cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its name in campaigns.
    pub name: Name,
    /// The host for `ssh`. The rest of the connection is in the user's ssh configuration.
    pub ssh: String,
    /// Account, partition, GPU type and other fields. The factors of the cluster may be the name of a probe's file.
    pub spec: Spec,
    /// Variables for every run.
    pub env: Env,
    releases: BTreeMap<Release, Installed>,
    megatron_lm: Installed,
}

/// The paths of a release, or Megatron-LM, on a cluster.
#[derive(Debug, Clone, PartialEq, Default)]
struct Installed {
    spec: Spec,
    /// By model, or by the first part of its name; of every model by the empty name.
    recipe_dirs: BTreeMap<String, String>,
}

/// The paths of a release, or Megatron-LM, that a profile or a run names. Each path is quoted for a POSIX shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The release; `None` for Megatron-LM.
    pub release: Option<Release>,
    /// Its top directory.
    pub install_path: Option<String>,
    /// The directories of recipes, by model or by the first part of its name; of every model by the empty name.
    pub recipe_dirs: Vec<(String, String)>,
    /// Other paths that its jobs use.
    pub used: Vec<(UsedPath, String)>,
}

/// The use of a path other than an installation's directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedPath {
    /// The Python environment.
    Venv,
    /// The container image: a file, or a name in a registry.
    Image,
    /// A directory on the nodes that the container mounts.
    Mount,
    /// A checkpoint that runs load.
    Checkpoint,
}

impl Installation {
    /// Returns the paths that the options of a launch name. Those with a variable that only the launch sets are left out.
    pub(super) fn new(
        release: Option<Release>,
        options: &LaunchOptions,
        recipe_dirs: Vec<(String, ShellWord)>,
    ) -> Installation {
        let is_own = |name: &str| options.env.iter().any(|(own, _)| own == name);
        let shell = |word: &ShellWord| (!word.variables().any(is_own)).then(|| word.shell());
        let recipe_dirs = recipe_dirs.into_iter().filter_map(|(model, word)| Some((model, shell(&word)?)));
        let mounts = options.mounts.iter().flat_map(|mounts| mounts.split(','));
        // The rest of a mount is the path in the container.
        let mounts = mounts.filter_map(|mount| mount.split(':').into_iter().next());
        let single = [
            (UsedPath::Venv, &options.venv),
            (UsedPath::Image, &options.container_image),
            (UsedPath::Checkpoint, &options.load_checkpoint),
        ];
        let single = single.into_iter().filter_map(|(kind, word)| Some((kind, word.clone()?)));
        let used = single.chain(mounts.map(|mount| (UsedPath::Mount, mount)));
        Installation {
            release,
            install_path: options.install_path.as_ref().and_then(shell),
            recipe_dirs: recipe_dirs.collect(),
            used: used.filter_map(|(kind, word)| Some((kind, shell(&word)?))).collect(),
        }
    }

    /// Returns the file that starts a recipe, relative to the recipe's directory.
    pub fn launcher(&self) -> &'static str {
        match self.release {
            Some(Release::BridgeMain | Release::Bridge060) => "scripts/training/train.sh",
            _ => "launch.sh",
        }
    }

    /// Returns the program that the launcher runs on the login node, beside a shell and Slurm.
    pub fn needed_program(&self) -> Option<&'static str> {
        match self.release? {
            Release::BridgeMain | Release::Bridge060 => Some("uv"),
            _ => None,
        }
    }

    /// Adds the paths of another run if it uses the same installation. Returns whether it does.
    pub fn absorbs(&mut self, other: &Installation) -> bool {
        let is_same = self.release == other.release && self.install_path == other.install_path;
        if is_same {
            add_new(&mut self.recipe_dirs, &other.recipe_dirs);
            add_new(&mut self.used, &other.used);
        }
        is_same
    }
}

/// Adds what a list doesn't have yet.
fn add_new<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

impl Clusters {
    /// Reads the profiles.
    ///
    /// # Errors
    /// Every mistake, in the order of the lines.
    pub fn parse(text: &str) -> Result<Clusters, Vec<CampaignProblem>> {
        let (mut reader, table) = TomlReader::new(text)?;
        let entries = reader.entries("", table, true);
        version(&mut reader, &entries)?;
        let mut clusters = Clusters::default();
        for entry in entries {
            match entry.key.as_str() {
                "version" => {}
                // A name is kept as it is typed.
                "cluster" => {
                    for entry in reader.table(entry, false).unwrap_or_default() {
                        if let Some(cluster) = read_cluster(&mut reader, entry) {
                            clusters.0.insert(cluster.name.to_string(), cluster);
                        }
                    }
                }
                _ => reader.unknown(&entry, ["version", "cluster"]),
            }
        }
        if reader.problems.is_empty() { Ok(clusters) } else { Err(in_order(reader.problems)) }
    }

    /// Returns the names of all profiles.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the profile with this name.
    pub fn get(&self, name: &Name) -> Option<&Cluster> {
        self.0.get(name.as_str())
    }
}

impl Cluster {
    /// Returns the command that opens a shell on the host: `ssh -p 2222 me@alpha`.
    pub fn ssh_command(&self) -> String {
        let host = self.ssh.strip_prefix(SSH_SCHEME).unwrap_or(&self.ssh);
        let (name, port) =
            name_and_port(host).map_or((host, String::new()), |(name, port)| (name, format!("-p {port} ")));
        // Only URIs have brackets around an IPv6 address.
        format!("ssh {port}{}", name.replace(['[', ']'], ""))
    }

    /// Returns the GPU type; none if the profile has none, or a user's own.
    pub fn gpu_type(&self) -> Option<&'static Gpu> {
        Catalog::embedded().gpu(self.spec.get(Field::Gpu)?).ok()
    }

    /// Returns the GPUs per node: those of the profile, or else of its GPU type, or else 8.
    pub fn gpus_per_node(&self) -> u32 {
        let of_profile = self.spec.get(Field::GpusPerNode).and_then(|count| count.parse().ok());
        of_profile.or(self.gpu_type().map(|gpu| gpu.gpus_per_node)).unwrap_or(8)
    }

    /// Returns what is installed there: the releases, oldest first, and Megatron-LM.
    pub fn installations(&self) -> Vec<Installation> {
        let releases = self.releases.iter().map(|(release, installed)| (Some(*release), installed));
        let megatron_lm = (self.megatron_lm != Installed::default()).then_some((None, &self.megatron_lm));
        let shown = |(release, installed): (Option<Release>, &Installed)| {
            let recipe_dirs = installed.recipe_dirs.iter();
            let recipe_dirs =
                recipe_dirs.filter_map(|(model, path)| Some((model.clone(), recipe_dir(path)?)));
            // The fields of a profile are valid.
            let options = LaunchOptions::from_spec(&installed.spec).unwrap_or_default();
            Installation::new(release, &options, recipe_dirs.collect())
        };
        releases.chain(megatron_lm).map(shown).collect()
    }

    /// Returns the paths of the release, or of Megatron-LM for `None`, and of the model's recipe.
    pub(super) fn installed(&self, release: Option<Release>, model: &str) -> Spec {
        let installed = match release {
            Some(release) => self.releases.get(&release),
            None => Some(&self.megatron_lm),
        };
        let Some(installed) = installed else { return Spec::default() };
        let fits = |(name, _): &(&String, &String)| name.is_empty() || begins(model, name);
        let directory = installed.recipe_dirs.iter().filter(fits).max_by_key(|(name, _)| name.len());
        let directory = directory.map_or("", |(_, directory)| directory);
        installed.spec.clone().with(Field::RecipeDir, directory)
    }
}

/// Returns the directory of a recipe in a profile, which is known to be valid.
fn recipe_dir(path: &str) -> Option<ShellWord> {
    LaunchOptions::from_spec(&Spec::default().with(Field::RecipeDir, path)).ok()?.recipe_dir
}

/// Returns whether a model is `name`, or its name starts with `name-`.
fn begins(model: &str, name: &str) -> bool {
    model.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn read_cluster(reader: &mut TomlReader, entry: Entry) -> Option<Cluster> {
    let line = entry.line;
    let name: Option<Name> = match entry.key.parse::<Name>() {
        Ok(name) => Some(name),
        Err(refused) => {
            reader.problems.push(CampaignProblem::new(line, &entry.path, refused.to_string()));
            None
        }
    };
    let place = entry.path.clone();
    let (mut ssh, mut spec, mut env) = (None, Spec::default(), Env::default());
    let (mut releases, mut megatron_lm) = (BTreeMap::new(), Installed::default());
    let mut lines = KeyLines::new();
    let entries = reader.table(entry, true)?;
    if !entries.iter().any(|entry| entry.key == "ssh") {
        let message =
            "Missing: the host for ssh, a name from your ~/.ssh/config, user@host or user@host:port.";
        reader.problems.push(CampaignProblem::new(line, format!("{place}.ssh"), message));
    }
    for entry in entries {
        lines.insert(entry.key.clone(), entry.line);
        match entry.key.as_str() {
            "ssh" => ssh = host(reader, &entry),
            "env" => env = reader.env(entry),
            "release" => releases = read_releases(reader, entry),
            "megatron-lm" => megatron_lm = read_installed(reader, entry, &OF_INSTALLATION, false),
            key => match OF_CLUSTER.into_iter().find(|field| field.flag() == key) {
                Some(field) => reader.field(&mut spec, field, &entry),
                None => {
                    let fields = OF_CLUSTER.map(Field::flag);
                    reader
                        .unknown(&entry, ["ssh", "env", "release", "megatron-lm"].into_iter().chain(fields));
                }
            },
        }
    }
    reader.options(&spec, &place, &lines);
    let gpu = spec.get(Field::Gpu).map(|gpu| Catalog::embedded().gpu_or_own(gpu).map(drop));
    let rate = spec.count(Field::GemmTflops).map(drop);
    let factors = match spec.get(Field::ClusterFactor) {
        // Only the runner can read files.
        Some(text) if Probe::is_file_name(text) => Ok(()),
        _ => spec.parse::<ClusterFactors>(Field::ClusterFactor).map(drop),
    };
    for problem in [rate, factors].into_iter().chain(gpu).filter_map(Result::err) {
        let key = problem.field.flag();
        let line = lines.get(key).copied().unwrap_or(line);
        reader.problems.push(CampaignProblem::of(line, format!("{place}.{key}"), &problem));
    }
    Some(Cluster { name: name?, ssh: ssh?, spec, env, releases, megatron_lm })
}

/// Begins a destination of ssh that may have a port.
const SSH_SCHEME: &str = "ssh://";

/// Returns a host for ssh that it can't take for an option. One with a port becomes a URI, the only form in which ssh takes a port.
fn host(reader: &mut TomlReader, entry: &Entry) -> Option<String> {
    let text = reader.text(entry)?;
    let host = text.strip_prefix(SSH_SCHEME).unwrap_or(&text);
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:[]%".contains(c);
    if host.is_empty() || host.starts_with('-') || !host.chars().all(plain) {
        reader.refuse(
            entry,
            format!(
                "\"{text}\" is not a host. Use a name from your ~/.ssh/config, user@host or user@host:port."
            ),
        );
        return None;
    }
    Some(if name_and_port(host).is_some() { format!("{SSH_SCHEME}{host}") } else { text })
}

/// Splits a host into its name and its port; none without a port.
fn name_and_port(host: &str) -> Option<(&str, &str)> {
    host.rsplit_once(':').filter(|(name, port)| {
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        // An IPv6 address has several colons, and needs brackets before a port.
        is_port && (name.ends_with(']') || !name.contains(':'))
    })
}

fn read_releases(reader: &mut TomlReader, entry: Entry) -> BTreeMap<Release, Installed> {
    let mut releases = BTreeMap::new();
    for entry in reader.table(entry, false).unwrap_or_default() {
        match Release::ALL.into_iter().find(|release| release.id() == entry.key) {
            Some(release) => {
                releases.insert(release, read_installed(reader, entry, &OF_INSTALLATION, true));
            }
            None => {
                // Without quotes, the dot of a release splits it into two tables.
                let message = format!("Unknown release \"{}\". Put it in quotes.", entry.key);
                let known = Release::ALL.map(Release::id);
                let problem = CampaignProblem::unknown(entry.line, &entry.path, message, &entry.key, known);
                reader.problems.push(problem);
            }
        }
    }
    releases
}

fn read_installed(reader: &mut TomlReader, entry: Entry, fields: &[Field], recipes: bool) -> Installed {
    let place = entry.path.clone();
    let (mut installed, mut lines) = (Installed::default(), KeyLines::new());
    for entry in reader.table(entry, true).unwrap_or_default() {
        lines.insert(entry.key.clone(), entry.line);
        match fields.iter().find(|field| field.flag() == entry.key) {
            Some(field) => reader.field(&mut installed.spec, *field, &entry),
            None if recipes && entry.key == Field::RecipeDir.flag() => {
                installed.recipe_dirs = read_recipe_dirs(reader, entry);
            }
            None => {
                let own = recipes.then_some(Field::RecipeDir);
                reader.unknown(&entry, fields.iter().copied().chain(own).map(Field::flag));
            }
        }
    }
    reader.options(&installed.spec, &place, &lines);
    installed
}

fn read_recipe_dirs(reader: &mut TomlReader, entry: Entry) -> BTreeMap<String, String> {
    let mut models: Vec<&str> =
        Catalog::embedded().recipes().iter().map(|recipe| recipe.id.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    let mut directories = BTreeMap::new();
    let of_every_model = matches!(entry.value, DeValue::String(_));
    let entries = match of_every_model {
        true => Some(vec![Entry { key: String::new(), ..entry }]),
        false => reader.table(entry, false),
    };
    for entry in entries.unwrap_or_default() {
        if !of_every_model && !models.iter().any(|model| begins(model, &entry.key)) {
            let (line, known) = (entry.line, models.iter().copied());
            let message = "No model with a recipe has this name or starts with it.";
            reader.problems.push(CampaignProblem::unknown(line, &entry.path, message, &entry.key, known));
            continue;
        }
        let mut spec = Spec::default();
        reader.field(&mut spec, Field::RecipeDir, &entry);
        if let Err(problems) = LaunchOptions::from_spec(&spec) {
            let of = |problem| CampaignProblem::of(entry.line, &entry.path, problem);
            reader.problems.extend(problems.iter().map(of));
        }
        directories.insert(entry.key, spec.get(Field::RecipeDir).unwrap_or_default().to_string());
    }
    directories
}
