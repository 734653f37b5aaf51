//! Element types.
//!
//! Law: a type has NumPy's name and a short one, and the DLPack type with the same bits. Every
//! pattern of bits is one number. A number that is written is rounded to nearest, ties to even. A
//! number too large for an 8-bit type becomes its largest number, as on devices. An integer that
//! does not fit is refused.

use bytemuck::Pod;
use dlpark::ffi::DLDataType;
use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyComplexMethods, PyFloat, PyInt};

/// The type of the elements of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    E4M3,
    E5M2,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
}

/// A type: its names, its code in `__array_interface__`, its size in bytes, and its DLPack type.
struct Row {
    element: Element,
    name: &'static str,
    short: &'static str,
    /// None if NumPy itself does not have the type.
    code: Option<&'static str>,
    bytes: usize,
    exchanged: DLDataType,
}

const fn row(
    element: Element,
    name: &'static str,
    short: &'static str,
    code: Option<&'static str>,
    bytes: usize,
    exchanged: DLDataType,
) -> Row {
    Row { element, name, short, code, bytes, exchanged }
}

const ROWS: [Row; 17] = [
    row(Element::Bool, "bool", "bool", Some("|b1"), 1, DLDataType::BOOL),
    row(Element::I8, "int8", "i8", Some("|i1"), 1, DLDataType::I8),
    row(Element::I16, "int16", "i16", Some("<i2"), 2, DLDataType::I16),
    row(Element::I32, "int32", "i32", Some("<i4"), 4, DLDataType::I32),
    row(Element::I64, "int64", "i64", Some("<i8"), 8, DLDataType::I64),
    row(Element::U8, "uint8", "u8", Some("|u1"), 1, DLDataType::U8),
    row(Element::U16, "uint16", "u16", Some("<u2"), 2, DLDataType::U16),
    row(Element::U32, "uint32", "u32", Some("<u4"), 4, DLDataType::U32),
    row(Element::U64, "uint64", "u64", Some("<u8"), 8, DLDataType::U64),
    row(Element::E4M3, "float8_e4m3fn", "e4m3", None, 1, DLDataType::F8E4M3FN),
    row(Element::E5M2, "float8_e5m2", "e5m2", None, 1, DLDataType::F8E5M2),
    row(Element::F16, "float16", "f16", Some("<f2"), 2, DLDataType::F16),
    row(Element::BF16, "bfloat16", "bf16", None, 2, DLDataType::BF16),
    row(Element::F32, "float32", "f32", Some("<f4"), 4, DLDataType::F32),
    row(Element::F64, "float64", "f64", Some("<f8"), 8, DLDataType::F64),
    row(Element::C64, "complex64", "c64", Some("<c8"), 8, DLDataType::C64),
    row(Element::C128, "complex128", "c128", Some("<c16"), 16, DLDataType::C128),
];

