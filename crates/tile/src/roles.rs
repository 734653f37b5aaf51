//! Warp specialization for programs whose `dot` uses wgmma.
//!
//! Law: one producer warp issues TMA loads of tiles into rings of shared memory; consumer
//! warpgroups multiply them, 64 rows for each warpgroup and instruction, and do everything else. A
//! tile that only `dot` uses is loaded once for each iteration of its loop, in the order of the
//! program; the operands of one `dot` in one body share a ring. The grid is persistent. If a
//! program does not fit this scheme, [`plan`] says why, and `dot` uses `mma.sync`.

mod masks;

pub(crate) use masks::{Masks, masks};
mod overlap;

use std::collections::{HashMap, HashSet};

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::BULK_CHUNK_BYTES;
use tilewright_layout::Extent;
use tilewright_layout::symbolic::{Declarations, Expr};

use crate::matrix;
use crate::program::statement::definitions;
use crate::program::{Axis, Counter, Index, Loop, Name, Operation, Program, Statement, ValueId};

pub(crate) use overlap::{Overlap, is_zero};

/// Bytes of shared memory that are reserved for exchanges between warps, for the mbarriers of the
/// rings, and for the alignment of the tiles.
const OTHER_BYTES: i64 = 1024;
const BARRIER_BYTES: i64 = 1024;
/// The most stages of a ring.
const STAGES: i64 = 4;
/// Rows of a wgmma.
const ROWS: i64 = 64;
/// The most columns of a wgmma.
const COLUMNS: i64 = 256;
/// The most accumulators of a thread.
const SUMS: i64 = 128;
/// The number of adjacent blocks along x in a band, if one operand depends on x alone and the other
/// on y alone: blocks that run at the same time then share both operands.
const BAND: i64 = 8;
/// The most bytes that an iteration loads for each accumulator of `dot`, if concurrent blocks need
/// not share operands. Measured on an H200: attention with heads of 128 loads 4 bytes, and is 2 %
/// faster if the blocks of a wave have equal work; with heads of 256 it loads 8 bytes, and is 5 %
/// slower.
const APART: i64 = 4;
/// The most dimensions of a tensor map.
const DIMENSIONS: usize = 5;

/// A tile of a tensor that TMA loads or stores: the tensor, the shape of the tile, and its modes of
/// rows and columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TmaTile {
    pub(crate) tensor: usize,
    pub(crate) shape: Vec<i64>,
    pub(crate) modes: [usize; 2],
}

impl TmaTile {
    /// The modes of rows and columns, in the order of the tensor.
    pub(crate) fn kept(&self) -> [usize; 2] {
        [self.modes[0].min(self.modes[1]), self.modes[0].max(self.modes[1])]
    }
}

/// A ring of stages in shared memory, for tiles that are loaded together.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    pub(crate) parts: Vec<TmaTile>,
    pub(crate) stages: i64,
    /// Whether the tiles are loaded in a loop.
    in_loop: bool,
}

impl Ring {
    /// The bytes of a stage.
    fn bytes(&self, program: &Program) -> i64 {
        let bytes = |part: &TmaTile| {
            part.shape.iter().product::<i64>() * i64::from(program.tensors[part.tensor].element.bytes())
        };
        self.parts.iter().map(bytes).sum()
    }
}

/// The roles of the warps of a block.
#[derive(Debug, Clone)]
pub(crate) struct Roles {
    /// The number of consumer warpgroups.
    pub(crate) groups: i64,
    pub(crate) rings: Vec<Ring>,
    /// For each tile that TMA loads: the number of its ring, and the number of its part of a stage.
    pub(crate) of: HashMap<ValueId, (usize, usize)>,
    /// For each operand whose tile another operand of the same body has already loaded: that other
    /// operand.
    pub(crate) again: HashMap<ValueId, ValueId>,
    /// B operands whose columns may be permuted in shared memory.
    pub(crate) crosses: HashSet<ValueId>,
    /// Whether 16-bit tiles in the accumulator layout are stored by TMA.
    pub(crate) bulk_stores: bool,
    /// The number of adjacent blocks along x in a band; 1 if blocks are visited along x first.
    pub(crate) band: i64,
    /// The order of blocks if those further along x have more iterations; None if all have equal
    /// work.
    pub(crate) longest: Option<Longest>,
    /// Values that determine an iteration count or the tile to load, and the values that they
    /// depend on: producers compute them, too.
    pub(crate) places: HashSet<ValueId>,
}

