//! Random whole programs.

use tilewright_tile::{
    Axis, Build, Count, Element, Index, Program, Reduction, Role, Statement, TensorId, TileError, Value,
};

use crate::random::body::{Body, Known};
use crate::random::chance::Chance;
use tilewright_layout::Layout;

/// Layouts of what is read, and how many of their extents are multiples of 8.
pub const LAYOUTS: [(&str, usize); 4] =
    [("(M,N):(N,1)", 0), ("(M,N):(1,M)", 0), ("(M,N{div=8}):(N,1)", 1), ("(M{div=8},N{div=8}):(1,M)", 2)];

/// How many matrices there are to choose from, of 32 by 16.
pub const SEVERAL: i64 = 3;

/// Tensors that are combined with, and whether there are any.
#[derive(Clone, Copy, Default)]
struct Changed {
    counts: Option<TensorId>,
    sums: Option<TensorId>,
    turned: Option<TensorId>,
}

/// A program that is being written.
struct Writer<'t> {
    t: &'t Build,
    x: TensorId,
    w: TensorId,
    element: Element,
    warps: u32,
    changed: Changed,
}

pub fn any(chance: &mut Chance, element: Element, layout: &str) -> Result<Program, TileError> {
    let warps = chance.one(&[1, 2, 1, 2, 4]);
    Program::build("chance", |t| {
        let x = t.input(element, "x", layout)?;
        let z = t.input(Element::I32, "z", layout)?;
        let w = t.input(Element::Bf16, "w", Layout::strided((SEVERAL, 32, 16), (512, 16, 1)))?;
        let mut changed = Changed::default();
        if chance.below(2) == 0 {
            changed.counts = Some(t.inout(Element::I32, "counts", "64:1")?);
            changed.sums = Some(t.inout(Element::F32, "sums", "1:1")?);
        }
        if chance.below(2) == 0 {
            changed.turned = Some(t.inout(Element::F32, "turned", "(32,64):(64,1)")?);
        }
        t.grid(["ceil(M/16)", "ceil(N/32)"])?;
        t.warps(warps)?;
        let at = [Index::block(Axis::X), Index::block(Axis::Y)];
        let mut body = Body { x, w, build: t, known: Vec::new(), around: 0, warps };
        body.add(t.load_or(x, &[16, 32], &at, chance.one(&[3.0, 0.0, 7.0])).to(Element::F32), 8.0);
        body.add(t.load(z, &[16, 32], &at), 8.0);
        body.add(t.index(Index::block(Axis::X) * 3 + 1).to(Element::F32), 64.0);
        let writer = Writer { t, x, w, element, warps, changed };
        for _ in 0..chance.below(8) {
            body.grow(chance);
        }
        if writer.multiplies() && chance.below(2) == 0 {
            body.add(writer.factors(0.into(), chance), 2048.0);
        }
        if chance.below(2) == 0 {
            // How many iterations there are, a number of z says, or an index, or it is known.
            let count = match chance.below(5) {
                0 | 1 => (t.load(z, &[1, 1], &at) - t.integer(chance.below(4) as i32)).into(),
                2 => Count::Index(Index::block(Axis::Y) * 2 + chance.one(&[-1, 0, 1])),
                3 => Count::from("ceil(M/8)"),
                _ => Count::from(chance.one(&[0, 1, 2, 3, 4, 10])),
            };
            writer.iterations(&mut body, count, 0, chance)?;
        }
        for _ in 0..chance.below(8) {
            body.grow(chance);
        }
        writer.outputs(&body, &at, chance)?;
        writer.changes(&body, &at, chance);
        Ok(())
    })
}

impl<'t> Writer<'t> {
    fn multiplies(&self) -> bool {
        self.warps <= 2 && matches!(self.element, Element::Bf16 | Element::F16)
    }

