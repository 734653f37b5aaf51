//! All tests of the crate, in one program: it is linked once.

mod compile_time;
#[cfg(feature = "devices")]
mod order;
#[cfg(feature = "devices")]
mod reshard;
#[cfg(feature = "devices")]
mod sharded;
#[cfg(feature = "devices")]
mod work;
