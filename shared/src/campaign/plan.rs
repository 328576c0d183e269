//! A campaign on its cluster: every run's scenario, prediction and launch.

use super::clusters::{Cluster, Installation};
use super::environment::Env;
use super::parse::{CampaignLines, in_order};
use super::problem::CampaignProblem;
use super::{Campaign, NodeList, Run, Upload};
use crate::catalog::{Catalog, Recipe, RecipeId, Release};
use crate::estimate::Interval;
use crate::field::Field;
use crate::launch::{ClusterType, Launch, LaunchOptions, Style, TimeLimit, launch, needs_top_directory};
use crate::planning::Predicted;
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::spec::Spec;

/// A run with its prediction and launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned<'a> {
    /// The run in the campaign.
    pub run: &'a Run,
    /// How many times it runs.
    pub repeats: u32,
    /// How often each repeat runs again after a node failed or the job was preempted.
    pub retries: u32,
    /// The nodes that it avoids.
    pub exclude: Option<&'a NodeList>,
    /// Whether it runs while no other singleton run of the campaign does.
    pub singleton: bool,
    /// How long each job may wait in the queue.
    pub queue_budget: Option<TimeLimit>,
    /// Where to send the result.
    pub upload: Option<&'a Upload>,
    /// The recipe that it starts from, with its release.
    pub recipe: Option<String>,
    /// Its scenario and launch options, from the campaign and the cluster's profile.
    pub spec: Spec,
    /// Its prediction.
    pub predicted: Predicted,
    /// Its launch; secrets are references.
    pub launch: Launch,
    /// The paths that it needs on the cluster, from the campaign and the cluster's profile.
    pub installation: Installation,
    /// Its variables: the cluster's, those of the defaults and its own.
    pub env: Env,
    /// The training time of one repeat, in seconds, without the start of the job.
    pub training_s: Interval,
    /// GPU-hours of training, for all jobs and repeats.
    pub gpu_hours: Interval,
    /// Warnings other than those of the launch and the prediction.
    pub warnings: Vec<String>,
}

/// Returns the plan of every run.
///
/// `with_files` returns the fields with the files that they name as texts. Only the runner can read files.
///
/// # Errors
/// Every problem, with its line in the campaign.
pub fn plan<'a>(
    campaign: &'a Campaign,
    lines: &CampaignLines,
    cluster: &Cluster,
    with_files: impl Fn(Spec) -> Result<Spec, Problem>,
) -> Result<Vec<Planned<'a>>, Vec<CampaignProblem>> {
    let (mut planned, mut problems) = (Vec::new(), Vec::new());
    for (index, run) in campaign.runs.iter().enumerate() {
        match plan_run(campaign, cluster, run, &with_files) {
            Ok(run) => planned.push(run),
            Err(found) => problems.extend(found.into_iter().map(|problem| {
                let key = problem.field.flag();
                let of_campaign = campaign.spec(run).get(problem.field).is_some();
                let (line, mut path) = lines.of(campaign, index, key);
                if !of_campaign && cluster.spec.get(problem.field).is_some() {
                    path = format!("{path} (from cluster {})", cluster.name);
                }
                CampaignProblem::of(line, path, &problem)
            })),
        }
    }
    if problems.is_empty() { Ok(planned) } else { Err(in_order(problems)) }
}

