//! `trainplan launch`: the commands that start a scenario.

use super::Failure;
use super::output::FormatArg;
use super::scenario::ScenarioArgs;

/// Print the commands that launch a scenario
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    format: FormatArg,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let _ = (self.scenario.spec()?.scenario()?, self.format.or_table());
        Ok(())
    }
}
