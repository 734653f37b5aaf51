//! Kernels in CuTe's idiom, whose results are compared with plain loops.

use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Element, Kernel, Reduction, Written};
use tilewright_layout::atoms::{CopyAtom, CopyEnd, Operand};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, Layout, Slot, Stride, Tree, coord};

use super::{floats, last, product, run, tiled};

const S: CopyEnd = CopyEnd::Source;
const D: CopyEnd = CopyEnd::Destination;

/// A tensor that holds for each element which thread and value has it, by the definition: of
/// threads `(TM,TN)` in row-major order with values `(VM,VN)`, m fastest.
fn owners([rows, columns]: [usize; 2], [tm, tn]: [usize; 2], [vm, vn]: [usize; 2]) -> Vec<(usize, usize)> {
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let owner = |(row, column): (usize, usize)| {
        let thread = row / vm % tm * tn + column / vn % tn;
        let tiles = (rows / (tm * vm), row / (tm * vm), column / (tn * vn));
        let value = row % vm + vm * (column % vn) + vm * vn * (tiles.1 + tiles.0 * tiles.2);
        (thread, value)
    };
    all.map(owner).collect()
}

#[test]
fn two_parts_are_copied_element_for_element() {
    for (atom, values) in [("UniversalCopy<uint128_t>", [1, 4]), ("UniversalCopy<uint32_t>", [2, 4])] {
        let copy = tiled(atom, 32, "(8,4):(4,1)", &format!("({},{})", values[0], values[1]));
        for predicated in [false, true] {
            let kernel = Kernel::build("moved", |k| {
                let (x, y) = (k.input::<f32>("x", "(32,32):(32,1)")?, k.output::<f32>("y", "(32,32):(1,32)")?);
                let (from, to) = (x.partition(&copy, S)?, y.partition(&copy, D)?);
                if predicated { k.copy_predicated(&copy, &from, &to) } else { k.copy(&copy, &from, &to) }
            })
            .unwrap();
            assert_eq!(kernel.outputs()[0].written, Written::Once);
            let x = floats(1024);
            let y: Vec<f32> = run(&kernel, &[], std::slice::from_ref(&x));
            assert!((0..1024).all(|at| y[at] == x[at % 32 * 32 + at / 32]), "{atom}");
        }
    }
}

#[test]
fn a_part_has_the_elements_of_the_definition() {
    // Each thread counts the values of its part and stores the counts: value `v` of thread `t`.
    let copy = tiled("UniversalCopy<uint32_t>", 32, "(4,8):(8,1)", "(2,2)");
    let kernel = Kernel::build("owners", |k| {
        let y = k.output::<i32>("y", "(32,32):(32,1)")?.partition(&copy, D)?;
        let (own, thread) = (y.fragment()?, k.index(&k.thread()?)?);
        for index in 0..own.size() as i64 {
            own.set_at(index, thread * 1000.0 + k.number(index as i32))?;
        }
        k.copy(&copy, &own, &y)
    })
    .unwrap();
    let y: Vec<i32> = run::<f32, i32>(&kernel, &[], &[]);
    let wanted = owners([32, 32], [4, 8], [2, 2]);
    assert_eq!(y, wanted.iter().map(|(thread, value)| (thread * 1000 + value) as i32).collect::<Vec<_>>());
}

