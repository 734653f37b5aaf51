//! Why a launch is refused.

use std::fmt;

/// Why a launch is refused: an argument that cannot be read, or that does not fit the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchError {
    /// What is wrong, and what would help.
    pub message: String,
}

impl LaunchError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for LaunchError {}
