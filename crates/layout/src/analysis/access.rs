//! Accesses: which threads read or write which elements of a tile.
//!
//! Law: an access is a thread-value layout, from (thread, value) to the index of an element in the
//! tile, first mode fastest; the vector width `v`, the number of consecutive values of one load or
//! store; and the number of lanes that one instruction serves. Load or store `j` of a thread
//! accesses its values `j*v .. (j+1)*v`.
//!
//! `ldmatrix` and `stmatrix` are such accesses: each lane provides the address of one 16-byte row
//! of a matrix of eight rows, with 8, 16 or 32 lanes for one, two or four matrices. The instruction
//! then distributes the values of a row over the lanes, transposed or not, which does not affect
//! the memory access.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;

use crate::analysis::error::AnalysisError;
use crate::{Evaluator, Layout, LayoutError, Tree};

/// The most elements that the accesses of one analysis may have together.
pub const MAX_ELEMENTS: i64 = 1 << 22;

/// The number of lanes of a warp.
const WARP: i64 = 32;

/// The elements of a tile that each thread accesses, and the width of its loads or stores.
#[derive(Debug, Clone)]
pub struct Access {
    name: String,
    pattern: Layout,
    evaluator: Evaluator,
    bits: i64,
    vector: i64,
    lanes: i64,
    threads: i64,
    values: i64,
    fixed: bool,
}

impl Access {
    /// The access of warps of 32 lanes by a thread-value layout `pattern`, `vector` elements of
    /// `bits` bits at a time.
    ///
    /// Mode 0 of `pattern` is the thread, the others are its values; its values are indices of the
    /// tile, first mode fastest.
    ///
    /// Errors: `vector` elements are not 1, 2, 4, 8, 16 or 32 bytes ([`AnalysisError::Width`]); the
    /// number of values of a thread is not a multiple of the vector width
    /// ([`AnalysisError::Shape`]); more than [`MAX_ELEMENTS`].
    ///
    /// ```
    /// use tilewright_layout::analysis::Access;
    ///
    /// // Operand A of an instruction, 16 x 16 of f16: pairs of values are contiguous along mode 1.
    /// let a = "((4,8),(2,2,2)):((32,1),(16,8,128))".parse().unwrap();
    /// let access = Access::new("A", &a, 16, 2).unwrap();
    /// assert_eq!((access.threads(), access.instructions(), access.groups()), (32, 4, 1));
    /// ```
    pub fn new(name: &str, pattern: &Layout, bits: i64, vector: i64) -> Result<Access, AnalysisError> {
        let threads = pattern.mode(0).map_or(1, |mode| mode.size()).max(1);
        let access = Access {
            name: name.to_owned(),
            pattern: pattern.clone(),
            evaluator: pattern.evaluator(),
            bits,
            vector,
            lanes: WARP,
            threads,
            values: pattern.size() / threads,
            fixed: false,
        };
        let bytes = [1, 2, 4, 8, 16, 32];
        let width = bits.checked_mul(vector).filter(|width| bits > 0 && vector > 0 && bytes.contains(&(width / 8)));
        if width.is_none_or(|width| width % 8 != 0) {
            return Err(AnalysisError::Width { bits, vector });
        }
        if pattern.size() > MAX_ELEMENTS {
            let what = "the number of elements of an access";
            return Err(AnalysisError::TooLarge { what, value: pattern.size(), limit: MAX_ELEMENTS });
        }
        if access.values() % vector != 0 {
            let what = format!("a thread has {} values, which is no multiple of {vector}", access.values());
            return Err(AnalysisError::Shape { shape: pattern.shape().to_string().into(), what: what.into() });
        }
        Ok(access)
    }

    /// The access in which mode 0 of the tile is the thread and the other modes are its values.
    ///
    /// Errors: as [`Access::new`].
    pub fn thread_values(shape: &Tree<i64>, bits: i64, vector: i64) -> Result<Access, AnalysisError> {
        Access::new("threads and values", &Layout::compact(shape)?, bits, vector)
    }

    /// Row by row: consecutive lanes access consecutive vectors of `vector` elements along mode 1,
    /// then continue with the next row.
    ///
    /// Errors: as [`Access::new`]; the length of a row is not a multiple of the vector width
    /// ([`AnalysisError::Shape`]).
    ///
    /// ```
    /// use tilewright_layout::analysis::Access;
    ///
    /// let access = Access::rows(&"(8,64)".parse().unwrap(), 16, 8).unwrap();
    /// assert_eq!(access.pattern().to_string(), "((8,8),8):((64,1),8)");
    /// ```
    pub fn rows(shape: &Tree<i64>, bits: i64, vector: i64) -> Result<Access, AnalysisError> {
        let (rows, columns) = sides(shape)?;
        let across = part(shape, "the extent of a row", columns, vector)?;
        let pattern = line((across, rows), (vector.saturating_mul(rows), 1), vector, rows)?;
        Access::new("rows", &pattern, bits, vector)
    }

