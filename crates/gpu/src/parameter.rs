//! Parameters of a kernel, and the arguments of a launch.
//!
//! Law: a kernel has one list of parameters, in the order of its `.param` declarations. When the
//! kernel is taken from its module, the list is compared with the driver's sizes. Each launch's
//! arguments are compared with the list: they have the same number, kinds and types, are on the
//! same device, have enough bytes at an aligned address, and no written memory is shared with
//! another argument.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tilewright_layout::{AnyLayout, Composed};
use tilewright_tensor::Offsets;

use crate::context::Context;
use crate::driver::{TensorMapBytes, Value};
use crate::element::{Element, ElementType};
use crate::error::{GpuError, MemoryFlaw};

/// How a kernel accesses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The kernel only reads it.
    Read,
    /// The kernel writes it, and may read it.
    Write,
}

/// The kind of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// The address of memory: 8 bytes.
    Pointer {
        /// How the kernel accesses it.
        access: Access,
        /// The type of the elements there.
        element: ElementType,
        /// The required alignment of the address, in bytes.
        alignment: u64,
        /// The least number of bytes.
        bytes: u64,
    },
    /// A scalar argument.
    Scalar(ElementType),
    /// A tensor map: 128 bytes.
    TensorMap {
        /// How the kernel accesses the memory under it.
        access: Access,
    },
}

/// A parameter of a kernel.
///
/// ```
/// use tilewright_gpu::{ElementType, Parameter};
///
/// let list = [
///     Parameter::read("x", ElementType::F32).aligned(16).at_least(4096),
///     Parameter::write("y", ElementType::F32),
///     Parameter::scalar("factor", ElementType::F32),
/// ];
/// assert_eq!(list[0].to_string(), "`x`, memory of f32 that is read");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    name: Box<str>,
    kind: ParameterKind,
    /// The position of another parameter that may have the same memory; None if there is none.
    memory_of: Option<usize>,
}

impl Parameter {
    /// A pointer to memory that the kernel reads.
    pub fn read(name: &str, element: ElementType) -> Parameter {
        Parameter::pointer(name, element, Access::Read)
    }

    /// A pointer to memory that the kernel writes, and may read.
    pub fn write(name: &str, element: ElementType) -> Parameter {
        Parameter::pointer(name, element, Access::Write)
    }

    fn pointer(name: &str, element: ElementType, access: Access) -> Parameter {
        let alignment = element.bytes() as u64;
        let kind = ParameterKind::Pointer { access, element, alignment, bytes: 0 };
        Parameter { name: name.into(), kind, memory_of: None }
    }

    /// A scalar argument.
    pub fn scalar(name: &str, element: ElementType) -> Parameter {
        Parameter { name: name.into(), kind: ParameterKind::Scalar(element), memory_of: None }
    }

    /// A tensor map.
    pub fn tensor_map(name: &str, access: Access) -> Parameter {
        Parameter { name: name.into(), kind: ParameterKind::TensorMap { access }, memory_of: None }
    }

    /// The same parameter, with the memory of the parameter at a position. The kernel treats both
    /// as one tensor, so they may be the same memory even if it is written.
    pub fn memory_of(mut self, position: usize) -> Parameter {
        self.memory_of = Some(position);
        self
    }

    /// The same parameter, with a required alignment in bytes.
    pub fn aligned(mut self, to: u64) -> Parameter {
        if let ParameterKind::Pointer { alignment, .. } = &mut self.kind {
            *alignment = to.max(1);
        }
        self
    }

