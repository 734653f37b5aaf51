//! Lookup of a tensor of a kernel by name.

use crate::launch::SetupError;

/// A tensor of a kernel: by its name, or by its number in the order in which a launch passes them.
///
/// ```
/// use tilewright_kernel::interpret::TensorName;
///
/// assert_eq!(TensorName::from("x").to_string(), "`x`");
/// assert_eq!(TensorName::from(1).to_string(), "1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TensorName<'a> {
    /// As the kernel declares it.
    Name(&'a str),
    /// From 0 on.
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
    /// Its number among tensors of these names.
    ///
    /// Errors: there is none.
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
