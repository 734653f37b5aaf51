//! The kernels by which devices move a tensor between sharded layouts, executed by the interpreter:
//! each element that one writes is what the simulated plan says.

use tilewright::kernel::Element;
use tilewright::kernel::interpret::Interpreter;
use tilewright::mesh::{Exchange, Machine, Mesh, ShardedLayout, reshard};
use tilewright::reshard::{Combine, EngineCopy, MAX_LAUNCHES, MessageMemory, Pull, packed, pulls, transfers};

use crate::{few, h200};

/// A number for each element of memory of each device; small, so that sums are exact.
fn number(rank: usize, offset: i64) -> f32 {
    ((rank as i64 * 31 + offset * 7) % 1021 + 1) as f32
}

const CASES: [(&str, &str, &str); 10] = [
    ("x=2", "((32,2),48):((1,1@x),32)", "(64,48):(48,1) copied 2:1@x"),
    ("x=2", "((32,2),48):((48,1@x),1)", "(64,(24,2)):(24,(1,1@x))"),
    ("x=4", "(64,(12,4)):(1,(64,1@x))", "((16,4),48):((1,1@x),16)"),
    ("x=2", "(64,48):(1,64) summed 2:1@x", "(64,(24,2)):(24,(1,1@x))"),
    ("x=3", "(30,7):(1,30) summed 3:1@x", "(30,7):(7,1) copied 3:1@x"),
    ("x=2,y=2", "(16,2,2):(1,1@x,1@y) at 5", "(16,2,2):(1,1@y,1@x) at 3"),
    ("x=2", "((3,2),5):((1,1@x),3)", "((2,3),5):((1@x,1),3)"),
    ("x=2", "48:1 at 1@x", "48:1 copied 2:1@x"),
    ("x=2", "((32,2),48):((1,1@x),32)", "((32,2),48):((1,1@x),32)"),
    ("x=2", "(64,(24,2)):(1,(64,1@x))", "(64,48):(1,64) copied 2:1@x"),
];

fn checked(mesh: &str, from: &str, to: &str) {
    let mesh: Mesh = mesh.parse().unwrap();
    let [from, to] = [from, to].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
    let plan = reshard(&from, &to, 4, &Machine::HGX_H200).unwrap();
    for step in plan.steps() {
        let exchange = &step.exchange;
        let memory: Vec<Vec<f32>> = (0..mesh.size())
            .map(|rank| (0..exchange.from().reach()).map(|offset| number(rank, offset)).collect())
            .collect();
        let right = exchange.simulate(&memory).unwrap();
        for (rank, right) in right.iter().enumerate() {
            // What no kernel writes is 0 here, what two write is twice as much.
            let mut left = vec![0.0; right.len()];
            for pull in pulls(exchange, rank, Element::F32, &few()).unwrap() {
                let inputs: Vec<&[f32]> = pull.sources.iter().map(|source| memory[*source].as_slice()).collect();
                pulled(&pull, &inputs, &mut left);
            }
            assert_eq!(&left, right, "rank {rank}, {from} to {to}");
        }
    }
}

#[test]
fn kernels_move_what_the_plan_says() {
    for (mesh, from, to) in CASES {
        checked(mesh, from, to);
    }
}

/// What a pull leaves, added to what there was.
fn pulled(pull: &Pull, inputs: &[&[f32]], into: &mut [f32]) {
    match &pull.then {
        None => run(&pull.planned, inputs, into),
        Some(then) => {
            let mut beside = vec![0.0; then.bytes() as usize / 8];
            run(&pull.planned, inputs, &mut beside);
            run(then, &[&beside], into);
        }
    }
}

/// The elements that a kernel leaves, added to what there was: what it does not write is 0 here.
fn run(planned: &tilewright::planners::Planned, inputs: &[&[f32]], into: &mut [f32]) {
    let mut interpreter = Interpreter::new(planned.kernel().program(), planned.sizes()).unwrap();
    for (number, input) in inputs.iter().enumerate() {
        let mut bytes: Vec<u8> = input.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.truncate(interpreter.bytes_of(number).unwrap());
        interpreter.bytes(number, &bytes).unwrap();
    }
    let run = interpreter.check().unwrap_or_else(|findings| panic!("{}\n{planned}", findings[0])).run;
    let bytes = run.bytes(inputs.len()).unwrap().chunks_exact(4);
    for (place, bytes) in into.iter_mut().zip(bytes) {
        *place += f32::from_le_bytes(bytes.try_into().unwrap());
    }
}