fn plan_run<'a>(
    campaign: &'a Campaign,
    cluster: &Cluster,
    run: &'a Run,
    with_files: impl Fn(Spec) -> Result<Spec, Problem>,
) -> Result<Planned<'a>, Vec<Problem>> {
    let spec = on_cluster(&campaign.spec(run), cluster, with_files).map_err(|problem| vec![problem])?;
    let predicted = spec.estimate()?;
    let scenario = &predicted.scenario;
    let mut problems = Vec::new();
    problems.extend(other_gpu(&scenario.gpu.id, cluster));
    let settings = [&campaign.defaults.env, &run.settings.env];
    let env = settings.into_iter().fold(cluster.env.clone(), |env, over| env.overridden_by(over));
    let options = |spec: &Spec| -> Result<LaunchOptions, Vec<Problem>> {
        let variables = env.lines().parse().map_err(|problem: Problem| vec![problem])?;
        Ok(LaunchOptions { env: variables, ..LaunchOptions::from_spec(spec)? })
    };
    // The release that launches the run decides where it is installed.
    let first = options(&spec).and_then(|options| launch(scenario, &options));
    let launched = first.and_then(|first| {
        let installed = cluster.installed(first.release, &scenario.model.id);
        let options = options(&under(&installed, &spec))?;
        Ok((launch(scenario, &options)?, options))
    });
    let (launch, options) = match launched {
        Ok(launched) => launched,
        Err(found) => {
            problems.extend(found);
            return Err(problems);
        }
    };
    problems.extend(other_release(scenario, &launch, cluster));
    if launch.cluster_type != ClusterType::Slurm {
        let problem = Problem::new(Field::ClusterType, launch.cluster_type, "Campaigns run only on Slurm.");
        problems.push(problem.suggest(["slurm"]));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let of_run = &run.settings;
    let repeats = of_run.repeats.or(campaign.defaults.repeats).unwrap_or(1);
    let training_s = predicted.estimate.step_time_s.times(f64::from(launch.steps));
    let jobs = launch.outputs.jobs.len().max(1) as f64;
    let gpus = f64::from(scenario.layout.gpus());
    let recipe = scenario.recipe.map(|recipe| recipe.id.to_string());
    let mut warnings = Vec::new();
    if let (Some(full), Some(typed)) = (&recipe, spec.get(Field::Recipe))
        && !typed.contains('@')
    {
        warnings.push(format!(
            "{typed} is {full} in this version. Name the release, so that a later version runs the same."
        ));
    }
    if launch.style == Style::MegatronLm && !launch.needs.is_empty() {
        warnings.push(format!(
            "{} must be set on {1}. Set install-path under [cluster.{1}.megatron-lm] in clusters.toml.",
            launch.needs.join(", "),
            cluster.name
        ));
    } else if !launch.needs.is_empty() {
        warnings.push(format!(
            "{} must be set on {}. Set install-path, recipe-dir, account and partition in the cluster's \
             profile, and other variables in env.",
            launch.needs.join(", "),
            cluster.name
        ));
    }
    Ok(Planned {
        run,
        repeats,
        retries: of_run.retries.or(campaign.defaults.retries).unwrap_or(0),
        exclude: of_run.exclude.as_ref().or(campaign.defaults.exclude.as_ref()),
        singleton: of_run.singleton.or(campaign.defaults.singleton).unwrap_or(false),
        queue_budget: of_run.queue_budget.or(campaign.defaults.queue_budget),
        upload: of_run.upload.as_ref().or(campaign.defaults.upload.as_ref()),
        recipe,
        gpu_hours: training_s.times(gpus * jobs * f64::from(repeats) / 3600.0),
        training_s,
        installation: installation(&launch, &options, &scenario.model.id),
        launch,
        env,
        warnings,
        spec,
        predicted,
    })
}

/// Returns the paths that a launch needs. Some launchers find the recipe's directory by themselves.
fn installation(launch: &Launch, options: &LaunchOptions, model: &str) -> Installation {
    let reads_directory = launch.release.is_some() && !launch.style.configures().contains(&Field::RecipeDir);
    let directory = options.recipe_dir.clone().filter(|_| reads_directory);
    let directories = directory.into_iter().map(|directory| (model.to_owned(), directory));
    Installation::new(launch.release, options, directories.collect())
}

/// Returns the fields with the cluster's for those that are missing, and with files as texts.
fn on_cluster(
    spec: &Spec,
    cluster: &Cluster,
    with_files: impl Fn(Spec) -> Result<Spec, Problem>,
) -> Result<Spec, Problem> {
    let mut of_cluster = cluster.spec.clone();
    if spec.get(Field::Recipe).is_some() {
        // A recipe defines its GPU.
        of_cluster.set(Field::Gpu, "");
    }
    with_files(under(&of_cluster, spec))
}

/// Returns `spec`, with the fields of `base` for those that are missing.
fn under(base: &Spec, spec: &Spec) -> Spec {
    spec.iter().fold(base.clone(), |both, (field, text)| both.with(field, text))
}

/// Returns the problem of a recipe whose release the cluster's profile lacks, if it has releases with recipes for the same model on
/// as many GPUs: those can run, while this one's script would stop without its release.
fn other_release(scenario: &Scenario, launch: &Launch, cluster: &Cluster) -> Option<Problem> {
    let (own, release) = (&scenario.recipe?.id, launch.release?);
    let there: Vec<Release> = cluster.installations().into_iter().filter_map(|place| place.release).collect();
    if there.contains(&release) || !needs_top_directory(launch, scenario) {
        return None;
    }
    let runs_there = |recipe: &&Recipe| {
        let RecipeId { dtype, release, .. } = recipe.id;
        let is_alike = RecipeId { dtype, release, ..own.clone() } == recipe.id;
        is_alike && dtype.width() == own.dtype.width() && there.contains(&release)
    };
    let others: Vec<&RecipeId> =
        Catalog::embedded().recipes().iter().filter(runs_there).map(|recipe| &recipe.id).collect();
    (!others.is_empty()).then(|| {
        let message = format!(
            "Release {release} isn't in the profile of cluster {0}, so its script would stop. Set its install-path under \
             [cluster.{0}.release.\"{release}\"], or run a recipe of a release that is there.",
            cluster.name
        );
        Problem::new(Field::Recipe, own, message).suggest(others)
    })
}

/// Returns the problem of a scenario for other GPUs than the cluster's. A user's own variant of a type counts
/// as the type.
fn other_gpu(gpu: &str, cluster: &Cluster) -> Option<Problem> {
    let kind = |id: &str| id.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    let there = cluster.spec.get(Field::Gpu)?;
    (kind(there) != kind(gpu)).then(|| {
        let message = format!("Cluster {} has {there} GPUs, but the run needs {gpu}.", cluster.name);
        Problem::new(Field::Gpu, gpu, message)
    })
}