/// The product of the tiling post: partitions of both copies, slices of their tiles along K, and a
/// product of parts in shared memory.
#[test]
fn the_product_of_the_post() {
    let copy_a = tiled("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", 32, "(8,8):(8,1)", "(1,1)");
    let copy_b = tiled("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", 32, "(8,8):(1,8)", "(4,1)");
    let mma = product("UniversalFMA<F32,F32,F32,F32>", "(8,8,1):(8,1,0)");
    let kernel = Kernel::build("post", |k| {
        let a = k.input::<f32>("a", "(M,K):(K,1)")?;
        let b = k.input::<f32>("b", "(N{div=4},K):(1,N)")?;
        let c = k.output::<f32>("c", "(M,N):(N,1)")?;
        let (ga, gb) = (a.local_tile((32, 8), k.block("(x,_)")?)?, b.local_tile((32, 8), k.block("(y,_)")?)?);
        let gc = c.local_tile((32, 32), k.block("(x,y)")?)?;
        let (sa, sb) = (k.shared::<f32>("(32,8):(1,32)")?, k.shared::<f32>("(32,8):(1,32)")?);
        let (tga, tsa) = (ga.partition(&copy_a, S)?, sa.partition(&copy_a, D)?);
        let (tgb, tsb) = (gb.partition(&copy_b, S)?, sb.partition(&copy_b, D)?);
        let (csa, csb) = (sa.partition_mma(&mma, Operand::A)?, sb.partition_mma(&mma, Operand::B)?);
        let cgc = gc.partition_mma(&mma, Operand::C)?;
        let sums = cgc.fragment()?;
        sums.clear();
        k.range(tga.layout().mode(3).map_or(Expr::from(1), |mode| mode.size()), |step| {
            k.copy_predicated(&copy_a, &tga.slice(last(4, &step))?, &tsa)?;
            k.copy_predicated(&copy_b, &tgb.slice(last(4, &step))?, &tsb)?;
            k.commit_async();
            k.wait_async(0);
            k.barrier();
            k.mma(&mma, &sums, &csa, &csb, &sums)?;
            k.barrier();
            Ok(())
        })?;
        let at = k.coordinates(c.shape())?.local_tile((32, 32), k.block("(x,y)")?)?;
        let at = at.partition_mma(&mma, Operand::C)?;
        let inside = k.predicates(sums.layout())?;
        for index in 0..sums.size() as i64 {
            inside.set_at(index, k.elem_less(&at.at(index)?, &c.shape())?)?;
        }
        k.copy_if(&CopyAtom::named("UniversalCopy<uint32_t>")?, &inside, &sums, &cgc)
    })
    .unwrap();
    // The predicates are those of the edges, so it is shown that each element is written once.
    assert_eq!(kernel.outputs()[0].written, Written::Once);
    for [m, n, depth] in [[37, 44, 19], [32, 32, 8], [1, 4, 1], [70, 36, 9]] {
        let (a, b) = (floats(m * depth), floats(n * depth));
        let sizes = [("M", m as i64), ("N", n as i64), ("K", depth as i64)];
        let c: Vec<f32> = run(&kernel, &sizes, &[a.clone(), b.clone()]);
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let sum: f32 = (0..depth).map(|at| a[row * depth + at] * b[column + at * n]).sum();
            assert_eq!(c[row * n + column], sum, "({row},{column}) of {m} x {n} x {depth}");
        }
    }
}

#[test]
fn fragments_of_parts_are_read_and_written() {
    let copy = tiled("UniversalCopy<uint64_t>", 32, "(8,4):(4,1)", "(1,2)");
    let kernel = Kernel::build("through", |k| {
        let (x, y) = (k.input::<f32>("x", "(M,N{div=2}):(N,1)")?, k.output::<f32>("y", "(M,N{div=2}):(N,1)")?);
        let [x, y] = [x, y].map(|t| t.local_tile((16, 16), k.block("(x,y)")?));
        let (from, to) = (x?.partition(&copy, S)?, y?.partition(&copy, D)?);
        let own = from.fragment()?;
        k.copy_predicated(&copy, &from, &own)?;
        k.copy_predicated(&copy, &own.map(|x| Ok(x * 2.0))?, &to)
    })
    .unwrap();
    for [m, n] in [[16, 16], [17, 2], [40, 38]] {
        let x = floats(m * n);
        let y: Vec<f32> = run(&kernel, &[("M", m as i64), ("N", n as i64)], std::slice::from_ref(&x));
        assert!(x.iter().zip(&y).all(|(x, y)| 2.0 * x == *y));
    }
}

