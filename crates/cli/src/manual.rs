//! Shell completions and manual pages, made from the definition of the command line.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;
use crate::output::Failure;
use crate::terminal::Terminal;

pub fn completions(shell: Shell, terminal: &mut Terminal) -> Result<(), Failure> {
    // `generate` panics if writing fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "tilewright", &mut script);
    Ok(terminal.out.write_all(&script)?)
}

pub fn page(command: Option<&str>, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut whole = Args::command();
    whole.build();
    let man = match command {
        None => Man::new(whole),
        Some(name) => match whole.find_subcommand(name) {
            Some(command) => Man::new(command.clone()),
            None => return Err(Failure::Usage(format!("there is no subcommand '{name}'"))),
        },
    };
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok(terminal.out.write_all(&page)?)
}
