//! Statements that are functions.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tilewright_kernel::program::memory::Role;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::{CopyBy, Fragment as KernelFragment, Tensor as KernelTensor, View as KernelView};
use tilewright_layout::symbolic::Expr;
use tilewright_layout::{AnyCoord, AnyTree, Slot, Tree};
use tilewright_notation::Value;

use super::fragment::Fragment;
use super::number::{Condition, Number};
use super::operand;
use super::predicates::Predicates;
use super::tiled::{CopyAtom, TiledCopy, TiledMma};
use super::trace::{Handle, RefusedStatement, Room, Thing, run};
use super::traced::Traced;
use super::view::View;
use crate::convert::python;
use crate::refusal;

/// A tensor in device memory: "input", which is only read; "output", each element of which is
/// written once; or "tensor".
#[pyfunction]
pub fn global_tensor<'py>(
    element: &Bound<'py, PyAny>,
    name: String,
    layout: &Bound<'py, PyAny>,
    role: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, element, layout) = (element.py(), operand::element(element)?, operand::text(layout)?);
    let role = match role {
        "input" => Role::Input,
        "output" => Role::Output,
        "tensor" => Role::Both,
        _ => return Err(PyValueError::new_err(format!("a tensor is an input, an output or both, not '{role}'"))),
    };
    operand::made(py, move |room| Ok(Thing::View(room.build.tensor_of(element, &name, &layout, role)?)))
}

/// A scalar argument of the launch.
#[pyfunction]
pub fn launch_number<'py>(element: &Bound<'py, PyAny>, name: String) -> PyResult<Bound<'py, PyAny>> {
    let (py, element) = (element.py(), operand::element(element)?);
    operand::made(py, move |room| Ok(Thing::Number(room.build.scalar_of(element, &name)?)))
}

/// A size known at launch, by its name and facts.
#[pyfunction]
pub fn launch_size<'py>(py: Python<'py>, text: String) -> PyResult<Bound<'py, PyAny>> {
    python(py, Value::from(AnyTree::from(run(py, move |room| Ok(room.build.launched(&text)?))?)))
}

/// An array in the shared memory of the block; a swizzle in its layout permutes the banks.
#[pyfunction]
pub fn shared<'py>(element: &Bound<'py, PyAny>, layout: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, element) = (element.py(), operand::element(element)?);
    let layout = match operand::layout(layout) {
        // A shape means its compact layout.
        Ok(layout) => layout.to_string(),
        Err(_) => operand::text(layout)?,
    };
    operand::made(py, move |room| Ok(Thing::View(room.build.shared_of(element, &layout)?)))
}

/// A fragment of this shape without values.
#[pyfunction]
pub fn fragment<'py>(element: &Bound<'py, PyAny>, shape: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let (py, element, shape) = (element.py(), operand::element(element)?, operand::shape(shape)?.to_string());
    operand::made(py, move |room| Ok(Thing::Fragment(room.build.register(element, &shape)?)))
}

/// A constant of a type, rounded to it; or the value of an index, such as an integer, as i32.
#[pyfunction]
#[pyo3(signature = (value, element = None))]
pub fn number<'py>(value: &Bound<'py, PyAny>, element: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let (py, of) = (value.py(), operand::operand(value)?);
    let element = element.map(operand::element).transpose()?;
    operand::made(py, move |room| {
        let number = match (&of, element) {
            (operand::Operand::Value(_), None) => {
                return Err(RefusedStatement::here("a constant has a type", "say it: `tw.number(0.5, \"f32\")`"));
            }
            (of, element) => {
                let element = element.unwrap_or(tilewright_kernel::Element::I32);
                let number = of.number(room, element)?;
                if number.element() == element { number } else { number.to(element) }
            }
        };
        Ok(Thing::Number(number))
    })
}

