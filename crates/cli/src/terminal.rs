//! The two streams of a command: results go to standard output, messages to standard error.
//!
//! Law: with `--json` standard output holds objects only, one on a line. Text that a command prints
//! then is kept, and becomes the field `text` of an object at the end.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;

use clap::ColorChoice;

use crate::json::Json;
pub use crate::output::Failure;
use crate::picture::Window;

/// Standard output: text as it comes, or kept until an object is made of it.
pub struct Results {
    stream: BufWriter<StdoutLock<'static>>,
    kept: Option<Vec<u8>>,
}

impl Results {
    /// Where objects go, past the text that is kept.
    pub fn objects(&mut self) -> &mut impl Write {
        &mut self.stream
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.kept {
            Some(kept) => kept.write(bytes),
            None => self.stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// What commands write to.
pub struct Terminal {
    /// Results as text. Flushed by [`Terminal::finish`].
    pub out: Results,
    /// Whether results are JSON objects.
    pub json: bool,
    /// Whether results are coloured.
    pub colour: bool,
    /// Whether messages are coloured.
    pub message_colour: bool,
}

impl Terminal {
    pub fn new(choice: ColorChoice, json: bool) -> Terminal {
        let out = io::stdout().lock();
        let coloured = |terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        };
        let colour = !json && coloured(out.is_terminal());
        let message_colour = coloured(io::stderr().is_terminal());
        let stream = BufWriter::with_capacity(1 << 16, out);
        Terminal { out: Results { stream, kept: json.then(Vec::new) }, json, colour, message_colour }
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

    /// Writes text to standard output.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Writes an object to standard output, on a line of its own.
    pub fn object(&mut self, object: &Json) -> io::Result<()> {
        writeln!(self.out.stream, "{object}")
    }

    /// Says that a file was written, where somebody counts on an object.
    pub fn wrote(&mut self, file: &Path) -> Result<(), Failure> {
        if self.json {
            self.object(&serde_json::json!({ "file": file.display().to_string() }))?;
        }
        Ok(())
    }

    /// Tells a failure: an object on standard output with `--json`, else text on standard error.
    pub fn tell(&mut self, failure: &Failure) {
        // Nothing can be told to a reader who is gone.
        if self.json {
            let _ = self.end_text();
            if let Some(object) = failure.json() {
                let _ = self.object(&object);
            }
        } else {
            self.message(&failure.text(self.message_colour));
        }
    }

    /// Writes to standard error, after what was written to standard output.
    pub fn message(&mut self, text: &str) {
        // Nothing can be told to a reader who is gone.
        let _ = self.out.flush();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Writes the text that was kept, if there is some, as an object.
    pub fn end_text(&mut self) -> io::Result<()> {
        match self.out.kept.as_mut().map(std::mem::take) {
            Some(kept) if !kept.is_empty() => {
                self.object(&serde_json::json!({ "text": String::from_utf8_lossy(&kept) }))
            }
            _ => Ok(()),
        }
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.end_text()?;
        self.out.flush()
    }
}

/// Whether an environment variable is set and not empty.
fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
