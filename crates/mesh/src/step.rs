//! One exchange: moves a tensor from one layout to another.
//!
//! Law: each device receives the elements that it holds in the second layout but not in the first,
//! from the devices that held them, and nothing else. If summands are added, it receives them from
//! all devices that hold one. The elements of a message are a [`Footprint`]. The name of a step is
//! derived from its messages.

use std::fmt;

use crate::error::MeshError;
use crate::held::{Held, Holders};
use crate::pair::{Choices, DevicePart, Footprint, IndexDigit, choices, digits, same_places, shared};
use crate::sharded::ShardedLayout;
use crate::summands::Summands;
use crate::traffic::Traffic;

/// The most messages of a step.
pub const MAX_MESSAGES: i64 = 1 << 24;

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepKind {
    /// Every element keeps its place: its device and offset.
    Nothing,
    /// Elements move in the memory of their device.
    Relayout,
    /// Each device keeps a part of its elements.
    Slice,
    /// Each device of a group receives the elements of all others.
    AllGather,
    /// One device of a group receives the elements of all others.
    Gather,
    /// One device sends all its elements to all others.
    Broadcast,
    /// One device sends each other device a part of its elements.
    Scatter,
    /// Each device of a group sends each other device a part of its elements.
    AllToAll,
    /// One device sends another one all elements that it needs.
    PointToPoint,
    /// Each device of a group receives the sum of one part.
    ReduceScatter,
    /// Each device of a group receives all summands, and adds them.
    AllReduce,
    /// One device of a group receives all summands, and adds them.
    Reduce,
    /// Messages that are no single collective.
    Exchange,
}

/// Elements that one device sends to another, or moves in its own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The rank that sends the elements.
    pub from: usize,
    /// The rank that receives the elements.
    pub to: usize,
    /// Whether they are added to the destination, instead of replacing it.
    pub add: bool,
    /// The offsets of the elements on both devices.
    pub footprint: Footprint,
}

/// One exchange.
#[derive(Debug, Clone)]
pub struct Exchange {
    from: ShardedLayout,
    to: ShardedLayout,
    digits: Vec<IndexDigit>,
    summands: Summands,
    holders: [Holders; 2],
}

impl Exchange {
    /// The exchange that takes a tensor from one layout to another.
    ///
    /// Errors: the layouts are of different tensors or meshes ([`MeshError::Shapes`],
    /// [`MeshError::Meshes`]); more messages than [`MAX_MESSAGES`], or modes that do not refine
    /// each other with more than [`crate::MAX_LISTED`] positions ([`MeshError::TooLarge`]).
    ///
    /// ```
    /// use tilewright_mesh::{Exchange, Mesh, ShardedLayout, StepKind};
    ///
    /// let mesh: Mesh = "tp=4".parse().unwrap();
    /// let cut = ShardedLayout::parse(&mesh, "(2,4):(1,1@tp)").unwrap();
    /// let whole = ShardedLayout::parse(&mesh, "(2,4):(1,2) copied 4:1@tp").unwrap();
    /// let gather = Exchange::new(&cut, &whole).unwrap();
    /// assert_eq!(gather.kind(), StepKind::AllGather);
    /// assert_eq!(gather.traffic().most_received(), 6);
    /// ```
    pub fn new(from: &ShardedLayout, to: &ShardedLayout) -> Result<Exchange, MeshError> {
        let digits = digits(from, to)?;
        let holders = [Holders::of(from), Holders::of(to)];
        let summands = Summands::of(from, to);
        let exchange = Exchange { from: from.clone(), to: to.clone(), digits, summands, holders };
        let mut messages = 0_i64;
        for rank in 0..exchange.from.mesh.size() {
            if let Some((choices, _)) = exchange.wanted(rank) {
                messages = messages.saturating_add(choices.parts().saturating_mul(exchange.summands.added()));
            }
        }
        if messages > MAX_MESSAGES {
            return Err(MeshError::TooLarge { what: "messages in one step", limit: MAX_MESSAGES });
        }
        Ok(exchange)
    }

    /// The source layout.
    pub fn from(&self) -> &ShardedLayout {
        &self.from
    }

    /// The destination layout.
    pub fn to(&self) -> &ShardedLayout {
        &self.to
    }

