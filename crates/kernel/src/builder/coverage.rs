//! Whether each element of an output is written, and by one thread.
//!
//! Law: [`Written::Once`] is claimed only if it holds for every size that the facts admit. A store
//! writes element `e` of a part, in a thread `t`, to the coordinate
//!
//! ```text
//! c_p = inner_p(t, e) + sum over v of factor_v * v
//! ```
//!
//! along each mode `p` of the tensor, where the *outer* variables `v` are the other terms of
//! coordinates: blocks, iterations of loops, and digits of numbers computed from these, also by
//! divisors that are known only at launch (`digits.rs`). The element is written if it is inside the
//! tensor. So each element is written by one thread if
//!
//! 1. different coordinates have different offsets: the layout is injective;
//! 2. the inner coordinates of all threads that store form a box, in which each coordinate occurs
//!    once; they are listed (`block.rs`), with the values that instructions compute (`threads.rs`);
//! 3. along each mode, the outer variables count boxes, from the first to the last one, and
//!    together they determine block and iteration (`grid.rs`).
//!
//! In the code for the last block (`last.rs`), only one block stores, so the coordinates need not
//! determine the block.
//!
//! The range of a number of blocks and iterations may be divided into cases, in each of which the
//! coordinates are other sums (`digits/cases.rs`). Then these conditions are checked for each case.
//! The boxes of a case begin where its first box does, and must end where those of the next case
//! begin.
//!
//! A kernel that violates one of these for some admissible size is refused. If a coordinate or a
//! condition is not such a sum, a list of all stores decides, provided that the kernel has constant
//! sizes and the tensor is not too large (`listed.rs`). Otherwise the result is
//! [`Written::Unproved`], with the reason: the interpreter checks it at each size.

mod block;
mod digits;
mod grid;
mod listed;
mod threads;

use std::collections::HashMap;
use std::fmt;

use tilewright_layout::symbolic::{Expr, Node, Parameter};
use tilewright_layout::{Extent, ModePath};

use super::address::Terms;
use super::core::Core;
use super::state::Write;
use super::tensor::View;
use crate::error::{KernelError, Reason};
use crate::program::memory::{BufferId, Role, Space};
use crate::program::operation::Operation;
use crate::program::register::Register;
use crate::program::{Program, Source, SourceId, Step};
use block::{Listed, MAX_LISTED, NoBox};
use digits::{Case, Digits, Start};
use threads::ThreadValues;

/// An output, and what is proved about its elements.
#[derive(Debug, Clone, PartialEq)]
pub struct Coverage {
    /// The name of the output.
    pub tensor: String,
    /// The result.
    pub written: Written,
}

/// What is proved about the elements of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Each is written by one thread, for every size that the facts admit.
    Once,
    /// It is not proved. A check decides it for its sizes.
    Unproved {
        /// The question that is not decided.
        because: String,
        /// The statement that causes it.
        source: Source,
    },
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Written::Once => f.write_str("each element is written by one thread, for all sizes"),
            Written::Unproved { because, .. } => {
                write!(f, "that each element is written by one thread is checked at sizes only: {because}")
            }
        }
    }
}

/// The question is not decided, or the kernel is refused.
pub(super) enum Doubt {
    Undecided(String),
    Refused(Reason),
}

fn undecided(because: impl Into<String>) -> Doubt {
    Doubt::Undecided(because.into())
}

impl View<'_> {
    /// Records a store to an output, for [`coverages`].
    pub(super) fn remember_write(&self, only: Option<Register>) -> Result<(), Reason> {
        self.remember_elements(only, None)
    }

    /// Records a store of some of the elements.
    pub(super) fn remember_elements(&self, only: Option<Register>, some: Option<&[usize]>) -> Result<(), Reason> {
        let role = self.build.core().buffers[self.buffer.index()].role;
        // The coordinates of a recast view are not those of the tensor.
        if role != Role::Output || self.is_shared() || self.recast {
            return Ok(());
        }
        let bounds = self.bounds();
        // For a shortened tensor, it is not known which elements are omitted.
        let size = self.layout.size().known().filter(|size| *size <= MAX_LISTED as i64 && self.ends.is_empty());
        let mut elements = size.map(|_| Vec::new());
        for index in 0..size.unwrap_or(0) {
            if some.is_some_and(|some| !some.contains(&(index as usize))) {
                continue;
            }
            let at = self.place.layout.eval(&Expr::from(index))?;
            let along: Option<Vec<i64>> = bounds.iter().map(|(path, _)| at.scale_at(*path).known()).collect();
            elements = elements.zip(along).map(|(mut elements, along)| {
                elements.push(along);
                elements
            });
        }
        let mut core = self.build.core();
        // Only the last block stores. Any block may be the last.
        let last = core.last_block.as_ref().and_then(|block| block.within);
        let around = core.conditions.iter().copied().filter(|(register, _)| Some(*register) != last);
        let conditions = around.chain(only.map(|only| (only, true))).collect();
        let write = Write {
            buffer: self.buffer,
            source: core.source,
            start: self.place.start.clone(),
            elements,
            bounds,
            conditions,
            iterations: core.iterations.clone(),
            alone: last.is_some(),
        };
        core.writes.push(write);
        Ok(())
    }
}

