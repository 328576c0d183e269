//! Calibration: fitting the constants of the estimate to measurements, and judging it by rows that it has not seen.

pub mod fit;
