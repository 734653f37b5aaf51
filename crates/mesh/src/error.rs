//! Errors of meshes, layouts and plans.
//!
//! As in the algebra, errors are data with a stable [code](MeshError::code); the sentence is
//! composed when one is printed.

use std::fmt;

use tilewright_layout::LayoutError;

/// Why there is no mesh, layout or plan, or why a plan was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MeshError {
    /// E1101: a text with invalid syntax.
    Syntax {
        /// The text.
        text: Box<str>,
        /// What was expected.
        expected: &'static str,
    },
    /// E1102: a mesh without axes, or with too many.
    Axes {
        /// The number of axes.
        axes: usize,
    },
    /// E1102: the name of an axis.
    Name {
        /// The name.
        name: Box<str>,
        /// Whether another axis has the same name.
        twice: bool,
    },
    /// E1102: an extent that is not positive, or too many devices.
    Devices {
        /// The axis.
        name: Box<str>,
        /// Its extent.
        extent: i64,
    },
    /// E1102: ranks that do not contain each number from 0 on exactly once.
    Ranks {
        /// The layout from coordinates to ranks.
        ranks: Box<str>,
        /// The rank that occurs twice, or is out of range.
        rank: i64,
        /// The number of devices.
        size: i64,
    },
    /// E1103: an axis that the mesh does not have.
    NoAxis {
        /// Its name.
        name: Box<str>,
        /// The mesh.
        mesh: Box<str>,
    },
    /// E1104: two elements at the same offset, or an offset that is out of range.
    Places {
        /// The layout.
        layout: Box<str>,
        /// The defect.
        flaw: Flaw,
    },
    /// E1105: an element that the tensor does not have.
    Element {
        /// The element.
        element: i64,
        /// The number of elements.
        size: i64,
    },
    /// E1105: two layouts of different tensors.
    Shapes {
        /// The extents of the modes of one tensor.
        from: Vec<i64>,
        /// The extents of the modes of the other tensor.
        to: Vec<i64>,
    },
    /// E1105: two layouts over different meshes.
    Meshes {
        /// One mesh.
        from: Box<str>,
        /// The other.
        to: Box<str>,
    },
    /// E1106: a mode that cannot be cut into equal parts.
    Uneven {
        /// The mode.
        mode: usize,
        /// Its size.
        size: i64,
        /// The number of parts that was asked for.
        parts: i64,
    },
    /// E1106: an extent of a mode that its leaves cannot have.
    Size {
        /// The layout.
        layout: Box<str>,
        /// The mode.
        mode: usize,
        /// The reason.
        why: &'static str,
    },
    /// E1107: a layout that a framework cannot express.
    Unwritten {
        /// The form in which it cannot be expressed.
        form: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// E1108: too many messages or positions.
    TooLarge {
        /// The quantity that is too large.
        what: &'static str,
        /// The greatest possible number.
        limit: i64,
    },
    /// E1109: memory that is smaller than the layout requires.
    Memory {
        /// The rank.
        rank: usize,
        /// The number of elements that it has.
        elements: usize,
        /// The number of elements that the layout requires.
        needed: i64,
    },
    /// E1110: a process that is about to carry out something else.
    Differs {
        /// Its rank.
        rank: usize,
        /// The property that differs.
        what: Box<str>,
        /// The value of the first process.
        own: Box<str>,
        /// The value of that process.
        other: Box<str>,
    },
    /// E1110: the number of processes differs from the number of devices.
    Processes {
        /// The number of processes.
        processes: usize,
        /// The number of devices of the mesh.
        devices: usize,
    },
    /// E1111: a process that has exited or does not respond.
    Lost {
        /// Its rank.
        rank: usize,
        /// The current step.
        step: Box<str>,
        /// What is known about the loss.
        why: Box<str>,
    },
    /// E1111: processes that did not connect.
    Absent {
        /// Their ranks.
        ranks: Vec<usize>,
        /// How long the others waited for them, and which other connections were made.
        why: Box<str>,
    },
    /// E1112: a job token that is missing, invalid, or different.
    Token {
        /// The defect.
        what: Box<str>,
    },
    /// E1112: a process whose environment does not specify its rank.
    Environment {
        /// What is missing or wrong.
        what: Box<str>,
    },
    /// E1113: a process without enough memory.
    OutOfMemory {
        /// Its rank.
        rank: usize,
        /// The current step.
        step: Box<str>,
        /// The number of bytes that were requested.
        bytes: usize,
    },
    /// E1114: a process that was interrupted.
    Interrupted {
        /// Its rank.
        rank: usize,
        /// The current step.
        step: Box<str>,
    },
    /// E1115: the library that transports bytes between processes is missing or unsupported.
    Engine {
        /// The library, and the problem.
        what: Box<str>,
    },
    /// E1116: an operation that does not fit its operands.
    Operation {
        /// The reason.
        what: Box<str>,
    },
    /// An operation of the algebra refused.
    Layout(LayoutError),
}

/// A defect of the offsets of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// A step that is not positive.
    Backwards,
    /// A mode along an axis that the mesh does not have.
    NoAxis,
    /// Steps beyond the last device of an axis.
    Outside {
        /// The axis.
        axis: Box<str>,
        /// The number of devices along it.
        extent: i64,
    },
    /// Two positions at the same place.
    Shared {
        /// The axis along which they coincide, or `offsets`.
        along: Box<str>,
    },
}

tilewright_layout::refusal! {
    MeshError from Layout:
    Syntax "E1101", Axes "E1102", Name "E1102", Devices "E1102", Ranks "E1102", NoAxis "E1103",
    Places "E1104", Element "E1105", Shapes "E1105", Meshes "E1105", Uneven "E1106", Size "E1106",
    Unwritten "E1107", TooLarge "E1108", Memory "E1109", Differs "E1110", Processes "E1110",
    Lost "E1111", Absent "E1111", Environment "E1112", Token "E1112", OutOfMemory "E1113",
    Interrupted "E1114", Engine "E1115", Operation "E1116",
}

