//! The classes of tilers, swizzles, maps over bits and morphisms.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use tilewright_layout::morphism::NestMorphism;
use tilewright_layout::{AnyTiler, Named};
use tilewright_notation::{Value, apply};

use crate::convert::{self, python};
use crate::object::{Object, read};
use crate::{function, notes, refusal};

/// A tiler: a layout or a shape for each mode, `None` for a mode that is kept.
/// `Tiler(2, Layout(4, 1))`, `Tiler("[2:1;4:1]")`.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct Tiler;

#[pymethods]
impl Tiler {
    #[new]
    #[pyo3(signature = (*modes))]
    fn new(py: Python<'_>, modes: &Bound<'_, PyTuple>) -> PyResult<PyClassInitializer<Self>> {
        if let Ok(text) = modes.get_item(0).and_then(|only| Ok(only.cast_into::<PyString>()?))
            && modes.len() == 1
        {
            return Ok(read(py, text.to_str()?, "Tiler", |value| matches!(value, Value::Tiler(_)))?.of(Tiler));
        }
        let modes = modes.iter().map(|mode| convert::value(&mode)).collect::<PyResult<Vec<_>>>()?;
        let tilers = modes.iter().map(|mode| match mode.any_tiler() {
            Some(tiler) => tiler.map_err(|error| refusal::of_layout(py, error)),
            None => Err(PyTypeError::new_err(format!(
                "a mode of a tiler is a layout, a shape or None, not a {}",
                mode.kind()
            ))),
        });
        let tilers = tilers.collect::<PyResult<Vec<AnyTiler>>>()?;
        let tiler = AnyTiler::modes(&tilers).map_err(|error| refusal::of_layout(py, error))?;
        Ok(Object::from(Value::Tiler(tiler)).of(Tiler))
    }

    /// The number of modes that it tiles.
    fn __len__(slf: &Bound<'_, Self>) -> usize {
        match &slf.as_super().get().value {
            Value::Tiler(tiler) => tiler.rank(),
            _ => 0,
        }
    }
}

/// A swizzle, in CuTe's order: bits, base, shift. It XORs the `bits` bits from `base` on with the
/// bits `shift` above them.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct Swizzle;

impl Swizzle {
    fn of(slf: &Bound<'_, Self>) -> PyResult<tilewright_layout::Swizzle> {
        match &slf.as_super().get().value {
            Value::Swizzle(swizzle) => Ok(*swizzle),
            _ => Err(PyTypeError::new_err("this is no swizzle")),
        }
    }
}

#[pymethods]
impl Swizzle {
    #[new]
    #[pyo3(signature = (bits, base = None, shift = None))]
    fn new(
        py: Python<'_>,
        bits: &Bound<'_, PyAny>,
        base: Option<i64>,
        shift: Option<i64>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let object = match (bits.cast::<PyString>(), base, shift) {
            (Ok(text), None, None) => read(py, text.to_str()?, "Swizzle", |value| matches!(value, Value::Swizzle(_)))?,
            (Err(_), Some(base), Some(shift)) => {
                let swizzle = tilewright_layout::Swizzle::new(bits.extract()?, base, shift);
                Object::from(Value::from(swizzle.map_err(|error| refusal::of_layout(py, error))?))
            }
            _ => return Err(PyTypeError::new_err("a swizzle is Swizzle(bits, base, shift) or Swizzle('S<3,4,3>')")),
        };
        Ok(object.of(Swizzle))
    }

    /// The number of bits that it changes.
    #[getter]
    fn bits(slf: &Bound<'_, Self>) -> PyResult<i64> {
        Ok(Swizzle::of(slf)?.bits())
    }

    /// The lowest bit that it changes.
    #[getter]
    fn base(slf: &Bound<'_, Self>) -> PyResult<i64> {
        Ok(Swizzle::of(slf)?.base())
    }

    /// The distance from these bits to the bits that it reads.
    #[getter]
    fn shift(slf: &Bound<'_, Self>) -> PyResult<i64> {
        Ok(Swizzle::of(slf)?.shift())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let swizzle = Swizzle::of(slf)?;
        Ok(format!("Swizzle({}, {}, {})", swizzle.bits(), swizzle.base(), swizzle.shift()))
    }

    /// The image of an offset.
    #[pyo3(signature = (offset, /))]
    fn __call__<'py>(slf: &Bound<'py, Self>, offset: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        applied(slf.as_super(), std::slice::from_ref(&convert::value(offset)?))
    }
}

/// A linear map over bits, column by column: `BitMatrix("F2<2>[2,3]")`, or `BitMatrix(2, (2, 3))`
/// from the number of bits of a value and the images of the bits of an index.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct BitMatrix;

impl BitMatrix {
    fn of<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a tilewright_layout::BitMatrix> {
        match &slf.as_super().get().value {
            Value::Matrix(matrix) => Ok(matrix),
            _ => Err(PyTypeError::new_err("this is no bit matrix")),
        }
    }
}

#[pymethods]
impl BitMatrix {
    #[new]
    #[pyo3(signature = (outputs, columns = None))]
    fn new(
        py: Python<'_>,
        outputs: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let object = match (outputs.cast::<PyString>(), columns) {
            (Ok(text), None) => read(py, text.to_str()?, "BitMatrix", |value| matches!(value, Value::Matrix(_)))?,
            (Err(_), Some(columns)) => {
                let matrix = tilewright_layout::BitMatrix::new(outputs.extract()?, crate::convert::list(columns)?);
                Object::from(Value::from(matrix.map_err(|error| refusal::of_layout(py, error))?))
            }
            _ => {
                return Err(PyTypeError::new_err(
                    "a bit matrix is BitMatrix(outputs, columns) or BitMatrix('F2<2>[2,3]')",
                ));
            }
        };
        Ok(object.of(BitMatrix))
    }

