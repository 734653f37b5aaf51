//! The look of every picture: its colours by role, in a light and a dark form, its sizes, and its
//! fonts.
//!
//! Law: a picture specifies the *role* of an item ([`Paint`]), never its colour; colours are chosen
//! only here. Text on a fill is black or white, whichever has more contrast, so that it is always
//! readable.

use crate::colour::{Rgb, contrast_of, oklch};

/// The side of a cell, which is also its smallest width. All lengths here are CSS pixels.
pub const CELL: f64 = 28.0;
/// The height of a cell with two lines of text.
pub const TALL_CELL: f64 = 34.0;
/// The space to the left and right of a cell's text.
pub const CELL_PADDING: f64 = 5.0;
/// The width of the gap for omitted rows or columns.
pub const GAP: f64 = 22.0;
/// The distance between two pictures side by side, and around all.
pub const SPACE: f64 = 28.0;
/// The distance between a grid and its ticks, and between lines of text.
pub const STEP: f64 = 6.0;

/// The size of the text of a cell.
pub const CELL_TEXT: f64 = 11.5;
/// The size of the second line of a cell, and of ticks.
pub const SMALL_TEXT: f64 = 9.5;
/// The size of the heading of a part, and of captions.
pub const TEXT: f64 = 12.0;
/// The size of the title.
pub const TITLE_TEXT: f64 = 16.0;

/// The line between cells.
pub const HAIRLINE: f64 = 0.75;
/// The border of a picture and of the innermost tiles; each outer level is wider by the same
/// amount.
pub const BORDER: f64 = 1.25;
/// The outline of highlighted cells.
pub const OUTLINE: f64 = 2.25;

/// The largest factor by which a text may be wider than measured if the reader's system has none of
/// the preferred fonts.
pub const OTHER_FONTS: f64 = 1.12;

/// The fonts of SVG and HTML, best first.
pub const FONTS: &str =
    "Inter,ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif";

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Dark on light, for paper and light screens.
    #[default]
    Light,
    /// Light on dark.
    Dark,
}

/// The modes of a document: light, dark, or the reader's preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Theme {
    /// The reader's preference, if the format can ask for it (SVG and HTML); otherwise light.
    #[default]
    Auto,
    /// Light only.
    Light,
    /// Dark only.
    Dark,
}

impl Theme {
    /// The mode for a format that has only one.
    pub fn mode(self) -> Mode {
        match self {
            Theme::Auto | Theme::Light => Mode::Light,
            Theme::Dark => Mode::Dark,
        }
    }
}

/// The colours that distinguish threads, tiles or banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Palette {
    /// Four tones of each hue, and distant hues: each group of four threads has one hue, and no two
    /// threads of a warp have the same colour.
    #[default]
    Distinct,
    /// Hues in order.
    Rainbow,
    /// CuTe's eight pastels, repeated.
    Pastel,
    /// A hue for each warp of 32 threads, and a tone for each eight lanes.
    Warp,
    /// A hue for each value instead of each thread.
    Value,
    /// Light greys, for print.
    Mono,
    /// No fill.
    White,
}

