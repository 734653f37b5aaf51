//! Pictures of swizzles: offsets before and after, coloured by bank.
//!
//! Law: the bank of an offset is `(offset * element bytes / bank bytes) mod banks`. Both grids show
//! the offsets of the same coordinates, without and with the swizzle, and two cells have the same
//! colour exactly if their banks are the same (with a palette that distinguishes all banks).

use std::fmt::Write as _;
use std::rc::Rc;

use tilewright_layout::Composed;

use crate::figure::Figure;
use crate::map::Map;
use crate::pictures::Style;
use crate::pictures::offsets::{Mark, Tint, tinted_with_corner};

/// The banks of shared memory, and the width of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Banks {
    /// The number of banks.
    pub count: i64,
    /// The bytes of a word of a bank.
    pub bytes: i64,
    /// The bits of an element.
    pub element_bits: i64,
}

impl Banks {
    /// NVIDIA's 32 banks of 4 bytes, for elements of this many bits.
    pub fn of_elements(element_bits: i64) -> Banks {
        Banks { count: 32, bytes: 4, element_bits }
    }

    /// The bank of an offset.
    ///
    /// ```
    /// use tilewright_draw::Banks;
    ///
    /// let banks = Banks::of_elements(16);
    /// assert_eq!([banks.of(0), banks.of(1), banks.of(2), banks.of(64)], [0, 0, 1, 0]);
    /// ```
    pub fn of(self, offset: i64) -> i64 {
        let bit = i128::from(offset) * i128::from(self.element_bits);
        let word = bit.div_euclid(i128::from(self.bytes.max(1)) * 8);
        i64::try_from(word.rem_euclid(i128::from(self.count.max(1)))).unwrap_or(0)
    }
}

/// A composed layout before and after its outer map, coloured by bank.
///
/// ```
/// use tilewright_draw::{Banks, Style, Theme, swizzle};
/// use tilewright_layout::Composed;
///
/// let tile: Composed = "S<3,3,3> o 0 o (8,64):(64,1)".parse().unwrap();
/// let svg = swizzle(&tile, Banks::of_elements(16), Style::default()).svg(Theme::Auto);
/// assert!(svg.contains("32 banks of 4 bytes"));
/// ```
pub fn swizzle<'a>(map: &Composed, banks: Banks, style: Style) -> Figure<'a> {
    let (before, after) = (Map::from(map.inner()), Map::from(map));
    let tint = |map: &Map, start: i64| -> Tint {
        let map = map.clone();
        Rc::new(move |index| {
            let offset = map.at(index).unwrap_or(0).saturating_add(start);
            Mark { fill: style.palette.paint(banks.of(offset), banks.count), ..Mark::default() }
        })
    };
    let left = tinted_with_corner(&format!("before: {}", map.inner()), &before, style, tint(&before, *map.offset()));
    let right = tinted_with_corner(&format!("after: {map}"), &after, style, tint(&after, 0));
    let mut figure = left.followed_by(right);
    let mut caption = format!(
        "A colour is a bank: elements of {} bits in {} banks of {} bytes.",
        banks.element_bits, banks.count, banks.bytes
    );
    if *map.offset() != 0 {
        let _ = write!(caption, " The swizzle is of the offset plus {}.", map.offset());
    }
    figure.caption = caption;
    figure
}
