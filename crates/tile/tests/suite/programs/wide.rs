//! Tiles of f64 and i64, beside plain loops on the types of Rust: by bits, so that integers beyond
//! 2^53 and the signs of zeros count.

use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::ptx::{self, Target};
use tilewright_layout::Refusal;
use tilewright_tile::{Element, Program, interpret};

/// A tensor by its name, as bits of elements of 64 or 32 bits.
type Bits<'c> = (&'c str, Vec<u64>);

fn element(program: &Program, name: &str) -> Element {
    program.tensors().iter().find(|own| own.name == name).unwrap().element
}

fn read(text: &str) -> Program {
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    program
}

/// The bits of a NaN are open.
fn same(a: u64, b: u64, element: Element) -> bool {
    let nan = |bits: u64| match element {
        Element::F64 => f64::from_bits(bits).is_nan(),
        Element::F32 => f32::from_bits(bits as u32).is_nan(),
        _ => false,
    };
    a == b || (nan(a) && nan(b))
}

/// The tile interpreter, the placed program, and the kernel under every schedule, bit for bit.
fn bits_are(program: &Program, sizes: &[(&str, i64)], inputs: &[Bits<'_>], wanted: &[Bits<'_>]) {
    let meant = interpret::run_bits(program, sizes, inputs).unwrap_or_else(|error| panic!("{error}\n{program}"));
    let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}\n{program}"));
    compiled.placed().verify().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(interpret::run_bits(compiled.placed(), sizes, inputs).unwrap(), meant, "{program}");
    for target in [Target::Sm80, Target::Sm90a] {
        ptx::write(compiled.kernel().program(), target).unwrap_or_else(|error| panic!("{error}\n{program}"));
    }
    let mut interpreter = Interpreter::new(compiled.kernel().program(), sizes).unwrap();
    for (name, bits) in inputs {
        if let Some(scalar) = program.scalars().iter().find(|own| own.name == *name) {
            interpreter.number_bits(name, scalar.element, bits[0]).unwrap();
            continue;
        }
        let width = element(program, name).bytes() as usize;
        let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_le_bytes()[..width].to_vec()).collect();
        interpreter.bytes(*name, &bytes).unwrap();
    }
    let checked = interpreter.check().unwrap_or_else(|findings| panic!("{}\n{program}", findings[0]));
    for (name, wanted) in wanted {
        let own = element(program, name);
        let (_, found) = meant.iter().find(|(other, _)| other == name).unwrap();
        assert_eq!(found.len(), wanted.len(), "{name}");
        for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            let found = found.unwrap_or_else(|| panic!("{name}[{at}] was never written"));
            assert!(
                same(found, *wanted, own),
                "the interpreter's {name}[{at}] is {found:x}, not {wanted:x}\n{program}"
            );
        }
        let bytes = checked.run.bytes(*name).unwrap();
        for (at, (bytes, wanted)) in bytes.chunks(own.bytes() as usize).zip(wanted).enumerate() {
            let found = bytes.iter().rev().fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
            assert!(same(found, *wanted, own), "the kernel's {name}[{at}] is {found:x}, not {wanted:x}\n{program}");
        }
    }
}

/// Integers at the ends, about zero, about 2^53 and 2^31, and between.
fn whole() -> Vec<i64> {
    let mut found = vec![0, 1, -1, 2, -2, 3, -3, 7, -7, 63, 64, 65, -64, 100, 1 << 31, (1 << 31) - 1];
    found.extend([-(1 << 31), 1 << 32, (1 << 53) + 1, -(1 << 53) - 1, i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1]);
    found.extend([123_456_789_012_345, -987_654_321_098_765, 1 << 62, -(1 << 62), 5, -5, 10, 31]);
    assert_eq!(found.len(), 32);
    found
}

fn pairs<T: Copy>(numbers: &[T]) -> Vec<(T, T)> {
    numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))).collect()
}

fn bits_of(numbers: impl IntoIterator<Item = i64>) -> Vec<u64> {
    numbers.into_iter().map(|own| own as u64).collect()
}

fn bits_of_f64(numbers: impl IntoIterator<Item = f64>) -> Vec<u64> {
    numbers.into_iter().map(f64::to_bits).collect()
}

