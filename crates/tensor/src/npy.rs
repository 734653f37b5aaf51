//! `.npy` files: arrays in NumPy's format.
//!
//! Law: a tensor that is read has at `(i,j,..)` the element that NumPy has at `[i,j,..]`, and NumPy
//! reads a tensor that is written in the same way. A file is in C order, the last mode fastest, or
//! in Fortran order, the first mode fastest. A tensor that is read has the layout of its file. A
//! tensor that is compact in either order is written in the order of its memory; any other is
//! written in C order, as NumPy does. A nested mode becomes one axis, by its index.
//!
//! Writing creates a new file that replaces the old one when it is complete, so that an
//! interruption leaves the old file.
//!
//! The format is that of NumPy's documentation, "numpy.lib.format", versions 1 to 3.

mod header;
mod new_file;
mod stream;
mod write;

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use bytemuck::{NoUninit, Pod, Zeroable};
use half::f16;
use tilewright_layout::{Layout, Tree};

use crate::error::TensorError;
use crate::tensor::Tensor;

pub use header::{Header, Kind, Order};
pub use stream::Stream;
pub use write::{replace, target, write};

/// Why a `.npy` file was not read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum NpyError {
    /// E0410: not a `.npy` file, or a version or form that this reader does not support.
    Format {
        /// The text expected.
        expected: &'static str,
        /// The text found.
        found: Box<str>,
    },
    /// E0411: elements of another type than the one asked for.
    Type {
        /// The type asked for, as NumPy writes it.
        wanted: Box<str>,
        /// The type of the file.
        found: Box<str>,
    },
    /// E0412: an error of the operating system.
    Io(io::Error),
    /// An error of the tensor: for example, no tensor has this shape.
    Tensor(TensorError),
}

impl NpyError {
    /// What would help, as a sentence; none if the message says it all.
    pub fn help(&self) -> Option<String> {
        match self {
            NpyError::Tensor(error) => error.help(),
            _ => None,
        }
    }
}

tilewright_layout::refusal! {
    NpyError of Tensor:
    Format "E0410", Type "E0411", Io "E0412",
}

tilewright_layout::from_variants!(NpyError: Io(io::Error));

impl<E: Into<TensorError>> From<E> for NpyError {
    fn from(error: E) -> NpyError {
        NpyError::Tensor(error.into())
    }
}

impl fmt::Display for NpyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NpyError::Format { expected, found } => write!(f, "expected {expected}, found {found}"),
            NpyError::Type { wanted, found } => write!(f, "the elements are '{found}', not '{wanted}'"),
            NpyError::Io(error) => error.fmt(f),
            NpyError::Tensor(error) => error.fmt(f),
        }
    }
}

fn malformed(expected: &'static str, found: impl fmt::Display) -> NpyError {
    NpyError::Format { expected, found: found.to_string().into() }
}

mod sealed {
    use super::{NpyError, Pod, Tensor};

    /// An element as its bytes are stored in a file.
    pub trait Stored: Sized + Copy {
        /// A type of the same size for which any bytes are valid.
        type Bytes: Pod;

        /// The element with the bytes of each number in reverse order.
        fn swapped(bytes: Self::Bytes) -> Self::Bytes;

        /// The elements, if all of them are valid.
        fn of_stored(stored: Tensor<Self::Bytes>) -> Result<Tensor<Self>, NpyError>;
    }
}
use sealed::Stored;

/// An element type that NumPy has: integers of 8 to 64 bits, floats of 16 to 64, `bool`, and
/// complex numbers as their two parts, `[f32; 2]` and `[f64; 2]`.
pub trait NpyElement: NoUninit + Zeroable + Stored {
    /// The kind of number.
    const KIND: Kind;
}

macro_rules! elements {
    ($($element:ty: $kind:ident, $swapped:expr;)*) => {
        $(
            impl Stored for $element {
                type Bytes = $element;

                fn swapped(bytes: $element) -> $element {
                    $swapped(bytes)
                }

                fn of_stored(stored: Tensor<$element>) -> Result<Tensor<$element>, NpyError> {
                    Ok(stored)
                }
            }

            impl NpyElement for $element {
                const KIND: Kind = Kind::$kind;
            }
        )*
    };
}

elements! {
    i8: Signed, i8::swap_bytes;
    i16: Signed, i16::swap_bytes;
    i32: Signed, i32::swap_bytes;
    i64: Signed, i64::swap_bytes;
    u8: Unsigned, u8::swap_bytes;
    u16: Unsigned, u16::swap_bytes;
    u32: Unsigned, u32::swap_bytes;
    u64: Unsigned, u64::swap_bytes;
    f16: Float, |number: f16| f16::from_bits(number.to_bits().swap_bytes());
    f32: Float, |number: f32| f32::from_bits(number.to_bits().swap_bytes());
    f64: Float, |number: f64| f64::from_bits(number.to_bits().swap_bytes());
    [f32; 2]: Complex, |number: [f32; 2]| number.map(f32::swapped);
    [f64; 2]: Complex, |number: [f64; 2]| number.map(f64::swapped);
}

impl Stored for bool {
    type Bytes = u8;

    fn swapped(byte: u8) -> u8 {
        byte
    }

