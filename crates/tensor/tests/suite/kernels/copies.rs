//! Copies against the naive loop: every element, and nothing beside them, for all kinds of layouts,
//! sizes of elements and ways of doing it.

use bytemuck::{AnyBitPattern, NoUninit};
use tilewright_layout::{Composed, Layout, Leaf, StaticLayout, Swizzle, Tree, Xor};
use tilewright_tensor::{CopyOptions, Instructions, Offsets, Plan, TensorView, TensorViewMut, copy, fill};

use crate::kernels::random::{Random, flat, memory};

fn all_options() -> Vec<CopyOptions> {
    let mut all = vec![CopyOptions::default()];
    for instructions in [Instructions::Portable, Instructions::Avx2, Instructions::Avx512] {
        for streaming in [false, true] {
            let (instructions, streaming) = (Some(instructions), Some(streaming));
            all.push(CopyOptions { threads: Some(2), streaming, instructions });
        }
    }
    all
}

/// Copies in each of the ways and compares all memory with what the naive loop makes of it.
fn check<T, S, D>(src: &S, dst: &D, options: &[CopyOptions], seed: u64)
where
    T: NoUninit + AnyBitPattern + PartialEq + std::fmt::Debug,
    S: Offsets,
    D: Offsets,
{
    let (from, from_origin) = memory::<T>(src.range().unwrap(), seed);
    let (before, to_origin) = memory::<T>(dst.range().unwrap(), seed + 1);
    let mut expected = before.clone();
    for index in 0..dst.size() {
        let at = (to_origin as i64 + dst.offset(index).unwrap()) as usize;
        expected[at] = from[(from_origin as i64 + src.offset(index).unwrap()) as usize];
    }
    let view = TensorView::with_origin(&from, from_origin, src.clone()).unwrap();
    for options in options {
        let plan = Plan::new(src, dst, size_of::<T>(), *options).unwrap();
        let mut to = before.clone();
        plan.run(&view, &mut TensorViewMut::with_origin(&mut to, to_origin, dst.clone()).unwrap()).unwrap();
        assert!(to == expected, "{src} to {dst}, {} bytes, {options:?}\n{plan}", size_of::<T>());
    }
    let mut to = before;
    copy(&view, &mut TensorViewMut::with_origin(&mut to, to_origin, dst.clone()).unwrap()).unwrap();
    assert!(to == expected, "{src} to {dst}");
}

fn check_widths<S: Offsets, D: Offsets>(src: &S, dst: &D, seed: u64) {
    let all = all_options();
    // Every width with one of the ways, and one width with all of them.
    let some = &all[(seed as usize % all.len())..][..1];
    check::<u8, S, D>(src, dst, if seed.is_multiple_of(4) { &all } else { some }, seed);
    check::<u16, S, D>(src, dst, if seed % 4 == 1 { &all } else { some }, seed);
    check::<u32, S, D>(src, dst, if seed % 4 == 2 { &all } else { some }, seed);
    check::<u64, S, D>(src, dst, if seed % 4 == 3 { &all } else { some }, seed);
    if seed % 8 == 5 {
        check::<u128, S, D>(src, dst, some, seed);
        check::<[u8; 3], S, D>(src, dst, some, seed);
    }
}

#[test]
fn random_strides() {
    let mut random = Random(1);
    for seed in 0..1200 {
        let rank = 1 + random.below(5) as usize;
        let most = [400, 60, 20, 9, 6][rank - 1];
        let extents: Vec<i64> = (0..rank).map(|_| 1 + random.below(most) as i64).collect();
        let plain = random.one_in(2);
        let src = random.strides(&extents, plain);
        let shape = if random.one_in(3) { random.reshaped(&extents) } else { extents };
        let dst = random.strides(&shape, plain);
        check_widths(&src, &dst, seed);
    }
}

