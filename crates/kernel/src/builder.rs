//! The language in which kernels are written.
//!
//! A kernel is a Rust function that is called once, with a [`Build`]: it declares tensors, tiles
//! them with layouts, and states what is copied, computed and waited for. The statements become a
//! [`Program`] for one thread. Numbers known at launch, blocks, threads and iterations of loops are
//! expressions of the layout algebra. So tiling a tensor by them is ordinary algebra, and whether
//! an access is inside the tensor is decided at build time, for every admissible size.
//!
//! An error names the line of the kernel with the refused statement.

mod access;
mod address;
mod aligned;
mod atomic;
mod bits;
mod bounds;
mod bulk;
mod cluster;
mod control;
mod conversion;
mod coordinates;
mod copy;
mod core;
mod coverage;
mod declare;
mod distributed;
mod elementwise;
mod ends;
mod exchange;
mod finish;
mod fragment;
mod index;
mod lanes;
mod last;
mod load_store;
mod lower;
mod matrix;
mod matrix_rows;
mod number;
mod part;
mod picked;
mod pipeline;
mod predicates;
mod proxies;
mod recast;
mod reduction;
mod role;
mod scan;
mod scratch;
mod shifted;
mod staged;
mod state;
mod tensor;
mod tile;
mod turns;
mod wait;
mod warp;
mod wgmma;

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;

use tilewright_layout::symbolic::{Expr, Parameter};
use tilewright_layout::{Coord, Slot, Tiler, Tree};

pub use control::{OpenBody, OpenLoop};
pub use conversion::Route;
pub use coordinates::Coordinates;
pub use copy::Tensor;
pub use coverage::{Coverage, Written};
pub use distributed::Distributed;
pub use ends::CopyBy;
pub use fragment::Fragment;
pub use number::{Flag, Num};
pub use pipeline::{Claim, Cursor, DynamicScheduler, Pipeline, Stage};
pub use predicates::Predicates;
pub use reduction::Reduction;
pub use role::Meeting;
pub use tensor::View;

use self::core::Core;
use crate::arguments::{ExtentArgument, IntoExtent, IntoTile, TileArgument};
use crate::error::{KernelError, Reason};
use crate::program::memory::{BufferId, Space};
use crate::program::operation::{Axis, Operation};
use crate::program::{Location, Program, Source, TileCounter};

/// The most elements of a fragment, and of a statement in one thread. A thread has at most 255
/// registers, but not all elements need one at the same time.
const MAX_ELEMENTS: i64 = 1 << 12;

/// A kernel that was built: its program for one thread, and what was proved about it.
///
/// ```
/// use tilewright_kernel::{Kernel, Written, interpret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let copy = Kernel::build("copy", |k| {
///     let (x, y) = (k.input::<f32>("x", "(N,4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
///     k.threads(64)?;
///     let rows = x.local_tile((64, 4), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
///     y.local_tile((64, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&rows)
/// })?;
/// // That one thread writes each element of y, for every N, was proved at build time.
/// assert!(matches!(copy.outputs()[0].written, Written::Once));
/// interpret::check(copy.program(), &[("N", 100)])?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Kernel {
    program: Program,
    outputs: Vec<Coverage>,
}

impl Kernel {
    /// Builds a kernel by calling `write`.
    ///
    /// Errors: a statement is refused; the grid or the number of threads was not set.
    #[track_caller]
    pub fn build(name: &str, write: impl FnOnce(&Build) -> Result<(), KernelError>) -> Result<Kernel, KernelError> {
        let build = Build::open(name);
        write(&build)?;
        build.close()
    }

    /// The program of a thread.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The outputs, in the order of declaration, and whether each of their elements is proved to be
    /// written by one thread.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, Written};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("zeros", |k| {
    ///     let y = k.output::<f32>("y", "(M,4):(4,1)")?;
    ///     k.threads(32)?;
    ///     let row = y.local_tile((32, 4), k.block("(x,0)")?)?.thread_part()?;
    ///     let zeros = row.fragment()?;
    ///     zeros.clear();
    ///     row.store_predicated(&zeros)
    /// })?;
    /// assert_eq!(kernel.outputs()[0].written, Written::Once);
    /// # Ok(())
    /// # }
    /// ```
    pub fn outputs(&self) -> &[Coverage] {
        &self.outputs
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.program.name
    }
}

