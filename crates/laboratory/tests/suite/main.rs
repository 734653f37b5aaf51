//! All tests of the crate, in one program: it is linked once.

mod book;
mod console;
#[cfg(target_os = "linux")]
mod progress;
