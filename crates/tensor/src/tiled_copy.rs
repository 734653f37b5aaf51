//! Copies of partitions by tiled copies.
//!
//! Law: if a thread has the same elements at both ends of the instruction, `copy_thread(thread,
//! src, dst)` makes `dst(i) = src(i)`, and [`copy_thread_if`] does so where the predicate is true.
//! An instruction that moves values between threads runs on the partitions of all of them:
//! [`copy_threads`] makes `dst[t'](v', rest) = src[t](v, rest)` if `source(t, v) = destination(t',
//! v')` in the thread-value layouts of the tiled copy.
//!
//! Partitions are those of [`Instructed::partition_at`](crate::Instructed::partition_at), or
//! fragments of their shape: mode 0 holds the values of a thread; the other modes are the rests,
//! the repetitions of the tile.
//!
//! (CuTe `copy(tiled_copy, src, dst)` and `copy_if(tiled_copy, pred, src, dst)`.)

use tilewright_layout::atoms::{CopyEnd, ThreadCopy, TiledCopy};

use crate::error::TensorError;
use crate::offsets::Offsets;
use crate::view::{TensorView, TensorViewMut};

/// Copies one thread's partition (CuTe `copy(tiled_copy, src, dst)`).
///
/// Errors: the instruction moves values between threads (E0423: take [`copy_threads`]); elements of
/// another width than the values of the copy (E0424); partitions whose values or rests do not agree
/// with the copy or each other (E0425).
///
/// ```
/// use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Instructed, Tensor, copy_thread};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // 4 x 2 threads, each with 4 numbers of a row, over 4 x 16.
/// let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>")?;
/// let copy = TiledCopy::new(atom, 32, &"(4,2):(2,1)".parse()?, &"(1,4):(4,1)".parse()?)?;
/// let rows: Layout = "(4,16):(16,1)".parse()?;
/// let src = Tensor::from_fn(rows.clone(), |index| index as f32)?;
/// let mut dst = Tensor::filled(rows, 0_f32)?;
/// for number in 0..copy.threads() {
///     let thread = copy.get_slice(&number)?;
///     let from = src.view().partition_at(&thread, CopyEnd::Source)?;
///     let mut to = dst.view_mut().partition_at(&thread, CopyEnd::Destination)?;
///     copy_thread(&thread, &from, &mut to)?;
/// }
/// assert_eq!(src.as_slice(), dst.as_slice());
/// # Ok(())
/// # }
/// ```
pub fn copy_thread<T: Copy, S: Offsets, D: Offsets>(
    thread: &ThreadCopy<'_>,
    src: &TensorView<'_, T, S>,
    dst: &mut TensorViewMut<'_, T, D>,
) -> Result<(), TensorError> {
    own_values::<T>(thread.copy())?;
    let values = values(thread.copy(), CopyEnd::Source)?;
    let rests = rests("the source", &Shape::of_view(src), values)?;
    agree("the destination", &Shape::of_mut(dst), values, rests)?;
    for (to, from) in dst.iter_mut().zip(src.iter()) {
        *to = *from;
    }
    Ok(())
}

