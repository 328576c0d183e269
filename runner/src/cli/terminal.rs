//! The width of the terminal, and how tables and sentences are fitted into it.

use std::io::{self, IsTerminal as _};
use trainplan_shared::tables::CELL_PADDING;

/// The fewest characters to which a text is narrowed in the middle of words.
const NARROWEST: usize = 10;

/// Returns the width of the terminal that shows stdout; none if stdout is not a terminal, or if its width is unknown.
/// COLUMNS overrides what the terminal says.
pub(super) fn width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let typed = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let typed = typed.filter(|columns: &usize| *columns > 0);
    let seen = || rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col));
    typed.or_else(seen).filter(|columns| *columns > 0)
}

/// Returns the widths to which the columns of a table are narrowed so that it fits into a terminal; none if it fits without.
///
/// The widest columns become narrower first. A number never wraps, and a word only if the table would not fit otherwise.
pub(super) fn narrowed(
    header: &[String],
    rows: &[Vec<String>],
    numbers: &[usize],
    terminal: usize,
) -> Option<Vec<usize>> {
    let cells = |place: usize| rows.iter().filter_map(move |row| row.get(place));
    let widest = |place: usize| cells(place).map(|cell| length(cell)).max().unwrap_or_default();
    let longest_word = |place: usize| cells(place).map(|cell| word_length(cell)).max().unwrap_or_default();
    let is_number = |place: usize| numbers.contains(&place);
    let titles = || header.iter().enumerate();
    let mut widths: Vec<usize> = titles().map(|(place, title)| widest(place).max(length(title))).collect();
    let unbroken: Vec<usize> = titles()
        .map(|(place, title)| {
            let cell = if is_number(place) { widest(place) } else { longest_word(place) };
            cell.max(word_length(title))
        })
        .collect();
    // Nothing is written after the last cell.
    let room = terminal.saturating_add(1).saturating_sub(CELL_PADDING * widths.len());
    if widths.iter().sum::<usize>() <= room {
        return None;
    }
    shrink(&mut widths, &unbroken, room);
    let broken = unbroken.iter().enumerate();
    let broken: Vec<usize> =
        broken.map(|(place, least)| if is_number(place) { *least } else { NARROWEST.min(*least) }).collect();
    shrink(&mut widths, &broken, room);
    Some(widths)
}

/// Narrows the widest columns until all of them fit, each to no less than its least width.
fn shrink(widths: &mut [usize], least: &[usize], room: usize) {
    while widths.iter().sum::<usize>() > room {
        let wider = widths.iter_mut().zip(least).filter(|(width, least)| **width > **least);
        match wider.max_by_key(|(width, _)| **width) {
            Some((width, _)) => *width -= 1,
            None => return,
        }
    }
}

/// Returns a text with line breaks between its words, for a terminal of this width. A further line is indented like its first.
pub(super) fn wrapped(text: &str, terminal: usize) -> String {
    let wrap = |line: &str| {
        let words = line.trim_start_matches(' ');
        let indent = " ".repeat(line.len() - words.len());
        let mut wrapped = indent.clone();
        let mut column = indent.len();
        for (place, word) in words.split(' ').enumerate() {
            let length = length(word);
            if place > 0 && column + 1 + length > terminal {
                wrapped.push('\n');
                wrapped.push_str(&indent);
                column = indent.len();
            } else if place > 0 {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += length;
        }
        wrapped
    };
    text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns the length of the longest word.
fn word_length(text: &str) -> usize {
    text.split(' ').map(length).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
        texts.map(String::from).to_vec()
    }

    #[test]
    fn texts_become_narrower_and_numbers_stay_whole() {
        let header = texts(["property", "spare GiB", "meaning"]);
        let rows = [texts(["overlaps_tp", "12.5", "Whether communication overlaps with computation."])];
        let narrowed = |terminal| narrowed(&header, &rows, &[1], terminal);
        // 11, 9 and 48 characters, with a space before and two between them.
        assert_eq!(narrowed(73), None);
        assert_eq!(narrowed(72), Some(vec![11, 9, 47]));
        assert_eq!(narrowed(45), Some(vec![11, 9, 20]));
        // The title of numbers is wrapped between its words.
        assert_eq!(narrowed(35), Some(vec![11, 6, 13]));
        // Words wrap if the table would not fit otherwise.
        assert_eq!(narrowed(29), Some(vec![10, 5, 10]));
        assert_eq!(narrowed(1), Some(vec![10, 5, 10]));
    }

    #[test]
    fn sentences_are_wrapped_between_words() {
        assert_eq!(wrapped("Two GPUs take 9 days.", 80), "Two GPUs take 9 days.");
        assert_eq!(wrapped("Two GPUs take 9 days.", 13), "Two GPUs take\n9 days.");
        assert_eq!(wrapped("\n  one two three", 10), "\n  one two\n  three");
        assert_eq!(wrapped("unbreakable", 4), "unbreakable");
        assert_eq!(wrapped("", 4), "");
    }
}
