//! Memory that a kernel reads and writes.
//!
//! Law: an access names a buffer, and its address counts bytes from where the buffer begins. So
//! whether it stays inside is a question about two numbers, and no instruction holds a pointer.

use tilewright_layout::atoms::SwizzleMode;
use tilewright_layout::symbolic::Expr;

use crate::element::Element;

/// A buffer, by its place in [`super::Program::buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub(crate) u32);

impl BufferId {
    /// Its place in [`super::Program::buffers`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A tensor map, by its place in [`super::Program::maps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MapId(pub(crate) u32);

impl MapId {
    /// Its place in [`super::Program::maps`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a buffer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Memory of the device, given at launch.
    Global,
    /// Memory of a block.
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
    /// Whether one reads it.
    pub read: bool,
    /// Whether one writes it.
    pub written: bool,
    /// The fewest bytes that one takes of it; 0 where none does.
    pub fewest_bytes: u32,
}

/// A tensor in global memory, or an array in shared memory.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// The name that the program's author gave it.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Where it is.
    pub space: Space,
    /// How it is used; [`Role::Both`] for shared memory.
    pub role: Role,
    /// How many elements it has, from its first to its last: the cosize of its layout.
    pub elements: Expr,
    /// Its address is a multiple of this many bytes: promised by the launch for global memory.
    pub alignment: u32,
    /// Where it begins in the shared memory of the block, in bytes; 0 for global memory.
    pub start: u32,
    /// The layout as it was written, for messages.
    pub layout: String,
}

/// The cache hint of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Cache {
    /// The default behaviour.
    #[default]
    Default,
    /// Through the path of data that nobody writes during the launch.
    ReadOnly,
    /// Not kept in the first-level cache.
    NoAllocate,
    /// Read or written once: the first to go.
    Streaming,
    /// A load brings the whole line of 128 bytes to the second-level cache: other sectors of it are
    /// read soon.
    WholeLines,
    /// As `WholeLines`, and not kept in the first-level cache: these sectors are not read again.
    WholeLinesOnce,
}

/// A place in memory, and how much of it an instruction takes.
///
/// An access moves `count` contiguous pieces of `bits` bits each, aligned to their total size. A
/// piece of 8 bits is in the low half of a 16-bit register, whose other half is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// Whether the first input of the instruction is an address: bytes from where the buffer
    /// begins, 64 bits for global memory, 32 for shared memory.
    pub addressed: bool,
    /// Bytes that are added to it.
    pub offset: i64,
    /// How many bits a piece has: 8, 16, 32 or 64.
    pub bits: u32,
    /// The number of pieces: 1, 2 or 4. All together have at most 128 bits.
    pub count: u32,
    /// The cache hint.
    pub cache: Cache,
}

impl Access {
    /// How many bytes it takes.
    pub fn bytes(&self) -> u32 {
        self.bits * self.count / 8
    }
}

/// One dimension of a tensor map.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// How many elements the tensor has along it.
    pub extent: Expr,
    /// Bytes from one element to the next; that of the first dimension is the size of an element.
    pub stride: Expr,
    /// How many elements a box has along it, 1 to 256.
    pub boxed: u32,
}

/// How a tensor in global memory is cut into boxes for TMA.
///
/// Elements of a box outside the extents are read as 0 and not written. Boxes are compact in shared
/// memory, the first dimension fastest, with address bits permuted by the swizzle.
#[derive(Debug, Clone)]
pub struct TensorMap {
    /// The tensor.
    pub buffer: BufferId,
    /// The dimensions, at most five, the one of adjacent elements first.
    pub dimensions: Vec<Dimension>,
    /// How the bits of shared addresses are permuted.
    pub swizzle: SwizzleMode,
}

impl TensorMap {
    /// The size of a box in bytes, including elements past the edges of the tensor.
    pub fn box_bytes(&self, program: &super::Program) -> u32 {
        let element = program.buffer(self.buffer).element.bytes();
        self.dimensions.iter().fold(element, |bytes, dimension| bytes.saturating_mul(dimension.boxed))
    }
}
