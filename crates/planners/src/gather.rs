//! Gather and scatter of rows by index.
//!
//! Law: a gather computes `y(m,n) = x(index(m),n)`, or 0 if the index is not a row of `x`. A
//! scatter computes `y(index(m),n) = x(m,n)` and leaves all other rows of `y` as they were; an
//! index that is not a row of `y` is skipped. The indices of a scatter must be distinct: otherwise
//! two threads write to one place, and the last one wins in no defined order.
//!
//! Each thread moves one vector, in the order of the picked rows. The threads of a row read the
//! same index, which a warp loads once.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, Kernel};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tree};

use crate::error::PlanError;
use crate::planned::Planned;
use crate::terms::Meaning;
use crate::units::{MOVE_THREADS, VECTOR, first_vector};

/// A kernel that gathers `picked` rows of a row-major matrix of `rows` rows and `columns` columns,
/// by indices of type i32.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_planners::gather;
///
/// let plan = gather(50_000, 1024, 4096, Element::Bf16).unwrap();
/// assert!(plan.to_string().contains("8 elements a thread"));
/// ```
///
/// Errors: there are more vectors than a launch takes; the size of a matrix in bytes does not fit
/// in 64 bits.
pub fn gather(rows: i64, picked: i64, columns: i64, element: Element) -> Result<Planned, PlanError> {
    let meaning = Meaning::Gather { rows, picked, columns };
    by_numbers("gather", [rows, picked, columns], element, meaning)
}

/// A kernel that scatters the `picked` rows of a row-major matrix of `columns` columns to rows of a
/// matrix of `rows` rows, by distinct indices of type i32.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_planners::scatter;
///
/// let plan = scatter(50_000, 1024, 4096, Element::Bf16).unwrap();
/// assert!(plan.to_string().contains("1024 rows"));
/// ```
///
/// Errors: as [`gather`].
pub fn scatter(rows: i64, picked: i64, columns: i64, element: Element) -> Result<Planned, PlanError> {
    let meaning = Meaning::Scatter { rows, picked, columns };
    by_numbers("scatter", [rows, picked, columns], element, meaning)
}

fn by_numbers(
    name: &str,
    [rows, picked, columns]: [i64; 3],
    element: Element,
    meaning: Meaning,
) -> Result<Planned, PlanError> {
    let scatters = matches!(meaning, Meaning::Scatter { .. });
    let mut vector = VECTOR / i64::from(element.bytes());
    while columns % vector != 0 {
        vector /= 2;
    }
    let across = columns / vector;
    let limit = i64::from(i32::MAX) - MOVE_THREADS;
    let total = picked.checked_mul(across).unwrap_or(i64::MAX);
    if total > limit {
        return Err(PlanError::TooLarge { what: "vectors", asked: total, limit });
    }
    // The sizes of both matrices in bytes must fit in 64 bits.
    let bytes = |rows: i64| rows.checked_mul(columns)?.checked_mul(element.bytes().into());
    for rows in [rows, picked] {
        bytes(rows).ok_or(LayoutError::Overflow { op: "size" })?;
    }
    let kernel = Kernel::build(name, |k| {
        let matrix = |rows: i64| Layout::strided((vector, across, rows), (1, vector, columns));
        let (from, to) = if scatters { (picked, rows) } else { (rows, picked) };
        let x = k.tensor_of(element, "x", matrix(from), Role::Input)?;
        let index = k.input::<i32>("index", Layout::strided((picked, 1), (1, picked)))?;
        // A scatter keeps the rows that no index names.
        let role = if scatters { Role::Both } else { Role::Output };
        let y = k.tensor_of(element, "y", matrix(to), role)?;
        k.threads(MOVE_THREADS)?;
        k.grid(Axis::X, (total + MOVE_THREADS - 1) / MOVE_THREADS)?;
        let digits = k.coordinate(&first_vector(k, MOVE_THREADS)?, &[across, picked])?;
        let at = |row: &Expr| -> Result<Coord<Expr>, LayoutError> {
            Tree::flat([Slot::All, Slot::At(digits[0].clone()), Slot::At(row.clone())])
        };
        let own: Coord<Expr> = Tree::flat([Slot::At(digits[1].clone()), Slot::All])?;
        let given = index.slice(own)?.load_predicated()?.numbers()?[0];
        // Threads past the last vector have read index 0, which is a valid row, so they are masked.
        let exists = k.index(&digits[1])?.lt(k.number_of(Element::I32, picked as f64));
        let row = k.index_of(exists.select(given, k.number(-1_i32)))?;
        let (from, to) = if scatters { (&digits[1], &row) } else { (&row, &digits[1]) };
        let values = x.slice(at(from)?)?.load_predicated()?;
        y.slice(at(to)?)?.store_predicated(&values)
    })?;
    let plan = vec![
        if scatters {
            format!("{picked} rows of {columns} {element} to {rows}, by their numbers")
        } else {
            format!("{picked} of {rows} rows of {columns} {element}, by their numbers")
        },
        format!("{vector} elements a thread, in the order of the picked rows"),
    ];
    let bytes = picked.saturating_mul(2 * columns).saturating_mul(element.bytes().into()).saturating_add(4 * picked);
    Ok(Planned::new(kernel, plan, meaning).moving(bytes))
}
