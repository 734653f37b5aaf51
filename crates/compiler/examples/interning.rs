//! What an interner saves, and what it costs:
//! `cargo run --release -p tilewright-compiler --example interning`.
//!
//! For each operation, nanoseconds a call:
//!
//! * `compute`: the operation on the values, without an interner;
//! * `hot`: looked up, the same operands again and again;
//! * `spread`: looked up, a thousand different operands in turn, so that tables and values come
//!   from farther away;
//! * `first`: computed, interned and remembered;
//! * `values`: looked up by somebody who has values rather than handles, and interns them first.
//!
//! The ratios are `compute` to each of them: above 1 the interner saves time, below 1 it costs
//! time. Inputs and results pass through `black_box`; each number is the least of several rounds.
//!
//! `--list` prints the names, and `--once NAME COLUMN ROUNDS` runs one column and measures nothing:
//! for instruction counters.

use std::hint::black_box;
use std::time::Instant;

use tilewright_compiler::{Handle, InternError, Interner};
use tilewright_layout::{AnyLayout, AnyTiler, DivideForm, Layout, LayoutError, Leaf};

/// How many different operands there are, and so how many calls in a round.
const OPERANDS: i64 = 1000;

const ROUNDS: usize = 20;

type Memoised =
    fn(&Interner, Handle<AnyLayout>, Handle<AnyLayout>, Handle<AnyTiler>) -> Result<Handle<AnyLayout>, InternError>;

/// An operation on the layouts of a list, the second operand fixed.
struct Case {
    name: &'static str,
    layouts: Vec<AnyLayout>,
    b: AnyLayout,
    compute: fn(&AnyLayout, &AnyLayout, &AnyTiler) -> Result<AnyLayout, LayoutError>,
    memoised: Memoised,
}

fn layout(text: &str) -> Layout {
    text.parse().expect("the cases are layouts")
}

/// The layout with its strides multiplied by 1, 2, ..: as many layouts, on which an operation costs
/// about the same.
fn scaled(text: &str) -> Vec<AnyLayout> {
    let base = layout(text);
    (1..=OPERANDS)
        .map(|factor| {
            let tree = base.tree().map(|leaf| Leaf { extent: leaf.extent, stride: leaf.stride * factor });
            AnyLayout::from(Layout::from_tree(tree).expect("extents are as before"))
        })
        .collect()
}

fn cases() -> Vec<Case> {
    let large = "((8,16),(64,2),(1,2)):((64,512),(1,8192),(0,16384))";
    let case = |name, a: &str, b: &str, compute, memoised| Case {
        name,
        layouts: scaled(a),
        b: layout(b).into(),
        compute,
        memoised,
    };
    vec![
        case("coalesce (6,2):(8,2)", "(6,2):(8,2)", "1:0", |a, _, _| a.coalesce(), |i, a, _, _| i.coalesce(a)),
        case(
            "compose (6,2):(8,2) o (4,3):(3,1)",
            "(6,2):(8,2)",
            "(4,3):(3,1)",
            |a, b, _| a.compose(b),
            |i, a, b, _| i.compose(a, b),
        ),
        case(
            "compose large",
            large,
            "((4,4),(2,16)):((1,4),(16,32))",
            |a, b, _| a.compose(b),
            |i, a, b, _| i.compose(a, b),
        ),
        case(
            "compose large, refused",
            large,
            "((4,8,4),(2,2,8)):((64,1,32),(8,512,1024))",
            |a, b, _| a.compose(b),
            |i, a, b, _| i.compose(a, b),
        ),
        case(
            "complement (4,3):(3,1) in 65536000",
            "(4,3):(3,1)",
            "1:0",
            |a, _, _| a.complement(&65_536_000.into()),
            |i, a, _, _| i.complement(a, &65_536_000.into()),
        ),
        case(
            "zipped_divide (128,64):(64,1) by [16:1;8:1]",
            "(128,64):(64,1)",
            "(16,8):(1,1)",
            |a, _, tiler| a.divide(DivideForm::Zipped, tiler),
            |i, a, _, tiler| i.divide(DivideForm::Zipped, a, tiler),
        ),
        case(
            "left_inverse ((16,8),(8,8))",
            "((16,8),(8,8)):((64,1),(1024,8))",
            "1:0",
            |a, _, _| a.left_inverse(),
            |i, a, _, _| i.left_inverse(a),
        ),
    ]
}