    /// The same parameter, with at least `wanted` bytes.
    pub fn at_least(mut self, wanted: u64) -> Parameter {
        if let ParameterKind::Pointer { bytes, .. } = &mut self.kind {
            *bytes = wanted;
        }
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind.
    pub fn kind(&self) -> ParameterKind {
        self.kind
    }

    /// The number of bytes that it takes among the parameters of the kernel.
    pub fn bytes(&self) -> usize {
        match self.kind {
            ParameterKind::Pointer { .. } => 8,
            ParameterKind::Scalar(element) => element.bytes(),
            ParameterKind::TensorMap { .. } => 128,
        }
    }

    /// How the kernel accesses the parameter's memory; None if the parameter has no memory.
    fn access(&self) -> Option<Access> {
        match self.kind {
            ParameterKind::Pointer { access, .. } | ParameterKind::TensorMap { access } => Some(access),
            ParameterKind::Scalar(_) => None,
        }
    }

    /// The kind, as text.
    fn words(&self) -> String {
        let done = |access| if access == Access::Read { "read" } else { "written" };
        match self.kind {
            ParameterKind::Pointer { access, element, .. } => format!("memory of {element} that is {}", done(access)),
            ParameterKind::Scalar(element) => format!("a number of type {element}"),
            ParameterKind::TensorMap { access } => format!("a tensor map of memory that is {}", done(access)),
        }
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, {}", self.name, self.words())
    }
}

/// Memory as an argument.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) context: &'a Arc<Context>,
    /// The address of the first byte, and the number of bytes that may be accessed.
    pub(crate) range: (u64, u64),
    /// The address that the kernel gets.
    pub(crate) address: u64,
    pub(crate) writable: bool,
    /// The element type, if it is known.
    pub(crate) element: Option<ElementType>,
    /// The layout, if it is known.
    pub(crate) layout: Option<&'a dyn Arranged>,
}

/// A tensor map as an argument.
#[derive(Clone, Copy)]
pub(crate) struct Mapped<'a> {
    pub(crate) bytes: &'a TensorMapBytes,
    pub(crate) context: &'a Arc<Context>,
    /// The address of the first byte of its memory, and the number of bytes.
    pub(crate) range: (u64, u64),
    pub(crate) writable: bool,
}

/// A layout of any kind.
pub(crate) trait Arranged {
    /// Whether this layout has the same offset as the other for every index.
    ///
    /// Errors: that cannot be decided.
    fn is_same(&self, other: &AnyLayout) -> Result<bool, GpuError>;

    /// The layout as text.
    fn text(&self) -> String;
}

impl<L: Offsets> Arranged for L {
    fn is_same(&self, other: &AnyLayout) -> Result<bool, GpuError> {
        let own = self.composed()?;
        match other {
            AnyLayout::Integer(other) => Ok(own.equivalent(&Composed::from(other))?),
            other => Ok(AnyLayout::from(own).same_function(other)?.proved()),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// An argument of a launch: memory, a number or a tensor map.
///
/// Made by `From`: of `&Memory` and `&DeviceTensor` for memory that is read, of `&mut` ones for
/// memory that is written, of numbers, and of `&EncodedTensorMap`.
#[derive(Clone, Copy)]
pub struct Argument<'a>(ArgumentKind<'a>);

#[derive(Clone, Copy)]
enum ArgumentKind<'a> {
    Place(Place<'a>),
    Scalar(ElementType, [u8; 8]),
    Map(Mapped<'a>),
}

impl<T: Element> From<T> for Argument<'_> {
    fn from(value: T) -> Self {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(bytemuck::bytes_of(&value)).for_each(|(place, byte)| *place = *byte);
        Argument(ArgumentKind::Scalar(T::TYPE, bytes))
    }
}

impl<'a> From<Place<'a>> for Argument<'a> {
    fn from(place: Place<'a>) -> Self {
        Argument(ArgumentKind::Place(place))
    }
}

impl<'a> From<Mapped<'a>> for Argument<'a> {
    fn from(map: Mapped<'a>) -> Self {
        Argument(ArgumentKind::Map(map))
    }
}

impl fmt::Debug for Argument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())
    }
}

