//! Errors.
//!
//! As in the layout algebra, errors are data with a stable [code](GpuError::code); the text is made
//! when an error is printed. Reports of the driver are quoted.

use std::fmt;

use tilewright_kernel::interpret::SetupError;
use tilewright_kernel::ptx::PtxError;
use tilewright_layout::atoms::AtomError;
use tilewright_layout::{LayoutError, Refusal, from_variants};
use tilewright_tensor::TensorError;
use tilewright_tile::TileError;

use crate::status::{Status, version_text};

/// An error whose variants are errors of parts: its text is that of the part.
macro_rules! one_of {
    ($(#[$about:meta])* $error:ident { $($(#[$what:meta])* $variant:ident($part:ty),)+ }) => {
        $(#[$about])*
        #[non_exhaustive]
        pub enum $error {
            $($(#[$what])* $variant($part),)+
        }

        tilewright_layout::from_variants!($error: $($variant($part)),+);

        impl std::fmt::Display for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($error::$variant(part) => part.fmt(f),)+
                }
            }
        }

        impl std::error::Error for $error {}
    };
}
pub(crate) use one_of;

/// The code and the help of an error are those of the error that it holds.
macro_rules! refused_by {
    ($error:ident: $($variant:ident),+) => {
        impl tilewright_layout::Refusal for $error {
            fn code(&self) -> &'static str {
                match self {
                    $($error::$variant(part) => tilewright_layout::Refusal::code(part),)+
                }
            }

            fn help(&self) -> Option<String> {
                match self {
                    $($error::$variant(part) => tilewright_layout::Refusal::help(part),)+
                }
            }
        }
    };
}
pub(crate) use refused_by;

/// Why an operation on a device failed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum GpuError {
    /// E0801: this machine has no driver.
    NoDriver {
        /// The attempts to open it, and the system's messages.
        reasons: Vec<String>,
    },
    /// E0802: the driver is too old.
    OldDriver {
        /// Its version, in the driver's notation: 12040 is that of CUDA 12.4.
        found: i32,
        /// The oldest supported version; 0 if it is not known.
        needed: i32,
        /// The function that it lacks; None if the version is decisive.
        missing: Option<&'static str>,
    },
    /// E0803: there is no such device.
    NoDevice {
        /// The requested number; None if there is no device at all.
        ordinal: Option<usize>,
        /// The number of devices.
        count: usize,
    },
    /// E0804: a kernel for another architecture.
    Architecture {
        /// The target of the kernel, such as `sm_90a`; None for machine code.
        target: Option<Box<str>>,
        /// The device.
        device: Box<str>,
        /// Its compute capability.
        capability: (u32, u32),
    },
    /// E0805: too little device memory is free.
    OutOfMemory {
        /// The requested bytes.
        bytes: u64,
        /// The free bytes and all bytes of the device; None if the driver did not report them.
        left: Option<(u64, u64)>,
    },
    /// E0806: the device is lost to this process, because of an earlier failure.
    DeviceLost {
        /// The function of the driver that reported it first.
        call: &'static str,
        /// The driver's report.
        status: Status,
        /// The launches that were not known to be complete at that time.
        unfinished: Unfinished,
    },
    /// E0807: a launch was refused, or a kernel failed while it ran.
    LaunchFailed {
        /// The launch that was refused; None if a kernel failed later.
        refused: Option<Box<str>>,
        /// The unfinished launches. One of them failed.
        unfinished: Unfinished,
        /// The driver's report.
        status: Status,
    },
    /// E0808: a PTX text does not compile.
    Compile {
        /// The log of errors.
        errors: Box<str>,
        /// The log of notes.
        notes: Box<str>,
        /// The driver's report.
        status: Status,
    },
    /// E0809: the bytes are no complete machine code.
    MachineCode {
        /// The defect, as text.
        what: &'static str,
        /// The number of bytes.
        bytes: usize,
    },
    /// E0810: notes of the compiler that mean that a kernel is slow.
    Notes {
        /// The notes.
        notes: Vec<Box<str>>,
    },
    /// E0811: the module has no kernel with this name.
    NoEntry {
        /// Its name.
        entry: Box<str>,
    },
    /// E0812: the list of parameters differs from the kernel's, or the arguments differ from the
    /// list.
    Arguments {
        /// The kernel.
        kernel: Box<str>,
        /// The position, from 0, and the name of the parameter; None if the number of parameters is
        /// wrong.
        parameter: Option<(usize, Box<str>)>,
        /// The expected argument, as text.
        wanted: Box<str>,
        /// The passed argument, as text.
        found: Box<str>,
    },
    /// E0813: the memory is too small for a parameter, or misaligned.
    Memory {
        /// The kernel.
        kernel: Box<str>,
        /// The name of the parameter.
        parameter: Box<str>,
        /// The defect.
        flaw: MemoryFlaw,
    },
    /// E0814: an object of another device.
    OtherDevice {
        /// The object, as text.
        what: Box<str>,
        /// The number of the object's device.
        found: usize,
        /// The number of the expected device.
        wanted: usize,
    },
    /// E0815: a kernel writes memory through one parameter and accesses it through another.
    Aliasing {
        /// The kernel.
        kernel: Box<str>,
        /// The names of the parameters.
        parameters: (Box<str>, Box<str>),
    },
    /// E0816: sizes that a launch cannot have.
    LaunchSize {
        /// The kernel.
        kernel: Box<str>,
        /// The defect.
        flaw: SizeFlaw,
    },
    /// E0817: a tensor map that the hardware does not support.
    TensorMap {
        /// The defect, as text.
        what: &'static str,
        /// The value that is wrong.
        value: i64,
    },
    /// E0818: the layouts of a host tensor and a device tensor differ.
    Layouts {
        /// The layout on the device.
        device: Box<str>,
        /// The layout on the host.
        host: Box<str>,
    },
    /// E0821: a call in a process that was forked after the driver was opened.
    Forked,
    /// E0820: the layout of a tensor differs from the kernel's.
    Layout {
        /// The kernel.
        kernel: Box<str>,
        /// The name of the tensor in the kernel.
        parameter: Box<str>,
        /// The kernel's layout of the tensor, at the sizes of the launch.
        wanted: Box<str>,
        /// The layout of the tensor.
        found: Box<str>,
    },
    /// E0819: another refusal by the driver.
    Driver {
        /// The function of the driver.
        call: &'static str,
        /// The driver's report.
        status: Status,
    },
    /// E0822: an object of another context than the primary one of the device.
    OtherContext {
        /// The object, as text.
        what: Box<str>,
        /// The device.
        device: usize,
    },
    /// E0823: uses of memory that nothing would order.
    Unordered {
        /// The memory, as text.
        what: Box<str>,
        /// Why.
        because: Box<str>,
    },
    /// The kernel cannot be written as PTX for the device.
    Ptx(PtxError),
    /// The kernel refused its sizes.
    Sizes(SetupError),
    /// A tensor operation failed.
    Tensor(TensorError),
    /// An operation on hardware layouts failed.
    Atom(AtomError),
    /// A tile program, or an argument of a sequence, is refused.
    Tile(Box<TileError>),
}