    /// Tiles of memory by one another, which go through shared memory where rows are aligned.
    fn factors(&self, iteration: Index, chance: &mut Chance) -> Value<'t> {
        let at = [Index::block(Axis::X), Index::block(Axis::Y)];
        let rows = [self.t.load(self.x, &[16, 32], &[iteration, 0.into()]), self.t.load(self.x, &[16, 32], &at)];
        let order = chance.below(2);
        let sums = self.t.full(&[16, 16], 2.0);
        rows[order].dot(rows[1 - order].transpose(&[1, 0]), sums)
    }

    /// A loop that carries two of the values, neither of which grows; there may be another in it.
    fn iterations(
        &self,
        body: &mut Body<'t>,
        count: Count,
        depth: usize,
        chance: &mut Chance,
    ) -> Result<(), TileError> {
        let (t, x) = (self.t, self.x);
        let carried = [body.any(chance), body.any(chance)];
        let known = body.known.clone();
        let results = t.range(count, &carried.map(|known| known.value), |iteration, own| {
            let around = known.len();
            let mut inner = Body { x, w: self.w, build: t, known, around, warps: self.warps };
            own.iter().zip(carried).for_each(|(value, known)| inner.add(*value, known.most));
            inner.add(t.index(iteration.clone()).to(Element::F32), 16.0);
            if chance.below(2) == 0 {
                let place = [iteration.clone(), Index::block(Axis::Y)];
                inner.add(t.load(x, &[16, 32], &place).to(Element::F32), 8.0);
            }
            if self.multiplies() && chance.below(2) == 0 {
                inner.add(self.factors(iteration.clone(), chance), 2048.0);
            }
            for _ in 0..chance.below(5) {
                inner.grow(chance);
            }
            if depth == 0 && chance.below(4) == 0 {
                let count = match chance.below(2) {
                    0 => Count::Index(iteration.clone() * chance.one(&[-1, 1]) + 2),
                    _ => Count::from(chance.one(&[0, 1, 3])),
                };
                self.iterations(&mut inner, count, depth + 1, chance)?;
            }
            if let Some(sums) = self.changed.sums.filter(|_| depth == 0 && chance.below(3) == 0) {
                let total = body.known[0].value.reduce(Reduction::Sum, &[0, 1]).reshape(&[1]);
                t.atomic(Reduction::Sum, sums, &[0.into()], &[], total);
            }
            let mut next = own.to_vec();
            for (next, carried) in next.iter_mut().zip(carried) {
                let ty = carried.value.type_of();
                let fits: Vec<Known<'_>> = inner
                    .known
                    .iter()
                    .filter(|known| known.value.type_of() == ty && known.most <= carried.most)
                    .copied()
                    .collect();
                *next = fits[chance.below(fits.len())].value;
            }
            Ok(next)
        })?;
        results.iter().zip(carried).for_each(|(value, known)| body.add(*value, known.most));
        Ok(())
    }

    /// Two outputs, in which every value counts that has their type.
    fn outputs(&self, body: &Body<'t>, at: &[Index], chance: &mut Chance) -> Result<(), TileError> {
        let t = self.t;
        for number in 0..2 {
            let tiles: Vec<Known<'_>> =
                body.known.iter().filter(|known| known.value.type_of().shape.len() == 2).copied().collect();
            let first = tiles[tiles.len() - 1 - chance.below(tiles.len().min(4))];
            let (mut own, mut most) = (first.value, first.most);
            for (at, other) in body.known.iter().enumerate() {
                let ty = own.type_of();
                let other_ty = other.value.type_of();
                if other_ty.element != ty.element {
                    continue;
                }
                let meets =
                    other_ty.shape.len() == 2 && other_ty.shape.iter().zip(&ty.shape).all(|(a, b)| a == b || *a == 1);
                let value = match other_ty.shape.len() {
                    _ if meets => other.value,
                    0 => other.value.broadcast(&[1, 1]),
                    modes => {
                        let all: Vec<usize> = (0..modes).collect();
                        let reduction = chance.one(&[Reduction::Maximum, Reduction::Minimum]);
                        other.value.reduce(reduction, &all).reshape(&[1, 1])
                    }
                };
                most = most.max(other.most);
                let sign = if at % 2 == 0 { value } else { -value };
                own = if at % 3 == 0 { own.min(sign) } else { own.max(sign) };
            }
            use Element::{Bf16, E4M3, F16, F32, I8, U8};
            let narrow = chance.one(&[F32, F32, Bf16, F16, E4M3, I8, U8]);
            if own.type_of().element == F32 && (narrow != F16 || most < 60_000.0) {
                own = own.to(narrow);
            }
            let name = format!("y{number}");
            let y = t.output(own.type_of().element, &name, &format!("(A{number},B{number}):(1,A{number})"))?;
            t.store(y, at, own);
        }
        Ok(())
    }

    /// Counts of whole numbers, and a tile of numbers to rows in another order.
    fn changes(&self, body: &Body<'t>, at: &[Index], chance: &mut Chance) {
        let t = self.t;
        let values = || body.known.iter().map(|known| known.value);
        if let (Some(counts), Some(sums)) = (self.changed.counts, self.changed.sums) {
            let numbers: Vec<Value<'_>> = values()
                .filter(|value| value.type_of().element == Element::I32 && !value.type_of().shape.is_empty())
                .collect();
            let numbers = chance.one(&numbers);
            let size = numbers.type_of().size();
            let rows = numbers.reshape(&[size]);
            let reduction = chance.one(&[Reduction::Sum, Reduction::Maximum, Reduction::Minimum]);
            t.atomic(reduction, counts, &[0.into()], &[(0, rows)], t.arange(&[size], 0));
            let total = body.known[0].value.reduce(Reduction::Sum, &[0, 1]).reshape(&[1]);
            t.atomic(Reduction::Sum, sums, &[0.into()], &[], total);
        }
        if let Some(turned) = self.changed.turned {
            let tiles: Vec<Value<'_>> = values()
                .filter(|value| value.type_of().element == Element::F32 && value.type_of().shape == [16, 32])
                .collect();
            let mask = t.integer(chance.below(16) as i32);
            let rows =
                t.arange(&[16, 1], 0).bits(tilewright_tile::Binary::Xor, mask) + t.index(Index::block(Axis::X) * 16);
            t.scatter(turned, &[0.into(), at[1].clone()], &[(0, rows)], chance.one(&tiles));
        }
    }
}

/// The extents of what is written to both outputs.
pub fn stored(program: &Program) -> Vec<[i64; 2]> {
    program
        .body()
        .iter()
        .filter_map(|statement| match statement {
            Statement::Store { tensor, value, .. } if program.tensors()[*tensor].role == Role::Output => {
                let shape = &program.type_of(*value).shape;
                Some([shape[0], shape[1]])
            }
            _ => None,
        })
        .collect()
}
