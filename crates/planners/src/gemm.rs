//! GEMM: persistent kernels, planned by a model of the machine. On Hopper, a producer warp issues
//! TMA loads, and warpgroups multiply by wgmma. On all others, all warps copy by cp.async and
//! multiply by mma.sync.
//!
//! Law: `D(m,n,l) = f(sum over k of A(m,k,l) * B(n,k,l), ..)`. Accumulators are in f32, or in i32
//! for integers. D is rounded once, after the epilogue function `f` of the accumulator and of
//! further tensors, if there is one. The same problem and plan give the same bits each time.
//!
//! A [`Problem`] says what is multiplied. A [`Plan`] says how: tile, stages, warpgroups, clusters,
//! split-K, raster order. The plan follows from the problem and the machine alone. A [`Product`]
//! has the kernels of both.
//!
//! Each line imports nothing from the lines below it:
//!
//! ```text
//! problem      what is multiplied: matrices, types, epilogue function, gated pairs, row groups,
//!              convolutions, scales, reductions, lists (data alone)
//! index        arithmetic of index expressions      panel      rows and swizzles of shared memory
//! fitted       fitted numbers of the time of a GEMM step       kernels of a product, by kind
//! implicit     implicit GEMM: axes of folded modes  access     how TMA reads operands and stores D
//! plan         a plan: staging of D, registers, why it is refused, as text
//! schedule     which tile a block takes when: raster order, row groups, lists, tiles at an edge
//! model        how long a plan takes
//! candidates   which plans are considered, and which one is chosen
//! epilogue     from accumulators to D: inputs, stores, reductions, split-K
//! mainloop     the kernel: a TMA producer, wgmma consumers, promotion, scales, ping-pong; or warps
//!              that multiply by mma.sync, with a TMA producer or copies by cp.async
//! prepare      copies of operands that TMA or cp.async cannot read
//! lines        a plan in words                      definition what an element of D should be
//! product      the kernels of a problem             products   the kernels of a list
//! unpacked     whether weights of four bits are better written in 16 bits first
//! check        products run by the interpreter and compared with their definition
//! ```
//!
//! A tile size is chosen in `candidates.rs`, by the time that `model.rs` gives it.

mod access;
mod candidates;
mod check;
mod definition;
mod epilogue;
mod fitted;
mod implicit;
mod index;
mod lines;
mod mainloop;
mod model;
mod panel;
mod plan;
mod prepare;
mod problem;
mod product;
mod products;
mod schedule;
mod step;
mod unpacked;

pub use check::ProductReport;
pub use definition::Expected;
pub use plan::{Plan, TileChoice, needs_types};
pub use problem::blocks::BlockScales;
pub use problem::convolution::Window;
pub use problem::gated::Pairs;
pub use problem::list::Problems;
pub use problem::matrix::Matrix;
pub use problem::reductions::{Each, EpilogueReduction};
pub use problem::scales::Scales;
pub use problem::{Fused, Problem};
pub use product::{Product, product};
pub use products::Products;
pub use step::{ProductTensor, Step, StepKind};
pub use unpacked::is_faster_unpacked;
