//! Tensor maps: which bytes a bulk copy of a box moves.
//!
//! Law: a map describes a tensor of rank 1 to 5 in global memory, whose first dimension is
//! contiguous. A *tiled* copy moves the box at the given coordinates: all elements of the first
//! dimension, and every `step`-th element of each other dimension, `ceil(box / step)` of them, with
//! the first dimension fastest, packed in shared memory. With a swizzle that is wider than a row,
//! each row occupies a whole line of the swizzle. An *im2col* copy moves the channels of this many
//! pixels. The pixels follow each other along the spatial dimensions and then along images, within
//! a box that begins at the lower corner and ends at the upper corner, which counts from the last
//! pixel. The offsets of the instruction move each pixel. For elements outside of the tensor, loads
//! fill in a value, and stores write nothing. With a swizzle of 16 W bytes, units of 16 bytes are
//! permuted: bits 4 and up of an address in shared memory are xored with as many bits from bit 7
//! on.
//!
//! Interleaved layouts are refused when a map is made.
//!
//! (PTX ISA, "Tensors"; CUDA driver API, `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`.
//! The 128 bytes of the driver's maps are not documented; the format here is this crate's own.)

mod bytes;

/// The number of bytes of a map.
pub const MAP_BYTES: usize = 128;
/// The highest rank.
const RANKS: usize = 5;

/// The value of elements outside of the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Outside {
    /// Zeros.
    #[default]
    Zeros,
    /// NaN, for floating-point types.
    Nan,
}

/// The traversal of a map's copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Boxes with these extents.
    Tiled([u32; RANKS]),
    /// Pixels and their channels.
    Im2col {
        /// The lower corner of each spatial dimension.
        lower: [i16; 3],
        /// The upper corner of each spatial dimension.
        upper: [i16; 3],
        /// Channels of a pixel.
        channels: u32,
        /// The number of pixels of a copy.
        pixels: u32,
    },
}

/// The element type. Floats of 8 bits are bytes, and `tf32` is `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapElement {
    /// Bytes.
    U8,
    /// 16 bits without a sign.
    U16,
    /// 32 bits without a sign.
    U32,
    /// 32 bits with a sign.
    S32,
    /// 64 bits without a sign.
    U64,
    /// 64 bits with a sign.
    S64,
    /// Floats of 16 bits.
    F16,
    /// Floats of 32 bits.
    F32,
    /// Floats of 64 bits.
    F64,
    /// Floats of 16 bits with the exponent of 32.
    Bf16,
}

impl MapElement {
    /// The types, by their numbers in `tensormap.replace.tile.elemtype`. Two of them are `f32` with
    /// flushed subnormal numbers, and two are `tf32`.
    const NUMBERED: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::S32,
        Self::U64,
        Self::S64,
        Self::F16,
        Self::F32,
        Self::F32,
        Self::F64,
        Self::Bf16,
        Self::F32,
        Self::F32,
    ];

    /// The type with a number in `tensormap.replace.tile.elemtype`.
    pub fn numbered(number: u64) -> Option<Self> {
        Self::NUMBERED.get(usize::try_from(number).ok()?).copied()
    }

    fn number(self) -> u64 {
        Self::NUMBERED.iter().position(|own| *own == self).unwrap_or(0) as u64
    }

    /// The number of bytes of an element: 1, 2, 4 or 8.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }

    /// The bits of the NaN that an H200 fills in, a repeated pattern of 16 bits; None for integers.
    pub fn nan(self) -> Option<u64> {
        let repeated = u64::from(super::half::OUTSIDE_16) * 0x0001_0001_0001_0001;
        match self {
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => Some(repeated & u64::MAX >> (64 - 8 * self.bytes())),
            _ => None,
        }
    }
}

/// A field that `tensormap.replace` changes. Dimensions count from 0, the contiguous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapField {
    /// The address of the tensor.
    Address,
    /// The number of dimensions, less one.
    Rank,
    /// The extent of a box along a dimension.
    Box(usize),
    /// The extent of the tensor along a dimension.
    Extent(usize),
    /// The stride in bytes of the dimension after this one.
    Stride(usize),
    /// The traversal stride of a dimension.
    Step(usize),
    /// The number of the type.
    Element,
    /// The layout: 0, as no other is supported.
    Interleave,
    /// The number of the swizzle.
    Swizzle,
    /// The value outside of the tensor: 0 for zeros, 1 for NaN.
    Fill,
}