    /// The number of bits of an index.
    #[getter]
    fn inputs(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(BitMatrix::of(slf)?.inputs())
    }

    /// The number of bits of a value.
    #[getter]
    fn outputs(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Ok(BitMatrix::of(slf)?.outputs())
    }

    /// The image of each bit of an index, the lowest first.
    #[getter]
    fn columns<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(slf.py(), BitMatrix::of(slf)?.columns())
    }

    /// The value at an index.
    #[pyo3(signature = (index, /))]
    fn __call__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        applied(slf.as_super(), std::slice::from_ref(&convert::value(index)?))
    }
}

/// A linear map over bits with named inputs and outputs: `LinearLayout("lane=[(1,0),(2,0)] -> row:4
/// column:2")`.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct LinearLayout;

impl LinearLayout {
    fn of<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a tilewright_layout::LinearLayout> {
        match &slf.as_super().get().value {
            Value::Linear(map) => Ok(map),
            _ => Err(PyTypeError::new_err("this is no linear layout")),
        }
    }
}

#[pymethods]
impl LinearLayout {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<PyClassInitializer<Self>> {
        Ok(read(py, text, "LinearLayout", |value| matches!(value, Value::Linear(_)))?.of(LinearLayout))
    }

    /// The size of each input, by name, the lowest bits first.
    #[getter]
    fn inputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        sizes(slf.py(), LinearLayout::of(slf)?.inputs())
    }

    /// The size of each output, by name, the lowest bits first.
    #[getter]
    fn outputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        sizes(slf.py(), LinearLayout::of(slf)?.outputs())
    }

    /// The map without names.
    #[getter]
    fn matrix<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), LinearLayout::of(slf)?.matrix().clone().into())
    }

    /// The outputs at one index per input.
    #[pyo3(signature = (*indices))]
    fn __call__<'py>(slf: &Bound<'py, Self>, indices: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let indices = indices.iter().map(|index| convert::value(&index)).collect::<PyResult<Vec<_>>>()?;
        applied(slf.as_super(), &indices)
    }
}

/// Names with their sizes; a name has fewer than 63 bits.
fn sizes<'py>(py: Python<'py>, names: &[Named]) -> PyResult<Bound<'py, PyDict>> {
    let sizes = PyDict::new(py);
    for (name, bits) in names {
        sizes.set_item(&**name, 1_u64 << bits)?;
    }
    Ok(sizes)
}

/// A morphism of nested tuples: `Morphism("(4,5) -> (4,16,5) : (1,3)")`, or `Morphism((4, 5), (4,
/// 16, 5), (1, 3))`. An entry of the map is the position of the image, from 1 on, or `None` for an
/// entry without an image.
#[pyclass(frozen, extends = Object, module = "tilewright")]
pub struct Morphism;

impl Morphism {
    fn of<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a NestMorphism> {
        match &slf.as_super().get().value {
            Value::Morphism(morphism) => Ok(morphism),
            _ => Err(PyTypeError::new_err("this is no morphism")),
        }
    }
}

#[pymethods]
impl Morphism {
    #[new]
    #[pyo3(signature = (domain, codomain = None, map = None))]
    fn new(
        py: Python<'_>,
        domain: &Bound<'_, PyAny>,
        codomain: Option<&Bound<'_, PyAny>>,
        map: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let text = match (domain.cast::<PyString>(), codomain, map) {
            (Ok(text), None, None) => text.to_str()?.to_owned(),
            (Err(_), Some(codomain), Some(map)) => {
                let (domain, codomain, map) =
                    (convert::value(domain)?, convert::value(codomain)?, convert::value(map)?);
                format!("{domain} -> {codomain} : {}", map.to_string().replace('_', "*"))
            }
            _ => {
                let forms = "Morphism(domain, codomain, map) or Morphism('(4,5) -> (4,16,5) : (1,3)')";
                return Err(PyTypeError::new_err(format!("a morphism is {forms}")));
            }
        };
        Ok(read(py, &text, "Morphism", |value| matches!(value, Value::Morphism(_)))?.of(Morphism))
    }

    /// The domain.
    #[getter]
    fn domain<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), Morphism::of(slf)?.domain().into())
    }

    /// The codomain.
    #[getter]
    fn codomain<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), Morphism::of(slf)?.codomain().into())
    }

    /// The layout that it encodes.
    #[getter]
    fn layout<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        function::called(slf.py(), "encoded", std::slice::from_ref(&slf.as_super().get().value))
    }

    /// The value of the layout that it encodes.
    #[pyo3(signature = (*coordinate))]
    fn __call__<'py>(slf: &Bound<'py, Self>, coordinate: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let indices = coordinate.iter().map(|index| convert::value(&index)).collect::<PyResult<Vec<_>>>()?;
        applied(slf.as_super(), &indices)
    }
}

/// The value of a map at a coordinate.
pub fn applied<'py>(map: &Bound<'py, Object>, indices: &[Value]) -> PyResult<Bound<'py, PyAny>> {
    let (py, own) = (map.py(), map.get().own(map.py())?);
    let value = apply(own, indices).map_err(|refused| refusal::of_call(py, &refused))?;
    let place = match indices {
        [only] => Ok(only.clone()),
        modes => Value::tuple(modes.to_vec()),
    };
    if let Ok(place) = place {
        notes::about(py, "", &[own, &place], &value)?;
    }
    python(py, value)
}
