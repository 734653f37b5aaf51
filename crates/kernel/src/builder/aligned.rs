//! Tensors with an alignment of less than 16 bytes.
//!
//! Law: the launch guarantees that the address of each tensor in global memory is aligned to 16
//! bytes, or to the alignment that is set here. No access relies on more, which the interpreter
//! checks.

use super::Build;
use super::tensor::View;
use crate::error::{KernelError, Reason};
use crate::program::memory::Space;
use crate::program::{Location, Source};

impl<'k> View<'k> {
    /// The same tensor with a smaller alignment: a launch only guarantees that its address is a
    /// multiple of `bytes`.
    ///
    /// ```
    /// use tilewright_kernel::Kernel;
    ///
    /// let kernel = Kernel::build("copy", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "128:1")?.aligned(4)?, k.output::<f32>("y", "128:1")?);
    ///     k.threads(128)?;
    ///     let thread = k.thread()?;
    ///     y.at(&thread)?.store(&x.at(&thread)?.load()?)
    /// });
    /// let kernel = kernel.unwrap();
    /// let alignments: Vec<u32> = kernel.program().tensors().map(|tensor| tensor.alignment).collect();
    /// assert_eq!(alignments, [4, 16]);
    /// ```
    ///
    /// Errors: `bytes` is not a power of two between the size of an element and 16; the tensor is
    /// in shared memory.
    #[track_caller]
    pub fn aligned(self, bytes: u32) -> Result<View<'k>, KernelError> {
        let location = Location::caller();
        let build: &Build = self.build;
        let mut core = build.core_for(Source { statement: "aligned", location });
        let buffer = &mut core.buffers[self.buffer.index()];
        let fits = bytes.is_power_of_two() && (buffer.element.bytes()..=16).contains(&bytes);
        if !fits || buffer.space == Space::Shared {
            let because = match buffer.space {
                Space::Shared => "shared memory is placed by the kernel".to_string(),
                Space::Global => format!("a power of two from {} to 16 is wanted", buffer.element.bytes()),
            };
            let name = format!("{} at multiples of {bytes} bytes", buffer.name);
            return Err(Reason::Instruction { name, because }.at("aligned", location));
        }
        buffer.alignment = bytes;
        drop(core);
        Ok(self)
    }
}
