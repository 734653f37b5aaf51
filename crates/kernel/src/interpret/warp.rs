//! A warp: 32 threads that execute the program together, or only some of them at a time.
//!
//! Law: a condition splits the active lanes. The lanes of one branch execute its body, then those
//! of the other branch execute theirs, and then all continue together. The lanes of one branch
//! never wait for the other branch in between.

use super::code::{Choice, Looped, Node};
use super::finding::Defect;
use super::lanes::{Lanes, lanes, signed};
use super::machine::{InterpretedRun, Stop};
use super::products::WgmmaSums;
use super::schedule::Order;
use crate::program::WARP_LANES;

/// An enclosing body of the warp's current node.
#[derive(Debug)]
enum Frame {
    /// A loop: the number of its iterations, and of the finished ones.
    Loop { iterations: u64, done: u64 },
    /// A condition: all lanes, those of the current branch, and those of the other branch if it is
    /// still to come.
    Branch { outer: u32, then: u32, left: u32 },
}

/// The state of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    /// It can proceed.
    #[default]
    Ready,
    /// It waits at a barrier of the block.
    Barrier { number: usize, place: usize },
    /// It waits until the block has this many registers for each thread.
    Registers { place: usize, count: u32 },
    /// It waits at the cluster barrier.
    Cluster { place: usize },
    /// Some of its lanes wait for a phase of an mbarrier.
    Phase { place: usize, lanes: u32 },
    /// It has exited.
    Done,
}

/// A warp of the cluster.
#[derive(Debug, Default)]
pub(super) struct Warp {
    /// Its index in the cluster. The warps of a block are adjacent.
    pub(super) number: usize,
    /// The rank of its block.
    pub(super) rank: usize,
    /// Its index in its block.
    pub(super) local: usize,
    /// The lanes that have a thread.
    pub(super) exists: u32,
    /// The lanes that are active.
    pub(super) mask: u32,
    /// The next node.
    pub(super) place: usize,
    pub(super) state: State,
    pub(super) registers: Vec<Lanes>,
    frames: Vec<Frame>,
    /// The iterations of the enclosing loops.
    path: Vec<u32>,
    /// The state of its wgmma accumulators.
    pub(super) sums: WgmmaSums,
    /// The phase of the cluster barrier at which it has arrived, if it has not waited since.
    pub(super) arrived: Option<u32>,
    /// The registers of a thread, if they were reallocated.
    pub(super) held: Option<u32>,
}

impl Warp {
    /// A warp of a cluster whose blocks have `threads` threads.
    pub(super) fn new(number: usize, threads: u32, registers: usize) -> Warp {
        let warps = (threads.div_ceil(WARP_LANES as u32) as usize).max(1);
        let (rank, local) = (number / warps, number % warps);
        let here = threads.saturating_sub(WARP_LANES as u32 * local as u32).min(WARP_LANES as u32);
        let exists = ((1_u64 << here) - 1) as u32;
        Warp { number, rank, local, exists, registers: vec![[0; WARP_LANES]; registers], ..Warp::default() }
    }

    /// Resets the warp to the beginning of the program.
    pub(super) fn restart(&mut self) {
        self.mask = self.exists;
        self.place = 0;
        self.state = State::Ready;
        self.frames.clear();
        self.path.clear();
        self.sums = WgmmaSums::default();
        self.arrived = None;
        self.held = None;
    }

    /// The index of a lane's thread in the cluster. Blocks count as if their warps were full.
    pub(super) fn thread(&self, lane: usize) -> usize {
        self.number * WARP_LANES + lane
    }

    /// The indices in the cluster of the threads of some lanes.
    pub(super) fn threads(&self, mask: u32) -> impl Iterator<Item = usize> + Clone {
        let first = self.number * WARP_LANES;
        (0..WARP_LANES).filter(move |lane| mask >> lane & 1 == 1).map(move |lane| first + lane)
    }

    /// The lanes in which a predicate is true.
    pub(super) fn holds(&self, predicate: usize) -> u32 {
        let bit = |(lane, value): (usize, &u64)| u32::from(*value & 1 == 1) << lane;
        self.registers[predicate].iter().enumerate().map(bit).sum()
    }
}

