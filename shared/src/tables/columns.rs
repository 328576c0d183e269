//! `columns!`, which defines the columns of a view.

/// Returns the first of its arguments.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}

/// Defines the columns of a view as an enum whose variants are the entries.
///
/// ```text
/// columns! {
///     /// The columns of a table of logs.
///     LogColumn of Report;
///     StepTime "step_time" {
///         page "Step time, s" [number, main] => |report| cells::step_time(report.step_time_s, report.judged_s);
///         terminal "step s" [number] => |report| report.step_time_s.map(|stat| …);
///         csv 6 "step_time_s_mean" => |report| number(report.step_time_s.map(|stat| stat.mean));
///     }
/// }
/// ```
///
/// Every line is optional. A fourth line, `sort => |row| SortValue`, lets a page sort by the column. The flags of `page`
/// are the builder methods of `PageHeading`, and those of `terminal` the methods of `TerminalHeading`. Each line becomes
/// an arm of its own `match`, so that a page which only draws headings does not carry the code of cells.
macro_rules! columns {
    (
        $(#[$doc:meta])*
        $Name:ident of $Row:ty;
        $(
            $Column:ident $key:literal {
                $(page $page_title:literal $([$($flag:ident $(($value:expr))?),*])? => $page:expr;)?
                $(terminal $terminal_title:literal $([$($mark:ident $(($rank:expr))?),*])? => $terminal:expr;)?
                $(csv $place:literal $header:literal => $csv:expr;)?
                $(sort => $sort:expr;)?
            }
        )*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Name {
            $(
                #[doc = concat!("`", $key, "`")]
                $Column,
            )*
        }

        impl $Name {
            /// Every column, in the order of pages and terminals.
            pub const ALL: &'static [Self] = &[$(Self::$Column),*];

            /// Returns the key of the column in cells and links.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$Column => $key,)*
                }
            }

            /// Returns the heading on a page; none where pages don't show the column.
            #[must_use]
            pub const fn page_heading(self) -> Option<$crate::tables::PageHeading> {
                match self {
                    $(Self::$Column => first!(
                        $(Some(
                            $crate::tables::PageHeading::new($key, $page_title)$($(.$flag($($value)?))*)?
                        ),)?
                        None
                    ),)*
                }
            }

            /// Returns the headings of a page's table.
            #[must_use]
            pub fn page_headings() -> Vec<$crate::tables::PageHeading> {
                Self::ALL.iter().filter_map(|column| column.page_heading()).collect()
            }

            /// Returns the cell of a row on a page; none where pages don't show the column.
            #[must_use]
            pub fn page_cell(self, row: &$Row) -> Option<$crate::tables::PageCell> {
                let cell: Option<fn(&$Row) -> $crate::tables::PageCell> = match self {
                    $(Self::$Column => first!($(Some($page),)? None),)*
                };
                cell.map(|cell| $crate::tables::PageCell { key: self.key().to_owned(), ..cell(row) })
            }

            /// Returns the cells of a row on a page.
            #[must_use]
            pub fn page_cells(row: &$Row) -> Vec<$crate::tables::PageCell> {
                Self::ALL.iter().filter_map(|column| column.page_cell(row)).collect()
            }

            const fn terminal_heading(self) -> Option<$crate::tables::TerminalHeading> {
                match self {
                    $(Self::$Column => first!(
                        $(Some(
                            $crate::tables::TerminalHeading::new($terminal_title)$($(.$mark($($rank)?))*)?
                        ),)?
                        None
                    ),)*
                }
            }

            fn terminal_cell(self, row: &$Row) -> Option<String> {
                let cell: Option<fn(&$Row) -> Option<String>> = match self {
                    $(Self::$Column => first!($(Some($terminal),)? None),)*
                };
                cell.and_then(|cell| cell(row))
            }

            /// Returns the rows as a table for a terminal.
            #[must_use]
            pub fn terminal_table(rows: &[$Row]) -> $crate::tables::TerminalTable {
                let shown = || Self::ALL.iter().filter(|column| column.terminal_heading().is_some());
                let headings = shown().filter_map(|column| column.terminal_heading()).collect();
                let cells = |row: &$Row| shown().map(|column| column.terminal_cell(row)).collect();
                $crate::tables::TerminalTable::new(headings, rows.iter().map(cells).collect())
            }

            /// Returns the rows as a table with all columns of a terminal.
            #[must_use]
            pub fn terminal(rows: &[$Row]) -> $crate::tables::TextTable {
                Self::terminal_table(rows).complete()
            }

            fn sort(self) -> Option<fn(&$Row) -> $crate::tables::SortValue> {
                match self {
                    $(Self::$Column => first!($(Some($sort),)? None),)*
                }
            }

            /// Returns whether a page can sort by the column.
            #[must_use]
            pub fn is_sortable(self) -> bool {
                self.sort().is_some()
            }

            /// Returns the value that a page sorts a row by; none where it can't sort by the column.
            #[must_use]
            pub fn sort_value(self, row: &$Row) -> Option<$crate::tables::SortValue> {
                self.sort().map(|value| value(row))
            }

            const fn csv_column(self) -> Option<(usize, &'static str)> {
                match self {
                    $(Self::$Column => first!($(Some(($place, $header)),)? None),)*
                }
            }

            /// Returns the place of the column in a CSV file, from 0; none where files don't have it.
            #[must_use]
            pub const fn csv_place(self) -> Option<usize> {
                match self.csv_column() {
                    Some((place, _)) => Some(place),
                    None => None,
                }
            }

            fn csv_cell(self, row: &$Row) -> Option<String> {
                let cell: Option<fn(&$Row) -> Option<String>> = match self {
                    $(Self::$Column => first!($(Some($csv),)? None),)*
                };
                cell.and_then(|cell| cell(row))
            }

            /// Returns the rows as a table for a CSV file, with every value in full.
            #[must_use]
            pub fn csv(rows: &[$Row]) -> $crate::tables::TextTable {
                let mut written: Vec<_> =
                    Self::ALL.iter().filter_map(|column| Some((column.csv_column()?, *column))).collect();
                written.sort_by_key(|((place, _), _)| *place);
                let cells = |row: &$Row| written.iter().map(|(_, column)| column.csv_cell(row)).collect();
                $crate::tables::TextTable {
                    titles: written.iter().map(|((_, header), _)| *header).collect(),
                    numbers: vec![false; written.len()],
                    rows: rows.iter().map(cells).collect(),
                }
            }
        }
    };
}
