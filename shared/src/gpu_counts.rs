//! The numbers of GPUs that a question names.

use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::sorting::ascending;
use crate::units::{limit, parse_count};
use std::str::FromStr;

/// The numbers of GPUs to search, in whole nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuCounts {
    /// Round counts up to a limit, and every whole node below the best one.
    UpTo(u32),
    /// Every whole node in a range.
    Range(u32, u32),
    /// These.
    Only(Vec<u32>),
}

/// The largest count that is searched where none is given: the largest published training run on GPUs, Llama 3.1 405B.
const MOST_GPUS: u32 = 16_384;

impl Default for GpuCounts {
    fn default() -> GpuCounts {
        GpuCounts::UpTo(MOST_GPUS)
    }
}

impl GpuCounts {
    /// Whether counts between them may be better.
    pub(crate) fn is_coarse(&self) -> bool {
        matches!(self, GpuCounts::UpTo(_))
    }

    /// Returns the limit that was typed; none where there is none.
    pub(crate) fn limit(&self) -> Option<u32> {
        match self {
            GpuCounts::UpTo(most) if *most != MOST_GPUS => Some(*most),
            _ => None,
        }
    }

    /// Returns the counts for nodes of a size, ascending. Round counts are 1, 3, 5 or 7 times a power of two nodes.
    pub fn of_nodes(&self, gpus_per_node: u32) -> Vec<u32> {
        let node = gpus_per_node.max(1);
        let counts: Vec<u32> = match self {
            GpuCounts::UpTo(most) => (0..31)
                .flat_map(|power| [1_u64, 3, 5, 7].map(|odd| (odd * u64::from(node)) << power))
                .filter(|gpus| *gpus <= u64::from(*most))
                .map(|gpus| gpus as u32)
                .collect(),
            GpuCounts::Range(least, most) => {
                (least.div_ceil(node)..=most / node).map(|nodes| nodes * node).collect()
            }
            GpuCounts::Only(counts) => counts.clone(),
        };
        ascending(&counts)
    }
}

impl FromStr for GpuCounts {
    type Err = Problem;

    fn from_str(text: &str) -> Result<GpuCounts, Problem> {
        let refuse = || Field::GpuRange.refuse(text);
        let count = |text: &str| {
            let count = Field::GpuRange.bounds().number(text.trim(), parse_count);
            count.filter(|count| count.fract() == 0.0).map(|count| count as u32).ok_or_else(refuse)
        };
        if let Some(most) = limit(text) {
            return count(most).map(GpuCounts::UpTo);
        }
        match text.split_once("..") {
            Some((least, most)) => {
                let (least, most) = (count(least)?, count(most)?);
                if least > most { Err(refuse()) } else { Ok(GpuCounts::Range(least, most)) }
            }
            None => match thousands(text) {
                Thousands::Number => count(text).map(|count| GpuCounts::Only(vec![count])),
                Thousands::Unclear => {
                    let message = message![
                        Field::GpuRange,
                        format!(
                            " \"{text}\" may be a number or a list. Write {} or \"{}\".",
                            text.replace(',', ""),
                            text.replace(',', ", ")
                        )
                    ];
                    Err(Problem::new(Field::GpuRange, text, message))
                }
                Thousands::List => text.split(',').map(count).collect::<Result<_, _>>().map(GpuCounts::Only),
            },
        }
    }
}

/// What the commas of a text separate.
enum Thousands {
    /// Groups of digits, as in 1,024.
    Number,
    /// Numbers, as in 512,768 or in 16, 384.
    List,
    /// Either: 16,384.
    Unclear,
}

/// Returns what the commas of numbers of GPUs separate. Nobody trains on 512,768 GPUs, nor on 1 and on 536.
fn thousands(text: &str) -> Thousands {
    let mut groups = text.split(',');
    let first = groups.next().unwrap_or_default();
    let rest: Vec<&str> = groups.collect();
    let is_number = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let is_grouped = !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && is_number(group));
    if !is_grouped || !is_number(first) {
        return Thousands::List;
    }
    match first.len() {
        _ if rest.iter().any(|group| group.starts_with('0')) => Thousands::Number,
        1 if first < "8" => Thousands::Number,
        1 | 2 if rest.len() == 1 => Thousands::Unclear,
        _ => Thousands::List,
    }
}
