//! Recasting layouts of every kind, beside the definition.
//!
//! The oracle knows a layout as its extents and its values. It tries every way to take a box of `n`
//! narrow elements out of the leaves, and asks of each whether the boxes are aligned runs of `n`
//! whose parts are in one order everywhere, which grows along each leaf.

use tilewright_layout::{AnyLayout, Composed, Layout, OuterMap, Tree, Xor};

use crate::random::Random;

/// The values of a layout at all coordinates, first mode fastest.
fn values(layout: &AnyLayout) -> Vec<i64> {
    let value = |index: i64| match layout {
        AnyLayout::Integer(layout) => layout.eval(&index).unwrap(),
        AnyLayout::Xor(layout) => layout.eval(&index).unwrap().bits() as i64,
        AnyLayout::Composed(map) => map.eval(&index).unwrap(),
        other => panic!("{other} has no offsets"),
    };
    (0..extents(layout).iter().product()).map(value).collect()
}

/// The extents of the leaves.
fn extents(layout: &AnyLayout) -> Vec<i64> {
    layout.shape().integer().unwrap().leaves().to_vec()
}

fn digits(mut index: i64, extents: &[i64]) -> Vec<i64> {
    let digit = |extent: &i64| {
        let digit = index % extent;
        index /= extent;
        digit
    };
    extents.iter().map(digit).collect()
}

fn index(digits: &[i64], extents: &[i64]) -> i64 {
    digits.iter().zip(extents).rev().fold(0, |index, (digit, extent)| index * extent + digit)
}

/// Every choice of a divisor of each extent, of the product `n`.
fn boxes(extents: &[i64], n: i64) -> Vec<Vec<i64>> {
    let Some((first, rest)) = extents.split_first() else { return if n == 1 { vec![Vec::new()] } else { Vec::new() } };
    let divisors = (1..=n).filter(|f| n % f == 0 && first % f == 0);
    divisors.flat_map(|f| boxes(rest, n / f).into_iter().map(move |more| [&[f], &more[..]].concat())).collect()
}

/// The extents and the values of the layout in elements `n` times as wide, by definition.
fn widened(extents: &[i64], narrow: &[i64], n: i64) -> Option<(Vec<i64>, Vec<i64>)> {
    boxes(extents, n).into_iter().find_map(|f| {
        let rest: Vec<i64> = extents.iter().zip(&f).map(|(s, f)| s / f).collect();
        let at = |c: i64, j: i64| {
            let (c, j) = (digits(c, &rest), digits(j, &f));
            let place: Vec<i64> = c.iter().zip(&j).zip(&f).map(|((c, j), f)| f * c + j).collect();
            narrow[index(&place, extents) as usize]
        };
        let wide: Vec<i64> = (0..rest.iter().product()).map(|c| at(c, 0).div_euclid(n)).collect();
        let part = |j: i64| at(0, j) - n * wide[0];
        let aligned = (0..n).all(|j| (0..n).contains(&part(j)));
        let one_order = || (0..wide.len()).all(|c| (0..n).all(|j| at(c as i64, j) == n * wide[c] + part(j)));
        let grows = || {
            (0..n).all(|j| {
                (0..f.len()).all(|leaf| {
                    let mut next = digits(j, &f);
                    next[leaf] += 1;
                    next[leaf] == f[leaf] || part(index(&next, &f)) > part(j)
                })
            })
        };
        let mut parts: Vec<i64> = (0..n).map(part).collect();
        parts.sort_unstable();
        (aligned && parts.into_iter().eq(0..n) && one_order() && grows()).then_some((rest, wide))
    })
}

/// The extents and values of a result, from the function of its layout alone.
fn found(layout: &AnyLayout) -> (Vec<i64>, Vec<i64>) {
    (extents(layout), values(layout))
}

/// Compares a widening with the definition: the same, or refused because there is none. Whether
/// there is one.
fn compare(layout: &AnyLayout, n: i64) -> bool {
    let (extents, narrow) = (extents(layout), values(layout));
    let expected = widened(&extents, &narrow, n);
    match layout.recast(n, 1) {
        Ok(wide) => {
            assert_eq!(Some(found(&wide)), expected, "{layout} by {n} = {wide}");
            // And back: the parts of an element are together again.
            let back = wide.recast(1, n).unwrap();
            let mut again = values(&back);
            let mut all = narrow;
            again.sort_unstable();
            all.sort_unstable();
            assert_eq!(again, all, "{layout} by {n} = {wide}, and back {back}");
            true
        }
        Err(error) => {
            assert!(expected.is_none(), "{layout} by {n} is refused: {error}");
            false
        }
    }
}

/// All flat layouts of up to `rank` leaves with these extents and steps, as text.
fn flats(rank: usize, extents: &[&str], steps: &[&str]) -> Vec<String> {
    let mut all = vec![(Vec::new(), Vec::new())];
    let mut texts = Vec::new();
    for _ in 0..rank {
        all = all
            .into_iter()
            .flat_map(|(shape, stride): (Vec<&str>, Vec<&str>)| {
                extents.iter().flat_map(move |s| {
                    let (shape, stride) = (shape.clone(), stride.clone());
                    steps.iter().map(move |d| ([&shape[..], &[*s]].concat(), [&stride[..], &[*d]].concat()))
                })
            })
            .collect();
        texts.extend(all.iter().map(|(shape, stride)| format!("({}):({})", shape.join(","), stride.join(","))));
    }
    texts
}

