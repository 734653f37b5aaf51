//! Shuffles of numbers between the lanes of a warp.
//!
//! Law: all 32 lanes take part. A lane gets the bits of the number that its source lane offers.

use super::Build;
use super::number::{Flag, Num};
use crate::error::Reason;
use crate::program::WARP_LANES;
use crate::program::operation::{Comparison, Number, Operation, Shuffle};
use crate::program::register::Width;
use crate::program::{Location, Source};

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

    /// Whether a flag is true in any lane of the warp: all lanes get the same answer.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A warp counts its lanes where one of them has a number above 7.
    /// let kernel = Kernel::build("any_above", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "64:1")?, k.output::<f32>("y", "64:1")?);
    ///     k.threads(64)?;
    ///     let own = x.slice(k.thread()?)?.load()?.numbers()?[0];
    ///     let found = k.any_lane(own.gt(own.like(7.0)));
    ///     let (to, count) = (y.slice(k.thread()?)?, found.select(own.like(32.0), own.like(0.0)));
    ///     let result = to.fragment()?;
    ///     result.fill(count)?;
    ///     to.store(&result)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// let mut numbers = [0.0_f32; 64];
    /// numbers[40] = 8.0;
    /// let found = interpreter.fill(1).tensor("x", &numbers)?.check()?.run.tensor::<f32>("y")?;
    /// assert_eq!((found[0], found[31], found[32], found[63]), (0.0, 0.0, 32.0, 32.0));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn any_lane<'k>(&'k self, flag: Flag<'k>) -> Flag<'k> {
        let mut core = self.core();
        core.begin(Source { statement: "any_lane", location: Location::caller() });
        let lanes = core.effect(Operation::Ballot, [flag.register], &[Width::Bits32], None)[0];
        let none = core.constant(0, Width::Bits32);
        let compared = Operation::Compare(Comparison::NotEqual, Number::U32);
        let register = core.pure(compared, [lanes, none], Width::Predicate);
        Flag { register, ..flag }
    }
}
