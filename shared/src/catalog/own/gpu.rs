//! A user's own GPU: a known type with other rates or sizes, `h100:hbm_gb=96,hbm_tbps=2.4`.

use crate::catalog::{Catalog, Generation, Gpu};
use crate::decimal::{parse_decimal, write_decimal};
use crate::field::Field;
use crate::pairs::pairs;
use crate::problem::Problem;
use crate::words::words;
use std::fmt::Write as _;

/// A column of gpus.csv that an own GPU can change.
#[derive(Debug, Clone, Copy)]
struct OwnColumn {
    name: &'static str,
    /// None for a number of GPUs, which is whole.
    unit: Option<&'static str>,
    /// The least and the greatest plausible value: room for older and future GPUs, but none for the value of a known GPU in another
    /// unit, which is 1,000 times as large or small.
    range: [f64; 2],
}

/// The columns that an own GPU can change, in the order of the text.
const COLUMNS: [OwnColumn; 9] = [
    OwnColumn { name: "bf16_tflops", unit: Some("TFLOPS"), range: [20.0, 20_000.0] },
    OwnColumn { name: "fp8_tflops", unit: Some("TFLOPS"), range: [40.0, 40_000.0] },
    OwnColumn { name: "nvfp4_tflops", unit: Some("TFLOPS"), range: [80.0, 80_000.0] },
    OwnColumn { name: "hbm_gb", unit: Some("GiB"), range: [4.0, 4000.0] },
    OwnColumn { name: "hbm_tbps", unit: Some("TB/s"), range: [0.1, 100.0] },
    OwnColumn { name: "nvlink_gbps", unit: Some("GB/s"), range: [10.0, 10_000.0] },
    OwnColumn { name: "nvlink_domain", unit: None, range: [1.0, 10_000.0] },
    OwnColumn { name: "gpus_per_node", unit: None, range: [1.0, 1000.0] },
    OwnColumn { name: "nic_gbit", unit: Some("Gbit/s"), range: [2.0, 10_000.0] },
];

fn names() -> [&'static str; COLUMNS.len()] {
    COLUMNS.map(|column| column.name)
}

impl Gpu {
    /// Returns the GPU of a text `BASE:column=value,…`: the known type BASE with other values in these columns.
    ///
    /// A new datasheet peak makes it another chip, so the base's measured and published peaks are dropped.
    ///
    /// # Errors
    /// BASE or a column is unknown; a value is implausible or not a number; no column is given.
    pub fn own(text: &str, catalog: &Catalog) -> Result<Gpu, Problem> {
        let text = text.trim();
        let Some((base, list)) = text.split_once(':') else {
            return Err(Problem::new(Field::Gpu, text, unchanged(text)));
        };
        let base = catalog.gpu(base)?;
        let given = pairs(Field::Gpu, list, &names())?;
        if given.iter().all(Option::is_none) {
            return Err(Problem::new(Field::Gpu, text, unchanged(text)).suggest([&base.id]));
        }
        let mut own = base.clone();
        for (column, value) in COLUMNS.into_iter().zip(given) {
            if let Some(value) = value {
                own.set(column.name, column.read(value)?);
            }
        }
        Ok(own.named_after(base))
    }

    /// Returns the GPU with its own id and name, or its base if nothing differs.
    fn named_after(mut self, base: &Gpu) -> Gpu {
        let mut id = String::new();
        // The GPU of the text so far: a peak also changes later columns that are not given.
        let mut said = base.clone();
        for (place, (column, own)) in self.cells().into_iter().enumerate() {
            if let (Some(value), true) = (own, own != said.cells()[place].1) {
                // Writing to a string can't fail.
                let _ = write!(id, ",{column}={}", write_decimal(value));
                said.set(column, value);
            }
        }
        if id.is_empty() {
            return base.clone();
        }
        self.id = format!("{}:{}", base.id, &id[1..]);
        self.name = format!("Custom {}", base.name);
        self.aliases = String::new();
        self
    }

