//! Answers questions about layouts: what the page needs at once.

use tilewright_draw::terminal::{Colours, Window};
use tilewright_draw::{Figure, Format, Theme};
use tilewright_playground::{Also, serve};

/// Files of text.
fn write(figure: &Figure<'_>, format: Format, theme: Theme) -> Option<Vec<u8>> {
    Some(match format {
        Format::Svg => figure.svg(theme).into_bytes(),
        Format::Html => figure.html(theme).into_bytes(),
        Format::Tikz => figure.tikz(theme).into_bytes(),
        Format::Text => {
            let window = Window { columns: 160, rows: 128 };
            figure.picture(window, Colours::None).text(0, Colours::None, theme.mode()).into_bytes()
        }
        _ => return None,
    })
}

fn main() {
    let done = serve(Also { write, more: None });
    std::process::exit(i32::from(!done));
}
