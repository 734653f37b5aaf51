//! Composed layouts: the law `R(c) = A(offset + B(c))` through every operation that keeps the outer
//! map.

use tilewright_layout::{Composed, Coord, Coordinate, Layout, LayoutError, OuterMap, Swizzle, Tiler, Tree};

use crate::kinds::composed_values::{composed, values};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

/// Outer maps and offsets.
fn outers() -> Vec<String> {
    let maps = ["S<3,4,3>", "S<2,0,3>", "S<2,1,-2>", "S<0,0,0>", "(2,3):(3,1)", "(4,2,3):(-2,1,-7)", "():()"];
    let all = maps.iter().flat_map(|map| [0, 2, -5, 37].map(|offset| format!("{map} o {offset}")));
    // The empty layout has a value only at 0.
    all.filter(|outer| !outer.starts_with("()")).collect()
}

const INNERS: [&str; 8] = [
    "(8,6):(6,1)",
    "(4,(2,6)):(12,(1,2))",
    "(6,8):(1,6)",
    "((2,4),(3,2)):((24,1),(8,4))",
    "(4,6):(-6,1)",
    "(8,6):(0,1)",
    "48:1",
    "(5,7):(16,-3)",
];

fn all() -> impl Iterator<Item = Composed> {
    outers().into_iter().flat_map(|outer| INNERS.map(|inner| composed(&format!("{outer} o {inner}"))))
}

fn swizzled(swizzle: Swizzle, x: i64) -> i64 {
    let read = if swizzle.shift() >= 0 { x >> swizzle.shift() } else { x << -swizzle.shift() };
    let first = if swizzle.shift() >= 0 { swizzle.base() } else { swizzle.base() - swizzle.shift() };
    x ^ read & (((1 << swizzle.bits()) - 1) << first)
}

/// The value by the law.
fn value(r: &Composed, inner: i64) -> i64 {
    match r.outer() {
        OuterMap::Layout(a) => a.eval(&(r.offset() + inner)).unwrap(),
        OuterMap::Swizzle(swizzle) => swizzled(*swizzle, r.offset() + inner),
        other => panic!("{other}"),
    }
}

fn sorted(mut values: Vec<i64>) -> Vec<i64> {
    values.sort_unstable();
    values
}

#[test]
fn evaluates_by_the_law() {
    for r in all() {
        for i in 0..r.size() {
            assert_eq!(r.eval(&i).unwrap(), value(&r, r.inner().eval(&i).unwrap()), "{r} at {i}");
        }
        for (i, coord) in tilewright_layout::coordinates(&r.shape()).unwrap().enumerate() {
            assert_eq!(r.eval_at(&coord), r.eval(&(i as i64)), "{r} at {coord}");
        }
        assert_eq!((r.size(), r.rank(), r.depth()), (r.inner().size(), r.inner().rank(), r.inner().depth()));
        assert_eq!(composed(&r.to_string()), r);
    }
}

#[test]
fn what_keeps_the_domain_keeps_the_function() {
    for r in all() {
        let expected = values(&r);
        assert_eq!(values(&r.coalesce().unwrap()), expected, "{r}");
        assert_eq!(values(&r.coalesce_by(Tree::flat([1; 1]).unwrap().profile()).unwrap()), expected, "{r}");
        assert_eq!(values(&r.flatten().unwrap()), expected, "{r}");
        assert_eq!(values(&r.group(0..r.rank()).unwrap()), expected, "{r}");
        assert_eq!(values(&r.take(0..r.rank()).unwrap()), expected, "{r}");
        assert_eq!(values(&r.append(&layout("1:0")).unwrap()), expected, "{r}");
        assert_eq!(r.flatten().unwrap().depth().max(1), 1);
    }
}

