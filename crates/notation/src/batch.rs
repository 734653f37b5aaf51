//! Batch mode: one program a line, one line of answer for each.

use std::io;

use crate::ast::Program;
use crate::eval::{Environment, run};

/// Evaluates every line of `input` as a program of its own and writes one line for each, in order: the canonical text of
/// the value, or `error: ` and the message. Returns how many failed.
///
/// Names do not outlive their line. An empty line is a program without a value, and so an error; so is a line that is not
/// UTF-8. The input is read a line at a time.
/// Errors: reading or writing fails.
///
/// ```
/// let mut out = Vec::new();
/// let failed = tilewright_notation::run_batch("size(4:1)\nsize(4:)\n".as_bytes(), &mut out).unwrap();
/// let text = String::from_utf8(out).unwrap();
/// assert_eq!(failed, 1);
/// assert_eq!(text, "4\nerror: expected a value, found ')' [E0201 at byte 7]\n");
/// ```
pub fn run_batch(mut input: impl io::BufRead, mut out: impl io::Write) -> io::Result<usize> {
    let mut program = Program::default();
    let mut env = Environment::new();
    let mut line = Vec::new();
    let mut failed = 0;
    while input.read_until(b'\n', &mut line)? > 0 {
        // Text that is not UTF-8 is an error where it goes wrong; the rest of the input still counts.
        let text = String::from_utf8_lossy(&line);
        match run(text.trim_end_matches(['\n', '\r']), &mut program, &mut env) {
            Ok(value) => writeln!(out, "{value}")?,
            Err(error) => {
                failed += 1;
                writeln!(out, "error: {}", error.one_line())?;
            }
        }
        env.clear();
        line.clear();
    }
    Ok(failed)
}
