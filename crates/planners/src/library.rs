//! The table of kernels by name.
//!
//! Law: every kernel of this crate has an entry, whose default sizes make a kernel in which the
//! interpreter finds no defect. Commands that list, show, check and time kernels read this table.

use tilewright_kernel::Element;
use tilewright_kernel::interpret::SetupError;
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::Target;
use tilewright_layout::{IntoShape, Layout, Tree};

use crate::error::PlanError;
use crate::map::MapOptions;
use crate::planned::Planned;
use crate::planner::Planner;
use crate::units::has_wgmma;
use crate::{Computation, Expression, RowMatrix, Statistic, gather, map, product, scatter, tiled_add};

/// A kernel of the library, by name: see [`library()`].
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// What it does, in a sentence without a full stop.
    pub summary: &'static str,
    /// Its sizes, and the default sizes for a check.
    pub sizes: &'static [(&'static str, i64)],
    /// The default sizes for timing, in the same order.
    pub large: &'static [i64],
    /// The element types that it takes; the first one is the default.
    pub types: &'static [Element],
    plan: fn(&dyn Planner, &[i64], Element) -> Result<Planned, PlanError>,
}

const STORED: &[Element] = &[
    Element::F32,
    Element::U8,
    Element::I8,
    Element::E4M3,
    Element::E5M2,
    Element::U16,
    Element::I16,
    Element::F16,
    Element::Bf16,
    Element::U32,
    Element::I32,
    Element::U64,
    Element::I64,
    Element::F64,
];

/// The entry of a statistic of rows or columns of a matrix, or of all elements.
macro_rules! statistic {
    (rows, $name:literal, $summary:literal, $statistic:ident) => {
        statistic!(&[("M", 37), ("N", 520)], &[32_768, 8192], 1, $name, $summary, $statistic)
    };
    (columns, $name:literal, $summary:literal, $statistic:ident) => {
        statistic!(&[("M", 37), ("N", 520)], &[32_768, 8192], 0, $name, $summary, $statistic)
    };
    (all, $name:literal, $summary:literal, $statistic:ident) => {
        statistic!(&[("N", 40_000)], &[1 << 28], 0, $name, $summary, $statistic)
    };
    ($sizes:expr, $large:expr, $mode:literal, $name:literal, $summary:literal, $statistic:ident) => {
        Entry {
            name: $name,
            summary: $summary,
            sizes: $sizes,
            large: $large,
            types: FLOATS,
            plan: |planner, sizes, element| along(planner, Statistic::$statistic, sizes, &[$mode], element),
        }
    };
}

