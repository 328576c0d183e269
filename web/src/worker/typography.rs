//! The signs of texts on pages: lines don't break before a percent sign, and ranges of steps have a dash. The texts come from code
//! that writes for terminals too, which print ordinary spaces and hyphens.

use trainplan_shared::tables::{ComparisonColumn, PageCell};

/// Returns a text with no-break spaces before its percent signs.
pub(super) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// Returns a text about some steps, such as `Steps 20-29 are scored`, with a dash in its first range.
pub(super) fn about_steps(text: &str) -> String {
    let is_about_steps = text.starts_with("Steps ") || text.starts_with("steps ");
    unbroken(&if is_about_steps { text.replacen('-', "–", 1) } else { text.to_string() })
}

/// Returns the cells of a run for a page.
pub(super) fn page_cells(cells: Vec<PageCell>) -> Vec<PageCell> {
    // Tables of logs have the same column.
    let is_window = |cell: &PageCell| cell.key == ComparisonColumn::Window.key();
    let cell = |cell: PageCell| PageCell {
        text: if is_window(&cell) { window(&cell.text) } else { unbroken(&cell.text) },
        detail: about_steps(&cell.detail),
        key: cell.key,
    };
    cells.into_iter().map(cell).collect()
}

/// Returns the steps of a window, such as `49-49`, as people write them.
fn window(text: &str) -> String {
    match text.split_once('-') {
        Some((first, last)) if first == last => first.to_string(),
        Some((first, last)) => format!("{first}–{last}"),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::tables::LogColumn;

    #[test]
    fn percentages_stay_on_one_line() {
        assert_eq!(
            unbroken("4.8 % longer (4.1 to 5.5 %)."),
            "4.8\u{a0}% longer (4.1 to 5.5\u{a0}%)."
        );
    }

    #[test]
    fn windows_and_steps_have_a_dash_and_dates_have_not() {
        let cell =
            |key: &str, text: &str, detail: &str| PageCell { key: key.into(), text: text.into(), detail: detail.into() };
        let window = LogColumn::Window.key();
        let cells = page_cells(vec![
            cell(window, "49-49", ""),
            cell(window, "35-44", ""),
            cell("step_time", "12.4", "steps 10-49: mean 12.4, 95 % interval 12.3 to 12.5"),
            cell("ran", "2026-01-31 12:00 UTC", ""),
        ]);
        let texts: Vec<&str> = cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts, ["49", "35–44", "12.4", "2026-01-31 12:00 UTC"]);
        assert_eq!(cells[2].detail, "steps 10–49: mean 12.4, 95\u{a0}% interval 12.3 to 12.5");
        assert_eq!(about_steps("Steps 20-29 are scored, as you chose."), "Steps 20–29 are scored, as you chose.");
    }
}
