//! The copy engine at the edges of tensors: the interpreter and the device, side by side.
//!
//! Law: for each box the interpreter says what is left in memory, or which defect there is, and the
//! device does that: the same bytes, guards included; the whole chunks of 16 bytes of a store that
//! ends inside one (E1041); an illegal instruction where a coordinate may not be (E1041, E1011). A
//! trap loses the device, so such a box has a process of its own.
//!
//! The kernel language refuses to write most of these kernels. So a kernel is built at a place that
//! is right, and its tensor map and coordinates are changed in the program, which both then run.

use std::error::Error;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilewright::gpu::{Device, ModuleOptions};
use tilewright::kernel::interpret::{Interpreter, Schedule};
use tilewright::kernel::program::memory::Role;
use tilewright::kernel::program::operation::{Axis, Operation};
use tilewright::kernel::program::{Instruction, Program, Step};
use tilewright::kernel::{Build, Element, Kernel, KernelError, LayoutArgument, ptx};
use tilewright::layout::symbolic::Expr;
use tilewright::layout::{Layout, LayoutError, Slot, Swizzle, Tree};

use crate::guarded::{Guarded, Outcome};

/// Rows of a box, and of a tensor.
const SIDE: i64 = 8;
const ROWS: i64 = 11;
/// What the engine takes as a whole, in bytes.
const CHUNK: i64 = 16;
/// The tile at which kernels are built: far enough inside that its coordinates are like no other
/// number of the program.
const BUILT: [i64; 2] = [1030, 1020];
/// The exit status of a process whose kernel trapped.
pub const TRAPPED: u8 = 3;

/// What is done with a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Load,
    Store,
    /// Added to what is there, which the kernel language has not: the text of a store, changed.
    Add,
}

/// Something that both the interpreter and the device do.
pub trait Fact {
    /// What it is.
    fn words(&self) -> String;
    /// Whether the device is expected to trap.
    fn traps(&self) -> Outcome<bool>;
    /// Runs it on a device. An error is a trap, or what differs.
    fn launched(&self, device: &Device) -> Outcome<String>;
}

/// A box of a tensor.
#[derive(Debug, Clone)]
pub struct Boxed {
    way: Way,
    element: Element,
    /// Bytes of a line of the swizzle; 16 for none.
    line: i64,
    /// Columns of a box.
    columns: i64,
    /// Columns and rows of the tensor, and elements from row to row.
    extents: [i64; 2],
    pitch: i64,
    /// Column and row of the corner.
    at: [i64; 2],
}

/// What both are expected to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    /// What the interpreter leaves in the tensor that is written.
    Bytes(Vec<u8>),
    /// Whole chunks past the extent: a finding of the interpreter.
    Chunks,
    /// A trap, by the code of the finding.
    Trap(&'static str),
}

impl Boxed {
    fn bytes(&self) -> i64 {
        i64::from(self.element.bytes())
    }

    /// The layout of the box in shared memory.
    fn shared(&self) -> Result<LayoutArgument, LayoutError> {
        let base = i64::from((CHUNK / self.bytes()).ilog2());
        let plain = Layout::strided((SIDE, self.columns), (self.columns, 1))?;
        let swizzle = match self.line {
            CHUNK => None,
            line => Some(Swizzle::new((line / CHUNK).ilog2().into(), base, 3)?),
        };
        LayoutArgument::placed(swizzle, 0, plain)
    }

    /// The kernel at the place where it is built: a box goes from `x` to `y` by way of shared
    /// memory, and one side of that is the engine's.
    fn built(&self) -> Result<Kernel, KernelError> {
        let (columns, unit) = (self.columns, CHUNK / self.bytes());
        let pitch = (columns * (BUILT[1] + 1) + unit - 1) / unit * unit;
        let tensor = Layout::strided((SIDE * (BUILT[0] + 1), pitch), (pitch, 1))?;
        let dense = Layout::strided((SIDE, columns), (columns, 1))?;
        let each = Layout::strided((32, SIDE * columns / 32), (1, 32))?;
        Kernel::build("edge", |k: &Build| {
            let loads = self.way == Way::Load;
            let (from, to) = if loads { (&tensor, &dense) } else { (&dense, &tensor) };
            let x = k.tensor_of(self.element, "x", from, Role::Input)?;
            let y = k.tensor_of(self.element, "y", to, Role::Both)?;
            k.threads(32)?;
            k.grid(Axis::X, 1)?;
            let held = k.shared_of(self.element, self.shared())?;
            let tile = Tree::flat(BUILT.map(|at| Slot::At(Expr::from(at))))?;
            let (engine, threads) = if loads { (&x, &y) } else { (&y, &x) };
            let boxed = engine.local_tile((SIDE, columns), tile)?;
            if loads {
                let stage = k.pipeline(1, 1)?.cursor()?.stage()?;
                k.single(|| {
                    stage.acquire()?;
                    stage.load(&boxed, &held)?;
                    stage.publish()
                })?;
                stage.wait()?;
                return threads.compose(&each)?.thread_part()?.store(&held.compose(&each)?.thread_part()?.load()?);
            }
            held.compose(&each)?.thread_part()?.store(&threads.compose(&each)?.thread_part()?.load()?)?;
            k.fence_async();
            k.barrier();
            k.single(|| {
                k.store_bulk(&held, &boxed)?;
                k.commit_bulk();
                k.wait_bulk(0);
                Ok(())
            })
        })
    }

