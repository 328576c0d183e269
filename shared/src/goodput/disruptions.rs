//! What keeps a run from training, and for how long.

use super::FailureRate;
use crate::assumption::Assumption;

/// Bytes per second in one GB/s.
const GIGA: f64 = 1e9;

/// Returns the size of a checkpoint of a model with this many parameters in all, in bytes: BF16 weights, FP32 weights and
/// two FP32 moments, 14 bytes each.
pub fn checkpoint_bytes(parameters: f64) -> f64 {
    Assumption::CheckpointSize.value() * parameters
}

/// How long a save blocks training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SaveTime {
    /// Seconds per save. With asynchronous saves it is only the copy to host memory.
    Seconds(f64),
    /// The size of the checkpoint divided by this many bytes per second of the whole job.
    Bandwidth(f64),
    /// The size of the checkpoint divided by the assumed bandwidth of each GPU.
    Assumed,
}

impl SaveTime {
    /// Returns the seconds that a save of `bytes` blocks a job on `gpus` GPUs.
    pub fn seconds(self, bytes: f64, gpus: u32) -> f64 {
        match self {
            SaveTime::Seconds(seconds) => seconds,
            SaveTime::Bandwidth(bytes_per_s) => bytes / bytes_per_s,
            SaveTime::Assumed => bytes / (Assumption::SaveBandwidth.value() * GIGA * f64::from(gpus)),
        }
    }
}

/// The time from a failure until training continues, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recovery {
    /// Detecting the failure, starting the job again and loading the checkpoint.
    pub restart_s: f64,
    /// Waiting in the queue; 0 if the job keeps its allocation and replaces the broken node by a spare one.
    pub queue_s: f64,
}

impl Recovery {
    /// Returns the assumed recovery of a job that keeps its allocation.
    pub fn assumed() -> Recovery {
        Recovery { restart_s: Assumption::RecoveryTime.value(), queue_s: 0.0 }
    }

    /// Returns the recovery from its parts, in seconds.
    pub fn of_parts(detect_s: f64, queue_s: f64, start_s: f64, load_s: f64) -> Recovery {
        Recovery { restart_s: detect_s + start_s + load_s, queue_s }
    }

    /// Returns the total, in seconds.
    pub fn seconds(self) -> f64 {
        self.restart_s + self.queue_s
    }
}

/// Everything that keeps a run from training. The default is assumed, with the sources of [`Assumption`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disruptions {
    /// How often the job fails.
    pub failure_rate: FailureRate,
    /// The time from a failure until training continues.
    pub recovery: Recovery,
    /// How long a save blocks training.
    pub save: SaveTime,
    /// Time for evaluation, warm-up and batch ramps, as a share of the training time: 0.02 adds 2 %.
    pub overhead: f64,
    /// Spare nodes, as a share of the nodes that train.
    pub spare_share: f64,
}

impl Default for Disruptions {
    fn default() -> Disruptions {
        Disruptions {
            failure_rate: FailureRate::Studies,
            recovery: Recovery::assumed(),
            save: SaveTime::Assumed,
            overhead: Assumption::Overhead.value(),
            spare_share: Assumption::SpareNodes.value(),
        }
    }
}

impl Disruptions {
    /// Returns the number of spare nodes for a number of nodes, rounded: a job on less than 10 nodes has none at 5 %.
    pub fn spare_nodes(&self, nodes: u32) -> u32 {
        (f64::from(nodes) * self.spare_share).round() as u32
    }

    /// Returns the most nodes that train if there are `nodes` with the spare ones.
    pub fn training_nodes(&self, nodes: u32) -> u32 {
        let mut training = nodes;
        while training + self.spare_nodes(training) > nodes {
            training -= 1;
        }
        training
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_8b_checkpoint_has_112_gb_and_512_gpus_save_a_405b_in_91_s() {
        // The recipe collection's 8B checkpoint has about 105 GB.
        assert_eq!(checkpoint_bytes(8e9), 112e9);
        let seconds = SaveTime::Assumed.seconds(checkpoint_bytes(405e9), 512);
        assert!((seconds - 90.8).abs() < 0.1, "{seconds}");
        assert_eq!(SaveTime::Bandwidth(40e9).seconds(80e9, 8), 2.0);
        assert_eq!(SaveTime::Seconds(10.0).seconds(80e9, 8), 10.0);
    }

    #[test]
    fn the_queue_counts_unless_the_job_keeps_its_allocation() {
        assert_eq!(Recovery::of_parts(60.0, 1800.0, 120.0, 90.0).seconds(), 2070.0);
        assert_eq!(Recovery::assumed().seconds(), 600.0);
    }

    #[test]
    fn one_node_in_twenty_is_spare() {
        let disruptions = Disruptions::default();
        assert_eq!([1, 9, 10, 64, 2048].map(|nodes| disruptions.spare_nodes(nodes)), [0, 0, 1, 3, 102]);
    }

    #[test]
    fn the_nodes_that_train_leave_room_for_the_spare_ones() {
        let disruptions = Disruptions::default();
        assert_eq!([0, 9, 10, 128].map(|nodes| disruptions.training_nodes(nodes)), [0, 9, 9, 122]);
        for nodes in 1..3000 {
            let training = disruptions.training_nodes(nodes);
            let in_all = |training: u32| training + disruptions.spare_nodes(training);
            assert!(in_all(training) <= nodes && in_all(training + 1) > nodes, "{nodes}");
        }
    }
}
