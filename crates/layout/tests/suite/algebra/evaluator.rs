//! Law: `layout.evaluator().eval(i) == layout.eval(&i)` for every index, and `eval` is the inner
//! product of digits and strides: exact where it is representable and no partial sum leaves 64
//! bits, refused otherwise.

use tilewright_layout::{Layout, Leaf, Tree};

fn layout(leaves: &[(i64, i64)]) -> Layout {
    Layout::from_tree(
        Tree::flat(leaves.iter().map(|(extent, stride)| Leaf { extent: *extent, stride: *stride })).unwrap(),
    )
    .unwrap()
}

/// The definition, in 128 bits.
fn value(leaves: &[(i64, i64)], index: i64) -> Option<i64> {
    let Some(((_, last), front)) = leaves.split_last() else { return (index == 0).then_some(0) };
    let (mut rest, mut value) = (i128::from(index), 0_i128);
    let mut add = |digit: i128, stride: i64| {
        let part = i64::try_from(digit * i128::from(stride)).ok()?;
        value = i64::try_from(value + i128::from(part)).ok()?.into();
        Some(value as i64)
    };
    for (extent, stride) in front {
        add(rest % i128::from(*extent), *stride)?;
        rest /= i128::from(*extent);
    }
    add(rest, *last)
}

fn check(leaves: &[(i64, i64)], indices: impl IntoIterator<Item = i64>) {
    let layout = layout(leaves);
    let evaluator = layout.evaluator();
    for index in indices {
        let expected = value(leaves, index);
        assert_eq!(layout.eval(&index).ok(), expected, "{layout} at {index}");
        assert_eq!(evaluator.eval(index), layout.eval(&index), "{layout} at {index}");
    }
}

#[test]
fn every_small_layout() {
    let leaves: Vec<(i64, i64)> = (1..=5).flat_map(|extent| (-2..=6).map(move |stride| (extent, stride))).collect();
    check(&[], -3..=3);
    for a in &leaves {
        check(&[*a], -20..=20);
        for b in &leaves {
            let size = a.0 * b.0;
            check(&[*a, *b], -2 * size - 3..=3 * size + 3);
            for c in &leaves {
                check(&[*a, *b, *c], -size..=2 * size * c.0);
            }
        }
    }
}

#[test]
fn random_layouts_at_extreme_indices() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut exact, mut refused) = (0, 0);
    for _ in 0..100_000 {
        // Extents and strides of all magnitudes; the size stays below 2^63.
        let (mut size, mut leaves) = (1_i64, Vec::new());
        for _ in 0..random() % 10 {
            let magnitude = |bits: u64, noise: u64| (noise >> (63 - bits)) as i64;
            let extent = match random() % 4 {
                0 => 1,
                1 => 1 << (random() % 12),
                2 => 1 + magnitude(random() % 40, random()),
                _ => 1 + magnitude(random() % 8, random()),
            };
            let Some(product) = size.checked_mul(extent) else { break };
            size = product;
            let stride = match random() % 6 {
                0 => 0,
                1 => size,
                2 => magnitude(62, random()).wrapping_neg(),
                3 => [i64::MIN, i64::MAX, 1 << 62, -(1 << 62)][(random() % 4) as usize],
                4 => -magnitude(random() % 40, random()),
                _ => magnitude(random() % 40, random()),
            };
            leaves.push((extent, stride));
        }
        let mut indices =
            vec![0, 1, -1, i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, 1 << 62, -(1 << 62), (1 << 62) - 1];
        // Multiples of the periods, and the places beside them, up to the end and past it.
        let mut period = 1_i64;
        for (extent, _) in &leaves {
            for base in [period, period.wrapping_mul((random() >> 40) as i64), i64::MAX / period * period] {
                indices.extend([base, base.wrapping_sub(1), base.wrapping_add(1)]);
            }
            period *= extent;
        }
        indices.extend((0..30).map(|_| (random() >> (random() % 64)) as i64));
        indices.extend((0..30).map(|_| (random() % size as u64) as i64));
        for index in &indices {
            if value(&leaves, *index).is_some() { exact += 1 } else { refused += 1 }
        }
        check(&leaves, indices);
    }
    assert!(exact > 100_000 && refused > 100_000, "{exact} exact, {refused} refused");
}

#[test]
fn around_the_bound_of_the_reach() {
    // The front reaches 2^62 and a little less or more, and the last leaf goes on from there in
    // both directions.
    for extent in [2, 3, 5, 7, 1000, 1 << 20, (1 << 31) - 1, 1 << 31] {
        for towards in [-1, 0, 1] {
            let stride = (1_i64 << 62) / (extent - 1) + towards;
            for last in [0, 1, -1, stride, -stride, 1 << 62, -(1 << 62), i64::MAX, i64::MIN] {
                let ends = [0, 1, 2, 3, 4].map(|steps: i64| steps * extent);
                let near = ends.iter().flat_map(|end| end - 2..=end + 2);
                check(&[(extent, stride), (3, last)], near.clone());
                check(&[(extent, -stride), (3, last)], near);
            }
        }
    }
}
