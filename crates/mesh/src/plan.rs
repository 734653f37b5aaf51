//! The plan of a reshard, from one sharded layout to another.
//!
//! Law: a plan is a chain of layouts from the given source to the given destination; between two
//! adjacent layouts there is one [`Exchange`]. An exchange moves no more elements than necessary,
//! except for sums. But one device may have to send many elements, or a link between nodes may
//! carry the same elements several times. So there are several routes (`way.rs`), and the one that
//! takes the least time on the machine is chosen.

use std::fmt;

use crate::error::MeshError;
use crate::machine::{Load, Machine};
use crate::sharded::ShardedLayout;
use crate::step::{Exchange, StepKind};
use crate::traffic::Traffic;
use crate::way::ways;

/// One step of a plan.
#[derive(Debug, Clone)]
pub struct PlannedStep {
    /// The exchange.
    pub exchange: Exchange,
    /// The name of its kind.
    pub kind: StepKind,
    /// The numbers of moved elements.
    pub traffic: Traffic,
    /// The time that the links of the machine take, in seconds.
    pub seconds: f64,
}

/// The plan of a reshard from one sharded layout to another: the steps, what each device receives,
/// and the time on the links. [`reshard`] makes it.
///
/// It is printed, simulated on the memory of all devices ([`Plan::simulate`]) and carried out
/// between processes ([`Plan::run`]).
///
/// ```
/// use tilewright_mesh::{Machine, Mesh, ShardedLayout, reshard};
///
/// let mesh: Mesh = "x=2".parse().unwrap();
/// let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
/// let (halves, whole) = (parse("(4,2):(1,1@x)"), parse("(4,2):(1,4) copied 2:1@x"));
/// let plan = reshard(&halves, &whole, 4, &Machine::HGX_H200).unwrap();
/// assert_eq!(plan.received(0), 16); // four elements of four bytes, from the other device
/// assert_eq!(plan.received(0), plan.least(0));
/// let after = plan.simulate(&[vec![0, 1, 2, 3], vec![4, 5, 6, 7]]).unwrap();
/// assert_eq!(after, [[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7]]);
/// ```
#[derive(Debug, Clone)]
pub struct Plan {
    from: ShardedLayout,
    to: ShardedLayout,
    steps: Vec<PlannedStep>,
    bytes: i64,
    machine: Machine,
    /// The number of elements that each device must receive in any plan.
    least: Vec<i64>,
    added: i64,
}

/// The plan that reshards a tensor of elements of `bytes` bytes from one layout to another.
///
/// Errors: those of [`Exchange::new`]; elements of 0 bytes.
///
/// ```
/// use tilewright_mesh::{Machine, Mesh, ShardedLayout, StepKind, reshard};
///
/// let mesh: Mesh = "tp=8".parse().unwrap();
/// let sums = ShardedLayout::parse(&mesh, "1048576:1 summed 8:1@tp").unwrap();
/// let whole = ShardedLayout::parse(&mesh, "1048576:1 copied 8:1@tp").unwrap();
/// let plan = reshard(&sums, &whole, 4, &Machine::HGX_H200).unwrap();
/// let kinds: Vec<StepKind> = plan.steps().iter().map(|step| step.kind).collect();
/// assert_eq!(kinds, [StepKind::ReduceScatter, StepKind::AllGather]);
/// // 7/8 of the tensor in each step.
/// assert_eq!(plan.received(0), 2 * 7 * 1048576 / 8 * 4);
/// ```
pub fn reshard(from: &ShardedLayout, to: &ShardedLayout, bytes: i64, machine: &Machine) -> Result<Plan, MeshError> {
    if bytes < 1 {
        return Err(MeshError::Syntax { text: bytes.to_string().into(), expected: "elements of 1 byte or more" });
    }
    let direct = planned(from, to, bytes, machine)?;
    let added = direct.exchange.added();
    let own = |rank: usize| if to.is_uneven() { to.local_size_on(rank) } else { to.local_size() };
    let must = |rank: usize, received: i64| if added > 1 && received > 0 { own(rank) } else { received };
    let least: Vec<i64> =
        direct.traffic.ranks().enumerate().map(|(number, rank)| must(number, rank.received)).collect();
    let (mut steps, moves) = (vec![direct], must_move(&least));
    for way in ways(from, to, machine)?.into_iter().skip(1).filter(|_| moves) {
        let stops: Vec<&ShardedLayout> = [from].into_iter().chain(&way).chain([to]).collect();
        let mut tried = Vec::new();
        for pair in stops.windows(2) {
            if let [before, after] = pair {
                tried.push(planned(before, after, bytes, machine)?);
            }
        }
        tried.retain(|step| step.kind != StepKind::Nothing);
        let seconds = |steps: &[PlannedStep]| steps.iter().map(|step| step.seconds).sum::<f64>();
        if seconds(&tried) < seconds(&steps) * (1.0 - 1e-9) {
            steps = tried;
        }
    }
    let (from, to) = (from.clone(), to.clone());
    Ok(Plan { from, to, steps, bytes, machine: *machine, least, added })
}

