//! Transforms, predicated copies and reductions against the naive loop.

use bytemuck::AnyBitPattern;
use tilewright_layout::{Composed, Layout, Leaf, Swizzle, Tree, Xor};
use tilewright_tensor::{
    Offsets, Tensor, TensorView, TensorViewMut, axpby, copy_if, reduce, reduce_with, transform, transform2, transform3,
    update,
};

use crate::kernels::random::{Random, flat, memory};

/// Layouts of these extents: orders, padding, and a swizzle.
fn layouts(extents: &[i64]) -> Vec<Layout> {
    let shape = Tree::flat(extents.iter().copied()).unwrap();
    let mut all = vec![Layout::compact(&shape).unwrap(), Layout::row_major(&shape).unwrap()];
    for turn in 1..extents.len() {
        let (mut strides, mut step) = (vec![0; extents.len()], 1);
        for k in 0..extents.len() {
            let mode = (k + turn) % extents.len();
            strides[mode] = step;
            step = step * extents[mode] + k as i64;
        }
        all.push(Layout::new(&shape, &Tree::flat(strides).unwrap()).unwrap());
    }
    all
}

fn swizzled(layout: &Layout) -> Composed {
    Composed::new(Swizzle::new(2, 1, 3).unwrap(), 3, layout.clone()).unwrap()
}

fn numbers<L: Offsets>(layout: L, seed: i64) -> Tensor<i64, L> {
    Tensor::from_fn(layout, |index| (index * 7919 + seed) % 1009 - 500).unwrap()
}

#[test]
fn elements_at_one_index_meet() {
    let mut cases = 0;
    for extents in [vec![5], vec![7, 9], vec![70, 130], vec![3, 4, 5], vec![2, 6, 3, 4]] {
        let all = layouts(&extents);
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            for dst in &all {
                check(a.clone(), swizzled(b), dst.clone());
                check(a.clone(), b.clone(), swizzled(dst));
                check(a.clone(), b.clone(), dst.clone());
                // Another shape of the same size.
                check(a.clone(), Layout::mode_of(a.size(), 2).unwrap(), dst.clone());
                cases += 4;
            }
        }
    }
    assert!(cases > 300, "{cases}");
}

fn check<A: Offsets, B: Offsets, D: Offsets>(a: A, b: B, dst: D) {
    let (a, b, before) = (numbers(a, 1), numbers(b, 2), numbers(dst.clone(), 3));
    let mut found = before.try_clone().unwrap();
    transform2(&a.view(), &b.view(), &mut found.view_mut(), |a, b, dst| *dst = 3 * *dst + 5 * a - b).unwrap();
    let mut scaled = before.try_clone().unwrap();
    axpby(3, &a.view(), -2, &mut scaled.view_mut()).unwrap();
    let holds = Tensor::from_fn(b.layout().clone(), |index| index % 3 == 0).unwrap();
    let mut some = before.try_clone().unwrap();
    copy_if(&a.view(), &holds.view(), &mut some.view_mut()).unwrap();
    let mut untouched = before.try_clone().unwrap();
    for index in 0..dst.size() {
        let (a, b, old) = (a.get(index).unwrap(), b.get(index).unwrap(), *before.get(index).unwrap());
        assert_eq!(*found.get(index).unwrap(), 3 * old + 5 * a - b, "{dst}");
        assert_eq!(*scaled.get(index).unwrap(), 3 * a - 2 * old, "{dst}");
        assert_eq!(*some.get(index).unwrap(), if index % 3 == 0 { *a } else { old }, "{dst}");
        untouched.set(index, *found.get(index).unwrap()).unwrap();
    }
    // Nothing between the elements has changed.
    assert_eq!(untouched.as_slice(), found.as_slice());
}

#[test]
fn reductions() {
    let mut cases = 0;
    for extents in [vec![6], vec![7, 9], vec![300, 400], vec![3, 4, 5], vec![2, 6, 3, 4]] {
        for layout in layouts(&extents) {
            let a = numbers(layout.clone(), 4);
            for chosen in 0..1_u32 << extents.len() {
                let modes: Vec<usize> = (0..extents.len()).filter(|mode| chosen >> mode & 1 == 1).collect();
                let kept: Vec<i64> =
                    (0..extents.len()).filter(|mode| !modes.contains(mode)).map(|mode| extents[mode]).collect();
                let kept = if kept.is_empty() { vec![1] } else { kept };
                for to in layouts(&kept) {
                    reduced(&a, &modes, to.clone());
                    reduced(&a, &modes, swizzled(&to));
                    cases += 2;
                }
            }
        }
    }
    assert!(cases > 200, "{cases}");
}