/// The values of coordinates and conditions in each thread, from a complete body.
pub(super) fn thread_values(core: &Core, body: &[Step], threads: u32) -> ThreadValues {
    let conditions = core.writes.iter().flat_map(|write| &write.conditions).map(|(register, _)| real(core, *register));
    let wanted: Vec<Register> = core.variables.iter().map(|variable| variable.register).chain(conditions).collect();
    ThreadValues::of(body, &core.widths, threads, &wanted)
}

/// The coverage of each output of a program whose buffers were renumbered.
pub(super) fn coverages(
    core: &Core,
    values: &ThreadValues,
    program: &Program,
    renamed: &HashMap<BufferId, BufferId>,
) -> Result<Vec<Coverage>, KernelError> {
    let mut found = Vec::new();
    for (index, buffer) in core.buffers.iter().enumerate() {
        if buffer.space != Space::Global || buffer.role != Role::Output {
            continue;
        }
        let id = BufferId(index as u32);
        let writes: Vec<&Write> = core.writes.iter().filter(|write| write.buffer == id).collect();
        let tensor = buffer.name.clone();
        let to = renamed.get(&id).copied().unwrap_or(id);
        let other = other_writer(program, to, &writes);
        let Some(last) = writes.last().map(|write| write.source).or(other) else {
            let source = program.sources[0];
            let refusal = Reason::NeverWritten { tensor, what: "no statement writes it".to_string() };
            return Err(refusal.at(source.statement, source.location));
        };
        let source = program.sources[last.index()];
        let shown = match other {
            Some(other) => {
                let other = program.sources[other.index()];
                Err(undecided(format!("{other} writes it otherwise than at coordinates of the tensor")))
            }
            None => proved(core, values, program, &core.forms[index], &tensor, &writes),
        };
        let shown = match shown {
            Err(Doubt::Undecided(because)) if program.sizes.is_empty() => {
                listed::listed(program, to, &tensor).map_err(|doubt| match doubt {
                    Doubt::Undecided(also) => undecided(format!("{because}; {also}")),
                    refused => refused,
                })
            }
            shown => shown,
        };
        let written = match shown {
            Ok(()) => Written::Once,
            Err(Doubt::Undecided(because)) => Written::Unproved { because, source },
            Err(Doubt::Refused(refusal)) => return Err(refusal.at(source.statement, source.location)),
        };
        found.push(Coverage { tensor, written });
    }
    Ok(found)
}

/// The register for which an alias stands.
fn real(core: &Core, mut register: Register) -> Register {
    while let Some(other) = core.aliases.get(&register) {
        register = *other;
    }
    register
}

/// A statement that writes an output by other means than the recorded stores.
fn other_writer(program: &Program, output: BufferId, writes: &[&Write]) -> Option<SourceId> {
    let by_another = program.instructions().find(|instruction| {
        let target = match &instruction.operation {
            Operation::Store(access)
            | Operation::StoreMatrix { access, .. }
            | Operation::Atomic(_, _, access)
            | Operation::Reduce(_, _, access) => access.buffer,
            Operation::BulkStore { map, .. } => program.map(*map).buffer,
            _ => return false,
        };
        target == output && writes.iter().all(|write| write.source != instruction.source)
    });
    by_another.map(|instruction| instruction.source)
}

/// A coordinate along a mode: the contribution of threads, the other terms, and a constant.
struct Along {
    inner: Vec<(i64, Register)>,
    outer: Vec<(i64, Parameter)>,
    constant: i64,
}

fn along(core: &Core, values: &ThreadValues, case: Option<&Case>, (mode, at): (usize, &Expr)) -> Result<Along, Doubt> {
    let terms = Terms::of(at).ok_or_else(|| {
        undecided(format!("the coordinate along mode {mode} is no sum of multiples of blocks, iterations and threads"))
    })?;
    let mut along = Along { inner: Vec::new(), outer: Vec::new(), constant: terms.constant };
    for (factor, parameter) in terms.moving {
        let facts = parameter.facts();
        if let (Some(least), Some(greatest)) = (facts.least(), facts.greatest())
            && least == greatest
        {
            along.constant += factor * least;
            continue;
        }
        if case.is_some_and(|case| case.count(&parameter).is_some()) {
            along.outer.push((factor, parameter));
            continue;
        }
        match core.variable(&parameter) {
            Some(variable) if values.get(variable.register).is_some() => along.inner.push((factor, variable.register)),
            Some(_) => along.outer.push((factor, parameter)),
            None => return Err(undecided(format!("the coordinate along mode {mode} depends on a size"))),
        }
    }
    along.outer.sort_by_key(|(factor, _)| *factor);
    Ok(along)
}

