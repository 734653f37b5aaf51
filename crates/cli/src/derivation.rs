//! The derivation of an expression: its formulas, and a picture of each operation.

use std::fmt::Write as _;
use std::path::Path;

use tilewright::Environment;
use tilewright::draw::{self, Format, Medium, Page, Style, Theme};
use tilewright::explain::figures::sections;
use tilewright::notation::derive;

use crate::output::{Failure, write_file};
use crate::picture;
use crate::terminal::Terminal;

/// Prints the derivation of an expression, or the reason why it has no value.
pub fn tell(source: &str, brief: bool, environment: &mut Environment, terminal: &mut Terminal) -> Result<(), Failure> {
    let derivation = derive(source, environment);
    let mut text = derivation.to_string();
    if !brief {
        let sections = sections(&derivation, Style { medium: Medium::Terminal, ..Style::default() });
        let several = sections.iter().filter(|section| !section.figures.is_empty()).count() > 1;
        let colours = picture::colours(terminal.colour);
        for section in &sections {
            if several && !section.figures.is_empty() {
                let _ = writeln!(text, "\n{}", section.formula);
            }
            for figure in &section.figures {
                let picture = figure.picture(terminal.window(), colours).text(2, colours, draw::Mode::Light);
                let _ = writeln!(text, "\n{}", picture.trim_end_matches('\n'));
            }
        }
    }
    if derivation.value.is_err() && !derivation.steps.is_empty() {
        text.push('\n');
    }
    terminal.text(&text)?;
    derivation.value.map(|_| ()).map_err(|diagnostic| Failure::of_expression(diagnostic, source))
}

/// Writes a web page with the derivation of an expression, or the reason why it has no value.
pub fn write(
    source: &str,
    file: &Path,
    theme: Theme,
    environment: &mut Environment,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if Format::of_file(file) != Ok(Format::Html) {
        return Err(Failure::Usage("an explanation is a web page: end the name with .html".to_owned()));
    }
    let derivation = derive(source, environment);
    let mut page = Page::new(source, theme);
    match &derivation.value {
        Ok(value) => page.value(format!("= {value}")),
        Err(diagnostic) => page.wrong(diagnostic.render(source, false)),
    }
    for section in sections(&derivation, Style::default()) {
        page.part(section.formula);
        page.formulas(section.lines.join("\n"));
        section.figures.iter().for_each(|figure| page.figure(figure));
    }
    write_file(file, page.html().as_bytes(), terminal)?;
    derivation.value.map(|_| ()).map_err(|diagnostic| Failure::of_expression(diagnostic, source))
}
