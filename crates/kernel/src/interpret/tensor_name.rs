//! Lookup of a tensor of a kernel by name.

use crate::launch::SetupError;

/// A tensor of a kernel, given by its name, or by its index in launch order.
///
/// ```
/// use tilewright_kernel::interpret::TensorName;
///
/// assert_eq!(TensorName::from("x").to_string(), "`x`");
/// assert_eq!(TensorName::from(1).to_string(), "1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorName<'a> {
    /// The name that the kernel declares.
    Name(&'a str),
    /// The index, from 0.
    Number(usize),
}

impl<'a> From<&'a str> for TensorName<'a> {
    fn from(name: &'a str) -> TensorName<'a> {
        TensorName::Name(name)
    }
}

impl From<usize> for TensorName<'_> {
    fn from(number: usize) -> Self {
        TensorName::Number(number)
    }
}

impl std::fmt::Display for TensorName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TensorName::Name(name) => write!(f, "`{name}`"),
            TensorName::Number(number) => write!(f, "{number}"),
        }
    }
}

impl TensorName<'_> {
    /// The index among tensors with these names.
    ///
    /// Errors: there is no such tensor.
    pub(crate) fn index<'n>(self, names: impl Iterator<Item = &'n str>) -> Result<usize, SetupError> {
        let names: Vec<&str> = names.collect();
        let found = match self {
            TensorName::Name(name) => names.iter().position(|own| *own == name),
            TensorName::Number(number) => Some(number).filter(|number| *number < names.len()),
        };
        found.ok_or_else(|| SetupError::Argument {
            what: format!("there is no tensor {self}; the tensors of the kernel are {}", names.join(", ")),
        })
    }
}
