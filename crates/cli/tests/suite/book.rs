//! The book holds together: a picture is what the command above it draws, every page is in the
//! summary, every link leads somewhere. The README shows pictures of the book, so they are drawn by
//! these commands too.
//!
//! `TRYCMD=overwrite cargo test -p tilewright-cli --test suite book` draws the pictures anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src")
}

/// The pages, by name.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(source()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            pages.push((name, fs::read_to_string(path).unwrap()));
        }
    }
    pages.sort();
    pages
}

/// The commands of a page's `sh` blocks that write pictures, by the program: their arguments, and
/// the names of the pictures.
fn commands(page: &str, program: &str) -> Vec<(Vec<String>, String)> {
    let mut commands = Vec::new();
    let mut block = None;
    for line in page.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(fence) };
        } else if block == Some("sh") && line.split(' ').next() == Some(program) && line.contains(" -o pictures/") {
            let mut arguments = words(line).split_off(1);
            let at = arguments.iter().position(|word| word == "-o").unwrap();
            let file = arguments.split_off(at).swap_remove(1);
            commands.push((arguments, file.strip_prefix("pictures/").unwrap().to_owned()));
        }
    }
    commands
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
    assert!(!quoted, "{line}");
    words
}

/// Whether a link of a page in a folder leads somewhere. Addresses of this repository are files
/// here; other addresses are believed.
fn leads(folder: &Path, link: &str) -> bool {
    const REPOSITORY: &str = "https://github.com/tilewright/tilewright/blob/main/";
    let file = link.split('#').next().unwrap();
    match file.strip_prefix(REPOSITORY) {
        Some(file) => source().join("../../..").join(file).exists(),
        None => file.starts_with("https://") || file.is_empty() || folder.join(file).exists(),
    }
}

/// The targets of a page's links and images, outside of code.
fn links(page: &str) -> Vec<&str> {
    let mut links = Vec::new();
    let mut code = false;
    for line in page.lines() {
        if line.starts_with("```") {
            code = !code;
        } else if !code {
            let words = line.split('`').step_by(2);
            links.extend(words.flat_map(|words| words.split("](").skip(1)).filter_map(|rest| rest.split(')').next()));
        }
    }
    links
}

#[test]
fn pictures_are_what_their_commands_draw() {
    let overwrite = std::env::var_os("TRYCMD").is_some_and(|value| value == "overwrite");
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("book");
    fs::create_dir_all(&scratch).unwrap();
    let mut drawn = BTreeSet::new();
    for (name, page) in pages() {
        for (arguments, file) in commands(&page, "tilewright") {
            assert!(drawn.insert(file.clone()), "{name} draws {file} again");
            assert!(links(&page).contains(&format!("pictures/{file}").as_str()), "{name} does not show {file}");
            let made = scratch.join(&file);
            let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
            let output = command.args(&arguments).arg("-o").arg(&made).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{name}: {arguments:?}: {output:?}");
            let (made, kept) = (fs::read(made).unwrap(), source().join("pictures").join(&file));
            if overwrite {
                fs::write(kept, made).unwrap();
            } else {
                let current = fs::read(kept).is_ok_and(|kept| kept == made);
                assert!(current, "{file} of {name} is not what its command draws; TRYCMD=overwrite draws it anew");
            }
        }
    }
    // Those are drawn by the tests of the laboratory.
    drawn.extend(pages().iter().flat_map(|(_, page)| commands(page, "tilewright-lab")).map(|(_, file)| file));
    let kept: BTreeSet<String> = fs::read_dir(source().join("pictures"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(kept, drawn, "pictures that are kept, and those that a page draws");
}

#[test]
fn every_page_is_in_the_summary_and_every_link_leads_somewhere() {
    let pages = pages();
    let summary = &pages.iter().find(|(name, _)| name == "SUMMARY.md").unwrap().1;
    let listed: BTreeSet<&str> = links(summary).into_iter().collect();
    let written: BTreeSet<&str> =
        pages.iter().map(|(name, _)| name.as_str()).filter(|name| *name != "SUMMARY.md").collect();
    assert_eq!(listed, written);
    for (name, page) in &pages {
        for link in links(page) {
            // The playground's page stands beside the book once both are built; what the links hold
            // is checked by `book_links.rs` and by the playground's own tests.
            let built = link.starts_with("playground/index.html#");
            assert!(built || leads(&source(), link), "{name} links to {link}");
        }
    }
}

#[test]
fn the_readme_shows_a_picture_of_the_book_and_its_links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "python/README.md"].map(|name| root.join(name)).into();
    let crates = fs::read_dir(root.join("crates")).unwrap();
    pages.extend(crates.map(|entry| entry.unwrap().path().join("DECISIONS.md")).filter(|page| page.exists()));
    assert!(pages.len() > 8, "{pages:?}");
    let mut pictures = 0;
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for link in links(&text) {
            assert!(leads(page.parent().unwrap(), link), "{page:?} links to {link}");
            if *page == root.join("README.md") && link.ends_with(".svg") {
                assert!(link.starts_with("docs/book/src/pictures/"), "no command draws {link}");
                pictures += 1;
            }
        }
    }
    assert!(pictures > 0, "the README shows no picture");
}

/// The Rust files of a directory, as paths with `/`.
fn rust_files(directory: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path.to_str().unwrap().replace('\\', "/"));
        }
    }
}

/// A map that names a file which is gone misleads who follows it.
#[test]
fn the_files_that_documents_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for directory in ["crates", "python", "playground", "fuzz"] {
        rust_files(&root.join(directory), &mut files);
    }
    let mut pages = vec![root.join("ARCHITECTURE.md"), root.join("CONTRIBUTING.md"), root.join("python/DECISIONS.md")];
    let crates = fs::read_dir(root.join("crates")).unwrap();
    pages.extend(crates.map(|entry| entry.unwrap().path().join("DECISIONS.md")).filter(|page| page.exists()));
    let mut named = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for name in
            text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") && !name.contains([' ', '{']))
        {
            named += 1;
            assert!(files.iter().any(|file| file.ends_with(&format!("/{name}"))), "{page:?} names `{name}`");
        }
    }
    assert!(named > 100, "{named}");
}

/// What `cargo run` runs in a clone, as the README and the book write it.
#[test]
fn cargo_runs_the_command_and_the_examples_of_the_book() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let default = metadata["workspace_default_members"].as_array().unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter().filter(|own| default.contains(&own["id"]));
    let targets: Vec<&serde_json::Value> = packages.flat_map(|own| own["targets"].as_array().unwrap()).collect();
    let named = |kind: &str| -> BTreeSet<&str> {
        let of_kind = targets.iter().filter(|own| own["kind"][0] == kind);
        of_kind.map(|own| own["name"].as_str().unwrap()).collect()
    };
    assert_eq!(named("bin"), BTreeSet::from(["tilewright"]));
    for (name, text) in pages() {
        // Of a package that is named, Cargo looks for the example there.
        for line in text.lines().filter(|line| line.contains("cargo run ") && !line.contains(" -p ")) {
            if let Some(example) = line.split("--example ").nth(1).and_then(|rest| rest.split([' ', '`']).next()) {
                assert!(named("example").contains(example), "{name}: there is no example `{example}`");
            }
        }
    }
}