const LIBRARY: &[Entry] = &[
    Entry {
        name: "copy",
        summary: "a contiguous tensor of N elements to another",
        sizes: &[("N", 10_000)],
        large: &[1 << 28],
        types: STORED,
        plan: |planner, sizes, element| {
            let layout = Layout::strided(sizes[0], 1)?;
            planner.relayout(((&layout).into(), element), ((&layout).into(), element))
        },
    },
    Entry {
        name: "transpose",
        summary: "a row-major matrix (M,N) to a column-major one",
        sizes: &[("M", 300), ("N", 200)],
        large: &[16_384, 16_384],
        types: STORED,
        plan: |planner, sizes, element| {
            let [m, n] = [sizes[0], sizes[1]];
            let (from, to) = (Layout::strided((m, n), (n, 1))?, Layout::compact(&(m, n).into_shape()?)?);
            planner.relayout(((&from).into(), element), ((&to).into(), element))
        },
    },
    Entry {
        name: "permute",
        summary: "a row-major tensor (A,B,C,D,E,F) to one whose axes are in the order of the digits of ORDER, from 0, the last one contiguous",
        sizes: &[("A", 1), ("B", 1), ("C", 6), ("D", 10), ("E", 7), ("F", 9), ("ORDER", 15_432)],
        large: &[1, 1, 64, 512, 32, 512, 15_432],
        types: STORED,
        plan: |planner, sizes, element| {
            let (from, to) = (permuted(&sizes[..6], 12_345)?, permuted(&sizes[..6], sizes[6])?);
            planner.relayout(((&from).into(), element), ((&to).into(), element))
        },
    },
    Entry {
        name: "tiled_add",
        summary: "the sum of two row-major matrices (M,N), N a multiple of 4",
        sizes: &[("M", 50), ("N", 260)],
        large: &[16_384, 16_384],
        types: &[Element::F32, Element::F16, Element::Bf16, Element::F64, Element::I32],
        plan: |_, sizes, element| {
            let elements = sizes[0].saturating_mul(sizes[1]);
            let bytes = elements.saturating_mul(3 * i64::from(element.bytes()));
            Ok(tiled_add(element)?.moving(bytes).computing(elements).sized(&[("M", sizes[0]), ("N", sizes[1])]))
        },
    },
    Entry {
        name: "product",
        summary: "A (M,K) times the transposed B (N,K) by mma.sync, K and N multiples of 8",
        sizes: &[("M", 150), ("N", 136), ("K", 88)],
        large: &[4096, 4096, 4096],
        types: &[Element::Bf16, Element::F16],
        plan: |planner, sizes, element| {
            let own = planner.machine();
            let held = if has_wgmma(own) { own.clone().held_to(Target::Sm80) } else { None };
            of_product("product", held.as_ref().unwrap_or(own), sizes, element)
        },
    },
    Entry {
        name: "group_product",
        summary: "A (M,K) times the transposed B (N,K) by wgmma and TMA, K and N multiples of 8",
        sizes: &[("M", 150), ("N", 264), ("K", 136)],
        large: &[4096, 4096, 4096],
        types: &[Element::Bf16, Element::F16],
        plan: |planner, sizes, element| {
            let machine = planner.machine();
            if !has_wgmma(machine) {
                let known = Machine::all().filter(has_wgmma).map(|own| own.name).collect::<Vec<_>>();
                let given = machine.name.clone();
                return Err(PlanError::Unknown { what: "machine with wgmma", given, known: known.join(", ") });
            }
            of_product("group_product", machine, sizes, element)
        },
    },
    Entry {
        name: "add",
        summary: "the sum of two contiguous tensors of N elements",
        sizes: &[("N", 10_000)],
        large: &[1 << 28],
        types: COMPUTED,
        plan: |planner, sizes, element| {
            let layout = Layout::strided(sizes[0], 1)?;
            let tensor = (&layout, element);
            let sum = Expression::input(0) + Expression::input(1);
            map(planner.machine(), &sum, &[tensor, tensor], tensor, MapOptions::default())
        },
    },
    Entry {
        name: "convert",
        summary: "a contiguous tensor of N elements as f32, and one of f32 as bf16",
        sizes: &[("N", 10_000)],
        large: &[1 << 28],
        types: COMPUTED,
        plan: |planner, sizes, element| {
            let layout = Layout::strided(sizes[0], 1)?;
            let other = if element == Element::F32 { Element::Bf16 } else { Element::F32 };
            let same = Expression::input(0);
            map(planner.machine(), &same, &[(&layout, element)], (&layout, other), MapOptions::default())
        },
    },
    Entry {
        name: "add_row",
        summary: "max(x + row, 0) for each row of a row-major matrix (M,N), as f32",
        sizes: &[("M", 50), ("N", 300)],
        large: &[16_384, 16_384],
        types: COMPUTED,
        plan: |planner, sizes, element| {
            let [m, n] = [sizes[0], sizes[1]];
            let (matrix, row): (Layout, Layout) = (Layout::strided((m, n), (n, 1))?, Layout::strided((m, n), (0, 1))?);
            let clipped = (Expression::input(0) + Expression::input(1)).max(Expression::constant(0.0));
            let inputs = [(&matrix, element), (&row, element)];
            map(planner.machine(), &clipped, &inputs, (&matrix, Element::F32), MapOptions::default())
        },
    },
    Entry {
        name: "gather",
        summary: "M of the K rows of a row-major matrix (K,N), by their numbers, of type i32",
        sizes: &[("K", 20), ("M", 50), ("N", 72)],
        large: &[1 << 17, 1 << 16, 4096],
        types: STORED,
        plan: |_, sizes, element| gather(sizes[0], sizes[1], sizes[2], element),
    },
    Entry {
        name: "scatter",
        summary: "the M rows of a row-major matrix (M,N) to rows of one of K, by their numbers, of type i32, all different",
        sizes: &[("K", 50), ("M", 20), ("N", 72)],
        large: &[1 << 17, 1 << 16, 4096],
        types: STORED,
        plan: |_, sizes, element| scatter(sizes[0], sizes[1], sizes[2], element),
    },
    Entry {
        name: "softmax",
        summary: "e^x over its sum, row by row of a row-major matrix (M,N)",
        sizes: &[("M", 5), ("N", 1000)],
        large: &[32_768, 8192],
        types: FLOATS,
        plan: |planner, sizes, element| {
            Ok(rowwise(planner.computation(&Computation::Softmax { matrix: rows(sizes, element) })?, sizes, element, 0))
        },
    },
    Entry {
        name: "rms_norm",
        summary: "rows of a row-major matrix (M,N) by the root of their mean square + 1e-5, times weights (N)",
        sizes: &[("M", 5), ("N", 1000)],
        large: &[32_768, 8192],
        types: FLOATS,
        plan: |planner, sizes, element| {
            Ok(rowwise(
                planner.computation(&Computation::RmsNorm { matrix: rows(sizes, element), norm: EPSILON.into() })?,
                sizes,
                element,
                1,
            ))
        },
    },
    Entry {
        name: "layer_norm",
        summary: "rows of a row-major matrix (M,N) less their mean, by the root of their variance + 1e-5, times weights (N) plus a bias (N)",
        sizes: &[("M", 5), ("N", 1000)],
        large: &[32_768, 8192],
        types: FLOATS,
        plan: |planner, sizes, element| {
            Ok(rowwise(
                planner.computation(&Computation::LayerNorm { matrix: rows(sizes, element), norm: EPSILON.into() })?,
                sizes,
                element,
                2,
            ))
        },
    },
    statistic!(rows, "sum_rows", "the sum of each row of a row-major matrix (M,N)", Sum),
    statistic!(rows, "mean_rows", "the mean of each row of a row-major matrix (M,N)", Mean),
    statistic!(rows, "norm_rows", "the root of the sum of squares of each row of a row-major matrix (M,N)", Norm),
    statistic!(rows, "max_rows", "the maximum of each row of a row-major matrix (M,N)", Maximum),
    statistic!(rows, "argmax_rows", "the argmax, as i32, of each row of a row-major matrix (M,N)", ArgMaximum),
    statistic!(columns, "sum_columns", "the sum of each column of a row-major matrix (M,N)", Sum),
    statistic!(columns, "mean_columns", "the mean of each column of a row-major matrix (M,N)", Mean),
    statistic!(
        columns,
        "norm_columns",
        "the root of the sum of squares of each column of a row-major matrix (M,N)",
        Norm
    ),
    statistic!(columns, "max_columns", "the maximum of each column of a row-major matrix (M,N)", Maximum),
    statistic!(columns, "argmax_columns", "the argmax, as i32, of each column of a row-major matrix (M,N)", ArgMaximum),
    statistic!(all, "sum_all", "the sum of all N elements of a contiguous tensor", Sum),
    statistic!(all, "mean_all", "the mean of all N elements of a contiguous tensor", Mean),
    statistic!(all, "norm_all", "the root of the sum of squares of all N elements of a contiguous tensor", Norm),
    statistic!(all, "max_all", "the maximum of all N elements of a contiguous tensor", Maximum),
    statistic!(all, "argmax_all", "the argmax, as i32, of all N elements of a contiguous tensor", ArgMaximum),
    Entry {
        name: "sum_modes",
        summary: "the sums of a row-major tensor (A,B,C,D) along the modes whose digits MODES has, from 1",
        sizes: &[("A", 5), ("B", 6), ("C", 7), ("D", 8), ("MODES", 13)],
        large: &[64, 512, 32, 512, 13],
        types: FLOATS,
        plan: |planner, sizes, element| along(planner, Statistic::Sum, &sizes[..4], &digits(sizes[4])?, element),
    },
];