impl Argument<'_> {
    /// The argument, as text.
    fn words(&self) -> String {
        let may = |writable| if writable { "may be written" } else { "may only be read" };
        match &self.0 {
            ArgumentKind::Place(place) => match place.element {
                Some(element) => format!("memory of {element} that {}", may(place.writable)),
                None => format!("memory that {}", may(place.writable)),
            },
            ArgumentKind::Scalar(element, _) => format!("a number of type {element}"),
            ArgumentKind::Map(map) => format!("a tensor map of memory that {}", may(map.writable)),
        }
    }

    /// The layout of its elements, if it is known.
    pub(crate) fn layout(&self) -> Option<&dyn Arranged> {
        match &self.0 {
            ArgumentKind::Place(place) => place.layout,
            ArgumentKind::Scalar(..) | ArgumentKind::Map(_) => None,
        }
    }

    /// The memory, if the argument is memory.
    pub(crate) fn memory(&self) -> Option<&Place<'_>> {
        match &self.0 {
            ArgumentKind::Place(place) => Some(place),
            ArgumentKind::Scalar(..) | ArgumentKind::Map(_) => None,
        }
    }

    /// The memory of the argument: the address of the first byte, and the number of bytes. None for
    /// numbers.
    fn range(&self) -> Option<(u64, u64)> {
        match &self.0 {
            ArgumentKind::Place(place) => Some(place.range),
            ArgumentKind::Scalar(..) => None,
            ArgumentKind::Map(map) => Some(map.range),
        }
    }
}

/// The kernel that gets the arguments, for messages.
#[derive(Clone, Copy)]
pub(crate) struct Receiver<'k> {
    pub(crate) name: &'k str,
    pub(crate) context: &'k Arc<Context>,
    pub(crate) parameters: &'k [Parameter],
}

/// The values of a launch, if the arguments match the kernel's parameters.
pub(crate) fn packed<'a>(
    kernel: Receiver<'_>,
    arguments: &'a [Argument<'_>],
) -> Result<SmallVec<[Value<'a>; 16]>, GpuError> {
    let parameters = kernel.parameters;
    if arguments.len() != parameters.len() {
        return Err(GpuError::Arguments {
            kernel: kernel.name.into(),
            parameter: None,
            wanted: format!("{} parameters", parameters.len()).into(),
            found: format!("{} arguments", arguments.len()).into(),
        });
    }
    let mut values = SmallVec::with_capacity(arguments.len());
    for (position, (parameter, argument)) in parameters.iter().zip(arguments).enumerate() {
        values.push(value(kernel, position, parameter, argument)?);
    }
    disjoint(kernel, arguments)?;
    Ok(values)
}

/// The value of an argument.
fn value<'a>(
    kernel: Receiver<'_>,
    position: usize,
    parameter: &Parameter,
    argument: &'a Argument<'_>,
) -> Result<Value<'a>, GpuError> {
    let refused = || GpuError::Arguments {
        kernel: kernel.name.into(),
        parameter: Some((position, parameter.name.clone())),
        wanted: parameter.words().into(),
        found: argument.words().into(),
    };
    let flawed = |flaw| GpuError::Memory { kernel: kernel.name.into(), parameter: parameter.name.clone(), flaw };
    let here = |context: &Arc<Context>| {
        if Arc::ptr_eq(context, kernel.context) { Ok(()) } else { kernel.context.same(context, "an argument") }
    };
    match (parameter.kind, &argument.0) {
        (ParameterKind::Scalar(wanted), ArgumentKind::Scalar(element, bytes)) if wanted == *element => {
            Ok(Value::Bytes(*bytes, element.bytes()))
        }
        (ParameterKind::Pointer { access, element, alignment, bytes }, ArgumentKind::Place(place))
            if (place.writable || access == Access::Read) && place.element.is_none_or(|known| known == element) =>
        {
            here(place.context)?;
            let (first, length) = place.range;
            // The number of bytes from the address on; the address is inside of the range.
            let there = length.saturating_sub(place.address.saturating_sub(first));
            if there < bytes {
                return Err(flawed(MemoryFlaw::Small { bytes: there, wanted: bytes }));
            }
            if !place.address.is_multiple_of(alignment) {
                return Err(flawed(MemoryFlaw::Misaligned { address: place.address, wanted: alignment }));
            }
            Ok(Value::Bytes(place.address.to_ne_bytes(), 8))
        }
        (ParameterKind::TensorMap { access }, ArgumentKind::Map(map)) if map.writable || access == Access::Read => {
            here(map.context)?;
            Ok(Value::Map(map.bytes))
        }
        _ => Err(refused()),
    }
}

