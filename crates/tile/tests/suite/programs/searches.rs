//! Where the least and the greatest elements are, beside plain loops.

use super::places::exactly;
use super::run::Case;
use tilewright_tile::Program;

/// Numbers with many equal ones, both zeros, infinities and NaN.
fn awkward(count: usize, with_nan: bool) -> Vec<f64> {
    let one = |at: usize| match ((at * 2_654_435_761) >> 5) % 23 {
        0 => -0.0,
        1 => 0.0,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        4 | 5 if with_nan => f64::NAN,
        own => (own % 7) as f64 - 3.0,
    };
    (0..count).map(one).collect()
}

/// The place of the first element than which none is better; NaN is better than every number.
fn first(row: &[f64], is_less: fn(f64, f64) -> bool) -> f64 {
    let nan = row.iter().position(|x| x.is_nan());
    let best = |own: &f64| row.iter().all(|other| !is_less(*other, *own));
    nan.or(row.iter().position(best)).unwrap() as f64
}

/// The order in which the greatest come: by counting, for each element, those before it.
fn order(row: &[f64]) -> Vec<usize> {
    // NaN, infinity, .., 0, -0, .., minus infinity.
    let rank = |x: f64| if x.is_nan() { (2, 0.0, 0) } else { (1, x, usize::from(x.is_sign_positive())) };
    let before = |at: usize| {
        let is_before = |other: usize| {
            let (a, b) = (rank(row[other]), rank(row[at]));
            a > b || (a == b && other < at)
        };
        (0..row.len()).filter(|other| is_before(*other)).count()
    };
    let mut found = vec![0; row.len()];
    (0..row.len()).for_each(|at| found[before(at)] = at);
    found
}

#[test]
fn the_first_of_the_least_and_the_greatest_is_found() {
    for (columns, tile, rows, with_nan) in
        [(100, 128, 4, false), (64, 64, 2, true), (700, 1024, 1, true), (3, 4, 1, false)]
    {
        for element in ["f32", "i32"] {
            let mut x = awkward(5 * columns, with_nan && element == "f32");
            if element == "i32" {
                let whole = |x: f64| if x.is_infinite() { x.signum() * 2_147_483_647.0 } else { x };
                x.iter_mut().for_each(|x| *x = whole(*x) - f64::from(u8::from(*x == f64::NEG_INFINITY)) + 0.0);
            }
            // Elements past the edge are the end of the range, and come later.
            let (least, greatest) = if element == "f32" { ("-inf", "inf") } else { ("-2147483648", "2147483647") };
            let text = format!(
                "tile found {{\n input x: {element} (M,{columns}):({columns},1)\n output low: i32 (M,1):(1,1)\n \
                 output high: i32 (M,1):(1,1)\n grid ceil(M/{rows})\n \
                 store(low, (block.x, 0), argmin(load(x, ({rows},{tile}), (block.x, 0), {greatest}), 1))\n \
                 store(high, (block.x, 0), argmax(load(x, ({rows},{tile}), (block.x, 0), {least}), 1))\n}}"
            );
            let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
            let low = x.chunks(columns).map(|row| first(row, |a, b| a < b)).collect();
            let high = x.chunks(columns).map(|row| first(row, |a, b| a > b)).collect();
            exactly(&program, &Case::new(&[("M", 5)], &[("x", x)]), &[("low", low), ("high", high)]);
        }
    }
}

