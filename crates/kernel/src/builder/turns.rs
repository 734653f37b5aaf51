//! Turns: what blocks do one after another, in a fixed order.
//!
//! Law: a word in global memory counts the turns that are over. A thread that waits for turn `n`
//! proceeds when the word is `n`, and sees what the threads did that passed the earlier turns. So
//! floating-point sums that blocks add in their turns are rounded in the same order in each launch.

use super::Build;
use super::access::Edge;
use super::tensor::View;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::memory::{Access, Role};
use crate::program::operation::Operation;
use crate::program::register::{Register, Width};
use tilewright_layout::symbolic::Expr;

impl<'k> View<'k> {
    /// Waits until this word is `turn`. The earlier turns are then over, and what the threads that
    /// passed them did is visible to this thread (`ld.acquire.gpu`). The word is one element of
    /// i32, of a tensor that is read and written, and must be 0 when the launch begins.
    ///
    /// A block may only wait for turns that blocks with a smaller index pass: devices start blocks
    /// in the order of their indices, so such a launch ends. The interpreter runs blocks in this
    /// order and reports a turn that never comes (E1022).
    ///
    /// ```
    /// use tilewright_kernel::program::operation::Axis;
    /// use tilewright_kernel::{Kernel, Reduction, interpret};
    /// use tilewright_layout::{Slot, Tree};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Blocks add their numbers one after another: the sum is rounded in the order of blocks.
    /// let in_order = |first: bool| {
    ///     Kernel::build("in_order", move |k| {
    ///         let x = k.input::<f32>("x", "(32,5):(1,32)")?;
    ///         let (y, turns) = (k.tensor::<f32>("y", "(32,1):(1,1)")?, k.tensor::<i32>("turns", "1:1")?);
    ///         k.threads(32)?;
    ///         k.grid(Axis::X, 5)?;
    ///         let block = k.block_number(Axis::X);
    ///         let own = x.slice(Tree::flat([Slot::All, Slot::At(block.clone())])?)?;
    ///         k.single(|| turns.await_turn(&if first { block.clone() } else { 1.into() }))?;
    ///         k.warp_barrier();
    ///         let part = own.compose("(32,1):(1,1)")?.thread_part()?.load()?;
    ///         y.thread_part()?.accumulate(&part, Reduction::Sum)?;
    ///         k.warp_barrier();
    ///         k.single(|| turns.pass_turn())
    ///     })
    /// };
    /// let kernel = in_order(true)?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.fill(1).tensor("y", &[0.0_f32; 32])?.tensor("turns", &[0_i32])?;
    /// assert_eq!(interpreter.check()?.run.tensor::<i32>("turns")?, [5]);
    /// // The first block waits for turn 1, before which no block passes a turn.
    /// let kernel = in_order(false)?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// interpreter.fill(1).tensor("turns", &[0_i32])?;
    /// let found = interpreter.check().unwrap_err().to_string();
    /// assert!(found.contains("turn 1: 0 turns are over"), "{found}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A word past the edges of its tensor has no turns: the thread does not wait.
    ///
    /// Errors: the view is not one element of i32 in global memory that is read and written.
    #[track_caller]
    pub fn await_turn(&self, turn: &Expr) -> Result<(), KernelError> {
        self.build.statement("await_turn", || {
            let (access, address, guard) = self.turn_word("await_turn")?;
            let mut core = self.build.core();
            let turn = core.lower(turn, Width::Bits32)?;
            core.effect(Operation::AwaitTurn { access }, address.into_iter().chain([turn]), &[], guard);
            Ok(())
        })
    }

    /// Ends the turn for which the block has waited ([`View::await_turn`]). What this thread did,
    /// and what threads did before a barrier with it, is then visible to the thread that waits for
    /// the next turn (`red.release.gpu`).
    ///
    /// Errors: as [`View::await_turn`].
    #[track_caller]
    pub fn pass_turn(&self) -> Result<(), KernelError> {
        self.build.statement("pass_turn", || {
            let (access, address, guard) = self.turn_word("pass_turn")?;
            self.build.core().effect(Operation::PassTurn { access }, address, &[], guard);
            Ok(())
        })
    }

    /// The word that counts turns: its access, its address, and the predicate under which it
    /// exists.
    fn turn_word(&self, statement: &str) -> Result<(Access, Option<Register>, Option<Register>), Reason> {
        if self.element != Element::I32 {
            return Err(Reason::Elements { wanted: Element::I32, given: self.element });
        }
        let because = |because: &str| Reason::Instruction { name: statement.to_string(), because: because.to_string() };
        if self.is_shared() {
            return Err(because("turns are of blocks, so their count is in global memory"));
        }
        let is_both = |build: &Build| build.core().buffers[self.buffer.index()].role == Role::Both;
        if !is_both(self.build) {
            return Err(because("the count of turns is read and written: declare it with `k.tensor`"));
        }
        let [piece] = self.pieces(1)?.try_into().map_err(|_| because("the count of turns is one element"))?;
        self.one(&piece, Edge::Predicated)
    }
}
