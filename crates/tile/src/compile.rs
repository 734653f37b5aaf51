//! From a tile program to a kernel.
//!
//! Law: each pass preserves the meaning of the program. The passes are staging of operands in
//! shared memory (`operand_staging`), candidates (`pools`), assignment (`assign`), conversions
//! (`place`), and lowering to a kernel (`lower`). The choices of each pass are kept, and
//! [`Compiled::explain`] reports them.

use std::time::{Duration, Instant};

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::Location;
use tilewright_kernel::ptx::Target;
use tilewright_kernel::{Kernel, KernelError, Reason as KernelReason};
use tilewright_layout::symbolic::Values;

use crate::assign::{Assignment, Conversions, Costs, assign};
use crate::by_hand::{self, ByHand, Given};
use crate::error::{Reason, Taker, TileError};
use crate::held::Held;
use crate::lower::{Room, SharedArrays};
use crate::memory;
use crate::operand_staging::{self, Copies};
use crate::padding::padded;
use crate::place::{Placed, place};
use crate::pools::{self, Pools};
use crate::pressure;
use crate::program::{Operation, Program, Statement, ValueId};
use crate::roles::{self, Roles};
use crate::weights::Weights;

/// The bytes of the largest loaded tile that each thread should load at once.
const BYTES_OF_THREAD: i64 = 32;

/// How often lowering is repeated with smaller rings, and the least number of bytes by which the
/// rings shrink each time.
const ATTEMPTS: usize = 8;
const LESS_BYTES: i64 = 8 << 10;

/// The machine whose costs decide if no machine is named. The kernel runs on every target.
fn of_any_target() -> Machine {
    Machine::of_target(Target::Sm90a)
}

/// The result of [`Program::compile`]: a program with its layouts, and its kernel.
///
/// [`Compiled::explain`] says why each value has its layout.
pub struct Compiled {
    pub(crate) source: Program,
    pub(crate) pools: Pools,
    pub(crate) assignment: Assignment,
    pub(crate) placed: Placed,
    pub(crate) kernel: Kernel,
    pub(crate) warps: i64,
    /// The roles of warps, or the reason why the program has none; None on machines without roles.
    pub(crate) roles: Option<Result<Roles, String>>,
    /// How long each pass took.
    pub(crate) times: Vec<(&'static str, Duration)>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled({}, {} warps)", self.source.name, self.warps)
    }
}