impl Palette {
    /// Every palette with its name.
    pub const ALL: [(&'static str, Palette); 7] = [
        (Palette::Distinct.name(), Palette::Distinct),
        (Palette::Rainbow.name(), Palette::Rainbow),
        (Palette::Pastel.name(), Palette::Pastel),
        (Palette::Warp.name(), Palette::Warp),
        (Palette::Value.name(), Palette::Value),
        (Palette::Mono.name(), Palette::Mono),
        (Palette::White.name(), Palette::White),
    ];

    /// The fill with index `index` of `of`.
    pub fn paint(self, index: i64, of: i64) -> Paint {
        let of = u16::try_from(of.clamp(1, 1 << 15)).unwrap_or(1);
        let index = u16::try_from(index.rem_euclid(i64::from(of))).unwrap_or(0);
        match self {
            Palette::Pastel | Palette::Mono => Paint::Hue { palette: self, index: index % 8, of: 8 },
            Palette::White => Paint::Paper,
            _ => Paint::Hue { palette: self, index, of },
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Palette::Distinct => "distinct",
            Palette::Rainbow => "rainbow",
            Palette::Pastel => "pastel",
            Palette::Warp => "warp",
            Palette::Value => "value",
            Palette::Mono => "mono",
            Palette::White => "white",
        }
    }
}

/// The role of a fill, a line or a text, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Paint {
    /// The background.
    #[default]
    Paper,
    /// Text.
    Ink,
    /// Less important text: ticks, captions.
    Faint,
    /// Thin lines between cells.
    Rule,
    /// Borders of grids and of their tiles.
    Border,
    /// A position that is empty.
    Void,
    /// Highlighted.
    Accent,
    /// Defects: overlaps, conflicts.
    Warn,
    /// One of eight greys, with a large contrast between neighbouring numbers.
    Grey(u8),
    /// A value between the smallest (0) and the largest (255).
    Heat(u8),
    /// One of several distinct fills of a palette.
    Hue {
        /// The palette.
        palette: Palette,
        /// The index.
        index: u16,
        /// The number of fills.
        of: u16,
    },
}

impl Paint {
    /// The grey of an offset, by its remainder modulo 8.
    pub fn grey(offset: i64) -> Paint {
        Paint::Grey(u8::try_from(offset.rem_euclid(8)).unwrap_or(0))
    }

    /// The heat of a value between two bounds, in 64 steps.
    pub fn heat(value: i64, least: i64, greatest: i64) -> Paint {
        let span = i128::from(greatest) - i128::from(least);
        let above = i128::from(value) - i128::from(least);
        let step = if span <= 0 { 0 } else { (above.clamp(0, span) * 63 + span / 2) / span };
        Paint::Heat(u8::try_from(step * 4).unwrap_or(252))
    }

    /// The colour.
    pub fn rgb(self, mode: Mode) -> Rgb {
        let of = |light: Rgb, dark: Rgb| match mode {
            Mode::Light => light,
            Mode::Dark => dark,
        };
        match self {
            Paint::Paper => of(Rgb(0xff, 0xff, 0xff), Rgb(0x12, 0x16, 0x1c)),
            Paint::Ink => of(Rgb(0x1c, 0x21, 0x28), Rgb(0xe4, 0xe8, 0xee)),
            Paint::Faint => of(Rgb(0x60, 0x68, 0x73), Rgb(0x98, 0xa2, 0xb0)),
            Paint::Rule => of(Rgb(0xc6, 0xcc, 0xd4), Rgb(0x3a, 0x43, 0x50)),
            Paint::Border => of(Rgb(0x33, 0x3b, 0x47), Rgb(0xa9, 0xb3, 0xc1)),
            Paint::Void => of(Rgb(0xea, 0xec, 0xf0), Rgb(0x22, 0x29, 0x33)),
            Paint::Accent => of(Rgb(0x1f, 0x5f, 0xd6), Rgb(0x6c, 0xa8, 0xff)),
            Paint::Warn => of(Rgb(0xd0, 0x3a, 0x2b), Rgb(0xff, 0x7a, 0x66)),
            // Each grey is light enough for dark text, or dark enough for light text.
            Paint::Grey(index) => match mode {
                Mode::Light => oklch(0.985 - 0.46 * ramp(index), 0.008, 255.0),
                Mode::Dark => oklch(0.235 + 0.36 * ramp(index), 0.012, 255.0),
            },
            Paint::Heat(value) => {
                let x = f64::from(value) / 255.0;
                match mode {
                    Mode::Light => oklch(0.965 - 0.62 * x, 0.06 + 0.10 * x, 105.0 + 180.0 * x),
                    Mode::Dark => oklch(0.26 + 0.62 * x, 0.09 + 0.04 * x, 285.0 - 180.0 * x),
                }
            }
            Paint::Hue { palette, index, of } => hue_of(palette, index, of, mode),
        }
    }

