//! A cache of calls of library functions.
//!
//! Law: a call on arrays with the same layouts as those of an earlier call launches the same
//! kernels, and allocates results and workspaces in the same way. The layouts are the same if type,
//! shape, strides, device and the address modulo 16 bytes are equal, because a plan depends on
//! nothing else of its arrays. So a repeated call reads each array once and plans nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilewright_kernel::Element;

use super::{Launcher, Ready, alike, bits_of_all, locked, stream_of};
use crate::foreign::Array;
use crate::kernel::program::sizes_of;
use crate::refusal;
use crate::writes::{PlainRules, Writes};

/// The largest number of calls of a function that are kept, so that shapes that never repeat do not
/// fill memory.
const KEPT: usize = 1024;

/// The extents or the strides of an array.
type AxisNumbers = SmallVec<[i64; 6]>;

/// The arrays of a call, in the order of the function's arguments.
type Arrays = SmallVec<[Array; 6]>;

/// Allocates an array: a function of its library and the arguments. Without arguments, it is called
/// with the first array of the call.
type Maker<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyTuple>>, Option<Bound<'py, PyDict>>);

struct Made {
    function: Py<PyAny>,
    arguments: Option<Py<PyTuple>>,
    named: Option<Py<PyDict>>,
    /// The function as an allocator on the current device, with the index of that device and the
    /// first three arguments.
    quick: Option<(Py<CudaAllocator>, i64, Py<PyTuple>)>,
}

impl Made {
    fn of((function, arguments, named): Maker<'_>) -> Made {
        let quick = arguments.as_ref().and_then(|arguments| {
            let allocator = function.cast::<CudaAllocator>().ok()?;
            let number = arguments.get_item(4).ok()?.extract().ok()?;
            Some((allocator.clone().unbind(), number, arguments.get_slice(0, 3).unbind()))
        });
        let (arguments, named) = (arguments.map(Bound::unbind), named.map(Bound::unbind));
        Made { function: function.unbind(), arguments, named, quick }
    }

    /// Allocates an array. If given, `leading` axes replace its axis of rows.
    fn make<'py>(&self, like: &Bound<'py, PyAny>, leading: Option<&[i64]>) -> PyResult<Bound<'py, PyAny>> {
        let py = like.py();
        if let Some((allocator, number, arguments)) = &self.quick {
            let (allocator, arguments) = (allocator.get(), arguments.bind(py));
            if allocator.is_current(py, *number)? {
                let quick = allocator.quick.bind(py);
                let Some(leading) = leading else { return quick.call1(arguments) };
                let length: i64 = arguments.get_item(0)?.get_item(-1)?.extract()?;
                let shape: AxisNumbers = leading.iter().copied().chain([length]).collect();
                let mut strides = AxisNumbers::from_elem(1, shape.len());
                for axis in (1..shape.len()).rev() {
                    strides[axis - 1] = strides[axis] * shape[axis];
                }
                return quick.call1((PyTuple::new(py, shape)?, PyTuple::new(py, strides)?, arguments.get_item(2)?));
            }
        }
        if let Some(leading) = leading {
            let rows = self.make(like, None)?;
            let shape: AxisNumbers = leading.iter().copied().chain([-1]).collect();
            return rows.call_method1(pyo3::intern!(py, "view"), PyTuple::new(py, shape)?);
        }
        let function = self.function.bind(py);
        match &self.arguments {
            None => function.call1((like,)),
            Some(arguments) => function.call(arguments.bind(py), self.named.as_ref().map(|named| named.bind(py))),
        }
    }
}

/// Allocates CUDA tensors of PyTorch without its dispatcher, which takes longer than the
/// allocation.
///
/// It is made of three functions: one returns the number of the current device, and is None where
/// there is one device only; one allocates there alone, with shape, strides and type; and one
/// allocates on any device.
#[pyclass(frozen, module = "tilewright")]
pub struct CudaAllocator {
    current: Option<Py<PyAny>>,
    quick: Py<PyAny>,
    usual: Py<PyAny>,
}

impl CudaAllocator {
    fn is_current(&self, py: Python<'_>, number: i64) -> PyResult<bool> {
        let Some(current) = &self.current else { return Ok(true) };
        Ok(current.bind(py).call0()?.extract::<i64>()? == number)
    }
}

#[pymethods]
impl CudaAllocator {
    #[new]
    fn new(current: Option<Py<PyAny>>, quick: Py<PyAny>, usual: Py<PyAny>) -> CudaAllocator {
        CudaAllocator { current, quick, usual }
    }

