//! Quotients and remainders of integers, and conditions, beside plain loops.

use super::places::exactly;
use super::run::Case;
use tilewright_tile::{Program, interpret};

/// The greatest whole number up to `a / b` by counting down from what the magnitudes give.
fn floored(a: i64, b: i64) -> i64 {
    let mut quotient = if b == 0 { return 0 } else { a.abs() / b.abs() * a.signum() * b.signum() + 2 };
    // The rest has the sign of the divisor: `a / b` is no less than its floor.
    while (quotient * b - a) * b.signum() > 0 {
        quotient -= 1;
    }
    quotient
}

/// Numbers of i32 at the ends, about zero and between.
fn ends() -> Vec<i64> {
    let least = i64::from(i32::MIN);
    let mut found: Vec<i64> = (-9..=9).collect();
    found.extend([least, least + 1, least + 7, -least - 1, -least - 2, 12_345_678, -87_654_321, 1 << 30, 100, -100]);
    found.extend([63, 64, 65]);
    found
}

fn wrapped(value: i64) -> f64 {
    f64::from(value as i32)
}

#[test]
fn quotients_of_integers_are_rounded_down() {
    let numbers = ends();
    assert_eq!(numbers.len(), 32);
    let pairs: Vec<(i64, i64)> = numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))).collect();
    let program: Program = "
    tile divided {
        input a: i32 1024:1
        input b: i32 1024:1
        output q: i32 1024:1
        output r: i32 1024:1
        grid 2
        x = load(a, (512), (block.x))
        y = load(b, (512), (block.x))
        store(q, (block.x), x / y)
        store(r, (block.x), x % y)
    }"
    .parse()
    .unwrap();
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    let [a, b] = [0, 1].map(|at| pairs.iter().map(|own| [own.0, own.1][at] as f64).collect::<Vec<f64>>());
    let case = Case::new(&[], &[("a", a.clone()), ("b", b)]);
    let q: Vec<f64> = pairs.iter().map(|(a, b)| wrapped(floored(*a, *b))).collect();
    let r: Vec<f64> = pairs.iter().map(|(a, b)| wrapped(a - floored(*a, *b) * b)).collect();
    exactly(&program, &case, &[("q", q), ("r", r)]);
    // By a number that is known: shifts and masks, or a multiplication by the assembler.
    for by in [1, 2, 3, 7, 64, 100, 1 << 30, -1, -8, 0] {
        let text = format!(
            "tile known {{\n input a: i32 1024:1\n output q: i32 1024:1\n output r: i32 1024:1\n grid 1\n \
             x = load(a, (1024), (0))\n store(q, (0), x // {by})\n store(r, (0), x % {by})\n}}"
        );
        let program: Program = text.parse().unwrap();
        let by = i64::from(by);
        let q: Vec<f64> = pairs.iter().map(|(a, _)| wrapped(floored(*a, by))).collect();
        let r: Vec<f64> = pairs.iter().map(|(a, _)| wrapped(a - floored(*a, by) * by)).collect();
        exactly(&program, &Case::new(&[], &[("a", a.clone())]), &[("q", q), ("r", r)]);
    }
}

