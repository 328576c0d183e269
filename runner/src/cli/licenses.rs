//! `trainplan licenses`: the packages in the program and its web app, with their licences.

use super::Failure;
use super::output::{self, Format, FormatArg};
use serde::{Deserialize, Serialize};

/// List the licences of the software in this program and its web app
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan licenses
  trainplan licenses --format csv > licenses.csv
  trainplan licenses --text > licenses.txt")]
pub(super) struct Args {
    /// Print the licence texts, each with its packages
    #[arg(long, conflicts_with = "format")]
    text: bool,
    #[command(flatten)]
    format: FormatArg,
}

/// `runner/data/licenses.json`, which `make licenses` writes.
#[derive(Debug, Serialize, Deserialize)]
struct Licenses {
    packages: Vec<Package>,
    texts: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Package {
    name: String,
    version: String,
    /// An SPDX expression.
    license: String,
    /// The programs that contain it.
    parts: Vec<String>,
    /// Indices of its licence texts.
    texts: Vec<usize>,
}

impl Args {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let licenses = Licenses::load().map_err(|error| Failure::Format(error.to_string()))?;
        if self.text {
            return licenses.print_texts();
        }
        let columns = ["name", "version", "license", "part of"];
        let rows = licenses.packages.iter().map(|package| {
            [package.name.clone(), package.version.clone(), package.license.clone(), package.parts.join(", ")]
        });
        match self.format.choose() {
            Format::Table => output::table(columns, &[], rows),
            Format::Csv => output::csv(["name", "version", "license", "parts"], rows),
            Format::Json => output::json(&licenses),
        }
    }
}

impl Licenses {
    /// Returns our own licences, then those of others.
    fn load() -> serde_json::Result<Licenses> {
        let mut licenses: Licenses = serde_json::from_str(include_str!("../../data/licenses.json"))?;
        let own = [include_str!("../../../LICENSE-APACHE"), include_str!("../../../LICENSE-MIT")];
        for number in licenses.packages.iter_mut().flat_map(|package| &mut package.texts) {
            *number += own.len();
        }
        licenses.texts.splice(..0, own.map(|text| text.trim_matches('\n').to_owned()));
        let trainplan = Package {
            name: "trainplan".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            license: env!("CARGO_PKG_LICENSE").to_owned(),
            parts: vec!["program".to_owned(), "web app".to_owned()],
            texts: (0..own.len()).collect(),
        };
        licenses.packages.insert(0, trainplan);
        Ok(licenses)
    }

    fn print_texts(&self) -> Result<(), Failure> {
        let rule = "=".repeat(80);
        let mut all = String::new();
        for (number, text) in self.texts.iter().enumerate() {
            all.push_str(&format!("{rule}\n"));
            for package in self.packages.iter().filter(|package| package.texts.contains(&number)) {
                all.push_str(&format!("{} {} ({})\n", package.name, package.version, package.license));
            }
            all.push_str(&format!("{rule}\n\n{text}\n\n"));
        }
        output::text(&all)
    }
}
