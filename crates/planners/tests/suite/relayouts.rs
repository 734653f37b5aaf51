//! Relayouts of pairs of random layouts, executed by the interpreter under every schedule, and
//! compared with the definition at every index.
//!
//! `TILEWRIGHT_RELAYOUTS=2000 cargo test --release -p tilewright-planners --test suite relayouts`
//! draws more pairs than CI does.

use half::{bf16, f16};
use tilewright_kernel::Element;
use tilewright_kernel::interpret::Interpreter;
use tilewright_kernel::machine::Machine;
use tilewright_layout::{Composed, Layout, Xor};
use tilewright_planners::{Place, Planned, relayout};

use crate::h200;

/// Random numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: i64) -> i64 {
        (self.next() % n as u64) as i64
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as i64) as usize]
    }
}

/// A layout as its modes and what is in front, evaluated here and not by the library.
#[derive(Debug, Clone)]
struct Plain {
    modes: Vec<(i64, i64)>,
    base: i64,
    /// Bits, base and shift of a swizzle.
    swizzle: Option<[i64; 3]>,
}

impl Plain {
    fn offset(&self, mut index: i64) -> i64 {
        let mut at = self.base;
        for (extent, stride) in &self.modes {
            at += index % extent * stride;
            index /= extent;
        }
        match self.swizzle {
            Some([bits, base, shift]) => at ^ (at >> shift & ((1 << bits) - 1) << base),
            None => at,
        }
    }

    fn size(&self) -> i64 {
        self.modes.iter().map(|mode| mode.0).product()
    }

    fn place(&self) -> Place {
        let list = |each: fn(&(i64, i64)) -> i64| {
            self.modes.iter().map(|mode| each(mode).to_string()).collect::<Vec<_>>().join(",")
        };
        let layout = format!("({}):({})", list(|mode| mode.0), list(|mode| mode.1));
        let [bits, base, shift] = self.swizzle.unwrap_or([0, 4, 3]);
        if self.swizzle.is_none() && self.base == 0 {
            return Place::from(&layout.parse::<Layout>().unwrap());
        }
        let composed: Composed = format!("S<{bits},{base},{shift}> o {} o {layout}", self.base).parse().unwrap();
        Place::try_from(&composed).unwrap()
    }

    /// A layout of a shape whose modes follow each other in memory in a random order, with gaps
    /// here and there.
    fn any(shape: &[i64], chance: &mut Chance) -> Plain {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, chance.below(at as i64 + 1) as usize);
        }
        let mut modes: Vec<(i64, i64)> = shape.iter().map(|extent| (*extent, 0)).collect();
        let mut step = 1;
        for mode in order {
            if chance.below(12) == 0 {
                step += chance.below(5);
            }
            modes[mode].1 = step;
            step *= shape[mode];
        }
        let base = if chance.below(4) == 0 { chance.below(40) } else { 0 };
        let swizzle = (chance.below(6) == 0).then(|| chance.of(&[[3, 3, 3], [2, 4, 3], [1, 0, 2], [3, 2, 4]]));
        Plain { modes, base, swizzle }
    }
}

