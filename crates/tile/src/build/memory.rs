//! Loads and stores of tiles.
//!
//! Law: a tensor is read or written only as its declaration allows. An index for each mode, counted
//! in tiles, selects the tile. For gathers and scatters, tiles of coordinates select the elements
//! along some modes.

use tilewright_kernel::Element;
use tilewright_kernel::program::Location;

use super::{Build, TensorId, Value};
use crate::error::Reason;
use crate::program::{
    Binary, Comparison, Index, Operation, Reduction, Role, Statement, Tensor, ValueId, atomic, can_store, here,
};

impl Build {
    /// Loads tile `at[i]` along mode `i`, counted in tiles. Elements past the edges of the tensor
    /// are 0.
    #[track_caller]
    pub fn load(&self, tensor: TensorId, shape: &[i64], at: &[Index]) -> Value<'_> {
        self.loaded(tensor, shape, at, 0.0, here())
    }

    /// As [`Build::load`], but elements past the edges have the value `other`. Choose the identity
    /// of the operation that follows, such as minus infinity for a maximum.
    #[track_caller]
    pub fn load_or(&self, tensor: TensorId, shape: &[i64], at: &[Index], other: f64) -> Value<'_> {
        self.loaded(tensor, shape, at, other, here())
    }

    pub(crate) fn loaded(
        &self,
        tensor: TensorId,
        shape: &[i64],
        at: &[Index],
        other: f64,
        place: Location,
    ) -> Value<'_> {
        self.reads(tensor, "load", place);
        let operation = Operation::Load { tensor: tensor.0, shape: shape.to_vec(), at: at.to_vec(), other };
        self.apply("load", operation, &[], place)
    }

    /// Stages a matrix, a tile of a tensor, in shared memory as an operand of `dot`. `modes` are
    /// the mode of its rows and the mode of its columns; the other modes have extent 1. A pass
    /// inserts this statement if `dot` uses the result of [`Build::load`], reshaped and transposed
    /// or not. Write it to make sure that the tile is staged.
    #[track_caller]
    pub fn stage(&self, tensor: TensorId, shape: &[i64], at: &[Index], modes: [usize; 2]) -> Value<'_> {
        self.staged(tensor, shape, (at, None), modes, here())
    }

    /// As [`Build::stage`], with a tile of one element as the coordinate along a mode: for example,
    /// the number of the matrix to multiply. The index along that mode is added to it. In a loop,
    /// that tile must be computed before the loop, because copies are issued iterations ahead.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, interpret};
    ///
    /// // Each 16 rows of x by the matrix of w that `which` names for them.
    /// let chosen = Program::build("chosen", |t| {
    ///     let x = t.input(Element::Bf16, "x", "(M,16):(16,1)")?;
    ///     let w = t.input(Element::Bf16, "w", "(E,16,8):(128,8,1)")?;
    ///     let which = t.input(Element::I32, "which", "B:1")?;
    ///     let y = t.output(Element::F32, "y", "(M,8):(8,1)")?;
    ///     t.grid(["ceil(M/16)"])?;
    ///     let at = [Index::block(Axis::X), 0.into()];
    ///     let own = t.load(which, &[1], &[Index::block(Axis::X)]).reshape(&[1, 1, 1]);
    ///     let b = t.stage_at(w, &[1, 16, 8], &[0.into(), 0.into(), 0.into()], (0, own), [1, 2]);
    ///     t.store(y, &at, t.load(x, &[16, 16], &at).dot(b, t.full(&[16, 8], 0.0)));
    ///     Ok(())
    /// })?;
    /// // Two matrices, of ones and of twos. The first rows take the second, the next ones the first.
    /// let w = [1.0, 2.0].map(|value| vec![value; 128]).concat();
    /// let inputs = [("x", vec![1.0; 32 * 16]), ("w", w), ("which", vec![1.0, 0.0])];
    /// let sizes = [("M", 32), ("E", 2), ("B", 2)];
    /// let y = &interpret::run(&chosen, &sizes, &inputs)?[0].1;
    /// assert_eq!((y[0], y[16 * 8]), (Some(32.0), Some(16.0)));
    /// assert!(chosen.compile(None).is_ok());
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[track_caller]
    pub fn stage_at(
        &self,
        tensor: TensorId,
        shape: &[i64],
        at: &[Index],
        place: (usize, Value<'_>),
        modes: [usize; 2],
    ) -> Value<'_> {
        self.staged(tensor, shape, (at, Some((place.0, place.1.id))), modes, here())
    }

    pub(crate) fn staged(
        &self,
        tensor: TensorId,
        shape: &[i64],
        (at, picked): (&[Index], Option<(usize, ValueId)>),
        modes: [usize; 2],
        place: Location,
    ) -> Value<'_> {
        self.reads(tensor, "stage", place);
        let (at, operands) = (at.to_vec(), picked.map(|(_, value)| value));
        let picked = picked.map(|(mode, _)| mode);
        let operation = Operation::Stage { tensor: tensor.0, shape: shape.to_vec(), at, modes, picked };
        self.apply("stage", operation, operands.as_slice(), place)
    }

    /// Refuses to read an output, and to stage a tensor that the program also writes, because
    /// copies to shared memory are issued ahead.
    fn reads(&self, tensor: TensorId, statement: &'static str, place: Location) {
        let is_refused = |own: &&Tensor| own.role == Role::Output || (own.role == Role::Both && statement == "stage");
        let reads = self.program().tensors.get(tensor.0).filter(is_refused).map(|own| own.name.clone());
        if let Some(tensor) = reads {
            self.complain(Reason::Role { tensor, tried: "read" }.at(statement, place));
        }
    }

    /// Stores a tile to a tensor: tile `at[i]` along mode `i`. Elements past the edges are not
    /// stored.
    #[track_caller]
    pub fn store(&self, tensor: TensorId, at: &[Index], value: Value<'_>) {
        self.stored(tensor, (at, &[]), None, value.id, here());
    }

    /// Gathers elements of a tensor. Each entry of `rows` is a mode, and a tile of i32 or i64 that
    /// holds the coordinate of each element along that mode. Such a tile has the extent of the
    /// result along its own mode. Along the other modes it has the extent of the result, or 1 to
    /// broadcast. Elements past the edges, and elements at a negative coordinate, get the value
    /// `other`. The index along a mode of `rows` is 0; if there is one such mode, the index is
    /// added to the coordinate.
    ///
    /// ```
    /// use tilewright_tile::{Axis, Element, Index, Program, interpret};
    ///
    /// // Rows of x by their numbers.
    /// let picked = Program::build("picked", |t| {
    ///     let x = t.input(Element::F32, "x", "(K,2):(2,1)")?;
    ///     let (numbers, y) = (t.input(Element::I32, "numbers", "(M,1):(1,1)")?, t.output(Element::F32, "y", "(M,2):(2,1)")?);
    ///     t.grid(["ceil(M/4)"])?;
    ///     let at = [Index::block(Axis::X), 0.into()];
    ///     let rows = t.load_or(numbers, &[4, 1], &at, -1.0);
    ///     t.store(y, &at, t.gather(x, &[4, 2], &[0.into(), 0.into()], &[(0, rows)], 0.0));
    ///     Ok(())
    /// })?;
    /// let inputs = [("x", vec![1.0, 2.0, 3.0, 4.0]), ("numbers", vec![1.0, 0.0, 5.0])];
    /// let outputs = interpret::run(&picked, &[("K", 2), ("M", 3)], &inputs)?;
    /// assert_eq!(outputs[0].1, [3.0, 4.0, 1.0, 2.0, 0.0, 0.0].map(Some));
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    ///
    /// Tiles of coordinates for two modes are broadcast against each other: rows `(4,1)` and
    /// columns `(1,8)` gather each row with each column.
    ///
    /// ```
    /// use tilewright_tile::{Element, Program, interpret};
    ///
    /// let crossed = Program::build("crossed", |t| {
    ///     let x = t.input(Element::F32, "x", "(4,4):(4,1)")?;
    ///     let y = t.output(Element::F32, "y", "(2,2):(2,1)")?;
    ///     let [rows, columns] = [(&[2, 1], 0, 3), (&[1, 2], 1, 2)].map(|(shape, mode, by)| t.arange(shape, mode) * f64::from(by));
    ///     t.store(y, &[0.into(), 0.into()], t.gather(x, &[2, 2], &[0.into(), 0.into()], &[(0, rows), (1, columns)], 0.0));
    ///     Ok(())
    /// })?;
    /// let outputs = interpret::run(&crossed, &[], &[("x", (0..16).map(f64::from).collect())])?;
    /// assert_eq!(outputs[0].1, [0.0, 2.0, 12.0, 14.0].map(Some));
    /// # Ok::<(), tilewright_tile::TileError>(())
    /// ```
    #[track_caller]
    pub fn gather(
        &self,
        tensor: TensorId,
        shape: &[i64],
        at: &[Index],
        rows: &[(usize, Value<'_>)],
        other: f64,
    ) -> Value<'_> {
        let rows: Vec<(usize, ValueId)> = rows.iter().map(|(mode, rows)| (*mode, rows.id)).collect();
        self.gathered(tensor, shape, at, &rows, other, here())
    }

    pub(crate) fn gathered(
        &self,
        tensor: TensorId,
        shape: &[i64],
        at: &[Index],
        rows: &[(usize, ValueId)],
        other: f64,
        place: Location,
    ) -> Value<'_> {
        self.reads(tensor, "load", place);
        let (at, rows) = self.coordinated(shape, at, rows, place);
        let (modes, operands): (Vec<usize>, Vec<ValueId>) = rows.into_iter().unzip();
        let operation = Operation::Gather { tensor: tensor.0, shape: shape.to_vec(), at, modes, other };
        self.apply("load", operation, &operands, place)
    }

    /// The tiles of coordinates, in ascending order of modes. If a tile of coordinates varies along
    /// another mode, the index along that mode becomes a tile of coordinates, too.
    fn coordinated(
        &self,
        shape: &[i64],
        at: &[Index],
        rows: &[(usize, ValueId)],
        place: Location,
    ) -> (Vec<Index>, Vec<(usize, ValueId)>) {
        let (mut at, mut rows) = (at.to_vec(), rows.to_vec());
        let extents: Vec<Vec<i64>> = {
            let program = self.program();
            rows.iter().filter_map(|(_, rows)| Some(program.types.get(rows.index())?.shape.clone())).collect()
        };
        for mode in 0..shape.len().min(at.len()) {
            let varies = |own: &Vec<i64>| own.len() == shape.len() && own[mode] == shape[mode] && own[mode] > 1;
            if rows.iter().any(|(own, _)| *own == mode) || !extents.iter().any(varies) {
                continue;
            }
            let index = std::mem::replace(&mut at[mode], Index::from(0));
            let first = if index.by_element { index.clone().number() } else { index.clone() * shape[mode] };
            let own: Vec<i64> = (0..shape.len()).map(|other| if other == mode { shape[mode] } else { 1 }).collect();
            let number = |operation: Operation| self.apply("index", operation, &[], place);
            let counted = number(Operation::Arange { shape: own.clone(), mode });
            let mut found = counted.binary(number(Operation::Number(first)), Binary::Add, "index", place);
            if let Some(length) = index.length {
                let [end, none] = [length as f64, -1.0]
                    .map(|value| number(Operation::Constant(Element::I32, value)).spread(&own, "index", place));
                let operands = [counted.id, end.id, found.id, none.id];
                found = self.apply("index", Operation::Select(Comparison::Less), &operands, place);
            }
            rows.push((mode, found.id));
        }
        rows.sort_by_key(|(mode, _)| *mode);
        (at, rows)
    }

    /// Scatters a tile to elements of a tensor, a [`Build::inout`]. `rows` holds modes and tiles of
    /// coordinates, as for [`Build::gather`]. Elements at coordinates outside of the tensor are not
    /// stored. No two elements, of any blocks, may have the same coordinates.
    #[track_caller]
    pub fn scatter(&self, tensor: TensorId, at: &[Index], rows: &[(usize, Value<'_>)], value: Value<'_>) {
        let rows: Vec<(usize, ValueId)> = rows.iter().map(|(mode, rows)| (*mode, rows.id)).collect();
        self.stored(tensor, (at, &rows), None, value.id, here());
    }

    /// Atomically combines a tile with the elements of a tensor, a [`Build::inout`]. There are sums
    /// of f32, f16, bf16, f64, i32 and i64, each rounded to that type, and minima and maxima of i32
    /// and i64. Sums of bf16 need sm_90a. `rows` holds modes and tiles of coordinates, as for
    /// [`Build::gather`]; it may be empty. The order in which blocks combine is unspecified.
    #[track_caller]
    pub fn atomic(
        &self,
        reduction: Reduction,
        tensor: TensorId,
        at: &[Index],
        rows: &[(usize, Value<'_>)],
        value: Value<'_>,
    ) {
        let rows: Vec<(usize, ValueId)> = rows.iter().map(|(mode, rows)| (*mode, rows.id)).collect();
        self.stored(tensor, (at, &rows), Some(reduction), value.id, here());
    }

    pub(crate) fn stored(
        &self,
        tensor: TensorId,
        (at, rows): (&[Index], &[(usize, ValueId)]),
        with: Option<Reduction>,
        value: ValueId,
        place: Location,
    ) {
        let shape = self.program().types.get(value.index()).map(|own| own.shape.clone()).unwrap_or_default();
        let (at, rows) = match rows.is_empty() {
            true => (at.to_vec(), Vec::new()),
            false => self.coordinated(&shape, at, rows, place),
        };
        let program = self.program();
        let known = |value: ValueId| program.types.get(value.index());
        let foreign = |name: &str| Err(Reason::Unknown { what: "value of this program", name: name.to_string() });
        let types = rows.iter().map(|(mode, rows)| Some((*mode, known(*rows)?))).collect::<Option<Vec<_>>>();
        let refused = match (known(value), types) {
            (None, _) => foreign("what is stored"),
            (_, None) => foreign("the tile of coordinates"),
            (Some(own), Some(types)) => can_store(&program, tensor.0, &at, &types, with, own),
        };
        drop(program);
        match refused {
            Ok(()) => self.push(Statement::Store { tensor: tensor.0, at, rows, with, value, place }),
            Err(reason) => self.complain(reason.at(with.map_or("store", atomic), place)),
        }
    }
}
