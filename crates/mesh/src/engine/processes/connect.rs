//! How processes find each other.
//!
//! Law: the first process listens at its address. The others connect to it, send the job's token,
//! and receive the addresses of all; then each connects to those with lower ranks. A connection
//! that is not from a process of this job neither delays nor ends this (`door.rs`). Error messages
//! name all ranks that do not connect in time.

use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::super::Place;
use super::super::frame::{FrameKind, Until, receive, send};
use super::door::{Door, greeting};
use super::{CONNECTING, GRACE, Processes};
use crate::error::MeshError;

impl Processes {
    /// The part of the first process: it waits for all others, and sends to each the addresses of
    /// the others.
    pub(super) fn gather(&mut self, place: &Place, until: Instant) -> Result<(), MeshError> {
        let here = (place.address.as_str(), place.port);
        let listener = TcpListener::bind(here).map_err(|error| {
            let what = format!("rank 0 cannot listen at {}:{}: {error}", place.address, place.port);
            MeshError::Environment { what: what.into() }
        })?;
        let mut addresses = vec![String::new(); place.ranks];
        self.admit(listener, place, until, |rank, address| {
            addresses.iter_mut().skip(rank).take(1).for_each(|own| *own = address.to_string());
        })?;
        let table = addresses.join("\n");
        let sends = (1..place.ranks).map(|rank| (rank, FrameKind::Hello, table.as_bytes())).collect();
        self.transfer(CONNECTING, sends, Vec::new()).map(drop)
    }

    /// The part of the other processes: they send their address to the first process, receive those
    /// of the others, connect to lower ranks and accept higher ones.
    pub(super) fn join(&mut self, place: &Place, until: Instant) -> Result<(), MeshError> {
        let first = self.connected(&format!("{}:{}", place.address, place.port), until, 0)?;
        let here = first.local_addr().map_or(IpAddr::from([127, 0, 0, 1]), |at| at.ip());
        let no_listener = |error: std::io::Error| MeshError::Environment { what: error.to_string().into() };
        let listener = TcpListener::bind((here, 0)).map_err(no_listener)?;
        let port = listener.local_addr().map_err(no_listener)?.port();
        let hello = greeting(place, port);
        self.peers.iter_mut().take(1).for_each(|peer| *peer = first.try_clone().ok());
        // The first process waits for all others for its patience; then it reports which are
        // missing.
        let answer = Instant::now() + self.patience + GRACE;
        let table = send(&first, FrameKind::Hello, 0, hello.as_bytes())
            .and_then(|()| receive(&mut Until { stream: &first, until: answer }, FrameKind::Hello, 0, None));
        let table = table.map_err(|failure| self.lost(0, CONNECTING, &failure))?;
        let _ = first.set_read_timeout(Some(self.patience.max(Duration::from_millis(1))));
        let table = String::from_utf8_lossy(&table).into_owned();
        for (rank, address) in table.lines().enumerate().take(place.rank).skip(1) {
            let stream = self.connected(address, until.max(Instant::now() + GRACE), rank)?;
            let sent = send(&stream, FrameKind::Hello, 0, hello.as_bytes());
            sent.map_err(|failure| self.lost(rank, CONNECTING, &failure))?;
            self.peers.iter_mut().skip(rank).take(1).for_each(|peer| *peer = stream.try_clone().ok());
        }
        self.admit(listener, place, until.max(Instant::now() + self.patience), |_, _| {})
    }

    /// Waits until every process of a higher rank has connected; `note` receives the address of
    /// each.
    fn admit(
        &mut self,
        listener: TcpListener,
        place: &Place,
        until: Instant,
        mut note: impl FnMut(usize, std::net::SocketAddr),
    ) -> Result<(), MeshError> {
        let mut ignored = std::mem::take(&mut self.ignored);
        let mut door = Door::new(listener, place, &mut ignored)?;
        let missing = |all: &Processes| -> Vec<usize> {
            let behind = all.peers.iter().enumerate().skip(place.rank + 1);
            behind.filter(|(_, peer)| peer.is_none()).map(|(rank, _)| rank).collect()
        };
        let mut result = Ok(());
        loop {
            let wanted = missing(self);
            if wanted.is_empty() {
                break;
            }
            let interrupter = &self.interrupter;
            let Some(guest) =
                door.next(until, |rank| wanted.binary_search(&rank).is_ok(), || interrupter.is_interrupted())
            else {
                let why = format!("did not connect within {} s", self.patience.as_secs_f64());
                result = Err((wanted, why));
                break;
            };
            let stream = guest.stream;
            stream.set_nonblocking(false).map_err(|error| MeshError::Environment { what: error.to_string().into() })?;
            let stream = self.patient(stream)?;
            self.peers.iter_mut().skip(guest.rank).take(1).for_each(|peer| *peer = stream.try_clone().ok());
            note(guest.rank, guest.address);
        }
        self.ignored = ignored;
        result.map_err(|(ranks, why)| match self.interrupter.is_interrupted() {
            true => MeshError::Interrupted { rank: self.rank, step: CONNECTING.into() },
            false => {
                let ignored = self.ignored.summary();
                let also = if ignored.is_empty() {
                    String::new()
                } else {
                    format!("; connections that were ignored: {ignored}")
                };
                MeshError::Absent { ranks, why: (why + &also).into() }
            }
        })
    }

    /// Connects to an address at which a process listens, or will listen soon.
    fn connected(&self, address: &str, until: Instant, rank: usize) -> Result<TcpStream, MeshError> {
        let lost = |why: String| MeshError::Lost { rank, step: CONNECTING.into(), why: why.into() };
        loop {
            let places = address.to_socket_addrs().map_err(|error| lost(format!("{address}: {error}")))?;
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let tried = places.map(|at| TcpStream::connect_timeout(&at, left));
            let mut refused = "there is no such address".to_owned();
            for stream in tried {
                match stream {
                    Ok(stream) => return self.patient(stream),
                    Err(error) => refused = error.to_string(),
                }
            }
            if self.interrupter.is_interrupted() {
                return Err(MeshError::Interrupted { rank: self.rank, step: CONNECTING.into() });
            }
            if Instant::now() >= until {
                return Err(lost(format!("it was not reached at {address}: {refused}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn patient(&self, stream: TcpStream) -> Result<TcpStream, MeshError> {
        let patience = Some(self.patience.max(Duration::from_millis(1)));
        let set = stream.set_read_timeout(patience).and_then(|()| stream.set_write_timeout(patience));
        set.and_then(|()| stream.set_nodelay(true))
            .map_err(|error| MeshError::Environment { what: error.to_string().into() })?;
        self.interrupter.note(&stream);
        Ok(stream)
    }
}