/// Proves that the stores write each element once.
fn proved(
    core: &Core,
    values: &ThreadValues,
    program: &Program,
    form: &tilewright_layout::Layout<Expr>,
    tensor: &str,
    writes: &[&Write],
) -> Result<(), Doubt> {
    let twice = |by: String| Doubt::Refused(Reason::WrittenTwice { tensor: tensor.to_string(), by });
    match form.is_injective() {
        Ok(true) => {}
        Ok(false) => return Err(twice("whichever thread writes one of two elements with the same offset".to_string())),
        Err(error) => return Err(undecided(error.to_string())),
    }
    let (bounds, alone) = (&writes[0].bounds, writes[0].alone);
    if writes.iter().any(|write| write.alone != alone) {
        return Err(undecided("all blocks write it, and the last one again"));
    }
    let iterations: Vec<(Parameter, Expr)> = writes.iter().flat_map(|write| write.iterations.iter().cloned()).collect();
    let start = |write: &&Write| {
        let start = bounds.iter().map(|(path, _)| write.start.scale_at(*path)).collect();
        (start, write.iterations.clone())
    };
    let starts: Vec<Start> = writes.iter().map(start).collect();
    let digits = Digits::of(core, &starts);
    let plain = starts.into_iter().map(|(start, _)| start).collect();
    let plain = [Case { starts: plain, list: Vec::new() }];
    let cases = digits.as_ref().map_or(plain.as_slice(), |digits| digits.cases.as_slice());
    let parts = cases.iter().map(|case| parts(core, values, program, writes, case, digits.as_ref()));
    let parts: Vec<CaseParts<'_>> = parts.collect::<Result<_, _>>()?;
    let single = parts.len() == 1;
    let boxes = parts.into_iter().map(|parts| parts.boxed(single, bounds, tensor));
    let mut boxes: Vec<CaseBox<'_>> = boxes.collect::<Result<_, _>>()?;
    boxes.sort_by(|a, b| a.low.cmp(&b.low));
    let lows: Vec<&[i64]> = boxes.iter().map(|own| own.low.as_slice()).collect();
    let along =
        stacked(&lows).ok_or_else(|| undecided("tiles that are found in different ways are not side by side"))?;
    for (number, CaseBox { case, outer, sides, low, by_threads }) in boxes.iter().enumerate() {
        let end = lows.get(number + 1).map(|next| (along, next[along]));
        let case = digits.as_ref().map(|digits| (digits, *case));
        let parts = grid::Parts { outer, sides, low, end, last: alone, case };
        grid::counted(core, tensor, bounds, parts, (*by_threads, program.threads), &iterations)?;
    }
    Ok(())
}

/// Whether an extent takes every value that its facts admit.
fn is_plain(extent: &Expr) -> bool {
    matches!(extent.node(), Node::Integer(_) | Node::Parameter(_))
}

/// The elements that stores write if a number is in one of its cases.
struct CaseParts<'d> {
    case: &'d Case,
    /// The terms that count the parts along each mode; and for each share, the elements of a block.
    outer: Vec<Vec<(i64, Parameter)>>,
    listed: Vec<Listed>,
}

/// The box of elements of a part in one case of a number; it begins at `low`.
struct CaseBox<'d> {
    case: &'d Case,
    outer: Vec<Vec<(i64, Parameter)>>,
    sides: Vec<i64>,
    low: Vec<i64>,
    /// Whether every thread has the same elements. The outer variables may then determine the
    /// thread.
    by_threads: bool,
}

impl<'d> CaseParts<'d> {
    /// Proves that a part is a box in which each element occurs once, and that all shares have such
    /// boxes.
    fn boxed(self, single: bool, bounds: &[(ModePath, Expr)], tensor: &str) -> Result<CaseBox<'d>, Doubt> {
        let CaseParts { case, outer, listed } = self;
        let by_threads = listed.iter().all(|listed| listed.by_threads);
        let low = if single { vec![0; bounds.len()] } else { low(&listed, bounds.len()) };
        let sides = listed.into_iter().map(|listed| listed.sides(&outer, &low)).collect::<Result<Vec<_>, _>>();
        let mut sides = sides.map_err(|doubt| match doubt {
            NoBox::Twice(one, other, at) if by_threads => Doubt::Refused(Reason::WrittenTwice {
                tensor: tensor.to_string(),
                by: format!("threads {one} and {other} of a block: both have the element at {at:?} of its part"),
            }),
            NoBox::Twice(..) => undecided("statements write an element again"),
            NoBox::Hole(at)
                if single && outer.iter().all(Vec::is_empty) && bounds.iter().all(|(_, extent)| is_plain(extent)) =>
            {
                Doubt::Refused(Reason::NeverWritten {
                    tensor: tensor.to_string(),
                    what: format!("no thread writes the element at {at:?}"),
                })
            }
            NoBox::Hole(at) => {
                undecided(format!("a block writes parts that leave out {at:?}, which another may write"))
            }
            NoBox::Negative => undecided("a coordinate may be negative"),
        })?;
        if sides.iter().any(|own| *own != sides[0]) {
            return Err(undecided("stores that share tiles write parts of different sides"));
        }
        Ok(CaseBox { case, outer, sides: sides.swap_remove(0), low, by_threads })
    }
}

