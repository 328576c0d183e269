//! Copies the data files without what no program reads and would only make each of them larger: comments, and the columns
//! that say where the data come from. They are written column by column, because Brotli makes that smaller: the values of a column are
//! alike.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// Files with columns that no program reads.
const UNREAD: [(&str, &[&str]); 4] = [
    ("gpus.csv", &["source", "notes"]),
    ("models.csv", &["source"]),
    ("baselines.csv", &["note"]),
    // They follow from the layout; a test compares them.
    ("recipes.csv", &["dp", "ga"]),
];

/// The fitted constants, which every program reads, and the columns with their priors, which only the fit reads.
const CALIBRATION: &str = "calibration.csv";
const CONSTANTS: &str = "constants.csv";
const OF_PRIORS: [&str; 4] = ["prior", "spread", "unit", "source"];

/// The published results, and which recipes the tables among them measure. The planner asks no more.
const BASELINES: &str = "baselines.csv";
const MEASURED_RECIPES: &str = "measured_recipes.csv";
const OF_RESULTS: [&str; 12] = [
    "step_time_s",
    "tokens_per_s",
    "mfu_pct",
    "days_1t",
    "kind",
    "seq_len",
    "gbs",
    "family",
    "line",
    "note",
    "published_in",
    "container",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=data");
    let out = env::var("OUT_DIR")?;
    let out = Path::new(&out);
    for file in fs::read_dir("data")? {
        let file = file?;
        let text = fs::read_to_string(file.path())?;
        let rows: String = text.split_inclusive('\n').skip_while(|line| line.starts_with('#')).collect();
        let name = file.file_name();
        if name == CALIBRATION {
            fs::write(out.join(CONSTANTS), by_columns(&rows, &OF_PRIORS)?)?;
        }
        if name == BASELINES {
            let tables: String = rows
                .split_inclusive('\n')
                .enumerate()
                .filter(|(place, row)| *place == 0 || row.contains(",table,"))
                .map(|(_, row)| row)
                .collect();
            fs::write(out.join(MEASURED_RECIPES), by_columns(&tables, &OF_RESULTS)?)?;
        }
        let unread: &[&str] = match UNREAD.iter().find(|(unread, _)| name == *unread) {
            Some((_, columns)) => columns,
            None => &[],
        };
        fs::write(out.join(name), by_columns(&rows, unread)?)?;
    }
    Ok(())
}

/// Returns the columns of a file, one a line with its name first, without those that are not read.
fn by_columns(rows: &str, unread: &[&str]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).comment(Some(b'#')).from_reader(rows.as_bytes());
    let records = reader.records().collect::<Result<Vec<_>, _>>()?;
    let names = records.first().ok_or("a data file without columns")?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (place, name) in names.iter().enumerate() {
        if !unread.contains(&name) {
            writer.write_record(records.iter().filter_map(|record| record.get(place)))?;
        }
    }
    Ok(writer.into_inner()?)
}
