//! Layouts of other kinds than integers: coordinates, XOR, bits, swizzles, composed ones and those
//! of compile time.

mod any;
mod bit_matrix;
mod composed;
mod composed_algebra;
mod composed_bits;
mod composed_kinds;
mod composed_pairs;
mod composed_values;
mod coordinate;
mod coordinate_text;
mod coordinates;
mod descriptor;
mod linear;
mod recast;
mod static_layout;
mod swizzle;
mod swizzle_algebra;
mod xor;
mod xor_inverse;
mod xor_large;
mod xor_maps;
