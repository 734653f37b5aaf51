//! Colours: from lightness, chroma and hue to bytes.
//!
//! Law: [`oklch`] gives the colour of that lightness and hue with the largest chroma that the bytes
//! can express, up to the requested one. OKLCH (Ottosson, 2020) is perceptually uniform: colours of
//! one lightness look equally bright whatever their hue, so that all fills of a set look equally
//! heavy and have the same colour of text.

/// A colour: red, green and blue, each 0 to 255, in sRGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// The colour as six hexadecimal digits.
    pub fn hex(self) -> String {
        let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 });
        [self.0, self.1, self.2].into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// The relative luminance of WCAG 2, 0 to 1.
    pub fn luminance(self) -> f64 {
        let Rgb(r, g, b) = self;
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    /// The contrast with another colour, 1 to 21 (WCAG 2). Text is easy to read from 4.5.
    ///
    /// ```
    /// use tilewright_draw::Rgb;
    ///
    /// assert_eq!(Rgb(255, 255, 255).contrast(Rgb(0, 0, 0)), 21.0);
    /// ```
    pub fn contrast(self, other: Rgb) -> f64 {
        contrast_of(self.luminance(), other.luminance())
    }
}

/// The contrast of two luminances.
pub(crate) fn contrast_of(a: f64, b: f64) -> f64 {
    let (a, b) = (a + 0.05, b + 0.05);
    if a > b { a / b } else { b / a }
}

fn linear(byte: u8) -> f64 {
    let value = f64::from(byte) / 255.0;
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// The colour of a lightness (0 to 1), chroma (0 to about 0.3) and hue (degrees).
///
/// ```
/// use tilewright_draw::{Rgb, oklch};
///
/// assert_eq!(oklch(1.0, 0.0, 0.0), Rgb(255, 255, 255));
/// assert_eq!(oklch(0.0, 0.1, 90.0), Rgb(0, 0, 0));
/// ```
pub fn oklch(lightness: f64, chroma: f64, hue: f64) -> Rgb {
    let direction = hue.to_radians().sin_cos();
    let (mut low, mut high) = (0.0, chroma);
    let mut best = inside(lightness, chroma, direction);
    if best.is_none() {
        // Less chroma is nearer to the grey of this lightness, which can always be expressed.
        best = inside(lightness, 0.0, direction);
        for _ in 0..12 {
            let middle = (low + high) / 2.0;
            match inside(lightness, middle, direction) {
                Some(channels) => (low, best) = (middle, Some(channels)),
                None => high = middle,
            }
        }
    }
    match best {
        Some([r, g, b]) => Rgb(byte(r), byte(g), byte(b)),
        None if lightness > 0.5 => Rgb(255, 255, 255),
        None => Rgb(0, 0, 0),
    }
}

/// Linear red, green and blue, if bytes can express them: up to half a step beyond either end
/// rounds to the end.
fn inside(lightness: f64, chroma: f64, (sine, cosine): (f64, f64)) -> Option<[f64; 3]> {
    /// The linear values half a step below black and half a step above white.
    const ENDS: std::ops::RangeInclusive<f64> = -0.5 / 255.0 / 12.92..=1.004_466_356;
    let (a, b) = (chroma * cosine, chroma * sine);
    let cube = |x: f64| x * x * x;
    let l = cube(lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b);
    let m = cube(lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b);
    let s = cube(lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b);
    let channels = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    channels.iter().all(|channel| ENDS.contains(channel)).then_some(channels)
}

/// The byte of a linear channel.
fn byte(linear: f64) -> u8 {
    let value = if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (value * 255.0).round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_decides_brightness_whatever_the_hue() {
        for hue in 0..360 {
            let colour = oklch(0.85, 0.07, f64::from(hue));
            assert!((0.55..0.75).contains(&colour.luminance()), "{hue}: {colour:?}");
        }
    }

    #[test]
    fn a_known_colour() {
        // sRGB red is L 0.628, C 0.2577, h 29.23.
        let red = oklch(0.628, 0.257, 29.23);
        assert!(red.0 >= 252 && red.1 <= 12 && red.2 <= 12, "{red:?}");
    }
}
