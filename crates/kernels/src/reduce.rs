//! Statistics of the rows or the columns of a matrix.
//!
//! Law: each row, or each column, of a row-major matrix `(M,N)` gives one number: its sum, its mean,
//! the root of the sum of its squares, its greatest element, or the place of that. Sums are taken
//! in f32. NaN is not the greatest unless there is nothing else; of equal elements the first
//! counts.
//!
//! * **Rows** that the registers of a block hold are read at once, as the norms read them.
//! * **Longer rows** are read by a block of [`THREADS`] threads in chunks of [`LOADS`] vectors a
//!   thread.
//! * **Columns** are cut into strips of 256 bytes, or of 128 or 64 where there were too few for the
//!   processors of a large GPU; a block goes down a strip. All blocks together read the rows of
//!   the matrix in order.

use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{Build, Distributed, Distribution, Element, Kernel, KernelError, Num, Reduction, View};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Slot, Stride, Tree};

use crate::error::PlanError;
use crate::meaning::Meaning;
use crate::planned::Planned;
use crate::rows::{Held, Rows, together};

/// Threads of a block that goes along something.
const THREADS: i64 = 512;
/// Vectors that a thread reads before it computes.
const LOADS: i64 = 4;
/// The widest access of a thread, in bytes.
const VECTOR: i64 = 16;
/// The widest strip, in bytes, and how many there should be.
const STRIP: i64 = 256;
const STRIPS: i64 = 256;

/// What is computed of many numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Their sum.
    Sum,
    /// Their sum divided by their number.
    Mean,
    /// The root of the sum of their squares.
    Norm,
    /// The greatest.
    Maximum,
    /// The place of the greatest, from 0, as i32.
    ArgMaximum,
}

/// What becomes one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Along {
    /// Each row.
    Rows,
    /// Each column.
    Columns,
}

impl Statistic {
    fn name(self) -> &'static str {
        match self {
            Statistic::Sum => "sum",
            Statistic::Mean => "mean",
            Statistic::Norm => "norm",
            Statistic::Maximum => "greatest",
            Statistic::ArgMaximum => "place of the greatest",
        }
    }

    /// The type of the result for elements of a type.
    pub(crate) fn result(self, element: Element) -> Element {
        if self == Statistic::ArgMaximum { Element::I32 } else { element }
    }

    /// A number that changes nothing.
    fn neutral(self) -> f64 {
        match self {
            Statistic::Maximum | Statistic::ArgMaximum => f64::NEG_INFINITY,
            _ => 0.0,
        }
    }

    /// The types of what is kept of several numbers.
    fn kept(self) -> &'static [Element] {
        if self == Statistic::ArgMaximum { &[Element::F32, Element::I32] } else { &[Element::F32] }
    }

    /// What is kept of each element.
    fn parts<'k>(
        self,
        elements: &Distributed<'k>,
        places: impl FnOnce() -> Result<Distributed<'k>, KernelError>,
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let wide = elements.to(Element::F32)?;
        Ok(match self {
            Statistic::Norm => vec![wide.map(|x| Ok(x * x))?],
            Statistic::ArgMaximum => vec![wide, places()?],
            _ => vec![wide],
        })
    }

    fn combine<'k>(self, a: &[Num<'k>], b: &[Num<'k>]) -> Vec<Num<'k>> {
        match self {
            Statistic::Maximum => vec![a[0].max(b[0])],
            Statistic::ArgMaximum => Reduction::greater([a[0], a[1]], [b[0], b[1]]).to_vec(),
            _ => vec![a[0] + b[0]],
        }
    }

    /// The parts of two sets, element by element.
    fn both<'k>(
        self,
        k: &'k Build,
        a: &[Distributed<'k>],
        b: &[Distributed<'k>],
    ) -> Result<Vec<Distributed<'k>>, KernelError> {
        let (a, b): (Vec<_>, Vec<_>) = (a.iter().collect(), b.iter().collect());
        k.combine_together(&a, &b, |a, b| Ok(self.combine(a, b)))
    }

    /// The number of all parts along some modes, of so many elements.
    fn finish<'k>(
        self,
        k: &'k Build,
        parts: &[Distributed<'k>],
        modes: &[usize],
        count: f64,
    ) -> Result<Distributed<'k>, KernelError> {
        let parts: Vec<_> = parts.iter().collect();
        let mut all = k.reduce_together(&parts, modes, |a, b| Ok(self.combine(a, b)))?;
        match self {
            Statistic::Mean => all[0].map(|sum| Ok(sum * (1.0 / count))),
            Statistic::Norm => all[0].map(|sum| Ok(sum.sqrt())),
            Statistic::ArgMaximum => Ok(all.remove(1)),
            _ => Ok(all.remove(0)),
        }
    }
}