#[test]
fn sources_may_repeat_and_overlap() {
    let mut random = Random(2);
    for seed in 0..400 {
        let extents: Vec<i64> = (0..1 + random.below(4)).map(|_| 1 + random.below(12) as i64).collect();
        let strides: Vec<i64> = extents.iter().map(|_| random.below(7) as i64 - 2).collect();
        let src = flat(&extents, &strides);
        let dst = random.strides(&extents, false);
        check_widths(&src, &dst, seed);
    }
}

#[test]
fn matrices_of_every_raggedness() {
    // Around the sides of the blocks, and beyond those of a tile.
    let sides = [1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 63, 64, 65, 70, 129, 300];
    let mut seed = 0;
    for rows in sides {
        for columns in sides {
            seed += 1;
            check_widths(&flat(&[rows, columns], &[columns, 1]), &flat(&[rows, columns], &[1, rows]), seed);
        }
    }
    for (rows, columns) in [(1100, 300), (300, 1100), (2048, 256)] {
        let (by_rows, by_columns) = (flat(&[rows, columns], &[columns, 1]), flat(&[rows, columns], &[1, rows]));
        check::<u8, _, _>(&by_rows, &by_columns, &all_options(), 1);
        check::<u16, _, _>(&by_rows, &by_columns, &all_options(), 2);
        check::<u32, _, _>(&by_rows, &by_columns, &all_options(), 3);
        check::<u64, _, _>(&by_rows, &by_columns, &all_options(), 4);
    }
}

fn composed(swizzle: Swizzle, offset: i64, inner: Layout) -> Composed {
    Composed::new(swizzle, offset, inner).unwrap()
}

#[test]
fn swizzles() {
    let mut random = Random(3);
    let (mut copies, mut looped) = (0, 0);
    for seed in 0..400 {
        let rank = 1 + random.below(3) as usize;
        let power = random.one_in(2);
        let extent = |random: &mut Random| match power {
            true => 1 << random.below(if rank == 1 { 10 } else { 7 }),
            false => 1 + random.below(40) as i64,
        };
        let extents: Vec<i64> = (0..rank).map(|_| extent(&mut random)).collect();
        let bits = random.below(4) as i64;
        let shift = (bits + random.below(3) as i64) * if random.one_in(4) { -1 } else { 1 };
        let swizzle = Swizzle::new(bits, random.below(5) as i64, shift).unwrap();
        let offset = if random.one_in(3) { random.below(100) as i64 } else { 0 };
        let inner = random.strides(&extents, true);
        let swizzled = composed(swizzle, offset, inner);
        let plain = random.strides(&random_shape(&mut Random(seed), &extents), seed % 2 == 0);
        let plan = Plan::new(&plain, &swizzled, 2, CopyOptions::default()).unwrap();
        copies += 1;
        looped += usize::from(!plan.to_string().contains("index by index"));
        check_widths(&plain, &swizzled, seed);
        check_widths(&swizzled, &plain, seed + 1);
        let other = composed(Swizzle::new(2, 2, 3).unwrap(), 0, random.strides(&extents, true));
        check_widths(&swizzled, &other, seed + 2);
    }
    // Tiles whose extents are powers of two have loops.
    assert!(looped * 2 > copies, "{looped} of {copies}");
}

