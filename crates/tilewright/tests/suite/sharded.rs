//! Products of sharded matrices, piece by piece in the interpreter: what devices write, and add to
//! what others have sent, is the sum that defines the product.

use half::bf16;
use tilewright::kernel::Element;
use tilewright::kernel::interpret::Interpreter;
use tilewright::mesh::{Machine, Mesh, ShardedLayout, multiply};
use tilewright::planners::gemm::{Product, ProductTensor};
use tilewright::sharded::{Operand, PartialDestination, PieceProduct, ShardedPlan};

/// Whole numbers, so that sums are exact.
fn number(at: i64, by: i64) -> f32 {
    ((at * by) % 7 - 3) as f32
}

/// The memory of each device, in bytes: what no element lies in is NaN.
fn memory(layout: &ShardedLayout, by: i64) -> Vec<Vec<u8>> {
    let mut memory = vec![vec![0xff; 2 * layout.reach() as usize]; layout.mesh().size()];
    for element in 0..layout.size() {
        for (rank, offset) in layout.places(element).unwrap() {
            let bytes = bf16::from_f32(number(element, by)).to_le_bytes();
            memory[rank][2 * offset as usize..][..2].copy_from_slice(&bytes);
        }
    }
    memory
}

/// The kernels of a product, on A, B and inputs; what they write over what there was.
fn run(product: &Product, inputs: &[&[u8]], into: &mut [u8]) {
    let mut workspaces: Vec<Vec<u8>> = product.workspaces().iter().map(|bytes| vec![0; *bytes as usize]).collect();
    for step in product.steps() {
        let mut interpreter = Interpreter::new(step.kernel().program(), step.sizes()).unwrap();
        let (read, written) = step.read_and_written();
        for (number, operand) in read.iter().enumerate() {
            let bytes: &[u8] = match operand {
                ProductTensor::A => inputs[0],
                ProductTensor::B => inputs[1],
                ProductTensor::Input(at) => inputs[at + 2],
                ProductTensor::Workspace(at) => &workspaces[*at],
                other => panic!("{other:?}"),
            };
            interpreter.bytes(number, &bytes[..interpreter.bytes_of(number).unwrap()]).unwrap();
        }
        let left = {
            let run = interpreter.check().unwrap_or_else(|findings| panic!("{}", findings[0])).run;
            run.bytes(read.len()).unwrap().to_vec()
        };
        match written {
            [ProductTensor::Workspace(at)] => workspaces[*at][..left.len()].copy_from_slice(&left),
            // Elements between those that are written are 0 here: pieces write different ones.
            [ProductTensor::D] => into.iter_mut().zip(left).for_each(|(place, byte)| *place |= byte),
            other => panic!("{other:?}"),
        }
    }
}

fn checked(mesh: &str, [a, b, d]: [&str; 3], sums: Element) -> ShardedPlan {
    let mesh: Mesh = mesh.parse().unwrap();
    let [a, b, d] = [a, b, d].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
    let plan = multiply(&a, &b, &d, 2, 1e9, &Machine::HGX_H200).unwrap();
    let sharded =
        ShardedPlan::new(&"H200".parse::<tilewright::Machine>().unwrap(), &plan, Element::Bf16, sums).unwrap().unwrap();
    let (of_a, of_b) = (memory(&a, 5), memory(&b, 3));
    let mut result = vec![vec![0_u8; 2 * d.reach() as usize]; mesh.size()];
    let ranks = sharded.ranks();
    let mut places: Vec<Vec<Vec<u8>>> =
        ranks.iter().map(|plan| plan.places.iter().map(|bytes| vec![0; *bytes as usize]).collect()).collect();
    for adds in [false, true] {
        for (rank, plan) in ranks.iter().enumerate() {
            let come: Vec<&[u8]> = plan
                .arrivals
                .iter()
                .map(|arrival| {
                    let from = if arrival.is_b { &of_b } else { &of_a };
                    &from[arrival.from][arrival.at as usize..][..arrival.bytes as usize]
                })
                .collect();
            for PieceProduct { product, operands, added, target } in &plan.pieces {
                if added.is_empty() == adds {
                    continue;
                }
                let mut inputs: Vec<Vec<u8>> = operands
                    .iter()
                    .zip([&of_a, &of_b])
                    .map(|(operand, own)| match operand {
                        Operand::Own(at) => own[rank][*at as usize..].to_vec(),
                        Operand::Arrived(number, at) => come[*number][*at as usize..].to_vec(),
                    })
                    .collect();
                inputs.extend(added.iter().map(|number| places[rank][*number].clone()));
                let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
                match *target {
                    PartialDestination::Own(at) => run(product, &inputs, &mut result[rank][at as usize..]),
                    PartialDestination::Other(other, at) => run(product, &inputs, &mut result[other][at as usize..]),
                    PartialDestination::Place(other, number) => run(product, &inputs, &mut places[other][number]),
                }
            }
        }
    }
    let [m, n, k] = plan.sizes();
    for element in 0..m * n {
        let (row, column) = (element % m, element / m);
        let right: f32 = (0..k).map(|depth| number(row + m * depth, 5) * number(depth + k * column, 3)).sum();
        for (rank, offset) in d.places(element).unwrap() {
            let bytes = [0, 1].map(|at| result[rank][2 * offset as usize + at]);
            let found = bf16::from_le_bytes(bytes);
            assert_eq!(found, bf16::from_f32(right), "D({row},{column}) on {rank}\n{a}\n{b}\n{d}\n{sharded}");
        }
    }
    sharded
}

#[test]
fn gathered_factors_and_scattered_sums_make_the_product() {
    // A gathered, as it lies and turned.
    let b = "(128,(64,2)):(1,(128,1@x))";
    for (a, d) in [
        ("((64,2),128):((128,1@x),1)", "(128,(64,2)):(64,(1,1@x))"),
        ("((64,2),128):((1,1@x),64)", "(128,(64,2)):(1,(128,1@x))"),
    ] {
        let plan = checked("x=2", [a, b, d], Element::F32);
        assert!(plan.ranks().iter().all(|plan| plan.arrivals.len() == 1 && plan.pieces.len() == 2), "{plan}");
    }
    // B gathered: rows of D stay together.
    let plan = checked("x=2", ["((64,2),128):((128,1@x),1)", b, "((64,2),128):((128,1@x),1)"], Element::F32);
    assert!(plan.ranks()[0].arrivals[0].is_b);
    // The depth cut, sums scattered as rows or as columns, on their way in f32 or as elements.
    let (a, b) = ("(128,(64,2)):(64,(1,1@x))", "((64,2),128):((1,1@x),64)");
    for (d, sums) in [
        ("((64,2),128):((128,1@x),1)", Element::F32),
        ("((64,2),128):((128,1@x),1)", Element::Bf16),
        ("(128,(64,2)):(1,(128,1@x))", Element::F32),
    ] {
        let plan = checked("x=2", [a, b, d], sums);
        let [first, last] = &plan.ranks()[1].pieces[..] else { panic!("{plan}") };
        assert!(matches!(first.target, PartialDestination::Place(0, _)) && last.added.len() == 1, "{plan}");
    }
}