    /// The number of summands that are added for an element.
    pub fn added(&self) -> i64 {
        self.summands.added()
    }

    /// The part of a device after the step, and the parts of the first layout that intersect it;
    /// None if the device holds nothing, or only zeros.
    fn wanted(&self, rank: usize) -> Option<(Choices, Held)> {
        let [_, to] = &self.holders;
        let held = to.held(rank).filter(|held| !self.summands.is_zero(held))?;
        Some((choices(&self.digits, &held), held))
    }

    /// Calls `visit` for each part that a device receives, and for each of its summands, with the
    /// rank that sends it, the part, and the number of elements.
    fn each_source(&self, rank: usize, mut visit: impl FnMut(usize, &Held, &Held, i64, i64)) {
        let Some((choices, held)) = self.wanted(rank) else { return };
        let [from, _] = &self.holders;
        let own = from.held(rank);
        let copies = from.copy_for(rank, own.as_ref(), &self.from);
        let (leaves, modes) = (self.from.elements.leaves().len(), self.from.sums.len());
        let mut source = Held { elements: vec![0; leaves], copies, sums: vec![0; modes] };
        for part in 0..choices.parts() {
            let count = choices.part(part, &mut source.elements);
            for summand in 0..self.summands.added() {
                self.summands.summand(summand, &held, &mut source.sums);
                if let Some(sender) = from.rank(&source) {
                    visit(sender, &source, &held, count, summand);
                }
            }
        }
    }

    /// The messages that a device receives, and its local copies, in the order in which they are
    /// unpacked.
    pub fn messages_to(&self, rank: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        // If no device packs its part, all devices have the same steps.
        let fixed = [&self.from, &self.to].map(|layout| if layout.packed { None } else { Some(layout.steps_on(&[])) });
        let [mut steps_from, mut steps_to] = fixed.clone().map(Option::unwrap_or_default);
        self.each_source(rank, |from, source, held, _, summand| {
            if fixed[0].is_none() {
                steps_from = self.from.steps_on(&source.elements);
            }
            if fixed[1].is_none() {
                steps_to = self.to.steps_on(&held.elements);
            }
            let read = DevicePart { held: &source.elements, steps: &steps_from, start: self.from.start };
            let written = DevicePart { held: &held.elements, steps: &steps_to, start: self.to.start };
            let footprint = shared(&self.digits, &read, &written);
            messages.push(Message { from, to: rank, add: summand > 0, footprint });
        });
        messages
    }

    /// Calls `visit` with the sender, the receiver and the number of elements of each message,
    /// including what stays on its device.
    pub(crate) fn each_flow(&self, mut visit: impl FnMut(usize, usize, i64)) {
        for rank in 0..self.from.mesh.size() {
            self.each_source(rank, |from, _, _, count, _| visit(from, rank, count));
        }
    }

