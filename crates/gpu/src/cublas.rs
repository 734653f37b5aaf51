//! cuBLAS, if it is installed: a library to compare times with.
//!
//! Law: nothing in this crate needs cuBLAS. It is opened by name at run time, like the driver. It
//! gets a GEMM only with memory that contains the matrices.
//!
//! Reason for unsafe code: a library is loaded, its symbols are cast to functions, and device
//! addresses are passed to them.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_longlong, c_void};
use std::fmt;
use std::sync::Arc;

use libloading::Library;

use crate::context::Context;
use crate::device::Device;
use crate::driver::StreamHandle;
use crate::element::ElementType;
use crate::error::GpuError;
use crate::memory::Memory;
use crate::stream::Stream;

/// The names of the library, the latest first.
#[cfg(not(windows))]
const LIBRARIES: &[&str] = &["libcublas.so.13", "libcublas.so.12", "libcublas.so"];
#[cfg(windows)]
const LIBRARIES: &[&str] = &["cublas64_13.dll", "cublas64_12.dll"];

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, StreamHandle) -> c_int;
/// cublasGemmStridedBatchedEx.
type Gemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    *mut c_void,
    c_int,
    c_int,
    c_longlong,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// A cuBLAS handle on a device.
pub struct Cublas {
    context: Arc<Context>,
    handle: Handle,
    destroy: Destroy,
    set_stream: SetStream,
    gemm: Gemm,
    name: &'static str,
}

/// The layout of a matrix of a [`CublasProduct`]: contiguous lines at one stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CublasMatrix {
    /// Whether the lines are rows. If not, they are columns.
    pub rows: bool,
    /// The leading dimension: the stride between lines, in elements.
    pub line: i64,
    /// The stride between matrices of a batch, in elements.
    pub step: i64,
}

/// A GEMM `D = A B` of matrices `M x K` and `K x N`, or a batch of GEMMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CublasProduct {
    /// M, N and K.
    pub sizes: [i64; 3],
    /// The number of matrices of the batch.
    pub batch: i64,
    /// The type of A and B: bf16, f16, f32, f64 or s8.
    pub operands: ElementType,
    /// Whether operands of f32 may be rounded to tf32.
    pub tf32: bool,
    /// The type of D.
    pub result: ElementType,
    /// The layout of A.
    pub a: CublasMatrix,
    /// The layout of B.
    pub b: CublasMatrix,
    /// The layout of D.
    pub d: CublasMatrix,
}

/// An operand in the library's convention, which is column-major.
struct CublasOperand<'m> {
    memory: &'m Memory,
    matrix: CublasMatrix,
    /// The number of rows or columns of D that it determines.
    lines: i64,
    /// 1 if it is transposed, otherwise 0.
    transposed: c_int,
}

impl CublasProduct {
    /// Whether the memories contain A, B and D.
    fn fits(&self, [a, b, d]: [&Memory; 3]) -> bool {
        let [m, n, k] = self.sizes;
        let fits = |matrix: &CublasMatrix, [rows, columns]: [i64; 2], element: ElementType, memory: &Memory| {
            let (lines, line) = if matrix.rows { (rows, columns) } else { (columns, rows) };
            let last = (self.batch - 1)
                .checked_mul(matrix.step)
                .and_then(|at| at.checked_add((lines - 1).checked_mul(matrix.line)?))
                .and_then(|at| at.checked_add(line)?.checked_mul(element.bytes() as i64));
            let positive = rows > 0 && columns > 0 && self.batch > 0 && matrix.step >= 0 && matrix.line >= line;
            positive && last.is_some_and(|last| last as u64 <= memory.bytes())
        };
        fits(&self.a, [m, k], self.operands, a)
            && fits(&self.b, [k, n], self.operands, b)
            && fits(&self.d, [m, n], self.result, d)
    }

    /// The operands in the library's order. If D is row-major, the library computes the transpose
    /// of D, and A and B are swapped.
    fn operands_in_order<'m>(&self, [a, b]: [&'m Memory; 2]) -> [CublasOperand<'m>; 2] {
        let [m, n, _] = self.sizes;
        // A matrix with the same contiguous dimension as D is passed without a transposition.
        let operand = |memory, matrix: CublasMatrix, lines| {
            let transposed = c_int::from(matrix.rows != self.d.rows);
            CublasOperand { memory, matrix, lines, transposed }
        };
        let (left, right) = (operand(a, self.a, m), operand(b, self.b, n));
        if self.d.rows { [right, left] } else { [left, right] }
    }

    /// The number in `cublasComputeType_t`.
    fn compute_type(&self) -> c_int {
        match (self.operands, self.tf32) {
            (ElementType::S8, _) => 72,
            (ElementType::F64, _) => 70,
            (ElementType::F32, true) => 77,
            _ => 68,
        }
    }
}

/// The number of a type in `cudaDataType_t`.
fn data_type(element: ElementType) -> Result<c_int, CublasError> {
    match element {
        ElementType::F32 => Ok(0),
        ElementType::F64 => Ok(1),
        ElementType::F16 => Ok(2),
        ElementType::S8 => Ok(3),
        ElementType::S32 => Ok(10),
        ElementType::BF16 => Ok(14),
        _ => Err(CublasError::Unfit("a type is none of its interface")),
    }
}