#[test]
fn parts_are_those_of_the_thread_that_is_named() {
    // Thread t moves what thread 31 - t has: all is moved, and by others.
    let copy = tiled("UniversalCopy<uint32_t>", 32, "(8,4):(4,1)", "(1,1)");
    let kernel = Kernel::build("turned", |k| {
        k.threads(32)?;
        let (x, y) = (k.input::<f32>("x", "(16,8):(8,1)")?, k.output::<i32>("y", "(16,8):(8,1)")?);
        let thread = k.thread()?;
        let other = Expr::from(31).minus(&thread).unwrap();
        let y = y.partition_at(&copy, D, &other)?;
        x.partition_at(&copy, S, &other)?.load()?;
        let own = y.fragment()?;
        own.fill(k.index(&thread)?)?;
        k.copy(&copy, &own, &y)
    })
    .unwrap();
    let y: Vec<i32> = run(&kernel, &[], &[floats(128)]);
    let owners = owners([16, 8], [8, 4], [1, 1]);
    assert!(y.iter().zip(owners).all(|(y, (thread, _))| *y == 31 - thread as i32));
    // The part of a thread that is known.
    let kernel = Kernel::build("fifth", |k| {
        k.threads(1)?;
        let (x, y) = (k.input::<f32>("x", "(16,8):(8,1)")?, k.output::<f32>("y", "(1,2,2)")?);
        let own = x.partition_at(&copy, S, &Expr::from(5))?.load()?;
        y.store(&own)
    })
    .unwrap();
    let x = floats(128);
    let y: Vec<f32> = run(&kernel, &[], std::slice::from_ref(&x));
    // Thread 5 is at (1,1): rows 1 and 9, columns 1 and 5.
    assert_eq!(y, [x[9], x[73], x[13], x[77]]);
}

#[test]
fn an_instruction_alone_copies_parts_of_any_kind() {
    let atom = CopyAtom::named("UniversalCopy<uint128_t>").unwrap();
    let kernel = Kernel::build("parts", |k| {
        let (x, y) = (k.input::<f32>("x", "(32,8):(8,1)")?, k.output::<f32>("y", "(32,8):(8,1)")?);
        k.copy(&atom, &x.thread_part()?, &y.thread_part()?)
    })
    .unwrap();
    let x = floats(256);
    let y: Vec<f32> = run(&kernel, &[], std::slice::from_ref(&x));
    assert_eq!(x, y);
    // By the number of the thread, which tells parts of threads as well.
    let kernel = Kernel::build("indexed", |k| {
        let (x, y) = (k.input::<f32>("x", "(32,8):(8,1)")?, k.output::<f32>("y", "(32,8):(8,1)")?);
        k.threads(32)?;
        let at = Tree::flat([Slot::At(k.thread()?), Slot::All])?;
        k.copy(&atom, &x.slice(at.clone())?, &y.slice(at)?)
    })
    .unwrap();
    let y: Vec<f32> = run(&kernel, &[], std::slice::from_ref(&x));
    assert_eq!(x, y);
}

#[test]
fn roles_have_parts_of_their_own() {
    let (first, second) = (
        tiled("UniversalCopy<uint32_t>", 32, "(8,4)", "(1,1)"),
        tiled("UniversalCopy<uint32_t>", 32, "(8,8)", "(1,2)"),
    );
    let kernel = Kernel::build("roles", |k| {
        let (x, y) = (k.input::<f32>("x", "(32,16):(16,1)")?, k.output::<f32>("y", "(32,16):(16,1)")?);
        k.threads(96)?;
        k.role(0..1, || {
            let at = coord!(Expr::from(0), Expr::from(0))?;
            let (from, to) = (x.local_tile((16, 16), at.clone())?, y.local_tile((16, 16), at)?);
            k.copy(&first, &from.partition(&first, S)?, &to.partition(&first, D)?)
        })?;
        k.role(1..3, || {
            let at = coord!(Expr::from(1), Expr::from(0))?;
            let (from, to) = (x.local_tile((16, 16), at.clone())?, y.local_tile((16, 16), at)?);
            k.copy(&second, &from.partition(&second, S)?, &to.partition(&second, D)?)
        })
    })
    .unwrap();
    let x = floats(512);
    let y: Vec<f32> = run(&kernel, &[], std::slice::from_ref(&x));
    assert_eq!(x, y);
}

