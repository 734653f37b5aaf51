//! Gradients of tile programs.
//!
//! Oracles: differences of the program itself, run at two points, and formulas in f64 written by
//! hand. Kernels of gradients are run on the interpreter of kernels, beside their programs.

use tilewright_layout::Refusal;
use tilewright_tile::{Element, GradientOptions, Program, Sequence, interpret};

/// Numbers between -1 and 1 that no rounding changes, the same at each run.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 40) as i32 % 256 - 128) / 128.0
    };
    (0..count).map(next).collect()
}

fn program(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What a program says of a tensor that it stores to, at these inputs; 0 where it does not store.
fn outputs(program: &Program, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> Vec<(String, Vec<f64>)> {
    let outputs = interpret::run(program, sizes, inputs).unwrap_or_else(|error| panic!("{error}\n{program}"));
    outputs.into_iter().map(|(name, all)| (name, all.into_iter().map(|own| own.unwrap_or(0.0)).collect())).collect()
}

/// Compares a gradient with differences of the program, and its kernels with their programs.
fn compare(text: &str, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)], options: &GradientOptions) -> Sequence {
    let source = program(text);
    let gradient = source.gradient(options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut given: Vec<(String, Vec<f64>)> =
        inputs.iter().map(|(name, all)| ((*name).to_string(), all.clone())).collect();
    let first = outputs(&source, sizes, inputs);
    for (number, (name, all)) in first.iter().enumerate() {
        given.push((format!("d_{name}"), numbers(all.len(), 77 + number as u64)));
    }
    let weighted = |at: &[(&str, Vec<f64>)]| -> f64 {
        let after = outputs(&source, sizes, at);
        after
            .iter()
            .map(|(name, all)| {
                let weights = &given.iter().find(|(own, _)| *own == format!("d_{name}")).expect("given").1;
                all.iter().zip(weights).map(|(y, d)| y * d).sum::<f64>()
            })
            .sum()
    };
    let all: Vec<(&str, Vec<f64>)> = given.iter().map(|(name, all)| (name.as_str(), all.clone())).collect();
    let zeros = |name: &str, count: usize| (format!("d_{name}"), vec![0.0; count]);
    let sums: Vec<(String, Vec<f64>)> = match options.atomic {
        true => inputs.iter().map(|(name, all)| zeros(name, all.len())).collect(),
        false => Vec::new(),
    };
    let all: Vec<(&str, Vec<f64>)> =
        all.into_iter().chain(sums.iter().map(|(name, all)| (name.as_str(), all.clone()))).collect();
    let found = gradient.run(sizes, &all).unwrap_or_else(|error| panic!("{error}\n{gradient}"));
    assert!(!found.is_empty());
    let step = 1.0 / 64.0;
    for (name, derivatives) in &found {
        let own = name.strip_prefix("d_").expect("a derivative");
        let values = &inputs.iter().find(|(name, _)| *name == own).expect("an input").1;
        assert_eq!(values.len(), derivatives.len());
        let most = derivatives.iter().flatten().fold(1.0_f64, |most, own| most.max(own.abs()));
        for (element, derivative) in derivatives.iter().enumerate() {
            let at = |by: f64| {
                let mut moved = inputs.to_vec();
                let tensor = moved.iter_mut().find(|(name, _)| *name == own).expect("an input");
                tensor.1[element] += by;
                weighted(&moved)
            };
            let difference = (at(step) - at(-step)) / (2.0 * step);
            // What the program does not load has no influence and no derivative.
            let derivative = derivative.unwrap_or(0.0);
            assert!(
                (difference - derivative).abs() < 4e-3 * most,
                "{name}[{element}] is {derivative}, and differences give {difference}\n{gradient}"
            );
        }
    }
    for program in gradient.programs() {
        // The printed text is the same program.
        let again: Program = program.to_string().parse().unwrap_or_else(|error| panic!("{error}\n{program}"));
        assert_eq!(again.to_string(), program.to_string());
        let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}\n{program}"));
        let named = |name: &str| program.tensors().iter().any(|own| own.layout.contains(name));
        let sizes: Vec<(&str, i64)> = sizes.iter().filter(|(name, _)| named(name)).copied().collect();
        compiled.check(&sizes).unwrap_or_else(|error| panic!("{error}\n{program}"));
    }
    gradient
}