fn int(number: i64) -> Result<c_int, CublasError> {
    c_int::try_from(number).map_err(|_| CublasError::Unfit("a size has more than 31 bits"))
}

/// Why cuBLAS did not compute the product.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CublasError {
    /// A type or a size that the interface does not support, or memory that is too small.
    Unfit(&'static str),
    /// The library returned this status.
    Status(i32),
    /// The driver refused.
    Gpu(GpuError),
}

impl fmt::Display for CublasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CublasError::Unfit(what) => write!(f, "cuBLAS does not support this GEMM: {what}"),
            CublasError::Status(status) => write!(f, "cuBLAS answered with status {status}"),
            CublasError::Gpu(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CublasError {}

tilewright_layout::from_variants!(CublasError: Gpu(GpuError));

impl Cublas {
    /// Opens the library on a device; None if there is none that can be used.
    pub fn open(device: &Device) -> Option<Cublas> {
        LIBRARIES.iter().find_map(|name| Cublas::named(device, name))
    }

    fn named(device: &Device, name: &'static str) -> Option<Cublas> {
        // SAFETY: a program may run the initialisers of this library. It is never unloaded, because
        // its kernels stay with the context.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new(name) }.ok()?));
        // SAFETY: the symbols are the functions of these names, with the parameters of the header.
        let (create, destroy, set_stream, gemm) = unsafe {
            (
                *library.get::<Create>("cublasCreate_v2").ok()?,
                *library.get::<Destroy>("cublasDestroy_v2").ok()?,
                *library.get::<SetStream>("cublasSetStream_v2").ok()?,
                *library.get::<Gemm>("cublasGemmStridedBatchedEx").ok()?,
            )
        };
        let context = device.context().clone();
        let mut handle: Handle = std::ptr::null_mut();
        // SAFETY: the library writes a handle to a variable of that type, with the context current.
        let status = context.attempt(|_| unsafe { create(&raw mut handle) }).ok()?;
        (status == 0 && !handle.is_null()).then_some(Cublas { context, handle, destroy, set_stream, gemm, name })
    }

    /// The name under which the library was found.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Enqueues a GEMM on a stream, and returns at once.
    ///
    /// Errors: a type or a layout that the interface does not support; memory of another device, or
    /// too small; the library or the driver refused.
    pub fn multiply(
        &self,
        stream: &Stream,
        product: &CublasProduct,
        [a, b]: [&Memory; 2],
        d: &mut Memory,
    ) -> Result<(), CublasError> {
        for memory in [a, b, &*d] {
            self.context.same(memory.context(), "the memory")?;
        }
        self.context.same(stream.context(), "the stream")?;
        if !product.fits([a, b, &*d]) {
            return Err(CublasError::Unfit("the memory does not hold the matrices"));
        }
        let [left, right] = product.operands_in_order([a, b]);
        // Alpha and beta have the type of the accumulators: the lowest bytes of these words.
        let (one, zero): (u64, u64) = match product.operands {
            ElementType::S8 => (1, 0),
            ElementType::F64 => (1.0_f64.to_bits(), 0),
            _ => (1.0_f32.to_bits().into(), 0),
        };
        let [rows, columns, depth, count] =
            [int(left.lines)?, int(right.lines)?, int(product.sizes[2])?, int(product.batch)?];
        let [line_left, line_right, line_d] = [int(left.matrix.line)?, int(right.matrix.line)?, int(product.d.line)?];
        let (operands, result) = (data_type(product.operands)?, data_type(product.result)?);
        let mut status = 0;
        self.context.attempt(|_| {
            // SAFETY: the matrices are in memory of this context, which is current, as was checked
            // above; the library reads alpha and beta before the call returns.
            status = unsafe { (self.set_stream)(self.handle, stream.handle()) };
            if status == 0 {
                // SAFETY: as above.
                status = unsafe {
                    (self.gemm)(
                        self.handle,
                        left.transposed,
                        right.transposed,
                        rows,
                        columns,
                        depth,
                        (&raw const one).cast(),
                        left.memory.address() as *const c_void,
                        operands,
                        line_left,
                        left.matrix.step,
                        right.memory.address() as *const c_void,
                        operands,
                        line_right,
                        right.matrix.step,
                        (&raw const zero).cast(),
                        d.address() as *mut c_void,
                        result,
                        line_d,
                        product.d.step,
                        count,
                        product.compute_type(),
                        -1,
                    )
                };
            }
        })?;
        if status == 0 { Ok(()) } else { Err(CublasError::Status(status)) }
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        let (destroy, handle) = (self.destroy, self.handle);
        // SAFETY: the handle is destroyed once.
        let _ = self.context.attempt(|_| unsafe { destroy(handle) });
    }
}

impl fmt::Debug for Cublas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cublas({}, device {})", self.name, self.context.ordinal())
    }
}
