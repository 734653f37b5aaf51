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
pub const LIBRARY: [(&str, &str); 21] = [
    ("softmax", include_str!("../programs/softmax.tile")),
    ("layer_norm_residual", include_str!("../programs/layer_norm_residual.tile")),
    ("rms_norm_gate", include_str!("../programs/rms_norm_gate.tile")),
    ("product", include_str!("../programs/product.tile")),
    ("attention", include_str!("../programs/attention.tile")),
    ("attention_e4m3", include_str!("../programs/attention_e4m3.tile")),
    ("int4_product", include_str!("../programs/int4_product.tile")),
    ("top_rows", include_str!("../programs/top_rows.tile")),
    ("histogram", include_str!("../programs/histogram.tile")),
    ("chunk_sums", include_str!("../programs/chunk_sums.tile")),
    ("sums_before", include_str!("../programs/sums_before.tile")),
    ("prefix_sum", include_str!("../programs/prefix_sum.tile")),
    ("prefix_rows", include_str!("../programs/prefix_rows.tile")),
    ("gather_rows", include_str!("../programs/gather_rows.tile")),
    ("scatter_rows", include_str!("../programs/scatter_rows.tile")),
    ("route", include_str!("../programs/route.tile")),
    ("expert_counts", include_str!("../programs/expert_counts.tile")),
    ("expert_starts", include_str!("../programs/expert_starts.tile")),
    ("expert_places", include_str!("../programs/expert_places.tile")),
    ("expert_product", include_str!("../programs/expert_product.tile")),
    ("combine_rows", include_str!("../programs/combine_rows.tile")),
];
