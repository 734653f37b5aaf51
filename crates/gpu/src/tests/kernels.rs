//! Kernels that are written with layouts: what is launched, and what is refused before the launch.

use tilewright_kernel::Kernel;
use tilewright_kernel::program::operation::Axis;
use tilewright_kernel::program::scalar::Scalar;
use tilewright_layout::{Layout, Slot, Tree};

use super::fake::{Books, books, driver_with};
use super::launches::opened;
use crate::borrowed::BorrowedMemory;
use crate::device::Device;
use crate::device_kernel::DeviceKernel;
use crate::device_tensor::DeviceTensor;
use crate::error::GpuError;
use crate::graph::Graph;
use crate::module::ModuleOptions;
use crate::stream::Stream;

/// The kernel y = 2 x, with a row of four elements for each thread, for an even number of rows.
fn twice() -> Kernel {
    let written = Kernel::build("twice", |k| {
        let (x, y) = (k.input::<f32>("x", "(N{div=2},4):(4,1)")?, k.output::<f32>("y", "(N,4):(4,1)")?);
        k.threads(128)?;
        let rows = x.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.load_predicated()?;
        let doubled = rows.map(|x| Ok(x * 2.0))?;
        y.local_tile((128, 4), k.block("(x,0)")?)?.thread_part()?.store_predicated(&doubled)
    });
    written.unwrap()
}

fn compiled(device: &Device) -> DeviceKernel {
    device.compile(&twice(), &ModuleOptions::default()).unwrap()
}

fn rows(stream: &Stream, count: i64) -> DeviceTensor<f32> {
    let layout: Layout = format!("({count},4):(4,1)").parse().unwrap();
    DeviceTensor::filled(stream, layout, 1.0).unwrap()
}

#[test]
fn a_launch_has_the_grid_and_the_numbers_of_the_program() {
    let (device, stream) = opened();
    let kernel = compiled(&device);
    assert_eq!(kernel.target().name(), "sm_90a");
    let (x, mut y) = (rows(&stream, 1000), rows(&stream, 1000));
    let sized = kernel.at(&[("N", 1000)]).unwrap();
    for _ in 0..2 {
        sized.launch(&stream, &[(&x).into(), (&mut y).into()]).unwrap();
    }
    let launched = books(|books| books.last.clone()).unwrap();
    assert_eq!((launched.entry.as_str(), launched.grid, launched.block), ("twice", [8, 1, 1], [128, 1, 1]));
    assert_eq!(launched.arguments[..2], [x.address(), y.address()].map(|address| address.to_ne_bytes().to_vec()));
    // Every size parameter of the PTX is a scalar argument of the launch.
    let numbers = kernel.program().launch(&[("N", 1000)]).unwrap().scalars;
    assert_eq!(launched.arguments.len(), 2 + numbers.len());
    for (bytes, number) in launched.arguments[2..].iter().zip(numbers) {
        assert_eq!(bytes[..], number.to_le_bytes()[..bytes.len()]);
    }
    drop((x, y, sized, kernel, stream, device));
    books(|books| assert!(books.live.is_empty(), "{:?}", books.live));
}

