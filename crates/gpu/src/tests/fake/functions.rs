//! The functions of the fake driver, by symbol.
//!
//! Reason for unsafe code: C functions, which receive pointers.
#![allow(unsafe_code, non_snake_case)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use super::{Answer, Books, CONTEXT, CURRENT, Launched, books, call};
use crate::driver::{LaunchConfig, TensorMapBytes};
use crate::status::Code;

/// The bytes at a pointer.
///
/// # Safety
///
/// `pointer` must be valid for `count` bytes.
unsafe fn bytes<'a>(pointer: *const c_void, count: usize) -> &'a [u8] {
    // SAFETY: the requirement is that of the caller.
    unsafe { std::slice::from_raw_parts(pointer.cast(), count) }
}

/// The functions: for each its name, whether it requires a context, its parameters, and its body.
macro_rules! fakes {
    ($(fn $symbol:ident $wants:literal ($($name:ident: $kind:ty),* $(,)?) |$books:pat_param| $work:block)+) => {
        $(
            unsafe extern "C" fn $symbol($($name: $kind),*) -> Code {
                call(stringify!($symbol), $wants, |$books| {
                    #[allow(unused_unsafe)]
                    // SAFETY: pointers are valid as the driver's manual requires.
                    unsafe { $work }
                })
            }
        )+

        /// The function of a symbol.
        pub(in crate::tests) fn find(symbol: &'static str) -> Option<NonNull<c_void>> {
            if books(|books| books.missing == Some(symbol)) {
                return None;
            }
            match symbol {
                $(stringify!($symbol) => NonNull::new($symbol as *mut c_void),)+
                _ => None,
            }
        }
    };
}

/// Stores the text of the name of an error.
fn error_text(code: Code, place: *mut *const c_char, text: &'static CStr) -> Answer {
    if code == 777 {
        return Err(1);
    }
    // SAFETY: the caller passes a pointer to a variable.
    unsafe { *place = text.as_ptr() };
    Ok(())
}

/// Writes the log with this number, if it is among the options.
///
/// # Safety
///
/// There must be `count` options and values, and each log must have the size that its size option
/// states.
unsafe fn write_log(which: c_int, count: c_uint, options: *mut c_int, values: *mut *mut c_void, text: &str) {
    // SAFETY: the requirements are those of the caller.
    unsafe {
        let options = std::slice::from_raw_parts(options, count as usize);
        let values = std::slice::from_raw_parts(values, count as usize);
        let value = |option| values[options.iter().position(|known| *known == option).unwrap()];
        let length = value(which + 1).addr().min(text.len() + 1);
        let log = std::slice::from_raw_parts_mut(value(which).cast::<u8>(), length);
        log[..length - 1].copy_from_slice(&text.as_bytes()[..length - 1]);
        log[length - 1] = 0;
    }
}

/// The sizes of the parameters of an entry.
fn parameters(text: &str, entry: &str) -> Option<Vec<usize>> {
    let (_, list) = text.split_once(&format!(".entry {entry}("))?;
    // Comments are removed, because they may contain layouts.
    let list: String = list.lines().map(|line| line.split("//").next().unwrap_or(line)).collect();
    let (list, _) = list.split_once(')')?;
    let size = |parameter: &str| match parameter
        .split_whitespace()
        .find(|word| word.starts_with(".b") || word.starts_with(".u") || word.starts_with(".f"))
    {
        Some(".b8") => 128,
        Some(kind) => kind[2..].parse::<usize>().unwrap() / 8,
        None => panic!("{parameter}"),
    };
    Some(list.split(',').filter(|parameter| !parameter.trim().is_empty()).map(size).collect())
}

fn attribute(books: &Books, number: c_int) -> c_int {
    let usual = match number {
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        10 => 32,
        75 => 9,
        76 => 0,
        97 => 232_448,
        95 | 120 | 127 => 1,
        other => other,
    };
    books.attributes.get(&number).copied().unwrap_or(usual)
}

