//! The server of the playground's page.
//!
//! Law: one thread serves all connections, so that no limit of threads or memory can end it. It
//! holds at most [`MAX_HELD`] connections, each for a limited time and with a limited request.
//! Beyond that, it drops the connection that has waited longest without a complete request. If all
//! connections have one, it asks the new client to try again later. The socket has the loopback
//! address. A request with another host name, which a foreign page might make a browser send, is
//! refused.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::output::Failure;

/// The largest number of connections at a time. A browser opens six.
const MAX_HELD: usize = 64;

/// The largest size of a request's head, in bytes.
const MAX_HEAD: usize = 16 << 10;

/// The time in which a browser must send its request, from the first byte to the last.
const ASKING: Duration = Duration::from_secs(5);

/// The time in which a browser must receive the answer.
const ANSWERING: Duration = Duration::from_secs(30);

/// The time for which a connection stays open after its answer, so that a browser that is still
/// sending reads the answer instead of a reset.
const CLOSING: Duration = Duration::from_secs(1);

/// The time for which the server sleeps if nothing can be read or written.
const REST: Duration = Duration::from_millis(2);

/// The time for which it sleeps after the system refused a connection, for example because
/// descriptors are exhausted.
const BACKING_OFF: Duration = Duration::from_millis(100);

/// Serves a page until the process ends.
pub fn serve(listener: &TcpListener, page: &[u8], port: u16) -> Result<(), Failure> {
    let mut held: Vec<Connection<'_>> = Vec::new();
    loop {
        // Without connections, the thread sleeps until one arrives.
        listener.set_nonblocking(!held.is_empty())?;
        match listener.accept() {
            Ok((stream, _)) => admit(&mut held, stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(REST),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The connection stays in the queue, or is gone. An idle connection may hold the
            // missing resource.
            Err(_) => {
                make_room(&mut held);
                thread::sleep(BACKING_OFF);
            }
        }
        held.retain_mut(|connection| connection.go_on(page, port));
    }
}

/// Accepts a connection, and makes room for it if necessary.
fn admit<'p>(held: &mut Vec<Connection<'p>>, stream: TcpStream) {
    if stream.set_nonblocking(true).is_err() {
        return;
    }
    let mut connection = Connection { stream, since: Instant::now(), state: State::Asking(Vec::new()) };
    if held.len() >= MAX_HELD && !make_room(held) {
        // The answer is short, so it is sent at once or not at all.
        connection.answer("503 Service Unavailable", b"there are too many connections\n", false);
        connection.go_on(&[], 0);
        return;
    }
    held.push(connection);
}

/// Closes the connection that has waited longest without a complete request, or after its answer.
/// Returns false if all are being answered.
fn make_room(held: &mut Vec<Connection<'_>>) -> bool {
    let idle = held.iter().position(|connection| !matches!(connection.state, State::Answering { .. }));
    idle.map(|idle| held.remove(idle)).is_some()
}

/// A connection of a browser.
struct Connection<'p> {
    stream: TcpStream,
    /// When it entered its state.
    since: Instant,
    state: State<'p>,
}

enum State<'p> {
    /// The request is being read; these are its bytes so far.
    Asking(Vec<u8>),
    /// The answer is being sent: the head and the body, and the number of bytes of both that are
    /// sent.
    Answering { head: Vec<u8>, body: &'p [u8], sent: usize },
    /// The answer has been sent.
    Closing,
}

/// The next action for a connection.
enum ConnectionState {
    /// Wait for the other end.
    Waits,
    /// Continue in another state.
    Goes,
    /// Remove the connection.
    Over,
}

impl<'p> Connection<'p> {
    /// Does everything that is possible without waiting. Returns false if the connection is over.
    fn go_on(&mut self, page: &'p [u8], port: u16) -> bool {
        loop {
            let (progress, limit) = match &self.state {
                State::Asking(_) => (self.ask(page, port), ASKING),
                State::Answering { .. } => (self.send(), ANSWERING),
                State::Closing => (self.close(), CLOSING),
            };
            match progress {
                ConnectionState::Over => return false,
                ConnectionState::Goes => {}
                ConnectionState::Waits if self.since.elapsed() < limit => return true,
                ConnectionState::Waits => match self.state {
                    State::Asking(_) => self.answer("408 Request Timeout", b"the request took too long\n", false),
                    _ => return false,
                },
            }
        }
    }