/// The quotient that is rounded down, by 128 bits.
fn floored(a: i64, b: i64) -> i128 {
    let (a, b) = (i128::from(a), i128::from(b));
    if b == 0 { 0 } else { a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0) }
}

/// How far bits are moved; None from 64 on, as of a number without a sign.
fn places(by: i64) -> Option<u32> {
    u32::try_from(by).ok().filter(|by| *by < 64)
}

/// An operation on two numbers as text, and what it means.
type Meant<T> = (&'static str, fn(T, T) -> T);

#[test]
fn integers_of_64_bits_are_computed_as_such() {
    let operations: [Meant<i64>; 17] = [
        ("x + y", |a, b| (i128::from(a) + i128::from(b)) as i64),
        ("x - y", |a, b| (i128::from(a) - i128::from(b)) as i64),
        ("x * y", |a, b| (i128::from(a) * i128::from(b)) as i64),
        ("x // y", |a, b| floored(a, b) as i64),
        ("x % y", |a, b| (i128::from(a) - floored(a, b) * i128::from(b)) as i64),
        ("min(x, y)", |a, b| if a < b { a } else { b }),
        ("max(x, y)", |a, b| if a < b { b } else { a }),
        ("and(x, y)", |a, b| a & b),
        ("or(x, y)", |a, b| a | b),
        ("xor(x, y)", |a, b| a ^ b),
        ("shl(x, y)", |a, b| places(b).map_or(0, |by| a << by)),
        ("shr(x, y)", |a, b| places(b).map_or(if a < 0 { -1 } else { 0 }, |by| a >> by)),
        ("lshr(x, y)", |a, b| places(b).map_or(0, |by| (a as u64 >> by) as i64)),
        ("select(x < y, x, y + 1)", |a, b| if a < b { a } else { b.wrapping_add(1) }),
        (
            "select(x <= y & x != 7, -x, abs(y))",
            |a, b| if a <= b && a != 7 { a.wrapping_neg() } else { b.wrapping_abs() },
        ),
        ("select(x == y, 9007199254740991, x % 10 + y // 16)", |a, b| {
            if a == b { (1 << 53) - 1 } else { a.rem_euclid(10).wrapping_add(b.div_euclid(16)) }
        }),
        ("x // -3 + y % 3", |a, b| (floored(a, -3) + i128::from(b.rem_euclid(3))) as i64),
    ];
    let pairs = pairs(&whole());
    let inputs = [("a", bits_of(pairs.iter().map(|own| own.0))), ("b", bits_of(pairs.iter().map(|own| own.1)))];
    for (text, of) in operations {
        let program = read(&format!(
            "tile computed {{\n input a: i64 1024:1\n input b: i64 1024:1\n output z: i64 1024:1\n grid 2\n \
             x = load(a, (512), (block.x))\n y = load(b, (512), (block.x))\n store(z, (block.x), {text})\n}}"
        ));
        let wanted = bits_of(pairs.iter().map(|(a, b)| of(*a, *b)));
        bits_are(&program, &[], &inputs, &[("z", wanted)]);
    }
}

/// Numbers of f64 that f32 does not have, the ends, zeros, infinities and NaN.
fn real() -> Vec<f64> {
    let mut found = vec![0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 1.5, 2.5, -2.5, 1e300, -1e300, f64::MIN_POSITIVE, 5e-324];
    found.extend([f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0 + f64::EPSILON, 3.0, 1e-17]);
    found.extend([4_503_599_627_370_497.5, -7.75, 0.5, -0.5, 1e16, std::f64::consts::PI, 2.0, 9.0, 1e-300, 64.0, -8.0]);
    assert_eq!(found.len(), 32);
    found
}

/// The lesser number, NaN if one is, and of two zeros the negative one.
fn least(a: f64, b: f64) -> f64 {
    match () {
        () if a.is_nan() || b.is_nan() => f64::NAN,
        () if a == b => f64::from_bits(a.to_bits() | b.to_bits()),
        () => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

#[test]
fn numbers_of_f64_are_rounded_once() {
    let operations: [Meant<f64>; 12] = [
        ("x + y", |a, b| a + b),
        ("x - y", |a, b| a - b),
        ("x * y", |a, b| a * b),
        ("x / y", |a, b| a / b),
        ("fma(x, y, 0.1)", |a, b| a.mul_add(b, 0.1)),
        ("min(x, y)", least),
        ("max(x, y)", |a, b| -least(-a, -b)),
        ("select(x < y | x == 3, -x, abs(y))", |a, b| if a < b || a == 3.0 { -a } else { b.abs() }),
        ("sqrt(x) + floor(y)", |a, b| a.sqrt() + b.floor()),
        ("ceil(x) * recip(y)", |a, b| a.ceil() * (1.0 / b)),
        ("round(x) - rsqrt(y)", |a, b| a.round_ties_even() - 1.0 / b.sqrt()),
        ("x * 1e-17 + y", |a, b| a * 1e-17 + b),
    ];
    let pairs = pairs(&real());
    let inputs = [("a", bits_of_f64(pairs.iter().map(|own| own.0))), ("b", bits_of_f64(pairs.iter().map(|own| own.1)))];
    for (text, of) in operations {
        let program = read(&format!(
            "tile computed {{\n input a: f64 1024:1\n input b: f64 1024:1\n output z: f64 1024:1\n grid 4\n \
             x = load(a, (256), (block.x))\n y = load(b, (256), (block.x))\n store(z, (block.x), {text})\n}}"
        ));
        let wanted = bits_of_f64(pairs.iter().map(|(a, b)| of(*a, *b)));
        bits_are(&program, &[], &inputs, &[("z", wanted)]);
    }
}

#[test]
fn conversions_of_wide_types_round_once_and_keep_what_fits() {
    let reals = [real(), vec![2_147_483_648.0, -2_147_483_649.0, 9.3e18, -9.3e18, 0.999, -0.999, 1e10, -1e10]].concat();
    let wholes = [whole(), vec![(1 << 24) + 1, (1 << 54) + 2, 0x0080_0000_8000_0001, -3, 4, 6, 8, 9]].concat();
    let program = read(
        "tile converted {
             input a: f64 40:1
             input b: i64 40:1
             output a_f32: f32 40:1
             output a_i32: i32 40:1
             output a_i64: i64 40:1
             output b_f32: f32 40:1
             output b_f64: f64 40:1
             output b_i32: i32 40:1
             output bits: i64 40:1
             output number: f64 40:1
             grid 1
             a = load(a, (40), (0))
             b = load(b, (40), (0))
             store(a_f32, (0), f32(a))
             store(a_i32, (0), i32(a))
             store(a_i64, (0), i64(a))
             store(b_f32, (0), f32(b))
             store(b_f64, (0), f64(b))
             store(b_i32, (0), i32(b))
             store(bits, (0), as_i64(a))
             store(number, (0), as_f64(b))
         }",
    );
    // The hardware gives the least integer for a NaN of 64 bits.
    let to_i32 = |a: f64| if a.is_nan() { i32::MIN } else { a as i32 };
    let to_i64 = |a: f64| if a.is_nan() { i64::MIN } else { a as i64 };
    let of_i32 = |own: i32| u64::from(own as u32);
    let of_f32 = |own: f32| u64::from(own.to_bits());
    let wanted = [
        ("a_f32", reals.iter().map(|a| of_f32(*a as f32)).collect()),
        ("a_i32", reals.iter().map(|a| of_i32(to_i32(*a))).collect()),
        ("a_i64", bits_of(reals.iter().map(|a| to_i64(*a)))),
        ("b_f32", wholes.iter().map(|b| of_f32(*b as f32)).collect()),
        ("b_f64", bits_of_f64(wholes.iter().map(|b| *b as f64))),
        ("b_i32", wholes.iter().map(|b| of_i32(*b as i32)).collect()),
        ("bits", bits_of_f64(reals.iter().copied())),
        ("number", bits_of(wholes.iter().copied())),
    ];
    let inputs = [("a", bits_of_f64(reals.iter().copied())), ("b", bits_of(wholes.iter().copied()))];
    bits_are(&program, &[], &inputs, &wanted);
    // Narrow types become wide ones exactly.
    let program = read(
        "tile widened {
             input a: f32 64:1
             input b: i32 64:1
             output p: f64 64:1
             output q: i64 64:1
             output r: f64 64:1
             output s: i64 64:1
             grid 1
             a = load(a, (64), (0))
             b = load(b, (64), (0))
             store(p, (0), f64(a) * 3)
             store(q, (0), i64(a))
             store(r, (0), f64(b))
             store(s, (0), i64(b) * 4294967297)
         }",
    );
    let a: Vec<f32> = (0..64).map(|at| (at as f32 - 30.0) * 1.7e9 + 0.3).collect();
    let b: Vec<i32> = (0..64).map(|at| (at - 32) * 66_000_001).collect();
    let wanted = [
        ("p", bits_of_f64(a.iter().map(|a| f64::from(*a) * 3.0))),
        ("q", bits_of(a.iter().map(|a| *a as i64))),
        ("r", bits_of_f64(b.iter().map(|b| f64::from(*b)))),
        ("s", bits_of(b.iter().map(|b| i64::from(*b).wrapping_mul(4_294_967_297)))),
    ];
    let inputs = [
        ("a", a.iter().map(|a| u64::from(a.to_bits())).collect()),
        ("b", b.iter().map(|b| u64::from(*b as u32)).collect()),
    ];
    bits_are(&program, &[], &inputs, &wanted);
}

/// Rows of integers that no f64 tells apart, some of them equal.
fn row(seed: i64, count: i64) -> Vec<i64> {
    (0..count).map(|at| ((at * 37 + seed * 11) % 29 - 14) + (1 << 55) * (1 - 2 * (at % 2))).collect()
}

#[test]
fn rows_of_wide_integers_are_reduced_scanned_and_searched() {
    // Within a warp and across warps; extents that are powers of two and others.
    for (columns, warps) in [(64, 1), (48, 4), (96, 2), (200, 8)] {
        let program = read(&format!(
            "tile rows {{
                 input x: i64 (M,{columns}):({columns},1)
                 output sum: i64 (M,1):(1,1)
                 output product: i64 (M,1):(1,1)
                 output least: i64 (M,1):(1,1)
                 output greatest: i64 (M,1):(1,1)
                 output first: i32 (M,1):(1,1)
                 output last: i32 (M,1):(1,1)
                 output scan: i64 (M,{columns}):({columns},1)
                 output before: i64 (M,{columns}):({columns},1)
                 output top: i64 (M,4):(4,1)
                 output places: i32 (M,4):(4,1)
                 grid ceil(M/2)
                 warps {warps}
                 a = load(x, (2,{columns}), (block.x, 0))
                 store(sum, (block.x, 0), reduce_sum(a, 1))
                 store(product, (block.x, 0), reduce_product(or(a, 1), 1))
                 store(least, (block.x, 0), reduce_min(a, 1))
                 store(greatest, (block.x, 0), reduce_max(a, 1))
                 store(first, (block.x, 0), argmax(a, 1))
                 store(last, (block.x, 0), argmin(a, 1))
                 store(scan, (block.x, 0), scan_sum(a, 1))
                 store(before, (block.x, 0), scan_before_max(a, 1))
                 store(top, (block.x, 0), top(a, 1, 4))
                 store(places, (block.x, 0), top_places(a, 1, 4))
             }}"
        ));
        let rows: Vec<Vec<i64>> = (0..3).map(|seed| row(seed, columns)).collect();
        let all = |of: &dyn Fn(&[i64]) -> Vec<i64>| bits_of(rows.iter().flat_map(|row| of(row)));
        let narrow = |of: &dyn Fn(&[i64]) -> Vec<i64>| {
            rows.iter().flat_map(|row| of(row)).map(|own| u64::from(own as u32)).collect::<Vec<u64>>()
        };
        let place = |row: &[i64], wanted: i64| vec![row.iter().position(|own| *own == wanted).unwrap() as i64];
        let sorted = |row: &[i64]| {
            let mut places: Vec<i64> = (0..row.len() as i64).collect();
            places.sort_by_key(|at| (std::cmp::Reverse(row[*at as usize]), *at));
            places[..4].to_vec()
        };
        let wanted = [
            ("sum", all(&|row| vec![row.iter().fold(0, |sum: i64, own| sum.wrapping_add(*own))])),
            ("product", all(&|row| vec![row.iter().fold(1, |all: i64, own| all.wrapping_mul(*own | 1))])),
            ("least", all(&|row| vec![*row.iter().min().unwrap()])),
            ("greatest", all(&|row| vec![*row.iter().max().unwrap()])),
            ("first", narrow(&|row| place(row, *row.iter().max().unwrap()))),
            ("last", narrow(&|row| place(row, *row.iter().min().unwrap()))),
            (
                "scan",
                all(&|row| {
                    (0..row.len()).map(|at| row[..=at].iter().fold(0, |a: i64, b| a.wrapping_add(*b))).collect()
                }),
            ),
            (
                "before",
                all(&|row| (0..row.len()).map(|at| row[..at].iter().copied().max().unwrap_or(i64::MIN)).collect()),
            ),
            ("top", all(&|row| sorted(row).iter().map(|at| row[*at as usize]).collect())),
            ("places", narrow(&sorted)),
        ];
        bits_are(&program, &[("M", 3)], &[("x", bits_of(rows.concat()))], &wanted);
    }
}

