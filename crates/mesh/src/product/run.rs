//! A matmul by several processes: local parts are multiplied while others are in flight.
//!
//! Law: operands arrive in one call, in which a process multiplies each box as soon as its inputs
//! have arrived. Partial sums are sent in another call, each part as soon as it is computed. The
//! steps of a plan before the last step of an operand, or after the first step of the result, are
//! carried out separately.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tilewright_layout::{Layout, Leaf, Tree};
use tilewright_tensor::{Numbers, TensorView, TensorViewMut, cpu_mma, gemm};

use super::tasks::{Group, groups};
use super::{ProductPlan, Role, part};
use crate::engine::{
    Engine, Meanwhile, Progress, awaited, beside, element_line, elements, pack, room, step_name, unpack,
};
use crate::error::MeshError;
use crate::number::Real;
use crate::plan::{Plan, PlannedStep};
use crate::sharded::ShardedLayout;
use crate::step::{Exchange, Message};

const OPERANDS: &str = "the operands";
const RESULT: &str = "the result";

impl ProductPlan {
    /// The memory of D in this process, computed from that of A and B: `f32` or `f64`, which are
    /// multiplied by [`gemm`] on one thread.
    ///
    /// Local parts are multiplied while others are in flight, and partial sums are sent while
    /// others are computed. The rounding order is the same in every run, but differs from that of
    /// [`ProductPlan::simulate`].
    ///
    /// Errors: those of [`Plan::run`]; [`MeshError::Operation`] if the multiplication is refused.
    pub fn run<S: Numbers<Sum = S> + Real>(
        &self,
        engine: &mut impl Engine,
        a: &[S],
        b: &[S],
    ) -> Result<Vec<S>, MeshError> {
        let mut contract = format!("{}operation: product by {:?}\n", element_line::<S>(), self.roles);
        self.moves().iter().for_each(|plan| contract.push_str(&plan.contract()));
        beside(engine, self.a.from().mesh(), &contract, |own| self.run_beside(own.0, a, b))
    }

    fn run_beside<S: Numbers<Sum = S> + Real>(
        &self,
        engine: &mut impl Engine,
        a: &[S],
        b: &[S],
    ) -> Result<Vec<S>, MeshError> {
        let [m, n, k] = self.local_sizes();
        let [m_all, n_all, k_all] = self.sizes;
        let matrix = |of: &ShardedLayout, modes| part(of, modes, &self.roles);
        let of_a = matrix(self.a.from(), [(m_all, Role::Rows), (k_all, Role::Depth)])?;
        let of_b = matrix(self.b.from(), [(k_all, Role::Depth), (n_all, Role::Columns)])?;
        let mut a = Operand::new(engine, &self.a, "A", of_a, a)?;
        let mut b = Operand::new(engine, &self.b, "B", of_b, b)?;
        let (own, ranks) = (engine.rank(), engine.ranks());
        let (first, rest) = self.d.steps().split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
        let sums = first.map_or(Vec::new(), |step| outgoing(&step.exchange, own, ranks));
        let is_split = first.is_some_and(|step| step.traffic.moved() > 0);
        let mut work = Work {
            groups: groups(own, ranks, [m, n, k], [&a.incoming, &b.incoming], &sums).into(),
            mma: cpu_mma::<S>(1).map_err(refused)?,
            sizes: [m, n, k],
            arrived: BTreeSet::new(),
            d: zeros(own, elements(self.d.from().reach()))?,
            left: BTreeMap::new(),
            own,
        };
        for rank in work.groups.iter().flat_map(|group| &group.serves) {
            *work.left.entry(*rank).or_insert(0) += 1;
        }
        if a.moves || b.moves {
            let sources = sources(&a, &b);
            let targets: Vec<usize> =
                (0..ranks).filter(|rank| a.targets.contains_key(rank) || b.targets.contains_key(rank)).collect();
            let mut exchange =
                FactorExchange { work: &mut work, a: &mut a, b: &mut b, send: targets.clone().into(), is_split };
            engine.exchange_while(&format!("step 1 of {OPERANDS}"), &targets, &sources, &mut exchange)?;
        }
        let (a, b) = (a.matrix, b.matrix);
        let Some(step) = first else {
            while work.multiply(&a, &b)? {}
            return Ok(work.d);
        };
        let name = step_name(0, RESULT, step.kind);
        let incoming = step.exchange.messages_to(own);
        let mut received = Vec::new();
        if is_split {
            let sources = awaited::<S>(&incoming, own);
            let targets: Vec<usize> = work.left.keys().copied().collect();
            let mut exchange =
                SumExchange { work: &mut work, operands: [&a, &b], sums: &sums, step: &name, received: Vec::new() };
            engine.exchange_while(&name, &targets, &sources, &mut exchange)?;
            received = exchange.received;
        }
        while work.multiply(&a, &b)? {}
        let mut result = zeros(own, elements(step.exchange.to().reach()))?;
        let add = |sum: &mut S, summand: S| *sum = sum.plus(summand);
        unpack(&incoming, own, &work.d, &received, &mut result, &add);
        for (number, step) in rest.iter().enumerate() {
            let name = step_name(number + 1, RESULT, step.kind);
            result = step.exchange.run(engine, &name, &result, &add)?;
        }
        Ok(result)
    }
}

