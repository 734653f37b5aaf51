//! `tilewright eval`: the value of a program, or of each line of a file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use tilewright::notation::run_batch;
use tilewright::{Environment, evaluate};

use crate::json;
use crate::terminal::{Failure, Terminal};

pub fn run(input: &str, as_json: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    if input == "-" {
        return lines(BufReader::with_capacity(1 << 16, io::stdin().lock()), as_json, terminal);
    }
    if Path::new(input).is_file() {
        let file = File::open(input).map_err(|error| Failure::Usage(format!("cannot read '{input}': {error}")))?;
        return lines(BufReader::with_capacity(1 << 16, file), as_json, terminal);
    }
    match evaluate(input, &mut Environment::new()) {
        Ok(value) if as_json => writeln!(terminal.out, "{}", json::value(&value))?,
        Ok(value) => writeln!(terminal.out, "{value}")?,
        Err(diagnostic) if as_json => {
            writeln!(terminal.out, "{}", json::error(&diagnostic))?;
            return Err(Failure::Refused);
        }
        Err(diagnostic) => return Err(terminal.report(&diagnostic, input)),
    }
    Ok(())
}

/// One program a line, one line of output for each.
fn lines(input: impl BufRead, as_json: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    let failed = if as_json { json_lines(input, &mut terminal.out)? } else { run_batch(input, &mut terminal.out)? };
    if failed > 0 { Err(Failure::Refused) } else { Ok(()) }
}

fn json_lines(mut input: impl BufRead, out: &mut impl Write) -> io::Result<usize> {
    let mut failed = 0;
    let mut bytes = Vec::new();
    let mut environment = Environment::new();
    while input.read_until(b'\n', &mut bytes)? > 0 {
        // Bytes that are no text are an error of the line they stand in; the other lines still count.
        let line = String::from_utf8_lossy(&bytes);
        match evaluate(line.trim_end_matches(['\n', '\r']), &mut environment) {
            Ok(value) => writeln!(out, "{}", json::value(&value))?,
            Err(diagnostic) => {
                failed += 1;
                writeln!(out, "{}", json::error(&diagnostic))?;
            }
        }
        bytes.clear();
        environment.clear();
    }
    Ok(failed)
}