fn reduced<D: Offsets>(a: &Tensor<i64>, modes: &[usize], to: D) {
    let mut expected = vec![100; to.size() as usize];
    let extents: Vec<i64> = a.layout().leaves().iter().map(|leaf| leaf.extent).collect();
    for index in 0..a.size() {
        let (mut rest, mut at, mut step) = (index, 0, 1);
        for (mode, extent) in extents.iter().enumerate() {
            if !modes.contains(&mode) {
                at += rest % extent * step;
                step *= extent;
            }
            rest /= extent;
        }
        expected[at as usize] += a.get(index).unwrap();
    }
    let mut found = Tensor::filled(to, -1_i64).unwrap();
    reduce(&a.view(), modes, &mut found.view_mut(), 100, |sum, a| sum + a).unwrap();
    for (index, expected) in expected.iter().enumerate() {
        assert_eq!(found.get(index as i64).unwrap(), expected, "{} {modes:?}", found.layout());
    }
}

/// A layout of any kind with these extents, or of as many elements; each place once, if it is to be
/// written.
fn layout(random: &mut Random, extents: &[i64], written: bool) -> Composed {
    let shape = if random.one_in(4) { random.reshaped(extents) } else { extents.to_vec() };
    let found = match random.below(9) {
        0 => random.strides(&shape, true).into(),
        1 => random.strides(&shape, false).into(),
        2 => nested(&random.strides(&shape, false)).into(),
        // The source may repeat elements and overlap itself.
        3 if !written => {
            let strides: Vec<i64> = shape.iter().map(|_| random.below(7) as i64 - 3).collect();
            flat(&shape, &strides).into()
        }
        4 if !written => {
            let leaves = random.strides(&shape, false);
            let strides: Vec<i64> =
                leaves.leaves().iter().map(|leaf| if random.one_in(2) { 0 } else { leaf.stride }).collect();
            flat(&shape, &strides).into()
        }
        5 => {
            let leaves =
                (0..shape.len()).map(|k| Leaf { extent: shape[k], stride: Xor::new(random.below(256)).unwrap() });
            let layout: Layout<Xor> = Layout::from_tree(Tree::flat(leaves.collect::<Vec<_>>()).unwrap()).unwrap();
            layout.composed().unwrap()
        }
        6 => {
            let outer = flat(&[1 + random.below(6) as i64, 1 + random.below(6) as i64], &[random.below(20) as i64, 3]);
            Composed::new(outer, random.below(9) as i64, random.strides(&shape, true)).unwrap()
        }
        kind => {
            // Backwards at times: the offset is where the numbers that are swizzled begin.
            let inner = random.strides(&shape, kind == 7);
            let below = -inner.range().unwrap().0;
            let bits = random.below(4) as i64;
            let shift = (bits + random.below(3) as i64) * if random.one_in(4) { -1 } else { 1 };
            let swizzle = Swizzle::new(bits, random.below(5) as i64, shift).unwrap();
            Composed::new(swizzle, below + random.below(40) as i64, nested(&inner)).unwrap()
        }
    };
    match found.is_injective() {
        Ok(true) => found,
        _ if !written => found,
        _ => swizzled(&random.strides(extents, true)),
    }
}

/// The first modes as one.
fn nested(layout: &Layout) -> Layout {
    if layout.leaves().len() > 1 { layout.group(0..2).unwrap() } else { layout.clone() }
}

/// Elements under a layout, in memory with other elements around them.
struct Operand<T> {
    memory: Vec<T>,
    origin: usize,
    layout: Composed,
}

impl<T: AnyBitPattern + Sync> Operand<T> {
    fn new(random: &mut Random, extents: &[i64], written: bool) -> Operand<T> {
        let layout = layout(random, extents, written);
        let (memory, origin) = memory(Offsets::range(&layout).unwrap(), random.next());
        Operand { memory, origin, layout }
    }

