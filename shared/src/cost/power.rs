//! The power of a GPU.

use super::prices::base_id;
use crate::assumption::Assumption;
use crate::catalog::Gpu;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::problem::Problem;
use crate::units::parse_count;
use serde::Serialize;
use std::str::FromStr;
use std::sync::LazyLock;

/// Watts in a kW.
const KILO: f64 = 1000.0;

/// The largest PUE that is read: a site that needs twice as much for cooling as for its computers.
const MOST_PUE: f64 = 3.0;

/// The power that a user chose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PowerChoice {
    /// All-in power, in kW per GPU.
    AllIn(f64),
    /// The power limit of the GPU alone, times a PUE; without one, the assumed PUE.
    Chip(Option<f64>),
}

impl FromStr for PowerChoice {
    type Err = Problem;

    fn from_str(text: &str) -> Result<PowerChoice, Problem> {
        let lower = text.trim().to_ascii_lowercase();
        let chosen = match lower.strip_prefix("tdp").map(str::trim) {
            Some("") => Some(PowerChoice::Chip(None)),
            Some(pue) => {
                let pue = pue.strip_prefix(['*', '×', 'x']).and_then(parse_count);
                pue.filter(|pue| (1.0..=MOST_PUE).contains(pue)).map(|pue| PowerChoice::Chip(Some(pue)))
            }
            None => Field::Power.bounds().number(&lower, parse_count).map(PowerChoice::AllIn),
        };
        chosen.ok_or_else(|| Field::Power.refuse(text))
    }
}

/// What the power of a GPU contains, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerSource {
    /// Server, network and cooling, from the data file.
    AllIn {
        /// The source.
        source: &'static str,
        /// Its date: `2026-04`.
        date: &'static str,
    },
    /// The GPU's power limit times a PUE: without CPUs, network and the losses of the server.
    Chip {
        /// The GPU's power limit, in W.
        tdp_w: f64,
        /// Power of the site divided by the power of its computers.
        pue: f64,
    },
    /// All-in power, from the user.
    Yours,
}

/// The power that a GPU needs from the site.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Power {
    /// kW per GPU.
    pub kw_per_gpu: f64,
    /// What it contains.
    pub source: PowerSource,
}

impl Power {
    /// Returns the chosen power of a GPU. Without a choice it is the all-in power of the data file; for a GPU without one
    /// it is the power limit times the assumed PUE.
    pub fn of(gpu: &Gpu, choice: Option<PowerChoice>) -> Power {
        match choice {
            Some(PowerChoice::AllIn(kw_per_gpu)) => Power { kw_per_gpu, source: PowerSource::Yours },
            Some(PowerChoice::Chip(pue)) => Power::of_chip(gpu, pue.unwrap_or(Assumption::Pue.value())),
            None => match rows().iter().find(|row| row.gpu == base_id(&gpu.id)) {
                Some(row) => Power {
                    kw_per_gpu: row.all_in_kw,
                    source: PowerSource::AllIn { source: &row.source, date: &row.date },
                },
                None => Power::of_chip(gpu, Assumption::Pue.value()),
            },
        }
    }

    fn of_chip(gpu: &Gpu, pue: f64) -> Power {
        let tdp_w = gpu.tdp_w;
        Power { kw_per_gpu: tdp_w / KILO * pue, source: PowerSource::Chip { tdp_w, pue } }
    }

    /// Returns what it contains and where it comes from, for people.
    pub fn note(&self) -> String {
        match self.source {
            PowerSource::AllIn { source, date } => {
                format!("with network and cooling, assumed: {source}, {date}")
            }
            PowerSource::Chip { tdp_w, pue } => {
                format!("the GPU alone: TDP {tdp_w} W × PUE {pue}, without CPUs and network")
            }
            PowerSource::Yours => "yours".to_string(),
        }
    }
}

/// A row of the data file.
struct PowerRow {
    gpu: String,
    all_in_kw: f64,
    #[cfg(test)]
    server_kw: Option<f64>,
    source: String,
    date: String,
}

impl FromRow for PowerRow {
    fn from_row(row: &Row<'_>) -> Result<PowerRow, DataError> {
        Ok(PowerRow {
            all_in_kw: row.number("all_in_kw")?,
            #[cfg(test)]
            server_kw: row.optional_number("server_kw")?,
            gpu: row.string("gpu")?,
            source: row.string("source")?,
            date: row.string("date")?,
        })
    }
}

fn rows() -> &'static [PowerRow] {
    static EMBEDDED: LazyLock<Vec<PowerRow>> = LazyLock::new(|| embedded!("power.csv"));
    &EMBEDDED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn gpu(id: &str) -> &'static Gpu {
        Catalog::embedded().gpu(id).unwrap()
    }

    /// All-in power already contains the PUE: it is 1.2 to 1.36 times the maximum of the server.
    #[test]
    fn all_in_power_is_the_servers_times_a_pue() {
        let mut checked = 0;
        for row in rows() {
            let tdp_kw = gpu(&row.gpu).tdp_w / KILO;
            // Chip to site: between 1.5 (GB300) and 2.5 (H100), because the rest of the server differs.
            assert!(
                (1.5..=2.5).contains(&(row.all_in_kw / tdp_kw)),
                "{}: {}",
                row.gpu,
                row.all_in_kw / tdp_kw
            );
            let Some(server_kw) = row.server_kw else { continue };
            let pue = row.all_in_kw / server_kw;
            assert!((1.19..=1.36).contains(&pue), "{}: {pue}", row.gpu);
            // Server to chip: the sum of the GPUs, times 1.19 (NVL72 at 1,400 W) to 1.82 (DGX H100).
            assert!((1.19..=1.83).contains(&(server_kw / tdp_kw)), "{}: {}", row.gpu, server_kw / tdp_kw);
            checked += 1;
        }
        assert_eq!(checked, 5);
    }

    #[test]
    fn all_in_power_is_never_multiplied_by_a_pue() {
        assert_eq!(Power::of(gpu("h100"), None).kw_per_gpu, 1.73);
        assert_eq!(Power::of(gpu("h100"), Some(PowerChoice::AllIn(1.5))).kw_per_gpu, 1.5);
        let chip = Power::of(gpu("h100"), Some(PowerChoice::Chip(Some(1.2))));
        assert!((chip.kw_per_gpu - 0.84).abs() < 1e-12);
        // No all-in power is known for the A100.
        let a100 = Power::of(gpu("a100"), None);
        assert_eq!(a100.source, PowerSource::Chip { tdp_w: 400.0, pue: 1.3 });
        assert!(a100.note().contains("without CPUs"));
    }

    #[test]
    fn a_power_is_kw_or_the_tdp_with_a_pue() {
        assert_eq!("1.7".parse(), Ok(PowerChoice::AllIn(1.7)));
        assert_eq!("tdp".parse(), Ok(PowerChoice::Chip(None)));
        assert_eq!("TDP * 1.2".parse(), Ok(PowerChoice::Chip(Some(1.2))));
        assert_eq!("tdp*3".parse(), Ok(PowerChoice::Chip(Some(MOST_PUE))));
        for text in ["", "0", "700", "tdp*0.5", "tdp*4", "tdp+1", "much"] {
            assert_eq!(text.parse::<PowerChoice>().unwrap_err().field, Field::Power, "{text}");
        }
    }
}
