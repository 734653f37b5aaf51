//! Matrix descriptors: the 64-bit description of a `wgmma` operand in shared memory.
//!
//! # Law
//!
//! A descriptor has a start address, two distances (the leading and the stride dimension byte
//! offset), a swizzle mode and a base offset. A unit is 16 bytes, `T` elements; a line of the
//! swizzle mode has `W` units. With distances in elements, a descriptor describes these layouts of
//! `(mn, k)`
//!
//! ```text
//!                 swizzled                                        not swizzled
//! K-major         ((8,m),(T,2)):((W*T,stride),(1,T))              ((8,m),(T,2)):((T,stride),(1,leading))
//! MN-major        ((T*W,m),(8,k)):((1,leading),(W*T,stride))      ((T,m),(8,k)):((1,stride),(T,leading))
//! ```
//!
//! and the swizzle, counted from the start of its pattern, maps such an offset to the address. The
//! extent of K is 32 bytes, which one instruction reads. A layout is canonical if its modes are
//! these functions, in any nesting. Fields that affect no element are 0, except that the leading
//! distance of swizzled K-major operands is one unit.
//!
//! ```text
//! bits   0..14    start address / 16              bits  49..52    base offset: the number of the line of 128 bytes, modulo 8,
//! bits  16..30    leading distance / 16                           at which a pattern starts that is not aligned
//! bits  32..46    stride distance / 16            bits  62..64    swizzle mode
//! ```
//!
//! (PTX ISA, "Asynchronous Warpgroup Level Matrix Operation": matrix descriptor format, strides,
//! and canonical layouts.)

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::ToString;
use core::fmt;

use crate::atoms::error::AtomError;
use crate::atoms::evidence::CanonicalCondition;
use crate::atoms::shared::unit_elements;
use crate::atoms::terms::{Major, OperandMode, SwizzleMode};
use crate::{Composed, Layout, OuterMap};

/// The 64-bit descriptor of a matrix operand in shared memory.
///
/// ```
/// use tilewright_layout::atoms::{Major, MatrixDescriptor, SwizzleMode};
///
/// let tile = SwizzleMode::None.tile(Major::K, 16, &"(64,16)".parse().unwrap()).unwrap();
/// let descriptor = MatrixDescriptor::of_layout(&tile, Major::K, 16, 0).unwrap();
/// // Eight rows are 128 bytes; the second unit of each row follows the first units of all 64 rows.
/// assert_eq!((descriptor.stride(), descriptor.leading()), (128, 1024));
/// assert_eq!(MatrixDescriptor::of_bits(descriptor.bits()).unwrap(), descriptor);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixDescriptor {
    /// In bytes; a multiple of 16 below 2^18.
    start: u32,
    leading: u32,
    stride: u32,
    /// A number below 8.
    base_offset: u8,
    mode: SwizzleMode,
}

/// One past the largest address and distance, in bytes: the fields have 14 bits and count units of
/// 16 bytes.
const REACH: i64 = 1 << 18;

