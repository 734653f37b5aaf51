//! The result of a GEMM on a device: its time, that of cuBLAS, and its errors.
//!
//! Law: D is filled with poison before the kernels run, and compared with sums in f64 of the same
//! inputs; the number of compared elements is printed. Our kernels and cuBLAS, if it is there,
//! alternate, and the figure of each is the median over the rounds ([`Round`]).

use std::fmt::Write as _;

use serde_json::json;
use tilewright::bench::Round;
use tilewright::bench::tensors::{CHECKED, Tensors, compare, compare_kept, of_block, ready, wanted};
use tilewright::gpu::{Cublas, CublasError, CublasMatrix, CublasProduct, Device, GpuError, Memory, Stream};
use tilewright::kernel::Element;
use tilewright::kernel::machine::{Machine, Rates};
use tilewright::planners::gemm::{Matrix, Problem, Product, ProductTensor};

use crate::kernel::bench::{ROUNDS, median, timed};
use crate::output::Failure;

/// The result of a run on a device.
pub(super) struct MeasuredProduct {
    device: String,
    seconds: f64,
    /// The median seconds of cuBLAS, or the reason why there are none.
    cublas: Result<f64, String>,
    /// The median seconds of the same GEMM without an epilogue function and reductions; None if it
    /// has neither.
    bare: Option<f64>,
    /// Milliseconds of idle time before each round; None without a rest.
    rest: Option<u32>,
    compared: usize,
    /// The largest error, and its bound.
    error: f64,
    bound: f64,
    /// The largest error, in units of its bound.
    worst: f64,
    /// The peak rate of the device, in operations per second.
    peak: f64,
}

impl MeasuredProduct {
    pub(super) fn text(&self, product: &Product, text: &mut String) {
        let problem = product.problem();
        let rate = problem.operations() as f64 / self.seconds;
        let (microseconds, unit) =
            (self.seconds * 1e6, if problem.accumulator_type() == Element::I32 { "TOP/s" } else { "TFLOP/s" });
        let _ = writeln!(text, "  {}", self.device);
        let _ = writeln!(
            text,
            "  {microseconds:.1} us, the median of {ROUNDS} rounds{}; {:.1} {unit}, {:.3} of the {:.0} of the data sheet's clock",
            self.rest.map_or(String::new(), |rest| format!(", each after {rest} ms without work")),
            rate / 1e12,
            rate / self.peak,
            self.peak / 1e12
        );
        let _ = match &self.cublas {
            Ok(seconds) => {
                writeln!(text, "  cuBLAS {:.1} us: {:.3} of its rate", seconds * 1e6, seconds / self.seconds)
            }
            Err(because) => writeln!(text, "  no cuBLAS beside it: {because}"),
        };
        if let Some(bare) = self.bare {
            let _ = writeln!(text, "  the bare GEMM {:.1} us: {:.3} of its time", bare * 1e6, self.seconds / bare);
        }
        let [m, n, _] = problem.sizes();
        let _ = writeln!(
            text,
            "  {} of {} elements compared with f64: the largest error {:.3e}, within its bound {:.3e}; at most {:.3} of a bound",
            self.compared,
            m * n * problem.batch(),
            self.error,
            self.bound,
            self.worst
        );
    }

    pub(super) fn json(&self, product: &Product, object: &mut serde_json::Value) {
        let rate = product.problem().operations() as f64 / self.seconds;
        object["device"] = json!(self.device);
        object["median_us"] = json!(self.seconds * 1e6);
        object["tflops"] = json!(rate / 1e12);
        object["of_peak"] = json!(rate / self.peak);
        object["checked"] = json!(true);
        object["compared"] = json!(self.compared);
        object["error"] = json!(self.error);
        object["error_bound"] = json!(self.bound);
        object["worst"] = json!(self.worst);
        object["cublas_us"] = json!(self.cublas.as_ref().ok().map(|seconds| seconds * 1e6));
        object["rest_ms"] = json!(self.rest);
        object["bare_us"] = json!(self.bare.map(|seconds| seconds * 1e6));
        if let Err(because) = &self.cublas {
            object["no_cublas"] = json!(because);
        }
    }
}

