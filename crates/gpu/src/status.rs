//! Errors that the driver reports.
//!
//! Law: a status is the driver's number with the driver's own name and description. A table here
//! lists the numbers that mean that a device is lost: after one of them, every further call in the
//! same context returns the same number.
//!
//! (CUDA driver API, `CUresult`.)

use std::fmt;

/// The return value of a function of the driver: 0, or an error number (`CUresult`).
pub(crate) type Code = i32;

/// The numbers that this crate distinguishes (`CUresult`).
pub(crate) mod code {
    use super::Code;

    /// Not a number of the driver: no call was made, because this process was forked.
    pub(crate) const FORKED: Code = -1;
    pub(crate) const SUCCESS: Code = 0;
    pub(crate) const OUT_OF_MEMORY: Code = 2;
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Code = 704;
    pub(crate) const STUB_LIBRARY: Code = 34;
    pub(crate) const NO_DEVICE: Code = 100;
    pub(crate) const NO_BINARY_FOR_GPU: Code = 209;
    pub(crate) const UNSUPPORTED_PTX_VERSION: Code = 222;
    pub(crate) const NOT_FOUND: Code = 500;
    pub(crate) const NOT_READY: Code = 600;

    /// Errors after which a context is unusable: errors of memory or hardware, invalid addresses
    /// and instructions of a kernel, a kernel that ran too long, a failed assertion, a lost device.
    pub(crate) const LOST: &[Code] = &[46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721];
}

/// A report of the driver: a number of `CUresult`, its name, and the driver's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    code: Code,
    name: Box<str>,
    words: Box<str>,
}

impl Status {
    pub(crate) fn new(code: Code, name: Option<String>, words: Option<String>) -> Status {
        let name = name.unwrap_or_else(|| format!("error {code}"));
        Status { code, name: name.into(), words: words.unwrap_or_default().into() }
    }

    /// The number.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// The name, such as `CUDA_ERROR_INVALID_VALUE`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's description; empty if it has none.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Whether every further call will return the same error: see E0806.
    pub fn loses_device(&self) -> bool {
        code::LOST.contains(&self.code)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.code)?;
        if self.words.is_empty() { Ok(()) } else { write!(f, ", {}", self.words) }
    }
}

/// A version as text.
pub(crate) fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
