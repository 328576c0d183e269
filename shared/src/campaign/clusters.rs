//! The profiles of clusters: what a person would otherwise type for every run there.

use super::Name;
use super::environment::Env;
use super::parse::{in_order, version};
use super::problem::CampaignProblem;
use super::read::{Entry, KeyLines, Reader};
use crate::catalog::{Catalog, Release};
use crate::field::Field;
use crate::launch::LaunchOptions;
use crate::spec::Spec;
use std::collections::BTreeMap;

/// The fields of a cluster, for whatever runs there.
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
/// The fields of what is installed there, by release.
const OF_RELEASE: [Field; 3] = [Field::InstallPath, Field::Venv, Field::Mounts];
const OF_MEGATRON: [Field; 4] = [Field::InstallPath, Field::Venv, Field::ContainerImage, Field::Mounts];

/// The profiles, by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Clusters(BTreeMap<String, Cluster>);

/// The profile of one cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// What campaigns call it.
    pub name: Name,
    /// The host as `ssh` takes it; all else about the connection is in the user's own ssh configuration.
    pub ssh: String,
    /// Account, partition, GPU type and the like.
    pub spec: Spec,
    /// Variables for every run.
    pub env: Env,
    releases: BTreeMap<Release, Installed>,
    megatron_lm: Installed,
}

/// Where a release, or Megatron-LM, is on a cluster.
#[derive(Debug, Clone, PartialEq, Default)]
struct Installed {
    spec: Spec,
    /// By model, or by how its name begins.
    recipe_dirs: BTreeMap<String, String>,
}

/// Where a profile has a release, or Megatron-LM. Each path is a word as a POSIX shell reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The release; none for Megatron-LM.
    pub release: Option<Release>,
    /// Its top directory.
    pub install_path: Option<String>,
    /// The directories of recipes, by model or by how its name begins.
    pub recipe_dirs: Vec<(String, String)>,
}

impl Clusters {
    /// Reads the profiles.
    ///
    /// # Errors
    /// Every mistake, in the order of the lines.
    pub fn parse(text: &str) -> Result<Clusters, Vec<CampaignProblem>> {
        let (mut reader, table) = Reader::new(text)?;
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

    /// Every profile's name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The profile of that name.
    pub fn get(&self, name: &Name) -> Option<&Cluster> {
        self.0.get(name.as_str())
    }
}

impl Cluster {
    /// All that the profile says is installed there: the releases, oldest first, and Megatron-LM.
    pub fn installations(&self) -> Vec<Installation> {
        let releases = self.releases.iter().map(|(release, installed)| (Some(*release), installed));
        let megatron_lm = (self.megatron_lm != Installed::default()).then_some((None, &self.megatron_lm));
        let shown = |(release, installed): (Option<Release>, &Installed)| Installation {
            release,
            install_path: shell_word(Field::InstallPath, installed.spec.get(Field::InstallPath)),
            recipe_dirs: (installed.recipe_dirs.iter())
                .filter_map(|(model, path)| Some((model.clone(), shell_word(Field::RecipeDir, Some(path))?)))
                .collect(),
        };
        releases.chain(megatron_lm).map(shown).collect()
    }