/// Which blocks run at the same time as a block with many iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Longest {
    /// Blocks with the same x. They come one after another, so the blocks of a wave have equal
    /// work.
    Alike,
    /// Blocks with the same y and z, which share operands.
    Near,
}

/// A `dot`, and the number of its body.
struct Product<'p> {
    result: ValueId,
    operands: &'p [ValueId],
    body: usize,
}

/// The statements that matter for roles, with the numbers of their bodies.
#[derive(Default)]
struct Seen<'p> {
    products: Vec<Product<'p>>,
    /// Tiles that TMA loads: the value, the tile, the index, and the number of the body.
    tma_loads: Vec<(ValueId, TmaTile, &'p [Index], usize)>,
    stores: Vec<(usize, &'p [Index], ValueId)>,
    loops: Vec<&'p Loop>,
    /// The operation and the operands of each value, and the values that hold coordinates of loaded
    /// tiles.
    given: HashMap<ValueId, (&'p Operation, &'p [ValueId])>,
    said: Vec<ValueId>,
    bodies: usize,
}

impl<'p> Seen<'p> {
    fn walk(&mut self, body: &'p [Statement]) {
        let number = self.bodies;
        self.bodies += 1;
        for statement in body {
            if let Statement::Let { result, operation, operands, .. } = statement {
                self.given.insert(*result, (operation, operands));
            }
            match statement {
                Statement::Let { result, operation: Operation::Dot, operands, .. } => {
                    self.products.push(Product { result: *result, operands, body: number });
                }
                Statement::Let {
                    result,
                    operation: Operation::Stage { tensor, shape, at, modes, .. },
                    operands,
                    ..
                } => {
                    self.said.extend(operands);
                    let own = TmaTile { tensor: *tensor, shape: shape.clone(), modes: *modes };
                    self.tma_loads.push((*result, own, at, number));
                }
                Statement::Let { .. } => {}
                Statement::Store { tensor, at, value, .. } => self.stores.push((*tensor, at, *value)),
                Statement::Loop(own) => {
                    self.loops.push(own);
                    self.walk(&own.body);
                }
            }
        }
    }

    fn tma_load(&self, value: ValueId) -> Option<&(ValueId, TmaTile, &'p [Index], usize)> {
        self.tma_loads.iter().find(|own| own.0 == value)
    }

    /// For each operand whose tile an earlier operand of the same body has loaded, as it is or
    /// transposed: the earlier operand.
    fn again(&self) -> HashMap<ValueId, ValueId> {
        let coordinates = |value: &ValueId| self.given.get(value).map(|own| own.1);
        let mut found = HashMap::new();
        for (number, (value, tile, at, body)) in self.tma_loads.iter().enumerate() {
            let same = |own: &&(ValueId, TmaTile, &[Index], usize)| {
                let shapes = (own.1.tensor, &own.1.shape, own.1.kept()) == (tile.tensor, &tile.shape, tile.kept());
                shapes && (own.2, own.3) == (*at, *body) && coordinates(&own.0) == coordinates(value)
            };
            if let Some(first) = self.tma_loads[..number].iter().find(same) {
                found.insert(*value, first.0);
            }
        }
        found
    }

    /// The number of `dot` in the body of a load that use its tile, as it is or transposed.
    fn taken(&self, value: ValueId, again: &HashMap<ValueId, ValueId>) -> usize {
        let is_it = |own: &ValueId| *own == value || again.get(own) == Some(&value);
        let body = self.tma_load(value).map(|own| own.3);
        let takes = |own: &&Product<'_>| Some(own.body) == body && own.operands[..2].iter().any(is_it);
        self.products.iter().filter(takes).count()
    }
}

/// Whether TMA can store to a tensor without writing outside of it. TMA writes whole chunks of 16
/// bytes, and traps at negative coordinates. So all lines of the tensor must begin and end at chunk
/// boundaries, for every admissible size, and the index must count tiles.
pub(crate) fn is_stored_in_bulk(program: &Program, tensor: usize, at: &[Index]) -> bool {
    let own = &program.tensors[tensor];
    let unit = Expr::from((i64::from(BULK_CHUNK_BYTES) / i64::from(own.element.bytes())).max(1));
    // A fact about a size holds for all tensors that name it.
    let mut names = Declarations::new();
    if program.tensors.iter().try_for_each(|tensor| names.gather(&tensor.layout)).is_err() {
        return false;
    }
    let Ok(layout) = names.layout(&own.layout) else { return false };
    let one = Expr::from(1);
    let mut leaves = layout.leaves().iter().filter(|leaf| leaf.extent != one);
    leaves.all(|leaf| unit.divides(if leaf.stride == one { &leaf.extent } else { &leaf.stride }).proved())
        && at.iter().all(|index| !index.by_element && index.constant >= 0 && index.terms.iter().all(|(_, by)| *by >= 0))
}

/// The roles of a program whose operands are staged for TMA; or the reason why its `dot` cannot use
/// wgmma.
pub(crate) fn plan(machine: &Machine, program: &Program) -> Result<Roles, String> {
    let mut seen = Seen::default();
    seen.walk(&program.body);
    let rows = seen.products.iter().map(|own| program.type_of(own.operands[0]).shape[0]).min();
    let Some(rows) = rows else { return Err("there is no dot".to_string()) };
    if crate::loads::is_in_place(program) {
        return Err("a tensor that is loaded from is stored to".to_string());
    }
    let groups = match program.warps {
        Some(warps) if warps % 4 == 0 => i64::from(warps) / 4,
        Some(warps) => return Err(format!("{warps} warps are not a multiple of a warpgroup's four")),
        None => (rows / ROWS).clamp(1, 2),
    };
    for own in &seen.products {
        fits(program, &seen, own, groups)?;
    }
    let again = seen.again();
    let (mut rings, of) = rings(&seen, &again);
    let bulk_stores = stages(machine, program, &seen, &mut rings)?;
    let rings_of_loops: Vec<Ring> = rings.iter().filter(|ring| ring.in_loop).cloned().collect();
    let crosses = seen.products.iter().filter_map(|own| crosses(program, &seen, own, &of)).collect();
    let more = |own: &Loop| match &own.count {
        crate::program::Count::Index(index) => {
            index.terms.iter().any(|(name, by)| *name == Name::Block(Axis::X) && *by > 0)
        }
        crate::program::Count::Sizes(_) | crate::program::Count::Value(_) => false,
    };
    Ok(Roles {
        groups,
        rings,
        of,
        again,
        crosses,
        bulk_stores,
        band: band(program, &seen),
        longest: seen.loops.iter().any(|own| more(own)).then(|| beside(program, &seen, &rings_of_loops)),
        places: places(program, &seen)?,
    })
}

/// Which blocks run at the same time as a block with many iterations.
fn beside(program: &Program, seen: &Seen<'_>, rings: &[Ring]) -> Longest {
    let loaded_bytes: i64 = rings.iter().map(|ring| ring.bytes(program)).sum();
    let sums = seen.products.iter().filter(|own| own.body > 0).map(|own| program.type_of(own.result).size()).min();
    if loaded_bytes > APART * sums.unwrap_or(i64::MAX / APART) { Longest::Near } else { Longest::Alike }
}

/// Whether TMA loads tiles in a body.
pub(crate) fn has_tma_loads(body: &[Statement]) -> bool {
    definitions(body).any(|own| matches!(own.1, Operation::Stage { .. }))
}

/// The numbers of [`Roles::places`].
fn places(program: &Program, seen: &Seen<'_>) -> Result<HashSet<ValueId>, String> {
    let mut found = HashSet::new();
    let loading = seen.loops.iter().filter(|own| has_tma_loads(&own.body));
    let mut left: Vec<ValueId> = loading.filter_map(|own| own.count.value()).collect();
    left.extend(&seen.said);
    while let Some(value) = left.pop() {
        if !found.insert(value) {
            continue;
        }
        let (operation, operands) =
            seen.given.get(&value).ok_or("a loop-carried value determines the tile that is loaded")?;
        let fits = program.type_of(value).size() == 1
            && matches!(
                operation,
                Operation::Constant(..)
                    | Operation::Number(_)
                    | Operation::Size(_)
                    | Operation::Scalar(..)
                    | Operation::Load { .. }
                    | Operation::Binary(_)
                    | Operation::Select(_)
                    | Operation::Reshape(_)
                    | Operation::Transpose(_)
                    | Operation::Broadcast(_)
            );
        if !fits {
            return Err("the index of a loaded tile, or an iteration count, is not a number that one thread computes"
                .to_string());
        }
        left.extend(*operands);
    }
    Ok(found)
}

/// The loops in which a wgmma overlaps the beginning of the next iteration.
pub(crate) fn overlaps(program: &Program, roles: &Roles) -> HashMap<u32, Overlap> {
    let mut seen = Seen::default();
    seen.walk(&program.body);
    // Tiles of one ring are used in the order in which they are loaded, iteration by iteration. So
    // the `dot` of two iterations can be reordered only if they use different rings.
    let ring = |value: &ValueId| roles.of.get(value).map(|own| own.0);
    let multiplied =
        |value: ValueId| seen.products.iter().find(|own| own.result == value).map(|own| &own.operands[..2]);
    let apart = |own: &Overlap| {
        let (Some(early), Some(late)) = (multiplied(own.early), multiplied(own.late)) else { return false };
        early.iter().all(|operand| ring(operand) != ring(&late[1]))
    };
    let found = seen.loops.iter().filter_map(|own| Some((own.iteration, overlap::overlap(program, own)?)));
    found.filter(|(_, own)| apart(own)).collect()
}

/// Why wgmma cannot compute a `dot` with these roles; `Ok` if it can.
fn fits(program: &Program, seen: &Seen<'_>, own: &Product<'_>, groups: i64) -> Result<(), String> {
    let shape = |at: usize| &program.type_of(own.operands[at]).shape;
    let [m, n, k] = [shape(0)[0], shape(1)[1], shape(0)[1]];
    let element = program.type_of(own.operands[0]).element;
    if m % (ROWS * groups) != 0 || n > COLUMNS || k % matrix::depth(element) != 0 {
        return Err(format!(
            "{groups} groups multiply multiples of {} rows by at most {COLUMNS} columns, not {m} x {n}",
            ROWS * groups
        ));
    }
    if m / (ROWS * groups) * (n / 2) > SUMS {
        return Err(format!(
            "the {m} x {n} accumulator needs more than {SUMS} registers in each thread of {groups} warpgroups"
        ));
    }
    for (operand, name) in own.operands.iter().zip(["A", "B"]) {
        match seen.tma_load(*operand) {
            Some((_, tile, ..)) => {
                let inner = tile.kept().into_iter().find(|mode| program.is_contiguous(tile.tensor, *mode));
                let bytes = i64::from(element.bytes());
                if inner.is_none_or(|mode| tile.shape[mode] * bytes < 32) {
                    return Err(format!("the {name} operand has no rows of 32 bytes or more in memory"));
                }
                let along = if name == "A" { tile.modes[1] } else { tile.modes[0] };
                if bytes == 1 && inner != Some(along) {
                    return Err(format!(
                        "wgmma takes {element} operands that are K-major, and the {name} operand is not: transpose the \
                         layout of its tensor"
                    ));
                }
            }
            None if name == "B" => return Err("the B operand is not loaded by copies".to_string()),
            None => {}
        }
    }
    Ok(())
}

/// The B operand of `dot`, if its columns may be permuted in shared memory: it is an 8-bit operand
/// of only this `dot`, and each of its columns is a row in memory. TMA loads the columns by twos
/// and fours, so their number in the tensor must be a multiple of four, and the tensor map has two
/// more dimensions.
fn crosses(
    program: &Program,
    seen: &Seen<'_>,
    own: &Product<'_>,
    of: &HashMap<ValueId, (usize, usize)>,
) -> Option<ValueId> {
    let value = own.operands[1];
    let (_, tile, ..) = seen.tma_load(value)?;
    let ty = program.type_of(value);
    let uses = seen.products.iter().flat_map(|own| &own.operands[..2]).filter(|other| **other == value).count();
    let same = of.values().filter(|place| Some(*place) == of.get(&value)).count();
    // A fact about a size holds for all tensors that name it.
    let mut names = Declarations::new();
    program.tensors.iter().try_for_each(|tensor| names.gather(&tensor.layout)).ok()?;
    let layout = names.layout(&program.tensors[tile.tensor].layout).ok()?;
    let columns = layout.mode(tile.modes[1])?;
    let [leaf] = columns.leaves() else { return None };
    let dimensions = layout.leaves().iter().filter(|leaf| leaf.extent.known() != Some(1)).count();
    let fits = ty.element.bytes() == 1
        && ty.shape[1] % 16 == 0
        && Expr::from(4).divides(&leaf.extent).proved()
        && dimensions + 2 <= DIMENSIONS;
    (fits && uses == 1 && same == 1).then_some(value)
}

/// The rings of all tiles that TMA loads. A tile that several `dot` of its body use has a ring of
/// its own, because its stage is held from the first of them to the last.
fn rings(seen: &Seen<'_>, again: &HashMap<ValueId, ValueId>) -> (Vec<Ring>, HashMap<ValueId, (usize, usize)>) {
    let (mut rings, mut of): (Vec<Ring>, HashMap<ValueId, (usize, usize)>) = Default::default();
    let is_shared = |value: ValueId| again.contains_key(&value) || seen.taken(value, again) > 1;
    for (value, own, _, body) in &seen.tma_loads {
        if of.contains_key(value) {
            continue;
        }
        if let Some(place) = again.get(value).and_then(|first| of.get(first)).copied() {
            of.insert(*value, place);
            continue;
        }
        // The operands of one `dot` that are loaded in the same body are loaded together.
        let product =
            seen.products.iter().find(|product| product.body == *body && product.operands[..2].contains(value));
        let product = product.filter(|_| !is_shared(*value));
        let together: Vec<(ValueId, TmaTile)> = match product {
            Some(product) => {
                let beside = |operand: &ValueId| {
                    let found = seen.tma_load(*operand).filter(|found| found.3 == *body)?;
                    Some((found.0, found.1.clone()))
                };
                let free = |own: &(ValueId, TmaTile)| !of.contains_key(&own.0) && !is_shared(own.0);
                product.operands[..2].iter().filter_map(beside).filter(free).collect()
            }
            None => vec![(*value, own.clone())],
        };
        let parts: Vec<TmaTile> = together.iter().map(|own| own.1.clone()).collect();
        let number = match rings.iter().position(|ring| ring.parts == parts) {
            Some(known) if !is_shared(*value) => known,
            _ => {
                rings.push(Ring { parts, stages: 1, in_loop: false });
                rings.len() - 1
            }
        };
        rings[number].in_loop |= *body > 0;
        of.extend(together.into_iter().enumerate().map(|(part, (value, _))| (value, (number, part))));
    }
    (rings, of)
}

/// Gives the rings as many stages as fit. Returns whether there is also room for stores by TMA.
fn stages(machine: &Machine, program: &Program, seen: &Seen<'_>, rings: &mut [Ring]) -> Result<bool, String> {
    let barriers = BARRIER_BYTES * rings.len() as i64;
    let most = i64::from(machine.multiprocessor.block_shared_bytes) - OTHER_BYTES - barriers;
    let bytes =
        |in_loop: bool| rings.iter().filter(|ring| ring.in_loop == in_loop).map(|ring| ring.bytes(program)).sum();
    let [fixed, in_loop]: [i64; 2] = [false, true].map(bytes);
    let bulk_stores = seen.stores.iter().filter(|(tensor, at, _)| is_stored_in_bulk(program, *tensor, at));
    let bulk_stores = bulk_stores
        .map(|(.., value)| program.type_of(*value))
        .filter(|ty| ty.element.bytes() == 2)
        .map(|ty| ty.size() * 2)
        .max()
        .unwrap_or(0);
    let count = |bulk_stores: i64| (most - fixed - bulk_stores) / in_loop.max(1);
    let (has_room, stages) = match count(bulk_stores) {
        stages @ 2.. => (bulk_stores > 0, stages),
        _ => (false, count(0)),
    };
    if stages < 2 {
        let asked = fixed + 2 * in_loop;
        return Err(format!("two stages of its operands take {asked} bytes of shared memory, of {most}"));
    }
    for ring in rings.iter_mut().filter(|ring| ring.in_loop) {
        ring.stages = stages.min(STAGES);
    }
    Ok(has_room)
}

/// The number of adjacent blocks along x in a band.
fn band(program: &Program, seen: &Seen<'_>) -> i64 {
    let hangs_on = |at: &[Index], axis: Axis| {
        at.iter().flat_map(|index| &index.terms).any(|(name, _)| name.counter() == Counter::Block(axis))
    };
    let only = |on: Axis, off: Axis| {
        seen.tma_loads.iter().any(|own| own.3 > 0 && hangs_on(own.2, on) && !hangs_on(own.2, off))
    };
    if program.grid.len() == 2 && only(Axis::X, Axis::Y) && only(Axis::Y, Axis::X) { BAND } else { 1 }
}

impl Roles {
    /// A description of the roles of the warps, the pipelines and the schedule, one line each.
    pub(crate) fn lines(&self, program: &Program) -> Vec<String> {
        let groups = self.groups;
        let name = |tile: &TmaTile| {
            let shape = crate::error::shape_text(&tile.shape);
            format!("{} {shape}", program.tensors[tile.tensor].name)
        };
        let mut lines = vec![format!(
            "{groups} consumer warpgroup{} (wgmma); one thread of a producer warpgroup issues the TMA loads",
            if groups == 1 { "" } else { "s" }
        )];
        for ring in &self.rings {
            let parts: Vec<String> = ring.parts.iter().map(name).collect();
            let stages = if ring.stages == 1 { "one stage".to_string() } else { format!("{} stages", ring.stages) };
            lines.push(format!("{}: TMA loads, {stages}", parts.join(" and ")));
        }
        if self.bulk_stores {
            lines.push("results: staged in shared memory; TMA stores overlap the next tile of the grid".to_string());
        }
        lines.push(match (self.band, self.longest) {
            (1, Some(longest)) => {
                let each = if longest == Longest::Near { " for each y and z" } else { "" };
                format!("persistent grid: waves in alternating order, tiles with most iterations first{each}")
            }
            (1, None) => "persistent grid".to_string(),
            (band, _) => format!("persistent grid, in bands of {band} tiles along x"),
        });
        let overlaps = overlaps(program, self);
        let mut iterations: Vec<(&u32, &Overlap)> = overlaps.iter().collect();
        iterations.sort_by_key(|own| own.0);
        for (iteration, own) in iterations {
            lines.push(format!("loop i{iteration}: the last dot of an iteration overlaps the next iteration"));
            if !own.masks.early.is_empty() {
                let first = own.masks.first;
                lines.push(format!(
                    "loop i{iteration}: a mask is true everywhere from iteration {first} on, and left out there"
                ));
            }
            if !own.masks.late.is_empty() {
                let last = match own.masks.last {
                    1 => "iteration".to_string(),
                    last => format!("{last} iterations"),
                };
                lines.push(format!(
                    "loop i{iteration}: a mask is true everywhere before the last {last}, and left out there"
                ));
            }
        }
        lines
    }
}
