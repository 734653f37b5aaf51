//! The law of products, `C(i,j) = alpha * sum of A(i,k) * B(j,k) + beta * C(i,j)`, at every place,
//! on every kind of micro-kernel that this machine has.
//!
//! Sums of floats are compared with sums in twice the precision, or with exact ones, within the
//! bound that any order of summation keeps; of integers exactly.

mod law;

use half::{bf16, f16};
use tilewright_layout::atoms::{Arch, MmaAtom, MmaTypes, TiledMma, ValueType};
use tilewright_layout::{Composed, Layout, Tiler};
use tilewright_tensor::{
    Tensor, TensorError, TensorView, TensorViewMut, cpu_atoms, cpu_mma, cpu_mma_of, gemm, multiply_adds, tilings,
};

use self::law::{Summed, Tested, check, some_layout};
use crate::kernels::random::Random;

/// Small shapes, all of them up to a bound, each with layouts of some kinds, on all micro-kernels.
fn small_shapes<S: Tested>(bound: i64, step: usize)
where
    S::Sum: Summed,
{
    let mut random = Random(7);
    let factors = [[4, 0], [4, 4], [-6, 0], [3, -2], [1, 1]];
    for atom in cpu_atoms::<S>().expect("atoms") {
        let mma = cpu_mma_of(atom, 1).expect("a tiled product");
        let shapes = (0..bound * bound * bound).map(|i| [1 + i % bound, 1 + i / bound % bound, 1 + i / bound / bound]);
        for extents @ [m, n, k] in shapes.step_by(step) {
            let factors = factors[random.below(5) as usize];
            let layouts =
                (some_layout(&mut random, m, k), some_layout(&mut random, n, k), some_layout(&mut random, m, n));
            check::<S, _, _, _>(&mma, extents, factors, layouts, &mut random);
        }
    }
}

#[test]
fn small_products_in_single_precision() {
    small_shapes::<f32>(20, 1);
}

#[test]
fn small_products_in_double_precision() {
    small_shapes::<f64>(20, 3);
}

#[test]
fn small_products_of_halves() {
    small_shapes::<f16>(17, 3);
    small_shapes::<bf16>(17, 5);
}

#[test]
fn small_products_of_bytes() {
    small_shapes::<i8>(19, 2);
}

/// Shapes that take several tiles, blocks, panels and depths, on one thread and on several.
fn large_shapes<S: Tested>()
where
    S::Sum: Summed,
{
    let mut random = Random(11);
    for atom in cpu_atoms::<S>().expect("atoms") {
        for (extents @ [m, n, k], threads) in [
            ([65, 99, 131], 1),
            ([137, 41, 1027], 1),
            ([200, 1, 300], 2),
            ([1, 333, 520], 2),
            ([129, 131, 127], 2),
            ([257, 129, 259], 3),
            ([500, 67, 330], 2),
        ] {
            let mma = cpu_mma_of(atom.clone(), threads).expect("a tiled product");
            for factors in [[4, 0], [2, 4]] {
                let layouts =
                    (some_layout(&mut random, m, k), some_layout(&mut random, n, k), some_layout(&mut random, m, n));
                check::<S, _, _, _>(&mma, extents, factors, layouts, &mut random);
            }
        }
    }
}

#[test]
fn large_products_of_floats() {
    large_shapes::<f32>();
    large_shapes::<f64>();
}

#[test]
fn large_products_of_other_numbers() {
    large_shapes::<f16>();
    large_shapes::<bf16>();
    large_shapes::<i8>();
}

