//! Judges whether the user may use accounts and qualities of service.

use super::super::Finding;
use super::super::answers::{Answers, CommandOutput};
use super::super::scope::{QosUse, Scope};
use super::seen;

/// Returns whether Slurm checks a kind of limit, such as `associations`.
pub(super) fn enforces(config: CommandOutput, kind: &str) -> bool {
    config.setting("AccountingStorageEnforce").is_some_and(|kinds| kinds.contains(kind))
}

/// Judges the accounts.
pub(super) fn accounts(scope: &Scope, config: CommandOutput, answers: &Answers, found: &mut Vec<Finding>) {
    let enforced = enforces(config, "associations");
    if scope.accounts.is_empty() && scope.is_whole {
        found.push(match enforced {
            true => Finding::warning(
                "account",
                "the profile has no account, but this Slurm requires one",
                "Set account in the profile unless you want your default one. `sacctmgr show associations` \
                 lists your accounts.",
            ),
            false => Finding::ok("account", "none in the profile"),
        });
    }
    found.extend(scope.accounts.iter().map(|name| account(name, enforced, answers)));
}

/// Judges whether the user may use an account. `enforced` says whether Slurm checks that.
fn account(name: &str, enforced: bool, answers: &Answers) -> Finding {
    match answers.output(&format!("account {name}")) {
        Some(said) if said.code == 0 && said.lines.iter().any(|line| !line.is_empty()) => {
            Finding::ok("account", format!("you may use {name}"))
        }
        Some(said) if said.code == 0 && enforced => Finding::problem(
            "account",
            format!("you may not use {name}"),
            "Set account to one of yours. `sacctmgr show associations user=$USER` lists them.",
        ),
        said if enforced => Finding::warning(
            "account",
            format!("can't check {name}: {}", seen(said)),
            "Check that Slurm accepts it: `sbatch --test-only --account=... --wrap=true`",
        ),
        _ => Finding::ok("account", format!("{name} (this Slurm does not check accounts)")),
    }
}

/// Judges the qualities of service.
pub(super) fn qos(scope: &Scope, config: CommandOutput, answers: &Answers, found: &mut Vec<Finding>) {
    let enforced = enforces(config, "qos");
    found.extend(scope.qos.iter().filter_map(|used| one_qos(used, enforced, answers)));
}

/// Judges whether a quality of service exists, and whether the user may use it. `None` if there is a finding about the account
/// already. `enforced` says whether Slurm checks that.
fn one_qos(used: &QosUse, enforced: bool, answers: &Answers) -> Option<Finding> {
    const CHECK: &str = "QOS";
    let name = &used.name;
    if !enforced {
        return Some(Finding::ok(CHECK, format!("{name} (this Slurm does not check QOS)")));
    }
    let known = answers.output(&format!("qos {name}"));
    let allowed = answers.output("associations");
    let (Some(known), Some(allowed)) =
        (known.filter(|said| said.code == 0), allowed.filter(|said| said.code == 0))
    else {
        let failed = [known, allowed].into_iter().find(|said| said.is_none_or(|said| said.code != 0));
        return Some(Finding::warning(
            CHECK,
            format!("can't check {name}: {}", seen(failed.flatten())),
            "Check that Slurm accepts it: `sbatch --test-only --qos=... --wrap=true`",
        ));
    };
    if known.lines.iter().all(String::is_empty) {
        return Some(Finding::problem(
            CHECK,
            format!("{name} does not exist"),
            "Correct qos in slurm-params. `sacctmgr show qos format=Name` lists the names.",
        ));
    }
    // One line for each account: its name, and the names of its qualities of service.
    let rows = allowed.lines.iter().filter_map(|line| line.split_once('|'));
    let of_account =
        rows.filter(|(account, _)| used.account.as_deref().is_none_or(|wanted| wanted == *account));
    let lists: Vec<&str> = of_account.map(|(_, names)| names).collect();
    if lists.is_empty() && used.account.is_some() {
        return None;
    }
    let with = used.account.as_ref().map_or(String::new(), |account| format!(" with account {account}"));
    let is_allowed = lists.iter().flat_map(|names| names.split(',')).any(|allowed| allowed == name.as_str());
    Some(match is_allowed {
        true => Finding::ok(CHECK, format!("you may use {name}{with}")),
        false => Finding::problem(
            CHECK,
            format!("you may not use {name}{with}"),
            "Correct qos in slurm-params. `sacctmgr show associations user=$USER format=Account,QOS` lists what you may use.",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::*;

    #[test]
    fn a_quality_of_service_must_exist_and_be_allowed() {
        const HIGH: &str = "qos high!\t0\nqos high\thigh|\n";
        const ASSOCIATIONS: &str =
            "associations!\t0\nassociations\tresearch|normal\nassociations\tproduct|high,normal\n";
        let judged = |account: Option<&str>, text: &str| {
            let used = QosUse { name: "high".into(), account: account.map(Into::into) };
            one_qos(&used, true, &Answers::read(text)).map(|finding| (finding.verdict, finding.seen))
        };
        let both = format!("{HIGH}{ASSOCIATIONS}");
        let found = |verdict, seen: &str| Some((verdict, seen.to_string()));
        assert_eq!(
            judged(Some("product"), &both),
            found(Verdict::Ok, "you may use high with account product")
        );
        assert_eq!(
            judged(Some("research"), &both),
            found(Verdict::Problem, "you may not use high with account research")
        );
        assert_eq!(judged(None, &both), found(Verdict::Ok, "you may use high"));
        assert_eq!(judged(Some("other"), &both), None);
        let missing = format!("qos high!\t0\nqos high\t\n{ASSOCIATIONS}");
        assert_eq!(judged(None, &missing), found(Verdict::Problem, "high does not exist"));
        assert_eq!(judged(None, HIGH), found(Verdict::Warning, "can't check high: no answer"));
    }

    #[test]
    fn a_slurm_that_does_not_check_qos_is_not_asked() {
        let used = QosUse { name: "high".into(), account: None };
        let found = one_qos(&used, false, &Answers::default()).unwrap();
        assert_eq!(
            (found.verdict, found.seen.as_str()),
            (Verdict::Ok, "high (this Slurm does not check QOS)")
        );
    }
}
