//! Reports as one table: a row for each case, a column for each card.
//!
//! Law: every case of every report has a row, in the order of first appearance. The text of a
//! report is escaped, whatever characters it has.

use super::report::Report;

/// The words of all cases.
fn lines(reports: &[Report]) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for case in reports.iter().flat_map(|report| &report.cases) {
        if !lines.contains(&case.line.as_str()) {
            lines.push(&case.line);
        }
    }
    lines
}

/// The head of a column.
fn head(report: &Report) -> String {
    format!("{}, {}", report.card, report.about.join(", "))
}

/// A report's entry for a case.
fn cell(report: &Report, line: &str) -> String {
    report.outcome(line).map_or(String::new(), ToString::to_string)
}

/// The table as Markdown.
pub fn markdown(reports: &[Report]) -> String {
    let escaped = |text: &str| {
        let mut escaped = String::new();
        for character in text.chars() {
            match character {
                '\n' | '\r' => escaped.push(' '),
                '|' | '<' | '`' | '\\' => escaped.extend(['\\', character]),
                other => escaped.push(other),
            }
        }
        escaped
    };
    let row = |cells: &mut dyn Iterator<Item = String>| {
        cells.fold("|".to_owned(), |row, cell| row + " " + &escaped(&cell) + " |") + "\n"
    };
    let mut text = row(&mut ["case".to_owned()].into_iter().chain(reports.iter().map(head)));
    text += &("|---".repeat(reports.len() + 1) + "|\n");
    for line in lines(reports) {
        let cells = reports.iter().map(|report| cell(report, line));
        text += &row(&mut [line.to_owned()].into_iter().chain(cells));
    }
    text
}

/// The table as a web page, which loads nothing.
pub fn page(reports: &[Report]) -> String {
    let escaped =
        |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let head = reports.iter().fold(String::new(), |head, report| {
        let about = report.about.iter().map(|about| escaped(about)).collect::<Vec<_>>().join("<br>");
        head + &format!("<th scope=\"col\">{}<small>{about}</small></th>", escaped(&report.card))
    });
    let rows = lines(reports).into_iter().fold(String::new(), |rows, line| {
        let cells = reports.iter().fold(String::new(), |cells, report| {
            cells + "<td>" + &escaped(&cell(report, line)).replace(", ", "<br>") + "</td>"
        });
        rows + &format!("<tr><th scope=\"row\"><code>{}</code></th>{cells}</tr>\n", escaped(line))
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Tilewright on several GPUs</title>\n\
         <style>{STYLE}</style>\n<h1>Tilewright on several GPUs</h1>\n<p>{ABOUT}</p>\n\
         <div><table>\n<thead><tr><th scope=\"col\">case</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n\
         </html>\n"
    )
}

const ABOUT: &str = "Each figure is the median time of a result that was compared with its definition in the same run. \
    Cases are written as for <code>tilewright gemm</code> and <code>tilewright kernel bench</code>; \
    <code>tilewright bench report -o card.json</code> measures another card.";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem}\
div{overflow-x:auto}table{border-collapse:collapse}\
th,td{text-align:left;vertical-align:top;padding:.4rem .8rem;border-bottom:1px solid #8884}\
td{font-variant-numeric:tabular-nums;white-space:nowrap}td:empty::after{content:'not measured';opacity:.5}\
small{display:block;font-weight:normal;opacity:.7}code{font-size:.92em}";