    fn view(&self) -> TensorView<'_, T, Composed> {
        TensorView::with_origin(&self.memory, self.origin, self.layout.clone()).unwrap()
    }

    fn place(&self, index: i64) -> usize {
        (self.origin as i64 + Offsets::offset(&self.layout, index).unwrap()) as usize
    }

    fn at(&self, index: i64) -> T {
        self.memory[self.place(index)]
    }
}

/// What is done to elements in the tests: once for each, or it shows.
fn mix(dst: i64, a: i16, b: i64, c: u8) -> i64 {
    dst.wrapping_mul(3).wrapping_add(i64::from(a)).wrapping_add(b.wrapping_mul(5)).wrapping_sub(i64::from(c) << 40)
}

/// Each transform against the naive loop, all memory compared.
fn transforms(random: &mut Random, extents: &[i64]) {
    let dst = Operand::<i64>::new(random, extents, true);
    let (a, b) = (Operand::<i16>::new(random, extents, false), Operand::<i64>::new(random, extents, false));
    let c = Operand::<u8>::new(random, extents, false);
    let run = |with: [bool; 3], call: &dyn Fn(&mut TensorViewMut<'_, i64, Composed>)| {
        let mut expected = dst.memory.clone();
        for index in 0..dst.layout.size() {
            let a = if with[0] { a.at(index) } else { 0 };
            let b = if with[1] { b.at(index) } else { 0 };
            let c = if with[2] { c.at(index) } else { 0 };
            let place = dst.place(index);
            expected[place] = mix(expected[place], a, b, c);
        }
        let mut found = dst.memory.clone();
        call(&mut TensorViewMut::with_origin(&mut found, dst.origin, dst.layout.clone()).unwrap());
        assert!(found == expected, "{with:?}: {} {} {} to {}", a.layout, b.layout, c.layout, dst.layout);
    };
    run([false; 3], &|to| update(to, |dst| *dst = mix(*dst, 0, 0, 0)).unwrap());
    run([true, false, false], &|to| transform(&a.view(), to, |a, dst| *dst = mix(*dst, *a, 0, 0)).unwrap());
    run([true, true, false], &|to| {
        transform2(&a.view(), &b.view(), to, |a, b, dst| *dst = mix(*dst, *a, *b, 0)).unwrap();
    });
    run([true; 3], &|to| {
        transform3(&a.view(), &b.view(), &c.view(), to, |a, b, c, dst| *dst = mix(*dst, *a, *b, *c)).unwrap();
    });
}

#[test]
fn any_layouts_at_every_index() {
    let mut random = Random(7);
    for _ in 0..1500 {
        let rank = 1 + random.below(5) as usize;
        let most = [400, 40, 16, 8, 5][rank - 1];
        let power = random.one_in(2);
        let extents: Vec<i64> = (0..rank)
            .map(|_| if power { 1 << random.below([10, 6, 4, 3, 3][rank - 1]) } else { 1 + random.below(most) as i64 })
            .collect();
        transforms(&mut random, &extents);
    }
}

#[test]
fn any_layouts_shared_by_threads() {
    let mut random = Random(8);
    for extents in [&[70_001][..], &[257, 300], &[300, 257], &[64, 32, 64], &[9, 100, 11, 13], &[4; 9], &[2; 17]] {
        for _ in 0..6 {
            transforms(&mut random, extents);
        }
    }
}

#[test]
fn elements_without_bytes() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let count = || calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut memory = [(); 60];
    let layout = flat(&[3, 4, 5], &[1, 3, 12]);
    update(&mut TensorViewMut::new(&mut memory, layout.clone()).unwrap(), |_| _ = count()).unwrap();
    let a = Tensor::filled(flat(&[3, 4, 5], &[20, 5, 1]), 1_u8).unwrap();
    transform(&a.view(), &mut TensorViewMut::new(&mut memory, layout).unwrap(), |_, _| _ = count()).unwrap();
    assert_eq!(calls.into_inner(), 120);
}

/// The number of elements and two sums of them: no element may be missing, or be there twice.
fn tally(total: [i64; 3], a: &i16) -> [i64; 3] {
    let a = i64::from(*a);
    [total[0] + 1, total[1] + a, total[2].wrapping_add(a.wrapping_mul(a))]
}