    fn of_stored(stored: Tensor<u8>) -> Result<Tensor<bool>, NpyError> {
        let truth = |byte: &u8| match byte {
            0 | 1 => Ok(*byte == 1),
            other => Err(malformed("bytes 0 and 1 for False and True", other)),
        };
        let elements = stored.as_slice().iter().map(truth).collect::<Result<Vec<bool>, NpyError>>()?;
        Ok(Tensor::from_vec(elements, stored.layout().clone())?)
    }
}

impl NpyElement for bool {
    const KIND: Kind = Kind::Bool;
}

/// A `.npy` file whose header has been read.
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, npy};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = std::env::temp_dir().join(format!("tilewright-npy-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("numbers.npy");
/// let rows: Layout = "(2,3):(3,1)".parse()?;
/// let tensor = Tensor::from_vec(vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], rows)?;
/// npy::write(&path, &tensor.view())?;
///
/// let file = npy::NpyFile::open(&path)?;
/// assert_eq!((file.header().kind(), file.header().size()), (npy::Kind::Float, 4));
/// assert_eq!(file.header().shape().to_string(), "(2,3)");
/// let read: Tensor<f32> = file.read()?;
/// assert_eq!((read.layout(), read.as_slice()), (tensor.layout(), tensor.as_slice()));
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NpyFile {
    header: Header,
    rest: BufReader<File>,
    /// The length of the file after the header, in bytes; None for a pipe.
    length: Option<u64>,
}

impl NpyFile {
    /// Opens a file and reads its header.
    ///
    /// Errors: the system refuses; it is not a `.npy` file, or not of a supported form.
    pub fn open(path: impl AsRef<Path>) -> Result<NpyFile, NpyError> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        let mut rest = BufReader::new(file);
        let (header, read) = header::read(&mut rest)?;
        let length = about.is_file().then(|| about.len().saturating_sub(read));
        let Some(bytes) = header.bytes() else {
            return Err(malformed("a shape whose bytes can be counted in 64 bits", header.shape()));
        };
        if let Some(length) = length.filter(|length| *length != bytes) {
            return Err(malformed(ELEMENTS, format_args!("{length} instead of {bytes}")));
        }
        Ok(NpyFile { header, rest, length })
    }

    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The elements, in the layout of the file.
    ///
    /// Errors: the elements have another type; a boolean is neither 0 nor 1; the file ends too
    /// early, or continues; an extent is 0; there is not enough memory; the system refuses.
    pub fn read<T: NpyElement>(mut self) -> Result<Tensor<T>, NpyError> {
        self.holds::<T>()?;
        let header = &self.header;
        if header.shape().leaves().contains(&0) {
            return Err(malformed("extents of at least 1", header.shape()));
        }
        let layout = match header.order() {
            Order::C => Layout::row_major(header.shape())?,
            Order::Fortran => Layout::compact(header.shape())?,
        };
        let mut stored: Tensor<T::Bytes> = match self.length {
            // The length was compared with the shape when the file was opened.
            Some(_) => {
                let mut stored = Tensor::zeroed(layout)?;
                exactly(&mut self.rest, bytemuck::cast_slice_mut(stored.as_mut_slice()), ELEMENTS)?;
                stored
            }
            None => from_stream(&mut self.rest, layout)?,
        };
        if self.header.swapped() {
            stored.as_mut_slice().iter_mut().for_each(|element| *element = T::swapped(*element));
        }
        T::of_stored(stored)
    }
}

/// The expected length of a file, in words.
const ELEMENTS: &str = "as many bytes as the shape says";

/// Fills a buffer with bytes of a file. An error if the file has fewer.
fn exactly(file: &mut impl Read, place: &mut [u8], expected: &'static str) -> Result<(), NpyError> {
    file.read_exact(place).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => malformed(expected, "the end of the file before"),
        _ => error.into(),
    })
}

/// The elements of a stream. Memory is allocated as they arrive, because the extents in the header
/// may be wrong.
fn from_stream<T: Pod>(stream: &mut impl Read, layout: Layout) -> Result<Tensor<T>, NpyError> {
    const PIECE: usize = 1 << 16;
    let wanted = usize::try_from(layout.size()).unwrap_or(usize::MAX);
    let mut elements: Vec<T> = Vec::new();
    while elements.len() < wanted {
        let (begin, piece) = (elements.len(), (wanted - elements.len()).min(PIECE));
        elements.resize(begin + piece, T::zeroed());
        let place = elements.get_mut(begin..).unwrap_or_default();
        exactly(stream, bytemuck::cast_slice_mut(place), ELEMENTS)?;
    }
    if stream.read(&mut [0])? > 0 {
        return Err(malformed(ELEMENTS, "more"));
    }
    Ok(Tensor::from_vec(elements, layout)?)
}

/// Reads the tensor of a `.npy` file.
///
/// Errors: as [`NpyFile::open`] and [`NpyFile::read`].
pub fn read<T: NpyElement>(path: impl AsRef<Path>) -> Result<Tensor<T>, NpyError> {
    NpyFile::open(path)?.read()
}

/// The extents of a file as a shape.
fn shape_of(extents: Vec<i64>) -> Result<Tree<i64>, NpyError> {
    Ok(Tree::flat(extents)?)
}