/// Copies one thread's partition where a predicate is true, and leaves the other elements unchanged
/// (CuTe `copy_if(tiled_copy, pred, src, dst)`).
///
/// The predicate has either a boolean for each rest, which applies to all values of the
/// instruction, as in CuTe; or a boolean for each element.
///
/// Errors: as [`copy_thread`]; a predicate of another size (E0425).
///
/// ```
/// use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{CoordinateTensor, Instructed, Tensor, copy_thread_if};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A tensor of 6 rows in a buffer of 8, of which the last two are not to be touched.
/// let atom = CopyAtom::named("UniversalCopy<uint32_t>")?;
/// let copy = TiledCopy::new(atom, 32, &"(4,2):(2,1)".parse()?, &"(1,1)".parse()?)?;
/// let rows: Layout = "(8,2):(2,1)".parse()?;
/// let src = Tensor::from_fn(rows.clone(), |index| index as f32)?;
/// let mut dst = Tensor::filled(rows, -1_f32)?;
/// let at = CoordinateTensor::identity(&src.shape())?;
/// for number in 0..copy.threads() {
///     let thread = copy.get_slice(&number)?;
///     let inside = at.partition_at(&thread, CopyEnd::Source)?.elem_less(&"(6,2)".parse()?)?;
///     let from = src.view().partition_at(&thread, CopyEnd::Source)?;
///     let mut to = dst.view_mut().partition_at(&thread, CopyEnd::Destination)?;
///     copy_thread_if(&thread, &inside.view(), &from, &mut to)?;
/// }
/// assert_eq!((dst.get([5, 1])?, dst.get([6, 0])?), (src.get([5, 1])?, &-1.0));
/// # Ok(())
/// # }
/// ```
pub fn copy_thread_if<T: Copy, P: Offsets, S: Offsets, D: Offsets>(
    thread: &ThreadCopy<'_>,
    predicate: &TensorView<'_, bool, P>,
    src: &TensorView<'_, T, S>,
    dst: &mut TensorViewMut<'_, T, D>,
) -> Result<(), TensorError> {
    own_values::<T>(thread.copy())?;
    let values = values(thread.copy(), CopyEnd::Source)?;
    let rests = rests("the source", &Shape::of_view(src), values)?;
    agree("the destination", &Shape::of_mut(dst), values, rests)?;
    let repeat = match predicate.size() {
        size if size == dst.size() => 1,
        size if size == rests => values,
        size => {
            let expected = format!("{rests} booleans, one for each rest, or {}, one for each element", dst.size());
            return Err(partition("the predicate", expected, size.to_string()));
        }
    };
    let holds = predicate.iter().flat_map(|holds| std::iter::repeat_n(*holds, repeat as usize));
    for ((to, from), holds) in dst.iter_mut().zip(src.iter()).zip(holds) {
        if holds {
            *to = *from;
        }
    }
    Ok(())
}

