//! Pictures of the layouts of a tile program: distributions over threads, and tiles in shared
//! memory.
//!
//! Law: values with the same shape and layout share a picture. Nothing is computed here; pictures
//! show the contents of the explanation.

use std::path::Path;

use tilewright::draw::{self, Figure, Format, Page, Style};
use tilewright::explain::figures::tiles;
use tilewright::tile::{Choice, Explanation, Held, NextBest, Staged};

use crate::output::{Failure, Saving, write_file};
use crate::picture;
use crate::terminal::Terminal;

/// Values with the same shape and layout.
struct Alike<'e> {
    names: Vec<&'e str>,
    first: &'e Choice,
}

fn alike(explained: &Explanation) -> Vec<Alike<'_>> {
    let mut found: Vec<Alike<'_>> = Vec::new();
    for choice in &explained.choices {
        let same = |own: &&mut Alike<'_>| (&own.first.held, &own.first.ty.shape) == (&choice.held, &choice.ty.shape);
        match found.iter_mut().find(same) {
            Some(own) => own.names.push(&choice.name),
            None => found.push(Alike { names: vec![&choice.name], first: choice }),
        }
    }
    // A scalar has no picture, and neither does a tile that no thread holds.
    let taken = |own: &Alike<'_>| explained.staged.iter().any(|staged| !staged.is_read && staged.name == own.names[0]);
    found.retain(|own| own.first.held.size() > 1 && !taken(own));
    found
}

fn refused(error: tilewright::layout::LayoutError) -> Failure {
    Failure::refused(&error)
}

/// The thread of each element of a tile.
fn held_by(heading: &str, held: &Held, shape: &[i64], style: Style) -> Result<Figure<'static>, Failure> {
    Ok(tiles::held(heading, &held.layout().map_err(refused)?, shape, style)?)
}

/// The threads of the first rows and columns.
fn corner(heading: &str, held: &Held, shape: &[i64]) -> Result<Figure<'static>, Failure> {
    Ok(tiles::held_corner(heading, &held.layout().map_err(refused)?, shape, Style::default())?)
}

/// A few lines of a stage, with their banks.
fn staged_figure(staged: &Staged, style: Style) -> Result<Figure<'static>, Failure> {
    Ok(tiles::staged(&staged.layout, staged.bits, style)?)
}

fn more(next: &NextBest, explained: &Explanation) -> String {
    let share = 100.0 * (next.cycles / explained.cycles.max(1.0) - 1.0);
    let because: Vec<String> = next.because.iter().map(|(what, more)| format!("{what} {more:+.0}")).collect();
    // The search may not have proved that there is no cheaper layout.
    let at_most = if next.bound < next.cycles { "at most " } else { "" };
    match (next.cycles > explained.cycles, because.is_empty()) {
        (false, _) => "the same".to_string(),
        (true, true) => format!("{at_most}{share:.1} % more"),
        (true, false) => format!("{at_most}{share:.1} % more cycles: {}", because.join(", ")),
    }
}

/// Prints the pictures to the terminal.
pub fn show(explained: &Explanation, terminal: &mut Terminal) -> Result<(), Failure> {
    let colours = picture::colours(terminal.colour);
    let style = Style { medium: draw::Medium::Terminal, ..Style::default() };
    let mut put = |heading: String, figure: Figure<'_>| {
        let picture = figure.picture(terminal.window(), colours).text(2, colours, draw::Mode::Light);
        terminal.text(&format!("\n{heading}\n{}\n", picture.trim_end_matches('\n')))
    };
    for own in alike(explained) {
        let figure = held_by("", &own.first.held, &own.first.ty.shape, style)?;
        put(format!("{}: {} by {}", own.names.join(", "), own.first.ty, own.first.held), figure)?;
    }
    for staged in &explained.staged {
        put(
            format!("{}: {} in shared memory, {}", staged.name, staged.tensor, staged.layout),
            staged_figure(staged, style)?,
        )?;
    }
    Ok(())
}

/// Writes the page, or the picture of one value, to a file whose extension gives the format.
pub fn save(
    name: &str,
    explained: &Explanation,
    value: Option<&str>,
    (file, saving): (&Path, &Saving),
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let Some(value) = value else {
        if Format::of_file(file)? == Format::Html {
            return write_file(file, page(name, explained, saving)?.as_bytes(), terminal);
        }
        let usage = "a picture is one of a value: say which with --value, or write a page, as in -o program.html";
        return Err(Failure::Usage(usage.to_owned()));
    };
    let style = saving.style();
    if let Some(staged) = explained.staged.iter().find(|own| own.name == value) {
        return saving.save(&staged_figure(staged, style)?, file, crate::output::SCALE, terminal);
    }
    let Some(choice) = explained.choices.iter().find(|own| own.name == value) else {
        let names: Vec<&str> = explained.choices.iter().map(|own| own.name.as_str()).collect();
        return Err(Failure::Usage(format!("there is no value {value}; there are {}", names.join(", "))));
    };
    let heading = format!("{value}: {}", choice.ty);
    let figure = held_by(&heading, &choice.held, &choice.ty.shape, style)?;
    saving.save(&figure.captioned(choice.held.to_string()), file, crate::output::SCALE, terminal)
}

fn page(name: &str, explained: &Explanation, saving: &Saving) -> Result<String, Failure> {
    let style = Style::default();
    let mut page = Page::new(name, saving.theme());
    page.formulas(explained.program.trim_end());
    let text = explained.to_string();
    let words = text.strip_prefix(&explained.program).unwrap_or(&text).trim();
    let (summary, _) = words.split_once("\n\n").unwrap_or((words, ""));
    page.value(summary);
    for own in alike(explained) {
        let Choice { ty, held, origin, weighed, next, .. } = own.first;
        page.part(own.names.join(", "));
        page.formulas(format!("{ty} by {held}"));
        page.text(format!("This layout is one that {origin} asks for."));
        page.figure(&corner("", held, &ty.shape)?);
        match next {
            Some(next) => {
                page.text(format!("The next best of {weighed} layouts, for {}:", own.names[0]));
                page.formulas(next.held.to_string());
                page.text(format!("The whole would cost {}.", more(next, explained)));
                page.figure(&corner("the next best", &next.held, &ty.shape)?);
            }
            None => page.text("There was no other layout to weigh."),
        }
    }
    for staged in &explained.staged {
        page.part(format!("{} in shared memory", staged.name));
        page.formulas(format!("{} of {}", staged.layout, staged.tensor));
        page.text(
            "The first lines of a stage, before and after its swizzle; the 8 rows of a matrix are in different banks.",
        );
        page.figure(&staged_figure(staged, style)?);
    }
    Ok(page.html())
}