    /// The program of the fact: that of the kernel with another map and another corner.
    fn program(&self) -> Result<Program, Box<dyn Error>> {
        let mut program = self.built()?.program().clone();
        let [columns, rows] = self.extents;
        let map = program.maps.first_mut().ok_or("the kernel has no tensor map")?;
        let of = map.buffer.index();
        let [inner, outer] = map.dimensions.as_mut_slice() else { return Err("not a matrix".into()) };
        (inner.extent, outer.extent) = (Expr::from(columns), Expr::from(rows));
        outer.stride = Expr::from(self.pitch * self.bytes());
        program.buffers[of].elements = Expr::from(self.reach());
        program.buffers[of].layout = format!("({rows},{columns}):({},1)", self.pitch);
        let built = [BUILT[1] * self.columns, BUILT[0] * SIDE];
        for (from, to) in built.into_iter().zip(self.at) {
            let mut changed = 0;
            each_instruction(&mut program.body, &mut |own| {
                if own.operation == Operation::Constant(from as u64) {
                    own.operation = Operation::Constant(u64::from(to as i32 as u32));
                    changed += 1;
                }
            });
            if changed != 1 {
                return Err(format!("{changed} constants of the program are {from}").into());
            }
        }
        Ok(program)
    }

    fn reach(&self) -> i64 {
        self.pitch * (self.extents[1] - 1) + self.extents[0]
    }

    /// Contents of the tensors, read and written: no two neighbours are alike.
    fn contents(&self) -> [Vec<u8>; 2] {
        let dense = SIDE * self.columns;
        let [from, to] = if self.way == Way::Load { [self.reach(), dense] } else { [dense, self.reach()] };
        let bytes = |count: i64, by: i64| (0..count * self.bytes()).map(|at| (at * by % 251) as u8 | 1).collect();
        [bytes(from, 37), bytes(to, 101)]
    }

    /// What the interpreter says.
    fn expected(&self) -> Result<Expected, Box<dyn Error>> {
        let program = self.program()?;
        let mut interpreter = Interpreter::new(&program, &[])?;
        for (number, contents) in self.contents().iter().enumerate() {
            interpreter.bytes(number, contents)?;
        }
        match interpreter.run(Schedule::ALL[0]) {
            Ok(run) => Ok(Expected::Bytes(run.bytes(1)?.to_vec())),
            Err(findings) => match (findings[0].code(), self.at.iter().any(|at| *at < 0)) {
                ("E1041", false) => Ok(Expected::Chunks),
                ("E1041", true) => Ok(Expected::Trap("E1041")),
                ("E1011", _) => Ok(Expected::Trap("E1011")),
                (..) => Err(findings[0].to_string().into()),
            },
        }
    }

    /// The bytes of the written tensor and of the guard behind it, by the law of whole chunks: each
    /// chunk that a row of the box has within the extent, whole.
    fn chunks(&self, before: &[u8], first: usize) -> Vec<u8> {
        let (mut left, [source, _]) = (before.to_vec(), self.contents());
        let (bytes, [columns, rows], [x, y]) = (self.bytes(), self.extents, self.at);
        for row in 0..SIDE {
            if !(0..rows).contains(&(y + row)) {
                continue;
            }
            let end = (columns.min(x + self.columns) * bytes + CHUNK - 1) / CHUNK * CHUNK;
            for at in x * bytes..end {
                let place = first + ((y + row) * self.pitch * bytes + at) as usize;
                let own = source[(row * self.columns * bytes + at - x * bytes) as usize];
                if self.way != Way::Add {
                    left[place] = own;
                }
            }
            if self.way == Way::Add {
                for at in (x..end / bytes).map(|column| column * bytes) {
                    let place = first + ((y + row) * self.pitch * bytes + at) as usize;
                    let own = (row * self.columns * bytes + at - x * bytes) as usize;
                    let width = bytes as usize;
                    let sum = number(&left[place..place + width]).wrapping_add(number(&source[own..own + width]));
                    left[place..place + width].copy_from_slice(&sum.to_le_bytes()[..width]);
                }
            }
        }
        left
    }
}

