//! Copies the data files without what no program reads and would only make each of them larger: comments, and the columns
//! that say where the data come from.

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
            fs::write(out.join(CONSTANTS), without(&OF_PRIORS, &rows)?)?;
        }
        if name == BASELINES {
            let tables: String = rows
                .split_inclusive('\n')
                .enumerate()
                .filter(|(place, row)| *place == 0 || row.contains(",table,"))
                .map(|(_, row)| row)
                .collect();
            fs::write(out.join(MEASURED_RECIPES), without(&OF_RESULTS, &tables)?)?;
        }
        let rows = match UNREAD.iter().find(|(unread, _)| name == *unread) {
            Some((_, columns)) => without(columns, &rows)?,
            None => rows.into_bytes(),
        };
        fs::write(out.join(name), rows)?;
    }
    Ok(())
}

/// Returns the rows without some columns.
fn without(columns: &[&str], rows: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(rows.as_bytes());
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut kept: Option<Vec<usize>> = None;
    for record in reader.records() {
        let record = record?;
        let kept = kept.get_or_insert_with(|| {
            let named = record.iter().enumerate().filter(|(_, name)| !columns.contains(name));
            named.map(|(place, _)| place).collect()
        });
        writer.write_record(kept.iter().filter_map(|place| record.get(*place)))?;
    }
    Ok(writer.into_inner()?)
}