/// An element of a tensor of i32 or u32 as an index of another tensor; accesses with it are
/// predicated.
#[pyfunction]
pub fn index_of<'py>(number: &Bound<'py, Number>) -> PyResult<Bound<'py, PyAny>> {
    let (py, own) = (number.py(), number.get().handle);
    let index = run(py, move |room| Ok(room.build.index_of(room.number(own)?)?))?;
    python(py, Value::from(AnyTree::from(index)))
}

/// The threads of a block. `x[tw.thread, None]` is the part of this thread, if the first mode of
/// `x` runs over threads; `tw.thread()` is the index of this thread.
#[pyclass(frozen, extends = Traced, module = "tilewright")]
pub struct Thread;

#[pymethods]
impl Thread {
    fn __call__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, Value::from(AnyTree::from(run(py, |room| Ok(room.build.thread()?))?)))
    }

    fn __repr__(&self) -> &'static str {
        "tilewright.thread"
    }
}

/// The coordinate of this block: `tw.block("x")`, `tw.block("(x,_)")`. The tensor that is indexed
/// by it determines the number of blocks.
#[pyfunction]
pub fn block<'py>(py: Python<'py>, axes: String) -> PyResult<Bound<'py, PyAny>> {
    let tuple = axes.trim_start().starts_with('(');
    let at = run(py, move |room| Ok(room.build.block(&axes)?))?;
    let slots = at.leaves().to_vec();
    if !tuple && let [Slot::At(only)] = slots.as_slice() {
        return python(py, Value::from(AnyTree::from(only.clone())));
    }
    let index = |slot: &Slot<Expr>| match slot {
        Slot::At(index) => Some(index.clone()),
        Slot::All => None,
    };
    match slots.iter().map(index).collect::<Option<Vec<Expr>>>() {
        Some(indices) => {
            let tree = Tree::flat(indices).map_err(|error| refusal::of_layout(py, error))?;
            python(py, Value::from(AnyTree::from(tree)))
        }
        None => python(py, Value::from(AnyCoord::from(at))),
    }
}

/// The axis of the grid with a letter.
fn named_axis(name: &str) -> PyResult<Axis> {
    match name {
        "x" => Ok(Axis::X),
        "y" => Ok(Axis::Y),
        "z" => Ok(Axis::Z),
        _ => Err(PyValueError::new_err(format!("a grid has the axes x, y and z, not '{name}'"))),
    }
}

/// Sets the number of blocks along an axis, "x", "y" or "z", if no tensor determines it.
#[pyfunction]
#[pyo3(signature = (axis, count))]
pub fn grid(axis: &str, count: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, axis, count) = (count.py(), named_axis(axis)?, operand::text(count)?);
    run(py, move |room| Ok(room.build.grid(axis, &count)?))
}

/// The number of blocks of the grid along an axis, "x", "y" or "z".
#[pyfunction]
pub fn grid_dim<'py>(py: Python<'py>, axis: &str) -> PyResult<Bound<'py, PyAny>> {
    let axis = named_axis(axis)?;
    python(py, Value::from(AnyTree::from(run(py, move |room| Ok(room.build.grid_size(axis)))?)))
}

/// The number of threads of a block.
#[pyfunction]
pub fn block_dim(py: Python<'_>) -> PyResult<u32> {
    run(py, |room| Ok(room.build.block_size()?))
}

/// Sets the number of threads of a block, if no tiled copy or product determines it.
#[pyfunction]
pub fn threads(py: Python<'_>, count: i64) -> PyResult<()> {
    run(py, move |room| Ok(room.build.threads(count)?))
}

/// Sets the number of blocks that should be resident on one multiprocessor: the assembler limits
/// the registers of a thread accordingly.
#[pyfunction]
pub fn resident(py: Python<'_>, blocks: u32) -> PyResult<()> {
    run(py, move |room| Ok(room.build.resident(blocks)?))
}

