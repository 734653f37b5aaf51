//! GEMM on the CPU.
//!
//! **Law.** `gemm(mma, alpha, a, b, beta, c)` sets `C(i,j)` to `alpha * (sum over k of A(i,k) *
//! B(j,k)) + beta * C(i,j)`, for all `i < M` and `j < N`; nothing else changes. The bounds on the
//! error and the memory are those of [`gemm`].
//!
//! The modules, from the outside in: `route` (which micro-kernels an atom selects), `product` (the
//! operands), `plan` with `blocking` and `tasks` (how the GEMM is divided), `small` and `task` (the
//! loops), `source` with `pack` (operands, packed or in place), `tile` (tiles of C), `kernel`
//! (micro-kernels).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocking;
mod element;
mod kernel;
mod line;
mod pack;
mod plan;
mod portable;
mod prefetch;
mod product;
mod route;
mod shared;
mod small;
mod source;
mod task;
mod tasks;
mod tile;
mod tilings;
mod workspace;

use tilewright_layout::atoms::{MmaAtom, TiledMma};
use tilewright_layout::{Layout, Tiler};

use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::threads;
use crate::view::{TensorView, TensorViewMut};
pub use element::SumElement;
use line::DimensionOffsets;
use product::{MatrixPlaces, Product, ProductOperand, ProductTarget};
pub use route::Numbers;
use route::Route;
pub use tilings::{Tilings, tilings};

/// The GEMM `C = alpha * A * B + beta * C`, with A of `(M,K)`, B of `(N,K)` and C of `(M,N)`. The
/// last modes of A and B are summed over, as in all matrix instructions.
///
/// Each matrix is a view of two modes, nested or not, under any layout. The atom of `mma` says
/// which micro-kernel computes ([`cpu_atoms`]), and the number of its threads is the largest number
/// of threads that take part; the `rayon` pool must have them. Only the order in which sums are
/// rounded depends on either. A permutation of `mma` changes nothing.
///
/// With `beta = 0` the old C is not read, so a NaN there is overwritten. With `alpha = 0` A and B
/// are still multiplied, so a NaN in them remains.
///
/// # Accuracy
///
/// Floats are added in an unspecified order. Each element of C differs from the exact result by at
/// most `gamma(k+3) * (|alpha| |A| |B| + |beta| |C|)`, where `gamma(n) = n*u / (1 - n*u)` and `u`
/// is half of the distance from 1 to the next number (Higham, "Accuracy and Stability of Numerical
/// Algorithms", 3.5). This bound ignores overflow and underflow: if `|A| |B|` exceeds the largest
/// finite number, a partial sum may become infinite although the sum does not. The dot products of
/// AVX-512-BF16 treat subnormal numbers as zero.
///
/// Sums of `i8` products are exact modulo `2^32`: the result is exact if it fits into an `i32`, and
/// wraps otherwise.
///
/// # Memory
///
/// Each thread keeps one workspace: a panel of B (at most 4 MiB and a slice), a block of A (at most
/// half of an L2 cache, or 2 MiB, and a slice), the offsets of their rows, columns and steps, and
/// one slice of numbers for an operand whose layout is not additive. Threads that each compute some
/// columns of C with all rows share the packed blocks of A, where all of them take no more than
/// half of an L2 cache a thread, and 8 MiB. GEMMs of up to eight million multiplications (a
/// million, on several threads) whose operands can be read in place need no workspace.
///
/// Errors: an atom that has no micro-kernel for these types ([`TensorError::NoKernel`]), or one
/// whose instructions this machine does not have ([`TensorError::Instructions`]); threads along K
/// ([`TensorError::ThreadsAlongK`]); an operand that does not have two modes
/// ([`TensorError::NoMatrix`]); extents that do not agree ([`TensorError::Product`]).
///
/// ```
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Tensor, cpu_mma, gemm};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A by rows, B by columns, and C in tiles of 2 by 2.
/// let a = Tensor::from_fn("(4,3):(3,1)".parse::<Layout>()?, |index| index as f64)?;
/// let b = Tensor::from_fn("(2,3):(1,2)".parse::<Layout>()?, |index| index as f64)?;
/// let mut c = Tensor::filled("((2,2),2):((1,4),2)".parse::<Layout>()?, f64::NAN)?;
/// gemm(&cpu_mma::<f64>(1)?, 1.0, &a.view(), &b.view(), 0.0, &mut c.view_mut())?;
///
/// // Row 1 of A is (1,5,9), row 1 of B (1,3,5): with A(i,k) = i + 4k and B(j,k) = j + 2k.
/// assert_eq!(c.get([1, 1])?, &(1.0 * 1.0 + 5.0 * 3.0 + 9.0 * 5.0));
/// # Ok(())
/// # }
/// ```
pub fn gemm<S: Numbers, LA: Offsets, LB: Offsets, LC: Offsets>(
    mma: &TiledMma,
    alpha: S::Sum,
    a: &TensorView<'_, S, LA>,
    b: &TensorView<'_, S, LB>,
    beta: S::Sum,
    c: &mut TensorViewMut<'_, S::Sum, LC>,
) -> Result<(), TensorError> {
    with_product(mma, [alpha, beta], a, b, c, |route, product| {
        #[allow(unsafe_code)]
        // SAFETY: `with_product` refuses a route whose instructions are not available.
        unsafe {
            (route.run)(product);
        }
    })
}

