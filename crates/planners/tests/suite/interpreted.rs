//! The kernels of the library, executed by the interpreter under every schedule, and compared with
//! plain loops.

use half::bf16;
use tilewright_kernel::interpret::{Checked, Class, Interpreter};
use tilewright_kernel::machine::Machine;
use tilewright_kernel::{Element, Kernel};
use tilewright_layout::Layout;
use tilewright_planners::{EntryOptions, MapOptions, Planned, named, product, relayout, tiled_add};

use crate::h200;

fn checked(kernel: &Kernel, sizes: &[(&str, i64)], fill: impl FnOnce(&mut Interpreter<'_>)) -> Checked {
    let mut interpreter = Interpreter::new(kernel.program(), sizes).unwrap_or_else(|error| panic!("{error}"));
    fill(&mut interpreter);
    interpreter.fill(7);
    interpreter.is_complete().unwrap();
    interpreter.check().unwrap_or_else(|findings| panic!("{}: {}", kernel.name(), findings[0]))
}

/// Runs a product at sizes with the facts of its plan, and compares it with the definition.
fn multiplied(planned: &Planned, [m, n, k]: [usize; 3]) -> Checked {
    let sizes = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
    let checked = checked(planned.kernel(), &sizes, |_| {});
    let wide =
        |tensor| -> Vec<f64> { checked.run.tensor::<bf16>(tensor).unwrap().into_iter().map(f64::from).collect() };
    let (a, b) = (wide(0), wide(1));
    let c = wide(2);
    for row in 0..m {
        for column in 0..n {
            let products = (0..k).map(|at| a[row * k + at] * b[column * k + at]);
            let (sum, size) = products.fold((0.0, 0.0), |(sum, size): (f64, f64), x| (sum + x, size + x.abs()));
            let error = (c[row * n + column] - sum).abs();
            // Each of the additions in f32 is off by half a unit in the last place of a partial
            // sum, and the sum is rounded to its type at last.
            let last = sum.abs() * 2_f64.powi(-8);
            assert!(error <= size * (k as f64 + 2.0) * 2_f64.powi(-24) + last, "({row},{column}): {error}");
        }
    }
    checked
}

/// Every access of shared memory takes as few wavefronts as its bytes allow.
fn without_conflicts(checked: &Checked) {
    for access in &checked.run.counts.accesses {
        assert_eq!(access.wavefronts, access.least_wavefronts, "{access:?}");
    }
}

/// The rows and columns of the tiles of D, as the plan says them.
fn tile_of_d(planned: &Planned) -> [u64; 2] {
    let text = &planned.plan()[0];
    let numbers = text.split(' ').filter_map(|word| word.parse().ok()).take(2).collect::<Vec<u64>>();
    <[u64; 2]>::try_from(numbers).unwrap_or_else(|_| panic!("{text}"))
}

/// The kernel of warps, by mma.sync.
fn by_warps(sizes: [i64; 3]) -> Planned {
    product(&Machine::named("A100").unwrap(), "product", Element::Bf16, sizes).unwrap()
}

#[test]
fn a_product_of_512_is_right() {
    let planned = by_warps([512; 3]);
    let checked = multiplied(&planned, [512; 3]);
    // The tiles at the edges are multiplied whole.
    let [rows, columns] = tile_of_d(&planned);
    let whole = 512_u64.next_multiple_of(rows) * 512_u64.next_multiple_of(columns) * 512;
    assert_eq!(checked.run.counts.executed(Class::Matrix), whole / (16 * 8 * 16));
    without_conflicts(&checked);
}

#[test]
fn products_with_edges_are_right() {
    for sizes in [[1, 8, 8], [128, 128, 32], [129, 136, 40], [200, 56, 104], [5, 304, 64], [33, 64, 200]] {
        multiplied(&by_warps(sizes.map(|size| size as i64)), sizes);
    }
}

/// The tiles of large products, at the smallest sizes that their facts admit.
#[test]
fn large_tiles_are_right() {
    let planned = by_warps([4096; 3]);
    assert_eq!(planned.kernel().program().threads, 256);
    without_conflicts(&multiplied(&planned, [2048, 256, 128]));
    // No facts but those of N and K: every edge is predicated.
    multiplied(&by_warps([4001, 4008, 4008]), [130, 264, 72]);
}

/// wgmma: several tiles a block, ragged edges, and a ring that goes round.
#[test]
fn products_of_four_warps_are_right() {
    let planned = |sizes: [i64; 3]| product(&h200(), "product", Element::Bf16, sizes).unwrap();
    // Planned for other sizes with the same facts, so that a block has more than one tile.
    let large = planned([4096; 3]);
    assert_eq!(large.kernel().program().threads, 288);
    without_conflicts(&multiplied(&large, [1024, 256, 256]));
    for sizes in [[256, 512, 320], [130, 264, 72], [1, 8, 8]] {
        multiplied(&planned(sizes.map(|size| size as i64)), sizes);
    }
    // Two blocks, which alternate over 20 tiles of 64 columns.
    multiplied(&planned([129, 8, 8]), [200, 600, 136]);
    // Operands that change places, at other sizes with the same facts.
    let swapped = planned([129, 8192, 4096]);
    assert!(swapped.plan()[0].starts_with("output tiles of 64 along N x 136 along M"), "{swapped}");
    multiplied(&swapped, [200, 512, 128]);
}

/// K or N that is no multiple of 8 begins rows where no chunk of 16 bytes begins.
#[test]
fn a_product_asks_for_rows_of_whole_chunks() {
    for (sizes, size) in [([64, 64, 36], "`K` is 36"), ([64, 36, 64], "`N` is 36")] {
        let planned = by_warps(sizes);
        let error = Interpreter::new(planned.kernel().program(), planned.sizes()).unwrap_err().to_string();
        assert!(error.contains("multiple of 8") && error.contains(size), "{error}");
    }
}

#[test]
fn sums_are_right() {
    let planned = tiled_add(Element::F32).unwrap();
    for (m, n) in [(1, 4), (16, 256), (17, 260), (50, 520)] {
        let checked = checked(planned.kernel(), &[("M", m), ("N", n)], |_| {});
        let [a, b, c] = [0, 1, 2].map(|tensor| checked.run.tensor::<f32>(tensor).unwrap());
        for at in 0..c.len() {
            assert_eq!(c[at], a[at] + b[at]);
        }
    }
}

#[test]
fn relayouts_are_right() {
    let pairs = [
        ("1000:1", "1000:1"),
        ("(64,64):(64,1)", "(64,64):(1,64)"),
        ("(300,200):(200,1)", "(300,200):(1,300)"),
        ("(37,53):(53,1)", "(37,53):(1,37)"),
        ("(8,9,10):(90,10,1)", "(8,9,10):(1,80,8)"),
    ];
    for (from, to) in pairs {
        let (source, target): (Layout, Layout) = (from.parse().unwrap(), to.parse().unwrap());
        let planned = relayout(&h200(), &source, Element::U32, &target, Element::U32).unwrap();
        let sizes = planned.sizes().to_vec();
        let checked = checked(planned.kernel(), &sizes, |interpreter| {
            // The kernel may take several elements for one.
            let values = 0..source.cosize().unwrap() as u32;
            interpreter.bytes(0, &values.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        });
        let words = checked.run.bytes(1).unwrap().chunks_exact(4);
        let found: Vec<u32> = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
        for at in 0..source.size() {
            let (from, to) = (source.eval(&at).unwrap(), target.eval(&at).unwrap());
            assert_eq!(i64::from(found[to as usize]), from, "{source} to {target} at {at}");
        }
    }
}

#[test]
fn rows_of_every_structure_are_right() {
    // Lanes of a warp, a warp, a block, and vectors of every width; ends of rows and of the matrix.
    let columns = [1, 2, 7, 24, 128, 129, 256, 1000, 1024, 1030, 2048, 3000, 4104, 8192, 10_000, 2048, 1024];
    for (at, columns) in columns.into_iter().enumerate() {
        let element = [Element::Bf16, Element::F32, Element::F16][at % 3];
        for name in ["softmax", "rms_norm", "layer_norm"] {
            let planned = named(name)
                .unwrap()
                .plan(
                    &h200(),
                    EntryOptions {
                        sizes: &[("M", 3), ("N", columns)],
                        element: Some(element),
                        ..EntryOptions::default()
                    },
                )
                .unwrap();
            let report = planned.check().unwrap_or_else(|error| panic!("{name} of {columns} {element}: {error}"));
            assert_eq!(report.compared, 3 * columns as usize);
        }
    }
}

#[test]
fn statistics_of_rows_and_columns_are_right() {
    let mut sizes = [(1, 1), (5, 24), (9, 129), (150, 40), (2, 1030)].into_iter().cycle();
    for along in ["rows", "columns"] {
        for (at, what) in ["sum", "mean", "norm", "max", "argmax"].into_iter().cycle().take(10).enumerate() {
            let element = [Element::Bf16, Element::F32, Element::F16][at % 3];
            let (m, n) = sizes.next().unwrap();
            let name = format!("{what}_{along}");
            let planned = named(&name)
                .unwrap()
                .plan(
                    &h200(),
                    EntryOptions { sizes: &[("M", m), ("N", n)], element: Some(element), ..EntryOptions::default() },
                )
                .unwrap();
            planned.check().unwrap_or_else(|error| panic!("{name} of ({m},{n}) {element}: {error}"));
        }
    }
    // Longer than the registers of a block.
    let planned = named("argmax_rows")
        .unwrap()
        .plan(
            &h200(),
            EntryOptions { sizes: &[("M", 1), ("N", 33_000)], element: Some(Element::F32), ..EntryOptions::default() },
        )
        .unwrap();
    planned.check().unwrap();
}

#[test]
fn maps_broadcast_and_convert() {
    use tilewright_planners::{Expression, map};

    let layout = |text: &str| -> Layout { text.parse().unwrap() };
    let (x, y, z) = (Expression::input(0), Expression::input(1), Expression::input(2));
    let everything =
        ((x.clone() - y.clone() * 0.5) / (z.clone().abs() + 1.0)).tanh().min(z) + (x * 0.25).exp() - y.abs().sqrt();
    let cases = [
        ("(10,24):(24,1)", "(10,24):(0,1)", "(10,24):(1,0)", "(10,24):(1,10)"),
        ("(4,6,8):(48,8,1)", "(4,6,8):(1,4,24)", "(4,6,8):(0,0,0)", "(4,6,8):(48,8,1)"),
        ("1000:1", "1000:0", "1000:3", "1000:1"),
        ("7:1", "7:2", "7:1", "7:1"),
    ];
    for (number, (a, b, c, to)) in cases.into_iter().enumerate() {
        let (a, b, c, to) = (layout(a), layout(b), layout(c), layout(to));
        let types = [Element::Bf16, Element::F32, Element::F16, Element::Bf16, Element::F32];
        let inputs = [(&a, types[number]), (&b, types[number + 1]), (&c, Element::F32)];
        let planned =
            map(&h200(), &everything, &inputs, (&to, types[(number + 2) % 5]), MapOptions::default()).unwrap();
        let report = planned.check().unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(report.compared, to.size() as usize);
    }
    let (four, overlapping) = (layout("4:1"), layout("4:0"));
    let refused = |expression: &Expression, to: &Layout, element: Element| {
        map(&h200(), expression, &[(&four, Element::F32)], (to, element), MapOptions::default()).unwrap_err().code()
    };
    assert_eq!(refused(&Expression::input(1), &four, Element::F32), "E0936");
    assert_eq!(refused(&Expression::input(0), &overlapping, Element::F32), "E0932");
    assert_eq!(refused(&Expression::input(0), &layout("(2,2)"), Element::F32), "E0938");
    assert_eq!(refused(&Expression::input(0), &four, Element::I32), "E0936");
}

#[test]
fn maps_of_integers_are_exact_and_wrap() {
    use tilewright_planners::{Expression, map};

    let layout: Layout = "(10,24):(24,1)".parse().unwrap();
    let (x, y) = (Expression::input(0), Expression::input(1));
    let function = (x.clone() * y.clone() - 7.0).max(x.clone().abs()).min(y.clone() * 3.0 + x.clone().relu());
    let value = |x: i64, y: i64| {
        (x.wrapping_mul(y).wrapping_sub(7)).max(x.wrapping_abs()).min(y.wrapping_mul(3).wrapping_add(x.max(0)))
    };
    let small = |x: i32, y: i32| {
        (x.wrapping_mul(y).wrapping_sub(7)).max(x.wrapping_abs()).min(y.wrapping_mul(3).wrapping_add(x.max(0)))
    };
    let number = |at: i64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> (at % 3 * 20);
    for element in [Element::I64, Element::I32] {
        let planned = map(
            &h200(),
            &function,
            &[(&layout, element), (&layout, element)],
            (&layout, element),
            MapOptions::default(),
        )
        .unwrap();
        let mut interpreter = Interpreter::new(planned.kernel().program(), planned.sizes()).unwrap();
        let numbers: [Vec<i64>; 2] = [0, 1000].map(|first| (first..first + 240).map(number).collect());
        for (tensor, numbers) in numbers.iter().enumerate() {
            match element {
                Element::I64 => interpreter.tensor(["x0", "x1"][tensor], numbers).map(|_| ()),
                _ => {
                    let numbers: Vec<i32> = numbers.iter().map(|number| *number as i32).collect();
                    interpreter.tensor(["x0", "x1"][tensor], &numbers).map(|_| ())
                }
            }
            .unwrap();
        }
        let run = interpreter.check().unwrap_or_else(|found| panic!("{found}")).run;
        let found: Vec<i64> = match element {
            Element::I64 => run.tensor::<i64>(2).unwrap(),
            _ => run.tensor::<i32>(2).unwrap().into_iter().map(i64::from).collect(),
        };
        let pairs = numbers[0].iter().zip(&numbers[1]);
        let wanted: Vec<i64> = match element {
            Element::I64 => pairs.map(|(x, y)| value(*x, *y)).collect(),
            _ => pairs.map(|(x, y)| i64::from(small(*x as i32, *y as i32))).collect(),
        };
        assert_eq!(found, wanted, "{planned}");
    }
    let refused = |function: Expression, types: [Element; 2]| {
        let error =
            map(&h200(), &function, &[(&layout, types[0])], (&layout, types[1]), MapOptions::default()).unwrap_err();
        format!("{error}: {:?}", tilewright_layout::Refusal::help(&error))
    };
    let both = [Element::I32; 2];
    assert!(refused(x.clone() / 2.0, both).contains("expression of integers"));
    assert!(refused(x.clone() * 0.5, both).contains("expression of integers"));
    assert!(refused(x.clone().exp(), both).contains("expression of integers"));
    assert!(refused(x.clone(), [Element::I32, Element::F32]).contains("one integer type"));
    assert!(refused(x, [Element::I16; 2]).contains("32 bits or more"));
}

/// Each function over all of the range of bf16, near 0 and far from it.
#[test]
fn functions_are_within_their_bounds() {
    use tilewright_planners::{Expression, map};

    let layout: Layout = "4096:1".parse().unwrap();
    for name in ["relu", "sigmoid", "silu", "gelu", "gelu_tanh", "recip", "exp", "tanh", "abs", "sqrt"] {
        let function = Expression::parse(&format!("{name}(x)"), &["x"]).unwrap();
        let planned =
            map(&h200(), &function, &[(&layout, Element::Bf16)], (&layout, Element::F32), MapOptions::default())
                .unwrap();
        let mut interpreter = Interpreter::new(planned.kernel().program(), planned.sizes()).unwrap();
        // Positive and negative numbers from 2^-120 to 80, and 0.
        let x: Vec<bf16> = (0..4096_u32)
            .map(|at| {
                let size = if at % 4096 < 2048 { (at % 2048) as f32 / 25.6 } else { 2_f32.powi(-((at % 120) as i32)) };
                bf16::from_f32(if at % 2 == 0 || name == "sqrt" { size } else { -size })
            })
            .collect();
        interpreter.tensor("x0", &x).unwrap();
        let run = interpreter.check().unwrap().run;
        let (mut worst, mut compared) = (0.0_f64, 0);
        for (x, y) in x.iter().zip(run.tensor::<f32>(1).unwrap()) {
            let (wanted, bound) = function.value(&[x.to_f64()]);
            if name == "recip" && x.to_f32() == 0.0 {
                continue;
            }
            let off = (f64::from(y) - wanted).abs();
            assert!(off <= bound, "{name}({x}) is {y}, not {wanted}: {off:e} > {bound:e}");
            worst = worst.max(off / bound.max(f64::MIN_POSITIVE));
            compared += 1;
        }
        assert!(compared > 4000, "{name}: {compared} compared, the worst at {worst} of its bound");
    }
}

/// The limits of `gelu`, and NaN of NaN.
#[test]
fn gelu_has_limits() {
    use tilewright_planners::{Expression, map};

    let layout: Layout = "8:1".parse().unwrap();
    let function = Expression::parse("gelu(x)", &["x"]).unwrap();
    let planned =
        map(&h200(), &function, &[(&layout, Element::F32)], (&layout, Element::F32), MapOptions::default()).unwrap();
    let mut interpreter = Interpreter::new(planned.kernel().program(), planned.sizes()).unwrap();
    let x = [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 16.5, -16.5, f32::NAN, -f32::NAN];
    interpreter.tensor("x0", &x).unwrap();
    let y = interpreter.check().unwrap().run.tensor::<f32>(1).unwrap();
    assert_eq!(y[..6], [f32::INFINITY, 0.0, f32::MAX, 0.0, 16.5, 0.0]);
    assert!(y[6].is_nan() && y[7].is_nan());
    for (x, y) in x.iter().zip(&y).take(2) {
        assert_eq!(function.value(&[f64::from(*x)]).0, f64::from(*y));
    }
}

#[test]
fn rows_go_where_their_numbers_say() {
    // More rows than there is room for, too: what has no room is passed over.
    for (sizes, element) in [([9, 5, 7], Element::U8), ([1, 1, 1], Element::F64), ([30, 40, 264], Element::Bf16)] {
        let [k, m, n] = sizes;
        let planned = named("scatter")
            .unwrap()
            .plan(
                &h200(),
                EntryOptions {
                    sizes: &[("K", k), ("M", m), ("N", n)],
                    element: Some(element),
                    ..EntryOptions::default()
                },
            )
            .unwrap();
        let report = planned.check().unwrap_or_else(|error| panic!("{sizes:?} {element}: {error}"));
        assert_eq!((report.compared as i64, report.worst), (m.min(k) * n, 0.0));
    }
}

#[test]
fn numbers_that_are_equal_are_a_race() {
    let planned = tilewright_planners::scatter(4, 2, 1024, Element::F32).unwrap();
    let mut run = Interpreter::new(planned.kernel().program(), &[]).unwrap();
    run.fill(1).tensor("index", &[3, 3]).unwrap();
    let found = run.check().unwrap_err();
    assert!(found.iter().any(|found| ["E1013", "E1016", "E1017"].contains(&found.code())), "{found}");
    run.tensor("index", &[3, 0]).unwrap();
    run.check().unwrap();
}

#[test]
fn rows_are_picked_by_their_numbers() {
    for (sizes, element) in [([5, 9, 7], Element::U8), ([1, 1, 1], Element::F64), ([30, 40, 264], Element::Bf16)] {
        let [k, m, n] = sizes;
        let planned = named("gather")
            .unwrap()
            .plan(
                &h200(),
                EntryOptions {
                    sizes: &[("K", k), ("M", m), ("N", n)],
                    element: Some(element),
                    ..EntryOptions::default()
                },
            )
            .unwrap();
        let report = planned.check().unwrap_or_else(|error| panic!("{sizes:?} {element}: {error}"));
        assert_eq!((report.compared as i64, report.worst), (m * n, 0.0));
    }
}
