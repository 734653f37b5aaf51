//! Processes with a GPU each, whose bytes go through NCCL.
//!
//! Law: what processes say to each other, what they are about to do and who is lost, goes through
//! the sockets of [`Processes`]; elements go through NCCL. Who waits longer than the patience
//! aborts, and asks by the sockets who is lost. So every process ends with the same kind of error
//! within the patience and three seconds, as where sockets carry everything.
//!
//! The memory of a process is on the host: bytes are written to the device before they are sent,
//! and read when they are there. Tensors that stay on devices are moved by
//! [`crate::reshard::NcclReshard`], by devices of one process.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use tilewright_gpu::{Device, GpuError, Memory, NcclError, NcclId, NcclProcess, Stream, Transfer};
use tilewright_mesh::{Engine, Interrupter, Meanwhile, MeshError, Place, Processes, Progress};

/// Processes with a GPU each, whose bytes go through NCCL.
pub struct NcclProcesses {
    beside: Processes,
    nccl: NcclProcess,
    device: Device,
    stream: Stream,
    patience: Duration,
    /// What is sent, and what is received; as large as they have to be so far.
    buffers: [Memory; 2],
}

fn refused(error: impl fmt::Display) -> MeshError {
    MeshError::Operation { what: error.to_string().into() }
}

impl NcclProcesses {
    /// Joins the processes of `place`, this one with a device: by sockets first, by which they
    /// learn what they join NCCL by.
    ///
    /// Errors: as [`Processes::connect`]; NCCL is missing, too old, or refuses, on any of them
    /// ([`MeshError::Engine`]).
    pub fn join(place: &Place, device: &Device, patience: Duration) -> Result<NcclProcesses, MeshError> {
        let mut beside = Processes::connect(place, patience)?;
        let nccl = NcclProcesses::joined(&mut beside, device).map_err(|error| beside.give_up(error))?;
        // Before that nobody uses it.
        beside.agree("while processes join NCCL", &format!("version of NCCL: {}\n", nccl.version()))?;
        let none = |_: &GpuError| MeshError::Engine { what: "the device has no stream or memory".into() };
        let stream = device.stream().map_err(|error| none(&error))?;
        let buffers = [device.allocate(0), device.allocate(0)];
        let [sent, received] = buffers.map(|memory| memory.map_err(|error| none(&error)));
        Ok(NcclProcesses { beside, nccl, device: device.clone(), stream, patience, buffers: [sent?, received?] })
    }

    fn joined(beside: &mut Processes, device: &Device) -> Result<NcclProcess, MeshError> {
        const STEP: &str = "while processes join NCCL";
        let (rank, ranks) = (beside.rank(), beside.ranks());
        let engine = |error: NcclError| MeshError::Engine { what: error.to_string().into() };
        // Each of them opens the library before any waits for the others in it.
        let own = NcclId::new().map_err(engine)?;
        beside.agree(STEP, "library: open\n")?;
        let mut come = if rank > 0 { vec![(0, vec![0; own.bytes().len()])] } else { Vec::new() };
        let others = if rank == 0 { 1..ranks } else { 0..0 };
        let sends: Vec<(usize, Vec<u8>)> = others.map(|rank| (rank, own.bytes().to_vec())).collect();
        beside.exchange(STEP, &sends, &mut come)?;
        let id = come.first().and_then(|(_, bytes)| <[u8; 128]>::try_from(bytes.as_slice()).ok());
        NcclProcess::join(device, &id.map_or(own, NcclId::of_bytes), rank, ranks).map_err(engine)
    }

    /// The version of NCCL.
    pub fn version(&self) -> String {
        self.nccl.version()
    }

    /// What ends the calls of this engine from another thread.
    pub fn interrupter(&self) -> Interrupter {
        self.beside.interrupter()
    }

    /// Moves bytes through the devices; each place comes back filled.
    fn transfer(
        &mut self,
        step: &str,
        sends: &[(usize, &[u8])],
        places: &mut [(usize, Vec<u8>)],
    ) -> Result<(), MeshError> {
        let own = self.beside.rank();
        let transfers = self.given(own, sends, places).map_err(|error| self.beside.give_up(error))?;
        let waiting: Vec<usize> =
            places.iter().map(|(rank, _)| *rank).chain(sends.iter().map(|(rank, _)| *rank)).collect();
        if let Err(why) = self.waited(&transfers) {
            // It may still write where nobody may read then.
            self.nccl.abort();
            return Err(self.beside.blame(step, &waiting, &why));
        }
        let mut at = 0;
        for (_, place) in places {
            let read = self.buffers[1].read(&self.stream, at, place);
            read.map_err(|error| self.beside.give_up(refused(error)))?;
            at += place.len() as u64;
        }
        Ok(())
    }

