//! Kernels whose grid is not the number of tiles of their tensors: stencils with halos,
//! convolutions with padding, and rows by offsets.
//!
//! Law: what the author says of the grid decides. Each access is inside its tensor for all sizes,
//! is predicated at both edges, or is refused; results are those of plain loops over padded arrays.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Element, Kernel, KernelError, Num, Reason, Reduction, View, interpret};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Stride, Tree};

type Outcome<T = ()> = Result<T, KernelError>;

fn plus(a: &Expr, by: i64) -> Expr {
    Stride::plus(a, &Expr::from(by)).expect("a small sum")
}

fn times(a: &Expr, by: i64) -> Expr {
    Stride::times(a, &Expr::from(by)).expect("a small product")
}

fn coordinate(at: &[Expr]) -> Coord<Expr> {
    match at {
        [one] => Coord::leaf(Slot::At(one.clone())),
        at => Tree::flat(at.iter().map(|at| Slot::At(at.clone()))).expect("a few modes"),
    }
}

/// The element at a coordinate.
fn read<'k>(x: &View<'k>, at: &[Expr], predicated: bool) -> Outcome<Num<'k>> {
    let part = x.slice(coordinate(at))?;
    Ok(if predicated { part.load_predicated()? } else { part.load()? }.numbers()?[0])
}

fn write<'k>(k: &'k Build, y: &View<'k>, at: &[Expr], value: Num<'k>, predicated: bool) -> Outcome {
    let (part, fragment) = (y.slice(coordinate(at))?, k.register(value.element(), "1")?);
    fragment.set(&[value])?;
    if predicated { part.store_predicated(&fragment) } else { part.store(&fragment) }
}

fn sum<'k>(parts: impl IntoIterator<Item = Outcome<Num<'k>>>) -> Outcome<Num<'k>> {
    let parts = parts.into_iter().collect::<Outcome<Vec<_>>>()?;
    Ok(parts.into_iter().reduce(|a, b| a + b).expect("a sum of something"))
}

/// Small whole numbers: their sums are exact.
fn numbers(count: i64) -> Vec<f32> {
    (0..count).map(|at| ((at * 7 + at / 5) % 23 - 11) as f32).collect()
}

/// Runs a kernel on inputs in their order and returns `y`; the interpreter finds no defect.
fn result(kernel: &Kernel, sizes: &[(&str, i64)], inputs: &[&[f32]]) -> Vec<f32> {
    let mut interpreter = interpret::Interpreter::new(kernel.program(), sizes).unwrap();
    interpreter.fill(3);
    for (number, input) in inputs.iter().enumerate() {
        interpreter.tensor(number, input).unwrap();
    }
    let checked = interpreter.check().unwrap_or_else(|findings| panic!("{}: {findings}", kernel.name()));
    checked.run.tensor::<f32>("y").unwrap()
}

/// An element of rows of `width`, 0 outside.
fn at(x: &[f32], width: i64, i: i64, j: i64) -> f32 {
    let inside = (0..width).contains(&j) && (0..x.len() as i64 / width).contains(&i);
    if inside { x[(i * width + j) as usize] } else { 0.0 }
}

/// The rows of blocks along y, the columns of blocks along x with 32 threads each.
fn place(k: &Build) -> Outcome<(Expr, Expr)> {
    Ok((k.block_number(Axis::Y), column(k)?))
}

fn column(k: &Build) -> Outcome<Expr> {
    Ok(Stride::plus(&times(&k.block_number(Axis::X), 32), &k.thread()?).expect("a column"))
}

fn grid(k: &Build, x: &str, y: &str) -> Outcome {
    k.threads(32)?;
    k.grid(Axis::X, x)?;
    k.grid(Axis::Y, y)
}

#[test]
fn a_stencil_over_padded_rows_needs_no_predicates() {
    let kernel = Kernel::build("stencil", |k| {
        let x = k.input::<f32>("x", "(H+2,W{div=32}+2):(W+2,1)")?;
        let y = k.output::<f32>("y", "(H,W{div=32}):(W,1)")?;
        grid(k, "W/32", "H")?;
        let (i, j) = place(k)?;
        let parts = (0..9).map(|ab| read(&x, &[plus(&i, ab / 3), plus(&j, ab % 3)], false));
        write(k, &y, &[i.clone(), j.clone()], sum(parts)?, false)
    })
    .unwrap();
    let (h, w) = (5, 64);
    let x = numbers((h + 2) * (w + 2));
    let wanted: Vec<f32> =
        (0..h * w).map(|ij| (0..9).map(|ab| at(&x, w + 2, ij / w + ab / 3, ij % w + ab % 3)).sum()).collect();
    assert_eq!(result(&kernel, &[("H", h), ("W", w)], &[&x]), wanted);
}

