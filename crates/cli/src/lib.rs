//! The `tilewright` command as a library: the command itself, and the output and measurement code
//! that it shares with the laboratory.
//!
//! Results go to standard output, messages to standard error; with `--json` both are objects on
//! standard output. The exit status is 0 for success. It is 1 if the answer is no, an expression is
//! refused, or a file or stream cannot be read or written. It is 2 for wrong usage, and 3 if a
//! check was only partial. A reader that closes the pipe ends the command silently.

mod analysis;
mod args;
mod atoms;
mod bench;
mod candidate;
mod check;
mod closed;
mod derivation;
mod draw;
mod emit;
mod eval;
mod explain;
mod gemm;
mod json;
mod kernel;
mod launch;
mod lsp;
mod machine;
mod manual;
mod mesh;
mod morphism;
mod output;
mod picture;
mod playground;
mod problem_line;
mod progress;
mod read;
mod reader;
mod relayout;
mod repl;
mod sanitize;
mod show;
mod terminal;
mod tour;
mod tune;
mod write;

use std::io::Write;
use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, Parser};

use args::{Args, Command};
use output::Failure;
use terminal::Terminal;

/// The parts that the laboratory's programs share with the command. These names are not a stable
/// interface: they change with the command.
#[doc(hidden)]
pub mod shared {
    pub use crate::answered;
    pub use crate::gemm::{ProductNumber, Random, Sum, peak};
    pub use crate::machine::to_plan_for;
    pub use crate::output::{Failure, SCALE, Saving};
    pub use crate::progress::Progress;
    pub use crate::terminal::Terminal;
}

/// Runs the command with the arguments of this process. Returns the exit status.
pub fn command() -> ExitCode {
    let terminal = |args: &Args| {
        reader::be_strict(args.strict);
        Terminal::new(args.color, args.json)
    };
    answered(terminal, |args, terminal| run(args.command, terminal))
}

/// Parses the arguments of this process, runs them, and reports a failure. Returns the exit status.
pub fn answered<A: Parser>(
    terminal: impl FnOnce(&A) -> Terminal,
    run: impl FnOnce(A, &mut Terminal) -> Result<(), Failure>,
) -> ExitCode {
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(error) => return misused::<A>(&error),
    };
    let mut terminal = terminal(&args);
    let done = run(args, &mut terminal);
    for note in reader::notes() {
        terminal.note(&note);
    }
    let failure = done.err();
    if let Some(failure) = &failure {
        terminal.tell(failure);
    }
    let status = failure.map_or(0, |failure| failure.status());
    match terminal.finish() {
        Err(error) if status == 0 => {
            let failure = Failure::Io(error);
            let _ = std::io::stderr().write_all(failure.text(false).as_bytes());
            ExitCode::from(failure.status())
        }
        _ => ExitCode::from(status),
    }
}

/// Prints the error in a command line.
fn misused<A: CommandFactory>(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json");
    let mut terminal = Terminal::new(ColorChoice::Auto, json);
    if !error.use_stderr() {
        return asked::<A>(error, terminal);
    }
    if json {
        // The first paragraph is the error, and another one may have a tip; the usage after them is
        // that of `--help`.
        let text = in_plain_words(error.to_string());
        let mut paragraphs =
            text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
        let message = paragraphs.next().unwrap_or_default();
        let tip = paragraphs.find_map(|paragraph| paragraph.strip_prefix("tip: ").map(str::to_owned));
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let _ = terminal.object(&json::failure("usage", message, tip.as_deref(), None));
        let _ = terminal.finish();
    } else {
        let text = error.render();
        let text = if terminal.message_colour { text.ansi().to_string() } else { text.to_string() };
        terminal.message(&in_plain_words(text));
    }
    ExitCode::from(2)
}

