//! Every request and response of the HTTP API below `/api/v1`, and of its event stream.
//!
//! The server, the uploader and the web app's worker share these types. With feature `schema` they describe
//! themselves in the server's OpenAPI document, so their documentation is what users of the API read. Times
//! are texts in RFC 3339, in UTC.

mod access;
mod alerts;
mod events;
mod history;
mod logs;
mod problem;
mod progress;
mod runs;
mod scores;

pub use access::{
    AccessToken, CallerAccess, NewShareLink, NewToken, ShareLink, ShareLinkRequest, ShareLinks, TokenRequest,
    TokenScope, Tokens, is_token_name,
};
pub use alerts::{Acknowledgement, AcknowledgementRequest, AlertMessage, AlertRecord, AlertRecords};
pub use events::{EventData, EventKind};
pub use history::RunHistories;
pub use logs::{ExpectedLog, LogFault, LogLine, LogLines, LogProgress};
pub use problem::ProblemDetails;
pub use progress::{RunProgress, RunState, UnfinishedRun, UnfinishedRuns};
pub use runs::{RunPage, RunSummary, ServerLimits, UploadOutcome, UploadedRun};
pub use scores::{ScoreSummary, ScoreVersion, ScoreVersions};

/// Declares an enum that is a short id on the wire, in the database and on the command line.
macro_rules! ids {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident $id:literal $($title:literal)?),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$variant_meta])* $variant),+
        }

        impl $name {
            /// All values, in order.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// Returns the id: the value's name in JSON, in the database and on the command line.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $($name::$variant => $id),+
                }
            }

            /// Returns the name for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $($name::$variant => $crate::choices::title!($id $($title)?)),+
                }
            }

            /// Returns the value with an id, if there is one.
            #[must_use]
            pub fn from_id(id: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.id() == id)
            }
        }
    };
}
use ids;

#[cfg(test)]
mod tests {
    use super::*;

    /// The serialized form, the id and the way back must agree: the database and the wire hold the same text.
    #[test]
    fn ids_are_the_serialized_form() {
        for kind in EventKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.id());
            assert_eq!(EventKind::from_id(kind.id()), Some(*kind));
        }
        for scope in TokenScope::ALL {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.id());
        }
        for state in RunState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.id());
        }
        for fault in LogFault::ALL {
            assert_eq!(serde_json::to_value(fault).unwrap(), fault.id());
        }
        for outcome in UploadOutcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.id());
        }
    }

    #[test]
    fn states_of_older_and_newer_runners_can_be_read() {
        let read = |text: &str| serde_json::from_value::<RunState>(text.into()).unwrap();
        assert_eq!(read("ran out of memory"), RunState::OutOfMemory);
        assert_eq!(read("being submitted"), RunState::Submitting);
        assert_eq!(read("a state of a newer runner"), RunState::Unknown);
    }

    #[test]
    fn a_score_summary_reads_a_whole_report() {
        use crate::result::{Intake, Report, View};
        let mut intake = Intake::new("x.out", &crate::spec::Spec::default());
        intake.feed(b"nothing that is a step\n");
        let report = Report::of(&intake.finish(), &View::default());
        let text = serde_json::to_string(&report).unwrap();
        let summary: ScoreSummary = serde_json::from_str(&text).unwrap();
        assert_eq!((summary.status, summary.recipe), (report.status, report.recipe));
    }
}
