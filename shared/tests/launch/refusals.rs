//! Launches that are refused, and their messages.

use crate::{refused, try_launch};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{LaunchOptions, launch};
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

const SH: (Field, &str) = (Field::Style, "launch-sh");

/// Checks the field of a launch's only problem, and that it contains a text.
fn assert_refused(recipe: &str, fields: &[(Field, &str)], field: Field, text: &str) -> Problem {
    let problem = refused(recipe, fields);
    assert!(problem.field == field && problem.to_string().contains(text), "{problem}");
    problem
}

#[test]
fn fields_that_a_release_fixes_cannot_be_changed() {
    let recipe = "nemotron4-340b/h100/fp8/256@25.12";
    let problem = assert_refused(
        recipe,
        &[(Field::Pp, "4"), (Field::Gbs, "64")],
        Field::Pp,
        "The script of release 25.12 sets --pp 8",
    );
    assert_eq!(problem.suggestions, ["8"]);
    for (recipe, field, value, fixed) in [
        ("nemotron4-15b/h100/bf16/64@25.04", Field::Gbs, "512", "256"),
        ("nemotron4-15b/h100/bf16/64@25.04", Field::Mbs, "1", "2"),
        ("nemotron4-15b/h100/bf16/64@25.04", Field::Recompute, "full", "none"),
        ("llama3.1-8b/h100/fp8/8@25.04", Field::Fsdp, "yes", "off"),
        ("llama3.1-8b/h100/fp8/8@25.04", Field::Overlap, "off", "on"),
        ("llama3.1-8b/h100/fp8/8@25.04", Field::Cp, "1", "2"),
        ("llama3.1-8b/h100/fp8/8@25.04", Field::SeqLen, "4096", "8192"),
        ("llama3.1-405b/h100/fp8/512@25.04", Field::Layers, "62", "126"),
        ("nemotron4-340b/gb200/fp8/256/strong@25.12", Field::Gbs, "64", ""),
    ] {
        let Err(problems) = try_launch(recipe, &[(field, value)]) else {
            assert_eq!(fixed, "", "{recipe} took {} {value}", field.flag());
            continue;
        };
        assert!(
            problems.iter().any(|problem| problem.field == field && problem.suggestions == [fixed]),
            "{problems:?}"
        );
    }
}

#[test]
fn other_releases_with_a_recipe_are_named() {
    let fields = [(Field::Release, "24.11")];
    let problem = refused("nemotron4-15b/h100/bf16/64@25.04", &fields);
    assert_eq!((problem.field, problem.allowed.concat().as_str()), (Field::Release, "25.04"));
    let problem = refused("llama3.1-8b/h100/fp8/8@25.04", &[(Field::Release, "25.12")]);
    assert_eq!(
        problem.to_string(),
        "Release 25.12 has no recipe for Llama 3.1 8B. Allowed: 25.04, 26.06.01."
    );
    let problem = refused("nemotron4-340b/gb200/fp8/256@25.12", &[(Field::Release, "25.04")]);
    assert_eq!((problem.field, problem.allowed.concat().as_str()), (Field::Gpu, "h100"));
    let problem = refused("nemotron4-340b/h100/fp8/256@25.04", &[(Field::Gpu, "b200")]);
    assert!(problem.to_string().contains("Release 25.12 has."), "{problem}");
    // The proxy's layers belong to its GPU count.
    let problems = try_launch("llama3.1-405b/h100/fp8/128@25.04", &[(Field::Gpus, "256")]).unwrap_err();
    assert!(
        problems.iter().any(|problem| problem.field == Field::Layers && problem.suggestions == ["126"]),
        "{problems:?}"
    );
}

#[test]
fn an_unpublished_model_is_answered_with_the_published_ones() {
    let spec = [(Field::Model, "llama2-7b"), (Field::Gpu, "h100"), (Field::Gpus, "8"), (Field::Gbs, "128")]
        .into_iter()
        .fold(Spec::default(), |spec, (field, text)| spec.with(field, text));
    let problems = launch(&spec.scenario().unwrap(), &LaunchOptions::default()).unwrap_err();
    assert_eq!(problems[0].field, Field::Model);
    assert!(
        problems[0].to_string().starts_with(
            "NVIDIA's DGX Cloud benchmarking collection has no recipe for Llama 2 7B. Megatron-Bridge may"
        ),
        "{problems:?}"
    );
}

#[test]
fn precisions_are_the_recipes() {
    let recipe = "nemotron-h-56b/h100/fp8/256@25.05";
    assert_refused(recipe, &[(Field::Dtype, "bf16")], Field::Dtype, "Allowed: fp8");
    let recipe = "nemotron4-340b/gb200/fp8/256@25.12";
    assert_refused(recipe, &[(Field::Dtype, "mxfp8")], Field::Dtype, "Use fp8. Allowed: bf16, fp8");
}