#[test]
fn every_packing_of_every_factor() {
    // Each factor with rows side by side, with K side by side, tiled, and with no two neighbours; C
    // likewise.
    let forms = |rows: i64, columns: i64| {
        [
            format!("({rows},{columns}):(1,{rows})"),
            format!("({rows},{columns}):({columns},1)"),
            format!("((16,{}),({columns})):((1,{}),(16))", rows / 16, 16 * columns),
            format!("({rows},(8,{})):(8,(1,{}))", columns / 8, 8 * rows),
            format!("({rows},{columns}):(2,{})", 2 * rows),
        ]
        .map(|text| text.parse::<Layout>().expect("a layout"))
    };
    fn all<S: Tested>(forms: impl Fn(i64, i64) -> [Layout; 5])
    where
        S::Sum: Summed,
    {
        let mut random = Random(3);
        let [m, n, k] = [112, 96, 264];
        for atom in cpu_atoms::<S>().expect("atoms") {
            let mma = cpu_mma_of(atom, 1).expect("a tiled product");
            for (number, a) in forms(m, k).into_iter().enumerate() {
                for (other, b) in forms(n, k).into_iter().enumerate() {
                    let c = forms(m, n)[(number + 2 * other) % 5].clone();
                    check::<S, _, _, _>(&mma, [m, n, k], [4, 4], (a.clone(), b, c), &mut random);
                }
            }
        }
    }
    all::<f32>(forms);
    all::<f64>(forms);
    all::<i8>(forms);
    all::<bf16>(forms);
}

#[test]
fn swizzled_operands() {
    let mut random = Random(5);
    let swizzled = |rows: i64, columns: i64| {
        let text = format!("S<3,2,3> o 0 o ({rows},{columns}):({columns},1)");
        text.parse::<Composed>().expect("a composed layout")
    };
    for atom in cpu_atoms::<f32>().expect("atoms") {
        let mma = cpu_mma_of(atom, 2).expect("a tiled product");
        for extents @ [m, n, k] in [[8, 16, 32], [24, 40, 64], [136, 72, 288]] {
            let layouts = (swizzled(m, k), swizzled(n, k), swizzled(m, n));
            check::<f32, _, _, _>(&mma, extents, [4, 4], layouts, &mut random);
            let layouts = (swizzled(m, k), some_layout(&mut random, n, k), some_layout(&mut random, m, n));
            check::<f32, _, _, _>(&mma, extents, [3, 0], layouts, &mut random);
        }
    }
    for atom in cpu_atoms::<i8>().expect("atoms") {
        let mma = cpu_mma_of(atom, 1).expect("a tiled product");
        let layouts = (swizzled(40, 72), swizzled(24, 72), swizzled(40, 24));
        check::<i8, _, _, _>(&mma, [40, 24, 72], [1, 1], layouts, &mut random);
    }
}

#[test]
fn a_factor_may_repeat_its_elements() {
    let mut random = Random(9);
    for atom in cpu_atoms::<f64>().expect("atoms") {
        let mma = cpu_mma_of(atom, 1).expect("a tiled product");
        let layout = |text: &str| text.parse::<Layout>().expect("a layout");
        let layouts = (layout("(30,20):(0,1)"), layout("(10,20):(1,0)"), layout("(30,10):(1,30)"));
        check::<f64, _, _, _>(&mma, [30, 10, 20], [4, 4], layouts, &mut random);
    }
}