impl MapField {
    /// The field that a modifier of `tensormap.replace` names, with the number of its dimension.
    pub fn read(word: &str, dimension: usize) -> Option<Self> {
        Some(match word {
            "global_address" => Self::Address,
            "rank" => Self::Rank,
            "box_dim" if dimension < RANKS => Self::Box(dimension),
            "global_dim" if dimension < RANKS => Self::Extent(dimension),
            "global_stride" if dimension < RANKS - 1 => Self::Stride(dimension),
            "element_stride" if dimension < RANKS => Self::Step(dimension),
            "elemtype" => Self::Element,
            "interleave_layout" => Self::Interleave,
            "swizzle_mode" => Self::Swizzle,
            "fill_mode" => Self::Fill,
            _ => return None,
        })
    }

    /// Whether a modifier of `tensormap.replace` has a dimension.
    pub fn has_dimension(word: &str) -> bool {
        matches!(word, "box_dim" | "global_dim" | "global_stride" | "element_stride")
    }
}

/// A tensor map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorMap {
    /// The address of the tensor, a multiple of 16.
    pub address: u64,
    /// The element type.
    pub element: MapElement,
    /// The number of dimensions, 1 to 5.
    pub rank: usize,
    /// The extent of each dimension, at least 1.
    pub extents: [u64; RANKS],
    /// The stride in bytes of each dimension but the first, a multiple of 16.
    pub strides: [u64; RANKS - 1],
    /// The traversal stride of each dimension, 1 to 8: only every such element is copied. That of
    /// the first dimension is ignored.
    pub steps: [u32; RANKS],
    /// The traversal of copies.
    pub walk: Walk,
    /// The number of 16-byte units in a line of the swizzle: 1 (none), 2, 4 or 8.
    pub units: u32,
    /// The value of elements outside of the tensor.
    pub outside: Outside,
}

/// Bytes that are contiguous in both memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BoxPiece {
    /// The address in shared memory, swizzled.
    pub shared: u64,
    /// The address in global memory; None outside of the tensor.
    pub global: Option<u64>,
    /// The number of bytes.
    pub bytes: u32,
}

impl TensorMap {
    /// A map of a dense row-major array with boxes of `extents`. The last extent of the array is
    /// the first dimension of the map. `extents` has the order of the array's shape, the outermost
    /// dimension first.
    ///
    /// # Errors
    ///
    /// Errors: as [`TensorMap::check`]; `extents` does not have one extent for each dimension.
    ///
    /// ```
    /// use tilewright_sanitize::isa::tensor_map::{MapElement, TensorMap};
    ///
    /// let half = MapElement::F16;
    /// let map = TensorMap::of_array(half, &[64, 128], 0x1000, &[8, 64], 8).unwrap();
    /// assert_eq!(map.strides[0], 256);
    /// assert_eq!(map.box_bytes(), 1024);
    /// assert!(TensorMap::of_array(half, &[64, 128], 0x1000, &[8, 128], 8).is_err()); // a row of 256 bytes
    /// ```
    pub fn of_array(
        element: MapElement,
        shape: &[u64],
        address: u64,
        extents: &[u32],
        units: u32,
    ) -> Result<TensorMap, String> {
        let mut map = Self { units, ..Self::dense(element, shape, address)? };
        map.set_box(extents)?;
        map.check()?;
        Ok(map)
    }

    /// A map of a dense row-major array with boxes of one element, without checks.
    ///
    /// # Errors
    ///
    /// Errors: the array has no dimension, more than five dimensions, or too many bytes.
    pub fn dense(element: MapElement, shape: &[u64], address: u64) -> Result<TensorMap, String> {
        let rank = shape.len();
        if rank == 0 || rank > RANKS {
            return Err(format!("an array of {rank} dimensions; a map has one to five"));
        }
        let mut map = TensorMap {
            address,
            element,
            rank,
            extents: [1; RANKS],
            strides: [16; RANKS - 1],
            steps: [1; RANKS],
            walk: Walk::Tiled([1; RANKS]),
            units: 1,
            outside: Outside::Zeros,
        };
        let mut bytes = u64::from(element.bytes());
        for (at, extent) in shape.iter().rev().enumerate() {
            map.extents[at] = *extent;
            if at > 0 {
                map.strides[at - 1] = bytes;
            }
            bytes = bytes.checked_mul(*extent).ok_or("the array is too large")?;
        }
        Ok(map)
    }