/// Prints the answer to `--help` and `--version`, as text or as an object.
fn asked<A: CommandFactory>(error: &clap::Error, mut terminal: Terminal) -> ExitCode {
    let told = match error.kind() {
        clap::error::ErrorKind::DisplayVersion if terminal.json => {
            let name = A::command().get_name().to_owned();
            terminal.object(&serde_json::json!({ "name": name, "version": env!("CARGO_PKG_VERSION") }))
        }
        _ => {
            let text = error.render();
            let text = if terminal.colour { text.ansi().to_string() } else { text.to_string() };
            terminal.text(&text)
        }
    };
    match told.and_then(|()| terminal.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = Failure::Io(error);
            let _ = std::io::stderr().write_all(failure.text(false).as_bytes());
            ExitCode::from(failure.status())
        }
    }
}

/// The error about a number, reworded from that of the standard library.
fn in_plain_words(text: String) -> String {
    let words = [
        ("invalid digit found in string", "it is no whole number"),
        ("invalid float literal", "it is no number"),
        ("number too large to fit in target type", "it is too large"),
        ("number too small to fit in target type", "it is less than what is taken"),
    ];
    words.into_iter().fold(text, |text, (from, to)| text.replace(from, to))
}

fn run(command: Option<Command>, terminal: &mut Terminal) -> Result<(), Failure> {
    match command {
        None => Ok(terminal.text(&Args::command().render_help().to_string())?),
        Some(Command::Eval { options }) => eval::run(&options, terminal),
        Some(Command::Repl) => repl::run(terminal),
        Some(Command::Show { expression, table, all }) => show::run(&expression, table, all, terminal),
        Some(Command::Check { expression, other: None }) => check::run_law(&expression, terminal),
        Some(Command::Check { expression, other: Some(other) }) => check::run_equal(&expression, &other, terminal),
        Some(Command::Draw { expressions, options }) => draw::run(&expressions, &options, terminal),
        Some(Command::Banks { layout, options }) => analysis::banks::run(&layout, &options, terminal),
        Some(Command::Access { layout, options }) => analysis::access::run(&layout, &options, terminal),
        Some(Command::Suggest { layout, options }) => analysis::suggest::run(&layout, &options, terminal),
        Some(Command::Footprint { layout, other, options }) => {
            analysis::footprint::run(&layout, other.as_deref(), &options, terminal)
        }
        Some(Command::Emit { expression, options }) => emit::run(&expression, &options, terminal),
        Some(Command::Write { options }) => write::run_write(&options, terminal),
        Some(Command::Same { options }) => write::run_same(&options, terminal),
        Some(Command::Read { options }) => read::run(&options, terminal),
        Some(Command::Relayout { options }) => relayout::run(&options, terminal),
        Some(Command::Sanitize { options }) => sanitize::run(&options, terminal),
        Some(Command::Kernel { action }) => kernel::run(&action, terminal),
        Some(Command::Gemm { options }) => gemm::run(&options, terminal),
        Some(Command::Tune { options }) => tune::run(&options, terminal),
        Some(Command::Bench { action }) => bench::run(&action, terminal),
        Some(Command::Launch { options }) => launch::run(&options),
        Some(Command::Mesh { action }) => mesh::run(&action, terminal),
        Some(Command::Explain { options }) => explain::run(&options, terminal),
        Some(Command::Functions { name }) => explain::run_functions(name.as_deref(), terminal),
        Some(Command::Atoms { options }) => atoms::run(&options, terminal),
        Some(Command::Morphism { expression, span, options }) => morphism::run(&expression, span, &options, terminal),
        Some(Command::Compose { outer, inner, by_refinement, options }) => {
            morphism::run_compose(&outer, &inner, by_refinement, &options, terminal)
        }
        Some(Command::Refine { first, second, options }) => morphism::run_refine(&first, &second, &options, terminal),
        Some(Command::Tractable { expression }) => morphism::run_tractable(&expression, terminal),
        Some(Command::Candidate { expressions }) => candidate::run(&expressions, terminal),
        Some(Command::Lsp) => lsp::run(),
        Some(Command::Playground { options }) => playground::run(&options, terminal),
        Some(Command::Tour { step }) => tour::run(step, terminal),
        Some(Command::Completions { shell }) => manual::completions(shell, terminal),
        Some(Command::Man { command }) => manual::page(command.as_deref(), terminal),
    }
}
