//! What errors look like: every file in `diagnostics/` is programs, each on lines that start with
//! `> `, and below each what is shown for it.
//!
//! `TILEWRIGHT_UPDATE=1 cargo test -p tilewright-notation --test suite diagnostics` rewrites the
//! files; read the difference before you keep it.

use std::fmt::Write as _;
use std::path::Path;

use tilewright_notation::{Environment, evaluate};

/// The file with what is shown now.
fn shown_now(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(first) = line.strip_prefix("> ") {
            let mut program = first.to_string();
            while let Some(more) = lines.next_if(|line| line.starts_with("> ")) {
                program.push('\n');
                program.push_str(&more[2..]);
            }
            while lines.next_if(|line| !line.starts_with("> ") && !line.starts_with("# ")).is_some() {}
            for line in program.lines() {
                let _ = writeln!(out, "> {line}");
            }
            match evaluate(&program, &mut Environment::new()) {
                Ok(value) => {
                    let _ = writeln!(out, "{value}");
                }
                Err(error) => out.push_str(&error.render(&program, false)),
            }
            out.push('\n');
        } else if line.starts_with("# ") {
            let _ = writeln!(out, "{line}\n");
        }
    }
    out
}

#[test]
fn errors_look_as_recorded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let recorded = std::fs::read_to_string(&path).unwrap();
        let now = shown_now(&recorded);
        cases += now.lines().filter(|line| line.starts_with("error[")).count();
        if std::env::var_os("TILEWRIGHT_UPDATE").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else {
            assert_eq!(now, recorded, "{}", path.display());
        }
    }
    assert!(cases >= 60, "only {cases} errors are recorded");
}

#[test]
fn colour_only_where_it_is_asked_for() {
    let source = "(6,2):(1,7) o (3,2):(2,3)";
    let error = evaluate(source, &mut Environment::new()).unwrap_err();
    let plain = error.render(source, false);
    let mut painted = error.render(source, true);
    assert!(!plain.contains('\x1b'));
    assert!(painted.contains("\x1b[1;31merror[E0107]\x1b[0m"));
    for style in ["\x1b[1;31m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m"] {
        painted = painted.replace(style, "");
    }
    assert_eq!(painted, plain, "colour changes nothing but colour");
}
