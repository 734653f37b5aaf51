//! Writes programs as PTX.
//!
//! Law: the text has the meaning of the program, instruction by instruction. Only the spelling is
//! chosen here: the text does nothing that the program does not state.
//!
//! Registers are declared only by their width (`.b32`), because the instructions say how they
//! interpret them. Constants are operands if an instruction accepts them. The version is the lowest
//! that has every instruction, so that older drivers load the text.

mod arithmetic;
mod asynchronous;
mod convert;
mod instruction;
mod memory;
mod module;
mod sums;
mod wgmma;
mod writer;

use std::error::Error;
use std::fmt;

use crate::machine::Multiprocessor;
use crate::program::Program;
pub use crate::target::{Feature, Target};
use writer::Writer;

/// Why a program cannot be written for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PtxError {
    /// E0921: the target lacks an instruction.
    Target {
        /// The instruction.
        what: String,
        /// The target.
        target: Target,
        /// What the target lacks.
        feature: Feature,
        /// The statement that it came from.
        statement: String,
    },
    /// E0926: a block of the target has too little shared memory.
    Shared {
        /// The bytes of shared memory of a block of the program.
        asked: u64,
        /// The bytes of shared memory that a block of the target may have.
        limit: u64,
        /// The target.
        target: Target,
    },
    /// E0922: an operation that no target has for this type.
    Operation {
        /// The feature.
        what: String,
        /// The statement that it came from.
        statement: String,
    },
}

impl PtxError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            PtxError::Target { .. } => "E0921",
            PtxError::Operation { .. } => "E0922",
            PtxError::Shared { .. } => "E0926",
        }
    }

    /// A hint on how to fix it.
    pub fn help(&self) -> String {
        match self {
            PtxError::Target { feature, .. } => {
                format!("write for {}, or use another instruction", feature.target_names())
            }
            PtxError::Operation { .. } => "convert to f32 for it".to_string(),
            PtxError::Shared { asked, .. } => {
                let has = |target: &Target| *asked <= most_shared(*target);
                let others: Vec<&str> = Target::ALL.into_iter().filter(has).map(Target::name).collect();
                match others.is_empty() {
                    true => "take smaller tiles or fewer stages".to_string(),
                    false => format!("write for {}, or take smaller tiles or fewer stages", others.join(" or ")),
                }
            }
        }
    }
}

impl fmt::Display for PtxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PtxError::Target { what, target, feature, statement } => {
                write!(f, "{statement}: {what} needs {}, not {}", feature.target_names(), target.name())
            }
            PtxError::Operation { what, statement } => write!(f, "{statement}: there is no {what}"),
            PtxError::Shared { asked, limit, target } => {
                let target = target.name();
                write!(f, "a block takes {asked} bytes of shared memory, and one of {target} has {limit}")
            }
        }
    }
}

impl Error for PtxError {}

impl tilewright_layout::Refusal for PtxError {
    fn code(&self) -> &'static str {
        PtxError::code(self)
    }

    fn help(&self) -> Option<String> {
        Some(PtxError::help(self))
    }
}

/// The most bytes of shared memory that a block of a target has.
fn most_shared(target: Target) -> u64 {
    Multiprocessor::of(target).block_shared_bytes.into()
}

/// The PTX of a program for a target.
///
/// The entry has the name of the program. Its parameters are the addresses of the tensors (64 bits
/// each), the scalars, and the tensor maps (128 bytes each), in the order of the program.
///
/// Errors: the target lacks an instruction (E0921); no target has an instruction for an operation
/// (E0922); a block of the target has too little shared memory (E0926).
pub fn write(program: &Program, target: Target) -> Result<String, PtxError> {
    let own = sums::in_place(program)?;
    let text = Writer::new(own.as_ref().unwrap_or(program), target).module()?;
    let (asked, limit) = (u64::from(program.shared_bytes), most_shared(target));
    if asked > limit {
        return Err(PtxError::Shared { asked, limit, target });
    }
    Ok(text)
}

/// The first target that has every instruction of a program.
///
/// ```
/// use tilewright_kernel::{Kernel, ptx};
///
/// let kernel = Kernel::build("nothing", |k| k.threads(32))?;
/// assert_eq!(ptx::least(kernel.program())?, ptx::Target::Sm80);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Errors: no target has an instruction for an operation.
pub fn least(program: &Program) -> Result<Target, PtxError> {
    let mut last = None;
    for target in Target::ALL {
        match write(program, target) {
            Ok(_) => return Ok(target),
            // Among the errors, that of the last target which only lacks shared memory says most.
            Err(error @ PtxError::Shared { .. }) => last = Some(error),
            Err(error @ PtxError::Target { .. }) => last = last.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    last.map_or(Ok(Target::Sm80), Err)
}