#[test]
fn h100_has_no_strong_scaling() {
    let recipe = "nemotron4-340b/gb200/fp8/256/strong@25.12";
    let problems = try_launch(recipe, &[(Field::Gpu, "h100"), (Field::Pp, "8")]).unwrap_err();
    assert_eq!(problems.len(), 1);
    let said = problems[0].to_string();
    assert!(said.contains("set --gbs.") && said.contains("gb200"), "{said}");
}

#[test]
fn nodes_are_whole() {
    let recipe = "llama3.1-8b/h100/fp8/8@25.04";
    assert_refused(recipe, &[(Field::Gpus, "12")], Field::Gpus, "Use 8 or 16");
    let recipe = "nemotron4-340b/h100/fp8/128@24.11";
    let problem = assert_refused(
        recipe,
        &[(Field::GpusPerNode, "2")],
        Field::GpusPerNode,
        "With 2 GPUs per node, release 24.11 sets --gbs 128 (2 for each of 64 nodes), not 32.",
    );
    assert_eq!(problem.suggestions, ["8"]);
    // A batch that fits neither is its own problem.
    let fields = [(Field::GpusPerNode, "2"), (Field::Gbs, "64")];
    let problem = assert_refused(recipe, &fields, Field::Gbs, "2 for each of 64 nodes");
    assert_eq!(problem.suggestions, ["128"]);
    assert_refused(recipe, &[(Field::GpusPerNode, "3")], Field::Gpus, "nodes of 3 GPUs");
}

#[test]
fn styles_are_the_releases() {
    let style = |style| [(Field::Style, style)];
    let of =
        |recipe: &str, name| assert_refused(recipe, &style(name), Field::Style, "doesn't launch").suggestions;
    assert_eq!(of("nemotron4-340b/h100/fp8/128@24.11", "launch-sh"), ["sbatch"]);
    assert_eq!(of("llama3.1-8b/h100/fp8/8@25.04", "llmb-run"), ["launch-sh"]);
    assert_eq!(of("nemotron4-340b/h100/fp8/256@25.12", "sbatch"), ["llmb-run", "launch-sh"]);
    let recipe = "nemotron4-340b/h100/fp8/256@25.12";
    assert_refused(recipe, &style("llmbrun"), Field::Style, "Did you mean llmb-run?");
    let between = [(Field::Gpus, "768"), (Field::Style, "llmb-run")];
    assert_eq!(assert_refused(recipe, &between, Field::Style, "not 768").suggestions, ["launch-sh"]);
    let runai = [(Field::ClusterType, "runai"), (Field::Style, "llmb-run")];
    assert_refused(recipe, &runai, Field::Style, "llmb-run doesn't support Run:ai");
}

#[test]
fn options_that_a_release_does_not_support_are_refused() {
    let [job_script, nemotron, hybrid, newest] = [
        "nemotron4-340b/h100/fp8/128@24.11",
        "nemotron4-340b/h100/fp8/256@25.04",
        "nemotron-h-56b/h100/fp8/256@25.05",
        "nemotron4-340b/h100/fp8/256@25.12",
    ];
    for (recipe, field, value) in [
        (job_script, Field::NcclTrace, "yes"),
        (job_script, Field::SaveCheckpoint, "yes"),
        (job_script, Field::LoadCheckpoint, "/c"),
        (job_script, Field::Mounts, "/c"),
        (job_script, Field::ClusterType, "runai"),
        (nemotron, Field::NcclTrace, "yes"),
        (nemotron, Field::Mounts, "/c"),
        (nemotron, Field::GpusPerNode, "4"),
        (nemotron, Field::ClusterType, "runai"),
        (hybrid, Field::SaveCheckpoint, "yes"),
        (hybrid, Field::LoadCheckpoint, "/c"),
        (newest, Field::NcclTrace, "yes"),
        // NeMo refuses to start without an account.
        (newest, Field::ClusterType, "runai"),
        // The list of mounts would be divided.
        (newest, Field::LoadCheckpoint, "/a,b"),
        // 18 micro batches for 8 interleaved stages.
        (newest, Field::Gbs, "72"),
    ] {
        let problem = refused(recipe, &[(field, value)]);
        assert_eq!(problem.field, field, "{recipe}: {problem}");
    }
}

#[test]
fn refusals_name_the_releases_that_support_the_option() {
    let metrics = [(Field::Profile, "yes"), (Field::GpuMetrics, "yes")];
    let save = [(Field::SaveCheckpoint, "yes")];
    let mounts = [(Field::Mounts, "/c")];
    let (full, small) = ("nemotron4-340b/h100/fp8/256@25.04", "nemotron4-15b/h100/bf16/64@25.04");
    let job_script = "nemotron4-340b/h100/fp8/128@24.11";
    for (recipe, fields, allowed) in [
        (full, &metrics[..], "24.11 or 25.12"),
        (full, &mounts, "25.12"),
        (job_script, &save, "25.04 or 25.12"),
        (small, &metrics, ""),
        (small, &mounts, ""),
        ("nemotron-h-56b/h100/fp8/256@25.05", &metrics, "26.06.01"),
        ("nemotron-h-56b/h100/fp8/256@25.05", &save, ""),
        ("llama3.1-8b/h100/fp8/8@25.04", &[(Field::ClusterType, "runai")], ""),
    ] {
        let problem = refused(recipe, fields);
        let wanted = match allowed {
            "" => " No release supports it for this model on the H100.".to_string(),
            releases => format!(" Use release {releases}."),
        };
        assert!(problem.to_string().contains(&wanted), "{recipe}: {problem}");
    }
    // No release but this one runs on the GPU type.
    let a100 = [save[0], (Field::Gpu, "a100")];
    assert_refused(
        "nemotron4-340b/h100/bf16/256@24.11",
        &a100,
        Field::SaveCheckpoint,
        "No release supports it for this model on the A100",
    );
}

