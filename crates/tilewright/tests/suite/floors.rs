//! The imports of the files of every crate.
//!
//! Law: modules beside each other, each with all that is below it, import each other in one
//! direction: none comes from itself by way of others. So each can be read with those below it
//! alone. A module and the one that it is part of may name each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The path of a module in its crate.
type Module = Vec<String>;

/// For each module in a folder, what it imports from the folder, and one import of two files.
type Level = BTreeMap<String, BTreeMap<String, String>>;

/// Circles that remain: the crate, the module around them, and the modules in them.
const REMAINING: &[(&str, &str, &[&str])] = &[
    ("cli", "gemm", &["number", "verify"]),
    ("cli", "kernel", &["explain", "tiles"]),
    ("kernel", "cost", &["requests", "stores", "walk"]),
    // The state of a run holds what each part of it keeps, and each part changes that state.
    (
        "kernel",
        "interpret",
        &[
            "access",
            "arrivals",
            "background",
            "barriers",
            "bulk",
            "claims",
            "cluster",
            "machine",
            "mixed",
            "phases",
            "products",
            "setup",
            "shadow",
            "warp",
        ],
    ),
    ("layout", "algebra", &["carry", "compose"]),
    // An expression has quotients and minima of expressions in it.
    ("layout", "symbolic", &["bounds", "divisor", "expression", "polynomial", "quotient"]),
    // A kind of number composes the layouts that have it.
    ("layout", "value", &["kind", "layout", "number"]),
    ("notation", "derive", &["morphisms", "plan"]),
    ("notation", "functions", &["partitions", "tiled"]),
    // A finding is reported to the checker that finds, and names places as it does.
    ("sanitize", "check", &["checker", "finding"]),
    // The checker of a launch gives one to each cluster, which shares its state.
    ("sanitize", "check", &["cluster", "grid"]),
    // The state of a cluster holds what each part of the engine keeps, and each part changes it;
    // an operation of a program holds those of matrices and of the asynchronous engines.
    (
        "sanitize",
        "engine",
        &["access", "cluster", "code", "decode", "engines", "execute", "flow", "matrix", "perform", "warp"],
    ),
    ("tensor", "copy", &["pairs", "permuted", "plan"]),
    ("tensor", "gemm", &["plan", "product", "small", "source", "task"]),
    ("tensor", "simd", &["moves", "nontemporal"]),
    ("tensor", "visit", &["nest", "staged"]),
    ("tensor", "walk", &["runs", "tables"]),
];

/// The files of a folder, by the module that each is.
fn files(folder: &Path, module: &[String], found: &mut BTreeMap<Module, String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        let own = [module, std::slice::from_ref(&name)].concat();
        if path.is_dir() {
            files(&path, &own, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
            let is_root = module.is_empty() && ["lib", "main"].contains(&name.as_str());
            // A crate may have both a library and a program.
            let code = found.entry(if is_root { Module::new() } else { own }).or_default();
            lines.for_each(|line| *code += &format!("{line} "));
        }
    }
}

/// The names of the modules that are compiled for tests alone, and the code before the first of
/// them that stands in this file.
fn without_tests(code: &str) -> (Vec<&str>, &str) {
    let mut names = Vec::new();
    for (at, mark) in code.match_indices("#[cfg(test)]") {
        let rest = code[at + mark.len()..].trim_start();
        let rest = rest.split_once("] ").filter(|(attribute, _)| attribute.starts_with("#[")).map_or(rest, |own| own.1);
        let Some(module) = rest.trim_start().strip_prefix("mod ") else { continue };
        match module.find([';', '{']) {
            Some(end) if module[end..].starts_with(';') => names.push(&module[..end]),
            _ => return (names, &code[..at]),
        }
    }
    (names, code)
}

/// The paths of a `use`, written out.
fn written_out(text: &str) -> Vec<Module> {
    let text = text.split(" as ").next().unwrap_or_default();
    let Some((head, list)) = text.split_once('{') else {
        return vec![text.split("::").map(|name| name.trim().to_string()).collect()];
    };
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for letter in list.trim_end().trim_end_matches('}').chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        match letter == ',' && depth == 0 {
            true => parts.push(String::new()),
            false => parts.last_mut().unwrap().push(letter),
        }
    }
    parts.iter().filter(|part| !part.trim().is_empty()).flat_map(|part| written_out(&format!("{head}{part}"))).collect()
}