#[test]
fn rows_of_f64_are_reduced_scanned_and_searched() {
    for (columns, warps) in [(64, 1), (48, 4), (200, 8)] {
        let program = read(&format!(
            "tile rows {{
                 input x: f64 (M,{columns}):({columns},1)
                 output sum: f64 (M,1):(1,1)
                 output least: f64 (M,1):(1,1)
                 output first: i32 (M,1):(1,1)
                 output last: i32 (M,1):(1,1)
                 output scan: f64 (M,{columns}):({columns},1)
                 output top: f64 (M,4):(4,1)
                 output turned: f64 ({columns},M):(M,1)
                 grid ceil(M/2)
                 warps {warps}
                 a = load(x, (2,{columns}), (block.x, 0))
                 store(sum, (block.x, 0), reduce_sum(a, 1))
                 store(least, (block.x, 0), reduce_min(a, 1))
                 store(first, (block.x, 0), argmax(a, 1))
                 store(last, (block.x, 0), argmin(a, 1))
                 store(scan, (block.x, 0), scan_sum(a, 1))
                 store(top, (block.x, 0), top(a, 1, 4))
                 store(turned, (0, block.x), transpose(a, (1,0)))
             }}"
        ));
        // Multiples of 2^-30 below 2^11: sums are exact in f64, in every order, and not in f32.
        let row = |seed: i64| {
            (0..columns).map(move |at| ((at * 7919 + seed * 104_729) % 4001 - 2000) as f64 + 2.0_f64.powi(-30))
        };
        let rows: Vec<Vec<f64>> = (0..3).map(|seed| row(seed).collect()).collect();
        let all = |of: &dyn Fn(&[f64]) -> Vec<f64>| bits_of_f64(rows.iter().flat_map(|row| of(row)));
        let extreme = |sign: f64| {
            let of = |row: &Vec<f64>| {
                let best = row.iter().map(|own| own * sign).fold(f64::NEG_INFINITY, f64::max);
                row.iter().position(|own| own * sign == best).unwrap() as u64
            };
            rows.iter().map(of).collect::<Vec<u64>>()
        };
        let top = |row: &[f64]| {
            let mut sorted = row.to_vec();
            sorted.sort_by(|a, b| b.partial_cmp(a).unwrap());
            sorted[..4].to_vec()
        };
        let turned = (0..columns as usize).flat_map(|at| rows.iter().map(move |row| row[at]));
        let wanted = [
            ("sum", all(&|row| vec![row.iter().sum()])),
            ("least", all(&|row| vec![row.iter().copied().fold(f64::INFINITY, f64::min)])),
            ("first", extreme(1.0)),
            ("last", extreme(-1.0)),
            ("scan", all(&|row| (0..row.len()).map(|at| row[..=at].iter().sum()).collect())),
            ("top", all(&top)),
            ("turned", bits_of_f64(turned)),
        ];
        bits_are(&program, &[("M", 3)], &[("x", bits_of_f64(rows.concat()))], &wanted);
    }
}

