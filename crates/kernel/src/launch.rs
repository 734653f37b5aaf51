//! The arguments of a launch, at given sizes.
//!
//! Law: the grid and the scalars have the values of their expressions at the given sizes, and each
//! size is admitted by its facts. So what was proved for every admissible size holds for the
//! launch.

use std::collections::BTreeSet;
use std::fmt;

use tilewright_layout::atoms::{Dimension, SwizzleMode};
use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{AnyLayout, Composed, Layout, LayoutError};

use crate::element::Element;
use crate::program::scalar::{Scalar, reciprocal};
use crate::program::{Program, Source};

/// Why a program cannot be launched or interpreted with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// E1001: a malformed program.
    Malformed {
        /// The rule, and what breaks it.
        what: String,
        /// The statement, if a statement breaks it.
        source: Option<Source>,
    },
    /// E1002: a size that is missing, unknown, or not admitted by its facts.
    Size {
        /// The size, and the reason.
        what: String,
    },
    /// E1003: contents of a tensor, or a scalar argument, that do not match the program.
    Argument {
        /// The argument, and the reason.
        what: String,
    },
    /// E1004: a grid or tensors that are too large for the interpreter.
    TooLarge {
        /// The quantity.
        what: &'static str,
        /// The value.
        size: u64,
        /// The limit.
        limit: u64,
    },
}

tilewright_layout::refusal! {
    SetupError:
    Malformed "E1001", Size "E1002", Argument "E1003", TooLarge "E1004",
}

/// A launch of a program at given sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The number of blocks along each axis.
    pub grid: [u32; 3],
    /// The arguments after the tensors, in the order of [`Program::scalars`], as their lowest bits.
    pub scalars: Vec<u64>,
    /// The number of bytes of each tensor, in the order in which they are passed.
    pub bytes: Vec<u64>,
    /// The arguments after the scalars, in the order of [`Program::maps`].
    pub maps: Vec<BoxMap>,
}

/// A tensor map of a launch: a tensor, and its division into boxes for TMA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxMap {
    /// The tensor, by its index among the arguments.
    pub tensor: usize,
    /// The dimensions, the contiguous one first; strides in bytes.
    pub dimensions: Vec<Dimension>,
    /// The swizzle in shared memory.
    pub swizzle: SwizzleMode,
}

/// The most blocks of a launch along each axis.
const MAX_BLOCKS: [i64; 3] = [(1 << 31) - 1, 65_535, 65_535];

/// The blocks of a launch along each axis. `number` evaluates an expression.
///
/// Errors: there are too many blocks, or a negative number; clusters do not divide the grid.
pub(crate) fn grid_of(
    program: &Program,
    number: impl Fn(&Expr, &str) -> Result<i64, SetupError>,
) -> Result<[u32; 3], SetupError> {
    let mut grid = [0; 3];
    for ((axis, count), most) in grid.iter_mut().enumerate().zip(MAX_BLOCKS) {
        let blocks = number(&program.grid[axis], "the grid")?;
        *count = u32::try_from(blocks).ok().filter(|_| blocks <= most).ok_or_else(|| {
            let what = format!("the grid has {blocks} blocks along axis {axis} for these sizes");
            SetupError::Size { what: format!("{what}, and a launch takes from 0 to {most}") }
        })?;
    }
    match program.undivided(grid) {
        Some(what) => Err(SetupError::Size { what }),
        None => Ok(grid),
    }
}

/// Returns the bits of a scalar argument, lowest first, by its name and type; `None` if it is not
/// given.
pub type NumbersByName<'a> = dyn Fn(&str, Element) -> Option<u64> + 'a;

/// The arguments of a launch: sizes, each with its name, and scalar arguments. A list of sizes
/// converts to the arguments of a kernel without scalar arguments.
///
/// ```
/// use tilewright_kernel::{Element, ElementType, Kernel, LaunchArguments};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kernel = Kernel::build("filled", |k| {
///     let y = k.output::<f32>("y", "M{div=32}:1")?.local_tile(32, k.block("x")?)?;
///     k.threads(32)?;
///     let part = y.thread_part()?;
///     let values = part.fragment()?;
///     values.fill(k.scalar::<f32>("value")?)?;
///     part.store(&values)
/// })?;
/// let value = |name: &str, element| {
///     (name == "value" && element == Element::F32).then_some(0.5_f32.to_bits().into())
/// };
/// let launch = kernel.program().launch(LaunchArguments { numbers: Some(&value), ..(&[("M", 64)]).into() })?;
/// assert_eq!(launch.scalars, [ElementType::to_bits(0.5_f32)]);
/// assert!(kernel.program().launch(&[("M", 64)]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Default)]
pub struct LaunchArguments<'a> {
    /// The sizes, each with its name, in elements.
    pub sizes: &'a [(&'a str, i64)],
    /// The scalar arguments of the kernel; `None` if it has none.
    pub numbers: Option<&'a NumbersByName<'a>>,
}

impl fmt::Debug for LaunchArguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchArguments").field("sizes", &self.sizes).finish_non_exhaustive()
    }
}

