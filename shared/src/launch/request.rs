//! What the job of a launch asks Slurm for.

use super::options::LaunchOptions;
use super::values::TimeLimit;

/// What the job of a launch asks Slurm for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    /// Number of nodes.
    pub nodes: u32,
    /// GPUs that it uses on each node.
    pub gpus_per_node: u32,
    /// Whether it asks for these GPUs. Otherwise it gets them with whole nodes, and Slurm may not know of them.
    pub asks_for_gpus: bool,
    /// The time limit that the options or the release's script set; `None` for the partition's default.
    pub time_limit: Option<TimeLimit>,
    /// The names of its quality of service: usually one; empty for the default of its account.
    pub qos: Vec<String>,
}

impl LaunchOptions {
    /// Returns the names of the quality of service that the additional sbatch parameters set; empty if they set none.
    pub fn qos(&self) -> Vec<String> {
        let param = self.slurm_params.iter().find(|param| param.key == "qos");
        let names = param.and_then(|param| param.value.as_deref()).unwrap_or_default().split(',');
        names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::spec::Spec;

    #[test]
    fn the_quality_of_service_is_read_from_the_parameters() {
        let qos = |params: &str| {
            LaunchOptions::from_spec(&Spec::default().with(Field::SlurmParams, params)).unwrap().qos()
        };
        assert_eq!(qos("reservation=maint;qos=high"), ["high"]);
        assert_eq!(qos("qos=high, low"), ["high", "low"]);
        assert_eq!(qos("reservation=maint"), [] as [String; 0]);
    }
}