#[test]
fn wide_numbers_are_passed_carried_counted_and_added_up() {
    let program = read(
        "tile carried {
             input x: f64 N:1
             input n: i64 N:1
             inout total: f64 2:1
             inout count: i64 3:1
             scalar scale: f64
             scalar step: i64
             grid ceil(N/64)
             a = load(x, (64), (block.x), 0.1)
             b = load(n, (64), (block.x), -9007199254740991)
             loop k < 3 with s = a, m = b { next s * scale, m + step } -> s, m
             atomic_add(total, (1), reshape(reduce_sum(select(b > 0, s, 0), 0), (1)))
             atomic_add(count, (0), reshape(reduce_sum(m, 0), (1)))
             atomic_min(count, (1), reshape(reduce_min(m, 0), (1)))
             atomic_max(count, (2), reshape(reduce_max(m, 0), (1)))
         }",
    );
    for count in [1, 64, 150] {
        let (scale, step) = (1.0 + 2.0_f64.powi(-10), (1_i64 << 60) + 1);
        let x: Vec<f64> = (0..count).map(|at| (at * 31 % 17) as f64 + 2.0_f64.powi(-20)).collect();
        let n: Vec<i64> = (0..count).map(|at| at * 5 % 7 - 3 + (1 << 54)).collect();
        let padded = count.div_euclid(64) * 64 + if count % 64 == 0 { 0 } else { 64 };
        let least = 1 - (1 << 53);
        let after = |own: i64| own.wrapping_add(step).wrapping_add(step).wrapping_add(step);
        let all: Vec<i64> = (0..padded).map(|at| after(n.get(at as usize).copied().unwrap_or(least))).collect();
        // Exact: three products of 31 bits each with 10 more.
        let total: f64 = x.iter().map(|x| x * scale * scale * scale).sum();
        let sum = all.iter().fold(7, |sum: i64, own| sum.wrapping_add(*own));
        let wanted = [
            ("total", bits_of_f64([-1.0, 0.5 + total])),
            ("count", bits_of([sum, *all.iter().min().unwrap().min(&0), *all.iter().max().unwrap().max(&0)])),
        ];
        let inputs = [
            ("x", bits_of_f64(x)),
            ("n", bits_of(n)),
            ("total", bits_of_f64([-1.0, 0.5])),
            ("count", bits_of([7, 0, 0])),
            ("scale", bits_of_f64([scale])),
            ("step", bits_of([step])),
        ];
        bits_are(&program, &[("N", count)], &inputs, &wanted);
    }
}

