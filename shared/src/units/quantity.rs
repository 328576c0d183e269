//! Quantities with their units: parts of a step, memory and shares.

use super::digits::{group_digits, one_decimal, readable};

/// FLOPs per second in one TFLOPS.
pub const TERA: f64 = 1e12;

/// Returns a number with its unit after a space where no line breaks.
fn with_unit(number: &str, unit: &str) -> String {
    format!("{number}\u{a0}{unit}")
}

/// Returns seconds with three significant digits and their unit: `5.90 s`.
pub fn seconds(seconds: f64) -> String {
    with_unit(&readable(seconds), "s")
}

/// Returns a part of a step with three significant digits, in seconds or milliseconds: `5.90 s`, `12.4 ms`. What is taken from the
/// step is negative: `−0.310 s`.
pub fn short_seconds(duration: f64) -> String {
    if duration < 0.0 {
        return format!("−{}", short_seconds(-duration));
    }
    if duration < 0.0995 { with_unit(&readable(duration * 1e3), "ms") } else { seconds(duration) }
}

/// Returns GiB with one decimal and their unit: `128.8 GiB`.
pub fn gib(gib: f64) -> String {
    with_unit(&one_decimal(gib), "GiB")
}

/// Returns the memory of a GPU, which is a whole number of GiB: `80 GiB`.
pub fn capacity(gib: f64) -> String {
    with_unit(&group_digits(gib), "GiB")
}

/// Returns a fraction in percent, always with three significant digits: `44.4 %`, `40.0 %`. The space is an ordinary one, because
/// terminals print it too.
pub fn percent(fraction: f64) -> String {
    format!("{} %", readable(fraction * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_breaks_between_a_number_and_its_unit() {
        assert_eq!(seconds(5.9), "5.90\u{a0}s");
        assert_eq!(short_seconds(0.1), "0.100\u{a0}s");
        assert_eq!([-0.31, -0.0124].map(short_seconds), ["−0.310\u{a0}s", "−12.4\u{a0}ms"]);
        assert_eq!([0.0124, 4e-5].map(short_seconds), ["12.4\u{a0}ms", "0.0400\u{a0}ms"]);
        assert_eq!(gib(128.77), "128.8\u{a0}GiB");
        assert_eq!(capacity(80.0), "80\u{a0}GiB");
        assert_eq!(gib(1234.5), "1,234.5\u{a0}GiB");
    }

    #[test]
    fn percentages_have_a_space_and_three_digits() {
        assert_eq!(percent(0.443_49), "44.3 %");
        assert_eq!(percent(0.4), "40.0 %");
    }
}