    /// Writes what is sent to the device, and says what goes where.
    fn given(
        &mut self,
        own: usize,
        sends: &[(usize, &[u8])],
        places: &[(usize, Vec<u8>)],
    ) -> Result<Vec<Transfer>, MeshError> {
        let all = |lengths: &mut dyn Iterator<Item = usize>| lengths.map(|length| length as u64).sum::<u64>();
        let needed = [
            all(&mut sends.iter().map(|(_, bytes)| bytes.len())),
            all(&mut places.iter().map(|(_, bytes)| bytes.len())),
        ];
        for (buffer, needed) in self.buffers.iter_mut().zip(needed) {
            if buffer.bytes() < needed {
                *buffer = self.device.allocate(needed).map_err(refused)?;
            }
        }
        let (mut transfers, mut at) = (Vec::new(), 0);
        for (rank, bytes) in sends {
            self.buffers[0].write(&self.stream, at, bytes).map_err(refused)?;
            transfers.push(Transfer { from: own, to: *rank, read: at, write: 0, bytes: bytes.len() as u64 });
            at += bytes.len() as u64;
        }
        at = 0;
        for (rank, bytes) in places {
            transfers.push(Transfer { from: *rank, to: own, read: 0, write: at, bytes: bytes.len() as u64 });
            at += bytes.len() as u64;
        }
        Ok(transfers)
    }

    /// Gives transfers to the stream, and waits for no longer than the patience.
    fn waited(&mut self, transfers: &[Transfer]) -> Result<(), String> {
        let [sent, received] = &mut self.buffers;
        let text = |error: &dyn fmt::Display| error.to_string();
        self.nccl.transfer(&self.stream, sent, received, transfers).map_err(|error| text(&error))?;
        let since = Instant::now();
        while !self.stream.is_done().map_err(|error| text(&error))? {
            self.nccl.check().map_err(|error| text(&error))?;
            if since.elapsed() > self.patience {
                return Err(format!("it did not answer within {} s", self.patience.as_secs_f64()));
            }
            // Short transfers are not slept through.
            if since.elapsed() > Duration::from_millis(1) {
                thread::sleep(Duration::from_micros(50));
            }
        }
        self.nccl.check().map_err(|error| text(&error))
    }
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
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|(rank, bytes)| (*rank, bytes.as_slice())).collect();
        self.transfer(step, &sends, receives)
    }

    /// What is sent is made first, and what comes is taken after: NCCL takes all at once.
    fn exchange_while(
        &mut self,
        step: &str,
        targets: &[usize],
        sources: &[(usize, usize)],
        meanwhile: &mut dyn Meanwhile,
    ) -> Result<(), MeshError> {
        let mut sends: Vec<(usize, Vec<u8>)> = Vec::new();
        while let Some(progress) = meanwhile.work().map_err(|error| self.beside.give_up(error))? {
            if let Progress::Ready(rank, bytes) = progress {
                sends.push((rank, bytes));
            }
        }
        if sends.len() < targets.len() {
            let what = format!("{step}: a message needs what comes in the same step, which NCCL does not give");
            return Err(self.beside.give_up(MeshError::Operation { what: what.into() }));
        }
        let mut places: Vec<(usize, Vec<u8>)> =
            sources.iter().map(|(rank, length)| (*rank, vec![0; *length])).collect();
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|(rank, bytes)| (*rank, bytes.as_slice())).collect();
        self.transfer(step, &sends, &mut places)?;
        for (rank, bytes) in places {
            meanwhile.take(rank, bytes).map_err(|error| self.beside.give_up(error))?;
        }
        while meanwhile.work().map_err(|error| self.beside.give_up(error))?.is_some() {}
        Ok(())
    }

    fn agree(&mut self, step: &str, text: &str) -> Result<(), MeshError> {
        self.beside.agree(step, text)
    }

    fn give_up(&mut self, error: MeshError) -> MeshError {
        self.beside.give_up(error)
    }
}

impl fmt::Debug for NcclProcesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NcclProcesses({:?})", self.nccl)
    }
}
