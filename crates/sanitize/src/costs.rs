//! What a kernel costs, by statement and by line of the source.
//!
//! A run with [`Options::costs`](crate::Options::costs) also counts warp instructions by pipe,
//! sectors and lines of global memory, wavefronts of shared memory and the least possible number,
//! operations of tensor cores, and bytes of asynchronous copies in flight. The counts are those of
//! PTX: the assembler merges, unrolls and removes arithmetic instructions, but keeps memory
//! accesses.

mod counting;
mod flight;
mod law;
mod pipe;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) use counting::{Counting, CountsOfLaunch};

pub use counting::{Counts, LaneRequest};
pub use law::{
    BANKS, GlobalCount, LINE_BYTES, SECTOR_BYTES, SharedCount, WAVEFRONT_BYTES, WORD_BYTES, global_request,
    phase_lanes, shared_request,
};
pub use pipe::{Factors, Pipe, product};
pub use table::SourceTexts;

use crate::engine::{Memory, Program};
use crate::json::quoted;
use crate::ptx::{Module, Operand, StatementKind};

/// A request of a warp to global memory: the name of the array, and the first byte of each lane,
/// counted from the beginning of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayRequest {
    /// The array or variable.
    pub array: String,
    /// The lanes. An address outside the array of the first lane also counts from the beginning of
    /// that array.
    pub request: LaneRequest,
}

/// The cost of a statement of the PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementCost {
    /// The function that contains it.
    pub function: String,
    /// The line of the PTX, from 1.
    pub ptx_line: u32,
    /// The file of the source, as the compiler wrote it, and the line.
    pub file: Option<(String, u32)>,
    /// The location in the source, with the calls through which it was inlined.
    pub source: Option<String>,
    /// The instruction, such as `ld.global.v4.f32`.
    pub instruction: String,
    /// The pipe that executes it.
    pub pipe: Pipe,
    /// How often it was executed, and its traffic.
    pub counts: Counts,
    /// For a matrix product: the operand types, and the operations of tensor cores.
    pub product: Option<(Factors, u64)>,
    /// The request to global memory that exceeds the least number of sectors most.
    pub worst_global: Option<ArrayRequest>,
    /// The request to shared memory with the most bank conflicts.
    pub worst_shared: Option<LaneRequest>,
}

/// The cost of the statements of one line of the source; or of one line of the PTX, if no source is
/// known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCost {
    /// The file of the source and the line.
    pub file: Option<(String, u32)>,
    /// The lines of the PTX.
    pub ptx_lines: Vec<u32>,
    /// The sum over the statements.
    pub counts: Counts,
    /// Warp instructions by pipe.
    pub pipes: BTreeMap<Pipe, u64>,
    /// Operations of tensor cores by operand type.
    pub products: BTreeMap<Factors, u64>,
}

/// The cost of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// The statements that were executed, in the order of the PTX.
    pub statements: Vec<StatementCost>,
    /// The number of sectors of arrays that were read, each counted once.
    pub read_sectors: u64,
    /// The number of sectors of arrays that were written, each counted once.
    pub written_sectors: u64,
    /// The most bytes of asynchronous copies that a block had in flight: issued, and not yet waited
    /// for.
    pub in_flight_bytes: u64,
    /// The number of blocks of the launch.
    pub blocks: u64,
}

impl Costs {
    pub(crate) fn new(
        module: &Module<'_>,
        program: &Program,
        counted: CountsOfLaunch,
        memory: &Memory,
        blocks: u64,
    ) -> Self {
        let totals = counted.totals();
        let mut statements = Vec::new();
        let mut first_of: BTreeMap<u32, usize> = BTreeMap::new();
        for (at, place) in program.statements.iter().enumerate() {
            first_of.entry(place.function).or_insert(at);
            let tally = &totals.tallies[at];
            if tally.counts.instructions == 0 {
                continue;
            }
            let body = module.functions[place.function as usize].body.as_deref().unwrap_or_default();
            let Some(own) = body.get(at - first_of[&place.function]) else { continue };
            let StatementKind::Instruction { opcode, modifiers, operands, .. } = &own.kind else { continue };
            let mut counts = tally.counts;
            let is_shared = counts.shared.requests > counts.global.requests;
            let pipe = Pipe::of(opcode, modifiers).unwrap_or(match is_shared {
                true => Pipe::Shared,
                false if counts.global.requests > 0 => Pipe::Global,
                false => Pipe::Local,
            });
            let product = product(opcode, modifiers)
                .map(|(factors, operations)| (factors, operations * tally.counts.instructions));
            if *opcode == "wgmma" && product.is_some() {
                let in_shared = !matches!(operands.get(1), Some(Operand::Vector(_)));
                counts.shared.add(&pipe::group_operands(modifiers, in_shared, counts.instructions));
            }
            let [global, shared] = tally.worst();
            let location = place.location.and_then(|location| module.locations.get(location as usize));
            let known = location.filter(|location| location.line != 0);
            statements.push(StatementCost {
                function: program.functions[place.function as usize].name.clone(),
                ptx_line: place.line,
                file: known.and_then(|location| Some((module.file(location.file)?.to_string(), location.line))),
                source: known.and_then(|_| module.describe(place.location?)),
                instruction: std::iter::once(*opcode).chain(modifiers.iter().copied()).collect::<Vec<_>>().join("."),
                pipe,
                counts,
                product,
                worst_global: global.map(|request| in_array(request, memory)),
                worst_shared: shared,
            });
        }
        Self {
            statements,
            read_sectors: totals.read_sectors,
            written_sectors: totals.written_sectors,
            in_flight_bytes: totals.in_flight_bytes,
            blocks,
        }
    }

