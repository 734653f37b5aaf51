//! Rules of other packages for arrays that kernels read and write.
//!
//! Law: kernels record no gradients. So while PyTorch records gradients, a tensor that requires
//! grad is refused, whether it is read, which would lose its gradient, or written. A tensor that is
//! written is marked as written, so that PyTorch notices if a gradient needs its old value.
//! Inference tensors are written in inference mode only, and JAX arrays never, because they are
//! immutable. A PyTorch tensor with a pending negation is refused, because its memory contains
//! other numbers.
//!
//! Nothing is imported: a package whose arrays occur has been imported.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::foreign;
use crate::tensor::Tensor;

/// The functions of PyTorch that report its current mode.
struct Functions {
    is_grad_enabled: Py<PyAny>,
    is_inference_mode_enabled: Py<PyAny>,
    increment_version: Py<PyAny>,
    is_transformed: Option<Py<PyAny>>,
    /// The type of parameters of modules.
    parameter: Option<Py<PyType>>,
}

impl Functions {
    /// The functions; None if PyTorch was not imported.
    fn known(py: Python<'_>) -> PyResult<Option<&Functions>> {
        static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();
        if let Some(known) = FUNCTIONS.get(py) {
            return Ok(Some(known));
        }
        if foreign::torch(py)?.is_none() {
            return Ok(None);
        }
        let made = FUNCTIONS.get_or_try_init(py, || {
            let torch = py.import("torch")?;
            let graph = torch.getattr("autograd")?.getattr("graph")?;
            // This function is not public, and missing in other versions.
            let is_transformed = torch.getattr("_C")?.getattr("_are_functorch_transforms_active").ok();
            let parameter = torch.getattr("nn").and_then(|nn| nn.getattr("Parameter"));
            Ok::<_, PyErr>(Functions {
                is_grad_enabled: torch.getattr("is_grad_enabled")?.unbind(),
                is_inference_mode_enabled: torch.getattr("is_inference_mode_enabled")?.unbind(),
                increment_version: graph.getattr("increment_version")?.unbind(),
                is_transformed: is_transformed.map(Bound::unbind),
                parameter: parameter.and_then(|own| Ok(own.cast_into::<PyType>()?)).ok().map(Bound::unbind),
            })
        });
        made.map(Some)
    }

    /// An error if a kernel may not write a tensor (`RuntimeError`). The tensor's own
    /// `requires_grad` is not checked here.
    fn check_written(&self, tensor: &Bound<'_, PyAny>, is_recording: bool) -> PyResult<()> {
        let py = tensor.py();
        if is_recording {
            // A view that was made without gradients is part of a tensor that may require grad.
            let base = tensor.getattr(pyo3::intern!(py, "_base"))?;
            if !base.is_none() && base.getattr(pyo3::intern!(py, "requires_grad"))?.is_truthy()? {
                return Err(PyRuntimeError::new_err(
                    "the array is written, and is a view of a tensor that requires grad: call this under \
                     `torch.no_grad()`",
                ));
            }
        }
        let is_inference = tensor.call_method0(pyo3::intern!(py, "is_inference"))?.is_truthy()?;
        if is_inference && !self.is_inference_mode_enabled.bind(py).call0()?.is_truthy()? {
            return Err(PyRuntimeError::new_err(
                "the array is written, and is a tensor of inference mode: call this under `torch.inference_mode()`, \
                 or pass `tensor.clone()`",
            ));
        }
        Ok(())
    }

    /// Marks a tensor as written.
    fn mark(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        self.increment_version.bind(tensor.py()).call1((tensor,))?;
        Ok(())
    }
}

/// The current mode of PyTorch, for calls on its ordinary tensors.
pub struct PlainRules<'py> {
    tensor: &'py Bound<'py, PyType>,
    functions: &'py Functions,
    is_recording: bool,
}