impl MeshError {
    /// What would help, as a sentence; None if the message is complete.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            MeshError::Ranks { .. } => "leave the strides out, and the first axis is fastest",
            MeshError::Places { flaw: Flaw::Shared { .. }, .. } => {
                "let each mode along an axis step over those before it, or say `copied` for replicated elements"
            }
            MeshError::Shapes { .. } => "both layouts must be of one tensor: the same size, mode by mode",
            MeshError::Uneven { .. } => "pad the mode to a multiple of the parts",
            MeshError::Differs { .. } => "start every process with the same program and the same arguments",
            MeshError::Processes { .. } => {
                "start one process for each device: `tilewright launch -n`, mpirun, torchrun"
            }
            MeshError::Environment { .. } => "start it by `tilewright launch -n 2 -- ...`, mpirun, srun or torchrun",
            MeshError::Token { .. } => {
                "give every process of the job the same TILEWRIGHT_TOKEN in its environment, 8 to 256 characters that \
                 nobody can guess, such as `openssl rand -hex 16` prints; `tilewright launch` does that by itself"
            }
            MeshError::OutOfMemory { .. } => "cut the tensor along more devices, or start fewer processes on a machine",
            MeshError::Engine { .. } => {
                "install what is missing, Open MPI 4 or 5 (`apt-get install openmpi-bin`) or NCCL 2.7 or later, or let \
                 sockets connect them"
            }
            MeshError::Layout(error) => return error.help(),
            _ => return None,
        };
        Some(help.to_owned())
    }
}

impl fmt::Display for MeshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeshError::Syntax { text, expected } => write!(f, "expected {expected}, not `{text}`"),
            MeshError::Axes { axes } => {
                write!(f, "a mesh has from 1 to {} axes, not {axes}", crate::limits::MAX_AXES)
            }
            MeshError::Name { name, twice: true } => write!(f, "two axes have the name `{name}`"),
            MeshError::Name { name, twice: false } => {
                write!(f, "`{name}` is no name of an axis: letters, digits and `_`, not beginning with a digit")
            }
            MeshError::Devices { name, extent } if *extent < 1 => write!(f, "axis {name} has {extent} devices"),
            MeshError::Devices { name, .. } => {
                write!(f, "with axis {name} the mesh has more than {} devices", crate::limits::MAX_DEVICES)
            }
            MeshError::Ranks { ranks, rank, size } => {
                write!(f, "{ranks} does not number {size} devices: rank {rank} occurs twice, or is out of range")
            }
            MeshError::NoAxis { name, mesh } => write!(f, "mesh {mesh} has no axis `{name}`"),
            MeshError::Places { layout, flaw } => write!(f, "{layout}: {flaw}"),
            MeshError::Element { element, size } => write!(f, "element {element} of a tensor that has {size}"),
            MeshError::Shapes { from, to } => {
                write!(f, "these are layouts of different tensors, with modes of sizes {from:?} and {to:?}")
            }
            MeshError::Meshes { from, to } => write!(f, "one layout is over mesh {from}, the other over {to}"),
            MeshError::Uneven { mode, size, parts } => {
                write!(f, "mode {mode} has {size} elements, which cannot be cut into {parts} equal parts")
            }
            MeshError::Size { layout, mode, why } => write!(f, "{layout}: mode {mode} cannot have that size: {why}"),
            MeshError::Unwritten { form, why } => write!(f, "no {form} says this: {why}"),
            MeshError::TooLarge { what, limit } => write!(f, "there are more than {limit} {what}"),
            MeshError::Memory { rank, elements, needed } => {
                write!(f, "rank {rank} has memory for {elements} elements, and the layout needs {needed}")
            }
            MeshError::Differs { rank, what, own, other } => {
                write!(f, "rank {rank} has another {what}: {other}, where rank 0 has {own}")
            }
            MeshError::Processes { processes, devices } => {
                write!(f, "a mesh of {devices} devices needs as many processes or GPUs, not {processes}")
            }
            MeshError::Lost { rank, step, why } => write!(f, "rank {rank} is lost, {step}: {why}"),
            MeshError::Absent { ranks, why } => match ranks.as_slice() {
                [rank] => write!(f, "rank {rank} {why}"),
                ranks => {
                    let named: Vec<String> = ranks.iter().take(16).map(usize::to_string).collect();
                    let more = match ranks.len().saturating_sub(named.len()) {
                        0 => String::new(),
                        more => format!(" and {more} more"),
                    };
                    write!(f, "ranks {}{more} {why}", named.join(", "))
                }
            },
            MeshError::OutOfMemory { rank, step, bytes } => {
                write!(f, "rank {rank} has no memory for {bytes} bytes more, {step}")
            }
            MeshError::Interrupted { rank, step } => write!(f, "rank {rank} was interrupted, {step}"),
            MeshError::Engine { what } | MeshError::Operation { what } | MeshError::Token { what } => f.write_str(what),
            MeshError::Environment { what } => write!(f, "this process does not know its rank: {what}"),
            MeshError::Layout(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Backwards => f.write_str("a mode with several positions has a step that is not positive"),
            Flaw::NoAxis => f.write_str("a mode steps along an axis that the mesh does not have"),
            Flaw::Outside { axis, extent } => write!(f, "steps along {axis} leave its {extent} positions"),
            Flaw::Shared { along } => write!(f, "two positions coincide: steps along {along} coincide"),
        }
    }
}
