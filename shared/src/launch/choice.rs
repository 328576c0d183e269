//! Launch styles and cluster managers.

use crate::choices::choices;
use crate::field::Field;
use crate::problem::Problem;
use std::str::FromStr;

choices! {
    /// The launcher of a scenario.
    Style of Field::Style {
        /// The release's launcher, which activates the recipe's Python environment and finds its directory.
        LlmbRun "llmb-run",
        /// The recipe's script on a login node, which submits through NeMo-Run.
        LaunchSh "launch-sh",
        /// The recipe's script as a batch job.
        Sbatch "sbatch",
        /// Megatron-Bridge's own script on a login node, which submits through NeMo-Run.
        TrainSh "train-sh",
        /// Megatron-LM in a generated batch job, without a release.
        MegatronLm "megatron-lm",
    }
}

impl Style {
    /// Returns the fields that the launcher reads from its own configuration, so that given values have no effect.
    pub const fn configures(self) -> &'static [Field] {
        match self {
            Style::LlmbRun => &[Field::Account, Field::Partition, Field::Gres, Field::RecipeDir],
            Style::LaunchSh | Style::Sbatch | Style::TrainSh | Style::MegatronLm => &[],
        }
    }
}

choices! {
    /// A cluster manager.
    #[derive(Default)]
    ClusterType {
        /// Slurm.
        #[default]
        Slurm "slurm",
        /// NVIDIA Run:ai, on Kubernetes.
        Runai "runai",
    }
}

impl FromStr for ClusterType {
    type Err = Problem;

    fn from_str(text: &str) -> Result<ClusterType, Problem> {
        // The documents also write Run:ai.
        let wanted = text.trim().to_ascii_lowercase().replace(':', "");
        ClusterType::ALL
            .into_iter()
            .find(|manager| manager.id() == wanted)
            .ok_or_else(|| Problem::unknown(Field::ClusterType, text, ClusterType::ALL.map(ClusterType::id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_style_once() {
        let help = Field::Style.help();
        let count = |style: Style| help.split([' ', ',', ';']).filter(|word| *word == style.id()).count();
        assert_eq!(Style::ALL.map(count), [1; 5], "{help}");
    }
}
