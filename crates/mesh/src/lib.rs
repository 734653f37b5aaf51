//! Tensors sharded over a mesh of devices.
//!
//! # The idea
//!
//! The same algebra that describes one device describes many. A [`Mesh`] is a grid of devices with
//! named axes. A [`ShardedLayout`] is a layout whose value is a device and an offset in its memory:
//! its modes step along offsets, `8`, or along axes of the mesh, `1@tp`. Copies (replicas) and
//! summands (partial sums) are modes along the mesh that the elements do not depend on.
//!
//! ```text
//! ((2,4),3):((1,1@tp),2) copied 2:1@dp      rows in four parts along tp, all of it twice along dp
//! (8,3):(1,8) summed 4:1@tp                 each element is the sum of what lies on four devices
//! ```
//!
//! Moving a tensor from one such layout to another is a relayout. [`reshard`] plans it: what each
//! device must receive follows from both layouts, digit by digit of the index, and the names of
//! collectives (all-gather, reduce-scatter, all-to-all) are read from the messages, not searched.
//!
//! ```
//! use tilewright_mesh::{Machine, Mesh, ShardedLayout, StepKind, reshard};
//!
//! # fn main() -> Result<(), tilewright_mesh::MeshError> {
//! let mesh: Mesh = "dp=2,tp=4".parse()?;
//! let rows = ShardedLayout::parse(&mesh, "((64,4),256):((1,1@tp),64) copied 2:1@dp")?;
//! let columns = ShardedLayout::parse(&mesh, "(256,(64,4)):(1,(256,1@tp)) copied 2:1@dp")?;
//! let plan = reshard(&rows, &columns, 2, &Machine::HGX_H200)?;
//! assert_eq!(plan.steps()[0].kind, StepKind::AllToAll);
//! assert_eq!(plan.received(0), 64 * 64 * 3 * 2); // three blocks of 64 by 64
//! # Ok(())
//! # }
//! ```
//!
//! A matmul of sharded matrices ([`multiply`]) is planned from the layouts of its operands and its
//! result: each axis of the mesh cuts M, N or K, and the communication follows from that.
//!
//! Elementwise functions ([`fn@map`]), reductions ([`fn@reduce`], [`argmax`]) and [`fn@softmax`]
//! accept and return tensors with any sharded layouts. Their communication is planned in the same
//! way, printed before it runs, and carried out by the same calls.
//!
//! # Promises
//!
//! A layout must hold every element on some device, or it is refused. A device receives no more
//! than it must, or the plan states the reason. Plans are carried out by [`Plan::simulate`] in one
//! process, and by [`Plan::run`] in one process for each device. These are connected by sockets
//! ([`Processes`]) or, with the feature `mpi`, by Open MPI; each of them returns its result, or an
//! error that names a rank and a step. Sizes are limited ([`MAX_DEVICES`], [`MAX_MESSAGES`],
//! [`MAX_LISTED`]).

mod devices;
mod engine;
mod error;
mod explanation;
mod held;
mod limits;
mod local;
mod machine;
mod map;
mod mesh;
mod number;
mod pair;
mod pieces;
mod plan;
mod product;
mod reduce;
mod sharded;
mod simulate;
mod softmax;
mod spec;
mod step;
mod summands;
mod text;
mod traffic;
mod uneven;
mod way;

#[cfg(all(feature = "mpi", unix))]
pub use engine::Mpi;
pub use engine::{Engine, Interrupter, Meanwhile, Place, Processes, Progress, Token};
pub use error::{Flaw, MeshError};
pub use explanation::explanation;
pub use limits::{MAX_AXES, MAX_DEVICES};
pub use local::{LocalMode, LocalPart, LocalRun};
pub use machine::{Link, Machine};
pub use map::{MapPlan, map};
pub use mesh::{Axis, Mesh};
pub use number::{Number, Real};
pub use pair::{Footprint, MAX_LISTED};
pub use pieces::{Block, Piece};
pub use plan::{Plan, PlannedStep, reshard};
pub use product::{MAX_SCHEDULES, MAX_SIMULATED, ProductPlan, Role, multiply};
pub use reduce::{ArgmaxPlan, ReducePlan, Reduction, argmax, reduce};
pub use sharded::{Along, MeshMode, Parts, ShardedLayout, Step};
pub use softmax::{SoftmaxPlan, softmax};
pub use step::{Exchange, MAX_MESSAGES, Message, StepKind};
pub use traffic::{RankTraffic, Traffic};
