//! The location of a kernel's statements in the source.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The location of a statement: a file, a line and a column, and the end of the statement, if that
/// is known. Lines and columns count from 1, columns in characters.
///
/// In Rust, it is the line of the call. A front end for another language sets the location in its
/// source to which the following calls belong: [`Location::during`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    file: &'static str,
    line: u32,
    column: u32,
    /// The line and the column after its last character.
    end: Option<(u32, u32)>,
}

thread_local! {
    /// The location of the statements that this thread adds, if a front end has set one.
    static WRITTEN: Cell<Option<Location>> = const { Cell::new(None) };
}

/// The names of the files that front ends have named. Each is stored once, for as long as the
/// process lives, like the file names of Rust; so a location consists of a few numbers and can be
/// copied.
static FILES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);

fn written<R>(location: Option<Location>, statements: impl FnOnce() -> R) -> R {
    /// Restores the previous location, even if `statements` panics.
    struct Before(Option<Location>);
    impl Drop for Before {
        fn drop(&mut self) {
            WRITTEN.set(self.0);
        }
    }
    let _before = Before(WRITTEN.replace(location));
    statements()
}

impl Location {
    /// A location in a file.
    pub fn new(file: &str, line: u32, column: u32, end: Option<(u32, u32)>) -> Location {
        let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match files.get(file) {
            Some(known) => *known,
            None => {
                let kept: &'static str = Box::leak(Box::from(file));
                files.insert(kept);
                kept
            }
        };
        Location { file, line, column, end }
    }

    /// Runs `statements` with this location: statements that this thread adds to a kernel
    /// meanwhile, and refusals, get it.
    ///
    /// ```
    /// use tilewright_kernel::program::Location;
    /// use tilewright_kernel::{Kernel, KernelError};
    ///
    /// let line = Location::new("kernel.py", 7, 5, Some((7, 20)));
    /// let refused = Kernel::build("refused", |k| line.during(|| k.threads(0))).unwrap_err();
    /// assert_eq!(refused.source().to_string(), "threads at kernel.py:7:5");
    /// assert_eq!(refused.source().location.end(), Some((7, 20)));
    /// ```
    pub fn during<R>(self, statements: impl FnOnce() -> R) -> R {
        written(Some(self), statements)
    }

    /// Runs `statements` inside of [`Location::during`] without its location. Use it for the body
    /// of a loop, whose statements have locations of their own.
    pub fn elsewhere<R>(statements: impl FnOnce() -> R) -> R {
        written(None, statements)
    }

    /// The location of the statement that is being added.
    #[track_caller]
    pub(crate) fn caller() -> Location {
        let own = std::panic::Location::caller();
        let here = Location { file: own.file(), line: own.line(), column: own.column(), end: None };
        WRITTEN.get().unwrap_or(here)
    }

    /// The file.
    pub fn file(&self) -> &'static str {
        self.file
    }

    /// The line, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column, from 1.
    pub fn column(&self) -> u32 {
        self.column
    }

    /// The line and the column after the last character of the statement, if known.
    pub fn end(&self) -> Option<(u32, u32)> {
        self.end
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
