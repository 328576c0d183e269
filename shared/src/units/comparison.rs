//! How a value compares with another, in words and percent.

use super::digits::significant;

/// Returns how much longer something takes than planned, for a ratio of times: `4 % longer than planned`, `3 % shorter than
/// planned`, `2.1 times as long as planned`.
pub fn longer(ratio: f64, planned: &str) -> String {
    match ratio {
        2.0.. => format!("{} times as long as {planned}", significant(ratio, 2)),
        1.0.. => format!("{:.0} % longer than {planned}", (ratio - 1.0) * 100.0),
        _ => format!("{:.0} % shorter than {planned}", (1.0 - ratio) * 100.0),
    }
}

/// Whether two values are the same in [`difference`].
pub fn is_same(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 0.005
}

/// Returns how a value compares with another: `58 % fewer`, `7 % more`, `as many` if they are the same in whole percent, and from twice
/// as much on `2.4 times as many`. The words are those for less, for more, for a multiple and for the same.
pub fn difference(one: f64, other: f64, [less, more, times, same]: [&str; 4]) -> String {
    let ratio = one / other;
    let percent = ((ratio - 1.0).abs() * 100.0).round();
    match ratio {
        _ if is_same(one, other) => same.to_string(),
        2.0.. => format!("{} {times}", significant(ratio, 2)),
        1.0.. => format!("{percent} % {more}"),
        _ => format!("{percent} % {less}"),
    }
}

/// Returns a difference in percent with its sign and one decimal, `+5.7 %` or `−5.7 %`; one that rounds to zero has
/// no sign.
pub fn signed_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 0.05 { "0.0 %".to_string() } else { format!("{} %", signed(percent, 1)) }
}

/// Returns a number with its sign and some decimals: `+5.70`, `−5.70`. The minus sign is as wide as the plus sign, unlike a hyphen.
pub fn signed(value: f64, decimals: usize) -> String {
    format!("{value:+.decimals$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_twice_as_much_on_a_difference_is_a_multiple() {
        let words = ["fewer", "more", "times as many", "as many"];
        let texts = [42.0, 99.7, 107.0, 199.0, 240.0].map(|one| difference(one, 100.0, words));
        assert_eq!(texts, ["58 % fewer", "as many", "7 % more", "99 % more", "2.4 times as many"]);
    }

    #[test]
    fn differences_have_a_sign_unless_they_round_to_zero() {
        assert_eq!(signed_percent(0.057), "+5.7 %");
        assert_eq!(signed_percent(-0.057), "−5.7 %");
        assert_eq!(signed_percent(-0.000_1), "0.0 %");
    }
}