/// A tensor in memory, or a fragment in registers.
fn tensor(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Handle> {
    if let Ok(view) = object.cast::<View>() {
        return Ok(view.get().handle);
    }
    if let Ok(fragment) = object.cast::<Fragment>() {
        return Ok(fragment.get().handle);
    }
    let kind = object.get_type();
    let kind = kind.name()?;
    Err(PyTypeError::new_err(format!("{what} is a tensor of the kernel or a fragment, not {kind}")))
}

/// How a copy is done: by a tiled copy, or by a single instruction.
enum By {
    Tiled(Box<tilewright_layout::atoms::TiledCopy>),
    Alone(Box<tilewright_layout::atoms::CopyAtom>),
}

impl CopyBy for By {
    fn instruction(&self) -> &tilewright_layout::atoms::CopyAtom {
        match self {
            By::Tiled(copy) => copy.atom(),
            By::Alone(atom) => atom,
        }
    }

    fn tiling(&self) -> Option<&tilewright_layout::atoms::TiledCopy> {
        match self {
            By::Tiled(copy) => Some(copy),
            By::Alone(_) => None,
        }
    }
}

/// One end of a copy: a tensor in memory, or a fragment.
enum End<'k> {
    View(Box<KernelView<'k>>),
    Fragment(Box<KernelFragment<'k>>),
}

impl<'k> End<'k> {
    fn of(room: &Room<'k>, handle: Handle) -> Result<End<'k>, RefusedStatement> {
        match room.thing(handle)? {
            Thing::View(view) => Ok(End::View(Box::new(view))),
            _ => Ok(End::Fragment(Box::new(room.fragment(handle)?))),
        }
    }
}

impl<'k> KernelTensor<'k> for End<'k> {
    fn as_view(&self) -> Option<&KernelView<'k>> {
        match self {
            End::View(view) => Some(view),
            End::Fragment(_) => None,
        }
    }

    fn as_fragment(&self) -> Option<&KernelFragment<'k>> {
        match self {
            End::View(_) => None,
            End::Fragment(fragment) => Some(fragment),
        }
    }
}

/// The elements that a copy moves.
#[derive(Clone, Copy)]
enum Pred {
    /// Those whose predicate is true.
    Each(Handle),
    /// All, if this condition is true.
    All(Condition),
}

impl Pred {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Pred> {
        if let Ok(pred) = object.cast::<Predicates>() {
            return Ok(Pred::Each(pred.get().handle));
        }
        match Condition::of(object) {
            Some(condition) => Ok(Pred::All(condition)),
            None => Err(PyTypeError::new_err(format!(
                "pred is a tensor of predicates, `tw.make_rmem_tensor(layout, tw.Boolean)`, or a condition, such as `i < n`, not {}",
                object.get_type().name()?
            ))),
        }
    }
}

/// Copies tiles, each thread its part of the tiled copy; or parts, element for element.
/// `predicated`: past the edges of a tensor, reads give 0 and writes do nothing. `pred`: the
/// elements whose predicate is true, or one condition for all elements that this thread copies.
#[pyfunction]
#[pyo3(signature = (copy, source, destination, *, predicated = false, pred = None))]
pub fn copy_tile(
    copy: &Bound<'_, PyAny>,
    source: &Bound<'_, PyAny>,
    destination: &Bound<'_, PyAny>,
    predicated: bool,
    pred: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let by = match (copy.cast::<TiledCopy>(), copy.cast::<CopyAtom>()) {
        (Ok(tiled), _) => By::Tiled(Box::new(tiled.get().copy.clone())),
        (_, Ok(atom)) => By::Alone(Box::new(atom.get().atom.clone())),
        _ => {
            let kind = copy.get_type();
            return Err(PyTypeError::new_err(format!("expected a tiled copy or a copy atom, not {}", kind.name()?)));
        }
    };
    let (from, to) = (tensor(source, "the source")?, tensor(destination, "the destination")?);
    let pred = pred.map(Pred::of).transpose()?;
    run(copy.py(), move |room| {
        let (from, to) = (End::of(room, from)?, End::of(room, to)?);
        if let (End::Fragment(from), End::Fragment(to), None) = (&from, &to, pred) {
            return Ok(to.assign(from)?);
        }
        match (pred, predicated) {
            (Some(Pred::Each(pred)), _) => room.build.copy_if(&by, &room.predicates(pred)?, &from, &to)?,
            (Some(Pred::All(pred)), _) => room.build.copy_when(&by, pred.flag(room)?, &from, &to)?,
            (None, true) => room.build.copy_predicated(&by, &from, &to)?,
            (None, false) => room.build.copy(&by, &from, &to)?,
        }
        Ok(())
    })
}

