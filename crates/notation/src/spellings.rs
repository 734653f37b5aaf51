//! Names of functions in CuTe, its Python and its printouts, and their spelling in this language.
//!
//! Law: no name in the table is a function of this language, so that no entry hides a function.
//! Each entry gives the right spelling.

/// The replacement for a name of CuTe that is not a function of the language.
///
/// ```
/// assert_eq!(tilewright_notation::spelling("cosize_v"), Some("cosize(A)"));
/// ```
pub fn ours(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("cute_").unwrap_or(name);
    OURS.iter().find(|(theirs, _)| *theirs == name).map(|(_, help)| *help)
}

const OURS: &[(&str, &str)] = &[
    ("Layout", "a layout is written shape:stride, (4,8):(8,1); make_layout(shape, stride) is the same"),
    ("layout", "a layout is written shape:stride, (4,8):(8,1); make_layout(shape, stride) is the same"),
    ("ComposedLayout", "a composed layout is written A o offset o B"),
    ("make_composed_layout", "a composed layout is written A o offset o B"),
    ("Shape", "a shape is written as a tuple, (4,8)"),
    ("make_shape", "a shape is written as a tuple, (4,8)"),
    ("Stride", "strides are written as a tuple, (8,1)"),
    ("make_stride", "strides are written as a tuple, (8,1)"),
    ("Step", "an order is written as a tuple, (1,0)"),
    ("make_step", "an order is written as a tuple, (1,0)"),
    ("Coord", "a coordinate is written as a tuple, (2,_)"),
    ("make_coord", "a coordinate is written as a tuple, (2,_)"),
    ("Tile", "a tiler by mode is written [2:1;4:1], or (2,4) for tiles of these extents"),
    ("make_tile", "a tiler by mode is written [2:1;4:1], or (2,4) for tiles of these extents"),
    ("make_tuple", "a tuple is written (4,8)"),
    ("Swizzle", "a swizzle is written S<3,4,3>"),
    ("make_swizzle", "a swizzle is written S<3,4,3>"),
    ("print", "a program has the value of its last statement, which is printed"),
    ("printf", "a program has the value of its last statement, which is printed"),
    ("print_layout", "write the layout; 'tilewright show' draws its table"),
    ("print_latex", "write the layout; 'tilewright draw' makes pictures"),
    ("compose", "composition(A, B), or A o B"),
    ("group_modes", "group(A, begin, end), or group(A, modes) for a tuple of them"),
    ("select_modes", "select(A, mode...)"),
    ("take_modes", "take(A, begin, end)"),
    ("div", "a quotient is floor(a/b) or ceil(a/b); of tuples, floor_div(a, b) and ceil_div(a, b)"),
    ("retile", "retile_S(copy, fragment) or retile_D(copy, fragment), for what a thread reads or writes"),
    ("shape_div_floor", "floor_div(a, b)"),
    ("shape_div_ceil", "ceil_div(a, b)"),
    ("ceildiv", "ceil_div(a, b)"),
    ("floordiv", "floor_div(a, b)"),
    ("cdiv", "ceil_div(a, b)"),
    ("modulo", "mod(a, b) or rem(a, b)"),
    ("len", "size(A) counts coordinates, rank(A) counts modes"),
    ("numel", "size(A)"),
    ("dim", "rank(A) counts modes, size(A, mode) is the size of one"),
    ("cosize_v", "cosize(A)"),
    ("size_v", "size(A)"),
    ("rank_v", "rank(A)"),
    ("make_col_major", "col_major(shape)"),
    ("make_row_major", "row_major(shape)"),
    ("LayoutLeft", "col_major(shape)"),
    ("LayoutRight", "row_major(shape)"),
    ("local_partition", "zipped_divide(A, tiler)(thread, _), or partitions of a tiled copy"),
    ("make_identity_tensor", "make_identity_layout(shape)"),
    ("tensor_zipped_divide", "zipped_divide(A, T)"),
    ("tensor_composition", "composition(A, B)"),
    ("is_congruent", "congruent(a, b)"),
    ("is_compatible", "compatible(a, b)"),
    ("is_equal", "equal(a, b)"),
    ("inverse_right", "right_inverse(A)"),
    ("inverse_left", "left_inverse(A)"),
    ("concatenate", "make_layout(A, B, ...)"),
    ("transpose", "select(A, 1, 0)"),
    ("permute", "select(A, mode...)"),
];