fn by_mode(b: &AnyLayout) -> AnyTiler {
    let modes: Vec<AnyTiler> = (0..b.rank()).filter_map(|mode| b.mode(mode)).map(AnyTiler::from).collect();
    AnyTiler::modes(&modes).expect("few modes")
}

const COLUMNS: [&str; 5] = ["compute", "hot", "spread", "first", "values"];

/// Runs one column and returns the nanoseconds a call.
fn run(case: &Case, column: &str, rounds: usize) -> f64 {
    let mut interner = Interner::new();
    let tiler = by_mode(&case.b);
    // Handles are good until the interner is cleared.
    let operands = |interner: &Interner| {
        let handles: Vec<Handle<AnyLayout>> =
            case.layouts.iter().map(|a| interner.intern(a).expect("there is room")).collect();
        (handles, interner.intern(&case.b).expect("there is room"), interner.intern(&tiler).expect("there is room"))
    };
    let (mut handles, mut b, mut by) = operands(&interner);
    let mut best = f64::INFINITY;
    for round in 0..rounds {
        if column == "first" {
            interner.clear();
            (handles, b, by) = operands(&interner);
        } else if round == 0 && column != "compute" {
            handles.iter().for_each(|a| drop((case.memoised)(&interner, *a, b, by)));
        }
        let first = *handles.first().expect("there are operands");
        let start = Instant::now();
        match column {
            "compute" => case
                .layouts
                .iter()
                .for_each(|a| drop(black_box((case.compute)(black_box(a), black_box(&case.b), black_box(&tiler))))),
            "hot" => {
                (0..handles.len()).for_each(|_| drop(black_box((case.memoised)(&interner, black_box(first), b, by))))
            }
            "values" => case.layouts.iter().for_each(|a| {
                let operands = (interner.intern(black_box(a)), interner.intern(black_box(&case.b)));
                if let (Ok(a), Ok(b)) = operands {
                    drop(black_box((case.memoised)(&interner, a, b, by)));
                }
            }),
            _ => handles.iter().for_each(|a| drop(black_box((case.memoised)(&interner, black_box(*a), b, by)))),
        }
        best = best.min(start.elapsed().as_nanos() as f64 / case.layouts.len() as f64);
    }
    best
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cases = cases();
    match arguments.as_slice() {
        [] => {
            println!(
                "{:46}{:>9}{:>15}{:>15}{:>15}{:>15}",
                "nanoseconds a call, and ratio", "compute", "hot", "spread", "first", "values"
            );
            for case in &cases {
                let times = COLUMNS.map(|column| run(case, column, ROUNDS));
                let [compute, rest @ ..] = times;
                print!("{:46}{compute:9.1}", case.name);
                rest.iter().for_each(|time| print!("{time:8.1} {:5.2}x", compute / time));
                println!();
            }
        }
        ["--list"] => cases.iter().for_each(|case| println!("{}", case.name)),
        ["--once", name, column, rounds] if COLUMNS.contains(column) => {
            let (Some(case), Ok(rounds)) = (cases.iter().find(|case| case.name == *name), rounds.parse()) else {
                eprintln!("interning: no such case, or no number of rounds");
                std::process::exit(2);
            };
            run(case, column, rounds);
        }
        _ => {
            eprintln!("usage: interning [--list | --once NAME COLUMN ROUNDS]");
            std::process::exit(2);
        }
    }
}
