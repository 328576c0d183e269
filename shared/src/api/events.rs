//! The stream of events, `/api/v1/events`.

use serde::{Deserialize, Serialize};

super::ids! {
    /// The kind of a server-sent event.
    EventKind {
        /// A run was added, received its log, or was scored again.
        Run "run",
        /// An unfinished run reported its progress.
        Progress "progress",
        /// A run was deleted.
        Deleted "deleted",
        /// A run is a regression.
        Alert "alert",
        /// Events were missed: fetch the lists again.
        Again "again",
    }
}

/// The data of a server-sent event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EventData {
    /// The run's id; empty for `again`.
    pub id: String,
}
