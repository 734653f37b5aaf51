//! Processes with one GPU each, which exchange bytes through NCCL.
//!
//! Law: control messages (the next step of each process, and the lost process) go through the
//! sockets of [`Processes`]; elements go through NCCL. A separate thread calls NCCL, because a call
//! of NCCL may never return. A process that waits longer than the patience abandons that thread,
//! and uses the sockets to find out which process is lost. So every process ends with the same kind
//! of error within the patience and three seconds, as with sockets alone.
//!
//! The memory of a process is on the host: bytes are copied to the device before they are sent, and
//! to the host after they have arrived. [`crate::devices::reshard::NcclReshard`] moves tensors that
//! stay on the devices of one process.

mod worker;

use std::fmt;
use std::time::Duration;

use crate::{Device, NcclId};
use tilewright_mesh::{Engine, Interrupter, Meanwhile, MeshError, Place, Processes, Progress};

use worker::{Joining, Messages, Trouble, Worker};

/// Processes with one GPU each, which exchange bytes through NCCL.
pub struct NcclProcesses {
    beside: Processes,
    worker: Worker,
}

/// The step that is reported while processes join.
const JOINING: &str = "while processes join NCCL";

impl NcclProcesses {
    /// Connects the processes of `place`, this one with a device. They connect by sockets first,
    /// through which they exchange the NCCL identifier.
    ///
    /// Errors: as [`Processes::connect`]; NCCL is missing, too old, or refuses, on any of them
    /// ([`MeshError::Engine`]); one of them does not join in time ([`MeshError::Lost`]).
    pub fn join(place: &Place, device: &Device, patience: Duration) -> Result<NcclProcesses, MeshError> {
        let mut beside = Processes::connect(place, patience)?;
        let id = NcclProcesses::identifier(&mut beside).map_err(|error| beside.give_up(error))?;
        let (rank, ranks) = (beside.rank(), beside.ranks());
        let interrupter = beside.interrupter();
        let joining = Joining { device: device.clone(), id, rank, ranks, patience };
        let worker = Worker::join(joining, &|| interrupter.is_interrupted()).map_err(|trouble| match trouble {
            Trouble::Own(error) => beside.give_up(error),
            Trouble::Other(why) => beside.blame(JOINING, &others(rank, ranks), &why),
        })?;
        // Nobody uses NCCL before all processes agree on its version.
        beside.agree(JOINING, &format!("version of NCCL: {}\n", worker.version()))?;
        Ok(NcclProcesses { beside, worker })
    }

    /// The NCCL identifier of the first process, with which all processes join.
    fn identifier(beside: &mut Processes) -> Result<NcclId, MeshError> {
        let (rank, ranks) = (beside.rank(), beside.ranks());
        // Every process opens the library before any of them waits for the others in NCCL.
        let own = NcclId::new().map_err(|error| MeshError::Engine { what: error.to_string().into() })?;
        beside.agree(JOINING, "library: open\n")?;
        let mut come = if rank > 0 { vec![(0, vec![0; own.bytes().len()])] } else { Vec::new() };
        let sends = if rank == 0 { others(0, ranks) } else { Vec::new() };
        let sends: Messages = sends.into_iter().map(|rank| (rank, own.bytes().to_vec())).collect();
        beside.exchange(JOINING, &sends, &mut come)?;
        let id = come.first().and_then(|(_, bytes)| <[u8; 128]>::try_from(bytes.as_slice()).ok());
        Ok(id.map_or(own, NcclId::of_bytes))
    }

    /// The version of NCCL.
    pub fn version(&self) -> &str {
        self.worker.version()
    }

    /// The connections that were ignored because they came from no process of this job.
    pub fn ignored(&self) -> &[String] {
        self.beside.ignored()
    }

    /// A handle that ends the calls of this engine from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.beside.interrupter()
    }

    /// Exchanges bytes through the devices. Returns each receive buffer filled.
    fn transfer(&mut self, step: &str, sends: Messages, places: Messages) -> Result<Messages, MeshError> {
        let waiting: Vec<usize> = places.iter().chain(&sends).map(|(rank, _)| *rank).collect();
        let interrupter = self.beside.interrupter();
        self.worker.moved(sends, places, &|| interrupter.is_interrupted()).map_err(|trouble| match trouble {
            Trouble::Own(error) => {
                self.worker.leave();
                self.beside.give_up(error)
            }
            Trouble::Other(why) => self.beside.blame(step, &waiting, &why),
        })
    }
}

/// All ranks but one.
fn others(own: usize, ranks: usize) -> Vec<usize> {
    (0..ranks).filter(|rank| *rank != own).collect()
}

impl Engine for NcclProcesses {
    fn rank(&self) -> usize {
        self.beside.rank()
    }

    fn ranks(&self) -> usize {
        self.beside.ranks()
    }

    fn exchange(
        &mut self,
        step: &str,
        sends: &[(usize, Vec<u8>)],
        receives: &mut [(usize, Vec<u8>)],
    ) -> Result<(), MeshError> {
        // The thread owns the receive buffers during the exchange.
        let places = receives.iter_mut().map(|(rank, place)| (*rank, std::mem::take(place))).collect();
        let filled = self.transfer(step, sends.to_vec(), places)?;
        for ((_, place), (_, bytes)) in receives.iter_mut().zip(filled) {
            *place = bytes;
        }
        Ok(())
    }

    /// Does all the work first and the exchange after it, because NCCL sends and receives all
    /// messages at once.
    fn exchange_while(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError> {
        let mut sends = Messages::new();
        while let Some(progress) = meanwhile.work().map_err(|error| self.give_up(error))? {
            if let Progress::Ready(rank, bytes) = progress {
                sends.push((rank, bytes));
            }
        }
        if sends.len() < targets.len() {
            let what =
                format!("{step}: a message needs elements that arrive in the same step, which NCCL does not support");
            return Err(self.give_up(MeshError::Operation { what: what.into() }));
        }
        let places = sources.iter().map(|(rank, length)| (*rank, vec![0; *length])).collect();
        for (rank, bytes) in self.transfer(step, sends, places)? {
            meanwhile.take(rank, bytes).map_err(|error| self.give_up(error))?;
        }
        while meanwhile.work().map_err(|error| self.give_up(error))?.is_some() {}
        Ok(())
    }

    fn agree(&mut self, step: &str, text: &str) -> Result<(), MeshError> {
        self.beside.agree(step, text).inspect_err(|_| self.worker.leave())
    }

    fn give_up(&mut self, error: MeshError) -> MeshError {
        self.worker.leave();
        self.beside.give_up(error)
    }
}

impl fmt::Debug for NcclProcesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, ranks) = (self.beside.rank(), self.beside.ranks());
        write!(f, "NcclProcesses(rank {rank} of {ranks}, NCCL {})", self.version())
    }
}
