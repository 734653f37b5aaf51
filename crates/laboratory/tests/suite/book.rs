//! A picture of the book that a command of the laboratory draws equals the command's current
//! output.
//!
//! `TRYCMD=overwrite cargo test -p tilewright-laboratory --test suite book` draws it again. The
//! pictures of the other commands are tested with the command `tilewright`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commands of the pages of the book that draw a picture: their words.
fn commands(book: &Path) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for entry in fs::read_dir(book).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let page = fs::read_to_string(path).unwrap();
            let lines =
                page.lines().filter(|line| line.starts_with("tilewright-lab ") && line.contains(" -o pictures/"));
            commands.extend(lines.map(|line| line.split(' ').skip(1).map(str::to_owned).collect()));
        }
    }
    commands
}

#[test]
fn pictures_are_what_their_commands_draw() {
    let overwrite = std::env::var_os("TRYCMD").is_some_and(|value| value == "overwrite");
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src");
    let commands = commands(&book);
    assert!(!commands.is_empty());
    for mut words in commands {
        let kept = book.join(words.pop().unwrap());
        let made = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(kept.file_name().unwrap());
        let output = Command::new(env!("CARGO_BIN_EXE_tilewright-lab")).args(&words).arg(&made).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
        let made = fs::read(made).unwrap();
        if overwrite {
            fs::write(kept, made).unwrap();
        } else {
            assert!(fs::read(&kept).is_ok_and(|kept| kept == made), "{} is not what {words:?} draws", kept.display());
        }
    }
}
