//! Batch mode: each line of the input is a program, and gets one line of output.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::ast::Program;
use crate::diagnostic::Diagnostic;
use crate::eval::{Environment, run};
use crate::lex::is_attribute;
use crate::notes::Note;
use crate::value::Value;

/// The number of bytes that are read at once.
const PIECE: usize = 1 << 16;

/// The answer of one line.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// The line is empty, or a comment.
    Nothing,
    /// The value of its program, and its notes if notes are kept.
    Value(&'a Value, &'a [Note]),
    /// The error of its program, and the program.
    Error(&'a Diagnostic, &'a str),
}

impl Answer<'_> {
    /// Writes the line of the answer: the canonical text of the value, `error: ` and the message,
    /// or nothing.
    ///
    /// Errors: writing fails.
    pub fn write_line(&self, mut out: impl Write) -> io::Result<()> {
        match self {
            Answer::Nothing => writeln!(out),
            Answer::Value(value, _) => writeln!(out, "{value}"),
            Answer::Error(error, _) => writeln!(out, "error: {}", error.one_line()),
        }
    }
}

/// Programs that are evaluated one after another, each on a line of its own.
///
/// Each line has one answer, in order. A line that is empty or a comment has an empty answer, so
/// that answers are aligned with programs. A line that is not UTF-8 is an error at the first wrong
/// byte. A byte-order mark before the first line is ignored. Answers are flushed before more input
/// is read: a caller that writes a program and reads the answer before the next one gets it.
///
/// ```
/// use tilewright_notation::Batch;
///
/// let mut out = Vec::new();
/// let lines = "# tiles\nA = (4,8):(8,1)\nA.size()\n";
/// let failed = Batch::default().keeping_names().run(lines.as_bytes(), &mut out, |out, answer| answer.write_line(out));
/// assert_eq!(failed.unwrap(), 0);
/// assert_eq!(String::from_utf8(out).unwrap(), "\n(4,8):(8,1)\n32\n");
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    keeps_names: bool,
    environment: Environment,
}

impl Batch {
    /// Keeps the names that a line binds for the lines after it. Without this, names are dropped
    /// after their line.
    #[must_use]
    pub fn keeping_names(mut self) -> Batch {
        self.keeps_names = true;
        self
    }

    /// Evaluates programs with the names of this environment. Notes are kept or refused as the
    /// environment says.
    #[must_use]
    pub fn within(mut self, environment: Environment) -> Batch {
        self.environment = environment;
        self
    }

    /// Evaluates every line of `input`, and calls `write` with each answer. Returns the number of
    /// lines that failed.
    ///
    /// Errors: reading or writing fails.
    pub fn run<W: Write>(
        &self,
        input: impl Read,
        mut out: W,
        mut write: impl FnMut(&mut W, Answer<'_>) -> io::Result<()>,
    ) -> io::Result<usize> {
        let mut input = BufReader::with_capacity(PIECE, input);
        let mut program = Program::default();
        let mut env = self.environment.clone();
        let mut line = Vec::new();
        let (mut failed, mut first) = (0, true);
        while input.read_until(b'\n', &mut line)? > 0 {
            // Text that is not UTF-8 is an error at its first wrong byte; the remaining lines are
            // still evaluated.
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            let text = if first { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
            first = false;
            let begin = text.trim_start();
            if begin.is_empty() || begin.strip_prefix('#').is_some_and(|comment| !is_attribute(comment)) {
                write(&mut out, Answer::Nothing)?;
            } else {
                let answer = run(text, &mut program, &mut env);
                let notes = env.take_notes();
                match answer {
                    Ok(value) => write(&mut out, Answer::Value(&value, &notes))?,
                    Err(error) => {
                        failed += 1;
                        write(&mut out, Answer::Error(&error, text))?;
                    }
                }
            }
            if !self.keeps_names {
                env.clone_from(&self.environment);
            }
            line.clear();
            if !input.buffer().contains(&b'\n') {
                // The caller may wait for these answers before it sends the next line.
                out.flush()?;
            }
        }
        out.flush()?;
        Ok(failed)
    }
}

/// Evaluates every line of `input` as a program of its own and writes one line for each, as
/// [`Batch`] does. Returns the number of lines that failed.
///
/// Errors: reading or writing fails.
///
/// ```
/// let mut out = Vec::new();
/// let failed = tilewright_notation::run_batch("size(4:1)\nsize(4:)\n".as_bytes(), &mut out).unwrap();
/// let text = String::from_utf8(out).unwrap();
/// assert_eq!(failed, 1);
/// assert_eq!(text, "4\nerror: expected a value, found ')' [E0201 at byte 7]\n");
/// ```
pub fn run_batch(input: impl Read, out: impl Write) -> io::Result<usize> {
    Batch::default().run(input, out, |out, answer| answer.write_line(out))
}
