//! Answers questions about layouts: the program that the page loads first.

use tilewright_playground::{Also, serve};

fn main() {
    // The workshop writes files.
    let done = serve(Also { write: |_, _, _| None, more: None });
    std::process::exit(i32::from(!done));
}