#[test]
fn transposes_through_swizzles() {
    // Tiles of three modes in any order, in a grid of any size, from and to matrices in any order.
    let mut random = Random(7);
    let (mut copies, mut permuted) = (0, 0);
    for seed in 0..240 {
        let powers = [2 + random.below(5), 2 + random.below(5), random.below(3)];
        let tile = powers.map(|power| 1_i64 << power);
        let grid = [1 + random.below(5) as i64, 1 + random.below(9) as i64, 1];
        let extents: Vec<i64> = tile.into_iter().zip(grid).flat_map(|(tile, grid)| [tile, grid]).collect();
        // The modes of the tile, of which the last is never the fastest, and those of the grid:
        // apart, or each after its own.
        let ordered = |random: &mut Random, apart: bool| {
            let order = loop {
                let order = random.shuffled(3);
                if order[0] != 2 {
                    break order;
                }
            };
            let (mut strides, mut step) = ([0; 6], 1);
            let modes: Vec<usize> = match apart {
                true => order.iter().map(|k| 2 * k).chain(random.shuffled(3).into_iter().map(|k| 2 * k + 1)).collect(),
                false => order.iter().flat_map(|k| [2 * k, 2 * k + 1]).collect(),
            };
            for mode in modes {
                strides[mode] = step;
                step *= extents[mode];
            }
            flat(&extents, &strides)
        };
        // Mostly one that repeats with the tile.
        let swizzle = loop {
            let (bits, base) = (1 + random.below(3) as i64, random.below(6) as i64);
            let shift = (bits + random.below(5) as i64) * if random.one_in(6) { -1 } else { 1 };
            let reach = (bits + base + shift.abs()) as u64;
            if reach <= powers.iter().sum() || random.one_in(6) {
                break Swizzle::new(bits, base, shift).unwrap();
            }
        };
        let offset = if random.one_in(4) { 1 << random.below(10) } else { 0 };
        let swizzled = composed(swizzle, offset, ordered(&mut random, true));
        let plain = match random.one_in(4) {
            true => random.strides(&extents, seed % 2 == 0),
            false => ordered(&mut random, false),
        };
        let other = composed(Swizzle::new(2, 2, 3).unwrap(), 0, ordered(&mut random, true));
        let plan = Plan::new(&plain, &swizzled, 2, CopyOptions::default()).unwrap().to_string();
        copies += 1;
        permuted += usize::from(plan.contains("are permuted"));
        check_widths(&plain, &swizzled, seed);
        check_widths(&swizzled, &plain, seed + 1);
        check_widths(&swizzled, &other, seed + 2);
        check::<u128, _, _>(&plain, &swizzled, &all_options()[seed as usize % 7..][..1], seed);
        check::<u128, _, _>(&swizzled, &other, &all_options()[seed as usize % 7..][..1], seed);
    }
    assert!(permuted * 6 > copies, "{permuted} of {copies}");
}

#[test]
fn large_transposes_through_swizzles() {
    // Several tiles along rows of either side, ragged grids, parts of every size, threads.
    let text = |text: &str| text.parse::<Composed>().unwrap();
    for (seed, (plain, swizzled)) in [
        ("((32,5),(8,131)):((1048,33536),(1,8))", "S<3,2,3> o 0 o ((32,5),(8,131)):((1,33536),(32,256))"),
        ("((8,67),(64,9)):((1,8),(536,34304))", "S<3,3,3> o 0 o ((8,67),(64,9)):((64,4608),(1,512))"),
        ("((128,3),(64,7)):((448,57344),(1,64))", "S<3,4,3> o 0 o ((128,3),(64,7)):((1,57344),(128,8192))"),
        ("((128,3),(8,131)):((1048,134144),(1,8))", "S<3,0,3> o 0 o ((128,3),(8,131)):((1,1024),(128,3072))"),
        ("((128,3),(8,131)):((1048,134144),(1,8))", "S<2,1,6> o 0 o ((128,3),(8,131)):((1,1024),(128,3072))"),
        (
            "((64,6),(4,90),(4,5)):((1,64),(384,1536),(138240,552960))",
            "S<2,3,5> o 0 o ((64,6),(4,90),(4,5)):((16,7680),(4,46080),(1,1536))",
        ),
        // Rows of the source, or of a tile, that are shorter than a line.
        ("((32,9),8):((8,256),1)", "S<3,2,3> o 0 o ((32,9),8):((1,256),32)"),
        ("((8,9),(64,3)):((192,1536),(1,64))", "S<2,3,3> o 0 o ((8,9),(64,3)):((1,1536),(8,512))"),
        ("(64,64,2):(1,64,4096)", "S<1,3,9> o 0 o (64,64,2):(64,1,4096)"),
        ("(64,64,2):(64,1,4096)", "S<2,2,10> o 64 o (64,64,2):(1,64,4096)"),
    ]
    .into_iter()
    .enumerate()
    {
        let (plain, swizzled): (Layout, Composed) = (plain.parse().unwrap(), text(swizzled));
        for seed in [seed as u64, seed as u64 + 2] {
            check_widths(&plain, &swizzled, seed);
            check_widths(&swizzled, &plain, seed);
        }
    }
}