/// A kernel that computes a statistic of each row, or of each column, of a matrix `(M,N)` of
/// `rows` rows of `columns` elements, rows one after another.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernels::{Along, Statistic, reduce};
///
/// let plan = reduce(Statistic::Sum, Along::Columns, [16_384, 16_384], Element::F32).unwrap();
/// assert!(plan.to_string().contains("strips of 64 columns"));
/// ```
///
/// Errors: elements of this type are only stored.
pub fn reduce(
    statistic: Statistic,
    along: Along,
    [rows, columns]: [i64; 2],
    element: Element,
) -> Result<Planned, PlanError> {
    let each = if along == Along::Rows { "row" } else { "column" };
    let mut plan = vec![format!("{} of each {each} of ({rows},{columns}) {element}", statistic.name())];
    let (kernel, chosen) = match along {
        Along::Columns => down(statistic, rows, columns, element)?,
        Along::Rows => match Rows::in_registers(THREADS, columns, element) {
            Ok(held) => (at_once(statistic, &held, element)?, held.plan()),
            Err(PlanError::TooLarge { .. }) => in_chunks(statistic, columns, element)?,
            Err(error) => return Err(error),
        },
    };
    plan.push(chosen);
    let meaning = Meaning::Reduce { statistic, along, columns };
    let results = if along == Along::Rows { rows } else { columns };
    let bytes = rows
        .saturating_mul(columns)
        .saturating_mul(element.bytes().into())
        .saturating_add(results.saturating_mul(statistic.result(element).bytes().into()));
    Ok(Planned::new(kernel, plan, meaning).moving(bytes).sized(&[("M", rows)]))
}

fn at(modes: impl IntoIterator<Item = Expr>) -> Result<Coord<Expr>, KernelError> {
    Ok(Tree::flat(modes.into_iter().map(Slot::At))?)
}

fn sum(a: &Expr, b: &Expr, times: i64) -> Result<Expr, KernelError> {
    let overflow = tilewright_layout::LayoutError::Overflow { op: "place" };
    let sum = Stride::times(b, &Expr::from(times)).and_then(|b| Stride::plus(a, &b));
    Ok(sum.ok_or(overflow)?)
}

/// Rows that the registers of a block hold.
fn at_once(statistic: Statistic, rows: &Rows, element: Element) -> Result<Kernel, KernelError> {
    Kernel::build("reduce_rows", |k| {
        let x = rows.matrix(k, "x", Role::Input)?;
        let y = k.tensor_of(statistic.result(element), "y", "(M,1):(1,M)", Role::Output)?;
        let held = rows.load(k, &x, Some(k.number_of(element, statistic.neutral())))?;
        if statistic == Statistic::ArgMaximum {
            return rows.store_results(k, &y, &place(k, rows, &held)?);
        }
        let mut all: Option<Vec<Distributed<'_>>> = None;
        for (number, run) in held.runs(k).enumerate() {
            let run = run?;
            let parts = statistic.parts(&run, || rows.columns_of(k, number, &run))?;
            all = Some(match all {
                None => parts,
                Some(all) => statistic.both(k, &all, &parts)?,
            });
        }
        let found = statistic.finish(k, &all.unwrap_or_default(), &[1, 2], rows.columns as f64)?;
        rows.store_results(k, &y, &found.to(statistic.result(element))?)
    })
}

