//! The domain of Trainplan. It has no I/O, clock, randomness or threads, so that the browser and the command line compute
//! the same numbers, bit for bit.

pub mod api;
pub mod architecture;
pub mod assumption;
pub mod batch;
pub mod benchmarks;
pub mod bounds;
#[cfg(feature = "calibrate")]
pub mod calibration;
pub mod campaign;
pub mod catalog;
mod choices;
pub mod cluster_factors;
pub mod compare;
pub mod comparison_file;
pub mod convention;
pub mod cost;
mod data_file;
pub mod deadline;
mod decimal;
pub mod estimate;
pub mod explain;
pub mod field;
pub mod flops;
pub mod goodput;
pub mod gpu_counts;
pub mod history;
pub mod hugging_face;
pub mod launch;
pub mod layout;
pub mod link;
pub mod log;
pub mod matching;
#[cfg(feature = "calibrate")]
pub mod measurements;
pub mod message;
pub mod metrics;
pub mod options;
mod pairs;
pub mod planning;
pub mod precision;
pub mod probe;
pub mod problem;
pub mod question;
pub mod range;
pub mod releases;
pub mod result;
pub mod scaling;
pub mod scenario;
pub mod search;
pub mod sorting;
pub mod spec;
pub mod stack;
pub mod statistics;
pub mod tables;
pub mod text;
pub mod units;
