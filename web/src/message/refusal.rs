//! A problem that a worker found, as the page shows it.

use serde::{Deserialize, Serialize};
use trainplan_shared::field::Field;
use trainplan_shared::message::Front;
use trainplan_shared::problem::Problem;

/// A [`Problem`] found by the worker, in the words of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    #[serde(with = "field_flag")]
    field: Field,
    given: String,
    message: String,
    closest: Option<String>,
    suggestions: Vec<String>,
    allowed: Vec<String>,
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let Problem { field, given, message, closest, suggestions, allowed } = problem;
        Refusal { field, given, message: message.text(Front::Page), closest, suggestions, allowed }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let Refusal { field, given, message, closest, suggestions, allowed } = refusal;
        Problem { field, given, message: message.into(), closest, suggestions, allowed }
    }
}

/// Sends a field as its flag.
pub(super) mod field_flag {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use trainplan_shared::field::Field;

    pub(in super::super) fn serialize<S: Serializer>(
        field: &Field,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(field.flag())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Field, D::Error> {
        let flag = String::deserialize(deserializer)?;
        Field::from_flag(&flag).ok_or_else(|| D::Error::custom("unknown field"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::message;

    #[test]
    fn a_problem_reaches_the_page_with_its_field_and_suggestions() {
        let message = message![Field::Gpus, " must be a multiple of 32."];
        let sent = Refusal::from(Problem::new(Field::Gpus, 1200, message).suggest([1184, 1216]));
        let posted = serde_json::to_string(&sent).expect("JSON");
        assert!(posted.contains(r#""field":"gpus""#), "{posted}");
        let received = Problem::from(serde_json::from_str::<Refusal>(&posted).expect("a refusal"));
        assert_eq!(received.field, Field::Gpus);
        assert_eq!(received.text(Front::Page), "GPUs must be a multiple of 32. Use 1,184 or 1,216.");
    }
}
