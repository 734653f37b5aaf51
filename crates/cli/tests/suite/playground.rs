//! The playground's server, over sockets, with limits of memory and descriptors set for its
//! process: it goes on serving whoever asks properly, and neither ends, hangs nor spins.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TILEWRIGHT: &str = env!("CARGO_BIN_EXE_tilewright");

/// A server, which ends with its test.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// A server of a page of this many bytes, under limits that a shell sets.
    fn start(name: &str, bytes: usize, limits: &str) -> Server {
        let page = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
        std::fs::write(&page, "p".repeat(bytes)).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{limits} exec \"$0\" playground --no-open --page \"$1\""), TILEWRIGHT])
            .arg(&page);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        Server { child, port }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The answer to a proper request: its first line, and the bytes of its body.
    fn ask(&self) -> (String, usize) {
        let mut stream = self.connect();
        write!(stream, "GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", self.port).unwrap();
        answer(stream)
    }

    /// The seconds of processor time that the server has used.
    fn used(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        // User and system time, in hundredths of a second (proc(5), `sysconf(_SC_CLK_TCK)`).
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
    }
}

fn answer(mut stream: TcpStream) -> (String, usize) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.len())
}

const PAGE: usize = 3 << 20;

fn served() -> (String, usize) {
    ("HTTP/1.1 200 OK".to_owned(), PAGE)
}

#[test]
fn held_connections_leave_room_for_others() {
    let server = Server::start("held", PAGE, "");
    let held: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    let since = Instant::now();
    assert_eq!(server.ask(), served());
    assert!(since.elapsed() < Duration::from_secs(3));
    // The oldest went; the newest are told after a while that they said nothing.
    assert_eq!(answer(held.into_iter().last().unwrap()).0, "HTTP/1.1 408 Request Timeout");
}

#[test]
fn a_limit_of_memory_does_not_end_the_server() {
    // In KiB: 300 MiB of addresses, of which a thread takes 2 MiB.
    let server = Server::start("memory", PAGE, "ulimit -v 300000;");
    let _held: Vec<TcpStream> = (0..400).map(|_| server.connect()).collect();
    for _ in 0..3 {
        assert_eq!(server.ask(), served());
    }
}

#[test]
fn a_limit_of_descriptors_neither_stops_the_server_nor_makes_it_spin() {
    let server = Server::start("descriptors", PAGE, "ulimit -n 16;");
    let _held: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
    assert_eq!(server.ask(), served());
    let before = server.used();
    let _more: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
    thread::sleep(Duration::from_secs(2));
    assert!(server.used() - before < 0.8, "{} s of processor time in 2 s", server.used() - before);
    assert_eq!(server.ask(), served());
}

#[test]
fn a_slow_request_ends_and_a_slow_reader_stops_nobody() {
    let server = Server::start("slow", PAGE, "");
    let mut slow = server.connect();
    let mut reader = server.connect();
    write!(reader, "GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.port).unwrap();
    let since = Instant::now();
    let request = format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\nX: {}", server.port, "x".repeat(1000));
    let mut bytes = request.bytes();
    while slow.write_all(&[bytes.next().unwrap()]).is_ok() && since.elapsed() < Duration::from_secs(15) {
        thread::sleep(Duration::from_millis(500));
        assert_eq!(server.ask(), served());
    }
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    // The reader has been slow long enough, and gets the rest.
    assert_eq!(answer(reader), served());
}

#[test]
fn long_and_strange_requests_are_answered() {
    let server = Server::start("strange", PAGE, "");
    let host = format!("Host: localhost:{}\r\n", server.port);
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\n{host}X: {}", "x".repeat(20 << 10)), "431 Request Header Fields Too Large"),
        (format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(20 << 10)), "431 Request Header Fields Too Large"),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 9\r\n\r\n123456789"), "405 Method Not Allowed"),
        ("\u{0}\u{1}\r\n\r\n".to_owned(), "400 Bad Request"),
        ("GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n".to_owned(), "403 Forbidden"),
    ] {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(answer(stream).0, format!("HTTP/1.1 {status}"));
    }
    let mut head = server.connect();
    write!(head, "HEAD / HTTP/1.1\r\n{host}\r\n").unwrap();
    assert_eq!(answer(head), ("HTTP/1.1 200 OK".to_owned(), 0));
    assert_eq!(server.ask(), served());
}
