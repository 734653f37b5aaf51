//! Argmax over several devices.
//!
//! Law: for each result, a device knows its own maximum, the position of that among its own
//! elements, and the maximum over all devices. If both maxima are equal, the index is `first + sum
//! digit_i * weight_i`, where the digits are those of the position, the first one fastest;
//! otherwise it is the largest i64. So the smallest index over all devices is that of the first
//! maximum. Two NaN count as equal.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, Kernel, KernelError, Num, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Tree};

use crate::error::PlanError;
use crate::planned::Planned;
use crate::terms::{Indices, Meaning};
use crate::units::{MOVE_THREADS, first_vector};

/// A kernel that computes the global index of the maximum of each result, if this device holds it.
/// It reads the maximum of the device, the maximum over all devices, and the position on the device
/// as i32, and writes i64. All tensors are contiguous.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_planners::{Indices, indices_of_greatest};
///
/// let indices = Indices { first: 4096, digits: vec![(4096, 1)] };
/// let plan = indices_of_greatest(Element::F32, 1000, &indices).unwrap();
/// assert!(plan.to_string().contains("from 4096 on"));
/// ```
///
/// Errors: there are more results than a launch takes; the type supports no arithmetic.
pub fn indices_of_greatest(element: Element, results: i64, indices: &Indices) -> Result<Planned, PlanError> {
    let limit = i64::from(i32::MAX) - MOVE_THREADS;
    if results > limit {
        return Err(PlanError::TooLarge { what: "results", asked: results, limit });
    }
    let kernel = Kernel::build("indices_of_greatest", |k| {
        let text = Layout::strided((results, 1), (1, results))?;
        let tensor = |element: Element, name: &str, role: Role| k.tensor_of(element, name, &text, role);
        let own = tensor(element, "own", Role::Input)?;
        let greatest = tensor(element, "greatest", Role::Input)?;
        let place = tensor(Element::I32, "place", Role::Input)?;
        let index = tensor(Element::I64, "index", Role::Output)?;
        k.threads(MOVE_THREADS)?;
        k.grid(Axis::X, (results + MOVE_THREADS - 1) / MOVE_THREADS)?;
        let digits = k.coordinate(&first_vector(k, MOVE_THREADS)?, &[results, 1])?;
        let at: Coord<Expr> = Tree::flat(digits.into_iter().map(Slot::At))?;
        let (own, greatest, place) = (number(&own, &at)?, number(&greatest, &at)?, number(&place, &at)?);
        let extents: Vec<i64> = indices.digits.iter().map(|(extent, _)| *extent).chain([1]).collect();
        let digits = k.coordinate(&k.index_of(place)?, &extents)?;
        let mut sum = k.number(indices.first);
        for (digit, (_, weight)) in digits.iter().zip(&indices.digits) {
            sum = k.index(digit)?.to(Element::I64).multiply_add(k.number(*weight), sum);
        }
        // If the device's own maximum is NaN, so is the global one.
        let counts = own.eq(greatest).or(own.eq(own).not());
        let result = index.slice(at)?;
        let fragment = result.fragment()?;
        fragment.set(&[counts.select(sum, k.number(i64::MAX))])?;
        result.store_predicated(&fragment)
    })?;
    let plan = vec![
        format!("indices of {results} greatest {element}, from {} on", indices.first),
        "one result a thread".to_string(),
    ];
    let meaning = Meaning::Indices { results, indices: indices.clone() };
    let bytes = results.saturating_mul(2 * i64::from(element.bytes()) + 12);
    Ok(Planned::new(kernel, plan, meaning).moving(bytes))
}

/// The single element of a tensor at a coordinate; 0 if the coordinate is out of bounds.
fn number<'k>(tensor: &View<'k>, at: &Coord<Expr>) -> Result<Num<'k>, KernelError> {
    let numbers = tensor.slice(at.clone())?.load_predicated()?.numbers()?;
    Ok(numbers.first().copied().ok_or(LayoutError::Overflow { op: "element" })?)
}
