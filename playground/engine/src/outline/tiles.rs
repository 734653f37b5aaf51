//! The tiles of a block: which elements of which tensor a statement reads or writes, and which
//! threads do so.
//!
//! Law: they are what the interpreter sees. Block (0,0,0) runs, and of each statement the first
//! execution by each warp counts. Where that has fewer instructions than a line stands for, the
//! line says that its tile is the first one. A statement that the block does not come to has no
//! tile.

use std::collections::{BTreeSet, HashMap};

use tilewright_draw::Map;
use tilewright_kernel::interpret::{AccessKind, Completion, SetupError, Stepper};
use tilewright_kernel::program::memory::Buffer;
use tilewright_kernel::program::{Program, Source};
use tilewright_layout::AnyLayout;
use tilewright_planners::Planned;

use crate::steps::runs;

/// How many instructions of warps are run: statements that come later have no tile.
const INSTRUCTIONS: u64 = 1 << 22;
/// The most indices of a layout whose offsets are looked up.
const INDICES: i64 = 1 << 21;
/// The most runs of thread numbers that are written out.
const RUNS: usize = 2;

/// A statement, the memory that it touches, by its place in the program's buffers, and how.
type Key = (Source, usize, &'static str);

/// The tiles of a block by statement.
#[derive(Default)]
pub struct Tiles {
    found: HashMap<Key, Tile>,
}

/// What a statement touches of a buffer.
pub struct Tile {
    /// `a[0:128, 0:64]`.
    pub place: String,
    /// `threads 0-127`.
    pub threads: String,
    /// `warps 0-3`.
    pub warps: String,
    /// The most instructions of a warp that touch it.
    pub instructions: usize,
}

/// What was seen of a statement and a buffer.
#[derive(Default)]
struct Seen {
    /// The step in which each warp came to it first.
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

    /// Whether there are none: nothing was run.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The tile that a statement touches of a buffer; none where it is not known.
    pub fn tile(&self, source: &Source, buffer: usize, kind: AccessKind) -> Option<&Tile> {
        self.found.get(&(*source, buffer, word(kind)))
    }
}

/// A kind as a part of a key.
fn word(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write => "written",
        AccessKind::Atomic => "atomic",
    }
}

/// The layouts of all buffers; none for one whose layout is not one of numbers.
fn layouts(planned: &Planned) -> Result<Vec<Option<AnyLayout>>, SetupError> {
    let program = planned.kernel().program();
    let globals = program.layouts(planned.sizes())?;
    let written = |(number, buffer): (usize, &Buffer)| {
        globals.get(number).cloned().or_else(|| buffer.layout.parse::<AnyLayout>().ok())
    };
    Ok(program.buffers.iter().enumerate().map(written).collect())
}

/// What the first block touches. A defect ends the run: the check tells it.
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

/// `thread 0`, `threads 0-127`, and of `all` of them `all 256 threads`.
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

/// Where the elements of a buffer are in its layout.
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

    /// The least box of coordinates that holds the elements; none where no element has one. Where
    /// the box holds others too, the number of elements is told.
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
