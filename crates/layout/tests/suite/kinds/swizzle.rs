//! Swizzles against a definition bit by bit.

use tilewright_layout::{LayoutError, Swizzle};

/// Bit `i` of the image is bit `i` of the offset, flipped, where bit `i` is one of those flipped,
/// by the bit read for it.
fn defined(bits: i64, base: i64, shift: i64, x: i64) -> i64 {
    let bit = |i: i64| x >> i & 1;
    (0..63).fold(if x < 0 { i64::MIN } else { 0 }, |image, i| {
        let first = if shift >= 0 { base } else { base - shift };
        let flip = (first..first + bits).contains(&i) && bit(i + shift) == 1;
        image | (bit(i) ^ i64::from(flip)) << i
    })
}

#[test]
fn flips_the_bits_of_the_definition_and_undoes_itself() {
    let mut moved = 0;
    for bits in 0..=4 {
        for base in 0..=3 {
            for shift in (-5_i64..=5).filter(|shift| shift.abs() >= bits) {
                let swizzle = Swizzle::new(bits, base, shift).unwrap();
                assert_eq!((swizzle.bits(), swizzle.base(), swizzle.shift()), (bits, base, shift));
                assert_eq!(swizzle.is_identity(), bits == 0);
                let block = 1 << (bits + base + shift.abs());
                for x in (0..1 << 13).chain(-300..0).chain([i64::MAX, i64::MIN]) {
                    let image = swizzle.apply(x);
                    assert_eq!(image, defined(bits, base, shift, x), "{swizzle} at {x}");
                    assert_eq!(swizzle.apply(image), x, "{swizzle} at {x}");
                    assert_eq!(image.div_euclid(block), x.div_euclid(block), "{swizzle} leaves its block at {x}");
                    moved += u64::from(image != x);
                }
            }
        }
    }
    assert!(moved > 100_000);
}

#[test]
fn stays_within_63_bits() {
    let top = Swizzle::new(3, 57, 3).unwrap();
    assert_eq!(top.apply(1 << 62), 1 << 62 | 1 << 59);
    let lower = Swizzle::new(3, 57, -3).unwrap();
    assert_eq!(lower.apply(1 << 59), 1 << 62 | 1 << 59);
    let value = |bits, base, shift| match Swizzle::new(bits, base, shift) {
        Err(LayoutError::Argument { value, .. }) => value,
        other => panic!("{other:?}"),
    };
    assert_eq!(value(3, 58, 3), 64);
    assert_eq!(value(3, 58, -3), 64);
    assert_eq!(value(3, 4, 2), 2);
    assert_eq!(value(3, 4, -2), -2);
    assert_eq!(value(-1, 0, 0), -1);
    assert_eq!(value(0, -1, 0), -1);
    assert_eq!(value(0, 0, i64::MIN), i64::MIN);
    assert_eq!(value(0, i64::MAX, i64::MAX), i64::MAX);
    assert_eq!(value(i64::MAX, 0, i64::MAX), i64::MAX);
}

#[test]
fn prints_and_reads_back() {
    for (bits, base, shift) in [(3, 4, 3), (2, 0, -3), (0, 4, 3), (3, 4, 12)] {
        let swizzle = Swizzle::new(bits, base, shift).unwrap();
        assert_eq!(swizzle.to_string().parse(), Ok(swizzle));
        assert_eq!(format!("Sw< {bits}, {base} ,{shift}>").parse(), Ok(swizzle));
        assert_eq!(format!("SW_{bits}_{base}_{shift}").parse(), Ok(swizzle));
    }
    for text in [
        "",
        "S",
        "S<>",
        "S<1,2>",
        "S<1,2,3,4>",
        "S<1,2,3",
        "S<1,2,(3)>",
        "S<1,,3>",
        "SW_1_2",
        "SW_1_2_3_4_5",
        "s<1,2,3>",
    ] {
        assert!(matches!(text.parse::<Swizzle>(), Err(LayoutError::Syntax { .. })), "{text}");
    }
    assert!(matches!("S<3,4,2>".parse::<Swizzle>(), Err(LayoutError::Argument { .. })));
}