#[test]
fn parts_are_the_whole_at_fixed_coordinates() {
    for r in all().filter(|r| r.rank() == 2) {
        let (rows, columns) = (r.inner().mode(0).unwrap().size(), r.inner().mode(1).unwrap().size());
        let at = |i: i64, j: i64| r.eval(&(i + rows * j)).unwrap();
        let column: Vec<i64> = (0..rows).map(|i| at(i, 0)).collect();
        let row: Vec<i64> = (0..columns).map(|j| at(0, j)).collect();
        assert_eq!(values(&r.mode(0).unwrap()), column, "{r}");
        assert_eq!(values(&r.mode(1).unwrap()), row, "{r}");
        assert_eq!(values(&r.take(1..2).unwrap()), row, "{r}");
        let turned = r.select(&[1, 0]).unwrap();
        assert_eq!(
            values(&turned),
            (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect::<Vec<_>>()
        );
        for i in 0..rows {
            let slice = r.slice(&format!("({i},_)").parse::<Coord>().unwrap()).unwrap();
            assert_eq!(values(&slice), (0..columns).map(|j| at(i, j)).collect::<Vec<_>>(), "{r} row {i}");
            for j in 0..columns {
                // From (i,j) on, within the whole.
                let moved = r.domain_offset(&format!("({i},{j})").parse().unwrap()).unwrap();
                assert_eq!(moved.eval(&0).unwrap(), at(i, j), "{r} at ({i},{j})");
                assert_eq!(slice.eval(&j).unwrap(), at(i, j));
                if r.depth() == 1 && i + 1 < rows && j + 1 < columns {
                    assert_eq!(moved.eval(&(1 + rows)).unwrap(), at(i + 1, j + 1), "{r} from ({i},{j})");
                }
            }
        }
    }
}

#[test]
fn composes_on_the_right() {
    let mut chained = 0;
    for r in all() {
        for b in ["4:2", "(2,3):(3,1)", "(3,2):(8,24)", "6:8", "(2,2):(24,1)"].map(layout) {
            let expected: Vec<i64> =
                (0..b.size()).map(|i| value(&r, r.inner().eval(&b.eval(&i).unwrap()).unwrap())).collect();
            let composite = r.compose(&b).unwrap();
            assert_eq!(values(&composite), expected, "{r} o {b}");
            assert_eq!(composed(&composite.to_string()), composite);
            chained += usize::from(matches!(composite.outer(), OuterMap::Chain(_)));
        }
        if r.rank() == 2 {
            let tiler: Tiler = "[2:1;_]".parse().unwrap();
            let tile = r.compose_tiler(&tiler).unwrap();
            assert_eq!(values(&tile.mode(1).unwrap()), values(&r.mode(1).unwrap()));
            assert_eq!(values(&tile.mode(0).unwrap()), values(&r.mode(0).unwrap())[..2]);
        }
    }
    assert!(chained > 100, "{chained}");
}

#[test]
fn divides_reorder_and_products_repeat() {
    let tiler: Tiler = "[2:1;3:1]".parse().unwrap();
    let divisible = |r: &Composed| r.inner().modes().zip([2, 3]).all(|(mode, tile)| mode.size() % tile == 0);
    for r in all().filter(|r| r.rank() == 2 && divisible(r)) {
        let whole = sorted(values(&r));
        for divided in
            [r.logical_divide(&tiler), r.zipped_divide(&tiler), r.tiled_divide(&tiler), r.flat_divide(&tiler)]
        {
            assert_eq!(sorted(values(&divided.unwrap())), whole, "{r}");
        }
        let zipped = r.zipped_divide(&tiler).unwrap();
        assert_eq!(values(&zipped.mode(0).unwrap()), values(&r.compose_tiler(&tiler).unwrap()), "{r}: the first tile");
    }
    let copies: Tiler = "(2,3):(1,2)".parse().unwrap();
    for r in all().filter(|r| r.rank() == 2) {
        let Ok(product) = r.logical_product(&copies) else {
            assert!(r.inner().logical_product(&copies).is_err());
            continue;
        };
        assert_eq!(values(&product.mode(0).unwrap()), values(&r), "{r}");
        let all = sorted(values(&product));
        for form in [r.zipped_product(&copies), r.tiled_product(&copies), r.flat_product(&copies)] {
            assert_eq!(sorted(values(&form.unwrap())), all);
        }
        let two = layout("(2,3):(1,2)");
        assert_eq!(sorted(values(&r.blocked_product(&two).unwrap())), all);
        assert_eq!(sorted(values(&r.raked_product(&two).unwrap())), all);
    }
}

#[test]
fn known_results() {
    let tiler = |text: &str| text.parse::<Tiler>().unwrap();
    let by_shape = |text: &str| -> Tiler { Tiler::from_shape(&text.parse().unwrap()).unwrap() };
    let shape = |text: &str| text.parse::<Tree<i64>>().unwrap();
    let s = composed("S<3,4,3> o 0 o (5,4):(4,1)");
    let a = composed("(2,3):(3,1) o 2 o (3,4):(4,1)");
    let copies = layout("(2,5):(1,2)");
    let t = composed("S<2,1,2> o 0 o (8,32):(1,8)");
    let d = composed("S<3,4,3> o 0 o (6,8):(8,1)");
    let cases = [
        (a.blocked_product(&copies), "(2,3):(3,1) o 2 o ((3,2),(4,5)):((4,12),(1,24))"),
        (s.blocked_product(&copies), "S<3,4,3> o 0 o ((5,2),(4,5)):((4,20),(1,40))"),
        (t.flat_divide(&by_shape("(4,2)")), "S<2,1,2> o 0 o (4,2,2,16):(1,8,4,16)"),
        (d.flat_divide(&tiler("[(3):(1);(4):(1)]")), "S<3,4,3> o 0 o ((3),(4),2,2):((8),(1),24,4)"),
        (a.logical_product(&tiler("(2,5):(1,2)")), "(2,3):(3,1) o 2 o ((3,4),(2,5)):((4,1),(12,24))"),
        (s.logical_product(&tiler("(2,5):(1,2)")), "S<3,4,3> o 0 o ((5,4),(2,5)):((4,1),(20,40))"),
        (a.raked_product(&copies), "(2,3):(3,1) o 2 o ((2,3),(5,4)):((12,4),(24,1))"),
        (s.raked_product(&copies), "S<3,4,3> o 0 o ((2,5),(5,4)):((20,4),(40,1))"),
        (t.tiled_divide(&by_shape("(4,2)")), "S<2,1,2> o 0 o ((4,2),2,16):((1,8),4,16)"),
        (d.zipped_divide(&by_shape("(3,4)")), "S<3,4,3> o 0 o ((3,4),(2,2)):((8,1),(24,4))"),
        (s.zipped_product(&tiler("(2,5):(1,2)")), "S<3,4,3> o 0 o ((5,4),(2,5)):((4,1),(20,40))"),
        (
            composed("S<3,4,3> o 0 o (3,2):(1,3)").tile_to_shape(&shape("(6,8)"), Some(&shape("(1,0)"))),
            "S<3,4,3> o 0 o ((3,2),(2,4)):((1,24),(3,6))",
        ),
    ];
    for (result, expected) in cases {
        assert_eq!(result.unwrap().to_string(), expected);
    }
    assert_eq!(composed("S<1,4,3> o 0 o (1024):(1)").eval_at(&shape("(129)")), Ok(145));
    assert_eq!(composed("S<1,4,3> o 0 o (32):(32)").eval_at(&shape("(6)")), Ok(208));
    assert_eq!(composed("S<3,4,3> o 0 o 1024:1").eval(&0x40), Ok(64));
    assert_eq!(composed("S<3,4,3> o 0 o 1024:1").eval(&0x80), Ok(144));
}

#[test]
fn cosize_is_the_largest_value_plus_one() {
    let mut count = 0;
    let swizzles =
        (0..=3).flat_map(|bits| (0..=3).flat_map(move |base| (-4_i64..=4).map(move |shift| (bits, base, shift))));
    let mut outers: Vec<OuterMap> =
        swizzles.filter_map(|(b, m, s)| Swizzle::new(b, m, s).ok()).map(OuterMap::from).collect();
    outers.extend(
        ["(2,3):(3,1)", "(4,2,3):(-2,1,-7)", "(3,3):(5,0)", "7:-2", "(2,2,2):(1,-1,3)"].map(|a| layout(a).into()),
    );
    let inners =
        INNERS.iter().copied().chain(["9:1", "(7,3):(5,17)", "(3,5,2):(11,-13,64)", "1:0", "():()", "(33,2):(1,31)"]);
    for inner in inners.map(layout) {
        for outer in &outers {
            for offset in [0, 1, 13, -7, -64] {
                let r = Composed::new(outer.clone(), offset, inner.clone()).unwrap();
                let largest = values(&r).into_iter().max().unwrap();
                assert_eq!(r.cosize(), Ok(largest + 1), "{r}");
                count += 1;
            }
        }
    }
    assert!(count > 5_000, "{count}");
}

/// A swizzle of numbers of both signs may give any number, and a swizzle of more than any is not
/// bounded at all.
#[test]
fn cosize_of_chains_across_zero() {
    for outer in [
        "2:-1 o 0 o S<1,0,1> o 5 o S<1,0,1>",
        "(2,3):(-1,4) o -9 o S<2,1,2> o 3 o S<1,0,-1>",
        "S<1,0,1> o 5 o S<1,1,1>",
    ] {
        for (offset, inner) in [(-1, "3:1"), (-5, "(3,5):(5,1)"), (2, "(4,2):(-1,-9)")] {
            let r = composed(&format!("{outer} o {offset} o {inner}"));
            assert_eq!(r.cosize(), Ok(values(&r).into_iter().max().unwrap() + 1), "{r}");
        }
    }
}

#[test]
fn cosize_of_large_domains_and_its_limits() {
    let cosize = |text: &str| composed(text).cosize();
    assert_eq!(cosize("S<3,4,3> o 0 o 1099511627776:1"), Ok(1 << 40));
    assert_eq!(cosize("S<3,4,3> o 0 o (1048576,1048576):(1048576,1)"), Ok(1 << 40));
    assert_eq!(cosize("(1048576,1048576):(1048576,1) o 0 o (1048576,1048576):(1048576,1)"), Ok(1 << 40));
    // The multiples of 8 in a block of 1024 change places among themselves.
    assert_eq!(cosize("S<3,4,3> o 0 o 134217728:8"), Ok(134217728 * 8 - 8 + 1));
    assert_eq!(cosize("S<3,57,3> o 0 o 2:4611686018427387904"), Ok((1 << 62) + (1 << 59) + 1));
    assert_eq!(cosize("S<0,0,0> o 0 o 2:9223372036854775807"), Err(LayoutError::Overflow { op: "cosize" }));
    assert_eq!(cosize("S<0,0,0> o 0 o 2:-9223372036854775808"), Ok(1));
    assert!(cosize("2:9223372036854775807 o 1 o 2:9223372036854775806").is_err());
}

#[test]
fn refuses_what_is_not_one() {
    for text in ["", "4:1", "S<3,4,3> o 0", "S<3,4,3> o (0) o 4:1", "S<3,4,3> o x o 4:1", "S<3,4,3> o 0 o 4:1 o 2:1"] {
        assert!(matches!(text.parse::<Composed>(), Err(LayoutError::Syntax { .. })), "{text}");
    }
    assert_eq!(composed("SW_3_4_3 ∘ 0x10 ∘ 4:1").to_string(), "S<3,4,3> o 16 o 4:1");
    let far = "S<3,4,3> o 9223372036854775807 o 2:1".parse::<Composed>();
    assert_eq!(far, Err(LayoutError::Overflow { op: "composed layout" }));
    let near = composed("S<3,4,3> o 9223372036854775806 o 2:1");
    assert!(near.logical_product(&"2:1".parse::<Tiler>().unwrap()).is_err());
    assert!(near.eval(&2).is_err());
}

/// Coordinates go to the modes of the inner layout, also past their ends, whatever the outer map
/// is.
#[test]
fn composes_with_coordinates_of_the_inner_layout() {
    let (mut exist, mut past) = (0, 0);
    for outer in ["S<0,0,0>", "S<1,0,1>", "S<2,0,2>", "(2,2):(1,1)", "(2,3):(1,0)", "4:0", "(4,2):(2,1)", "12:3"] {
        for offset in [0, 1, 6] {
            for inner in ["4:1", "(4):(1)", "(2,2):(1,2)", "(2,2):(2,1)", "(2,3):(1,4)", "((2,2),3):((1,2),4)", "6:2"] {
                let of_numbers = composed(&format!("{outer} o {offset} o {inner}"));
                let inner = layout(inner);
                for b in [
                    "(2,2):(1@0,1@1)",
                    "(2,2):(1@1,1@0)",
                    "4:1@0",
                    "3:2@0",
                    "(2,3):(1@0,2@0)",
                    "2:1@0+1@1",
                    "(3,2):(1@1,2@1)",
                ] {
                    let b: Layout<Coordinate> = b.parse().unwrap();
                    let Ok(result) = of_numbers.compose_coordinates(&b) else { continue };
                    for index in 0..b.size() {
                        let place = inner.eval_coordinate(&b.eval(&index).unwrap()).unwrap();
                        assert_eq!(
                            result.eval(&index).unwrap(),
                            value(&of_numbers, place),
                            "{of_numbers} o {b} = {result}"
                        );
                    }
                    exist += 1;
                    past += usize::from(b.to_string() == "3:2@0" || b.to_string() == "4:1@0");
                }
            }
        }
    }
    assert!(exist > 300 && past > 50, "{exist} {past}");
    // A number has no mode 1, although the outer map has.
    let number = composed("(2,2):(1,1) o 0 o 4:1");
    assert_eq!(number.compose_coordinates(&"(2,3):(1@0,1@1)".parse().unwrap()).unwrap_err().code(), "E0126");
}
