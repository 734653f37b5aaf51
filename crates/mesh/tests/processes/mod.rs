//! Processes that sockets connect, here threads of one.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use tilewright_mesh::{Place, Processes, Token};

/// The token of the job.
pub const TOKEN: &str = "token-of-the-tests";

/// What `work` gives on each of this many processes.
pub fn between<R: Send>(ranks: usize, patience: Duration, work: impl Fn(usize, Processes) -> R + Sync) -> Vec<R> {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    thread::scope(|scope| {
        let process = |rank| {
            let place = Place { rank, ranks, address: "127.0.0.1".to_owned(), port, token: Token::new(TOKEN).ok() };
            let work = &work;
            scope.spawn(move || work(rank, Processes::connect(&place, patience).unwrap()))
        };
        let all: Vec<_> = (0..ranks).map(process).collect();
        all.into_iter().map(|process| process.join().unwrap()).collect()
    })
}
