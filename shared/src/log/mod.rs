//! Training logs: one streaming parser for every format.
