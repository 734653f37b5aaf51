//! `tilewright playground`: layouts in the browser, served from this machine or written to a file.
//!
//! Law: the page is one file that holds everything, the library included. It is served to this
//! machine alone: the socket is of the loopback address, and a request that names another host, as
//! a page elsewhere might make a browser send, is refused.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::output::{Failure, write_file};
use crate::terminal::Terminal;

/// The page that was built into this command; empty where none was.
const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/playground.html"));

/// The most bytes of the head of a request.
const HEAD: usize = 16 << 10;

/// How long a browser may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where the page comes from and goes to.
#[derive(Debug, Args)]
pub struct Options {
    /// The program that the page begins with.
    #[arg(value_name = "EXPRESSION", allow_hyphen_values = true, conflicts_with = "output")]
    expression: Option<String>,
    /// Write the page to a file that works from disk, and serve nothing.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["port", "no_open"])]
    output: Option<PathBuf>,
    /// The page to use instead of the one that was built in.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The port; else one that is free.
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    port: u16,
    /// Do not open a browser.
    #[arg(long)]
    no_open: bool,
}

pub fn run(options: &Options, terminal: &mut Terminal) -> Result<(), Failure> {
    let page = page(options.page.as_deref())?;
    if let Some(file) = &options.output {
        return write_file(file, &page, terminal);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
        .map_err(|error| Failure::Value(format!("port {} cannot be used: {error}", options.port)))?;
    let port = listener.local_addr()?.port();
    let address =
        format!("http://127.0.0.1:{port}/{}", options.expression.as_deref().map(fragment).unwrap_or_default());
    if terminal.json {
        terminal.object(&json!({ "address": address }))?;
    } else {
        terminal.text(&format!("{address}\nserved to this machine alone, until Ctrl-C\n"))?;
    }
    terminal.out.flush()?;
    if !options.no_open {
        open(&address);
    }
    let page: Arc<[u8]> = page.into();
    for stream in listener.incoming() {
        // One that is gone again is no reason to stop.
        let Ok(stream) = stream else { continue };
        let page = Arc::clone(&page);
        thread::spawn(move || serve(stream, &page, port));
    }
    Ok(())
}

/// The page of a file, or the one that was built in.
fn page(file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    match file {
        Some(file) => std::fs::read(file).map_err(|error| Failure::file(file, error)),
        None if PAGE.is_empty() => Err(Failure::Value(
            "this command was built without the playground: in the project, run `scripts/playground --install`, or give the page \
             that it builds with --page FILE"
                .to_owned(),
        )),
        None => Ok(PAGE.to_vec()),
    }
}

/// The end of an address with which the page begins with a program.
fn fragment(program: &str) -> String {
    let mut text = String::from("#p=");
    for byte in program.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Asks the system to show an address. Where it cannot, the address is on the terminal.
fn open(address: &str) {
    let (program, before): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(before).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
}

/// Answers one request.
fn serve(mut stream: TcpStream, page: &[u8], port: u16) {
    let mut answered = || -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let head = head(&mut stream)?;
        let (status, body) = answer(&head, page, port);
        let headers = "Content-Type: text/html; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\
                       X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\nConnection: close";
        write!(stream, "HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {}\r\n\r\n", body.len())?;
        if !head.starts_with("HEAD ") {
            stream.write_all(body)?;
        }
        stream.flush()
    };
    // A browser that closes the connection has what it wants.
    let _ = answered();
}

/// The head of a request: all up to an empty line.
fn head(stream: &mut impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 1024];
    while bytes.len() < HEAD && !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => break,
            count => bytes.extend_from_slice(piece.get(..count).unwrap_or_default()),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The status and the body that answer the head of a request.
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
    use super::*;

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
    fn a_program_is_written_into_the_address() {
        assert_eq!(fragment("(4,8):\n# é"), "#p=%284%2C8%29%3A%0A%23%20%C3%A9");
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

    #[test]
    fn a_head_without_an_end_is_cut() {
        let mut endless = io::repeat(b'x');
        assert!(head(&mut endless).unwrap().len() <= HEAD + 1024);
    }

    #[test]
    fn a_page_is_served_over_a_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || serve(listener.accept().unwrap().0, b"<p>page</p>", port));
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        server.join().unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n<p>page</p>"), "{text}");
    }
}
