//! The driver: its library, which is found at run time, and safe calls of its functions.
//!
//! Law: outside this module, only the calls in `cublas.rs` are unsafe, and no other module calls a
//! function of the driver. [`table`] declares the functions, [`open`] finds them, [`calls`] calls
//! them.
//!
//! *Invariant:* a handle is created here, from the driver's answer. It has one owner in this crate,
//! which destroys it once, when it is dropped; whatever uses the handle holds the owner. So a
//! handle that is passed to a call is alive. Handles of streams of other libraries are the
//! exception: whoever borrows them promises that they are alive (`borrowed.rs`).

mod calls;
mod open;
mod process;
mod table;

pub(crate) use calls::{CompilerOutput, Driver, EntryPoint, LaunchSizes, Order, Refused, TiledMap, Value};
pub use open::MINIMUM_VERSION;
pub(crate) use table::{
    ContextHandle, DeviceHandle, EventHandle, GraphHandle, ModuleHandle, ReplayHandle, StreamHandle, TensorMapBytes,
};
#[cfg(test)]
pub(crate) use table::{CopyLines, LaunchConfig, SYMBOLS};
