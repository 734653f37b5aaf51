//! Swizzles and bit maps as an algebra: products of any two, recasting, XOR maps of fields that
//! overlap. Checked at every offset of a block.

use tilewright_layout::{BitXor, LayoutError, OuterMap, Swizzle};

/// All swizzles on the lowest bits.
fn swizzles(bits: i64, base: i64, shift: i64) -> Vec<Swizzle> {
    let all = (0..=bits).flat_map(|b| (0..=base).flat_map(move |m| (-shift..=shift).map(move |s| (b, m, s))));
    all.filter_map(|(b, m, s)| Swizzle::new(b, m, s).ok()).collect()
}

#[test]
fn every_two_compose() {
    let all = swizzles(3, 2, 4);
    let (mut joined, mut matrices) = (0, 0);
    for a in &all {
        for b in &all {
            let both = a.after(*b);
            let size = 1 << both.inputs();
            let same = |map: &dyn Fn(i64) -> i64| (0..size).all(|x| map(x) == a.apply(b.apply(x)));
            assert!(same(&|x| both.apply(x as u64) as i64), "{a} after {b}");
            // Above the bits that it moves about a product keeps everything, below zero too.
            let map = OuterMap::<i64>::from(*a).after(&0, &OuterMap::from(*b)).unwrap();
            for x in (-40..3 * size).chain([i64::MIN, i64::MAX]) {
                assert_eq!(map.eval(&x), Ok(a.apply(b.apply(x))), "{a} after {b} at {x}");
            }
            match both.swizzle() {
                Some(swizzle) => {
                    joined += 1;
                    assert!(same(&|x| swizzle.apply(x)), "{a} after {b} is not {swizzle}");
                    assert!(matches!(map, OuterMap::Swizzle(_)));
                }
                None => {
                    matrices += 1;
                    // No other swizzle does the same either.
                    assert!(!swizzles(4, 4, 6).iter().any(|s| same(&|x| s.apply(x))), "{a} after {b}");
                }
            }
        }
    }
    assert!(joined > 500 && matrices > 1_000, "{joined} {matrices}");
}

#[test]
fn recasts_exactly_or_not_at_all() {
    let (mut exact, mut refused) = (0, 0);
    for s in swizzles(3, 4, 5) {
        let layout = s.layout().unwrap();
        let size = layout.size();
        assert_eq!(
            size,
            1 << if s.is_identity() { s.base() + s.shift().abs() } else { s.bits() + s.base() + s.shift().abs() }
        );
        // A permutation of the whole extent.
        let mut seen: Vec<i64> = (0..size).map(|i| layout.eval(&i).unwrap()).collect();
        assert!((0..size).all(|i| seen[i as usize] == s.apply(i)));
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..size));
        for log in 0..=5 {
            let n = 1 << log;
            let narrow = s.downcast(n).unwrap();
            assert!((0..2 * size).all(|x| (0..n).all(|j| narrow.apply(n * x + j) == n * s.apply(x) + j)), "{s} by {n}");
            assert_eq!(s.recast(1, n).unwrap(), narrow);
            let blocks = (0..2 * size / n).all(|x| (1..n).all(|j| s.apply(n * x + j) / n == s.apply(n * x) / n));
            match s.upcast(n) {
                Ok(wide) => {
                    exact += 1;
                    assert!(blocks && (0..2 * size).all(|x| wide.apply(x / n) == s.apply(x) / n), "{s} by {n}");
                    let keeps = (0..2 * size).all(|x| s.apply(x) % n == x % n);
                    assert_eq!(s.recast(n, 1).ok(), keeps.then_some(wide), "{s} by {n}");
                }
                Err(error) => {
                    refused += 1;
                    assert!(!blocks, "{s} by {n}: {error}");
                }
            }
            assert_eq!(narrow.upcast(n).map(|back| back.is_identity() || back == s), Ok(true));
        }
        for n in [0, -1, i64::MIN, 3, 6] {
            assert_eq!(s.upcast(n).is_ok(), n > 0 && s.is_identity());
            assert_eq!(s.downcast(n).is_ok(), n > 0 && s.is_identity());
        }
    }
    assert!(exact > 300 && refused > 100, "{exact} {refused}");
    assert!(Swizzle::new(3, 57, 3).unwrap().downcast(2).is_err());
    assert!(matches!(Swizzle::new(3, 57, 3).unwrap().layout(), Err(LayoutError::Overflow { .. })));
}

#[test]
fn bit_xor_flips_a_field_by_another() {
    let page = BitXor::new(3, 4, 3).unwrap();
    assert_eq!((page.apply(0x18), page.apply(0x28)), (0x28, 0x78));
    let (mut undone, mut own, mut cleared) = (0, 0, 0);
    for bits in 0..=4 {
        for into in 0..=5 {
            for from in 0..=5 {
                let map = BitXor::new(bits, into, from).unwrap();
                assert_eq!(map.to_string().parse(), Ok(map));
                for x in -600..1200_i64 {
                    let flips = (0..bits).filter(|k| x >> (from + k) & 1 == 1).fold(0, |sum, k| sum | 1 << (into + k));
                    assert_eq!(map.apply(x), x ^ flips, "{map} at {x}");
                    assert_eq!(OuterMap::from(map).eval(&x), Ok(x ^ flips));
                }
                match map.inverse() {
                    Ok(inverse) => {
                        let back = OuterMap::<i64>::from(inverse);
                        undone += 1;
                        assert!((0..600).all(|x| back.eval(&map.apply(x)) == Ok(x)), "{map}");
                    }
                    Err(LayoutError::Collapse { difference, .. }) => {
                        cleared += 1;
                        assert!(bits > 0 && into == from && map.apply(0) == map.apply(difference as i64), "{map}");
                    }
                    other => panic!("{map}: {other:?}"),
                }
                match map.swizzle() {
                    Some(swizzle) => {
                        own += 1;
                        assert!((-600..600).all(|x| swizzle.apply(x) == map.apply(x)));
                        assert!(bits == 0 || BitXor::from(swizzle) == map);
                    }
                    None => assert!((0..600).any(|x| map.apply(map.apply(x)) != x), "{map}"),
                }
            }
        }
    }
    assert!(undone > 140 && own > 80 && cleared == 4 * 6, "{undone} {own} {cleared}");
    assert!(BitXor::new(63, 0, 0).is_ok() && BitXor::new(1, 62, 0).is_ok());
    assert!(BitXor::new(1, 63, 0).is_err() && BitXor::new(1, 0, i64::MAX).is_err() && BitXor::new(-1, 0, 0).is_err());
    assert_eq!(BitXor::new(63, 0, 0).unwrap().apply(-1), i64::MIN);
    for text in ["", "bit_xor", "bit_xor(1,2)", "bit_xor(1,2,(3))", "bit_xor 1", "xor(1,2,3)"] {
        assert!(matches!(text.parse::<BitXor>(), Err(LayoutError::Syntax { .. })), "{text}");
    }
}
