//! Tensor maps that the device reads.
//!
//! Law: a map is what [`TensorMap`] derived from a layout and a tile, over the memory of a tensor,
//! if it satisfies every rule of the driver's manual. The error says which rule is violated,
//! because the driver only says that a value is invalid. All elements that the map describes are
//! inside of the memory of the tensor.
//!
//! ```text
//! address     a multiple of 16
//! dimensions  1 to 5; extents 1 to 2^32; the first contiguous; strides of the others multiples of 16
//!             bytes, at least 0 and below 2^40
//! box         1 to 256 in each dimension; rows of multiples of 16 bytes, no longer than a line of the
//!             swizzle
//! fill        zeros, or a NaN where elements are floating-point numbers
//! ```
//!
//! (CUDA driver API, `cuTensorMapEncodeTiled`.)

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use tilewright_layout::atoms::{Dimension, MAX_DIMENSIONS, SwizzleMode, TensorMap};
use tilewright_tensor::Offsets;

use crate::context::Context;
use crate::device_tensor::DeviceTensor;
use crate::driver::{TensorMapBytes, TiledMap};
use crate::element::{Element, ElementType};
use crate::error::GpuError;
use crate::parameter::{Argument, Mapped};

/// The number of bytes that L2 fetches at once for a copy (`CUtensorMapL2promotion`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Promotion {
    /// Only the requested sectors.
    None,
    /// 64 bytes.
    Bytes64,
    /// 128 bytes.
    #[default]
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

/// The value that a copy writes for elements of a box outside of the tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outside {
    /// Zeros.
    #[default]
    Zeros,
    /// NaNs that a multiplication with `.oob` treats as zeros. For floating-point types only.
    Nans,
}

/// A tensor map in the driver's form: 128 bytes. The memory that it describes stays borrowed.
///
/// ```no_run
/// use tilewright_layout::atoms::{SwizzleMode, TensorMap};
/// use tilewright_gpu::{Device, DeviceTensor, EncodedTensorMap};
/// use tilewright_layout::Layout;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Device::open(0)?;
/// let stream = device.stream()?;
/// let rows: Layout = "(1024,512):(512,1)".parse()?;
/// let tensor = DeviceTensor::filled(&stream, rows.clone(), 0.0_f32)?;
///
/// // Boxes of 64 rows and 32 columns, whose lines of 128 bytes are swizzled.
/// let (tile, shared) = ("(64,32)".parse()?, "(64,32):(32,1)".parse()?);
/// let boxes = TensorMap::new(&rows, &tile, &shared, 32, SwizzleMode::Bytes128)?;
/// let map = EncodedTensorMap::new(&tensor, &boxes, SwizzleMode::Bytes128, Default::default(), Default::default())?;
/// # let _ = map;
/// # Ok(())
/// # }
/// ```
pub struct EncodedTensorMap<'a> {
    bytes: TensorMapBytes,
    context: Arc<Context>,
    range: (u64, u64),
    writable: bool,
    memory: PhantomData<&'a ()>,
}

/// The values from which a map is encoded.
pub(crate) struct Wanted<'d> {
    pub(crate) element: ElementType,
    /// The address of the first element.
    pub(crate) address: u64,
    pub(crate) dimensions: &'d [Dimension],
    pub(crate) swizzle: SwizzleMode,
    pub(crate) promotion: Promotion,
    pub(crate) outside: Outside,
}

