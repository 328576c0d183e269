//! The line in which a job states its scenario: `trainplan scenario: v=1&m=llama3.1-8b&gpu=h100`.
//!
//! Launch scripts print it into the logs that don't name the model or the GPU type, and so can any script of a user. The text
//! is the query of a link to the scenario.

use super::hit::Hit;
use super::text::excerpt;

/// The beginning of the line.
pub const STATED_SCENARIO: &str = "trainplan scenario: ";

/// The longest text that is kept, in characters. That of a user's own model has a few hundred.
const LONGEST: usize = 2048;

/// Returns the text of a line that is there to its end; none of a longer one.
pub(super) fn scenario(hit: &Hit) -> Option<String> {
    let text = excerpt(hit.after(), LONGEST + 1);
    (hit.is_whole() && !text.is_empty() && text.chars().count() <= LONGEST).then_some(text)
}