    /// Sets the extents of boxes, the outermost dimension first.
    ///
    /// # Errors
    ///
    /// Errors: there is not one extent for each dimension.
    pub fn set_box(&mut self, extents: &[u32]) -> Result<(), String> {
        if extents.len() != self.rank {
            return Err(format!("a box of {} dimensions for an array of {}", extents.len(), self.rank));
        }
        let mut boxes = [1; RANKS];
        for (into, extent) in boxes.iter_mut().zip(extents.iter().rev()) {
            *into = *extent;
        }
        self.walk = Walk::Tiled(boxes);
        Ok(())
    }

    /// Checks the rules of the driver.
    ///
    /// # Errors
    ///
    /// Errors: the first rule that is violated, as text.
    pub fn check(&self) -> Result<(), String> {
        let bytes = u64::from(self.element.bytes());
        if self.rank == 0 || self.rank > RANKS {
            return Err(format!("a rank of {}", self.rank));
        }
        if !self.address.is_multiple_of(16) {
            return Err("the address is no multiple of 16".into());
        }
        if !matches!(self.units, 1 | 2 | 4 | 8) {
            return Err("a swizzle of 16, 32, 64 or 128 bytes is expected".into());
        }
        for (at, extent) in self.extents[..self.rank].iter().enumerate() {
            if !(1..=1 << 32).contains(extent) {
                return Err(format!("dimension {at} has {extent} elements; 1 to 2^32 are possible"));
            }
        }
        for (at, stride) in self.strides[..self.rank - 1].iter().enumerate() {
            if !stride.is_multiple_of(16) || *stride >= 1 << 40 {
                return Err(format!("dimension {} has a stride of {stride} bytes, which is no multiple of 16", at + 1));
            }
        }
        if self.steps[..self.rank].iter().any(|step| !(1..=8).contains(step)) {
            return Err("steps of 1 to 8 elements are possible".into());
        }
        let inner = match self.walk {
            Walk::Tiled(boxes) => {
                if let Some((at, size)) =
                    boxes[..self.rank].iter().enumerate().find(|(_, size)| !(1..=256).contains(*size))
                {
                    return Err(format!("dimension {at} of the box has {size} elements; 1 to 256 are possible"));
                }
                bytes * u64::from(boxes[0])
            }
            Walk::Im2col { channels, pixels, lower, upper } => {
                // The corner of each spatial dimension has 16 bits divided by the number of spatial
                // dimensions.
                let (least, most) = match self.rank {
                    3 => (-32768, 32767),
                    4 => (-128, 127),
                    5 => (-16, 15),
                    _ => return Err("im2col takes three to five dimensions".into()),
                };
                for at in 0..self.rank - 2 {
                    for corner in [lower[at], upper[at]] {
                        if !(least..=most).contains(&i32::from(corner)) {
                            return Err(format!("a corner at {corner}; {least} to {most} are possible"));
                        }
                    }
                    if i64::from(lower[at]) >= self.extents[at + 1] as i64 + i64::from(upper[at]) {
                        return Err(format!("the box of pixels is empty in dimension {}", at + 1));
                    }
                }
                if !(1..=256).contains(&channels) || !(1..=1024).contains(&pixels) {
                    return Err("1 to 256 channels and 1 to 1024 pixels are possible".into());
                }
                bytes * u64::from(channels)
            }
        };
        if !inner.is_multiple_of(16) {
            return Err(format!("a row of the box has {inner} bytes, which is no multiple of 16"));
        }
        if self.units > 1 && inner > u64::from(16 * self.units) {
            return Err(format!("a row of the box has {inner} bytes, more than the swizzle of {}", 16 * self.units));
        }
        if self.outside == Outside::Nan && self.element.nan().is_none() {
            return Err("integers have no NaN".into());
        }
        Ok(())
    }

    /// The number of bytes of a row of a box, or of the channels of a pixel.
    fn row_bytes(&self) -> u32 {
        let elements = match self.walk {
            Walk::Tiled(boxes) => boxes[0],
            Walk::Im2col { channels, .. } => channels,
        };
        elements.saturating_mul(self.element.bytes())
    }

    /// The distance in bytes between rows in shared memory.
    fn pitch(&self) -> u32 {
        if self.units > 1 { 16 * self.units } else { self.row_bytes() }
    }

    /// The number of bytes of shared memory from the start of a box to its end.
    pub fn room(&self) -> u32 {
        self.box_bytes() / self.row_bytes().max(1) * self.pitch()
    }

    /// Whether rows are padded in shared memory.
    pub fn is_apart(&self) -> bool {
        self.pitch() != self.row_bytes()
    }