    /// The sum over all statements.
    pub fn total(&self) -> Counts {
        let mut sum = Counts::default();
        self.statements.iter().for_each(|own| sum.add(&own.counts));
        sum
    }

    /// Warp instructions by pipe.
    pub fn pipes(&self) -> BTreeMap<Pipe, u64> {
        let mut sums = BTreeMap::new();
        for own in &self.statements {
            *sums.entry(own.pipe).or_default() += own.counts.instructions;
        }
        sums
    }

    /// Operations of tensor cores by operand type. A multiply-add counts as two.
    pub fn products(&self) -> BTreeMap<Factors, u64> {
        let mut sums = BTreeMap::new();
        for (factors, operations) in self.statements.iter().filter_map(|own| own.product) {
            *sums.entry(factors).or_default() += operations;
        }
        sums
    }

    /// The costs by line of the source; an inlined statement counts at its own line. Statements
    /// without a source line are grouped by line of the PTX. Lines of the source come first, sorted
    /// by file.
    pub fn lines(&self) -> Vec<LineCost> {
        let mut lines: BTreeMap<(bool, String, u32), LineCost> = BTreeMap::new();
        for own in &self.statements {
            let key = match &own.file {
                Some((file, line)) => (false, file.clone(), *line),
                None => (true, String::new(), own.ptx_line),
            };
            let line = lines.entry(key).or_default();
            line.file.clone_from(&own.file);
            if line.ptx_lines.last() != Some(&own.ptx_line) {
                line.ptx_lines.push(own.ptx_line);
            }
            line.counts.add(&own.counts);
            *line.pipes.entry(own.pipe).or_default() += own.counts.instructions;
            if let Some((factors, operations)) = own.product {
                *line.products.entry(factors).or_default() += operations;
            }
        }
        lines.into_values().collect()
    }

    /// As JSON: totals, and each statement with its location and counts.
    pub fn to_json(&self) -> String {
        let mut out = format!("{{\n    \"total\": {},\n    \"pipes\": {{", counts_json(&self.total()));
        let pipes = self.pipes();
        let pipes: Vec<String> =
            pipes.iter().map(|(pipe, count)| format!("{}: {count}", quoted(pipe.name()))).collect();
        let products = self.products();
        let products: Vec<String> =
            products.iter().map(|(factors, count)| format!("{}: {count}", quoted(factors.name()))).collect();
        let _ = write!(
            out,
            "{}}},\n    \"tensor_operations\": {{{}}},\n    \"read_sectors\": {},\n    \"written_sectors\": {},\n    \
             \"in_flight_bytes\": {},\n    \"blocks\": {},\n    \"statements\": [",
            pipes.join(", "),
            products.join(", "),
            self.read_sectors,
            self.written_sectors,
            self.in_flight_bytes,
            self.blocks
        );
        for (number, own) in self.statements.iter().enumerate() {
            out += if number == 0 { "\n" } else { ",\n" };
            let _ = write!(
                out,
                "      {{\"function\": {}, \"ptx_line\": {}, \"instruction\": {}, \"pipe\": {}",
                quoted(&own.function),
                own.ptx_line,
                quoted(&own.instruction),
                quoted(own.pipe.name())
            );
            if let Some((file, line)) = &own.file {
                let _ = write!(out, ", \"file\": {}, \"line\": {line}", quoted(file));
            }
            if let Some(source) = &own.source {
                let _ = write!(out, ", \"source\": {}", quoted(source));
            }
            if let Some((factors, operations)) = own.product {
                let _ = write!(out, ", \"factors\": {}, \"tensor_operations\": {operations}", quoted(factors.name()));
            }
            let _ = write!(out, ", \"counts\": {}}}", counts_json(&own.counts));
        }
        out + if self.statements.is_empty() { "]\n  }" } else { "\n    ]\n  }" }
    }
}

fn counts_json(own: &Counts) -> String {
    let mut out = format!("{{\"instructions\": {}, \"threads\": {}", own.instructions, own.threads);
    let global = &own.global;
    if global.requests > 0 {
        let _ = write!(
            out,
            ", \"global\": {{\"requests\": {}, \"bytes\": {}, \"sectors\": {}, \"least_sectors\": {}, \"lines\": {}}}",
            global.requests, global.bytes, global.sectors, global.least_sectors, global.lines
        );
    }
    let shared = &own.shared;
    if shared.requests > 0 {
        let _ = write!(
            out,
            ", \"shared\": {{\"requests\": {}, \"bytes\": {}, \"wavefronts\": {}, \"least_wavefronts\": {}}}",
            shared.requests, shared.bytes, shared.wavefronts, shared.least_wavefronts
        );
    }
    out + "}"
}

/// A request with addresses that count from the beginning of the array of its first lane.
fn in_array(request: LaneRequest, memory: &Memory) -> ArrayRequest {
    let first = request.addresses[request.mask.trailing_zeros() as usize & 31];
    let Some(region) = memory.find(first, &mut 0) else {
        return ArrayRequest { array: String::new(), request };
    };
    let addresses = request.addresses.map(|address| address.wrapping_sub(region.address));
    ArrayRequest { array: region.name.clone(), request: LaneRequest { addresses, ..request } }
}