#[test]
fn coordinates_of_64_bits_beyond_32_are_past_every_edge() {
    let program = read(
        "tile picked {
             input x: f64 (K,8):(8,1)
             input rows: i64 M:1
             inout y: f64 (M,8):(8,1)
             grid ceil(M/16)
             r = reshape(load(rows, (16), (block.x), -1), (16,1))
             store(y, (block.x, 0), load(x, (16,8), (r, 0), -0.5))
         }",
    );
    let x: Vec<f64> = (0..40).map(|at| f64::from(at) + 2.0_f64.powi(-45)).collect();
    let rows =
        [0, 4, 5, -1, 1 << 32, (1 << 32) + 2, i64::MIN, i64::MAX, 3, 3, (1 << 31) - 1, 1 << 31, -(1 << 31), 1, 2];
    let of = |row: i64| (0..8).map(move |at| (row, at));
    let value = |(row, at): (i64, i64)| if (0..5).contains(&row) { x[(row * 8 + at) as usize] } else { -0.5 };
    let wanted = bits_of_f64(rows.iter().flat_map(|row| of(*row)).map(value));
    let inputs = [("x", bits_of_f64(x.iter().copied())), ("rows", bits_of(rows)), ("y", vec![0; 15 * 8])];
    bits_are(&program, &[("K", 5), ("M", 15)], &inputs, &[("y", wanted)]);
}