impl MatrixDescriptor {
    /// The descriptor of an operand `(mn, k)`: offsets count elements of `element_bits` bits from
    /// the byte address `base` in shared memory.
    ///
    /// A layout without a swizzle is written `S<0,b,s> o 0 o L`. The offset between swizzle and
    /// inner layout is added to the start address, so that each step along K within an atom has its
    /// own descriptor.
    ///
    /// Errors: the layout is not canonical, with the condition that fails
    /// ([`AtomError::NotCanonical`]); an address or a distance is not a multiple of 16 bytes, not
    /// positive, or 256 KiB or more; with a swizzle, `base` is not a multiple of 128 bytes
    /// ([`AtomError::Field`]).
    ///
    /// ```
    /// use tilewright_layout::atoms::{Major, MatrixDescriptor};
    ///
    /// let rows = "S<3,3,3> o 0 o (64,16):(16,1)".parse().unwrap(); // 128-byte swizzle
    /// let error = MatrixDescriptor::of_layout(&rows, Major::K, 16, 0).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "not a canonical K-major layout: mode 0 (MN) begins with 8:16, but with 128-byte swizzle it must begin with 8:64"
    /// );
    /// ```
    pub fn of_layout(
        layout: &Composed,
        major: Major,
        element_bits: i64,
        base: i64,
    ) -> Result<MatrixDescriptor, AtomError> {
        let refuse = |condition| AtomError::NotCanonical { major, condition: Box::new(condition) };
        let unit = unit_elements(element_bits)?;
        let mode = mode_of(layout, element_bits).map_err(|error| error.unwrap_or_else(refuse))?;
        let inner = layout.inner();
        let (2, Some(mn), Some(k)) = (inner.rank(), inner.mode(0), inner.mode(1)) else {
            return Err(refuse(CanonicalCondition::Rank { found: inner.rank() }));
        };
        if k.size() != 2 * unit {
            return Err(refuse(CanonicalCondition::Depth { found: k.size(), wanted: 2 * unit }));
        }
        let line = mode.units() * unit;
        let part = |along, layout, extent, step| part(along, layout, extent, step, mode).map_err(refuse);
        // Leading and stride distance, in elements.
        let (leading, stride) = match (major, mode) {
            (Major::K, SwizzleMode::None) => (part(OperandMode::K, &k, unit, 1)?, part(OperandMode::MN, &mn, 8, line)?),
            (Major::K, _) => {
                part(OperandMode::K, &k, 2 * unit, 1)?;
                (unit, part(OperandMode::MN, &mn, 8, line)?)
            }
            (Major::MN, SwizzleMode::None) => {
                (part(OperandMode::K, &k, 8, line)?, part(OperandMode::MN, &mn, unit, 1)?)
            }
            (Major::MN, _) => (part(OperandMode::MN, &mn, line, 1)?, part(OperandMode::K, &k, 8, line)?),
        };
        let field = |what, elements: i64| {
            let bytes = elements.checked_mul(element_bits).map_or(i64::MAX, |bits| bits / 8);
            in_units(what, bytes)
        };
        let offset = layout.offset().to_owned();
        let moved = offset.checked_mul(element_bits).filter(|bits| bits % 8 == 0).map(|bits| bits / 8);
        let start = moved.and_then(|moved| base.checked_add(moved)).unwrap_or(i64::MAX);
        in_units("the base address", base)?;
        if mode != SwizzleMode::None && base % 128 != 0 {
            let wanted = "a multiple of 128, where the lines of a swizzle begin";
            return Err(AtomError::Field { what: "the base address", bytes: base, wanted });
        }
        let base_offset = if base % mode.period() == 0 { 0 } else { (base >> 7 & 7) as u8 };
        Ok(MatrixDescriptor {
            start: in_units("the start address", start)?,
            leading: field("the leading distance", leading)?,
            stride: field("the stride distance", stride)?,
            base_offset: if mode == SwizzleMode::None { 0 } else { base_offset },
            mode,
        })
    }

    /// The start address: that of the first element, in bytes.
    pub fn start(&self) -> i64 {
        i64::from(self.start)
    }

    /// The leading dimension byte offset of PTX (LBO), in bytes.
    pub fn leading(&self) -> i64 {
        i64::from(self.leading)
    }

    /// The stride dimension byte offset of PTX (SBO), in bytes.
    pub fn stride(&self) -> i64 {
        i64::from(self.stride)
    }

    /// The base offset: 0 if the swizzle pattern is aligned to its [period](SwizzleMode::period),
    /// else the number of the 128-byte line, modulo 8, at which the pattern starts.
    pub fn base_offset(&self) -> i64 {
        i64::from(self.base_offset)
    }

    /// The swizzle mode.
    pub fn mode(&self) -> SwizzleMode {
        self.mode
    }

