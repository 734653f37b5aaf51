//! The streams of the devices that work together.
//!
//! Law: work that is enqueued on any of the streams after a fence begins when all work enqueued
//! before it, on any of them, is done. The streams wait for events; the host does not wait.

use crate::{Device, Event, GpuError, Stream};

/// The streams of a device.
pub(crate) struct Lane {
    /// For kernels that read other devices or staged parts. Its kernels have priority over those
    /// that read only this device, because the next part waits for them.
    pub remote: Stream,
    /// For kernels that read only this device.
    pub local: Stream,
    /// For copy engines.
    pub copies: Stream,
    /// Events: the remote stream is done; the copies are done; all three streams are done.
    done: [Event; 3],
}

/// The streams of all devices.
pub(crate) struct Lanes(Vec<Lane>);

impl Lanes {
    pub fn new(devices: &[Device]) -> Result<Lanes, GpuError> {
        let lane = |device: &Device| {
            let [remote, local, copies] = [device.urgent_stream()?, device.stream()?, device.stream()?];
            Ok(Lane { remote, local, copies, done: [device.mark()?, device.mark()?, device.mark()?] })
        };
        Ok(Lanes(devices.iter().map(lane).collect::<Result<_, GpuError>>()?))
    }

    pub fn of(&self, rank: usize) -> Option<&Lane> {
        self.0.get(rank)
    }

    /// Later work waits for all work that was enqueued before, on every device.
    pub fn fence(&self) -> Result<(), GpuError> {
        for Lane { remote, local, copies, done: [remote_done, copies_done, all_done] } in &self.0 {
            remote.record(remote_done)?;
            copies.record(copies_done)?;
            local.wait(remote_done)?;
            local.wait(copies_done)?;
            local.record(all_done)?;
        }
        for Lane { remote, local, copies, .. } in &self.0 {
            for Lane { done: [.., all_done], .. } in &self.0 {
                [remote, local, copies].into_iter().try_for_each(|stream| stream.wait(all_done))?;
            }
        }
        Ok(())
    }
}