/// Calls `compute` with the route of the atom and the GEMM of these operands, if their extents
/// match and the instructions are available.
#[inline]
fn with_product<S: Numbers, LA: Offsets, LB: Offsets, LC: Offsets, R>(
    mma: &TiledMma,
    [alpha, beta]: [S::Sum; 2],
    a: &TensorView<'_, S, LA>,
    b: &TensorView<'_, S, LB>,
    c: &mut TensorViewMut<'_, S::Sum, LC>,
    compute: impl FnOnce(&'static Route<S>, &Product<'_, S, S::Sum>) -> R,
) -> Result<R, TensorError> {
    let route = route::<S>(mma.atom())?;
    if mma.atom_layout().size() > 1 && mma.atom_layout().mode(2).is_some_and(|along| along.size() > 1) {
        return Err(TensorError::ThreadsAlongK { atoms: mma.atom_layout().to_string().into() });
    }
    let to = c.as_mut_ptr();
    let (a_at, b_at, c_at) = (offset_of(a.layout(), 'A')?, offset_of(b.layout(), 'B')?, offset_of(c.layout(), 'C')?);
    let (a_places, [m, k]) = places(a.layout(), &a_at)?;
    let (b_places, [n, b_k]) = places(b.layout(), &b_at)?;
    let (c_places, [c_m, c_n]) = places(c.layout(), &c_at)?;
    if b_k != k || c_m != m || c_n != n {
        return Err(TensorError::Product { a: [m, k], b: [n, b_k], c: [c_m, c_n] });
    }
    let mut product = Product {
        extents: [m, n, k],
        alpha,
        beta,
        a: ProductOperand { from: a.as_ptr(), places: a_places },
        b: ProductOperand { from: b.as_ptr(), places: b_places },
        c: ProductTarget { to, places: c_places },
        threads: usize::try_from(mma.threads()).unwrap_or(usize::MAX),
        transposed: false,
    };
    product.transpose_to_columns();
    Ok(compute(route, &product))
}

/// The route of an atom, if its instructions are available.
fn route<S: Numbers>(atom: &MmaAtom) -> Result<&'static Route<S>, TensorError> {
    let Some(route) = S::ROUTES.iter().find(|route| route.name == atom.name()) else {
        let known = S::ROUTES.iter().map(|route| route.name).collect();
        return Err(TensorError::NoKernel { atom: atom.name().into(), known });
    };
    if !(route.available)() {
        return Err(TensorError::Instructions { atom: route.name });
    }
    Ok(route)
}

/// The function from a row and a column to the offset, of a layout of two modes.
fn offset_of<L: Offsets>(layout: &L, operand: char) -> Result<impl Fn(usize, usize) -> isize + Sync, TensorError> {
    if layout.rank() != 2 {
        return Err(TensorError::NoMatrix { operand, layout: layout.to_string().into() });
    }
    let rows = match layout.leaves() {
        Some(_) => 0,
        None => layout.shape().mode(0).map_or(1, |rows| rows.leaves().iter().product()),
    };
    // Every index of the layout has an offset; the offset of index 0 is returned for indices that
    // do not occur.
    let first = layout.offset(0)?;
    Ok(move |row: usize, column: usize| layout.offset(row as i64 + rows * column as i64).unwrap_or(first) as isize)
}