/// `ldmatrix` of a part, into a fragment that is retiled, and `stmatrix` back.
#[test]
fn matrices_are_moved_by_parts() {
    let mma = product("SM80_16x8x16_F32F16F16F32_TN", "(2,1,1)");
    let load = |name: &str, operand| {
        tilewright_layout::atoms::TiledCopy::of_operand(CopyAtom::named(name).unwrap(), &mma, operand).unwrap()
    };
    let (load_a, load_b) = (load("SM75_U32x4_LDSM_N", Operand::A), load("SM75_U32x2_LDSM_N", Operand::B));
    let kernel = Kernel::build("matrices", |k| {
        let (a, b) = (k.input::<half::f16>("a", "(32,32):(32,1)")?, k.input::<half::f16>("b", "(8,32):(32,1)")?);
        let c = k.output::<f32>("c", "(32,8):(8,1)")?.partition_mma(&mma, Operand::C)?;
        let (sa, sb) = (k.shared::<half::f16>("(32,32):(32,1)")?, k.shared::<half::f16>("(8,32):(32,1)")?);
        let copy = tiled("UniversalCopy<uint64_t>", 16, "(8,8):(8,1)", "(1,4)");
        k.copy(&copy, &a.partition(&copy, S)?, &sa.partition(&copy, D)?)?;
        k.copy(&copy, &b.partition(&copy, S)?, &sb.partition(&copy, D)?)?;
        k.barrier();
        let (ra, rb) =
            (sa.partition_mma(&mma, Operand::A)?.fragment()?, sb.partition_mma(&mma, Operand::B)?.fragment()?);
        k.copy(&load_a, &sa.partition(&load_a, S)?, &ra.retile(&load_a, D)?)?;
        k.copy(&load_b, &sb.partition(&load_b, S)?, &rb.retile(&load_b, D)?)?;
        let sums = c.fragment()?;
        sums.clear();
        k.mma(&mma, &sums, &ra, &rb, &sums)?;
        k.copy(&CopyAtom::named("UniversalCopy<uint64_t>")?, &sums, &c)
    })
    .unwrap();
    let small = |count: usize, by: usize| (0..count).map(move |at| (at * by % 9) as f32 - 4.0);
    let half = |values: Vec<f32>| values.into_iter().map(half::f16::from_f32).collect::<Vec<_>>();
    let (a, b): (Vec<f32>, Vec<f32>) = (small(1024, 5).collect(), small(256, 7).collect());
    let c: Vec<f32> = run(&kernel, &[], &[half(a.clone()), half(b.clone())]);
    for (row, column) in (0..32).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let sum: f32 = (0..32).map(|at| a[row * 32 + at] * b[column * 32 + at]).sum();
        assert_eq!(c[row * 8 + column], sum, "({row},{column})");
    }
}

/// The operands of a product in memory: as tiles, and as parts; both are the same product.
#[test]
fn products_take_tiles_and_parts_in_memory() {
    let mma = product("UniversalFMA<F32,F32,F32,F32>", "(4,8,1)");
    for parts in [false, true] {
        let kernel = Kernel::build("fma", |k| {
            let (a, b) = (k.input::<f32>("a", "(8,6):(6,1)")?, k.input::<f32>("b", "(8,6):(1,8)")?);
            let c = k.output::<f32>("c", "(8,8):(8,1)")?.partition_mma(&mma, Operand::C)?;
            let sums = c.fragment()?;
            if parts {
                let (a, b) = (a.partition_mma(&mma, Operand::A)?, b.partition_mma(&mma, Operand::B)?);
                k.mma_anew(&mma, &sums, &a, &b)?;
            } else {
                k.mma_anew(&mma, &sums, &a, &b)?;
            }
            c.store(&sums)
        })
        .unwrap();
        let (a, b) = (floats(48), floats(48));
        let c: Vec<f32> = run(&kernel, &[], &[a.clone(), b.clone()]);
        for (m, n) in (0..8).flat_map(|m| (0..8).map(move |n| (m, n))) {
            assert_eq!(c[m * 8 + n], (0..6).map(|at| a[m * 6 + at] * b[n + 8 * at]).sum::<f32>());
        }
    }
}

