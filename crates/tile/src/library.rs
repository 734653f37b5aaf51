//! Programs to begin with.

/// A program of the library: its name and its text.
///
/// ```
/// use tilewright_tile::{LIBRARY, Program};
///
/// for (name, text) in LIBRARY {
///     assert_eq!(Program::read(name, text)?.name(), name);
///     assert!(text.lines().count() < 40); // on one screen
/// }
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
pub const LIBRARY: [(&str, &str); 5] = [
    ("softmax", include_str!("../programs/softmax.tile")),
    ("layer_norm_residual", include_str!("../programs/layer_norm_residual.tile")),
    ("rms_norm_gate", include_str!("../programs/rms_norm_gate.tile")),
    ("product", include_str!("../programs/product.tile")),
    ("attention", include_str!("../programs/attention.tile")),
];
