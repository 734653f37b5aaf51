//! The progress of long work: a bar on standard error, if that is a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The width of the bar.
const WIDTH: usize = 30;
/// Work that ends before this time shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// The completed steps of some work.
pub struct Progress {
    what: &'static str,
    done: u64,
    all: u64,
    shown: bool,
    /// When the bar is drawn next; None if standard error is not a terminal.
    next: Option<Instant>,
}

impl Progress {
    /// The progress of work of `all` steps, none of them done.
    pub fn new(what: &'static str, all: u64) -> Progress {
        let watched = std::io::stderr().is_terminal();
        Progress { what, done: 0, all: all.max(1), shown: false, next: watched.then(|| Instant::now() + PATIENCE) }
    }

    /// Counts completed steps.
    pub fn step(&mut self, steps: u64) {
        self.done = self.done.saturating_add(steps).min(self.all);
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        let full = (WIDTH as u64 * self.done / self.all) as usize;
        let bar = format!("{}{}", "#".repeat(full), " ".repeat(WIDTH - full));
        // If nobody reads the other end, progress cannot be reported.
        let _ = write!(std::io::stderr(), "\r{} [{bar}] {:3} %", self.what, 100 * self.done / self.all);
        (self.shown, self.next) = (true, Some(now + Duration::from_millis(100)));
    }

    /// Removes the bar until the next step.
    pub fn hide(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        self.shown = false;
    }

    /// Removes the bar.
    pub fn end(&mut self) {
        self.hide();
        self.next = None;
    }
}