/// Launches that are not known to be complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// The last of them on each stream, in order: the name of the kernel and its sizes.
    pub launches: Vec<Box<str>>,
    /// The number of earlier launches.
    pub earlier: u64,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for launch in &self.launches {
            write!(f, "{}{launch}", std::mem::replace(&mut before, "; "))?;
        }
        if self.earlier > 0 { write!(f, "; and {} before these", self.earlier) } else { Ok(()) }
    }
}

/// A defect in the sizes of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SizeFlaw {
    /// An extent is 0.
    Zero {
        /// The quantity, as text.
        what: &'static str,
    },
    /// A number is greater than its limit.
    Above {
        /// The quantity, as text.
        what: &'static str,
        /// The value.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Clusters do not divide the grid.
    Cluster {
        /// The mode: 0 is x.
        mode: usize,
        /// The extent of the grid.
        grid: u32,
        /// The extent of the cluster.
        cluster: u32,
    },
    /// The kernel was compiled for other clusters.
    OtherCluster {
        /// The extents that it was compiled for.
        wanted: [u32; 3],
    },
    /// The device does not support this.
    Unsupported {
        /// The feature, as text.
        what: &'static str,
    },
}

/// Three extents, printed in parentheses.
pub(crate) struct Extents(pub(crate) [u32; 3]);

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x},{y},{z})")
    }
}

impl fmt::Display for SizeFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeFlaw::Zero { what } => write!(f, "an extent of {what} is 0"),
            SizeFlaw::Above { what, found, limit } => write!(f, "{what} is {found}, and {limit} is the most"),
            SizeFlaw::Cluster { mode, grid, cluster } => {
                let axis = ["x", "y", "z"].get(*mode).unwrap_or(&"z");
                write!(f, "clusters of {cluster} do not divide the {grid} blocks along {axis}")
            }
            SizeFlaw::OtherCluster { wanted } => {
                write!(f, "the kernel was compiled for clusters of {}", Extents(*wanted))
            }
            SizeFlaw::Unsupported { what } => write!(f, "the device has no {what}"),
        }
    }
}

/// A defect in the memory of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFlaw {
    /// It has fewer bytes than the parameter needs.
    Small {
        /// The available bytes.
        bytes: u64,
        /// The required bytes.
        wanted: u64,
    },
    /// Its address is not a multiple of the required alignment.
    Misaligned {
        /// The address.
        address: u64,
        /// The required alignment in bytes.
        wanted: u64,
    },
}

