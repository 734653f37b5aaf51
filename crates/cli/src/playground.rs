//! `tilewright playground`: layouts in the browser, served from this machine or written to a file.
//!
//! Law: the page is one file that contains everything, including the library. It is served only to
//! this machine (`server.rs`).

mod server;

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use crate::output::{Failure, write_file};
use crate::terminal::Terminal;

/// The page that was built into this command; empty if it was built without one.
const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/playground.html"));

/// The source and the destination of the page.
#[derive(Debug, Args)]
pub struct PlaygroundOptions {
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

pub fn run(options: &PlaygroundOptions, terminal: &mut Terminal) -> Result<(), Failure> {
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
    server::serve(&listener, &page, port)
}

/// The page from a file, or the built-in one.
fn page(file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    match file {
        Some(file) => std::fs::read(file).map_err(|error| Failure::file(file, error)),
        None if PAGE.is_empty() => Err(Failure::Value(
            "this command has no playground inside, for building the page takes npm: in the project, run \
             `scripts/playground --install` once, which builds the page and installs the command with it; or give a \
             page with --page FILE"
                .to_owned(),
        )),
        None => Ok(PAGE.to_vec()),
    }
}

/// The fragment of an address that makes the page begin with a program.
pub fn fragment(program: &str) -> String {
    let mut text = String::from("#p=");
    for byte in program.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Asks the system to open an address. If that fails, the user can read the address on the
/// terminal.
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

#[cfg(test)]
mod tests {
    use super::fragment;

    #[test]
    fn a_program_is_written_into_the_address() {
        assert_eq!(fragment("(4,8):\n# é"), "#p=%284%2C8%29%3A%0A%23%20%C3%A9");
    }
}
