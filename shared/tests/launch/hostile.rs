//! Values with special characters, through real shells.

use crate::launched;
use crate::refused;
use crate::shell::{Place, SHELLS};
use proptest::prelude::*;
use trainplan_shared::field::Field;

/// What a shell, a pager or a careless script might act on.
const ANYTHING: &str = r##"[ !"#$%&'()*+,\-./0-9:;<=>?@A-Z\[\\\]^_`a-z{|}~éßλ字🙂]{0,24}"##;
/// The same without what a script that expands without quotes would take apart.
const UNSPLIT: &str = r##"[!"#$%&'()+,.0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂][!"#$%&'()+,\-.0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂]{0,23}"##;
/// One path component of such characters.
const COMPONENT: &str = r##"[!"#%&'()+,\-0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂]{1,12}"##;

/// The variables of other values would be references, which is another test's.
fn not_a_reference(value: &str) -> bool {
    !value.starts_with('$') || value[1..].starts_with(['(', '\'', '"', ' '])
}

fn values() -> impl Strategy<Value = Vec<String>> {
    let value = ANYTHING.prop_filter("a reference", |value| not_a_reference(value));
    proptest::collection::vec(value, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn variables_arrive_as_they_are(values in values()) {
        let place = Place::new();
        place.stand_in("repository/nemotronh/launch.sh");
        let lines = values.iter().enumerate().map(|(index, value)| format!("V{index}={value}\n"));
        let lines: String = lines.chain(["LAST=1".to_string()]).collect();
        let fields = [(Field::Style, "launch-sh"), (Field::Env, lines.as_str())];
        let launch = launched("nemotron-h-56b/h100/fp8/256@25.05", &fields);
        let repository = place.text("repository");
        let setting = [
            ("LLMB_REPO", repository.as_str()), ("LLMB_INSTALL", "/llmb"), ("SBATCH_ACCOUNT", "a"), ("SBATCH_PARTITION", "p"),
        ];
        for shell in SHELLS {
            let seen = place.run(shell, &launch.script, &setting);
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(&seen.env[&format!("V{index}")], value);
            }
        }
    }

    #[test]
    fn parameters_of_sbatch_arrive_as_they_are(values in proptest::collection::vec(ANYTHING, 1..8)) {
        // A semicolon begins the next parameter, and white space at its ends is the reader's own.
        let values: Vec<String> = values.iter().map(|value| value.replace(';', "").trim().to_string()).collect();
        let params = values.iter().enumerate().map(|(index, value)| format!("x{index}={value};"));
        let place = Place::new();
        place.stand_in("stage/launch.sh");
        let stage = place.text("stage");
        let fields =
            [(Field::SlurmParams, &*params.collect::<String>()), (Field::InstallPath, &stage), (Field::Account, "a")];
        let launch = launched("nemotron4-340b/h100/fp8/128@24.11", &fields);
        let expected = values.iter().enumerate().map(|(index, value)| format!("--x{index}={value}"));
        let expected: Vec<String> = expected.collect();
        for shell in SHELLS {
            let seen = place.run(shell, &launch.script, &[("SLURM_PARTITION", "p")]);
            prop_assert_eq!(&seen.args[6..6 + expected.len()], expected.as_slice());
        }
    }

    #[test]
    fn what_scripts_expand_without_quotes_arrives_in_one_piece(
        account in UNSPLIT.prop_filter("a reference", |value| not_a_reference(value)),
        partition in UNSPLIT.prop_filter("a reference", |value| not_a_reference(value)),
        top in COMPONENT, checkpoint in COMPONENT, directory in COMPONENT,
    ) {
        let place = Place::new();
        place.stand_in(&format!("{directory}_/launch.sh"));
        let (top, directory) = (place.text(&format!("{top}_")), place.text(&format!("{directory}_")));
        let checkpoint = format!("{top}/{checkpoint}");
        let fields = [
            (Field::Account, account.as_str()),
            (Field::Partition, &partition),
            (Field::InstallPath, &top),
            (Field::RecipeDir, &directory),
            (Field::LoadCheckpoint, &checkpoint),
        ];
        let launch = launched("llama3.1-8b/h100/fp8/16@25.04", &fields);
        for shell in SHELLS {
            let seen = place.run(shell, &launch.script, &[("HF_TOKEN", "t")]);
            let of = |name: &str| seen.env[name].as_str();
            prop_assert_eq!(
                [of("SBATCH_ACCOUNT"), of("SBATCH_PARTITION"), of("STAGE_PATH"), of("LOAD_CHECKPOINT_PATH")],
                [account.trim(), partition.trim(), &top, &checkpoint]
            );
            prop_assert_eq!(seen.cwd.to_str().unwrap(), &directory);
        }
    }

    /// The outputs are words for a shell too: with wildcards where a time will stand, and nowhere else.
    #[test]
    fn outputs_match_what_the_run_will_write(top in COMPONENT) {
        let place = Place::new();
        let top = place.text(&format!("{top}_"));
        let fields = [(Field::InstallPath, top.as_str())];
        let outputs = launched("nemotron4-15b/h100/bf16/16@25.04", &fields).outputs;
        let experiment = "pretrain_nemotron4_15b_bf16_16";
        let run = format!("{top}/experiments/{experiment}/{experiment}_1744408121");
        let log = format!("{run}/{experiment}/log-acct-acct.{experiment}_389757_0.out");
        std::fs::create_dir_all(format!("{run}/{experiment}")).unwrap();
        std::fs::write(&log, "").unwrap();
        for shell in SHELLS {
            let script = format!("printf '%s\\n' {} \
                                  {}", outputs.experiment_dir.shell(), outputs.log_glob.shell());
            let output = place.execute(shell, &script, &[]);
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n{}\n", run, log));
        }
    }
}

