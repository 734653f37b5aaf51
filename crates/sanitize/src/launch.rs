//! The inputs of a launch: its grid, its shared memory, its arguments.

use std::path::Path;

use crate::element::Element;
use crate::npy;
use crate::refusal::LaunchError;

/// The most bytes of all arguments.
pub const MAX_ARGUMENT_BYTES: u64 = 16 << 30;

/// Who writes an array, and who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The host writes it, and the kernel reads it.
    In,
    /// The kernel writes it. It is uninitialised before.
    Out,
    /// Both read and write it.
    InOut,
}

/// An array in global memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its name in messages.
    pub name: String,
    /// Who writes it.
    pub direction: Direction,
    /// The type of its elements.
    pub element: Element,
    /// Its extents, the slowest first.
    pub shape: Vec<u64>,
    /// Its bytes, row after row.
    pub bytes: Vec<u8>,
}

/// The swizzle of a tensor map's boxes in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MapSwizzle {
    /// None.
    #[default]
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

/// The traversal of a tensor map's copies. Lists have the slowest dimension first, as shapes do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MapWalk {
    /// Boxes with these extents.
    Tiled(Vec<u32>),
    /// Consecutive pixels with their channels (`cuTensorMapEncodeIm2col`). The first dimension of
    /// the array counts images and the last one channels; those between are spatial.
    Im2col {
        /// The number of pixels of a copy, at most 1024.
        pixels: u32,
        /// The number of channels of a pixel, at most 256.
        channels: u32,
        /// For each spatial dimension, where the box of pixels begins.
        lower: Vec<i32>,
        /// For each spatial dimension, where the box of pixels ends, relative to the last pixel.
        upper: Vec<i32>,
    },
}

/// How a tensor map accesses its array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MapView {
    /// The traversal.
    pub walk: MapWalk,
    /// The swizzle of a box's rows, or of a pixel's channels.
    pub swizzle: MapSwizzle,
    /// The traversal stride of each dimension, 1 to 8: only every such element is copied. Empty if
    /// all are 1. That of the last dimension must be 1.
    pub steps: Vec<u32>,
    /// Whether elements outside of the array are NaN instead of 0.
    pub fills_nan: bool,
}

impl MapView {
    /// Boxes with these extents, the slowest dimension first.
    pub fn tiled(extents: Vec<u32>, swizzle: MapSwizzle) -> Self {
        Self { walk: MapWalk::Tiled(extents), swizzle, steps: Vec::new(), fills_nan: false }
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A pointer to an array.
    Array(Array),
    /// A value, as bytes.
    Value(Vec<u8>),
    /// A tensor map of an array, which is its own or that of an earlier argument.
    Map {
        /// The array.
        array: MapArray,
        /// What its copies move.
        view: MapView,
    },
}

/// The array of a tensor map.
#[derive(Clone, Debug, PartialEq)]
pub enum MapArray {
    /// An array that belongs to this argument alone.
    Own(Array),
    /// The array of another argument, by its number from 0.
    Argument(usize),
}

/// A launch.
///
/// ```
/// use tilewright_sanitize::{Argument, KernelLaunch};
///
/// let launch = KernelLaunch::new("add", [1, 1, 1], [32, 1, 1])
///     .argument(Argument::read("x", "in:f32[32]=range", 0)?)
///     .argument(Argument::read("y", "out:f32[32]", 0)?)
///     .argument(Argument::read("n", "i32=32", 0)?);
/// assert_eq!(launch.arguments.len(), 3);
/// # Ok::<(), tilewright_sanitize::LaunchError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KernelLaunch {
    /// The name of the entry.
    pub entry: String,
    /// The number of blocks along x, y and z.
    pub grid: [u32; 3],
    /// The number of threads of a block along x, y and z.
    pub block: [u32; 3],
    /// The number of blocks of a cluster along x, y and z. None means the cluster that the kernel
    /// asks for, or one block.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory, in addition to the kernel's variables.
    pub shared_bytes: u64,
    /// The arguments.
    pub arguments: Vec<Argument>,
}

impl KernelLaunch {
    /// A launch without arguments.
    pub fn new(entry: impl Into<String>, grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { entry: entry.into(), grid, block, cluster: None, shared_bytes: 0, arguments: Vec::new() }
    }

    /// The launch with a further argument.
    #[must_use]
    pub fn argument(mut self, argument: Argument) -> Self {
        self.arguments.push(argument);
        self
    }

