//! Reading decimal numbers.

/// The largest power of ten that `f64` holds exactly.
pub(super) const MOST_EXACT_POWER: i32 = 22;
/// More digits than a tie between two numbers can have, which is 767.
const MOST_DIGITS: i64 = 800;
/// Below this power of ten, every number that fits in memory is 0; above it, infinite.
const MOST_POWER: i64 = 400;

/// Returns the number that is nearest to a decimal text, such as `-12.5e3`: the same bits as `str::parse`.
///
/// `str::parse` also reads `inf` and `nan`, and it needs a table of 10 kB that does not compress, which a program contains
/// as soon as it calls it for an `f64`. A number below the smallest normal one becomes 0.
pub fn parse_decimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, power)) => (mantissa, parse_power(power)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if digits().next().is_none() || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = || digits().map(|digit| u32::from(digit - b'0')).skip_while(|digit| *digit == 0);
    // The number is the digits, read as a whole number, times a power of ten.
    let power = power - fraction.len() as i64;
    let number = match i32::try_from(power) {
        Ok(power) if digits().count() <= 15 && power.abs() <= MOST_EXACT_POWER => {
            let digits = digits().fold(0.0, |number, digit| number * 10.0 + f64::from(digit));
            let scale = (0..power.abs()).fold(1.0, |scale, _| scale * 10.0);
            // Both are exact, so the result is rounded once.
            if power < 0 { digits / scale } else { digits * scale }
        }
        _ => nearest(digits(), power),
    };
    Some(number * sign)
}

/// Returns the power of ten of a text, such as `-12`; one too large to matter is cut.
fn parse_power(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let power = unsigned.parse().unwrap_or(i64::from(u32::MAX)).min(i64::from(u32::MAX));
    Some(if text.starts_with('-') { -power } else { power })
}

/// Returns the number nearest to digits without leading zeros times a power of ten, by arithmetic on whole numbers of any
/// length. They are stored in base 2³², the least part first.
fn nearest(digits: impl Iterator<Item = u32>, power: i64) -> f64 {
    let mut parts: Vec<u32> = Vec::new();
    let mut power = power;
    let mut count = 0_i64;
    let mut is_inexact = false;
    for digit in digits {
        // Later digits can only break a tie. So the time to read a long text grows with its length alone.
        if count < MOST_DIGITS {
            multiply(&mut parts, 10, digit);
            count += 1;
        } else {
            is_inexact |= digit > 0;
            power += 1;
        }
    }
    // 10^(count + power) is above the number.
    if parts.is_empty() || count + power < -MOST_POWER {
        return 0.0;
    }
    if count + power > MOST_POWER {
        return f64::INFINITY;
    }
    // Zeros behind the point, so that at least 64 bits remain when it is divided. A division by ten removes less than 4 bits.
    let zeros = if power < 0 { power.unsigned_abs() as usize / 8 + 3 } else { 0 };
    parts.splice(0..0, std::iter::repeat_n(0, zeros));
    for _ in 0..power.unsigned_abs() {
        if power > 0 {
            multiply(&mut parts, 10, 0);
        } else {
            is_inexact |= divide_by_ten(&mut parts) > 0;
        }
    }
    // The 64 bits from the highest one on. The last is set if any below is, so that it decides ties.
    let bits = |place: usize| parts.len().checked_sub(place).and_then(|index| parts.get(index)).copied();
    let [first, second, third] = [1, 2, 3].map(|place| u128::from(bits(place).unwrap_or(0)));
    let leading = first << 64 | second << 32 | third;
    let unused = leading.leading_zeros() - 32;
    let leading = leading << unused;
    is_inexact |= leading as u32 != 0 || parts.iter().rev().skip(3).any(|part| *part != 0);
    let top = (leading >> 32) as u64 | u64::from(is_inexact);
    let exponent = 32 * (parts.len() as i64 - zeros as i64) - i64::from(unused) - 1;
    // From 1 to 2, rounded to the nearest.
    let fraction = top as f64 / (1_u64 << 63) as f64;
    match exponent {
        ..-1022 => 0.0,
        -1022..=1023 => fraction * f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => f64::INFINITY,
    }
}