#[test]
fn the_cases_of_swapped_halves_are_refused() {
    let layouts: [AnyLayout; 3] = [
        "S<1,0,1> o 0 o (2,2):(2,1)".parse::<Composed>().unwrap().into(),
        "F2<2>[2,3] o 0 o (2,2):(1,2)".parse::<Composed>().unwrap().into(),
        "(2,2):(^3,^1)".parse::<Layout<Xor>>().unwrap().into(),
    ];
    for layout in layouts {
        assert_eq!(layout.recast(32, 16).unwrap_err().code(), "E0115", "{layout}");
        assert_eq!(layout.recast(8, 4).unwrap_err().code(), "E0115", "{layout}");
    }
    // A flip that no offset asks for changes nothing, nor one that another map takes back.
    for (text, wide) in [
        ("S<1,0,1> o 0 o (2,3):(1,4)", "S<0,0,0> o 0 o (1,3):(0,2)"),
        ("S<1,0,1> o 0 o (2,2):(1,4)", "S<0,0,0> o 0 o (1,2):(0,2)"),
        ("S<1,0,1> o 0 o S<1,0,1> o 0 o (2,8):(1,2)", "S<0,0,0> o 0 o (1,8):(0,1)"),
        ("F2<2>[2,1] o 0 o (2,2):(2,1)", "S<0,0,0> o 0 o (1,2):(0,1)"),
    ] {
        assert_eq!(text.parse::<Composed>().unwrap().recast(2, 1).unwrap().to_string(), wide, "{text}");
    }
}

/// Swizzles over all small layouts: exact, or there is nothing.
#[test]
fn swizzled_layouts_recast_by_the_definition() {
    let inner = flats(2, &["1", "2", "3", "4"], &["0", "1", "2", "3", "4", "8"]);
    let (mut exist, mut total) = (0, 0);
    for swizzle in ["S<0,0,0>", "S<1,0,1>", "S<1,0,2>", "S<1,1,1>", "S<2,0,2>", "S<1,1,2>", "S<1,0,-1>", "S<1,1,-1>"] {
        for offset in [0, 1, 2, 4] {
            for inner in &inner {
                let composed: Composed = format!("{swizzle} o {offset} o {inner}").parse().unwrap();
                for n in [2, 4] {
                    exist += i32::from(compare(&composed.clone().into(), n));
                    total += 1;
                }
            }
        }
    }
    assert!(exist > 1_000 && total > 30_000, "{exist} {total}");
}

/// XOR strides over all small shapes.
#[test]
fn xor_layouts_recast_by_the_definition() {
    let steps = ["^0", "^1", "^2", "^3", "^4", "^5", "^6", "^8", "^12"];
    let mut exist = 0;
    let mut texts = flats(2, &["1", "2", "3", "4", "6", "8"], &steps);
    texts.extend(flats(3, &["2", "3", "4"], &["^1", "^2", "^3", "^4", "^8", "^9"]));
    for text in texts {
        let layout: Layout<Xor> = text.parse().unwrap();
        for n in [2, 4, 8] {
            exist += i32::from(compare(&layout.clone().into(), n));
        }
    }
    assert!(exist > 500, "{exist}");
}

/// Chains of swizzles, matrices and layouts.
#[test]
fn chains_recast_by_the_definition() {
    const OUTERS: [&str; 9] = [
        "S<1,0,1>",
        "S<2,0,2>",
        "S<1,1,-1>",
        "F2<3>[1,3,4]",
        "F2<3>[2,1,4]",
        "F2<4>[1,2,5,10]",
        "(2,2,64):(2,1,4)",
        "(4,64):(16,1)",
        "64:1",
    ];
    let mut random = Random(41);
    let mut pick = |bound: usize| random.below(bound as i64) as usize;
    let mut exist = 0;
    for _ in 0..20_000 {
        let map = |at: usize| OUTERS[at].parse::<OuterMap>().unwrap();
        let outer = map(pick(9)).after(&[0, 0, 2, 4][pick(4)], &map(pick(9))).unwrap();
        let rank = pick(3) + 1;
        let shape: Vec<i64> = (0..rank).map(|_| [1, 2, 2, 4, 4, 3, 6][pick(7)]).collect();
        let stride: Vec<i64> = (0..rank).map(|_| [0, 1, 1, 2, 2, 4, 8, 3, 6][pick(9)]).collect();
        let inner = Layout::new(&Tree::flat(shape).unwrap(), &Tree::flat(stride).unwrap()).unwrap();
        let composed = Composed::new(outer, [0, 0, 0, 1, 4][pick(5)], inner).unwrap();
        for n in [2, 4] {
            exist += i32::from(compare(&composed.clone().into(), n));
        }
    }
    assert!(exist > 1_000, "{exist}");
}
