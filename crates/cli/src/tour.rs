//! `tilewright tour`: one tiling problem from the matrices in memory to their product, printed and
//! checked.
//!
//! Law: nothing is merely asserted. Every layout shown is the value of the expression above it,
//! every picture is drawn by evaluating that value, and every line `checked` is a loop over all the
//! indices that it counts. A check that fails is shown, and the command ends with an error.

mod fragments;
mod memory;
mod product;

use std::fmt::Write as _;
use std::io::Write as _;

use tilewright::{Environment, Value, evaluate};

use crate::output::Failure;
use crate::picture::{Paint, Picture, painted, text};
use crate::terminal::Terminal;
use tilewright::explain::map::{self, Map};

/// A step of the tour: its title, and the function that shows it.
type Step = (&'static str, fn(&mut Tour) -> Result<(), Stop>);

const STEPS: [Step; 8] = [
    ("The matrices in memory", memory::matrices),
    ("Blocks, by zipped_divide", memory::blocks),
    ("One block", memory::one_block),
    ("The block in shared memory, swizzled", memory::shared),
    ("What one tensor-core instruction wants", fragments::instruction),
    ("128 threads share a tile of C", fragments::accumulators),
    ("The threads read their operands", fragments::operands),
    ("The product, run through the layouts", product::run),
];

const OPENING: &str = "\
    The problem: C = A B in half precision, C is 512x512, A is 512x256, B is 256x512. A group of 128 threads computes a 128x128 \
    tile of C, from 64 columns of A and 64 rows of B at a time. Every layout below is derived, drawn by evaluating it, and \
    checked at every index.";

/// Why a step cannot continue.
#[derive(Debug)]
pub struct Stop(String);

impl<E: std::error::Error> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop(error.to_string())
    }
}

pub fn run(only: Option<usize>, terminal: &mut Terminal) -> Result<(), Failure> {
    if let Some(step) = only
        && !(1..=STEPS.len()).contains(&step)
    {
        return Err(Failure::Usage(format!("there is no step {step}; the steps are 1 to {}", STEPS.len())));
    }
    // Lines have at most a hundred characters, or as many as the terminal has.
    let width = terminal.window().columns.clamp(40, 100) - 2;
    let (environment, text) = (Environment::new(), String::new());
    let mut tour = Tour { environment, text, width, colour: terminal.colour, failed: 0 };
    if only.is_none() {
        terminal.text(&wrapped(OPENING, width))?;
    }
    for (position, (title, step)) in STEPS.iter().enumerate() {
        let number = position + 1;
        tour.text.clear();
        tour.title(number, title);
        if let Err(Stop(reason)) = step(&mut tour) {
            tour.failed += 1;
            tour.line(&format!("FAILED: {reason}"));
        }
        // A step builds on earlier ones, so those run even if they are not shown.
        if only.is_none_or(|only| only == number) || tour.failed > 0 {
            terminal.prose(&tour.text)?;
            terminal.out.flush()?;
        }
        if only == Some(number) || tour.failed > 0 {
            break;
        }
    }
    if tour.failed > 0 {
        terminal.message("error: a check of the tour failed\n");
        return Err(Failure::No);
    }
    if only.is_none() {
        let names: Vec<&str> = tour.environment.names().collect();
        let ending =
            format!("Each expression above can be typed at `tilewright repl`. The names: {}.", names.join(", "));
        terminal.text(&format!("\n{}", wrapped(&ending, width)))?;
    }
    Ok(())
}

/// The running tour: the names so far, and the text of this step.
pub struct Tour {
    environment: Environment,
    text: String,
    /// The number of characters of a line.
    width: usize,
    colour: bool,
    failed: usize,
}

impl Tour {
    fn title(&mut self, number: usize, title: &str) {
        let rule = "─".repeat(self.width.saturating_sub(title.chars().count() + 6));
        let line = painted(&format!("{number}  {title} {rule}"), Paint::Strong, self.colour);
        let _ = write!(self.text, "\n{line}\n\n");
    }

    /// Adds a line of text unchanged.
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds a paragraph, wrapped to the width of the tour, and an empty line.
    fn say(&mut self, paragraph: &str) {
        self.text.push_str(&wrapped(paragraph, self.width));
        self.text.push('\n');
    }

    /// Evaluates `source`, binds it to `name`, and shows both and the value.
    fn define(&mut self, name: &str, source: &str) -> Result<Value, Stop> {
        let program = format!("{name} = {source}; {name}");
        let value = evaluate(&program, &mut self.environment).map_err(|error| Stop(error.render(&program, false)))?;
        let text = value.to_string();
        let code = painted(&format!("{name} = {source}"), Paint::Strong, self.colour);
        let _ = writeln!(self.text, "  {code}");
        if text != source {
            let _ = writeln!(self.text, "  {:width$} = {text}", "", width = name.chars().count());
        }
        Ok(value)
    }