tilewright_layout::refusal! {
    GpuError of Ptx of Sizes of Tensor of Atom of Tile:
    NoDriver "E0801", OldDriver "E0802", NoDevice "E0803", Architecture "E0804",
    OutOfMemory "E0805", DeviceLost "E0806", LaunchFailed "E0807", Compile "E0808",
    MachineCode "E0809", Notes "E0810", NoEntry "E0811", Arguments "E0812", Memory "E0813",
    OtherDevice "E0814", Aliasing "E0815", LaunchSize "E0816", TensorMap "E0817", Layouts "E0818",
    Layout "E0820", Forked "E0821", OtherContext "E0822", Unordered "E0823", Driver "E0819",
}

impl GpuError {
    /// A hint on how to fix it, as a sentence; None if the message is complete.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            GpuError::NoDriver { .. } => "install the driver of the device; nothing else is needed",
            GpuError::OldDriver { .. } => "install a newer driver",
            GpuError::NoDevice { ordinal: None, .. } => {
                "see whether CUDA_VISIBLE_DEVICES hides the devices, and whether this process may open \
                 /dev/nvidia*"
            }
            GpuError::NoDevice { .. } => "devices are counted from 0",
            GpuError::Architecture { target: Some(target), .. } if target.ends_with('a') => {
                "a target that ends in `a` runs on its own compute capability alone: compile for the device's, \
                 or for a lower one without `a`"
            }
            GpuError::Architecture { .. } => "compile for the compute capability of the device, or for a lower one",
            GpuError::OutOfMemory { .. } => "free unused memory, or use smaller tensors",
            GpuError::DeviceLost { .. } => {
                "drop everything that belongs to the device and open it again; if that fails too, start the \
                 program again"
            }
            GpuError::LaunchFailed { refused: None, .. } => {
                "synchronise after each launch to see which one it is; then open the device again"
            }
            GpuError::Notes { .. } => {
                "load the module without asking that there be no such notes, or change the kernel"
            }
            GpuError::NoEntry { .. } => "names of kernels follow `.entry` in the text",
            GpuError::Memory { flaw: MemoryFlaw::Misaligned { .. }, .. } => {
                "memory of its own begins at a multiple of 256 bytes: copy the tensor, or take a kernel with \
                 narrower accesses"
            }
            GpuError::Aliasing { .. } => "write to memory of its own, or take a kernel with one parameter for both",
            GpuError::Layouts { .. } => {
                "make the tensor on the host with the layout of the one on the device, and copy to it"
            }
            GpuError::Layout { .. } => {
                "give a tensor of that layout; or, to reinterpret the bytes, the memory of the tensor"
            }
            GpuError::Forked => {
                "start the process anew instead: in Python by multiprocessing's \"spawn\" or \"forkserver\"; or open \
                 devices in the forked process alone"
            }
            GpuError::OtherContext { .. } => {
                "make it in the primary context of the device, which the runtime of CUDA and most libraries share"
            }
            GpuError::Unordered { .. } => {
                "launch on the stream that the memory belongs to; give workspaces of a launch that is recorded, by \
                 their names"
            }
            GpuError::Ptx(error) => return Some(error.help()),
            GpuError::Sizes(error) => return Refusal::help(error),
            GpuError::Tensor(error) => return error.help(),
            GpuError::Atom(error) => return error.help(),
            GpuError::Tile(error) => return error.help(),
            _ => return None,
        };
        Some(help.into())
    }
}

from_variants!(GpuError: Ptx(PtxError), Sizes(SetupError), Tensor(TensorError), Atom(AtomError), Tile(TileError));

