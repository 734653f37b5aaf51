//! GEMM on a device, in one call.
//!
//! Law: the kernels are those that [`planners::gemm`](tilewright_planners::gemm) plans from types,
//! sizes and layouts. They run in order on one stream, with a workspace of the number of bytes that
//! the plan states.

use crate::{
    Argument, Device, DeviceTensor, Element as DeviceElement, ElementType, GpuError, Memory, ModuleOptions,
    SizedKernel, Stream,
};
use tilewright_kernel::Element;
use tilewright_layout::Layout;
use tilewright_planners::gemm::{Matrix, Problem, Problems, Product, ProductTensor, Products, Step};
use tilewright_planners::{PlanError, Planner};

use crate::devices::measured::DevicePlanner;
use crate::error::{one_of, refused_by};

one_of! {
    /// Why a GEMM cannot run on a device.
    #[derive(Debug, Clone)]
    ProductError {
        /// The GEMM cannot be planned.
        Plan(PlanError),
        /// An error of the driver, or of a launch.
        Gpu(GpuError),
    }
}
refused_by! { ProductError: Plan, Gpu }

/// Compiled kernels on a device, and the workspaces that they share.
#[derive(Debug)]
struct CompiledSteps {
    kernels: Vec<SizedKernel>,
    /// The workspaces. One is None while a kernel writes it.
    workspaces: Vec<Option<Memory>>,
}

impl CompiledSteps {
    fn of(
        device: &Device,
        steps: &[Step],
        workspaces: &[i64],
        options: &ModuleOptions,
    ) -> Result<CompiledSteps, ProductError> {
        let kernels = steps.iter().map(|step| device.compile(step.kernel(), options)?.at(step.sizes()));
        let kernels = kernels.collect::<Result<_, _>>()?;
        let workspaces = workspaces.iter().map(|bytes| device.allocate(*bytes as u64).map(Some));
        let workspaces = workspaces.collect::<Result<_, _>>()?;
        Ok(CompiledSteps { kernels, workspaces })
    }

    /// Launches the kernels in order. `argument` returns a tensor of the problem with a number.
    fn launch<'a>(
        &mut self,
        stream: &Stream,
        steps: &[Step],
        argument: impl Fn(usize, ProductTensor) -> Option<Argument<'a>>,
    ) -> Result<(), GpuError> {
        for (step, kernel) in steps.iter().zip(&self.kernels) {
            let reads = step.read_and_written().0.len();
            let operands: Vec<(usize, ProductTensor)> = step.problems().zip(step.operands().iter().copied()).collect();
            let (from, to) = operands.split_at(reads);
            // Workspaces that are written are removed from the list during the launch.
            let mut own: Vec<(usize, Memory)> = Vec::new();
            for (_, operand) in to {
                if let ProductTensor::Workspace(number) = operand
                    && let Some(memory) = self.workspaces.get_mut(*number).and_then(Option::take)
                {
                    own.push((*number, memory));
                }
            }
            let read = |(problem, operand): &(usize, ProductTensor)| match operand {
                ProductTensor::Workspace(number) => {
                    self.workspaces.get(*number).and_then(Option::as_ref).map(Argument::from)
                }
                operand => argument(*problem, *operand),
            };
            let mut arguments: Vec<Argument<'_>> = from.iter().filter_map(read).collect();
            // Each is written once, in the order of the kernel's parameters.
            let mut left = own.iter_mut();
            for (problem, operand) in to {
                arguments.extend(match operand {
                    ProductTensor::Workspace(_) => left.next().map(|(_, memory)| Argument::from(memory)),
                    operand => argument(*problem, *operand),
                });
            }
            let launched = kernel.launch(stream, &arguments);
            drop(arguments);
            for (number, memory) in own {
                if let Some(place) = self.workspaces.get_mut(number) {
                    *place = Some(memory);
                }
            }
            launched?;
        }
        Ok(())
    }
}