    fn set(&mut self, column: &str, value: f64) {
        match column {
            "bf16_tflops" if value != self.bf16_tflops => {
                (self.bf16_tflops, self.max_gemm_bf16_tflops, self.recipe_bf16_peak) = (value, None, None);
            }
            "fp8_tflops" if Some(value) != self.fp8_tflops => {
                (self.fp8_tflops, self.max_gemm_fp8_tflops, self.recipe_fp8_peak) = (Some(value), None, None);
                // A precision implies the first generation that has it.
                self.generation = self.generation.max(Generation::Hopper);
            }
            "nvfp4_tflops" if Some(value) != self.nvfp4_tflops => {
                (self.nvfp4_tflops, self.recipe_nvfp4_peak) = (Some(value), None);
                self.generation = self.generation.max(Generation::Blackwell);
            }
            "hbm_gb" => self.hbm_gb = value,
            "hbm_tbps" => self.hbm_tbps = value,
            "nvlink_gbps" => self.nvlink_gbps = value,
            // `OwnColumn::read` has checked that these are whole and in range.
            "nvlink_domain" => self.nvlink_domain = value as u32,
            "gpus_per_node" => self.gpus_per_node = value as u32,
            "nic_gbit" => self.nic_gbit = value,
            _ => {}
        }
    }

