//! Functions of elements, reductions, softmax and products of sharded tensors, step by step in the
//! interpreter: what devices hold at the end is what defines the result.

use half::{bf16, f16};
use tilewright::kernel::interpret::Interpreter;
use tilewright::kernel::{Element, Kernel};
use tilewright::mesh::{Machine, Mesh, Reduction, ShardedLayout, argmax, map, multiply, reduce, softmax};
use tilewright::planners::gemm::ProductTensor;
use tilewright::planners::{Expression, Planned};
use tilewright::reshard::transfers;
use tilewright::sharded::{Tensor, WorkPlan, WorkStep};

use crate::{few, h200};

/// The types that devices reduce.
const TYPES: [Element; 6] = [Element::F32, Element::F16, Element::Bf16, Element::F64, Element::I32, Element::I64];

/// The bytes of a tensor on each device.
type Held = Vec<Vec<u8>>;

/// Whole numbers, so that sums are exact.
fn number(at: i64, summand: i64) -> f64 {
    ((at * 31 + summand * 5) % 23 - 11) as f64
}

fn whole(layout: &ShardedLayout, at: i64) -> f64 {
    (0..layout.sums()).map(|summand| number(at, summand)).sum()
}

fn bytes_of(value: f64, element: Element) -> Vec<u8> {
    match element {
        Element::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        Element::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        Element::F64 => value.to_le_bytes().to_vec(),
        Element::I32 => (value as i32).to_le_bytes().to_vec(),
        Element::I64 => (value as i64).to_le_bytes().to_vec(),
        _ => (value as f32).to_le_bytes().to_vec(),
    }
}

fn value_of(bytes: &[u8], element: Element) -> f64 {
    match element {
        Element::Bf16 => bf16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        Element::F16 => f16::from_le_bytes(bytes.try_into().unwrap()).to_f64(),
        Element::F64 => f64::from_le_bytes(bytes.try_into().unwrap()),
        Element::I32 => f64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
        Element::I64 => i64::from_le_bytes(bytes.try_into().unwrap()) as f64,
        _ => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
    }
}

/// What no element lies in is NaN.
fn filled(layout: &ShardedLayout, element: Element) -> Held {
    let (width, copies) = (element.bytes() as usize, layout.copies() as usize);
    let mut held = vec![vec![0xff; layout.reach() as usize * width]; layout.mesh().size()];
    for at in 0..layout.size() {
        for (place, (rank, offset)) in layout.places(at).unwrap().into_iter().enumerate() {
            let bytes = bytes_of(number(at, (place / copies) as i64), element);
            held[rank][offset as usize * width..][..width].copy_from_slice(&bytes);
        }
    }
    held
}

