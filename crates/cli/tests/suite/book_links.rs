//! The examples of the book lead into the playground: below each picture and each value that a
//! command computes stands a link with the same program and the same choices, and the page of
//! errors has every error with links for its examples.
//!
//! `TRYCMD=overwrite cargo test -p tilewright-cli --test suite book_links` writes the links anew.
//! That the playground answers them, and draws the pictures of the book byte for byte, is asked by
//! `playground/tests/engine.test.mjs`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a link says.
const WORDS: &str = "Open in the playground";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The words of a shell's line; single quotes keep what is inside together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => write!(out, "%{byte:02X}").unwrap(),
        }
    }
    out
}

fn link(program: &str, choices: &[(&str, String)]) -> String {
    let mut link = format!("playground/index.html#p={}", encoded(program));
    for (name, value) in choices {
        write!(link, "&{name}={}", encoded(value)).unwrap();
    }
    link
}

/// The link that shows what a command shows; none if the playground has no such view.
fn of_command(line: &str) -> Option<String> {
    let all = words(line.strip_prefix("tilewright ")?);
    let (command, rest) = all.split_first()?;
    let (mut programs, mut choices) = (Vec::new(), Vec::<(&str, String)>::new());
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match (command.as_str(), word.as_str()) {
            ("morphism", "--span") => choices.push(("kind", "span".into())),
            ("compose", "--by-refinement") => choices.push(("kind", "composition".into())),
            (_, "-o") => _ = rest.next(),
            ("banks" | "access", "--width") => choices.push(("element-bits", rest.next()?.clone())),
            ("banks" | "access", "--vector") => choices.push(("vector", rest.next()?.clone())),
            ("banks" | "access", "--access") => choices.push(("access", rest.next()?.clone())),
            (
                "draw",
                "--element-bits" | "--threads" | "--values" | "--tile" | "--tiler" | "--tile-number" | "--atoms",
            )
            | ("draw", "--kind" | "--slice") => choices.push((word.strip_prefix("--")?, rest.next()?.clone())),
            (_, option) if option.starts_with('-') && !option.starts_with("-(") => return None,
            (_, program) => programs.push(program.to_owned()),
        }
    }
    let view = match command.as_str() {
        "draw" | "eval" | "show" => None,
        "banks" => Some("banks"),
        "access" => Some("sectors"),
        "morphism" if choices.is_empty() => Some("morphism"),
        "morphism" | "compose" => None,
        _ => return None,
    };
    choices.splice(0..0, view.map(|view| ("kind", view.to_owned())));
    let program = match (command.as_str(), programs.as_slice()) {
        ("compose", [a, b]) if !choices.is_empty() => format!("{a} o {b}"),
        (_, [program]) => program.clone(),
        ("draw", [a, b]) => format!("({a}, {b})"),
        _ => return None,
    };
    Some(link(&program, &choices))
}

/// A page with its links, whatever links it had.
fn with_links(page: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in page.lines() {
        if line.starts_with(&format!("[{WORDS}](")) {
            // The line before it was left free for it.
            if lines.last() == Some(&"") {
                lines.pop();
            }
            continue;
        }
        lines.push(line);
    }
    let mut out = String::new();
    let (mut fence, mut told, mut drawn) = (None, None, None);
    for line in lines {
        out.push_str(line);
        out.push('\n');
        let mut wanted = None;
        if let Some(name) = line.strip_prefix("```") {
            if fence.is_some() {
                wanted = told.take();
                fence = None;
            } else {
                fence = Some(name.to_owned());
            }
        } else if fence.as_deref() == Some("console") && line.starts_with("$ tilewright ") {
            // The first command of a block that the playground knows.
            told = told.or_else(|| of_command(line.strip_prefix("$ ")?));
        } else if fence.as_deref() == Some("sh") && line.starts_with("tilewright ") && line.contains(" -o pictures/") {
            drawn = of_command(line);
        } else if line.starts_with("![") {
            wanted = drawn.take();
        }
        if let Some(link) = wanted {
            write!(out, "\n[{WORDS}]({link})\n").unwrap();
        }
    }
    out
}

fn compared(file: &Path, wanted: &str) {
    if std::env::var_os("TRYCMD").is_some_and(|value| value == "overwrite") {
        fs::write(file, wanted).unwrap();
    } else {
        let kept = fs::read_to_string(file).unwrap_or_default();
        let differs = kept.lines().zip(wanted.lines()).position(|(kept, wanted)| kept != wanted);
        assert_eq!(kept.len(), wanted.len(), "{file:?} from line {differs:?}; TRYCMD=overwrite writes it anew");
        assert_eq!(differs, None, "{file:?}; TRYCMD=overwrite writes it anew");
    }
}

#[test]
fn every_example_has_its_link() {
    let mut links = 0;
    for entry in fs::read_dir(root().join("docs/book/src")).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if file.extension().is_some_and(|extension| extension == "md") && name != "errors.md" {
            let wanted = with_links(&fs::read_to_string(&file).unwrap());
            assert_eq!(with_links(&wanted), wanted, "{name}: a second time");
            links += wanted.matches(WORDS).count();
            compared(&file, &wanted);
        }
    }
    assert!(links > 30, "{links} links");
}

/// The explanations of errors, by their codes: the files, from the root.
fn explanations() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = folder.join(&name);
            let code = name.strip_suffix(".md").filter(|code| code.len() == 5 && code.starts_with('E'));
            match code {
                Some(code) if folder.ends_with("explanations") => found.push((code.to_owned(), path)),
                _ if root().join(&path).is_dir() && !name.starts_with('.') && name != "tests" => folders.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The examples of an explanation: lines of its blocks, without what stands behind `#`.
fn examples(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            let program = line.split(" #").next().unwrap_or(line).trim();
            if !program.is_empty() {
                found.push(program.to_owned());
            }
        }
    }
    found
}

#[test]
fn the_page_of_errors_has_every_error_and_its_examples() {
    let explanations = explanations();
    assert!(explanations.len() > 150, "{} explanations", explanations.len());
    let mut page = String::from(
        "# What errors mean\n\nEvery refusal has a code, and `tilewright explain` prints its page. These are all of them; \
         examples\nof the algebra and of the language lead into the [playground](playground.md).\n",
    );
    for (code, file) in &explanations {
        let text = fs::read_to_string(root().join(file)).unwrap();
        write!(page, "\n<a id=\"{code}\"></a>\n\n{{{{#include ../../../{}}}}}\n", file.display()).unwrap();
        // Those of the algebra and of the language are programs.
        if code.starts_with("E01") || code.starts_with("E02") {
            for program in examples(&text) {
                let mut shown = program.replace('`', "'");
                if shown.chars().count() > 60 {
                    shown = shown.chars().take(59).chain(['…']).collect();
                }
                write!(page, "\n* [Try `{shown}`]({})", link(&program, &[])).unwrap();
            }
            page.push('\n');
        }
    }
    compared(&root().join("docs/book/src/errors.md"), &page);
    let explained = Command::new(env!("CARGO_BIN_EXE_tilewright")).args(["explain", "E0107"]).output().unwrap();
    let first = fs::read_to_string(root().join("crates/layout/src/explanations/E0107.md")).unwrap();
    let title = first.lines().next().unwrap().trim_start_matches("# ").to_owned();
    assert!(
        String::from_utf8(explained.stdout).unwrap().contains(title.as_str()),
        "the page is what the command tells"
    );
}