fakes! {
    fn cuInit false (_flags: c_uint) |books| { if books.init == 0 { Ok(()) } else { Err(books.init) } }
    fn cuDriverGetVersion false (version: *mut c_int) |books| { *version = books.version; Ok(()) }
    fn cuDeviceGetCount false (count: *mut c_int) |books| { *count = books.devices; Ok(()) }
    fn cuDeviceGet false (device: *mut c_int, ordinal: c_int) |_| { *device = ordinal; Ok(()) }
    fn cuDeviceGetName false (name: *mut c_char, length: c_int, _device: c_int) |_| {
        let text = c"Fake H200".to_bytes_with_nul();
        assert!(length as usize >= text.len());
        std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), text.len());
        Ok(())
    }
    fn cuDeviceGetAttribute false (value: *mut c_int, number: c_int, _device: c_int) |books| {
        *value = attribute(books, number);
        Ok(())
    }
    fn cuDeviceTotalMem_v2 false (total: *mut usize, _device: c_int) |books| { *total = books.bytes; Ok(()) }
    fn cuDevicePrimaryCtxRetain false (context: *mut usize, device: c_int) |books| {
        *context = CONTEXT + device as usize;
        let count = books.live.range(1..0x1000).count();
        books.live.insert(1 + count, "context");
        Ok(())
    }
    fn cuDevicePrimaryCtxRelease_v2 false (_device: c_int) |books| {
        let last = books.live.range(1..0x1000).next_back().map(|(handle, _)| *handle).expect("a retained context");
        books.live.remove(&last);
        if last == 1 {
            // The context is destroyed, and its errors with it.
            (books.sticky, books.failing) = (None, None);
        }
        Ok(())
    }
    fn cuCtxGetCurrent false (context: *mut usize) |_| { *context = CURRENT.get(); Ok(()) }
    fn cuCtxSetCurrent false (context: usize) |_| { CURRENT.set(context); Ok(()) }
    fn cuCtxPushCurrent_v2 false (context: usize) |books| {
        books.stack.push(CURRENT.replace(context));
        Ok(())
    }
    fn cuCtxPopCurrent_v2 false (context: *mut usize) |books| {
        *context = CURRENT.get();
        CURRENT.set(books.stack.pop().expect("a pushed context"));
        Ok(())
    }
    fn cuCtxSynchronize true () |books| { books.wait() }
    fn cuCtxEnablePeerAccess true (peer: usize, _flags: c_uint) |books| {
        if peer == CURRENT.get() {
            return Err(101);
        }
        if books.peers.insert((CURRENT.get(), peer)) { Ok(()) } else { Err(704) }
    }
    fn cuMemGetInfo_v2 true (free: *mut usize, total: *mut usize) |books| {
        let used: usize = books.memory.values().map(|words| 8 * words.len()).sum();
        (*free, *total) = (books.bytes - used, books.bytes);
        Ok(())
    }
    fn cuMemAlloc_v2 true (address: *mut u64, bytes: usize) |books| {
        let used: usize = books.memory.values().map(|words| 8 * words.len()).sum();
        if bytes > books.bytes.saturating_sub(used) {
            return Err(2);
        }
        // Memory begins at a multiple of 256 bytes, as that of the driver, and has arbitrary
        // contents.
        let mut words = vec![0xbad0_bad0_bad0_bad0_u64; bytes.div_ceil(8) + 32];
        let at = (words.as_mut_ptr().expose_provenance() as u64).next_multiple_of(256);
        books.memory.insert(at, words);
        books.live.insert(at as usize, "memory");
        *address = at;
        Ok(())
    }
    fn cuMemFree_v2 true (address: u64) |books| {
        books.memory.remove(&address).expect("memory");
        books.destroy(address as usize, "memory")
    }
    fn cuMemcpyHtoDAsync_v2 true (to: u64, from: *const c_void, count: usize, _stream: usize) |_| {
        std::ptr::copy_nonoverlapping(from.cast(), std::ptr::with_exposed_provenance_mut::<u8>(to as usize), count);
        Ok(())
    }
    fn cuMemcpyDtoHAsync_v2 true (to: *mut c_void, from: u64, count: usize, _stream: usize) |_| {
        std::ptr::copy_nonoverlapping(std::ptr::with_exposed_provenance::<u8>(from as usize), to.cast(), count);
        Ok(())
    }
    fn cuMemcpyDtoDAsync_v2 true (to: u64, from: u64, count: usize, _stream: usize) |_| {
        let from = std::ptr::with_exposed_provenance::<u8>(from as usize);
        std::ptr::copy(from, std::ptr::with_exposed_provenance_mut::<u8>(to as usize), count);
        Ok(())
    }
    fn cuMemcpy2DAsync_v2 true (copy: *const crate::driver::CopyLines, _stream: usize) |_| {
        let copy = &*copy;
        for line in 0..copy.count {
            let from = std::ptr::with_exposed_provenance::<u8>(copy.from.device as usize + line * copy.from.step);
            let to = std::ptr::with_exposed_provenance_mut::<u8>(copy.to.device as usize + line * copy.to.step);
            std::ptr::copy(from, to, copy.bytes);
        }
        Ok(())
    }
    fn cuMemsetD8Async true (at: u64, value: u8, count: usize, _stream: usize) |_| {
        std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u8>(at as usize), count).fill(value);
        Ok(())
    }
    fn cuMemsetD16Async true (at: u64, value: u16, count: usize, _stream: usize) |_| {
        std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u16>(at as usize), count).fill(value);
        Ok(())
    }
    fn cuMemsetD32Async true (at: u64, value: u32, count: usize, _stream: usize) |_| {
        std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut::<u32>(at as usize), count).fill(value);
        Ok(())
    }
    fn cuStreamCreateWithPriority true (stream: *mut usize, _flags: c_uint, _priority: c_int) |books| {
        *stream = books.make("stream");
        Ok(())
    }
    fn cuStreamDestroy_v2 true (stream: usize) |books| { books.destroy(stream, "stream") }
    fn cuStreamSynchronize true (_stream: usize) |books| { books.wait() }
    fn cuStreamQuery true (_stream: usize) |books| { books.wait() }
    fn cuStreamGetId true (stream: usize, number: *mut u64) |books| {
        *number = stream as u64;
        if books.capture.is_some() { Err(900) } else { Ok(()) }
    }
    fn cuStreamGetCaptureInfo_v2 true (
        _stream: usize, status: *mut c_int, recording: *mut u64, graph: *mut usize, steps: *mut usize, count: *mut usize
    ) |books| {
        assert!(graph.is_null() && steps.is_null() && count.is_null());
        *status = c_int::from(books.capture.is_some());
        *recording = books.recordings;
        Ok(())
    }
    fn cuStreamWaitEvent true (_stream: usize, _event: usize, _flags: c_uint) |_| { Ok(()) }
    fn cuStreamBeginCapture_v2 true (_stream: usize, _mode: c_int) |books| {
        assert!(books.capture.replace(Vec::new()).is_none());
        books.recordings += 1;
        Ok(())
    }
    fn cuStreamEndCapture true (_stream: usize, graph: *mut usize) |books| {
        let launches = books.capture.take().expect("a capture");
        let handle = books.make("graph");
        books.graphs.insert(handle, launches);
        *graph = handle;
        Ok(())
    }
    fn cuEventCreate true (event: *mut usize, _flags: c_uint) |books| { *event = books.make("event"); Ok(()) }
    fn cuEventDestroy_v2 true (event: usize) |books| { books.destroy(event, "event") }
    fn cuEventRecord true (_event: usize, _stream: usize) |_| { Ok(()) }
    fn cuEventSynchronize true (_event: usize) |books| { books.wait() }
    fn cuEventQuery true (_event: usize) |_| { Err(600) }
    fn cuEventElapsedTime true (milliseconds: *mut f32, first: usize, last: usize) |_| {
        *milliseconds = last as f32 - first as f32;
        Ok(())
    }
    fn cuGraphInstantiateWithFlags true (replay: *mut usize, graph: usize, _flags: u64) |books| {
        let launches = books.graphs[&graph].clone();
        let handle = books.make("replay");
        books.graphs.insert(handle, launches);
        *replay = handle;
        Ok(())
    }
    fn cuGraphLaunch true (replay: usize, _stream: usize) |books| {
        let launches = books.graphs[&replay].clone();
        launches.iter().for_each(|launched| books.run(launched));
        Ok(())
    }
    fn cuGraphExecDestroy true (replay: usize) |books| {
        books.unused();
        books.destroy(replay, "replay")
    }
    fn cuGraphDestroy true (graph: usize) |books| { books.destroy(graph, "graph") }
    fn cuModuleLoadDataEx true (
        module: *mut usize, image: *const c_void, count: c_uint, options: *mut c_int, values: *mut *mut c_void
    ) |books| {
        let head = bytes(image, 4);
        let text = if head == b"\x7fELF" {
            let table = u64::from_le_bytes(bytes(image, 48)[40..].try_into().unwrap()) as usize;
            String::from_utf8(bytes(image, table)[64..].to_vec()).unwrap()
        } else {
            CStr::from_ptr(image.cast()).to_str().unwrap().to_owned()
        };
        let note = if text.contains("serial") { "ptxas info : (C7510) serialized" } else { "ptxas info : fine" };
        write_log(3, count, options, values, note);
        if text.contains("nonsense") {
            write_log(5, count, options, values, "line 3; syntax error");
            return Err(218);
        }
        if text.contains("future") {
            return Err(222);
        }
        if text.contains("elsewhere") {
            return Err(209);
        }
        let handle = books.make("module");
        books.texts.insert(handle, text);
        *module = handle;
        Ok(())
    }
    fn cuModuleUnload true (module: usize) |books| {
        books.unused();
        books.destroy(module, "module")
    }
    fn cuModuleGetFunction true (function: *mut usize, module: usize, name: *const c_char) |books| {
        let name = CStr::from_ptr(name).to_str().unwrap().to_owned();
        let Some(sizes) = parameters(&books.texts[&module], &name) else { return Err(500) };
        books.next += 8;
        *function = books.next;
        books.functions.insert(books.next, (name, sizes));
        Ok(())
    }
    fn cuFuncGetAttribute true (value: *mut c_int, number: c_int, _function: usize) |_| {
        *value = match number { 0 => 512, 1 => 1024, 4 => 32, 6 => 90, 8 => 48 << 10, _ => 0 };
        Ok(())
    }
    fn cuFuncSetAttribute true (_function: usize, number: c_int, value: c_int) |books| {
        books.attributes.insert(1000 + number, value);
        Ok(())
    }
    fn cuFuncGetParamInfo true (function: usize, number: usize, _offset: *mut usize, size: *mut usize) |books| {
        *size = *books.functions[&function].1.get(number).ok_or(1)?;
        Ok(())
    }
    fn cuLaunchKernelEx true (
        config: *const LaunchConfig, function: usize, arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) |books| {
        let config = &*config;
        if books.functions[&function].0 == "empty" {
            return Ok(());
        }
        let (entry, sizes) = books.functions[&function].clone();
        let attributes = (0..config.attribute_count as usize).map(|number| {
            let attribute = &*config.attributes.add(number);
            (attribute.id, attribute.value[..3].try_into().unwrap())
        });
        let argument = |(number, size): (usize, &usize)| bytes(*arguments.add(number), *size).to_vec();
        let launched = Launched {
            entry,
            grid: config.grid,
            block: config.block,
            shared_bytes: config.shared_bytes,
            attributes: attributes.collect(),
            arguments: sizes.iter().enumerate().map(argument).collect(),
        };
        match &mut books.capture {
            Some(launches) => launches.push(launched),
            None => books.run(&launched),
        }
        Ok(())
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor true (
        blocks: *mut c_int, _function: usize, threads: c_int, _shared: usize
    ) |_| { *blocks = 2048 / threads; Ok(()) }
    fn cuOccupancyMaxActiveClusters true (clusters: *mut c_int, _function: usize, config: *const LaunchConfig) |_| {
        *clusters = 132 / (*(*config).attributes).value[0] as c_int;
        Ok(())
    }
    fn cuTensorMapEncodeTiled false (
        map: *mut TensorMapBytes, kind: c_int, rank: c_uint, address: u64, extents: *const u64, strides: *const u64,
        boxed: *const c_uint, steps: *const c_uint, interleave: c_int, _swizzle: c_int, _promotion: c_int, _fill: c_int
    ) |books| {
        let rank = rank as usize;
        let steps = std::slice::from_raw_parts(steps, rank);
        assert!(map.is_aligned() && interleave == 0 && steps.iter().all(|step| *step == 1));
        let list = |list: *const u64, length| std::slice::from_raw_parts(list, length).to_vec();
        let boxed = std::slice::from_raw_parts(boxed, rank).to_vec();
        books.encoded = Some((address, list(extents, rank), list(strides, rank - 1), boxed));
        *map = TensorMapBytes([kind as u64; 16]);
        Ok(())
    }
    fn cuGetErrorName false (code: Code, name: *mut *const c_char) |_| {
        error_text(code, name, c"CUDA_ERROR_OF_A_TEST")
    }
    fn cuGetErrorString false (code: Code, words: *mut *const c_char) |_| {
        error_text(code, words, c"as the test wants")
    }
}
