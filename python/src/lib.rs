//! The native part of the Python package `tilewright`.
//!
//! Law: Python computes nothing of its own. A value of the package is a value of the language
//! ([`tilewright_notation::Value`]), a function of the package is a row of the language's table, and
//! what the language refuses is raised as `LayoutError` with the same code, text and help.
//!
//! * `object`: the base class of all values, and what they have in common
//! * `layout`, `maps`, `numbers`: the classes
//! * `convert`: from Python's integers and tuples to values, and back
//! * `function`: the functions of the language, as functions and as methods
//! * `refusal`: exceptions
//! * `array`: layouts at arrays of indices
//! * `tensor`: memory under layouts, of other packages or of its own
//! * `picture`, `claim`, `analysis`: pictures, laws that are tested, costs of memory

mod analysis;
mod array;
mod claim;
mod convert;
mod function;
mod layout;
mod maps;
mod numbers;
mod object;
mod picture;
mod refusal;
mod tensor;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::analysis::{access_of, banks, covered, suggestions};
    #[pymodule_export]
    use super::claim::{check_call, check_equal, derivation};
    #[pymodule_export]
    use super::function::{Function, functions, spelling};
    #[pymodule_export]
    use super::layout::Layout;
    #[pymodule_export]
    use super::maps::{BitMatrix, LinearLayout, Morphism, Swizzle, Tiler};
    #[pymodule_export]
    use super::numbers::{Expr, Step, Xor};
    #[pymodule_export]
    use super::object::{Object, evaluate};
    #[pymodule_export]
    use super::picture::{Picture, picture};
    #[pymodule_export]
    use super::refusal::page;
    #[pymodule_export]
    use super::tensor::{Tensor, copy, gemm, zeros};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        function::attach(module)
    }
}