#[test]
fn every_half_is_widened_exactly() {
    let column: Layout = "(65536,1):(1,65536)".parse().expect("a layout");
    let row: Layout = "(1,1):(1,1)".parse().expect("a layout");
    let numbers: Vec<u16> = (0..=u16::MAX).collect();
    let same = |found: f32, wanted: f32| found == wanted || found.is_nan() && wanted.is_nan();
    let mut c = vec![0_f32; 65536];
    for atom in cpu_atoms::<f16>().expect("atoms") {
        let mma = cpu_mma_of(atom, 1).expect("a tiled product");
        let a: Vec<f16> = numbers.iter().map(|bits| f16::from_bits(*bits)).collect();
        let a_view = TensorView::new(&a, column.clone()).expect("a view");
        let one = [f16::ONE];
        let one = TensorView::new(&one, row.clone()).expect("a view");
        let mut c_view = TensorViewMut::new(&mut c, column.clone()).expect("a view");
        gemm(&mma, 1.0, &a_view, &one, 0.0, &mut c_view).expect("a product");
        assert!(a.iter().zip(&c).all(|(number, sum)| same(*sum, number.to_f32())), "{}", mma.atom().name());
    }
    for atom in cpu_atoms::<bf16>().expect("atoms") {
        let mma = cpu_mma_of(atom, 1).expect("a tiled product");
        let a: Vec<bf16> = numbers.iter().map(|bits| bf16::from_bits(*bits)).collect();
        let a_view = TensorView::new(&a, column.clone()).expect("a view");
        let one = [bf16::ONE];
        let one = TensorView::new(&one, row.clone()).expect("a view");
        let mut c_view = TensorViewMut::new(&mut c, column.clone()).expect("a view");
        gemm(&mma, 1.0, &a_view, &one, 0.0, &mut c_view).expect("a product");
        // Intel defines the dot product of pairs with subnormal numbers taken for zero; all others
        // are as exact.
        let pairs = mma.atom().shape()[2] == 2;
        let wanted =
            |number: bf16| if pairs && !number.is_normal() && number.is_finite() { 0.0 } else { number.to_f32() };
        assert!(a.iter().zip(&c).all(|(number, sum)| same(*sum, wanted(*number))), "{}", mma.atom().name());
    }
}