fn refused(error: impl std::fmt::Display) -> MeshError {
    MeshError::Operation { what: error.to_string().into() }
}

fn zeros<S: Real>(own: usize, count: usize) -> Result<Vec<S>, MeshError> {
    let mut zeros = room(own, "before the product", count)?;
    zeros.resize(count, S::default());
    Ok(zeros)
}

/// The messages that a process sends in a step, by receiver.
fn outgoing(exchange: &Exchange, own: usize, ranks: usize) -> Vec<(usize, Message)> {
    let to = |rank: usize| exchange.messages_to(rank).into_iter().map(move |message| (rank, message));
    (0..ranks).filter(|rank| *rank != own).flat_map(to).filter(|(_, message)| message.from == own).collect()
}

/// An operand of a process: the part that it multiplies, column-major.
struct Operand<S> {
    matrix: Vec<S>,
    /// Whether any process receives operands in the call.
    moves: bool,
    incoming: Vec<Message>,
    /// The bytes to send to each other process.
    targets: BTreeMap<usize, Vec<u8>>,
}

impl<S: Real> Operand<S> {
    /// Carries out the steps before the last one, and copies the elements that stay in this
    /// process.
    fn new(
        engine: &mut impl Engine,
        plan: &Plan,
        name: &str,
        to: ShardedLayout,
        memory: &[S],
    ) -> Result<Operand<S>, MeshError> {
        let add = |sum: &mut S, summand: S| *sum = sum.plus(summand);
        let (own, last) = (engine.rank(), plan.steps().len().saturating_sub(1));
        let mut held: Option<Vec<S>> = None;
        let mut carry = |step: &PlannedStep, number: usize, exchange: &Exchange, held: &mut Option<Vec<S>>| {
            let name = step_name(number, name, step.kind);
            *held = Some(exchange.run(engine, &name, held.as_deref().unwrap_or(memory), &add)?);
            Ok::<_, MeshError>(())
        };
        for (number, step) in plan.steps().iter().take(last).enumerate() {
            carry(step, number, &step.exchange, &mut held)?;
        }
        let Some(step) = plan.steps().last() else {
            return Ok(Operand {
                matrix: memory.to_vec(),
                moves: false,
                incoming: Vec::new(),
                targets: BTreeMap::new(),
            });
        };
        let exchange = Exchange::new(step.exchange.from(), &to)?;
        // Sums are added in the order of ranks, so all summands must have arrived.
        if exchange.added() > 1 {
            carry(step, last, &exchange, &mut held)?;
            let matrix = held.unwrap_or_default();
            return Ok(Operand { matrix, moves: false, incoming: Vec::new(), targets: BTreeMap::new() });
        }
        let memory = held.as_deref().unwrap_or(memory);
        let name = format!("step {} of {name}", last + 1);
        let incoming = exchange.messages_to(own);
        let kept: Vec<Message> = incoming.iter().filter(|message| message.from == own).cloned().collect();
        if !kept.is_empty() {
            crate::devices::holds(own, memory, exchange.needed(own))?;
        }
        let targets = exchange.packed(own, &name, memory)?.into_iter().collect();
        let mut matrix = zeros(own, elements(to.reach()))?;
        unpack(&kept, own, memory, &[], &mut matrix, &add);
        let incoming = incoming.into_iter().filter(|message| message.from != own).collect();
        Ok(Operand { matrix, moves: exchange.traffic().moved() > 0, incoming, targets })
    }