    /// A tensor of this shape, strides and type on the device of this number.
    fn __call__<'py>(
        &self,
        shape: &Bound<'py, PyTuple>,
        strides: &Bound<'py, PyTuple>,
        dtype: &Bound<'py, PyAny>,
        device: &Bound<'py, PyAny>,
        number: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = shape.py();
        if self.is_current(py, number)? {
            return self.quick.bind(py).call1((shape, strides, dtype));
        }
        let named = PyDict::new(py);
        named.set_item(pyo3::intern!(py, "dtype"), dtype)?;
        named.set_item(pyo3::intern!(py, "device"), device)?;
        self.usual.bind(py).call((shape, strides), Some(&named))
    }
}

/// One launch of a call.
struct Launch {
    ready: Arc<Mutex<Ready>>,
    /// Its arrays, each with the number of elements before its first one.
    arrays: SmallVec<[(usize, i64); 8]>,
    /// The scalar arguments that each call passes.
    numbers: Vec<(String, Element)>,
}

/// The launches of a call.
struct Known {
    device: usize,
    /// The inputs, and the results if they were passed.
    arrays: Arrays,
    /// The number of passed results among the arrays.
    given: usize,
    results: Vec<Made>,
    workspaces: Vec<Made>,
    launches: Vec<Launch>,
}

/// The launches of calls of a function, by the layouts of their arrays.
#[pyclass(frozen, module = "tilewright")]
#[derive(Default)]
pub struct Calls {
    known: Mutex<Store>,
}

/// Known calls by the hashes of their arrays, and the call that was repeated last, because the next
/// one is often the same.
#[derive(Default)]
struct Store {
    all: HashMap<u64, Arc<Known>>,
    last: Option<Arc<Known>>,
}

impl Store {
    /// The known call on arrays with the same layouts. The last `given` arrays are passed results.
    fn find(&mut self, arrays: &[Array], given: usize) -> Option<Arc<Known>> {
        // Different layouts may have the same hash.
        let fits = |known: &&Arc<Known>| known.given == given && all_alike(&known.arrays, arrays);
        if let Some(known) = self.last.as_ref().filter(fits) {
            return Some(known.clone());
        }
        let found = self.all.get(&key(arrays, given)).filter(fits)?;
        self.last = Some(found.clone());
        Some(found.clone())
    }
}

/// A kernel, the indices of its arrays with the number of elements before each, and its sizes.
type DeviceCall<'py> = (Bound<'py, Launcher>, Vec<(usize, i64)>, Bound<'py, PyDict>);

#[pymethods]
impl Calls {
    #[new]
    fn new() -> Calls {
        Calls::default()
    }

    /// Repeats the launches of an earlier call with arrays of the same layouts. Returns the
    /// results, given or new; None if there was no such call. The numbers of the launch may be
    /// others than those of the earlier call.
    #[pyo3(signature = (inputs, outs = None, numbers = None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        outs: Option<&Bound<'py, PyTuple>>,
        numbers: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let rules = Writes::now(py)?;
        let mut arrays = Arrays::new();
        for (number, array) in
            inputs.iter_borrowed().chain(outs.iter().flat_map(|outs| outs.iter_borrowed())).enumerate()
        {
            rules.check(&array, number >= inputs.len())?;
            arrays.push(Array::of(&array)?);
        }
        let given = outs.map_or(0, |outs| outs.len());
        let found = locked(&self.known).find(&arrays, given);
        let (Some(known), Ok(first)) = (found, inputs.get_item(0)) else { return Ok(None) };
        let results = known.launch(&first, &mut arrays, None, numbers)?;
        if let Some(outs) = outs {
            outs.iter_borrowed().try_for_each(|out| rules.mark(&out))?;
            return Ok(Some(if outs.len() == 1 { outs.get_item(0)? } else { outs.clone().into_any() }));
        }
        one_or_all(py, results).map(Some)
    }

    /// Keeps the launches of a call on these inputs and results, followed by workspaces. Results
    /// were given, or are allocated by `makers`.
    #[pyo3(signature = (inputs, outs, makers, workspaces, launches, numbers = None))]
    #[expect(clippy::too_many_arguments, reason = "the parts of a call, as Python has them")]
    fn keep(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyTuple>,
        outs: &Bound<'_, PyTuple>,
        makers: Option<Vec<Maker<'_>>>,
        workspaces: (Bound<'_, PyTuple>, Vec<Maker<'_>>),
        launches: Vec<DeviceCall<'_>>,
        numbers: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let read = |arrays: &Bound<'_, PyTuple>| -> PyResult<Arrays> {
            arrays.iter_borrowed().map(|array| Array::of(&array)).collect()
        };
        let mut arrays = read(inputs)?;
        let given = if makers.is_none() { outs.len() } else { 0 };
        arrays.extend(read(outs)?);
        let named = inputs.len() + given;
        arrays.extend(read(&workspaces.0)?);
        let Some(device) = arrays.first().and_then(|array| array.device) else { return Ok(()) };
        if arrays.iter().any(|array| array.device != Some(device)) {
            return Ok(());
        }
        let mut kept = Vec::new();
        for (launcher, places, sizes) in launches {
            let Some(taken) =
                places.iter().map(|(number, before)| Some((arrays.get(*number)?, *before))).collect::<Option<Vec<_>>>()
            else {
                return Ok(());
            };
            let taken: Arrays = taken
                .into_iter()
                .map(|(array, before)| if before == 0 { array.clone() } else { array.clone().since(before) })
                .collect();
            let launcher = launcher.get();
            let bits = bits_of_all(&launcher.numbers, numbers)?;
            let ready = launcher.ready(py, device, &taken, &sizes_of(&sizes)?, &bits)?;
            kept.push(Launch { ready, arrays: places.into_iter().collect(), numbers: launcher.numbers.clone() });
        }
        arrays.truncate(named);
        let results = makers.into_iter().flatten().map(Made::of).collect();
        let workspaces = workspaces.1.into_iter().map(Made::of).collect();
        let made = Known { device, given, results, workspaces, launches: kept, arrays };
        let mut known = locked(&self.known);
        if known.all.len() >= KEPT {
            known.all.clear();
        }
        known.all.insert(key(&made.arrays, given), Arc::new(made));
        Ok(())
    }
}

