//! Random values of a body, and operations on them.

mod elements;
mod memory;
mod shapes;
mod types;
mod wholes;

use tilewright_tile::{Build, Element, TensorId, Type, Value};

use crate::random::chance::Chance;

/// A value, and the greatest magnitude that it may have.
#[derive(Clone, Copy)]
pub struct Known<'t> {
    pub value: Value<'t>,
    pub most: f64,
}

/// Sums of f32 stay exact below this.
pub const EXACT: f64 = (1 << 22) as f64;

/// What integers of 32 bits do not exceed.
pub const WHOLE: f64 = (1_u64 << 31) as f64;

/// The most elements of a value.
const LARGE: i64 = 2048;

/// Values that a body may use.
pub struct Body<'t> {
    /// The matrix that is read, and one of several that a number chooses.
    pub x: TensorId,
    pub w: TensorId,
    pub build: &'t Build,
    pub known: Vec<Known<'t>>,
    /// How many of the values were known before the loop around; none if there is no loop.
    pub around: usize,
    pub warps: u32,
}

/// What an operation begins with.
struct One<'t> {
    known: Known<'t>,
    value: Value<'t>,
    ty: Type,
    /// Its elements are i32, and not f32.
    integer: bool,
}

impl One<'_> {
    fn modes(&self) -> usize {
        self.ty.shape.len()
    }

    fn size(&self) -> i64 {
        self.ty.shape.iter().product()
    }

    /// Whether what may be as great is exact.
    fn fits(&self, most: f64) -> bool {
        self.integer || most <= EXACT
    }
}

impl<'t> Body<'t> {
    pub fn add(&mut self, value: Value<'t>, most: f64) {
        self.known.push(Known { value, most });
    }

    /// A value; what came last more often, so that operations follow one another.
    pub fn any(&self, chance: &mut Chance) -> Known<'t> {
        let count = if chance.below(2) == 0 { self.known.len().min(3) } else { self.known.len() };
        self.known[self.known.len() - 1 - chance.below(count)]
    }

    /// Another value that meets this one's shape and type.
    fn beside(&self, one: &One<'t>, chance: &mut Chance) -> Option<Known<'t>> {
        let ty = &one.ty;
        let fits: Vec<Known<'t>> = self
            .known
            .iter()
            .filter(|other| {
                let own = other.value.type_of();
                let meets = own.shape.is_empty()
                    || own.shape.len() == ty.shape.len()
                        && own.shape.iter().zip(&ty.shape).all(|(a, b)| a == b || *a == 1 || *b == 1);
                let size: i64 = own.shape.iter().zip(&ty.shape).map(|(a, b)| a.max(b)).product();
                own.element == ty.element && meets && size <= LARGE
            })
            .copied()
            .collect();
        (!fits.is_empty()).then(|| fits[chance.below(fits.len())])
    }

    /// Values of i32 of some shape.
    fn numbers(&self, count: usize, fits: impl Fn(&[i64]) -> bool) -> Vec<Value<'t>> {
        let values = self.known[..count].iter().map(|known| known.value);
        values.filter(|own| own.type_of().element == Element::I32 && fits(&own.type_of().shape)).collect()
    }

    /// One more statement, if it keeps to the bounds.
    pub fn grow(&mut self, chance: &mut Chance) {
        let known = self.any(chance);
        let (value, ty) = (known.value, known.value.type_of());
        let one = One { known, value, integer: ty.element == Element::I32, ty };
        match chance.below(16) {
            0..=4 => self.elements(&one, chance),
            5..=8 => self.wholes(&one, chance),
            9..=10 => self.shapes(&one, chance),
            11..=13 => self.types(&one, chance),
            _ => self.memory(&one, chance),
        }
    }
}
