//! Copies and products of the partitions of threads, against loops over coordinates.

use half::{bf16, f16};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, MmaAtom, Operand, TiledCopy, TiledMma};
use tilewright_layout::{Layout, Tiler};
use tilewright_tensor::{
    Accumulator, CoordinateTensor, Instructed, Tensor, Value, copy_thread, copy_thread_if, copy_threads,
    gemm_partitions,
};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// A product of `times` tiles along each mode by the partitions of all threads equals the sum over
/// k, at every place. The numbers are small integers, so that every order of summation is exact.
fn check<A, B, C>(mma: &TiledMma, times: [i64; 3], of: fn(i64) -> (A, B, C))
where
    A: Value + Into<C> + bytemuck::NoUninit + bytemuck::Zeroable,
    B: Value + Into<C> + bytemuck::NoUninit + bytemuck::Zeroable,
    C: Accumulator + bytemuck::NoUninit + bytemuck::Zeroable + std::fmt::Debug,
{
    let tile = mma.tile_shape();
    let [m, n, k]: [i64; 3] = std::array::from_fn(|mode| tile[mode] * times[mode]);
    let a = Tensor::from_fn(layout(&format!("({m},{k}):({k},1)")), |index| of(index * 7 % 5 - 2).0).unwrap();
    let b = Tensor::from_fn(layout(&format!("({n},{k})")), |index| of(index * 3 % 5 - 2).1).unwrap();
    let old = Tensor::from_fn(layout(&format!("({m},{n}):({n},1)")), |index| of(index % 4 - 1).2).unwrap();
    let mut c = old.try_clone().unwrap();
    let layout = mma.thread_layout();
    let mut numbers: Vec<i64> = (0..layout.size()).map(|index| layout.eval(&index).unwrap()).collect();
    numbers.sort_unstable();
    let threads: Vec<_> = numbers.iter().map(|number| mma.get_slice(number).unwrap()).collect();
    let of_a: Vec<_> = threads.iter().map(|t| a.view().partition_for(t, Operand::A).unwrap()).collect();
    let of_b: Vec<_> = threads.iter().map(|t| b.view().partition_for(t, Operand::B).unwrap()).collect();
    let own = threads.iter().map(|t| c.view().partition_for(t, Operand::C).unwrap().load().unwrap());
    let mut sums: Vec<_> = own.collect();
    let mut views: Vec<_> = sums.iter_mut().map(|sums| sums.view_mut()).collect();
    gemm_partitions(mma, &of_a, &of_b, &mut views).unwrap();
    for (thread, sums) in threads.iter().zip(&sums) {
        c.view_mut().partition_for(thread, Operand::C).unwrap().store(&sums.view()).unwrap();
    }
    for j in 0..n {
        for i in 0..m {
            let term = |l| (*a.get([i, l]).unwrap(), *b.get([j, l]).unwrap());
            let sum = (0..k).map(term).fold(*old.get([i, j]).unwrap(), |sum, (a, b)| sum.plus(a.into(), b.into()));
            assert_eq!(*c.get([i, j]).unwrap(), sum, "{}: C({i},{j})", mma.atom());
        }
    }
}

/// Checks an atom in the types of its values; false if there are no such types.
fn checked(mma: &TiledMma, times: [i64; 3]) -> bool {
    let types = mma.atom().types();
    match format!("{}{}{}", types.a, types.b, types.c).as_str() {
        "F64F64F64" => check::<f64, f64, f64>(mma, times, |x| (x as f64, x as f64, x as f64)),
        "F32F32F32" | "TF32TF32F32" => check::<f32, f32, f32>(mma, times, |x| (x as f32, x as f32, x as f32)),
        "F16F16F32" => {
            check::<f16, f16, f32>(mma, times, |x| (f16::from_f32(x as f32), f16::from_f32(x as f32), x as f32))
        }
        "F16F16F16" => check::<f16, f16, f16>(mma, times, |x| [f16::from_f32(x as f32); 3].into()),
        "BF16BF16F32" => {
            check::<bf16, bf16, f32>(mma, times, |x| (bf16::from_f32(x as f32), bf16::from_f32(x as f32), x as f32))
        }
        "S8S8S32" => check::<i8, i8, i32>(mma, times, |x| (x as i8, x as i8, x as i32)),
        "U8S8S32" => check::<u8, i8, i32>(mma, times, |x| (x as u8 & 7, x as i8, x as i32)),
        "S8U8S32" => check::<i8, u8, i32>(mma, times, |x| (x as i8, x as u8 & 7, x as i32)),
        "U8U8S32" => check::<u8, u8, i32>(mma, times, |x| (x as u8 & 7, x as u8 & 7, x as i32)),
        _ => return false,
    }
    true
}

