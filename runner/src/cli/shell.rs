//! `trainplan completions` and `trainplan man`: shell completions and the man page.

use super::{Cli, Failure};
use clap::CommandFactory;
use clap_complete::Shell;
use std::io;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  trainplan completions bash > \
                  ~/.local/share/bash-completion/completions/trainplan")]
pub(super) struct Completions {
    /// Name of the shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), Failure> {
        // The generator panics if it can't write, so it writes to a buffer.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "trainplan", &mut script);
        Ok(io::Write::write_all(&mut io::stdout(), &script)?)
    }
}

/// Print the man page
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  trainplan man | man -l -")]
pub(super) struct Man {}

impl Man {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        for command in Cli::command().get_subcommands().filter(|command| command.get_name() != "help") {
            let title = format!("trainplan-{}", command.get_name());
            clap_mangen::Man::new(command.clone()).title(title).render(&mut page)?;
        }
        Ok(io::Write::write_all(&mut io::stdout(), &page)?)
    }
}
