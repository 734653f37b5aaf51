//! Shuffles of numbers between the lanes of a warp.
//!
//! Law: all 32 lanes take part. A lane gets the bits of the number that its source lane offers.

use super::Build;
use super::number::Num;
use crate::error::Reason;
use crate::program::WARP_LANES;
use crate::program::operation::Shuffle;

impl Build {
    /// The number of the lane whose index is this lane's index XOR `mask`. A warp has 32 lanes, so
    /// the mask is from 0 to 31.
    ///
    /// ```
    /// use tilewright_kernel::{Build, Kernel, KernelError, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Neighbouring lanes change places.
    /// let swapped = |mask: u32| {
    ///     Kernel::build("swapped", |k: &Build| -> Result<(), KernelError> {
    ///         let (x, y) = (k.input::<f32>("x", "(32,1):(1,32)")?, k.output::<f32>("y", "(32,1):(1,32)")?);
    ///         k.threads(32)?;
    ///         let part = x.thread_part()?.load()?;
    ///         y.thread_part()?.store(&part.map(|x| Ok(k.shuffle_xor(x, mask)))?)
    ///     })
    /// };
    /// let run = interpret::check(swapped(1)?.program(), &[])?.run;
    /// assert_eq!(run.tensor::<f32>("y")?[6], run.tensor::<f32>("x")?[7]);
    /// // No lane is 32 further on. A number has nothing to refuse with: the kernel is refused.
    /// assert_eq!(swapped(32).unwrap_err().code(), "E0910");
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn shuffle_xor<'k>(&'k self, value: Num<'k>, mask: u32) -> Num<'k> {
        let (mut core, location) = self.begin("shuffle_xor");
        if mask >= WARP_LANES as u32 {
            drop(core);
            let because = format!("a warp has {WARP_LANES} lanes, so the mask is from 0 to {}", WARP_LANES - 1);
            let refusal = Reason::Instruction { name: format!("shuffle_xor by {mask}"), because };
            self.complain(refusal.at("shuffle_xor", location));
            return value;
        }
        let register = core.shuffled(value.register(), &Shuffle::Butterfly(mask), None);
        drop(core);
        Num::new(self, register, value.element())
    }
}
