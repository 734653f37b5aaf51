//! The two streams of a command: results go to standard output, messages to standard error.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use clap::ColorChoice;
use tilewright::Diagnostic;

use crate::picture::Window;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// An expression has an error, or a check does not hold; the message is out already.
    Refused,
    /// The command was not used as it should be.
    Usage(String),
    /// Reading or writing failed.
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

/// What commands write to.
pub struct Terminal {
    /// Results. Flushed by [`Terminal::finish`].
    pub out: BufWriter<StdoutLock<'static>>,
    /// Whether results are coloured.
    pub colour: bool,
    /// Whether messages are coloured.
    pub message_colour: bool,
}

impl Terminal {
    pub fn new(choice: ColorChoice) -> Terminal {
        let out = io::stdout().lock();
        let coloured = |terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        };
        let (colour, message_colour) = (coloured(out.is_terminal()), coloured(io::stderr().is_terminal()));
        Terminal { out: BufWriter::with_capacity(1 << 16, out), colour, message_colour }
    }

    /// The room for a picture: that of the terminal, or 100 characters by 24 rows of cells where there is none.
    pub fn window(&self) -> Window {
        match terminal_size::terminal_size_of(io::stdout()) {
            Some((width, height)) => {
                Window { columns: usize::from(width.0), rows: usize::from(height.0).saturating_sub(8).max(8) }
            }
            None => Window { columns: 100, rows: 24 },
        }
    }

    /// Shows what is wrong with `source` on standard error.
    pub fn report(&mut self, diagnostic: &Diagnostic, source: &str) -> Failure {
        self.message(&diagnostic.render(source, self.message_colour));
        Failure::Refused
    }

    /// Writes to standard error, after what was written to standard output.
    pub fn message(&mut self, text: &str) {
        // Nothing can be told to a reader who is gone.
        let _ = self.out.flush();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether an environment variable is set and not empty.
fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
