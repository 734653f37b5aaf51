//! Panels of shared memory: the width of a row and its swizzle.

/// The elements of a line of a panel, of `bytes` bytes each: at most 128 bytes together.
pub(crate) fn width(along: i64, bytes: i64) -> i64 {
    [128, 64, 32, 16].map(|line| line / bytes).into_iter().find(|width| along % width == 0).unwrap_or(16 / bytes)
}

/// The swizzle for lines of `width` elements of `bytes` bytes.
pub(crate) fn swizzle(width: i64, bytes: i64) -> String {
    // The swizzle permutes chunks of 16 bytes.
    let base = 4 - bytes.ilog2();
    match width * bytes {
        128 => format!("S<3,{base},3> o 0 o "),
        64 => format!("S<2,{base},3> o 0 o "),
        32 => format!("S<1,{base},3> o 0 o "),
        _ => String::new(),
    }
}
