//! Judges the paths that releases and runs need.

use super::super::Finding;
use super::super::answers::Answers;
use super::super::scope::{Scope, key, recipe_kind, used_kind};
use super::{FULL_KIB, size};
use trainplan_shared::campaign::{Installation, UsedPath};
use trainplan_shared::catalog::Release;
use trainplan_shared::launch::Style;
use trainplan_shared::problem::all_of;

/// Free space in an installation below which there is a warning: results are written there.
const INSTALL_KIB: u64 = 20 << 20;

/// Judges every installation.
pub(super) fn installations(scope: &Scope, answers: &Answers, found: &mut Vec<Finding>) {
    for (index, place) in scope.installations.iter().enumerate() {
        installation(&key(index), place, scope.is_whole, answers, found);
    }
}

fn installation(
    name: &str,
    place: &Installation,
    is_whole: bool,
    answers: &Answers,
    found: &mut Vec<Finding>,
) {
    let check = match place.release {
        Some(release) => format!("release {}", release.id()),
        None => "Megatron-LM".to_string(),
    };
    let lacks_program = |name: &&str| answers.all("lacks-program").iter().any(|lacks| lacks == name);
    if let Some(program) = place.needed_program().filter(lacks_program) {
        found.push(Finding::problem(
            check.clone(),
            format!("{program} not found, but {} runs it", place.launcher()),
            format!(
                "Install {program} on the login node, or add it to PATH for shells other than login shells."
            ),
        ));
    }
    let lacks = |kind: &str| answers.all(&format!("{name} {kind} lacks"));
    // Only nodes may have what is mounted, such as their own disks.
    if let [first, others @ ..] = lacks(used_kind(UsedPath::Mount)) {
        let paths = others.iter().fold(first.clone(), |paths, path| format!("{paths}, {path}"));
        found.push(Finding::warning(
            check.clone(),
            format!("not on the login node: {paths}"),
            "Check that the nodes have it, or correct mounts. A container does not start without its mounts.",
        ));
    }
    let kinds = ["install".to_string()].into_iter();
    let kinds = kinds.chain(place.recipe_dirs.iter().map(|(model, _)| recipe_kind(model)));
    let used =
        [UsedPath::Venv, UsedPath::Image, UsedPath::Checkpoint].map(|used| used_kind(used).to_string());
    let missing: Vec<&str> = kinds.chain(used).flat_map(|kind| lacks(&kind)).map(String::as_str).collect();
    if !missing.is_empty() {
        let what_to_do = "Correct the path where you set it, or install what is missing there.";
        found.push(Finding::problem(check, format!("not found: {}", missing.join(", ")), what_to_do));
        return;
    }
    // Its directories may be in variables of the cluster.
    if !is_whole && place.install_path.is_none() {
        return;
    }
    let path = answers.one(&format!("{name} install"));
    let launches = answers.all(&format!("{name} launch"));
    let workloads = answers.all(&format!("{name} workload"));
    let free = answers.one(&format!("{name} free")).and_then(|free| free.parse::<u64>().ok());
    let mut seen: Vec<String> = path.map(str::to_string).into_iter().collect();
    seen.extend(free.map(|free| format!("{} free", size(free))));
    if !place.recipe_dirs.is_empty() {
        let models: Vec<&str> = place.recipe_dirs.iter().map(|(model, _)| model.as_str()).collect();
        let models = models.join(", ");
        let models = if models.is_empty() { "every model" } else { &models };
        seen.push(format!("{} for {models}", place.launcher()));
    } else if !launches.is_empty() {
        let directories: Vec<&str> =
            launches.iter().map(|launch| launch.strip_suffix("/launch.sh").unwrap_or(".")).collect();
        seen.push(format!("launch.sh in {}", directories.join(", ")));
    }
    let images = answers.all(&format!("{name} image"));
    if !images.is_empty() {
        seen.push(format!("images {}", images.join(", ")));
    }
    if !workloads.is_empty() {
        seen.push(format!("workloads {}", workloads.join(", ")));
    }
    seen.extend(place.release.filter(|_| is_whole).and_then(ignored_settings));
    let seen = seen.join("; ");
    let is_release = place.release.is_some();
    found.push(if is_whole && is_release && launches.is_empty() && place.recipe_dirs.is_empty() {
        Finding::warning(
            check,
            format!("{seen}; no launch.sh found in it"),
            "Set recipe-dir in the profile to the directories of the recipes, or install the release there.",
        )
    } else if let ([read_only, ..], true) = (answers.all(&format!("{name} read-only")), is_release) {
        Finding::problem(
            check,
            format!("{read_only} is not writable for you"),
            "The release's scripts write results there. Install it in a writable place, and correct \
             install-path.",
        )
    } else if is_release && free.is_some_and(|free| free < FULL_KIB) {
        Finding::problem(
            check,
            format!("{seen}; the file system is full"),
            "Free some space. The release's scripts write results there.",
        )
    } else if free.is_some_and(|free| free < INSTALL_KIB) {
        Finding::warning(
            check,
            seen,
            "Free some space. Checkpoints and profiles of a run can take more than that.",
        )
    } else {
        Finding::ok(check, seen)
    });
}

