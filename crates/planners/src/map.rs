//! Expressions over tensors, element by element.
//!
//! Law: `output[to(i)] = f(input_0[from_0(i)], input_1[from_1(i)], ..)` for every index `i`,
//! computed in f32, or in f64 if a tensor has that type. All layouts have the same shape; a mode of
//! stride 0 is broadcast, and types are converted. If all tensors have the same integer type of 32
//! bits or more, the computation is in that type, and wraps.
//!
//! Threads are numbered in the order of the output. Each computes vectors of 16 bytes of the widest
//! type: one vector, or up to 8, so that it writes 16 bytes of the output. Axes that are contiguous
//! with each other in all tensors are merged.

use tilewright_kernel::machine::Machine;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation;
use tilewright_kernel::{Element, Fragment, Kernel, KernelError, LayoutArgument, Num};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{Coord, Layout, LayoutError, Slot, Stride, Tree};

use crate::error::PlanError;
use crate::expression::Expression;
use crate::law::{FEW_THREADS, REGISTER_VECTORS};
use crate::planned::Planned;
use crate::terms::Meaning;
use crate::units::{MOVE_THREADS, VECTOR, first_vector};

/// A tensor of [`map()`]. A pair of a layout and a type is a tensor whose layout begins at its
/// first element; a third member is the offset.
#[derive(Debug, Clone, Copy)]
pub struct MapTensor<'a> {
    /// The layout, with the modes of the other tensors.
    pub layout: &'a Layout,
    /// The type of the elements.
    pub element: Element,
    /// The offset of the layout in its tensor, in elements.
    pub offset: i64,
}

impl<'a> From<(&'a Layout, Element)> for MapTensor<'a> {
    fn from((layout, element): (&'a Layout, Element)) -> Self {
        MapTensor { layout, element, offset: 0 }
    }
}

impl<'a> From<(&'a Layout, Element, i64)> for MapTensor<'a> {
    fn from((layout, element, offset): (&'a Layout, Element, i64)) -> Self {
        MapTensor { layout, element, offset }
    }
}

/// The options of [`map()`].
#[derive(Debug, Clone, Copy)]
pub struct MapOptions<'a> {
    /// The name of the kernel, `map` by default.
    pub name: &'a str,
}

impl Default for MapOptions<'_> {
    fn default() -> Self {
        MapOptions { name: "map" }
    }
}

/// An axis of all tensors: its extent, and its stride in each tensor, that of the output first.
type MapAxis = (i64, Vec<i64>);

/// A kernel that computes an expression of the elements of `inputs` for each element of `output`,
/// each a layout and a type.
///
/// ```
/// use tilewright_kernel::Element;
/// use tilewright_kernel::machine::Machine;
/// use tilewright_planners::{Expression, MapOptions, map};
///
/// let h200 = Machine::named("H200").unwrap();
/// // y = x + row, with the row broadcast to all rows of the matrix.
/// let (matrix, row) = ("(1024,4096):(4096,1)".parse().unwrap(), "(1024,4096):(0,1)".parse().unwrap());
/// let sum = Expression::input(0) + Expression::input(1);
/// let inputs = [(&matrix, Element::Bf16), (&row, Element::Bf16)];
/// let plan = map(&h200, &sum, &inputs, (&matrix, Element::F32), MapOptions::default()).unwrap();
/// assert!(plan.to_string().contains("x0 + x1"));
/// ```
///
/// Errors: shapes differ; the expression has an input that is not given; a layout begins before its
/// tensor; the output overlaps itself; integers are mixed with other types, have less than 32 bits,
/// or are used in an expression with divisions, functions or fractions; there are more vectors than
/// a launch takes.
pub fn map<'a, T: Into<MapTensor<'a>> + Copy>(
    machine: &Machine,
    expression: &Expression,
    inputs: &[T],
    output: impl Into<MapTensor<'a>>,
    options: MapOptions<'_>,
) -> Result<Planned, PlanError> {
    let output: MapTensor<'_> = output.into();
    let inputs: Vec<MapTensor<'_>> = inputs.iter().map(|input| (*input).into()).collect();
    let tensors: Vec<MapTensor<'_>> = std::iter::once(output).chain(inputs.iter().copied()).collect();
    let wide = checked(expression, &tensors)?;
    let vectors = Vectors::of(machine, &tensors)?;
    let kernel = vectors.kernel(options.name, &tensors, expression, wide)?;
    let Vectors { each, width, .. } = vectors;
    let plan = vec![
        format!("{expression} for each element of {}", output.layout),
        match each {
            1 => format!("{width} elements a thread, in the order of the output"),
            _ => format!("{each} times {width} elements a thread, in the order of the output"),
        },
    ];
    let inputs = inputs.iter().map(|input| (input.layout.clone(), input.offset)).collect();
    let output = Box::new((output.layout.clone(), output.offset));
    let meaning = Meaning::Map { expression: expression.clone(), inputs, output };
    Ok(Planned::new(kernel, plan, meaning).moving(vectors.bytes))
}

