//! Rows by their numbers.
//!
//! Law: `y(m,n) = x(index(m),n)`, and 0 where `x` has no such row.
//!
//! Threads are numbered in the order of the output, and each moves one vector; those of a row read
//! the same number, which a warp fetches once.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, Kernel};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, LayoutError, Slot, Stride, Tree};

use crate::error::PlanError;
use crate::meaning::Meaning;
use crate::planned::Planned;

/// Threads of a block.
const THREADS: i64 = 256;
/// The widest access of a thread, in bytes.
const VECTOR: i64 = 16;

/// A kernel that picks `picked` rows of a row-major matrix of `rows` rows of `columns` elements, by
/// numbers of type i32.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::gather;
///
/// let plan = gather(50_000, 1024, 4096, Element::Bf16).unwrap();
/// assert!(plan.to_string().contains("8 elements a thread"));
/// ```
///
/// Errors: there are more vectors than a launch takes.
pub fn gather(rows: i64, picked: i64, columns: i64, element: Element) -> Result<Planned, PlanError> {
    let mut vector = VECTOR / i64::from(element.bytes());
    while columns % vector != 0 {
        vector /= 2;
    }
    let across = columns / vector;
    let limit = i64::from(i32::MAX) - THREADS;
    let total = picked.checked_mul(across).unwrap_or(i64::MAX);
    if total > limit {
        return Err(PlanError::TooLarge { what: "vectors", asked: total, limit });
    }
    let kernel = Kernel::build("gather", |k| {
        let matrix = |rows: i64| format!("({vector},{across},{rows}):(1,{vector},{columns})");
        let x = k.tensor_of(element, "x", &matrix(rows), Role::Input)?;
        let index = k.input::<i32>("index", &format!("({picked},1):(1,{picked})"))?;
        let y = k.tensor_of(element, "y", &matrix(picked), Role::Output)?;
        k.threads(THREADS)?;
        k.grid(Axis::X, &((total + THREADS - 1) / THREADS).to_string())?;
        let overflow = || LayoutError::Overflow { op: "vector" };
        let first = Stride::times(&k.block_number(Axis::X), &Expr::from(THREADS)).ok_or_else(overflow)?;
        let number = Stride::plus(&first, &k.thread()?).ok_or_else(overflow)?;
        let digits = k.coordinate(&number, &[across, picked])?;
        let at = |row: Expr| -> Result<Coord<Expr>, LayoutError> {
            Tree::flat([Slot::All, Slot::At(digits[0].clone()), Slot::At(row)])
        };
        let own: Coord<Expr> = Tree::flat([Slot::At(digits[1].clone()), Slot::All])?;
        let row = k.index_of(index.slice(own)?.load_predicated()?.numbers()?[0])?;
        let values = x.slice(at(row)?)?.load_predicated()?;
        y.slice(at(digits[1].clone())?)?.store_predicated(&values)
    })?;
    let plan = vec![
        format!("{picked} of {rows} rows of {columns} {element}, by their numbers"),
        format!("{vector} elements a thread, in the order of the output"),
    ];
    let bytes = picked.saturating_mul(2 * columns).saturating_mul(element.bytes().into()).saturating_add(4 * picked);
    Ok(Planned::new(kernel, plan, Meaning::Gather { rows, picked, columns }).moving(bytes))
}
