//! Kernels for one list of sizes whose stores follow no law of parts: each store is listed when the
//! kernel is built. Windows of runs that begin anywhere, and what may be wrong with them.

use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, View, Written};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Layout, Slot, Stride, Tree};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Defect {
    /// Windows of two blocks overlap, or leave elements out between them.
    Overlap,
    Gap,
    /// Elements before the first window, or the last element, are left out.
    First,
    Last,
    /// Two groups of threads have the same run.
    Groups,
    /// The run of a thread comes from memory.
    Memory,
}

const VALUE: f32 = 7.0;

/// Two runs of 101 elements, from the fourth element of memory on, with a gap of 4 between them.
const LAYOUT: &str = "S<0,0,0> o 3 o (101,2):(1,105)";
const REACH: i64 = 3 + 105 + 101;

fn sum(constant: i64, parts: &[(i64, &Expr)]) -> Expr {
    parts.iter().fold(Expr::from(constant), |sum, (factor, part)| {
        Stride::plus(&sum, &Stride::times(*part, &Expr::from(*factor)).unwrap()).unwrap()
    })
}

/// A warp has a run. Windows of 32 elements begin at multiples of four in memory: the first one of
/// the first run behind an element, which the first block writes besides.
fn windows(k: &Build, y: &View<'_>, defect: Option<Defect>) -> Result<(), KernelError> {
    let is = |own: Defect| defect == Some(own);
    k.threads(64)?;
    k.grid(Axis::X, 4)?;
    let from = k.input::<i32>("from", "1:1")?;
    let y = y.recast(Element::F32, Layout::strided(REACH, 1))?;
    let one = k.register(Element::F32, 1)?;
    one.fill(k.number(VALUE))?;
    let digits = k.coordinate(&k.thread()?, &[32, 2])?;
    let (own, block) = (&digits[0], &k.block_number(Axis::X));
    let run = &match defect {
        Some(Defect::Groups) => Expr::from(0),
        Some(Defect::Memory) => k.index_up_to(from.load()?.numbers()?[0], 1)?,
        _ => digits[1].clone(),
    };
    let apart = 32 + i64::from(is(Defect::Gap)) - i64::from(is(Defect::Overlap));
    let along = sum(1, &[(-1, run), (apart, block), (1, own)]);
    let last = if is(Defect::Last) { 100 } else { 101 };
    let inside = k.unless_less(&along, &last.into())?.unwrap_or(k.flag(true));
    y.at(&sum(4, &[(104, run), (apart, block), (1, own)]))?.store_where(inside, &one)?;
    if is(Defect::First) {
        return Ok(());
    }
    let before = k.unless_less(&sum(0, &[(1, own), (1, block), (1, run)]), &1.into())?.unwrap_or(k.flag(true));
    y.at(&3.into())?.store_where(before, &one)
}

fn built(role: Role, defect: Option<Defect>) -> Result<Kernel, KernelError> {
    Kernel::build("windows", |k| windows(k, &k.tensor_of(Element::F32, "y", LAYOUT, role)?, defect))
}

/// Whether a run leaves each element written, by one thread.
fn happens(defect: Option<Defect>) -> bool {
    let kernel = built(Role::Both, defect).unwrap();
    let mut interpreter = Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.tensor("y", &[0.0_f32; REACH as usize]).unwrap();
    let Ok(run) = interpreter.run(Schedule::ALL[0]) else { return false };
    let left = run.tensor::<f32>("y").unwrap();
    (0..2).all(|run| (0..101).all(|at| left[3 + 105 * run + at] == VALUE))
}

#[test]
fn windows_are_shown_but_for_their_defects() {
    assert_eq!(built(Role::Output, None).unwrap().outputs()[0].written, Written::Once);
    assert!(happens(None));
    for (defect, code) in [
        (Defect::Overlap, "E0916"),
        (Defect::Gap, "E0917"),
        (Defect::First, "E0917"),
        (Defect::Last, "E0917"),
        (Defect::Groups, "E0916"),
    ] {
        let error = built(Role::Output, Some(defect)).unwrap_err();
        assert_eq!(error.code(), code, "{defect:?}: {error}");
        assert!(!happens(Some(defect)), "{defect:?}");
    }
}

#[test]
fn what_comes_from_memory_is_left_open() {
    let kernel = built(Role::Output, Some(Defect::Memory)).unwrap();
    assert!(matches!(kernel.outputs()[0].written, Written::Unproved { .. }));
}

/// Why it is not shown that an output of this layout is written once, of which each block has a
/// part whose number follows no law: a thread stores its one element, or it is copied.
fn because(layout: &str, copied: bool) -> String {
    let kernel = Kernel::build("left_open", |k| {
        let y = k.output::<f32>("y", layout)?;
        k.threads(32)?;
        k.grid(Axis::X, 8)?;
        let part = k.index_up_to(k.index(&k.block_number(Axis::X))?.max(k.number(0)), 7)?;
        if copied {
            let tile = k.shared::<f32>("(4,32):(32,1)")?;
            let at = Tree::flat([Slot::At(part), Slot::At(0.into())])?;
            return k.single(|| k.store_bulk(&tile, &y.local_tile((4, 32), at)?));
        }
        let value = k.register(Element::F32, 1)?;
        value.fill(k.number(VALUE))?;
        k.single(|| y.at(&part)?.store(&value))
    });
    match &kernel.unwrap().outputs()[0].written {
        Written::Unproved { because, .. } => because.clone(),
        Written::Once => "shown".to_string(),
    }
}

#[test]
fn what_is_not_listed_says_why() {
    assert_eq!(because("8:1", false), "shown");
    for (layout, copied, why) in [
        ("(32,32):(32,1)", true, "of its writers, only stores of threads are listed"),
        ("8:200000", false, "it reaches over more than the 1048576 places that are listed"),
        ("262145:1", false, "it has more than the 262144 elements whose stores are listed"),
    ] {
        let said = because(layout, copied);
        assert!(said.ends_with(why), "{layout}: {said}");
    }
}