/// Up to this number of arguments, all pairs are compared.
const FEW: usize = 16;

/// The memory of an argument: the first address, the number of bytes, and whether it is written.
type Span = (u64, u64, bool);

/// Whether two spans may share memory that is written, without a comparison of all pairs. It misses
/// no such pair; but it also counts an empty span inside of another one.
fn may_share(spans: &mut [Span]) -> bool {
    spans.sort_unstable();
    let (mut reached, mut written) = (0, 0);
    spans.iter().any(|(start, bytes, writes)| {
        let shares = *start < written || (*writes && *start < reached);
        let end = start.saturating_add(*bytes);
        reached = reached.max(end);
        if *writes {
            written = written.max(end);
        }
        shares
    })
}

/// Refuses two arguments that share memory, if one of them is written.
fn disjoint(kernel: Receiver<'_>, arguments: &[Argument<'_>]) -> Result<(), GpuError> {
    let parameters = kernel.parameters;
    let member = |position: usize| {
        let parameter = parameters.get(position)?;
        Some((parameter, parameter.access()?, arguments.get(position)?.range()?))
    };
    if arguments.len() > FEW {
        // A map of a tensor's memory counts as that tensor.
        let is_alone = |(parameter, access, range): &(&Parameter, Access, (u64, u64))| {
            let of = parameter.memory_of.and_then(member);
            !of.is_some_and(|(_, own, whole)| whole == *range && (*access == Access::Read || own == Access::Write))
        };
        let alone = (0..arguments.len()).filter_map(member).filter(is_alone);
        let mut spans: Vec<Span> =
            alone.map(|(_, access, (start, bytes))| (start, bytes, access == Access::Write)).collect();
        if !may_share(&mut spans) {
            return Ok(());
        }
    }
    for second in 0..arguments.len() {
        let Some((parameter, access, (start, bytes))) = member(second) else { continue };
        for first in 0..second {
            let Some((other, other_access, (other_start, other_bytes))) = member(first) else { continue };
            let written = access == Access::Write || other_access == Access::Write;
            let apart = start.saturating_add(bytes) <= other_start || other_start.saturating_add(other_bytes) <= start;
            let one = parameter.memory_of.is_some_and(|of| of == first || other.memory_of == Some(of))
                && (start, bytes) == (other_start, other_bytes);
            if written && !apart && !one {
                let parameters = (other.name.clone(), parameter.name.clone());
                return Err(GpuError::Aliasing { kernel: kernel.name.into(), parameters });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Span, may_share};

    /// Law: the result covers that of a comparison of all pairs, for random spans.
    #[test]
    fn spans_that_share_memory_are_found() {
        let mut state = 7_u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let mut found = [0; 2];
        for _ in 0..4000 {
            let spans: Vec<Span> = (0..2 + below(7)).map(|_| (below(200), 1 + below(12), below(3) == 0)).collect();
            let shares = |one: &Span, other: &Span| {
                let overlap = one.0 < other.0 + other.1 && other.0 < one.0 + one.1;
                overlap && (one.2 || other.2)
            };
            let pairs = (0..spans.len()).flat_map(|first| (0..first).map(move |second| (first, second)));
            let expected = pairs.into_iter().any(|(first, second)| shares(&spans[first], &spans[second]));
            assert_eq!(may_share(&mut spans.clone()), expected, "{spans:?}");
            found[usize::from(expected)] += 1;
        }
        assert!(found.iter().all(|count| *count > 500), "{found:?}");
    }
}