/// The number of elements of a statement in one thread; an error if there are too many.
fn elements_of_thread(count: i64) -> Result<usize, Reason> {
    let limit = MAX_ELEMENTS.unsigned_abs();
    let too_much = || Reason::TooMuch { what: "elements of a thread", asked: count.unsigned_abs(), limit };
    usize::try_from(count).ok().filter(|_| count <= MAX_ELEMENTS).ok_or_else(too_much)
}

/// A kernel that is being built. [`Kernel::build`] passes it to the function that writes the
/// kernel.
///
/// Its methods are the statements of the language; each takes effect in the order of the calls.
/// Their results ([`View`], [`Fragment`], [`Num`], ..) belong to the kernel that is being built,
/// and cannot leave that function.
///
/// ```
/// use tilewright_kernel::{Kernel, interpret};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A thread adds up a row.
/// let sums = Kernel::build("sums", |k| {
///     let (x, y) = (k.input::<f32>("x", "(M,8):(8,1)")?, k.output::<f32>("y", "M:1")?);
///     k.threads(32)?;
///     let row = x.local_tile((32, 8), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
///     let total = row.numbers()?.into_iter().reduce(|a, b| a + b).expect("a row has eight numbers");
///     let place = y.local_tile(32, k.block("x")?)?.thread_part()?;
///     let sum = place.fragment()?;
///     sum.fill(total)?;
///     place.store_predicated(&sum)
/// })?;
/// interpret::check(sums.program(), &[("M", 100)])?;
/// # Ok(())
/// # }
/// ```
pub struct Build {
    name: String,
    core: RefCell<Core>,
    /// The first refusal of an operator. Operators cannot return an error.
    complaint: RefCell<Option<KernelError>>,
}

impl std::fmt::Debug for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Build")
    }
}