#[test]
fn rows_cut_at_the_block_need_no_predicates_where_the_grid_shows_it() {
    let rows = |last: i64| {
        Kernel::build("rows", move |k| {
            let x = k.input::<f32>("x", "(H+2,32):(32,1)")?;
            let y = k.output::<f32>("y", "(H,32):(32,1)")?;
            grid(k, "1", "H")?;
            let (i, t) = (k.block_number(Axis::Y), k.thread()?);
            let parts = (0..=last).map(|a| read(&x, &[plus(&i, a), t.clone()], false));
            write(k, &y, &[i.clone(), t.clone()], sum(parts)?, false)
        })
    };
    let x = numbers(9 * 32);
    let wanted: Vec<f32> = (0..7 * 32).map(|ij| (0..3).map(|a| x[(ij + a * 32) as usize]).sum()).collect();
    assert_eq!(result(&rows(2).unwrap(), &[("H", 7)], &[&x]), wanted);
    assert!(matches!(rows(3).unwrap_err().reason(), Reason::Outside { .. }));
}

#[test]
fn a_convolution_with_padding_leaves_out_all_four_edges() {
    let kernel = Kernel::build("convolution", |k| {
        let x = k.input::<f32>("x", "(H,W):(W,1)")?;
        let w = k.input::<f32>("w", "(3,3):(3,1)")?;
        let y = k.output::<f32>("y", "(H,W):(W,1)")?;
        grid(k, "ceil(W/32)", "H")?;
        let (i, j) = place(k)?;
        let parts = (0..9).map(|ab| {
            let weight = read(&w, &[Expr::from(ab / 3), Expr::from(ab % 3)], false)?;
            Ok(weight * read(&x, &[plus(&i, ab / 3 - 1), plus(&j, ab % 3 - 1)], true)?)
        });
        write(k, &y, &[i.clone(), j.clone()], sum(parts)?, true)
    })
    .unwrap();
    for (h, w) in [(1, 1), (4, 31), (3, 65)] {
        let (x, weights) = (numbers(h * w), numbers(9));
        let wanted: Vec<f32> = (0..h * w)
            .map(|ij| {
                let part = |ab: i64| weights[ab as usize] * at(&x, w, ij / w + ab / 3 - 1, ij % w + ab % 3 - 1);
                (0..9).map(part).sum()
            })
            .collect();
        assert_eq!(result(&kernel, &[("H", h), ("W", w)], &[&x, &weights]), wanted, "{h} x {w}");
    }
}

#[test]
fn strided_and_dilated_convolutions_step_over_both_edges() {
    // The step, the dilation and the padding.
    for [step, apart, before] in [[2, 1, 1], [1, 3, 3], [3, 2, 4], [1, 1, 40]] {
        let kernel = Kernel::build("line", |k| {
            let x = k.input::<f32>("x", "N:1")?;
            let y = k.output::<f32>("y", "M:1")?;
            k.threads(32)?;
            k.grid(Axis::X, "ceil(M/32)")?;
            let m = column(k)?;
            let parts = (0..3).map(|a| read(&x, &[plus(&times(&m, step), a * apart - before)], true));
            write(k, &y, std::slice::from_ref(&m), sum(parts)?, true)
        })
        .unwrap();
        for (n, m) in [(1, 1), (100, 50), (70, 90)] {
            let x = numbers(n);
            let part = |at: i64| if (0..n).contains(&at) { x[at as usize] } else { 0.0 };
            let wanted: Vec<f32> = (0..m).map(|m| (0..3).map(|a| part(m * step + a * apart - before)).sum()).collect();
            assert_eq!(result(&kernel, &[("N", n), ("M", m)], &[&x]), wanted, "{step} {apart} {before} {n} {m}");
        }
    }
}