impl<'a> EncodedTensorMap<'a> {
    /// A map of memory that is read.
    ///
    /// Errors: the device has no tensor maps; a rule is violated (E0817).
    pub fn new<T: Element, L: Offsets>(
        tensor: &'a DeviceTensor<T, L>,
        boxes: &TensorMap,
        swizzle: SwizzleMode,
        promotion: Promotion,
        outside: Outside,
    ) -> Result<EncodedTensorMap<'a>, GpuError> {
        EncodedTensorMap::of(tensor, boxes, swizzle, promotion, outside, false)
    }

    /// A map of memory that is written.
    ///
    /// Errors: as [`EncodedTensorMap::new`].
    pub fn new_mut<T: Element, L: Offsets>(
        tensor: &'a mut DeviceTensor<T, L>,
        boxes: &TensorMap,
        swizzle: SwizzleMode,
        promotion: Promotion,
        outside: Outside,
    ) -> Result<EncodedTensorMap<'a>, GpuError> {
        EncodedTensorMap::of(tensor, boxes, swizzle, promotion, outside, true)
    }

    fn of<T: Element, L: Offsets>(
        tensor: &DeviceTensor<T, L>,
        boxes: &TensorMap,
        swizzle: SwizzleMode,
        promotion: Promotion,
        outside: Outside,
        writable: bool,
    ) -> Result<EncodedTensorMap<'a>, GpuError> {
        let range = (tensor.memory().address(), tensor.memory().bytes());
        let (element, address, dimensions) = (T::TYPE, tensor.address(), boxes.dimensions());
        let wanted = Wanted { element, address, dimensions, swizzle, promotion, outside };
        EncodedTensorMap::in_memory(tensor.context(), range, &wanted, writable)
    }

    /// A map of elements in a range of memory.
    pub(crate) fn in_memory(
        context: &Arc<Context>,
        range: (u64, u64),
        wanted: &Wanted<'_>,
        writable: bool,
    ) -> Result<EncodedTensorMap<'a>, GpuError> {
        let context = context.clone();
        if context.attributes().tensor_maps == 0 {
            let (major, minor) = context.attributes().capability();
            let value = i64::from(major * 10 + minor);
            return Err(GpuError::TensorMap {
                what: "the device has none; its compute capability, times 10, is",
                value,
            });
        }
        // The address is inside of the memory.
        let there = range.1 - (wanted.address - range.0);
        let map = wanted.tiled(there)?;
        let encoded = context.attempt(|driver| driver.encode_tiled(&map))?;
        let lists = || GpuError::TensorMap { what: "the number of dimensions is", value: map.extents.len() as i64 };
        let bytes = encoded.ok_or_else(lists)?.map_err(|refused| context.explain(refused))?;
        Ok(EncodedTensorMap { bytes, context, range, writable, memory: PhantomData })
    }

    /// The same map with another borrow of the memory, which the caller holds.
    pub(crate) fn again<'b>(&self) -> EncodedTensorMap<'b> {
        let EncodedTensorMap { bytes, ref context, range, writable, .. } = *self;
        EncodedTensorMap { bytes, context: context.clone(), range, writable, memory: PhantomData }
    }

    pub(crate) fn mapped(&self) -> Mapped<'_> {
        Mapped { bytes: &self.bytes, context: &self.context, range: self.range, writable: self.writable }
    }
}

impl<'a> From<&'a EncodedTensorMap<'a>> for Argument<'a> {
    fn from(map: &'a EncodedTensorMap<'a>) -> Self {
        map.mapped().into()
    }
}

impl fmt::Debug for EncodedTensorMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedTensorMap({:#x}, {} bytes)", self.range.0, self.range.1)
    }
}

fn refuse<T>(what: &'static str, value: i64) -> Result<T, GpuError> {
    Err(GpuError::TensorMap { what, value })
}