impl Build {
    /// Opens a kernel for code that calls statements one by one instead of passing a function: see
    /// [`Kernel::build`].
    ///
    /// ```
    /// use tilewright_kernel::Build;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let k = Build::open("copy");
    /// {
    ///     let (x, y) = (k.input::<f32>("x", "32:1")?, k.output::<f32>("y", "32:1")?);
    ///     k.threads(32)?;
    ///     y.slice(k.thread()?)?.store(&x.slice(k.thread()?)?.load()?)?;
    /// }
    /// assert_eq!(k.close()?.name(), "copy");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn open(name: &str) -> Build {
        let begun = Source { statement: "kernel", location: Location::caller() };
        Build { name: name.to_string(), core: RefCell::new(Core::new(begun)), complaint: RefCell::new(None) }
    }

    /// Ends the kernel.
    ///
    /// Errors: an operator was refused; the grid or the number of threads was not set; a body was
    /// not closed (E0927).
    pub fn close(self) -> Result<Kernel, KernelError> {
        self.complaint()?;
        let (program, outputs) = self.finish()?;
        Ok(Kernel { program, outputs })
    }

    /// The tiler of an argument of a statement.
    fn tiler(&self, tile: impl IntoTile) -> Result<Tiler<Expr>, Reason> {
        match tile.into_tile()? {
            TileArgument::Text(text) => Ok(self.core().names.tiler(&text)?),
            TileArgument::Tiler(tiler) => Ok(tiler),
        }
    }

    fn core(&self) -> RefMut<'_, Core> {
        self.core.borrow_mut()
    }

    /// Begins a statement, for its instructions: their line is that of the caller.
    #[track_caller]
    fn begin(&self, statement: &'static str) -> (RefMut<'_, Core>, Location) {
        let location = Location::caller();
        (self.core_for(Source { statement, location }), location)
    }

    /// The core, for the instructions of a statement.
    fn core_for(&self, source: Source) -> RefMut<'_, Core> {
        let mut core = self.core();
        core.begin(source);
        core
    }

    /// Writes a statement of the caller by instructions of the core.
    #[track_caller]
    fn instructed<T>(
        &self,
        statement: &'static str,
        write: impl FnOnce(&mut Core) -> Result<T, Reason>,
    ) -> Result<T, KernelError> {
        let (mut core, location) = self.begin(statement);
        write(&mut core).map_err(|refusal| refusal.at(statement, location))
    }

    /// Writes a statement. Its instructions and its refusal have the line of the caller.
    #[track_caller]
    fn statement<T>(
        &self,
        statement: &'static str,
        write: impl FnOnce() -> Result<T, Reason>,
    ) -> Result<T, KernelError> {
        self.core().begin(Source { statement, location: Location::caller() });
        KernelError::within(statement, write)
    }

    /// Adds one instruction without operands.
    #[track_caller]
    fn issue(&self, statement: &'static str, operation: Operation) {
        let mut core = self.core_for(Source { statement, location: Location::caller() });
        core.effect(operation, [], &[], None);
    }

    fn complain(&self, error: KernelError) {
        self.complaint.borrow_mut().get_or_insert(error);
    }

    /// Reports the first refusal of an operator so far. Operators return no `Result`, so a refusal
    /// is kept until the kernel ends. Code that must report it at once calls this.
    ///
    /// Errors: the first refusal of an operator.
    pub fn complaint(&self) -> Result<(), KernelError> {
        self.complaint.borrow().clone().map_or(Ok(()), Err)
    }

    /// The coordinate of this block: a tuple of `x`, `y` and `z`, of numbers, and of `_` for modes
    /// that are kept: `k.block("(x,_)")?`.
    ///
    /// A tensor that is tiled at this coordinate determines the number of blocks.
    ///
    /// Errors: the tuple contains something else.
    #[track_caller]
    pub fn block(&self, axes: &str) -> Result<Coord<Expr>, KernelError> {
        KernelError::within("block", || {
            let mut slots = Vec::new();
            let inner = axes.trim();
            let inner = inner.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(inner);
            for name in inner.split(',').map(str::trim) {
                let axis = match name {
                    "x" => Axis::X,
                    "y" => Axis::Y,
                    "z" => Axis::Z,
                    "_" => {
                        slots.push(Slot::All);
                        continue;
                    }
                    other => match other.parse::<i64>() {
                        Ok(index) => {
                            slots.push(Slot::At(Expr::from(index)));
                            continue;
                        }
                        Err(_) => {
                            return Err(Reason::Instruction {
                                name: other.to_string(),
                                because: "a block has the coordinates x, y and z".to_string(),
                            });
                        }
                    },
                };
                slots.push(Slot::At(self.core().block(axis)));
            }
            Ok(Tree::flat(slots)?)
        })
    }

    /// The number of this block along an axis.
    pub fn block_number(&self, axis: Axis) -> Expr {
        self.core().block(axis)
    }

    /// Sets the number of blocks along an axis. Without it, views that are tiled by block determine
    /// it: one block for each of their tiles. With it, their accesses are proved to be inside, or
    /// predicated.
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A row of the result is the sum of two rows of an array that has one row more.
    /// let kernel = Kernel::build("pairs", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "(H+1,32):(32,1)")?, k.output::<f32>("y", "(H,32):(32,1)")?);
    ///     k.threads(32)?;
    ///     k.grid(Axis::X, "H")?;
    ///     let row = |from: i64| {
    ///         let rows = x.domain_offset(&[from.into(), 0.into()])?;
    ///         rows.slice(k.block("(x,_)")?)?.at(&k.thread()?)?.load()
    ///     };
    ///     let (above, below) = (row(0)?, row(1)?);
    ///     let sum = below.numbers()?[0] + above.numbers()?[0];
    ///     above.set(&[sum])?;
    ///     y.slice(k.block("(x,_)")?)?.at(&k.thread()?)?.store(&above)
    /// })?;
    /// interpret::check(kernel.program(), &[("H", 5)])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the text is not an expression; the number was set to another value; an earlier
    /// access is inside only with one block for each tile.
    #[track_caller]
    pub fn grid(&self, axis: Axis, count: impl IntoExtent) -> Result<(), KernelError> {
        let source = Source { statement: "grid", location: Location::caller() };
        KernelError::within("grid", || {
            let mut core = self.core();
            let count = match count.into_extent() {
                ExtentArgument::Known(count) => Expr::from(count),
                ExtentArgument::Computed(count) => count,
                ExtentArgument::Text(text) => core.expression("a number of blocks", &text, source)?,
            };
            core.say_blocks(axis, &count)
        })
    }

    /// Sets the number of threads of a block, if no tiled copy or tiled MMA determines it.
    ///
    /// Errors: it was set to another number before; it is not from 1 to 1024.
    #[track_caller]
    pub fn threads(&self, count: i64) -> Result<(), KernelError> {
        KernelError::within("threads", || self.core().say_threads(count))
    }

    /// Sets the number of blocks that should be resident on a multiprocessor: the assembler gives a
    /// thread no more registers than that allows. This affects only speed.
    ///
    /// Errors: it was set to another number before; this many blocks have more than 2048 threads.
    #[track_caller]
    pub fn resident(&self, blocks: u32) -> Result<(), KernelError> {
        let location = Location::caller();
        let mut core = self.core();
        let limit = 2048 / u64::from(core.threads.unwrap_or(1));
        let refusal = match core.resident {
            _ if !(1..=limit).contains(&u64::from(blocks)) => {
                Reason::TooMuch { what: "blocks on a processor", asked: blocks.into(), limit }
            }
            known if known != 1 && known != blocks => Reason::Twice {
                what: "the number of blocks on a processor".to_string(),
                first: known.to_string(),
                second: blocks.to_string(),
            },
            _ => {
                core.resident = blocks;
                return Ok(());
            }
        };
        Err(refusal.at("resident", location))
    }

    /// The index of this thread in its block.
    ///
    /// Errors: the number of threads was not set.
    #[track_caller]
    pub fn thread(&self) -> Result<Expr, KernelError> {
        KernelError::within("thread", || self.core().thread())
    }

    /// The number of blocks of the grid along an axis, for loops in which a block processes several
    /// tiles. If [`Build::grid`] was called before, it is that expression.
    ///
    /// ```
    /// use tilewright_kernel::interpret::Interpreter;
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, KernelError};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("counted", |k| {
    ///     let y = k.output::<i32>("y", "(B,1):(1,1)")?;
    ///     k.threads(1)?;
    ///     let blocks = k.index(&k.grid_size(Axis::X))?;
    ///     let cell = k.register(blocks.element(), "1")?;
    ///     cell.set(&[blocks])?;
    ///     y.slice(k.block("(x,_)")?)?.store(&cell)
    /// })?;
    /// let run = Interpreter::new(kernel.program(), &[("B", 3)])?.check()?.run;
    /// assert_eq!(run.tensor::<i32>("y")?, [3, 3, 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn grid_size(&self, axis: Axis) -> Expr {
        let mut core = self.core_for(Source { statement: "grid_size", location: Location::caller() });
        core.grid_size(axis)
    }

    /// The number of threads of a block.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, KernelError};
    ///
    /// # fn main() -> Result<(), KernelError> {
    /// Kernel::build("empty", |k| {
    ///     assert!(k.block_size().is_err());
    ///     k.threads(96)?;
    ///     assert_eq!(k.block_size()?, 96);
    ///     Ok(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: it was not set so far.
    #[track_caller]
    pub fn block_size(&self) -> Result<u32, KernelError> {
        let location = Location::caller();
        let help = "set the number of threads of a block: `k.threads(256)`, or use a tiled copy or tiled MMA first";
        let unsaid = Reason::Unsaid { what: "the number of threads", help };
        self.core().threads.ok_or_else(|| unsaid.at("block_size", location))
    }

    /// The value of an expression of sizes: `k.size("ceil(K/64)")?`.
    ///
    /// Errors: the text is no expression.
    #[track_caller]
    pub fn size(&self, text: &str) -> Result<Expr, KernelError> {
        let location = Location::caller();
        let read = self.core().expression("an expression of sizes", text, Source { statement: "size", location });
        read.map_err(|refusal| refusal.at("size", location))
    }

    /// A number that is passed at launch and does not occur in the layout of a tensor, with its
    /// name and its facts: `k.launched("N{max=1000}")?`.
    ///
    /// Errors: the text is no expression.
    #[track_caller]
    pub fn launched(&self, text: &str) -> Result<Expr, KernelError> {
        let location = Location::caller();
        let gathered = self.core().names.gather(text).map_err(Reason::Layout);
        gathered.map_err(|refusal| refusal.at("launched", location))?;
        let size = self.size(text)?;
        let mut core = self.core();
        for parameter in tilewright_layout::symbolic::Symbolic::parameters(&size) {
            if !core.sizes.iter().any(|own| own.stands_for(&parameter)) {
                core.sizes.push(parameter);
            }
        }
        Ok(size)
    }

    /// The colexicographic coordinate of an index in a shape. The last component is not reduced: if
    /// the index is past the shape, it is at least the extent of the last mode, so that predicated
    /// accesses skip it.
    ///
    /// Errors: the index may be negative or does not fit in 32 bits; it has too many terms.
    #[track_caller]
    pub fn coordinate(&self, index: &Expr, shape: &[i64]) -> Result<Vec<Expr>, KernelError> {
        let location = Location::caller();
        self.core().begin(Source { statement: "coordinate", location });
        let mut core = self.core();
        let mut below = 1_i64;
        let mut found = Vec::new();
        for (mode, extent) in shape.iter().enumerate() {
            let last = mode + 1 == shape.len();
            let digit = if last { core.rest(index, below) } else { core.digit(index, below, *extent) };
            found.push(digit.map_err(|refusal| refusal.at("coordinate", location))?);
            below = below.saturating_mul(*extent);
        }
        Ok(found)
    }

    /// The remainder of an index modulo a number.
    ///
    /// Errors: the index may be negative or does not fit in 32 bits; it has too many terms.
    #[track_caller]
    pub fn remainder(&self, index: &Expr, modulus: i64) -> Result<Expr, KernelError> {
        self.statement("remainder", || self.core().digit(index, 1, modulus))
    }

    /// The program, and the proved coverage of its outputs.
    fn finish(self) -> Result<(Program, Vec<Coverage>), KernelError> {
        let mut core = self.core.into_inner();
        let location = core.sources[0].location;
        if core.depth() != 0 {
            return Err(Reason::OpenBody.at("kernel", location));
        }
        let threads = core.is_said().map_err(|refusal| refusal.at("kernel", location))?;
        core.knows_sizes()?;
        core.settle_registers(threads).map_err(|refusal| refusal.at("registers", location))?;
        core.place_scratch().map_err(|refusal| refusal.at("kernel", location))?;
        let mut body = std::mem::take(&mut core.scopes[0].steps);
        let values = coverage::thread_values(&core, &body, threads);
        finish::replace(&mut body, &core.aliases);
        finish::sweep(&mut body, core.widths.len());
        proxies::order(&mut body);
        core.says_blocks(&body).map_err(|refusal| refusal.at("kernel", location))?;
        // Global tensors come first, in the order in which they were declared.
        let mut order: Vec<usize> = (0..core.buffers.len()).collect();
        order.sort_by_key(|at| core.buffers[*at].space == Space::Shared);
        let renamed: HashMap<BufferId, BufferId> =
            order.iter().enumerate().map(|(new, old)| (BufferId(*old as u32), BufferId(new as u32))).collect();
        finish::rename(&mut body, &renamed);
        let mut maps = core.maps.clone();
        for map in &mut maps {
            map.buffer = renamed.get(&map.buffer).copied().unwrap_or(map.buffer);
        }
        let declared = |own: &Parameter| core.names.parameter(own.name().unwrap_or("")).unwrap_or(own.clone());
        let program = Program {
            name: self.name,
            sizes: finish::sizes(&core).iter().map(declared).collect(),
            buffers: order.iter().map(|at| core.buffers[*at].clone()).collect(),
            scalars: core.scalars.clone(),
            narrow: core.narrow.clone(),
            maps,
            grid: core.grid.clone().map(|count| count.unwrap_or(Expr::from(1))),
            threads,
            resident: core.resident,
            cluster: core.cluster.unwrap_or([1; 3]),
            shared_bytes: core.shared_bytes,
            tile_counter: core.tile_counter.as_ref().map(|state| {
                let numbers = state.counter.numbers;
                TileCounter { numbers: renamed.get(&numbers).copied().unwrap_or(numbers), ..state.counter }
            }),
            counted: core.last_block.as_ref().map(|block| renamed.get(&block.before).copied().unwrap_or(block.before)),
            widths: core.widths.clone(),
            body,
            sources: core.sources.clone(),
        };
        core.scheduler_is_run(&program).map_err(|refusal| refusal.at("dynamic_scheduler", location))?;
        core.counts_all(&program).map_err(|refusal| refusal.at("when_last", location))?;
        let outputs = coverage::coverages(&core, &values, &program, &renamed)?;
        Ok((program, outputs))
    }
}
