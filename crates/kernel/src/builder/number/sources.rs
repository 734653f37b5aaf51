//! The sources of numbers: constants, scalar arguments, and indices; and numbers as indices.

use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Extent, LayoutError};

use super::{Flag, Num, width_of};
use crate::builder::Build;
use crate::element::{Element, ElementType};
use crate::error::{KernelError, Reason};
use crate::program::Location;
use crate::program::operation::{Binary, Number, Operation};
use crate::program::register::Width;
use crate::program::scalar::Scalar;

impl Build {
    /// A constant.
    pub fn number<T: ElementType>(&self, value: T) -> Num<'_> {
        let register = self.core().constant(value.to_bits(), width_of(T::ELEMENT));
        Num::new(self, register, T::ELEMENT)
    }

    /// A constant, rounded to a type.
    pub fn number_of(&self, element: Element, value: f64) -> Num<'_> {
        let bits = match element {
            Element::F64 => value.to_bits(),
            Element::F32 => u64::from((value as f32).to_bits()),
            Element::F16 => u64::from(half::f16::from_f64(value).to_bits()),
            Element::Bf16 => u64::from(half::bf16::from_f64(value).to_bits()),
            Element::U64 => value as u64,
            Element::I64 => value as i64 as u64,
            Element::U32 => u64::from(value as u32),
            Element::I32 => u64::from(value as i32 as u32),
            Element::U16 => u64::from(value as u16),
            Element::I16 => u64::from(value as i16 as u16),
            Element::U8 => u64::from(value as u8),
            Element::I8 => u64::from(value as i8 as u8),
            Element::E4M3 | Element::E5M2 => {
                return self.number_of(Element::F32, value).to(element);
            }
        };
        let register = self.core().constant(bits, width_of(element));
        Num::new(self, register, element)
    }

    /// A constant condition.
    pub fn flag(&self, value: bool) -> Flag<'_> {
        let register = self.core().constant(u64::from(value), Width::Predicate);
        Flag { build: self, register }
    }

    /// A number of type i32 or u32, such as an element of a tensor, as an index: accesses may
    /// depend on it. It may be past any edge, and a negative number counts as past every edge, so
    /// accesses at it are predicated.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // y(m) = x(index(m)), 0 where there is no such element.
    /// let kernel = Kernel::build("picked", |k| {
    ///     let (x, index) = (k.input::<f32>("x", "K:1")?, k.input::<i32>("index", "M{div=32}:1")?);
    ///     let y = k.output::<f32>("y", "M:1")?.local_tile(32, k.block("x")?)?.thread_part()?;
    ///     let own = index.local_tile(32, k.block("x")?)?.thread_part()?.load()?.numbers()?[0];
    ///     y.store(&x.slice(tilewright_layout::coord!(k.index_of(own)?)?)?.load_predicated()?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[("K", 5), ("M", 32)])?;
    /// interpreter.tensor(0, &[1.0_f32, 2.0, 3.0, 4.0, 5.0])?;
    /// interpreter.tensor(1, &(0..32).map(|at| 3 - at).collect::<Vec<i32>>())?;
    /// let checked = interpreter.check()?;
    /// assert_eq!(checked.run.tensor::<f32>("y")?[..6], [4.0, 3.0, 2.0, 1.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the number has another type.
    #[track_caller]
    pub fn index_of(&self, number: Num<'_>) -> Result<Expr, KernelError> {
        self.instructed("index_of", |core| {
            if !matches!(number.element, Element::I32 | Element::U32) {
                return Err(Reason::Elements { wanted: Element::I32, given: number.element });
            }
            // Without a sign, negative numbers are greater than all others.
            let most = core.constant(i32::MAX as u64, Width::Bits32);
            let least = Operation::Binary(Binary::Minimum, Number::U32);
            let register = core.pure(least, [number.register, most], Width::Bits32);
            Ok(core.new_variable(register, i32::MAX.into(), None))
        })
    }

    /// As [`Build::index_of`], for an index below a bound. A number that is negative or not below
    /// the bound becomes the last index, so accesses at the index need no predicate.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret::Interpreter};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // y(m) = x(index(m)), and the last element of x where there is no such element.
    /// let kernel = Kernel::build("clamped", |k| {
    ///     let (x, index) = (k.input::<f32>("x", "K:1")?, k.input::<i32>("index", "M{div=32}:1")?);
    ///     let y = k.output::<f32>("y", "M:1")?.local_tile(32, k.block("x")?)?.thread_part()?;
    ///     let own = index.local_tile(32, k.block("x")?)?.thread_part()?.load()?.numbers()?[0];
    ///     let at = k.index_below(own, &k.size("K")?)?;
    ///     y.store(&x.slice(tilewright_layout::coord!(at)?)?.load()?)
    /// })?;
    /// let mut interpreter = Interpreter::new(kernel.program(), &[("K", 5), ("M", 32)])?;
    /// interpreter.tensor(0, &[1.0_f32, 2.0, 3.0, 4.0, 5.0])?;
    /// interpreter.tensor(1, &(0..32).map(|at| 3 - at).collect::<Vec<i32>>())?;
    /// let checked = interpreter.check()?;
    /// assert_eq!(checked.run.tensor::<f32>("y")?[..6], [4.0, 3.0, 2.0, 1.0, 5.0, 5.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: the number has another type; the bound may be 0, or has too many terms.
    #[track_caller]
    pub fn index_below(&self, number: Num<'_>, bound: &Expr) -> Result<Expr, KernelError> {
        let last = Extent::minus(bound, &Expr::from(1)).ok_or(LayoutError::Overflow { op: "index_below" })?;
        let last = self.index(&last)?;
        self.instructed("index_below", |core| {
            if !matches!(number.element, Element::I32 | Element::U32) {
                return Err(Reason::Elements { wanted: Element::I32, given: number.element });
            }
            if !core.is_less(&Expr::from(0), bound) {
                let because = format!("`{bound}` may be 0, and no index is below that");
                return Err(Reason::Instruction { name: "index_below".to_string(), because });
            }
            // Without a sign, negative numbers are greater than all others.
            let least = Operation::Binary(Binary::Minimum, Number::U32);
            let register = core.pure(least, [number.register, last.register], Width::Bits32);
            Ok(core.new_variable(register, i32::MAX.into(), Some(bound.clone())))
        })
    }

    /// A scalar argument of the launch, by its name.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let kernel = Kernel::build("scaled", |k| {
    ///     let x = k.input::<f32>("x", "M{div=32}:1")?.local_tile(32, k.block("x")?)?.thread_part()?;
    ///     let y = k.output::<f32>("y", "M:1")?.local_tile(32, k.block("x")?)?.thread_part()?;
    ///     let factor = k.scalar::<f32>("factor")?;
    ///     y.store(&x.load()?.map(|x| Ok(x * factor))?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[("M", 32)])?;
    /// interpreter.tensor(0, &[2.0_f32; 32])?.number("factor", 1.5_f32)?;
    /// assert_eq!(interpreter.check()?.run.tensor::<f32>("y")?[0], 3.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: a scalar argument with this name has another type; scalar arguments of 8 bits are
    /// not supported.
    #[track_caller]
    pub fn scalar<T: ElementType>(&self, name: &str) -> Result<Num<'_>, KernelError> {
        self.scalar_of(T::ELEMENT, name)
    }

    /// As [`Build::scalar`], for a type that is a value.
    ///
    /// Errors: as [`Build::scalar`].
    #[track_caller]
    pub fn scalar_of(&self, element: Element, name: &str) -> Result<Num<'_>, KernelError> {
        let (mut core, location) = self.begin("scalar");
        let other = core.scalars.iter().find_map(|scalar| match scalar {
            Scalar::Given { name: own, element: given } if own == name && *given != element => Some(*given),
            _ => None,
        });
        let refusal = match other {
            Some(given) => Some(Reason::Elements { wanted: given, given: element }),
            None if element.bits() < 16 => Some(Reason::Arithmetic { operation: "passing", element }),
            None => None,
        };
        if let Some(refusal) = refusal {
            return Err(refusal.at("scalar", location));
        }
        let register = core.scalar(Scalar::Given { name: name.to_string(), element });
        drop(core);
        Ok(Num::new(self, register, element))
    }

    /// The value of an index as a signed 32-bit number.
    ///
    /// Errors: the index has too many terms.
    #[track_caller]
    pub fn index(&self, index: &Expr) -> Result<Num<'_>, KernelError> {
        let location = Location::caller();
        let register = self.core().lower(index, Width::Bits32).map_err(|refusal| refusal.at("index", location))?;
        Ok(Num::new(self, register, Element::I32))
    }
}
