//! The semantics of tile programs: an interpreter.
//!
//! Law: blocks are executed one after another, and statements in their order. A tile is a list of
//! numbers, first mode fastest. Each operation is computed in f64 and rounded to the type of its
//! result; integers are computed exactly, and wrap. An element of a tensor that is both read and
//! written is loaded before it is stored to, and only by the block that stores to it: otherwise the
//! result would depend on the order of threads. Sums of reductions and of `dot` are added in the
//! order of the elements, each rounded: if a program leaves an order unspecified, this is one of
//! the allowed orders.

pub(crate) mod coordinates;
mod number;
mod tile;

use std::collections::HashMap;

use tilewright_kernel::Element;
use tilewright_layout::Layout;
use tilewright_layout::symbolic::{Expr, Symbolic, Values};

pub(crate) use self::number::Number;
use crate::error::{Reason, TileError};
use crate::program::{
    Axis, Comparison, Count, Counter, Index, Name, Operation, Program, Reduction, Role, Statement, Type, ValueId,
};
use crate::sums::{Sum, SumTerm, Sums};

/// The most elements that a run may compute.
pub const MAX_WORK: u64 = 1 << 32;

/// The most elements of a tensor in a run.
pub const MAX_MEMORY: i64 = 1 << 28;

/// The tensors after a run, by their names: the value of each element. None for elements of outputs
/// that were never written, and for gaps between elements.
pub type TensorValues = Vec<(String, Vec<Option<f64>>)>;

/// The tensors after a run of [`run_bits`], by their names: the bits of each element in memory.
/// None for elements of outputs that were never written, and for gaps between elements.
pub type TensorBits = Vec<(String, Vec<Option<u64>>)>;

/// The tensors after a run, in the interpreter's number type.
pub(crate) type TensorNumbers = Vec<(String, Vec<Option<Number>>)>;

/// The memory of a tensor at given sizes.
pub(crate) struct TensorMemory {
    /// From indices, first mode fastest, to offsets.
    pub(crate) layout: Layout,
    /// The extents of its modes.
    pub(crate) extents: Vec<i64>,
}

impl TensorMemory {
    /// The memory of a tensor of a program at given sizes.
    pub(crate) fn new(text: &str, values: &Values) -> Result<TensorMemory, Reason> {
        let layout: Layout<Expr> = text.parse()?;
        let layout = layout.numbers(values)?;
        if layout.range()?.0 < 0 {
            return Err(Reason::Argument { what: format!("{text} reaches back before its first element") });
        }
        let shape = layout.shape();
        let extents = match shape.is_leaf() {
            true => vec![shape.product()?],
            false => shape.modes().map(|mode| mode.product()).collect::<Result<_, _>>()?,
        };
        Ok(TensorMemory { layout, extents })
    }

    /// The offset of the element at a coordinate; None past an edge.
    pub(crate) fn offset(&self, at: &[i64]) -> Result<Option<i64>, Reason> {
        let (mut index, mut below) = (0, 1);
        for (at, extent) in at.iter().zip(&self.extents) {
            if !(0..*extent).contains(at) {
                return Ok(None);
            }
            index += at * below;
            below *= extent;
        }
        Ok(Some(self.layout.eval(&index)?))
    }
}

/// Sizes in the form that the layout algebra evaluates.
pub(crate) fn values_of(sizes: &[(&str, i64)]) -> Values {
    let mut values = Values::new();
    for (name, value) in sizes {
        values.set_named(name, *value);
    }
    values
}

/// The value of an expression of sizes.
pub(crate) fn number_of(text: &str, values: &Values) -> Result<i64, Reason> {
    let count: Expr = text.parse()?;
    Ok(count.numbers(values)?)
}