#[test]
fn plans_say_what_a_map_moves() {
    let plan = |src: &str, dst: &str, element| {
        let (src, dst): (Composed, Composed) = (src.parse().unwrap(), dst.parse().unwrap());
        let options =
            CopyOptions { threads: Some(1), instructions: Some(Instructions::Portable), ..Default::default() };
        Plan::new(&src, &dst, element, options).unwrap().to_string()
    };
    let rows = "S<0,0,0> o 0 o ((32,128),(8,512)):((4096,131072),(1,8))";
    let columns = "S<3,2,3> o 0 o ((32,128),(8,512)):((1,131072),(32,256))";
    let found = plan(rows, columns, 4);
    for line in [
        "tile: 1024 x 32 elements of 4 bytes, transposed in registers (portable)",
        "map: parts of 16 bytes are permuted in rows of the destination",
        "stores: non-temporal, because the destination is larger than the caches",
    ] {
        assert!(found.contains(line), "{found}");
    }
    assert!(plan(columns, rows, 4).contains("map: parts of 16 bytes are permuted in rows of the source"));
    // A matrix of few columns.
    let narrow = plan("S<0,0,0> o 0 o ((32,9),8):((8,256),1)", "S<3,2,3> o 0 o ((32,9),8):((1,256),32)", 4);
    assert!(narrow.contains("tile: 8 x 32 elements of 4 bytes, transposed"), "{narrow}");
    // What neither side wants is a loop.
    let found = plan("S<0,0,0> o 0 o (64,64,2):(1,64,4096)", "S<1,3,9> o 0 o (64,64,2):(64,1,4096)", 4);
    assert!(found.contains("loop: 2 times, source +16384 bytes, destination +16384 bytes; the last flips 32 in the places of the destination"), "{found}");
}

fn random_shape(random: &mut Random, extents: &[i64]) -> Vec<i64> {
    if random.one_in(2) { random.reshaped(extents) } else { extents.to_vec() }
}

#[test]
fn layouts_with_xor_strides() {
    let mut random = Random(4);
    let mut copies = 0;
    for seed in 0..700 {
        let rank = 1 + random.below(3) as usize;
        let extents: Vec<i64> = (0..rank)
            .map(|_| if random.one_in(4) { 1 + random.below(9) as i64 } else { 1 << random.below(5) })
            .collect();
        let bound = if random.one_in(2) { 64 } else { 1024 };
        let leaves = extents
            .iter()
            .map(|extent| Leaf { extent: *extent, stride: Xor::new(random.below(bound)).unwrap() })
            .collect::<Vec<_>>();
        let src: Layout<Xor> = Layout::from_tree(Tree::flat(leaves).unwrap()).unwrap();
        let dst = random.strides(&extents, false);
        check_widths(&src, &dst, seed);
        if src.is_injective() == Ok(true) {
            copies += 1;
            check_widths(&dst, &src, seed);
        }
    }
    assert!(copies > 100, "{copies}");
    let tile: Layout<Xor> = "((8,8),1000):((^1,^9),^64)".parse().unwrap();
    let rows: Layout = "((8,8),1000):((8,1),64)".parse().unwrap();
    assert!(!Plan::new(&rows, &tile, 4, CopyOptions::default()).unwrap().to_string().contains("index by index"));
    check_widths(&rows, &tile, 5);
}

#[test]
fn gathers_through_layouts() {
    // A layout after another that has no layout of its own: indices modulo, and chains of maps.
    let mut random = Random(5);
    for seed in 0..300 {
        let extents: Vec<i64> = (0..1 + random.below(3)).map(|_| 1 + random.below(12) as i64).collect();
        let inner = random.strides(&extents, true);
        let outer = flat(&[1 + random.below(6) as i64, 1 + random.below(6) as i64], &[random.below(20) as i64, 3]);
        let src = Composed::new(outer, random.below(9) as i64, inner).unwrap();
        let src = if random.one_in(3) { src.then(Swizzle::new(1, 1, 2).unwrap()).unwrap() } else { src };
        check_widths(&src, &random.strides(&extents, false), seed);
    }
}

