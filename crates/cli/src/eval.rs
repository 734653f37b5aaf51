//! `tilewright eval`: the value of a program, or of each line of a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use tilewright::notation::{Answer, Batch, Note};
use tilewright::{Diagnostic, Value, evaluate};

use crate::json;
use crate::output::Failure;
use crate::reader;
use crate::terminal::Terminal;

/// The expression to evaluate.
#[derive(Debug, Args)]
pub struct EvalOptions {
    /// An expression, or `-` for the lines of standard input.
    #[arg(value_name = "EXPRESSION", allow_hyphen_values = true, required_unless_present = "file")]
    expression: Option<String>,
    /// Evaluate the lines of a file instead.
    #[arg(short, long, value_name = "FILE", conflicts_with = "expression")]
    file: Option<PathBuf>,
    /// Let the lines after a line use the names that it binds.
    #[arg(long)]
    keep_names: bool,
}

pub fn run(options: &EvalOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    match (&options.file, options.expression.as_deref()) {
        (Some(path), _) => {
            let refuse = |error: io::Error| Failure::file(path, error);
            let file = File::open(path).map_err(refuse)?;
            lines(Named { file, path }, options, terminal)
        }
        (None, Some("-")) => lines(io::stdin().lock(), options, terminal),
        (None, expression) => one(expression.unwrap_or_default(), terminal),
    }
}

/// A reader of a file whose errors contain its name.
struct Named<'a> {
    file: File,
    path: &'a Path,
}

impl Read for Named<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.path.display()));
        self.file.read(buffer).map_err(named)
    }
}

fn one(source: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut environment = reader::environment();
    let mut answer = evaluate(source, &mut environment);
    // A text that is not an expression may be from another system.
    if let Err(error) = &answer
        && let Some(ours) = reader::foreign(source, error)?
    {
        answer = evaluate(&ours, &mut environment);
    }
    match answer {
        Ok(value) if terminal.json => Ok(terminal.object(&noted(&value, &environment.take_notes()))?),
        Ok(value) => {
            reader::note(&mut environment);
            Ok(writeln!(terminal.out, "{value}")?)
        }
        Err(diagnostic) => Err(Failure::of_expression(about_files(diagnostic, source), source)),
    }
}

/// A value as an object, with its notes if there are some.
fn noted(value: &Value, notes: &[Note]) -> json::Json {
    let mut object = json::value(value);
    if let (Some(fields), false) = (object.as_object_mut(), notes.is_empty()) {
        let notes: Vec<&str> = notes.iter().map(|note| note.message.as_str()).collect();
        fields.insert("notes".to_owned(), notes.into());
    }
    object
}

/// Adds advice if a file name was given instead of an expression.
fn about_files(mut diagnostic: Diagnostic, source: &str) -> Diagnostic {
    let path = Path::new(source);
    let extension = path.extension().and_then(|extension| extension.to_str());
    if path.is_dir() {
        diagnostic.help = Some(format!("'{source}' is a directory; an expression or --file FILE is evaluated"));
    } else if path.exists() || extension.is_some_and(|extension| ["txt", "tw", "layout"].contains(&extension)) {
        diagnostic.help = Some(format!("to evaluate the lines of a file, write --file {source}"));
    }
    diagnostic
}

/// Evaluates one program for each line, and writes one line of output for each.
fn lines(input: impl Read, options: &EvalOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut batch = Batch::default().within(reader::environment());
    if options.keep_names {
        batch = batch.keeping_names();
    }
    let failed = match terminal.json {
        true => batch.run(input, terminal.out.objects(), |out, answer| match answer {
            Answer::Nothing => writeln!(out, "null"),
            Answer::Value(value, notes) => writeln!(out, "{}", noted(value, notes)),
            Answer::Error(diagnostic, source) => {
                let place = Some((source, diagnostic.span.clone()));
                let help = diagnostic.help.as_deref();
                writeln!(out, "{}", json::failure(diagnostic.code, &diagnostic.message, help, place))
            }
        })?,
        false => batch.run(input, &mut terminal.out, |out, answer| {
            if let Answer::Value(value, [first, ..]) = answer {
                // The answers of a batch are on lines of their own; a note says which one it is
                // about.
                let (value, message) = (value.to_string(), &first.message);
                out.flush()?;
                writeln!(io::stderr(), "note: {value}: {message}")?;
            }
            answer.write_line(out)
        })?,
    };
    if failed > 0 { Err(Failure::No) } else { Ok(()) }
}