/// `D = A B + C` of parts of one tiled product, where D and C may be the same. B is (N,K). A and B
/// may be in memory.
#[pyfunction]
pub fn mma(
    tiled_mma: &Bound<'_, TiledMma>,
    d: &Bound<'_, Fragment>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    c: &Bound<'_, Fragment>,
) -> PyResult<()> {
    let (by, d, c) = (tiled_mma.get().mma.clone(), d.get().handle, c.get().handle);
    let (a, b) = (tensor(a, "A")?, tensor(b, "B")?);
    run(tiled_mma.py(), move |room| {
        let (d, c) = (room.fragment(d)?, room.fragment(c)?);
        Ok(room.build.mma(&by, &d, &End::of(room, a)?, &End::of(room, b)?, &c)?)
    })
}

/// Issues bulk copies of a tile in shared memory to a tensor, by one thread.
#[pyfunction]
pub fn store_bulk(source: &Bound<'_, View>, destination: &Bound<'_, View>) -> PyResult<()> {
    let (from, to) = (source.get().handle, destination.get().handle);
    run(source.py(), move |room| Ok(room.build.store_bulk(&room.view(from)?, &room.view(to)?)?))
}

/// The number of the lane whose index is that of this lane XOR a mask.
#[pyfunction]
pub fn shuffle_xor<'py>(number: &Bound<'py, Number>, mask: u32) -> PyResult<Bound<'py, PyAny>> {
    let (py, own) = (number.py(), number.get().handle);
    operand::made(py, move |room| Ok(Thing::Number(room.build.shuffle_xor(room.number(own)?, mask))))
}

macro_rules! statements {
    ($($(#[doc = $about:literal])+ $name:ident($($argument:ident: $type:ty)?);)*) => {
        $(
            $(#[doc = $about])+
            #[pyfunction]
            pub fn $name(py: Python<'_>, $($argument: $type)?) -> PyResult<()> {
                run(py, move |room| {
                    room.build.$name($($argument)?);
                    Ok(())
                })
            }
        )*
    };
}

statements! {
    /// Barrier of all threads of the block, or of the role.
    barrier();
    /// Barrier of the threads of a warp.
    warp_barrier();
    /// Makes the writes of this thread to shared memory visible to bulk copies and wgmma.
    fence_async();
    /// Makes the writes to global memory by this thread, and those of this launch that it knows of,
    /// visible to bulk copies that its block issues afterwards. Call it after the barrier.
    fence_async_global();
    /// Commits the asynchronous copies of this thread since the last commit as a group.
    commit_async();
    /// Waits until at most this many groups of asynchronous copies of this thread are in flight.
    wait_async(groups: u32);
    /// Waits until at most this many groups of wgmma are in flight.
    wait_mma(groups: u32);
    /// Commits the bulk stores of this thread since the last commit as a group.
    commit_bulk();
    /// Waits until at most this many groups of bulk stores of this thread have not read their
    /// source yet.
    wait_bulk(groups: u32);
    /// Waits until all but the last this many groups of bulk stores of this thread are in global
    /// memory: before the kernel reads there what they wrote.
    wait_bulk_written(groups: u32);
}