/// Types that are computed in 32 bits.
const FLOATS: &[Element] = &[Element::Bf16, Element::F16, Element::F32];

/// Types that `map` computes with.
const COMPUTED: &[Element] = &[Element::Bf16, Element::F16, Element::F32, Element::F64];

/// The epsilon of norms.
const EPSILON: f64 = 1e-5;

/// A matrix (M,N).
fn rows(sizes: &[i64], element: Element) -> RowMatrix {
    RowMatrix::new(sizes[1], element).with_rows(sizes[0])
}

/// The arguments of a kernel that reads and writes a matrix (M,N), and reads `rows` vectors (N).
fn rowwise(planned: Planned, sizes: &[i64], element: Element, rows: i64) -> Planned {
    let elements = sizes[0].saturating_mul(2).saturating_add(rows).saturating_mul(sizes[1]);
    planned.moving(elements.saturating_mul(element.bytes().into())).sized(&[("M", sizes[0])])
}

/// A statistic along modes of a row-major tensor.
fn along(
    planner: &dyn Planner,
    statistic: Statistic,
    sizes: &[i64],
    modes: &[usize],
    element: Element,
) -> Result<Planned, PlanError> {
    let layout = Layout::row_major(&Tree::flat(sizes.iter().copied())?)?;
    planner.reduce(statistic, (&layout, element), modes, None)
}

