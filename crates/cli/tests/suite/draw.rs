//! `tilewright draw -o`: the extension is the format, and a file is written whole or not at all.

use std::path::PathBuf;
use std::process::{Command, Output};

fn draw(arguments: &[&str], name: &str) -> (Output, PathBuf) {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    let output = command.arg("draw").args(arguments).arg("-o").arg(&file).output().unwrap();
    (output, file)
}

#[test]
fn every_extension_is_its_format() {
    for (name, begin) in [
        ("rows.svg", "<svg "),
        ("rows.html", "<!DOCTYPE html>"),
        ("rows.png", "\u{89}PNG"),
        ("rows.pdf", "%PDF-"),
        ("rows.tex", "% Rows"),
        ("rows.txt", "Rows\n"),
    ] {
        let (output, file) = draw(&["(4,8):(8,1)", "--title", "Rows"], name);
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
        let bytes = std::fs::read(file).unwrap();
        let begin: Vec<u8> = begin.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        assert!(bytes.starts_with(&begin), "{name}");
    }
}

#[test]
fn what_is_refused_leaves_no_file() {
    for (arguments, name, status) in [
        (["(4,8):(8,1)", "--kind", "mma"], "refused.svg", 2),
        (["(4,8):(8,1)", "--tile", "(2,2)"], "outside.svg", 1),
        (["(6,2):(1,7) o (3,2):(2,3)", "--theme", "dark"], "carries.svg", 1),
        (["(4,8):(8,1)", "--theme", "dark"], "rows.gif", 1),
    ] {
        let (output, file) = draw(&arguments, name);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty() && !file.exists(), "{arguments:?}");
    }
}

#[test]
fn the_file_says_what_it_is_of() {
    let (_, file) = draw(&["zipped_divide((8,8):(8,1), [2:1;4:1])", "--theme", "light"], "source.svg");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("<!-- zipped_divide((8,8):(8,1), [2:1;4:1]) -->"));
    assert!(!text.contains("prefers-color-scheme"));
}

#[test]
fn an_explanation_is_one_page_of_formulas_and_pictures() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("explained.html");
    for (expression, status, told, pictures) in [
        ("(6,2):(8,2) o (4,3):(3,1)", 0, "R0 = A o B[0] = (2,2):(24,2)", 2),
        ("(6,2):(1,7) o (3,2):(2,3)", 1, "the modes alone: A(4) + A(3) = 4 + 3 = 7", 2),
        ("zipped_divide((4,6):(6,1), [2:1;3:1])", 0, "R = zipped_divide(A, T) = ", 1),
        ("gcd(12, 18)", 0, "R = 6", 0),
        ("4:1 o", 1, "error[E02", 0),
    ] {
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        let output = command.arg("explain").arg(expression).arg("-o").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty() == (status == 0), "{output:?}");
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(page.contains(told) && page.ends_with("</html>\n"), "{expression}");
        assert_eq!(page.matches("<svg ").count(), pictures, "{expression}");
        assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count(), "{expression}");
    }
}

/// Tiles of 256 x 64 stand on the page of a tile program with a corner each: whole, they would
/// make it as large as a film.
#[test]
fn the_page_of_a_tile_program_stays_small() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("attention.html");
    for arch in ["sm_80", "sm_90a"] {
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        let command = command.args(["kernel", "explain", "attention", "--arch", arch, "-o"]).arg(&file);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(page.contains("the first 16 × 32 of 256 × 64"), "{arch}");
        assert!(page.len() < 2_200_000, "{arch}: {} bytes", page.len());
    }
}

/// If the disk is full, the old file stays. Here no file may grow beyond a kilobyte.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file() {
    for (command, name) in [("draw '(16,16):(16,1)'", "full.svg"), ("explain '(6,2):(8,2) o (4,3):(3,1)'", "full.html")]
    {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, "what was there").unwrap();
        let program = env!("CARGO_BIN_EXE_tilewright");
        let script = format!("trap '' XFSZ; ulimit -f 1; exec '{program}' {command} -o '{}'", file.display());
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.starts_with(&format!("error: {}: File too large", file.display())), "{message}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "what was there");
    }
}