/// How threads iterate over the tensors.
struct Vectors {
    axes: Vec<MapAxis>,
    /// Elements of a vector, along the first axis.
    width: i64,
    /// The number of vectors along each axis, and in all.
    extents: Vec<i64>,
    count: i64,
    /// Vectors of a thread, and threads of a block.
    each: i64,
    threads: i64,
    /// Bytes of all tensors, each element once.
    bytes: i64,
}

impl Vectors {
    /// The vectors of tensors, the output first.
    ///
    /// Errors: there are more than a launch takes.
    fn of(machine: &Machine, tensors: &[MapTensor<'_>]) -> Result<Vectors, PlanError> {
        let axes = merged(tensors);
        let widest = tensors.iter().map(|tensor| i64::from(tensor.element.bytes())).max().unwrap_or(1);
        let mut width = if axes[0].1[0] == 1 { VECTOR / widest } else { 1 };
        while axes[0].0 % width != 0 || tensors.iter().any(|tensor| tensor.offset % width != 0) {
            width /= 2;
        }
        let mut extents = vec![axes[0].0 / width];
        extents.extend(axes[1..].iter().map(|(extent, _)| *extent));
        let size =
            |own: &MapTensor<'_>| own.layout.filter_zeros().size().saturating_mul(i64::from(own.element.bytes()));
        let bytes = tensors.iter().map(size).fold(0, i64::saturating_add);
        let l2_bytes = i64::try_from(machine.l2_bytes).unwrap_or(i64::MAX);
        let threads = if bytes <= l2_bytes { MOVE_THREADS } else { FEW_THREADS };
        let each = (VECTOR / (width * i64::from(tensors[0].element.bytes()))).clamp(1, 2 * REGISTER_VECTORS);
        let limit = i64::from(i32::MAX) - threads * each;
        let count = extents.iter().try_fold(1_i64, |count, extent| count.checked_mul(*extent)).unwrap_or(i64::MAX);
        if count > limit {
            return Err(PlanError::TooLarge { what: "vectors", asked: count, limit });
        }
        Ok(Vectors { axes, width, extents, count, each, threads, bytes })
    }

    /// The layout that a kernel declares for a tensor: vectors, along the axes.
    ///
    /// Errors: an element has no offset that is a number.
    fn declared(&self, tensors: &[MapTensor<'_>], number: usize) -> Result<LayoutArgument, LayoutError> {
        let ((extent, strides), width) = (&self.axes[0], self.width);
        let mut modes = vec![(width, strides[number]), (extent / width, strides[number] * width)];
        modes.extend(self.axes[1..].iter().map(|(extent, strides)| (*extent, strides[number])));
        LayoutArgument::placed(None, tensors[number].offset, Layout::of_modes(modes)?)
    }

    /// The kernel that computes an expression in a type.
    fn kernel(
        &self,
        name: &str,
        tensors: &[MapTensor<'_>],
        expression: &Expression,
        wide: Element,
    ) -> Result<Kernel, KernelError> {
        let block = self.threads * self.each;
        Kernel::build(name, |k| {
            let tensor = |number: usize, name: &str, role: Role| {
                k.tensor_of(tensors[number].element, name, self.declared(tensors, number), role)
            };
            let sources = (1..tensors.len())
                .map(|number| tensor(number, &format!("x{}", number - 1), Role::Input))
                .collect::<Result<Vec<_>, _>>()?;
            let y = tensor(0, "y", Role::Output)?;
            k.threads(self.threads)?;
            k.grid(operation::Axis::X, (self.count + block - 1) / block)?;
            let first = first_vector(k, block)?;
            // Everything is read before anything is written.
            let mut vectors = Vec::new();
            for iteration in 0..self.each {
                let number = Stride::plus(&first, &Expr::from(iteration * self.threads));
                let number = number.ok_or(LayoutError::Overflow { op: "vector" })?;
                let digits = k.coordinate(&number, &self.extents)?;
                let slots = std::iter::once(Slot::All).chain(digits.into_iter().map(Slot::At));
                let at: Coord<Expr> = Tree::flat(slots)?;
                let read = sources.iter().map(|source| source.slice(at.clone())?.load_predicated()?.numbers());
                vectors.push((y.slice(at.clone())?, read.collect::<Result<Vec<Vec<Num<'_>>>, _>>()?));
            }
            for (part, read) in vectors {
                let result: Fragment<'_> = part.fragment()?;
                let value = |at: usize| {
                    let elements: Vec<Num<'_>> = read.iter().map(|numbers| numbers[at].to(wide)).collect();
                    expression.number(k, wide, &elements).to(tensors[0].element)
                };
                result.set(&(0..self.width as usize).map(value).collect::<Vec<_>>())?;
                part.store_predicated(&result)?;
            }
            Ok(())
        })
    }
}

/// The type in which an expression of these tensors is computed, the output first. Checks the
/// tensors.
///
/// Errors: as [`map`], except for the number of vectors.
fn checked(expression: &Expression, tensors: &[MapTensor<'_>]) -> Result<Element, PlanError> {
    let (inputs, output) = (tensors.len() - 1, tensors[0].layout);
    if expression.inputs() > inputs {
        return Err(PlanError::Unknown {
            what: "input",
            given: format!("x{}", expression.inputs() - 1),
            known: format!("{inputs} tensors"),
        });
    }
    for MapTensor { layout, .. } in tensors {
        let (least, _) = layout.range()?;
        if least < 0 {
            return Err(PlanError::Before { layout: layout.to_string(), least });
        }
        if layout.shape() != output.shape() {
            return Err(PlanError::Shape { layout: layout.to_string(), shape: output.shape().to_string() });
        }
    }
    let wide = computed_in(expression, tensors)?;
    if !output.is_injective()? {
        return Err(PlanError::Overlap { layout: output.to_string() });
    }
    Ok(wide)
}

/// The type in which an expression of tensors is computed.
///
/// Errors: no type fits.
fn computed_in(expression: &Expression, tensors: &[MapTensor<'_>]) -> Result<Element, PlanError> {
    let types = || tensors.iter().map(|tensor| tensor.element);
    let refused = |what, given: String, known: &str| Err(PlanError::Unknown { what, given, known: known.to_string() });
    let Some(integer) = types().find(|element| !element.is_float()) else {
        return match types().any(|element| element == Element::F64) {
            false => Ok(Element::F32),
            true if expression.is_of_doubles() => Ok(Element::F64),
            true => {
                let known = "+, -, *, /, min, max, abs, relu, sqrt and recip; exponentials, and functions made of them, need f32";
                refused("expression of f64", expression.to_string(), known)
            }
        };
    };
    if integer.bits() < 32 || types().any(|element| element != integer) {
        return refused("type", integer.to_string(), "floating-point numbers, or one integer type of 32 bits or more");
    }
    if !expression.is_of_integers() {
        return refused(
            "expression of integers",
            expression.to_string(),
            "+, -, *, min, max, abs and relu of whole numbers",
        );
    }
    Ok(integer)
}

/// The axes of all tensors, sorted by stride in the output, merged if contiguous in all tensors.
fn merged(tensors: &[MapTensor<'_>]) -> Vec<MapAxis> {
    let count = tensors[0].layout.leaves().len();
    let axis = |at: usize| {
        let leaf = |layout: &Layout| layout.leaves()[at].stride;
        (tensors[0].layout.leaves()[at].extent, tensors.iter().map(|tensor| leaf(tensor.layout)).collect::<Vec<i64>>())
    };
    let mut axes: Vec<MapAxis> = (0..count).map(axis).filter(|(extent, _)| *extent > 1).collect();
    axes.sort_by_key(|(_, strides)| strides.clone());
    let mut merged: Vec<MapAxis> = Vec::new();
    for (extent, strides) in axes {
        match merged.last_mut() {
            Some((last, before)) if before.iter().zip(&strides).all(|(a, b)| a * *last == *b) => *last *= extent,
            _ => merged.push((extent, strides)),
        }
    }
    if merged.is_empty() {
        merged.push((1, vec![1; tensors.len()]));
    }
    merged
}
