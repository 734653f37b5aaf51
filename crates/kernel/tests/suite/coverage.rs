//! The proved coverage of outputs, beside the stores of a run.
//!
//! Each kernel is built twice: with an output, of which it is shown, refused or left open that its
//! elements are written once; and with a tensor that may be written anyhow, which is run. What
//! happens there follows from the contents that it leaves and from the races that the interpreter
//! finds: nothing of the library's reasoning is in that.

use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, Reason, View, Written};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Extent, Slot, Stride, Tree};

mod cases;
mod chance;
mod quotients;

const VALUE: f32 = 7.0;

/// The values that are stored to a view of one thread.
fn stored<'k>(part: &View<'k>, value: Num<'k>) -> Result<(), KernelError> {
    let values = part.fragment()?;
    values.fill(value)?;
    part.store_predicated(&values)
}

fn at(parts: &[Option<Expr>]) -> Coord<Expr> {
    Tree::flat(parts.iter().map(|part| part.clone().map_or(Slot::All, Slot::At))).unwrap()
}

fn sum(parts: &[(i64, &Expr)]) -> Expr {
    parts.iter().fold(Expr::from(0), |sum, (factor, part)| {
        Stride::plus(&sum, &Stride::times(*part, &Expr::from(*factor)).unwrap()).unwrap()
    })
}

/// Quotient and remainder.
fn parted(number: &Expr, by: &Expr) -> [Expr; 2] {
    let quotient = number.floor_div(by).unwrap();
    let rest = number.minus(&Stride::times(&quotient, by).unwrap()).unwrap();
    [quotient, rest]
}

/// The coverage of the tensor in a run.
#[derive(Debug, PartialEq)]
enum Happened {
    Once,
    Twice,
    Never,
}

fn happened(kernel: &Kernel, sizes: &[(&str, i64)]) -> Option<Happened> {
    let program = kernel.program();
    let own: Vec<String> = program.sizes.iter().map(ToString::to_string).collect();
    let sizes: Vec<(&str, i64)> =
        sizes.iter().copied().filter(|(name, _)| own.iter().any(|own| own.starts_with(name))).collect();
    // Sizes that the facts do not admit are no case.
    let mut interpreter = Interpreter::new(program, &sizes).ok()?;
    let count = interpreter.bytes_of(0).unwrap() / 4;
    interpreter.tensor("y", &vec![0.0_f32; count]).unwrap();
    match interpreter.run(Schedule::ALL[0]) {
        Err(findings) => {
            let codes: Vec<&str> = findings.iter().map(|found| found.code()).collect();
            assert!(codes.iter().all(|code| ["E1016", "E1017"].contains(code)), "{codes:?}");
            Some(Happened::Twice)
        }
        Ok(run) => {
            // The elements that the layout has, from a definition by digits.
            let left = run.tensor::<f32>("y").unwrap();
            let text = program.buffers[0].layout.to_string();
            let size = |name: &str| sizes.iter().find(|(own, _)| *own == name).map_or(0, |(_, size)| *size);
            let (m, n) = (size("M"), size("N"));
            let whole = text.starts_with('S') || !text.contains("2*N");
            let places: Vec<i64> = match whole {
                true => (0..count as i64).collect(),
                false => (0..m).flat_map(|row| (0..n).map(move |column| 2 * (n * row + column))).collect(),
            };
            let missing = places.iter().any(|place| left[*place as usize] != VALUE);
            Some(if missing { Happened::Never } else { Happened::Once })
        }
    }
}

/// Stores a tile, a row a thread, from a coordinate on.
fn stored_at(k: &Build, y: &View<'_>, from: [Expr; 2], tile: &str) -> Result<(), KernelError> {
    let tile = y.domain_offset(&from)?.local_tile(tile, at(&[Some(0.into()), Some(0.into())]))?;
    stored(&tile.thread_part()?, k.number(VALUE))
}