/// The place of the greatest element of each row: the least place of an element that is equal to
/// the greatest. That takes fewer instructions than to carry places along.
fn place<'k>(k: &'k Build, rows: &Rows, held: &Held<'k>) -> Result<Distributed<'k>, KernelError> {
    let greatest = rows.greatest(k, held)?.reduce(&[2], Reduction::Maximum)?;
    let none = k.number(i32::MAX);
    let part = |(number, run): (usize, Result<Distributed<'k>, KernelError>)| {
        // Numbers of 16 bits are what they are in f32, too.
        let run = run?;
        let (wide, places) = (run.to(Element::F32)?, rows.columns_of(k, number, &run)?);
        let greatest = wide.zip(&greatest, |_, greatest| Ok(greatest))?;
        let mut both = k.combine_together(&[&wide, &places], &[&greatest, &places], |x, greatest| {
            Ok(vec![x[0], x[0].eq(greatest[0]).select(x[1], none)])
        })?;
        Ok(both.remove(1))
    };
    let least = together(held.runs(k).enumerate().map(part), Reduction::Minimum)?;
    let least = least.reduce(&[1, 2], Reduction::Minimum)?;
    // Where nothing is a number, the first.
    least.map(|place| Ok(place.eq(none).select(place.like(0.0), place)))
}

/// What is kept while a block goes along something, changed in each turn.
struct Kept<'k> {
    parts: Vec<Distributed<'k>>,
}

