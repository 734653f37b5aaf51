//! For every driver call that may fail: the failure is reported, nothing leaks, and nothing panics.

use std::sync::Arc;

use tilewright_layout::Layout;
use tilewright_layout::atoms::{SwizzleMode, TensorMap};

use super::fake::{begin, books, find, set_current};
use super::launches::TEXT;
use crate::device::Device;
use crate::device_tensor::DeviceTensor;
use crate::driver::Driver;
use crate::element::ElementType;
use crate::error::GpuError;
use crate::graph::Graph;
use crate::launch::Launch;
use crate::module::ModuleOptions;
use crate::parameter::Parameter;
use crate::tensor_map::EncodedTensorMap;

/// Something of everything.
fn everything() -> Result<Vec<f32>, GpuError> {
    #[allow(unsafe_code)]
    // SAFETY: the functions of the fake have the parameters of the driver functions with these
    // names.
    let driver = Arc::new(unsafe { Driver::start(find) }?);
    let device = Device::of(driver, 0)?;
    let (stream, second) = (device.stream()?, device.stream()?);
    let (begin, end) = (device.event()?, device.event()?);
    let options = ModuleOptions::default();
    let module = device.load(TEXT.as_bytes(), &options)?;
    let again = device.load(TEXT.as_bytes(), &options)?;
    let list = [
        Parameter::write("x", ElementType::F32),
        Parameter::scalar("factor", ElementType::F32),
        Parameter::scalar("count", ElementType::U32),
    ];
    let scale = module.function("scale", &list)?;
    let _other = again.function("trap", &[])?;
    let rows: Layout = "(64,64):(64,1)".parse()?;
    let mut x = DeviceTensor::filled(&stream, rows.clone(), 1.0_f32)?;
    let doubled = DeviceTensor::filled(&stream, rows.clone(), 1.0_f64)?;
    let mut bytes = device.allocate(doubled.memory().bytes())?;
    bytes.copy_from(&stream, doubled.memory())?;
    bytes.fill_bytes(&second, 1)?;
    device.free_bytes()?;
    let boxes = TensorMap::new(&rows, &"(64,32)".parse()?, &"(64,32):(32,1)".parse()?, 32, SwizzleMode::Bytes128)?;
    EncodedTensorMap::new(&x, &boxes, SwizzleMode::Bytes128, Default::default(), Default::default())?;
    let launch = Launch::new([16, 1, 1], [256, 1, 1]).shared_bytes(100_000).cluster([16, 1, 1]);
    scale.resident_blocks(&launch)?;
    scale.resident_clusters(&launch)?;
    stream.record(&begin)?;
    second.wait(&begin)?;
    {
        let arguments = [(&mut x).into(), 2.0_f32.into(), 4096_u32.into()];
        scale.launch(&stream, &launch, &arguments)?;
        let graph = Graph::capture(&stream, |capture| capture.launch(&scale, &launch, &arguments))?;
        graph.launch(&stream)?;
    }
    stream.record(&end)?;
    end.seconds_since(&begin)?;
    end.is_done()?;
    second.is_done()?;
    device.synchronize()?;
    Ok(x.read(&stream)?.into_vec())
}

/// Calls whose refusal is not an error: those that describe an error, and those that free
/// something.
const TOLERATED: &[&str] = &[
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDevicePrimaryCtxRelease_v2",
    "cuMemFree_v2",
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
    "cuModuleUnload",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];

fn attempt(fail: Option<(usize, i32)>) -> (Result<Vec<f32>, GpuError>, Vec<&'static str>) {
    begin();
    // The fake starts without a current context.
    set_current(0);
    books(|books| books.fail = fail);
    let result = everything();
    books(|books| {
        assert!(books.live.is_empty(), "{fail:?} leaves {:?}", books.live);
        (result, books.trace.clone())
    })
}

#[test]
fn each_call_may_be_refused() {
    let (result, trace) = attempt(None);
    assert_eq!(result.unwrap(), [4.0; 4096]);
    // The calls at the end free everything; their failure cannot be reported.
    let last = trace.iter().rposition(|call| *call == "cuMemcpyDtoHAsync_v2").unwrap() + 1;
    assert_eq!(trace[last], "cuStreamSynchronize");
    let mut refused = 0;
    for number in 0..trace.len() {
        let symbol = trace[number];
        // Synchronisations within a drop are skipped: the drop synchronises before it frees.
        let dropped = ["cuModuleUnload", "cuGraphExecDestroy", "cuStreamDestroy_v2"];
        let in_drop = trace[number..].iter().take(2).any(|call| dropped.contains(call));
        let tolerated = TOLERATED.contains(&symbol) || in_drop || number > last;
        for code in [1, 2, 719] {
            let (result, _) = attempt(Some((number, code)));
            // The number 1 is also how the driver says that there are no more parameters.
            let ends = symbol == "cuFuncGetParamInfo" && code == 1;
            // Calls that query the context for a drop.
            let entering = symbol.starts_with("cuCtx");
            match result {
                Ok(numbers) => {
                    assert!(
                        tolerated || ends || entering,
                        "call {number}, {symbol}, was refused with {code}, and nobody knows"
                    );
                    assert_eq!(numbers, [4.0; 4096]);
                }
                Err(error) => {
                    refused += 1;
                    assert!(error.code().starts_with("E08"), "{error}");
                    let message = error.to_string();
                    let by_symbol = ends
                        || tolerated
                        || message.contains(symbol)
                        || message.contains("CUDA_ERROR_OF_A_TEST")
                        || code == 2;
                    assert!(by_symbol || error.code() == "E0802", "call {number}, {symbol}, {code}: {message}");
                }
            }
        }
    }
    assert!(refused > 300, "{refused}");
}