#[test]
fn numbers_that_f64_does_not_hold_are_refused_as_f64() {
    let program =
        read("tile t {\n input x: i64 1:1\n output y: i64 1:1\n grid 1\n store(y, (0), load(x, (1), (0)) + 1)\n}");
    let run = |x: f64| interpret::run(&program, &[], &[("x", vec![x])]);
    let most = 2.0_f64.powi(53) - 2.0;
    assert_eq!(run(most).unwrap()[0].1, [Some(most + 1.0)]);
    for wrong in [0.5, f64::NAN, most + 2.0, most + 1.0, -1e19] {
        let error = run(wrong).unwrap_err();
        assert_eq!(error.code(), "E1209");
        assert!(error.to_string().contains("below 2^53"), "{error}");
    }
    let run = |x: i64| interpret::run_bits(&program, &[], &[("x", vec![x as u64])]).unwrap()[0].1[0];
    assert_eq!(run(i64::MAX), Some(1 << 63));
    // A check compares all 64 bits.
    let compiled = program.compile(None).unwrap();
    let given: [(&str, &[u8]); 1] = [("x", &((1_i64 << 60) + 1).to_le_bytes())];
    let (_, meant) = compiled.meant(&[]).unwrap();
    assert!(meant.compared(|_| Ok::<_, tilewright_tile::Unchecked>(1_i64.to_le_bytes().to_vec())).is_ok());
    assert!(meant.compared(|_| Ok::<_, tilewright_tile::Unchecked>(2_i64.to_le_bytes().to_vec())).is_err());
    assert_eq!(
        compiled.check(tilewright_tile::CheckOptions { sizes: &[], contents: &given }).unwrap().outputs[0].compared,
        1
    );
}