#[test]
fn sizes_and_tensors_that_do_not_fit_are_refused_before_the_driver_is_asked() {
    let (device, stream) = opened();
    let kernel = compiled(&device);
    let code = |result: Result<(), GpuError>| result.unwrap_err().code();
    let sizes = |sizes: &[(&str, i64)]| code(kernel.at(sizes).map(drop));
    // A size is missing, unknown, not allowed by the facts, or not positive.
    for refused in [&[][..], &[("M", 4)], &[("N", 3)], &[("N", 0)], &[("N", -2)], &[("N", i64::MAX - 1)]] {
        assert_eq!(sizes(refused), "E1002", "{refused:?}");
    }
    let sized = kernel.at(&[("N", 128)]).unwrap();
    let (x, mut y) = (rows(&stream, 128), rows(&stream, 128));
    let mut short = rows(&stream, 126);
    let mut wide = DeviceTensor::filled(&stream, "(128,4):(4,1)".parse::<Layout>().unwrap(), 0.0_f64).unwrap();
    assert_eq!(code(sized.launch(&stream, &[(&x).into()])), "E0812");
    assert_eq!(code(sized.launch(&stream, &[(&x).into(), (&mut wide).into()])), "E0812");
    assert_eq!(code(sized.launch(&stream, &[(&x).into(), (&y).into()])), "E0812");
    assert_eq!(code(sized.launch(&stream, &[(&x).into(), (&mut short).into()])), "E0820");
    assert_eq!(code(sized.launch(&stream, &[(&x).into(), short.memory_mut().into()])), "E0813");
    let same = (&mut y).into();
    assert_eq!(code(sized.launch(&stream, &[same, same])), "E0815");
    // The same number of bytes, but column-major instead of row-major.
    let columns: Layout = "(128,4):(1,128)".parse().unwrap();
    let mut columns = DeviceTensor::filled(&stream, columns, 0.0_f32).unwrap();
    let refused = sized.launch(&stream, &[(&x).into(), (&mut columns).into()]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`y` of twice has the layout (128,4):(4,1) at these sizes, but the tensor has (128,4):(1,128)"
    );
    assert_eq!(refused.code(), "E0820");
    assert_eq!(books(|books| books.launches), 0);
    sized.launch(&stream, &[x.memory().into(), columns.memory_mut().into()]).unwrap();
    // The same layout in another form.
    let nested: Layout = "((2,64),(2,2)):((4,8),(1,2))".parse().unwrap();
    let mut nested = DeviceTensor::filled(&stream, nested, 0.0_f32).unwrap();
    sized.launch(&stream, &[(&x).into(), (&mut nested).into()]).unwrap();
    assert_eq!(books(|books| std::mem::take(&mut books.launches)), 2);
    sized.launch(&stream, &[(&x).into(), (&mut y).into()]).unwrap();
    assert_eq!(books(|books| books.launches), 1);
}

/// The kernel y = x, in which two blocks claim rows of 32 elements.
fn claiming() -> Kernel {
    let written = Kernel::build("claiming", |k| {
        let (x, y) = (k.input::<f32>("x", "(M,32):(32,1)")?, k.output::<f32>("y", "(M,32):(32,1)")?);
        k.threads(32)?;
        k.grid(Axis::X, 2)?;
        k.dynamic_scheduler(k.size("M")?, 1)?.each(|claim| {
            let row = Tree::flat([Slot::At(claim.now().clone()), Slot::All])?;
            y.slice(row.clone())?.thread_part()?.store(&x.slice(row)?.thread_part()?.load()?)
        })
    });
    written.unwrap()
}

#[test]
fn launches_that_may_run_at_the_same_time_have_counts_of_their_own() {
    let (device, stream) = opened();
    let kernel = device.compile(&claiming(), &ModuleOptions::default()).unwrap();
    let at = kernel.program().scalars.iter().position(|scalar| *scalar == Scalar::Count).unwrap();
    let tensor = || DeviceTensor::filled(&stream, "(8,32):(32,1)".parse::<Layout>().unwrap(), 1.0_f32).unwrap();
    let (x, mut y) = (tensor(), tensor());
    let sized = kernel.at(&[("M", 8)]).unwrap();
    let mut count = |stream: &Stream| {
        sized.launch(stream, &[(&x).into(), (&mut y).into()]).unwrap();
        let recorded = |books: &mut Books| books.capture.as_ref().and_then(|launches| launches.last().cloned());
        let launched = books(|books| recorded(books).or(books.last.clone())).unwrap();
        u32::from_ne_bytes(launched.arguments[2 + at][..].try_into().unwrap())
    };
    let (first, other) = (count(&stream), device.stream().unwrap());
    // Launches on one stream run one after another and have the same counter; those on another
    // stream have a different one.
    assert_eq!(count(&stream), first);
    assert_ne!(count(&other), first);
    let (second, third) = (count(&other), device.stream().unwrap());
    assert!(![first, second].contains(&count(&third)));
    assert_eq!((count(&stream), count(&other)), (first, second));
    // A graph may be replayed concurrently with all of these; its own launches are in order.
    let mut counts = vec![first, second, count(&third)];
    for _ in 0..2 {
        let graph = Graph::capture(&stream, |_| {
            let recorded = count(&stream);
            assert_eq!(count(&stream), recorded);
            counts.push(recorded);
            Ok(())
        });
        drop(graph.unwrap());
    }
    assert_eq!(count(&stream), first);
    counts.sort_unstable();
    counts.dedup();
    assert_eq!(counts.len(), 5);
}

