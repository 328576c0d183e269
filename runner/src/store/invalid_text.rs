//! Text that is not UTF-8. SQLite stores and returns such text, for example after a byte of its file was damaged. sqlx then can't
//! read the row at all, so one such text would make whole lists fail.

use futures_util::TryStreamExt;
use sqlx::{AnyConnection, Executor, Row};
use std::str;

/// Turns each text that is not UTF-8 into a BLOB of the same bytes. That is a value of the wrong type, which readers notice and
/// name. Returns the number of texts that were turned.
pub(super) async fn isolate(connection: &mut AnyConnection) -> sqlx::Result<usize> {
    // The text may be an id that rows of other tables refer to.
    connection.execute("PRAGMA foreign_keys = OFF").await?;
    let tables: Vec<String> = sqlx::query_scalar(
        r"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'",
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut count = 0;
    for table in tables {
        count += isolate_in(connection, &table).await?;
    }
    Ok(count)
}

async fn isolate_in(connection: &mut AnyConnection, table: &str) -> sqlx::Result<usize> {
    let columns: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info($1)")
        .bind(table)
        .fetch_all(&mut *connection)
        .await?;
    let texts = columns
        .iter()
        .map(|column| format!(r#", CASE typeof("{column}") WHEN 'text' THEN CAST("{column}" AS BLOB) END"#));
    let select = format!(r#"SELECT rowid{} FROM "{table}""#, texts.collect::<String>());
    let mut invalid = Vec::new();
    {
        let mut rows = sqlx::query(&select).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await? {
            let id: i64 = row.try_get(0)?;
            for (column, index) in columns.iter().zip(1..) {
                let text: Option<Vec<u8>> = row.try_get(index)?;
                if text.is_some_and(|text| str::from_utf8(&text).is_err()) {
                    invalid.push((id, column));
                }
            }
        }
    }
    for &(id, column) in &invalid {
        let update = format!(
            r#"UPDATE "{table}" SET "{column}" = CAST("{column}" AS BLOB) WHERE rowid = $1 AND typeof("{column}") = 'text'"#
        );
        sqlx::query(&update).bind(id).execute(&mut *connection).await?;
        tracing::warn!("{column} of row {id} of the table {table} is not UTF-8, and counts as damaged");
    }
    Ok(invalid.len())
}
