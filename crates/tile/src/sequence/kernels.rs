//! Kernels of a sequence: what a caller passes, and which of it each kernel uses.
//!
//! Law: each kernel gets the sizes and the tensors that its program names, and no others. Some
//! kernel uses everything that the caller passes, and everything that a kernel uses is passed or is
//! a workspace. A tensor has as many bytes as the kernel that accesses it farthest needs.
//! Workspaces are disjoint parts of one block of memory, each aligned to [`ALIGNMENT_BYTES`].

use tilewright_kernel::interpret::SetupError;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::scalar::Scalar;
use tilewright_kernel::{Element, Kernel, LaunchArguments};

use super::{Sequence, SequenceTensor, TensorPurpose};
use crate::error::{Reason, TileError};

/// The alignment of a workspace, which is enough for every kernel.
const ALIGNMENT_BYTES: u64 = 256;

/// The result of [`Sequence::compile`]: the kernels of a sequence, in the order in which they are
/// launched.
///
/// ```
/// use tilewright_tile::{Program, Sequence};
///
/// let squares: Program = "
/// tile squares {
///     input  x: f32 N:1
///     output square: f32 N:1
///     grid ceil(N/4)
///     a = load(x, (4), (block.x))
///     store(square, (block.x), a * a)
/// }"
/// .parse()?;
/// let total: Program = "
/// tile total {
///     input  square: f32 N:1
///     output sum: f32 (1):(1)
///     grid 1
///     store(sum, (0), reduce_sum(load(square, (8), (0)), 0))
/// }"
/// .parse()?;
/// let kernels = Sequence::new(vec![squares, total]).compile(None)?;
/// assert_eq!(kernels.sizes(), ["N"]);
/// // `x`, `square` and `sum`, of which `square` is a workspace.
/// let at = kernels.at(&[("N", 8)])?;
/// assert_eq!(at.bytes, [32, 32, 4]);
/// assert_eq!((at.workspaces, at.workspace_bytes), (vec![None, Some(0), None], 32));
/// // Tensors in any order: the first of the list is `sum`, the second `x`.
/// assert_eq!(kernels.bind(&["sum", "x"])?, [Some(1), None, Some(0)]);
/// assert_eq!(kernels.places(1), [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SequenceKernels {
    kernels: Vec<Kernel>,
    tensors: Vec<SequenceTensor>,
    /// For each kernel, the numbers in `tensors` of the tensors that it uses.
    places: Vec<Vec<usize>>,
    /// For each kernel, the names of its sizes.
    sizes: Vec<Vec<String>>,
    numbers: Vec<(String, Element)>,
}

/// A sequence at given sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceSizes<'n> {
    /// The sizes of each kernel.
    pub sizes: Vec<Vec<(&'n str, i64)>>,
    /// The number of bytes of each tensor, in the order of [`SequenceKernels::tensors`].
    pub bytes: Vec<u64>,
    /// The offset in bytes of each workspace in one block of memory; None for tensors that are no
    /// workspaces.
    pub workspaces: Vec<Option<u64>>,
    /// The number of bytes of that block.
    pub workspace_bytes: u64,
}

impl Sequence {
    /// Compiles the programs: see [`crate::Program::compile`].
    ///
    /// Errors: as [`crate::Program::compile`] and [`Sequence::tensors`].
    pub fn compile<'m>(&self, machine: impl Into<Option<&'m Machine>>) -> Result<SequenceKernels, TileError> {
        let (tensors, machine) = (self.tensors()?, machine.into());
        let compiled = |program: &crate::Program| Ok::<_, TileError>(program.compile(machine)?.kernel().clone());
        let kernels = self.programs().iter().map(compiled).collect::<Result<Vec<_>, _>>()?;
        SequenceKernels::new(kernels, tensors)
    }
}