impl Program {
    /// Assigns layouts, inserts conversions, and lowers the program to a kernel for a machine.
    /// Without a machine, the kernel runs on every target, and costs are those of an H200.
    ///
    /// On Hopper ([`Target::has_wgmma`]), `dot` uses wgmma if possible: producer warps load the
    /// operands by TMA, and the grid is persistent. [`crate::Explanation::roles`] describes the
    /// roles of warps. If roles are not possible, it says why, and all warps execute the same code,
    /// as on other machines. The layouts are the cheapest for the machine.
    ///
    /// ```
    /// use tilewright_kernel::interpret;
    /// use tilewright_tile::Program;
    ///
    /// let sums: Program = "
    /// tile sums {
    ///     input x: f32 (M,256):(256,1)
    ///     output y: f32 (M,1):(1,1)
    ///     grid ceil(M/8)
    ///     store(y, (block.x, 0), reduce_sum(load(x, (8,256), (block.x, 0)), 1))
    /// }"
    /// .parse()?;
    /// let compiled = sums.compile(None)?;
    /// // A row is held by lanes of one warp: shuffles suffice.
    /// assert_eq!(compiled.kernel().program().shared_bytes, 0);
    /// interpret::check(compiled.kernel().program(), &[("M", 11)]).expect("the interpreter finds nothing");
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_kernel::ptx;
    /// use tilewright_tile::Program;
    ///
    /// let product: Program = "
    /// tile product {
    ///     input a: bf16 (M,K{div=8}):(K,1)
    ///     input b: bf16 (K,N{div=8}):(N,1)
    ///     output d: bf16 (M,N):(N,1)
    ///     grid ceil(M/128), ceil(N/128)
    ///     loop k < ceil(K/64) with sum = broadcast(f32(0), (128,128)) {
    ///         next dot(load(a, (128,64), (block.x, k)), load(b, (64,128), (k, block.y)), sum)
    ///     } -> sum
    ///     store(d, (block.x, block.y), bf16(sum))
    /// }"
    /// .parse()?;
    /// let h200: Machine = "H200".parse()?;
    /// let compiled = product.compile(&h200)?;
    /// assert!(ptx::write(compiled.kernel().program(), h200.target)?.contains("wgmma.mma_async"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Errors: a tile and its tensor have different ranks; values take more registers, or
    /// conversions more shared memory, than a block has; errors of the kernel language.
    pub fn compile<'m>(&self, machine: impl Into<Option<&'m Machine>>) -> Result<Compiled, TileError> {
        self.verify()?;
        let (own, by_hand) = by_hand::taken(&padded(self)?)?;
        let Some(machine) = machine.into() else {
            return self.by_threads(&of_any_target(), (&own, &by_hand), Room::of(None));
        };
        if !machine.target.has_wgmma() {
            return self.by_threads(machine, (&own, &by_hand), Room::of(Some(machine)));
        }
        let because = match self.by_roles(machine, &own, &by_hand) {
            Ok(compiled) => return Ok(compiled),
            Err(because) => because,
        };
        if let Some(value) = by_hand.first(|given| matches!(given, Given::Group(_) | Given::Engine)) {
            return Err(by_hand.refused(value, &format!("a warpgroup kernel does not fit: {because}")).into());
        }
        Ok(Compiled {
            roles: Some(Err(because)),
            ..self.by_threads(machine, (&own, &by_hand), Room::of(Some(machine)))?
        })
    }

    /// The kernel without roles, of a program without `atom` operations.
    fn by_threads(
        &self,
        machine: &Machine,
        (own, by_hand): (&Program, &ByHand),
        room: Room,
    ) -> Result<Compiled, TileError> {
        let mut passes = Passes { times: Vec::new(), since: Instant::now() };
        if let Some(value) = by_hand.first(|given| matches!(given, Given::Group(_) | Given::Engine)) {
            let because = "it is a wgmma instruction, which a kernel for sm_90a has where the whole program fits";
            return Err(by_hand.refused(value, because).into());
        }
        let warps = own.warps.map_or_else(|| warps(own), i64::from);
        let sizes = memory::typical(own)?;
        let staged = operand_staging::staged(own, Copies::Threads(32 * warps), by_hand, &sizes)?;
        passes.took("operands");
        passes.compiled(self, staged, ((warps, machine, room), None), by_hand, &sizes)
    }

    /// The kernel of [`Program::compile`], and other kernels for the same program: one without
    /// roles, if that one has roles, and those with half or twice as many warps, if the program
    /// does not set their number. All have different [`Compiled::line`].
    ///
    /// ```
    /// use tilewright_kernel::machine::Machine;
    /// use tilewright_tile::Program;
    ///
    /// let sums: Program = "
    /// tile sums {
    ///     input x: f32 (M,256):(256,1)
    ///     output y: f32 (M,1):(1,1)
    ///     grid ceil(M/8)
    ///     store(y, (block.x, 0), reduce_sum(load(x, (8,256), (block.x, 0)), 1))
    /// }"
    /// .parse()?;
    /// let h200: Machine = "H200".parse()?;
    /// let lines: Vec<String> = sums.candidates(&h200)?.iter().map(|own| own.line()).collect();
    /// assert_eq!(lines, ["warps=8", "warps=4", "warps=16"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Errors: as [`Program::compile`].
    pub fn candidates(&self, machine: &Machine) -> Result<Vec<Compiled>, TileError> {
        let first = self.compile(machine)?;
        let (own, by_hand) = by_hand::taken(&padded(self)?)?;
        let room = Room::of(Some(machine));
        let alike = self.by_threads(machine, (&own, &by_hand), room);
        let warps = alike.as_ref().ok().map(Compiled::warps).filter(|_| own.warps.is_none());
        let others =
            warps.into_iter().flat_map(|warps| [warps / 2, warps * 2]).filter(|warps| (1..=16).contains(warps));
        let others = others.map(|warps| {
            let own = Program { warps: u32::try_from(warps).ok(), ..own.clone() };
            self.by_threads(machine, (&own, &by_hand), room)
        });
        let mut all = vec![first];
        for other in [alike].into_iter().chain(others).flatten() {
            if all.iter().all(|own| own.line() != other.line()) {
                all.push(other);
            }
        }
        Ok(all)
    }

    /// The kernel whose warps have roles, or the reason why there is none.
    fn by_roles(&self, machine: &Machine, own: &Program, by_hand: &ByHand) -> Result<Compiled, String> {
        let mut passes = Passes { times: Vec::new(), since: Instant::now() };
        let refused = |reason: Reason| reason.to_string();
        let refusal = |error: TileError| error.to_string();
        if let Some(value) = by_hand.first(|given| matches!(given, Given::Warp | Given::Threads)) {
            return Err(refused(by_hand.refused(value, "it is an instruction of single warps")));
        }
        let sizes = memory::typical(own).map_err(refusal)?;
        let staged = operand_staging::staged(own, Copies::Bulk, by_hand, &sizes).map_err(refused)?;
        let roles = roles::plan(machine, &staged)?;
        passes.took("operands");
        let warps = 4 * roles.groups;
        passes
            .compiled(self, staged, ((warps, machine, Room::of(Some(machine))), Some(roles)), by_hand, &sizes)
            .map_err(refusal)
    }
}

