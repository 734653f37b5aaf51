//! Rotary position embeddings beside their formula in f64.

use tilewright_ops::{Operator, Rope};
use tilewright_tile::Element;

use crate::oracle::{check_kernels_of, close, numbers, run};

/// A tensor of sequences, positions and heads by its strides.
#[derive(Clone, Copy)]
struct Strides {
    head: usize,
    position: usize,
    sequence: usize,
}

impl Strides {
    fn sizes(self, name: &str) -> [(String, i64); 3] {
        [
            (format!("{name}_head_pitch"), self.head as i64),
            (format!("{name}_pitch"), self.position as i64),
            (format!("{name}_batch_pitch"), self.sequence as i64),
        ]
    }
}

struct Case {
    rope: Rope,
    positions: usize,
    sequences: usize,
}

impl Case {
    fn rotated(&self) -> usize {
        if self.rope.rotated == 0 { self.rope.length as usize } else { self.rope.rotated as usize }
    }

    /// Positions before heads, or heads before positions.
    fn strides(&self, heads_first: bool) -> Strides {
        let (length, heads) = (self.rope.length as usize, self.rope.heads as usize);
        let sequence = length * heads * self.positions;
        match heads_first {
            true => Strides { head: length * self.positions, position: length, sequence },
            false => Strides { head: length, position: length * heads, sequence },
        }
    }

    /// The elements up to the last one that is rotated or copied.
    fn elements(&self) -> usize {
        let behind = if self.rope.in_place { self.rope.length as usize - self.rotated() } else { 0 };
        self.strides(true).sequence * self.sequences - behind
    }

    /// The rotation of `x` by the angles, times a sign.
    fn rotation(&self, x: &[f64], from: Strides, to: Strides, angle: impl Fn(usize, usize, usize) -> f64) -> Vec<f64> {
        let rotated = self.rotated();
        let mut y = if self.rope.in_place { x.to_vec() } else { vec![f64::NAN; self.elements()] };
        for sequence in 0..self.sequences {
            for position in 0..self.positions {
                for head in 0..self.rope.heads as usize {
                    let at = |own: Strides, element: usize| {
                        head * own.head + position * own.position + sequence * own.sequence + element
                    };
                    for pair in 0..rotated / 2 {
                        let (sine, cosine) = angle(sequence, position, pair).sin_cos();
                        let [first, second] = match self.rope.interleaved {
                            true => [2 * pair, 2 * pair + 1],
                            false => [pair, pair + rotated / 2],
                        };
                        let (a, b) = (x[at(from, first)], x[at(from, second)]);
                        y[at(to, first)] = a * cosine - b * sine;
                        y[at(to, second)] = b * cosine + a * sine;
                    }
                    if !self.rope.in_place {
                        for element in rotated..self.rope.length as usize {
                            y[at(to, element)] = x[at(from, element)];
                        }
                    }
                }
            }
        }
        y
    }
}

fn cases() -> Vec<Case> {
    let rope = Rope { length: 8, heads: 2, ..Rope::default() };
    let case = |rope: Rope, positions: usize, sequences: usize| Case { rope, positions, sequences };
    vec![
        case(Rope { length: 2, heads: 1, ..rope.clone() }, 1, 1),
        case(Rope { interleaved: true, tables: false, ..rope.clone() }, 5, 2),
        case(Rope { rotated: 6, positions: true, ..rope.clone() }, 7, 2),
        case(Rope { length: 96, heads: 3, interleaved: true, positions: true, shared: true, ..rope.clone() }, 9, 2),
        case(Rope { rotated: 4, tables: false, positions: true, in_place: true, ..rope.clone() }, 3, 3),
        case(Rope { length: 256, heads: 40, ..rope }, 2, 1),
    ]
}