#[test]
fn the_greatest_come_with_their_places_and_equal_ones_in_order() {
    // Within registers, within a warp, across warps, along the first mode, and all of a tile.
    for (columns, tile, rows, kept, warps) in
        [(100, 128, 1, 8, 1), (128, 128, 4, 128, 2), (1000, 1024, 1, 16, 4), (250, 256, 2, 1, 8), (6, 8, 1, 4, 1)]
    {
        for (element, with_nan) in [("f32", false), ("f32", true), ("i32", false)] {
            let mut x = awkward(5 * columns, with_nan);
            if !with_nan {
                // Infinities have no difference where results are compared. Integers have one zero.
                let zero = if element == "i32" { 0.0 } else { -0.0 };
                x.iter_mut().for_each(|x| *x = x.clamp(-2e9, 2e9) + zero);
            }
            let least = if element == "f32" { "-inf" } else { "-2147483648" };
            let text = format!(
                "tile best {{\n input x: {element} (M,{columns}):({columns},1)\n output v: {element} (M,{kept}):({kept},1)\n \
                 output p: i32 (M,{kept}):({kept},1)\n grid ceil(M/{rows})\n warps {warps}\n \
                 a = load(x, ({rows},{tile}), (block.x, 0), {least})\n \
                 store(v, (block.x, 0), top(a, 1, {kept}))\n store(p, (block.x, 0), top_places(a, 1, {kept}))\n}}"
            );
            let alone = text.lines().filter(|line| !line.contains("top(") && !line.contains("output v"));
            let alone: Program = alone.collect::<Vec<_>>().join("\n").parse().unwrap();
            let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
            let (mut values, mut places) = (Vec::new(), Vec::new());
            for row in x.chunks(columns) {
                let order = order(row);
                values.extend(order[..kept].iter().map(|at| row[*at]));
                places.extend(order[..kept].iter().map(|at| *at as f64));
            }
            let case = Case::new(&[("M", 5)], &[("x", x)]);
            exactly(&alone, &case, &[("p", places.clone())]);
            // NaN does not equal itself where results are compared.
            if !with_nan {
                exactly(&program, &case, &[("p", places), ("v", values)]);
            }
        }
    }
}

#[test]
fn places_of_columns_are_those_along_the_first_mode() {
    let x: Vec<f64> = (0..64 * 16).map(|at: u32| f64::from(at.wrapping_mul(2_654_435_761) >> 28)).collect();
    let program: Program = "
    tile columns {
        input x: f32 (64,16):(16,1)
        output p: i32 (8,16):(16,1)
        grid 1
        store(p, (0, 0), top_places(load(x, (64,16), (0, 0)), 0, 8))
    }"
    .parse()
    .unwrap();
    let mut places = vec![0.0; 8 * 16];
    for column in 0..16 {
        let own: Vec<f64> = (0..64).map(|row| x[row * 16 + column]).collect();
        order(&own)[..8].iter().enumerate().for_each(|(at, row)| places[at * 16 + column] = *row as f64);
    }
    exactly(&program, &Case::new(&[], &[("x", x)]), &[("p", places)]);
}

#[test]
fn a_loop_sorts_again_in_each_iteration() {
    // Two iterations are written out together: what the first sorted is not what the second asks
    // for.
    let x: Vec<f64> = (0..4 * 64).map(|at: u32| f64::from(at.wrapping_mul(2_654_435_761) >> 24)).collect();
    let program: Program = "
    tile rounds {
        input x: f32 (4,64):(64,1)
        output v: f32 (1,4):(4,1)
        output p: i32 (1,4):(4,1)
        grid 1
        warps 2
        none = broadcast(f32(0), (1,4))
        nowhere = broadcast(i32(0), (1,4))
        loop k < 4 with sum = none, at = nowhere {
            row = load(x, (1,64), (k, 0))
            next sum + top(row, 1, 4), at * 64 + top_places(row, 1, 4)
        } -> sum, at
        store(v, (0, 0), sum)
        store(p, (0, 0), at)
    }"
    .parse()
    .unwrap();
    let (mut values, mut places) = (vec![0.0; 4], vec![0.0; 4]);
    for row in x.chunks(64) {
        for (at, from) in order(row)[..4].iter().enumerate() {
            values[at] += row[*from];
            places[at] = places[at] * 64.0 + *from as f64;
        }
    }
    exactly(&program, &Case::new(&[], &[("x", x)]), &[("v", values), ("p", places)]);
}