/// The new arrays of a call.
type NewArrays<'py> = SmallVec<[Bound<'py, PyAny>; 2]>;

impl Known {
    /// Launches the kernels on arrays, and on new results and workspaces. The object of the first
    /// array is also passed. Returns the results, with `leading` axes instead of their axis of
    /// rows.
    fn launch<'py>(
        &self,
        first: &Bound<'py, PyAny>,
        arrays: &mut Arrays,
        leading: Option<&[i64]>,
        numbers: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<NewArrays<'py>> {
        let py = first.py();
        let mut make = |all: &[Made], leading: Option<&[i64]>| -> PyResult<NewArrays<'py>> {
            let made = all.iter().map(|made| {
                let array = made.make(first, leading)?;
                arrays.push(Array::of(&array)?);
                Ok(array)
            });
            made.collect()
        };
        let results = make(&self.results, leading)?;
        // The workspaces are kept until the launches are on the stream. After that their library
        // may reuse them.
        let _workspaces = make(&self.workspaces, None)?;
        let stream = stream_of(py, self.device, arrays)?;
        for launch in &self.launches {
            let taken = launch.arrays.iter().filter_map(|(number, before)| Some((arrays.get(*number)?, *before)));
            let bits = bits_of_all(&launch.numbers, numbers)?;
            let launched = locked(&launch.ready).launch(stream, taken, &bits);
            launched.map_err(|error| refusal::of_gpu(py, &error))?;
        }
        Ok(results)
    }
}

/// The array if there is only one, or a tuple of all arrays.
fn one_or_all<'py>(py: Python<'py>, all: NewArrays<'py>) -> PyResult<Bound<'py, PyAny>> {
    match &all[..] {
        [only] => Ok(only.clone()),
        _ => Ok(PyTuple::new(py, all)?.into_any()),
    }
}

/// The number of threads that record the launches of their calls.
static RECORDERS: AtomicUsize = AtomicUsize::new(0);

/// Notes that a thread begins to record, or ends. Meanwhile `repeat_call` launches nothing.
#[pyfunction]
pub fn note_recorder(begins: bool) {
    match begins {
        true => RECORDERS.fetch_add(1, Ordering::Relaxed),
        false => RECORDERS.fetch_sub(1, Ordering::Relaxed),
    };
}

