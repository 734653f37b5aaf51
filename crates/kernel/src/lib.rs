//! Kernels: programs for many threads, written with layouts.
//!
//! A kernel is a Rust function that is called once, with a [`Build`]. It declares tensors, tiles
//! them with layouts, and issues copies, computations and waits. These calls become a [`Program`]
//! for one thread, and everything else reads that program: [`interpret`] executes it on any machine
//! and checks every access, [`ptx`] prints it for a GPU. So the checked program is the one that
//! runs.
//!
//! | purpose | statements |
//! |---|---|
//! | tensors | [`Build::input`], [`Build::output`], [`Build::tensor`], [`Build::shared`], [`Build::register`] |
//! | partitioning | [`View::local_tile`], [`View::slice`], [`View::zipped_divide`], [`View::compose`], [`View::partition`], [`View::partition_mma`], [`View::thread_part`] |
//! | copying | [`Build::copy`], [`Build::copy_predicated`], [`View::load`], [`View::store`], [`View::accumulate`], [`Build::commit_async`], [`Build::wait_async`] |
//! | computing | [`Fragment::map`], [`Fragment::zip`], operators of [`Num`], [`Build::mma`], [`Build::shuffle_xor`], [`Build::any_lane`] |
//! | tiles of a block | [`Distribution`], [`View::load_distributed`], [`Distributed::reduce`], [`Distributed::scan`], [`Distributed::convert`], [`Distributed::zip`], [`View::store_distributed`] |
//! | control | [`Build::range`], [`Build::when`], [`Build::choose`], [`Build::barrier`] |
//! | cooperation | [`Build::role`], [`Build::single`], [`Build::meeting`], [`Build::registers`], [`Build::pipeline`], [`Stage::load`], [`Build::staged`], [`Build::store_bulk`], [`Build::fence_async`], [`Build::wait_mma`] |
//! | clusters | [`Build::cluster`], [`Build::rank`], [`Build::cluster_barrier`], [`View::of_block`], [`Stage::load_multicast`], [`Stage::release_to`], [`Stage::give_to`], [`Stage::send`] |
//! | launches | [`Build::wait_launches`], [`Build::launch_next`] |
//!
//! Sizes known at launch are names in the layouts of tensors, with facts in braces:
//! `(M{div=64},N)`. While the kernel is built, each access is proved to stay inside its tensor for
//! every size that the facts allow; otherwise the statement is refused with its line. Predicated
//! statements skip elements that may not exist instead. It is also proved that each element of an
//! output is written by one thread ([`Kernel::outputs`] says where this is undecided). The
//! interpreter checks, for given sizes, that no two threads access the same memory without a
//! barrier in between. The cost of a kernel on a machine is estimated before it runs
//! ([`Program::cost`]).
//!
//! ```
//! use tilewright_kernel::{Kernel, interpret, ptx};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // y = 2 x, four elements a thread, for any number of elements.
//! let twice = Kernel::build("twice", |k| {
//!     let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
//!     k.threads(128)?;
//!     // A block has 128 rows of four; thread t has row t of them.
//!     let rows = x.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
//!     let doubled = rows.map(|x| Ok(x * 2.0))?;
//!     y.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&doubled)
//! })?;
//! interpret::check(twice.program(), &[("N", 1000)])?;
//! assert!(ptx::write(twice.program(), ptx::Target::Sm80)?.contains("ld.global.v4.b32"));
//! # Ok(())
//! # }
//! ```

mod arguments;
mod builder;
pub mod cost;
mod distribution;
mod element;
mod error;
mod explanation;
pub mod interpret;
mod launch;
pub mod machine;
pub mod program;
pub mod ptx;
mod target;

pub use arguments::{
    ExtentArgument, IntoClusterShape, IntoCoord, IntoExtent, IntoLayout, IntoRanks, IntoShapeArgument, IntoTile,
    LayoutArgument, Ranks, ShapeArgument, TileArgument,
};
pub use builder::{
    Build, Claim, Coordinates, CopyBy, Coverage, Cursor, Distributed, DynamicScheduler, Flag, Fragment, Kernel,
    Meeting, Num, OpenBody, OpenLoop, Pipeline, Predicates, Reduction, Route, Stage, Tensor, View, Written,
};
pub use distribution::Distribution;
pub use element::{Element, ElementType};
pub use error::{KernelError, Reason};
pub use launch::{BoxMap, Launch, LaunchArguments, NumbersByName};
pub use program::Program;
pub use program::scalar::reciprocal;

/// The page about an error code of this crate: an error of building or printing a kernel, or a
/// finding of the interpreter. None for a code of another crate.
///
/// ```
/// assert!(tilewright_kernel::explanation("E0903").is_some_and(|page| page.contains("exist")));
/// assert!(tilewright_kernel::explanation("E1016").is_some_and(|page| page.contains("barrier")));
/// assert!(tilewright_kernel::explanation("E0101").is_none());
/// ```
pub fn explanation(code: &str) -> Option<&'static str> {
    explanation::explanation(code).or_else(|| interpret::explanation(code))
}