/// Multiplies a number and adds to it.
pub(super) fn multiply(parts: &mut Vec<u32>, factor: u32, add: u32) {
    let mut carry = u64::from(add);
    for part in parts.iter_mut() {
        carry += u64::from(*part) * u64::from(factor);
        *part = carry as u32;
        carry >>= 32;
    }
    if carry > 0 {
        parts.push(carry as u32);
    }
}

/// Divides a number by ten, and returns the remainder.
pub(super) fn divide_by_ten(parts: &mut Vec<u32>) -> u32 {
    let mut remainder = 0_u64;
    for part in parts.iter_mut().rev() {
        remainder = remainder << 32 | u64::from(*part);
        *part = (remainder / 10) as u32;
        remainder %= 10;
    }
    while parts.last() == Some(&0) {
        parts.pop();
    }
    remainder as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a text as the standard library does, but a number below the smallest normal one as 0.
    fn parse(text: &str) -> Option<u64> {
        let number: f64 = text.parse().ok()?;
        Some((if number.is_subnormal() { 0.0_f64.copysign(number) } else { number }).to_bits())
    }

    #[test]
    fn corner_cases_are_read_as_by_the_standard_library() {
        for text in [
            "0",
            "-0",
            "1",
            ".5",
            "5.",
            "+1.5",
            "1e3",
            "1E-3",
            "1e+3",
            "00012.50",
            "0.1",
            "123456789012345678",
            "9007199254740993",
            "9007199254740992.9999",
            "9007199254740993.0000000000000001",
            "1e22",
            "1e23",
            "8.5e22",
            "1.7976931348623157e308",
            "1.7976931348623159e308",
            "1e309",
            "1e400",
            "1e-400",
            "0e999999999999999999999",
            "1e-999999999999999999999",
            "2.2250738585072014e-308",
            "4294967296",
            "18446744073709551616",
            "340282366920938463463374607431768211456",
            "5e-324",
            "179769313486231580793e289",
            "",
            ".",
            "-",
            "e5",
            "1e",
            "1e+",
            "1e1.5",
            "1.2.3",
            "0x10",
            "1_000",
            " 1",
            "1 ",
            "--1",
            "+-1",
            "1e--2",
        ] {
            assert_eq!(parse_decimal(text).map(f64::to_bits), parse(text), "{text}");
        }
        assert_eq!(parse_decimal("inf").or(parse_decimal("nan")), None);
        let long = format!("0.{}1{}", "0".repeat(60), "3".repeat(900));
        assert_eq!(parse_decimal(&long).map(f64::to_bits), parse(&long));
        // Only the last of a thousand digits says that it is more than halfway between two numbers.
        let halfway = format!("9007199254740993.{}1", "0".repeat(1000));
        assert_eq!(parse_decimal(&halfway).map(f64::to_bits), parse(&halfway));
        assert_eq!(parse_decimal(&"1".repeat(1_000_000)), Some(f64::INFINITY));
    }

    proptest! {
        #[test]
        fn decimals_are_read_as_by_the_standard_library(
            text in r"[-+]?[0-9]{0,25}\.?[0-9]{0,25}(e[-+]?[0-9]{1,3})?"
        ) {
            prop_assert_eq!(parse_decimal(&text).map(f64::to_bits), parse(&text));
        }

        #[test]
        fn numbers_are_read_as_written(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_normal());
            prop_assert_eq!(parse_decimal(&number.to_string()), Some(number));
            prop_assert_eq!(parse_decimal(&format!("{number:e}")), Some(number));
        }

        // A number halfway between two others is the hardest to round.
        #[test]
        fn halves_are_rounded_as_by_the_standard_library(mantissa in 1_u64 << 53..1 << 54, zeros in 0_usize..40) {
            let halfway = u128::from(mantissa | 1) << 20;
            for number in [halfway - 1, halfway, halfway + 1] {
                let text = format!("{number}.{}", "0".repeat(zeros));
                prop_assert_eq!(parse_decimal(&text).map(f64::to_bits), parse(&text));
            }
        }
    }
}