/// The operands of a warpgroup as parts in shared memory, cut along K; CuTe's `tCsA(_,_,k)`.
#[test]
fn a_warpgroup_multiplies_parts() {
    let mma = product("SM90_64x8x16_F32F16F16_SS", "(1,1,1)");
    let kernel = Kernel::build("group", |k| {
        let (a, b) = (k.input::<half::f16>("a", "(64,64):(64,1)")?, k.input::<half::f16>("b", "(8,64):(64,1)")?);
        let c = k.output::<f32>("c", "(64,8):(8,1)")?.partition_mma(&mma, Operand::C)?;
        let (sa, sb) = (
            k.shared::<half::f16>("S<3,3,3> o 0 o (64,64):(64,1)")?,
            k.shared::<half::f16>("S<3,3,3> o 0 o (8,64):(64,1)")?,
        );
        let copy = tiled("UniversalCopy<uint64_t>", 16, "(8,16):(16,1)", "(1,4)");
        k.copy(&copy, &a.partition(&copy, S)?, &sa.partition(&copy, D)?)?;
        k.copy(&copy, &b.partition(&copy, S)?, &sb.partition(&copy, D)?)?;
        k.fence_async();
        k.barrier();
        let (pa, pb) = (sa.partition_mma(&mma, Operand::A)?, sb.partition_mma(&mma, Operand::B)?);
        let sums = c.fragment()?;
        sums.clear();
        for step in 0..4 {
            let at = coord!(_, _, Expr::from(step))?;
            k.mma(&mma, &sums, &pa.slice(at.clone())?, &pb.slice(at)?, &sums)?;
        }
        k.wait_mma(0);
        c.store(&sums)
    })
    .unwrap();
    let small =
        |count: usize, by: usize| (0..count).map(|at| half::f16::from_f32((at * by % 9) as f32 - 4.0)).collect();
    let (a, b): (Vec<half::f16>, Vec<half::f16>) = (small(4096, 5), small(512, 7));
    let c: Vec<f32> = run(&kernel, &[], &[a.clone(), b.clone()]);
    for (row, column) in (0..64).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let sum: f32 = (0..64).map(|at| a[row * 64 + at].to_f32() * b[column * 64 + at].to_f32()).sum();
        assert_eq!(c[row * 8 + column], sum, "({row},{column})");
    }
}