#[test]
fn options_that_exclude_each_other() {
    let hybrid = "nemotron-h-56b/h100/fp8/256@25.05";
    let both = [(Field::NcclTrace, "yes"), (Field::Profile, "yes")];
    assert_refused(hybrid, &both, Field::NcclTrace, "script refuses both");
    let both = [(Field::LoadCheckpoint, "$STAGE_PATH/c"), (Field::Profile, "yes"), SH];
    for recipe in ["nemotron4-340b/h100/fp8/512@25.04", "nemotron4-340b/h100/fp8/512@25.12"] {
        assert_refused(recipe, &both, Field::LoadCheckpoint, "never reaches the profile");
    }
    let nothing = [(Field::Env, "DISABLE_PERFRUN=true")];
    assert_refused("llama3.1-8b/h100/fp8/8@25.04", &nothing, Field::Env, "leaves nothing to run");
    let steps = [(Field::Profile, "yes"), (Field::ProfileStartStep, "50"), (Field::ProfileStopStep, "20")];
    assert_refused(hybrid, &steps, Field::ProfileStartStep, "Use 19");
    let early = [(Field::Profile, "yes"), (Field::ProfileStopStep, "40")];
    assert_refused(
        hybrid,
        &early,
        Field::ProfileStopStep,
        "--profile-stop-step 40 is not after the first profiled step, by default 45. Set a step after 45, or \
         --profile-start-step 35 and --profile-stop-step 40.",
    );
    let beyond = [(Field::Profile, "yes"), (Field::ProfileStartStep, "60")];
    assert_refused(hybrid, &beyond, Field::ProfileStartStep, "by default 50. Use 49");
    let short = [(Field::Profile, "yes"), (Field::MaxSteps, "15")];
    assert_refused(
        "nemotron4-340b/h100/fp8/128@24.11",
        &short,
        Field::ProfileStopStep,
        "Set --profile-start-step 5 and --profile-stop-step 15.",
    );
    let late = [(Field::Profile, "yes"), (Field::MaxSteps, "25")];
    assert_refused("nemotron4-340b/h100/fp8/128@24.11", &late, Field::ProfileStopStep, "Use 25");
}

#[test]
fn a_checkpoint_must_be_in_the_mounted_directory() {
    let recipe = "nemotron4-340b/h100/fp8/512@25.04";
    let fields = [(Field::InstallPath, "/lustre/nemo"), (Field::LoadCheckpoint, "/lustre/nemo2/c")];
    assert_refused(recipe, &fields, Field::LoadCheckpoint, "is not below $STAGE_PATH");
    let weights = [(Field::LoadCheckpoint, "$STAGE_PATH/c/weights/")];
    assert_eq!(refused(recipe, &weights).suggestions, ["$STAGE_PATH/c"]);
}

#[test]
fn variables_of_other_fields_are_refused() {
    let recipe = "nemotron4-340b/h100/fp8/256@25.12";
    for (line, flag) in [
        ("MAX_STEPS=3", "--max-steps"),
        ("GBS=3", "--gbs"),
        ("SBATCH_ACCOUNT=a", "--account"),
        ("SBATCH_TIMELIMIT=1", "--time-limit"),
        ("LLMB_INSTALL=/a", "--install-path"),
    ] {
        assert_refused(recipe, &[(Field::Env, line)], Field::Env, flag);
    }
    let hybrid = "nemotron-h-56b/h100/fp8/256@25.05";
    assert_refused(hybrid, &[(Field::Env, "STAGE_PATH=/a")], Field::Env, "stops the script");
    let twice = [(Field::Env, "SBATCH_QOS=a"), (Field::SlurmParams, "qos=b")];
    assert_refused(hybrid, &twice, Field::Env, "already set by another option");
}

#[test]
fn every_unreadable_field_is_named_at_once() {
    let fields = [
        (Field::Release, "25.13"),
        (Field::TimeLimit, "soon"),
        (Field::Profile, "perhaps"),
        (Field::Gres, "gpu:0"),
        (Field::MaxSteps, "0"),
    ];
    let problems = try_launch("nemotron4-340b/h100/fp8/256@25.12", &fields).unwrap_err();
    let named: Vec<Field> = problems.iter().map(|problem| problem.field).collect();
    assert_eq!(named, [Field::Release, Field::Gres, Field::MaxSteps, Field::TimeLimit, Field::Profile]);
}