/// Repeats the launches of an earlier call on ordinary tensors of PyTorch: `calls` are the known
/// calls of functions, `call` is the key of this one, and an array may be None, which is left out.
/// The result is `out`, or a new tensor without it.
///
/// Where PyTorch records gradients by one of the arrays, `record` is called with the results in a
/// tuple and with `arguments`: it is what applies a function of autograd, and its result is that of
/// the call.
///
/// With `by_rows` the earlier call was a product of the rows of the first array as a matrix, and of
/// a second matrix, whose rows have a number each in a third array, if there is one: the result has
/// the leading axes of the first.
///
/// Returns None if there was no such call, or if the arrays are not ordinary tensors, or if nothing
/// records, or if `out` is one that the function refuses, or that shares memory with an array.
#[pyfunction]
#[pyo3(signature = (calls, call, given, record, arguments, out = None, by_rows = false))]
pub fn repeat_call<'py>(
    calls: &Bound<'py, PyDict>,
    call: &Bound<'py, PyAny>,
    given: &Bound<'py, PyTuple>,
    record: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    by_rows: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = calls.py();
    let Some(rules) = PlainRules::now(py)?.filter(|_| RECORDERS.load(Ordering::Relaxed) == 0) else {
        return Ok(None);
    };
    let (mut arrays, mut is_recorded) = (Arrays::new(), false);
    for array in given.iter_borrowed().filter(|array| !array.is_none()).chain(out.map(Bound::as_borrowed)) {
        let read = if rules.is_plain(&array) { Array::of_plain_cuda_tensor(&array) } else { None };
        let Some(read) = read else { return Ok(None) };
        is_recorded |= rules.is_recorded(&array)?;
        arrays.push(read);
    }
    if is_recorded && (out.is_some() || record.is_none() || rules.is_transformed(py)?) {
        return Ok(None);
    }
    let Some(known) = calls.get_item(call)? else { return Ok(None) };
    let mut leading = None;
    if by_rows {
        let Some(axes) = as_rows(&mut arrays, out.is_some()) else { return Ok(None) };
        leading = axes;
    }
    let known = locked(&known.cast::<Calls>()?.get().known).find(&arrays, usize::from(out.is_some()));
    let (Some(known), Ok(first)) = (known, given.get_item(0)) else { return Ok(None) };
    if let Some(out) = out {
        let Some((written, read)) = arrays.split_last() else { return Ok(None) };
        if read.iter().any(|array| array.may_share(written)) {
            return Ok(None);
        }
        rules.check_written(out)?;
        known.launch(&first, &mut arrays, None, None)?;
        rules.mark(out)?;
        return Ok(Some(out.clone()));
    }
    let made = one_or_all(py, known.launch(&first, &mut arrays, leading.as_deref(), None)?)?;
    if !is_recorded {
        return Ok(Some(made));
    }
    let arguments = arguments.cast::<PyTuple>()?;
    let made = PyTuple::new(py, [made])?.into_any();
    let all: SmallVec<[Bound<'py, PyAny>; 8]> = std::iter::once(made).chain(arguments.iter()).collect();
    record.call1(PyTuple::new(py, all)?).map(Some)
}

/// Views the first array of a GEMM and its result as matrices; the result is the last array if it
/// was passed. Returns the leading axes of the first array, if it is not a matrix.
///
/// None if the arrays are not those of a GEMM, or cannot be viewed as matrices in memory.
fn as_rows(arrays: &mut Arrays, with_out: bool) -> Option<Option<AxisNumbers>> {
    let out = if with_out { arrays.pop() } else { None };
    let [x, matrix, numbers @ ..] = &arrays[..] else { return None };
    let rows = &matrix.shape[..matrix.shape.len().min(1)];
    if numbers.iter().any(|numbers| numbers.shape[..] != *rows) {
        return None;
    }
    let axes = x.shape.split_last()?.1;
    if let Some(out) = &out
        && (!out.shape.iter().eq(axes.iter().chain(rows)) || ![x.element, Element::F32].contains(&out.element))
    {
        return None;
    }
    if x.shape.len() == 2 {
        arrays.extend(out);
        return Some(None);
    }
    let leading = AxisNumbers::from_slice(axes);
    let first = arrays.first_mut()?;
    *first = first.clone().rows()?;
    if let Some(out) = out {
        arrays.push(out.rows()?);
    }
    Some(Some(leading))
}

/// A hash that is equal for arrays with equal layouts.
fn key(arrays: &[Array], given: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    given.hash(&mut hasher);
    for array in arrays {
        (array.element as u8, array.device, array.before(), array.read_only).hash(&mut hasher);
        (&array.shape[..], &array.strides[..]).hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether the arrays of two calls have the same layouts, on the same devices.
fn all_alike(known: &[Array], others: &[Array]) -> bool {
    known.len() == others.len()
        && known.iter().zip(others).all(|(a, b)| a.device == b.device && a.before() == b.before() && alike(a, b))
}
