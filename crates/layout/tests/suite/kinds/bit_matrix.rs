//! Linear maps over bits against lists of their values: on all small matrices, and on random large
//! ones.

use tilewright_layout::{BitMatrix, BitSpace, BitVector, LayoutError};

use crate::random::Random;

/// Every matrix of up to three inputs and up to three outputs.
fn small() -> Vec<BitMatrix> {
    let mut all = Vec::new();
    for outputs in 0..=3_usize {
        for inputs in 0..=3_usize {
            for code in 0..1_u64 << (outputs * inputs) {
                let columns = (0..inputs).map(|i| code >> (i * outputs) & ((1 << outputs) - 1));
                all.push(BitMatrix::new(outputs, columns).unwrap());
            }
        }
    }
    all
}

/// The value by definition: the columns at the bits of `x`.
fn value(m: &BitMatrix, x: u64) -> u64 {
    (0..m.inputs()).filter(|i| x >> i & 1 == 1).fold(0, |sum, i| sum ^ m.columns()[i])
}

fn values(m: &BitMatrix) -> Vec<u64> {
    (0..1 << m.inputs()).map(|x| value(m, x)).collect()
}

fn distinct(m: &BitMatrix) -> Vec<u64> {
    let mut all = values(m);
    all.sort_unstable();
    all.dedup();
    all
}

/// The XOR of the basis vectors at the bits of `i`.
fn combination(basis: &[u64], i: u64) -> u64 {
    basis.iter().enumerate().filter(|(k, _)| i >> k & 1 == 1).fold(0, |sum, (_, vector)| sum ^ vector)
}

#[test]
fn questions_are_answered_as_lists_of_values_do() {
    let all = small();
    assert!(all.len() > 600);
    for m in &all {
        let (list, image) = (values(m), distinct(m));
        for (x, y) in list.iter().enumerate() {
            assert_eq!(m.apply(x as u64), *y, "{m} at {x}");
        }
        assert_eq!(1 << m.rank(), image.len(), "{m}");
        assert_eq!(m.is_injective(), image.len() == list.len());
        assert_eq!(m.is_surjective(), image.len() == 1 << m.outputs());
        assert_eq!(m.is_bijective(), m.is_injective() && m.is_surjective());
        let basis = m.image();
        for (i, y) in image.iter().enumerate() {
            assert_eq!(combination(&basis, i as u64), *y, "{m}: the image in order");
        }
        let kernel = m.kernel();
        let zeros: Vec<u64> = (0..1 << m.inputs()).filter(|x| value(m, *x) == 0).collect();
        assert_eq!(zeros, (0..1 << kernel.len()).map(|i| combination(&kernel, i)).collect::<Vec<u64>>(), "{m}");
        for y in 0..1 << m.outputs() {
            match m.solve(y) {
                Some(x) => assert_eq!(value(m, x), y),
                None => assert!(!image.contains(&y), "{m} at {y}"),
            }
        }
        let transposed = m.transpose();
        for (i, j) in (0..m.inputs()).flat_map(|i| (0..m.outputs()).map(move |j| (i, j))) {
            assert_eq!(m.columns()[i] >> j & 1, transposed.columns()[j] >> i & 1);
        }
        assert_eq!(m.to_string().parse(), Ok(m.clone()));
    }
}

#[test]
fn inverses_exist_exactly_when_they_can() {
    for m in small() {
        let back = m.pseudo_inverse();
        for (x, y) in values(&m).into_iter().enumerate() {
            assert_eq!(value(&m, value(&back, y)), y, "{m} at {x}");
        }
        for y in 0..1 << m.outputs() {
            assert_eq!(value(&back, value(&m, value(&back, y))), value(&back, y), "{m} at {y}");
        }
        match m.left_inverse() {
            Ok(left) => assert!(left.compose(&m).unwrap().is_identity()),
            Err(LayoutError::Collapse { difference, .. }) => {
                assert!(difference != 0 && value(&m, difference) == 0, "{m}");
            }
            other => panic!("{m}: {other:?}"),
        }
        assert_eq!(m.left_inverse().is_ok(), m.is_injective());
        match m.right_inverse() {
            Ok(right) => assert!(m.compose(&right).unwrap().is_identity()),
            Err(LayoutError::NoPreimage { value, .. }) => assert!(!distinct(&m).contains(&value)),
            other => panic!("{m}: {other:?}"),
        }
        assert_eq!(m.right_inverse().is_ok(), m.is_surjective());
        assert_eq!(m.inverse().is_ok(), m.is_bijective());
    }
}