#[test]
fn offsets_of_rows_have_one_more_element_than_there_are_rows() {
    let kernel = Kernel::build("csr", |k| {
        let offsets = k.input::<i32>("offsets", "S+1:1")?;
        let x = k.input::<f32>("x", "N:1")?;
        let y = k.output::<f32>("y", "S:1")?;
        k.threads(1)?;
        k.grid(Axis::X, "S")?;
        let s = k.block_number(Axis::X);
        let (from, to) = (read(&offsets, std::slice::from_ref(&s), false)?, read(&offsets, &[plus(&s, 1)], false)?);
        let (first, count) = (k.index_of(from)?, k.index_of(to - from)?);
        let total = k.register(Element::F32, 1)?;
        total.clear();
        k.range(count, |iteration| {
            let place = Stride::plus(&first, &iteration).expect("a place");
            total.set(&[total.numbers()?[0] + read(&x, &[place], true)?])
        })?;
        write(k, &y, &[s], total.numbers()?[0], false)
    })
    .unwrap();
    let (offsets, x) = ([0_i32, 3, 3, 4, 9], numbers(9));
    let mut interpreter = interpret::Interpreter::new(kernel.program(), &[("S", 4), ("N", 9)]).unwrap();
    interpreter.tensor("offsets", &offsets).unwrap().tensor("x", &x).unwrap();
    let wanted: Vec<f32> = offsets.windows(2).map(|row| x[row[0] as usize..row[1] as usize].iter().sum()).collect();
    assert_eq!(interpreter.check().unwrap().run.tensor::<f32>("y").unwrap(), wanted);
}

#[test]
fn vectors_lie_inside_whole_or_not_at_all() {
    // Four elements a thread, `by` elements further on; and a view in which vectors stay aligned
    // though their coordinates do not begin at a multiple of their length.
    for by in [-8, -4, -3, -1, 0, 2, 4] {
        let kernel = Kernel::build("vectors", |k| {
            let x = k.input::<f32>("x", "N{div=4}:1")?;
            let y = k.output::<f32>("y", "N{div=4}:1")?;
            k.threads(8)?;
            let moved = x.domain_offset(&[Expr::from(by)])?.local_tile(32, k.block("x")?)?;
            let vector = Coord::<Expr>::leaf(Slot::At(k.thread()?));
            let read = moved.local_tile(4, vector.clone())?.load_predicated()?;
            y.local_tile(32, k.block("x")?)?.local_tile(4, vector)?.store_predicated(&read)
        })
        .unwrap();
        let x = numbers(68);
        let wanted: Vec<f32> = (0..68).map(|i| at(&x, 68, 0, i + by)).collect();
        assert_eq!(result(&kernel, &[("N", 68)], &[&x]), wanted, "{by}");
    }
    let kernel = Kernel::build("windows", |k| {
        let x = k.input::<f32>("x", "(64,2):(1,1)")?;
        let y = k.output::<f32>("y", "(32,2):(2,1)")?;
        k.threads(32)?;
        let t = k.thread()?;
        // Elements 2t - 1 and 2t of column 1: memory from 2t on.
        let moved = x.domain_offset(&[Expr::from(-1), Expr::from(0)])?;
        let column = moved.slice(Tree::flat([Slot::All, Slot::At(Expr::from(1))])?)?;
        let pair = column.local_tile(2, Coord::<Expr>::leaf(Slot::At(t.clone())))?.load_predicated()?;
        y.slice(Tree::flat([Slot::At(t), Slot::All])?)?.store(&pair)
    })
    .unwrap();
    let x = numbers(65);
    let wanted: Vec<f32> = (0..64).map(|at| if at == 0 { 0.0 } else { x[at] }).collect();
    assert_eq!(result(&kernel, &[], &[&x]), wanted);
}

#[test]
fn a_mode_that_ends_before_its_first_element_has_none() {
    // Blocks 0 and 1 end before the first element, block 2 at it, block 3 behind five elements.
    let kernel = Kernel::build("ends", |k| {
        let x = k.input::<f32>("x", "N:1")?;
        let y = k.output::<f32>("y", "(32,4):(1,32)")?;
        k.threads(32)?;
        k.grid(Axis::X, 4)?;
        let b = k.block_number(Axis::X);
        let first = plus(&times(&b, 5), -40);
        let part = x.ending_at(0, &plus(&times(&b, 5), -10))?.domain_offset(&[first])?;
        let read = part.at(&k.thread()?)?.load_predicated()?;
        y.slice(Tree::flat([Slot::At(k.thread()?), Slot::At(b)])?)?.store(&read)
    })
    .unwrap();
    let x = numbers(20);
    let element = |ij: i64| {
        let (block, at) = (ij / 32, ij / 32 * 5 - 40 + ij % 32);
        if (0..block * 5 - 10).contains(&at) { x[at as usize] } else { 0.0 }
    };
    assert_eq!(result(&kernel, &[("N", 20)], &[&x]), (0..128).map(element).collect::<Vec<_>>());
}