#[test]
fn pairs_are_rotated_by_the_angles_of_their_positions() {
    for (number, case) in cases().into_iter().enumerate() {
        let from = case.strides(number % 2 == 0);
        let to = if case.rope.in_place { from } else { case.strides(number % 3 == 0) };
        let rotated = case.rotated();
        let frequencies: Vec<f64> = Rope::frequencies(rotated as i64, 100.0).into_iter().map(f64::from).collect();
        let rows = 2 * case.positions + 3;
        let own = |sequence: usize, position: usize| match case.rope.positions {
            true if case.rope.shared => position * 2 % rows,
            true => (position * 2 + sequence) % rows,
            false => position,
        };
        let angle = |sequence: usize, position: usize, pair: usize| {
            let product = own(sequence, position) as f32 * frequencies[pair] as f32;
            f64::from(product)
        };
        let table = |function: fn(f64) -> f64| -> Vec<f64> {
            let element = |row: usize, pair: usize| function(f64::from(row as f32 * frequencies[pair] as f32));
            (0..rows).flat_map(|row| (0..rotated / 2).map(move |pair| element(row, pair))).collect()
        };
        let lists = if case.rope.shared { 1 } else { case.sequences };
        let mut positions = vec![0.0; case.positions * lists];
        for sequence in 0..lists {
            for position in 0..case.positions {
                positions[sequence * case.positions + position] = own(sequence, position) as f64;
            }
        }
        let x = numbers(case.elements(), 4);
        let mut sizes = vec![
            ("S".to_string(), case.positions as i64),
            ("B".to_string(), case.sequences as i64),
            ("L".to_string(), rows as i64),
            ("positions_pitch".to_string(), case.positions as i64),
        ];
        sizes.extend(from.sizes("x"));
        sizes.extend(to.sizes("y"));
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let angles = [
            ("cos", table(f64::cos)),
            ("sin", table(f64::sin)),
            ("frequencies", frequencies.clone()),
            ("positions", positions),
        ];
        let inputs = [angles.as_slice(), &[("x", x.clone())]].concat();
        let found = run(case.rope.forward(), &sizes, &inputs);
        let result = if case.rope.in_place { "x" } else { "y" };
        close(result, found.of(result), &case.rotation(&x, from, to, angle), 1e-6);

        let inputs = [angles.as_slice(), &[("d_y", x.clone())]].concat();
        let found = run(case.rope.backward(), &sizes, &inputs);
        let result = if case.rope.in_place { "d_y" } else { "d_x" };
        close(result, found.of(result), &case.rotation(&x, to, from, |s, p, i| -angle(s, p, i)), 1e-6);
    }
}

#[test]
fn kernels_compute_what_their_programs_mean() {
    for (number, case) in cases().into_iter().enumerate() {
        let (from, to) = (case.strides(true), case.strides(false));
        let mut sizes = vec![
            ("S".to_string(), case.positions as i64),
            ("B".to_string(), case.sequences as i64),
            ("L".to_string(), 20),
            ("positions_pitch".to_string(), case.positions as i64),
        ];
        sizes.extend(from.sizes("x"));
        sizes.extend(to.sizes("y"));
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let element = [Element::Bf16, Element::F32][number % 2];
        let rope = Rope { element, table_element: element, alignment: 2, ..case.rope };
        check_kernels_of(rope.forward(), &sizes, &[]);
        check_kernels_of(rope.backward(), &sizes, &[]);
    }
}

#[test]
fn options_that_no_kernel_has_are_refused() {
    let rope = Rope { length: 8, heads: 2, ..Rope::default() };
    for (options, text) in [
        (Rope { length: 1, ..rope.clone() }, "`length` is 1, and a head has from 2"),
        (Rope { rotated: 3, ..rope.clone() }, "`rotated` is 3, and an even number"),
        (Rope { rotated: 10, ..rope.clone() }, "`rotated` is 10"),
        (Rope { length: 9, ..rope.clone() }, "`rotated` is 9"),
        (Rope { heads: 0, ..rope.clone() }, "`heads` is 0"),
        (Rope { shared: true, ..rope.clone() }, "`shared` is true, and there are no `positions`"),
        (Rope { alignment: 3, ..rope.clone() }, "`alignment` is 3"),
        (Rope { table_element: Element::E4M3, ..rope }, "`table_element` is e4m3"),
    ] {
        let error = options.forward().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
