//! How a tensor gets from one layout to another.
//!
//! Law: a plan is a chain of layouts that begins and ends with those that are given; between two
//! neighbours lies one [`Exchange`]. In one exchange nothing moves that need not, but for sums, and
//! but that one device may have to send much. So there are two plans to choose from: one exchange;
//! or two, with the copies of the result cut into parts in between, each part made on one device
//! and then gathered. The one that takes less time on the machine is taken.

use std::fmt;

use tilewright_layout::Tree;

use crate::error::MeshError;
use crate::machine::{Link, Machine};
use crate::sharded::{Along, MeshMode, Parts, ShardedLayout, Step};
use crate::step::{Exchange, Kind};
use crate::traffic::Traffic;

/// One step of a plan.
#[derive(Debug, Clone)]
pub struct PlannedStep {
    /// What moves.
    pub exchange: Exchange,
    /// What it is called.
    pub kind: Kind,
    /// How much moves.
    pub traffic: Traffic,
    /// The time that the machine's links need, in seconds.
    pub seconds: f64,
}

/// How a tensor gets from one layout to another.
#[derive(Debug, Clone)]
pub struct Plan {
    from: ShardedLayout,
    to: ShardedLayout,
    steps: Vec<PlannedStep>,
    bytes: i64,
    machine: Machine,
    /// How many elements each device has to receive whatever the plan is.
    least: Vec<i64>,
    added: i64,
}

/// The plan that takes a tensor of elements of `bytes` bytes from one layout to another.
///
/// Errors: as [`Exchange::new`]; elements without bytes.
///
/// ```
/// use tilewright_mesh::{Kind, Machine, Mesh, ShardedLayout, reshard};
///
/// let mesh: Mesh = "tp=8".parse().unwrap();
/// let sums = ShardedLayout::parse(&mesh, "1048576:1 summed 8:1@tp").unwrap();
/// let whole = ShardedLayout::parse(&mesh, "1048576:1 copied 8:1@tp").unwrap();
/// let plan = reshard(&sums, &whole, 4, &Machine::HGX_H200).unwrap();
/// let kinds: Vec<Kind> = plan.steps().iter().map(|step| step.kind).collect();
/// assert_eq!(kinds, [Kind::ReduceScatter, Kind::AllGather]);
/// // 7/8 of the tensor in each step.
/// assert_eq!(plan.received(0), 2 * 7 * 1048576 / 8 * 4);
/// ```
pub fn reshard(from: &ShardedLayout, to: &ShardedLayout, bytes: i64, machine: &Machine) -> Result<Plan, MeshError> {
    if bytes < 1 {
        return Err(MeshError::Syntax { text: bytes.to_string().into(), expected: "elements of 1 byte or more" });
    }
    let direct = planned(from, to, bytes, machine)?;
    let added = direct.exchange.added();
    let must = |received: i64| if added > 1 && received > 0 { to.local_size() } else { received };
    let least = direct.traffic.ranks().map(|rank| must(rank.received)).collect();
    let mut steps = vec![direct];
    if let Some(parted) = parted(to)?.filter(|_| steps.iter().any(|step| step.traffic.moved() > 0)) {
        let two = [planned(from, &parted, bytes, machine)?, planned(&parted, to, bytes, machine)?];
        let seconds: f64 = two.iter().map(|step| step.seconds).sum();
        if steps.iter().all(|step| seconds < step.seconds * (1.0 - 1e-9)) {
            steps = two.into_iter().filter(|step| step.kind != Kind::Nothing).collect();
        }
    }
    let (from, to) = (from.clone(), to.clone());
    Ok(Plan { from, to, steps, bytes, machine: *machine, least, added })
}

fn planned(from: &ShardedLayout, to: &ShardedLayout, bytes: i64, machine: &Machine) -> Result<PlannedStep, MeshError> {
    let exchange = Exchange::new(from, to)?;
    let traffic = exchange.traffic();
    let kind = exchange.kind_of(&traffic);
    let seconds = exchange.seconds(bytes, machine);
    Ok(PlannedStep { exchange, kind, traffic, seconds })
}

