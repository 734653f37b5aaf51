//! `tilewright lsp`: the language server, on standard input and output.
//!
//! Law: the playground that an editor opens is served by this command, in a process beside the
//! server, which ends with it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tilewright_lsp::{Host, serve};

use crate::output::Failure;
use crate::playground::fragment;

/// The playground, served by another process of this command.
struct Playground {
    process: Child,
    /// The address of the page, without a program.
    address: String,
}

impl Drop for Playground {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Playground {
    fn start() -> Result<Playground, String> {
        let command = std::env::current_exe().map_err(|error| format!("the command is not found: {error}"))?;
        let mut process = Command::new(command)
            .args(["--color", "never", "playground", "--no-open"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the playground does not start: {error}"))?;
        let mut line = String::new();
        if let Some(out) = process.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let address = line.trim();
        if !address.starts_with("http://") {
            let _ = process.kill();
            let told = process.wait_with_output().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
            return Err(told.unwrap_or_default().trim().trim_start_matches("error: ").to_owned());
        }
        Ok(Playground { process, address: address.to_owned() })
    }
}

pub fn run() -> Result<(), Failure> {
    let mut playground: Option<Playground> = None;
    let mut open = |expression: &str| {
        // A playground that has ended is started again.
        if playground.as_mut().is_some_and(|own| !matches!(own.process.try_wait(), Ok(None))) {
            playground = None;
        }
        let own = match playground.take() {
            Some(own) => own,
            None => Playground::start()?,
        };
        let address = format!("{}{}", own.address, fragment(expression));
        playground = Some(own);
        Ok(address)
    };
    let input = BufReader::new(std::io::stdin());
    match serve(input, std::io::stdout(), Host { playground: &mut open })? {
        0 => Ok(()),
        status => Err(Failure::Process(status, "the editor left without `shutdown`".to_owned())),
    }
}