#[test]
fn values_that_a_script_would_split_are_refused() {
    let recipe = "nemotron4-340b/gb200/fp8/256@25.12";
    for value in ["/a b", "/a\tb", "/a\nb", "/a\u{a0}b", "/a*", "/a?", "/[a]", "/a\0b", "/a\u{1b}[2J"] {
        for field in [Field::InstallPath, Field::LoadCheckpoint, Field::Mounts, Field::Account] {
            let fields = [(field, value), (Field::Style, "launch-sh")];
            assert_eq!(refused(recipe, &fields).field, field, "{value:?}");
        }
        // Nothing splits the directory of the scripts: our own script quotes it.
        let fields = [(Field::RecipeDir, value), (Field::Style, "launch-sh")];
        if value.contains(char::is_control) {
            assert_eq!(refused(recipe, &fields).field, Field::RecipeDir, "{value:?}");
        } else {
            assert!(launched(recipe, &fields).cwd.contains(value.trim_start_matches('/')), "{value:?}");
        }
    }
    for (field, value) in [
        (Field::Account, "-A"),
        (Field::Partition, "--wrap=id"),
        (Field::Partition, "a b"),
        (Field::InstallPath, "relative"),
        (Field::InstallPath, "/a/$(id)"),
        (Field::Mounts, "relative:/a"),
        (Field::Env, "RUN_CONF_IMAGE=/a b"),
        (Field::Env, "TWO WORDS=1"),
        (Field::Env, "A\u{7}=1"),
        (Field::Env, "A=\u{7}"),
    ] {
        assert_eq!(refused(recipe, &[(field, value), (Field::Style, "launch-sh")]).field, field, "{value:?}");
    }
}

#[test]
fn secrets_are_never_written_into_a_script() {
    let place = Place::new();
    place.stand_in("recipe/launch.sh");
    let directory = place.text("recipe");
    let setting = [("STAGE_PATH", "/stage"), ("SBATCH_ACCOUNT", "a"), ("SBATCH_PARTITION", "p")];
    let plain = launched("llama3.1-8b/h100/fp8/16@25.04", &[(Field::RecipeDir, &directory)]);
    let renamed = [(Field::RecipeDir, directory.as_str()), (Field::Env, "HF_TOKEN=$MY_TOKEN")];
    let renamed = launched("llama3.1-8b/h100/fp8/16@25.04", &renamed);
    assert!(
        plain.needs.contains(&"HF_TOKEN".to_string()) && !renamed.needs.contains(&"HF_TOKEN".to_string())
    );
    for shell in SHELLS {
        for (launch, name) in [(&plain, "HF_TOKEN"), (&renamed, "MY_TOKEN")] {
            let env = [&setting[..], &[(name, "hunter 2")]].concat();
            assert_eq!(place.run(shell, &launch.script, &env).env["HF_TOKEN"], "hunter 2");
        }
        // Without the token nothing is called.
        let _ = std::fs::remove_file(place.path("record"));
        let output = place.execute(shell, &plain.script, &setting);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && message.contains("HF_TOKEN: set it to your Hugging Face token"),
            "{message}"
        );
        assert!(place.seen().is_none());
    }
    for line in ["HF_TOKEN=hunter2", "APP_SECRET=hunter2", "WANDB_API_KEY=hunter2", "X=hf_hunter2"] {
        let problem = refused("nemotron4-340b/gb200/fp8/256@25.12", &[(Field::Env, line)]);
        assert!(problem.field == Field::Env && !problem.to_string().contains("hunter2"), "{problem}");
    }
}

#[test]
fn pasted_into_a_shell_it_leaves_the_shell_as_it_was() {
    let place = Place::new();
    place.stand_in("recipe/launch.sh");
    let fields = [
        (Field::RecipeDir, place.text("recipe")),
        (Field::InstallPath, "/stage".into()),
        (Field::Account, "a".into()),
    ];
    let fields = fields.each_ref().map(|(field, text)| (*field, text.as_str()));
    let script = launched("nemotron4-15b/h100/bf16/16@25.04", &fields).script;
    for shell in SHELLS {
        // Once without a partition, which fails, and once with one; the shell goes on either way, as lax as
        // before.
        let session = format!("{script}SBATCH_PARTITION=p\n{script}echo \"${{DTYPE-none}}:$-:$PWD\"\n");
        let output = place.execute(shell, &session, &[]);
        let said = String::from_utf8(output.stdout).unwrap();
        let said: Vec<&str> = said.trim_end().splitn(3, ':').collect();
        assert_eq!((said[0], said[2]), ("none", place.text("").as_str()), "{shell}");
        assert!(!said[1].contains(['e', 'u']), "{shell}: {said:?}");
        assert_eq!(place.seen().unwrap().env["SBATCH_PARTITION"], "p");
    }
}
