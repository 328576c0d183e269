//! Keeps lines from breaking before a percent sign, or within `98 % of it`. The texts come from code that writes for terminals too,
//! which print ordinary spaces.

use trainplan_shared::tables::PageCell;

/// Returns a text with no-break spaces before its percent signs.
pub(super) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%").replace("% of it", "%\u{a0}of\u{a0}it")
}

/// Returns the cells of a run for a page.
pub(super) fn page_cells(cells: Vec<PageCell>) -> Vec<PageCell> {
    let cell = |cell: PageCell| PageCell {
        text: unbroken(&cell.text),
        detail: unbroken(&cell.detail),
        key: cell.key,
    };
    cells.into_iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_stay_on_one_line() {
        assert_eq!(unbroken("4.8 % longer (4.1 to 5.5 %)."), "4.8\u{a0}% longer (4.1 to 5.5\u{a0}%).");
        assert_eq!(unbroken("11.4–12.9, 97.0 % of it"), "11.4–12.9, 97.0\u{a0}%\u{a0}of\u{a0}it");
    }
}