    /// As [`Tour::define`], for a value that is a function of an index.
    fn layout(&mut self, name: &str, source: &str) -> Result<Map, Stop> {
        let value = self.define(name, source)?;
        map::of(&value).ok_or_else(|| Stop(format!("{name} is not a layout")))
    }

    /// The value of a name that an earlier step has bound.
    fn value(&mut self, name: &str) -> Result<Value, Stop> {
        evaluate(name, &mut self.environment).map_err(|error| Stop(error.render(name, false)))
    }

    /// As [`Tour::value`], for a function of an index.
    fn map(&mut self, name: &str) -> Result<Map, Stop> {
        map::of(&self.value(name)?).ok_or_else(|| Stop(format!("{name} is not a layout")))
    }

    /// Evaluates `source` to a number and shows it.
    fn number(&mut self, source: &str) -> Result<i64, Stop> {
        let value = evaluate(source, &mut self.environment).map_err(|error| Stop(error.render(source, false)))?;
        let line = painted(source, Paint::Strong, self.colour);
        let _ = writeln!(self.text, "  {line} = {value}");
        match value {
            Value::Int(n) => Ok(n),
            _ => Err(Stop(format!("{source} is not a number"))),
        }
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn picture(&mut self, picture: &Picture) {
        self.text.push_str(&text(picture, 2, self.colour));
    }

    /// Records that `what` was tested at `count` indices, and the outcome.
    fn check(&mut self, what: &str, count: i64, outcome: Result<(), String>) {
        let line = match outcome {
            Ok(()) => painted(&format!("checked: {what}, at {} indices", thousands(count)), Paint::Good, self.colour),
            Err(reason) => {
                self.failed += 1;
                painted(&format!("FAILED: {what}: {reason}"), Paint::Bad, self.colour)
            }
        };
        self.line(&line);
    }
}

/// The words of a paragraph, in lines of at most this many characters.
fn wrapped(paragraph: &str, line: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in paragraph.split_whitespace() {
        let width = word.chars().count();
        if used > 0 && used + 1 + width > line {
            text.push('\n');
            used = 0;
        }
        if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += width;
    }
    text.push('\n');
    text
}

/// Tests a condition at every index below `count`. The error is the first index at which it fails.
fn everywhere(count: i64, mut holds: impl FnMut(i64) -> Result<bool, Stop>) -> Result<(), String> {
    for index in 0..count {
        match holds(index) {
            Ok(true) => {}
            Ok(false) => return Err(format!("it does not hold at index {index}")),
            Err(Stop(reason)) => return Err(reason),
        }
    }
    Ok(())
}

/// Tests that each of `0..cells` is the value of exactly `times` indices of a map.
fn owned(map: &Map, cells: i64, times: u32) -> Result<(), String> {
    let mut owners = vec![0u32; usize::try_from(cells).unwrap_or(0)];
    for index in 0..map.size() {
        let offset = map.at(index).map_err(|error| error.to_string())?;
        match usize::try_from(offset).ok().and_then(|offset| owners.get_mut(offset)) {
            Some(count) => *count += 1,
            None => return Err(format!("index {index} goes to {offset}, outside")),
        }
    }
    match owners.iter().position(|count| *count != times) {
        None => Ok(()),
        Some(cell) => Err(format!("{cell} is hit {} times", owners.get(cell).copied().unwrap_or(0))),
    }
}

/// A number with commas between groups of three digits.
fn thousands(n: i64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_can_fail() {
        let map = |text: &str| Map::from(&text.parse::<tilewright::Layout>().unwrap());
        assert_eq!(owned(&map("(4,2):(2,1)"), 8, 1), Ok(()));
        assert_eq!(owned(&map("(4,2):(1,0)"), 4, 2), Ok(()));
        assert_eq!(owned(&map("(4,2):(1,3)"), 8, 1), Err("3 is hit 2 times".to_owned()));
        assert_eq!(owned(&map("4:3"), 8, 1), Err("index 3 goes to 9, outside".to_owned()));
        assert!(everywhere(10, |index| Ok(index < 5)).is_err());
        assert!(everywhere(5, |index| Ok(index < 5)).is_ok());
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([1, 100, 1000, 131_072, 4_194_304].map(thousands), ["1", "100", "1,000", "131,072", "4,194,304"]);
    }
}
