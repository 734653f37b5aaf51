//! Permuted arrays by the crate `ndarray`, and by HPTT where it was built.

use ndarray::{ArrayD, IxDyn, Zip};

/// A type of elements, as an integer of its size.
trait CopiedNumber: Copy + Default + PartialEq + Send + Sync {
    fn from_index(index: usize) -> Self;

    /// By HPTT, which knows `f32` and `f64`: the seconds of the best run, if its result is the
    /// expected one.
    fn hptt(_permuted: &Permuted<'_, Self>, _threads: usize, _seconds: f64) -> Option<f64> {
        None
    }
}

/// An array of these axes in C order, and what it is to be: axis `k` is axis `order[k]`.
#[cfg_attr(not(feature = "hptt"), allow(dead_code))]
struct Permuted<'a, T> {
    src: &'a [T],
    axes: &'a [usize],
    order: &'a [usize],
    wanted: &'a [T],
}

impl CopiedNumber for u8 {
    fn from_index(index: usize) -> u8 {
        (index % 251) as u8
    }
}

impl CopiedNumber for u16 {
    fn from_index(index: usize) -> u16 {
        (index % 65521) as u16
    }
}

macro_rules! float {
    ($type:ident, $hptt:ident) => {
        impl CopiedNumber for $type {
            fn from_index(index: usize) -> $type {
                index as $type
            }

            #[cfg(feature = "hptt")]
            fn hptt(permuted: &Permuted<'_, $type>, threads: usize, seconds: f64) -> Option<f64> {
                let Permuted { src, axes, order, wanted } = *permuted;
                let mut dst = vec![0.0; src.len()];
                let mut outcome = Ok(());
                let best = crate::best(seconds, || {
                    outcome = hptt::$hptt(order, 1.0, src, axes, 0.0, &mut dst, threads, hptt::MemoryOrder::RowMajor);
                });
                (outcome.is_ok() && dst == wanted).then_some(best)
            }
        }
    };
}
float!(f32, transpose_f32);
float!(f64, transpose_f64);

/// Measures what the words after `copy` ask for; none if they are not understood.
pub(crate) fn run(words: &[&str]) -> Option<()> {
    let [kind, threads, seconds, arrays @ ..] = words else { return None };
    let threads: usize = threads.parse().ok().filter(|threads| (1..=1024).contains(threads))?;
    let seconds: f64 = seconds.parse().ok()?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().ok()?;
    for (number, words) in arrays.chunks(2).enumerate() {
        let [axes, order] = words else { return None };
        let list = |text: &str| text.split(',').map(|word| word.parse().ok()).collect::<Option<Vec<usize>>>();
        let (axes, order) = (list(axes)?, list(order)?);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.len() != axes.len() || sorted.iter().enumerate().any(|(k, axis)| k != *axis) {
            return None;
        }
        let rates = match *kind {
            "f32" => measured::<f32>(&axes, &order, threads, seconds)?,
            "f64" => measured::<f64>(&axes, &order, threads, seconds)?,
            "f16" => measured::<u16>(&axes, &order, threads, seconds)?,
            "u8" => measured::<u8>(&axes, &order, threads, seconds)?,
            _ => return None,
        };
        for (name, rate) in rates {
            println!("{number} {name} {rate}");
        }
    }
    Some(())
}

/// The bytes a second of each crate.
fn measured<T: CopiedNumber>(
    axes: &[usize],
    order: &[usize],
    threads: usize,
    seconds: f64,
) -> Option<Vec<(&'static str, f64)>> {
    let elements = axes.iter().try_fold(1_usize, |elements, axis| elements.checked_mul(*axis))?;
    let src = ArrayD::from_shape_vec(IxDyn(axes), (0..elements).map(T::from_index).collect()).ok()?;
    let view = src.view().permuted_axes(IxDyn(order));
    let mut dst = ArrayD::from_elem(view.raw_dim(), T::default());
    // Views of fixed rank are faster than those of any rank where there are several axes.
    macro_rules! fixed {
        ($($rank:ident),*) => {
            match axes.len() {
                $(rank if rank == rank_of::<ndarray::$rank>() => {
                    let from = view.view().into_dimensionality::<ndarray::$rank>().ok()?;
                    let mut to = dst.view_mut().into_dimensionality::<ndarray::$rank>().ok()?;
                    crate::best(seconds, || match threads {
                        1 => to.assign(&from),
                        _ => Zip::from(&mut to).and(&from).par_for_each(|to, from| *to = *from),
                    })
                })*
                _ => return None,
            }
        };
    }
    let best = fixed!(Ix1, Ix2, Ix3, Ix4, Ix5, Ix6);
    let bytes = (elements * size_of::<T>()) as f64;
    let mut rates = vec![("ndarray", bytes / best)];
    let permuted = Permuted { src: src.as_slice()?, axes, order, wanted: dst.as_slice()? };
    rates.extend(T::hptt(&permuted, threads, seconds).map(|best| ("hptt", bytes / best)));
    Some(rates)
}

/// The rank of arrays of this dimension.
fn rank_of<D: ndarray::Dimension>() -> usize {
    D::NDIM.unwrap_or(0)
}
