//! A layout algebra that is exact or refuses.
//!
//! A *layout* is a shape and strides of the same nesting, read as a function from coordinates (or
//! plain indices, first mode fastest) to offsets: `(4,8):(8,1)` sends `(i,j)` to `8i + j`. A layout
//! describes the address of each element of a tensor, the thread that holds it, or how a tensor is
//! tiled. Layouts are values that can be composed, inverted, divided and multiplied. Every
//! operation returns the layout that satisfies its definition, or an error that names the
//! condition, the mode and the numbers.
//!
//! # A quick tour
//!
//! Every layout prints as text, and the text parses back to the same layout.
//!
//! ```
//! use tilewright::Layout;
//!
//! # fn main() -> Result<(), tilewright::LayoutError> {
//! let rows: Layout = "(4,8):(8,1)".parse()?; // four rows of eight, row-major
//! assert_eq!(rows.size(), 32);
//! assert_eq!(rows.eval(&5)?, 9); // index 5 is the coordinate (1,1), first mode fastest
//! assert_eq!(rows.to_string(), "(4,8):(8,1)");
//! # Ok(())
//! # }
//! ```
//!
//! `a.compose(&b)` is the layout whose value at `c` is `a(b(c))`, or the reason why none exists.
//!
//! ```
//! use tilewright::Layout;
//!
//! # fn main() -> Result<(), tilewright::LayoutError> {
//! let a: Layout = "(6,2):(8,2)".parse()?;
//! let b: Layout = "(4,3):(3,1)".parse()?;
//! assert_eq!(a.compose(&b)?.to_string(), "((2,2),3):((24,2),8)");
//!
//! let a: Layout = "(6,2):(1,7)".parse()?;
//! let b: Layout = "(3,2):(2,3)".parse()?;
//! let refusal = a.compose(&b).unwrap_err();
//! assert_eq!(refusal.code(), "E0107"); // the modes of b carry into the next mode of a
//! assert!(refusal.to_string().contains("at coordinate (2,1) the sum carries"));
//! # Ok(())
//! # }
//! ```
//!
//! Layouts that are known at compile time cost nothing at run time: [`layout!`] and [`tiler!`]
//! evaluate the same language in the compiler. The layout is a constant, its index arithmetic
//! consists of shifts, masks and products, and a refusal is a compile error.
//!
#![cfg_attr(feature = "macros", doc = "```")]
#![cfg_attr(not(feature = "macros"), doc = "```ignore")]
//! use tilewright::{Layout, StaticLayout, StaticTiler, layout, tiler};
//!
//! const TILE: StaticLayout = layout!("zipped_divide((128,64):(64,1), [16:1;8:1])");
//! const OFFSET: i64 = TILE.eval_at([17, 9]).unwrap(); // element 17 of tile 9
//! const TILER: StaticTiler = tiler!("[16:1;8:1]");
//!
//! # fn main() -> Result<(), tilewright::LayoutError> {
//! assert_eq!(OFFSET, 1097); // 1 * 64 + 1, and 1 * 1024 + 8
//!
//! // A static tiler of a run-time layout.
//! let matrix: Layout = "(128,64):(64,1)".parse()?;
//! assert_eq!(matrix.zipped_divide(&TILER.to_tiler())?, TILE.into());
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! * [`layout`](mod@layout): the algebra. For your own compiler, a verifier's questions
//!   ([`layout::verify`](mod@layout::verify)) and candidates of layout assignment
//!   ([`layout::candidate`](mod@layout::candidate)).
//! * [`notation`]: the expression language of the command line, and its diagnostics.
//! * [`layout!`] and [`tiler!`]: that language in the compiler.
//! * [`analysis`]: bank conflicts, coalescing, footprints, and what would cost less.
//! * [`atoms`]: matrix and copy instructions as thread-value layouts, tilings of them,
//!   shared-memory layouts and matrix descriptors.
//! * [`mod@bench`]: kernels and tile programs on a device, checked and timed.
//! * [`between`]: processes with a GPU each, whose bytes go through NCCL.
//! * [`draw`]: pictures of layouts, as SVG, HTML, TikZ, PNG, PDF and text.
//! * [`emit`]: index arithmetic as source text: Rust, C, CUDA, Python and Triton.
//! * [`explain`]: the picture of a value or a call, and whether the law of an operation holds.
//! * [`kernel`]: programs for GPUs, written with layouts: a language, an interpreter that checks, a
//!   writer of PTX.
//! * [`mod@ops`]: operators of models as tile programs: norms, attention, losses, forward and
//!   backward; and on a device, [`ops::on_device`].
//! * [`planners`]: kernels planned from layouts.
//! * [`gemm`](mod@gemm): products of matrices on a device, in one call.
//! * [`gpu`]: CUDA devices, without a toolkit: memory under layouts, kernels, launches.
//! * [`measured`]: plans that were measured on a device, kept in files.
//! * [`mesh`]: tensors sharded over a mesh of devices, and the moves between their layouts.
//! * [`morphism`]: layouts as morphisms of tuples: standard form, mutual refinement, spans.
//! * [`reshard`](mod@reshard): tensors on several devices, moved from one sharded layout to
//!   another.
//! * [`same`](mod@same): whether two layouts of any systems are one function, and what moves data.
//! * [`sanitize`]: the PTX of any compiler, run and checked without a GPU.
//! * [`sharded`]: products of sharded matrices on several devices.
//! * [`tensor`]: data under a layout: views, tiles, copies and products of matrices.
//! * [`tile`]: programs of tiles without layouts, which are assigned and explained.
//!
//! The types used most are also here, at the root.
//!
//! # Features
//!
//! * `devices` (on by default): kernels, tile programs, GPUs and meshes of devices. Without it the
//!   rest compiles in a fraction of the time.
//! * `macros` (on by default): [`layout!`] and [`tiler!`].
//! * `cudarc`: slices and streams of the crate `cudarc`, on which kernels work without copies.
//! * `mpi`: processes that Open MPI connects, which is opened at run time.
//! * `png` and `pdf`: pictures in these formats, with the fonts that they embed.
//! * `serde`: layouts, trees, coordinates, profiles, tilers, swizzles and composed layouts
//!   serialise as their text.

