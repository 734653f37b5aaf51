//! The epilogue: from accumulators to D.
//!
//! Law: a tile of accumulators, or of what the epilogue function makes of them, is written to its
//! rows and columns of D; elements past the edges are left out. The epilogue works in strips of
//! columns: each strip is computed, converted and written before the next one, so that few
//! registers are needed besides the accumulators. Elements of 16 and of 32 bits go through shared
//! memory, in swizzled panels. TMA stores them from there while the mainloop runs for the next
//! tile; if TMA cannot, threads store neighbours. All other elements, and matrices without a
//! contiguous mode, are stored from registers. So are the partial accumulators of split-K, in f32,
//! to the workspace.
//!
//! `outline.rs` has the decisions, `cut.rs` the shapes of strips and parts. `beside.rs` declares
//! tensors and prefetches inputs (`inputs.rs`), `write.rs` writes, `teams.rs` lets each warpgroup
//! store its own rows. `reductions.rs` reduces rows and columns, `split_k.rs` adds partial
//! accumulators.

mod beside;
mod cut;
pub(crate) mod inputs;
pub(crate) mod outline;
pub(crate) mod reductions;
pub(crate) mod split_k;
mod teams;
mod write;
