//! Problems for GEMMs and kernels, each as a line of text.
//!
//! Law: a line means the same as its words after `tilewright gemm` or `tilewright kernel bench`.

use std::io::Read;
use std::path::Path;

use clap::{Args, Parser};

use crate::gemm::GemmOptions;
use crate::kernel::Choice;
use crate::output::Failure;

/// A problem of a line.
#[derive(Debug)]
pub enum ProblemLine {
    /// `gemm 4096 4096 4096 --type bf16`.
    Gemm(Box<GemmOptions>),
    /// `transpose M=8192 N=8192 --type bf16`: a kernel of the library, or a tile program.
    Kernel(Choice),
}

/// The words of a line, as a command.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Words<T: Args> {
    #[command(flatten)]
    options: T,
}

impl ProblemLine {
    /// Reads a line.
    ///
    /// Errors: words that the command does not accept.
    pub fn read(line: &str) -> Result<ProblemLine, Failure> {
        let words = words(line)?;
        let usage = |error: clap::Error| {
            let text = error.to_string();
            Failure::Usage(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
        };
        match words.split_first() {
            Some((word, rest)) if word == "gemm" => {
                let Words { options } = Words::try_parse_from(rest).map_err(usage)?;
                Ok(ProblemLine::Gemm(Box::new(options)))
            }
            _ => Ok(ProblemLine::Kernel(Words::try_parse_from(&words).map_err(usage)?.options)),
        }
    }
}

/// The lines on the command line, and those of a file; `-` is standard input. Empty lines and lines
/// that begin with `#` are skipped.
pub fn lines(typed: &[String], file: Option<&Path>) -> Result<Vec<String>, Failure> {
    let mut all = typed.to_vec();
    if let Some(path) = file {
        let text = if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        } else {
            std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?
        };
        let kept = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        all.extend(kept.map(str::to_owned));
    }
    Ok(all)
}

/// The words of a line; quotes keep blanks.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), own) if own == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, own) if own.is_whitespace() => words.extend(word.take()),
            (_, own) => word.get_or_insert_default().push(own),
        }
    }
    if let Some(open) = quote {
        return Err(Failure::Usage(format!("{line:?} has a {open} that is not closed")));
    }
    words.extend(word);
    Ok(words)
}