impl Wanted<'_> {
    /// The parameters of the driver's function, if they satisfy the rules and `there` bytes of
    /// memory from the address on contain all elements.
    fn tiled(&self, there: u64) -> Result<TiledMap, GpuError> {
        let Wanted { element, address, dimensions, swizzle, promotion, outside } = *self;
        let size = element.bytes() as i64;
        if !address.is_multiple_of(16) {
            return refuse("the address must be a multiple of 16, but is", address as i64);
        }
        if !(1..=MAX_DIMENSIONS).contains(&dimensions.len()) {
            return refuse("there must be 1 to 5 dimensions, but there are", dimensions.len() as i64);
        }
        if outside == Outside::Nans && !element.is_float() {
            return refuse("only floating-point numbers can be NaN, but there are bits of an integer:", 8 * size);
        }
        let mut last = 0_i64;
        for (number, dimension) in dimensions.iter().enumerate() {
            let Dimension { extent, stride, .. } = *dimension;
            self.check_dimension(number, dimension)?;
            // The number is below 2^72, so it may not fit in 64 bits.
            let Some(reach) = stride.checked_mul(extent - 1).and_then(|reach| last.checked_add(reach)) else {
                return refuse("the elements reach past every memory, in a dimension with stride", stride);
            };
            last = reach;
            if number == 0 {
                self.check_row(size * dimension.boxed)?;
            }
        }
        match last.checked_add(size).and_then(|end| u64::try_from(end).ok()) {
            Some(end) if end <= there => {}
            end => {
                let end = end.and_then(|end| i64::try_from(end).ok()).unwrap_or(i64::MAX);
                return refuse("the elements must be inside the memory of the tensor, but reach to byte", end);
            }
        }
        Ok(TiledMap {
            element: number(element),
            address,
            // All are positive, as was checked above.
            extents: dimensions.iter().map(|dimension| dimension.extent.unsigned_abs()).collect(),
            strides: dimensions.iter().skip(1).map(|dimension| dimension.stride.unsigned_abs()).collect(),
            boxed: dimensions.iter().map(|dimension| dimension.boxed as u32).collect(),
            swizzle: match swizzle {
                SwizzleMode::None => 0,
                SwizzleMode::Bytes32 => 1,
                SwizzleMode::Bytes64 => 2,
                SwizzleMode::Bytes128 => 3,
            },
            promotion: promotion as i32,
            fill: outside as i32,
        })
    }

    /// Checks the rules of a dimension. `number` counts from 0.
    fn check_dimension(&self, number: usize, dimension: &Dimension) -> Result<(), GpuError> {
        let Dimension { extent, stride, boxed } = *dimension;
        if !(1..=1 << 32).contains(&extent) {
            return refuse("extents are 1 to 2^32, but there is", extent);
        }
        if !(1..=256).contains(&boxed) {
            return refuse("a box has 1 to 256 elements in each dimension, but there are", boxed);
        }
        if number == 0 && stride != self.element.bytes() as i64 {
            return refuse(
                "the elements of the first dimension must be side by side, but are apart by, in bytes,",
                stride,
            );
        }
        if number > 0 && (stride % 16 != 0 || !(0..1 << 40).contains(&stride)) {
            return refuse("strides are multiples of 16 bytes below 2^40, but there is", stride);
        }
        Ok(())
    }

    /// Checks the rules of a row of a box with this many bytes.
    fn check_row(&self, row: i64) -> Result<(), GpuError> {
        if row % 16 != 0 {
            return refuse("a row of the box must be a multiple of 16 bytes, but is", row);
        }
        if self.swizzle != SwizzleMode::None && row > 16 * self.swizzle.units() {
            return refuse("a row of the box must not be longer than a line of the swizzle, but is, in bytes,", row);
        }
        Ok(())
    }
}