#[test]
fn static_layouts() {
    const SHAPE: &[Leaf] = &[Leaf { extent: 6, stride: 10 }, Leaf { extent: 10, stride: 1 }];
    let rows = StaticLayout::new(SHAPE, &[0, 1], &[3, 0, 0]);
    let Some(rows) = rows else { panic!("a layout") };
    check_widths(&rows, &flat(&[6, 10], &[1, 6]), 0);
}

#[test]
fn large_destinations() {
    // Past the caches, by all instructions, aligned and not, shared by threads.
    let wide = |rows: i64, columns: i64| (flat(&[rows, columns], &[columns, 1]), flat(&[rows, columns], &[1, rows]));
    for (rows, columns) in [(1024, 2304), (1031, 2049)] {
        let (src, dst) = wide(rows, columns);
        check::<u32, _, _>(&src, &dst, &all_options(), 7);
        check::<u32, _, _>(&src, &src, &all_options(), 7);
    }
    let permuted = (flat(&[33, 20, 65, 60], &[1, 33, 660, 42900]), flat(&[33, 20, 65, 60], &[78000, 1, 1200, 20]));
    check::<u32, _, _>(&permuted.0, &permuted.1, &all_options(), 8);
    let padded = (flat(&[300_000, 4], &[1, 300_001]), flat(&[300_000, 4], &[1, 300_005]));
    check::<u64, _, _>(&padded.0, &padded.1, &all_options(), 9);
}

#[test]
fn transposes_of_several_tiles() {
    // More than one tile along rows that share lines with others, narrow and wide, rows that follow
    // one another, and axes that both sides want.
    let permuted = |extents: &[i64], order: &[usize]| {
        let compact = |order: &mut dyn Iterator<Item = usize>| {
            let (mut strides, mut step) = (vec![0; extents.len()], 1);
            for axis in order {
                strides[axis] = step;
                step *= extents[axis];
            }
            flat(extents, &strides)
        };
        (compact(&mut (0..extents.len()).rev()), compact(&mut order.iter().rev().copied()))
    };
    for (extents, order) in [
        (&[701, 611][..], &[1, 0][..]),
        (&[640, 1088], &[1, 0]),
        (&[7001, 21], &[1, 0]),
        (&[5200, 90], &[1, 0]),
        (&[21, 7001], &[1, 0]),
        (&[300, 7, 170], &[2, 0, 1]),
        (&[115, 5, 9, 13, 3], &[4, 2, 1, 3, 0]),
        (&[79, 11, 12, 25], &[3, 2, 1, 0]),
    ] {
        let (src, dst) = permuted(extents, order);
        for seed in 0..4 {
            check_widths(&src, &dst, seed);
        }
    }
}

/// Row-major extents, and the same with its axes in another order.
fn permuted(extents: &[i64], order: &[usize]) -> (Layout, Layout) {
    let mut strides = vec![0; extents.len()];
    order.iter().rev().fold(1, |step, axis| {
        strides[*axis] = step;
        step * extents[*axis]
    });
    let shape = Tree::flat(extents.to_vec()).unwrap();
    (Layout::row_major(&shape).unwrap(), Layout::new(&shape, &Tree::flat(strides).unwrap()).unwrap())
}

