//! A [`Spec`] as an object of flags: `{"recipe": "...", "gbs": "768"}`.

use crate::field::Field;
use crate::spec::Spec;
use serde::{Deserialize, Deserializer, Serializer};
use std::collections::BTreeMap;

pub(super) fn serialize<S: Serializer>(spec: &Spec, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(spec.iter().map(|(field, text)| (field.flag(), text)))
}

/// Reads the object. Flags that this program does not know are ignored.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Spec, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    let mut spec = Spec::default();
    for (flag, text) in texts {
        if let Some(field) = Field::from_flag(&flag) {
            spec.set(field, text);
        }
    }
    Ok(spec)
}
