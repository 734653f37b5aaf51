//! Tables of all magnitudes of floating-point formats: the oracle for rounding.

use crate::program::operation::Number;

/// All magnitudes of a format, in the order of their bits, up to the largest finite number.
pub(super) fn magnitudes(exponent: u32, mantissa: u32, greatest: u64) -> Vec<f64> {
    let bias = (1 << (exponent - 1)) - 1;
    let number = |bits: u64| {
        let (field, fraction) = ((bits >> mantissa) as i32, (bits & ((1 << mantissa) - 1)) as f64);
        let unit = f64::from(1_u32 << mantissa);
        if field == 0 {
            fraction / unit * 2_f64.powi(1 - bias)
        } else {
            (1.0 + fraction / unit) * 2_f64.powi(field - bias)
        }
    };
    (0..=greatest).map(number).collect()
}

/// The bits of the nearest number of a format. Beyond the largest number, they are the next bits,
/// or those of the largest number if `saturates`.
pub(super) fn nearest(magnitudes: &[f64], value: f64, saturates: bool) -> u64 {
    let size = value.abs();
    let above = magnitudes.partition_point(|number| *number < size);
    if above == 0 {
        return 0;
    }
    let last = magnitudes.len() - 1;
    if above > last {
        // The number that would follow the largest one.
        let step = magnitudes[last] - magnitudes[last - 1];
        let beyond = size - magnitudes[last] >= step / 2.0;
        return last as u64 + u64::from(beyond && !saturates);
    }
    let (down, up) = (size - magnitudes[above - 1], magnitudes[above] - size);
    let even = if above % 2 == 0 { above } else { above - 1 };
    (if down < up {
        above - 1
    } else if up < down {
        above
    } else {
        even
    }) as u64
}

pub(super) fn formats() -> [(Number, Vec<f64>); 2] {
    [(Number::F16, magnitudes(5, 10, 0x7bff)), (Number::Bf16, magnitudes(8, 7, 0x7f7f))]
}

/// The number with these 16 bits.
pub(super) fn number_of(magnitudes: &[f64], bits: u64) -> f64 {
    let size = magnitudes.get((bits & 0x7fff) as usize).copied();
    let size = size.unwrap_or(if bits & 0x7fff == magnitudes.len() as u64 { f64::INFINITY } else { f64::NAN });
    if bits & 0x8000 == 0 { size } else { -size }
}