    /// Column by column: consecutive lanes access consecutive vectors of `vector` elements along
    /// mode 0, then continue with the next column.
    ///
    /// Errors: as [`Access::new`]; the length of a column is not a multiple of the vector width
    /// ([`AnalysisError::Shape`]).
    pub fn columns(shape: &Tree<i64>, bits: i64, vector: i64) -> Result<Access, AnalysisError> {
        let (rows, columns) = sides(shape)?;
        let down = part(shape, "the extent of a column", rows, vector)?;
        let pattern = line((down, columns), (vector, rows), vector, 1)?;
        Access::new("columns", &pattern, bits, vector)
    }

    /// `ldmatrix` or `stmatrix` of `count` matrices, 1, 2 or 4, over the whole tile. Their 16-byte
    /// rows are along mode 1, or with `transposed` along mode 0.
    ///
    /// Two matrices are stacked in the direction across their rows. Four form a square of two by
    /// two, as for operands of an MMA. If the tile has only eight rows, the matrices are arranged
    /// along the rows.
    ///
    /// Errors: the tile is not a whole number of them, or `count` is not 1, 2 or 4
    /// ([`AnalysisError::Shape`]); as [`Access::new`].
    ///
    /// ```
    /// use tilewright_layout::analysis::Access;
    ///
    /// let access = Access::matrices(&"(16,16)".parse().unwrap(), 16, 4, false).unwrap();
    /// assert_eq!(access.pattern().to_string(), "((8,2,2,1,1),8):((1,8,128,16,256),16)");
    /// ```
    pub fn matrices(shape: &Tree<i64>, bits: i64, count: i64, transposed: bool) -> Result<Access, AnalysisError> {
        let (rows, columns) = sides(shape)?;
        if ![1, 2, 4].contains(&count) {
            let what = format!("{count} matrices are no instruction: 1, 2 or 4 are");
            return Err(AnalysisError::Shape { shape: shape.to_string().into(), what: what.into() });
        }
        let unit = match bits {
            1..=128 if 128 % bits == 0 => 128 / bits,
            _ => return Err(AnalysisError::Width { bits, vector: 1 }),
        };
        // Across the rows of a matrix, and along them: the extent of the tile, and the step of its
        // index.
        let ((across, step), (along, run)) =
            if transposed { ((columns, rows), (rows, 1)) } else { ((rows, 1), (columns, rows)) };
        let high = part(shape, "the extent across the rows of matrices", across, 8)?;
        let wide = part(shape, "the extent along the rows of matrices", along, unit)?;
        let fits = |(a, b): &(i64, i64)| high % a == 0 && wide % b == 0;
        let square = if count == 4 { (2, 2) } else { (count, 1) };
        let Some((a, b)) = [square, (1, count), (count, 1)].into_iter().find(fits) else {
            let what = format!("its {high} by {wide} matrices of 8 rows are no whole number of {count}");
            return Err(AnalysisError::Shape { shape: shape.to_string().into(), what: what.into() });
        };
        let threads = Layout::new(
            &Tree::flat([8, a, b, high / a, wide / b])?,
            &Tree::flat([step, times(8, step)?, times(unit, run)?, times(8 * a, step)?, times(unit * b, run)?])?,
        )?;
        let pattern = Layout::tuple([&threads, &Layout::mode_of(unit, run)?])?;
        let name = format!("ldmatrix.x{count}{}", if transposed { ".trans" } else { "" });
        Ok(Access { lanes: 8 * count, fixed: true, ..Access::new(&name, &pattern, bits, unit)? })
    }

