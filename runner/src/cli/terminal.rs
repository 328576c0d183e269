//! The width of the terminal, and how tables and sentences are fitted into it.

use std::io::{self, IsTerminal as _};
use std::ops::Range;
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
/// A path, a URL or a command never does, because a user copies it: with a long one, the table is wider than the terminal.
pub(super) fn narrowed(
    header: &[String],
    rows: &[Vec<String>],
    numbers: &[usize],
    terminal: usize,
) -> Option<Vec<usize>> {
    let cells = |place: usize| rows.iter().filter_map(move |row| row.get(place));
    let widest = |place: usize| cells(place).map(|cell| length(cell)).max().unwrap_or_default();
    let longest_word = |place: usize| cells(place).map(|cell| word_length(cell)).max().unwrap_or_default();
    let longest_copied =
        |place: usize| cells(place).map(|cell| copied_length(cell)).max().unwrap_or_default();
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
    let narrowest = |place: usize, least: usize| NARROWEST.min(least).max(longest_copied(place));
    let broken: Vec<usize> = broken
        .map(|(place, least)| if is_number(place) { *least } else { narrowest(place, *least) })
        .collect();
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
///
/// Commands between backticks, and the texts in `whole`, such as paths with spaces, are not broken. One that is wider
/// than the terminal gets its own line.
pub(super) fn wrapped(text: &str, terminal: usize, whole: &[&str]) -> String {
    let wrap = |line: &str| {
        let words = line.trim_start_matches(' ');
        let indent = " ".repeat(line.len() - words.len());
        let mut wrapped = indent.clone();
        let mut column = indent.len();
        for (place, word) in pieces(words, whole).into_iter().enumerate() {
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

/// Splits a line at its spaces, except in commands between backticks and in the texts of `whole`.
fn pieces<'t>(line: &'t str, whole: &[&str]) -> Vec<&'t str> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let ticks: Vec<usize> = line.match_indices('`').map(|(place, _)| place).collect();
    for pair in ticks.chunks_exact(2) {
        kept.push(pair[0]..pair[1]);
    }
    for text in whole.iter().filter(|text| !text.is_empty()) {
        kept.extend(line.match_indices(*text).map(|(start, text)| start..start + text.len()));
    }
    let mut pieces = Vec::new();
    let mut start = 0;
    for (place, space) in line.match_indices(' ') {
        if !kept.iter().any(|range| range.contains(&place)) {
            pieces.push(&line[start..place]);
            start = place + space.len();
        }
    }
    pieces.push(&line[start..]);
    pieces
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns the length of the longest word, or command between backticks.
fn word_length(text: &str) -> usize {
    pieces(text, &[]).into_iter().map(length).max().unwrap_or_default()
}

/// Returns the length of the longest piece that a user would copy: a path, a URL, the beginning of an id, or a command between
/// backticks; 0 without one.
fn copied_length(text: &str) -> usize {
    let is_id = |piece: &str| {
        piece.contains('-') && piece.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
    };
    let copied = pieces(text, &[]).into_iter().filter(|piece| piece.contains(['/', '`']) || is_id(piece));
    copied.map(length).max().unwrap_or_default()
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
    fn a_path_or_a_command_in_a_table_stays_whole() {
        let header = texts(["check", "seen"]);
        let narrowed = |seen: &str| {
            let rows = [texts(["release 25.04", seen])];
            narrowed(&header, &rows, &[], 30)
        };
        assert_eq!(narrowed("/lustre/llmb/recipes/llama3.1 is missing"), Some(vec![7, 29]));
        assert_eq!(narrowed("use `sinfo --summarize` to see them"), Some(vec![8, 19]));
        assert_eq!(narrowed("see https://results.example/runs/7"), Some(vec![7, 30]));
        assert_eq!(narrowed("its id is 96e9719d-7fa7-4d"), Some(vec![11, 16]));
        assert_eq!(narrowed("a-word-that-nobody-has-to-copy"), Some(vec![7, 20]));
    }

    #[test]
    fn sentences_are_wrapped_between_words() {
        let wrapped = |text, terminal| wrapped(text, terminal, &[]);
        assert_eq!(wrapped("Two GPUs take 9 days.", 80), "Two GPUs take 9 days.");
        assert_eq!(wrapped("Two GPUs take 9 days.", 13), "Two GPUs take\n9 days.");
        assert_eq!(wrapped("\n  one two three", 10), "\n  one two\n  three");
        assert_eq!(wrapped("unbreakable", 4), "unbreakable");
        assert_eq!(wrapped("", 4), "");
    }

    #[test]
    fn what_a_user_copies_stays_on_one_line() {
        let command = "To cancel it, use `trainplan jobs cancel llama-8b`. Or wait.";
        let expected = "To cancel it, use\n`trainplan jobs cancel llama-8b`.\nOr wait.";
        assert_eq!(wrapped(command, 35, &[]), expected);
        // A command that is wider than the terminal gets its own line.
        assert_eq!(wrapped(command, 20, &[]), expected);
        let path = "/home/me/my runs/7.log.zst";
        assert_eq!(
            wrapped(&format!("  Local copy: {path}"), 30, &[path]),
            format!("  Local copy:\n  {path}")
        );
        assert_eq!(wrapped("one ` two three", 8, &[""]), "one `\ntwo\nthree");
    }
}