/// How long each pass takes.
struct Passes {
    times: Vec<(&'static str, Duration)>,
    since: Instant,
}

impl Passes {
    fn took(&mut self, pass: &'static str) {
        let now = Instant::now();
        self.times.push((pass, now - self.since));
        self.since = now;
    }

    /// The passes after the staging of operands, for one machine or for every target.
    fn compiled(
        mut self,
        source: &Program,
        staged: Program,
        ((warps, machine, room), roles): ((i64, &Machine, Room), Option<Roles>),
        by_hand: &ByHand,
        sizes: &Values,
    ) -> Result<Compiled, TileError> {
        let nodes = pools::nodes(&staged);
        let pools = Pools::new(&staged, &nodes, (warps, roles.as_ref()), by_hand, sizes)?;
        self.took("candidates");
        let assignment = assign(&staged, &nodes, &pools, Weights::of(machine), &mut Conversions::new(warps))?;
        self.took("assignment");
        let placed = place(&staged, &pools, &assignment)?;
        self.took("conversions");
        let taken = SharedArrays::default();
        let kernel = match &roles {
            Some(roles) => crate::lower::lower_by_roles(machine, &placed, roles, &taken),
            None => by_threads(&placed, [false, true].map(|rings| resident(&placed, warps, rings)), room, &taken),
        };
        let kernel = kernel.map_err(|error| no_room(error, taken.into_inner()))?;
        self.took("kernel");
        let (source, times) = (source.clone(), self.times);
        Ok(Compiled { source, pools, assignment, placed, kernel, warps, roles: roles.map(Ok), times })
    }
}

/// The kernel without roles. If the rings leave too little shared memory for other arrays, the
/// rings get fewer stages.
fn by_threads(placed: &Placed, residents: [u32; 2], room: Room, taken: &SharedArrays) -> Result<Kernel, KernelError> {
    let mut room = room;
    for _ in 0..ATTEMPTS {
        let kernel = crate::lower::lower(placed, (residents, &room), taken)?;
        let over = i64::from(kernel.program().shared_bytes) - room.block;
        if over <= 0 {
            return Ok(kernel);
        }
        room.others += over.max(LESS_BYTES);
        taken.borrow_mut().clear();
    }
    crate::lower::lower(placed, (residents, &room), taken)
}

/// The refusal of a kernel. If the block has too little shared memory, the error lists the
/// statements that use it and their bytes.
fn no_room(error: KernelError, taken: Vec<(Location, i64)>) -> Reason {
    let (asked, limit) = match error.reason() {
        KernelReason::TooMuch { what: "bytes of shared memory", asked, limit } => (*asked as i64, *limit as i64),
        _ => return error.into(),
    };
    // Adds up the arrays of each statement. Memory that a statement frees is used again by later
    // statements.
    let mut takers: Vec<Taker> = Vec::new();
    let asking = error.source().location;
    let known: i64 = taken.iter().map(|own| own.1).sum();
    for (place, takes) in taken {
        match takers.iter_mut().find(|own| own.place == place) {
            Some(own) => own.takes = own.takes.max(takes),
            None => takers.push(Taker { what: "a statement".to_string(), place, takes }),
        }
    }
    if takers.iter().all(|own| own.place != asking) {
        takers.push(Taker { what: "a statement".to_string(), place: asking, takes: (asked - known).max(0) });
    }
    takers.sort_by_key(|own| -own.takes);
    Reason::Room { what: "bytes of shared memory", asked, limit, takers }
}

/// The default number of warps of a block. Each thread gets two vectors of 16 bytes of the largest
/// tile that is loaded. `dot` uses four warps, so that a thread has up to 128 accumulators, and
/// eight for larger tiles. Measured on an H200.
fn warps(program: &Program) -> i64 {
    let (mut bytes, mut sums, mut least) = (0, 0, 32);
    for node in pools::nodes(program) {
        let Statement::Let { result, operation, operands, .. } = node.statement else { continue };
        let ty = program.type_of(*result);
        match operation {
            Operation::Load { .. } | Operation::Gather { .. } => {
                bytes = bytes.max(ty.size() * i64::from(ty.element.bytes()));
            }
            Operation::Dot => {
                sums = ty.size().max(sums);
                let shape = &program.type_of(operands[0]).shape;
                least = least.min(shape[0] / 16 * (ty.shape[1] / 8));
            }
            _ => {}
        }
    }
    let warps = match sums {
        0 => bytes / (32 * BYTES_OF_THREAD),
        sums => {
            if sums > 1 << 14 {
                8
            } else {
                4
            }
        }
    };
    warps.clamp(1, 16).min(least.max(1))
}

/// The most registers of a thread, as they are estimated, with which 16 warps are resident in a
/// kernel with rings of threads; with more, 12 warps are. Measured on an H200 with the backward of
/// norms, 2026-12-01.
const REGISTERS_OF_16_WARPS: i64 = 136;

/// The number of resident blocks to request. It corresponds to 1024 threads of a multiprocessor if
/// a value takes 17 to 32 registers of a thread. With fewer registers the assembler leaves enough
/// room by itself, and with more it would have to spill. For kernels with `dot` it is 1: they take
/// the registers that they need. If loads are prefetched, it corresponds to 512 threads: registers
/// then hold the bytes in flight, and with half the registers threads wait for memory. Without
/// `dot`, the assembler keeps more than whole tiles in registers: then it corresponds to 384
/// threads, or to more if a large block would otherwise be alone on a multiprocessor. With `rings`
/// loads go through shared memory that each thread has for itself, and it corresponds to the warps
/// whose registers fit. Measured on an H200.
fn resident(placed: &Placed, warps: i64, rings: bool) -> u32 {
    if rings {
        // Registers hold no bytes in flight.
        let registers = pressure::pressure(placed, |_| false).registers;
        let resident = if registers <= REGISTERS_OF_16_WARPS { 16 } else { 12 };
        return (resident / warps).clamp(1, 16) as u32;
    }
    if let Some(loads) = crate::lower::early_registers(placed) {
        let own = pressure::pressure(placed, |_| false).registers;
        let has_products = !placed.tilings.is_empty();
        // The number of warps whose registers fit on a multiprocessor.
        let resident = match (has_products, own + loads) {
            (true, _) if own <= 128 => 16,
            (true, _) => 1,
            (false, all) if all <= 120 || (all <= 136 && warps >= 8) => 16,
            (false, all) if all <= 144 => 12,
            (false, _) => 1,
        };
        return (resident / warps).clamp(1, 16) as u32;
    }
    let registers = |(value, held): (&ValueId, &Held)| {
        held.values() * i64::from(placed.program.type_of(*value).element.bits()) / 32
    };
    let most = placed.layouts.iter().map(registers).max().unwrap_or(0);
    // If whole tiles take more than 128 registers, no limit is set.
    let may = || pressure::pressure(placed, |_| false).registers <= 128;
    if placed.tilings.is_empty() && (17..=32).contains(&most) && may() { (32 / warps).clamp(1, 8) as u32 } else { 1 }
}

impl Compiled {
    /// The program as it was written.
    pub fn source(&self) -> &Program {
        &self.source
    }

