//! Laws of `layout!` and `tiler!` in a user's program: the expansion compiles with the dependencies
//! that the documentation names, without `std` too; a static layout is evaluated by plain
//! arithmetic; a refusal is a compile error at the literal with the message of the library.
//!
//! The programs are in `compile_time`. The test makes packages of them beside the build's own
//! output and runs cargo there, which compiles the library anew. So `.ci/nightly` runs these tests:
//! `cargo test -p tilewright --all-features --test suite -- --ignored compile_time`.
//!
//! The `//! ` lines that begin a program in `compile_time/refused` are data, not documentation:
//! each is a part of the compiler's message, in the order in which it stands there, and the last
//! names the line and the column of the literal. They must not be wrapped or reworded.
#![cfg(feature = "macros")]

mod assembly;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use assembly::Function;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/compile_time");

/// The dependencies of the packages are not what is looked at, so they are built as quickly as can
/// be.
const WORKSPACE: &str = r#"
[workspace]
resolver = "3"
members = ["bare", "user"]

[profile.release]
codegen-units = 1

[profile.release.package."*"]
opt-level = 0
codegen-units = 256
"#;

/// The workspace of the two packages, written once.
fn workspace() -> &'static Path {
    static PLACE: OnceLock<PathBuf> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_time");
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        write(&place.join("Cargo.toml"), WORKSPACE);
        // The same versions as here, so that nothing need be looked up.
        if let Ok(lock) = fs::read_to_string(crates.join("../Cargo.lock")) {
            write(&place.join("Cargo.lock"), &lock);
        }
        // Of the facade what the language needs: the rest would only be compiled.
        let manifest = |name: &str, dependencies: &[(&str, &str, &str)]| {
            let mut text = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n\n[dependencies]\n");
            for (name, path, options) in dependencies {
                text += &format!("{name} = {{ path = {:?}{options} }}\n", crates.join(path));
            }
            write(&place.join(name).join("Cargo.toml"), &text);
            let source = fs::read_to_string(Path::new(SOURCES).join(name).with_extension("rs")).unwrap();
            write(&place.join(name).join("src/lib.rs"), &source);
        };
        manifest("bare", &[("tilewright-layout", "layout", ""), ("tilewright-macros", "macros", "")]);
        let alone = ", default-features = false, features = [\"macros\"]";
        manifest("user", &[("tilewright", "tilewright", alone)]);
        for (name, source) in refused() {
            write(&place.join("user/src/bin").join(name).with_extension("rs"), &source);
        }
        place
    })
}

/// Writes a file where it has changed, so that cargo does not build again what it has.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The programs that must be refused, by name.
fn refused() -> Vec<(String, String)> {
    let files = fs::read_dir(Path::new(SOURCES).join("refused")).unwrap().map(|entry| entry.unwrap().path());
    let mut programs: Vec<(String, String)> = files
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_string(), fs::read_to_string(&path).unwrap()))
        .collect();
    programs.sort();
    programs
}

fn cargo(command: &str, arguments: &[&str]) -> Output {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Command::new(cargo)
        // A user's program is compiled by the compiler alone, whatever compiles the tests.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS")
        .args([command, "--release", "--offline", "--color=never", "--target-dir"])
        .arg(workspace().join("target"))
        .args(arguments)
        .current_dir(workspace())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The functions of the crate without `std`, compiled for this machine.
fn functions() -> Option<Vec<Function>> {
    if !assembly::KNOWN {
        eprintln!("skipped: the instructions of {} are not known to this test", std::env::consts::ARCH);
        return None;
    }
    let place = workspace().join("bare.s");
    // What is fresh is not compiled again, so the text stays where it was.
    let output = cargo("rustc", &["-p", "bare", "--lib", "--", "--emit", &format!("asm={}", place.display())]);
    assert!(output.status.success(), "{}", text(&output));
    Some(assembly::functions(&fs::read_to_string(&place).unwrap()))
}

#[test]
#[ignore = "compiles the library anew"]
fn static_layouts_are_plain_arithmetic() {
    let Some(functions) = functions() else { return };
    let named = |name: &str| functions.iter().filter(|function| function.name.contains(name)).collect::<Vec<_>>();
    let fixed = named("fixed_");
    assert_eq!(fixed.len(), 11, "{:?}", fixed.iter().map(|function| &function.name).collect::<Vec<_>>());
    for function in fixed {
        assert_eq!(function.divisions(), 0, "{function}");
        assert_eq!(function.calls(), 0, "{function}");
        assert_eq!(function.loops(), 0, "{function}");
    }
    for function in named("fixed_powers_") {
        assert_eq!(function.products(), 0, "shifts and masks are enough: {function}");
    }
    for function in named("fixed_others_any_index") {
        assert!(function.products() > 0, "{function}");
    }
    for function in named("fixed_constant") {
        assert!(function.instructions() < 10, "{function}");
    }
    // The same code without the numbers has what was looked for, so the checks see it; and so has
    // the run-time layout.
    let given = named("given_");
    assert_eq!(given.len(), 2);
    for function in given {
        assert!(function.divisions() > 0 && function.loops() > 0, "{function}");
    }
}

#[test]
#[ignore = "compiles the library anew"]
fn the_expansion_needs_only_the_facade() {
    let output = cargo("check", &["-p", "user", "--lib"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
#[ignore = "compiles the library anew"]
fn refusals_are_compile_errors_at_the_literal() {
    let programs = refused();
    assert!(programs.len() >= 8);
    for (name, source) in programs {
        let output = cargo("check", &["-p", "user", "--bin", &name]);
        let message = text(&output);
        assert!(!output.status.success(), "{name} compiles");
        assert!(message.contains("due to 1 previous error"), "{name}: more than one error:\n{message}");
        let mut rest = message.as_str();
        let mut expected = source.lines().map_while(|line| line.strip_prefix("//! ")).peekable();
        assert!(expected.peek().is_some(), "{name} expects nothing");
        for part in expected {
            match rest.split_once(part) {
                Some((_, after)) => rest = after,
                None => panic!("{name}: no '{part}' in what follows of\n{message}"),
            }
        }
    }
}
