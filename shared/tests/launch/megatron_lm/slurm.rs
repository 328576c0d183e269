//! What the script asks of Slurm, and values that must reach Slurm and the run unchanged.

use super::{JOB, LLAMA, STYLE, of, srun};
use crate::launched;
use crate::shell::SHELLS;
use proptest::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::launch::Launch;

#[test]
fn nodes_of_an_nvlink_domain_are_segments() {
    let segment = |text: &str| {
        let lines = directives(&of(text));
        let lines = lines.iter().filter_map(|line| line.strip_prefix("--segment=")).collect::<Vec<_>>();
        assert!(lines.len() < 2, "{lines:?}");
        lines.first().map(ToString::to_string)
    };
    let dense = |gpus: u32| segment(&format!("model=llama3.1-70b gpu=gb200 gpus={gpus} gbs={gpus} tp=4"));
    for (gpus, nodes) in
        [(4, None), (64, Some("16")), (72, Some("18")), (256, Some("16")), (80, Some("10")), (148, None)]
    {
        assert_eq!(dense(gpus).as_deref(), nodes, "{gpus}");
    }
    // Groups of 8 nodes are not divided: 24 nodes are three segments of 8, not two of 12.
    let experts = "model=deepseek-v3 gpu=gb300 gpus=96 gbs=96 ep=32";
    assert_eq!(segment(experts).as_deref(), Some("8"));
    assert_eq!(segment(&format!("{experts} slurm-params=segment=4")).as_deref(), Some("4"));
    assert_eq!(segment("model=llama3.1-70b gpu=h100 gpus=64 gbs=64 tp=8"), None);
}

/// The options of a script's `#SBATCH` lines, read as sbatch reads them.
pub(super) fn directives(launch: &Launch) -> Vec<String> {
    let lines = launch.script.lines().filter_map(|line| line.strip_prefix("#SBATCH"));
    lines.flat_map(arguments).collect()
}

/// White space parts, quotes group, `#` ends, and a backslash takes what follows, within quotes too:
/// `_get_argument` of Slurm's `sbatch/opt.c`.
fn arguments(line: &str) -> Vec<String> {
    let (mut arguments, mut argument) = (Vec::new(), None::<String>);
    let (mut quote, mut escaped) = (None, false);
    for c in line.chars() {
        let within = argument.is_some() || quote.is_some();
        match c {
            _ if escaped => {
                argument.get_or_insert_default().push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => argument.get_or_insert_default().push(c),
            '"' | '\'' => quote = Some(c),
            '#' => break,
            _ if c.is_ascii_whitespace() => {
                if within {
                    arguments.extend(argument.take());
                }
            }
            _ => argument.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "sbatch would miss a quote in {line}");
    arguments.extend(argument);
    arguments
}

/// What a shell, Slurm or a careless script might act on.
const ANYTHING: &str = r##"[ !"#$%&'()*+,\-./0-9:<=>?@A-Z\[\\\]^_`a-z{|}~éßλ字🙂]{0,24}"##;

/// The same without what a script that expands without quotes would take apart.
const UNSPLIT: &str = r##"[!"#%&'()+,.0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂][!"#$%&'()+,\-.0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂]{0,23}"##;

/// One path component of such characters.
const COMPONENT: &str = r##"[!"#%&'()+,\-0-9:;<=>@A-Z\\\]^_`a-z{|}~éßλ字🙂]{1,12}"##;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hostile_values_reach_slurm_as_they_are(
        account in UNSPLIT, partition in UNSPLIT, params in proptest::collection::vec(ANYTHING, 1..6),
    ) {
        let params: Vec<String> = params.iter().map(|value| value.trim().to_string()).collect();
        let typed: String = params.iter().enumerate().map(|(i, value)| format!("x{i}={value};")).collect();
        let fields = [STYLE, (Field::Account, &account), (Field::Partition, &partition), (Field::SlurmParams, &typed)];
        let launch = launched(LLAMA, &fields);
        let lines = directives(&launch);
        let wanted = [format!("--account={}", account.trim()), format!("--partition={}", partition.trim())];
        let params = params.iter().enumerate().map(|(i, value)| format!("--x{i}={value}"));
        for line in wanted.into_iter().chain(params) {
            prop_assert!(lines.contains(&line), "{} is not in {:?}", line, lines);
        }
        // And nothing of them reaches the shell.
        for shell in SHELLS {
            prop_assert_eq!(srun(&launch, shell, &JOB).program, "srun");
        }
    }

    #[test]
    fn hostile_values_reach_the_run_as_they_are(
        root in COMPONENT, image in UNSPLIT, checkpoint in COMPONENT, mount in COMPONENT, value in ANYTHING,
    ) {
        prop_assume!(!image.contains('$') && (!value.starts_with('$') || value[1..].starts_with(['(', '\'', '"', ' '])));
        // These divide a list of mounts.
        let mounted = |path: &str| format!("/{}", path.replace([',', ':'], "_"));
        let (root, checkpoint, mount) = (mounted(&root), mounted(&checkpoint), format!("/{mount}"));
        let line = format!("V={value}");
        // Typed into a field of its own, white space at the ends is not part of a value.
        let last = format!("{line}\nLAST=1");
        let fields = [
            STYLE,
            (Field::InstallPath, &root),
            (Field::ContainerImage, &image),
            (Field::LoadCheckpoint, &checkpoint),
            (Field::Mounts, &mount),
            (Field::Env, &last),
        ];
        prop_assume!(mount.split(',').all(|part| part.starts_with('/')));
        let launch = launched(LLAMA, &fields);
        for shell in SHELLS {
            let seen = srun(&launch, shell, &JOB[..2]);
            prop_assert_eq!(&seen.env["V"], &value);
            prop_assert_eq!(&seen.env["MEGATRON_PATH"], &root);
            let container = format!("--container-image={}", image.trim());
            prop_assert!(seen.args.contains(&container), "{:?}", seen.args);
            let mounts = seen.args.iter().find_map(|arg| arg.strip_prefix("--container-mounts=")).unwrap();
            prop_assert!(mounts.ends_with(&format!(",{mount}")), "{}", mounts);
            let program = format!("{root}/pretrain_gpt.py");
            prop_assert!(seen.args.contains(&program), "{:?}", seen.args);
            let load = seen.args.iter().position(|arg| arg == "--load").unwrap();
            prop_assert_eq!(&seen.args[load + 1], &checkpoint);
        }
    }
}