impl Fact for Boxed {
    fn words(&self) -> String {
        let ([columns, rows], [x, y]) = (self.extents, self.at);
        let swizzle = if self.line == CHUNK { "no swizzle".to_string() } else { format!("swizzle {}", self.line) };
        format!(
            "{:?} of {SIDE} x {} {} at ({y},{x}) of ({rows},{columns}):({},1), {swizzle}",
            self.way, self.columns, self.element, self.pitch
        )
    }

    fn traps(&self) -> Outcome<bool> {
        Ok(matches!(self.expected()?, Expected::Trap(_)))
    }

    fn launched(&self, device: &Device) -> Outcome<String> {
        let (program, expected) = (self.program()?, self.expected()?);
        let mut text = ptx::write(&program, device.target()?)?;
        if self.way == Way::Add {
            let store = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";
            let add = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group";
            if !text.contains(store) {
                return Err("the text has no bulk store".into());
            }
            text = text.replace(store, add);
        }
        let stream = device.stream()?;
        let [from, to] = self.contents();
        let (x, mut y) = (Guarded::of(device, &stream, &from)?, Guarded::of(device, &stream, &to)?);
        let (before, first) = y.left(&stream)?;
        let kernel = device.compile_text(&program, &text, &ModuleOptions::default())?;
        kernel.at(&[])?.launch(&stream, &[x.read()?, y.written()?])?;
        stream.synchronize()?;
        x.untouched(&stream).map_err(|error| format!("the tensor that is read: {error}"))?;
        let (left, _) = y.left(&stream)?;
        let wanted = match (&expected, self.way) {
            (Expected::Trap(code), _) => return Ok(format!("no trap, where the interpreter says {code}")),
            (Expected::Chunks, _) | (_, Way::Add) => self.chunks(&before, first),
            (Expected::Bytes(bytes), _) => {
                let mut wanted = before.clone();
                wanted[first..first + bytes.len()].copy_from_slice(bytes);
                wanted
            }
        };
        if let Some(at) = left.iter().zip(&wanted).position(|(own, wanted)| own != wanted) {
            let place = at as i64 - first as i64;
            return Err(format!("byte {place} of the tensor is {:#x}, not {:#x}", left[at], wanted[at]).into());
        }
        Ok(match expected {
            Expected::Chunks => "E1041 in the interpreter; the whole chunk was written".to_string(),
            _ => "as the interpreter says".to_string(),
        })
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

pub fn each_instruction(body: &mut [Step], each: &mut impl FnMut(&mut Instruction)) {
    for step in body {
        match step {
            Step::Instruction(own) => each(own),
            Step::Loop(own) => each_instruction(&mut own.body, each),
            Step::Branch(own) => {
                each_instruction(&mut own.then, each);
                each_instruction(&mut own.otherwise, each);
            }
        }
    }
}

/// All boxes: inside, past each edge, before each, and at odd coordinates; of tensors that end at a
/// chunk and inside one.
fn boxes() -> Vec<Boxed> {
    let mut facts = Vec::new();
    for (element, line) in [
        (Element::U8, 16),
        (Element::U8, 128),
        (Element::U16, 16),
        (Element::U16, 32),
        (Element::U16, 64),
        (Element::U16, 128),
        (Element::U32, 16),
        (Element::U32, 128),
        (Element::U64, 16),
        (Element::U64, 64),
    ] {
        let unit = CHUNK / i64::from(element.bytes());
        // Without a swizzle a box has two chunks, so that it may end inside the first one.
        let columns = if line == CHUNK { 2 * unit } else { line / CHUNK * unit };
        let whole = 2 * columns + unit;
        let fact = |way: Way, extents: [i64; 2], at: [i64; 2]| {
            let pitch = whole + 2 * unit;
            Boxed { way, element, line, columns, extents, pitch, at }
        };
        let inside = [[0, 0], [columns, 2], [2 * columns, 0], [2 * columns, 8], [0, 8]];
        let outside = [[whole + 2 * unit, 0], [0, 16], [4 * columns, 40]];
        let before = [[-unit, 0], [-columns, 0], [0, -1], [0, -9], [-unit, -1], [2 * columns, -2]];
        let odd: Vec<[i64; 2]> =
            [1, unit / 2, unit + 1, -1].into_iter().filter(|at| at % unit != 0).map(|at| [at, 0]).collect();
        let ends: Vec<i64> =
            [1, unit / 2, unit - 1].into_iter().filter(|less| *less > 0).map(|less| whole - less).collect();
        let adds = matches!(element, Element::U32 | Element::U64);
        for way in [Way::Load, Way::Store, Way::Add] {
            if way == Way::Add && !adds {
                continue;
            }
            for at in inside.iter().chain(&outside).chain(&before).chain(&odd) {
                facts.push(fact(way, [whole, ROWS], *at));
            }
            let mut seen = Vec::new();
            for end in &ends {
                if seen.contains(end) {
                    continue;
                }
                seen.push(*end);
                for at in inside.iter().chain(&outside[..1]) {
                    facts.push(fact(way, [*end, ROWS], *at));
                }
                facts.push(fact(way, [*end, 1], [2 * columns, 0]));
            }
            facts.push(fact(way, [1, ROWS], [0, 0]));
        }
    }
    facts
}

/// All boxes, and other accesses at odd addresses.
pub fn facts() -> Vec<Box<dyn Fact + Sync>> {
    let boxes = boxes().into_iter().map(|own| Box::new(own) as Box<dyn Fact + Sync>);
    boxes.chain(crate::addresses::facts().into_iter().map(|own| Box::new(own) as Box<dyn Fact + Sync>)).collect()
}

/// All of them, those that trap in processes of their own: how many differ.
pub fn compare(device: &Device) -> Outcome<usize> {
    let (all, mut failed) = (facts(), 0);
    let mut traps = Vec::new();
    for (number, fact) in all.iter().enumerate() {
        if fact.traps()? {
            traps.push(number);
            continue;
        }
        match fact.launched(device) {
            Ok(found) => println!("ok        {}: {found}", fact.words()),
            Err(error) => {
                println!("FAILED    {}: {error}", fact.words());
                failed += 1;
            }
        }
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; traps.len()]));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |cores| cores.get()).min(8) {
            scope.spawn(|| {
                while let Some(number) = traps.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = traps.iter().position(|own| own == number).unwrap_or(0);
                    let outcome = in_child(*number).map_err(|error| error.to_string());
                    if let Ok(mut found) = found.lock() {
                        found[at] = Some(outcome);
                    }
                }
            });
        }
    });
    let found = found.into_inner().map_err(|_| "a thread failed")?;
    for (number, outcome) in traps.iter().zip(found) {
        let words = all[*number].words();
        match outcome {
            Some(Ok(code)) if code == i32::from(TRAPPED) => {
                println!("ok        {words}: trapped, as the interpreter says")
            }
            other => {
                println!("FAILED    {words}: a trap was expected, and not {other:?}");
                failed += 1;
            }
        }
    }
    println!("{} boxes and accesses, {} of them in processes of their own; {failed} differ", all.len(), traps.len());
    Ok(failed)
}