/// Copies the partitions of all threads, in the order of their numbers, by an instruction that
/// moves values between threads, such as `ldmatrix`.
///
/// `src[t]` is the partition of thread `t` at the source and `dst[t]` that at the destination, or a
/// fragment of its shape.
///
/// Errors: elements of another width than the values of the copy (E0424); as many partitions as
/// there are threads are expected, with values and rests that agree (E0425).
///
/// ```
/// use tilewright_layout::atoms::{CopyAtom, CopyEnd, TiledCopy};
/// use tilewright_layout::Layout;
/// use tilewright_tensor::{Instructed, Tensor, copy_threads};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // One matrix of 8 x 8 halves: thread 5 names row 5, and gets columns 2 and 3 of row 1.
/// let atom = CopyAtom::named("SM75_U32x1_LDSM_N")?;
/// let copy = TiledCopy::new(atom, 16, &"(8,4):(4,1)".parse()?, &"(1,2)".parse()?)?;
/// let tile = Tensor::from_fn("(8,8):(8,1)".parse::<Layout>()?, |index| index as u16)?;
/// let threads = (0..32).map(|number| copy.get_slice(&number)).collect::<Result<Vec<_>, _>>()?;
/// let parts = threads.iter().map(|thread| tile.view().partition_at(thread, CopyEnd::Source));
/// let parts = parts.collect::<Result<Vec<_>, _>>()?;
/// let own = threads.iter().map(|thread| tile.view().partition_at(thread, CopyEnd::Destination));
/// let own = own.collect::<Result<Vec<_>, _>>()?;
/// let mut fragments = own.iter().map(|own| own.fragment_like::<u16>()).collect::<Result<Vec<_>, _>>()?;
/// let mut views: Vec<_> = fragments.iter_mut().map(|fragment| fragment.view_mut()).collect();
/// copy_threads(&copy, &parts, &mut views)?;
/// assert_eq!(fragments[5].as_slice(), [*tile.get([1, 2])?, *tile.get([1, 3])?]);
/// # Ok(())
/// # }
/// ```
pub fn copy_threads<T: Copy, S: Offsets, D: Offsets>(
    copy: &TiledCopy,
    src: &[TensorView<'_, T, S>],
    dst: &mut [TensorViewMut<'_, T, D>],
) -> Result<(), TensorError> {
    width::<T>(copy)?;
    let [from, to] = [CopyEnd::Source, CopyEnd::Destination].map(|end| copy.thread_values(end));
    let ([from, to], threads) = ([from?, to?], copy.threads());
    for (what, found) in [("the sources", src.len()), ("the destinations", dst.len())] {
        if i64::try_from(found) != Ok(threads) {
            return Err(partition(what, format!("{threads} partitions, one for each thread"), found.to_string()));
        }
    }
    let (own, given) = (values(copy, CopyEnd::Source)?, values(copy, CopyEnd::Destination)?);
    let first = src.first().map_or(Ok(1), |src| rests("the source", &Shape::of_view(src), own))?;
    for src in src {
        agree("a source", &Shape::of_view(src), own, first)?;
    }
    for dst in dst.iter() {
        agree("a destination", &Shape::of_mut(dst), given, first)?;
    }
    // The tile, in the source's order.
    let size = copy.tile_shape().iter().try_fold(1_i64, |size, extent| size.checked_mul(*extent)).unwrap_or(i64::MAX);
    let mut tile = vec![None; usize::try_from(size).unwrap_or(usize::MAX)];
    for rest in 0..first {
        for (thread, src) in (0..).zip(src) {
            for value in 0..own {
                let place = usize::try_from(from.eval(&(thread + threads * value))?).unwrap_or(usize::MAX);
                if let Some(place) = tile.get_mut(place) {
                    *place = Some(*src.get(value + own * rest)?);
                }
            }
        }
        for (thread, dst) in (0..).zip(dst.iter_mut()) {
            for value in 0..given {
                let place = usize::try_from(to.eval(&(thread + threads * value))?).unwrap_or(usize::MAX);
                if let Some(Some(element)) = tile.get(place) {
                    dst.set(value + given * rest, *element)?;
                }
            }
        }
    }
    Ok(())
}

/// The size of the first mode of a partition, and the product of the sizes of the others.
pub(crate) struct Shape {
    pub(crate) values: i64,
    pub(crate) rests: Vec<i64>,
}

impl Shape {
    pub(crate) fn of_view<T, L: Offsets>(view: &TensorView<'_, T, L>) -> Shape {
        Shape::new(&view.shape())
    }

    pub(crate) fn of_mut<T, L: Offsets>(view: &TensorViewMut<'_, T, L>) -> Shape {
        Shape::new(&view.shape())
    }

    fn new(shape: &tilewright_layout::Tree<i64>) -> Shape {
        let size = |mode: tilewright_layout::Tree<i64>| mode.leaves().iter().product::<i64>();
        let mut modes = (0..shape.rank()).filter_map(|mode| shape.mode(mode)).map(size);
        Shape { values: modes.next().unwrap_or(1), rests: modes.collect() }
    }
}

/// The number of values of a thread at one end of the tiled copy.
fn values(copy: &TiledCopy, end: CopyEnd) -> Result<i64, TensorError> {
    Ok(copy.thread_values(end)?.mode(1).map_or(1, |values| values.size()))
}

/// The number of rests of a partition with this many values.
fn rests(what: &str, shape: &Shape, values: i64) -> Result<i64, TensorError> {
    if shape.values != values {
        return Err(partition(what, format!("{values} values in mode 0"), shape.values.to_string()));
    }
    Ok(shape.rests.iter().product())
}

/// An error if a partition has other values or rests than expected.
fn agree(what: &str, shape: &Shape, values: i64, expected: i64) -> Result<(), TensorError> {
    let found = rests(what, shape, values)?;
    if found == expected {
        return Ok(());
    }
    Err(partition(what, format!("{expected} rests in the modes after mode 0"), found.to_string()))
}

pub(crate) fn partition(what: &str, expected: String, found: String) -> TensorError {
    TensorError::Partition { what: what.into(), expected: expected.into(), found: found.into() }
}

/// An error if elements have another width than the values of the copy.
fn width<T>(copy: &TiledCopy) -> Result<(), TensorError> {
    let bits = 8 * size_of::<T>() as i64;
    if bits == copy.bits() {
        return Ok(());
    }
    let (expected, found) = (format!("{} bits", copy.bits()), format!("{bits} bits"));
    let atom = copy.atom().name().into();
    Err(TensorError::Values { what: "a copy", atom, expected: expected.into(), found: found.into() })
}

/// An error if a thread does not have the same elements at both ends of a copy.
fn own_values<T>(copy: &TiledCopy) -> Result<(), TensorError> {
    width::<T>(copy)?;
    let (from, to) = (copy.thread_values(CopyEnd::Source)?, copy.thread_values(CopyEnd::Destination)?);
    // As functions of (thread, value), so that values are the same only if both ends agree.
    let same =
        from.coalesce() == to.coalesce() && values(copy, CopyEnd::Source)? == values(copy, CopyEnd::Destination)?;
    if same { Ok(()) } else { Err(TensorError::Exchange { atom: copy.atom().name().into() }) }
}
