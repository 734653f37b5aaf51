//! The canonical layouts of matrix operands in shared memory (Hopper, `wgmma`).
//!
//! # Law
//!
//! A unit is 16 bytes; with elements of `b` bits it holds `T = 128 / b`. An atom has 8 contiguous
//! lines of `W` units, with `W` = 1, 2, 4 or 8. The index of a unit in its line is XORed with the
//! number of its 128-byte line: the swizzle `S<log2(W),4,3>` of byte addresses. The lines are along
//! K or along the other dimension, M or N:
//!
//! ```text
//! K-major     S o 0 o (8,W*T):(W*T,1)          coordinates (mn, k)
//! MN-major    S o 0 o (W*T,8):(1,W*T)
//! ```
//!
//! (PTX ISA, "Shared Memory Matrix Layout" of `wgmma.mma_async`, table of swizzle atoms; CuTe
//! `GMMA::Layout_{K,MN}_{INTER,SW32,SW64,SW128}_Atom`.)

use crate::atoms::error::AtomError;
use crate::atoms::terms::{Major, SwizzleMode};
use crate::{Composed, Layout, Swizzle, Tree};

impl SwizzleMode {
    /// The mode with a code of the descriptor; None for codes above 3.
    pub fn of_code(code: u64) -> Option<SwizzleMode> {
        SwizzleMode::ALL.into_iter().find(|mode| mode.code() == code)
    }

    /// The swizzle of offsets that count elements of `element_bits` bits.
    ///
    /// Errors: the width is not a power of two from 1 to 128 ([`AtomError::ElementWidth`]).
    ///
    /// ```
    /// use tilewright_layout::atoms::SwizzleMode;
    ///
    /// assert_eq!(SwizzleMode::Bytes128.swizzle(8).unwrap().to_string(), "S<3,4,3>");
    /// assert_eq!(SwizzleMode::Bytes64.swizzle(16).unwrap().to_string(), "S<2,3,3>");
    /// ```
    pub fn swizzle(self, element_bits: i64) -> Result<Swizzle, AtomError> {
        let unit = unit_elements(element_bits)?;
        Ok(Swizzle::new(self.log_units(), i64::from(unit.ilog2()), 3)?)
    }

    /// The swizzle atom: the smallest matrix with this arrangement, as a layout from `(mn, k)` to
    /// offsets in elements of `element_bits` bits.
    ///
    /// Errors: the width is not a power of two from 1 to 128 ([`AtomError::ElementWidth`]).
    ///
    /// ```
    /// use tilewright_layout::atoms::{Major, SwizzleMode};
    ///
    /// let atom = |mode: SwizzleMode, major| mode.atom(major, 16).unwrap().to_string();
    /// assert_eq!(atom(SwizzleMode::Bytes128, Major::K), "S<3,3,3> o 0 o (8,64):(64,1)");
    /// assert_eq!(atom(SwizzleMode::Bytes32, Major::MN), "S<1,3,3> o 0 o (16,8):(1,16)");
    /// assert_eq!(atom(SwizzleMode::None, Major::K), "S<0,3,3> o 0 o (8,8):(8,1)");
    /// ```
    pub fn atom(self, major: Major, element_bits: i64) -> Result<Composed, AtomError> {
        let line = self.units() * unit_elements(element_bits)?;
        let (lines, along) = (Layout::mode_of(8, line)?, Layout::mode_of(line, 1)?);
        let inner = match major {
            Major::K => Layout::tuple([&lines, &along])?,
            Major::MN => Layout::tuple([&along, &lines])?,
        };
        Ok(Composed::new(self.swizzle(element_bits)?, 0, inner)?)
    }

    /// The atom repeated until it covers a shape `(mn, k, ..)`, along the first dimension first
    /// (CuTe `tile_to_shape`).
    ///
    /// For another order of the copies use `tile_to_shape` of the [atom](SwizzleMode::atom).
    /// Errors: as [`SwizzleMode::atom`]; the shape has fewer than two modes, or an extent that is
    /// not positive; an offset is not representable.
    ///
    /// ```
    /// use tilewright_layout::atoms::{Major, SwizzleMode};
    ///
    /// let tile = SwizzleMode::Bytes64.tile(Major::MN, 16, &"(64,16)".parse().unwrap()).unwrap();
    /// assert_eq!(tile.to_string(), "S<2,3,3> o 0 o ((32,2),(8,2)):((1,256),(32,512))");
    /// ```
    pub fn tile(self, major: Major, element_bits: i64, shape: &Tree<i64>) -> Result<Composed, AtomError> {
        Ok(self.atom(major, element_bits)?.tile_to_shape(shape, None)?)
    }
}

/// The number of elements in 16 bytes.
pub(crate) fn unit_elements(element_bits: i64) -> Result<i64, AtomError> {
    if (1..=128).contains(&element_bits) && element_bits.unsigned_abs().is_power_of_two() {
        Ok(128 / element_bits)
    } else {
        Err(AtomError::ElementWidth { bits: element_bits })
    }
}
