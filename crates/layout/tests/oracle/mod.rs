//! Layouts as plain numbers, evaluated and composed by definition: what the library is compared
//! with.
//!
//! Nothing here knows a criterion of the library: a value is computed digit by digit, and whether a
//! composite exists is decided by writing down the function `A(B(c))` at every coordinate and
//! asking whether a layout over B's modes has it.

/// A flat layout as plain numbers: extents and strides.
pub type Flat = Vec<(i64, i64)>;

/// `L(i)`: colexicographic digits, the last mode endless, mirrored below zero.
pub fn value(layout: &[(i64, i64)], index: i64) -> i64 {
    if index < 0 {
        return -value(layout, -index);
    }
    let mut rest = index;
    let mut sum = 0;
    for (position, (extent, stride)) in layout.iter().enumerate() {
        let digit = if position + 1 == layout.len() { rest } else { rest % extent };
        sum += digit * stride;
        rest /= extent;
    }
    sum
}

/// Whether a function on `0..n` is that of a layout.
fn is_layout_function(h: &[i64]) -> bool {
    let n = h.len();
    if h[0] != 0 {
        return false;
    }
    let Some(p) = (1..n).find(|i| h[*i] != *i as i64 * h[1]) else { return true };
    n.is_multiple_of(p)
        && (0..n).all(|i| h[i] == h[i % p] + h[i - i % p])
        && is_layout_function(&h.iter().copied().step_by(p).collect::<Vec<_>>())
}

/// Whether `A o B` exists: the function adds up over the modes of B, and each part is that of a
/// layout.
pub fn composite_exists(a: &[(i64, i64)], b: &[(i64, i64)]) -> bool {
    let parts: Vec<Vec<i64>> = b.iter().map(|(s, d)| (0..*s).map(|x| value(a, x * d)).collect()).collect();
    let size: i64 = b.iter().map(|(s, _)| s).product();
    for index in 0..size {
        let (mut rest, mut offset, mut sum) = (index, 0, 0);
        for ((s, d), part) in b.iter().zip(&parts) {
            offset += rest % s * d;
            sum += part[(rest % s) as usize];
            rest /= s;
        }
        if value(a, offset) != sum {
            return false;
        }
    }
    parts.iter().all(|part| is_layout_function(part))
}