/// Checks a GEMM on a device and times it, together with cuBLAS and the bare GEMM if there are any,
/// optionally with a rest before each round.
pub(super) fn measured(
    (device, machine): (&Device, &Machine),
    product: &Product,
    ends: Option<&[u8]>,
    rest: Option<u32>,
) -> Result<MeasuredProduct, Failure> {
    let problem = product.problem();
    let stream = device.stream()?;
    let kernels = ready(device, product.steps(), machine)?;
    let more = problem.epilogue().is_some() || problem.reductions().next().is_some();
    let bare = if more && problem.pairs().is_none() {
        let bare = problem.clone().bare();
        let bare = Product::new(&bare, machine).map_err(|error| Failure::refused(&error))?;
        // The GEMMs share tensors, and a workspace if it is large enough.
        let fits = bare.workspaces().iter().zip(product.workspaces()).all(|(own, other)| own <= other);
        let fits = fits && bare.workspaces().len() <= product.workspaces().len();
        if fits { Some(ready(device, bare.steps(), machine)?) } else { None }
    } else {
        None
    };
    let (mut tensors, blocks) = Tensors::filled(device, &stream, (problem, 0), ends, product.workspaces())?;
    tensors.launch(&stream, &kernels)?;
    stream.synchronize()?;
    let elements = wanted(problem, &blocks, CHECKED)?;
    let [error, bound, mut worst] = compare(problem, &stream, &elements, &tensors)?;
    let input = |operand: ProductTensor, at: i64| of_block(&blocks, operand, at);
    let compared = elements.len() + compare_kept(problem, &stream, &input, &tensors, &mut worst)?;

    let once = timed(device, &stream, 3, || tensors.launch(&stream, &kernels))?;
    let mut round = Round::new(device, once, rest)?;
    let mut rival = Rival::of(device, problem);
    let (mut ours, mut theirs, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(round.timed(device, &stream, || tensors.launch(&stream, &kernels))?);
        if let Some(bare) = &bare {
            plain.push(round.timed(device, &stream, || tensors.launch(&stream, bare))?);
        }
        if let Ok(rival) = &mut rival
            && rival.refused.is_none()
        {
            theirs.push(round.timed(device, &stream, || rival.multiply(&stream, &tensors))?);
        }
    }
    let cublas = match rival {
        Ok(Rival { refused: Some(because), .. }) | Err(because) => Err(because),
        Ok(_) => Ok(median(theirs)),
    };
    let has = device.attributes();
    let rates = Rates::of(device.capability(), has.multiprocessors, f64::from(has.clock_khz) * 1e3);
    let peak = match problem.operand_type() {
        Element::F32 => rates.matrix_tf32,
        Element::F64 => rates.matrix_f64,
        Element::U8 if problem.blocks().is_some() => rates.matrix_f4,
        Element::I8 | Element::U8 => rates.matrix_i8,
        element if element.bytes() == 1 => rates.matrix_f8,
        _ => rates.matrix_16,
    };
    Ok(MeasuredProduct {
        device: device.name().to_owned(),
        seconds: median(ours),
        cublas,
        bare: (!plain.is_empty()).then(|| median(plain)),
        rest,
        compared,
        error,
        bound,
        worst,
        peak,
    })
}

/// The same GEMM in cuBLAS.
pub(super) struct Rival {
    library: Cublas,
    product: CublasProduct,
    d: Memory,
    /// The reason why cuBLAS refused the GEMM; None if it did not.
    pub(super) refused: Option<String>,
}

impl Rival {
    pub(super) fn of(device: &Device, problem: &Problem) -> Result<Rival, String> {
        let library = Cublas::open(device).ok_or("none was found")?;
        if problem.pairs().is_some() || problem.scales().is_some() || problem.row_groups().is_some() {
            return Err("its interface has no pairs, no scales of blocks and no groups".into());
        }
        if problem.window().is_some() {
            return Err("its interface has no convolutions".into());
        }
        let matrix_of = |matrix: &Matrix, turned: bool| {
            let folded = || "its layouts are none of its interface".to_string();
            let layout = matrix.layout();
            let [rows, columns, batch] = matrix.extents();
            if layout.leaves().len() != layout.rank() || matrix.offset() > 0 {
                return Err(folded());
            }
            let stride = |mode: usize| layout.leaves().get(mode).map_or(0, |leaf| leaf.stride);
            let (contiguous, line) = match (stride(0), stride(1)) {
                (line, 1) => (true, line.max(columns)),
                (1, line) => (false, line.max(rows)),
                _ => return Err(folded()),
            };
            Ok(CublasMatrix { rows: contiguous != turned, line, step: if batch > 1 { stride(2) } else { 0 } })
        };
        let product = CublasProduct {
            sizes: problem.sizes(),
            batch: problem.batch(),
            operands: problem.operand_type().into(),
            tf32: problem.is_tf32(),
            result: problem.result_type().into(),
            a: matrix_of(problem.a(), false)?,
            b: matrix_of(problem.b(), true)?,
            d: matrix_of(problem.d(), false)?,
        };
        if problem.int4_scales().is_some() {
            return Err("its interface has no weights of four bits".into());
        }
        let is_of_bytes = problem.operand_type().bytes() == 1;
        if problem.has_nibbles() || is_of_bytes && problem.operand_type() != Element::I8 {
            return Err("its interface has not these types".into());
        }
        let reach = problem.d().reach().map_err(|error| error.to_string())?;
        let bytes = reach as u64 * u64::from(problem.result_type().bytes());
        let d = device.allocate(bytes + 256).map_err(|error| error.to_string())?;
        Ok(Rival { library, product, d, refused: None })
    }

    /// Launches one GEMM, or records the reason why it cannot.
    pub(super) fn multiply(&mut self, stream: &Stream, tensors: &Tensors) -> Result<(), GpuError> {
        let (Some(a), Some(b)) = (tensors.of(ProductTensor::A), tensors.of(ProductTensor::B)) else {
            self.refused = Some("there are no operands".into());
            return Ok(());
        };
        match self.library.multiply(stream, &self.product, [a, b], &mut self.d) {
            Ok(()) => Ok(()),
            Err(CublasError::Gpu(error)) => Err(error),
            Err(other) => {
                self.refused = Some(other.to_string());
                Ok(())
            }
        }
    }
}