fn together(a: [i64; 3], b: [i64; 3]) -> [i64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2].wrapping_add(b[2])]
}

/// Reductions along some modes against the naive loop, all memory compared.
fn reductions_of(random: &mut Random, extents: &[i64]) {
    // Modes of the source are top-level ones; each may be of several leaves.
    let leaves: Vec<i64> = extents.iter().flat_map(|extent| random.reshaped(&[*extent])).collect();
    let layout = layout(random, &leaves, false);
    let (memory, origin) = memory::<i16>(Offsets::range(&layout).unwrap(), random.next());
    let src = Operand { memory, origin, layout };
    let sizes: Vec<i64> = src.layout.shape().modes().map(|mode| mode.leaves().iter().product()).collect();
    let modes: Vec<usize> = (0..sizes.len()).filter(|_| random.one_in(2)).collect();
    let mut kept: Vec<i64> = (0..sizes.len()).filter(|mode| !modes.contains(mode)).map(|mode| sizes[mode]).collect();
    if kept.is_empty() {
        kept.push(1);
    }
    let mut dst = Operand::<[i64; 3]>::new(random, &kept, true);
    let sizes_of =
        |layout: &Composed| -> Vec<i64> { layout.shape().modes().map(|mode| mode.leaves().iter().product()).collect() };
    while sizes_of(&dst.layout) != kept {
        dst = Operand::new(random, &kept, true);
    }
    let mut expected = dst.memory.clone();
    (0..dst.layout.size()).for_each(|index| expected[dst.place(index)] = [7, 0, 0]);
    for index in 0..src.layout.size() {
        let (mut rest, mut at, mut step) = (index, 0, 1);
        for (mode, size) in sizes.iter().enumerate() {
            if !modes.contains(&mode) {
                at += rest % size * step;
                step *= size;
            }
            rest /= size;
        }
        let place = dst.place(at);
        expected[place] = tally(expected[place], &src.at(index));
    }
    let mut found = dst.memory.clone();
    let mut to = TensorViewMut::with_origin(&mut found, dst.origin, dst.layout.clone()).unwrap();
    reduce(&src.view(), &modes, &mut to, [7, 0, 0], tally).unwrap();
    assert!(found == expected, "{modes:?} of {} to {}", src.layout, dst.layout);
    // Values that begin from nothing are joined.
    (0..dst.layout.size()).for_each(|index| expected[dst.place(index)][0] -= 7);
    let mut found = dst.memory.clone();
    let mut to = TensorViewMut::with_origin(&mut found, dst.origin, dst.layout.clone()).unwrap();
    reduce_with(&src.view(), &modes, &mut to, [0; 3], tally, together).unwrap();
    assert!(found == expected, "{modes:?} of {} to {}, joined", src.layout, dst.layout);
}

#[test]
fn reductions_of_any_layouts() {
    let mut random = Random(9);
    for _ in 0..2500 {
        let rank = 1 + random.below(4) as usize;
        let most = [400, 60, 16, 8][rank - 1];
        let extents: Vec<i64> = (0..rank)
            .map(|_| {
                if random.one_in(2) { 1 << random.below([9, 6, 4, 3][rank - 1]) } else { 1 + random.below(most) as i64 }
            })
            .collect();
        reductions_of(&mut random, &extents);
    }
    for extents in [&[140_001][..], &[257, 600], &[600, 257], &[64, 32, 64], &[9, 100, 11, 13], &[2; 18]] {
        for _ in 0..6 {
            reductions_of(&mut random, extents);
        }
    }
}

#[test]
fn sums_do_not_depend_on_the_number_of_threads() {
    let sum = |threads: usize| {
        let a = Tensor::from_fn(flat(&[700, 500], &[500, 1]), |index| (index as f32).sin()).unwrap();
        let mut sum = Tensor::filled(flat(&[1], &[0]), 0.0_f32).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| reduce_with(&a.view(), &[0, 1], &mut sum.view_mut(), 0.0, |x, a| x + a, |x, y| x + y)).unwrap();
        sum.as_slice()[0].to_bits()
    };
    assert_eq!(sum(1), sum(3));
}