#[test]
fn sums_of_bytes_are_exact_modulo_2_to_the_32() {
    // 140,000 products of 2^14 are more than 2^31.
    let k = 140_000_i64;
    let layout = |text: String| text.parse::<Layout>().expect("a layout");
    let (a, b) = (vec![i8::MIN; k as usize], vec![i8::MIN; k as usize]);
    for atom in cpu_atoms::<i8>().expect("atoms") {
        let mma = cpu_mma_of(atom, 1).expect("a tiled product");
        let mut c = [0];
        let (a, b) = (TensorView::new(&a, layout(format!("(1,{k})"))), TensorView::new(&b, layout(format!("(1,{k})"))));
        let mut view = TensorViewMut::new(&mut c, layout("(1,1)".into())).expect("a view");
        gemm(&mma, 1, &a.expect("a view"), &b.expect("a view"), 0, &mut view).expect("a product");
        assert_eq!(c, [(k << 14) as i32], "{}", mma.atom().name());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    let numbers = |text: &str| Tensor::filled(layout(text), 1_f32).expect("a tensor");
    let (a, b) = (numbers("(4,3)"), numbers("(5,3)"));
    let mut c = numbers("(4,5)");
    let mma = cpu_mma::<f32>(1).expect("a tiled product");
    let mut refusal = |mma: &TiledMma, a: &Tensor<f32>, b: &Tensor<f32>| {
        gemm(mma, 1.0, &a.view(), &b.view(), 0.0, &mut c.view_mut()).map_err(|error| (error.code(), error.to_string()))
    };
    assert_eq!(refusal(&mma, &a, &b), Ok(()));
    let (code, text) = refusal(&mma, &a, &numbers("(3,5)")).expect_err("a refusal");
    assert_eq!(code, "E0444");
    assert_eq!(text, "extents do not agree: A is (M,K) = (4,3), B is (N,K) = (3,5), and C is (M,N) = (4,5)");
    assert_eq!(refusal(&mma, &numbers("(3,3)"), &b).expect_err("a refusal").0, "E0444");
    assert_eq!(refusal(&mma, &numbers("(2,2,3)"), &b).expect_err("a refusal").0, "E0443");
    assert_eq!(refusal(&mma, &numbers("12"), &b).expect_err("a refusal").0, "E0443");

    let whole = "[_;_;_]".parse::<Tiler>().expect("a tiler");
    let types = MmaTypes::uniform(ValueType::F32);
    let unknown = MmaAtom::cpu(Arch::Avx512, [7, 7, 1], types).expect("an atom");
    let unknown = TiledMma::new(unknown, &layout("(1,1,1)"), &whole).expect("a tiled product");
    let (code, text) = refusal(&unknown, &a, &b).expect_err("a refusal");
    assert_eq!((code, text.as_str()), ("E0440", "no micro-kernel for these types is called AVX512_7x7x1_F32F32F32F32"));
    let along = TiledMma::new(mma.atom().clone(), &layout("(1,1,2)"), &whole).expect("a tiled product");
    assert_eq!(refusal(&along, &a, &b).expect_err("a refusal").0, "E0442");
    assert_eq!(multiply_adds::<f64>(mma.atom(), 1).map_err(|error| error.code()), Err("E0440"));

    // A C that repeats an element cannot be viewed to be written.
    let mut memory = [0_f32; 8];
    let repeated = TensorViewMut::new(&mut memory, layout("(4,5):(1,1)")).expect_err("a refusal");
    assert!(matches!(repeated, TensorError::Shared { .. }));
}

/// Threads that share packed blocks compute, each time, what one thread computes, to the last bit:
/// sums are added up in the same order.
fn shared_blocks<S: Tested>()
where
    S::Sum: Summed,
{
    let mut random = Random(23);
    let [m, n, k] = [60, 1500, 260];
    let by_rows = |rows: i64, columns: i64| format!("({rows},{columns}):({columns},1)").parse::<Layout>();
    for atom in cpu_atoms::<S>().expect("atoms") {
        let a = Tensor::from_fn(by_rows(m, k).expect("a layout"), |_| S::random(&mut random)).expect("a tensor");
        let b = Tensor::from_fn(by_rows(n, k).expect("a layout"), |_| S::random(&mut random)).expect("a tensor");
        let c: Layout = format!("({m},{n}):(1,{m})").parse().expect("a layout");
        let [one, none] = [1, 0].map(S::Sum::factor);
        let product = |threads: usize| {
            let mma = cpu_mma_of(atom.clone(), threads).expect("a tiled product");
            let mut c = Tensor::filled(c.clone(), none).expect("a tensor");
            let shared = tilings(&mma, &a.view(), &b.view(), &mut c.view_mut()).expect("tilings").shared;
            assert_eq!(shared > 0, threads > 1, "{} on {threads} threads", atom.name());
            gemm(&mma, one, &a.view(), &b.view(), none, &mut c.view_mut()).expect("a product");
            c.view().to_vec()
        };
        let alone = product(1);
        for threads in [2, 3, 5, 2, 3, 5] {
            assert!(product(threads) == alone, "{} on {threads} threads", atom.name());
        }
    }
}

#[test]
fn threads_that_share_blocks_compute_what_one_computes() {
    shared_blocks::<f32>();
    shared_blocks::<f64>();
    shared_blocks::<i8>();
}

#[test]
fn tilings_say_where_each_number_is_packed() {
    let layout = |text: &str| text.parse::<Layout>().expect("a layout");
    for atom in cpu_atoms::<i8>().expect("atoms") {
        let mma = cpu_mma_of(atom, 2).expect("a tiled product");
        let a = Tensor::filled(layout("(300,700)"), 1_i8).expect("a tensor");
        let b = Tensor::filled(layout("(500,700)"), 1_i8).expect("a tensor");
        let mut c = Tensor::filled(layout("(300,500):(500,1)"), 0).expect("a tensor");
        let found = tilings(&mma, &a.view(), &b.view(), &mut c.view_mut()).expect("tilings");
        // C lies by rows, so that M and N are exchanged.
        assert_eq!((found.transposed, found.extents), (true, [300, 500, 700]));
        for packed in [found.packed_a, found.packed_b] {
            let packed = packed.expect("bytes are packed");
            assert_eq!((packed.is_injective(), packed.rank()), (Ok(true), 2));
            assert!(packed.cosize().is_ok_and(|size| size <= 4 * (found.workspace + found.shared) as i64));
        }
        // The task is made of tiles, the block of A too.
        let divided = layout("(500,300)").zipped_divide(&found.task).expect("tasks");
        assert!(divided.mode(1).is_some_and(|tasks| tasks.size() >= 1));
    }
}
