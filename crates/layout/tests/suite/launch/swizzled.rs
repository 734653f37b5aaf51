//! Swizzled layouts of numbers known at launch: what is answered holds for every value, against the
//! values themselves.

use tilewright_layout::symbolic::{Expr, Symbolic, Values};
use tilewright_layout::{AnyLayout, Composed};

fn values(map: &Composed) -> Vec<i64> {
    (0..map.size()).map(|index| map.eval(&index).unwrap()).collect()
}

#[test]
fn answers_hold_for_every_value() {
    const OUTERS: [&str; 5] = ["S<2,0,2>", "S<1,0,-1>", "S<1,1,2>", "F2<3>[1,3,4]", "S<0,0,0>"];
    const INNERS: [&str; 7] = [
        "(M{div=4},4):(4,1)",
        "(M{div=4},K{div=2}):(K{div=2},1)",
        "(4,M{div=4}):(1,8)",
        "(M{div=4},8):(0,1)",
        "(2,M{div=4},2):(1,2,0)",
        "(M{div=4},16):(16,1)",
        "(2,M{div=4},K{div=2}):(1,2*K{div=2},2)",
    ];
    let mut answers = [0; 7];
    for (outer, inner) in OUTERS.into_iter().flat_map(|outer| INNERS.map(|inner| (outer, inner))) {
        for offset in [0, 4, 3] {
            let text = format!("{outer} o {offset} o {inner}");
            let launch: Composed<Expr> = text.parse().unwrap();
            // Asked as a layout of any kind, it says the same, unless it is a layout then.
            let any = AnyLayout::from(launch.clone());
            if any.is_composed() {
                assert_eq!(any.is_injective(), launch.is_injective(), "{text}");
                assert_eq!(any.is_surjective(), launch.is_surjective(), "{text}");
                let bijective = launch.is_bijective();
                assert_eq!([any.is_bijective(), any.is_compact()], [bijective.clone(), bijective], "{text}");
                assert_eq!(any.recast(8, 16), launch.recast(8, 16).map(AnyLayout::from), "{text}");
            }
            for (m, k) in [(4, 2), (8, 2), (4, 6), (12, 4), (8, 8)] {
                let mut numbers = Values::new();
                numbers.set_named("M", m);
                numbers.set_named("K", k);
                let known = launch.numbers(&numbers).unwrap();
                let list = values(&known);
                let mut image = list.clone();
                image.sort_unstable();
                image.dedup();
                let end = image.last().unwrap() + 1;
                let whole = image.iter().copied().eq(0..end);
                let mut check = |number: usize, right: Option<bool>| {
                    assert!(right != Some(false), "{text} at M={m}, K={k}: question {number}");
                    answers[number] += i32::from(right.is_some());
                };
                let one_to_one = image.len() == list.len();
                check(0, launch.is_injective().ok().map(|answer| answer == one_to_one));
                check(1, launch.is_surjective().ok().map(|answer| answer == whole));
                check(2, launch.is_bijective().ok().map(|answer| answer == (whole && one_to_one)));
                check(3, launch.cosize().ok().map(|cosize| cosize.numbers(&numbers).unwrap() == end));
                let back = |map: Composed<Expr>| {
                    let map = map.numbers(&numbers).unwrap();
                    list.iter().all(|value| {
                        let index = map.eval(value).unwrap();
                        usize::try_from(index).is_ok_and(|index| list.get(index) == Some(value)) && *value < map.size()
                    })
                };
                check(4, launch.left_inverse().ok().map(back));
                let right = |map: Composed<Expr>| {
                    let found = values(&map.numbers(&numbers).unwrap());
                    found.len() as i64 == end
                        && found.iter().zip(0..).all(|(index, value)| list.get(*index as usize) == Some(&value))
                };
                check(5, launch.right_inverse().ok().map(right));
                // Twice as wide: the two parts of each element, in some order.
                let wide = |map: Composed<Expr>| {
                    let wide = values(&map.numbers(&numbers).unwrap());
                    let mut parts: Vec<i64> = wide.iter().flat_map(|value| [2 * value, 2 * value + 1]).collect();
                    let mut all = list.clone();
                    parts.sort_unstable();
                    all.sort_unstable();
                    parts == all
                };
                check(6, launch.recast(32, 16).ok().map(wide));
            }
        }
    }
    assert!(answers.iter().all(|count| *count >= 20), "{answers:?}");
}