/// A tensor of a problem as an argument of a kernel. The inputs are A, B, epilogue inputs, scales
/// and group ends; the outputs are D and the reductions.
fn argument_of<'a>(
    problem: &Problem,
    operand: ProductTensor,
    (given, written): (&[Argument<'a>], &[Argument<'a>]),
) -> Option<Argument<'a>> {
    let inputs = problem.epilogue().map_or(0, |fused| fused.inputs.len());
    let ends = inputs + if problem.scales().is_some() { 4 } else { 2 };
    match operand {
        ProductTensor::A => given.first().copied(),
        ProductTensor::B => given.get(1).copied(),
        ProductTensor::Input(number) => given.get(number + 2).copied(),
        ProductTensor::ScalesA => given.get(inputs + 2).copied(),
        ProductTensor::ScalesB => given.get(inputs + 3).copied(),
        ProductTensor::Ends => given.get(ends).copied(),
        ProductTensor::D => written.first().copied(),
        ProductTensor::Reduction(number) => written.get(number + 1).copied(),
        ProductTensor::Workspace(_) => None,
    }
}

/// A GEMM that was planned and compiled for a device, with its workspace. It can be launched any
/// number of times.
#[derive(Debug)]
pub struct DeviceProduct {
    product: Product,
    compiled: CompiledSteps,
}

impl DeviceProduct {
    /// The GEMM of the measured plan for this problem and device
    /// ([`DevicePlanner`]), or else of the plan that the model of the machine
    /// chooses.
    ///
    /// Errors: as [`Product::new`]; there is no memory for the workspace; the driver refuses a
    /// kernel.
    pub fn new(device: &Device, problem: &Problem) -> Result<DeviceProduct, ProductError> {
        let product = DevicePlanner::new(device)?.gemm(problem)?;
        DeviceProduct::of(device, product, &ModuleOptions::default())
    }

    /// The GEMM with a given plan.
    ///
    /// Errors: there is no memory for the workspace; the driver refuses a kernel.
    pub fn of(device: &Device, product: Product, options: &ModuleOptions) -> Result<DeviceProduct, ProductError> {
        let compiled = CompiledSteps::of(device, product.steps(), product.workspaces(), options)?;
        Ok(DeviceProduct { product, compiled })
    }

    /// The problem, plan and kernels.
    pub fn product(&self) -> &Product {
        &self.product
    }

