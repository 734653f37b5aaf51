//! The look of text in a terminal, as escape sequences.

use crate::colour::Rgb;
use crate::theme::{Mode, Paint};

/// The colours that a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    /// No colours: text only.
    #[default]
    None,
    /// The 256 colours of xterm.
    Indexed,
    /// All colours, as red, green and blue.
    True,
}

/// The look of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ink {
    /// Ordinary text.
    #[default]
    Plain,
    /// Faint text.
    Faint,
    /// Bold text.
    Strong,
    /// Text in this colour.
    Text(Paint),
    /// Text in black or white on this fill.
    On(Paint),
}

impl Ink {
    /// Text in this look.
    ///
    /// ```
    /// use tilewright_draw::terminal::{Colours, Ink};
    /// use tilewright_draw::{Mode, Palette};
    ///
    /// let ink = Ink::On(Palette::Pastel.paint(0, 8));
    /// assert_eq!(ink.painted("T0", Colours::Indexed, Mode::Light), "\x1b[48;5;147;38;5;234mT0\x1b[0m");
    /// assert_eq!(ink.painted("T0", Colours::None, Mode::Light), "T0");
    /// ```
    pub fn painted(self, text: &str, colours: Colours, mode: Mode) -> String {
        if colours == Colours::None {
            return text.to_owned();
        }
        let code = |ground: u8, Rgb(r, g, b): Rgb| match colours {
            Colours::True => format!("{ground};2;{r};{g};{b}"),
            _ => format!("{ground};5;{}", indexed(Rgb(r, g, b))),
        };
        let start = match self {
            Ink::Plain | Ink::On(Paint::Paper) => return text.to_owned(),
            Ink::Faint => "2".to_owned(),
            Ink::Strong => "1".to_owned(),
            Ink::Text(paint) => code(38, paint.rgb(mode)),
            Ink::On(paint) => format!("{};{}", code(48, paint.rgb(mode)), code(38, paint.text(mode))),
        };
        format!("\x1b[{start}m{text}\x1b[0m")
    }
}

/// The nearest of xterm's 216 colours of the cube and 24 greys.
fn indexed(colour: Rgb) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let distance = |a: Rgb, b: Rgb| {
        let part = |a: u8, b: u8| (i32::from(a) - i32::from(b)).pow(2);
        part(a.0, b.0) + part(a.1, b.1) + part(a.2, b.2)
    };
    let level = |byte: u8| {
        let nearest = (0_u8..).zip(LEVELS).min_by_key(|(_, level)| level.abs_diff(byte));
        nearest.unwrap_or((0, 0))
    };
    let ((r, red), (g, green), (b, blue)) = (level(colour.0), level(colour.1), level(colour.2));
    let cube = (36 * r + 6 * g + b + 16, distance(colour, Rgb(red, green, blue)));
    let greys = (0_u8..24).map(|step| (232 + step, distance(colour, Rgb(8 + 10 * step, 8 + 10 * step, 8 + 10 * step))));
    greys.chain([cube]).min_by_key(|(_, distance)| *distance).map_or(16, |(index, _)| index)
}
