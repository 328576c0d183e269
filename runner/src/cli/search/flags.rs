//! The flags of a search.

use crate::cli::fields;
use clap::{ArgMatches, Command};
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::spec::Spec;

/// The flags under each heading.
const GROUPS: [(&str, &[Field]); 5] = [
    ("Training", &[Field::Model, Field::Tokens, Field::SeqLen, Field::Gbs, Field::BatchTokens]),
    (
        "Search space",
        &[Field::GpuTypes, Field::GpuRange, Field::Precisions, Field::Stack, Field::Lock, Field::Headroom],
    ),
    ("Goal", &[Field::Deadline, Field::Chance, Field::Budget, Field::Objective]),
    ("Calibration", &[Field::GemmTflops, Field::ClusterFactor, Field::Overlap]),
    ("Whole run", &[]),
];

/// The fields under a heading. Those of the whole run come from the table of fields.
fn fields_of(heading: &str, named: &'static [Field]) -> impl Iterator<Item = Field> {
    let is_whole_run = heading == "Whole run";
    let whole_run =
        Field::of_group(FieldGroup::Goal).filter(move |field| is_whole_run && field.is_of_whole_run());
    named.iter().copied().chain(whole_run)
}

/// What was typed into the flags of a search.
#[derive(Debug)]
pub(super) struct SearchFlags(pub(super) Spec);

impl clap::FromArgMatches for SearchFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SearchFlags, clap::Error> {
        let all = GROUPS.into_iter().flat_map(|(heading, named)| fields_of(heading, named));
        Ok(SearchFlags(fields::read(matches, all, Field::search_flag)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SearchFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for SearchFlags {
    fn augment_args(command: Command) -> Command {
        let command = GROUPS.into_iter().fold(command, |command, (heading, named)| {
            fields::add(command, heading, fields_of(heading, named), Field::search_flag)
        });
        // A search assumes other values than an estimate.
        [
            (
                Field::Tokens,
                "Tokens to train, from 1M to 1,000T, such as 15T [default: the compute-optimal number, 20 per active \
                 parameter]",
            ),
            (
                Field::GpuTypes,
                "GPU types to compare, separated by commas (`trainplan gpus` lists all) [default: h100,b200]",
            ),
            (Field::Gbs, "Global batch size, in sequences, from 1 to 4,194,304 [default: see --batch-tokens]"),
            (Field::SeqLen, "Sequence length, in tokens, from 1 to 16,777,216 [default: the model's]"),
            (
                Field::Stack,
                "Training software, such as nemo-2, megatron-bridge-26.06 or torchtitan [default: the newest \
                 Megatron-Bridge]",
            ),
            (Field::Purchase, "How the GPUs are paid for: owned (total cost of ownership), reserved or on-demand [default: reserved, or the cheapest form with a known price]"),
        ]
        .into_iter()
        .fold(command, |command, (field, help)| command.mut_arg(field.search_flag(), |flag| flag.help(help)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SearchFlags::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Args as _};

    #[test]
    fn the_help_of_a_search_names_the_bounds() {
        let command = SearchFlags::augment_args(Command::new("search"));
        for field in [Field::Tokens, Field::SeqLen, Field::Gbs, Field::GpuRange, Field::Deadline] {
            let arg = command.get_arguments().find(|arg| arg.get_id().as_str() == field.search_flag());
            let help = arg.and_then(Arg::get_help).unwrap().to_string();
            let bounds = field.bounds();
            assert!(help.contains(&format!("from {} to {}", bounds.least, bounds.most)), "{help}");
        }
    }
}
