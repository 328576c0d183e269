//! Texts of `column=value` pairs, which change a known GPU or software, or describe a model.

use crate::field::Field;
use crate::problem::{Problem, most_alike};
use crate::words::words;

/// Returns the value of each of `columns` from `column=value` pairs with commas between them.
///
/// # Errors
/// A pair without `=` or without a value; a column that is unknown or given twice.
pub(crate) fn pairs<'a>(
    field: Field,
    text: &'a str,
    columns: &[&str],
) -> Result<Vec<Option<&'a str>>, Problem> {
    let noun = match field {
        Field::Stack => "property",
        Field::ClusterFactor => "factor",
        _ => "field",
    };
    let mut values = vec![None; columns.len()];
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let refuse = |message: String| Problem::new(field, pair, message);
        let Some((column, value)) = pair.split_once('=') else {
            return Err(refuse(words!("\"{pair}\" must be {noun}=value.")).worded(|problem| {
                let closest = most_alike(pair, columns.iter().copied()).map(|column| format!("{column}=…"));
                Problem { closest, ..problem }
            }));
        };
        let (column, value) = (column.trim(), value.trim());
        let Some(place) = columns.iter().position(|known| *known == column) else {
            let problem = refuse(words!("Unknown {noun} \"{column}\" in \"{pair}\"."));
            return Err(problem.closest_to(column, columns.iter().copied()).allow(columns));
        };
        if value.is_empty() {
            return Err(refuse(words!("The {noun} {column} has no value.")));
        }
        if values[place].replace(value).is_some() {
            return Err(refuse(words!("The {noun} {column} is given twice.")));
        }
    }
    Ok(values)
}