/// The first atom of each family of the catalogue computes a product; others are refused.
#[test]
fn atoms_of_the_catalogue_multiply() {
    let (mut computed, mut refused) = (0, 0);
    for family in MmaAtom::families() {
        let names = family.names();
        let Some(name) = names.first() else { continue };
        let atom = MmaAtom::named(name).unwrap();
        let plain = atom.operands().all(|(operand, _)| matches!(operand, Operand::A | Operand::B | Operand::C));
        let mma = TiledMma::from(atom.clone());
        if plain && !name.contains("SATURATE") && atom.types().c == atom.types().d && checked(&mma, [1; 3]) {
            computed += 1;
            continue;
        }
        // Whatever else it is, it is not computed as if it were a product of this type.
        let one = Tensor::filled(layout("(1,1,1)"), 1_f32).unwrap();
        let (views, mut c) = ([one.view()], Tensor::filled(layout("(1,1,1)"), 0_f32).unwrap());
        let refusal = gemm_partitions(&mma, &views, &views, &mut [c.view_mut()]).unwrap_err();
        assert!(["E0424", "E0425", "E0445"].contains(&refusal.code()), "{name}: {refusal}");
        refused += 1;
    }
    assert!(computed >= 20, "{computed} computed, {refused} refused");
    assert!(refused > 0);
}

/// Several atoms, permuted tiles, and several rests.
#[test]
fn tiled_products_multiply() {
    let tiled = |name: &str, atoms: &str, order: &str| {
        let order = order.parse::<Tiler>().unwrap();
        TiledMma::new(MmaAtom::named(name).unwrap(), &layout(atoms), &order).unwrap()
    };
    assert!(checked(&tiled("UniversalFMA<F32,F32,F32,F32>", "(4,4,1)", "[8:1;(4,4):(4,1);_]"), [2, 1, 5]));
    assert!(checked(&tiled("SM80_16x8x16_F32F16F16F32_TN", "(2,2,1):(1,2,0)", "[_;(2,4,4):(1,8,2);_]"), [1, 2, 2]));
    assert!(checked(&tiled("SM70_8x8x4_F32F16F16F32_TN", "(2,1,1)", "[_;_;_]"), [2, 2, 2]));
}