    fn from(&self, rank: usize) -> Vec<Message> {
        self.incoming.iter().filter(|message| message.from == rank).cloned().collect()
    }

    /// Unpacks the message of a rank, and returns its number of bytes.
    fn take(&mut self, own: usize, rank: usize, bytes: &[u8]) -> usize {
        let messages = self.from(rank);
        let all: usize = awaited::<S>(&messages, own).iter().map(|(_, bytes)| bytes).sum();
        let bytes = bytes.get(..all).unwrap_or_default().to_vec();
        unpack(&messages, own, &[], &[(rank, bytes)], &mut self.matrix, &|_, _| {});
        all
    }
}

/// The number of bytes of both operands that each process sends to this one.
fn sources<S: Real>(a: &Operand<S>, b: &Operand<S>) -> Vec<(usize, usize)> {
    let mut all: BTreeMap<usize, usize> = BTreeMap::new();
    // None of these messages is from this process itself, so none is skipped.
    for (rank, bytes) in [&a.incoming, &b.incoming].into_iter().flat_map(|of| awaited::<S>(of, usize::MAX)) {
        *all.entry(rank).or_insert(0) += bytes;
    }
    all.into_iter().collect()
}

/// The local work of a process.
struct Work<S> {
    groups: VecDeque<Group>,
    mma: tilewright_layout::atoms::TiledMma,
    sizes: [i64; 3],
    /// The processes whose operands have arrived.
    arrived: BTreeSet<usize>,
    d: Vec<S>,
    /// The number of blocks that are still to be computed for each other process.
    left: BTreeMap<usize, usize>,
    own: usize,
}

impl<S: Numbers<Sum = S> + Real> Work<S> {
    /// Multiplies the next box whose operands have arrived; false if there is none.
    fn multiply(&mut self, a: &[S], b: &[S]) -> Result<bool, MeshError> {
        let is_ready = |group: &Group| {
            group.tasks.first().is_some_and(|task| task.needs.iter().all(|rank| self.arrived.contains(rank)))
        };
        let Some(at) = self.groups.iter().position(is_ready) else { return Ok(false) };
        let Some(group) = self.groups.get_mut(at) else { return Ok(false) };
        let task = group.tasks.remove(0);
        let ([m, _, k], rows, columns) = (self.sizes, group.rows.clone(), group.columns.clone());
        let [height, width, depth] = [&rows, &columns, &task.depth].map(|range| range.end - range.start);
        let layout = |shape: [i64; 2], strides: [i64; 2]| {
            let leaves = shape.into_iter().zip(strides).map(|(extent, stride)| Leaf { extent, stride });
            Layout::from_tree(Tree::flat(leaves)?)
        };
        let of_a = layout([height, depth], [1, m])?;
        let of_b = layout([width, depth], [k, 1])?;
        let of_d = layout([height, width], [1, m])?;
        let begin = |row: i64, column: i64, height: i64| elements(row + column * height);
        let a = TensorView::with_origin(a, begin(rows.start, task.depth.start, m), of_a).map_err(refused)?;
        let b = TensorView::with_origin(b, begin(task.depth.start, columns.start, k), of_b).map_err(refused)?;
        let mut d =
            TensorViewMut::with_origin(&mut self.d, begin(rows.start, columns.start, m), of_d).map_err(refused)?;
        let beta = if group.is_begun { S::narrow(1.0) } else { S::narrow(0.0) };
        group.is_begun = true;
        gemm(&self.mma, S::narrow(1.0), &a, &b, beta, &mut d).map_err(refused)?;
        if group.tasks.is_empty() {
            for rank in self.groups.remove(at).map_or(Vec::new(), |group| group.serves) {
                self.left.entry(rank).and_modify(|left| *left -= 1);
            }
        }
        Ok(true)
    }
}

