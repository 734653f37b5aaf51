//! The `tilewright` command, which is implemented in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    tilewright_cli::command()
}
