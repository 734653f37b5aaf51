//! Cache of repeated calls of library functions.
//!
//! Law: a call on arrays with the same layouts as those of an earlier call launches the same
//! kernels, with results and workspaces allocated in the same way. The layouts are the same if
//! type, shape, strides, device and the address modulo 16 bytes are: a plan depends on nothing else
//! of its arrays. So a repeated call reads each array once and plans nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilewright_kernel::Element;

use super::{Launcher, Ready, alike, bits_of_all, locked, stream_of};
use crate::foreign::Array;
use crate::kernel::program::sizes_of;
use crate::refusal;
use crate::writes::Writes;

/// The most calls of a function that are kept: shapes that never repeat must not fill memory.
const KEPT: usize = 1024;

/// The arrays of a call, in the order of its function.
type Arrays = SmallVec<[Array; 6]>;

/// Allocates an array: a function of its library, and its arguments; without them it is called with
/// the first array of the call.
type Maker<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyTuple>>, Option<Bound<'py, PyDict>>);

struct Made {
    function: Py<PyAny>,
    arguments: Option<Py<PyTuple>>,
    named: Option<Py<PyDict>>,
}

impl Made {
    fn of((function, arguments, named): Maker<'_>) -> Made {
        Made { function: function.unbind(), arguments: arguments.map(Bound::unbind), named: named.map(Bound::unbind) }
    }

    fn make<'py>(&self, like: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = like.py();
        let function = self.function.bind(py);
        match &self.arguments {
            None => function.call1((like,)),
            Some(arguments) => function.call(arguments.bind(py), self.named.as_ref().map(|named| named.bind(py))),
        }
    }
}

/// A launch of a call.
struct Launch {
    ready: Arc<Mutex<Ready>>,
    /// Its arrays, and the number of elements that come before the first one of each.
    arrays: SmallVec<[(usize, i64); 8]>,
    /// The numbers that each call passes.
    numbers: Vec<(String, Element)>,
}

/// The launches of a call.
struct Known {
    device: usize,
    /// The inputs, and the results if they were given.
    arrays: Arrays,
    /// The number of given results among the arrays.
    given: usize,
    results: Vec<Made>,
    workspaces: Vec<Made>,
    launches: Vec<Launch>,
}

/// The launches of calls of a function, by the layouts of their arrays.
#[pyclass(frozen, module = "tilewright")]
#[derive(Default)]
pub struct Calls {
    known: Mutex<HashMap<u64, Arc<Known>>>,
}

/// A kernel, the numbers of its arrays with the number of elements before each, and its sizes.
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
        let found = locked(&self.known).get(&key(&arrays, given)).cloned();
        // Different layouts may have the same key.
        let Some(known) = found.filter(|known| known.given == given && all_alike(&known.arrays, &arrays)) else {
            return Ok(None);
        };
        let Ok(first) = inputs.get_item(0) else { return Ok(None) };
        let make = |made: &Made, arrays: &mut Arrays| -> PyResult<Bound<'py, PyAny>> {
            let array = made.make(&first)?;
            arrays.push(Array::of(&array)?);
            Ok(array)
        };
        let mut results: SmallVec<[Bound<'py, PyAny>; 2]> = SmallVec::new();
        for made in &known.results {
            results.push(make(made, &mut arrays)?);
        }
        // They are kept until the launches are on the stream; after that their library may reuse
        // them.
        let mut workspaces: SmallVec<[Bound<'py, PyAny>; 2]> = SmallVec::new();
        for made in &known.workspaces {
            workspaces.push(make(made, &mut arrays)?);
        }
        let stream = stream_of(py, known.device, &arrays)?;
        for launch in &known.launches {
            let taken = launch.arrays.iter().filter_map(|(number, before)| Some((arrays.get(*number)?, *before)));
            let bits = bits_of_all(&launch.numbers, numbers)?;
            let launched = locked(&launch.ready).launch(stream, taken, &bits);
            launched.map_err(|error| refusal::of_gpu(py, &error))?;
        }
        if let Some(outs) = outs {
            outs.iter_borrowed().try_for_each(|out| rules.mark(&out))?;
            return Ok(Some(one_or_all(outs.clone())?));
        }
        Ok(Some(one_or_all(PyTuple::new(py, results)?)?))
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
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key(&made.arrays, given), Arc::new(made));
        Ok(())
    }
}

/// The only one of several, or all.
fn one_or_all<'py>(all: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    if all.len() == 1 { all.get_item(0) } else { Ok(all.into_any()) }
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