fn rows(body: &str) -> String {
    format!(
        "tile rows {{
    input  x: f32 (M,8):(8,1)
    output y: f32 (M,8):(8,1)
    grid ceil(M/2)
    a = load(x, (2,8), (block.x, 0))
    {body}
}}"
    )
}

#[test]
fn a_power_that_overflows_times_a_slope_of_zero_is_zero() {
    for (body, slope) in
        [("b = recip(exp(a) + 1)", 0.0), ("b = a * recip(exp2(a) + 1)", 0.0), ("b = 1 / (exp(a) + 1) + a", 1.0)]
    {
        let program: Program =
            rows(&format!("{body}\n    store(y, (block.x, 0), b)")).parse().unwrap_or_else(|error| panic!("{error}"));
        let gradient = program.gradient(&GradientOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let inputs = [("x", vec![200.0; 8]), ("d_y", vec![1.0; 8])];
        let found = gradient.run(&[("M", 1)], &inputs).unwrap_or_else(|error| panic!("{error}\n{gradient}"));
        assert_eq!(found, [("d_x".to_string(), vec![Some(slope); 8])], "{body}");
    }
}

#[test]
fn functions_of_elements_agree_with_differences() {
    for body in [
        "b = exp(a)",
        "b = exp2(a)",
        "b = log2(a * a + 1)",
        "b = sqrt(a + 2)",
        "b = rsqrt(a * a + 1)",
        "b = recip(a + 3)",
        "b = tanh(a)",
        "b = log(a + 3)",
        "b = sin(a * 2) + cos(a + 0.5) * a",
        "b = a * (1 + erf(a * 0.70710678)) + round(a / 64 + 0.1)",
        "b = select(a < 0.03 & a * a < 0.5 | a > 0.2, a * a, exp(a))",
        "b = -a * a + a / (a + 4) - 2 / (a + 3)",
        "b = abs(a + 0.3)",
        "b = min(a + 0.03, 0.2) + max(a * 2, -0.31)",
        "b = fma(a, a, a)",
        "b = select(a < 0.03, a * a, exp(a))",
        "b = f32(a + 1)",
        "b = a * reduce_sum(a * a, 1)",
        "b = a + reduce_sum(exp(a), 0, 1)",
        "b = scan_sum(a * a, 1)",
        "b = scan_sum(scan_sum(a, 0), 1) * a",
        "b = transpose(reshape(transpose(a, (1, 0)), (8,2)), (1, 0)) * a",
        "b = broadcast(reshape(reduce_sum(a, 1), (2,1)), (2,8)) * a",
    ] {
        compare(
            &rows(&format!("{body}\n    store(y, (block.x, 0), b)")),
            &[("M", 3)],
            &[("x", numbers(24, 5))],
            &GradientOptions::default(),
        );
    }
}

#[test]
fn extremes_go_to_those_who_have_them() {
    let distinct: Vec<f64> = (0..24).map(|own| f64::from((own * 7) % 24) / 8.0 - 1.4).collect();
    for body in ["b = a * reduce_max(a, 1)", "b = a - reduce_min(a, 1)", "b = exp(a - reduce_max(a, 1))"] {
        compare(
            &rows(&format!("{body}\n    store(y, (block.x, 0), b)")),
            &[("M", 3)],
            &[("x", distinct.clone())],
            &GradientOptions::default(),
        );
    }
    // Equal elements share.
    let text = rows("store(y, (block.x, 0), broadcast(reduce_max(a, 1), (2,8)))");
    let gradient = program(&text).gradient(&GradientOptions::default()).expect("it has one");
    let x = [1.0, 3.0, 3.0, 0.0, 2.0, 3.0, 1.0, 3.0].to_vec();
    let found = gradient.run(&[("M", 1)], &[("x", x), ("d_y", vec![1.0; 8])]).expect("it runs");
    assert_eq!(found[0].1, [0.0, 2.0, 2.0, 0.0, 0.0, 2.0, 0.0, 2.0].map(Some));
}

#[test]
fn weights_that_blocks_share_are_added_in_parts() {
    let text = "
tile norm {
    input  x: f32 (M,16):(16,1)
    input  w: f32 (1,16):(16,1)
    input  bias: f32 (1,16):(16,1)
    output y: f32 (M,16):(16,1)
    grid ceil(M/2)
    a = load(x, (2,16), (block.x, 0))
    left = a - reduce_sum(a, 1) / 16
    factor = rsqrt(reduce_sum(left * left, 1) / 16)
    store(y, (block.x, 0), left * factor * load(w, (1,16), (0, 0)) + load(bias, (1,16), (0, 0)))
}";
    // Rows past the edge are 0 over 0: NaN, which no sum may take in. 9 rows are 5 blocks.
    for (merged, rows) in [(32, 9), (2, 9), (1, 9), (4, 16)] {
        let options = GradientOptions { blocks_merged: merged, ..GradientOptions::default() };
        let inputs = [("x", numbers(16 * rows, 3)), ("w", numbers(16, 8)), ("bias", numbers(16, 9))];
        let gradient = compare(text, &[("M", rows as i64)], &inputs, &options);
        assert_eq!(gradient.programs().len(), 3, "{gradient}");
    }
    let options = GradientOptions { atomic: true, ..GradientOptions::default() };
    let inputs = [("x", numbers(16 * 9, 3)), ("w", numbers(16, 8)), ("bias", numbers(16, 9))];
    let gradient = compare(text, &[("M", 9)], &inputs, &options);
    assert_eq!(gradient.programs().len(), 1, "{gradient}");
}

#[test]
fn elements_past_an_input_count_where_an_output_has_them() {
    // Past the 5 elements of x the tile is 3, and y has 11: the weight has a part from each.
    let text = "
tile longer {
    input  x: f32 N:1
    input  w: f32 1:1
    output y: f32 K:1
    output z: f32 N:1
    output short: i32 N:1
    grid ceil(K/4)
    a = load(x, (4), (block.x), 3) * broadcast(load(w, (1), (0)), (4))
    store(y, (block.x), a)
    store(z, (block.x), a * a)
    store(short, (block.x), i32(a))
}";
    for merged in [1, 32] {
        let options = GradientOptions { blocks_merged: merged, ..GradientOptions::default() };
        compare(text, &[("N", 5), ("K", 11)], &[("x", numbers(5, 4)), ("w", numbers(1, 6))], &options);
    }
}

#[test]
fn tiles_of_any_extents_have_gradients() {
    let text = "
tile norm {
    input  x: f32 (M,10):(10,1)
    input  w: f32 (1,10):(10,1)
    output y: f32 (M,10):(10,1)
    grid ceil(M/3)
    a = load(x, (3,10), (block.x, 0))
    e = exp(a - reduce_max(a, 1))
    store(y, (block.x, 0), e / reduce_sum(e, 1) * load(w, (1,10), (0, 0)) + a * reduce_sum(a, 1))
}";
    let distinct: Vec<f64> = (0..70).map(|own| f64::from((own * 11) % 70) / 32.0 - 1.1).collect();
    compare(text, &[("M", 7)], &[("x", distinct), ("w", numbers(10, 6))], &GradientOptions::default());
}

#[test]
fn loops_of_sums_are_reversed() {
    // The sum of squares of a row in parts, and then the row over it: two loops load the same
    // tiles.
    let text = "
tile long {
    input  x: f32 (M,K):(K,1)
    output y: f32 (M,K):(K,1)
    grid M
    loop k < ceil(K/8) with sum = broadcast(f32(0), (1,1)) {
        a = load(x, (1,8), (block.x, k))
        next sum + reduce_sum(a * a, 1)
    } -> sum
    factor = rsqrt(sum + 1)
    loop j < ceil(K/8) {
        store(y, (block.x, j), load(x, (1,8), (block.x, j)) * factor)
    }
}";
    compare(text, &[("M", 2), ("K", 20)], &[("x", numbers(40, 4))], &GradientOptions::default());
    // The same with a greatest element, and a weight that each iteration loads.
    let text = "
tile softmax {
    input  x: f32 (M,K):(K,1)
    input  w: f32 (1,K):(K,1)
    output y: f32 (M,K):(K,1)
    grid M
    loop k < ceil(K/8) with most = broadcast(f32(-inf), (1,1)) {
        next max(most, reduce_max(load(x, (1,8), (block.x, k), -inf), 1))
    } -> most
    loop i < ceil(K/8) with sum = broadcast(f32(0), (1,1)) {
        next sum + reduce_sum(exp(load(x, (1,8), (block.x, i), -inf) - most), 1)
    } -> sum
    loop j < ceil(K/8) {
        a = load(x, (1,8), (block.x, j), -inf)
        store(y, (block.x, j), exp(a - most) / sum * load(w, (1,8), (0, j)) + most)
    }
}";
    let distinct: Vec<f64> = (0..40).map(|own| f64::from((own * 7) % 40) / 16.0 - 1.3).collect();
    compare(text, &[("M", 2), ("K", 20)], &[("x", distinct), ("w", numbers(20, 6))], &GradientOptions::default());
}

#[test]
fn products_are_products() {
    let text = "
tile product {
    input a: bf16 (M,K):(K,1)
    input b: bf16 (K,N):(N,1)
    output d: f32 (M,N):(N,1)
    grid ceil(M/16), ceil(N/16)
    loop k < ceil(K/16) with sum = broadcast(f32(0), (16,16)) {
        next dot(load(a, (16,16), (block.x, k)), load(b, (16,16), (k, block.y)), sum)
    } -> sum
    store(d, (block.x, block.y), sum)
}";
    let source = program(text);
    let (m, n, k) = (20_usize, 24_usize, 40_usize);
    let sizes = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
    let (a, b, d) = (numbers(m * k, 1), numbers(k * n, 2), numbers(m * n, 3));
    for merged in [1, 32] {
        let options = GradientOptions { blocks_merged: merged, ..GradientOptions::default() };
        let gradient = source.gradient(&options).unwrap_or_else(|error| panic!("{error}"));
        let inputs = [("a", a.clone()), ("b", b.clone()), ("d_d", d.clone())];
        let found = gradient.run(&sizes, &inputs).unwrap_or_else(|error| panic!("{error}\n{gradient}"));
        let of = |name: &str| &found.iter().find(|(own, _)| own == name).expect("a derivative").1;
        for i in 0..m {
            for p in 0..k {
                let exact: f64 = (0..n).map(|j| d[i * n + j] * b[p * n + j]).sum();
                let found = of("d_a")[i * k + p].expect("written");
                assert!((found - exact).abs() <= exact.abs() / 128.0 + 1e-6, "d_a({i},{p}): {found}, {exact}");
            }
        }
        for p in 0..k {
            for j in 0..n {
                let exact: f64 = (0..m).map(|i| a[i * k + p] * d[i * n + j]).sum();
                let found = of("d_b")[p * n + j].expect("written");
                assert!((found - exact).abs() <= exact.abs() / 128.0 + 1e-6, "d_b({p},{j}): {found}, {exact}");
            }
        }
        for program in gradient.programs() {
            let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}\n{program}"));
            compiled.check(&sizes).unwrap_or_else(|error| panic!("{error}\n{program}"));
        }
    }
}

