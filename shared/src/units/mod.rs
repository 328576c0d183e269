//! Numbers in the forms that people write and read.

mod comparison;
mod count;
mod digits;
mod divisors;
mod quantity;
mod time;

pub use crate::decimal::parse_decimal;
pub use comparison::{difference, is_same, longer, signed, signed_percent};
pub(crate) use count::limit;
pub use count::{format_count, parse_count, rounded_count, short_count};
pub use digits::{
    alike, group_digits, group_three_digits, one_decimal, readable, readable_range, significant,
    significant_up,
};
pub use divisors::{greatest_common_divisor, nearest_divisors, nearest_multiples};
pub use quantity::{TERA, capacity, gib, percent, seconds, short_seconds};
pub use time::{
    DAY_S, below_days, days, duration, duration_range, minute, parse_days, parse_seconds, readable_days,
    time_unit,
};
pub(crate) use time::{HOUR_S, hours_and_minutes};