#[test]
fn refusals() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let a = numbers(layout("(2,3):(3,1)"), 0);
    let mut dst = numbers(layout("4:1"), 0);
    assert_eq!(axpby(1, &a.view(), 1, &mut dst.view_mut()).unwrap_err().code(), "E0420");
    let mut reduce = |modes: &[usize]| reduce(&a.view(), modes, &mut dst.view_mut(), 0, |sum, a| sum + a).unwrap_err();
    assert_eq!(reduce(&[2]).to_string(), "there is no mode 2 to reduce");
    assert_eq!(reduce(&[0]).to_string(), "mode 1, of size 3, is kept, but its mode in the result has size 4");
    assert_eq!(reduce(&[]).code(), "E0422");
    assert_eq!(reduce(&[0, 1]).to_string(), "the result has a mode of size 4 for which no mode is kept");
}

/// Operands in another order than the destination, beyond a block, of elements of every size.
#[test]
fn transposed_operands() {
    fn meets<A, B>(rows: i64, columns: i64, a: impl Fn(i64) -> A, b: impl Fn(i64) -> B)
    where
        A: Copy + Sync + Send + Into<i64>,
        B: Copy + Sync + Send + Into<i64>,
    {
        let orders = |pad: i64| [flat(&[rows, columns], &[columns + pad, 1]), flat(&[rows, columns], &[1, rows + pad])];
        for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (one, two) = (orders(0)[first].clone(), orders(3)[second].clone());
            let (one, two) = (Tensor::from_fn(one, &a).unwrap(), Tensor::from_fn(two, &b).unwrap());
            for to in orders(1) {
                let mut dst = Tensor::from_fn(to.clone(), |index| index).unwrap();
                let mut untouched = dst.try_clone().unwrap();
                let add = |a: &A, b: &B, dst: &mut i64| *dst += 3 * (*a).into() - (*b).into();
                transform2(&one.view(), &two.view(), &mut dst.view_mut(), add).unwrap();
                for index in 0..rows * columns {
                    let expected = index + 3 * a(index).into() - b(index).into();
                    assert_eq!(*dst.get(index).unwrap(), expected, "{to} {rows} {columns}");
                    untouched.set(index, expected).unwrap();
                }
                assert_eq!(untouched.as_slice(), dst.as_slice());
            }
        }
    }
    for (rows, columns) in [(300, 530), (64, 256), (65, 257), (7, 9), (8, 300), (700, 13)] {
        meets(rows, columns, |index| (index * 7) as u8, |index| (index * 3) as i16);
        meets(rows, columns, |index| index as u32, |index| index * 5);
        meets(rows, columns, |index| index as u16, |index| index % 2 == 0);
    }
}

#[test]
fn elements_that_can_change_are_themselves() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let (rows, columns) = (flat(&[90, 300], &[300, 1]), flat(&[90, 300], &[1, 90]));
    let counts: Vec<AtomicU32> = (0..90 * 300).map(AtomicU32::new).collect();
    let mut seen = Tensor::filled(columns, 0).unwrap();
    let view = TensorView::new(&counts, rows.clone()).unwrap();
    transform(&view, &mut seen.view_mut(), |count, seen| *seen = count.fetch_add(1, Ordering::Relaxed)).unwrap();
    for index in 0..90 * 300 {
        let place = rows.offset(index).unwrap() as u32;
        assert_eq!((*seen.get(index).unwrap(), counts[place as usize].load(Ordering::Relaxed)), (place, place + 1));
    }
}

#[test]
fn reductions_of_another_order() {
    // The destination goes on where the source does not: beyond a block, along either mode that is
    // kept.
    for (rows, middle, columns) in [(300, 5, 280), (70, 3, 9), (64, 2, 256)] {
        let a = Tensor::from_fn(flat(&[rows, middle, columns], &[middle * columns, columns, 1]), |index| index as i32)
            .unwrap();
        let mut sums = Tensor::filled(flat(&[rows, columns], &[1, rows + 2]), 0_i64).unwrap();
        reduce(&a.view(), &[1], &mut sums.view_mut(), 7, |sum, a| sum + i64::from(*a)).unwrap();
        for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            let expected: i64 = (0..middle).map(|k| i + rows * (k + middle * j)).sum();
            assert_eq!(*sums.get([i, j]).unwrap(), expected + 7, "{i} {j}");
        }
    }
}
