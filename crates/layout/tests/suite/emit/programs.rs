//! Law: what the emitted functions return, compiled by the compiler of the language or run by its
//! interpreter, is what the library gives. One program holds the functions of all cases.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tilewright_layout::emit::{Integer, Language, Style};

use crate::emit::cases::{ALL, Case, Run};

fn directory() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Whether a tool can be started.
fn there(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no `{tool}` here");
    }
    found
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(4000).collect::<String>();
    assert!(output.status.success(), "{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The functions that 32 bits hold, and those of 64 bits, with their cases.
fn functions(cases: &[Case], language: Language) -> Vec<(String, String, &Case, Integer)> {
    let mut all = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        for integer in [Integer::I64, Integer::I32] {
            let name = format!("f{number}_{}", integer.bits());
            match case.computation.function(&name, Style::new(language).with_integer(integer)) {
                Ok(text) => all.push((name, text, case, integer)),
                Err(error) => assert_eq!((error.code(), integer), ("E0304", Integer::I32), "{}: {error}", case.title),
            }
        }
    }
    assert!(all.iter().filter(|(_, _, _, integer)| *integer == Integer::I32).count() > cases.len() / 4);
    all
}

/// The names of the inputs, from the text of the signature in Python.
fn inputs(case: &Case) -> Vec<String> {
    let text = case.computation.function("f", Style::new(Language::Python)).unwrap();
    let (_, rest) = text.split_once('(').unwrap();
    let (list, _) = rest.split_once(')').unwrap();
    list.split(", ").filter(|name| !name.is_empty()).map(str::to_string).collect()
}

