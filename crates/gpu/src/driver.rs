//! The driver: its library, found at run time, and safe calls of its functions.
//!
//! Law: nothing outside this room is unsafe but the calls of `cublas.rs`, and no function of the
//! driver is called from elsewhere. [`table`] declares the functions, [`open`] finds them,
//! [`calls`] calls them.
//!
//! *Invariant:* a handle is made here, from what the driver answered, and has one owner in this
//! crate, which gives it back once, when it is dropped; whatever uses the handle holds the owner.
//! So a handle that is passed to a call is alive. Handles of streams of other libraries are the
//! exception: that they are alive is promised by who borrows them (`borrowed.rs`).

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