    /// Returns every column that can differ, with its value.
    fn cells(&self) -> [(&'static str, Option<f64>); 9] {
        let values = [
            Some(self.bf16_tflops),
            self.fp8_tflops,
            self.nvfp4_tflops,
            Some(self.hbm_gb),
            Some(self.hbm_tbps),
            Some(self.nvlink_gbps),
            Some(f64::from(self.nvlink_domain)),
            Some(f64::from(self.gpus_per_node)),
            Some(self.nic_gbit),
        ];
        let mut values = values.into_iter();
        names().map(|column| (column, values.next().flatten()))
    }
}

fn unchanged(text: &str) -> String {
    words!(
        "\"{text}\" changes no field. A custom GPU is written as h100:hbm_gb=96, with the fields {}.",
        names().join(", ")
    )
}

impl OwnColumn {
    /// Returns the value of a text: plausible, and whole for a number of GPUs.
    fn read(&self, text: &str) -> Result<f64, Problem> {
        let OwnColumn { name, unit, range: [least, most] } = *self;
        match parse_decimal(text) {
            Some(value) if (least..=most).contains(&value) && (unit.is_some() || value.fract() == 0.0) => {
                Ok(value)
            }
            _ => {
                let (kind, unit) = unit.map_or(("whole number", "GPUs"), |unit| ("number", unit));
                let message = words!(
                    "The field {name} of a custom GPU must be a {kind} from {least} to {most} {unit}, not \"{text}\"."
                );
                Err(Problem::new(Field::Gpu, format_args!("{name}={text}"), message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precision::Dtype;
    use proptest::prelude::*;

    fn own(text: &str) -> Result<Gpu, Problem> {
        Gpu::own(text, Catalog::embedded())
    }

    #[test]
    fn the_columns_are_of_the_file() {
        let file = include_str!("../../../data/gpus.csv");
        let header = file.lines().find(|line| !line.starts_with('#')).unwrap();
        assert!(names().iter().all(|column| header.split(',').any(|known| known == *column)));
    }

    #[test]
    fn every_known_gpu_is_plausible_and_no_other_unit_is() {
        for (place, column) in COLUMNS.iter().enumerate() {
            let [least, most] = column.range;
            let has_unit = column.unit.is_some();
            for gpu in Catalog::embedded().gpus() {
                let Some(value) = gpu.cells()[place].1 else { continue };
                assert!((least..=most).contains(&value), "{} {} {value}", gpu.id, column.name);
                for other in [value / 1000.0, value * 1000.0].map(|value| value.to_string()) {
                    assert!(!has_unit || column.read(&other).is_err(), "{} {} {other}", gpu.id, column.name);
                }
            }
        }
    }

    #[test]
    fn another_unit_is_refused() {
        let said = |text: &str| own(text).unwrap_err().to_string();
        let text = "The field hbm_tbps of a custom GPU must be a number from 0.1 to 100 TB/s, not \"3350\".";
        assert_eq!(said("h100:hbm_tbps=3350"), text);
        assert!(said("h100:nvlink_domain=0.5").contains("must be a whole number from 1 to 10000 GPUs"));
    }

    #[test]
    fn what_is_not_given_stays() {
        let base = Catalog::embedded().gpu("h100").unwrap();
        let gpu = own(" H100-80GB: hbm_tbps=2.4 , hbm_gb=96.0 ").unwrap();
        assert_eq!((gpu.id.as_str(), gpu.name.as_str()), ("h100:hbm_gb=96,hbm_tbps=2.4", "Custom H100"));
        assert_eq!((gpu.hbm_gb, gpu.hbm_tbps, gpu.bf16_tflops), (96.0, 2.4, base.bf16_tflops));
        assert_eq!(gpu.max_gemm_bf16_tflops, base.max_gemm_bf16_tflops);
        assert!(gpu.answers_to(&gpu.id.clone()) && !gpu.answers_to("h100-80gb"));
        assert_eq!(&own("h100:hbm_gb=80").unwrap(), base, "nothing differs");
    }

    #[test]
    fn another_peak_is_another_chip() {
        let gpu = own("h100:bf16_tflops=800").unwrap();
        assert_eq!((gpu.datasheet_tflops(Dtype::Bf16), gpu.recipe_tflops(Dtype::Bf16)), (Some(800.0), None));
        assert_eq!((gpu.max_gemm_bf16_tflops, gpu.max_gemm_fp8_tflops), (None, Some(1402.6)));
        assert_eq!(own("a100:fp8_tflops=600").unwrap().fp8_tflops, Some(600.0));
        assert_eq!(own("b300:nvfp4_tflops=14000").unwrap().mfu_tflops(Dtype::Nvfp4), 14_000.0);
    }

    #[test]
    fn every_mistake_is_named() {
        let said = |text: &str| own(text).unwrap_err().to_string();
        assert!(said("h10:hbm_gb=96").contains("Unknown GPU \"h10\". Did you mean h100?"));
        assert!(said("h100:hbm=96").contains("Unknown field \"hbm\" in \"hbm=96\". Did you mean hbm_gb?"));
        assert!(said("h100:").contains("\"h100:\" changes no field"));
        assert!(said("h100").contains("is written as h100:hbm_gb=96"));
        for value in ["0", "-1", "nan", "inf", "1e999", "many"] {
            assert!(
                said(&format!("h100:hbm_gb={value}")).contains("must be a number from 4 to 4000"),
                "{value}"
            );
        }
        assert!(said("h100:hbm_gb=1e300").ends_with("from 4 to 4000 GiB, not \"1e300\"."));
        assert!(said("h100:gpus_per_node=1.5").contains("a whole number from 1 to 1000"));
        assert!(said("h100:gpus_per_node=0").contains("a whole number from 1 to 1000"));
    }

    proptest! {
        #[test]
        fn a_gpu_is_read_as_written(
            base in 0usize..10,
            shares in proptest::collection::vec(proptest::option::of(0.0f64..1.0), COLUMNS.len()),
        ) {
            let mut text = format!("{}:", Catalog::embedded().gpus()[base].id);
            for (OwnColumn { name, unit, range: [least, most] }, share) in COLUMNS.into_iter().zip(shares) {
                if let Some(share) = share {
                    let value = least + share * (most - least);
                    let _ = write!(text, "{name}={},", if unit.is_none() { value.ceil() } else { value });
                }
            }
            prop_assume!(!text.ends_with(':'));
            let gpu = own(&text).map_err(|problem| TestCaseError::fail(problem.to_string()))?;
            let again = Catalog::embedded().gpu_or_own(&gpu.id).map(std::borrow::Cow::into_owned);
            prop_assert_eq!(again, Ok(gpu));
        }

        #[test]
        fn no_text_panics(text in "(h100|gb200|x):[a-z_,=0-9.]{0,40}") {
            let _ = own(&text);
        }
    }
}