fn arguments(inputs: &[String], run: &Run) -> String {
    let of = |name: &String| run.inputs.iter().find(|(own, _)| own == name).unwrap().1.to_string();
    inputs.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn list(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// The results of a tuple of any nesting, as places in it.
fn flat(tuple: &str) -> Vec<String> {
    // The type of the result in Rust: `(i64, (i64, i64))`.
    let (mut path, mut out): (Vec<usize>, Vec<String>) = (Vec::new(), Vec::new());
    let mut word = String::new();
    for letter in tuple.chars().chain([' ']) {
        if letter.is_ascii_alphanumeric() {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            out.push(path.iter().map(|place| format!(".{place}")).collect());
            word.clear();
        }
        match letter {
            '(' => path.push(0),
            ')' => drop(path.pop()),
            ',' => *path.last_mut().unwrap() += 1,
            _ => {}
        }
    }
    out
}

/// The name of the case and the arguments, for a line that a program prints where a result is
/// wrong.
fn blame(output: &std::process::Output, cases: &[Case]) {
    let text = String::from_utf8_lossy(&output.stdout);
    let wrong =
        text.lines().next().map(|line| (line, line.split(' ').next().and_then(|word| word.parse::<usize>().ok())));
    if let Some((line, Some(case))) = wrong {
        panic!("{}: {line}", cases[case].title);
    }
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn rust() {
    let mut text = String::from("#![deny(warnings)]\n");
    let mut main = String::from("fn main() {\n    let mut ok = true;\n");
    for (name, function, case, integer) in functions(&ALL, Language::Rust) {
        text += &function;
        let (_, result) = function.split_once("-> ").unwrap();
        let (result, _) = result.split_once(" {").unwrap();
        let places = flat(result);
        let each: Vec<String> = places.iter().map(|place| format!("i64::from(r{place})")).collect();
        let (names, bits) = (inputs(case), integer.bits());
        let inputs = names.len();
        let given: Vec<String> = (0..inputs).map(|at| format!("a[{at}]")).collect();
        let rows: Vec<String> =
            case.runs.iter().map(|run| format!("([{}], [{}])", arguments(&names, run), list(&run.results))).collect();
        let (rows, count, results) = (rows.join(", "), case.runs.len(), places.len());
        let number = name[1..].split('_').next().unwrap();
        main += &format!("    const R{name}: [([i{bits}; {inputs}], [i64; {results}]); {count}] = [{rows}];\n");
        main += &format!("    for (a, wanted) in R{name} {{\n        let r = {name}({});\n", given.join(", "));
        main +=
            &format!("        ok &= check({number}, &[{}], &wanted);\n        let _ = a;\n    }}\n", each.join(", "));
    }
    text += "fn check(case: usize, got: &[i64], wanted: &[i64]) -> bool {\n    if got != wanted {\n";
    text += "        println!(\"{case} gives {got:?}, not {wanted:?}\");\n    }\n    got == wanted\n}\n";
    text += &format!("#[allow(non_upper_case_globals)]\n{main}    assert!(ok);\n}}\n");
    let (source, program) = (directory().join("emitted.rs"), directory().join("emitted_rs"));
    fs::write(&source, text).unwrap();
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_string());
    let arguments = ["--edition", "2021", "-C", "overflow-checks=on", "-C", "debuginfo=0", "-A", "unknown_lints", "-o"];
    succeed(Command::new(compiler).args(arguments).args([&program, &source]));
    blame(&Command::new(program).output().unwrap(), &ALL);
}

#[test]
fn c() {
    if !there("cc") {
        return;
    }
    for language in [Language::C, Language::Cuda] {
        let mut text = String::from("#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n");
        if language == Language::Cuda {
            // What the compiler of CUDA knows.
            text += "#define __device__\n#define __forceinline__ static inline\n";
        }
        let mut main = String::from("int main(void) {\n    int wrong = 0;\n");
        for (name, function, case, integer) in functions(&ALL, language) {
            text += &function;
            let number = format!("int{}_t", integer.bits());
            let (names, results) = (inputs(case), case.computation.results().len());
            let inputs = names.len();
            let mut given: Vec<String> = (0..inputs).map(|at| format!("a[{at}]")).collect();
            let one = results == 1;
            if !one {
                given.extend((0..results).map(|at| format!("r + {at}")));
            }
            let rows: Vec<String> = case
                .runs
                .iter()
                .map(|run| format!("{{{}}}", [arguments(&names, run), list(&run.results)].join(", ")))
                .collect();
            let width = inputs + results;
            main += &format!("    static const {number} r{name}[][{width}] = {{{}}};\n", rows.join(", "));
            main += &format!("    for (int k = 0; k < {}; k++) {{\n", case.runs.len());
            main += &format!("        const {number} *a = r{name}[k];\n        {number} r[{results}];\n");
            let start = if one { "r[0] = " } else { "" };
            main += &format!("        {start}{name}({});\n", given.join(", "));
            main += &format!("        for (int j = 0; j < {results}; j++)\n");
            let case = name[1..].split('_').next().unwrap();
            let line = format!("{case} gives %lld in run %d, result %d\\n");
            main += &format!(
                "            if (r[j] != a[{inputs} + j]) {{ wrong++; printf(\"{line}\", (long long)r[j], k, j); }}\n"
            );
            main += "    }\n";
        }
        main += "    return wrong != 0;\n}\n";
        let name = language.to_string().to_lowercase();
        let (source, program) =
            (directory().join(format!("emitted_{name}.c")), directory().join(format!("emitted_{name}")));
        fs::write(&source, text + &main).unwrap();
        let warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"];
        succeed(Command::new("cc").args(warnings).args([&program, &source]));
        blame(&Command::new(program).output().unwrap(), &ALL);
    }
}

/// What Triton does with integers: division as in C, truth values of tensors that `&` joins.
const TRITON: &str = "\
import sys
class T(int):
    pass
def op(f):
    return lambda a, b: T(f(int(a), int(b)))
def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
for name, f in dict(add=int.__add__, sub=int.__sub__, mul=int.__mul__, xor=int.__xor__, rshift=int.__rshift__,
                    lshift=int.__lshift__, floordiv=quotient, mod=lambda a, b: a - b * quotient(a, b)).items():
    setattr(T, f'__{name}__', op(f))
    setattr(T, f'__r{name}__', op(lambda a, b, f=f: f(b, a)))
T.__and__ = lambda a, b: T(int.__and__(int(a), int(b)))
T.__neg__ = lambda a: T(-int(a))
class tl:
    int64 = 0
    cast = staticmethod(lambda a, _: T(a))
    abs = staticmethod(lambda a: T(abs(int(a))))
    where = staticmethod(lambda c, a, b: T(a) if c else T(b))
    minimum = staticmethod(lambda a, b: T(min(int(a), int(b))))
    cdiv = staticmethod(lambda a, b: T(quotient(int(a) + int(b) - 1, int(b))))
class triton:
    jit = staticmethod(lambda f: f)
";

#[test]
fn python() {
    if !there("python3") {
        return;
    }
    for language in [Language::Python, Language::Triton] {
        let start = "\
def flat(r):
    return [int(r)] if not isinstance(r, tuple) else [x for part in r for x in flat(part)]
wrong = 0
def check(title, f, arguments, results):
    global wrong
    got = flat(f(*arguments))
    if got != results:
        wrong += 1
        print(title, arguments, got, results)
";
        let kind = if language == Language::Triton { "T" } else { "int" };
        let mut text = format!("{}{start}", if language == Language::Triton { TRITON } else { "import sys\n" });
        for (name, function, case, _) in functions(&ALL, language) {
            text += &function;
            let names = inputs(case);
            for run in &case.runs {
                let (arguments, results) = (arguments(&names, run), list(&run.results));
                text += &format!("check({:?}, {name}, [{kind}(x) for x in [{arguments}]], [{results}])\n", case.title);
            }
        }
        text += "sys.exit(wrong != 0)\n";
        let source = directory().join(format!("emitted_{language}.py"));
        fs::write(&source, text).unwrap();
        succeed(Command::new("python3").arg(source));
    }
}
