//! The context of a device.
//!
//! Law: a [`Context`] retains the primary context of its device, which libraries in the same
//! process share, from its creation until it is dropped. [`Context::call`] makes every driver call
//! that needs a context, with this context current. If the thread had no current context, this one
//! stays current; if it had another one, that is made current again afterwards.
//!
//! Law: after the driver has reported that the context is lost, only calls that free something are
//! made. Every other call is refused with that first report.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::attributes::Attributes;
use crate::driver::{ContextHandle, DeviceHandle, Driver, Refused};
use crate::error::{GpuError, Unfinished};
use crate::pending::Pending;
use crate::status::{Status, code};

/// A retained primary context.
pub(crate) struct Context {
    driver: Arc<Driver>,
    device: DeviceHandle,
    ordinal: usize,
    handle: ContextHandle,
    attributes: Attributes,
    /// The launches that may be unfinished, a list for each stream.
    pending: Mutex<Vec<Arc<Pending>>>,
    /// The contexts whose memory kernels of this one may access, so that the driver is asked once.
    /// A context that has been dropped may be replaced by one with the same handle, for which the
    /// driver must be asked again.
    reached: Mutex<Vec<Weak<Context>>>,
    lost: OnceLock<Lost>,
}

/// The loss of a context: the driver's report, the function that reported it, and the unfinished
/// launches.
struct Lost {
    call: &'static str,
    status: Status,
    unfinished: Unfinished,
}

/// Makes the previous context current again when it is dropped.
struct Before<'a>(Option<&'a Driver>);

impl Drop for Before<'_> {
    fn drop(&mut self) {
        if let Some(driver) = self.0 {
            // Restores the previous context. An error cannot be reported.
            let _ = driver.pop_current();
        }
    }
}

impl Context {
    pub(crate) fn retain(driver: Arc<Driver>, device: DeviceHandle, ordinal: usize) -> Result<Context, GpuError> {
        let refuse = |refused| driver.refusal(refused);
        let attributes = Attributes::of(&driver, device).map_err(refuse)?;
        let handle = driver.retain_primary(device).map_err(refuse)?;
        let (pending, reached, lost) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Ok(Context { driver, device, ordinal, handle, attributes, pending, reached, lost })
    }

    /// The attributes of the device.
    pub(crate) fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Adds the list of a new stream.
    pub(crate) fn new_pending(&self) -> Arc<Pending> {
        let pending = Arc::new(Pending::default());
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(pending.clone());
        pending
    }

    /// Removes the list of a stream whose work is done.
    pub(crate) fn forget(&self, pending: &Arc<Pending>) {
        let mut lists = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|known| !Arc::ptr_eq(known, pending));
    }

    /// The launches of all streams that are not known to be done.
    fn unfinished(&self) -> Unfinished {
        let lists = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unfinished = Unfinished::default();
        lists.iter().for_each(|pending| pending.tell(&mut unfinished));
        unfinished
    }

    /// The number of the device.
    pub(crate) fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Makes the context current until the result is dropped.
    fn enter(&self) -> Result<Before<'_>, Refused> {
        match self.driver.current()? {
            Some(current) if current == self.handle => Ok(Before(None)),
            Some(_) => self.driver.push_current(self.handle).map(|()| Before(Some(&self.driver))),
            None => self.driver.set_current(self.handle).map(|()| Before(None)),
        }
    }

    /// An error if the context is lost.
    pub(crate) fn usable(&self) -> Result<(), GpuError> {
        match self.lost.get() {
            None => Ok(()),
            Some(Lost { call, status, unfinished }) => {
                Err(GpuError::DeviceLost { call, status: status.clone(), unfinished: unfinished.clone() })
            }
        }
    }

    /// Calls the driver in this context.
    pub(crate) fn call<R>(&self, work: impl FnOnce(&Driver) -> Result<R, Refused>) -> Result<R, GpuError> {
        self.attempt(work)?.map_err(|refused| self.explain(refused))
    }

    /// As [`Context::call`], but the caller handles the driver's refusal.
    pub(crate) fn attempt<R>(&self, work: impl FnOnce(&Driver) -> R) -> Result<R, GpuError> {
        self.usable()?;
        let _before = self.enter().map_err(|refused| self.explain(refused))?;
        Ok(work(&self.driver))
    }

    /// A driver refusal as an error. If it means that the device is lost, records that, with the
    /// unfinished launches.
    pub(crate) fn explain(&self, refused: Refused) -> GpuError {
        let status = self.driver.status(refused.code);
        if !status.loses_device() {
            return self.driver.refusal(refused);
        }
        let unfinished = self.unfinished();
        let lost = Lost { call: refused.symbol, status: status.clone(), unfinished: unfinished.clone() };
        let first = self.lost.set(lost).is_ok();
        if first && !unfinished.launches.is_empty() {
            return GpuError::LaunchFailed { refused: None, unfinished, status };
        }
        GpuError::DeviceLost { call: refused.symbol, status, unfinished }
    }

    /// Frees something. If the context is lost, the driver refuses, and that cannot be reported.
    pub(crate) fn give_back(&self, work: impl FnOnce(&Driver) -> Result<(), Refused>) {
        let _before = self.enter();
        let _ = work(&self.driver);
    }

    /// Lets kernels of this context access the memory of another.
    pub(crate) fn reach(&self, other: &Arc<Context>) -> Result<(), GpuError> {
        self.usable()?;
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.iter().any(|known| Weak::as_ptr(known) == Arc::as_ptr(other)) {
            return Ok(());
        }
        match self.attempt(|driver| driver.enable_peer(other.handle))? {
            Err(answer) if answer.code == code::PEER_ACCESS_ALREADY_ENABLED => {}
            answer => answer.map_err(|refused| self.explain(refused))?,
        }
        reached.retain(|known| known.strong_count() > 0);
        reached.push(Arc::downgrade(other));
        Ok(())
    }

    /// Whether this is the context with a handle, a `CUcontext`.
    #[cfg(feature = "cudarc")]
    pub(crate) fn is_handle(&self, handle: usize) -> bool {
        self.handle.is(handle)
    }

    /// Refuses an object of another context.
    pub(crate) fn same(self: &Arc<Context>, other: &Arc<Context>, what: &str) -> Result<(), GpuError> {
        if Arc::ptr_eq(self, other) || self.handle == other.handle {
            return Ok(());
        }
        Err(GpuError::OtherDevice { what: what.into(), found: other.ordinal, wanted: self.ordinal })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A failure here cannot be reported.
        let _ = self.driver.release_primary(self.device);
    }
}