    /// The launch with this many bytes of dynamic shared memory.
    #[must_use]
    pub fn shared(mut self, bytes: u64) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// The launch with clusters of this many blocks.
    #[must_use]
    pub fn cluster(mut self, blocks: [u32; 3]) -> Self {
        self.cluster = Some(blocks);
        self
    }
}

impl Argument {
    /// Reads an argument from text:
    ///
    /// * `in:f32[262144]=random`, `inout:..`: an array and its contents: `random` (floats in [-1,
    ///   1), integers below 16), which is the default, `zeros`, `ones`, `nan`, `range`, or the path
    ///   of a NPY file;
    /// * `out:bf16[4096,4096]`: an uninitialised array; with contents such as `=zeros`, it is
    ///   `inout`;
    /// * `i32=262144`, `f32=1e-5`: a value; `null`: a null pointer; `hex:00ff`: bytes;
    /// * `map:in:f16[512,512]=random:box=64x64:swizzle=128B`: a tensor map of its own array; or
    ///   `map:#0:box=64x64`, a tensor map of the array of argument 0. `steps=2x1` copies every
    ///   second element of a dimension, and `fill=nan` gives NaN outside of the array;
    /// * `map:in:f16[8,32,32,64]:im2col=128x64:lower=-1x-1:upper=-1x-1`: a map of 128 pixels of 64
    ///   channels, whose box of pixels begins at -1 and ends 1 before the last one, for each
    ///   spatial dimension; without `lower` and `upper` both are 0.
    ///
    /// An array without a name gets the name of the parameter. Equal seeds give equal random
    /// numbers.
    ///
    /// # Errors
    ///
    /// Errors: the text has another form; a file cannot be read, or has another type or shape.
    pub fn read(name: &str, text: &str, seed: u64) -> Result<Self, LaunchError> {
        let wrong = |why: String| LaunchError::new(format!("the argument `{text}`: {why}"));
        if text == "null" {
            return Ok(Self::Value(vec![0; 8]));
        }
        if let Some(digits) = text.strip_prefix("hex:") {
            let is_hex = digits.len() % 2 == 0 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            if !is_hex {
                return Err(wrong("two hexadecimal digits for each byte are expected".to_string()));
            }
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or(0);
            return Ok(Self::Value((0..digits.len()).step_by(2).map(byte).collect()));
        }
        if let Some(rest) = text.strip_prefix("map:") {
            return read_map(name, rest, seed).map_err(|error| wrong(error.message));
        }
        let direction = match text.split_once(':') {
            Some(("in", rest)) => Some((Direction::In, rest)),
            Some(("out", rest)) => Some((Direction::Out, rest)),
            Some(("inout", rest)) => Some((Direction::InOut, rest)),
            _ => None,
        };
        if let Some((direction, rest)) = direction {
            return read_array(name, direction, rest, seed).map(Self::Array).map_err(|error| wrong(error.message));
        }
        let Some((kind, value)) = text.split_once('=') else {
            return Err(wrong(
                "`in:f32[64]=random`, `out:f32[64]` or `i32=64` are examples of what is read".to_string(),
            ));
        };
        let Some(element) = Element::read(kind) else {
            return Err(wrong(format!("`{kind}` is no type; {} are", Element::NAMES)));
        };
        match element.bytes_of(value) {
            Some(bytes) => Ok(Self::Value(bytes)),
            None => Err(wrong(format!("`{value}` is no number of the type {kind}"))),
        }
    }
}

fn read_array(name: &str, direction: Direction, text: &str, seed: u64) -> Result<Array, LaunchError> {
    let (kind, fill) = match text.split_once('=') {
        Some((kind, fill)) => (kind, Some(fill)),
        None => (text, None),
    };
    let parts = kind.split_once('[').and_then(|(element, rest)| Some((element, rest.strip_suffix(']')?)));
    let Some((element, extents)) = parts else {
        return Err(LaunchError::new("a type and extents are expected, such as `f32[64,64]`"));
    };
    let Some(element) = Element::read(element) else {
        return Err(LaunchError::new(format!("`{element}` is no type; {} are", Element::NAMES)));
    };
    let shape = extents.split(',').map(|extent| extent.trim().parse::<u64>()).collect::<Result<Vec<u64>, _>>();
    let Ok(shape) = shape else {
        return Err(LaunchError::new(format!("`[{extents}]` are no extents; numbers between commas are")));
    };
    let count = shape.iter().try_fold(1_u64, |all, extent| all.checked_mul(*extent));
    let count = count.filter(|count| count.checked_mul(8).is_some_and(|bytes| bytes <= MAX_ARGUMENT_BYTES));
    let Some(count) = count else { return Err(LaunchError::new("the array is too large")) };
    // An array with contents is initialised.
    let direction = match (direction, fill) {
        (Direction::Out, Some(_)) => Direction::InOut,
        (direction, _) => direction,
    };
    let bytes = match (direction, fill) {
        // Bytes of an uninitialised array: NaN, or all bits set, so that results computed from them
        // are wrong.
        (Direction::Out, None) => vec![0xff; (count * element.bytes()) as usize],
        (_, fill) => match (element.fill(fill.unwrap_or("random"), count, seed), fill) {
            (Some(bytes), _) => bytes,
            (None, fill) => {
                let fill = fill.unwrap_or_default();
                let (found, own, bytes) = npy::read(Path::new(fill))?;
                if own != shape || !found.is_like(element) {
                    return Err(LaunchError::new(format!("`{fill}` holds {}{own:?}", found.name())));
                }
                bytes
            }
        },
    };
    Ok(Array { name: name.to_string(), direction, element, shape, bytes })
}

