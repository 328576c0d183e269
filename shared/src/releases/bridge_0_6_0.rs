//! Megatron-Bridge's own performance recipes at its version 0.6.0 of August 2026.
//!
//! Its recipes were read from the wheel megatron_bridge-0.6.0-py3-none-any.whl. The wheel has no launcher; train.sh came to the
//! repository in July 2026 (pull request 4856), before that version.

use super::{ReleaseContract, SetupStep, bridge_main};

pub(super) use super::bridge_main::SOFTWARE;

pub(super) const CONTRACT: ReleaseContract = bridge_main::contract(&[SetupStep::BridgeCheckout("v0.6.0")]);