    /// The colour of text on this fill.
    ///
    /// ```
    /// use tilewright_draw::{Mode, Paint};
    ///
    /// let fill = Paint::Grey(7);
    /// assert!(fill.text(Mode::Light).contrast(fill.rgb(Mode::Light)) >= 4.5);
    /// ```
    pub fn text(self, mode: Mode) -> Rgb {
        let fill = self.rgb(mode).luminance();
        let contrast = |text: Rgb| contrast_of(fill, text.luminance());
        let more = |a: Rgb, b: Rgb| {
            let (left, right) = (contrast(a), contrast(b));
            if left >= right { (a, left) } else { (b, right) }
        };
        // For medium fills, the softened black and white do not have enough contrast.
        let (soft, enough) = more(Rgb(0x16, 0x1b, 0x22), Rgb(0xf4, 0xf6, 0xf9));
        if enough >= 4.5 { soft } else { more(Rgb(0, 0, 0), Rgb(255, 255, 255)).0 }
    }

    /// The name of the role, as a class of SVG: `ink`, `grey3`, `distinct5of32`.
    pub fn write_name(self, out: &mut String) {
        let mut numbered = |name: &str, number: u16| {
            out.push_str(name);
            crate::number::push_integer(out, i64::from(number));
        };
        match self {
            Paint::Paper => out.push_str("paper"),
            Paint::Ink => out.push_str("ink"),
            Paint::Faint => out.push_str("faint"),
            Paint::Rule => out.push_str("rule"),
            Paint::Border => out.push_str("border"),
            Paint::Void => out.push_str("void"),
            Paint::Accent => out.push_str("accent"),
            Paint::Warn => out.push_str("warn"),
            Paint::Grey(index) => numbered("grey", u16::from(index)),
            Paint::Heat(value) => numbered("heat", u16::from(value)),
            Paint::Hue { palette, index, of } => {
                numbered(palette.name(), index);
                numbered("of", of);
            }
        }
    }
}

/// The eight greys, interleaved so that neighbours differ: CuTe's black!00,40,20,60,10,50,30,70.
fn ramp(index: u8) -> f64 {
    match index % 8 {
        0 => 0.0,
        1 => 0.4,
        2 => 0.2,
        3 => 0.6,
        4 => 0.1,
        5 => 0.5,
        6 => 0.3,
        _ => 0.7,
    }
}

/// A tone: the lightest of four first.
fn tone(step: u16, hue: f64, mode: Mode) -> Rgb {
    let step = f64::from(step.min(3));
    match mode {
        Mode::Light => oklch(0.935 - 0.055 * step, 0.045 + 0.022 * step, hue),
        Mode::Dark => oklch(0.34 + 0.065 * step, 0.06 + 0.015 * step, hue),
    }
}

/// Hues for `of` groups: in order if neighbours can be distinguished, else each far from the
/// previous one.
fn spread(group: u16, of: u16) -> f64 {
    const GOLDEN: f64 = 137.507_764;
    let (group, count) = (f64::from(group), f64::from(of.max(1)));
    if of <= 12 { 250.0 + 360.0 * group / count } else { 250.0 + GOLDEN * group }
}

fn hue_of(palette: Palette, index: u16, of: u16, mode: Mode) -> Rgb {
    match palette {
        Palette::Distinct if of <= 8 => tone(1, spread(index, of), mode),
        Palette::Distinct => tone(index % 4, spread(index / 4, of.div_ceil(4)), mode),
        Palette::Rainbow | Palette::Value => tone(1 + index % 2, spread_in_order(index, of), mode),
        Palette::Warp => tone(index % 32 / 8, spread(index / 32, of.div_ceil(32)), mode),
        Palette::Pastel => pastel(index, mode),
        Palette::Mono => {
            let step = ramp(u8::try_from(index % 8).unwrap_or(0));
            match mode {
                Mode::Light => oklch(0.985 - 0.34 * step, 0.0, 0.0),
                Mode::Dark => oklch(0.23 + 0.34 * step, 0.0, 0.0),
            }
        }
        Palette::White => Paint::Paper.rgb(mode),
    }
}

