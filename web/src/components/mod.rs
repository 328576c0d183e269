//! Components that several pages use.

pub(crate) mod chart;
pub(crate) mod combobox;
pub(crate) mod copy;
pub(crate) mod field;
pub(crate) mod filters;
pub(crate) mod focus;
pub(crate) mod frame;
pub(crate) mod gpu_mark;
pub(crate) mod maths;
pub(crate) mod numbers;
pub(crate) mod passing_note;
pub(crate) mod plots;
pub(crate) mod run_table;
pub(crate) mod settings;
pub(crate) mod share;
pub(crate) mod theme;
pub(crate) mod trouble;
