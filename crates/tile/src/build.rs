//! The language in Rust.
//!
//! A program is a function that is called once, with a [`Build`]. Operators and methods of
//! [`Value`] cannot return an error, so the first refusal is kept with its line, and
//! [`Program::build`] returns it.

mod mask;
mod memory;
mod value;

use std::cell::{RefCell, RefMut};
use std::collections::HashSet;

use tilewright_kernel::program::Location;
use tilewright_kernel::{Element, ExtentArgument, IntoExtent, IntoLayout, LayoutArgument};
use tilewright_layout::Layout;
use tilewright_layout::symbolic::{Declarations, Expr};

pub use mask::Mask;
pub use value::Value;

use crate::error::{Reason, TileError};
use crate::program::{
    Count, Index, Loop, Operation, Program, Role, Scalar, Statement, Tensor, Type, ValueId, are_multiplied, here,
    infer, is_count, is_handed_on, is_stored, role_name,
};

/// A tensor of a program that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorId(pub(crate) usize);

/// A program that is being written. [`Program::build`] passes it to the function that writes the
/// program.
#[derive(Debug)]
pub struct Build {
    program: RefCell<Program>,
    /// The bodies that are open, the innermost last.
    bodies: RefCell<Vec<Vec<Statement>>>,
    complaint: RefCell<Option<TileError>>,
    /// The conditions that were written, each by its number.
    conditions: RefCell<Vec<mask::Condition>>,
    /// The values that were rounded to tf32.
    rounded: RefCell<HashSet<ValueId>>,
}

impl Program {
    /// Writes a program.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, Reduction};
    ///
    /// let softmax = Program::build("softmax", |t| {
    ///     let x = t.input(Element::Bf16, "x", "(M,1024):(1024,1)")?;
    ///     let y = t.output(Element::Bf16, "y", "(M,1024):(1024,1)")?;
    ///     t.grid(["ceil(M/4)"])?;
    ///     let at = [Index::block(Axis::X), 0.into()];
    ///     let a = t.load(x, &[4, 1024], &at).to(Element::F32);
    ///     let e = (a - a.reduce(Reduction::Maximum, &[1])).exp();
    ///     t.store(y, &at, (e / e.reduce(Reduction::Sum, &[1])).to(Element::Bf16));
    ///     Ok(())
    /// })?;
    /// assert!(softmax.to_string().contains("reduce_max"));
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: the first statement that is refused, with its line.
    pub fn build(name: &str, write: impl FnOnce(&Build) -> Result<(), TileError>) -> Result<Program, TileError> {
        let program = Program {
            name: name.to_string(),
            tensors: Vec::new(),
            scalars: Vec::new(),
            declared: Vec::new(),
            grid: Vec::new(),
            grid_place: None,
            warps: None,
            types: Vec::new(),
            body: Vec::new(),
            iterations: 0,
        };
        let build = Build {
            program: RefCell::new(program),
            bodies: RefCell::new(vec![Vec::new()]),
            complaint: RefCell::new(None),
            conditions: RefCell::default(),
            rounded: RefCell::default(),
        };
        write(&build)?;
        build.finish()
    }
}

impl Build {
    fn finish(self) -> Result<Program, TileError> {
        if let Some(complaint) = self.complaint.into_inner() {
            return Err(complaint);
        }
        let mut program = self.program.into_inner();
        program.body = self.bodies.into_inner().pop().unwrap_or_default();
        Ok(program)
    }

