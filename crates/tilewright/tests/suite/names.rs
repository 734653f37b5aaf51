//! The names of types.
//!
//! Law: within a crate, no two types have one name, so that a name in an error, in a review or in
//! the index of the documentation means one thing. Associated types, `Sealed` traits, macros and
//! modules of tests are excluded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below a folder, without tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The words and signs of Rust code, without comments, texts and letters in quotes.
fn tokens(code: &str) -> Vec<String> {
    let letters: Vec<char> = code.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    while at < letters.len() {
        match letters[at] {
            '/' if letters.get(at + 1) == Some(&'/') => {
                while at < letters.len() && letters[at] != '\n' {
                    at += 1;
                }
            }
            '"' => at = end_of_text(&letters, at, &found),
            '\'' if letters.get(at + 1) == Some(&'\\') => {
                at += 3;
                while at < letters.len() && letters[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if letters.get(at + 2) == Some(&'\'') => at += 3,
            letter if is_word(letter) => {
                let end = letters[at..].iter().position(|letter| !is_word(*letter)).map_or(letters.len(), |n| at + n);
                found.push(letters[at..end].iter().collect());
                at = end;
            }
            letter => {
                if !letter.is_whitespace() {
                    found.push(letter.to_string());
                }
                at += 1;
            }
        }
    }
    found
}

/// The position after a text that begins at a quote; `before` tells whether it is a raw one.
fn end_of_text(letters: &[char], quote: usize, before: &[String]) -> usize {
    let signs = letters[..quote].iter().rev().take_while(|letter| **letter == '#').count();
    let prefix = before.len().checked_sub(signs + 1).map(|at| before[at].as_str());
    let is_raw = matches!(prefix, Some("r" | "br"));
    let mut at = quote + 1;
    while at < letters.len() {
        match letters[at] {
            '\\' if !is_raw => at += 2,
            '"' if !is_raw || letters[at + 1..].iter().take_while(|letter| **letter == '#').count() >= signs => {
                return at + 1;
            }
            _ => at += 1,
        }
    }
    at
}

/// The kind of body that a brace opens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// A module of tests or a macro: nothing in it counts.
    Excluded,
    /// An `impl` or a trait: its types are associated types.
    Associated,
    Other,
}

/// The types that a file declares.
fn declared(code: &str) -> Vec<String> {
    let tokens = tokens(code);
    let (mut found, mut bodies, mut next) = (Vec::new(), Vec::new(), Body::Other);
    for (at, token) in tokens.iter().enumerate() {
        let follows = |words: &[&str]| at >= words.len() && tokens[at - words.len()..at] == *words;
        match token.as_str() {
            "{" => {
                bodies.push(next);
                next = Body::Other;
            }
            "}" => {
                bodies.pop();
                next = Body::Other;
            }
            ";" => next = Body::Other,
            "macro_rules" => next = Body::Excluded,
            "mod" if follows(&["cfg", "(", "test", ")", "]"]) => next = Body::Excluded,
            "impl" if next == Body::Other && at.checked_sub(1).is_none_or(|before| is_start(&tokens[before])) => {
                next = Body::Associated;
            }
            "struct" | "enum" | "trait" | "type" | "union" => {
                let Some(name) = tokens.get(at + 1).filter(|name| name.starts_with(char::is_uppercase)) else {
                    continue;
                };
                let associated = token == "type" && bodies.last() == Some(&Body::Associated);
                if !bodies.contains(&Body::Excluded) && !associated && name != "Sealed" {
                    found.push(name.clone());
                }
                if token == "trait" {
                    next = Body::Associated;
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether an item may begin after a token.
fn is_start(token: &str) -> bool {
    matches!(token, "{" | "}" | ";" | "]" | "unsafe" | "default")
}

#[test]
fn types_of_a_crate_have_different_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut crates: Vec<PathBuf> = fs::read_dir(root.join("crates")).unwrap().map(|own| own.unwrap().path()).collect();
    crates.extend(["python", "playground/engine"].map(|name| root.join(name)));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for folder in crates {
        let (mut files, mut places) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
        sources(&folder.join("src"), &mut files);
        for file in files {
            for name in declared(&fs::read_to_string(&file).unwrap()) {
                let place = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
                places.entry(name).or_default().push(place);
            }
        }
        count += places.len();
        let twice = places.into_iter().filter(|(_, files)| files.len() > 1);
        wrong.extend(twice.map(|(name, files)| format!("{name}: {}", files.join(", "))));
    }
    assert!(count > 1000, "only {count} types were found");
    assert!(wrong.is_empty(), "types with one name:\n{}", wrong.join("\n"));
}

#[test]
fn declarations_are_found() {
    let code = r##"
        pub struct A<'a>(&'a str); // struct B
        impl Iterator for A<'_> { type Item = i64; fn next(&mut self) -> Option<i64> { enum C {} None } }
        pub trait D { type E; }
        const TEXT: &str = "struct F"; const RAW: &str = r#"struct "G""#; const QUOTE: char = '"';
        fn f(x: impl Copy) -> impl Copy { type H = i64; let y: H = 0; (x, y).1 }
        macro_rules! made { ($name:ident) => { struct I; } }
        mod sealed { pub trait Sealed {} }
        #[cfg(test)] mod tests { struct J; }
        struct K;
    "##;
    assert_eq!(declared(code), ["A", "C", "D", "H", "K"]);
}
