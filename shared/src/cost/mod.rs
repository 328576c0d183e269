//! Cost: the price of GPUs, the energy of a run, and what both add up to.
//!
//! Prices and power come from data files with their sources, or from the user ([`Price`], [`Power`]). A price contains power,
//! cooling and network, so energy is reported beside the cost and never added to it. The exception is a price of 0, for GPUs that
//! are already paid for: then a run costs only its energy and storage.

mod currency;
mod energy;
mod power;
mod prices;
mod run_cost;

pub use currency::Currency;
pub use energy::{ElectricityPrice, RunEnergy};
pub use power::{Power, PowerChoice, PowerSource};
pub use prices::{OwnPrices, Price, PriceSource, PurchaseForm, RentalTerm};
pub use run_cost::{CheckpointStorage, RunCost};
