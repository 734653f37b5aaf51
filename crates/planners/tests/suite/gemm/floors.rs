//! The imports of the files of `gemm`.
//!
//! Law: no file imports itself, straight or by way of others. So each can be read with those below
//! it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files under a folder, by the path of their module, with what each imports.
fn imports(folder: &Path, module: &str, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let own = format!("{module}::{}", path.file_stem().unwrap().to_str().unwrap());
        if path.is_dir() {
            imports(&path, &own, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = code.flat_map(|line| line.chars().chain([' '])).collect();
        let used = code.split(';').filter_map(|part| part.rsplit("use ").next()).flat_map(paths);
        found.insert(own, used.filter(|used| used.starts_with("crate::gemm")).collect());
    }
}

/// The paths of a `use`, written out.
fn paths(text: &str) -> Vec<String> {
    let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let Some((head, list)) = text.split_once('{') else { return vec![text] };
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for letter in list.trim_end_matches('}').chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    parts.iter().flat_map(|part| paths(&format!("{head}{part}"))).collect()
}

/// The longest module that a path begins with.
fn file<'a>(path: &str, all: &'a BTreeMap<String, Vec<String>>) -> Option<&'a String> {
    all.keys().filter(|module| path == **module || path.starts_with(&format!("{module}::"))).max_by_key(|own| own.len())
}

#[test]
fn no_file_imports_itself() {
    let mut all = BTreeMap::new();
    imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/gemm"), "crate::gemm", &mut all);
    assert!(all.len() > 40 && all.values().map(Vec::len).sum::<usize>() > 200, "{all:?}");
    for start in all.keys() {
        let (mut open, mut seen) = (vec![start], BTreeSet::new());
        while let Some(at) = open.pop() {
            for next in all[at].iter().filter_map(|path| file(path, &all)).filter(|next| *next != at) {
                assert_ne!(next, start, "{at} imports {start}, which it comes from");
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
    }
}
