//! Numbers of cards.
//!
//! Law: a number of a card stands in the table of machines alone. What plans, lowers or counts
//! takes it from a `Machine`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tilewright_kernel::machine::Machine;

/// All files of Rust below a folder that are no tests.
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

/// The numbers of a line of code that have an exponent and are as large as a rate: `4.8e12`.
fn rates(code: &str) -> Vec<f64> {
    let words = code.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_.".contains(letter)));
    let value = |word: &str| word.replace('_', "").trim_end_matches("f64").parse::<f64>().ok();
    words.filter(|word| word.contains('e')).filter_map(value).filter(|value| *value > 1e8).collect()
}

/// The whole numbers of a line of code, as they are written: `65_536`, `0x80` or `228`, and
/// products with a power of two by `<<` and by `* 1024`.
fn numbers(code: &str) -> BTreeSet<u64> {
    let mut words: Vec<String> = Vec::new();
    for word in code.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_<*.".contains(letter))) {
        words.push(word.replace('_', ""));
    }
    words.retain(|word| !word.is_empty());
    let value = |word: &String| {
        let digits = word.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let digits = digits.split(['i', 'u']).next().unwrap_or_default();
        digits.parse::<u64>().ok()
    };
    let mut all: BTreeSet<u64> = words.iter().filter_map(value).collect();
    for part in words.windows(3) {
        if let (Some(a), Some(b)) = (value(&part[0]), value(&part[2])) {
            match part[1].as_str() {
                "<<" if b < 40 => all.insert(a << b),
                "*" => all.insert(a.saturating_mul(b)),
                _ => false,
            };
        }
    }
    all
}

/// What is found in a text, with the number of the line.
fn found_in(text: &str, known: &BTreeSet<u64>) -> Vec<(usize, f64)> {
    let sheets = known_rates();
    let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut before = "";
    for (number, line) in own.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        // As many registers as every multiprocessor has are a number of other things, too.
        let registers = [before, line].iter().any(|line| line.to_lowercase().contains("register"));
        let registers = registers && code.replace('_', "").contains("65536");
        let all = numbers(code).into_iter().filter(|own| known.contains(own) || registers && *own == 1 << 16);
        found.extend(all.map(|own| (number + 1, own as f64)));
        let all = rates(code).into_iter().filter(|own| sheets.contains(own));
        found.extend(all.map(|own| (number + 1, own)));
        before = line;
    }
    found
}

/// The numbers of the cards that are numbers of nothing else: what a multiprocessor and a block
/// have of shared memory, the L2 cache, and how many multiprocessors there are, of large cards.
fn known() -> BTreeSet<u64> {
    let mut known = BTreeSet::new();
    for machine in Machine::all() {
        let own = machine.multiprocessor;
        known.extend([own.shared_bytes, own.block_shared_bytes].map(u64::from));
        // A power of two is a number of many things.
        known.extend(Some(machine.l2_bytes).filter(|bytes| !bytes.is_power_of_two()));
        known.extend(Some(u64::from(machine.multiprocessors)).filter(|count| *count > 100 && *count != 128));
    }
    known
}

/// The clocks, the bandwidths and the rates of the cards. Rates that other things have as well are
/// left out: those that a power of ten is.
fn known_rates() -> Vec<f64> {
    let mut known = Vec::new();
    for Machine { clock, bandwidth, rates, .. } in Machine::all() {
        known.extend([clock, bandwidth, rates.f32, rates.f64, rates.matrix_16, rates.matrix_16_in_16]);
        known.extend([rates.matrix_tf32, rates.matrix_i8, rates.matrix_f8, rates.matrix_f64]);
    }
    known.retain(|rate| *rate > 0.0 && rate.log10().fract() != 0.0);
    known
}