#[test]
fn rows_that_tiles_name_need_atomics() {
    let text = "
tile picked {
    input  x: f32 (K,8):(8,1)
    input  numbers: i32 (M,1):(1,1)
    output y: f32 (M,8):(8,1)
    grid ceil(M/2)
    rows = load(numbers, (2,1), (block.x, 0), -1)
    a = load(x, (2,8), (rows, 0))
    store(y, (block.x, 0), a * a)
}";
    let error = program(text).gradient(&GradientOptions::default()).expect_err("rows may be the same");
    assert_eq!(error.code(), "E1213", "{error}");
    assert!(error.to_string().contains("atomics"), "{error}");
    let options = GradientOptions { atomic: true, of: vec!["x".to_string()], ..GradientOptions::default() };
    let gradient = program(text).gradient(&options).expect("atomics add");
    let (x, rows) = (numbers(24, 5), [2.0, 0.0, 2.0].to_vec());
    let d = numbers(24, 6);
    let inputs = [("x", x.clone()), ("numbers", rows), ("d_y", d.clone()), ("d_x", vec![0.0; 24])];
    let found = gradient.run(&[("K", 3), ("M", 3)], &inputs).expect("it runs");
    for column in 0..8 {
        let of = |row: usize| 2.0 * x[row * 8 + column];
        let exact = [of(0) * d[8 + column], 0.0, of(2) * (d[column] + d[16 + column])];
        for (row, exact) in exact.into_iter().enumerate() {
            assert_eq!(found[0].1[row * 8 + column], Some(exact), "({row},{column})");
        }
    }
}

