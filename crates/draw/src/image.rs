//! Pictures of pixels, and PNG files of them.
//!
//! A picture that would have too many cells becomes an image: one pixel for each cell, or for each
//! block of cells. The PNG encoder here is complete (signature, header, one deflate stream of rows,
//! end), so that SVG and HTML can contain an image without any feature of this crate.

use miniz_oxide::deflate::compress_to_vec_zlib;

use crate::colour::Rgb;
use crate::theme::{Mode, Paint};

/// A picture of pixels, each a role, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    width: usize,
    pixels: Vec<Paint>,
}

impl Image {
    /// The image of this width with these pixels, row by row. If the last row is not full, it is
    /// filled up with [`Paint::Void`].
    pub fn new(width: usize, mut pixels: Vec<Paint>) -> Image {
        let width = width.max(1);
        pixels.resize(pixels.len().next_multiple_of(width).max(width), Paint::Void);
        Image { width, pixels }
    }

    /// The number of pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// The pixel of a row and column.
    pub fn pixel(&self, row: usize, column: usize) -> Option<Paint> {
        let place = row.checked_mul(self.width)?.checked_add(column)?;
        if column < self.width { self.pixels.get(place).copied() } else { None }
    }

    /// Red, green and blue of each pixel, row by row.
    pub fn bytes(&self, mode: Mode) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.pixels.len() * 3);
        // Neighbours often have the same colour, and computing a colour takes long.
        let mut last: Option<(Paint, Rgb)> = None;
        let mut known = std::collections::HashMap::new();
        for paint in &self.pixels {
            let colour = match last {
                Some((before, colour)) if before == *paint => colour,
                _ => *known.entry(*paint).or_insert_with(|| paint.rgb(mode)),
            };
            last = Some((*paint, colour));
            bytes.extend([colour.0, colour.1, colour.2]);
        }
        bytes
    }

    /// The PNG file of the picture.
    pub fn png(&self, mode: Mode) -> Vec<u8> {
        png(self.width, 3, &self.bytes(mode))
    }
}

/// The PNG file of rows of 8-bit pixels: three samples for each pixel, or four with opacity.
pub(crate) fn png(width: usize, samples: usize, bytes: &[u8]) -> Vec<u8> {
    let stride = width * samples;
    let rows = bytes.chunks_exact(stride.max(1));
    let height = rows.len();
    // Each row stores the difference from the row above: repeating rows become zeros.
    let mut filtered = Vec::with_capacity(bytes.len() + height);
    let mut above = vec![0_u8; stride];
    for row in rows {
        filtered.push(2);
        filtered.extend(row.iter().zip(&above).map(|(here, up)| here.wrapping_sub(*up)));
        above.copy_from_slice(row);
    }
    let mut header = Vec::with_capacity(13);
    for side in [width, height] {
        header.extend(u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes());
    }
    header.extend([8, if samples == 4 { 6 } else { 2 }, 0, 0, 0]);
    let mut file = vec![0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];
    for (name, body) in [(b"IHDR", header), (b"IDAT", compress_to_vec_zlib(&filtered, 6)), (b"IEND", Vec::new())] {
        file.extend(u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
        let start = file.len();
        file.extend(name);
        file.extend(body);
        let sum = crc(file.get(start..).unwrap_or_default());
        file.extend(sum.to_be_bytes());
    }
    file
}

/// The check sum of a PNG chunk: CRC-32, reflected polynomial 0xEDB88320.
fn crc(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    !bytes.iter().fold(!0, |sum: u32, byte| {
        let place = usize::from(sum.to_le_bytes()[0] ^ byte);
        (sum >> 8) ^ TABLE.get(place).copied().unwrap_or(0)
    })
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xEDB8_8320 } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// Appends bytes in base 64.
pub(crate) fn base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = usize::try_from(word >> (18 - 6 * place) & 63).unwrap_or(0);
            out.push(match DIGITS.get(digit) {
                Some(digit) if place <= chunk.len() => char::from(*digit),
                _ => '=',
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_check_sums_and_digits() {
        assert_eq!(crc(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc(b"IEND"), 0xAE42_6082);
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            let mut out = String::new();
            base64(bytes.as_bytes(), &mut out);
            assert_eq!(out, text);
        }
    }

    #[test]
    fn a_row_that_is_not_full_is_filled() {
        let image = Image::new(3, vec![Paint::Ink; 4]);
        assert_eq!((image.width(), image.height()), (3, 2));
        assert_eq!(image.pixel(1, 0), Some(Paint::Ink));
        assert_eq!(image.pixel(1, 1), Some(Paint::Void));
        assert_eq!(image.pixel(0, 3), None);
    }
}