impl<'a, 'n: 'a> From<&'a [(&'n str, i64)]> for LaunchArguments<'a> {
    fn from(sizes: &'a [(&'n str, i64)]) -> Self {
        LaunchArguments { sizes, numbers: None }
    }
}

impl<'a, 'n: 'a, const N: usize> From<&'a [(&'n str, i64); N]> for LaunchArguments<'a> {
    fn from(sizes: &'a [(&'n str, i64); N]) -> Self {
        sizes.as_slice().into()
    }
}

impl<'a, 'n: 'a> From<&'a Vec<(&'n str, i64)>> for LaunchArguments<'a> {
    fn from(sizes: &'a Vec<(&'n str, i64)>) -> Self {
        sizes.as_slice().into()
    }
}

impl Program {
    /// The arguments of a launch with these sizes.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("cleared", |k| {
    ///     let y = k.output::<f32>("y", "(M{div=8},4):(4,1)")?;
    ///     k.threads(8)?;
    ///     let rows = y.local_tile((8, 4), k.block("(x,0)")?)?.thread_part()?;
    ///     let zeros = rows.fragment()?;
    ///     zeros.clear();
    ///     rows.store(&zeros)
    /// })?;
    /// let launch = kernel.program().launch(&[("M", 80)])?;
    /// assert_eq!((launch.grid, launch.bytes), ([10, 1, 1], vec![80 * 4 * 4]));
    /// assert!(kernel.program().launch(&[("M", 81)]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: a size is missing, unknown or not admitted by its facts; a number does not fit; a
    /// scalar argument is missing.
    pub fn launch<'a>(&self, arguments: impl Into<LaunchArguments<'a>>) -> Result<Launch, SetupError> {
        let LaunchArguments { sizes, numbers: given } = arguments.into();
        let given = |name: &str, element| given.and_then(|given| given(name, element));
        let LaunchNumbers { grid, scalars, bytes, maps } = self.launch_numbers(sizes)?;
        let value = |(known, scalar): (Option<u64>, &Scalar)| match (known, scalar) {
            (Some(value), _) => Ok(value),
            (None, Scalar::Given { name, element }) => given(name, *element).ok_or_else(|| SetupError::Argument {
                what: format!("the number `{name}`, of type {element}, is not given"),
            }),
            (None, _) => Err(SetupError::Argument { what: "a number has no value for these sizes".to_string() }),
        };
        let scalars = scalars.into_iter().zip(&self.scalars).map(value).collect::<Result<_, _>>()?;
        Ok(Launch { grid, scalars, bytes, maps })
    }

    /// The numbers of a launch that follow from sizes.
    pub(crate) fn launch_numbers(&self, sizes: &[(&str, i64)]) -> Result<LaunchNumbers, SetupError> {
        let values = values_of(self, sizes)?;
        let refuse = |what: String| SetupError::Size { what };
        let number = |expr: &Expr, what: &str| {
            expr.numbers(&values).map_err(|error| refuse(format!("{what} has no value for these sizes: {error}")))
        };
        let grid = grid_of(self, number)?;
        let mut bytes = Vec::new();
        for buffer in self.tensors() {
            let elements = number(&buffer.elements, "the size of a tensor")?;
            let size = u64::try_from(elements).ok().and_then(|count| count.checked_mul(buffer.element.bytes().into()));
            bytes.push(size.ok_or_else(|| refuse(format!("`{}` has {elements} elements", buffer.name)))?);
        }
        let scalars = scalars_of(self, &number)?;
        let mut maps = Vec::new();
        for map in &self.maps {
            let tensor = &self.buffer(map.buffer).name;
            let dimension = |(mode, dimension): (usize, &crate::program::memory::Dimension)| {
                let extent = mapped_extent(number(&dimension.extent, "the extent of a map")?, tensor, mode)?;
                let stride = number(&dimension.stride, "the stride of a map")?;
                Ok(Dimension { extent, stride, boxed: dimension.boxed.into() })
            };
            let dimensions = map.dimensions.iter().enumerate().map(dimension).collect::<Result<_, SetupError>>()?;
            maps.push(BoxMap { tensor: map.buffer.index(), dimensions, swizzle: map.swizzle });
        }
        Ok(LaunchNumbers { grid, scalars, bytes, maps })
    }

    /// The layouts of the tensors at these sizes, in the order in which they are passed. Offsets
    /// count elements.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("cleared", |k| {
    ///     let y = k.output::<f32>("y", "(M{div=8},4):(4,1)")?;
    ///     k.threads(8)?;
    ///     let rows = y.local_tile((8, 4), k.block("(x,0)")?)?.thread_part()?;
    ///     let zeros = rows.fragment()?;
    ///     zeros.clear();
    ///     rows.store(&zeros)
    /// })?;
    /// assert_eq!(kernel.program().layouts(&[("M", 80)])?[0].to_string(), "(80,4):(4,1)");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: a size is missing, unknown or not admitted by its facts; a number does not fit.
    pub fn layouts(&self, sizes: &[(&str, i64)]) -> Result<Vec<AnyLayout>, SetupError> {
        let values = values_of(self, sizes)?;
        let at = |text: &str| -> Result<AnyLayout, LayoutError> {
            if text.contains(" o ") {
                return Ok(AnyLayout::from(text.parse::<Composed<Expr>>()?.numbers(&values)?));
            }
            Ok(AnyLayout::from(text.parse::<Layout<Expr>>()?.numbers(&values)?))
        };
        let refuse =
            |name: &str, error| SetupError::Size { what: format!("`{name}` has no layout for these sizes: {error}") };
        self.tensors().map(|buffer| at(&buffer.layout).map_err(|error| refuse(&buffer.name, error))).collect()
    }
}

