//! The native part of the Python package `tilewright`.
//!
//! Law: Python computes nothing itself. A value of the package is a value of the language
//! ([`tilewright_notation::Value`]), a function of the package is a row of the language's table,
//! and refusals of the language are raised as `LayoutError` with the same code, text and help.
//!
//! * `object`: the base class of all values
//! * `layout`, `maps`, `numbers`: the classes
//! * `convert`: from Python's integers and tuples to values, and back
//! * `function`: the functions of the language, as functions and as methods
//! * `refusal`: exceptions
//! * `interrupt`: work that ctrl-C interrupts
//! * `array`: layouts at arrays of indices
//! * `tensor`: memory under layouts, of other packages or its own
//! * `picture`, `claim`, `analysis`: pictures, tests of laws, costs of memory
//! * `kernel`: kernels written in Python
//! * `mesh`: tensors sharded over devices
//! * `foreign`: arrays of other libraries; `device`: kernels on devices

#[cfg(not(panic = "unwind"))]
compile_error!("a panic has to unwind, so that it becomes an exception: build with panic = \"unwind\"");

mod analysis;
mod array;
mod claim;
mod convert;
mod device;
mod foreign;
mod function;
mod interrupt;
mod kernel;
mod layout;
mod maps;
mod mesh;
mod notes;
mod numbers;
mod object;
mod picture;
mod read;
mod refusal;
mod sanitize;
mod tensor;
mod write;
mod writes;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::analysis::{access_of, banks, covered, suggestions};
    #[pymodule_export]
    use super::claim::{check_call, check_equal, derivation, operations};
    #[pymodule_export]
    use super::device::{
        Calls, CudaAllocator, Launcher, device_count, device_name, note_recorder, prepare_xla_call, repeat_call,
        xla_handler,
    };
    #[pymodule_export]
    use super::function::{Function, functions, spelling};
    #[pymodule_export]
    use super::kernel::arrays::{array_axes, array_key, array_layout, is_empty};
    #[pymodule_export]
    use super::kernel::body::{Body, Range, otherwise, range, role, single, when};
    #[pymodule_export]
    use super::kernel::captured::Captured;
    #[pymodule_export]
    use super::kernel::coordinates::{Coordinates, coordinates, elem_less};
    #[pymodule_export]
    use super::kernel::fragment::Fragment;
    #[pymodule_export]
    use super::kernel::library::{
        Plan, is_faster_unpacked, plan_layer_norm, plan_product, plan_reduce, plan_relayout, plan_rms_norm,
        plan_softmax,
    };
    #[pymodule_export]
    use super::kernel::named::{NamedKernel, blocks_of_machine, named_kernels, target_of_machine};
    #[pymodule_export]
    use super::kernel::number::{Flag, Number, fmax, fmin, maximum, minimum, where_};
    #[pymodule_export]
    use super::kernel::operator::operator_programs;
    #[pymodule_export]
    use super::kernel::pipeline::{Cursor, Pipeline, Stage, pipeline};
    #[pymodule_export]
    use super::kernel::predicates::{Predicates, predicates};
    #[pymodule_export]
    use super::kernel::program::{Program, write_kernel};
    #[pymodule_export]
    use super::kernel::statement::{
        Thread, barrier, block, block_dim, commit_async, commit_bulk, copy_tile, fence_async, fence_async_global,
        fragment, global_tensor, grid, grid_dim, index_of, launch_number, launch_size, mma, number, resident, shared,
        shuffle_xor, store_bulk, threads, wait_async, wait_bulk, wait_bulk_written, wait_mma, warp_barrier,
    };
    #[pymodule_export]
    use super::kernel::tile::{Distribution, Tile};
    #[pymodule_export]
    use super::kernel::tiled::{CopyAtom, TiledCopy, TiledMma};
    #[pymodule_export]
    use super::kernel::tiles::{TileProgram, element_name, read_tiles};
    #[pymodule_export]
    use super::kernel::trace::{is_tracing, writes_tiles};
    #[pymodule_export]
    use super::kernel::traced::Traced;
    #[pymodule_export]
    use super::kernel::tuning::{Problems, asked_count};
    #[pymodule_export]
    use super::kernel::view::View;
    #[pymodule_export]
    use super::layout::Layout;
    #[pymodule_export]
    use super::maps::{BitMatrix, LinearLayout, Morphism, Swizzle, Tiler};
    #[pymodule_export]
    use super::mesh::{Mesh, Operation, Processes, Product, Resharding, Sharded};
    #[pymodule_export]
    use super::numbers::{Expr, Step, Xor};
    #[pymodule_export]
    use super::object::{Object, evaluate, is_index, own_text, sizes_in};
    #[pymodule_export]
    use super::picture::{Picture, picture};
    #[pymodule_export]
    use super::read::{Reading, read};
    #[pymodule_export]
    use super::refusal::page;
    #[pymodule_export]
    use super::sanitize::{ptx_entries, sanitize_ptx};
    #[pymodule_export]
    use super::tensor::{Tensor, copy, gemm, zeros};
    #[pymodule_export]
    use super::write::{Comparison, same, write};
    #[pymodule_export]
    use super::writes::{check_arrays, mark_written};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("thread", super::kernel::traced::object(module.py(), Thread)?)?;
        // Added by `setattr`, which does not add the name to `__all__`.
        #[cfg(debug_assertions)]
        module.setattr("_on_a_worker", wrap_pyfunction!(interrupt::on_a_worker, module)?)?;
        function::attach(module)
    }
}
