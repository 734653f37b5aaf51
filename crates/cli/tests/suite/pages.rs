//! The pages about error codes do what they say: every command in their `text` blocks is run.
//!
//! A command is followed by `#` and the code that it is refused with, or by what it is good for;
//! then it succeeds, and `eval` prints just that. Without a `#` it is refused with the code of the
//! page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The pages of all crates, by code.
fn pages() -> BTreeMap<String, String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = BTreeMap::new();
    // Beside the sources of a crate, and of its large modules.
    let sources = fs::read_dir(crates).unwrap().map(|folder| folder.unwrap().path().join("src"));
    for source in sources.filter(|source| source.is_dir()) {
        let modules = fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().path().join("explanations"));
        for folder in modules.chain([source.join("explanations")]) {
            for page in fs::read_dir(folder).into_iter().flatten() {
                let path = page.unwrap().path();
                let code = path.file_stem().unwrap().to_str().unwrap().to_owned();
                pages.insert(code, fs::read_to_string(path).unwrap());
            }
        }
    }
    pages
}

/// The commands of a page, each with what is said of it.
fn commands(page: &str) -> Vec<(&str, Option<&str>)> {
    let mut inside = false;
    let mut commands = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```text";
        } else if inside && line.starts_with("tilewright ") && !line.starts_with("tilewright =") {
            let (command, said) = line.rsplit_once(" # ").map_or((line, None), |(command, said)| (command, Some(said)));
            commands.push((command.trim(), said.map(str::trim)));
        }
    }
    commands
}

/// The words of a shell's line; single quotes keep what is inside together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (part, text) in line.split('\'').enumerate() {
        if part % 2 == 1 {
            words.push(text.to_owned());
        } else {
            words.extend(text.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn run(command: &str, folder: &Path) -> Output {
    let words = words(command);
    Command::new(env!("CARGO_BIN_EXE_tilewright")).args(&words[1..]).current_dir(folder).output().unwrap()
}

/// What is wrong with a command, if anything is.
fn checked(code: &str, command: &str, said: Option<&str>, folder: &Path) -> Result<(), String> {
    let output = run(command, folder);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let said = said.unwrap_or(code);
    let ok = match said.get(..5).filter(|refused| refused.starts_with("E0") || refused.starts_with("E11")) {
        Some(refused) => !output.status.success() && err.contains(&format!("error[{refused}]")),
        None if command.starts_with("tilewright eval ") => output.status.success() && out.trim() == said,
        None => output.status.success(),
    };
    if ok { Ok(()) } else { Err(format!("{code}: {command}  # {said}\n{out}{err}")) }
}

#[test]
fn commands_of_the_pages_do_what_they_say() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pages");
    fs::create_dir_all(&folder).unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (code, page) in pages() {
        for (command, said) in commands(&page) {
            count += 1;
            wrong.extend(checked(&code, command, said, &folder).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "{count} commands");
}