    /// Launches the GEMM on a stream, and returns at once. `given` are A, B, the epilogue inputs in
    /// order, the scales (those of A first), and the group ends; `written` are D and the reductions
    /// in order. An argument is memory of this device, a part of it, or memory of another device.
    /// Launches on different streams share the workspace: if there is one, synchronize the streams.
    ///
    /// Errors: as [`SizedKernel::launch`]: memory that is missing, too small, or of another device.
    pub fn launch(
        &mut self,
        stream: &Stream,
        given: &[Argument<'_>],
        written: &[Argument<'_>],
    ) -> Result<(), GpuError> {
        let problem = self.product.problem();
        let argument = |_, operand| argument_of(problem, operand, (given, written));
        self.compiled.launch(stream, self.product.steps(), argument)
    }
}

/// The GEMMs of a list of problems, planned and compiled for a device, with their workspace. They
/// can be launched any number of times.
///
/// ```
/// use tilewright::gemm::{DeviceProducts, ProductError};
/// use tilewright::gpu::Device;
/// use tilewright::kernel::Element;
/// use tilewright::planners::gemm::{Problem, Problems};
///
/// let products = || -> Result<(), ProductError> {
///     let sizes = [[512, 256, 1024], [40, 4096, 64]];
///     let problems = sizes.map(|sizes| Problem::new(Element::Bf16, sizes).unwrap());
///     let device = Device::open(0)?;
///     let stream = device.stream()?;
///     let mut products = DeviceProducts::new(&device, &Problems::new(problems.to_vec())?)?;
///     let memory = |rows: i64, columns: i64| device.allocate((2 * rows * columns) as u64);
///     let mut given = Vec::new();
///     let mut written = Vec::new();
///     for [m, n, k] in sizes {
///         given.push([memory(m, k)?, memory(n, k)?]);
///         written.push(memory(m, n)?);
///     }
///     let given: Vec<Vec<_>> = given.iter().map(|operands| operands.iter().collect()).collect();
///     let mut written: Vec<_> = written.iter_mut().collect();
///     products.launch(&stream, &given, &mut written)?;
///     Ok(stream.synchronize()?)
/// };
/// // On a machine without a device for these kernels.
/// if let Err(error) = products() {
///     println!("{error}");
/// }
/// ```
#[derive(Debug)]
pub struct DeviceProducts {
    products: Products,
    compiled: CompiledSteps,
}

impl DeviceProducts {
    /// The GEMMs of the plan that the model of the machine chooses.
    ///
    /// Errors: as [`Products::new`]; there is no memory for the workspace; the driver refuses a
    /// kernel.
    pub fn new(device: &Device, problems: &Problems) -> Result<DeviceProducts, ProductError> {
        DeviceProducts::of(device, Products::new(problems, &device.machine()?)?, &ModuleOptions::default())
    }

    /// The GEMMs with a given plan.
    ///
    /// Errors: there is no memory for the workspace; the driver refuses a kernel.
    pub fn of(device: &Device, products: Products, options: &ModuleOptions) -> Result<DeviceProducts, ProductError> {
        let compiled = CompiledSteps::of(device, products.steps(), products.workspaces(), options)?;
        Ok(DeviceProducts { products, compiled })
    }

    /// The problems, plan and kernels.
    pub fn products(&self) -> &Products {
        &self.products
    }

    /// Launches the GEMMs on a stream, and returns at once. `given` are A, B and the epilogue
    /// inputs of each problem, in the order of the list, and `written` is D of each.
    ///
    /// Errors: as [`SizedKernel::launch`]: memory that is missing, too small, or of another device.
    pub fn launch(
        &mut self,
        stream: &Stream,
        given: &[Vec<&Memory>],
        written: &mut [&mut Memory],
    ) -> Result<(), GpuError> {
        let mut arguments: Vec<Vec<Argument<'_>>> = Vec::with_capacity(given.len());
        for own in given {
            arguments.push(own.iter().map(|memory| Argument::from(*memory)).collect());
        }
        let written: Vec<Argument<'_>> = written.iter_mut().map(|memory| Argument::from(&mut **memory)).collect();
        let problems = self.products.problems().problems();
        let argument = |number: usize, operand| {
            let own = arguments.get(number).map_or(&[][..], Vec::as_slice);
            argument_of(problems.get(number)?, operand, (own, written.get(number..)?))
        };
        self.compiled.launch(stream, self.products.steps(), argument)
    }
}

/// The element type of a kernel. An unsigned byte keeps its name.
fn element(kind: ElementType) -> Result<Element, PlanError> {
    Element::named(match kind {
        ElementType::S8 => "i8",
        ElementType::S32 => "i32",
        other => other.name(),
    })
    .ok_or_else(|| PlanError::Unknown {
        what: "type of a matrix",
        given: kind.name().to_string(),
        known: "bf16, f16, f32, s8, u8 and s32".to_string(),
    })
}

/// `D = A B` on a device, in one call: A `(M,K)`, B `(N,K)` and D `(M,N)`, or batches of them,
/// under any layouts and of the types that [`Problem::of`] takes. It returns when the kernels are
/// launched.
///
/// It plans, compiles and allocates its workspace at each call; a [`DeviceProduct`] does so once.
///
/// ```
/// use half::bf16;
/// use tilewright::Layout;
/// use tilewright::gemm::{ProductError, gemm};
/// use tilewright::gpu::{Device, DeviceTensor};
/// use tilewright::tensor::Tensor;
///
/// let product = || -> Result<Tensor<f32>, ProductError> {
///     let device = Device::open(0)?;
///     let stream = device.stream()?;
///     let layout = |text: &str| text.parse::<Layout>().unwrap();
///     // A has its columns contiguous, B its rows, and each line of D is 200 elements long.
///     let a = DeviceTensor::filled(&stream, layout("(100,80):(1,100)"), bf16::from_f32(0.5))?;
///     let b = DeviceTensor::filled(&stream, layout("(150,80):(80,1)"), bf16::from_f32(2.0))?;
///     let mut d = DeviceTensor::filled(&stream, layout("(100,150):(200,1)"), 0.0_f32)?;
///     gemm(&stream, &a, &b, &mut d)?;
///     Ok(d.read(&stream)?)
/// };
/// match product() {
///     Ok(d) => assert_eq!(*d.get([99, 149]).unwrap(), 80.0),
///     // On a machine without a device for these kernels.
///     Err(error) => println!("{error}"),
/// }
/// ```
///
/// Errors: as [`DeviceProduct::new`] and [`DeviceProduct::launch`].
pub fn gemm<S: DeviceElement, T: DeviceElement>(
    stream: &Stream,
    a: &DeviceTensor<S>,
    b: &DeviceTensor<S>,
    d: &mut DeviceTensor<T>,
) -> Result<(), ProductError> {
    let matrix = |kind: ElementType, layout: &Layout| Matrix::new(element(kind)?, layout);
    let problem =
        Problem::of(matrix(S::TYPE, a.layout())?, matrix(S::TYPE, b.layout())?, matrix(T::TYPE, d.layout())?)?;
    let mut product = DeviceProduct::new(&stream.device(), &problem)?;
    product.launch(stream, &[a.into(), b.into()], &[d.into()])?;
    Ok(())
}

/// Grouped GEMM on a device, in one call and one launch: A `(M,K)`, B with a matrix for each group,
/// `(N,K,G)`, D `(M,N)`, and the ends of the groups, `G:1`, non-decreasing. Group `g` has the rows
/// from the end of the previous group to its own end; rows after the last group keep their values.
///
/// The kernels read the ends on the device, so an earlier kernel on the same stream may compute
/// them, and the host need not wait. The call returns when the kernels are launched. As [`gemm`],
/// it plans at each call.
///
/// ```
/// use half::bf16;
/// use tilewright::Layout;
/// use tilewright::gemm::{ProductError, gemm_groups};
/// use tilewright::gpu::{Device, DeviceTensor};
/// use tilewright::tensor::Tensor;
///
/// let product = || -> Result<Tensor<f32>, ProductError> {
///     let device = Device::open(0)?;
///     let stream = device.stream()?;
///     let layout = |text: &str| text.parse::<Layout>().unwrap();
///     let a = DeviceTensor::filled(&stream, layout("(100,64):(64,1)"), bf16::from_f32(0.5))?;
///     let b = DeviceTensor::filled(&stream, layout("(40,64,3):(64,1,2560)"), bf16::from_f32(2.0))?;
///     let mut d = DeviceTensor::filled(&stream, layout("(100,40):(40,1)"), 0.0_f32)?;
///     // Groups of 30, 50 and 20 rows.
///     let ends = Tensor::from_fn(layout("3:1"), |at| [30, 80, 100][at as usize]).unwrap();
///     let ends = DeviceTensor::from_tensor(&stream, &ends)?;
///     gemm_groups(&stream, &a, &b, &ends, &mut d)?;
///     Ok(d.read(&stream)?)
/// };
/// match product() {
///     Ok(d) => assert_eq!(*d.get([99, 39]).unwrap(), 64.0),
///     // On a machine without a device for these kernels.
///     Err(error) => println!("{error}"),
/// }
/// ```
///
/// Errors: as [`Problem::grouped`], [`DeviceProduct::new`] and [`DeviceProduct::launch`]; the ends
/// are not one contiguous number for each group ([`PlanError::Shape`]).
pub fn gemm_groups<S: DeviceElement, T: DeviceElement>(
    stream: &Stream,
    a: &DeviceTensor<S>,
    b: &DeviceTensor<S>,
    ends: &DeviceTensor<i32>,
    d: &mut DeviceTensor<T>,
) -> Result<(), ProductError> {
    let matrix = |kind: ElementType, layout: &Layout| Matrix::new(element(kind)?, layout);
    let [rows, columns, result] =
        [matrix(S::TYPE, a.layout())?, matrix(S::TYPE, b.layout())?, matrix(T::TYPE, d.layout())?];
    let problem = Problem::grouped(rows, columns, result)?;
    let groups = problem.row_groups().unwrap_or(0);
    let joined = ends.layout().coalesce().map_err(PlanError::from)?;
    let side_by_side = matches!(joined.leaves(), [leaf] if leaf.extent == groups && (groups == 1 || leaf.stride == 1));
    if !side_by_side {
        let (layout, shape) = (ends.layout().to_string(), groups.to_string());
        return Err(PlanError::Shape { layout, shape }.into());
    }
    let mut product = DeviceProduct::new(&stream.device(), &problem)?;
    product.launch(stream, &[a.into(), b.into(), ends.into()], &[d.into()])?;
    Ok(())
}

/// GEMMs of several pairs of matrices on a device, in one call and one launch: A `(M,K)`, B `(N,K)`
/// and D `(M,N)` of each, of any sizes and with any layouts. It returns when the kernels are
/// launched. As [`gemm`], it plans at each call; a [`DeviceProducts`] does so once.
///
/// ```
/// use half::bf16;
/// use tilewright::Layout;
/// use tilewright::gemm::{ProductError, gemm_list};
/// use tilewright::gpu::{Device, DeviceTensor};
///
/// let products = || -> Result<[f32; 2], ProductError> {
///     let device = Device::open(0)?;
///     let stream = device.stream()?;
///     let layout = |text: &str| text.parse::<Layout>().unwrap();
///     let filled = |text: &str, number: f32| DeviceTensor::filled(&stream, layout(text), bf16::from_f32(number));
///     let first = [filled("(100,80):(80,1)", 0.5)?, filled("(16,80):(80,1)", 2.0)?];
///     let second = [filled("(8,640):(640,1)", 0.5)?, filled("(200,640):(640,1)", 1.0)?];
///     let mut d = DeviceTensor::filled(&stream, layout("(100,16):(16,1)"), 0.0_f32)?;
///     let mut e = DeviceTensor::filled(&stream, layout("(8,200):(200,1)"), 0.0_f32)?;
///     gemm_list(&stream, &mut [(&first[0], &first[1], &mut d), (&second[0], &second[1], &mut e)])?;
///     Ok([*d.read(&stream)?.get([99, 15]).unwrap(), *e.read(&stream)?.get([7, 199]).unwrap()])
/// };
/// match products() {
///     Ok(corners) => assert_eq!(corners, [80.0, 320.0]),
///     // On a machine without a device for these kernels.
///     Err(error) => println!("{error}"),
/// }
/// ```
///
/// Errors: as [`Problems::new`], [`DeviceProducts::new`] and [`DeviceProducts::launch`].
pub fn gemm_list<S: DeviceElement, T: DeviceElement>(
    stream: &Stream,
    products: &mut [(&DeviceTensor<S>, &DeviceTensor<S>, &mut DeviceTensor<T>)],
) -> Result<(), ProductError> {
    let matrix = |kind: ElementType, layout: &Layout| Matrix::new(element(kind)?, layout);
    let mut problems = Vec::new();
    for (a, b, d) in &*products {
        let [a, b, d] = [matrix(S::TYPE, a.layout())?, matrix(S::TYPE, b.layout())?, matrix(T::TYPE, d.layout())?];
        problems.push(Problem::of(a, b, d)?);
    }
    let mut planned = DeviceProducts::new(&stream.device(), &Problems::new(problems)?)?;
    let (mut given, mut written): (Vec<Vec<&Memory>>, Vec<&mut Memory>) = Default::default();
    for (a, b, d) in products {
        given.push(vec![a.memory(), b.memory()]);
        written.push(d.memory_mut());
    }
    planned.launch(stream, &given, &mut written)?;
    Ok(())
}
