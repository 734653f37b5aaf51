//! Products of matrices by the crates `gemm` and `matrixmultiply`.

/// A product: where the rows and columns of A, B and C lie, in elements.
struct Product<'a, T> {
    extents: [usize; 3],
    a: (&'a [T], [isize; 2]),
    b: (&'a [T], [isize; 2]),
    c: (&'a mut [T], [isize; 2]),
    threads: usize,
}

trait Number: Copy + Default {
    fn from_index(index: usize) -> Self;
    fn matrixmultiply(product: &mut Product<'_, Self>);
    fn gemm(product: &mut Product<'_, Self>);
}

macro_rules! number {
    ($type:ident, $matrixmultiply:path) => {
        impl Number for $type {
            fn from_index(index: usize) -> $type {
                ((index * 7919) % 1009) as $type / 1009.0 - 0.5
            }

            fn matrixmultiply(product: &mut Product<'_, $type>) {
                let [m, n, k] = product.extents;
                let ((a, [ra, ca]), (b, [rb, cb]), (c, [rc, cc])) =
                    (product.a, product.b, (&mut product.c.0, product.c.1));
                // SAFETY: the slices were made with these extents and strides, and C does not
                // overlap A and B.
                unsafe {
                    $matrixmultiply(m, k, n, 1.0, a.as_ptr(), ra, ca, b.as_ptr(), rb, cb, 0.0, c.as_mut_ptr(), rc, cc)
                }
            }

            fn gemm(product: &mut Product<'_, $type>) {
                let [m, n, k] = product.extents;
                let ((a, [ra, ca]), (b, [rb, cb]), (c, [rc, cc])) =
                    (product.a, product.b, (&mut product.c.0, product.c.1));
                let parallel = match product.threads {
                    1 => gemm::Parallelism::None,
                    threads => gemm::Parallelism::Rayon(threads),
                };
                // SAFETY: as above.
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        k,
                        c.as_mut_ptr(),
                        cc,
                        rc,
                        false,
                        a.as_ptr(),
                        ca,
                        ra,
                        b.as_ptr(),
                        cb,
                        rb,
                        0.0,
                        1.0,
                        false,
                        false,
                        false,
                        parallel,
                    )
                }
            }
        }
    };
}
number!(f32, matrixmultiply::sgemm);
number!(f64, matrixmultiply::dgemm);

/// Measures what the words after `gemm` ask for; none if they are not understood.
pub(crate) fn run(words: &[&str]) -> Option<()> {
    match words {
        ["f32", rest @ ..] => measured::<f32>(rest),
        ["f64", rest @ ..] => measured::<f64>(rest),
        _ => None,
    }
}

fn measured<T: Number>(arguments: &[&str]) -> Option<()> {
    let [threads, seconds, m, n, k, a, b] = arguments else { return None };
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| (1..1 << 20).contains(number));
    let (threads, m, n, k) = (number(threads)?, number(m)?, number(n)?, number(k)?);
    let seconds: f64 = seconds.parse().ok()?;
    let strides = |form: &str, rows: usize, columns: usize| match form {
        "rows" => Some([columns as isize, 1]),
        "columns" => Some([1, rows as isize]),
        _ => None,
    };
    let (a_strides, b_strides) = (strides(a, m, k)?, strides(b, k, n)?);
    let a: Vec<T> = (0..m * k).map(T::from_index).collect();
    let b: Vec<T> = (0..k * n).map(T::from_index).collect();
    let mut c = vec![T::default(); m * n];
    // SAFETY: nothing else runs yet that reads the environment. The crate `matrixmultiply` takes
    // its number of threads from there.
    unsafe { std::env::set_var("MATMUL_NUM_THREADS", threads.to_string()) };

    let work = 2.0 * (m * n * k) as f64;
    let inner = (2e8 / work).ceil().max(1.0);
    let mut product =
        Product { extents: [m, n, k], a: (&a, a_strides), b: (&b, b_strides), c: (&mut c, [n as isize, 1]), threads };
    // The crate `matrixmultiply` chooses its instructions as it runs, and AVX-512 where that is
    // there: it cannot be held to less.
    let both = [("gemm", T::gemm as fn(&mut Product<'_, T>)), ("matrixmultiply", T::matrixmultiply)];
    let asked = if cfg!(feature = "avx512") { &both[..] } else { &both[..1] };
    for &(name, run) in asked {
        let best = crate::best(seconds, || {
            for _ in 0..inner as usize {
                run(&mut product);
            }
        });
        println!("{name} {}", inner * work / best);
    }
    Some(())
}