#[test]
fn tiles_of_two_shapes_at_one_index_are_added_apart() {
    // Tile 1 of 4 elements is elements 4 to 7; tile 1 of 17 elements is elements 17 to 33.
    let text = "
tile two {
    input  x: f32 N:1
    output y: f32 4:1
    output z: f32 17:1
    grid 1
    a = load(x, (4), (1))
    b = load(x, (17), (1))
    store(y, (0), a * a)
    store(z, (0), b * b)
}";
    let error = program(text).gradient(&GradientOptions::default()).expect_err("they may overlap");
    assert_eq!(error.code(), "E1213", "{error}");
    let options = GradientOptions { atomic: true, ..GradientOptions::default() };
    compare(text, &[("N", 40)], &[("x", numbers(40, 5))], &options);
}

/// The gradients of the programs of the library that are norms, in bf16, against formulas.
#[test]
fn norms_of_the_library_agree_with_formulas() {
    let text = tilewright_tile::LIBRARY.iter().find(|entry| entry.name == "softmax").expect("there").text;
    let gradient = program(text).gradient(&GradientOptions::default()).expect("softmax has one");
    let (x, d) = (numbers(2 * 4096, 4), numbers(2 * 4096, 9));
    let found = gradient.run(&[("M", 2)], &[("x", x.clone()), ("d_y", d.clone())]).expect("it runs");
    for row in 0..2 {
        let of = |all: &[f64]| all[row * 4096..(row + 1) * 4096].to_vec();
        let (x, d) = (of(&x), of(&d));
        let sum: f64 = x.iter().map(|own| own.exp()).sum();
        let y: Vec<f64> = x.iter().map(|own| own.exp() / sum).collect();
        let all: f64 = y.iter().zip(&d).map(|(y, d)| y * d).sum();
        for column in 0..4096 {
            let exact = y[column] * (d[column] - all);
            let found = found[0].1[row * 4096 + column].expect("written");
            assert!((found - exact).abs() <= exact.abs() / 128.0 + 1e-7, "({row},{column}): {found}, {exact}");
        }
    }
    let result = &gradient.programs()[0];
    assert!(result.tensors().iter().any(|own| own.name == "d_x" && own.element == Element::Bf16));
}