/// The tensors behind the inputs that a kernel leaves.
fn run_kernel(kernel: &Kernel, sizes: &[(&'static str, i64)], inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut interpreter = Interpreter::new(kernel.program(), sizes).unwrap();
    for (at, input) in inputs.iter().enumerate() {
        interpreter.bytes(at, &input[..interpreter.bytes_of(at).unwrap()]).unwrap();
    }
    let tensors = kernel.program().tensors().count();
    let run = interpreter.check().unwrap_or_else(|findings| panic!("{}", findings[0])).run;
    (inputs.len()..tensors).map(|at| run.bytes(at).unwrap().to_vec()).collect()
}

/// Adds what a kernel leaves to what there was: what it does not write is 0.
fn run(planned: &Planned, inputs: &[&[u8]], into: &mut [u8]) {
    let mut left = run_kernel(planned.kernel(), planned.sizes(), inputs);
    if let Some(second) = planned.second() {
        let inputs: Vec<&[u8]> = left.iter().map(Vec::as_slice).collect();
        left = run_kernel(second, planned.sizes(), &inputs);
    }
    let result = left.last().map_or(&[][..], Vec::as_slice);
    into.iter_mut().zip(result).for_each(|(place, byte)| *place |= byte);
}

/// The parts of the result that the devices hold.
fn carried_out(plan: &WorkPlan, operands: &[Held]) -> Held {
    let room = |tensor| vec![vec![0_u8; plan.bytes(tensor).unwrap() as usize]; plan.devices()];
    let mut between: Vec<Held> = (0..plan.tensors()[1]).map(|at| room(Tensor::Between(at))).collect();
    let mut result = room(Tensor::Result);
    for step in plan.steps() {
        let held = |tensor: &Tensor| match *tensor {
            Tensor::Operand(at) => &operands[at],
            Tensor::Between(at) => &between[at],
            Tensor::Result => panic!("the result is read"),
        };
        let mut written = room(step.to());
        match step {
            WorkStep::Move { plan, element, combine, from, .. } => {
                let mut now = held(from).clone();
                for step in plan.steps() {
                    let reach = step.exchange.to().reach() as usize * element.bytes() as usize;
                    let mut next = vec![vec![0_u8; reach]; now.len()];
                    for (rank, own) in next.iter_mut().enumerate() {
                        for pull in
                            transfers(&step.exchange, rank, *element, &few(), *combine, [u64::MAX; 2]).unwrap().pulls
                        {
                            let inputs: Vec<&[u8]> = pull.sources.iter().map(|rank| now[*rank].as_slice()).collect();
                            let Some(then) = &pull.then else {
                                run(&pull.planned, &inputs, own);
                                continue;
                            };
                            let mut beside = vec![0; then.bytes() as usize / 2];
                            run(&pull.planned, &inputs, &mut beside);
                            run(then, &[&beside], own);
                        }
                    }
                    now = next;
                }
                written = now;
            }
            WorkStep::Launch { planned, inputs, .. } => {
                for (rank, own) in written.iter_mut().enumerate() {
                    let inputs: Vec<&[u8]> =
                        inputs.iter().map(|(tensor, at)| &held(tensor)[rank][*at as usize..]).collect();
                    run(planned, &inputs, own);
                }
            }
            WorkStep::LaunchEach { planned, inputs, .. } => {
                for (rank, (own, planned)) in written.iter_mut().zip(planned).enumerate() {
                    let inputs: Vec<&[u8]> = inputs.iter().map(|tensor| held(tensor)[rank].as_slice()).collect();
                    run(planned, &inputs, own);
                }
            }
            WorkStep::Multiply { product, operands, .. } => {
                let [only] = product.steps() else { panic!("a product of one kernel") };
                assert!(matches!(only.read_and_written().1, [ProductTensor::D]));
                for (rank, own) in written.iter_mut().enumerate() {
                    let inputs: Vec<&[u8]> = operands.iter().map(|operand| held(operand)[rank].as_slice()).collect();
                    let left = run_kernel(only.kernel(), only.sizes(), &inputs);
                    own.iter_mut().zip(&left[0]).for_each(|(place, byte)| *place |= byte);
                }
            }
        }
        match step.to() {
            Tensor::Between(at) => between[at] = written,
            _ => result = written,
        }
    }
    result
}

/// Compares each place with the definition, of which it may be off by a part.
fn compared(layout: &ShardedLayout, held: &Held, element: Element, wanted: impl Fn(i64) -> f64, part: f64) {
    within(layout, held, element, wanted, [part, 0.0]);
}

/// The same where it may be off by so much, too.
fn within(layout: &ShardedLayout, held: &Held, element: Element, wanted: impl Fn(i64) -> f64, [part, least]: [f64; 2]) {
    let (width, copies) = (element.bytes() as usize, layout.copies() as usize);
    for at in 0..layout.size() {
        let places = layout.places(at).unwrap();
        for copy in 0..copies {
            let summands = places.iter().skip(copy).step_by(copies);
            let found: f64 = summands
                .map(|(rank, offset)| value_of(&held[*rank][*offset as usize * width..][..width], element))
                .sum();
            let wanted = wanted(at);
            let bound = part * wanted.abs() + least;
            assert!((found - wanted).abs() <= bound, "element {at} of {element} is {found}, not {wanted}: {layout}");
        }
    }
}

fn layouts<const N: usize>(mesh: &str, texts: [&str; N]) -> [ShardedLayout; N] {
    let mesh: Mesh = mesh.parse().unwrap();
    texts.map(|text| ShardedLayout::parse(&mesh, text).unwrap())
}

#[test]
fn functions_of_elements_lie_where_they_should() {
    for ((mesh, texts), element) in [
        ("x=2", ["((16,2),24):((24,1@x),1)", "(32,(12,2)):(1,(32,1@x)) at 3", "((16,2),24):((24,1@x),1)"]),
        ("x=2", ["(32,24):(1,32) summed 2:1@x", "(32,24):(24,1) copied 2:1@x", "(32,(12,2)):(12,(1,1@x)) at 4"]),
        ("x=2", ["((16,2),24):((1,1@x),16)", "((16,2),24):((1,1@x),16)", "(32,24):(1,32) copied 2:1@x"]),
        ("x=3", ["(30,7) copied 3:1@x", "((10,3),7):((1,1@x),10)", "(30,7):(7,1) summed 3:1@x"]),
    ]
    .into_iter()
    .flat_map(|case| TYPES.map(|element| (case, element)))
    {
        let [a, b, to] = layouts(mesh, texts);
        let plan = map(&[&a, &b], &to, i64::from(element.bytes()), &Machine::HGX_H200).unwrap();
        let function = Expression::input(0) * Expression::input(0) - Expression::input(1) * 3.0;
        let work = WorkPlan::map(&h200(), &plan, &function, element).unwrap();
        let held = carried_out(&work, &[filled(&a, element), filled(&b, element)]);
        let rounded = |value: f64| value_of(&bytes_of(value, element), element);
        compared(&to, &held, element, |at| rounded(whole(&a, at).powi(2) - whole(&b, at) * 3.0), 0.0);
    }
}

/// The elements of a matrix of so many rows that go into a result along one mode.
fn group(over: usize, [rows, columns]: [i64; 2], result: i64) -> Vec<i64> {
    match over {
        0 => (0..rows).map(|row| row + rows * result).collect(),
        _ => (0..columns).map(|column| result + rows * column).collect(),
    }
}

#[test]
fn reductions_along_cut_modes_are_those_of_all_elements() {
    let matrices = [
        "((32,2),48):((1,1@x),32)",
        "((32,2),48):((48,1@x),1) at 2",
        "(64,(24,2)):(1,(64,1@x))",
        "(64,(24,2)):(24,(1,1@x))",
        "(64,48):(1,64) summed 2:1@x",
        "((8,2,4),48):((1,1@x,8),32)",
    ];
    for matrix in matrices {
        for (over, results) in [
            (0, ["48:1 copied 2:1@x", "((24,2),):((1,1@x),)"]),
            (1, ["64:1 copied 2:1@x", "((2,32),):((1@x,1),) at 1"]),
        ] {
            for to in results {
                let [from, to] = layouts("x=2", [matrix, to]);
                for (by, element) in [Reduction::Sum, Reduction::Mean, Reduction::Max]
                    .into_iter()
                    .flat_map(|by| TYPES.map(|of| (by, of)))
                {
                    let plan = reduce(&from, &[over], by, &to, i64::from(element.bytes()), &Machine::HGX_H200).unwrap();
                    if by == Reduction::Mean && !element.is_float() {
                        let error = WorkPlan::reduce(&h200(), &plan, element).unwrap_err();
                        assert!(error.to_string().contains("a mean of i"), "{error}");
                        continue;
                    }
                    let work = WorkPlan::reduce(&h200(), &plan, element).unwrap();
                    let held = carried_out(&work, &[filled(&from, element)]);
                    let wanted = |result: i64| {
                        let values = group(over, [64, 48], result).into_iter().map(|at| whole(&from, at));
                        match by {
                            Reduction::Max => values.fold(f64::MIN, f64::max),
                            Reduction::Mean => values.sum::<f64>() / if over == 0 { 64.0 } else { 48.0 },
                            _ => values.sum(),
                        }
                    };
                    // Sums of 16 bits are rounded on each device and when they are added: of
                    // numbers of up to 64 * 11 each.
                    let (part, least) = match (by, element) {
                        (Reduction::Max, _) => (0.0, 0.0),
                        (Reduction::Mean, Element::F32 | Element::F64) => (1e-6, 0.0),
                        (_, Element::F16) => (0.0, 704.0 * 4.0 / 2048.0),
                        (_, Element::Bf16) => (0.0, 704.0 * 4.0 / 256.0),
                        _ => (0.0, 0.0),
                    };
                    within(&to, &held, element, wanted, [part, least]);
                }
            }
        }
    }
}

#[test]
fn places_of_greatest_elements_are_those_among_all_elements() {
    let matrices = [
        "((32,2),48):((1,1@x),32)",
        "((32,2),48):((48,1@x),1) at 2",
        "(64,(24,2)):(1,(64,1@x))",
        "((2,32),(2,24)):((1@x,48),(24,1)) at 1",
        "(64,48):(1,64) summed 2:1@x",
        "((8,2,4),48):((1,1@x,8),32)",
    ];
    let mut moved = 0;
    for (number, matrix) in matrices.into_iter().enumerate() {
        for (over, results) in [
            (&[0][..], ["48:1 copied 2:1@x", "((24,2),):((1,1@x),)"]),
            (&[1], ["64:1 copied 2:1@x", "((2,32),):((1@x,1),) at 1"]),
            (&[0, 1], ["1:0 copied 2:1@x", "1:0 at 1@x"]),
        ] {
            for (iteration, to) in results.into_iter().enumerate() {
                let [from, to] = layouts("x=2", [matrix, to]);
                let element = TYPES[(number + iteration + over.len()) % TYPES.len()];
                let plan = argmax(&from, over, &to, i64::from(element.bytes()), &Machine::HGX_H200).unwrap();
                let work = WorkPlan::argmax(&h200(), &plan, element).unwrap();
                moved += work.steps().iter().filter(|step| matches!(step, WorkStep::Move { .. })).count();
                let held = carried_out(&work, &[filled(&from, element)]);
                let wanted = |result: i64| {
                    let all = match over {
                        [0, 1] => (0..64 * 48).collect(),
                        _ => group(over[0], [64, 48], result),
                    };
                    let values: Vec<f64> = all.into_iter().map(|at| whole(&from, at)).collect();
                    let greatest = values.iter().copied().fold(f64::MIN, f64::max);
                    values.iter().position(|value| *value == greatest).unwrap() as f64
                };
                compared(&to, &held, Element::I64, wanted, 0.0);
            }
        }
    }
    assert!(moved > 20, "{moved}");
}

#[test]
fn the_first_nan_of_a_row_is_its_greatest_element() {
    let [from, to] = layouts("x=2", ["(6,(4,2)):(4,(1,1@x))", "6:1 copied 2:1@x"]);
    let plan = argmax(&from, &[1], &to, 4, &Machine::HGX_H200).unwrap();
    let work = WorkPlan::argmax(&h200(), &plan, Element::F32).unwrap();
    // Rows of NaN alone, of numbers on one device and NaN on the other, of NaN on both, of none,
    // and of nothing but minus infinity.
    let rows = [
        [f32::NAN; 8],
        [-3.0, f32::INFINITY, -1.0, -1.0, 5.0, f32::NEG_INFINITY, f32::NAN, f32::NAN],
        [5.0, -2.0, f32::NAN, f32::NEG_INFINITY, -2.0, f32::NAN, -9.0, -4.0],
        [f32::NEG_INFINITY, -2.0, -5.0, -3.0, -1.0, -1.0, -9.0, -4.0],
        [f32::NEG_INFINITY; 8],
        [f32::NAN, 2.0, 5.0, 3.0, 1.0, 1.0, 9.0, 4.0],
    ];
    let held = (0..2).map(|rank| rows.iter().flat_map(|row| row[4 * rank..][..4].to_vec()).collect::<Vec<f32>>());
    let held = held.map(|own| own.into_iter().flat_map(f32::to_le_bytes).collect()).collect();
    let found = carried_out(&work, &[held]);
    compared(&to, &found, Element::I64, |row| [0.0, 6.0, 2.0, 4.0, 0.0, 0.0][row as usize], 0.0);
}

#[test]
fn a_reduction_of_three_modes_keeps_the_order_of_the_others() {
    // Row-major: the kernel's results lie in another order than the plan's.
    let [from, to] = layouts("x=2", ["(6,(4,2),10):(40,(10,1@x),1)", "(6,10):(1,6) copied 2:1@x"]);
    let plan = reduce(&from, &[1], Reduction::Sum, &to, 4, &Machine::HGX_H200).unwrap();
    let held = carried_out(&WorkPlan::reduce(&h200(), &plan, Element::F32).unwrap(), &[filled(&from, Element::F32)]);
    let wanted = |result: i64| {
        let (first, last) = (result % 6, result / 6);
        (0..8).map(|middle| whole(&from, first + 6 * (middle + 8 * last))).sum()
    };
    compared(&to, &held, Element::F32, wanted, 0.0);
}

#[test]
fn softmax_along_a_cut_mode_is_that_of_the_whole_mode() {
    for (from, to, over) in [
        ("(64,(24,2)):(1,(64,1@x))", "(64,(24,2)):(1,(64,1@x))", 1),
        ("((32,2),48):((48,1@x),1)", "(64,48):(1,64) copied 2:1@x", 0),
        ("(64,48):(48,1) summed 2:1@x", "((32,2),48):((48,1@x),1) at 3", 1),
    ] {
        let [from, to] = layouts("x=2", [from, to]);
        for (element, bound) in [(Element::F32, [1e-5, 0.0]), (Element::Bf16, [1e-5 + 2_f64.powi(-8), 0.0])]
            .into_iter()
            .chain([(Element::F16, [1e-5 + 2_f64.powi(-11), 2_f64.powi(-25)])])
        {
            let bytes = i64::from(element.bytes());
            let plan = softmax(&from, &[over], &to, bytes, &Machine::HGX_H200).unwrap();
            let held = carried_out(&WorkPlan::softmax(&h200(), &plan, element).unwrap(), &[filled(&from, element)]);
            let wanted = |at: i64| {
                let result = if over == 0 { at / 64 } else { at % 64 };
                let values: Vec<f64> = group(over, [64, 48], result).into_iter().map(|at| whole(&from, at)).collect();
                let greatest = values.iter().copied().fold(f64::MIN, f64::max);
                let sum: f64 = values.iter().map(|value| (value - greatest).exp()).sum();
                (whole(&from, at) - greatest).exp() / sum
            };
            within(&to, &held, element, wanted, bound);
        }
        let plan = softmax(&from, &[over], &to, 8, &Machine::HGX_H200).unwrap();
        assert!(WorkPlan::softmax(&h200(), &plan, Element::F64).unwrap_err().to_string().contains("softmax of f64"));
    }
}

#[test]
fn products_that_come_in_other_ways_than_blocks_are_sums_all_the_same() {
    for (texts, sums) in [
        // Every device wants all sums.
        (["(128,(64,2)):(64,(1,1@x))", "((64,2),128):((1,1@x),64)", "(128,128):(128,1) copied 2:1@x"], Element::F32),
        // Rows lie in turns.
        (["((2,64),128):((1@x,128),1)", "(128,128):(1,128) copied 2:1@x", "((2,64),128):((1@x,128),1)"], Element::Bf16),
        // A is a sum itself.
        (["(128,128):(128,1) summed 2:1@x", "(128,(64,2)):(1,(128,1@x))", "(128,(64,2)):(64,(1,1@x))"], Element::Bf16),
    ] {
        let [a, b, d] = layouts("x=2", texts);
        let plan = multiply(&a, &b, &d, 2, 7e14, &Machine::HGX_H200).unwrap();
        let work = WorkPlan::product(&h200(), &plan, Element::Bf16, sums).unwrap();
        let held = carried_out(&work, &[filled(&a, Element::Bf16), filled(&b, Element::Bf16)]);
        let wanted = |at: i64| {
            let (row, column) = (at % 128, at / 128);
            let sum = (0..128).map(|k| whole(&a, row + 128 * k) * whole(&b, k + 128 * column)).sum::<f64>();
            bf16::from_f64(sum).to_f64()
        };
        compared(&d, &held, Element::Bf16, wanted, 0.0);
    }
}