#[cfg(feature = "devices")]
pub mod ops;
#[cfg(feature = "devices")]
pub mod same;

pub use tilewright_draw::{self as draw, explain};
#[cfg(feature = "devices")]
pub use tilewright_gpu as gpu;
#[cfg(feature = "devices")]
pub use tilewright_gpu::devices::{bench, between, gemm, measured, reshard, sharded};
#[cfg(feature = "devices")]
pub use tilewright_kernel as kernel;
pub use tilewright_layout::{self as layout, analysis, atoms, emit, morphism};
#[cfg(feature = "macros")]
pub use tilewright_macros as macros;
#[cfg(feature = "devices")]
pub use tilewright_mesh as mesh;
pub use tilewright_notation as notation;
#[cfg(feature = "devices")]
pub use tilewright_planners as planners;
#[cfg(feature = "devices")]
pub use tilewright_read as read;
#[cfg(feature = "devices")]
pub use tilewright_sanitize as sanitize;
pub use tilewright_tensor as tensor;
#[cfg(feature = "devices")]
pub use tilewright_tile as tile;

/// The GPU for which kernels are planned and costs are estimated: a GPU of the built-in table by
/// its name, or one that the driver describes ([`gpu::Device::machine`]).
///
/// ```
/// use tilewright::Machine;
/// use tilewright::kernel::Element;
/// use tilewright::planners::{RowMatrix, softmax};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let a100: Machine = "A100".parse()?;
/// let planned = softmax(&a100, RowMatrix::new(4096, Element::Bf16))?;
/// let cost = planned.kernel().program().cost(&a100, &[("M", 4096)])?;
/// assert_eq!(cost.machine, a100);
/// assert!("TPU".parse::<Machine>().is_err());
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "devices")]
pub use tilewright_kernel::machine::Machine;
pub use tilewright_layout::{
    Layout, LayoutError, Leaf, Profile, StaticComposed, StaticLayout, StaticTiler, Tree, coord,
};
pub use tilewright_notation::{Diagnostic, Environment, Value, evaluate};

/// The layout that a program of the expression language evaluates to, as a [`StaticLayout`]: see
/// [`macros::layout`].
///
/// ```
/// use tilewright::StaticLayout;
///
/// const TILE: StaticLayout = tilewright::layout!("(8,16):(16,1)");
/// assert_eq!(TILE.eval_at([2, 3]), Some(35));
/// ```
#[cfg(feature = "macros")]
#[macro_export]
macro_rules! layout {
    ($($program:tt)*) => {
        $crate::macros::layout!($crate::layout, $($program)*)
    };
}

/// The tiler that a program of the expression language evaluates to, as a [`StaticTiler`]: see
/// [`macros::tiler`].
///
/// ```
/// use tilewright::StaticTiler;
///
/// const TILER: StaticTiler = tilewright::tiler!("[16:1;8:1]");
/// assert_eq!(TILER.to_tiler().to_string(), "[16:1;8:1]");
/// ```
#[cfg(feature = "macros")]
#[macro_export]
macro_rules! tiler {
    ($($program:tt)*) => {
        $crate::macros::tiler!($crate::layout, $($program)*)
    };
}

/// The code blocks of the README, run as tests.
#[cfg(all(doctest, feature = "devices"))]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// The code blocks of the description of the architecture, run as tests.
#[cfg(all(doctest, feature = "devices"))]
#[doc = include_str!("../../../ARCHITECTURE.md")]
pub struct Architecture;

/// The code blocks of the book, run as tests.
#[cfg(all(doctest, feature = "devices"))]
mod book {
    #[doc = include_str!("../../../docs/book/src/getting-started.md")]
    pub struct GettingStarted;
    #[doc = include_str!("../../../docs/book/src/tensors.md")]
    pub struct Tensors;
    #[doc = include_str!("../../../docs/book/src/atoms.md")]
    pub struct Atoms;
    #[doc = include_str!("../../../docs/book/src/kernels.md")]
    pub struct Kernels;
    #[doc = include_str!("../../../docs/book/src/hopper.md")]
    pub struct Hopper;
    #[doc = include_str!("../../../docs/book/src/models.md")]
    pub struct Models;
    #[doc = include_str!("../../../docs/book/src/mesh.md")]
    pub struct Mesh;
}