    fn program(&self) -> RefMut<'_, Program> {
        self.program.borrow_mut()
    }

    pub(crate) fn complain(&self, error: TileError) {
        self.complaint.borrow_mut().get_or_insert(error);
    }

    /// The first refusal so far, as an error.
    pub(crate) fn complaint(&self) -> Result<(), TileError> {
        self.complaint.borrow().clone().map_or(Ok(()), Err)
    }

    fn push(&self, statement: Statement) {
        if let Some(body) = self.bodies.borrow_mut().last_mut() {
            body.push(statement);
        }
    }

    /// Adds an operation, and returns its result. After a refusal, the result is a placeholder.
    pub(crate) fn apply(
        &self,
        statement: &'static str,
        operation: Operation,
        operands: &[ValueId],
        place: Location,
    ) -> Value<'_> {
        let mut program = self.program();
        if let Some(foreign) = operands.iter().find(|value| value.index() >= program.types.len()) {
            let name = format!("{foreign:?}");
            drop(program);
            self.complain(Reason::Unknown { what: "value of this program", name }.at(statement, place));
            return Value { build: self, id: self.program().value(Type { shape: Vec::new(), element: Element::F32 }) };
        }
        let types: Vec<Type> = operands.iter().map(|value| program.type_of(*value).clone()).collect();
        let types: Vec<&Type> = types.iter().collect();
        let inferred = are_multiplied(&operation, operands, &types, &self.rounded.borrow())
            .and_then(|()| infer(&operation, &types, program.source(&operation)));
        let ty = match inferred {
            Ok(ty) => ty,
            Err(reason) => {
                drop(program);
                self.complain(reason.at(statement, place));
                let ty = types.first().map(|own| (*own).clone());
                let ty = ty.unwrap_or(Type { shape: Vec::new(), element: Element::F32 });
                return Value { build: self, id: self.program().value(ty) };
            }
        };
        let result = program.value(ty);
        drop(program);
        let is_tf32 = operation.is_tf32(operands, &self.rounded.borrow());
        if is_tf32 {
            self.rounded.borrow_mut().insert(result);
        }
        self.push(Statement::Let { result, operation, operands: operands.to_vec(), place });
        Value { build: self, id: result }
    }

    fn declare(
        &self,
        element: Element,
        (name, layout): (&str, LayoutArgument),
        role: Role,
        place: Location,
    ) -> Result<TensorId, Reason> {
        is_stored(element)?;
        let layout = layout.to_string();
        let refused = |error| Reason::Expression { what: "a layout", text: layout.clone(), error };
        let read: Layout<Expr> = layout.parse().map_err(refused)?;
        // A fact about a size holds for all tensors that name it.
        let mut names = Declarations::new();
        self.program().tensors.iter().try_for_each(|tensor| names.gather(&tensor.layout))?;
        names.gather(&layout)?;
        let modes = if read.profile().is_leaf() { 1 } else { read.rank() };
        if modes > crate::program::MAX_RANK {
            let (asked, limit) = (modes as i64, crate::program::MAX_RANK as i64);
            return Err(Reason::TooMuch { what: format!("modes of {name}"), asked, limit });
        }
        let mut program = self.program();
        let is_number = program.scalars.iter().any(|own| own.name == name);
        if is_number || program.tensors.iter().any(|tensor| tensor.name == name) {
            return Err(Reason::Role { tensor: name.to_string(), tried: "declared again" });
        }
        program.tensors.push(Tensor { name: name.to_string(), element, layout, role });
        program.declared.push((place, modes));
        Ok(TensorId(program.tensors.len() - 1))
    }

    /// Declares a tensor at a place in the source.
    pub(crate) fn declared(
        &self,
        element: Element,
        (name, layout): (&str, impl IntoLayout),
        role: Role,
        place: Location,
    ) -> Result<TensorId, TileError> {
        let layout = layout.into_layout().map_err(Reason::from);
        let declare = |layout| self.declare(element, (name, layout), role, place);
        layout.and_then(declare).map_err(|reason| reason.at(role_name(role), place))
    }

    /// Declares an input, which the program reads: the type of its elements, its name, and its
    /// layout. The layout is a value, or text in which sizes known at launch have names:
    /// `(M,1024):(1024,1)`.
    ///
    /// Errors: the layout cannot be read, or has more than [`crate::MAX_RANK`] modes; tensors
    /// cannot have elements of this type; another tensor has this name.
    #[track_caller]
    pub fn input(&self, element: Element, name: &str, layout: impl IntoLayout) -> Result<TensorId, TileError> {
        self.declared(element, (name, layout), Role::Input, here())
    }

    /// Declares an output, which the program writes.
    ///
    /// Errors: as [`Build::input`].
    #[track_caller]
    pub fn output(&self, element: Element, name: &str, layout: impl IntoLayout) -> Result<TensorId, TileError> {
        self.declared(element, (name, layout), Role::Output, here())
    }

    /// Declares a tensor that the program reads and writes. Use it if the contents before the
    /// launch count: if tiles are combined with them ([`Build::atomic`]), if some rows stay as they
    /// are ([`Build::scatter`]), or if the program loads from the tensor. An element must be loaded
    /// before it is stored to, and only by the block that stores to it.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, interpret};
    ///
    /// let twice = Program::build("twice", |t| {
    ///     let x = t.inout(Element::F32, "x", "N:1")?;
    ///     t.grid(["ceil(N/4)"])?;
    ///     let at = [Index::block(Axis::X)];
    ///     t.store(x, &at, t.load(x, &[4], &at) * t.number(2.0));
    ///     Ok(())
    /// })?;
    /// let outputs = interpret::run(&twice, &[("N", 2)], &[("x", vec![1.0, 2.0])])?;
    /// assert_eq!(outputs[0].1, [Some(2.0), Some(4.0)]);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: as [`Build::input`].
    #[track_caller]
    pub fn inout(&self, element: Element, name: &str, layout: impl IntoLayout) -> Result<TensorId, TileError> {
        self.declared(element, (name, layout), Role::Both, here())
    }

    /// Declares a scalar argument of the launch, of type f32, i32, f64 or i64: a factor, a seed, or
    /// a count. All blocks receive it. In the program it is a tile of one number.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, interpret};
    ///
    /// let scaled = Program::build("scaled", |t| {
    ///     let x = t.input(Element::F32, "x", "N:1")?;
    ///     let y = t.output(Element::F32, "y", "N:1")?;
    ///     let [scale, n] = [t.scalar(Element::F32, "scale")?, t.scalar(Element::I32, "n")?];
    ///     t.grid(["ceil(N/64)"])?;
    ///     let at = [Index::block(Axis::X)];
    ///     let place = t.index(Index::block(Axis::X) * 64) + t.arange(&[64], 0);
    ///     let own = t.load(x, &[64], &at) * scale;
    ///     t.store(y, &at, place.lt(n).select(own, t.number(0.0)));
    ///     Ok(())
    /// })?;
    /// assert!(scaled.to_string().contains("scalar scale: f32"));
    /// let given = [("x", vec![1.0, 2.0, 3.0]), ("scale", vec![0.5]), ("n", vec![2.0])];
    /// assert_eq!(interpret::run(&scaled, &[("N", 3)], &given)?[0].1, [Some(0.5), Some(1.0), Some(0.0)]);
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: the type is another one; a scalar or a tensor already has this name.
    #[track_caller]
    pub fn scalar(&self, element: Element, name: &str) -> Result<Value<'_>, TileError> {
        let place = here();
        self.takes(element, name, place)?;
        Ok(self.passed(name, place))
    }

    /// Declares a scalar argument of the launch, and returns its index.
    pub(crate) fn takes(&self, element: Element, name: &str, place: Location) -> Result<usize, TileError> {
        let mut program = self.program();
        let refused = |reason: Reason| Err(reason.at("scalar", place));
        if !matches!(element, Element::F32 | Element::I32 | Element::F64 | Element::I64) {
            let operation = "a number of the launch".to_string();
            return refused(Reason::Element { operation, element, wanted: "f32, i32, f64 or i64" });
        }
        let is_tensor = program.tensors.iter().any(|own| own.name == name);
        if is_tensor || program.scalars.iter().any(|own| own.name == name) {
            return refused(Reason::Role { tensor: name.to_string(), tried: "declared again" });
        }
        program.scalars.push(Scalar { name: name.to_string(), element });
        Ok(program.scalars.len() - 1)
    }

    /// The value of a scalar argument of the launch.
    pub(crate) fn passed(&self, name: &str, place: Location) -> Value<'_> {
        let known = self.program().scalars.iter().find(|own| own.name == name).cloned();
        match known {
            Some(own) => self.apply("scalar", Operation::Scalar(own.name, own.element), &[], place),
            None => {
                self.complain(
                    Reason::Unknown { what: "number of the launch", name: name.to_string() }.at("scalar", place),
                );
                self.apply("scalar", Operation::Constant(Element::F32, 0.0), &[], place)
            }
        }
    }

    /// The index of the scalar argument with this name; None if there is none.
    pub(crate) fn is_passed(&self, name: &str) -> Option<usize> {
        self.program().scalars.iter().position(|own| own.name == name)
    }

    /// Sets the number of blocks along x, y and z. A count is a number, or an expression of sizes
    /// such as `ceil(M/16)`. An axis that is not given has 1 block.
    ///
    /// Errors: more than three counts; a text that is no expression; a count that is always 0 or
    /// less.
    #[track_caller]
    pub fn grid<E: IntoExtent>(&self, counts: impl IntoIterator<Item = E>) -> Result<(), TileError> {
        let counts = counts.into_iter().map(|count| match count.into_extent() {
            ExtentArgument::Known(count) => count.to_string(),
            ExtentArgument::Computed(count) => count.to_string(),
            ExtentArgument::Text(text) => text,
        });
        self.blocks(counts.collect(), here())
    }

    pub(crate) fn blocks(&self, counts: Vec<String>, place: Location) -> Result<(), TileError> {
        if counts.len() > 3 {
            let (asked, limit) = (counts.len() as i64, 3);
            return Err(Reason::TooMuch { what: "axes of a grid".to_string(), asked, limit }.at("grid", place));
        }
        for count in &counts {
            let text = count.clone();
            let refused = |error| Reason::Expression { what: "a number of blocks", text, error }.at("grid", place);
            let blocks = count.parse::<Expr>().map_err(refused)?;
            if matches!(blocks.range(), (_, Some(..=0))) {
                return Err(Reason::Blocks { count: count.clone() }.at("grid", place));
            }
        }
        let mut program = self.program();
        program.grid = counts;
        program.grid_place = Some(place);
        Ok(())
    }

    /// Sets the number of warps of a block. Without it, the compiler chooses the number.
    ///
    /// Errors: it is no power of two from 1 to 32.
    #[track_caller]
    pub fn warps(&self, warps: u32) -> Result<(), TileError> {
        self.has_warps(warps.into(), here())
    }

    pub(crate) fn has_warps(&self, warps: i64, place: Location) -> Result<(), TileError> {
        let known = u32::try_from(warps).ok().filter(|warps| warps.is_power_of_two() && *warps <= 32);
        let refused = || Reason::Warps { asked: warps }.at("warps", place);
        self.program().warps = Some(known.ok_or_else(refused)?);
        Ok(())
    }

    /// For each counter `c`, 32 random bits: word number `word`, 0 to 3, of the four words that
    /// Philox4x32-10 computes from the counter `(c,0,0,0)` and the key `(seed,0)`. The bits are the
    /// same on the host and on the device.
    ///
    /// ```
    /// use tilewright_tile::{Element, Program, interpret};
    ///
    /// let noise = Program::build("noise", |t| {
    ///     let y = t.output(Element::I32, "y", "2:1")?;
    ///     t.store(y, &[0.into()], t.random(t.arange(&[2], 0), t.integer(0), 0));
    ///     Ok(())
    /// })?;
    /// let outputs = interpret::run(&noise, &[], &[])?;
    /// // The first of the published vectors of the generator.
    /// assert_eq!(outputs[0].1[0], Some(f64::from(0x6627_e8d5_u32 as i32)));
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[track_caller]
    pub fn random<'t>(&'t self, counters: Value<'t>, seed: Value<'t>, word: u8) -> Value<'t> {
        let place = here();
        let both = Value::together([counters, seed], "random", place);
        self.apply("random", Operation::Random(word), &both.map(|value| value.id), place)
    }

    /// A number of f32.
    #[track_caller]
    pub fn number(&self, value: f64) -> Value<'_> {
        self.apply("number", Operation::Constant(Element::F32, value), &[], here())
    }

    /// A number of i32.
    #[track_caller]
    pub fn integer(&self, value: i32) -> Value<'_> {
        self.apply("integer", Operation::Constant(Element::I32, value.into()), &[], here())
    }

    /// An index as a number of i32.
    #[track_caller]
    pub fn index(&self, index: Index) -> Value<'_> {
        self.apply("index", Operation::Number(index.number()), &[], here())
    }

    /// An expression of sizes as a number of i32: `size("S")` is the size S.
    #[track_caller]
    pub fn size(&self, text: &str) -> Value<'_> {
        self.apply("size", Operation::Size(text.to_string()), &[], here())
    }

    /// The coordinate of each element of a tile along a mode, as i32.
    #[track_caller]
    pub fn arange(&self, shape: &[i64], mode: usize) -> Value<'_> {
        self.apply("arange", Operation::Arange { shape: shape.to_vec(), mode }, &[], here())
    }

    /// A tile of one number.
    #[track_caller]
    pub fn full(&self, shape: &[i64], value: f64) -> Value<'_> {
        let place = here();
        let number = self.apply("full", Operation::Constant(Element::F32, value), &[], place);
        self.apply("full", Operation::Broadcast(shape.to_vec()), &[number.id], place)
    }

    /// Adds a loop. The body gets the index of the iteration and the loop-carried values, and
    /// returns the values for the next iteration, which have the same types. `range` returns the
    /// values after the last iteration.
    ///
    /// ```
    /// use tilewright_tile::{Element, Program};
    ///
    /// // The sum of the parts of a row, one after another.
    /// let sums = Program::build("sums", |t| {
    ///     let x = t.input(Element::F32, "x", "(1,K):(K,1)")?;
    ///     let y = t.output(Element::F32, "y", "(1,64):(64,1)")?;
    ///     let zero = t.full(&[1, 64], 0.0);
    ///     let sum = t.range("ceil(K/64)", &[zero], |iteration, carried| {
    ///         Ok(vec![carried[0] + t.load(x, &[1, 64], &[0.into(), iteration])])
    ///     })?;
    ///     t.store(y, &[0.into(), 0.into()], sum[0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Errors: those of the body; the body returns values of other types, or another number of
    /// values.
    #[track_caller]
    pub fn range<'t>(
        &'t self,
        count: impl Into<Count>,
        initial: &[Value<'t>],
        body: impl FnOnce(Index, &[Value<'t>]) -> Result<Vec<Value<'t>>, TileError>,
    ) -> Result<Vec<Value<'t>>, TileError> {
        let place = here();
        let iteration = self.begin_loop();
        let initial: Vec<ValueId> = initial.iter().map(|value| value.id).collect();
        let parameters = self.alike(&initial);
        let own: Vec<Value<'t>> = parameters.iter().map(|id| Value { build: self, id: *id }).collect();
        let next = body(Index::iteration(iteration), &own)?;
        let next: Vec<ValueId> = next.into_iter().map(|value| value.id).collect();
        let results = self.end_loop(iteration, count.into(), initial, parameters, next, place)?;
        Ok(results.into_iter().map(|id| Value { build: self, id }).collect())
    }

    /// Placeholders of the types of some values. Values of another program get placeholders of some
    /// type; the statement that uses them is refused.
    pub(crate) fn alike(&self, values: &[ValueId]) -> Vec<ValueId> {
        let mut program = self.program();
        let number = Type { shape: Vec::new(), element: Element::F32 };
        let of = |value: &ValueId| program.types.get(value.index()).unwrap_or(&number).clone();
        let types: Vec<Type> = values.iter().map(of).collect();
        types.into_iter().map(|ty| program.value(ty)).collect()
    }

    pub(crate) fn begin_loop(&self) -> u32 {
        self.bodies.borrow_mut().push(Vec::new());
        let mut program = self.program();
        program.iterations += 1;
        program.iterations - 1
    }

    pub(crate) fn end_loop(
        &self,
        iteration: u32,
        count: Count,
        initial: Vec<ValueId>,
        parameters: Vec<ValueId>,
        next: Vec<ValueId>,
        place: Location,
    ) -> Result<Vec<ValueId>, TileError> {
        self.complaint()?;
        let refuse = |reason: Reason| reason.at("loop", place);
        if next.len() != parameters.len() {
            return Err(refuse(Reason::Iterations { begins: parameters.len(), hands_on: next.len() }));
        }
        let unknown = |name: &str| Reason::Unknown { what: "value of this program", name: name.to_string() };
        for (number, (begins, hands_on)) in parameters.iter().zip(&next).enumerate() {
            let program = self.program();
            let hands_on = program.types.get(hands_on.index()).ok_or_else(|| unknown("the loop-carried value"));
            is_handed_on(number, program.type_of(*begins), hands_on.map_err(refuse)?).map_err(refuse)?;
        }
        match &count {
            Count::Sizes(text) => {
                text.parse::<Expr>().map_err(|error| refuse(error.into()))?;
            }
            Count::Index(_) => {}
            Count::Value(value) => {
                let program = self.program();
                let count = program.types.get(value.index()).ok_or_else(|| unknown("the count"));
                is_count(count.map_err(refuse)?).map_err(refuse)?;
            }
        }
        let body = self.bodies.borrow_mut().pop().unwrap_or_default();
        let results = self.alike(&initial);
        let own = Loop { iteration, count, initial, parameters, body, next, results: results.clone(), place };
        self.push(Statement::Loop(own));
        Ok(results)
    }

    pub(crate) fn type_of(&self, value: ValueId) -> Type {
        self.program().type_of(value).clone()
    }

    pub(crate) fn tensor_named(&self, name: &str) -> Option<TensorId> {
        self.program().tensors.iter().position(|tensor| tensor.name == name).map(TensorId)
    }
}
