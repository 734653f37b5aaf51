//! The 128 bytes of a tensor map, in this crate's own format.

use super::{MAP_BYTES, MapElement, MapField, Outside, RANKS, TensorMap, Walk};

/// The first eight bytes of a map.
const SIGN: u64 = u64::from_le_bytes(*b"tiletmap");

/// The bytes of a map as words, lowest byte first.
type MapWords = [u64; MAP_BYTES / 8];

fn words_of(bytes: &[u8; MAP_BYTES]) -> MapWords {
    std::array::from_fn(|at| bytes[8 * at..][..8].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

fn bytes_of(words: MapWords) -> [u8; MAP_BYTES] {
    std::array::from_fn(|at| words[at / 8].to_le_bytes()[at % 8])
}

/// Replaces bits of a word.
fn put(word: &mut u64, shift: usize, bits: u32, value: u64) {
    let mask = (u64::MAX >> (64 - bits)) << shift;
    *word = *word & !mask | value << shift & mask;
}

impl TensorMap {
    /// The map as 128 bytes.
    pub fn bytes(&self) -> [u8; MAP_BYTES] {
        let mut words: MapWords = [0; MAP_BYTES / 8];
        words[0] = SIGN;
        words[1] = self.address;
        words[2] = self.element.number()
            | (self.rank as u64) << 8
            | u64::from(self.units) << 16
            | u64::from(self.outside == Outside::Nan) << 24;
        for at in 0..RANKS {
            // An extent of 2^32 is written as 0.
            words[4 + at / 2] |= (self.extents[at] & 0xffff_ffff) << (32 * (at % 2));
            words[2] |= u64::from(self.steps[at] & 15) << (32 + 4 * at);
        }
        for (at, stride) in self.strides.iter().enumerate() {
            words[7 + at] = *stride;
        }
        match self.walk {
            Walk::Tiled(boxes) => {
                for (at, size) in boxes.iter().enumerate() {
                    words[11 + at / 4] |= u64::from(size & 0xffff) << (16 * (at % 4));
                }
            }
            Walk::Im2col { lower, upper, channels, pixels } => {
                words[2] |= 1 << 25;
                words[11] = u64::from(channels) | u64::from(pixels) << 32;
                for at in 0..3 {
                    words[12] |= u64::from(lower[at] as u16) << (16 * at);
                    words[13] |= u64::from(upper[at] as u16) << (16 * at);
                }
            }
        }
        bytes_of(words)
    }

    /// The bytes of a map with one field replaced. If all bytes are zero, this sets the first field
    /// of a new map. Strides are in bytes.
    ///
    /// # Errors
    ///
    /// Errors: the value is not valid for the field; the text says why.
    ///
    /// ```
    /// use tilewright_sanitize::isa::tensor_map::{MapElement, MapField, TensorMap};
    ///
    /// let map = TensorMap::of_array(MapElement::F16, &[64, 128], 0x1000, &[8, 64], 8)?;
    /// let moved = TensorMap::replaced(&map.bytes(), MapField::Address, 0x2000)?;
    /// assert_eq!(TensorMap::of_bytes(&moved), Some(TensorMap { address: 0x2000, ..map }));
    /// # Ok::<(), String>(())
    /// ```
    pub fn replaced(bytes: &[u8; MAP_BYTES], field: MapField, value: u64) -> Result<[u8; MAP_BYTES], String> {
        let mut words = words_of(bytes);
        if words == [0; MAP_BYTES / 8] {
            words[0] = SIGN;
        }
        if words[0] != SIGN {
            return Err("the 128 bytes are neither a tensor map of the launch nor zeros".to_string());
        }
        let within = |most: u64| match value <= most {
            true => Ok(value),
            false => Err(format!("the value {value} is none of this field, whose values are at most {most}")),
        };
        match field {
            MapField::Address => words[1] = value,
            MapField::Rank => put(&mut words[2], 8, 8, within(RANKS as u64 - 1)? + 1),
            MapField::Box(at) => put(&mut words[11 + at / 4], 16 * (at % 4), 16, within(256)?),
            MapField::Extent(at) => put(&mut words[4 + at / 2], 32 * (at % 2), 32, value),
            MapField::Stride(at) => words[7 + at] = value,
            MapField::Step(at) => put(&mut words[2], 32 + 4 * at, 4, within(8)?),
            MapField::Element => put(&mut words[2], 0, 8, within(MapElement::NUMBERED.len() as u64 - 1)?),
            MapField::Interleave if value == 0 => {}
            MapField::Interleave => return Err("interleaved layouts are not supported".to_string()),
            MapField::Swizzle => put(&mut words[2], 16, 8, 1 << within(3)?),
            MapField::Fill => put(&mut words[2], 24, 1, within(1)?),
        }
        Ok(bytes_of(words))
    }

    /// The map that 128 bytes represent; None if they are no map, or a damaged one.
    pub fn of_bytes(bytes: &[u8; MAP_BYTES]) -> Option<TensorMap> {
        let words = words_of(bytes);
        if words[0] != SIGN {
            return None;
        }
        let walk = if words[2] >> 25 & 1 == 1 {
            Walk::Im2col {
                lower: [0, 1, 2].map(|at| (words[12] >> (16 * at)) as i16),
                upper: [0, 1, 2].map(|at| (words[13] >> (16 * at)) as i16),
                channels: words[11] as u32,
                pixels: (words[11] >> 32) as u32,
            }
        } else {
            Walk::Tiled([0, 1, 2, 3, 4].map(|at| (words[11 + at / 4] >> (16 * (at % 4)) & 0xffff) as u32))
        };
        let map = TensorMap {
            address: words[1],
            element: MapElement::numbered(words[2] & 0xff)?,
            rank: (words[2] >> 8 & 0xff) as usize,
            extents: [0, 1, 2, 3, 4].map(|at| match words[4 + at / 2] >> (32 * (at % 2)) & 0xffff_ffff {
                0 => 1 << 32,
                extent => extent,
            }),
            strides: [0, 1, 2, 3].map(|at| words[7 + at]),
            steps: [0, 1, 2, 3, 4].map(|at| (words[2] >> (32 + 4 * at) & 15) as u32),
            walk,
            // A map that a kernel builds from zeros has no swizzle.
            units: (words[2] >> 16 & 0xff).max(1) as u32,
            outside: if words[2] >> 24 & 1 == 1 { Outside::Nan } else { Outside::Zeros },
        };
        map.check().ok()?;
        Some(map)
    }
}