/// As [`Launch`], without the scalar arguments of the caller.
pub(crate) struct LaunchNumbers {
    pub(crate) grid: [u32; 3],
    pub(crate) scalars: Vec<Option<u64>>,
    pub(crate) bytes: Vec<u64>,
    pub(crate) maps: Vec<BoxMap>,
}

/// The values of the sizes of a program.
pub(crate) fn values_of(program: &Program, sizes: &[(&str, i64)]) -> Result<Values, SetupError> {
    let mut values = Values::new();
    let names: BTreeSet<&str> = program.sizes.iter().filter_map(|size| size.name()).collect();
    let mut seen = BTreeSet::new();
    for (name, value) in sizes {
        if !names.contains(name) {
            let known = names.iter().copied().collect::<Vec<_>>().join(", ");
            return Err(size_error(format!("the kernel has no size `{name}`; its sizes are {known}")));
        }
        if !seen.insert(*name) {
            return Err(size_error(format!("the size `{name}` is given twice")));
        }
        values.set_named(name, *value);
    }
    for size in &program.sizes {
        let Some(name) = size.name() else { continue };
        let Some(value) = values.get(size) else {
            return Err(size_error(format!("the size `{name}` is not given")));
        };
        let facts = size.facts();
        if !facts.admits(value) {
            let mut wanted = Vec::new();
            if facts.divisor() != 1 {
                wanted.push(format!("a multiple of {}", facts.divisor()));
            }
            wanted.extend(facts.least().map(|least| format!("at least {least}")));
            wanted.extend(facts.greatest().map(|greatest| format!("at most {greatest}")));
            return Err(size_error(format!(
                "the size `{name}` is {value}, and the kernel needs {}",
                wanted.join(", ")
            )));
        }
    }
    Ok(values)
}

/// Checks that a number fits in a signed 32-bit integer, in which threads count.
///
/// Errors: it does not fit; the error has the number's expression.
fn fits_narrow(value: i64, of: &Expr) -> Result<(), SetupError> {
    if i32::try_from(value).is_ok() {
        return Ok(());
    }
    let what = format!("`{of}` is {value} for these sizes, and the kernel counts it in 32 bits with a sign");
    Err(size_error(format!("{what}, from -2147483648 to 2147483647")))
}

/// Checks that the coordinates along an extent of a tensor map fit in signed 32-bit integers.
///
/// Errors: they do not fit; the error has the tensor and the mode.
pub(crate) fn mapped_extent(extent: i64, tensor: &str, mode: usize) -> Result<i64, SetupError> {
    if (1..=1 << 31).contains(&extent) {
        return Ok(extent);
    }
    let what = format!("`{tensor}` has extent {extent} in mode {mode} of its tensor map");
    Err(size_error(format!("{what}, and its coordinates reach from 0 to 2147483647")))
}

pub(crate) fn scalars_of(
    program: &Program,
    number: &impl Fn(&Expr, &str) -> Result<i64, SetupError>,
) -> Result<Vec<Option<u64>>, SetupError> {
    let divisor = |expr: &Expr| {
        let value = number(expr, "a divisor")?;
        match u32::try_from(value) {
            Ok(value @ 1..=0x7fff_ffff) => Ok(reciprocal(value)),
            _ => Err(size_error(format!("a divisor is {value} for these sizes, and must be from 1 to 2^31 - 1"))),
        }
    };
    for end in &program.narrow {
        fits_narrow(number(end, "a number of the kernel")?, end)?;
    }
    let mut scalars = Vec::new();
    for scalar in &program.scalars {
        scalars.push(match scalar {
            Scalar::Size { value: of, bits } => {
                let value = number(of, "a number that the launch passes")?;
                if *bits != 64 {
                    fits_narrow(value, of)?;
                }
                Some(value as u64 & (u64::MAX >> (64 - bits)))
            }
            Scalar::Multiplier { divisor: by } => Some(divisor(by)?.0.into()),
            Scalar::Shift { divisor: by } => Some(divisor(by)?.1.into()),
            // Consecutive launches use the same counter.
            Scalar::Count => Some(0),
            Scalar::Given { .. } => None,
        });
    }
    Ok(scalars)
}

pub(crate) fn size_error(what: String) -> SetupError {
    SetupError::Size { what }
}
