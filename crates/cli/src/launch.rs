//! `tilewright launch`: a program as several processes of this machine.
//!
//! Law: each process gets the variables that torchrun sets. When one fails, the others may end by
//! themselves for a while, and are ended then; so the command ends, and its message names the rank.

use std::ffi::OsString;
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::output::Failure;

/// How long the other processes may take to end when one has failed.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub struct Options {
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

pub fn run(options: &Options) -> Result<(), Failure> {
    let port = match options.port {
        Some(port) => port,
        None => TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port(),
    };
    let (program, arguments) = options.program.split_first().ok_or_else(|| Failure::Usage("no program".to_owned()))?;
    // `tilewright` is this very program, wherever it lies.
    let own = (program == "tilewright").then(std::env::current_exe).and_then(Result::ok);
    let program = own.unwrap_or_else(|| program.into());
    let mut children: Vec<(usize, Child)> = Vec::new();
    for rank in 0..usize::from(options.processes) {
        let child = Command::new(&program)
            .args(arguments)
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", options.processes.to_string())
            .env("LOCAL_WORLD_SIZE", options.processes.to_string())
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string())
            .spawn();
        match child {
            Ok(child) => children.push((rank, child)),
            Err(error) => {
                end(&mut children);
                return Err(Failure::file(&program, error));
            }
        }
    }
    wait(children)
}

/// Waits for all, and gives the first failure.
fn wait(mut children: Vec<(usize, Child)>) -> Result<(), Failure> {
    let mut failed: Option<(usize, ExitStatus, Instant)> = None;
    while !children.is_empty() {
        let mut running = Vec::new();
        for (rank, mut child) in children {
            match child.try_wait()? {
                None => running.push((rank, child)),
                Some(status) if status.success() => {}
                Some(status) => {
                    failed.get_or_insert((rank, status, Instant::now()));
                }
            }
        }
        children = running;
        if failed.as_ref().is_some_and(|(.., since)| since.elapsed() > GRACE) {
            end(&mut children);
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    match failed {
        None => Ok(()),
        Some((rank, status, _)) => Err(Failure::Value(format!("rank {rank} failed first: {status}"))),
    }
}

fn end(children: &mut [(usize, Child)]) {
    for (_, child) in children {
        let _ = child.kill();
        let _ = child.wait();
    }
}