/// Short rows of the destination that follow one another, in several batches, in runs that are not
/// in the order of the columns, and in tiles that have fewer.
#[test]
fn short_rows() {
    let cases: [(&[i64], &[usize]); 6] = [
        (&[115, 3, 26, 24], &[3, 1, 2, 0]),
        (&[67, 2, 31, 13], &[3, 1, 2, 0]),
        (&[300, 2500], &[1, 0]),
        (&[33, 1100], &[1, 0]),
        (&[70, 5, 11, 9], &[3, 1, 2, 0]),
        (&[129, 40, 40], &[2, 1, 0]),
    ];
    for (seed, (extents, order)) in cases.into_iter().enumerate() {
        let (src, dst) = permuted(extents, order);
        let streaming = CopyOptions { streaming: Some(true), ..CopyOptions::default() };
        let plan = Plan::new(&src, &dst, 1, streaming).unwrap().to_string();
        assert!(plan.contains("rows are adjacent"), "{plan}");
        for way in 0..4 {
            check_widths(&src, &dst, 4 * seed as u64 + way);
        }
    }
}

#[test]
fn wide_transposes() {
    // Rows of the source of many tiles, rows of the destination that are no whole lines, and
    // threads that begin within a row.
    let (rows, columns) = (701, 9_011);
    let (src, dst) = (flat(&[rows, columns], &[columns, 1]), flat(&[rows, columns], &[1, rows + 2]));
    check::<u8, _, _>(&src, &dst, &all_options(), 11);
    let five = CopyOptions { threads: Some(5), streaming: Some(true), ..CopyOptions::default() };
    check::<u16, _, _>(&src, &dst, &[five], 12);
}

#[test]
fn fills() {
    let mut random = Random(6);
    for _ in 0..800 {
        let extents: Vec<i64> = (0..1 + random.below(4)).map(|_| 1 + random.below(14) as i64).collect();
        let dst = random.strides(&extents, false);
        let (before, origin) = memory::<u16>(dst.range().unwrap(), 3);
        let (mut expected, mut found) = (before.clone(), before);
        for index in 0..dst.size() {
            expected[(origin as i64 + dst.eval(&index).unwrap()) as usize] = 0xabcd;
        }
        fill(&mut TensorViewMut::with_origin(&mut found, origin, dst.clone()).unwrap(), 0xabcd).unwrap();
        assert!(found == expected, "{dst}");
    }
    let mut long = vec![[0_u8; 3]; 500_000];
    let all = flat(&[500_000], &[1]);
    fill(&mut TensorViewMut::new(&mut long, all).unwrap(), [1, 2, 3]).unwrap();
    assert!(long.iter().all(|value| *value == [1, 2, 3]));
}

#[test]
fn refusals() {
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let plan = |src: &str, dst: &str| Plan::new(&layout(src), &layout(dst), 4, CopyOptions::default());
    assert_eq!(plan("(2,3):(1,2)", "5:1").unwrap_err().to_string(), "one operand has 6 elements, the other 5 elements");
    assert_eq!(plan("(2,3):(1,2)", "(2,3):(1,1)").unwrap_err().code(), "E0402");
    assert_eq!(plan("(2,3):(1,2)", "(2,3):(1,0)").unwrap_err().code(), "E0402");
    let plan = plan("(2,3):(1,2)", "(2,3):(3,1)").unwrap();
    let (from, mut to) = ([0_u32; 6], [0_u32; 6]);
    let view = TensorView::new(&from, layout("(2,3):(1,2)")).unwrap();
    let mut other = TensorViewMut::new(&mut to, layout("(2,3):(1,2)")).unwrap();
    assert_eq!(plan.run(&view, &mut other).unwrap_err().code(), "E0421");
    let (from, mut to) = ([0_u64; 6], [0_u64; 6]);
    let view = TensorView::new(&from, layout("(2,3):(1,2)")).unwrap();
    let mut dst = TensorViewMut::new(&mut to, layout("(2,3):(3,1)")).unwrap();
    assert_eq!(plan.run(&view, &mut dst).unwrap_err().to_string(), "the plan was made for elements of another size");
    // Elements of no size have nothing to move.
    let (from, mut to) = ([(); 6], [(); 6]);
    let view = TensorView::new(&from, layout("(2,3):(1,2)")).unwrap();
    copy(&view, &mut TensorViewMut::new(&mut to, layout("(2,3):(3,1)")).unwrap()).unwrap();
}
