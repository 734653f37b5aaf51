//! The output streams of a command: results go to standard output, messages to standard error.
//!
//! Law: with `--json` standard output contains only objects, one on a line. Text that a command
//! then prints is stored, and becomes the field `text` of an object at the end.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use clap::ColorChoice;

use crate::closed;
use crate::json::Json;
use crate::picture::Window;

/// Standard output: text is written directly, or stored until an object is made of it.
pub struct Results {
    /// Not locked: the language server writes from two threads.
    stream: BufWriter<Stdout>,
    kept: Option<Vec<u8>>,
    /// Whether anything was written.
    written: bool,
}

impl Results {
    /// The writer of objects, which bypasses the stored text.
    pub fn objects(&mut self) -> &mut impl Write {
        self.written = true;
        &mut self.stream
    }
}

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written |= !bytes.is_empty();
        match &mut self.kept {
            Some(kept) => kept.write(bytes),
            None => self.stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The streams to which commands write.
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
    /// The streams of this process.
    pub fn new(choice: ColorChoice, json: bool) -> Terminal {
        let out = io::stdout();
        let coloured = |terminal: bool| match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        };
        let colour = !json && coloured(out.is_terminal());
        let message_colour = coloured(io::stderr().is_terminal());
        let stream = BufWriter::with_capacity(1 << 16, out);
        Terminal { out: Results { stream, kept: json.then(Vec::new), written: false }, json, colour, message_colour }
    }

    /// The size of a picture: that of the terminal, or 100 characters by 24 rows of cells if there
    /// is none.
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

    /// Writes sentences to standard output. If the terminal is narrower, lines are folded between
    /// words.
    pub fn prose(&mut self, text: &str) -> io::Result<()> {
        match terminal_size::terminal_size_of(io::stdout()) {
            Some((width, _)) if !self.json => self.text(&folded(text, usize::from(width.0))),
            _ => self.text(text),
        }
    }

    /// Writes an object to standard output, on a line of its own.
    pub fn object(&mut self, object: &Json) -> io::Result<()> {
        writeln!(self.out.objects(), "{object}")
    }

    /// Prints a note: an object with `--json`, else a line on standard error.
    pub fn note(&mut self, note: &str) {
        if self.json {
            // If nobody reads the other end, the note cannot be reported.
            let _ = self.object(&serde_json::json!({ "note": note }));
        } else {
            self.message(&format!("note: {note}\n"));
        }
    }

    /// Writes to standard error, after the earlier output to standard output.
    pub fn message(&mut self, text: &str) {
        // If nobody reads the other end, the error cannot be reported.
        let _ = self.out.flush();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Writes the stored text, if there is some, as an object.
    pub fn end_text(&mut self) -> io::Result<()> {
        match self.out.kept.as_mut().map(std::mem::take) {
            Some(kept) if !kept.is_empty() => {
                self.object(&serde_json::json!({ "text": String::from_utf8_lossy(&kept) }))
            }
            _ => Ok(()),
        }
    }

    /// Writes the remaining output. Returns the error of the first write that failed.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_text()?;
        self.out.flush()?;
        match self.out.written && closed::standard_output() {
            true => Err(io::Error::other("standard output is closed")),
            false => Ok(()),
        }
    }
}

/// Text folded between words to at most this many columns.
///
/// A continuation is aligned with the last column of a table, or with the text of the line. A line
/// of a picture is unchanged, and so is a word that is longer than a line. Colour codes have no
/// width.
fn folded(text: &str, columns: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let drawn = line.contains(|c| matches!(c, '\u{2500}'..='\u{257f}' | '·' | '⋮'));
        if drawn || width(line.trim_end()) <= columns {
            folded.push_str(line);
            continue;
        }
        let begin = line.len() - line.trim_start().len();
        // The last gap between columns that leaves space for half of the line.
        let gaps = line.match_indices("  ").map(|(at, _)| at + line[at..].len() - line[at..].trim_start().len());
        let hang = gaps.map(|at| width(&line[..at])).filter(|at| *at <= columns / 2).max();
        let hang = hang.unwrap_or_else(|| width(&line[..begin]).min(columns / 2));
        let mut used = 0;
        for word in line.trim_end().split_inclusive(' ') {
            let room = width(word.trim_end());
            if used + room > columns && used > hang && room > 0 {
                folded.truncate(folded.trim_end_matches(' ').len());
                folded.push('\n');
                folded.push_str(&" ".repeat(hang));
                used = hang;
            }
            folded.push_str(word);
            used += width(word);
        }
        folded.push('\n');
    }
    folded
}

/// The number of visible characters of a text.
fn width(text: &str) -> usize {
    let mut escape = false;
    let room = |c: &char| {
        let shown = !escape && *c != '\x1b';
        escape = (escape || *c == '\x1b') && *c != 'm';
        shown
    };
    text.chars().filter(room).count()
}

/// Whether an environment variable is set and not empty.
fn set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: folded text has the same words, and no line is wider unless a word or a picture is.
    #[test]
    fn text_is_folded_between_words() {
        let text =
            "a line of some words, no more\n\n  name   what it means in words that go on\n│ a picture that is wide │\n";
        for columns in 12..60 {
            let folded = folded(text, columns);
            assert!(folded.split_whitespace().eq(text.split_whitespace()), "{columns}: {folded}");
            for line in folded.lines().filter(|line| !line.contains('│')) {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
        assert_eq!(folded("  name   what it means\n", 20), "  name   what it\n         means\n");
        assert_eq!(folded("\x1b[1mfour\x1b[0m five six\n", 9), "\x1b[1mfour\x1b[0m five\nsix\n");
        assert_eq!(folded(text, 80), text);
    }
}