/// The call in which operands arrive. Blocks are multiplied as soon as their operands have arrived.
struct FactorExchange<'a, S> {
    work: &'a mut Work<S>,
    a: &'a mut Operand<S>,
    b: &'a mut Operand<S>,
    /// The ranks to which this process must still send its parts of the operands.
    send: VecDeque<usize>,
    /// Whether partial sums are sent in a separate call. If so, the blocks that remain when all
    /// operands have arrived are multiplied in that call.
    is_split: bool,
}

impl<S: Numbers<Sum = S> + Real> Meanwhile for FactorExchange<'_, S> {
    fn work(&mut self) -> Result<Option<Progress>, MeshError> {
        if let Some(rank) = self.send.pop_front() {
            let mut bytes = self.a.targets.remove(&rank).unwrap_or_default();
            bytes.append(&mut self.b.targets.remove(&rank).unwrap_or_default());
            return Ok(Some(Progress::Ready(rank, bytes)));
        }
        let awaited =
            |operand: &Operand<S>| operand.incoming.iter().any(|message| !self.work.arrived.contains(&message.from));
        if self.is_split && !awaited(self.a) && !awaited(self.b) {
            return Ok(None);
        }
        let worked = self.work.multiply(&self.a.matrix, &self.b.matrix)?;
        Ok(worked.then_some(Progress::Worked))
    }

    fn take(&mut self, rank: usize, bytes: Vec<u8>) -> Result<(), MeshError> {
        let taken = self.a.take(self.work.own, rank, &bytes);
        self.b.take(self.work.own, rank, bytes.get(taken..).unwrap_or_default());
        self.work.arrived.insert(rank);
        Ok(())
    }
}

/// The call in which partial sums are sent, each part as soon as it is computed.
struct SumExchange<'a, S> {
    work: &'a mut Work<S>,
    operands: [&'a [S]; 2],
    sums: &'a [(usize, Message)],
    step: &'a str,
    received: Vec<(usize, Vec<u8>)>,
}

impl<S: Numbers<Sum = S> + Real> Meanwhile for SumExchange<'_, S> {
    fn work(&mut self) -> Result<Option<Progress>, MeshError> {
        // The sums for a device are sent when all of its blocks have been computed.
        let ready = self.work.left.iter().find(|(_, left)| **left == 0).map(|(rank, _)| *rank);
        let Some(rank) = ready else {
            let [a, b] = self.operands;
            return Ok(self.work.multiply(a, b)?.then_some(Progress::Worked));
        };
        self.work.left.remove(&rank);
        let messages = self.sums.iter().filter(|(to, _)| *to == rank).map(|(_, message)| message.clone());
        let messages: Vec<Message> = messages.collect();
        Ok(Some(Progress::Ready(rank, pack(&messages, self.work.own, self.step, &self.work.d)?)))
    }

    fn take(&mut self, rank: usize, bytes: Vec<u8>) -> Result<(), MeshError> {
        self.received.push((rank, bytes));
        Ok(())
    }
}