fn read_map(name: &str, text: &str, seed: u64) -> Result<Argument, LaunchError> {
    let is_option =
        |place: &(usize, &str)| text[place.0..].starts_with(":box=") || text[place.0..].starts_with(":im2col=");
    let Some((end, _)) = text.match_indices(':').find(is_option) else {
        return Err(LaunchError::new("the extents of a box are missing, such as `:box=64x64`"));
    };
    let (array, options) = (&text[..end], &text[end + 1..]);
    let array = match array.strip_prefix('#') {
        Some(number) => match number.parse() {
            Ok(number) => MapArray::Argument(number),
            Err(_) => return Err(LaunchError::new(format!("`#{number}` is no number of an argument"))),
        },
        None => match Argument::read(name, array, seed)? {
            Argument::Array(array) => MapArray::Own(array),
            _ => return Err(LaunchError::new(format!("`{array}` is no array"))),
        },
    };
    Ok(Argument::Map { array, view: read_view(options)? })
}

/// Numbers with an `x` between them, such as `64x-1`.
fn read_numbers<T: std::str::FromStr>(text: &str, example: &str) -> Result<Vec<T>, LaunchError> {
    let numbers = text.split('x').map(str::parse).collect::<Result<Vec<T>, _>>();
    numbers.map_err(|_| LaunchError::new(format!("`{text}` are no numbers such as {example}")))
}

fn read_view(text: &str) -> Result<MapView, LaunchError> {
    let mut view = MapView::tiled(Vec::new(), MapSwizzle::None);
    let (mut corners, mut pixels) = ([Vec::new(), Vec::new()], None);
    for option in text.split(':') {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match (key, value) {
            ("box", extents) => view.walk = MapWalk::Tiled(read_numbers(extents, "64x64")?),
            ("im2col", sizes) => pixels = Some(read_numbers::<u32>(sizes, "128x64, pixels and their channels")?),
            ("lower", numbers) => corners[0] = read_numbers::<i32>(numbers, "-1x-1")?,
            ("upper", numbers) => corners[1] = read_numbers::<i32>(numbers, "-1x-1")?,
            ("steps", numbers) => view.steps = read_numbers(numbers, "1x2x2x1")?,
            ("swizzle", "none") => view.swizzle = MapSwizzle::None,
            ("swizzle", "32B") => view.swizzle = MapSwizzle::Bytes32,
            ("swizzle", "64B") => view.swizzle = MapSwizzle::Bytes64,
            ("swizzle", "128B") => view.swizzle = MapSwizzle::Bytes128,
            ("fill", "zeros") => view.fills_nan = false,
            ("fill", "nan") => view.fills_nan = true,
            ("interleave", "none") => {}
            ("interleave", _) => {
                return Err(LaunchError::new("interleaved layouts are not supported; arrays as NHWC are"));
            }
            _ => {
                return Err(LaunchError::new(format!(
                    "`{option}` is not known; `swizzle=none`, 32B, 64B and 128B, `steps=`, `fill=nan` and `fill=zeros` are, \
                     and `lower=` and `upper=` of `im2col=`"
                )));
            }
        }
    }
    match pixels {
        None if corners.iter().any(|own| !own.is_empty()) => {
            return Err(LaunchError::new("only a map of `im2col=` has corners"));
        }
        None => {}
        Some(sizes) => {
            let [pixels, channels] = sizes[..] else {
                return Err(LaunchError::new("`im2col=` takes two numbers, pixels and their channels, such as 128x64"));
            };
            let [lower, upper] = corners;
            view.walk = MapWalk::Im2col { pixels, channels, lower, upper };
        }
    }
    Ok(view)
}
