//! Megatron-Bridge's own performance recipes at its version 0.6.0 of August 2026.
//!
//! Its recipes were read from the wheel megatron_bridge-0.6.0-py3-none-any.whl. Neither the wheel nor the source package has the
//! launcher. train.sh came to the repository in July 2026 (pull request 4856; 4945 for these recipes, 5222 for other numbers of
//! GPUs), and took `--additional-slurm-params` by 27 July (review of pull request 5035).

use super::{ReleaseContract, SetupStep, bridge_main};

pub(super) use super::bridge_main::SOFTWARE;

pub(super) const CONTRACT: ReleaseContract = bridge_main::contract(&[SetupStep::BridgeCheckout("v0.6.0")]);
