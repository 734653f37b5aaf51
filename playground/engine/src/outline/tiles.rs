//! The tiles of a block: the elements of each tensor that a statement reads or writes, and the
//! threads that do so.
//!
//! Law: they are taken from a run of the interpreter. Block (0,0,0) runs, and the first execution
//! of each statement by each warp counts. If that has fewer instructions than the line has
//! repetitions, the line says that its tile is the first one. A statement that the block does not
//! reach has no tile.

use std::collections::{BTreeSet, HashMap};

use tilewright_draw::Map;
use tilewright_kernel::interpret::{AccessKind, Completion, SetupError, Stepper};
use tilewright_kernel::program::memory::Buffer;
use tilewright_kernel::program::{Program, Source};
use tilewright_layout::AnyLayout;
use tilewright_planners::Planned;

use crate::steps::runs;

/// The most warp instructions that are run: later statements have no tile.
const INSTRUCTIONS: u64 = 1 << 22;
/// The most indices of a layout whose offsets are looked up.
const INDICES: i64 = 1 << 21;
/// The most ranges of thread indices that are printed.
const RUNS: usize = 2;

/// A statement, the index of the accessed buffer in the program, and the kind of access.
type Key = (Source, usize, &'static str);

/// The tiles of a block by statement.
#[derive(Default)]
pub struct Tiles {
    found: HashMap<Key, Tile>,
}

/// The part of a buffer that a statement accesses.
pub struct Tile {
    /// `a[0:128, 0:64]`.
    pub place: String,
    /// `threads 0-127`.
    pub threads: String,
    /// `warps 0-3`.
    pub warps: String,
    /// The most instructions of a warp that access it.
    pub instructions: usize,
}

/// The recorded accesses of a statement to a buffer.
#[derive(Default)]
struct Seen {
    /// The step in which each warp executed it first.
    first: HashMap<u32, usize>,
    /// The instructions of each warp in that step, by their numbers.
    instructions: HashMap<u32, BTreeSet<usize>>,
    threads: BTreeSet<u32>,
    elements: BTreeSet<u64>,
}

impl Tiles {
    /// Runs the first block of a plan.
    ///
    /// Errors: the launch does not exist at the plan's sizes.
    pub fn of(planned: &Planned) -> Result<Tiles, SetupError> {
        let program = planned.kernel().program();
        let layouts = layouts(planned)?;
        let mut interpreter = planned.interpreter()?;
        interpreter.limit(INSTRUCTIONS);
        let seen = seen(program, interpreter.stepper([0; 3], Completion::Early)?);
        let places: Vec<Places<'_>> =
            program.buffers.iter().zip(layouts).map(|(buffer, layout)| Places::new(buffer, layout)).collect();
        let tile = |(key, seen): (Key, Seen)| {
            let (_, number, _) = key;
            let place = places.get(number)?.text(&seen.elements)?;
            let warps = seen.instructions.keys().copied().collect();
            let tile = Tile {
                place,
                threads: named("thread", &seen.threads, Some(program.threads)),
                warps: named("warp", &warps, None),
                instructions: seen.instructions.values().map(BTreeSet::len).max().unwrap_or(0),
            };
            Some((key, tile))
        };
        Ok(Tiles { found: seen.into_iter().filter_map(tile).collect() })
    }

    /// Whether it is empty: nothing was run.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The tile of a buffer that a statement accesses; None if it is not known.
    pub fn tile(&self, source: &Source, buffer: usize, kind: AccessKind) -> Option<&Tile> {
        self.found.get(&(*source, buffer, word(kind)))
    }
}

/// A kind as part of a key.
fn word(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write => "written",
        AccessKind::Atomic => "atomic",
    }
}

/// The layouts of all buffers; None for a layout that is not of constants.
fn layouts(planned: &Planned) -> Result<Vec<Option<AnyLayout>>, SetupError> {
    let program = planned.kernel().program();
    let globals = program.layouts(planned.sizes())?;
    let written = |(number, buffer): (usize, &Buffer)| {
        globals.get(number).cloned().or_else(|| buffer.layout.parse::<AnyLayout>().ok())
    };
    Ok(program.buffers.iter().enumerate().map(written).collect())
}