#[test]
fn quotients_of_a_block_choose_what_it_reads() {
    // Block 3h + g of a grouped head reads head h.
    let program: Program = "
    tile grouped {
        input x: f32 (H,64):(64,1)
        output y: f32 (3*H,64):(64,1)
        grid 3*H
        head = broadcast(index(block.x) // 3, (1,1))
        store(y, (block.x, 0), load(x, (1,64), (head, 0)) + f32(index(block.x) % 3))
    }"
    .replace("3*H", "B")
    .parse()
    .unwrap();
    for heads in [1, 2, 5] {
        let x: Vec<f64> = (0..64 * heads).map(|at| f64::from(at as i32)).collect();
        let wanted = (0..64 * 3 * heads).map(|at| x[at / 64 / 3 * 64 + at % 64] + (at / 64 % 3) as f64).collect();
        let sizes = [("H", heads as i64), ("B", 3 * heads as i64)];
        exactly(&program, &Case::new(&sizes, &[("x", x)]), &[("y", wanted)]);
    }
}

/// Two tiles with equal elements, elements that are greater, and NaN on each side and on both.
fn compared() -> [Vec<f64>; 2] {
    let part = |at: usize, by: usize| match (at / by) % 5 {
        4 => f64::NAN,
        own => own as f64 - 1.0,
    };
    [(0..256).map(|at| part(at, 1)).collect(), (0..256).map(|at| part(at, 5)).collect()]
}

/// A condition as text, and what it means.
type Meant = (&'static str, fn(f64, f64) -> bool);

#[test]
#[allow(clippy::nonminimal_bool, clippy::neg_cmp_op_on_partial_ord)]
fn conditions_combine_as_truth_does() {
    let conditions: [Meant; 9] = [
        ("x < y & y < 2", |x, y| x < y && y < 2.0),
        ("x < y | x == 0", |x, y| x < y || x == 0.0),
        ("!x < y", |x, y| !(x < y)),
        ("!(x <= y) & y >= 0 | x != y & !(y > 1)", |x, y| (!(x <= y) && y >= 0.0) || (x != y && !(y > 1.0))),
        ("(x < y | y < x) & (x + 1 < y * 2 | x == x)", |x, y| (x < y || y < x) && (x + 1.0 < y * 2.0 || !x.is_nan())),
        ("less & same", |x, y| x < y && x + 1.0 == y),
        ("!less | !same", |x, y| !(x < y && x + 1.0 == y)),
        ("less != same", |x, y| (x < y) != (x + 1.0 == y)),
        ("less + same > 1 & less", |x, y| x < y && x + 1.0 == y),
    ];
    for (text, of) in conditions {
        let program = format!(
            "tile chosen {{\n input a: f32 256:1\n input b: f32 256:1\n output y: f32 256:1\n output m: i32 256:1\n \
             grid 1\n x = load(a, (256), (0))\n y = load(b, (256), (0))\n less = x < y\n same = x + 1 == y\n \
             store(y, (0), select({text}, 5, 7))\n m = {text}\n store(m, (0), select(m, i32(1), 0))\n}}"
        );
        let program: Program = program.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
        let [a, b] = compared();
        let holds: Vec<bool> = a.iter().zip(&b).map(|(x, y)| of(*x, *y)).collect();
        let chosen = holds.iter().map(|own| if *own { 5.0 } else { 7.0 }).collect();
        let numbers = holds.iter().map(|own| f64::from(u8::from(*own))).collect();
        exactly(&program, &Case::new(&[], &[("a", a), ("b", b)]), &[("y", chosen), ("m", numbers)]);
    }
}

#[test]
fn a_condition_that_names_itself_again_and_again_stays_short() {
    let doubled = "m = m & m\n m = m | m\n".repeat(40);
    let text = format!(
        "tile t {{\n output y: i32 64:1\n grid 1\n m = arange((64), 0) % 3 == 1\n {doubled} store(y, (0), m)\n}}"
    );
    let program: Program = text.parse().unwrap();
    assert!(program.values().count() < 20_000, "{}", program.values().count());
    let found = &interpret::run(&program, &[], &[]).unwrap()[0].1;
    assert!(found.iter().enumerate().all(|(at, own)| *own == Some(f64::from(u8::from(at % 3 == 1)))));
}

#[test]
fn conditions_are_refused_where_they_mean_nothing() {
    for (line, told) in [
        ("a = x & x < 1", "a comparison on each side"),
        ("a = n & n", "and(a, b)"),
        ("a = select(x, x, x)", "a comparison"),
        ("a = x < 1 < x", "`&` and another comparison"),
        ("a = !x", "a comparison"),
        ("a = x % x", "i32"),
        ("a = x // 2", "i32"),
        ("a = x < 1 &", "a value"),
    ] {
        let text =
            format!("tile t {{\n input x: f32 8:1\n grid 1\n n = arange((8), 0)\n x = load(x, (8), (0))\n {line}\n}}");
        let error = text.parse::<Program>().unwrap_err();
        assert!(error.to_string().contains(told) && error.place().is_some(), "{line}: {error}");
    }
}