/// The offsets of a matrix's elements, and its extents.
#[inline]
fn places<'a>(
    layout: &impl Offsets,
    offset: &'a (impl Fn(usize, usize) -> isize + Sync),
) -> Result<(MatrixPlaces<'a>, [usize; 2]), TensorError> {
    if let Some((rows, columns)) = DimensionOffsets::pair(layout) {
        let extents = [rows.extent(), columns.extent()];
        return Ok((MatrixPlaces::Lines(rows, columns), extents));
    }
    let shape = layout.shape();
    let extent = |mode: usize| shape.mode(mode).map_or(1, |mode| mode.leaves().iter().product::<i64>()) as usize;
    Ok((MatrixPlaces::Each(offset), [extent(0), extent(1)]))
}

/// The atoms whose micro-kernels multiply these numbers on this machine, the fastest first. The
/// last one is available on every machine.
///
/// ```
/// use tilewright_tensor::cpu_atoms;
///
/// let portable = cpu_atoms::<f32>()?.pop().expect("one that is always there");
/// assert_eq!(portable.name(), "PORTABLE_16x2x1_F32F32F32F32");
/// # Ok::<(), tilewright_tensor::TensorError>(())
/// ```
///
/// Errors: none are known. The atoms are checked like any others.
pub fn cpu_atoms<S: Numbers>() -> Result<Vec<MmaAtom>, TensorError> {
    let routes = S::ROUTES.iter().filter(|route| (route.available)());
    routes.map(|route| Ok(MmaAtom::cpu(route.arch, route.shape, S::TYPES)?)).collect()
}

/// The fastest atom for these numbers on this machine, on this many threads along N; 0 means all
/// threads of the `rayon` pool.
///
/// ```
/// use tilewright_tensor::cpu_mma;
///
/// let mma = cpu_mma::<f32>(2)?;
/// assert_eq!(mma.threads(), 2);
/// # Ok::<(), tilewright_tensor::TensorError>(())
/// ```
///
/// Errors: as [`cpu_atoms`].
pub fn cpu_mma<S: Numbers>(threads: usize) -> Result<TiledMma, TensorError> {
    let mut best = S::ROUTES.iter().filter(|route| (route.available)());
    let Some(route) = best.next() else {
        return Err(TensorError::NoKernel { atom: "".into(), known: Vec::new() });
    };
    cpu_mma_of(MmaAtom::cpu(route.arch, route.shape, S::TYPES)?, threads)
}

/// The tiled MMA of an atom on this many threads along N, as in [`cpu_mma`].
///
/// Errors: [`TensorError::Atom`] of [`TiledMma::new`].
pub fn cpu_mma_of(atom: MmaAtom, threads: usize) -> Result<TiledMma, TensorError> {
    let threads = if threads == 0 { threads::count() } else { threads };
    let layout = Layout::compact(&tilewright_layout::Tree::flat([1, i64::try_from(threads).unwrap_or(i64::MAX), 1])?)?;
    let whole = Tiler::modes([])?;
    Ok(TiledMma::new(atom, &layout, &whole)?)
}

/// Multiplies and adds in registers alone, with the instructions of an atom: `steps` steps in each
/// of a number of chains. Returns the number of multiplications. Divided by the measured time, this
/// is the peak rate of the atom.
///
/// Errors: as [`gemm`], of the atom.
///
/// ```
/// use tilewright_tensor::{cpu_atoms, multiply_adds};
///
/// let atom = &cpu_atoms::<f32>()?[0];
/// assert_eq!(multiply_adds::<f32>(atom, 100)?, 100 * multiply_adds::<f32>(atom, 1)?);
/// # Ok::<(), tilewright_tensor::TensorError>(())
/// ```
pub fn multiply_adds<S: Numbers>(atom: &MmaAtom, steps: usize) -> Result<u64, TensorError> {
    let route = route::<S>(atom)?;
    #[allow(unsafe_code)]
    // SAFETY: `route` refuses one whose instructions are not available.
    Ok(unsafe { (route.multiply_adds)(steps) })
}