/// The number of a type (`CUtensorMapDataType`). Signed integers that it lacks are encoded as
/// unsigned ones, because the bits are copied unchanged.
fn number(element: ElementType) -> i32 {
    match element {
        ElementType::U8 | ElementType::S8 => 0,
        ElementType::U16 | ElementType::S16 => 1,
        ElementType::U32 => 2,
        ElementType::S32 => 3,
        ElementType::U64 => 4,
        ElementType::S64 => 5,
        ElementType::F16 => 6,
        ElementType::F32 => 7,
        ElementType::F64 => 8,
        ElementType::BF16 => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(dimensions: &[(i64, i64, i64)], address: u64, there: u64, swizzle: SwizzleMode) -> Result<TiledMap, String> {
        let dimensions: Vec<Dimension> = dimensions
            .iter()
            .map(|(extent, stride, boxed)| Dimension { extent: *extent, stride: *stride, boxed: *boxed })
            .collect();
        let (promotion, outside) = (Promotion::Bytes256, Outside::Nans);
        let wanted =
            Wanted { element: ElementType::BF16, address, dimensions: &dimensions, swizzle, promotion, outside };
        wanted.tiled(there).map_err(|error| error.to_string())
    }

    /// For each dimension the extent, the stride and the box; the address, the number of bytes, and
    /// the swizzle.
    type Asked = (&'static [(i64, i64, i64)], u64, u64, SwizzleMode);

    #[test]
    fn what_keeps_the_rules_is_passed_on() {
        let made = map(&[(512, 2, 64), (1024, 1024, 128)], 256, 1 << 20, SwizzleMode::Bytes128).unwrap();
        assert_eq!((made.extents.as_slice(), made.strides.as_slice()), (&[512, 1024][..], &[1024][..]));
        assert_eq!((made.boxed.as_slice(), made.address), (&[64, 128][..], 256));
        assert_eq!((made.element, made.swizzle, made.promotion, made.fill), (9, 3, 3, 1));
    }

    /// Law: one value at a time beyond its bound names its rule; at the bound it is accepted.
    #[test]
    fn each_rule_is_checked_at_its_bound() {
        use SwizzleMode::{Bytes32, Bytes64, Bytes128, None};
        const ROOM: u64 = u64::MAX >> 1;
        let good: &[Asked] = &[
            (&[(8, 2, 8)], 16, 16, None),
            (&[(1 << 32, 2, 256)], 0, 1 << 33, None),
            (&[(8, 2, 8), (2, (1 << 40) - 16, 1)], 0, 1 << 40, None),
            (&[(8, 2, 8), (2, 16, 1), (2, 32, 1), (2, 64, 1), (2, 128, 1)], 0, 256, None),
            (&[(64, 2, 64)], 0, 128, Bytes128),
            (&[(64, 2, 32)], 0, 128, Bytes64),
            (&[(64, 2, 16)], 0, 128, Bytes32),
        ];
        for (dimensions, address, there, swizzle) in good {
            assert_eq!(map(dimensions, *address, *there, *swizzle).err(), Option::None, "{dimensions:?}");
        }
        let bad: &[(Asked, &str)] = &[
            ((&[(8, 2, 8)], 8, ROOM, None), "the address"),
            ((&[], 0, ROOM, None), "1 to 5 dimensions"),
            ((&[(8, 2, 8); 6], 0, ROOM, None), "1 to 5 dimensions"),
            ((&[(0, 2, 8)], 0, ROOM, None), "extents"),
            ((&[((1 << 32) + 1, 2, 8)], 0, ROOM, None), "extents"),
            ((&[(512, 2, 264)], 0, ROOM, None), "a box has 1 to 256"),
            ((&[(512, 2, 0)], 0, ROOM, None), "a box has 1 to 256"),
            ((&[(8, 4, 8)], 0, ROOM, None), "side by side"),
            ((&[(8, 2, 8), (2, 24, 1)], 0, ROOM, None), "strides"),
            ((&[(8, 2, 8), (2, 1 << 40, 1)], 0, ROOM, None), "strides"),
            ((&[(8, 2, 8), (2, -16, 1)], 0, ROOM, None), "strides"),
            ((&[(8, 2, 4)], 0, ROOM, None), "a row of the box must be a multiple"),
            ((&[(128, 2, 72)], 0, ROOM, Bytes128), "a row of the box must not be longer"),
            ((&[(128, 2, 40)], 0, ROOM, Bytes64), "a row of the box must not be longer"),
            ((&[(128, 2, 24)], 0, ROOM, Bytes32), "a row of the box must not be longer"),
            ((&[(8, 2, 8)], 16, 15, None), "inside the memory of the tensor"),
            ((&[(8, 2, 8), (2, 16, 1)], 16, 31, None), "inside the memory of the tensor"),
            ((&[(8, 2, 8), (1 << 32, (1 << 40) - 16, 1)], 0, ROOM, None), "past every memory"),
        ];
        for ((dimensions, address, there, swizzle), rule) in bad {
            let error = map(dimensions, *address, *there, *swizzle).unwrap_err();
            assert!(error.contains(rule), "{dimensions:?}: {error}");
        }
        let dimension = [Dimension { extent: 16, stride: 1, boxed: 16 }];
        let nans = Wanted {
            element: ElementType::U8,
            address: 0,
            dimensions: &dimension,
            swizzle: None,
            promotion: Promotion::None,
            outside: Outside::Nans,
        };
        assert_eq!(nans.tiled(16).map(|_| ()).unwrap_err().code(), "E0817");
    }
}