/// A GEMM of 16-bit elements.
fn of_product(name: &str, machine: &Machine, sizes: &[i64], element: Element) -> Result<Planned, PlanError> {
    let [m, n, k] = [sizes[0], sizes[1], sizes[2]];
    let elements = [(m, k), (n, k), (m, n)].map(|(rows, columns)| rows.saturating_mul(columns));
    let bytes = elements.into_iter().fold(0, i64::saturating_add).saturating_mul(2);
    let operations = 2_i64.saturating_mul(m).saturating_mul(n).saturating_mul(k);
    Ok(product(machine, name, element, [m, n, k])?.moving(bytes).computing(operations))
}

/// Names whose values are lists of digits rather than sizes; the code that reads them reports
/// errors.
const DIGITS: [&str; 2] = ["ORDER", "MODES"];

/// The modes of a tensor of rank 4 that the digits of a number name; 1 is the first mode.
fn digits(number: i64) -> Result<Vec<usize>, PlanError> {
    let (mut modes, mut left) = (Vec::new(), number);
    while left > 0 || modes.is_empty() {
        let digit = (left % 10) as usize;
        left /= 10;
        if !(1..=4).contains(&digit) || modes.contains(&(digit - 1)) {
            return Err(PlanError::Unknown {
                what: "list of modes",
                given: number.to_string(),
                known: "lists of the digits 1 to 4, each at most once".to_string(),
            });
        }
        modes.insert(0, digit - 1);
    }
    Ok(modes)
}

/// A tensor whose axes are in memory in the order of the digits of a number; a leading 0 may be
/// omitted. The last axis is contiguous.
fn permuted(shape: &[i64], order: i64) -> Result<Layout, PlanError> {
    let (mut strides, mut step, mut left) = (vec![0; shape.len()], 1_i64, order);
    for _ in 0..shape.len() {
        let axis = (left % 10) as usize;
        left /= 10;
        if axis >= shape.len() || strides[axis] != 0 {
            return Err(PlanError::Unknown {
                what: "order of axes",
                given: order.to_string(),
                known: "orders of the digits 0 to 5, each once".to_string(),
            });
        }
        strides[axis] = step;
        step = step.saturating_mul(shape[axis]);
    }
    Ok(Layout::strided(shape, &strides[..])?)
}

