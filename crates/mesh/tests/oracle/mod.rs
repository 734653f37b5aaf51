//! Random meshes and layouts, known as lists of modes that the generator made; the library reads
//! them from their text. They share no code.

#![allow(dead_code)] // Each test uses a part.

use tilewright_mesh::Mesh;

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }

    /// Factors of a number, in any order.
    fn factors(&mut self, number: i64) -> Vec<i64> {
        let mut left = number;
        let mut factors = Vec::new();
        for prime in [2, 3, 5] {
            while left % prime == 0 {
                factors.push(prime);
                left /= prime;
            }
        }
        self.shuffle(&mut factors);
        while factors.len() > 1 && self.below(3) > 0 {
            let at = self.below(factors.len() - 1);
            let next = factors.remove(at + 1);
            factors[at] *= next;
        }
        factors
    }
}

/// A mode: extent, axis (none for offsets), step.
pub type Mode = (i64, Option<usize>, i64);

#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// The leaves of each mode of the tensor.
    pub modes: Vec<Vec<Mode>>,
    pub copies: Vec<Mode>,
    pub sums: Vec<Mode>,
    pub corner: Vec<i64>,
    pub start: i64,
}

/// The mesh of the oracle: extent and stride in ranks of each axis.
pub type Axes = Vec<(i64, i64)>;

impl Oracle {
    pub fn places(&self, axes: &Axes, element: i64) -> Vec<Vec<(i64, i64)>> {
        let mut at = self.corner.clone();
        let mut offset = self.start;
        let mut rest = element;
        for (extent, axis, step) in self.modes.iter().flatten() {
            let index = rest % extent;
            rest /= extent;
            match axis {
                Some(axis) => at[*axis] += index * step,
                None => offset += index * step,
            }
        }
        let walk = |modes: &[Mode], start: &[i64]| {
            let mut all = vec![start.to_vec()];
            for (extent, axis, step) in modes {
                let moved = |at: &Vec<i64>, index: i64| {
                    let mut at = at.clone();
                    at[axis.unwrap()] += index * step;
                    at
                };
                all = (0..*extent)
                    .flat_map(|index| all.iter().map(move |at| moved(at, index)).collect::<Vec<_>>())
                    .collect();
            }
            all
        };
        let rank = |at: &Vec<i64>| at.iter().zip(axes).map(|(at, (_, stride))| at * stride).sum::<i64>();
        let copies = walk(&self.copies, &at);
        copies.iter().map(|at| walk(&self.sums, at).iter().map(|at| (rank(at), offset)).collect()).collect()
    }

    pub fn size(&self) -> i64 {
        self.modes.iter().flatten().map(|mode| mode.0).product()
    }

    /// Memory of all devices that holds these values, with random summands; elsewhere `poison`.
    pub fn filled(&self, axes: &Axes, reach: i64, values: &[i64], poison: i64, random: &mut Random) -> Vec<Vec<i64>> {
        let devices: i64 = axes.iter().map(|(extent, _)| extent).product();
        let mut memory = vec![vec![poison; reach as usize]; devices as usize];
        for (element, value) in values.iter().enumerate() {
            let places = self.places(axes, element as i64);
            let others = places[0].len() - 1;
            let summands: Vec<i64> = (0..others).map(|_| random.below(1000) as i64 - 500).collect();
            let first = value - summands.iter().sum::<i64>();
            for copy in places {
                for ((rank, offset), summand) in copy.iter().zip([&[first], summands.as_slice()].concat()) {
                    memory[*rank as usize][*offset as usize] = summand;
                }
            }
        }
        memory
    }

    pub fn text(&self) -> String {
        let list =
            |parts: Vec<String>| if parts.len() == 1 { parts.concat() } else { format!("({})", parts.join(",")) };
        let step = |mode: &Mode| mode.1.map_or(mode.2.to_string(), |axis| format!("{}@a{axis}", mode.2));
        let both = |part: &dyn Fn(&Mode) -> String| {
            let modes = self.modes.iter().map(|leaves| list(leaves.iter().map(part).collect()));
            let modes: Vec<String> = modes.collect();
            format!("({})", modes.join(","))
        };
        let mut text = format!("{}:{}", both(&|mode| mode.0.to_string()), both(&step));
        for (word, modes) in [("copied", &self.copies), ("summed", &self.sums)] {
            if !modes.is_empty() {
                let shape = list(modes.iter().map(|mode| mode.0.to_string()).collect());
                text += &format!(" {word} {shape}:{}", list(modes.iter().map(step).collect()));
            }
        }
        let mut corner: Vec<String> = Vec::new();
        corner.extend(self.corner.iter().enumerate().filter(|at| *at.1 > 0).map(|(axis, at)| format!("{at}@a{axis}")));
        corner.extend((self.start > 0).then(|| self.start.to_string()));
        if corner.is_empty() { text } else { format!("{text} at {}", corner.join("+")) }
    }
}

pub fn random_layout(random: &mut Random, axes: &Axes, sizes: &[i64]) -> Oracle {
    let mut oracle = Oracle { corner: vec![0; axes.len()], ..Oracle::default() };
    for size in sizes {
        let factors = random.factors(*size);
        let leaves = if factors.is_empty() { vec![1] } else { factors };
        oracle.modes.push(leaves.into_iter().map(|extent| (extent, None, 0)).collect());
    }
    for (axis, (extent, _)) in axes.iter().enumerate() {
        let mut step = 1;
        for factor in random.factors(*extent) {
            let digit = (factor, Some(axis), step);
            let fits = |mode: &&mut Mode| mode.0 == factor && mode.1.is_none();
            let free: Vec<&mut Mode> = oracle.modes.iter_mut().flatten().filter(fits).collect();
            match random.below(if free.is_empty() { 5 } else { 12 }) {
                0 => oracle.corner[axis] += step * random.below(factor as usize) as i64,
                1 | 2 => oracle.copies.push(digit),
                3 => oracle.sums.push(digit),
                _ if free.is_empty() => oracle.copies.push(digit),
                _ => {
                    let count = free.len();
                    *free.into_iter().nth(random.below(count)).unwrap() = digit;
                }
            }
            step *= factor;
        }
    }
    let mut local: Vec<&mut Mode> = oracle.modes.iter_mut().flatten().filter(|mode| mode.1.is_none()).collect();
    random.shuffle(&mut local);
    let mut stride = 1 + (random.below(8) == 0) as i64;
    for mode in local {
        mode.2 = stride;
        stride *= mode.0;
        stride += (random.below(6) == 0) as i64;
    }
    oracle.start = if random.below(6) == 0 { random.below(4) as i64 } else { 0 };
    oracle
}

/// A mesh of at most this many devices, with the extent and stride of each axis.
pub fn random_mesh(random: &mut Random, most: i64) -> (Mesh, Axes) {
    let extents = loop {
        let extents: Vec<i64> = (0..1 + random.below(3)).map(|_| [1, 2, 2, 3, 4, 6][random.below(6)]).collect();
        if extents.iter().product::<i64>() <= most {
            break extents;
        }
    };
    let mut order: Vec<usize> = (0..extents.len()).collect();
    random.shuffle(&mut order);
    let mut axes: Axes = extents.iter().map(|extent| (*extent, 0)).collect();
    let mut stride = 1;
    for axis in order {
        axes[axis].1 = stride;
        stride *= axes[axis].0;
    }
    let names = axes.iter().enumerate().map(|(at, (extent, stride))| format!("a{at}={extent}:{stride}"));
    (names.collect::<Vec<_>>().join(",").parse().unwrap(), axes)
}