#[test]
fn derivatives_by_f64_are_f64() {
    // L = sum of g * y, y = w x^3 / (1 + x^2), with rows that share the weights; and a part of f32.
    let program = read(
        "tile powers {
             input x: f64 (M,32):(32,1)
             input w: f64 (1,32):(32,1)
             input s: f32 (M,32):(32,1)
             output y: f64 (M,32):(32,1)
             output least: f64 (M,1):(1,1)
             grid ceil(M/2)
             a = load(x, (2,32), (block.x, 0))
             b = load(w, (1,32), (0, 0))
             c = f64(load(s, (2,32), (block.x, 0)))
             store(y, (block.x, 0), b * (a * a * a) / (1 + a * a) + c * a + sqrt(abs(a)))
             store(least, (block.x, 0), reduce_min(a, 1))
         }",
    );
    let gradient = program.gradient(&tilewright_tile::GradientOptions::default()).unwrap();
    let rows = 5;
    let number = |seed: usize, at: usize| ((at * 37 + seed * 91) % 64 + 1) as f64 / 16.0;
    let all = |seed: usize, count: usize| (0..count).map(|at| number(seed, at)).collect::<Vec<f64>>();
    let (x, w, s) = (all(1, rows * 32), all(2, 32), all(3, rows * 32));
    let (d_y, d_least) = (all(4, rows * 32), all(5, rows));
    let inputs =
        [("x", x.clone()), ("w", w.clone()), ("s", s.clone()), ("d_y", d_y.clone()), ("d_least", d_least.clone())];
    let outputs = gradient.run(&[("M", rows as i64)], &inputs).unwrap();
    let found = |name: &str| {
        outputs.iter().find(|own| own.0 == name).unwrap().1.iter().map(|own| own.unwrap()).collect::<Vec<f64>>()
    };
    let near = |found: f64, wanted: f64, within: f64| {
        assert!((found - wanted).abs() <= within * wanted.abs().max(1.0), "{found} {wanted}")
    };
    let least = |row: usize| x[row * 32..(row + 1) * 32].iter().copied().fold(f64::INFINITY, f64::min);
    for (at, d_x) in found("d_x").into_iter().enumerate() {
        let (a, b, g) = (x[at], w[at % 32], d_y[at]);
        let slope =
            b * (3.0 * a * a * (1.0 + a * a) - 2.0 * a.powi(4)) / (1.0 + a * a).powi(2) + s[at] + 0.5 / a.sqrt();
        let equal = x[at / 32 * 32..(at / 32 + 1) * 32].iter().filter(|own| **own == least(at / 32)).count() as f64;
        let of_least = if a == least(at / 32) { d_least[at / 32] / equal } else { 0.0 };
        near(d_x, g * slope + of_least, 1e-13);
    }
    for (at, d_w) in found("d_w").into_iter().enumerate() {
        let one = |row: usize| d_y[row * 32 + at] * x[row * 32 + at].powi(3) / (1.0 + x[row * 32 + at].powi(2));
        near(d_w, (0..rows).map(one).sum(), 1e-13);
    }
    for (at, d_s) in found("d_s").into_iter().enumerate() {
        near(d_s, d_y[at] * x[at], 1e-6);
    }
    for program in gradient.programs() {
        let compiled = program.compile(None).unwrap_or_else(|error| panic!("{error}\n{program}"));
        compiled.check(&[("M", rows as i64)]).unwrap_or_else(|wrong| panic!("{wrong}\n{program}"));
    }
}