impl SequenceKernels {
    /// A sequence of kernels in launch order. `tensors` are those that a caller passes or gets. Any
    /// other tensor is a workspace, if the first kernel that has it writes it.
    ///
    /// ```
    /// use tilewright_tile::{Program, Sequence, SequenceKernels, TensorPurpose};
    ///
    /// let squares: Program = "
    /// tile squares {
    ///     input  x: f32 N:1
    ///     output square: f32 N:1
    ///     grid ceil(N/4)
    ///     a = load(x, (4), (block.x))
    ///     store(square, (block.x), a * a)
    /// }"
    /// .parse()?;
    /// let compiled = Sequence::new(vec![squares]).compile(None)?;
    /// let (kernels, tensors) = (compiled.kernels().to_vec(), compiled.tensors()[..1].to_vec());
    /// let kernels = SequenceKernels::new(kernels, tensors)?;
    /// assert_eq!(kernels.tensors()[1].purpose, TensorPurpose::Workspace);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: a kernel reads a tensor that is not in `tensors`, and that no earlier kernel writes
    /// (E1214).
    pub fn new(kernels: Vec<Kernel>, mut tensors: Vec<SequenceTensor>) -> Result<SequenceKernels, TileError> {
        let (mut places, mut sizes, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for buffer in kernels.iter().flat_map(|kernel| kernel.program().tensors()) {
            if buffer.role == Role::Output && !tensors.iter().any(|tensor| tensor.name == buffer.name) {
                let (name, layout) = (buffer.name.clone(), buffer.layout.clone());
                tensors.push(SequenceTensor {
                    name,
                    element: buffer.element,
                    layout,
                    purpose: TensorPurpose::Workspace,
                });
            }
        }
        for kernel in &kernels {
            let program = kernel.program();
            let place = |name: &str| tensors.iter().position(|tensor| tensor.name == name);
            let known = || tensors.iter().map(|tensor| tensor.name.clone()).collect();
            let unknown = |name: &str| Reason::NoTensor { name: name.to_string(), known: known() };
            let own = program.tensors().map(|buffer| place(&buffer.name).ok_or_else(|| unknown(&buffer.name)));
            places.push(own.collect::<Result<Vec<_>, _>>()?);
            sizes.push(program.sizes.iter().filter_map(|size| size.name()).map(str::to_string).collect());
            for scalar in &program.scalars {
                if let Scalar::Given { name, element } = scalar
                    && !numbers.contains(&(name.clone(), *element))
                {
                    numbers.push((name.clone(), *element));
                }
            }
        }
        Ok(SequenceKernels { kernels, tensors, places, sizes, numbers })
    }

    /// The kernels.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The tensors of all kernels, each once.
    pub fn tensors(&self) -> &[SequenceTensor] {
        &self.tensors
    }

    /// The numbers in [`SequenceKernels::tensors`] of the tensors that a kernel uses, in the order
    /// in which it declares them. Empty if there is no such kernel.
    pub fn places(&self, kernel: usize) -> &[usize] {
        self.places.get(kernel).map_or(&[], Vec::as_slice)
    }

    /// The alignment of a tensor that satisfies all kernels, in bytes.
    pub fn alignment(&self, tensor: usize) -> u64 {
        let own = self.kernels.iter().zip(&self.places).flat_map(|(kernel, places)| {
            let buffers = kernel.program().tensors().zip(places);
            buffers.filter(move |(_, place)| **place == tensor).map(|(buffer, _)| u64::from(buffer.alignment))
        });
        own.max().unwrap_or(1)
    }

    /// The names of the sizes of all kernels, each once.
    pub fn sizes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.sizes.iter().flatten() {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// The scalar arguments of all kernels, each once, with their types.
    pub fn numbers(&self) -> &[(String, Element)] {
        &self.numbers
    }

    /// The sequence at given sizes, each with its name.
    ///
    /// Errors (E1002): a size is missing, given twice, used by no kernel, or not admitted by the
    /// facts of a kernel.
    pub fn at<'n>(&self, sizes: &[(&'n str, i64)]) -> Result<SequenceSizes<'n>, SetupError> {
        self.check_names(sizes)?;
        let of_kernel = |names: &Vec<String>| {
            sizes.iter().filter(|(name, _)| names.iter().any(|own| own == name)).copied().collect()
        };
        let own: Vec<Vec<(&'n str, i64)>> = self.sizes.iter().map(of_kernel).collect();
        let mut bytes = vec![0; self.tensors.len()];
        // The number of bytes of a tensor does not depend on scalar arguments.
        let any = |_: &str, _: Element| Some(0);
        for ((kernel, places), sizes) in self.kernels.iter().zip(&self.places).zip(&own) {
            let launch = kernel.program().launch(LaunchArguments { sizes, numbers: Some(&any) })?;
            for (place, own) in places.iter().zip(launch.bytes) {
                bytes[*place] = own.max(bytes[*place]);
            }
        }
        let mut end = 0_u64;
        let mut workspaces = Vec::new();
        for (tensor, bytes) in self.tensors.iter().zip(&bytes) {
            workspaces.push((tensor.purpose == TensorPurpose::Workspace).then_some(end));
            if tensor.purpose == TensorPurpose::Workspace {
                let behind = end.checked_add(*bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT_BYTES));
                end = behind.ok_or_else(|| SetupError::Size {
                    what: format!("the workspaces have more bytes than 64 bits count, up to `{}`", tensor.name),
                })?;
            }
        }
        // After the last workspace, no padding is needed.
        let last = workspaces.iter().zip(&bytes).filter_map(|(at, bytes)| Some((*at)? + bytes)).max();
        Ok(SequenceSizes { sizes: own, bytes, workspaces, workspace_bytes: last.unwrap_or(0) })
    }

    /// Refuses sizes that are given twice, that no kernel uses, or that are missing.
    fn check_names(&self, sizes: &[(&str, i64)]) -> Result<(), SetupError> {
        let refused = |what: String| Err(SetupError::Size { what });
        let known = self.sizes();
        for (number, (name, _)) in sizes.iter().enumerate() {
            if sizes[..number].iter().any(|(earlier, _)| earlier == name) {
                return refused(format!("the size `{name}` is given twice"));
            }
            if !known.contains(name) {
                let all = known.join(", ");
                return refused(format!("no kernel of the sequence has a size `{name}`; their sizes are {all}"));
            }
        }
        let is_missing = |name: &&&str| !sizes.iter().any(|(given, _)| *given == **name);
        let missing: Vec<&str> = known.iter().filter(is_missing).copied().collect();
        match missing.as_slice() {
            [] => Ok(()),
            [name] => refused(format!("the size `{name}` is not given: {}", self.having(name))),
            [name, ..] => refused(format!("the sizes {} are not given: {}", missing.join(", "), self.having(name))),
        }
    }

    /// A tensor whose layout names a size, for messages.
    fn having(&self, size: &str) -> String {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let names = |tensor: &&SequenceTensor| tensor.layout.split(|c| !is_word(c)).any(|word| word == size);
        match self.tensors.iter().find(names) {
            Some(tensor) => format!("{tensor} has `{size}`"),
            None => format!("a kernel has `{size}`"),
        }
    }

    /// For each of [`SequenceKernels::tensors`], the position of its name in `given`; None for a
    /// workspace that is not given.
    ///
    /// Errors (E1214): a tensor is not given and is no workspace, is given twice, or is in no
    /// program.
    pub fn bind(&self, given: &[&str]) -> Result<Vec<Option<usize>>, TileError> {
        for (number, name) in given.iter().enumerate() {
            if given[..number].contains(name) {
                return Err(Reason::GivenTwice { tensor: (*name).to_string() }.into());
            }
            if !self.tensors.iter().any(|tensor| tensor.name == *name) {
                let known = self.tensors.iter().map(|tensor| tensor.name.clone()).collect();
                return Err(Reason::NoTensor { name: (*name).to_string(), known }.into());
            }
        }
        let place = |tensor: &SequenceTensor| given.iter().position(|name| *name == tensor.name);
        let found: Vec<Option<usize>> = self.tensors.iter().map(place).collect();
        let missing = self.tensors.iter().zip(&found);
        let missing = missing.filter(|(tensor, at)| at.is_none() && tensor.purpose != TensorPurpose::Workspace);
        let missing: Vec<String> = missing.map(|(tensor, _)| tensor.to_string()).collect();
        if missing.is_empty() { Ok(found) } else { Err(Reason::NotGiven { tensors: missing }.into()) }
    }
}
