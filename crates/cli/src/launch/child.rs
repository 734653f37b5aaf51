//! One process of a job, including the processes that it started.
//!
//! Law: ending a process also ends the processes that it started, by its process group. If the
//! launcher reads from a terminal, its processes stay in its group, because a terminal stops a
//! process of another group that reads from it, and sends Ctrl-C to this group anyway.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::{self, Command, ExitStatus};

/// The signal that asks a process to end.
pub const TERMINATE: i32 = 15;

/// Whether a process gets a group of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Own,
    Launcher,
}

impl Group {
    pub fn of_terminal() -> Group {
        if io::stdin().is_terminal() { Group::Launcher } else { Group::Own }
    }
}

/// A process of a job.
pub struct Child {
    pub rank: usize,
    process: process::Child,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are process groups on Unix alone"))]
    group: Group,
}

/// How a process failed: the exit status to return, and a description.
pub type Failed = (u8, String);

impl Child {
    pub fn start(
        rank: usize,
        program: &Path,
        arguments: &[OsString],
        variables: impl IntoIterator<Item = (&'static str, String)>,
        group: Group,
    ) -> io::Result<Child> {
        let mut command = Command::new(program);
        command.args(arguments).envs(variables);
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt as _;
            if group == Group::Own {
                command.process_group(0);
            }
            super::signals::end_with_launcher(&mut command);
        }
        Ok(Child { rank, process: command.spawn()?, group })
    }

    /// Whether and how it has ended. If it failed, the processes that it started are ended.
    pub fn ended(&mut self) -> io::Result<Option<Result<(), Failed>>> {
        let Some(status) = self.process.try_wait()? else { return Ok(None) };
        if status.success() {
            return Ok(Some(Ok(())));
        }
        #[cfg(unix)]
        if self.group == Group::Own {
            super::signals::send(&self.process, true, libc::SIGKILL);
        }
        Ok(Some(Err((passed_on(status), status.to_string()))))
    }

    /// Sends a signal to it and the processes that it started. Ctrl-C of a terminal has already
    /// reached those in the launcher's group.
    pub fn ask(&mut self, signal: i32) {
        #[cfg(unix)]
        if self.group == Group::Own || signal != libc::SIGINT {
            super::signals::send(&self.process, self.group == Group::Own, signal);
        }
        #[cfg(not(unix))]
        let _ = (signal, self.process.kill());
    }

    /// Kills it and the processes that it started.
    pub fn kill(&mut self) {
        #[cfg(unix)]
        self.ask(libc::SIGKILL);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The exit status that represents how a process ended: its own, or 128 plus the number of the
/// signal that ended it, as in shells.
fn passed_on(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0));
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