impl From<LayoutError> for GpuError {
    fn from(error: LayoutError) -> GpuError {
        GpuError::Tensor(TensorError::Layout(error))
    }
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuError::NoDriver { reasons } => {
                f.write_str("there is no CUDA driver on this machine")?;
                let mut before = ": ";
                reasons.iter().try_for_each(|reason| write!(f, "{}{reason}", std::mem::replace(&mut before, "; ")))
            }
            GpuError::OldDriver { found, missing: Some(missing), .. } => {
                write!(f, "the driver, of CUDA {}, has no function {missing}", version_text(*found))
            }
            GpuError::OldDriver { found, needed: 0, missing: None } => {
                write!(f, "the driver, of CUDA {}, does not know the `.version` of the text", version_text(*found))
            }
            GpuError::OldDriver { found, needed, missing: None } => {
                let (found, needed) = (version_text(*found), version_text(*needed));
                write!(f, "the driver is that of CUDA {found}, but {needed} is needed")
            }
            GpuError::NoDevice { ordinal: Some(ordinal), count } => {
                write!(f, "there is no device {ordinal}: there {}", Are(*count))
            }
            GpuError::NoDevice { ordinal: None, .. } => f.write_str("the driver sees no device"),
            GpuError::Architecture { target, device, capability: (major, minor) } => {
                let target = target.as_deref().unwrap_or("another kind of device");
                write!(f, "the kernel is for {target}, but {device} has compute capability {major}.{minor}")
            }
            GpuError::OutOfMemory { bytes, left: Some((free, total)) } => {
                write!(f, "{bytes} bytes of device memory were asked for, but {free} of {total} are free")
            }
            GpuError::OutOfMemory { bytes, left: None } => {
                write!(f, "{bytes} bytes of device memory were asked for, but are not there")
            }
            GpuError::DeviceLost { call, status, unfinished } => {
                write!(f, "the device is lost to this process: {call} said {status}")?;
                if unfinished.launches.is_empty() {
                    return Ok(());
                }
                write!(f, ". Not known to be done then: {unfinished}")
            }
            GpuError::LaunchFailed { refused: Some(launch), status, .. } => {
                write!(f, "the launch of {launch} was refused: the driver said {status}")
            }
            GpuError::LaunchFailed { refused: None, unfinished, status } => {
                write!(f, "a kernel failed: the driver said {status}. Not known to be done: {unfinished}")
            }
            GpuError::Compile { errors, notes, status } => {
                write!(f, "the text was not compiled: the driver said {status}")?;
                let logs = [errors, notes].into_iter().filter(|log| !log.is_empty());
                logs.into_iter().try_for_each(|log| write!(f, "\n{log}"))
            }
            GpuError::MachineCode { what, bytes } => {
                write!(f, "these {bytes} bytes are no machine code that can be loaded: {what}")
            }
            GpuError::Notes { notes } => {
                f.write_str("the compiler gave up speed")?;
                notes.iter().try_for_each(|note| write!(f, "\n{note}"))
            }
            GpuError::NoEntry { entry } => write!(f, "the module has no kernel `{entry}`"),
            GpuError::Arguments { kernel, parameter: None, wanted, found } => {
                write!(f, "{kernel} has {wanted}, but the list has {found}")
            }
            GpuError::Arguments { kernel, parameter: Some((position, name)), wanted, found } => {
                write!(f, "parameter {position} of {kernel}, `{name}`, is {wanted}, but there is {found}")
            }
            GpuError::Memory { kernel, parameter, flaw: MemoryFlaw::Small { bytes, wanted } } => {
                write!(f, "`{parameter}` of {kernel} takes {wanted} bytes, but the memory has {bytes}")
            }
            GpuError::Memory { kernel, parameter, flaw: MemoryFlaw::Misaligned { address, wanted } } => {
                write!(f, "`{parameter}` of {kernel} is at address {address:#x}, which is no multiple of {wanted}")
            }
            GpuError::OtherDevice { what, found, wanted } => {
                write!(f, "{what} is of device {found}, but device {wanted} is wanted")
            }
            GpuError::Aliasing { kernel, parameters: (first, second) } => {
                write!(f, "`{first}` and `{second}` of {kernel} share memory, and one of them is written")
            }
            GpuError::LaunchSize { kernel, flaw } => write!(f, "{kernel} cannot be launched so: {flaw}"),
            GpuError::TensorMap { what, value } => write!(f, "there is no such tensor map: {what} {value}"),
            GpuError::Layouts { device, host } => {
                write!(f, "the tensor on the device has the layout {device}, that on the host {host}")
            }
            GpuError::Layout { kernel, parameter, wanted, found } => {
                write!(f, "`{parameter}` of {kernel} has the layout {wanted} at these sizes, but the tensor has {found}")
            }
            GpuError::Forked => f.write_str(
                "this process was forked after the CUDA driver was opened, and the driver does not work in a forked process",
            ),
            GpuError::OtherContext { what, device } => {
                write!(f, "{what} is of another context than the primary one of device {device}")
            }
            GpuError::Unordered { what, because } => {
                write!(f, "nothing would order the uses of {what}: {because}")
            }
            GpuError::Driver { call, status } => write!(f, "{call} was refused: the driver said {status}"),
            GpuError::Ptx(error) => error.fmt(f),
            GpuError::Sizes(error) => error.fmt(f),
            GpuError::Tensor(error) => error.fmt(f),
            GpuError::Atom(error) => error.fmt(f),
            GpuError::Tile(error) => error.fmt(f),
        }
    }
}

/// A number of devices, printed in a sentence.
struct Are(usize);

impl fmt::Display for Are {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("is none"),
            1 => f.write_str("is one"),
            count => write!(f, "are {count}"),
        }
    }
}