fn parts<'d>(
    core: &Core,
    values: &ThreadValues,
    program: &Program,
    writes: &[&Write],
    case: &'d Case,
    digits: Option<&Digits>,
) -> Result<CaseParts<'d>, Doubt> {
    let name = |write: &Write| program.sources[write.source.index()].to_string();
    // Stores that share a number each write all elements of a part, for different values of the
    // number.
    let shares = digits.map_or(1, Digits::shares);
    let mut listed: Vec<Listed> = (0..shares).map(|_| Listed::new(&writes[0].bounds)).collect();
    let mut outer: Option<Vec<Vec<(i64, Parameter)>>> = None;
    for (write, starts) in writes.iter().zip(&case.starts) {
        let all = starts.iter().enumerate().map(|start| along(core, values, Some(case), start));
        let mut all: Vec<Along> = all.collect::<Result<_, _>>()?;
        count_from_the_front(&mut all, &write.iterations, case);
        let own: Vec<Vec<(i64, Parameter)>> = all.iter().map(|along| along.outer.clone()).collect();
        if outer.as_ref().is_some_and(|outer| !same(outer, &own)) {
            return Err(undecided(format!(
                "{} and {} write parts that are cut differently",
                name(writes[0]),
                name(write)
            )));
        }
        outer = Some(own);
        for (iteration, count) in &write.iterations {
            let used = outer.iter().flatten().flatten().any(|(_, parameter)| parameter.stands_for(iteration))
                || digits.is_some_and(|digits| digits.tells(iteration));
            let never = !used && count.range().0.is_none_or(|least| least < 1);
            if never {
                return Err(undecided(format!("{} is in a loop that may have no iteration", name(write))));
            }
        }
        let share = digits.map_or(0, |digits| digits.share(&write.iterations));
        listed[share].add(write, &all, core, values, program)?;
    }
    Ok(CaseParts { case, outer: outer.unwrap_or_default(), listed })
}

/// Reverses the iterations of loops that traverse a mode from its end: the same elements are
/// written equally often. An iteration that counts along several modes keeps its number.
fn count_from_the_front(all: &mut [Along], iterations: &[(Parameter, Expr)], case: &Case) {
    for (iteration, count) in iterations.iter().filter(|(iteration, _)| case.count(iteration).is_none()) {
        let Some(count) = count.known() else { continue };
        let uses = |along: &Along| along.outer.iter().position(|(_, parameter)| parameter.stands_for(iteration));
        let mut along = all.iter_mut().filter_map(|along| Some((uses(along)?, along)));
        let (Some((at, along)), None) = (along.next(), along.next()) else { continue };
        let factor = along.outer[at].0;
        let before = factor.checked_mul(count - 1).and_then(|before| along.constant.checked_add(before));
        if let (..0, Some(constant), Some(factor)) = (factor, before, factor.checked_neg()) {
            along.outer[at].0 = factor;
            along.constant = constant;
            along.outer.sort_by_key(|(factor, _)| *factor);
        }
    }
}

/// The least coordinate along each mode.
fn low(listed: &[Listed], modes: usize) -> Vec<i64> {
    let along = |mode: usize| listed.iter().flat_map(|listed| listed.writers.keys()).map(|at| at[mode]).min();
    (0..modes).map(|mode| along(mode).unwrap_or(0)).collect()
}

/// The mode along which boxes with these first coordinates are stacked, in order. Along all other
/// modes, they begin at 0.
fn stacked(lows: &[&[i64]]) -> Option<usize> {
    let along = lows.last()?.iter().position(|at| *at != 0).unwrap_or(0);
    let alike = lows.iter().all(|low| low.iter().enumerate().all(|(mode, at)| mode == along || *at == 0));
    (alike && lows.first()?.get(along).is_none_or(|at| *at == 0)).then_some(along)
}

fn same(a: &[Vec<(i64, Parameter)>], b: &[Vec<(i64, Parameter)>]) -> bool {
    let pair = |((f, p), (g, q)): (&(i64, Parameter), &(i64, Parameter))| f == g && p.stands_for(q);
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(pair))
}