#[test]
fn composition_sum_and_division_follow_the_values() {
    let all = small();
    let (mut composites, mut quotients) = (0, 0);
    for a in &all {
        for b in all.iter().filter(|b| b.inputs() <= 2) {
            if let Ok(composite) = a.compose(b) {
                composites += 1;
                for x in 0..1 << b.inputs() {
                    assert_eq!(value(&composite, x), value(a, value(b, x)));
                }
            } else {
                assert_ne!(a.inputs(), b.outputs());
            }
            if let Ok(sum) = a.add(b) {
                for x in 0..1 << b.inputs() {
                    assert_eq!(value(&sum, x), value(a, x) ^ value(b, x));
                }
            }
            let beside = a.beside(b).unwrap();
            for x in 0..1 << (a.inputs() + b.inputs()) {
                let (low, high) = (x & ((1 << a.inputs()) - 1), x >> a.inputs());
                assert_eq!(value(&beside, x), value(a, low) | value(b, high) << a.outputs());
            }
            if a.outputs() != b.outputs() {
                assert!(matches!(a.left_divide(b), Err(LayoutError::Size { .. })));
                continue;
            }
            let image = distinct(a);
            let exists = values(b).iter().all(|y| image.contains(y));
            match a.left_divide(b) {
                Ok(x) => {
                    quotients += 1;
                    assert_eq!(a.compose(&x).unwrap(), *b);
                }
                Err(LayoutError::NoPreimage { value, .. }) => assert!(!exists && !image.contains(&value)),
                other => panic!("{a}, {b}: {other:?}"),
            }
        }
    }
    assert!(composites > 10_000 && quotients > 5_000, "{composites} {quotients}");
}

#[test]
fn sixty_four_bits() {
    let mut random = Random(7);
    let mut word = || random.below(1 << 32) as u64 | (random.below(1 << 32) as u64) << 32;
    let mut inverses = 0;
    for _ in 0..200 {
        let m = BitMatrix::new(64, (0..64).map(|_| word())).unwrap();
        let x = word();
        assert_eq!(m.apply(x), value(&m, x));
        assert_eq!(m.rank() + m.kernel().len(), 64);
        assert!(m.kernel().iter().all(|x| value(&m, *x) == 0));
        assert_eq!(m.apply(m.solve(value(&m, x)).unwrap()), value(&m, x));
        assert_eq!(m.transpose().transpose(), m);
        assert_eq!(m.transpose().rank(), m.rank());
        if let Ok(inverse) = m.inverse() {
            inverses += 1;
            assert!(inverse.compose(&m).unwrap().is_identity() && m.compose(&inverse).unwrap().is_identity());
        } else {
            assert!(m.rank() < 64);
        }
    }
    assert!(inverses > 30, "{inverses}");
}

#[test]
fn refuses_what_is_not_one() {
    assert!(BitMatrix::new(64, [u64::MAX; 64]).is_ok());
    assert!(matches!(BitMatrix::new(65, []), Err(LayoutError::Argument { value: 65, .. })));
    assert!(matches!(BitMatrix::new(1, [0; 65]), Err(LayoutError::Argument { value: 65, .. })));
    assert!(matches!(BitMatrix::new(3, [1, 9]), Err(LayoutError::Argument { value: 3, .. })));
    assert!(BitMatrix::identity(65).is_err() && BitMatrix::zero(1, usize::MAX).is_err());
    let wide = BitMatrix::identity(40).unwrap();
    assert!(matches!(wide.beside(&wide), Err(LayoutError::Argument { value: 65, .. })));
    assert_eq!("F2< 0x2 > [ 1, 0x3 ]".parse(), BitMatrix::new(2, [1, 3]));
    assert_eq!("F2<0>[]".parse(), BitMatrix::new(0, []));
    for text in ["", "F2", "F2<2>", "F2<2>[1,]", "F2<2>[,]", "F2<>[]", "F2<-1>[]", "F2<2>[+1]", "F2<2>[0x+1]", "[1]"] {
        assert!(matches!(text.parse::<BitMatrix>(), Err(LayoutError::Syntax { .. })), "{text}");
    }
    assert!("F2<2>[4]".parse::<BitMatrix>().is_err() && "F2<65>[]".parse::<BitMatrix>().is_err());
}

/// Against every set of the given numbers.
#[test]
fn a_space_has_the_sums_of_its_numbers() {
    for numbers in [vec![], vec![0b0110, 0b0011, 0b1000, 0b0101], vec![5, 5, 0, 9], vec![1, 2, 4, 8, 15]] {
        let space = BitSpace::of(numbers.iter().copied());
        let sum = |source: u64| {
            numbers.iter().enumerate().filter(|(at, _)| source >> at & 1 == 1).fold(0, |sum, (_, number)| sum ^ number)
        };
        let all: Vec<u64> = (0..1 << numbers.len()).map(sum).collect();
        assert!((0..16).all(|value| space.contains(value) == all.contains(&value)), "{numbers:?}");
        assert!((0..16).all(|value| space.solve(value).is_none_or(|source| sum(source) == value)), "{numbers:?}");
        for (at, vector) in space.basis().iter().enumerate() {
            let alone = |(other, own): (usize, &BitVector)| other == at || own.value >> vector.value.ilog2() & 1 == 0;
            assert!(sum(vector.source) == vector.value && space.basis().iter().enumerate().all(alone), "{numbers:?}");
        }
        let least = |value: u64| all.iter().map(|sum| sum ^ value).min();
        assert!((0..16).all(|value| least(value) == Some(space.rest(value.into()).value)), "{numbers:?}");
    }
}
