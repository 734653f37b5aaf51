//! The law of products beside sums that share no code with the library.

use half::{bf16, f16};
use tilewright_layout::Layout;
use tilewright_layout::atoms::TiledMma;
use tilewright_tensor::{Numbers, Offsets, TensorView, TensorViewMut, gemm};

use crate::kernels::random::Random;

/// What is tested about a type.
pub trait Tested: Numbers<Sum: Summed> + PartialEq + std::fmt::Debug {
    fn random(random: &mut Random) -> Self;
    fn exact(self) -> f64;
}

/// A type of sums. Its numbers, and products of small ones, are numbers of binary64; integers below
/// 2^53 in magnitude are compared modulo 2^32.
pub trait Summed: Copy + PartialEq + std::fmt::Debug {
    /// Half of the distance from 1 to the next number; 0 where arithmetic is exact.
    const UNIT: f64;
    /// What must not survive where it is not looked at.
    const POISON: Self;
    fn factor(value: i8) -> Self;
    fn random(random: &mut Random) -> Self;
    fn exact(self) -> f64;
    /// The difference from the exact value.
    fn off(self, exact: f64) -> f64;
}

macro_rules! floats {
    ($type:ident, $unit:expr) => {
        impl Summed for $type {
            const UNIT: f64 = $unit;
            const POISON: $type = $type::NAN;
            fn factor(value: i8) -> $type {
                value as $type / 4.0
            }
            fn random(random: &mut Random) -> $type {
                random.real() as $type
            }
            fn exact(self) -> f64 {
                self as f64
            }
            fn off(self, exact: f64) -> f64 {
                if self.is_nan() { f64::INFINITY } else { (self as f64 - exact).abs() }
            }
        }
        impl Tested for $type {
            fn random(random: &mut Random) -> $type {
                random.real() as $type
            }
            fn exact(self) -> f64 {
                self as f64
            }
        }
    };
}
floats!(f32, f32::EPSILON as f64 / 2.0);
floats!(f64, f64::EPSILON / 2.0);

macro_rules! halves {
    ($type:ident) => {
        impl Tested for $type {
            fn random(random: &mut Random) -> $type {
                $type::from_f64(random.real())
            }
            fn exact(self) -> f64 {
                self.to_f64()
            }
        }
    };
}
halves!(f16);
halves!(bf16);

impl Tested for i8 {
    fn random(random: &mut Random) -> i8 {
        // The ends of the range are where products overflow, if they do.
        match random.below(4) {
            0 => i8::MIN,
            1 => i8::MAX,
            _ => random.next() as i8,
        }
    }
    fn exact(self) -> f64 {
        f64::from(self)
    }
}

impl Summed for i32 {
    const UNIT: f64 = 0.0;
    const POISON: i32 = i32::MIN + 12345;
    fn factor(value: i8) -> i32 {
        i32::from(value)
    }
    fn random(random: &mut Random) -> i32 {
        random.next() as i32
    }
    fn exact(self) -> f64 {
        f64::from(self)
    }
    fn off(self, exact: f64) -> f64 {
        f64::from(self.wrapping_sub(exact as i64 as i32)).abs()
    }
}

/// A layout of `(rows, columns)` whose offsets are apart from each other, of one of several kinds.
pub fn some_layout(random: &mut Random, rows: i64, columns: i64) -> Layout {
    let halved = |extent: i64| if extent % 2 == 0 { (2, extent / 2) } else { (1, extent) };
    let padded = |extent: i64, random: &mut Random| extent + random.below(3) as i64;
    let text = match random.below(9) {
        0 | 1 => format!("({rows},{columns}):(1,{})", padded(rows, random)),
        2 | 3 => format!("({rows},{columns}):({},1)", padded(columns, random)),
        4 => format!("({rows},{columns}):(3,{})", 3 * rows + 1),
        5 => format!("({rows},{columns}):(-1,{})", padded(rows, random)),
        6 => format!("({rows},{columns}):({},-2)", -2 * padded(columns, random)),
        7 => {
            // Tiles of two by two, each by columns, or by rows.
            let ((r, rs), (c, cs)) = (halved(rows), halved(columns));
            format!("(({r},{rs}),({c},{cs})):((1,{}),({r},{}))", r * c, r * c * rs)
        }
        _ => {
            let ((r, rs), (c, cs)) = (halved(rows), halved(columns));
            format!("(({r},{rs}),({c},{cs})):(({c},{}),(1,{}))", r * c * cs, r * c)
        }
    };
    text.parse().expect("a layout")
}

