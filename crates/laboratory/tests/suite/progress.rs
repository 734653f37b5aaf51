//! Long work reports its progress.

use std::io::Read;
use std::process::{Command, Stdio};

/// Work that takes long shows on a terminal how far it has come; `script` gives the command one.
#[test]
fn long_work_shows_how_far_it_has_come() {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let line = format!("'{}' scale --devices 8,64,512,4096", env!("CARGO_BIN_EXE_tilewright-lab"));
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut shown, mut some) = (Vec::new(), [0; 256]);
    let mut out = child.stdout.take().unwrap();
    while !String::from_utf8_lossy(&shown).contains(" %") {
        let count = out.read(&mut some).unwrap();
        assert!(count > 0, "it ended without a word: {}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&some[..count]);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(String::from_utf8_lossy(&shown).contains('['), "{}", String::from_utf8_lossy(&shown));
}