impl Element {
    fn row(self) -> &'static Row {
        // The rows are in the order of the types.
        &ROWS[self as usize]
    }

    /// The name in NumPy, or in the package `ml_dtypes`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The type's code in `__array_interface__`; None if NumPy does not have the type.
    pub fn code(self) -> Option<&'static str> {
        self.row().code
    }

    pub fn bytes(self) -> usize {
        self.row().bytes
    }

    /// Whether it is an integer or a boolean.
    pub fn is_integer(self) -> bool {
        !matches!(
            self,
            Element::E4M3
                | Element::E5M2
                | Element::F16
                | Element::BF16
                | Element::F32
                | Element::F64
                | Element::C64
                | Element::C128
        )
    }

    /// The alignment of an element in bytes: the size of its number, of which a complex element has
    /// two.
    pub fn alignment(self) -> usize {
        match self {
            Element::C64 | Element::C128 => self.bytes() / 2,
            _ => self.bytes(),
        }
    }

    /// The DLPack type.
    pub fn exchanged(self) -> DLDataType {
        self.row().exchanged
    }

    /// The type with a DLPack type; None if there is none.
    pub fn of_exchanged(found: DLDataType) -> Option<Element> {
        ROWS.iter().find(|row| row.exchanged.matches(found)).map(|row| row.element)
    }

    /// The type with this name, long or short; `torch.float32` and `dtype('float32')` are also
    /// accepted.
    ///
    /// Errors: there is no such type, or its numbers have another byte order (`TypeError`).
    pub fn named(dtype: &Bound<'_, PyAny>) -> PyResult<Element> {
        // NumPy's types are classes with the names of their array types.
        let text = match dtype.getattr("__name__") {
            Ok(name) => name.str()?.to_string(),
            Err(_) => dtype.str()?.to_string(),
        };
        let name = text.rsplit('.').next().unwrap_or(&text);
        let name = match name {
            "float" => "float64",
            "int" => "int64",
            "bool_" => "bool",
            "complex" => "complex128",
            "half" => "float16",
            name => name,
        };
        let found = ROWS.iter().find(|row| row.name == name || row.short == name || row.code == Some(name));
        found.map(|row| row.element).ok_or_else(|| {
            let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            PyTypeError::new_err(format!("no type of elements is called '{text}'; there are {}", known.join(", ")))
        })
    }

    /// The Python number of an element.
    pub fn number<'py>(self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        /// Reads the bytes of an element as a number of a type.
        fn of<T: Pod>(bytes: &[u8]) -> T {
            bytemuck::pod_read_unaligned(bytes)
        }
        let float = |value: f64| Ok(PyFloat::new(py, value).into_any());
        match self {
            Element::Bool => Ok(PyBool::new(py, of::<u8>(bytes) != 0).to_owned().into_any()),
            Element::I8 => Ok(of::<i8>(bytes).into_pyobject(py)?.into_any()),
            Element::I16 => Ok(of::<i16>(bytes).into_pyobject(py)?.into_any()),
            Element::I32 => Ok(of::<i32>(bytes).into_pyobject(py)?.into_any()),
            Element::I64 => Ok(of::<i64>(bytes).into_pyobject(py)?.into_any()),
            Element::U8 => Ok(of::<u8>(bytes).into_pyobject(py)?.into_any()),
            Element::U16 => Ok(of::<u16>(bytes).into_pyobject(py)?.into_any()),
            Element::U32 => Ok(of::<u32>(bytes).into_pyobject(py)?.into_any()),
            Element::U64 => Ok(of::<u64>(bytes).into_pyobject(py)?.into_any()),
            Element::E4M3 => float(F8E4M3::from_bits(of(bytes)).to_f64()),
            Element::E5M2 => float(F8E5M2::from_bits(of(bytes)).to_f64()),
            Element::F16 => float(of::<f16>(bytes).to_f64()),
            Element::BF16 => float(of::<bf16>(bytes).to_f64()),
            Element::F32 => float(f64::from(of::<f32>(bytes))),
            Element::F64 => float(of::<f64>(bytes)),
            Element::C64 => {
                let [re, im] = of::<[f32; 2]>(bytes);
                Ok(PyComplex::from_doubles(py, f64::from(re), f64::from(im)).into_any())
            }
            Element::C128 => {
                let [re, im] = of::<[f64; 2]>(bytes);
                Ok(PyComplex::from_doubles(py, re, im).into_any())
            }
        }
    }

    /// The bytes of a Python number.
    ///
    /// Errors: it is not a number of this kind (`TypeError`); an integer does not fit
    /// (`OverflowError`).
    pub fn bytes_of(self, number: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let float = || number.extract::<f64>().map_err(|_| self.no_number(number));
        let complex = || match number.cast::<PyComplex>() {
            Ok(number) => Ok([number.real(), number.imag()]),
            Err(_) => Ok::<_, PyErr>([float()?, 0.0]),
        };
        match self {
            Element::Bool => Ok(vec![u8::from(number.is_truthy()?)]),
            Element::I8 => self.integer::<i8>(number),
            Element::I16 => self.integer::<i16>(number),
            Element::I32 => self.integer::<i32>(number),
            Element::I64 => self.integer::<i64>(number),
            Element::U8 => self.integer::<u8>(number),
            Element::U16 => self.integer::<u16>(number),
            Element::U32 => self.integer::<u32>(number),
            Element::U64 => self.integer::<u64>(number),
            Element::E4M3 => Ok(vec![F8E4M3::from_f64(float()?).to_bits()]),
            Element::E5M2 => Ok(vec![F8E5M2::from_f64(float()?).to_bits()]),
            Element::F16 => Ok(f16::from_f64(float()?).to_ne_bytes().to_vec()),
            Element::BF16 => Ok(bf16::from_f64(float()?).to_ne_bytes().to_vec()),
            Element::F32 => Ok((float()? as f32).to_ne_bytes().to_vec()),
            Element::F64 => Ok(float()?.to_ne_bytes().to_vec()),
            Element::C64 => Ok(bytemuck::bytes_of(&complex()?.map(|part| part as f32)).to_vec()),
            Element::C128 => Ok(bytemuck::bytes_of(&complex()?).to_vec()),
        }
    }

    /// The bytes of an integer.
    fn integer<T: Pod + for<'a, 'py> FromPyObject<'a, 'py>>(self, number: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        // A float is not an integer, even if its value is.
        let Ok(whole) = number.call_method0(pyo3::intern!(number.py(), "__index__")) else {
            return Err(self.no_number(number));
        };
        match whole.extract::<T>() {
            Ok(value) => Ok(bytemuck::bytes_of(&value).to_vec()),
            Err(_) if whole.cast::<PyInt>().is_ok() => {
                Err(PyOverflowError::new_err(format!("{whole} does not fit into {}", self.name())))
            }
            Err(_) => Err(self.no_number(number)),
        }
    }

    fn no_number(self, found: &Bound<'_, PyAny>) -> PyErr {
        let kind = found.get_type();
        let kind = kind.name().map_or_else(|_| "this object".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("an element of {} is a number, not {kind}", self.name()))
    }
}
