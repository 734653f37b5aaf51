//! Diagnostics: the error of a program, and its location.
//!
//! Law: the locations of a diagnostic are inside the text that was evaluated.
//! [`Diagnostic::render`] shows the lines of these locations with the faulty part underlined, as
//! `rustc` does; [`Diagnostic::one_line`] gives the message without the source. Both depend only on
//! the diagnostic and the text.

use std::fmt::Write as _;
use std::ops::Range;

use tilewright_layout::symbolic::Parameter;
use tilewright_layout::{Refusal, Tree};

/// An error in a program: a stable code, a sentence, the location of the culprit in the text, and a
/// hint.
///
/// ```
/// use tilewright_notation::{Environment, evaluate};
///
/// let source = "size((4,8):(1,4)) & 1";
/// let error = evaluate(source, &mut Environment::new()).unwrap_err();
/// assert_eq!(error.code, "E0203");
/// assert_eq!(&source[error.span], "&");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code, for [`crate::explanation()`].
    pub code: &'static str,
    /// The error, as one sentence without a full stop.
    pub message: String,
    /// The location of the error, in bytes of the source.
    pub span: Range<usize>,
    /// Further locations, each with a text. The one at [`Diagnostic::span`] labels the error
    /// itself.
    pub labels: Vec<(Range<usize>, String)>,
    /// A hint on how to fix it.
    pub help: Option<String>,
    /// An index at which the condition of the operation fails, or a coordinate nested like the
    /// operand that the message names. None if no index shows the failure.
    pub witness: Option<Box<Tree<i64>>>,
    /// The declaration of a parameter with facts that the message proposes, as long as it has not
    /// been tried.
    pub(crate) declaration: Option<Parameter>,
}

/// An error of the parser, boxed: the parser's functions recurse as deep as the text nests, and
/// their results should be small.
pub(crate) type Fail = Box<Diagnostic>;

/// The largest number of columns of a source line that are shown, so that a megabyte on one line
/// stays readable.
const WINDOW: usize = 100;

impl Diagnostic {
    pub(crate) fn new(code: &'static str, span: Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            span,
            labels: Vec::new(),
            help: None,
            witness: None,
            declaration: None,
        }
    }

    /// The program has no statement.
    pub(crate) fn nothing(source: &str) -> Diagnostic {
        Diagnostic::new("E0212", 0..source.len(), "there is nothing to evaluate")
    }

    /// The diagnostic as a failure.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail<T>(self) -> Result<T, Fail> {
        Err(Box::new(self))
    }

    #[must_use]
    pub(crate) fn label(mut self, span: Range<usize>, text: impl Into<String>) -> Diagnostic {
        self.labels.push((span, text.into()));
        self
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The message on one line, with its code and position: for logs and for batch mode.
    pub fn one_line(&self) -> String {
        let mut line = String::with_capacity(self.message.len() + 24);
        line.extend(self.message.chars().map(|c| if c.is_control() { ' ' } else { c }));
        let _ = write!(line, " [{} at byte {}]", self.code, self.span.start);
        line
    }

    /// The diagnostic as text of several lines: the message, the source with the culprit
    /// underlined, and the help.
    ///
    /// `source` is the text that was evaluated. `colour` asks for ANSI colours. The text ends in a
    /// newline.
    pub fn render(&self, source: &str, colour: bool) -> String {
        let paint = Paint { colour };
        let mut out = String::new();
        paint.write(&mut out, RED, &format!("error[{}]", self.code));
        paint.write(&mut out, BOLD, &format!(": {}", self.message));
        out.push('\n');

        let marks = self.marks(source);
        let place = Place::of(source, marks.first().map_or(0, |mark| mark.span.start));
        let mut lines: Vec<usize> = marks.iter().map(|mark| Place::of(source, mark.span.start).line).collect();
        lines.sort_unstable();
        lines.dedup();
        let gutter = lines.last().map_or(1, |line| (line + 1).to_string().len());
        paint.write(&mut out, BLUE, &format!("{:gutter$}--> ", ""));
        let _ = writeln!(out, "{}:{}", place.line + 1, place.column + 1);
        paint.write(&mut out, BLUE, &format!("{:gutter$} |", ""));
        out.push('\n');
        let mut previous: Option<usize> = None;
        for line in lines {
            if previous.is_some_and(|previous| previous + 1 < line) {
                paint.write(&mut out, BLUE, "...");
                out.push('\n');
            }
            previous = Some(line);
            let on_line: Vec<&Mark<'_>> =
                marks.iter().filter(|mark| Place::of(source, mark.span.start).line == line).collect();
            write_line(&mut out, &paint, source, line, gutter, &on_line);
        }
        if let Some(help) = &self.help {
            paint.write(&mut out, BLUE, &format!("{:gutter$} |", ""));
            out.push('\n');
            paint.write(&mut out, BLUE, &format!("{:gutter$} = ", ""));
            paint.write(&mut out, BOLD, "help");
            let _ = writeln!(out, ": {help}");
        }
        out
    }

    /// The location of the error first, then the other locations, all inside the text.
    fn marks(&self, source: &str) -> Vec<Mark<'_>> {
        let inside = |span: &Range<usize>| {
            let start = floor_boundary(source, span.start);
            start..floor_boundary(source, span.end).max(start)
        };
        let own = self.labels.iter().find(|(span, _)| *span == self.span).map_or("", |(_, text)| text.as_str());
        let mut marks = vec![Mark { span: inside(&self.span), text: own, primary: true }];
        let others = self.labels.iter().filter(|(span, _)| *span != self.span);
        marks.extend(others.map(|(span, text)| Mark { span: inside(span), text, primary: false }));
        marks
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.one_line())
    }
}

impl std::error::Error for Diagnostic {}