#[test]
fn the_text_is_for_the_device() {
    let on = |major, minor| {
        let driver = driver_with(|books| books.attributes.extend([(75, major), (76, minor)])).unwrap();
        let device = Device::of(driver, 0).unwrap();
        device.target().map(|target| target.name())
    };
    assert_eq!(on(8, 0).unwrap(), "sm_80");
    assert_eq!(on(8, 6).unwrap(), "sm_86");
    assert_eq!(on(8, 7).unwrap(), "sm_87");
    assert_eq!(on(8, 9).unwrap(), "sm_89");
    assert_eq!(on(9, 0).unwrap(), "sm_90a");
    assert_eq!(on(10, 0).unwrap(), "sm_100");
    assert_eq!(on(10, 3).unwrap(), "sm_100");
    assert_eq!(on(12, 0).unwrap(), "sm_120");
    assert_eq!(on(12, 1).unwrap(), "sm_121");
    assert_eq!(on(7, 5).unwrap_err().code(), "E0804");
}

/// Parts of memory that overlap are refused if one of them is written; adjacent parts are not.
#[test]
fn parts_of_one_memory_may_not_overlap_where_one_is_written() {
    let (device, stream) = opened();
    let kernel = compiled(&device);
    let sized = kernel.at(&[("N", 2)]).unwrap();
    let own = device.allocate(128).unwrap();
    let part = |first: u64, bytes: u64| {
        // SAFETY: the bytes are in `own`, which lives longer; the fake driver executes nothing.
        #[allow(unsafe_code)]
        unsafe {
            BorrowedMemory::new(&device, own.address() + first, bytes)
        }
    };
    for (first, shared) in [(0, true), (16, true), (31, true), (32, false), (96, false)] {
        let (x, mut y) = (part(0, 32), part(first, 32));
        let launched = sized.launch(&stream, &[(&x).into(), (&mut y).into()]);
        // Memory that is not aligned to the accesses of the kernel is refused for that reason.
        let code = launched.err().map(|error| error.code());
        assert_eq!(code == Some("E0815"), shared && first % 16 == 0, "{first}: {code:?}");
        assert_eq!(code.is_some(), shared, "{first}: {code:?}");
    }
}

/// A kernel with features that an older device lacks is refused when it is compiled for that
/// device; the error names the statement.
#[test]
fn a_kernel_for_newer_devices_is_refused() {
    let on = |major, minor| {
        let driver = driver_with(|books| books.attributes.extend([(75, major), (76, minor)])).unwrap();
        Device::of(driver, 0).unwrap()
    };
    let clustered = Kernel::build("clustered", |k| {
        let y = k.output::<f32>("y", "(32,1):(1,1)")?;
        k.threads(32)?;
        k.cluster(1)?;
        let part = y.thread_part()?;
        let values = part.fragment()?;
        values.fill(k.number(1.0_f32))?;
        k.cluster_barrier();
        part.store(&values)
    })
    .unwrap();
    let options = ModuleOptions::default();
    for (major, minor) in [(8, 0), (8, 6), (8, 9)] {
        let device = on(major, minor);
        let error = device.compile(&clustered, &options).unwrap_err();
        assert_eq!(error.code(), "E0921", "{error}");
        assert!(error.to_string().contains("cluster_barrier at "), "{error}");
        // The device remains usable.
        assert!(device.compile(&twice(), &options).is_ok());
    }
    assert!(on(9, 0).compile(&clustered, &options).is_ok());
}

