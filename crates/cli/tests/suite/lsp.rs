//! The language server as a process. Its two threads share standard output, so what each of them
//! answers must come out, whatever the rest of the command does with that stream.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PROGRAM: &str = "tile t {\n    input x: f32 (8,8):(8,1)\n    output y: f32 (8,8):(8,1)\n    grid 1\n    \
                       a = load(x, (8,8), (0,0))\n    store(y, (0,0), a + a)\n}\n";

fn message(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The body of the next message; none at the end.
fn receive(input: &mut impl BufRead) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            header => length = header.strip_prefix("Content-Length: ")?.parse().ok()?,
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// Layouts are assigned beside the server, and the answer comes from that thread.
#[test]
fn hints_come_from_the_thread_beside_the_server() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let document = format!(
        r#"{{"uri":"file:///t.tile","languageId":"tilewright","version":1,"text":{}}}"#,
        serde_json::to_string(PROGRAM).unwrap()
    );
    let range = r#"{"start":{"line":0,"character":0},"end":{"line":9,"character":0}}"#;
    let mut input = server.stdin.take().unwrap();
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{{"textDocument":{document}}}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"textDocument/inlayHint","params":{{"textDocument":{{"uri":"file:///t.tile"}},"range":{range}}}}}"#
        ),
    ] {
        input.write_all(message(&body).as_bytes()).unwrap();
    }
    input.flush().unwrap();
    let output = server.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        while let Some(body) = receive(&mut output) {
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    let answer = loop {
        match receiver.recv_timeout(Duration::from_secs(60)) {
            Ok(body) if body.contains(r#""id":2"#) => break Some(body),
            Ok(_) => {}
            Err(_) => break None,
        }
    };
    let _ = server.kill();
    let _ = server.wait();
    let answer = answer.expect("no hints within a minute");
    assert!(answer.contains("):("), "{answer}");
}