#[test]
fn numbers_of_cards_stand_in_the_table_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in
        ["kernel", "planners", "tile", "gpu", "mesh", "tilewright", "cli", "laboratory", "tensor", "layout", "draw"]
    {
        sources(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 300, "{} files", files.len());
    let known = known();
    let mut wrong = Vec::new();
    for file in files {
        // What was timed on a card is a number of the card, too.
        let exempt = ["kernel/src/machine", "planners/src/fitted.rs"];
        if exempt.iter().any(|path| file.starts_with(crates.join(path))) {
            continue;
        }
        for (line, number) in found_in(&fs::read_to_string(&file).unwrap(), &known) {
            wrong.push(format!("{}:{line}: {number}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "numbers of cards outside of the table of machines:\n{}", wrong.join("\n"));
}

/// The search finds what was there before.
#[test]
fn numbers_of_cards_are_found_as_they_are_written() {
    let known = known();
    for text in [
        "const PROCESSORS: i64 = 132;",
        "const BLOCK_BYTES: i64 = 232_448;",
        "const SHARED: i64 = 228 * 1024;",
        "const SHARED: i64 = 228 << 10;",
        "let bytes = (227 << 10) - 2048;",
        "/// Registers of a multiprocessor.\nconst ALL: u32 = 65_536;",
        "k.grid(Axis::X, \"132\")?;",
        "const L2: i64 = 50 << 20;",
        "const BANDWIDTH: f64 = 4.8e12;",
        "let cores = 989e12 / 2.0;",
        "let cycles = seconds * 1.83e9_f64;",
    ] {
        assert!(!found_in(text, &known).is_empty(), "{text}");
    }
    for text in [
        "// 132 multiprocessors",
        "const MAX_DEVICES: i64 = 65_536;",
        "let x = 1320;",
        "let second = 1e9;",
        "let near = 4.81e12 + 9.89e1;",
        "#[cfg(test)]\nmod tests { 132 }",
    ] {
        assert!(found_in(text, &known).is_empty(), "{text}");
    }
}

/// The lines of a file that give a constant a number, `const NAME: i64 = 8 << 10;`, each with the
/// comment above the lines of constants that it is one of.
fn constants(text: &str) -> Vec<(String, String)> {
    let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let (mut comment, mut found) = (String::new(), Vec::new());
    for line in own.lines().map(str::trim) {
        let (head, value) = line.split_once(" = ").unwrap_or((line, ""));
        let words: Vec<&str> = head.split([' ', ':', '(', ')']).filter(|word| !word.is_empty()).collect();
        let at = words.iter().take(3).position(|word| *word == "const");
        match (line.strip_prefix("///"), at.and_then(|at| words.get(at + 1))) {
            (Some(more), _) => comment += more,
            (None, Some(name))
                if name.chars().all(|own| own.is_ascii_uppercase() || own.is_ascii_digit() || own == '_') =>
            {
                if value.trim_start_matches(['-', '(']).starts_with(|first: char| first.is_ascii_digit()) {
                    found.push(((*name).to_string(), comment.clone()));
                }
            }
            _ => comment.clear(),
        }
    }
    found
}

/// The numbers in the tables of a file, `const NAME: Type = Type { field: 1.5, other: [2, 3] };`.
fn tabled(text: &str) -> usize {
    let own = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let (mut inside, mut found) = (false, 0);
    for line in own.lines() {
        inside |= line.contains("const ") && line.contains(": ") && !line.contains(" = [");
        if inside {
            let code = line.split("//").next().unwrap_or_default();
            let code = code.split(" = ").last().unwrap_or_default();
            // Of a product and of a power of two, the first number counts.
            let mut before = "";
            for word in code.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_.<*".contains(letter))) {
                let digit = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
                // What follows `2e` of `2e-6` is its exponent.
                let goes_on = matches!(before, "<<" | "*") || digit(before) && before.ends_with('e');
                found += usize::from(digit(word) && !goes_on);
                before = if word.is_empty() { before } else { word };
            }
        }
        inside &= !line.ends_with(';');
    }
    found
}

/// Planners have few numbers of their own, and each says what it counts: 80 constants at most. The
/// tables of numbers that were timed have no more than they are said to have.
#[test]
fn numbers_of_planners_are_few_and_say_what_they_count() {
    let mut files = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    sources(&folder, &mut files);
    let mut all = 0;
    for file in files {
        for (name, comment) in constants(&fs::read_to_string(&file).unwrap()) {
            all += 1;
            assert!(!comment.trim().is_empty(), "{}: {name} has no comment", file.display());
        }
    }
    assert!((60..=77).contains(&all), "{all} numeric constants");
    let tables = ["fitted.rs", "gemm/fitted.rs"].map(|file| tabled(&fs::read_to_string(folder.join(file)).unwrap()));
    assert!(tables[0] <= 54 && tables[1] <= 62, "{tables:?} numbers that were timed");
}

#[test]
fn tables_are_counted_as_they_are_written() {
    let text = "pub(crate) const A: T = T {\n    a: 8 << 10,\n    b: [1.5, 2e-6],\n    c: P { d: None, e: Some(3.0) },\n};\n\
                pub(crate) const B: T = T { a: 1, ..A };\n/// 7\nfn f() { 9; }";
    assert_eq!(tabled(text), 5);
}

#[test]
fn constants_are_found_as_they_are_written() {
    let text = "/// Bytes.\npub(crate) const A: i64 = 8 << 10;\nconst B: f64 = -1.5;\n\nconst C: i64 = A * 2;\n\
                const D: i64 = (1 << 31) - 1;\n#[cfg(test)]\nmod tests {\nconst E: i64 = 1;";
    let found = constants(text);
    let found: Vec<(&str, &str)> = found.iter().map(|(name, comment)| (&**name, &**comment)).collect();
    assert_eq!(found, [("A", " Bytes."), ("B", " Bytes."), ("D", "")]);
}