/// Runs a program at given sizes with the given inputs, and returns its outputs.
///
/// ```
/// use tilewright_tile::{Program, interpret};
///
/// let twice: Program = "
/// tile twice {
///     input x: f32 N:1
///     output y: f32 N:1
///     grid ceil(N/4)
///     store(y, (block.x), load(x, (4), (block.x)) * 2)
/// }"
/// .parse()?;
/// let outputs = interpret::run(&twice, &[("N", 3)], &[("x", vec![1.0, 2.0, 3.0])])?;
/// assert_eq!(outputs[0].1, [Some(2.0), Some(4.0), Some(6.0)]);
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
///
/// `inputs` also holds the initial contents of tensors that are both read and written, and each
/// scalar argument as a list of one number.
///
/// Errors: a size or an input is missing; an input has another number of elements than its layout
/// has offsets; an element is written twice; the run would compute more than [`MAX_WORK`] elements;
/// a tensor has more than [`MAX_MEMORY`] elements; a number of i64, given or written, is not below
/// 2^53 in magnitude, up to which f64 represents all integers ([`run_bits`] accepts them).
pub fn run(program: &Program, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> Result<TensorValues, TileError> {
    values(program, run_numbers(program, sizes, &numbers(program, inputs)?)?)
}

/// As [`run`], with the bits of each element as in memory. Scalar arguments are bits, too.
///
/// ```
/// use tilewright_tile::{Program, interpret};
///
/// let next: Program = "
/// tile next {
///     input x: i64 N:1
///     output y: i64 N:1
///     grid ceil(N/4)
///     store(y, (block.x), load(x, (4), (block.x)) + 1)
/// }"
/// .parse()?;
/// // One more than f64 holds.
/// let outputs = interpret::run_bits(&next, &[("N", 1)], &[("x", vec![1 << 53])])?;
/// assert_eq!(outputs[0].1, [Some((1 << 53) + 1)]);
/// # Ok::<(), tilewright_tile::TileError>(())
/// ```
///
/// Errors: as [`run`], but numbers of i64 have no bound.
pub fn run_bits(
    program: &Program,
    sizes: &[(&str, i64)],
    inputs: &[(&str, Vec<u64>)],
) -> Result<TensorBits, TileError> {
    let of_bits = |(name, bits): &(&str, Vec<u64>)| {
        let element = element_of(program, name);
        (name.to_string(), bits.iter().map(|bits| Number::of_bits(*bits, element)).collect())
    };
    let inputs: Vec<(String, Vec<Number>)> = inputs.iter().map(of_bits).collect();
    let outputs = run_numbers(program, sizes, &inputs)?;
    let to_bits = |(name, own): (String, Vec<Option<Number>>)| {
        let element = element_of(program, &name);
        (name, own.into_iter().map(|own| own.map(|own| own.to_bits(element))).collect())
    };
    Ok(outputs.into_iter().map(to_bits).collect())
}

/// The type of the elements of a tensor, or of a scalar argument.
pub(crate) fn element_of(program: &Program, name: &str) -> Element {
    let tensor = program.tensors.iter().find(|own| own.name == name).map(|own| own.element);
    let scalar = || program.scalars.iter().find(|own| own.name == name).map(|own| own.element);
    tensor.or_else(scalar).unwrap_or(Element::F64)
}

fn no_number(name: &str, value: impl std::fmt::Display) -> Reason {
    Reason::Argument { what: format!("`{name}` has {value}, which is no whole number below 2^53 in magnitude") }
}

/// Converts the contents of inputs to the interpreter's number type.
pub(crate) fn numbers(program: &Program, inputs: &[(&str, Vec<f64>)]) -> Result<Vec<(String, Vec<Number>)>, TileError> {
    let one = |(name, values): &(&str, Vec<f64>)| {
        let element = element_of(program, name);
        let number = |value: &f64| Number::exact(*value, element).ok_or_else(|| no_number(name, value));
        Ok((name.to_string(), values.iter().map(number).collect::<Result<_, Reason>>()?))
    };
    inputs.iter().map(one).collect()
}

/// Converts the contents of outputs to f64.
pub(crate) fn values(program: &Program, outputs: TensorNumbers) -> Result<TensorValues, TileError> {
    let one = |(name, own): (String, Vec<Option<Number>>)| {
        let element = element_of(program, &name);
        let value = |own: Number| own.value(element).ok_or_else(|| no_number(&name, own.integer(element)));
        let values = own.into_iter().map(|own| own.map(value).transpose()).collect::<Result<_, Reason>>()?;
        Ok((name, values))
    };
    outputs.into_iter().map(one).collect()
}

/// As [`run`], in the interpreter's number type.
pub(crate) fn run_numbers(
    program: &Program,
    sizes: &[(&str, i64)],
    inputs: &[(String, Vec<Number>)],
) -> Result<TensorNumbers, TileError> {
    let values = values_of(sizes);
    let argument = |what: String| TileError::from(Reason::Argument { what });
    let mut memories = Vec::new();
    let mut contents: Vec<Vec<Option<Number>>> = Vec::new();
    let mut written: Vec<Vec<Option<Option<Reduction>>>> = Vec::new();
    let mut loaded: Vec<Vec<Option<[i64; 3]>>> = Vec::new();
    for tensor in &program.tensors {
        let memory = TensorMemory::new(&tensor.layout, &values)?;
        let count = memory.layout.cosize().map_err(Reason::from)?;
        if count > MAX_MEMORY {
            let what = format!("elements of `{}`", tensor.name);
            return Err(Reason::TooMuch { what, asked: count, limit: MAX_MEMORY }.into());
        }
        memories.push(memory);
        written.push(vec![None; if tensor.role == Role::Input { 0 } else { count as usize }]);
        loaded.push(vec![None; if tensor.role == Role::Both { count as usize } else { 0 }]);
        if tensor.role == Role::Output {
            contents.push(vec![None; count as usize]);
            continue;
        }
        let given = inputs.iter().find(|(name, _)| *name == tensor.name);
        let (_, given) = given.ok_or_else(|| argument(format!("`{}` has no contents", tensor.name)))?;
        if given.len() as i64 != count {
            let (name, given) = (&tensor.name, given.len());
            return Err(argument(format!("`{name}` has {count} elements, and {given} are given")));
        }
        contents.push(given.iter().map(|value| Some(*value)).collect());
    }
    let mut numbers = HashMap::new();
    for scalar in &program.scalars {
        let given = inputs.iter().find(|(name, _)| *name == scalar.name);
        let (name, given) = given.ok_or_else(|| argument(format!("the number `{}` is not given", scalar.name)))?;
        let [value] = given.as_slice() else {
            return Err(argument(format!("`{name}` is one number, and {} are given", given.len())));
        };
        numbers.insert(scalar.name.clone(), *value);
    }
    let mut blocks = [1; 3];
    for (count, text) in blocks.iter_mut().zip(&program.grid) {
        *count = number_of(text, &values)?;
    }
    let (iterations, block) = (HashMap::new(), [0; 3]);
    let sums = Sums::new(program);
    let mut run =
        Run { program, sums, values, numbers, memories, contents, written, loaded, iterations, block, work: 0 };
    for z in 0..blocks[2] {
        for y in 0..blocks[1] {
            for x in 0..blocks[0] {
                run.block = [x, y, z];
                run.works(1)?;
                run.body(&program.body, &mut HashMap::new())?;
            }
        }
    }
    let outputs = program.tensors.iter().zip(run.contents).filter(|(tensor, _)| tensor.role != Role::Input);
    Ok(outputs.map(|(tensor, contents)| (tensor.name.clone(), contents)).collect())
}

/// An index or a size as a number of i32; an error if it does not fit.
fn fitting(value: i64, of: impl Fn() -> String) -> Result<Number, Reason> {
    let refused = || Reason::Argument { what: format!("{} is {value}, more than 32 bits hold", of()) };
    i32::try_from(value).map(|value| Number::real(value.into())).map_err(|_| refused())
}

/// A tile of coordinates along a mode.
struct Coordinates<'t> {
    mode: usize,
    ty: &'t Type,
    tile: &'t [Number],
}