impl Refusal for Diagnostic {
    fn code(&self) -> &'static str {
        self.code
    }

    fn help(&self) -> Option<String> {
        self.help.clone()
    }
}

/// A word, shortened to fit a message.
pub(crate) fn excerpt(word: &str) -> String {
    match word.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", word.get(..end).unwrap_or("")),
        None => word.to_string(),
    }
}

/// A location to underline.
struct Mark<'a> {
    span: Range<usize>,
    text: &'a str,
    primary: bool,
}

/// A line and a column, both counted from 0, columns in characters.
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn of(source: &str, at: usize) -> Place {
        let before = source.get(..at).unwrap_or(source);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            line: before.bytes().filter(|byte| *byte == b'\n').count(),
            column: before.get(start..).map_or(0, |line| line.chars().count()),
        }
    }
}

/// The largest character boundary that is at most `at`.
fn floor_boundary(source: &str, at: usize) -> usize {
    let mut at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}

const RED: &str = "\x1b[1;31m";
const BLUE: &str = "\x1b[1;34m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

struct Paint {
    colour: bool,
}

impl Paint {
    fn write(&self, out: &mut String, style: &str, text: &str) {
        if self.colour {
            let _ = write!(out, "{style}{text}{PLAIN}");
        } else {
            out.push_str(text);
        }
    }
}

/// One source line, the underlines below it, and a row for each label.
fn write_line(out: &mut String, paint: &Paint, source: &str, line: usize, gutter: usize, marks: &[&Mark<'_>]) {
    let begin = match line.checked_sub(1) {
        Some(above) => source.match_indices('\n').nth(above).map_or(source.len(), |(at, _)| at + 1),
        None => 0,
    };
    let text = source.get(begin..).and_then(|rest| rest.split('\n').next()).unwrap_or("");
    let column = |at: usize| text.get(..at.saturating_sub(begin).min(text.len())).map_or(0, |t| t.chars().count());
    let width = text.chars().count();
    let spans: Vec<(usize, usize)> = marks
        .iter()
        .map(|mark| {
            let start = column(mark.span.start);
            (start, column(mark.span.end).max(start + 1))
        })
        .collect();

    // The visible part of a line that is too long.
    let first = spans.first().map_or(0, |span| span.0);
    let from = if width > WINDOW { first.saturating_sub(WINDOW / 2) } else { 0 };
    let to = (from + WINDOW).min(width);
    let mut shown = String::new();
    let lead = if from > 0 { "..." } else { "" };
    shown.push_str(lead);
    shown.extend(text.chars().skip(from).take(to - from).map(|c| if c.is_control() { ' ' } else { c }));
    if to < width {
        shown.push_str("...");
    }
    paint.write(out, BLUE, &format!("{:>gutter$} |", line + 1));
    let _ = writeln!(out, " {}", shown.trim_end());
    let shift = |column: usize| (column.clamp(from, to + 1) - from) + lead.len();

    // The underlines, and the label of the rightmost beside them.
    let mut row: Vec<char> = Vec::new();
    for ((start, end), mark) in spans.iter().zip(marks).rev() {
        let (start, end) = (shift(*start), shift(*end).max(shift(*start) + 1));
        if row.len() < end {
            row.resize(end, ' ');
        }
        let sign = if mark.primary { '^' } else { '-' };
        for cell in row.iter_mut().take(end).skip(start) {
            if *cell != '^' {
                *cell = sign;
            }
        }
    }
    let mut order: Vec<usize> =
        (0..marks.len()).filter(|at| marks.get(*at).is_some_and(|m| !m.text.is_empty())).collect();
    order.sort_by_key(|at| spans.get(*at).map(|span| span.0));
    let last = order.last().copied();
    let beside = last.filter(|at| spans.get(*at).is_some_and(|span| shift(span.1) >= row.len()));
    paint.write(out, BLUE, &format!("{:gutter$} |", ""));
    out.push(' ');
    write_marks(out, paint, &row);
    if let Some(mark) = beside.and_then(|at| marks.get(at)) {
        out.push(' ');
        paint.write(out, if mark.primary { RED } else { BLUE }, mark.text);
    }
    out.push('\n');

    // The other labels are on rows below, the rightmost first, so that no bar crosses a text.
    let mut hanging: Vec<usize> = order.iter().copied().filter(|at| beside != Some(*at)).collect();
    let bars = |hanging: &[usize], width: usize| -> String {
        let mut bars: Vec<char> = vec![' '; width];
        for at in hanging {
            if let Some(cell) = spans.get(*at).and_then(|span| bars.get_mut(shift(span.0))) {
                *cell = '|';
            }
        }
        bars.into_iter().collect()
    };
    if let Some(span) = hanging.last().and_then(|at| spans.get(*at)) {
        paint.write(out, BLUE, &format!("{:gutter$} |", ""));
        out.push(' ');
        paint.write(out, BLUE, &bars(&hanging, shift(span.0) + 1));
        out.push('\n');
    }
    while let Some(at) = hanging.pop() {
        let (Some(mark), Some(span)) = (marks.get(at), spans.get(at)) else { continue };
        let bars = bars(&hanging, shift(span.0));
        paint.write(out, BLUE, &format!("{:gutter$} |", ""));
        out.push(' ');
        paint.write(out, BLUE, &bars);
        paint.write(out, if mark.primary { RED } else { BLUE }, mark.text);
        out.push('\n');
    }
}

/// A row of underlines, each kind in its colour.
fn write_marks(out: &mut String, paint: &Paint, row: &[char]) {
    for run in row.chunk_by(|a, b| a == b) {
        let text: String = run.iter().collect();
        match run.first() {
            Some('^') => paint.write(out, RED, &text),
            Some('-') => paint.write(out, BLUE, &text),
            _ => out.push_str(&text),
        }
    }
}