    /// Reads more of the request.
    fn ask(&mut self, page: &'p [u8], port: u16) -> ConnectionState {
        let State::Asking(bytes) = &mut self.state else { return ConnectionState::Goes };
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => return ConnectionState::Over,
            Ok(count) => bytes.extend(piece.iter().take(count)),
            Err(error) => return waits(&error),
        }
        if let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n").filter(|end| *end <= MAX_HEAD) {
            let head = String::from_utf8_lossy(bytes.get(..end + 4).unwrap_or_default()).into_owned();
            let (status, body) = answer(&head, page, port);
            self.answer(status, body, head.starts_with("HEAD "));
        } else if bytes.len() > MAX_HEAD {
            self.answer("431 Request Header Fields Too Large", b"the request is too long\n", false);
        }
        ConnectionState::Goes
    }

    /// Begins an answer; `is_short` omits the body.
    fn answer(&mut self, status: &str, body: &'p [u8], is_short: bool) {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\
             X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let body = if is_short { &[] } else { body };
        self.state = State::Answering { head: head.into_bytes(), body, sent: 0 };
        self.since = Instant::now();
    }

    /// Sends more of the answer.
    fn send(&mut self) -> ConnectionState {
        let State::Answering { head, body, sent } = &mut self.state else { return ConnectionState::Goes };
        let rest = match head.get(*sent..).filter(|rest| !rest.is_empty()) {
            Some(rest) => rest,
            None => body.get(*sent - head.len()..).unwrap_or_default(),
        };
        if rest.is_empty() {
            let _ = self.stream.shutdown(Shutdown::Write);
            (self.state, self.since) = (State::Closing, Instant::now());
            return ConnectionState::Goes;
        }
        match self.stream.write(rest) {
            Ok(0) => ConnectionState::Over,
            Ok(count) => {
                *sent += count;
                ConnectionState::Goes
            }
            Err(error) => waits(&error),
        }
    }

    /// Discards further input.
    fn close(&mut self) -> ConnectionState {
        match self.stream.read(&mut [0; 4096]) {
            Ok(0) => ConnectionState::Over,
            Ok(_) => ConnectionState::Waits,
            Err(error) => waits(&error),
        }
    }
}

/// The meaning of an I/O error for a connection.
fn waits(error: &std::io::Error) -> ConnectionState {
    match error.kind() {
        ErrorKind::WouldBlock => ConnectionState::Waits,
        ErrorKind::Interrupted => ConnectionState::Goes,
        _ => ConnectionState::Over,
    }
}

/// The status and the body of the answer to a request with this head.
fn answer<'p>(head: &str, page: &'p [u8], port: u16) -> (&'static str, &'p [u8]) {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if !version.is_some_and(|version| version.starts_with("HTTP/1.")) {
        return ("400 Bad Request", b"this is no request of HTTP\n");
    }
    let hosts: Vec<&str> = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, host)| host.trim())
        .collect();
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    if !matches!(hosts.as_slice(), [host] if own.iter().any(|known| known.eq_ignore_ascii_case(host))) {
        return ("403 Forbidden", b"this page is served to its own machine alone\n");
    }
    match (method, target.map(|target| target.split('?').next().unwrap_or_default())) {
        (Some("GET" | "HEAD"), Some("/" | "/index.html")) => ("200 OK", page),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", b"there is one page, at /\n"),
        _ => ("405 Method Not Allowed", b"the page can be read, and nothing else\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::answer;

    fn status(head: &str) -> &'static str {
        answer(head, b"page", 8080).0
    }

    #[test]
    fn the_page_goes_to_this_machine_alone() {
        assert_eq!(answer("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", b"page", 8080), ("200 OK", &b"page"[..]));
        assert_eq!(status("GET /?p HTTP/1.1\r\nhost: localhost:8080\r\n\r\n"), "200 OK");
        assert_eq!(status("GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"), "403 Forbidden");
        assert_eq!(status("GET / HTTP/1.1\r\nHost: 127.0.0.1:8081\r\n\r\n"), "403 Forbidden");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "403 Forbidden");
        let twice = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nHost: elsewhere.example\r\n\r\n";
        assert_eq!(status(twice), "403 Forbidden");
    }

    #[test]
    fn what_is_not_there_is_said() {
        let own = "HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
        assert_eq!(status(&format!("GET /etc/passwd {own}")), "404 Not Found");
        assert_eq!(status(&format!("GET /../ {own}")), "404 Not Found");
        assert_eq!(status(&format!("POST / {own}")), "405 Method Not Allowed");
        assert_eq!(status(""), "400 Bad Request");
        assert_eq!(status("GET /\r\n\r\n"), "400 Bad Request");
        assert_eq!(status("\u{0}\u{1}\u{2}"), "400 Bad Request");
    }
}