/// The exit status of a process that runs a fact.
fn in_child(number: usize) -> Outcome<i32> {
    let mut child = Command::new(std::env::current_exe()?);
    Ok(child.args(["--fact", &number.to_string()]).output()?.status.code().unwrap_or(-1))
}

#[cfg(test)]
mod tests {
    use super::{Expected, Fact, Way, boxes};

    /// The interpreter says of each box what was measured.
    #[test]
    fn the_interpreter_knows_the_edges() {
        for fact in boxes() {
            let unit = 16 / i64::from(fact.element.bytes());
            let ([x, y], [columns, rows]) = (fact.at, fact.extents);
            let expected = fact.expected().unwrap_or_else(|error| panic!("{}: {error}", fact.words()));
            let stores = fact.way != Way::Load;
            let last = (x..x + fact.columns).contains(&(columns / unit * unit)) && columns % unit != 0;
            let wanted = match expected {
                Expected::Trap("E1011") => x % unit != 0,
                Expected::Trap(_) => x % unit == 0 && stores && (x < 0 || y < 0),
                Expected::Chunks => stores && last && (0..rows).contains(&y),
                Expected::Bytes(_) => x % unit == 0 && !(stores && (x < 0 || y < 0 || last && y < rows)),
            };
            assert!(wanted, "{}: {expected:?}", fact.words());
        }
    }
}
