//! Memory that a kernel reads and writes.
//!
//! Law: an access names a buffer, and its address counts bytes from the beginning of the buffer. So
//! whether it is inside is a comparison of two numbers, and no instruction holds a pointer.

use tilewright_layout::atoms::SwizzleMode;
use tilewright_layout::symbolic::Expr;

use crate::element::Element;

/// A buffer, by its index in [`super::Program::buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub(crate) u32);

impl BufferId {
    /// Its index in [`super::Program::buffers`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor map, by its index in [`super::Program::maps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MapId(pub(crate) u32);

impl MapId {
    /// Its index in [`super::Program::maps`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The state space of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Global memory, passed at launch.
    Global,
    /// Shared memory of a block.
    Shared,
}

/// How a kernel uses a global buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It is read and never written.
    Input,
    /// Each of its elements is written once, and none is read.
    Output,
    /// It is read and written.
    Both,
}

/// How the instructions of a program use a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    /// Whether an instruction reads it.
    pub read: bool,
    /// Whether an instruction writes it.
    pub written: bool,
    /// The size in bytes of the narrowest access; 0 if there is none.
    pub fewest_bytes: u32,
}

/// A tensor in global memory, or an array in shared memory.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// The name that the program's author gave it.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// The state space.
    pub space: Space,
    /// How it is used; [`Role::Both`] for shared memory.
    pub role: Role,
    /// The number of elements from the first to the last: the cosize of its layout.
    pub elements: Expr,
    /// The alignment of its address in bytes. For global memory, the launch guarantees it.
    pub alignment: u32,
    /// The offset in the shared memory of the block, in bytes; 0 for global memory.
    pub start: u32,
    /// The layout as the author wrote it, for messages.
    pub layout: String,
}

/// The cache hint of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Cache {
    /// The default behaviour.
    #[default]
    Default,
    /// Through the read-only cache (`.nc`): no thread writes the data during the launch.
    ReadOnly,
    /// The data is not kept in L1.
    NoAllocate,
    /// The data is read or written once: its lines are evicted first.
    Streaming,
    /// A load prefetches the whole 128-byte line into L2, because other sectors of it are read
    /// soon.
    WholeLines,
    /// As `WholeLines`, without keeping the data in L1, because these sectors are not read again.
    WholeLinesOnce,
}

/// The memory operand of an instruction: the location, and the number and size of its elements.
///
/// An access moves `count` contiguous pieces of `bits` bits each, aligned to their total size. A
/// piece of 8 bits is in the low half of a 16-bit register, whose other half is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// Whether the first input of the instruction is an address: bytes from the beginning of the
    /// buffer, 64 bits for global memory, 32 for shared memory.
    pub addressed: bool,
    /// A constant number of bytes that is added to the address.
    pub offset: i64,
    /// The number of bits of a piece: 8, 16, 32 or 64.
    pub bits: u32,
    /// The number of pieces: 1, 2 or 4. All together have at most 128 bits.
    pub count: u32,
    /// The cache hint.
    pub cache: Cache,
}

impl Access {
    /// The number of bytes.
    pub fn bytes(&self) -> u32 {
        self.bits * self.count / 8
    }
}

/// One dimension of a tensor map.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// The extent of the tensor along it.
    pub extent: Expr,
    /// The stride in bytes. That of the first dimension is the size of an element.
    pub stride: Expr,
    /// The extent of a box along it, 1 to 256.
    pub boxed: u32,
}

/// A tensor map: a tensor in global memory, and its division into boxes for TMA.
///
/// Elements of a box outside of the tensor are read as 0 and not written. Boxes are compact in
/// shared memory, the first dimension fastest, with the swizzle applied to address bits.
#[derive(Debug, Clone)]
pub struct TensorMap {
    /// The tensor.
    pub buffer: BufferId,
    /// The dimensions, at most five, the contiguous one first.
    pub dimensions: Vec<Dimension>,
    /// The swizzle of shared addresses.
    pub swizzle: SwizzleMode,
}

impl TensorMap {
    /// The size of a box in bytes, including elements past the edges of the tensor.
    pub fn box_bytes(&self, program: &super::Program) -> u32 {
        let element = program.buffer(self.buffer).element.bytes();
        self.dimensions.iter().fold(element, |bytes, dimension| bytes.saturating_mul(dimension.boxed))
    }
}