/// Whether it is shown that `y` is written once; and what happens.
fn shown_and_happened(
    layout: &str,
    write: impl Fn(&Build, &View<'_>) -> Result<(), KernelError>,
) -> (bool, Option<Happened>) {
    let built = |role| Kernel::build("tiles", |k| write(k, &k.tensor_of(Element::F32, "y", layout, role)?));
    let shown = built(Role::Output).is_ok_and(|kernel| kernel.outputs()[0].written == Written::Once);
    // Ten tiles side by side, so that three blocks have others in the next row.
    let sizes = [("M", if layout.contains("max") { 8 } else { 40 }), ("N", 20)];
    (shown, happened(&built(Role::Both).unwrap(), &sizes))
}

#[test]
fn what_lanes_read_of_each_other_is_known() {
    // Each warp stores what the number of the warp, or of the thread, of another lane says.
    let by = |per: i64| {
        move |k: &Build, y: &View<'_>| {
            k.threads(64)?;
            let own = k.index(&k.quotient(&k.thread()?, per)?)?;
            let other = k.shuffle_xor(own, 16);
            let middle = own.like(if per == 1 { 16.0 } else { 1.0 });
            let part = y.compose("(64,1):(1,64)")?.thread_part()?;
            k.choose(other.lt(middle), || stored(&part, k.number(VALUE)), || stored(&part, k.number(VALUE)))
        }
    };
    assert_eq!(shown_and_happened("64:1", by(32)), (true, Some(Happened::Once)));
    assert_eq!(shown_and_happened("64:1", by(1)), (true, Some(Happened::Once)));
}

#[test]
fn loops_may_go_through_a_row_from_its_end() {
    // A block for each row stores tiles `from - each * step` of eight, and those of a second store,
    // in a loop of five.
    let by = |columns: i64, from: i64, each: i64, other: Option<[i64; 2]>| {
        let write = move |k: &Build, y: &View<'_>| {
            k.threads(8)?;
            k.range(5, |step| {
                let tile = |[from, each]: [i64; 2]| {
                    let number = sum(&[(from, &Expr::from(1)), (each, &step)]);
                    let row = k.block_number(Axis::X);
                    let part = y.local_tile((1, 8), at(&[Some(row), Some(number)]))?;
                    stored(&part.compose("(8,1):(1,8)")?.thread_part()?, k.number(VALUE))
                };
                tile([from, -each])?;
                other.map_or(Ok(()), tile)
            })
        };
        shown_and_happened(&format!("(M,{columns}):({columns},1)"), write)
    };
    assert_eq!(by(40, 4, 1, None), (true, Some(Happened::Once)));
    // The last tile is not whole, or tiles go on behind a gap, or begin with the second one.
    assert_eq!(by(37, 4, 1, None), (true, Some(Happened::Once)));
    assert_eq!(by(72, 8, 2, None), (false, Some(Happened::Never)));
    assert_eq!(by(48, 5, 1, None), (false, Some(Happened::Never)));
    // A second store has every other tile; or the same ones, in the iterations of the other order,
    // by the same threads.
    assert_eq!(by(80, 8, 2, Some([9, -2])), (true, Some(Happened::Once)));
    assert_eq!(by(40, 4, 1, Some([0, 1])), (true, Some(Happened::Once)));
}

#[test]
fn tiles_of_a_diagonal_are_not_all() {
    // Iterations, or digits of them, in both coordinates.
    let by = |rows: [i64; 2], columns: [i64; 3]| {
        let write = move |k: &Build, y: &View<'_>| {
            k.threads(8)?;
            k.range(5, |step| {
                let row = sum(&[(rows[0], &Expr::from(1)), (rows[1], &step)]);
                let digit = k.remainder(&step, columns[2])?;
                let column = sum(&[(columns[0], &Expr::from(1)), (columns[1], &digit)]);
                let part = y.local_tile((8, 1), at(&[Some(row), Some(column)]))?;
                stored(&part.thread_part()?, k.number(VALUE))
            })
        };
        shown_and_happened("(40,5):(5,1)", write)
    };
    for (rows, columns) in [([0, 1], [0, 1, 5]), ([4, -1], [0, 1, 5]), ([4, -1], [4, -1, 5]), ([0, 1], [0, 1, 2])] {
        assert_eq!(by(rows, columns), (false, Some(Happened::Never)), "{rows:?} {columns:?}");
    }
}