fn bits(bytes: &[u8], width: usize, at: usize) -> u64 {
    bytes[at * width..(at + 1) * width].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// The bits of a small whole number in a type, and back.
fn encoded(element: Element, value: i64) -> u64 {
    match element {
        Element::F16 => f16::from_f64(value as f64).to_bits().into(),
        Element::Bf16 => bf16::from_f64(value as f64).to_bits().into(),
        Element::F32 => (value as f32).to_bits().into(),
        Element::F64 => (value as f64).to_bits(),
        _ => value as u64,
    }
}

/// Runs a kernel, and compares it with what the layouts say. What no layout reaches stays as it is.
fn compared(planned: &Planned, from: &Plain, source: Element, to: &Plain, destination: Element) {
    let (read, written) = (|index| from.offset(index), |index| to.offset(index));
    compared_by(planned, from.size(), (source, &read), (destination, &written));
}

/// The same, of any two functions from this many indices to offsets.
fn compared_by(
    planned: &Planned,
    size: i64,
    (source, from): (Element, &dyn Fn(i64) -> i64),
    (destination, to): (Element, &dyn Fn(i64) -> i64),
) {
    let text = || planned.to_string();
    let mut interpreter = Interpreter::new(planned.kernel().program(), planned.sizes()).unwrap();
    let bytes = interpreter.bytes_of(0).unwrap();
    let (width, wide) = (source.bytes() as usize, destination.bytes() as usize);
    let same = source == destination;
    let given: Vec<u64> = (0..bytes / width)
        .map(|at| {
            if same {
                (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
            } else {
                encoded(source, (at as i64 * 37) % 101)
            }
        })
        .collect();
    let memory: Vec<u8> = given.iter().flat_map(|bits| bits.to_le_bytes()[..width].to_vec()).collect();
    interpreter.bytes(0, &memory).unwrap();
    let checked = interpreter.check().unwrap_or_else(|findings| panic!("{}\n{}", findings[0], text()));
    let left = checked.run.bytes(1).unwrap();
    for index in 0..size {
        let (at, place) = (from(index) as usize, to(index) as usize);
        let wanted = if same { bits(&memory, width, at) } else { encoded(destination, (at as i64 * 37) % 101) };
        assert_eq!(bits(left, wide, place), wanted, "index {index}\n{}", text());
    }
}

fn moved(from: &Plain, source: Element, to: &Plain, destination: Element) -> Planned {
    // Tiles as small arrays have them, and as large ones do.
    let multiprocessors = if from.size() % 2 == 0 { h200().multiprocessors } else { 1 };
    let machine = Machine { multiprocessors, ..h200() };
    let planned = relayout(&machine, from.place(), source, to.place(), destination)
        .unwrap_or_else(|error| panic!("{error}: {source} {from:?} to {destination} {to:?}"));
    compared(&planned, from, source, to, destination);
    planned
}

/// As [`Plain::any`], with extents that are powers of two or multiples of them, and nothing
/// between.
fn aligned(chance: &mut Chance) -> [Plain; 2] {
    let rank = 2 + chance.below(4) as usize;
    let shape: Vec<i64> = (0..rank)
        .map(|_| match rank {
            2 => chance.of(&[16, 48, 64, 96, 128, 200, 256]),
            3 => chance.of(&[2, 4, 8, 16, 20, 32, 64]),
            _ => chance.of(&[1, 2, 3, 4, 8, 12, 16]),
        })
        .collect();
    [0, 1].map(|_| {
        let mut plain = Plain::any(&shape, &mut Chance(u64::MAX - chance.next() % 1000));
        let mut order: Vec<usize> = (0..rank).collect();
        order.sort_by_key(|mode| plain.modes[*mode].1);
        let mut step = 1;
        for mode in order {
            plain.modes[mode].1 = step;
            step *= shape[mode];
        }
        Plain { base: 0, swizzle: None, ..plain }
    })
}

const SAME: [Element; 4] = [Element::U8, Element::Bf16, Element::F32, Element::F64];

/// How many pairs are drawn.
fn count(few: usize) -> usize {
    std::env::var("TILEWRIGHT_RELAYOUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(few)
}

#[test]
fn pairs_by_chance_are_right() {
    let mut chance = Chance(7);
    for _ in 0..count(60) {
        let rank = 1 + chance.below(6) as usize;
        let most = [3000, 90, 24, 10, 7, 5][rank - 1];
        let shape: Vec<i64> = (0..rank).map(|_| 1 + chance.below(most)).collect();
        let (from, to) = (Plain::any(&shape, &mut chance), Plain::any(&shape, &mut chance));
        let source = chance.of(&SAME);
        let destination = if chance.below(4) == 0 { chance.of(&SAME) } else { source };
        moved(&from, source, &to, destination);
    }
}

#[test]
fn aligned_pairs_by_chance_are_right() {
    let mut chance = Chance(3);
    for _ in 0..count(40) {
        let [from, to] = aligned(&mut chance);
        let source = chance.of(&SAME);
        let destination = if chance.below(4) == 0 { chance.of(&SAME) } else { source };
        moved(&from, source, &to, destination);
    }
}

/// Rows and columns of lengths around the sizes of tiles, words and chunks.
#[test]
fn transposes_that_are_not_aligned_are_right() {
    let mut chance = Chance(11);
    for source in SAME {
        for (m, n) in [(1, 1), (2, 3), (17, 1), (33, 47), (131, 67), (270, 131), (600, 37), (37, 600)] {
            for base in [0, 1 + chance.below(15)] {
                let from = Plain { modes: vec![(m, n), (n, 1)], base, swizzle: None };
                let to = Plain { modes: vec![(m, 1), (n, m)], base: base * 3 % 16, swizzle: None };
                let planned = moved(&from, source, &to, source);
                assert!(m * n < 100 || planned.to_string().contains("runs of"), "{planned}");
            }
        }
    }
}

/// Shapes of which neither is a refinement of the other: the index alone says where an element is.
#[test]
fn shapes_that_are_cut_elsewhere_are_right() {
    let modes = |list: &[(i64, i64)]| Plain { modes: list.to_vec(), base: 0, swizzle: None };
    let pairs = [
        (modes(&[(4, 6), (6, 1)]), modes(&[(6, 4), (4, 1)])),
        (modes(&[(9, 1), (10, 9)]), modes(&[(6, 15), (15, 1)])),
        (modes(&[(30, 7), (7, 1)]), modes(&[(14, 1), (15, 16)])),
    ];
    for (from, to) in &pairs {
        for (source, destination) in [(Element::U8, Element::U8), (Element::F32, Element::Bf16)] {
            let planned = moved(from, source, to, destination);
            assert!(planned.to_string().contains("no common refinement"), "{planned}");
        }
    }
}

/// Tiles of axes beside the runs, and runs that share axes.
#[test]
fn tiles_of_short_axes_are_right() {
    let shapes: [(&[i64], &[usize]); 5] = [
        (&[37, 5, 48], &[0, 2, 1]),
        (&[6, 3, 20, 21], &[0, 2, 3, 1]),
        (&[5, 20, 21, 3], &[0, 3, 1, 2]),
        (&[9, 5, 4, 3, 2], &[3, 0, 4, 2, 1]),
        (&[7, 2, 3, 2, 3, 2], &[5, 3, 1, 4, 2, 0]),
    ];
    for (shape, order) in shapes {
        for source in SAME {
            let (mut from, mut to) = (vec![(1, 0); shape.len()], vec![(1, 0); shape.len()]);
            let (mut a, mut b) = (1, 1);
            for axis in (0..shape.len()).rev() {
                (from[axis], to[order[axis]]) = ((shape[axis], a), (shape[order[axis]], b));
                (a, b) = (a * shape[axis], b * shape[order[axis]]);
            }
            let plain = |modes: Vec<(i64, i64)>| Plain { modes, base: 0, swizzle: None };
            moved(&plain(from), source, &plain(to), source);
        }
    }
}

/// Long runs that both sides share and that begin anywhere, of bytes and pairs of bytes.
#[test]
fn shared_runs_that_begin_anywhere_are_right() {
    let mut chance = Chance(23);
    let count = std::env::var("TILEWRIGHT_RELAYOUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(40);
    for round in 0..count {
        let element = chance.of(&[Element::U8, Element::Bf16, Element::I8, Element::F16]);
        let rank = 1 + chance.below(3) as usize;
        let most = [3000, 40, 7][rank - 1];
        let mut shape: Vec<i64> = (1..rank).map(|_| 2 + chance.below(most)).collect();
        shape.insert(0, 64 + chance.below(if rank == 1 { 3000 } else { 90 }));
        let mut sides = [0, 1].map(|_| {
            let mut plain = Plain::any(&shape[1..], &mut chance);
            plain.swizzle = None;
            let pitch = shape[0] + if chance.below(2) == 0 { 0 } else { chance.below(9) };
            plain.modes.iter_mut().for_each(|mode| mode.1 *= pitch);
            plain.modes.insert(0, (shape[0], 1));
            plain
        });
        if round % 3 == 0 {
            sides.iter_mut().for_each(|side| side.base = 0);
        }
        moved(&sides[0], element, &sides[1], element);
    }
}

/// Layouts over bits that are a swizzle, however they are written.
#[test]
fn layouts_over_bits_are_swizzles() {
    let xor: Layout<Xor> = "(8,8):(^1,^9)".parse().unwrap();
    let place = Place::try_from(&xor.composed().unwrap()).unwrap();
    for index in 0..64 {
        assert_eq!(place.offset(index).unwrap(), (index % 8) ^ (index / 8) ^ (index / 8 * 8));
    }
    let planned =
        relayout(&h200(), place, Element::U32, &"(8,8):(8,1)".parse::<Layout>().unwrap(), Element::U32).unwrap();
    assert_eq!(planned.check().unwrap().worst, 0.0);
}

/// Random layouts over bits, to and from strides and each other.
#[test]
fn layouts_over_any_bits_are_right() {
    let mut chance = Chance(19);
    for round in 0..12 {
        let bits = [1, 5, 13, 11][round % 4];
        // A product of two triangles of ones is invertible; a gap leaves places that nothing
        // reaches.
        let mut columns: Vec<i64> = (0..bits).map(|bit| 1 << bit | chance.below(1 << bit)).collect();
        for bit in 0..bits {
            let mixed = chance.below(1 << bits) >> (bit + 1) << (bit + 1);
            for other in (0..bits).filter(|other| mixed >> other & 1 == 1) {
                columns[bit] ^= columns[other];
            }
        }
        columns.iter_mut().for_each(|column| *column <<= round % 3);
        let over = |index: i64| (0..bits).filter(|bit| index >> bit & 1 == 1).fold(0, |at, bit| at ^ columns[bit]);
        let list = |each: &dyn Fn(&i64) -> String| columns.iter().map(each).collect::<Vec<_>>().join(",");
        let text = format!("({}):({})", list(&|_| "2".to_string()), list(&|column| format!("^{column}")));
        let xor: Layout<Xor> = text.parse().unwrap();
        let place = || Place::try_from(&xor.composed().unwrap()).unwrap();
        let size = 1_i64 << bits;
        let rows: Layout =
            format!("({},{}):({},1)", 1 << (bits / 2), size >> (bits / 2), size >> (bits / 2)).parse().unwrap();
        let plain = |index: i64| index % (1 << (bits / 2)) * (size >> (bits / 2)) + (index >> (bits / 2));
        for (source, destination) in [
            (Element::U8, Element::U8),
            (Element::F64, Element::F64),
            (Element::F32, Element::Bf16),
            (Element::Bf16, Element::Bf16),
        ] {
            let planned = relayout(&h200(), place(), source, &rows, destination).unwrap();
            // Places without gaps have tiles.
            let tiles = bits >= 11 && round % 3 == 0 && source == destination;
            assert!(!tiles || planned.to_string().contains("tiles over bits"), "{planned}");
            compared_by(&planned, size, (source, &over), (destination, &plain));
            let planned = relayout(&h200(), &rows, source, place(), destination).unwrap();
            compared_by(&planned, size, (source, &plain), (destination, &over));
            let planned = relayout(&h200(), place(), source, place(), destination).unwrap();
            compared_by(&planned, size, (source, &over), (destination, &over));
        }
    }
    // A swizzle that leaves no two elements side by side goes by such tiles, too.
    let swizzled: Composed = "S<2,0,5> o 0 o (64,64):(64,1)".parse().unwrap();
    let columns: Layout = "(64,64):(1,64)".parse().unwrap();
    for element in [Element::U8, Element::F32] {
        let planned = relayout(&h200(), &columns, element, Place::try_from(&swizzled).unwrap(), element).unwrap();
        assert!(planned.to_string().contains("tiles over bits"), "{planned}");
        assert_eq!(planned.check().unwrap().worst, 0.0);
    }
    let twice: Layout<Xor> = "(2,2,2):(^1,^2,^3)".parse().unwrap();
    let place = Place::try_from(&twice.composed().unwrap()).unwrap();
    let rows: Layout = "8:1".parse().unwrap();
    assert_eq!(relayout(&h200(), &rows, Element::U8, place, Element::U8).unwrap_err().code(), "E0932");
}

/// Offsets of more than 32 bits are planned; what does not fit into a launch is refused.
#[test]
fn large_tensors_have_plans() {
    let transposed = |m: i64, n: i64, element| {
        let (from, to) = (format!("({m},{n}):({n},1)"), format!("({m},{n}):(1,{m})"));
        relayout(&h200(), &from.parse::<Layout>().unwrap(), element, &to.parse::<Layout>().unwrap(), element)
    };
    for (m, n) in [(65_536, 65_536), (65_537, 65_539), (3, 1 << 33), ((1 << 33) + 1, 5)] {
        let planned = transposed(m, n, Element::U8).unwrap_or_else(|error| panic!("{m} x {n}: {error}"));
        assert_eq!(planned.bytes(), 2 * m * n);
    }
    let line = |n: i64| {
        relayout(
            &h200(),
            &format!("{n}:1").parse::<Layout>().unwrap(),
            Element::F64,
            &format!("{n}:1").parse::<Layout>().unwrap(),
            Element::F64,
        )
    };
    assert!(line(1 << 31).is_ok());
    assert_eq!(line(1 << 40).unwrap_err().code(), "E0935");
}