/// All kernels.
///
/// ```
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{EntryOptions, library};
///
/// let h200 = Machine::named("H200").unwrap();
/// let transpose = library().iter().find(|entry| entry.name == "transpose").unwrap();
/// let planned = transpose.plan(&h200, EntryOptions { sizes: &[("M", 1024)], ..EntryOptions::default() }).unwrap();
/// assert!(planned.plan()[0].starts_with("f32 (1024,"), "{planned}");
/// ```
pub fn library() -> &'static [Entry] {
    LIBRARY
}

/// The kernel of this name.
///
/// Errors: no kernel has this name ([`PlanError::Unknown`]).
pub fn named(name: &str) -> Result<&'static Entry, PlanError> {
    LIBRARY.iter().find(|entry| entry.name == name).ok_or_else(|| PlanError::Unknown {
        what: "kernel",
        given: name.to_string(),
        known: LIBRARY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// The largest extent of an axis: with any type, its size in bytes plus a tile fits in 64 bits.
const MAX_SIZE: i64 = 1 << 40;

/// The options of [`Entry::plan`].
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_planners::EntryOptions;
///
/// let options = EntryOptions { sizes: &[("M", 1024)], element: Some(Element::F32), ..EntryOptions::default() };
/// assert!(!options.large);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryOptions<'a> {
    /// Sizes by name, in elements. The other sizes have the defaults of the entry.
    pub sizes: &'a [(&'a str, i64)],
    /// The type of the elements; None for the default type of the entry.
    pub element: Option<Element>,
    /// Whether the defaults are the sizes for timing instead of the small ones.
    pub large: bool,
}

impl Entry {
    /// The kernel that a planner chooses. A [`Machine`](tilewright_kernel::machine::Machine) is a
    /// planner.
    ///
    /// Errors: an unknown size or type; a size that is not positive, is given twice, or is not
    /// allowed by the kernel; those of the planner.
    pub fn plan(
        &self,
        planner: &dyn Planner,
        EntryOptions { sizes, element, large }: EntryOptions<'_>,
    ) -> Result<Planned, PlanError> {
        let mut values = match large {
            true => self.large.to_vec(),
            false => self.sizes.iter().map(|(_, size)| *size).collect(),
        };
        for (number, (name, size)) in sizes.iter().enumerate() {
            if sizes[..number].iter().any(|(other, _)| other == name) {
                return Err(SetupError::Size { what: format!("the size `{name}` is given twice") }.into());
            }
            let at = self.sizes.iter().position(|(known, _)| known == name).ok_or_else(|| PlanError::Unknown {
                what: "size",
                given: (*name).to_string(),
                known: self.sizes.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", "),
            })?;
            if DIGITS.contains(name) {
                values[at] = *size;
                continue;
            }
            if *size < 1 {
                return Err(PlanError::Size { name: (*name).to_string(), given: *size });
            }
            if *size > MAX_SIZE {
                return Err(PlanError::TooLarge { what: "elements along an axis", asked: *size, limit: MAX_SIZE });
            }
            values[at] = *size;
        }
        let element = element.unwrap_or(self.types[0]);
        if !self.types.contains(&element) {
            return Err(PlanError::Unknown {
                what: "type",
                given: element.to_string(),
                known: self.types.iter().map(|known| known.name()).collect::<Vec<_>>().join(", "),
            });
        }
        let planned = (self.plan)(planner, &values, element)?;
        // Checks that the kernel can be launched with these sizes.
        for kernel in planned.launches() {
            kernel.program().launch(planned.sizes())?;
        }
        Ok(planned)
    }
}