impl<'k> Kept<'k> {
    fn new(k: &'k Build, statistic: Statistic, held: &Distribution) -> Result<Kept<'k>, KernelError> {
        let part = |element: &Element| {
            let fragment = k.register(*element, &held.values().to_string())?;
            let neutral = if *element == Element::I32 { f64::from(i32::MAX) } else { statistic.neutral() };
            fragment.fill(k.number_of(*element, neutral))?;
            fragment.distributed(held)
        };
        Ok(Kept { parts: statistic.kept().iter().map(part).collect::<Result<_, _>>()? })
    }

    /// Takes further elements.
    fn add(
        &self,
        k: &'k Build,
        statistic: Statistic,
        runs: &[Distributed<'k>],
        places: impl Fn(usize, &Distributed<'k>) -> Result<Distributed<'k>, KernelError>,
    ) -> Result<(), KernelError> {
        let mut now = self.parts.clone();
        for (number, run) in runs.iter().enumerate() {
            now = statistic.both(k, &now, &statistic.parts(run, || places(number, run))?)?;
        }
        for (kept, now) in self.parts.iter().zip(&now) {
            kept.fragment().set(&now.fragment().numbers()?)?;
        }
        Ok(())
    }
}

/// Vectors of a type that begin at multiples of their length in rows of so many elements.
fn vector_of(columns: i64, element: Element) -> i64 {
    let mut vector = VECTOR / i64::from(element.bytes());
    while columns % vector != 0 {
        vector /= 2;
    }
    vector
}

/// Reads a tile; what lies past its edges changes nothing.
fn read<'k>(
    k: &'k Build,
    statistic: Statistic,
    tile: &View<'k>,
    held: &Distribution,
) -> Result<Vec<Distributed<'k>>, KernelError> {
    tile.load_distributed_or(held, k.number_of(tile.element(), statistic.neutral()))?.split(1)
}

/// Longer rows, a block a row, in chunks.
fn in_chunks(statistic: Statistic, columns: i64, element: Element) -> Result<(Kernel, String), PlanError> {
    let vector = vector_of(columns, element);
    let (run, chunk) = (THREADS * vector, THREADS * vector * LOADS);
    let held = Distribution::new(
        &format!("(1,{LOADS},{run})"),
        &format!("({THREADS},({vector},{LOADS})):({},({LOADS},1))", LOADS * vector),
    )?;
    let one = Distribution::new(&format!("(1,{run})"), &format!("({THREADS},{vector}):({vector},1)"))?;
    let modes = format!("(1,{LOADS},{run}):(0,{run},1)").parse()?;
    let kernel = Kernel::build("reduce_long_rows", |k| {
        let x = k.tensor_of(element, "x", &format!("(M,{columns}):({columns},1)"), Role::Input)?;
        let y = k.tensor_of(statistic.result(element), "y", "(M,1):(1,M)", Role::Output)?;
        k.threads(THREADS)?;
        let row = k.block_number(Axis::X);
        let kept = Kept::new(k, statistic, &one)?;
        k.range((columns + chunk - 1) / chunk, |step| {
            let tile = x.local_tile(&format!("(1,{chunk})"), at([row.clone(), step.clone()])?)?;
            let runs = read(k, statistic, &tile.compose_layout(&modes)?, &held)?;
            let first = k.index(&sum(&Expr::from(0), &step, chunk)?)?;
            kept.add(k, statistic, &runs, |number, run_held| {
                let before = first + k.number(number as i32 * run as i32);
                run_held.index(1)?.map(|place| Ok(place + before))
            })
        })?;
        let found = statistic.finish(k, &kept.parts, &[1], columns as f64)?;
        let result = y.local_tile("(1,1)", at([row.clone(), Expr::from(0)])?)?;
        result.store_distributed(&found.to(statistic.result(element))?)
    })?;
    Ok((kernel, format!("a block of {THREADS} threads a row, in chunks of {chunk}")))
}

/// Columns, a block a strip.
fn down(statistic: Statistic, rows: i64, columns: i64, element: Element) -> Result<(Kernel, String), PlanError> {
    let vector = vector_of(columns, element);
    let width = vector * i64::from(element.bytes());
    let mut lanes = STRIP / width;
    // Narrow strips cost more than idle processors.
    let wanted = |lanes: i64| if lanes * width > STRIP / 2 { STRIPS } else { STRIPS / 2 };
    while lanes > 1 && (lanes > 32 || (lanes * width > STRIP / 4 && columns < wanted(lanes) * lanes * vector)) {
        lanes /= 2;
    }
    let strip = lanes * vector;
    let high = THREADS / lanes;
    let held = Distribution::new(
        &format!("({high},{LOADS},{strip})"),
        &format!("(({lanes},{high}),({vector},{LOADS})):(({},1),({},{high}))", high * LOADS * vector, high * LOADS),
    )?;
    let one = Distribution::new(
        &format!("({high},{strip})"),
        &format!("(({lanes},{high}),{vector}):(({},1),{high})", high * vector),
    )?;
    let modes = format!("({high},{LOADS},{strip}):(1,{high},{})", high * LOADS).parse()?;
    let kernel = Kernel::build("reduce_columns", |k| {
        let x = k.tensor_of(element, "x", &format!("(M,{columns}):({columns},1)"), Role::Input)?;
        let y = k.tensor_of(statistic.result(element), "y", &format!("(1,{columns}):({columns},1)"), Role::Output)?;
        k.threads(THREADS)?;
        let block = k.block_number(Axis::X);
        let result = y.local_tile(&format!("(1,{strip})"), at([Expr::from(0), block.clone()])?)?;
        let kept = Kept::new(k, statistic, &one)?;
        let tall = high * LOADS;
        k.range(k.size(&format!("ceil(M/{tall})"))?, |step| {
            let tile = x.local_tile(&format!("({tall},{strip})"), at([step.clone(), block.clone()])?)?;
            let runs = read(k, statistic, &tile.compose_layout(&modes)?, &held)?;
            let first = k.index(&sum(&Expr::from(0), &step, tall)?)?;
            kept.add(k, statistic, &runs, |number, run| {
                let before = first + k.number(number as i32 * high as i32);
                run.index(0)?.map(|place| Ok(place + before))
            })
        })?;
        let found = statistic.finish(k, &kept.parts, &[0], rows as f64)?;
        result.store_distributed_predicated(&found.to(statistic.result(element))?)
    })?;
    Ok((
        kernel,
        format!(
            "a block of {THREADS} threads a strip: strips of {strip} columns, {tall} rows at once",
            tall = high * LOADS
        ),
    ))
}
