//! Batch mode: one program a line, one line of answer for each.

use std::io;

use crate::ast::Program;
use crate::eval::{Environment, run};

/// Evaluates every line of `input` as a program of its own and writes one line for each, in order: the canonical text of
/// the value, or `error: ` and the message. Returns how many failed.
///
/// Names do not outlive their line. An empty line is a program without a value, and so an error.
/// Errors: writing fails.
///
/// ```
/// let mut out = Vec::new();
/// let failed = tilewright_notation::run_batch("size(4:1)\nsize(4:)\n", &mut out).unwrap();
/// let text = String::from_utf8(out).unwrap();
/// assert_eq!(failed, 1);
/// assert_eq!(text, "4\nerror: expected a value, found ')' [E0201 at byte 7]\n");
/// ```
pub fn run_batch(input: &str, out: &mut impl io::Write) -> io::Result<usize> {
    let mut program = Program::default();
    let mut env = Environment::new();
    let mut failed = 0;
    for line in input.lines() {
        match run(line, &mut program, &mut env) {
            Ok(value) => writeln!(out, "{value}")?,
            Err(error) => {
                failed += 1;
                writeln!(out, "error: {}", error.one_line())?;
            }
        }
        env.clear();
    }
    Ok(failed)
}