/// The accesses of the first block. A defect ends the run; the check reports it.
fn seen(program: &Program, mut stepper: Stepper<'_>) -> HashMap<Key, Seen> {
    let mut all: HashMap<Key, Seen> = HashMap::new();
    let mut number = 0;
    while let Ok(Some(step)) = stepper.step() {
        number += 1;
        for touched in step.touched.iter().filter(|touched| touched.thread.block == [0; 3]) {
            let seen = all.entry((touched.source, touched.buffer, word(touched.kind))).or_default();
            let warp = touched.thread.thread / 32;
            let first = seen.first.entry(warp).or_insert(number);
            let Some(buffer) = program.buffers.get(touched.buffer).filter(|_| *first == number) else { continue };
            let size = u64::from(buffer.element.bytes());
            seen.instructions.entry(warp).or_default().insert(touched.request);
            seen.threads.insert(touched.thread.thread);
            seen.elements.extend(touched.byte / size..(touched.byte + touched.bytes).div_ceil(size));
        }
    }
    all
}

/// `thread 0`, `threads 0-127`, or `all 256 threads` if these are all.
fn named(noun: &str, numbers: &BTreeSet<u32>, all: Option<u32>) -> String {
    let numbers: Vec<u32> = numbers.iter().copied().collect();
    match numbers.as_slice() {
        [only] => format!("{noun} {only}"),
        many if Some(many.len() as u64) == all.map(u64::from) => format!("all {} {noun}s", many.len()),
        many => {
            let text = runs(many);
            match text.split(", ").count() > RUNS {
                true => format!("{} {noun}s", many.len()),
                false => format!("{noun}s {text}"),
            }
        }
    }
}

/// The coordinates of the elements of a buffer.
struct Places<'a> {
    buffer: &'a Buffer,
    /// The sizes of the modes, and the first index at each offset.
    known: Option<(Vec<i64>, HashMap<u64, i64>)>,
}

impl<'a> Places<'a> {
    fn new(buffer: &'a Buffer, layout: Option<AnyLayout>) -> Places<'a> {
        let map = layout.as_ref().and_then(Map::new).filter(|map| map.size() <= INDICES);
        let known = map.map(|map| {
            let mut indices = HashMap::new();
            for index in (0..map.size()).rev() {
                if let Some(offset) = map.at(index).ok().and_then(|offset| u64::try_from(offset).ok()) {
                    indices.insert(offset, index);
                }
            }
            (map.shape().modes().map(|mode| mode.leaves().iter().product()).collect(), indices)
        });
        Places { buffer, known }
    }

    /// The least box of coordinates around the elements; None if no element has coordinates. If the
    /// box contains other elements too, the text gives the number of elements.
    fn text(&self, elements: &BTreeSet<u64>) -> Option<String> {
        let (name, (modes, indices)) = (&self.buffer.name, self.known.as_ref()?);
        let mut box_of: Vec<(i64, i64)> = Vec::new();
        let mut count = 0_i64;
        for index in elements.iter().filter_map(|element| indices.get(element)) {
            let mut rest = *index;
            count += 1;
            for (number, size) in modes.iter().enumerate() {
                let at = if number + 1 == modes.len() { rest } else { rest % size };
                rest /= (*size).max(1);
                match box_of.get_mut(number) {
                    Some((least, most)) => (*least, *most) = ((*least).min(at), (*most).max(at)),
                    None => box_of.push((at, at)),
                }
            }
        }
        if count == 0 {
            return None;
        }
        let range = |(least, most): &(i64, i64)| {
            if least == most { least.to_string() } else { format!("{least}:{}", most + 1) }
        };
        let place = format!("{name}[{}]", box_of.iter().map(range).collect::<Vec<_>>().join(", "));
        let all: i64 = box_of.iter().map(|(least, most)| most - least + 1).product();
        Some(if all == count { place } else { format!("{count} elements of {place}") })
    }
}
