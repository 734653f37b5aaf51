//! The `tilewright` command.
//!
//! Results go to standard output, messages to standard error. The exit status is 0 if all went well, 1 if an expression has
//! an error or a check fails, 2 if the command was not used as it should be. A reader that closes the pipe ends the
//! command quietly.

mod analysis;
mod args;
mod atoms;
mod bench;
mod check;
mod derivation;
mod draw;
mod emit;
mod eval;
mod explain;
mod gemm;
mod json;
mod launch;
mod law;
mod manual;
mod map;
mod morphism;
mod picture;
mod progress;
mod relayout;
mod repl;
mod show;
mod terminal;
mod tour;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use terminal::{Failure, Terminal};

fn main() -> ExitCode {
    let args = Args::parse();
    let mut terminal = Terminal::new(args.color);
    let done = run(args.command, &mut terminal);
    let flushed = terminal.finish();
    match done.and_then(|()| flushed.map_err(Failure::Io)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Refused) => ExitCode::from(1),
        Err(Failure::Io(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Io(error)) => complain(&error.to_string()),
        Err(Failure::Usage(message)) => complain(&message),
    }
}

fn run(command: Option<Command>, terminal: &mut Terminal) -> Result<(), Failure> {
    match command {
        None => Ok(io::Write::write_all(&mut terminal.out, Args::command().render_help().to_string().as_bytes())?),
        Some(Command::Eval { input, json }) => eval::run(&input, json, terminal),
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
        Some(Command::Bench { table }) => bench::run(&table, terminal),
        Some(Command::Relayout { options }) => relayout::run(&options, terminal),
        Some(Command::Gemm { options }) => gemm::run(&options, terminal),
        Some(Command::Explain { options }) => explain::run(&options, terminal),
        Some(Command::Functions { name }) => explain::run_functions(name.as_deref(), terminal),
        Some(Command::Atoms { options }) => atoms::run(&options, terminal),
        Some(Command::Morphism { expression, span, options }) => morphism::run(&expression, span, &options, terminal),
        Some(Command::Compose { outer, inner, by_refinement, options }) => {
            morphism::run_compose(&outer, &inner, by_refinement, &options, terminal)
        }
        Some(Command::Refine { first, second, options }) => morphism::run_refine(&first, &second, &options, terminal),
        Some(Command::Tractable { expression, json }) => morphism::run_tractable(&expression, json, terminal),
        Some(Command::Tour { step }) => tour::run(step, terminal),
        Some(Command::Completions { shell }) => manual::completions(shell, terminal),
        Some(Command::Man { command }) => manual::page(command.as_deref(), terminal),
    }
}

fn complain(message: &str) -> ExitCode {
    // Nothing can be told to a reader who is gone.
    let _ = io::Write::write_all(&mut io::stderr(), format!("error: {message}\n").as_bytes());
    ExitCode::from(2)
}