/// Predicates for each run of an instruction, in the form of CuTe's examples: `(rest_v, M, K)`,
/// where the ones along K are one. What is left out is zero behind `cp.async`.
#[test]
fn predicates_of_runs_leave_zeros_behind_asynchronous_copies() {
    let copy = tiled("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 32, "(8,4):(4,1)", "(1,4)");
    let kernel = Kernel::build("zeros", |k| {
        let (x, y) = (k.input::<f32>("x", "(M,32):(32,1)")?, k.output::<f32>("y", "(16,32):(32,1)")?);
        let tile = x.local_tile((16, 32), coord!(Expr::from(0), Expr::from(0))?)?;
        let held = k.shared::<f32>("(16,32):(32,1)")?;
        let (from, to) = (tile.partition(&copy, S)?, held.partition(&copy, D)?);
        let at = k.coordinates(x.shape())?.partition(&copy, S)?;
        let inside = k.predicates(&"(1,2,2):(2,1,0)".parse::<Layout>()?)?;
        for m in 0..2 {
            let row = at.slice(coord!(_, Expr::from(m), Expr::from(0))?)?.at(0)?;
            let rows = Tree::flat([row.leaves()[0].clone(), Expr::from(0)])?;
            inside.set_at(m, k.elem_less(&rows, &Tree::flat([k.size("M")?, Expr::from(1)])?)?)?;
        }
        k.copy_if(&copy, &inside, &from, &to)?;
        k.commit_async();
        k.wait_async(0);
        k.barrier();
        let (from, to) = (held.partition(&copy, S)?, y.partition(&copy, D)?);
        k.copy(&tiled("UniversalCopy<uint128_t>", 32, "(8,4):(4,1)", "(1,4)"), &from, &to)
    })
    .unwrap();
    for rows in [16, 5, 1] {
        let x = floats(rows * 32);
        let y: Vec<f32> = run(&kernel, &[("M", rows as i64)], std::slice::from_ref(&x));
        assert!((0..512).all(|at| y[at] == x.get(at).copied().unwrap_or(0.0)), "{rows}");
    }
}

/// A predicate that says other than the edges: a checkerboard, whose other elements stay.
#[test]
fn what_a_predicate_leaves_out_stays() {
    let copy = tiled("UniversalCopy<uint128_t>", 32, "(8,4):(4,1)", "(1,4)");
    for through in [false, true] {
        let kernel = Kernel::build("checkerboard", |k| {
            let (x, y) = (k.input::<f32>("x", "(16,16):(16,1)")?, k.tensor::<f32>("y", "(16,16):(16,1)")?);
            let (from, to) = (x.partition(&copy, S)?, y.partition(&copy, D)?);
            let at = k.coordinates((16, 16))?.partition(&copy, S)?;
            let chosen = k.predicates(&"(4,2,1)".parse()?)?;
            for index in 0..8 {
                let at = at.at(index)?;
                let sum = Stride::plus(&at.leaves()[0], &at.leaves()[1]).unwrap();
                chosen.set_at(index, k.index(&k.remainder(&sum, 2)?)?.eq(k.number(0_i32)))?;
            }
            if through {
                // Into registers that hold -1.
                let own = from.fragment()?;
                own.fill(k.number(-1.0_f32))?;
                k.copy_if(&copy, &chosen, &from, &own)?;
                k.copy(&copy, &own, &to)
            } else {
                k.copy_if(&copy, &chosen, &from, &to)
            }
        })
        .unwrap();
        let x = floats(256);
        let mut interpreter = tilewright_kernel::interpret::Interpreter::new(kernel.program(), &[]).unwrap();
        interpreter.tensor(0, &x).unwrap().tensor(1, &vec![-1.0_f32; 256]).unwrap();
        let y: Vec<f32> = interpreter.check().unwrap().run.tensor(1).unwrap();
        assert!((0..256).all(|at| y[at] == if (at / 16 + at % 16) % 2 == 0 { x[at] } else { -1.0 }));
    }
}

/// Modes of repetitions that are one, and predicates that a loop carries.
#[test]
fn parts_are_grouped_and_predicates_go_through_loops() {
    let copy = tiled("UniversalCopy<uint32_t>", 32, "(8,4):(4,1)", "(1,1)");
    let kernel = Kernel::build("grouped", |k| {
        let (x, y) = (k.input::<f32>("x", "(16,8):(8,1)")?, k.tensor::<f32>("y", "(16,8):(8,1)")?);
        let (from, to) = (x.partition(&copy, S)?.group(1..3)?, y.partition(&copy, D)?.group(1..3)?);
        let even = k.predicates(&"(1,4)".parse()?)?;
        even.fill(k.flag(true))?;
        k.range(3, |_| {
            for index in 0..4 {
                even.set_at(index, even.at(index)?.not())?;
            }
            Ok(())
        })?;
        // An odd number of iterations: none is copied, and then all are.
        k.copy_if(&copy, &even, &from, &to)?;
        for index in 0..4 {
            even.set_at(index, even.at(index)?.not())?;
        }
        y.local_tile((16, 8), coord!(Expr::from(0), Expr::from(0))?)?;
        k.when(even.at(0)?, || k.copy_if(&copy, &even, &from, &to))
    })
    .unwrap();
    let x = floats(128);
    let mut interpreter = tilewright_kernel::interpret::Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.tensor(0, &x).unwrap().tensor(1, &vec![-1.0_f32; 128]).unwrap();
    assert_eq!(interpreter.check().unwrap().run.tensor::<f32>(1).unwrap(), x);
}

/// The grid is that of the tiles, of coordinates as of tensors, and sums are added where they are.
#[test]
fn parts_of_blocks_are_accumulated() {
    let mma = product("UniversalFMA<F32,F32,F32,F32>", "(8,4,1)");
    let kernel = Kernel::build("added", |k| {
        let y = k.tensor::<f32>("y", "(8,4):(4,1)")?;
        k.grid(Axis::X, 5)?;
        let part = y.partition_mma(&mma, Operand::C)?;
        let own = part.fragment_of(Element::F32)?;
        own.fill(k.number(1.0_f32))?;
        part.accumulate(&own, Reduction::Sum)
    })
    .unwrap();
    let mut interpreter = tilewright_kernel::interpret::Interpreter::new(kernel.program(), &[]).unwrap();
    interpreter.tensor(0, &[0.0_f32; 32]).unwrap();
    assert_eq!(interpreter.check().unwrap().run.tensor::<f32>(0).unwrap(), [5.0; 32]);
}
