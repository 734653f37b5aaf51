//! Answers the rarer questions of the page: files of every format, derivations, index arithmetic,
//! costs of memory, kernels.

use tilewright_draw::{Figure, Format, Theme};
use tilewright_playground::{Also, MORE, serve};

/// Pixels of a PNG per CSS pixel.
const SCALE: f64 = 2.0;

fn write(figure: &Figure<'_>, format: Format, theme: Theme) -> Option<Vec<u8>> {
    figure.file(format, theme, SCALE).ok()
}

fn main() {
    let done = serve(Also { write, more: Some(MORE) });
    std::process::exit(i32::from(!done));
}
