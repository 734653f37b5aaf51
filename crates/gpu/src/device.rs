//! Devices.
//!
//! Law: a [`Device`] is one device of this machine with its primary context, which stays alive as
//! long as the device or any object made from it.

use std::fmt;
use std::sync::Arc;

use tilewright_kernel::machine::{Machine, Multiprocessor, Rates};

use crate::attributes::Attributes;
use crate::context::Context;
use crate::driver::Driver;
use crate::error::GpuError;
use crate::event::Event;
use crate::memory::Memory;
use crate::stream::Stream;

/// A CUDA device. A clone is the same device.
///
/// ```
/// use tilewright_gpu::{Device, GpuError};
///
/// match Device::open(0) {
///     Ok(device) => assert!(device.attributes().multiprocessors > 0),
///     Err(error) => assert!(["E0801", "E0802", "E0803"].contains(&error.code()), "{error}"),
/// }
/// ```
#[derive(Clone)]
pub struct Device {
    context: Arc<Context>,
}

impl Device {
    /// The number of devices of this machine.
    ///
    /// Errors: there is no driver (E0801), or it is too old (E0802).
    pub fn count() -> Result<usize, GpuError> {
        let driver = match Driver::open() {
            Err(GpuError::NoDevice { .. }) => return Ok(0),
            driver => driver?,
        };
        count(&driver)
    }

    /// A device by its number, from 0.
    ///
    /// Errors: there is no driver (E0801), it is too old (E0802), or there is no such device
    /// (E0803).
    pub fn open(ordinal: usize) -> Result<Device, GpuError> {
        Device::of(Driver::open()?, ordinal)
    }

    pub(crate) fn of(driver: Arc<Driver>, ordinal: usize) -> Result<Device, GpuError> {
        let count = count(&driver)?;
        let missing = GpuError::NoDevice { ordinal: (count > 0).then_some(ordinal), count };
        let number = i32::try_from(ordinal).ok().filter(|_| ordinal < count).ok_or(missing)?;
        let device = driver.device(number).map_err(|refused| driver.refusal(refused))?;
        Ok(Device { context: Arc::new(Context::retain(driver, device, ordinal)?) })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The number of the device.
    pub fn ordinal(&self) -> usize {
        self.context.ordinal()
    }

    /// The name, such as `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.attributes().name
    }

    /// The attributes of the device.
    pub fn attributes(&self) -> &Attributes {
        self.context.attributes()
    }

    /// The compute capability: (9, 0) for a device of `sm_90`.
    pub fn capability(&self) -> (u32, u32) {
        self.attributes().capability()
    }

    /// The machine for which kernels are planned on this device. If the table has a card with its
    /// name ([`Machine::named`]) and the driver reports the same number of multiprocessors, it is
    /// that card. Otherwise it consists of what the driver reports, with the rates of its compute
    /// capability.
    ///
    /// Errors: no target is as old as the device (E0804).
    pub fn machine(&self) -> Result<Machine, GpuError> {
        let (has, target) = (self.attributes(), self.target()?);
        let clock = f64::from(has.clock_khz.max(1)) * 1e3;
        Ok(Machine::described(Machine {
            name: self.name().to_owned(),
            capability: self.capability(),
            target,
            multiprocessors: has.multiprocessors,
            multiprocessor: Multiprocessor {
                threads: has.multiprocessor_threads,
                blocks: has.multiprocessor_blocks,
                registers: has.multiprocessor_registers,
                shared_bytes: has.multiprocessor_shared_bytes,
                block_shared_bytes: has.block_shared_bytes,
                reserved_bytes: has.reserved_shared_bytes,
            },
            l2_bytes: has.l2_bytes.into(),
            clock,
            // Memory transfers twice per clock cycle.
            bandwidth: 2.0 * f64::from(has.memory_clock_khz.max(1)) * 1e3 * f64::from(has.memory_bus_bits.max(8)) / 8.0,
            // No driver reports the latency.
            latency: None,
            rates: Rates::of(self.capability(), has.multiprocessors, clock),
        }))
    }

    /// The version of CUDA that the driver supports, in the driver's notation: 13000 is 13.0.
    pub fn driver_version(&self) -> i32 {
        self.context.driver().version()
    }

    /// Bytes of device memory that are free.
    pub fn free_bytes(&self) -> Result<u64, GpuError> {
        Ok(self.context.call(|driver| driver.memory_left())?.0)
    }

    /// Allocates this many bytes of device memory. They are uninitialised.
    ///
    /// Errors: too little memory is free (E0805).
    pub fn allocate(&self, bytes: u64) -> Result<Memory, GpuError> {
        Memory::in_context(&self.context, bytes)
    }

    /// A new stream, which does not synchronize with the default stream.
    pub fn stream(&self) -> Result<Stream, GpuError> {
        Stream::new(&self.context, false)
    }

    /// A new stream with high priority: blocks of its kernels start before waiting blocks of other
    /// streams.
    pub fn urgent_stream(&self) -> Result<Stream, GpuError> {
        Stream::new(&self.context, true)
    }

    /// A new event that records the time.
    pub fn event(&self) -> Result<Event, GpuError> {
        Event::new(&self.context, true)
    }

    /// A new event that records no time. It only says when the preceding work is done.
    pub fn mark(&self) -> Result<Event, GpuError> {
        Event::new(&self.context, false)
    }

    /// Waits until all work that this process has started on the device is done.
    ///
    /// Errors: a kernel failed (E0807).
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.context.call(|driver| driver.synchronize_context())
    }
}

impl Stream {
    /// The device that the stream belongs to.
    pub fn device(&self) -> Device {
        Device { context: self.context().clone() }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({}, {})", self.ordinal(), self.name())
    }
}

fn count(driver: &Driver) -> Result<usize, GpuError> {
    let count = driver.device_count().map_err(|refused| driver.refusal(refused))?;
    Ok(usize::try_from(count).unwrap_or(0))
}
