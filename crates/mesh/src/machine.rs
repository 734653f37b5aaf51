//! The cost of a step on a given machine.
//!
//! Law: a device sends and receives at the same time, by one link inside its node and by another to
//! other nodes, each at its rate. A step takes the time of its slowest device, plus one latency of
//! the slowest link that it uses. So the time is a lower bound by these links, and not a
//! measurement.

use std::fmt;
use std::str::FromStr;

use crate::error::MeshError;

/// A link of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The time of an empty message, in seconds.
    pub latency: f64,
    /// Bytes per second, in each direction.
    pub rate: f64,
}

/// A cluster: devices in nodes, and their links.
///
/// It is written `8 x 450 GB/s 5 us, 50 GB/s 10 us`: the number of devices of a node, the link
/// between devices of a node, and the link of each device to other nodes. Without the second part
/// there is one node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// The number of devices of a node, which have consecutive ranks.
    pub node: usize,
    /// The link between devices of a node.
    pub inside: Link,
    /// The link of a device to other nodes.
    pub between: Link,
}

impl Machine {
    /// Nodes of eight H200 at their published rates: fourth-generation NVLink, 450 GB/s in each
    /// direction, and InfiniBand NDR, 50 GB/s for each device. The latencies, 5 and 10
    /// microseconds, are assumed.
    pub const HGX_H200: Machine =
        Machine { node: 8, inside: Link { latency: 5e-6, rate: 450e9 }, between: Link { latency: 10e-6, rate: 50e9 } };

    /// Whether two ranks are in the same node.
    pub fn same_node(&self, one: usize, other: usize) -> bool {
        one / self.node.max(1) == other / self.node.max(1)
    }
}

/// The traffic of each device over its links in a step, in elements.
pub(crate) struct Load<'a> {
    machine: &'a Machine,
    /// For each rank: the elements sent and received inside of its node, and those sent to and
    /// received from other nodes.
    ranks: Vec<[i64; 4]>,
}

impl Load<'_> {
    pub fn new(machine: &Machine, ranks: usize) -> Load<'_> {
        Load { machine, ranks: vec![[0; 4]; ranks] }
    }

    pub fn note(&mut self, from: usize, to: usize, count: i64) {
        if from != to {
            let beyond = if self.machine.same_node(from, to) { 0 } else { 2 };
            self.ranks.iter_mut().skip(from).take(1).for_each(|rank| rank[beyond] += count);
            self.ranks.iter_mut().skip(to).take(1).for_each(|rank| rank[beyond + 1] += count);
        }
    }

    /// The time that the links take, for elements of `bytes` bytes.
    pub fn seconds(&self, bytes: i64) -> f64 {
        let Machine { inside, between, .. } = self.machine;
        let time = |sent: i64, received: i64, link: &Link| sent.max(received) as f64 * bytes as f64 / link.rate;
        let of_rank = |[sent, received, far_sent, far_received]: &[i64; 4]| {
            time(*sent, *received, inside).max(time(*far_sent, *far_received, between))
        };
        let latency = |sent: usize, link: &Link| {
            let used = self.ranks.iter().any(|rank| rank.get(sent).is_some_and(|sent| *sent > 0));
            if used { link.latency } else { 0.0 }
        };
        latency(0, inside).max(latency(2, between)) + self.ranks.iter().map(of_rank).fold(0.0, f64::max)
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = |f: &mut fmt::Formatter<'_>, link: &Link| {
            write!(f, "{} GB/s {} us", link.rate / 1e9, (link.latency * 1e9).round() / 1e3)
        };
        write!(f, "{} x ", self.node)?;
        link(f, &self.inside)?;
        f.write_str(", ")?;
        link(f, &self.between)
    }
}

impl FromStr for Machine {
    type Err = MeshError;

    /// Parses the printed form, or the name `hgx-h200`.
    fn from_str(text: &str) -> Result<Machine, MeshError> {
        if text.trim() == "hgx-h200" {
            return Ok(Machine::HGX_H200);
        }
        let expected = "hgx-h200, or a machine such as `8 x 450 GB/s 5 us, 50 GB/s 10 us`";
        let fail = || MeshError::Syntax { text: text.trim().into(), expected };
        let (node, links) = text.split_once('x').ok_or_else(fail)?;
        let node = node.trim().parse::<usize>().ok().filter(|node| *node > 0).ok_or_else(fail)?;
        let link = |text: &str| {
            let (rate, latency) = text.trim().split_once("GB/s")?;
            let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            let rate = number(rate).filter(|rate| *rate > 0.0)? * 1e9;
            let latency = number(latency.trim().strip_suffix("us")?).filter(|latency| *latency >= 0.0)? * 1e-6;
            Some(Link { latency, rate })
        };
        let (inside, between) = links.split_once(',').map_or((links, links), |parts| parts);
        Ok(Machine { node, inside: link(inside).ok_or_else(fail)?, between: link(between).ok_or_else(fail)? })
    }
}
