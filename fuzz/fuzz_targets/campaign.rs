//! Any text: a campaign or a cluster's profile is read, or refused with reasons that no terminal acts on; what is read
//! is written and read back equal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::campaign::{Campaign, CampaignProblem, Clusters, plan};

fuzz_target!(|text: &str| {
    let (campaign, profiles) = text.split_once("\n# clusters.toml\n").unwrap_or((text, text));
    let clusters = Clusters::parse(profiles).inspect_err(|problems| check(problems));
    match Campaign::parse_with_lines(campaign) {
        Ok((campaign, lines)) => {
            let written = campaign.to_text();
            let read = Campaign::parse(&written).expect("what is written can be read");
            assert_eq!(read, campaign, "{written}");
            assert_eq!(read.to_text(), written);
            if let Some(cluster) = clusters.as_ref().ok().and_then(|clusters| clusters.get(&campaign.cluster))
                && let Err(problems) = plan(&campaign, &lines, cluster, Ok)
            {
                check(&problems);
            }
        }
        Err(problems) => check(&problems),
    }
});

fn check(problems: &[CampaignProblem]) {
    assert!(!problems.is_empty());
    for problem in problems {
        assert!(!problem.to_string().chars().any(char::is_control), "{problem:?}");
    }
}