fn spread_in_order(index: u16, of: u16) -> f64 {
    20.0 + 360.0 * f64::from(index) / f64::from(of.max(1))
}

/// CuTe's pastels, and darker forms of them.
fn pastel(index: u16, mode: Mode) -> Rgb {
    let (light, hue, step) = match index % 8 {
        0 => (Rgb(175, 175, 255), 280.0, 3),
        1 => (Rgb(175, 255, 175), 145.0, 3),
        2 => (Rgb(255, 255, 175), 105.0, 3),
        3 => (Rgb(255, 175, 175), 20.0, 3),
        4 => (Rgb(210, 210, 255), 280.0, 0),
        5 => (Rgb(210, 255, 210), 145.0, 0),
        6 => (Rgb(255, 255, 210), 105.0, 0),
        _ => (Rgb(255, 210, 210), 20.0, 0),
    };
    if mode == Mode::Light { light } else { tone(step, hue, mode) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn all() -> Vec<Paint> {
        let mut paints = vec![
            Paint::Paper,
            Paint::Ink,
            Paint::Faint,
            Paint::Rule,
            Paint::Border,
            Paint::Void,
            Paint::Accent,
            Paint::Warn,
        ];
        paints.extend((0..8).map(Paint::Grey));
        paints.extend((0..=255).map(Paint::Heat));
        for (_, palette) in Palette::ALL {
            for of in [1, 2, 8, 9, 32, 100, 128, 256, 1024] {
                paints.extend((0..of).map(|index| palette.paint(index, of)));
            }
        }
        paints
    }

    #[test]
    fn text_can_be_read_on_every_fill() {
        for paint in all() {
            for mode in [Mode::Light, Mode::Dark] {
                let contrast = paint.text(mode).contrast(paint.rgb(mode));
                assert!(contrast >= 4.5, "{paint:?} {mode:?}: {contrast}");
            }
        }
    }

    #[test]
    fn greys_are_light_under_dark_text_and_dark_under_light_text() {
        for index in 0..8 {
            let grey = Paint::Grey(index);
            for (mode, is_dark) in [(Mode::Light, true), (Mode::Dark, false)] {
                let (text, fill) = (grey.text(mode), grey.rgb(mode));
                assert_eq!(text.luminance() < fill.luminance(), is_dark, "{index} {mode:?}");
                assert!(text.contrast(fill) >= 4.5, "{index} {mode:?}");
            }
        }
    }

    #[test]
    fn faint_text_can_be_read_where_it_stands() {
        for mode in [Mode::Light, Mode::Dark] {
            for fill in [Paint::Paper, Paint::Void] {
                assert!(Paint::Faint.rgb(mode).contrast(fill.rgb(mode)) >= 4.5, "{fill:?} {mode:?}");
            }
        }
    }

    #[test]
    fn words_stand_out_from_the_ground() {
        for mode in [Mode::Light, Mode::Dark] {
            for paint in [Paint::Ink, Paint::Faint, Paint::Accent, Paint::Warn] {
                assert!(paint.rgb(mode).contrast(Paint::Paper.rgb(mode)) >= 4.5, "{paint:?} {mode:?}");
            }
        }
    }

    #[test]
    fn no_two_threads_of_a_block_share_a_colour() {
        for mode in [Mode::Light, Mode::Dark] {
            for of in 1..=128 {
                let colours: HashSet<Rgb> = (0..of).map(|t| Palette::Distinct.paint(t, of).rgb(mode)).collect();
                assert_eq!(colours.len(), usize::try_from(of).unwrap(), "{of} {mode:?}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut seen = std::collections::HashMap::new();
        for paint in all() {
            let mut name = String::new();
            paint.write_name(&mut name);
            assert_eq!(*seen.entry(name).or_insert(paint), paint);
        }
    }
}
