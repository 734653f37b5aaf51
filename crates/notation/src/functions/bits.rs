//! Linear maps over bits: matrices over the field of two elements, swizzles, and the layouts that
//! are such maps.

use tilewright_layout::{AnyLayout, BitMatrix, BitXor, Layout, LayoutError, OuterMap, Xor};

use super::{Function, function};
use crate::arguments::{Arguments, Fault, at};
use crate::value::Value;

/// A linear map over bits as a matrix: a matrix, a swizzle, or a layout that is one.
fn matrix(a: &Arguments<'_>, argument: usize) -> Result<BitMatrix, Fault> {
    match a.get(argument) {
        Some(Value::Matrix(matrix)) => Ok(matrix.clone()),
        Some(Value::Linear(map)) => Ok(map.matrix().clone()),
        Some(Value::Swizzle(swizzle)) => {
            let reach = swizzle.bits() + swizzle.base() + swizzle.shift().abs();
            Ok(swizzle.matrix(usize::try_from(reach).unwrap_or(0))?)
        }
        _ => a.layout(argument)?.bit_matrix().map_err(|error| match error {
            LayoutError::Kind { .. } => at(argument, error),
            error => error.into(),
        }),
    }
}

/// A swizzle or a matrix as a map on offsets.
pub(super) fn outer(value: &Value) -> Option<OuterMap> {
    match value {
        Value::Swizzle(swizzle) => Some((*swizzle).into()),
        Value::Matrix(matrix) => Some(matrix.clone().into()),
        _ => None,
    }
}

/// A map on offsets as a value.
pub(super) fn of_outer(map: OuterMap) -> Option<Value> {
    match map {
        OuterMap::Layout(layout) => Some(layout.into()),
        OuterMap::Swizzle(swizzle) => Some(swizzle.into()),
        OuterMap::Bits(matrix) => Some(matrix.into()),
        OuterMap::Chain(_) => None,
    }
}