impl<'py> PlainRules<'py> {
    /// The current rules; None if PyTorch was not imported.
    pub fn now(py: Python<'py>) -> PyResult<Option<PlainRules<'py>>> {
        let (Some(tensor), Some(functions)) = (foreign::torch(py)?, Functions::known(py)?) else { return Ok(None) };
        let is_recording = functions.is_grad_enabled.bind(py).call0()?.is_truthy()?;
        Ok(Some(PlainRules { tensor, functions, is_recording }))
    }

    /// Whether a transformation of functions such as `vmap` is active. Its tensors look like
    /// ordinary ones, but have no memory.
    pub fn is_transformed(&self, py: Python<'py>) -> PyResult<bool> {
        match &self.functions.is_transformed {
            Some(asked) => asked.bind(py).call0()?.is_truthy(),
            None => Ok(false),
        }
    }

    /// Whether an object is an ordinary tensor, not one of a derived class of another package.
    pub fn is_plain(&self, object: &Bound<'py, PyAny>) -> bool {
        let kind = object.get_type();
        kind.is(self.tensor) || self.functions.parameter.as_ref().is_some_and(|own| kind.is(own))
    }

    /// Whether gradients with respect to a tensor that is read are recorded.
    ///
    /// Errors: its memory contains the negatives of its elements (`RuntimeError`).
    pub fn is_recorded(&self, tensor: &Bound<'py, PyAny>) -> PyResult<bool> {
        check_resolved(tensor)?;
        Ok(self.is_recording && tensor.getattr(pyo3::intern!(tensor.py(), "requires_grad"))?.is_truthy()?)
    }

    /// As [`Writes::check`], for a tensor that is written and with respect to which no gradients
    /// are recorded.
    pub fn check_written(&self, tensor: &Bound<'py, PyAny>) -> PyResult<()> {
        self.functions.check_written(tensor, self.is_recording)
    }

    /// Marks a tensor as written.
    pub fn mark(&self, tensor: &Bound<'py, PyAny>) -> PyResult<()> {
        self.functions.mark(tensor)
    }
}

/// The rules of the current mode of PyTorch, if it was imported.
pub struct Writes<'py> {
    functions: Option<&'py Functions>,
    is_recording: bool,
}

/// The reason why a tensor that requires grad is refused.
const GRADIENT: &str = "the array is a tensor that requires grad, and no gradient is recorded here: pass \
                        `tensor.detach()`, or call this under `torch.no_grad()`";

impl<'py> Writes<'py> {
    /// The current rules.
    pub fn now(py: Python<'py>) -> PyResult<Writes<'py>> {
        let Some(functions) = Functions::known(py)? else {
            return Ok(Writes { functions: None, is_recording: false });
        };
        let is_recording = functions.is_grad_enabled.bind(py).call0()?.is_truthy()?;
        Ok(Writes { functions: Some(functions), is_recording })
    }

    /// An error if a kernel may not read, or may not write, an array (`RuntimeError`).
    pub fn check(&self, array: &Bound<'py, PyAny>, written: bool) -> PyResult<()> {
        let Some(functions) = self.functions else { return Ok(()) };
        let Some(tensor) = of_torch(array)? else { return Ok(()) };
        let tensor = tensor.as_ref().unwrap_or(array);
        check_resolved(tensor)?;
        if self.is_recording && tensor.getattr(pyo3::intern!(array.py(), "requires_grad"))?.is_truthy()? {
            return Err(PyRuntimeError::new_err(GRADIENT));
        }
        if !written {
            return Ok(());
        }
        functions.check_written(tensor, self.is_recording)
    }

    /// Marks an array as written.
    pub fn mark(&self, array: &Bound<'py, PyAny>) -> PyResult<()> {
        let Some(functions) = self.functions else { return Ok(()) };
        let Some(tensor) = of_torch(array)? else { return Ok(()) };
        functions.mark(tensor.as_ref().unwrap_or(array))
    }
}

/// An error if the memory of a PyTorch tensor contains the negatives of its elements
/// (`RuntimeError`), as for `x.conj().imag`.
pub fn check_resolved(tensor: &Bound<'_, PyAny>) -> PyResult<()> {
    if tensor.call_method0(pyo3::intern!(tensor.py(), "is_neg"))?.is_truthy()? {
        return Err(PyRuntimeError::new_err(
            "the array is a tensor that is not negated yet: pass `tensor.resolve_neg()`",
        ));
    }
    Ok(())
}

/// The PyTorch tensor of an array, which is another object if that tensor lends its memory to a
/// tensor of this package; None for arrays of other packages.
fn of_torch<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Option<Bound<'py, PyAny>>>> {
    if foreign::is_torch(array)? {
        return Ok(Some(None));
    }
    match array.cast::<Tensor>() {
        Ok(tensor) => Ok(tensor.get().lender(array.py()).map(Some)),
        Err(_) => Ok(None),
    }
}

/// Whether the arrays of an object's package are immutable.
pub fn is_immutable(array: &Bound<'_, PyAny>) -> bool {
    let module = array.get_type().module();
    module
        .is_ok_and(|module| module.to_str().is_ok_and(|name| matches!(name.split('.').next(), Some("jax" | "jaxlib"))))
}

/// Refuses arrays that a kernel may not read or write, before it runs; `written` says which are
/// written.
#[pyfunction]
pub fn check_arrays(py: Python<'_>, arrays: Vec<Bound<'_, PyAny>>, written: Vec<bool>) -> PyResult<()> {
    let rules = Writes::now(py)?;
    arrays.iter().zip(written).try_for_each(|(array, written)| rules.check(array, written))
}

/// Marks arrays as written, after a kernel ran.
#[pyfunction]
pub fn mark_written(py: Python<'_>, arrays: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
    let rules = Writes::now(py)?;
    arrays.iter().try_for_each(|array| rules.mark(array))
}