/// Returns which settings of the profile have no effect because runs of a release use llmb-run; none if they don't.
fn ignored_settings(release: Release) -> Option<String> {
    release.contract().llmb_run?;
    let ignored: Vec<&str> = Style::LlmbRun.configures().iter().map(|field| field.flag()).collect();
    Some(format!(
        "runs use {} by default, which ignores {} in the profile; with style = \"{}\", they count",
        Style::LlmbRun,
        all_of(&ignored),
        Style::LaunchSh
    ))
}

/// Judges the installation that LLMB_INSTALL names, which llmb-run uses. `None` if the user's shell doesn't set it.
pub(super) fn llmb_run(is_in_profile: bool, answers: &Answers) -> Option<Finding> {
    let path = answers.one("llmb")?;
    let Some(gpu) = answers.one("llmb-gpu") else {
        return Some(Finding::warning(
            "llmb-run",
            format!("LLMB_INSTALL is {path}, but there is no cluster_config.yaml with a gpu_type"),
            "Correct LLMB_INSTALL in your shell's startup file, or run the release's llmb-install again.",
        ));
    };
    let mut seen = match answers.all("llmb-workload") {
        [] => format!("{path} for {gpu}, no workloads"),
        workloads => format!("{path} for {gpu}, workloads {}", workloads.join(", ")),
    };
    if !is_in_profile {
        seen += "; the cluster file doesn't have this install-path";
    }
    Some(Finding::ok("llmb-run", seen))
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::*;

    #[test]
    fn a_program_that_the_launcher_runs_is_missed() {
        let judge = |release: Release, text: &str| -> Vec<(Verdict, String)> {
            let place = Installation {
                release: Some(release),
                install_path: None,
                recipe_dirs: vec![(String::new(), "/lustre/Megatron-Bridge".into())],
                used: Vec::new(),
            };
            let mut found = Vec::new();
            let scope = Scope { installations: vec![place], ..Scope::default() };
            installations(&scope, &Answers::read(text), &mut found);
            found.into_iter().map(|finding| (finding.verdict, finding.seen)).collect()
        };
        let missed = (Verdict::Problem, "uv not found, but scripts/training/train.sh runs it".to_string());
        assert_eq!(judge(Release::BridgeMain, "lacks-program\tuv\n"), [missed]);
        assert!(judge(Release::BridgeMain, "").is_empty());
        assert!(judge(Release::R25_04, "lacks-program\tuv\n").is_empty());
    }

    #[test]
    fn settings_of_a_profile_that_llmb_run_ignores_are_named() {
        let seen = |release: Release, is_whole: bool| {
            let place = Installation {
                release: Some(release),
                install_path: Some("/lustre/llmb".into()),
                recipe_dirs: vec![("nemotron-h".into(), "/lustre/nemotronh".into())],
                used: Vec::new(),
            };
            let scope = Scope { installations: vec![place], is_whole, ..Scope::default() };
            let mut found = Vec::new();
            installations(&scope, &Answers::read("place0 install\t/lustre/llmb\n"), &mut found);
            found.remove(0).seen
        };
        let own = "/lustre/llmb; launch.sh for nemotron-h";
        let ignored = "runs use llmb-run by default, which ignores account, partition, gres and recipe-dir in the profile; with \
                       style = \"launch-sh\", they count";
        assert_eq!(seen(Release::R25_05, true), format!("{own}; {ignored}"));
        assert_eq!(seen(Release::R25_05, false), own);
        assert_eq!(seen(Release::R25_04, true), own);
    }

    #[test]
    fn an_installation_of_llmb_run_is_named() {
        let judge = |text: &str| llmb_run(false, &Answers::read(text));
        assert_eq!(judge("user\tme"), None);
        let found = judge("llmb\t/lustre/llmb\nllmb-gpu\th100\nllmb-workload\tpretrain_llama3.1\n").unwrap();
        let seen = "/lustre/llmb for h100, workloads pretrain_llama3.1; the cluster file doesn't have this install-path";
        assert_eq!((found.verdict, found.seen.as_str()), (Verdict::Ok, seen));
        let missing = judge("llmb\t/lustre/llmb\nllmb-gpu\t\n").unwrap();
        assert_eq!(missing.verdict, Verdict::Warning);
    }
}