/// A bit number or a count of bits.
fn whole(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Vectors of bits as a tuple of numbers.
fn basis(vectors: Vec<u64>) -> Result<Value, Fault> {
    let numbers = vectors.into_iter().map(|vector| i64::try_from(vector).map_err(|_| overflow("bits")));
    let numbers: Vec<i64> = numbers.collect::<Result<_, _>>()?;
    Ok(tilewright_layout::Tree::flat(numbers)?.into())
}

fn overflow(op: &'static str) -> LayoutError {
    LayoutError::Overflow { op }
}

pub(super) const BITS: &[Function] = &[
    function("bit_matrix(A)", "a swizzle, or a layout whose extents are powers of two, as a linear map over bits")
        .example("bit_matrix((8,8):(^1,^9))", "F2<6>[1,2,4,9,18,36]")
        .run(1..=1, |a| Ok(matrix(&a, 0)?.into())),
    function("bit_xor(bits, into, from)", "the map that XORs the bits from 'from' on into the bits from 'into' on")
        .example("bit_xor(3, 4, 3)", "F2<7>[1,2,4,24,48,96,64]")
        .run(3..=3, |a| {
            let map = BitXor::new(a.int(0)?, a.int(1)?, a.int(2)?)?;
            match map.swizzle() {
                Some(swizzle) => Ok(swizzle.into()),
                None => Ok(map.matrix().into()),
            }
        }),
    function("bit_rank(M)", "the rank of a linear map over bits")
        .example("bit_rank((4,4):(^1,^1))", "2")
        .run(1..=1, |a| Ok(whole(matrix(&a, 0)?.rank()))),
    function("bit_kernel(M)", "a basis of the kernel of a linear map over bits")
        .example("bit_kernel((4,4):(^1,^1))", "(5,10)")
        .run(1..=1, |a| basis(matrix(&a, 0)?.kernel())),
    function("bit_image(M)", "a basis of the image of a linear map over bits")
        .example("bit_image((4,4):(^1,^1))", "(1,2)")
        .run(1..=1, |a| basis(matrix(&a, 0)?.image())),
    function("bit_inverse(M)", "the inverse of a linear map over bits")
        .example("bit_inverse(F2<2>[2,3])", "F2<2>[3,1]")
        .run(1..=1, |a| Ok(matrix(&a, 0)?.inverse()?.into())),
    function("left_divide(M, N)", "the linear map X over bits with M(X(i)) = N(i)")
        .example("left_divide(F2<2>[2,3], F2<2>[1,2])", "F2<2>[3,1]")
        .run(2..=2, |a| Ok(matrix(&a, 0)?.left_divide(&matrix(&a, 1)?)?.into())),
    function(
        "to_layout(A) or to_layout(M, shape)",
        "the equal layout with integer strides, and its first offset; for a matrix, with the given shape",
    )
    .example("to_layout(F2<3>[4,1,2], (2,4))", "(2,4):(4,1)")
    .run(1..=2, |a| match (a.get(0), a.len()) {
        (Some(Value::Matrix(_)), 1) => a.kind(1, "a shape"),
        (_, 2) => Ok(matrix(&a, 0)?.to_layout(&a.integer_shape(1)?)?.into()),
        _ => match &*a.layout(0)?.by_index()? {
            AnyLayout::Integer(layout) => Ok(layout.clone().into()),
            AnyLayout::Xor(layout) => Ok(layout.integers()?.into()),
            AnyLayout::Composed(map) => {
                let (layout, offset) = map.to_layout()?;
                Ok(if offset == 0 { layout.into() } else { Value::List(vec![layout.into(), offset.into()]) })
            }
            _ => a.kind(0, "a layout of known numbers"),
        },
    }),
    function(
        "to_composed(M, shape) or to_composed(F)",
        "a linear map over bits (with a shape) or a linear layout as a layout, with a swizzle if needed",
    )
    .example("to_composed(F2<4>[1,2,5,10], (4,4))", "S<2,0,2> o 0 o (4,4):(1,4)")
    .run(1..=2, |a| match a.len() {
        1 => a.kind(0, "a linear layout, or a matrix and a shape,"),
        _ => Ok(matrix(&a, 0)?.to_composed(&a.integer_shape(1)?)?.into()),
    }),
    function("to_xor(A)", "the equal layout with XOR strides")
        .example("to_xor(S<3,0,3> o 0 o (8,8):(1,8))", "(8,8):(^1,^9)")
        .run(1..=1, |a| match a.get(0) {
            Some(Value::Matrix(_) | Value::Swizzle(_)) => Ok(Layout::<Xor>::of_bit_matrix(&matrix(&a, 0)?)?.into()),
            _ => Ok(a.layout(0)?.to_xor()?.into()),
        }),
];

/// The composition of two maps on offsets, or of one with a composed layout; None if neither
/// argument is a map on offsets.
pub(super) fn compose(a: &Arguments<'_>) -> Option<Result<Value, Fault>> {
    let (left, right) = (outer(a.get(0)?), outer(a.get(1)?));
    match (left, right) {
        (Some(left), Some(right)) => Some(maps(&left, &right)),
        (Some(left), None) if a.is_map_of_bits(1) => Some(after(a, &left)),
        (None, Some(right)) if a.is_map(0) => Some(before(a, &right)),
        _ => None,
    }
}

fn maps(left: &OuterMap, right: &OuterMap) -> Result<Value, Fault> {
    match of_outer(left.after(&0, right)?) {
        Some(value) => Ok(value),
        None => product(left, right),
    }
}

/// The matrix of one map over bits after another, for maps of which one has different numbers of
/// inputs and outputs.
fn product(left: &OuterMap, right: &OuterMap) -> Result<Value, Fault> {
    let square = |matrix: &BitMatrix| matrix.inputs() == matrix.outputs();
    let (Some(last), Some(first)) = (left.matrix(0), right.matrix(0)) else {
        return Err(Fault::Kind { argument: 1, wanted: "a swizzle or a bit matrix" });
    };
    // A square map keeps the bits above its inputs; any other map sets the bits above its outputs
    // to 0.
    let first = match square(&first) {
        true => right.matrix(last.inputs()).unwrap_or(first),
        false => BitMatrix::new(first.outputs().max(last.inputs()), first.columns().iter().copied())?,
    };
    let last = if square(&last) { left.matrix(first.outputs()).unwrap_or(last) } else { last };
    Ok(last.compose(&first)?.into())
}

/// The composition of a map on offsets with a composed layout, the map applied last.
fn after(a: &Arguments<'_>, left: &OuterMap) -> Result<Value, Fault> {
    Ok(a.layout(1)?.then(left)?.into())
}

/// The composition of a map with a map on offsets, which is applied first to the indices.
fn before(a: &Arguments<'_>, right: &OuterMap) -> Result<Value, Fault> {
    Ok(a.layout(0)?.after(right)?.into())
}