#[test]
fn what_is_packed_and_sent_comes_to_the_same() {
    let mut ways = std::collections::BTreeSet::new();
    for (mesh, from, to) in CASES {
        let mesh: Mesh = mesh.parse().unwrap();
        let [from, to] = [from, to].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
        for step in reshard(&from, &to, 4, &Machine::HGX_H200).unwrap().steps() {
            let exchange = &step.exchange;
            let memory: Vec<Vec<f32>> = (0..mesh.size())
                .map(|rank| (0..exchange.from().reach()).map(|offset| number(rank, offset)).collect())
                .collect();
            let right = exchange.simulate(&memory).unwrap();
            let packed = packed(exchange, Element::F32, &few()).unwrap();
            ways.insert(format!("{:?} {:?}", packed.sent, packed.received));
            let room =
                |side: usize| packed.room.iter().map(|room| vec![0.0_f32; room[side] as usize]).collect::<Vec<_>>();
            let (mut sent, mut received) = (room(0), room(1));
            let mut after: Vec<Vec<f32>> = right.iter().map(|right| vec![0.0; right.len()]).collect();
            for ((packs, memory), sent) in packed.packs.iter().zip(&memory).zip(&mut sent) {
                packs.iter().for_each(|pack| run(pack, &[memory], sent));
            }
            for transfer in &packed.transfers {
                let [read, write, count] =
                    [transfer.read, transfer.write, transfer.bytes].map(|bytes| bytes as usize / 4);
                let source = if packed.sent == MessageMemory::Tensor { &memory } else { &sent };
                let elements = source[transfer.from][read..read + count].to_vec();
                let target = if packed.received == MessageMemory::Tensor { &mut after } else { &mut received };
                target[transfer.to][write..write + count].copy_from_slice(&elements);
            }
            for (rank, places) in packed.places.iter().enumerate() {
                for pull in places {
                    let input = |source: &usize| if *source == rank { &memory[rank] } else { &received[rank] };
                    let inputs: Vec<&[f32]> = pull.sources.iter().map(|source| input(source).as_slice()).collect();
                    pulled(pull, &inputs, &mut after[rank]);
                }
            }
            assert_eq!(after, right, "{from} to {to}");
        }
    }
    assert_eq!(ways.len(), 4, "{ways:?}");
}

#[test]
fn what_copy_engines_bring_comes_to_the_same() {
    let mut ways = [0; 2];
    for (mesh, from, to) in [
        ("x=2", "((32,2),64):((64,1@x),1)", "(64,64):(64,1) copied 2:1@x"),
        ("x=2", "((32,2),64):((64,1@x),1) at 7", "(64,64):(1,64) copied 2:1@x"),
        ("x=2", "((2,2),2048):((2048,1@x),1)", "(4,(1024,2)):(1024,(1,1@x)) at 3"),
        ("x=2", "((4,2),2048):((2048,1@x),1)", "(8,(1024,2)):(1,(8,1@x)) at 5"),
        ("x=4", "((16,4),256):((256,1@x),1)", "(64,256):(1,64) copied 4:1@x"),
        ("x=2", "(64,64):(1,64) summed 2:1@x", "(64,(32,2)):(1,(64,1@x))"),
    ] {
        let mesh: Mesh = mesh.parse().unwrap();
        let [from, to] = [from, to].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
        let exchange = Exchange::new(&from, &to).unwrap();
        let memory: Vec<Vec<f32>> =
            (0..mesh.size()).map(|rank| (0..from.reach()).map(|offset| number(rank, offset)).collect()).collect();
        for (rank, right) in exchange.simulate(&memory).unwrap().iter().enumerate() {
            let step = transfers(&exchange, rank, Element::F32, &few(), Combine::Sum, [0; 2]).unwrap();
            let mut left = vec![0.0; right.len()];
            for EngineCopy { source, read, lines, write, put } in step.engine_copies {
                ways[usize::from(put.is_some())] += 1;
                let mut beside = vec![0.0; step.room as usize / 4];
                let write = write as usize / 4;
                let target = if put.is_some() { &mut beside } else { &mut left[write..] };
                for line in 0..lines.count {
                    let [read, written, count] =
                        [read + line * lines.read, line * lines.written, lines.bytes].map(|at| at as usize / 4);
                    target[written..written + count].copy_from_slice(&memory[source][read..read + count]);
                }
                if let Some(put) = put {
                    run(&step.puts[put], &[&beside], &mut left[write..]);
                }
            }
            for pull in &step.pulls {
                let inputs: Vec<&[f32]> = pull.sources.iter().map(|source| memory[*source].as_slice()).collect();
                pulled(pull, &inputs, &mut left);
            }
            assert_eq!(&left, right, "rank {rank}, {from} to {to}");
        }
    }
    assert!(ways.iter().all(|count| *count > 2), "{ways:?}");
}

#[test]
fn what_takes_too_many_kernels_is_refused() {
    let mesh: Mesh = "x=2".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let exchange = Exchange::new(&parse("((9973,2),):((1,1@x),)"), &parse("((2,9973),):((1@x,1),)")).unwrap();
    let error = pulls(&exchange, 0, Element::F32, &h200()).unwrap_err();
    assert!(error.to_string().contains(&MAX_LAUNCHES.to_string()), "{error}");
}