/// Whether any device must receive elements.
fn must_move(least: &[i64]) -> bool {
    least.iter().any(|least| *least > 0)
}

fn planned(from: &ShardedLayout, to: &ShardedLayout, bytes: i64, machine: &Machine) -> Result<PlannedStep, MeshError> {
    let exchange = Exchange::new(from, to)?;
    // One pass over the messages computes both, because there may be millions of them.
    let ranks = from.mesh().size();
    let (mut traffic, mut load) = (Traffic::new(ranks), Load::new(machine, ranks));
    exchange.each_flow(|sender, receiver, count| {
        traffic.note(sender, receiver, count);
        load.note(sender, receiver, count);
    });
    let kind = exchange.kind_of(&traffic);
    let seconds = load.seconds(bytes);
    Ok(PlannedStep { exchange, kind, traffic, seconds })
}

impl Plan {
    /// The source layout.
    pub fn from(&self) -> &ShardedLayout {
        &self.from
    }

    /// The destination layout.
    pub fn to(&self) -> &ShardedLayout {
        &self.to
    }

    /// The steps.
    pub fn steps(&self) -> &[PlannedStep] {
        &self.steps
    }

    /// The number of bytes that a device receives.
    pub fn received(&self, rank: usize) -> i64 {
        let of_step = |step: &PlannedStep| step.traffic.ranks().nth(rank).map_or(0, |rank| rank.received);
        self.steps.iter().map(of_step).sum::<i64>() * self.bytes
    }

    /// A lower bound of the elements that a device receives in any plan: those of the destination
    /// that it does not already hold; for sums, all of the destination.
    pub fn least(&self, rank: usize) -> i64 {
        self.least.get(rank).copied().unwrap_or(0) * self.bytes
    }

    /// The time that the links of the machine take, in seconds.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.seconds).sum()
    }

    /// The traffic, in one line.
    pub fn summary(&self) -> String {
        let kinds: Vec<String> = self.steps.iter().map(|step| step.kind.to_string()).collect();
        let most = (0..self.from.mesh().size()).map(|rank| self.received(rank)).max().unwrap_or(0);
        let time = micros(self.seconds());
        format!("{}: a device receives up to {most} bytes, {time} us at least", kinds.join(", "))
    }

    /// Why some device receives more than the lower bound; None if none does.
    pub fn why_more(&self) -> Option<String> {
        let size = self.from.mesh().size();
        let more = (0..size).find(|rank| self.received(*rank) > self.least(*rank))?;
        let (received, least) = (self.received(more), self.least(more));
        let why = match (self.added > 1, self.steps.len()) {
            (true, 1) => {
                format!("each device that needs a sum of {} summands receives all of them", self.added)
            }
            (true, _) => "partial sums are scattered, then gathered, which is faster than one step".to_owned(),
            _ => "elements that one device would send several times are scattered, then gathered".to_owned(),
        };
        Some(format!("rank {more} receives {received} bytes and must receive {least} at least: {why}"))
    }
}

/// Seconds as microseconds, rounded to hundredths.
pub(crate) fn micros(seconds: f64) -> f64 {
    (seconds * 1e8).round() / 1e2
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from  {}", self.from)?;
        writeln!(f, "to    {}", self.to)?;
        writeln!(f, "over  {}, elements of {} bytes, {}", self.from.mesh(), self.bytes, self.machine)?;
        for (at, step) in self.steps.iter().enumerate() {
            let most = step.traffic.most_received().saturating_mul(self.bytes);
            let all = step.traffic.moved().saturating_mul(self.bytes);
            let micros = micros(step.seconds);
            write!(f, "{:>4}  {}", at + 1, step.kind)?;
            if all > 0 {
                write!(f, ": a device receives up to {most} bytes, {all} in all, {micros} us at least")?;
            }
            writeln!(f)?;
            if at + 1 < self.steps.len() {
                writeln!(f, "      then {}", step.exchange.to())?;
            }
        }
        match self.why_more() {
            Some(why) => write!(f, "more  {why}"),
            None => write!(f, "No device receives more than it must."),
        }
    }
}
