//! Panels of shared memory: the width of a row and its swizzle.

/// Elements of so many bytes of a line of a panel: up to 128 bytes.
pub(crate) fn width(along: i64, bytes: i64) -> i64 {
    [128, 64, 32, 16].map(|line| line / bytes).into_iter().find(|width| along % width == 0).unwrap_or(16 / bytes)
}

/// The swizzle of lines of so many elements of so many bytes.
pub(crate) fn swizzle(width: i64, bytes: i64) -> String {
    // Chunks of 16 bytes change places.
    let base = 4 - bytes.ilog2();
    match width * bytes {
        128 => format!("S<3,{base},3> o 0 o "),
        64 => format!("S<2,{base},3> o 0 o "),
        32 => format!("S<1,{base},3> o 0 o "),
        _ => String::new(),
    }
}
