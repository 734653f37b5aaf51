//! The functions that are measured, each by itself.

use super::*;

/// The sum in the order of the indices, by pointers.
#[inline(never)]
pub fn raw_two(base: *const f32, [(rows, down), (columns, right)]: [(isize, isize); 2]) -> f32 {
    let mut sum = 0.0;
    for j in 0..columns {
        for i in 0..rows {
            // SAFETY: the callers have this many elements.
            sum += unsafe { *base.offset(i * down + j * right) };
        }
    }
    sum
}

#[inline(never)]
pub fn raw_three(base: *const f32, [a, b, c]: [(isize, isize); 3]) -> f32 {
    let mut sum = 0.0;
    for k in 0..c.0 {
        for j in 0..b.0 {
            for i in 0..a.0 {
                // SAFETY: the callers have this many elements.
                sum += unsafe { *base.offset(i * a.1 + j * b.1 + k * c.1) };
            }
        }
    }
    sum
}

#[inline(never)]
pub fn raw_four(base: *const f32, [a, b, c, d]: [(isize, isize); 4]) -> f32 {
    let mut sum = 0.0;
    for l in 0..d.0 {
        for k in 0..c.0 {
            for j in 0..b.0 {
                for i in 0..a.0 {
                    // SAFETY: the callers have this many elements.
                    sum += unsafe { *base.offset(i * a.1 + j * b.1 + k * c.1 + l * d.1) };
                }
            }
        }
    }
    sum
}

/// The sum through a swizzle, computed at every place.
#[inline(never)]
pub fn raw_swizzled(
    base: *const f32,
    [(rows, down), (columns, right)]: [(isize, isize); 2],
    shift: u32,
    mask: isize,
) -> f32 {
    let mut sum = 0.0;
    for j in 0..columns {
        for i in 0..rows {
            let place = i * down + j * right;
            // SAFETY: the callers have this many elements; the swizzle stays within rows.
            sum += unsafe { *base.offset(place ^ (place >> shift & mask)) };
        }
    }
    sum
}

/// The sum where indices are flipped by one another.
#[inline(never)]
pub fn raw_xor(base: *const f32, rows: isize, columns: isize) -> f32 {
    let mut sum = 0.0;
    for j in 0..columns {
        for i in 0..rows {
            // SAFETY: the callers have this many elements.
            sum += unsafe { *base.offset(i ^ (j << 8 | j)) };
        }
    }
    sum
}

/// What is written in the order of the indices, by pointers.
#[inline(never)]
pub fn raw_written(base: *mut f32, [(rows, down), (columns, right)]: [(isize, isize); 2]) {
    for j in 0..columns {
        for i in 0..rows {
            // SAFETY: the callers have this many elements.
            unsafe { *base.offset(i * down + j * right) += 1.0 };
        }
    }
}

/// What is added to another tensor in the order of the indices, by pointers.
#[inline(never)]
pub fn raw_zipped(from: *const f32, to: *mut f32, [(rows, down), (columns, right)]: [(isize, isize); 2]) {
    for j in 0..columns {
        for i in 0..rows {
            // SAFETY: the callers have this many elements.
            unsafe { *to.offset(i * down + j * right) += *from.offset(i * down + j * right) };
        }
    }
}

#[inline(never)]
pub fn raw_by_index(base: *const f32, layout: &Layout) -> f32 {
    // What the evaluator costs by itself.
    let (evaluator, size) = (layout.evaluator(), layout.size());
    // SAFETY: the callers have this many elements.
    (0..size).map(|index| unsafe { *base.offset(evaluator.eval(index).unwrap_unchecked() as isize) }).sum()
}

#[inline(never)]
pub fn by_index(view: &TensorView<'_, f32>) -> f32 {
    let elements = view.by_index();
    (0..view.size()).map(|index| elements.get(index).unwrap_or(&0.0)).sum()
}

#[inline(never)]
pub fn by_mode(view: &TensorView<'_, f32>) -> f32 {
    let matrix = view.by_mode::<2>().unwrap();
    let [rows, columns] = matrix.extents();
    let mut sum = 0.0;
    for j in 0..columns {
        for i in 0..rows {
            sum += matrix.get([i, j]).unwrap_or(&0.0);
        }
    }
    sum
}

#[inline(never)]
pub fn for_each<L: Offsets>(view: &TensorView<'_, f32, L>) -> f32 {
    let mut sum = 0.0;
    view.for_each(|element| sum += element);
    sum
}

#[inline(never)]
pub fn summed<L: Offsets>(view: &TensorView<'_, f32, L>) -> f32 {
    view.iter().sum()
}

#[inline(never)]
pub fn stepped<L: Offsets>(view: &TensorView<'_, f32, L>) -> f32 {
    let mut sum = 0.0;
    for element in view.iter() {
        sum += element;
    }
    sum
}

#[inline(never)]
pub fn backwards<L: Offsets>(view: &TensorView<'_, f32, L>) -> f32 {
    let mut sum = 0.0;
    for element in view.iter().rev() {
        sum += element;
    }
    sum
}

#[inline(never)]
pub fn collected(view: &TensorView<'_, f32>) -> Vec<f32> {
    view.to_vec()
}

#[inline(never)]
pub fn written(view: &mut TensorViewMut<'_, f32>) {
    view.for_each_mut(|element| *element += 1.0);
}

#[inline(never)]
pub fn stepped_mut(view: &mut TensorViewMut<'_, f32>) {
    for element in view.iter_mut() {
        *element += 1.0;
    }
}

#[inline(never)]
pub fn zipped(from: TensorView<'_, f32>, to: TensorViewMut<'_, f32>) {
    Zipped::new((from, to)).unwrap().for_each(|(from, to)| *to += from);
}