#[test]
fn a_store_before_the_first_element_is_left_out() {
    let kernel = Kernel::build("moved", |k| {
        let x = k.input::<f32>("x", "N:1")?;
        let y = k.tensor_of(Element::F32, "y", "N:1", Role::Both)?;
        k.threads(32)?;
        k.grid(Axis::X, "ceil(N/32)")?;
        let j = column(k)?;
        let value = read(&x, std::slice::from_ref(&j), true)?;
        write(k, &y, &[plus(&j, -5)], value, true)
    })
    .unwrap();
    let (x, before) = (numbers(40), vec![0.5; 40]);
    let mut wanted = before.clone();
    wanted[..35].copy_from_slice(&x[5..]);
    // Threads past the end read 0, and store to the elements from there on.
    wanted[35..].fill(0.0);
    assert_eq!(result(&kernel, &[("N", 40)], &[&x, &before]), wanted);
    // An output that is written from before its first element on is not shown to be written once,
    // but it is.
    let shifted = Kernel::build("shifted", |k| {
        let y = k.output::<f32>("y", "N:1")?;
        k.threads(32)?;
        k.grid(Axis::X, "ceil(N/32)+1")?;
        let j = column(k)?;
        write(k, &y, &[plus(&j, -7)], k.number_of(Element::F32, 1.0), true)
    })
    .unwrap();
    assert_eq!(result(&shifted, &[("N", 70)], &[]), vec![1.0; 70]);
}

#[test]
fn sums_are_scattered_past_both_edges() {
    let kernel = Kernel::build("scatter", |k| {
        let x = k.input::<f32>("x", "N:1")?;
        let y = k.tensor_of(Element::F32, "y", "N:1", Role::Both)?;
        k.threads(32)?;
        k.grid(Axis::X, "ceil(N/32)")?;
        let j = column(k)?;
        let value = k.register(Element::F32, 1)?;
        value.set(&[read(&x, std::slice::from_ref(&j), true)?])?;
        for by in [-1, 0, 1] {
            y.slice(coordinate(&[plus(&j, by)]))?.accumulate(&value, Reduction::Sum)?;
        }
        Ok(())
    })
    .unwrap();
    let x = numbers(45);
    let wanted: Vec<f32> = (0..45).map(|i| (-1..=1).map(|by| at(&x, 45, 0, i + by)).sum()).collect();
    assert_eq!(result(&kernel, &[("N", 45)], &[&x, &[0.0; 45]]), wanted);
}

#[test]
fn asynchronous_copies_bring_zeros_before_the_first_element() {
    let kernel = Kernel::build("halo", |k| {
        use tilewright_layout::atoms::{CopyAtom, TiledCopy};
        let x = k.input::<f32>("x", "N{div=4}:1")?;
        let y = k.output::<f32>("y", "(ceil(N/96),128):(128,1)")?;
        k.threads(32)?;
        k.grid(Axis::X, "ceil(N/96)")?;
        let atom = CopyAtom::named("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>").unwrap();
        let copy = TiledCopy::new(atom, 32, &"32:1".parse().unwrap(), &"4:1".parse().unwrap()).unwrap();
        let tile = k.shared::<f32>("128:1")?;
        let b = k.block_number(Axis::X);
        // 16 elements before the 96 of the block, and 16 behind.
        let from =
            x.domain_offset(&[plus(&times(&b, 96), -16)])?.local_tile(128, Coord::<Expr>::leaf(Slot::At(0.into())))?;
        k.copy_predicated(&copy, &from, &tile)?;
        k.commit_async();
        k.wait_async(0);
        k.barrier();
        for part in 0..4 {
            let j = plus(&k.thread()?, 32 * part);
            let value = read(&tile, std::slice::from_ref(&j), false)?;
            write(k, &y, &[b.clone(), j], value, false)?;
        }
        Ok(())
    })
    .unwrap();
    let x = numbers(200);
    let wanted: Vec<f32> = (0..3 * 128)
        .map(|at| {
            let i = at / 128 * 96 + at % 128 - 16;
            if (0..200).contains(&i) { x[i as usize] } else { 0.0 }
        })
        .collect();
    assert_eq!(result(&kernel, &[("N", 200)], &[&x]), wanted);
}