    /// The number of elements that each device sends and receives.
    pub fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::new(self.from.mesh.size());
        self.each_flow(|from, to, count| traffic.note(from, to, count));
        traffic
    }

    /// The kind of a step without traffic between devices.
    fn kind_of_local(&self, is_less: bool) -> StepKind {
        let same_steps = self.from.packed == self.to.packed && same_places(&self.digits);
        let same = same_steps && self.from.start == self.to.start && self.summands.split() == 1;
        match same {
            true => StepKind::Nothing,
            false if is_less || self.summands.split() > 1 => StepKind::Slice,
            false => StepKind::Relayout,
        }
    }

    /// The kind of a step between layouts with uneven parts: messages are compared with the parts
    /// of their devices, and devices without elements are ignored.
    fn kind_of_uneven(&self, traffic: &Traffic) -> StepKind {
        let [from, to] = &self.holders;
        let sizes = |holders: &Holders, layout: &ShardedLayout| -> Vec<i64> {
            let size = |rank| holders.held(rank).map_or(0, |held| layout.counts_on(&held.elements).iter().product());
            (0..layout.mesh.size()).map(size).collect()
        };
        let (before, after) = (sizes(from, &self.from), sizes(to, &self.to));
        if traffic.moved() == 0 {
            return self.kind_of_local(after.iter().zip(&before).any(|(after, before)| after < before));
        }
        let all = || traffic.ranks().zip(before.iter().zip(&after));
        let (senders, receivers) =
            (|| all().filter(|(rank, _)| rank.sent > 0), || all().filter(|(rank, _)| rank.received > 0));
        let (one_sends, one_receives) = (senders().count() == 1, receivers().count() == 1);
        let added = self.summands.added();
        let whole = senders().all(|(rank, (before, _))| rank.sent == rank.targets * before);
        if added > 1 {
            // Whether each receiver receives all summands but its own.
            let complete = receivers().all(|(rank, (_, after))| rank.received == (added - 1) * after);
            return match (whole, one_receives) {
                (true, true) if complete => StepKind::Reduce,
                (true, false) if complete => StepKind::AllReduce,
                (false, false) if complete => StepKind::ReduceScatter,
                _ => StepKind::Exchange,
            };
        }
        let keeps = senders().all(|(rank, (before, _))| rank.kept == *before);
        let gives = senders().all(|(rank, (before, _))| rank.kept + rank.sent == *before);
        let fills = receivers().all(|(rank, (_, after))| rank.kept + rank.received == *after);
        match (one_sends, one_receives) {
            (true, true) if whole && fills => StepKind::PointToPoint,
            (false, false) if whole && keeps && fills => StepKind::AllGather,
            (false, true) if whole && fills => StepKind::Gather,
            (true, false) if whole && fills => StepKind::Broadcast,
            (true, false) if gives && fills => StepKind::Scatter,
            (false, false) if gives && fills => StepKind::AllToAll,
            _ => StepKind::Exchange,
        }
    }

    /// The kind of the step.
    pub fn kind(&self) -> StepKind {
        self.kind_of(&self.traffic())
    }

    pub(crate) fn kind_of(&self, traffic: &Traffic) -> StepKind {
        if self.from.is_uneven() || self.to.is_uneven() {
            return self.kind_of_uneven(traffic);
        }
        let (before, after) = (self.from.local_size(), self.to.local_size());
        if traffic.moved() == 0 {
            return self.kind_of_local(after < before);
        }
        let shape = traffic.shape();
        let (sources, targets) = (shape.sources, shape.targets);
        let whole = shape.message == Some(before);
        let mutual = shape.mutual && sources.is_some() && sources == targets;
        let added = self.summands.added();
        if added > 1 {
            return match (sources, targets) {
                (Some(others), _) if others != added - 1 => StepKind::Exchange,
                (Some(_), _) if mutual && whole => StepKind::AllReduce,
                (Some(_), _) if mutual && shape.message == Some(after) && after * added == before => {
                    StepKind::ReduceScatter
                }
                (Some(_), Some(1)) if whole => StepKind::Reduce,
                _ => StepKind::Exchange,
            };
        }
        // Whether the elements that are sent also stay where they were.
        let keeps = traffic.ranks().all(|rank| rank.sent == 0 || rank.kept == before);
        let gives = traffic.ranks().all(|rank| rank.sent == 0 || rank.kept + rank.sent == before);
        match (sources, targets) {
            (Some(_), Some(_)) if mutual && whole && keeps => StepKind::AllGather,
            (Some(1), Some(1)) if shape.message == Some(after) => StepKind::PointToPoint,
            (Some(_), Some(_)) if mutual && gives && shape.message.is_some() => StepKind::AllToAll,
            (Some(_), Some(1)) if whole => StepKind::Gather,
            (Some(1), Some(_)) if whole => StepKind::Broadcast,
            (Some(1), Some(_)) if shape.message == Some(after) && gives => StepKind::Scatter,
            _ => StepKind::Exchange,
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            StepKind::Nothing => "nothing",
            StepKind::Relayout => "local relayout",
            StepKind::Slice => "slice",
            StepKind::AllGather => "all-gather",
            StepKind::Gather => "gather",
            StepKind::Broadcast => "broadcast",
            StepKind::Scatter => "scatter",
            StepKind::AllToAll => "all-to-all",
            StepKind::PointToPoint => "point-to-point",
            StepKind::ReduceScatter => "reduce-scatter",
            StepKind::AllReduce => "all-reduce",
            StepKind::Reduce => "reduce",
            StepKind::Exchange => "exchange",
        })
    }
}
