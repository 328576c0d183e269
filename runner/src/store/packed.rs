//! Values of SQLite's columns as items of a JSON array, so that a row is a single text. sqlx copies each value of a row on its own,
//! into memory that one thread allocates and another one frees. With dozens of columns, that takes most of the time of a list.

use super::blobs::LogHash;
use serde_json::Value;

/// A value of a column that is read as an item of a JSON array.
pub(super) trait PackedValue: Sized {
    /// Returns SQLite's expression for the item. Where the column has a value of a wrong type, which any program can store in
    /// SQLite, this is an item that [`PackedValue::unpack`] refuses.
    fn item(column: &str) -> String;

    /// Reads an item; none if the column has a value of a wrong type.
    fn unpack(item: Value) -> Option<Self>;
}

impl PackedValue for String {
    fn item(column: &str) -> String {
        // SQLite turns numbers into texts when it stores them in such a column. JSON has no BLOB.
        format!("iif(typeof({column}) = 'blob', 0, {column})")
    }

    fn unpack(item: Value) -> Option<String> {
        match item {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl PackedValue for LogHash {
    fn item(column: &str) -> String {
        String::item(column)
    }

    fn unpack(item: Value) -> Option<LogHash> {
        LogHash::parse(item.as_str()?).ok()
    }
}

impl PackedValue for i64 {
    fn item(column: &str) -> String {
        format!("iif(typeof({column}) IN ('integer', 'null'), {column}, '')")
    }

    fn unpack(item: Value) -> Option<i64> {
        item.as_i64()
    }
}

impl PackedValue for f64 {
    fn item(column: &str) -> String {
        // SQLite would write 15 digits into JSON, which don't tell all numbers apart. With all digits that it can compute, the nearest
        // number is the stored one.
        format!(
            "CASE typeof({column}) WHEN 'real' THEN format('%!.20g', {column}) WHEN 'null' THEN NULL ELSE '' END"
        )
    }

    fn unpack(item: Value) -> Option<f64> {
        item.as_str()?.parse().ok()
    }
}

impl<T: PackedValue> PackedValue for Option<T> {
    fn item(column: &str) -> String {
        T::item(column)
    }

    fn unpack(item: Value) -> Option<Option<T>> {
        match item {
            Value::Null => Some(None),
            item => T::unpack(item).map(Some),
        }
    }
}
