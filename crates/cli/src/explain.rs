//! `tilewright explain` and `tilewright functions`: the meaning of a code, derivations, and the
//! list of functions.

use std::path::PathBuf;

use clap::Args;
use tilewright::Environment;
use tilewright::layout::nearest;
use tilewright::notation::{Function, functions};

use crate::derivation;
use crate::output::{Failure, ThemeName};
use crate::picture::{Paint, painted};
use crate::reader;
use crate::terminal::Terminal;

/// What to explain, and how.
#[derive(Debug, Args)]
pub struct ExplainOptions {
    /// An error code such as E0107, or an expression.
    #[arg(value_name = "CODE|EXPRESSION", allow_hyphen_values = true)]
    subject: String,
    /// The web page to write about an expression; without it the explanation goes to the terminal.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Light, dark, or what the reader prefers.
    #[arg(long, value_enum, default_value = "auto")]
    theme: ThemeName,
    /// Formulas only, without pictures.
    #[arg(long)]
    brief: bool,
}

pub fn run(options: &ExplainOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let environment = &mut reader::environment();
    let told = match &options.output {
        Some(file) => derivation::write(&options.subject, file, options.theme.into(), environment, terminal),
        None => tell(&options.subject, options.brief, environment, terminal),
    };
    reader::note(environment);
    told
}

/// The pages about error codes: each crate has those of its own errors.
const PAGES: [fn(&str) -> Option<&'static str>; 15] = [
    tilewright::layout::explanation,
    tilewright::notation::explanation,
    tilewright::emit::explanation,
    tilewright::atoms::explanation,
    tilewright::draw::explanation,
    tilewright::tensor::explanation,
    tilewright::analysis::explanation,
    tilewright::morphism::explanation,
    tilewright::kernel::explanation,
    tilewright::planners::explanation,
    tilewright::gpu::explanation,
    tilewright::mesh::explanation,
    tilewright::tile::explanation,
    tilewright::read::explanation,
    tilewright::sanitize::explanation,
];

/// Explains an error code, or an expression in an environment.
pub fn tell(subject: &str, brief: bool, environment: &mut Environment, terminal: &mut Terminal) -> Result<(), Failure> {
    if is_code(subject) {
        let code = subject.trim().to_uppercase();
        return match PAGES.into_iter().find_map(|explanation| explanation(&code)) {
            Some(text) => Ok(terminal.prose(&page(text, terminal.colour))?),
            None => Err(Failure::Usage(format!("there is no error code {code}"))),
        };
    }
    derivation::tell(subject, brief, environment, terminal)
}

/// A page as text for a terminal: bold headings, and code indented instead of fenced.
fn page(text: &str, colour: bool) -> String {
    let mut page = String::new();
    let mut code = false;
    for line in text.trim().lines() {
        if line.starts_with("```") {
            code = !code;
        } else if code {
            page.push_str(&format!("    {line}\n"));
        } else if let Some(heading) = line.strip_prefix("# ") {
            page.push_str(&painted(heading, Paint::Strong, colour));
            page.push('\n');
        } else {
            page.push_str(line);
            page.push('\n');
        }
    }
    page
}

/// Whether this is an error code: `E` and four digits.
fn is_code(text: &str) -> bool {
    let text = text.trim();
    let digits = text.strip_prefix(['E', 'e']);
    digits.is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

pub fn run_functions(name: Option<&str>, terminal: &mut Terminal) -> Result<(), Failure> {
    let colour = terminal.colour;
    match name {
        Some(name) => match describe(name, colour) {
            Some(text) => Ok(terminal.prose(&text)?),
            None => Err(Failure::Usage(unknown(name))),
        },
        None => Ok(terminal.prose(&list(colour))?),
    }
}

/// All functions, by section.
pub fn list(colour: bool) -> String {
    let mut sections: Vec<&str> = Vec::new();
    for function in functions() {
        if !sections.contains(&function.section) {
            sections.push(function.section);
        }
    }
    let width = functions().iter().map(|function| function.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (position, section) in sections.into_iter().enumerate() {
        if position > 0 {
            text.push('\n');
        }
        text.push_str(&painted(section, Paint::Strong, colour));
        text.push('\n');
        for function in functions().iter().filter(|function| function.section == section) {
            text.push_str(&format!("  {:width$}  {}\n", function.name, function.summary));
        }
    }
    text.push_str(
        "\n`tilewright functions NAME` describes one. `A o B` is composition(A, B), and A.f(x) is f(A, x).\n",
    );
    text
}

/// One function: its signature, its result, an example.
pub fn describe(name: &str, colour: bool) -> Option<String> {
    let function: &Function = functions().iter().find(|function| function.name == name)?;
    Some(format!(
        "{}\n\n  {}\n\nExample:\n  {}\n  {}\n",
        painted(function.signature, Paint::Strong, colour),
        function.summary,
        function.example,
        function.result
    ))
}

/// The error for an unknown function, with similar names.
pub fn unknown(name: &str) -> String {
    let names = || functions().iter().map(|function| function.name);
    let begun: Vec<&str> = names().filter(|known| name.len() >= 2 && known.starts_with(name)).collect();
    let near = if begun.is_empty() { nearest(name, names(), 1) } else { begun };
    match near.as_slice() {
        [] => format!("there is no function '{name}'; `tilewright functions` lists them"),
        [near] => format!("there is no function '{name}'; is '{near}' meant?"),
        several => format!("there is no function '{name}'; these begin so: {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_from_expressions() {
        assert!(is_code("E0107") && is_code(" e0107 "));
        assert!(!is_code("E107") && !is_code("(4,8)") && !is_code("E01075"));
    }

    #[test]
    fn pages_lose_their_fences() {
        let text = "# E0001: a title\n\nWords.\n\n```text\n4:1\n```\n";
        assert_eq!(page(text, false), "E0001: a title\n\nWords.\n\n    4:1\n");
    }

    #[test]
    fn what_was_meant_is_found() {
        assert_eq!(unknown("complment"), "there is no function 'complment'; is 'complement' meant?");
        assert_eq!(unknown("compl"), "there is no function 'compl'; is 'complement' meant?");
        assert!(
            unknown("right_").ends_with("these begin so: right_inverse")
                || unknown("right_").contains("'right_inverse'")
        );
        assert_eq!(unknown("zzzzzz"), "there is no function 'zzzzzz'; `tilewright functions` lists them");
    }
}