    /// The program with a statement for each conversion between layouts.
    pub fn placed(&self) -> &Program {
        &self.placed.program
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// One line that distinguishes this kernel from the other candidates of its program
    /// ([`Program::candidates`]).
    pub fn line(&self) -> String {
        let roles = if matches!(self.roles, Some(Ok(_))) { " roles" } else { "" };
        format!("warps={}{roles}", self.warps)
    }

    /// The layout that a value of the program was assigned; None for a tile that `dot` reads from
    /// shared memory, and for a value that no statement uses.
    pub fn layout_of(&self, value: ValueId) -> Option<&Held> {
        self.assignment.layouts.get(&self.pools.of(value)).or_else(|| self.placed.layouts.get(&value))
    }

    /// The cost of the values and of the stores of the program, in cycles of a multiprocessor per
    /// block.
    ///
    /// ```
    /// use tilewright_tile::{LIBRARY, Program};
    ///
    /// let compiled = Program::read("softmax", LIBRARY[0].text)?.compile(None)?;
    /// let costs = compiled.costs();
    /// let all: f64 = costs.values.values().chain(costs.stores.values()).sum();
    /// assert!((all - compiled.explain()?.cycles).abs() < 0.01);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    pub fn costs(&self) -> Costs {
        self.assignment.costs()
    }

    /// The number of warps of a block.
    pub fn warps(&self) -> i64 {
        self.warps
    }

    /// How long each pass took.
    pub fn times(&self) -> &[(&'static str, Duration)] {
        &self.times
    }
}
