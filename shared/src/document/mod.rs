//! The common parts of standalone documents: HTML files that open without a network and run no script.

use crate::text::html as escaped;

/// The program and its version, at the end of documents.
pub(crate) const MADE_BY: &str = concat!("Made by Trainplan ", env!("CARGO_PKG_VERSION"), ".");

const STYLE: &str = include_str!("style.css");

/// Returns an HTML file from a title, which is plain text, and its content, which is HTML. Its security policy allows its own style
/// sheet and nothing else. `own_style` has the rules that only this kind of document needs.
pub(crate) fn page(title: &str, own_style: &str, content: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}{own_style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{content}<p class=\"soft\">{MADE_BY}</p>\n\
         </body>\n</html>\n"
    )
}

/// Returns a table whose titles and cells are HTML already. The first cell names its row.
pub(crate) fn table(
    caption: &str,
    head: impl Iterator<Item = (String, bool)>,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let head: Vec<(String, bool)> = head.collect();
    let class = |place: usize| match head.get(place) {
        Some((_, true)) => " class=\"number\"",
        _ => "",
    };
    let titles: String = head
        .iter()
        .enumerate()
        .map(|(place, (title, _))| format!("<th scope=\"col\"{}>{title}</th>", class(place)))
        .collect();
    let row = |cells: Vec<String>| {
        let cell = |(place, cell): (usize, &String)| match place {
            0 => format!("<th scope=\"row\"{}>{cell}</th>", class(place)),
            _ => format!("<td{}>{cell}</td>", class(place)),
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = rows.map(row).collect();
    let caption = escaped(caption);
    // The region has the focus, so that the keyboard scrolls a wide table.
    let region = format!("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">");
    let head = format!("<thead><tr>{titles}</tr></thead>");
    format!("{region}<table><caption>{caption}</caption>{head}<tbody>\n{rows}</tbody></table></div>\n")
}

/// Returns a cell with a text, and a detail below it in small letters.
pub(crate) fn cell(text: &str, detail: &str) -> String {
    let text = escaped(or_dash(text));
    match detail {
        "" => text,
        detail => format!("{text}<small>{}</small>", escaped(detail)),
    }
}

/// Returns a list of sentences about runs, each with the run's label.
pub(crate) fn sentences<'t>(all: impl Iterator<Item = (&'t str, &'t str)>) -> String {
    let lines: String =
        all.map(|(label, text)| format!("<li><b>{}</b>: {}</li>\n", escaped(label), escaped(text))).collect();
    if lines.is_empty() { lines } else { format!("<ul>\n{lines}</ul>\n") }
}

/// Returns the text, or a dash in place of an empty one.
pub(crate) fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}
