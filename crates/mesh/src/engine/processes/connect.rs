//! How processes find each other.
//!
//! Law: the first process listens where its place says, the others connect to it and learn from it
//! where each is reached; then each connects to those before it. Whoever does not come in time is
//! named.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::super::Place;
use super::super::frame::{Kind, receive, send};
use super::{CONNECTING, Processes};
use crate::error::MeshError;

impl Processes {
    /// What the first process does: it waits for all others, and sends each the addresses of the
    /// others.
    pub(super) fn gather(&mut self, place: &Place, until: Instant) -> Result<(), MeshError> {
        let here = (place.address.as_str(), place.port);
        let listener = TcpListener::bind(here).map_err(|error| {
            let what = format!("rank 0 cannot listen at {}:{}: {error}", place.address, place.port);
            MeshError::Environment { what: what.into() }
        })?;
        let mut places = vec![String::new(); place.ranks];
        // A difference is reported when all are connected, so that each of them learns of it.
        let mut difference = None;
        while let Some(missing) = self.peers.iter().skip(1).position(Option::is_none) {
            let stream = match self.accepted(&listener, until, missing + 1) {
                Ok(stream) => stream,
                Err(error) => return Err(difference.unwrap_or(error)),
            };
            // A connection that does not begin with our greeting is no process of this job.
            let Ok(hello) = receive(&stream, Kind::Hello, 0, None) else { continue };
            let hello = String::from_utf8_lossy(&hello).into_owned();
            let mut lines = hello.lines();
            let (version, ranks, rank, port) = (lines.next(), lines.next(), lines.next(), lines.next());
            let rank = rank.and_then(|rank| rank.parse::<usize>().ok()).unwrap_or(usize::MAX);
            let differs = |what: &str, own: &str, other: Option<&str>| {
                let other = other.unwrap_or_default().into();
                MeshError::Differs { rank, what: what.into(), own: own.into(), other }
            };
            let free = self.peers.get(rank).is_some_and(Option::is_none) && rank > 0;
            let address = stream.peer_addr().map(|at| at.ip());
            if let (true, Ok(address), Some(own)) = (free, address, places.get_mut(rank)) {
                *own = SocketAddr::new(address, port.and_then(|port| port.parse().ok()).unwrap_or(0)).to_string();
                self.peers.iter_mut().skip(rank).take(1).for_each(|peer| *peer = stream.try_clone().ok());
            }
            if version != Some(env!("CARGO_PKG_VERSION")) {
                difference.get_or_insert(differs("version", env!("CARGO_PKG_VERSION"), version));
            } else if ranks != Some(place.ranks.to_string().as_str()) {
                difference.get_or_insert(differs("number of processes", &place.ranks.to_string(), ranks));
            } else if !free {
                difference.get_or_insert(differs("place", "one process for each rank", Some("a rank that is taken")));
            }
        }
        if let Some(error) = difference {
            return Err(error);
        }
        let table = places.join("\n");
        let sends = (1..place.ranks).map(|rank| (rank, Kind::Hello, table.as_bytes())).collect();
        self.transfer(CONNECTING, sends, Vec::new()).map(drop)
    }

    /// What the others do: they send the first one their address, learn those of the others,
    /// connect to those before them and wait for those behind.
    pub(super) fn join(&mut self, place: &Place, until: Instant) -> Result<(), MeshError> {
        let first = self.connected(&format!("{}:{}", place.address, place.port), until, 0)?;
        let here = first.local_addr().map_or(IpAddr::from([127, 0, 0, 1]), |at| at.ip());
        let no_listener = |error: std::io::Error| MeshError::Environment { what: error.to_string().into() };
        let listener = TcpListener::bind((here, 0)).map_err(no_listener)?;
        let port = listener.local_addr().map_err(no_listener)?.port();
        let hello = format!("{}\n{}\n{}\n{port}", env!("CARGO_PKG_VERSION"), place.ranks, place.rank);
        self.peers.iter_mut().take(1).for_each(|peer| *peer = first.try_clone().ok());
        let sends = vec![(0, Kind::Hello, hello.as_bytes())];
        let table = self.transfer(CONNECTING, sends, vec![(0, Kind::Hello, None)])?;
        let table = table.first().map_or(String::new(), |table| String::from_utf8_lossy(table).into_owned());
        let own = place.rank.to_string();
        for (rank, address) in table.lines().enumerate().take(place.rank).skip(1) {
            let stream = self.connected(address, until, rank)?;
            let sent = send(&stream, Kind::Hello, 0, own.as_bytes());
            sent.map_err(|failure| self.lost(rank, CONNECTING, &failure))?;
            self.peers.iter_mut().skip(rank).take(1).for_each(|peer| *peer = stream.try_clone().ok());
        }
        while let Some(missing) = self.peers.iter().skip(place.rank + 1).position(Option::is_none) {
            let stream = self.accepted(&listener, until, place.rank + 1 + missing)?;
            let Ok(hello) = receive(&stream, Kind::Hello, 0, None) else { continue };
            let rank = String::from_utf8_lossy(&hello).parse().unwrap_or(0);
            if rank > place.rank {
                self.peers.iter_mut().skip(rank).take(1).for_each(|peer| *peer = stream.try_clone().ok());
            }
        }
        Ok(())
    }

    /// The next connection that someone makes; `missing` is to blame where nobody does.
    fn accepted(&self, listener: &TcpListener, until: Instant, missing: usize) -> Result<TcpStream, MeshError> {
        let broken = |error: std::io::Error| MeshError::Environment { what: error.to_string().into() };
        listener.set_nonblocking(true).map_err(broken)?;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(broken)?;
                    return self.patient(stream);
                }
                Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
                Err(_) => {
                    let why = format!("it did not come within {} s", self.patience.as_secs_f64());
                    return Err(MeshError::Lost { rank: missing, step: CONNECTING.into(), why: why.into() });
                }
            }
        }
    }

    /// A connection to where a process listens, or will listen soon.
    fn connected(&self, address: &str, until: Instant, rank: usize) -> Result<TcpStream, MeshError> {
        let lost = |why: String| MeshError::Lost { rank, step: CONNECTING.into(), why: why.into() };
        loop {
            let places = address.to_socket_addrs().map_err(|error| lost(format!("{address}: {error}")))?;
            let tried = places.map(|at| TcpStream::connect_timeout(&at, self.patience));
            let mut refused = "there is no such address".to_owned();
            for stream in tried {
                match stream {
                    Ok(stream) => return self.patient(stream),
                    Err(error) => refused = error.to_string(),
                }
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

#[cfg(test)]
mod tests {
    use super::super::super::frame::Failure;
    use super::*;

    #[test]
    fn a_process_of_another_version_is_named_by_both_sides() {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let place = Place { rank: 0, ranks: 2, address: "127.0.0.1".into(), port };
        let first = thread::spawn(move || Processes::connect(&place, Duration::from_secs(20)));
        let other = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        };
        send(&other, Kind::Hello, 0, b"0.0.9\n2\n1\n4").unwrap();
        let reported = first.join().unwrap().unwrap_err().to_string();
        assert!(reported.contains("rank 1 has another version: 0.0.9"), "{reported}");
        let Err(Failure::Reported(error)) = receive(&other, Kind::Hello, 0, None) else { panic!("it reports nothing") };
        assert!(error.to_string().contains("rank 1 has another version: 0.0.9"), "{error}");
    }
}
