//! Plans that were measured on a device are used by every planner for that device.

use tilewright_kernel::Element;
use tilewright_kernel::machine::Machine;
use tilewright_layout::Layout;
use tilewright_mesh::{Exchange, Mesh, ShardedLayout};
use tilewright_planners::gemm::Problem;
use tilewright_planners::{Computation, EntryOptions, Planner, RowMatrix, Statistic, named};
use tilewright_tile::Program;

use super::fake::driver_with;
use crate::device::Device;
use crate::devices::measured::{Card, DevicePlanner, MeasuredPlans, Planning, Ranked, TileWork};
use crate::devices::reshard::pulls;

/// A device with the attributes of an H200.
fn h200() -> Device {
    let card = Machine::named("H200").unwrap();
    let of = card.multiprocessor;
    let numbers = [card.multiprocessors, of.threads, of.shared_bytes, of.registers, of.blocks, of.reserved_bytes];
    let given = [16, 39, 81, 82, 106, 111].into_iter().zip(numbers.map(|own| own as i32));
    let device = Device::of(driver_with(|books| books.attributes.extend(given)).unwrap(), 0).unwrap();
    assert_eq!(device.machine().unwrap(), card);
    device
}

/// Stores another plan than that of the model, as if it had been measured, in one line.
fn keep<W: Planning>(plans: &MeasuredPlans, device: &Device, work: &W) -> String {
    let machine = device.machine().unwrap();
    let all = work.candidates(&machine).unwrap_or_else(|error| panic!("{}: {error}", work.problem()));
    let first = W::line(&all[0]);
    let other = all.into_iter().enumerate().find(|(_, plan)| W::line(plan) != first);
    let (number, plan) = other.unwrap_or_else(|| panic!("one plan alone: {}", work.problem()));
    let line = W::line(&plan);
    plans.keep(&Card::of(device), work, &[Ranked { plan, number, seconds: 1e-3 }]).unwrap();
    line
}

#[test]
fn a_device_plans_as_was_measured() {
    let device = h200();
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    let layout = |text: &str| text.parse::<Layout>().unwrap();
    let place = |text: &str| Box::new((&layout(text)).into());
    let transposed = Computation::Relayout {
        from: place("(2048,1024):(1024,1)"),
        source: Element::F32,
        to: place("(2048,1024):(1,2048)"),
        destination: Element::F32,
    };
    let rows = Computation::Softmax { matrix: RowMatrix::new(8192, Element::Bf16).with_rows(512) };
    let sums = Computation::Reduce {
        statistic: Statistic::Sum,
        layout: layout("(2048,1024):(1024,1)"),
        element: Element::F32,
        modes: vec![1],
        alignment: 16,
    };
    let product = Problem::new(Element::Bf16, [512, 768, 256]).unwrap();
    let model = device.machine().unwrap();
    for work in [&transposed, &rows, &sums] {
        let kept = keep(&plans, &device, work);
        let planner = DevicePlanner::with(&device, &plans).unwrap();
        assert_eq!(planner.machine(), &model);
        assert_eq!(Computation::line(&planner.computation(work).unwrap()), kept);
        assert_ne!(Computation::line(&model.computation(work).unwrap()), kept);
        // Without the file, the plan is that of the model.
        let none = DevicePlanner::with(&device, &MeasuredPlans::none()).unwrap();
        assert_ne!(Computation::line(&none.computation(work).unwrap()), kept);
    }
    let kept = keep(&plans, &device, &product);
    let planner = DevicePlanner::with(&device, &plans).unwrap();
    assert_eq!(Problem::line(planner.gemm(&product).unwrap().plan()), kept);
    assert_ne!(Problem::line(model.gemm(&product).unwrap().plan()), kept);

    // A kernel of the library is planned as the computation that it performs.
    let entry = named("transpose").unwrap();
    let sizes = [("M", 2048), ("N", 1024)];
    let line = Computation::line(&planner.computation(&transposed).unwrap());
    assert_eq!(
        Computation::line(
            &entry
                .plan(&planner, EntryOptions { sizes: &sizes, element: Some(Element::F32), ..EntryOptions::default() })
                .unwrap()
        ),
        line
    );
    assert_ne!(
        Computation::line(
            &entry
                .plan(&model, EntryOptions { sizes: &sizes, element: Some(Element::F32), ..EntryOptions::default() })
                .unwrap()
        ),
        line
    );

    // A tensor is moved between devices: elements that a device already holds are copied by a
    // relayout.
    let mesh: Mesh = "x=2".parse().unwrap();
    let sharded = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let exchange =
        Exchange::new(&sharded("(2048,1024):(1024,1) copied 2:1@x"), &sharded("(2048,1024):(1,2048) copied 2:1@x"));
    let pulled = pulls(&exchange.unwrap(), 0, Element::F32, &planner).unwrap();
    assert_eq!(pulled.iter().map(|pull| Computation::line(&pull.planned)).collect::<Vec<_>>(), [line]);

    let program: Program = "tile sums {
        input x: f32 (M,256):(256,1)
        output y: f32 (M,1):(1,1)
        grid ceil(M/8)
        store(y, (block.x, 0), reduce_sum(load(x, (8,256), (block.x, 0)), 1))
    }"
    .parse()
    .unwrap();
    let kept = keep(&plans, &device, &TileWork { program: &program, sizes: vec![("M".into(), 64)] });
    let planner = DevicePlanner::with(&device, &plans).unwrap();
    assert_eq!(planner.tile(&program, &[("M", 64)]).unwrap().line(), kept);
    assert_ne!(planner.tile(&program, &[("M", 72)]).unwrap().line(), kept);
}

/// A file of unknown origin is ignored, and the planner reports that.
#[test]
fn a_file_that_cannot_be_read_is_told() {
    let device = h200();
    let folder = tempfile::tempdir().unwrap();
    let plans = MeasuredPlans::in_folder(folder.path());
    let rows = Computation::Softmax { matrix: RowMatrix::new(8192, Element::Bf16).with_rows(512) };
    let kept = keep(&plans, &device, &rows);
    assert!(DevicePlanner::with(&device, &plans).unwrap().unread().is_none());
    std::fs::write(plans.path(&Card::of(&device)).unwrap(), "no plans\n").unwrap();
    let planner = DevicePlanner::with(&device, &plans).unwrap();
    assert!(planner.unread().unwrap().to_string().contains("is not a file of measured plans"));
    assert_ne!(Computation::line(&planner.computation(&rows).unwrap()), kept);
}