    /// Where the release, or with none Megatron-LM, and the model's recipe are there.
    pub(super) fn installed(&self, release: Option<Release>, model: &str) -> Spec {
        let installed = match release {
            Some(release) => self.releases.get(&release),
            None => Some(&self.megatron_lm),
        };
        let Some(installed) = installed else { return Spec::default() };
        let fits = |(name, _): &(&String, &String)| begins(model, name);
        let directory = installed.recipe_dirs.iter().filter(fits).max_by_key(|(name, _)| name.len());
        let directory = directory.map_or("", |(_, directory)| directory);
        installed.spec.clone().with(Field::RecipeDir, directory)
    }
}

/// A path of a profile, which was read without a mistake before.
fn shell_word(field: Field, path: Option<&str>) -> Option<String> {
    let options = LaunchOptions::from_spec(&Spec::default().with(field, path?)).ok()?;
    let word = if field == Field::RecipeDir { options.recipe_dir } else { options.install_path };
    word.map(|word| word.shell())
}

/// Whether a model is `name`, or one of the models whose names begin with it.
fn begins(model: &str, name: &str) -> bool {
    model.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn read_cluster(reader: &mut Reader, entry: Entry) -> Option<Cluster> {
    let line = entry.line;
    let name: Option<Name> = match entry.key.parse::<Name>() {
        Ok(name) => Some(name),
        Err(refused) => {
            let problem = CampaignProblem::new(line, &entry.path, refused.what);
            reader.problems.push(problem.allowed(refused.allowed));
            None
        }
    };
    let place = entry.path.clone();
    let (mut ssh, mut spec, mut env) = (None, Spec::default(), Env::default());
    let (mut releases, mut megatron_lm) = (BTreeMap::new(), Installed::default());
    let mut lines = KeyLines::new();
    let entries = reader.table(entry, true)?;
    if !entries.iter().any(|entry| entry.key == "ssh") {
        let what = "is needed: the host as ssh takes it, from your ~/.ssh/config or user@host";
        reader.problems.push(CampaignProblem::new(line, format!("{place}.ssh"), what));
    }
    for entry in entries {
        lines.insert(entry.key.clone(), entry.line);
        match entry.key.as_str() {
            "ssh" => ssh = host(reader, &entry),
            "env" => env = reader.env(entry),
            "release" => releases = read_releases(reader, entry),
            "megatron-lm" => megatron_lm = read_installed(reader, entry, &OF_MEGATRON, false),
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
    let numbers = [Field::GemmTflops, Field::ClusterFactor].map(|field| spec.count(field).map(drop));
    for problem in numbers.into_iter().chain(gpu).filter_map(Result::err) {
        let key = problem.field.flag();
        let line = lines.get(key).copied().unwrap_or(line);
        reader.problems.push(CampaignProblem::of(line, format!("{place}.{key}"), problem));
    }
    Some(Cluster { name: name?, ssh: ssh?, spec, env, releases, megatron_lm })
}

/// A host's name, as an argument that ssh can't take for an option.
fn host(reader: &mut Reader, entry: &Entry) -> Option<String> {
    let host = reader.text(entry)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@:[]%".contains(c);
    if host.starts_with('-') || !host.chars().all(plain) {
        let problem = CampaignProblem::new(entry.line, &entry.path, "is no host").given(&host);
        reader.problems.push(problem.allowed("a name of your ~/.ssh/config, or user@host"));
        return None;
    }
    Some(host)
}

fn read_releases(reader: &mut Reader, entry: Entry) -> BTreeMap<Release, Installed> {
    let mut releases = BTreeMap::new();
    for entry in reader.table(entry, false).unwrap_or_default() {
        match Release::ALL.into_iter().find(|release| release.id() == entry.key) {
            Some(release) => {
                releases.insert(release, read_installed(reader, entry, &OF_RELEASE, true));
            }
            None => {
                let problem = CampaignProblem::new(entry.line, &entry.path, "is no known release");
                let problem = problem.known(&entry.key, Release::ALL.map(Release::id));
                // Without quotes its dot divides it into two tables.
                reader.problems.push(problem.given(&entry.key));
            }
        }
    }
    releases
}

fn read_installed(reader: &mut Reader, entry: Entry, fields: &[Field], recipes: bool) -> Installed {
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

fn read_recipe_dirs(reader: &mut Reader, entry: Entry) -> BTreeMap<String, String> {
    let mut models: Vec<&str> =
        Catalog::embedded().recipes().iter().map(|recipe| recipe.id.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    let mut directories = BTreeMap::new();
    for entry in reader.table(entry, false).unwrap_or_default() {
        if !models.iter().any(|model| begins(model, &entry.key)) {
            let what = "is no model with a recipe, and none begins with it";
            let problem = CampaignProblem::new(entry.line, &entry.path, what);
            reader.problems.push(problem.known(&entry.key, models.iter().copied()));
            continue;
        }
        let mut spec = Spec::default();
        reader.field(&mut spec, Field::RecipeDir, &entry);
        if let Err(problems) = LaunchOptions::from_spec(&spec) {
            let of = |problem| CampaignProblem::of(entry.line, &entry.path, problem);
            reader.problems.extend(problems.into_iter().map(of));
        }
        directories.insert(entry.key, spec.get(Field::RecipeDir).unwrap_or_default().to_string());
    }
    directories
}
