//! Views of the same memory with other element types, and conditional accesses.
//!
//! Law: `recast` changes the element type and the layout, never the memory of a tensor: the whole
//! new layout is inside the old tensor. A conditional access does nothing in threads in which the
//! condition is false; that the others stay inside is proved, or checked by a predicate, as for any
//! access.

use tilewright_layout::atoms::CopyAtom;
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coordinate, Extent, Slot, Stride, Tree, Truth};

use super::Build;
use super::access::Edge;
use super::declare::elements_of;
use super::fragment::Fragment;
use super::lower::fits;
use super::number::{Flag, Num, width_of};
use super::tensor::{self, Cuttable, View};
use crate::arguments::IntoLayout;
use crate::element::Element;
use crate::error::{KernelError, Reason};
use crate::program::operation::{Binary, Number, Operation, Shuffle};
use crate::program::register::Width;

impl<'k> View<'k> {
    /// The memory of a whole tensor with another element type and layout, from the beginning of the
    /// tensor on: for example, words of a tensor of bytes, or pairs of its elements.
    ///
    /// ```
    /// use tilewright_kernel::{Element, Kernel};
    ///
    /// let kernel = Kernel::build("words", |k| {
    ///     let bytes = k.input::<u8>("bytes", "1024:1")?;
    ///     let words = bytes.recast(Element::U32, "256:1")?;
    ///     let out = k.output::<u32>("out", "256:1")?;
    ///     k.threads(256)?;
    ///     let thread = k.thread()?;
    ///     out.at(&thread)?.store(&words.at(&thread)?.load()?)
    /// });
    /// assert!(kernel.is_ok());
    /// ```
    ///
    /// In shared memory the layout may have a swizzle: several arrays may use the same memory one
    /// after the other.
    ///
    /// Errors: the layout cannot be read; it has a swizzle in global memory, or has offsets outside
    /// of the tensor for some admissible size; the view is a part of a tensor.
    #[track_caller]
    pub fn recast(&self, element: Element, layout: impl IntoLayout) -> Result<View<'k>, KernelError> {
        self.build.statement("recast", || self.recast_to(element, layout))
    }

    fn recast_to(&self, element: Element, layout: impl IntoLayout) -> Result<View<'k>, Reason> {
        let argument = layout.into_layout()?;
        let (map, offset, layout) = tensor::read(&mut self.build.core(), &argument)?;
        let overflow = || Reason::Layout(tilewright_layout::LayoutError::Overflow { op: "recast" });
        if !self.ends.is_empty() {
            let because = "memory of a tensor that ends before is seen as the elements that it has".to_string();
            return Err(Reason::Instruction { name: argument.to_string(), because });
        }
        if map.is_some() && !self.is_shared() {
            let because = "memory of the device is seen as other elements through a layout without a swizzle";
            let because = because.to_string();
            return Err(Reason::Instruction { name: argument.to_string(), because });
        }
        // A layout with negative strides would begin before the tensor, because there is no offset
        // here.
        let steps = layout.leaves().iter().filter(|leaf| leaf.extent.known() != Some(1)).map(|leaf| &leaf.stride);
        if let Some(step) = steps.into_iter().find(|step| !Expr::from(-1).less(step).proved()) {
            return Err(Reason::Backwards { layout: argument.to_string(), step: step.to_string() });
        }
        if self.part.is_some() || self.place.start != Coordinate::zero() || !self.is_all()? {
            let because = "a part has no memory of its own: take the tensor that it is a part of".to_string();
            return Err(Reason::Instruction { name: self.text(), because });
        }
        // A swizzle permutes whole blocks, which must be inside the tensor.
        let reach = match map {
            Some(_) => elements_of(map, &layout, &offset)?,
            None => Stride::plus(&layout.cosize()?, &offset).ok_or_else(overflow)?,
        };
        let wanted = Stride::times(&reach, &Expr::from(i64::from(element.bytes()))).ok_or_else(overflow)?;
        let (given, name) = {
            let core = self.build.core();
            let buffer = &core.buffers[self.buffer.index()];
            let bytes = Expr::from(i64::from(buffer.element.bytes()));
            (Stride::times(&buffer.elements, &bytes).ok_or_else(overflow)?, buffer.name.clone())
        };
        let past = Stride::plus(&given, &Expr::from(1)).ok_or_else(overflow)?;
        if !wanted.less(&past).proved() {
            return Err(Reason::Outside {
                tensor: name,
                coordinate: wanted.to_string(),
                mode: 0,
                extent: given.to_string(),
            });
        }
        let whole = layout.shape();
        let place = tensor::whole(&whole)?;
        Ok(View {
            build: self.build,
            buffer: self.buffer,
            element,
            map,
            offset,
            layout,
            place,
            whole,
            ends: Vec::new(),
            rank: self.rank,
            cache: self.cache,
            part: None,
            recast: true,
        })
    }

    /// Whether the view has as many elements as the tensor.
    fn is_all(&self) -> Result<bool, Reason> {
        Ok(self.layout.size().same(&self.whole.product()?) == Truth::Proved)
    }

    /// The element with an index, of a view with one mode.
    ///
    /// Errors: the view has more modes.
    #[track_caller]
    pub fn at(&self, index: &Expr) -> Result<View<'k>, KernelError> {
        self.build.statement("at", || self.cut(&tensor::BySlice(&Tree::leaf(Slot::At(index.clone())))))
    }

    /// As [`View::load_predicated`], in threads in which a condition is true; in other threads,
    /// elements are 0.
    ///
    /// Errors: an extent is not known when the kernel is built.
    #[track_caller]
    pub fn load_where(&self, condition: Flag<'k>) -> Result<Fragment<'k>, KernelError> {
        self.loaded(Edge::Where(condition.register), "load_where")
    }

    /// As [`View::store_predicated`], in threads in which a condition is true.
    ///
    /// Errors: sizes or types differ; an element has no value.
    #[track_caller]
    pub fn store_where(&self, condition: Flag<'k>, fragment: &Fragment<'k>) -> Result<(), KernelError> {
        self.build.statement("store_where", || self.write_from(fragment, 128, Edge::Where(condition.register)))
    }
}

