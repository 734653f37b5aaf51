//! Instructions and tilings of them: who holds what.

mod bulk_copy;
mod cotiled;
mod descriptor;
mod instructions;
mod isa;
mod tensor_map;
mod tiled_copy;
mod tiled_mma;