impl InterpretedRun<'_> {
    /// Advances a warp by at most this many nodes, or until it waits or exits.
    pub(super) fn advance(&mut self, warp: &mut Warp, most: u64) -> Result<(), Stop> {
        let code = self.code;
        for _ in 0..most {
            let Some(node) = code.nodes.get(warp.place) else {
                warp.state = State::Done;
                self.block.gathering.end(warp.number);
                return self.end_of_warp(warp);
            };
            self.step()?;
            let place = warp.place;
            match node {
                Node::Instruction(instruction) => {
                    warp.state = self.execute(warp, place, instruction)?;
                    warp.place += 1;
                    if warp.state != State::Ready {
                        return Ok(());
                    }
                }
                Node::LoopStart(number) => self.enter_loop(warp, *number, &code.loops[*number])?,
                Node::LoopEnd(number) => self.end_iteration(warp, *number, &code.loops[*number])?,
                Node::BranchStart(number) => self.split(warp, &code.choices[*number]),
                Node::BranchMiddle(number) | Node::BranchEnd(number) => self.rejoin(warp, &code.choices[*number]),
            }
        }
        Ok(())
    }

    fn enter_loop(&mut self, warp: &mut Warp, number: usize, looped: &Looped<'_>) -> Result<(), Stop> {
        let step = i64::from(looped.step.step);
        let from = warp.registers[looped.step.from.index()];
        let to = warp.registers[looped.step.to.index()];
        let count = |lane: usize| {
            let (from, to) = (signed(from[lane], 32), signed(to[lane], 32));
            if from < to { (to - from + step - 1) / step } else { 0 }
        };
        let first = warp.mask.trailing_zeros() as usize % WARP_LANES;
        let own = count(first);
        let mut others = lanes(warp.mask).map(|lane| (lane, count(lane)));
        let differing = others.find(|(_, count)| *count != own).map(|(lane, count)| (lane, Some(count.unsigned_abs())));
        // Other warps of the block that execute this loop in the same iterations of the enclosing
        // loops.
        let key = (number, warp.rank, warp.path.as_slice().into());
        let before = self.block.iterations.entry(key).or_insert(own.unsigned_abs());
        let others = (*before != own.unsigned_abs()).then_some((first, Some(*before)));
        // After the last iteration, the variable is incremented once more, and compared.
        let leaves = |lane: usize| signed(from[lane], 32) + own * step > i64::from(i32::MAX);
        let too_far = lanes(warp.mask).find(|lane| own > 0 && leaves(*lane)).map(|lane| (lane, None));
        if let Some((lane, others)) = differing.or(others).or(too_far) {
            let defect = Defect::LoopBounds { iterations: own.unsigned_abs(), others };
            self.report(defect, looped.start, Some(warp.thread(lane)))?;
            return Err(Stop);
        }
        if own == 0 {
            for carried in &looped.step.carried {
                warp.registers[carried.result.index()] = warp.registers[carried.initial.index()];
                warp.sums.moved(carried.initial.index(), carried.result.index());
            }
            warp.place = looped.end + 1;
            return Ok(());
        }
        warp.registers[looped.step.index.index()] = from;
        for carried in &looped.step.carried {
            warp.registers[carried.current.index()] = warp.registers[carried.initial.index()];
            warp.sums.moved(carried.initial.index(), carried.current.index());
        }
        warp.frames.push(Frame::Loop { iterations: own.unsigned_abs(), done: 0 });
        warp.path.push(0);
        warp.place += 1;
        Ok(())
    }

    fn end_iteration(&mut self, warp: &mut Warp, number: usize, looped: &Looped<'_>) -> Result<(), Stop> {
        let Some(until) = looped.step.until else {
            next_iteration(warp, looped, false);
            return Ok(());
        };
        let holds = warp.holds(until.index()) & warp.mask;
        let last = holds != 0;
        // Other warps at the end of the same iteration. The end of a loop has a separate number, so
        // that its key differs from that of the loop.
        let key = (number + self.code.loops.len(), warp.rank, warp.path.as_slice().into());
        let others = *self.block.iterations.entry(key).or_insert(last.into()) != u64::from(last);
        if others || (last && holds != warp.mask) {
            let done = warp.path.last().map_or(0, |iteration| u64::from(*iteration)) + 1;
            let lane = warp.mask.trailing_zeros() as usize % WARP_LANES;
            let others = Some(done + u64::from(last));
            self.report(Defect::LoopBounds { iterations: done, others }, looped.end, Some(warp.thread(lane)))?;
            return Err(Stop);
        }
        next_iteration(warp, looped, last);
        Ok(())
    }

    fn split(&mut self, warp: &mut Warp, choice: &Choice<'_>) {
        let then = warp.holds(choice.step.condition.index()) & warp.mask;
        let otherwise = warp.mask & !then;
        // Either branch may come first.
        let backward = self.schedule.order == Order::Backward;
        let second = if backward || then == 0 { otherwise != 0 } else { false };
        let (first, left) = if second { (otherwise, then) } else { (then, otherwise) };
        warp.frames.push(Frame::Branch { outer: warp.mask, then, left });
        warp.mask = first;
        warp.place = if second { choice.middle } else { choice.start } + 1;
    }

    /// After one branch of a condition: the other branch, or the end.
    fn rejoin(&mut self, warp: &mut Warp, choice: &Choice<'_>) {
        let Some(Frame::Branch { outer, then, left }) = warp.frames.last_mut() else { return };
        if *left != 0 {
            let side = std::mem::take(left);
            warp.place = if side == *then { choice.start } else { choice.middle } + 1;
            warp.mask = side;
            return;
        }
        let then = *then;
        warp.mask = *outer;
        warp.frames.pop();
        for chosen in &choice.step.chosen {
            for side in [chosen.then, chosen.otherwise] {
                warp.sums.moved(side.index(), chosen.result.index());
            }
            let (a, b) = (warp.registers[chosen.then.index()], warp.registers[chosen.otherwise.index()]);
            let result = &mut warp.registers[chosen.result.index()];
            for lane in 0..WARP_LANES {
                result[lane] = if then >> lane & 1 == 1 { a[lane] } else { b[lane] };
            }
        }
        warp.place = choice.end + 1;
    }
}

/// Begins the next iteration of a loop, or continues after the loop.
fn next_iteration(warp: &mut Warp, looped: &Looped<'_>, last: bool) {
    let Some(Frame::Loop { iterations: all, done }) = warp.frames.last_mut() else { return };
    *done += 1;
    let over = last || *done == *all;
    // A parallel assignment: the next value of one variable may be the current value of another.
    let next: Vec<Lanes> = looped.step.carried.iter().map(|carried| warp.registers[carried.next.index()]).collect();
    for (carried, next) in looped.step.carried.iter().zip(next) {
        let target = if over { carried.result } else { carried.current };
        warp.registers[target.index()] = next;
        warp.sums.moved(carried.next.index(), target.index());
    }
    if over {
        warp.frames.pop();
        warp.path.pop();
        warp.place = looped.end + 1;
        return;
    }
    for value in &mut warp.registers[looped.step.index.index()] {
        *value = (*value + u64::from(looped.step.step)) & 0xffff_ffff;
    }
    if let Some(iteration) = warp.path.last_mut() {
        *iteration += 1;
    }
    warp.place = looped.start + 1;
}