/// Each block copies a box of 16 x 64 elements by TMA, to shared memory and back.
fn boxed() -> Kernel {
    let written = Kernel::build("boxed", |k| {
        let source = k.input::<u16>("source", "(M,K{div=8}):(K,1)")?;
        let target = k.output::<u16>("target", "(M,K):(K,1)")?;
        k.threads(32)?;
        let here = k.block("(x,y)")?;
        let stage = k.shared::<u16>("S<3,3,3> o 0 o (16,64):(64,1)")?;
        let pipeline = k.pipeline(1, 1)?;
        k.single(|| {
            let iteration = pipeline.cursor()?.stage()?;
            iteration.acquire()?;
            iteration.load(&source.local_tile((16, 64), here.clone())?, &stage)?;
            iteration.publish()?;
            iteration.wait()?;
            k.store_bulk(&stage, &target.local_tile((16, 64), here.clone())?)?;
            k.commit_bulk();
            k.wait_bulk(0);
            Ok(())
        })
    });
    written.unwrap()
}

#[test]
fn a_launch_makes_the_tensor_maps_of_the_program() {
    let (device, stream) = opened();
    let kernel = device.compile(&boxed(), &ModuleOptions::default()).unwrap();
    let layout = || "(40,72):(72,1)".parse::<Layout>().unwrap();
    let x = DeviceTensor::filled(&stream, layout(), 1_u16).unwrap();
    let mut y = DeviceTensor::filled(&stream, layout(), 0_u16).unwrap();
    let sized = kernel.at(&[("M", 40), ("K", 72)]).unwrap();
    sized.launch(&stream, &[(&x).into(), (&mut y).into()]).unwrap();
    // The last tensor map is that of the output: rows of 72 elements, and 40 rows of 144 bytes.
    let encoded = books(|books| books.encoded.clone()).unwrap();
    assert_eq!(encoded, (y.address(), vec![72, 40], vec![144], vec![64, 16]));
    let launched = books(|books| books.last.clone()).unwrap();
    let sizes: Vec<usize> = launched.arguments.iter().map(Vec::len).collect();
    assert_eq!((sizes[..2].to_vec(), sizes[sizes.len() - 2..].to_vec()), (vec![8, 8], vec![128, 128]));
    // The same memory has the same tensor maps, which are not encoded again.
    let encoded_for = || books(|books| books.encoded.take()).map(|(address, ..)| address);
    assert_eq!(encoded_for(), Some(y.address()));
    sized.launch(&stream, &[(&x).into(), (&mut y).into()]).unwrap();
    assert_eq!(encoded_for(), None);
    assert_eq!(books(|books| books.last.clone()).unwrap().arguments, launched.arguments);
    // Other memory has other tensor maps, as has another kernel with sizes.
    let z = DeviceTensor::filled(&stream, layout(), 2_u16).unwrap();
    sized.launch(&stream, &[(&z).into(), (&mut y).into()]).unwrap();
    assert_eq!(encoded_for(), Some(z.address()));
    sized.launch(&stream, &[(&x).into(), (&mut y).into()]).unwrap();
    assert_eq!(encoded_for(), Some(x.address()));
    kernel.at(&[("M", 40), ("K", 72)]).unwrap().launch(&stream, &[(&z).into(), (&mut y).into()]).unwrap();
    assert_eq!(encoded_for(), Some(y.address()));
    // An output may alias the tensor of its own tensor map, but no other tensor.
    let same = (&mut y).into();
    assert_eq!(sized.launch(&stream, &[same, same]).unwrap_err().code(), "E0815");
    // Missing memory is refused before the driver makes a tensor map.
    assert_eq!(sized.launch(&stream, &[(&x).into()]).unwrap_err().code(), "E0812");
}