#[test]
fn what_has_no_gradient_is_named() {
    let refused = |text: &str, words: &str| {
        let error = program(text).gradient(&GradientOptions::default()).expect_err(words);
        assert_eq!(error.code(), "E1213", "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.help().is_some());
    };
    let stored = |body: &str| rows(&format!("{body}\n    store(y, (block.x, 0), b)"));
    refused(&stored("b = a * reduce_product(a, 1)"), "a product along a mode");
    refused(&stored("b = broadcast(top(a, 1, 1), (2,8))"), "the largest elements");
    refused(&stored("b = as_f32(as_i32(a) + 1)"), "the bits of another type");
    refused(&stored("loop i < 3 with s = a { next s * a } -> b"), "the value 1 that the loop carries");
    refused(&stored("loop i < 3 with s = a { next a } -> b"), "the value 1 that the loop carries");
    refused(&stored("loop i < 3 with s = a { next s + s } -> b"), "the value 1 that the loop carries");
    refused(&stored("b = broadcast(f32(1), (2,8))"), "depends on it");
    // Blocks that load tiles one beside the other overlap.
    let overlap = "
tile window {
    input  x: f32 N:1
    output y: f32 N:1
    grid ceil(N/4)
    store(y, (block.x), load(x, (4), (block.x)) * load(x, (4), (block.x + 1)))
}";
    refused(overlap, "two blocks or iterations");
    let named = "
tile named {
    input  x: f32 N:1
    input  d_y: f32 N:1
    output y: f32 N:1
    grid ceil(N/4)
    store(y, (block.x), load(x, (4), (block.x)) * load(d_y, (4), (block.x)))
}";
    refused(named, "has this name");
    let own = program(named).gradient(&GradientOptions { of: vec!["z".to_string()], ..GradientOptions::default() });
    assert!(own.expect_err("there is no z").to_string().contains("no tensor of this name"));
    let none = GradientOptions { blocks_merged: 0, ..GradientOptions::default() };
    assert!(program(overlap).gradient(&none).expect_err("no blocks").to_string().contains("1 or more"));
}

#[test]
fn a_gradient_writes_the_outputs_that_are_asked_for() {
    let text = "
tile two {
    input  x: f32 (M,8):(8,1)
    output y: f32 (M,8):(8,1)
    output s: f32 (M,1):(1,1)
    grid ceil(M/2)
    a = load(x, (2,8), (block.x, 0))
    b = exp(a) * 3
    store(y, (block.x, 0), b)
    store(s, (block.x, 0), reduce_sum(b, 1))
}";
    let (sizes, x) = ([("M", 3)], numbers(24, 5));
    let given = [("x", x.clone()), ("d_y", numbers(24, 6)), ("d_s", numbers(3, 7))];
    let forward = outputs(&program(text), &sizes, &given[..1]);
    let plain = program(text).gradient(&GradientOptions::default()).unwrap().run(&sizes, &given).unwrap();
    for asked in [vec![], vec!["y"], vec!["s"], vec!["s", "y"]] {
        let options = GradientOptions {
            outputs: asked.iter().map(|own| (*own).to_string()).collect(),
            ..GradientOptions::default()
        };
        let found = program(text).gradient(&options).unwrap().run(&sizes, &given).unwrap();
        assert_eq!(found.len(), 1 + asked.len());
        for (name, all) in &found {
            match forward.iter().find(|(own, _)| own == name) {
                Some((_, expected)) => {
                    assert!(asked.contains(&name.as_str()));
                    assert_eq!(all.iter().map(|own| own.expect("written")).collect::<Vec<_>>(), *expected);
                }
                None => assert_eq!((name, all), (&plain[0].0, &plain[0].1)),
            }
        }
    }
    // Inputs, unknown names, and what is stored in a loop.
    let refused = |text: &str, name: &str, words: &str| {
        let options = GradientOptions { outputs: vec![name.to_string()], ..GradientOptions::default() };
        let error = program(text).gradient(&options).expect_err(words);
        assert!(error.code() == "E1213" && error.to_string().contains(words), "{error}");
    };
    refused(text, "x", "no output of this name");
    refused(text, "z", "no output of this name");
    let looped = "
tile looped {
    input  x: f32 (M,8):(8,1)
    output y: f32 (M,8):(8,1)
    grid ceil(M/4)
    loop i < 2 {
        store(y, (block.x*2 + i, 0), exp(load(x, (2,8), (block.x*2 + i, 0))))
    }
}";
    refused(looped, "y", "outside of loops");
}

#[test]
fn programs_of_the_library_have_a_gradient_or_are_refused() {
    let mut derived = Vec::new();
    for entry in tilewright_tile::LIBRARY {
        match program(entry.text).gradient(&GradientOptions::default()) {
            Ok(gradient) => {
                for program in gradient.programs() {
                    // A product with an epilogue keeps more tiles at once than a block has room
                    // for.
                    if let Err(error) = program.compile(None) {
                        assert_eq!((entry.name, error.code()), ("product", "E1211"), "{error}\n{program}");
                    }
                }
                derived.push(entry.name);
            }
            Err(error) => assert_eq!(error.code(), "E1213", "{}: {error}", entry.name),
        }
    }
    for name in ["softmax", "layer_norm_residual", "rms_norm_gate", "product"] {
        assert!(derived.contains(&name), "{derived:?}");
    }
}