/// Numbers of the wrong type are refused, whatever their width.
#[test]
fn values_are_those_of_the_atom() {
    let mma = TiledMma::from(MmaAtom::named("UniversalFMA<F32,F32,F32,F32>").unwrap());
    let (a, mut c) =
        (Tensor::filled(layout("(1,1,1)"), 1_i32).unwrap(), Tensor::filled(layout("(1,1,1)"), 1_i32).unwrap());
    let refusal = gemm_partitions(&mma, &[a.view()], &[a.view()], &mut [c.view_mut()]).unwrap_err();
    assert_eq!(refusal.code(), "E0424");
    assert_eq!(refusal.to_string(), "A of UniversalFMA<F32,F32,F32,F32> has values of F32, but the elements are S32");
    let none: [tilewright_tensor::TensorView<'_, f32>; 0] = [];
    assert_eq!(
        gemm_partitions::<f32, f32, f32, _, _, Layout>(&mma, &none, &none, &mut []).unwrap_err().code(),
        "E0425"
    );
}

/// What `ldmatrix` gives each thread is what its partition at the destination names.
#[test]
fn copies_between_threads_follow_both_ends() {
    for (name, threads, values, rows) in [
        ("SM75_U32x1_LDSM_N", "(8,4):(4,1)", "(1,2)", 8),
        ("SM75_U32x2_LDSM_N", "(8,4):(4,1)", "(2,2):(1,2)", 16),
        ("SM75_U32x4_LDSM_N", "(8,4):(4,1)", "(4,2):(1,4)", 32),
        ("SM75_U16x2_LDSM_T", "(4,8):(1,4)", "(2,1)", 8),
        ("UniversalCopy<uint16_t>", "(8,4):(4,1)", "(1,2)", 8),
    ] {
        let copy = TiledCopy::new(CopyAtom::named(name).unwrap(), 16, &layout(threads), &layout(values)).unwrap();
        let tile = Tensor::from_fn(layout(&format!("({rows},16):(16,1)")), |index| index as u16).unwrap();
        let slices: Vec<_> = (0..copy.threads()).map(|number| copy.get_slice(&number).unwrap()).collect();
        let parts = |end| slices.iter().map(|slice| tile_part(&tile, slice, end)).collect::<Vec<_>>();
        let (src, named) = (parts(CopyEnd::Source), parts(CopyEnd::Destination));
        let mut own: Vec<_> = named.iter().map(|part| part.fragment_like::<u16>().unwrap()).collect();
        let mut views: Vec<_> = own.iter_mut().map(|own| own.view_mut()).collect();
        copy_threads(&copy, &src, &mut views).unwrap();
        for (own, named) in own.iter().zip(&named) {
            assert!((0..own.size()).all(|index| own.get(index) == named.get(index)), "{name}");
        }
        // One thread alone has what it needs only where nothing is exchanged.
        let alone = copy_thread(&slices[1], &src[1], &mut own[1].view_mut());
        match name.starts_with("Universal") {
            true => alone.unwrap(),
            false => assert_eq!(alone.unwrap_err().code(), "E0423"),
        }
    }
}

fn tile_part<'a>(
    tile: &'a Tensor<u16>,
    slice: &tilewright_layout::atoms::ThreadCopy<'_>,
    end: CopyEnd,
) -> tilewright_tensor::TensorView<'a, u16> {
    tile.view().partition_at(slice, end).unwrap()
}

/// A predicate of rests holds for whole vectors, one of elements for each by itself.
#[test]
fn predicated_copies_write_what_the_predicate_names() {
    let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>").unwrap();
    let copy = TiledCopy::new(atom, 32, &layout("(4,2):(2,1)"), &layout("(1,4):(4,1)")).unwrap();
    let src = Tensor::from_fn(layout("(12,24):(24,1)"), |index| index as f32).unwrap();
    for by_rest in [true, false] {
        let mut dst = Tensor::filled(layout("(12,24):(1,12)"), -1_f32).unwrap();
        let inside = |i: i64, j: i64| if by_rest { i < 7 && j < 20 } else { i < 7 && j < 18 };
        let at = CoordinateTensor::identity(&src.shape()).unwrap();
        for number in 0..copy.threads() {
            let slice = copy.get_slice(&number).unwrap();
            let coords = at.partition_at(&slice, CopyEnd::Source).unwrap();
            let holds = |index: i64| {
                let coord = coords.get(index).unwrap();
                inside(coord.leaves()[0], coord.leaves()[1])
            };
            let step = if by_rest { 4 } else { 1 };
            let predicate: Vec<bool> = (0..coords.size()).step_by(step).map(holds).collect();
            let size = predicate.len();
            let predicate = Tensor::from_vec(predicate, layout(&format!("{size}"))).unwrap();
            let from = src.view().partition_at(&slice, CopyEnd::Source).unwrap();
            let mut to = dst.view_mut().partition_at(&slice, CopyEnd::Destination).unwrap();
            copy_thread_if(&slice, &predicate.view(), &from, &mut to).unwrap();
            let wrong = Tensor::filled(layout("5"), true).unwrap();
            assert_eq!(copy_thread_if(&slice, &wrong.view(), &from, &mut to).unwrap_err().code(), "E0425");
        }
        for i in 0..12 {
            for j in 0..24 {
                let expected = if inside(i, j) { *src.get([i, j]).unwrap() } else { -1.0 };
                assert_eq!(*dst.get([i, j]).unwrap(), expected, "({i},{j})");
            }
        }
    }
}