/// A matrix in memory with places around it and between its elements that nobody should write.
struct Matrix<T, L> {
    memory: Vec<T>,
    origin: usize,
    layout: L,
    rows: i64,
}

impl<T: Copy, L: Offsets> Matrix<T, L> {
    fn new(layout: L, rows: i64, mut element: impl FnMut() -> T) -> Matrix<T, L> {
        let (least, greatest) = layout.range().expect("a range");
        let length = (greatest.max(0) - least.min(0)) as usize + 5;
        let memory = (0..length).map(|_| element()).collect();
        Matrix { memory, origin: (2 - least.min(0)) as usize, layout, rows }
    }

    fn view(&self) -> TensorView<'_, T, L> {
        TensorView::with_origin(&self.memory, self.origin, self.layout.clone()).expect("a view")
    }

    fn view_mut(&mut self) -> TensorViewMut<'_, T, L> {
        TensorViewMut::with_origin(&mut self.memory, self.origin, self.layout.clone()).expect("a view")
    }

    fn place(&self, i: i64, j: i64) -> usize {
        let offset = self.layout.offset(i + self.rows * j).expect("an offset");
        (self.origin as i64 + offset) as usize
    }

    /// The rows, one after another.
    fn values<V>(&self, value: impl Fn(T) -> V) -> Vec<Vec<V>> {
        let columns = self.layout.size() / self.rows;
        (0..self.rows).map(|i| (0..columns).map(|j| value(self.memory[self.place(i, j)])).collect()).collect()
    }
}

/// Checks the law for these matrices.
pub fn check<S: Tested, LA: Offsets, LB: Offsets, LC: Offsets>(
    mma: &TiledMma,
    [m, n, k]: [i64; 3],
    [alpha, beta]: [i8; 2],
    (la, lb, lc): (LA, LB, LC),
    random: &mut Random,
) where
    S::Sum: Summed,
{
    let a = Matrix::new(la, m, || S::random(random));
    let b = Matrix::new(lb, n, || S::random(random));
    let mut c = Matrix::new(lc, m, || <S::Sum as Summed>::random(random));
    if beta == 0 {
        c.memory.fill(<S::Sum as Summed>::POISON);
    }
    let before = c.memory.clone();
    let (alpha, beta) = (<S::Sum as Summed>::factor(alpha), <S::Sum as Summed>::factor(beta));
    let about = (mma.atom().name(), [m, n, k], alpha, beta, a.layout.clone(), b.layout.clone(), c.layout.clone());
    gemm(mma, alpha, &a.view(), &b.view(), beta, &mut c.view_mut()).expect("a product");

    let mut written = vec![false; before.len()];
    let terms = (k + 3) as f64 * <S::Sum as Summed>::UNIT;
    let (alpha, beta) = (alpha.exact(), beta.exact());
    let (a_rows, b_rows) = (a.values(S::exact), b.values(S::exact));
    for (j, b_row) in b_rows.iter().enumerate() {
        for (i, a_row) in a_rows.iter().enumerate() {
            let place = c.place(i as i64, j as i64);
            let old = if beta == 0.0 { 0.0 } else { before[place].exact() };
            let (mut sum, mut size) = (0.0, 0.0);
            for (x, y) in a_row.iter().zip(b_row) {
                sum += x * y;
                size += (x * y).abs();
            }
            let (sum, size) = (alpha * sum + beta * old, alpha.abs() * size + (beta * old).abs());
            // The reference is rounded as well, half as often where it has the same precision.
            let bound = 1.5 * terms / (1.0 - terms) * size;
            let off = c.memory[place].off(sum);
            assert!(off <= bound, "{about:?}: at ({i},{j}) {:?} is off {sum} by {off} > {bound}", c.memory[place]);
            written[place] = true;
        }
    }
    for (place, (old, new)) in before.iter().zip(&c.memory).enumerate() {
        let same = old == new || old.off(old.exact()).is_infinite() && new.off(new.exact()).is_infinite();
        assert!(written[place] || same, "{about:?}: place {place} was written");
    }
}