/// The layout in which the copies of this one hold a part each; none where there are no copies, or
/// no mode can be cut.
fn parted(to: &ShardedLayout) -> Result<Option<ShardedLayout>, MeshError> {
    // The leaves of each mode; that which lies furthest apart in memory is cut first, so that
    // what a device holds stays in one piece.
    let mut modes: Vec<Vec<(i64, Step)>> = to.elements.modes().map(|mode| mode.leaves().to_vec()).collect();
    let mut copies = Vec::new();
    for mode in &to.copies {
        let mut left = *mode;
        while left.extent > 1 {
            let leaves = modes.iter_mut().flat_map(|leaves| {
                let local = |leaf: &(i64, Step)| leaf.1.along == Along::Offset;
                let places: Vec<_> = (0..leaves.len()).filter(|at| leaves.get(*at).is_some_and(local)).collect();
                places
                    .into_iter()
                    .filter_map(|at| Some((leaves.get(at)?.1.by, at)))
                    .max()
                    .map(|(by, at)| (by, at, leaves))
            });
            let cut = leaves
                .filter_map(|(by, at, leaves)| {
                    let parts = common_divisor(leaves.get(at)?.0, left.extent);
                    (parts > 1).then_some((by, at, parts, leaves))
                })
                .max_by_key(|(by, ..)| *by);
            let Some((_, at, parts, leaves)) = cut else { break };
            if let Some(leaf) = leaves.get_mut(at) {
                leaf.0 /= parts;
            }
            leaves.insert(at + 1, (parts, Step { by: left.step, along: Along::Axis(left.axis) }));
            left = MeshMode { extent: left.extent / parts, step: left.step * parts, ..left };
        }
        copies.push(left);
    }
    if copies == to.copies {
        return Ok(None);
    }
    let trees = modes.iter().map(|leaves| match leaves.as_slice() {
        [only] => Ok(Tree::leaf(*only)),
        leaves => Tree::flat(leaves.iter().copied()),
    });
    let trees = trees.collect::<Result<Vec<_>, _>>()?;
    let elements = Tree::tuple(trees.iter())?;
    ShardedLayout::new(&to.mesh, Parts { elements, copies, ..to.parts() }).map(Some)
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl Exchange {
    /// The time that the links of a machine need for this step, for elements of `bytes` bytes.
    pub fn seconds(&self, bytes: i64, machine: &Machine) -> f64 {
        // For each rank, sent and received inside of its node and beyond.
        let mut counts = vec![[0_i64; 4]; self.from().mesh().size()];
        self.each_flow(|from, to, count| {
            let beyond = if machine.same_node(from, to) { 0 } else { 2 };
            counts.iter_mut().skip(from).take(1).for_each(|rank| rank[beyond] += count);
            counts.iter_mut().skip(to).take(1).for_each(|rank| rank[beyond + 1] += count);
        });
        let time = |sent: i64, received: i64, link: &Link| sent.max(received) as f64 * bytes as f64 / link.rate;
        let of_rank = |[sent, received, far_sent, far_received]: &[i64; 4]| {
            time(*sent, *received, &machine.inside).max(time(*far_sent, *far_received, &machine.between))
        };
        let used = |pair: &dyn Fn(&[i64; 4]) -> i64| counts.iter().any(|rank| pair(rank) > 0);
        let inside = if used(&|rank| rank[0]) { machine.inside.latency } else { 0.0 };
        let between = if used(&|rank| rank[2]) { machine.between.latency } else { 0.0 };
        inside.max(between) + counts.iter().map(of_rank).fold(0.0, f64::max)
    }
}

impl Plan {
    /// The layout before.
    pub fn from(&self) -> &ShardedLayout {
        &self.from
    }

    /// The layout after.
    pub fn to(&self) -> &ShardedLayout {
        &self.to
    }

    /// The steps.
    pub fn steps(&self) -> &[PlannedStep] {
        &self.steps
    }

    /// How many bytes a device receives.
    pub fn received(&self, rank: usize) -> i64 {
        let of_step = |step: &PlannedStep| step.traffic.ranks().nth(rank).map_or(0, |rank| rank.received);
        self.steps.iter().map(of_step).sum::<i64>() * self.bytes
    }

    /// How many bytes a device has to receive whatever the plan is: what it will hold and does not
    /// hold yet; of sums, as much as it will hold.
    pub fn least(&self, rank: usize) -> i64 {
        self.least.get(rank).copied().unwrap_or(0) * self.bytes
    }

    /// The time that the machine's links need, in seconds.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.seconds).sum()
    }

    /// Why some device receives more than it must; none where none does.
    pub fn why_more(&self) -> Option<String> {
        let size = self.from.mesh().size();
        let more = (0..size).find(|rank| self.received(*rank) > self.least(*rank))?;
        let (received, least) = (self.received(more), self.least(more));
        let why = match (self.added > 1, self.steps.len()) {
            (true, 1) => {
                format!("a sum of {} summands is made where it is needed, from all that lie elsewhere", self.added)
            }
            (true, _) => {
                "the sums are made in parts, one for each copy, and gathered; in one step more would move".to_owned()
            }
            _ => "what one device would send several times goes out in parts, which all then gather".to_owned(),
        };
        Some(format!("rank {more} receives {received} bytes and must receive {least} at least: {why}"))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "from  {}", self.from)?;
        writeln!(f, "to    {}", self.to)?;
        writeln!(f, "over  {}, elements of {} bytes, {}", self.from.mesh(), self.bytes, self.machine)?;
        for (at, step) in self.steps.iter().enumerate() {
            let most = step.traffic.most_received().saturating_mul(self.bytes);
            let all = step.traffic.moved().saturating_mul(self.bytes);
            let micros = (step.seconds * 1e8).round() / 1e2;
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