    /// The descriptor as the 64-bit operand of the instruction.
    pub fn bits(&self) -> u64 {
        let unit = |bytes: u32| u64::from(bytes >> 4);
        unit(self.start)
            | unit(self.leading) << 16
            | unit(self.stride) << 32
            | u64::from(self.base_offset) << 49
            | self.mode.code() << 62
    }

    /// The descriptor with these bits.
    ///
    /// Errors: a reserved bit is set ([`AtomError::Reserved`]).
    pub fn of_bits(bits: u64) -> Result<MatrixDescriptor, AtomError> {
        let unit = |at: u32| ((bits >> at & 0x3fff) << 4) as u32;
        let mode = SwizzleMode::of_code(bits >> 62).unwrap_or(SwizzleMode::None);
        let base_offset = (bits >> 49 & 7) as u8;
        let descriptor = MatrixDescriptor { start: unit(0), leading: unit(16), stride: unit(32), base_offset, mode };
        match descriptor.bits() ^ bits {
            0 => Ok(descriptor),
            bits => Err(AtomError::Reserved { bits }),
        }
    }
}

impl fmt::Display for MatrixDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "start {:#x}, leading {}, stride {}, base offset {}, {}",
            self.start, self.leading, self.stride, self.base_offset, self.mode
        )
    }
}

/// The swizzle mode of the outer map; the error is the condition that fails, or another error.
fn mode_of(layout: &Composed, element_bits: i64) -> Result<SwizzleMode, Result<AtomError, CanonicalCondition>> {
    let OuterMap::Swizzle(found) = layout.outer() else { return Err(Err(CanonicalCondition::Outer)) };
    if found.is_identity() {
        return Ok(SwizzleMode::None);
    }
    for mode in SwizzleMode::ALL {
        if mode.swizzle(element_bits).map_err(Ok)? == *found {
            return Ok(mode);
        }
    }
    let widest = SwizzleMode::Bytes128.swizzle(element_bits).map_err(Ok)?;
    Err(Err(CanonicalCondition::Swizzle { found: *found, widest }))
}

/// Reads one dimension as `extent:step`, the part within an atom, and copies of it. Returns the
/// distance between the copies, 0 if there is only one.
fn part(
    along: OperandMode,
    layout: &Layout,
    extent: i64,
    step: i64,
    mode: SwizzleMode,
) -> Result<i64, CanonicalCondition> {
    let size = layout.size();
    if size % extent != 0 {
        return Err(CanonicalCondition::Multiple { along, found: size, of: extent });
    }
    let core = |found: &dyn fmt::Display| CanonicalCondition::Core {
        along,
        found: found.to_string().into(),
        wanted: alloc::format!("{extent}:{step}").into(),
        mode,
    };
    // The dimension splits into two parts with one step each exactly if both parts are single
    // leaves of the composition.
    let split = || alloc::format!("({extent},{}):(1,{extent})", size / extent).parse::<Layout>();
    let divided = split().and_then(|split| layout.compose(&split)).map_err(|_| core(layout))?;
    let (Some(inside), Some(beyond)) = (divided.mode(0), divided.mode(1)) else { return Err(core(layout)) };
    match inside.leaves() {
        [leaf] if leaf.stride == step || leaf.extent == 1 => {}
        _ => return Err(core(&inside)),
    }
    match beyond.leaves() {
        [leaf] if leaf.stride >= 0 => Ok(leaf.stride),
        _ => Err(CanonicalCondition::Step { along, found: beyond.to_string().into() }),
    }
}

/// A number of bytes in units of 16, as it fits in a field of 14 bits.
fn in_units(what: &'static str, bytes: i64) -> Result<u32, AtomError> {
    if bytes % 16 != 0 {
        return Err(AtomError::Field { what, bytes, wanted: "a multiple of 16" });
    }
    if !(0..REACH).contains(&bytes) {
        return Err(AtomError::Field { what, bytes, wanted: "from 0 to 262128" });
    }
    Ok(bytes as u32)
}
