//! The streams of the devices that work together.
//!
//! Law: work that is given to any of the streams after a fence begins when all work given before
//! it, to any of them, is done. The streams wait for events; the host waits for nothing.

use tilewright_gpu::{Device, Event, GpuError, Stream};

/// The streams of a device.
pub(crate) struct Lane {
    /// For kernels that read other devices, or what has come from them: they go before those that
    /// read this device alone, as the next part waits for them.
    pub far: Stream,
    /// For kernels that read this device alone.
    pub near: Stream,
    /// For copy engines.
    pub copies: Stream,
    /// Events: the remote stream is done, the copies are done, all three streams are done.
    done: [Event; 3],
}

/// The streams of all devices.
pub(crate) struct Lanes(Vec<Lane>);

impl Lanes {
    pub fn new(devices: &[Device]) -> Result<Lanes, GpuError> {
        let lane = |device: &Device| {
            let [far, near, copies] = [device.urgent_stream()?, device.stream()?, device.stream()?];
            Ok(Lane { far, near, copies, done: [device.mark()?, device.mark()?, device.mark()?] })
        };
        Ok(Lanes(devices.iter().map(lane).collect::<Result<_, GpuError>>()?))
    }

    pub fn of(&self, rank: usize) -> Option<&Lane> {
        self.0.get(rank)
    }

    /// What follows waits for all that was given before, on every device.
    pub fn fence(&self) -> Result<(), GpuError> {
        for Lane { far, near, copies, done: [of_far, of_copies, all] } in &self.0 {
            far.record(of_far)?;
            copies.record(of_copies)?;
            near.wait(of_far)?;
            near.wait(of_copies)?;
            near.record(all)?;
        }
        for Lane { far, near, copies, .. } in &self.0 {
            for Lane { done: [.., all], .. } in &self.0 {
                [far, near, copies].into_iter().try_for_each(|stream| stream.wait(all))?;
            }
        }
        Ok(())
    }
}