impl Coordinates<'_> {
    /// The coordinate of an element along the mode.
    fn of(&self, at: &[i64]) -> i64 {
        let own: Vec<i64> = at.iter().zip(&self.ty.shape).map(|(at, extent)| (*at).min(extent - 1)).collect();
        self.tile.get(tile::index(&self.ty.shape, &own)).map_or(-1, |row| row.integer(self.ty.element))
    }
}

/// The computed tiles, by value.
type Tiles = HashMap<ValueId, Vec<Number>>;

struct Run<'p> {
    program: &'p Program,
    sums: Sums<'p>,
    values: Values,
    /// The scalar arguments of the launch.
    numbers: HashMap<String, Number>,
    memories: Vec<TensorMemory>,
    contents: Vec<Vec<Option<Number>>>,
    /// The state of each element of each tensor: not written, written, or combined by a reduction.
    written: Vec<Vec<Option<Option<Reduction>>>>,
    /// The block that loaded each element of a tensor that is both read and written.
    loaded: Vec<Vec<Option<[i64; 3]>>>,
    iterations: HashMap<u32, i64>,
    block: [i64; 3],
    work: u64,
}

impl Run<'_> {
    fn name(&self, name: Name) -> i64 {
        name.of(match name.counter() {
            Counter::Block(axis) => self.block[Axis::ALL.iter().position(|own| *own == axis).unwrap_or(0)],
            Counter::Iteration(number) => self.iterations.get(&number).copied().unwrap_or(0),
        })
    }

    fn index(&self, index: &Index) -> Result<i64, Reason> {
        index.value(|name| self.name(name)).ok_or(Reason::Argument { what: format!("{index} does not fit") })
    }

    fn works(&mut self, elements: i64) -> Result<(), Reason> {
        self.work += elements.unsigned_abs().max(1);
        match self.work > MAX_WORK {
            true => Err(Reason::TooMuch {
                what: "elements to compute".to_string(),
                asked: self.work as i64,
                limit: MAX_WORK as i64,
            }),
            false => Ok(()),
        }
    }

    fn body(&mut self, body: &[Statement], tiles: &mut Tiles) -> Result<(), TileError> {
        for statement in body {
            match statement {
                Statement::Let { result, operation, operands, place } => {
                    let tile = self.evaluate(*result, operation, operands, tiles);
                    tiles.insert(*result, tile.map_err(|reason| reason.at("value", *place))?);
                }
                Statement::Store { place, .. } => {
                    self.store(statement, tiles).map_err(|reason| reason.at("store", *place))?;
                }
                Statement::Loop(own) => {
                    let count = match &own.count {
                        Count::Sizes(text) => number_of(text, &self.values),
                        Count::Index(index) => self.index(index),
                        Count::Value(value) => Ok(tiles
                            .get(value)
                            .and_then(|tile| tile.first())
                            .map_or(0, |count| count.integer(self.program.type_of(*value).element))),
                    };
                    let count = count.map_err(|reason| reason.at("loop", own.place))?;
                    let take = |tiles: &Tiles, from: &[ValueId]| -> Vec<Vec<Number>> {
                        from.iter().map(|value| tiles.get(value).cloned().unwrap_or_default()).collect()
                    };
                    let mut carried = take(tiles, &own.initial);
                    for iteration in 0..count {
                        self.iterations.insert(own.iteration, iteration);
                        self.works(1)?;
                        tiles.extend(own.parameters.iter().copied().zip(carried));
                        self.body(&own.body, tiles)?;
                        carried = take(tiles, &own.next);
                    }
                    tiles.extend(own.results.iter().copied().zip(carried));
                }
            }
        }
        Ok(())
    }

    /// Computes the elements of an operation's result.
    fn evaluate(
        &mut self,
        result: ValueId,
        operation: &Operation,
        operands: &[ValueId],
        tiles: &Tiles,
    ) -> Result<Vec<Number>, Reason> {
        let ty = self.program.type_of(result);
        let depth = match (operation, operands.first()) {
            (Operation::Dot, Some(a)) => self.program.type_of(*a).shape[1],
            _ => 1,
        };
        self.works(ty.size() * depth)?;
        if let Operation::Number(index) = operation {
            return Ok(vec![fitting(self.index(index)?, || index.to_string())?]);
        }
        if let Operation::Size(text) = operation {
            return Ok(vec![fitting(number_of(text, &self.values)?, || text.clone())?]);
        }
        if let Operation::Scalar(name, _) = operation {
            return Ok(vec![self.numbers.get(name).copied().unwrap_or(Number::real(f64::NAN))]);
        }
        let none = Vec::new();
        let loaded = match operation {
            Operation::Load { tensor, shape, at, other } => Some((tensor, shape, at, &none, other)),
            Operation::Gather { tensor, shape, at, modes, other } => Some((tensor, shape, at, modes, other)),
            _ => None,
        };
        if let Some((tensor, shape, at, modes, other)) = loaded {
            let other = Number::of(*other, ty.element);
            let rows = modes.iter().zip(operands).map(|(mode, rows)| self.coordinates(*mode, *rows, tiles));
            let offsets = self.offsets(*tensor, shape, at, &rows.collect::<Vec<_>>())?;
            self.load(*tensor, &offsets)?;
            let contents = &self.contents[*tensor];
            let element =
                |at: Option<i64>| at.map_or(other, |at| contents[at as usize].unwrap_or(Number::real(f64::NAN)));
            return Ok(offsets.into_iter().map(element).collect());
        }
        if let Operation::Stage { tensor, shape, at, modes, picked } = operation {
            let place = picked.and_then(|mode| Some(self.coordinates(mode, *operands.first()?, tiles)));
            let offsets = self.offsets(*tensor, shape, at, place.as_slice())?;
            let contents = &self.contents[*tensor];
            let element = |index: i64| {
                let mut place = vec![0; shape.len()];
                (place[modes[0]], place[modes[1]]) = (index % ty.shape[0], index / ty.shape[0]);
                offsets[tile::index(shape, &place)]
                    .map_or(Number::real(0.0), |at| contents[at as usize].unwrap_or(Number::real(f64::NAN)))
            };
            return Ok((0..ty.size()).map(element).collect());
        }
        if let Operation::Select(Comparison::Less | Comparison::LessEqual) = operation {
            self.are_compared(operands)?;
        }
        let given: Vec<(&[Number], &Type)> = operands
            .iter()
            .map(|value| (tiles.get(value).map_or(&[][..], Vec::as_slice), self.program.type_of(*value)))
            .collect();
        Ok(tile::evaluate(operation, &given, ty))
    }

    /// Refuses a comparison of sums of indices, sizes and coordinates that do not fit in 32 bits.
    fn are_compared(&self, operands: &[ValueId]) -> Result<(), Reason> {
        let Some(sides) = self.sums.sides(operands) else { return Ok(()) };
        let of = |term: &SumTerm| match term {
            SumTerm::Name(name) => Some(self.name(*name)),
            SumTerm::Size(text) => number_of(text, &self.values).ok(),
        };
        let fits = |sum: &Sum| sum.most(of).is_some_and(|most| most <= i64::from(i32::MAX));
        match sides.iter().all(fits) {
            true => Ok(()),
            false => Err(Reason::Argument { what: "coordinates that are compared do not fit 32 bits".to_string() }),
        }
    }

    /// The tile of coordinates along a mode.
    fn coordinates<'t>(&'t self, mode: usize, rows: ValueId, tiles: &'t Tiles) -> Coordinates<'t> {
        Coordinates { mode, ty: self.program.type_of(rows), tile: tiles.get(&rows).map_or(&[][..], Vec::as_slice) }
    }

    /// The offset of each element of a tile; None past an edge.
    fn offsets(
        &self,
        tensor: usize,
        shape: &[i64],
        index: &[Index],
        rows: &[Coordinates<'_>],
    ) -> Result<Vec<Option<i64>>, Reason> {
        let first = index.iter().zip(shape).map(|(at, extent)| {
            let over = || Reason::Argument { what: format!("{at} does not fit") };
            at.first(self.index(at)?, *extent).ok_or_else(over)
        });
        let first = first.collect::<Result<Vec<i64>, Reason>>()?;
        let memory = &self.memories[tensor];
        if memory.extents.len() != shape.len() {
            let wanted = format!("one of {} extents, as the tensor has,", memory.extents.len());
            return Err(Reason::Shape { what: "the tile".to_string(), shape: shape.to_vec(), wanted });
        }
        let coordinate = |number: i64| -> Vec<i64> {
            let own = tile::coordinate(shape, number);
            let mut at: Vec<i64> = own.iter().zip(&first).map(|(at, first)| first.saturating_add(*at)).collect();
            for (first, (own, at)) in index.iter().zip(own.iter().zip(&mut at)) {
                if !first.has(*own) {
                    *at = -1;
                }
            }
            for rows in rows {
                at[rows.mode] = first[rows.mode].saturating_add(rows.of(&own));
            }
            at
        };
        (0..shape.iter().product::<i64>()).map(|index| memory.offset(&coordinate(index))).collect()
    }

    /// Records which block loads elements of a tensor that is both read and written.
    fn load(&mut self, tensor: usize, offsets: &[Option<i64>]) -> Result<(), Reason> {
        if self.loaded[tensor].is_empty() {
            return Ok(());
        }
        for offset in offsets.iter().flatten() {
            if self.written[tensor][*offset as usize].is_some() {
                return Err(self.changed(tensor, *offset));
            }
            let before = self.loaded[tensor][*offset as usize].replace(self.block);
            if before.is_some_and(|before| before != self.block) {
                // Two blocks load it, so no block may store to it any more. No block has this
                // number.
                self.loaded[tensor][*offset as usize] = Some([-1; 3]);
            }
        }
        Ok(())
    }

    fn changed(&self, tensor: usize, offset: i64) -> Reason {
        Reason::Changed { tensor: self.program.tensors[tensor].name.clone(), offset }
    }

    fn store(&mut self, statement: &Statement, tiles: &Tiles) -> Result<(), Reason> {
        let Statement::Store { tensor, at, rows, with, value, .. } = statement else { return Ok(()) };
        let ty = self.program.type_of(*value);
        let rows: Vec<_> = rows.iter().map(|(mode, rows)| self.coordinates(*mode, *rows, tiles)).collect();
        let offsets = self.offsets(*tensor, &ty.shape, at, &rows)?;
        let Some(tile) = tiles.get(value) else { return Ok(()) };
        for (offset, value) in offsets.into_iter().zip(tile) {
            let Some(offset) = offset else { continue };
            let loaded = self.loaded[*tensor].get(offset as usize).copied().flatten();
            if loaded.is_some_and(|block| block != self.block) {
                return Err(self.changed(*tensor, offset));
            }
            // Blocks run in any order, so an element may be written once, or combined by one
            // reduction.
            let before = self.written[*tensor][offset as usize].replace(*with);
            if before.is_some_and(|before| with.is_none() || before != *with) {
                return Err(Reason::WrittenTwice { tensor: self.program.tensors[*tensor].name.clone(), offset });
            }
            let element = &mut self.contents[*tensor][offset as usize];
            *element = Some(match (with, *element) {
                (Some(with), Some(own)) => number::binary(with.binary(), own, *value, ty.element),
                _ => *value,
            });
        }
        Ok(())
    }
}