    /// The names of accesses. A name may be followed by `:` and the vector width in elements:
    /// `rows:8`. `ldmatrix` and `stmatrix` may be followed by `.x1`, `.x2` or `.x4`, then `.trans`.
    pub const NAMES: [&'static str; 5] = ["threads", "rows", "columns", "ldmatrix", "stmatrix"];

    /// The access with this name to a tile of this shape; None if there is no access of this name.
    ///
    /// Errors: as the constructor of that access.
    ///
    /// ```
    /// use tilewright_layout::analysis::Access;
    ///
    /// let shape = "(128,64)".parse().unwrap();
    /// let rows = Access::of_name("rows:8", &shape, 16, 1).unwrap().unwrap();
    /// assert_eq!((rows.name(), rows.vector()), ("rows:8", 8));
    /// assert!(Access::of_name("rings", &shape, 16, 1).unwrap().is_none());
    /// ```
    pub fn of_name(spec: &str, shape: &Tree<i64>, bits: i64, vector: i64) -> Result<Option<Access>, AnalysisError> {
        let (name, wide) = match spec.split_once(':') {
            Some((name, own)) => match own.parse() {
                Ok(own) => (name, own),
                Err(_) => return Ok(None),
            },
            None => (spec, vector),
        };
        let access = match name {
            "threads" => Access::thread_values(shape, bits, wide)?,
            "rows" => Access::rows(shape, bits, wide)?,
            "columns" => Access::columns(shape, bits, wide)?,
            _ => {
                let stem = name.strip_suffix(".trans").unwrap_or(name);
                let count = match stem.strip_prefix("ldmatrix").or_else(|| stem.strip_prefix("stmatrix")) {
                    Some("" | ".x1") => 1,
                    Some(".x2") => 2,
                    Some(".x4") => 4,
                    _ => return Ok(None),
                };
                return Ok(Some(Access::matrices(shape, bits, count, stem != name)?.named(name)));
            }
        };
        Ok(Some(if wide == vector && !spec.contains(':') { access } else { access.named(spec) }))
    }

    /// The same access with another name.
    #[must_use]
    pub fn named(self, name: &str) -> Access {
        Access { name: name.to_owned(), ..self }
    }

    /// The same threads with other values.
    pub(crate) fn with_pattern(&self, pattern: &Layout) -> Result<Access, AnalysisError> {
        let changed = Access::new(&self.name, pattern, self.bits, self.vector)?;
        Ok(Access { lanes: self.lanes, ..changed })
    }

    /// The name of the access to matrices along the other mode; None if this is not an access to
    /// matrices.
    pub(crate) fn along_the_other(&self) -> Option<String> {
        let matrices = self.name.starts_with("ldmatrix") || self.name.starts_with("stmatrix");
        match self.name.strip_suffix(".trans") {
            Some(stem) => Some(stem.to_owned()),
            None => matches!((self.fixed, matrices), (true, true)).then(|| format!("{}.trans", self.name)),
        }
    }

    /// Whether the instruction determines which lane accesses which elements.
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From (thread, value) to the index of an element.
    pub fn pattern(&self) -> &Layout {
        &self.pattern
    }

    /// The bits of an element.
    pub fn bits(&self) -> i64 {
        self.bits
    }

    /// The elements of one load or store.
    pub fn vector(&self) -> i64 {
        self.vector
    }

    /// The bytes of one load or store.
    pub fn bytes(&self) -> i64 {
        // The constructor has checked that it is a whole number of bytes.
        self.bits * self.vector / 8
    }

    /// The lanes that one instruction serves.
    pub fn lanes(&self) -> i64 {
        self.lanes
    }

    /// The number of threads.
    pub fn threads(&self) -> i64 {
        self.threads
    }

    /// The number of values of a thread.
    pub fn values(&self) -> i64 {
        self.values
    }

    /// The number of loads or stores of a thread.
    pub fn instructions(&self) -> i64 {
        self.values() / self.vector
    }

    /// The number of groups of lanes.
    pub fn groups(&self) -> i64 {
        (self.threads() + self.lanes - 1) / self.lanes
    }

    /// The index, in the tile, of one value of one thread.
    #[inline]
    pub(crate) fn index(&self, thread: i64, value: i64) -> Result<i64, LayoutError> {
        self.evaluator.eval(thread + self.threads() * value)
    }
}

/// The numbers of rows and columns of a tile: the size of mode 0, and that of all other modes. A
/// single mode is one row.
fn sides(shape: &Tree<i64>) -> Result<(i64, i64), AnalysisError> {
    let size = shape.product()?;
    let rows = match shape.mode(0) {
        Some(mode) if shape.rank() > 1 => mode.product()?,
        _ => 1,
    };
    Ok((rows, size / rows.max(1)))
}

/// The number of parts of size `by` in an extent.
fn part(shape: &Tree<i64>, what: &str, extent: i64, by: i64) -> Result<i64, AnalysisError> {
    match extent.checked_rem(by) {
        Some(0) if by > 0 => Ok(extent / by),
        _ => {
            let what = format!("{what} is {extent}, which is no multiple of {by}");
            Err(AnalysisError::Shape { shape: shape.to_string().into(), what: what.into() })
        }
    }
}

fn times(a: i64, b: i64) -> Result<i64, AnalysisError> {
    a.checked_mul(b).ok_or(AnalysisError::Layout(LayoutError::Overflow { op: "access" }))
}

/// A thread-value layout with threads in two modes, and `vector` values with stride `run`.
fn line(extents: (i64, i64), steps: (i64, i64), vector: i64, run: i64) -> Result<Layout, AnalysisError> {
    let threads = Layout::new(&Tree::flat([extents.0, extents.1])?, &Tree::flat([steps.0, steps.1])?)?;
    Ok(Layout::tuple([&threads, &Layout::mode_of(vector, run)?])?)
}
