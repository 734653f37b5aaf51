//! `tilewright launch`: runs a program as several processes on this machine.
//!
//! Law: each process gets the variables that torchrun sets, and the token of its job. No process
//! outlives the launcher: SIGTERM, SIGINT and SIGHUP to the launcher are forwarded to the processes
//! and end them, and if the launcher is killed, Linux kills them. If one process fails, the others
//! have some time to end by themselves, and are then terminated. The exit status is that of the
//! process that failed first.

mod child;
#[cfg(unix)]
mod signals;

use std::ffi::OsString;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use tilewright::mesh::Token;

use self::child::{Child, Group};
use crate::output::Failure;

/// The time in which the other processes may end by themselves after one has failed.
const GRACE: Duration = Duration::from_secs(10);

/// The time in which a process may end after a signal; then it is killed.
const ENDING: Duration = Duration::from_secs(5);

/// The interval at which the processes are polled.
const REST: Duration = Duration::from_millis(5);

#[derive(Debug, Args)]
pub struct LaunchOptions {
    /// How many processes.
    #[arg(short = 'n', long, value_name = "COUNT", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    processes: u16,
    /// The port of the first process; else one that is free.
    #[arg(long)]
    port: Option<u16>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

pub fn run(options: &LaunchOptions) -> Result<(), Failure> {
    // From now on, a signal ends the processes first.
    #[cfg(unix)]
    signals::watch();
    let port = match options.port {
        Some(port) => port,
        None => TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port(),
    };
    let (program, arguments) = options.program.split_first().ok_or_else(|| Failure::Usage("no program".to_owned()))?;
    // The program name `tilewright` means this executable, wherever it is.
    let own = (program == "tilewright").then(std::env::current_exe).and_then(Result::ok);
    let program = own.unwrap_or_else(|| program.into());
    let token = Token::random();
    let group = Group::of_terminal();
    let mut children: Vec<Child> = Vec::new();
    for rank in 0..usize::from(options.processes) {
        let variables = [
            ("RANK", rank.to_string()),
            ("LOCAL_RANK", rank.to_string()),
            ("WORLD_SIZE", options.processes.to_string()),
            ("LOCAL_WORLD_SIZE", options.processes.to_string()),
            ("MASTER_ADDR", "127.0.0.1".to_owned()),
            ("MASTER_PORT", port.to_string()),
            (Token::VARIABLE, token.reveal().to_owned()),
        ];
        match Child::start(rank, &program, arguments, variables, group) {
            Ok(child) => children.push(child),
            Err(error) => {
                end(children, child::TERMINATE);
                return Err(Failure::file(&program, error));
            }
        }
    }
    wait(children)
}

/// Waits for all processes. Returns the first failure.
fn wait(mut children: Vec<Child>) -> Result<(), Failure> {
    let mut failed: Option<(Failure, Instant)> = None;
    while !children.is_empty() {
        if let Some((signal, name)) = caught() {
            end(children, signal);
            let status = 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0));
            return Err(Failure::Process(status, format!("{name} ended this job")));
        }
        let mut running = Vec::new();
        for mut child in children {
            match child.ended()? {
                None => running.push(child),
                Some(end) => {
                    let failure =
                        |(status, how)| Failure::Process(status, format!("rank {} failed first: {how}", child.rank));
                    failed = failed.or(end.err().map(|end| (failure(end), Instant::now())));
                }
            }
        }
        children = running;
        if failed.as_ref().is_some_and(|(_, since)| since.elapsed() > GRACE) {
            end(std::mem::take(&mut children), child::TERMINATE);
        }
        thread::sleep(REST);
    }
    failed.map_or(Ok(()), |(failure, _)| Err(failure))
}

/// The signal that the launcher received, and its name.
fn caught() -> Option<(i32, &'static str)> {
    #[cfg(unix)]
    return signals::caught();
    #[cfg(not(unix))]
    None
}

/// Asks all processes to end, by the signal and then by SIGTERM; kills those that do not end.
fn end(mut children: Vec<Child>, signal: i32) {
    for signal in [signal, child::TERMINATE] {
        children.iter_mut().for_each(|child| child.ask(signal));
        let until = Instant::now() + ENDING / 2;
        while !children.is_empty() && Instant::now() < until {
            children.retain_mut(|child| !matches!(child.ended(), Ok(Some(_))));
            thread::sleep(REST);
        }
    }
    children.iter_mut().for_each(Child::kill);
}