impl Build {
    /// Copies a part of a tensor into shared memory asynchronously (`cp.async`), in threads in
    /// which a condition is true; other threads write zeros. The part is 4, 8 or 16 bytes,
    /// contiguous in both memories. See [`Build::commit_async`].
    ///
    /// Errors: the part has another size, or is not aligned for every admissible size; types
    /// differ.
    #[track_caller]
    pub fn copy_async_where<'k>(
        &'k self,
        condition: Flag<'k>,
        from: &View<'k>,
        to: &View<'k>,
    ) -> Result<(), KernelError> {
        self.statement("copy_async_where", || {
            let bits = from.element.bits() * u32::try_from(from.count()?).unwrap_or(0);
            let width = match bits {
                32 | 64 | 128 => bits,
                _ => 128,
            };
            let atom = CopyAtom::named(&format!("SM80_CP_ASYNC_CACHEALWAYS<uint{width}_t>"))?;
            self.copy_async(&atom, (from, to), (width, false), None, Edge::Where(condition.register))
        })
    }

    /// Whether one index is less than another; None if it is proved to be less in all threads,
    /// blocks and iterations.
    ///
    /// Errors: an index has too many terms.
    #[track_caller]
    pub fn unless_less(&self, a: &Expr, b: &Expr) -> Result<Option<Flag<'_>>, KernelError> {
        self.instructed("unless_less", |core| match core.is_less(a, b) {
            true => Ok(None),
            false => Ok(Some(Flag { build: self, register: core.less(a, b)? })),
        })
    }

    /// The quotient of an index by a number, rounded down.
    ///
    /// Errors: the index may be negative or does not fit in 32 bits; it has too many terms.
    #[track_caller]
    pub fn quotient(&self, index: &Expr, divisor: i64) -> Result<Expr, KernelError> {
        self.statement("quotient", || self.core().rest(index, divisor))
    }

    /// The exclusive or of the columns whose bits are set in an index: column `i` belongs to bit
    /// `i`. Bits without a column are ignored.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    ///
    /// // The Gray code of the number of a thread.
    /// let kernel = Kernel::build("gray", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "32:1")?, k.output::<f32>("y", "32:1")?);
    ///     k.threads(32)?;
    ///     let thread = k.thread()?;
    ///     let at = k.over_bits(&thread, &[0b1, 0b11, 0b110, 0b1100, 0b11000])?;
    ///     y.at(&thread)?.store_predicated(&x.at(&at)?.load()?)
    /// });
    /// assert!(interpret::check(kernel.unwrap().program(), &[]).is_ok());
    /// ```
    ///
    /// Errors: the index may be negative; it or a column does not fit in 31 bits; the index has too
    /// many terms.
    #[track_caller]
    pub fn over_bits(&self, index: &Expr, columns: &[u64]) -> Result<Expr, KernelError> {
        self.statement("over_bits", || self.core().over_bits(index, columns))
    }

    /// The exclusive or of two indices.
    ///
    /// Errors: as [`Build::over_bits`].
    #[track_caller]
    pub fn exclusive_or(&self, a: &Expr, b: &Expr) -> Result<Expr, KernelError> {
        self.statement("exclusive_or", || self.core().exclusive_or(a, b))
    }

    /// Clamps an index to the range from 0 to `below - 1`. An access at the result is inside, and a
    /// condition may skip it.
    ///
    /// Errors: the index has too many terms.
    #[track_caller]
    pub fn clamped(&self, index: &Expr, below: i64) -> Result<Expr, KernelError> {
        let (mut core, location) = self.begin("clamped");
        let last = below.clamp(1, i64::from(i32::MAX)) - 1;
        if matches!(index.range(), (Some(0..), Some(greatest)) if greatest <= last) {
            return Ok(index.clone());
        }
        let (width, number) = if fits(index) { (Width::Bits32, Number::I32) } else { (Width::Bits64, Number::I64) };
        let at = core.lower(index, width).map_err(|refusal| refusal.at("clamped", location))?;
        let (least, most) = (core.constant(0, width), core.constant(last as u64, width));
        let at = core.pure(Operation::Binary(Binary::Maximum, number), [at, least], width);
        let at = core.pure(Operation::Binary(Binary::Minimum, number), [at, most], width);
        let at = match width {
            Width::Bits64 => core.pure_many(Operation::Unpack, [at], &[Width::Bits32; 2])[0],
            _ => at,
        };
        Ok(core.new_variable(at, last, None))
    }

    /// Selects one index if a condition is true, and another one otherwise. The bounds of the
    /// result cover both.
    ///
    /// ```
    /// use tilewright_kernel::{Kernel, interpret};
    /// use tilewright_layout::symbolic::Expr;
    ///
    /// // Negative elements are replaced by the first one. No access needs a predicate.
    /// let kernel = Kernel::build("replaced", |k| {
    ///     let (x, y) = (k.input::<f32>("x", "64:1")?, k.output::<f32>("y", "64:1")?);
    ///     k.threads(64)?;
    ///     let thread = k.thread()?;
    ///     let own = x.at(&thread)?.load()?.numbers()?[0];
    ///     let from = k.either(own.lt(own.like(0.0)), &Expr::from(0), &thread)?;
    ///     y.at(&thread)?.store(&x.at(&from)?.load()?)
    /// })?;
    /// let mut interpreter = interpret::Interpreter::new(kernel.program(), &[])?;
    /// let numbers: Vec<f32> = (0..64).map(|at| 4.0 - at as f32).collect();
    /// interpreter.tensor(0, &numbers)?;
    /// let run = interpreter.check()?.run;
    /// assert_eq!(run.tensor::<f32>(1)?[..7], [4.0, 3.0, 2.0, 1.0, 0.0, 4.0, 4.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Errors: an index may be negative, or does not fit in 32 bits, or has too many terms.
    #[track_caller]
    pub fn either(&self, condition: Flag<'_>, yes: &Expr, no: &Expr) -> Result<Expr, KernelError> {
        self.instructed("either", |core| {
            let mut greatest = 0;
            let mut registers = [condition.register; 3];
            for (register, index) in registers.iter_mut().skip(1).zip([yes, no]) {
                let (Some(0..), Some(most)) = index.range() else {
                    return Err(Reason::Open { what: "the range", layout: index.to_string() });
                };
                greatest = most.max(greatest);
                if greatest > i64::from(i32::MAX) {
                    let (asked, limit) = (greatest.unsigned_abs(), i32::MAX as u64);
                    return Err(Reason::TooMuch { what: "values of an index", asked, limit });
                }
                *register = core.lower(index, Width::Bits32)?;
            }
            let register = core.pure(Operation::Select, registers, Width::Bits32);
            Ok(core.new_variable(register, greatest, None))
        })
    }

    /// The lower 32 bits of two adjacent words, `low` first, shifted right by the lowest 5 bits of
    /// `bits` (`shf.r.wrap`): the word that begins `bits` bits into `low`.
    ///
    /// Errors: the words are not 32-bit numbers; the index has too many terms.
    #[track_caller]
    pub fn funnel_right<'k>(&'k self, low: Num<'k>, high: Num<'k>, bits: &Expr) -> Result<Num<'k>, KernelError> {
        self.instructed("funnel_right", |core| {
            if let Some(word) = [low, high].iter().find(|word| word.element().bits() != 32) {
                return Err(Reason::Elements { wanted: Element::U32, given: word.element() });
            }
            let inputs = [low.register(), high.register(), core.lower(bits, Width::Bits32)?];
            let register = core.pure(Operation::FunnelShiftRight, inputs, width_of(low.element()));
            Ok(Num::new(self, register, low.element()))
        })
    }

    /// The 32-bit number of another lane, given by the lane's index modulo 32. All lanes of the
    /// warp take part.
    ///
    /// Errors: the number does not have 32 bits; the index has too many terms.
    #[track_caller]
    pub fn shuffle_from<'k>(&'k self, value: Num<'k>, lane: &Expr) -> Result<Num<'k>, KernelError> {
        self.instructed("shuffle_from", |core| {
            if value.element().bits() != 32 {
                return Err(Reason::Elements { wanted: Element::U32, given: value.element() });
            }
            let inputs = [value.register(), core.lower(lane, Width::Bits32)?];
            let register = core.effect(Operation::Shuffle(Shuffle::Index), inputs, &[Width::Bits32], None)[0];
            Ok(Num::new(self, register, value.element()))
        })
    }
}
