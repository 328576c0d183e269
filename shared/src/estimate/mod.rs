//! The prediction: how long a step takes and what a GPU must hold, from the inputs alone.

mod inputs;

pub use inputs::Inputs;
