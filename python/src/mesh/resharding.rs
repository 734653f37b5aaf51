//! Plans between layouts, and what each process does in them, as numbers: what it sends, what it
//! receives, and where that belongs.

use pyo3::prelude::*;
use tilewright_mesh::{Message, Plan, PlannedStep, ShardedLayout};

use super::{Sharded, refused};

/// Elements of a message as views of memory: offsets at which runs begin, in the memory that is
/// read and in that written, and the modes of each run, the outermost first: extent, step in the
/// memory that is read, step in that written.
type Views = (Vec<(i64, i64)>, Vec<(i64, i64, i64)>);

/// A step: its name, how many elements of memory this process has after it, whether every one of
/// them is written, what it sends to which rank, and from which rank something comes that belongs
/// somewhere, and whether it is added there.
type Step = (String, i64, bool, Vec<(usize, Views)>, Vec<(usize, bool, Views)>);

/// What a process has of one mode: its first position, and for each loop over positions the
/// extent, the step of the position and that of the offset, the innermost first.
pub(super) type Mode = (i64, Vec<(i64, i64, i64)>);

/// The views of a message, in the order of the sender's addresses.
fn views(message: Message) -> Views {
    let mut modes = message.footprint.modes;
    modes.retain(|(extent, ..)| *extent > 1);
    modes.sort_by_key(|(_, read, _)| std::cmp::Reverse(*read));
    (message.footprint.starts, modes)
}

/// How a tensor gets from one layout over a mesh to another.
#[pyclass(frozen, module = "tilewright")]
pub struct Resharding {
    pub(super) plan: Plan,
}

#[pymethods]
impl Resharding {
    /// The layout before.
    #[getter]
    fn before(&self) -> Sharded {
        Sharded { layout: self.plan.from().clone() }
    }

    /// The layout after.
    #[getter]
    fn after(&self) -> Sharded {
        Sharded { layout: self.plan.to().clone() }
    }

    /// What all processes have to agree on before they carry out the plan.
    #[getter]
    fn contract(&self) -> String {
        self.plan.contract()
    }

    /// What the process of a rank does: for each step what it is called, how many elements of
    /// memory the process has after it and whether all of them are written; the messages that it
    /// sends, to whom, and those that it puts in place, from whom, and whether they are added. A
    /// message has the offsets at which runs begin, pairs of where it is read and where it is
    /// written, and the modes of each run, outermost first: extent, and the steps on both sides.
    fn steps(&self, py: Python<'_>, rank: usize) -> Vec<Step> {
        py.detach(|| self.plan.steps().iter().map(|step| of_step(step, rank)).collect())
    }

    /// What each step is called: "all-gather" and so on.
    #[getter]
    fn kinds(&self) -> Vec<String> {
        self.plan.steps().iter().map(|step| step.kind.to_string()).collect()
    }

    /// The time that the links need by the model, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.plan.seconds()
    }

    /// How many bytes a device receives.
    fn received(&self, rank: usize) -> i64 {
        self.plan.received(rank)
    }

    /// How many bytes a device has to receive whatever the plan is.
    fn least(&self, rank: usize) -> i64 {
        self.plan.least(rank)
    }

    /// The memory of each device after the plan, from what each has before, computed in this
    /// process in f64.
    fn simulate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::convert::lists)] memory: Vec<Vec<f64>>,
    ) -> PyResult<Vec<Vec<f64>>> {
        py.detach(|| self.plan.simulate(&memory)).map_err(refused(py))
    }

    fn __str__(&self) -> String {
        self.plan.to_string().trim_end().to_owned()
    }

    fn __repr__(&self) -> String {
        format!("<plan of {}, {} to {}>", self.kinds().join(", "), self.plan.from(), self.plan.to())
    }
}

fn of_step(step: &PlannedStep, rank: usize) -> Step {
    let exchange = &step.exchange;
    let own = exchange.messages_to(rank);
    let written: i64 = own.iter().filter(|message| !message.add).map(|message| message.footprint.size()).sum();
    let others = (0..exchange.from().mesh().size()).filter(|other| *other != rank);
    let sent = others.flat_map(|other| exchange.messages_to(other)).filter(|message| message.from == rank);
    let reach = exchange.to().reach();
    (
        step.kind.to_string(),
        reach,
        written == reach,
        sent.map(|message| (message.to, views(message))).collect(),
        own.into_iter().map(|message| (message.from, message.add, views(message))).collect(),
    )
}

/// What a process has of a tensor: the offset of its first element, and each mode; none where it
/// has nothing.
pub(super) fn part(layout: &ShardedLayout, rank: usize) -> Option<(i64, Vec<Mode>)> {
    let part = layout.part(rank)?;
    let modes = part.modes.into_iter().map(|mode| {
        let runs = mode.runs.iter().map(|run| (run.extent, run.index, run.offset));
        (mode.first, runs.collect())
    });
    Some((part.start, modes.collect()))
}