    /// The number of bytes that a copy moves.
    pub fn box_bytes(&self) -> u32 {
        let elements = match self.walk {
            Walk::Tiled(boxes) => {
                let sizes = boxes[1..self.rank].iter().zip(&self.steps[1..]);
                sizes.map(|(size, step)| size.div_ceil((*step).max(1))).fold(boxes[0], u32::saturating_mul)
            }
            Walk::Im2col { channels, pixels, .. } => channels.saturating_mul(pixels),
        };
        elements.saturating_mul(self.element.bytes())
    }

    /// The bits of an element outside of the tensor.
    pub fn fill(&self) -> u64 {
        match self.outside {
            Outside::Zeros => 0,
            Outside::Nan => self.element.nan().unwrap_or(0),
        }
    }

    /// The pieces of a copy at some coordinates, the first dimension first, to or from the address
    /// `shared`. `offsets` are those of im2col. No piece crosses a unit of 16 bytes.
    pub fn pieces(&self, coordinates: [i32; RANKS], offsets: [u16; 3], shared: u64, mut visit: impl FnMut(BoxPiece)) {
        let bytes = self.element.bytes();
        let mut offset = 0_u64;
        let apart = u64::from(self.pitch().saturating_sub(self.row_bytes()));
        let mut row = |inner: i64, count: u32, rest: Option<u64>| {
            let mut at = 0;
            while at < count {
                // The elements of one unit of shared memory, which are all inside of the tensor or
                // all outside.
                let unit = (16 - (offset % 16) as u32) / bytes;
                let contiguous = unit.min(count - at);
                let place = |number: u32| inner + i64::from(number);
                let inside = |number: u32| {
                    let at = place(number);
                    rest.is_some() && at >= 0 && (at as u64) < self.extents[0]
                };
                let first = inside(at);
                let same = (1..contiguous).take_while(|more| inside(at + more) == first).count() as u32 + 1;
                let global = rest.filter(|_| first).map(|rest| rest.wrapping_add(place(at) as u64 * u64::from(bytes)));
                visit(BoxPiece { shared: self.swizzled(shared + offset), global, bytes: same * bytes });
                offset += u64::from(same * bytes);
                at += same;
            }
            offset += apart;
        };
        match self.walk {
            Walk::Tiled(boxes) => {
                let counts = [0, 1, 2, 3, 4].map(|at| match at < self.rank {
                    true if at == 0 => boxes[0],
                    true => boxes[at].div_ceil(self.steps[at].max(1)),
                    false => 1,
                });
                for number in 0..counts[1..].iter().map(|count| u64::from(*count)).product() {
                    let mut left: u64 = number;
                    let mut rest = Some(self.address);
                    for at in 1..self.rank {
                        let along = left % u64::from(counts[at]);
                        left /= u64::from(counts[at]);
                        let index = i64::from(coordinates[at]) + along as i64 * i64::from(self.steps[at]);
                        rest = self.along(rest, at, index);
                    }
                    row(coordinates[0].into(), counts[0], rest);
                }
            }
            Walk::Im2col { lower, upper, channels, pixels } => {
                let spatial = self.rank - 2;
                let mut at = [0, 1, 2].map(|dimension| i64::from(coordinates[dimension + 1]));
                let mut image = i64::from(coordinates[self.rank - 1]);
                for _ in 0..pixels {
                    let mut rest = self.along(Some(self.address), self.rank - 1, image);
                    for dimension in 0..spatial {
                        let index = at[dimension] + i64::from(offsets[dimension]);
                        rest = self.along(rest, dimension + 1, index);
                    }
                    row(coordinates[0].into(), channels, rest);
                    let mut dimension = 0;
                    loop {
                        if dimension == spatial {
                            image += i64::from(self.steps[self.rank - 1]);
                            break;
                        }
                        at[dimension] += i64::from(self.steps[dimension + 1]);
                        let end = self.extents[dimension + 1] as i64 + i64::from(upper[dimension]);
                        if at[dimension] < end {
                            break;
                        }
                        at[dimension] = lower[dimension].into();
                        dimension += 1;
                    }
                }
            }
        }
    }

    /// The address after moving along a dimension other than the first; None outside of the tensor.
    fn along(&self, address: Option<u64>, dimension: usize, index: i64) -> Option<u64> {
        let inside = index >= 0 && (index as u64) < self.extents[dimension];
        address
            .filter(|_| inside)
            .map(|address| address.wrapping_add((index as u64).wrapping_mul(self.strides[dimension - 1])))
    }

    /// The swizzled address of a byte of shared memory.
    fn swizzled(&self, address: u64) -> u64 {
        address ^ (address >> 3 & u64::from(16 * (self.units - 1)))
    }
}
