//! Judges the connection and the login node.

use super::super::answers::Answers;
use super::super::{Finding, LinkMeasurements};
use super::{FULL_KIB, size};
use std::time::Duration;

/// Above these the connection counts as slow.
const SLOW_CONNECTING: Duration = Duration::from_secs(10);
const SLOW_ROUND_TRIP: Duration = Duration::from_secs(2);

/// Above this difference, times of the queue and of logs can't be compared with ours.
const MUCH_SKEW_S: f64 = 5.0;

/// Free space in the home directory below which there is a warning: runs keep their files there.
const HOME_KIB: u64 = 1 << 20;

/// Judges the connection.
pub(super) fn connection(measured: &LinkMeasurements, answers: &Answers, found: &mut Vec<Finding>) {
    let LinkMeasurements { connecting, round_trip, skew_s, sftp } = *measured;
    let seen = format!(
        "{} on {}, connected in {}, {} per command",
        answers.one("user").unwrap_or("?"),
        answers.one("host").unwrap_or("?"),
        time(connecting),
        time(round_trip)
    );
    found.push(if connecting > SLOW_CONNECTING || round_trip > SLOW_ROUND_TRIP {
        Finding::warning(
            "ssh",
            seen,
            "The login node is slow or far away. Every step takes at least this long. Try another login \
             node.",
        )
    } else {
        Finding::ok("ssh", seen)
    });
    found.push(match sftp {
        true => Finding::ok("sftp", "offered"),
        false => Finding::warning(
            "sftp",
            "not offered",
            "No action needed. Files are transferred through the shell, which is slower.",
        ),
    });
    found.push(match skew_s {
        None => Finding::warning(
            "clock",
            "`date +%s` does not work",
            "Check the `date` command on the login node.",
        ),
        Some((skew, unsure)) if skew.abs() - unsure > MUCH_SKEW_S => Finding::warning(
            "clock",
            format!("{:.1} s {} this machine's", skew.abs(), if skew > 0.0 { "ahead of" } else { "behind" }),
            "Correct the wrong clock (NTP). Until then, times of the queue and of logs don't match this \
             machine's.",
        ),
        Some((_, unsure)) => Finding::ok(
            "clock",
            format!("agrees with this machine's within {:.1} s", (unsure * 10.0).ceil().max(1.0) / 10.0),
        ),
    });
}

/// Judges the login node itself.
pub(super) fn machine(answers: &Answers, found: &mut Vec<Finding>) {
    found.push(Finding::ok(
        "system",
        format!(
            "{}, login shell {}",
            answers.one("system").unwrap_or("unknown"),
            answers.one("shell").unwrap_or("unknown")
        ),
    ));
    let lacks = answers.all("lacks");
    found.push(if lacks.is_empty() {
        Finding::ok("tools", "all found")
    } else {
        Finding::problem(
            "tools",
            format!("missing: {}", lacks.join(", ")),
            "Ask for coreutils and util-linux to be installed, or add them to PATH for shells other than \
             login shells.",
        )
    });
    let home = answers.one("home").unwrap_or("?");
    let free = answers.one("home-free").and_then(|free| free.parse::<u64>().ok());
    found.push(match (answers.one("home-refuses"), free) {
        (Some(refusal), _) => Finding::problem(
            "home",
            format!("can't write to {home}: {refusal}"),
            "Free some of your quota, or correct the permissions. Every run keeps its files there.",
        ),
        (None, Some(free)) if free < FULL_KIB => Finding::problem(
            "home",
            format!("{home} is full: {} free", size(free)),
            "Free some space. Every run keeps its script and its records there.",
        ),
        (None, Some(free)) if free < HOME_KIB => Finding::warning(
            "home",
            format!("{home} has only {} free", size(free)),
            "Free some space. Every run keeps its script and its records there.",
        ),
        (None, Some(free)) => Finding::ok("home", format!("{home}, writable, {} free", size(free))),
        (None, None) => Finding::ok("home", format!("{home}, writable")),
    });
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}
