//! The `tilewright` command: all of it is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilewright_cli::command()
}
