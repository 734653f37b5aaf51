//! GEMM of partitions by tiled MMAs, for any atom that multiplies dense matrices.
//!
//! Law: [`gemm_partitions`] adds to each thread's accumulators what the instruction adds. For each
//! atom of the tiled MMA, and all rests `m`, `n` and `k` in order,
//!
//! ```text
//! C[i, j] = C[i, j] + A[i, l] * B[j, l]    for l = 0, 1, ..
//! ```
//!
//! where element `(i, l)` of A is value `v` of thread `t` of the atom if its thread-value layout
//! says so, and likewise for B and C. If several threads hold an element of an operand, the first
//! thread's value is used; all threads that hold an element of C get the sum.
//!
//! Products are added one by one, in the order of K, in the type of C. A hardware instruction may
//! round differently: its float sums are equal only if they are exact.
//!
//! (CuTe `gemm(tiled_mma, tCrA, tCrB, tCrC)`.)

use half::{bf16, f16};
use tilewright_layout::Layout;
use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma, ValueType};

use crate::error::TensorError;
use crate::gemm::SumElement;
use crate::offsets::Offsets;
use crate::tiled_copy::{Shape, partition};
use crate::view::{TensorView, TensorViewMut};

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that holds values of instructions.
pub trait Value: sealed::Sealed + Copy {
    /// The instruction types that it represents.
    const TYPES: &'static [ValueType];
}

/// A Rust type in which instructions accumulate.
pub trait Accumulator: Value + SumElement {}

macro_rules! values {
    ($($type:ty: $($value:ident),*;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Value for $type {
            const TYPES: &'static [ValueType] = &[$(ValueType::$value),*];
        }
    )*};
}

// TF32 is a binary32 of which instructions read 19 bits. The caller must have rounded it to that.
values! {
    f64: F64;
    f32: F32, TF32;
    f16: F16;
    bf16: BF16;
    i32: S32;
    i8: S8;
    u8: U8;
}

impl Accumulator for f64 {}
impl Accumulator for f32 {}
impl Accumulator for f16 {}
impl Accumulator for i32 {}