/// The paths that stand in code: those of `use`, and those that begin with `crate` or `super`.
fn paths(code: &str) -> Vec<Module> {
    let uses = code.split(';').filter_map(|part| part.rsplit_once("use ")).map(|(_, path)| path);
    let mut all: Vec<Module> = uses.flat_map(written_out).collect();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            if !code[..at].ends_with([':', '_']) {
                let end = code[at..].find(|letter: char| letter != ':' && letter != '_' && !letter.is_alphanumeric());
                let path = code[at..].get(..end.unwrap_or(0)).unwrap_or_default().trim_end_matches(':');
                all.push(path.split("::").map(str::to_string).collect());
            }
        }
    }
    all
}

/// The imports of a crate, by the module around those that import each other.
fn levels(source: &Path) -> BTreeMap<Module, Level> {
    let mut all = BTreeMap::new();
    files(source, &[], &mut all);
    let mut tests: BTreeSet<Module> = BTreeSet::new();
    for (module, code) in &all {
        let names = without_tests(code).0.into_iter().chain(["tests"]);
        tests.extend(names.map(|name| [module.as_slice(), &[name.to_string()]].concat()));
    }
    all.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let absolute = |module: &Module, path: Module| -> Option<Module> {
        let above = path.iter().take_while(|name| *name == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => Some([module.get(..module.len().checked_sub(above)?)?, &path[above..]].concat()),
            first => all
                .contains_key(&[module.as_slice(), &[first.to_string()]].concat())
                .then(|| [&module[..], &path].concat()),
        }
    };
    let used: BTreeMap<&Module, Vec<Module>> = all
        .iter()
        .map(|(module, code)| {
            (module, paths(without_tests(code).1).into_iter().filter_map(|path| absolute(module, path)).collect())
        })
        .collect();
    // The file in which a path ends, behind what others hand on.
    let file = |path: &Module| {
        let mut path = path.clone();
        for _ in 0..8 {
            let own = (0..=path.len()).rev().find(|end| all.contains_key(&path[..*end]))?;
            let (module, rest) = path.split_at(own);
            let handed =
                rest.first().and_then(|name| used[&module.to_vec()].iter().find(|other| other.last() == Some(name)));
            match handed.filter(|other| !other.starts_with(&path)) {
                Some(other) => path = [other, &rest[1..]].concat(),
                None => return Some(module.to_vec()),
            }
        }
        None
    };
    let mut levels: BTreeMap<Module, Level> = BTreeMap::new();
    for (module, paths) in &used {
        for other in paths.iter().filter_map(file) {
            let common = module.iter().zip(&other).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(common), other.get(common)) {
                let level = levels.entry(module[..common].to_vec()).or_default();
                let example = format!("{} imports {}", module.join("::"), other.join("::"));
                level.entry(from.clone()).or_default().entry(to.clone()).or_insert(example);
            }
        }
    }
    levels
}

/// The modules that come from themselves, each with those of its circle.
fn circles(level: &Level) -> BTreeSet<BTreeSet<&String>> {
    let reached = |start| {
        let (mut open, mut seen) = (vec![start], BTreeSet::new());
        while let Some(at) = open.pop() {
            open.extend(level.get(at).into_iter().flat_map(BTreeMap::keys).filter(|next| seen.insert(*next)));
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<&String>> = level.keys().map(|module| (module, reached(module))).collect();
    let with =
        |module| all[module].iter().copied().filter(|other| all.get(other).is_some_and(|own| own.contains(module)));
    all.keys().map(|module| with(module).collect()).filter(|circle: &BTreeSet<_>| !circle.is_empty()).collect()
}

#[test]
fn no_module_imports_itself() {
    let mut remaining: BTreeSet<_> = REMAINING.iter().collect();
    let (mut imports, mut found) = (0, Vec::new());
    for folder in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        for (module, level) in levels(&folder.path().join("src")) {
            imports += level.values().map(BTreeMap::len).sum::<usize>();
            for circle in circles(&level) {
                let known = remaining.iter().find(|(own, around, names)| {
                    (own, around, names)
                        == (
                            &&*name,
                            &&*module.join("::"),
                            &&*circle.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
                        )
                });
                if let Some(known) = known.copied() {
                    remaining.remove(known);
                    continue;
                }
                let within = |from: &String| {
                    level[from].iter().filter(|(to, _)| circle.contains(to)).map(|(_, example)| example.as_str())
                };
                let examples: Vec<&str> = circle.iter().flat_map(|from| within(from)).collect();
                found.push(format!("{name}, in {:?}: {circle:?}: {}", module.join("::"), examples.join(", ")));
            }
        }
    }
    assert!(imports > 1500, "{imports} imports were read");
    assert!(found.is_empty(), "modules that come from themselves:\n{}", found.join("\n"));
    assert!(remaining.is_empty(), "no circles any more: {remaining:?}");
}