#[test]
fn a_grid_may_have_more_blocks_than_a_view_has_tiles() {
    let kernel = |blocks: &'static str, predicated: bool| {
        Kernel::build("copy", move |k| {
            let x = k.input::<f32>("x", "(M,32):(32,1)")?;
            let y = k.output::<f32>("y", "(M,32):(32,1)")?;
            grid(k, "1", blocks)?;
            let at = [k.block_number(Axis::Y), k.thread()?];
            let value = read(&x, &at, predicated)?;
            write(k, &y, &at, value, predicated)
        })
    };
    let x = numbers(6 * 32);
    for blocks in ["M", "M+3", "2*M"] {
        assert_eq!(result(&kernel(blocks, true).unwrap(), &[("M", 6)], &[&x]), x, "{blocks}");
    }
    assert!(kernel("M", false).is_ok());
    assert!(matches!(kernel("M+1", false).unwrap_err().reason(), Reason::Outside { .. }));
}

#[test]
fn a_grid_that_is_said_late_is_weighed_against_what_was_shown_before() {
    let late = |blocks: &'static str, predicated: bool, twice: bool| {
        Kernel::build("late", move |k| {
            let x = k.input::<f32>("x", "(H+2,32):(32,1)")?;
            let y = k.tensor_of(Element::F32, "y", "(H,32):(32,1)", Role::Both)?;
            k.threads(32)?;
            let at = [k.block_number(Axis::Y), k.thread()?];
            let value = read(&x, &at, predicated)?;
            k.grid(Axis::Y, blocks)?;
            if twice {
                k.grid(Axis::Y, "H")?;
            }
            write(k, &y, &at, value, true)
        })
    };
    let x = numbers(7 * 32);
    let wanted = &x[..5 * 32];
    let y = [0.0; 5 * 32];
    for (blocks, predicated) in [("H", false), ("H+2", false), ("H+1", true)] {
        assert_eq!(result(&late(blocks, predicated, false).unwrap(), &[("H", 5)], &[&x, &y]), wanted, "{blocks}");
    }
    assert!(late("H", false, true).is_ok());
    // Predicates were left out, as all blocks that the view asks for are inside.
    for predicated in [false, true] {
        let error = late("H+3", predicated, false).unwrap_err();
        assert!(matches!(error.reason(), Reason::Blocks { relied: true, .. }) && error.code() == "E0908", "{error}");
    }
    let error = late("H+1", false, true).unwrap_err();
    assert!(matches!(error.reason(), Reason::Twice { .. }) && error.code() == "E0908", "{error}");
}

#[test]
fn without_a_grid_views_have_to_agree() {
    let two = |said: bool| {
        Kernel::build("two", move |k| {
            let x = k.input::<f32>("x", "(H+2,32):(32,1)")?;
            let y = k.output::<f32>("y", "(H,32):(32,1)")?;
            k.threads(32)?;
            if said {
                k.grid(Axis::Y, "H")?;
            }
            let at = [k.block_number(Axis::Y), k.thread()?];
            let value = read(&x, &at, false)?;
            write(k, &y, &at, value, false)
        })
    };
    assert!(two(true).is_ok());
    let error = two(false).unwrap_err();
    assert_eq!(error.code(), "E0908");
    assert!(error.reason().to_string().contains("H") && error.help().unwrap().contains("grid"), "{error}");
}

#[test]
fn blocks_past_a_nested_mode_read_nothing() {
    for (layout, rows) in [("((2,3),32):((32,64),1)", 6), ("((4,1),32):((32,0),1)", 4), ("((1,4),32):((5,32),1)", 4)] {
        let kernel = Kernel::build("nested", |k| {
            let x = k.input::<f32>("x", layout)?;
            let y = k.output::<f32>("y", "(9,32):(32,1)")?;
            grid(k, "1", "9")?;
            let at = [k.block_number(Axis::Y), k.thread()?];
            let value = read(&x, &at, true)?;
            write(k, &y, &at, value, false)
        });
        // It may be refused, where no predicate can tell, but never read another element.
        let Ok(kernel) = kernel else { continue };
        let x = numbers(rows * 32);
        let wanted: Vec<f32> = (0..9 * 32).map(|ij| at(&x, 32, ij / 32, ij % 32)).collect();
        assert_eq!(result(&kernel, &[], &[&x]), wanted, "{layout}");
    }
}