/// Multiplies the partitions of all threads, in the order of their numbers, and adds the products
/// to their accumulators (CuTe `gemm(tiled_mma, tCrA, tCrB, tCrC)`).
///
/// `a[t]`, `b[t]` and `c[t]` are the parts of thread `t` of A `(FrgV,RestM,RestK)`, of B
/// `(FrgV,RestN,RestK)` and of C `(FrgV,RestM,RestN)`: partitions ([`Instructed::partition_for`])
/// or fragments of their shape. An instruction of several threads reads the values of all of them,
/// so it takes the partitions of all. If the thread numbers have gaps, as in a quad pair of Volta,
/// the list of partitions has none.
///
/// Errors: an atom that the CPU does not compute: one with scale factors, sparse or saturating
/// (E0445); elements of another type than the values of the operand (E0424); as many partitions as
/// there are threads are expected, of three modes whose values and rests agree (E0425).
///
/// [`Instructed::partition_for`]: crate::Instructed::partition_for
///
/// ```
/// use half::f16;
/// use tilewright_layout::atoms::{MmaAtom, Operand, TiledMma};
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Instructed, Tensor, gemm_partitions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mma = TiledMma::from(MmaAtom::named("SM80_16x8x8_F32F16F16F32_TN")?);
/// let a = Tensor::from_fn("(16,8):(8,1)".parse::<Layout>()?, |index| f16::from_f32((index % 7) as f32))?;
/// let b = Tensor::from_fn("(8,8):(8,1)".parse::<Layout>()?, |index| f16::from_f32((index % 5) as f32))?;
/// let mut c = Tensor::filled("(16,8):(8,1)".parse::<Layout>()?, 0_f32)?;
///
/// let threads = (0..mma.threads()).map(|number| mma.get_slice(&number)).collect::<Result<Vec<_>, _>>()?;
/// let of_a = threads.iter().map(|thread| a.view().partition_for(thread, Operand::A));
/// let of_b = threads.iter().map(|thread| b.view().partition_for(thread, Operand::B));
/// let (of_a, of_b) = (of_a.collect::<Result<Vec<_>, _>>()?, of_b.collect::<Result<Vec<_>, _>>()?);
/// // Each thread's sums, in registers.
/// let own = threads.iter().map(|thread| c.view().partition_for(thread, Operand::C)?.load());
/// let mut sums = own.collect::<Result<Vec<_>, _>>()?;
/// let mut views: Vec<_> = sums.iter_mut().map(|sums| sums.view_mut()).collect();
/// gemm_partitions(&mma, &of_a, &of_b, &mut views)?;
/// for (thread, sums) in threads.iter().zip(&sums) {
///     c.view_mut().partition_for(thread, Operand::C)?.store(&sums.view())?;
/// }
///
/// let sum: f32 = (0..8).map(|l| a.get([3, l]).unwrap().to_f32() * b.get([5, l]).unwrap().to_f32()).sum();
/// assert_eq!(c.get([3, 5])?, &sum);
/// # Ok(())
/// # }
/// ```
pub fn gemm_partitions<A, B, C, LA, LB, LC>(
    mma: &TiledMma,
    a: &[TensorView<'_, A, LA>],
    b: &[TensorView<'_, B, LB>],
    c: &mut [TensorViewMut<'_, C, LC>],
) -> Result<(), TensorError>
where
    A: Value + Into<C>,
    B: Value + Into<C>,
    C: Accumulator,
    LA: Offsets,
    LB: Offsets,
    LC: Offsets,
{
    let atom = mma.atom();
    computable(atom)?;
    let types = atom.types();
    typed::<A>(atom, "A", types.a)?;
    typed::<B>(atom, "B", types.b)?;
    typed::<C>(atom, "C", types.c)?;
    let shapes = |what, found: Vec<Shape>, operand| shapes(mma, what, &found, operand);
    let [m, k] = shapes("A", a.iter().map(Shape::of_view).collect(), Operand::A)?;
    let [n, b_k] = shapes("B", b.iter().map(Shape::of_view).collect(), Operand::B)?;
    let [c_m, c_n] = shapes("C", c.iter().map(Shape::of_mut).collect(), Operand::C)?;
    if [m, n, k] != [c_m, c_n, b_k] {
        let expected = format!("rests (RestM,RestN) = ({m},{n}) of C, and one RestK");
        return Err(partition("C", expected, format!("({c_m},{c_n}), with RestK {k} of A and {b_k} of B")));
    }
    let operands = [held(atom, Operand::A)?, held(atom, Operand::B)?, held(atom, Operand::C)?];
    let [rows, columns, terms] = atom.shape().map(|extent| usize::try_from(extent).unwrap_or(0));
    let mut factor_a = vec![C::default(); rows * terms];
    let mut factor_b = vec![C::default(); columns * terms];
    let mut sums = vec![C::default(); rows * columns];
    for group in groups(mma)? {
        for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
            collect(&operands[2], &group, |thread, value| Ok(*element(c, thread)?.get([value, i, j])?), &mut sums)?;
            for l in 0..k {
                let of_a = |thread, value| Ok((*element(a, thread)?.get([value, i, l])?).into());
                let of_b = |thread, value| Ok((*element(b, thread)?.get([value, j, l])?).into());
                collect(&operands[0], &group, of_a, &mut factor_a)?;
                collect(&operands[1], &group, of_b, &mut factor_b)?;
                for (at, sum) in sums.iter_mut().enumerate() {
                    let (row, column) = (at % rows, at / rows);
                    let of_row = factor_a.iter().skip(row).step_by(rows);
                    let of_column = factor_b.iter().skip(column).step_by(columns);
                    *sum = of_row.zip(of_column).fold(*sum, |sum, (a, b)| sum.plus(*a, *b));
                }
            }
            for (v, thread) in group.iter().enumerate() {
                for value in 0..operands[2].values {
                    let place = operands[2].place(group.len(), v, value)?;
                    if let (Some(sum), Some(c)) = (sums.get(place), c.get_mut(*thread)) {
                        c.set([value, i, j], *sum)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The view of one thread.
fn element<V>(views: &[V], thread: usize) -> Result<&V, TensorError> {
    let missing = || partition("a thread", "a partition for it".into(), format!("none for thread {thread}"));
    views.get(thread).ok_or_else(missing)
}

/// The thread and value that hold each element of an operand of the atom.
struct OperandHolders {
    layout: Layout,
    values: i64,
}

impl OperandHolders {
    /// The index in the tile of a value of thread `v` of `threads`.
    fn place(&self, threads: usize, v: usize, value: i64) -> Result<usize, TensorError> {
        Ok(usize::try_from(self.layout.eval(&(v as i64 + threads as i64 * value))?).unwrap_or(usize::MAX))
    }
}

fn held(atom: &MmaAtom, operand: Operand) -> Result<OperandHolders, TensorError> {
    let Some(held) = atom.operand(operand) else { return Err(unsupported(atom, "it takes no such operand")) };
    if held.copies() != 1 {
        return Err(unsupported(atom, "its threads hold values several times"));
    }
    Ok(OperandHolders { layout: held.layout().clone(), values: held.values() })
}

/// Writes the elements of an operand to its tile. The first thread that holds an element is written
/// last.
fn collect<C>(
    held: &OperandHolders,
    group: &[usize],
    get: impl Fn(usize, i64) -> Result<C, TensorError>,
    tile: &mut [C],
) -> Result<(), TensorError> {
    for (v, thread) in group.iter().enumerate().rev() {
        for value in 0..held.values {
            if let Some(place) = tile.get_mut(held.place(group.len(), v, value)?) {
                *place = get(*thread, value)?;
            }
        }
    }
    Ok(())
}

/// The threads of each atom, in the order in which the atom counts them, as ranks among all thread
/// numbers.
fn groups(mma: &TiledMma) -> Result<Vec<Vec<usize>>, TensorError> {
    let layout = mma.thread_layout();
    let numbers = (0..layout.size()).map(|index| layout.eval(&index)).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let ranks: Vec<usize> = numbers.iter().map(|number| sorted.partition_point(|other| other < number)).collect();
    let of_atom = layout.mode(0).map_or(1, |threads| threads.size());
    Ok(ranks.chunks(usize::try_from(of_atom).unwrap_or(1).max(1)).map(<[usize]>::to_vec).collect())
}

/// The rests of the partitions of an operand. An error if the partitions are not those of all
/// threads, or disagree.
fn shapes(mma: &TiledMma, what: &str, found: &[Shape], operand: Operand) -> Result<[i64; 2], TensorError> {
    let threads = mma.thread_layout().size();
    if i64::try_from(found.len()) != Ok(threads) {
        let expected = format!("{threads} partitions, one for each thread");
        return Err(partition(what, expected, found.len().to_string()));
    }
    let values = held(mma.atom(), operand)?.values;
    let mut rests = None;
    for shape in found {
        let [first, second] = shape.rests.as_slice() else {
            return Err(partition(what, "three modes".into(), (shape.rests.len() + 1).to_string()));
        };
        let same = rests.is_none_or(|rests| rests == [*first, *second]);
        if shape.values != values || !same {
            let [m, n] = rests.unwrap_or([*first, *second]);
            let shape = format!("({},{first},{second})", shape.values);
            return Err(partition(what, format!("shape ({values},{m},{n})"), shape));
        }
        rests = Some([*first, *second]);
    }
    Ok(rests.unwrap_or([1, 1]))
}

/// An error if an atom computes something other than a plain dense product.
fn computable(atom: &MmaAtom) -> Result<(), TensorError> {
    if atom.operands().any(|(operand, _)| !matches!(operand, Operand::A | Operand::B | Operand::C)) {
        return Err(unsupported(atom, "it takes scale factors or is sparse"));
    }
    if atom.name().contains("SATURATE") {
        return Err(unsupported(atom, "its sums saturate"));
    }
    if atom.types().c != atom.types().d {
        return Err(unsupported(atom, "its C and D have different types"));
    }
    Ok(())
}

fn unsupported(atom: &MmaAtom, why: &'static str) -> TensorError {
    TensorError::NotComputed { atom: atom.name().into(), why }
}

/// An error if elements have another type than the values of an operand.
fn typed<T: Value>(atom: &MmaAtom, what: &'static str, expected: ValueType) -> Result<(), TensorError> {
    if T::TYPES.contains(&expected) {
        return Ok(());
    }
    let found = T::TYPES.first().map_or(String::new(), ValueType::to_string);
    let (atom, expected) = (atom.name().into(), expected.to_string().into());
    Err(TensorError::Values { what, atom, expected, found: found.into() })
}
