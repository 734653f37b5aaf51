//! Parts of unequal sizes, as `torch.chunk` and DTensor cut them, against lists of indices that the
//! definition gives: who holds what and where, and what moves and operations come to.

use crate::oracle;
use crate::processes;

use std::time::Duration;

use oracle::Random;
use processes::between;
use tilewright_mesh::{
    Machine, Mesh, MeshError, Reduction, ShardedLayout, StepKind, argmax, map, multiply, reduce, reshard, softmax,
};

/// What cuts a tensor along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Placement {
    Shard(usize),
    /// A mode, and the number of blocks.
    Strided(usize, i64),
    Replicate,
    Partial,
}

impl Placement {
    fn text(self) -> String {
        match self {
            Placement::Shard(mode) => format!("Shard({mode})"),
            Placement::Strided(mode, blocks) => format!("_StridedShard(dim={mode}, split_factor={blocks})"),
            Placement::Replicate => "Replicate()".to_owned(),
            Placement::Partial => "Partial()".to_owned(),
        }
    }
}

/// `torch.chunk` with empty parts at the end: part `at` of this many.
fn chunk(list: &[i64], parts: usize, at: usize) -> Vec<i64> {
    let size = list.len().div_ceil(parts);
    list.iter().skip(at * size).take(size).copied().collect()
}

/// The indices that a device has in each mode.
fn held(shape: &[i64], placements: &[Placement], extents: &[i64], coordinate: &[i64]) -> Vec<Vec<i64>> {
    let mut lists: Vec<Vec<i64>> = shape.iter().map(|size| (0..*size).collect()).collect();
    for (axis, placement) in placements.iter().enumerate() {
        let (parts, at) = (extents[axis] as usize, coordinate[axis] as usize);
        match *placement {
            Placement::Shard(mode) => lists[mode] = chunk(&lists[mode], parts, at),
            Placement::Strided(mode, blocks) => {
                let of_block = |block| chunk(&chunk(&lists[mode], blocks as usize, block), parts, at);
                lists[mode] = (0..blocks as usize).flat_map(of_block).collect();
            }
            Placement::Replicate | Placement::Partial => {}
        }
    }
    lists
}

/// The elements that a device has, row by row, each as its coordinate in the tensor.
fn local(lists: &[Vec<i64>]) -> Vec<Vec<i64>> {
    lists.iter().fold(vec![Vec::new()], |all, list| {
        all.iter().flat_map(|before| list.iter().map(move |index| [before.as_slice(), &[*index]].concat())).collect()
    })
}

/// The number of an element, the first mode fastest.
fn number(shape: &[i64], coordinate: &[i64]) -> i64 {
    shape.iter().zip(coordinate).rev().fold(0, |number, (size, index)| number * size + index)
}

struct Case {
    mesh: Mesh,
    extents: Vec<i64>,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let count = 1 + random.below(3);
        let extents: Vec<i64> = (0..count).map(|_| [1, 2, 2, 3, 4][random.below(5)]).collect();
        let names = ["a", "b", "c"];
        let axes: Vec<(&str, i64)> = names.into_iter().zip(extents.iter().copied()).collect();
        Case { mesh: Mesh::row_major(&axes).unwrap(), extents }
    }

    fn placements(&self, random: &mut Random, modes: usize, sums: bool) -> Vec<Placement> {
        let one = |_| match random.below(if sums { 8 } else { 7 }) {
            0 | 1 => Placement::Replicate,
            7 => Placement::Partial,
            _ => Placement::Shard(random.below(modes)),
        };
        self.extents.iter().map(one).collect()
    }

    fn layout(&self, shape: &[i64], placements: &[Placement]) -> Result<ShardedLayout, MeshError> {
        let text: Vec<String> = placements.iter().map(|one| one.text()).collect();
        ShardedLayout::of_placements(&self.mesh, shape, &format!("[{}]", text.join(", ")))
    }

    /// The memory of all devices: `value` of each element at the first summand, zeros at others.
    fn memory(&self, shape: &[i64], placements: &[Placement], value: &dyn Fn(&[i64]) -> f64) -> Vec<Vec<f64>> {
        let of_rank = |rank: usize| {
            let coordinate = self.mesh.coordinate(rank);
            let zero = placements.iter().zip(&coordinate).any(|(one, at)| *one == Placement::Partial && *at > 0);
            let lists = held(shape, placements, &self.extents, &coordinate);
            local(&lists).iter().map(|at| if zero { 0.0 } else { value(at) }).collect()
        };
        (0..self.mesh.size()).map(of_rank).collect()
    }

    /// That memory holds a tensor under placements.
    fn holds(
        &self,
        memory: &[Vec<f64>],
        shape: &[i64],
        placements: &[Placement],
        value: &dyn Fn(&[i64]) -> f64,
        told: &str,
    ) {
        let wanted = self.memory(shape, placements, value);
        let sums = placements.contains(&Placement::Partial);
        for rank in 0..self.mesh.size() {
            let own = &memory[rank][..wanted[rank].len()];
            if !sums {
                assert_eq!(own, wanted[rank], "rank {rank}: {told}");
                continue;
            }
            // The sum over the devices of a sum is the value.
            for at in 0..own.len() {
                let total: f64 = self.summands(placements, rank).into_iter().map(|other| memory[other][at]).sum();
                let first = self.summands(placements, rank)[0];
                assert_eq!(total, wanted[first][at], "rank {rank}: {told}");
            }
        }
    }

    /// The devices that hold the summands of a device's elements, the first of them first.
    fn summands(&self, placements: &[Placement], rank: usize) -> Vec<usize> {
        let own = self.mesh.coordinate(rank);
        let alike = |other: &usize| {
            let at = self.mesh.coordinate(*other);
            placements.iter().zip(own.iter().zip(&at)).all(|(one, (own, at))| *one == Placement::Partial || own == at)
        };
        (0..self.mesh.size()).filter(alike).collect()
    }
}

fn shape(random: &mut Random, modes: usize) -> Vec<i64> {
    (0..modes).map(|_| [1, 2, 3, 5, 6, 7, 8, 10, 13][random.below(9)]).collect()
}

#[test]
fn devices_hold_what_the_definition_says() {
    let mut random = Random(0x0123_4567_89ab_cdef);
    let mut uneven = 0;
    for _ in 0..1000 {
        let case = Case::random(&mut random);
        let modes = 1 + random.below(3);
        let shape = shape(&mut random, modes);
        let placements = case.placements(&mut random, modes, true);
        let layout = case.layout(&shape, &placements).unwrap();
        uneven += usize::from(layout.is_uneven());
        let told = format!("{layout} over {}, {shape:?}, {placements:?}", case.mesh);
        assert_eq!(ShardedLayout::parse(&case.mesh, &layout.to_string()).as_ref(), Ok(&layout), "{told}");
        assert_eq!((layout.mode_sizes(), layout.size()), (shape.clone(), shape.iter().product()), "{told}");
        let again = layout.placements().unwrap_or_else(|error| panic!("{error}: {told}"));
        let again = ShardedLayout::of_placements(&case.mesh, &shape, &again).unwrap();
        (0..layout.size()).for_each(|at| assert_eq!(again.places(at), layout.places(at), "{told}"));
        let mut wanted: Vec<Vec<(usize, i64)>> = vec![Vec::new(); layout.size() as usize];
        for rank in 0..case.mesh.size() {
            let all = local(&held(&shape, &placements, &case.extents, &case.mesh.coordinate(rank)));
            assert_eq!(layout.local_size_on(rank), all.len() as i64, "rank {rank}: {told}");
            assert_eq!(layout.reach_on(rank), all.len() as i64, "rank {rank}: {told}");
            let part = layout.part(rank).unwrap();
            let counts: Vec<i64> =
                part.modes.iter().map(|mode| mode.runs.iter().map(|run| run.extent).product()).collect();
            let lists = held(&shape, &placements, &case.extents, &case.mesh.coordinate(rank));
            assert_eq!(counts, lists.iter().map(|list| list.len() as i64).collect::<Vec<_>>(), "{told}");
            for (offset, at) in all.iter().enumerate() {
                wanted[number(&shape, at) as usize].push((rank, offset as i64));
            }
        }
        for (element, mut wanted) in wanted.into_iter().enumerate() {
            let mut found = layout.places(element as i64).unwrap();
            wanted.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, wanted, "element {element}: {told}");
        }
    }
    assert!(uneven > 300, "{uneven}");
}

#[test]
fn strided_shards_are_cut_as_the_definition_says() {
    let mut random = Random(0x5555_1234_9999_0001);
    let (mut read, mut refused, mut written) = (0, 0, 0);
    for _ in 0..1500 {
        let case = Case::random(&mut random);
        let modes = 1 + random.below(2);
        let shape: Vec<i64> = (0..modes).map(|_| [4, 6, 8, 12, 16, 24, 48][random.below(7)]).collect();
        let one = |_| match random.below(5) {
            0 => Placement::Replicate,
            1 | 2 => Placement::Shard(random.below(modes)),
            _ => Placement::Strided(random.below(modes), [1, 2, 3, 4][random.below(4)]),
        };
        let placements: Vec<Placement> = case.extents.iter().map(one).collect();
        let Ok(layout) = case.layout(&shape, &placements) else {
            refused += 1;
            continue;
        };
        read += 1;
        let told = format!("{layout} over {}, {shape:?}, {placements:?}", case.mesh);
        for rank in 0..case.mesh.size() {
            let all = local(&held(&shape, &placements, &case.extents, &case.mesh.coordinate(rank)));
            for (offset, at) in all.iter().enumerate() {
                let places = layout.places(number(&shape, at)).unwrap();
                assert!(places.contains(&(rank, offset as i64)), "{at:?} on {rank}, {told}");
            }
            assert_eq!(layout.local_size_on(rank), all.len() as i64, "{told}");
        }
        // What is written says the same.
        let text = match layout.placements() {
            Ok(text) => text,
            // Where blocks are cut again, an axis is in two leaves.
            Err(error) => {
                assert_eq!(error.code(), "E1107", "{told}");
                continue;
            }
        };
        written += 1;
        let again = ShardedLayout::of_placements(&case.mesh, &shape, &text).unwrap();
        for element in 0..layout.size() {
            assert_eq!(again.places(element).unwrap(), layout.places(element).unwrap(), "{text}: {told}");
        }
    }
    assert!(read > 700 && refused > 50 && written > 600, "{read} read, {refused} refused, {written} written");
}

#[test]
fn moves_come_to_what_the_definition_says() {
    let mut random = Random(0xfeed_beef_1234_5678);
    let mut uneven = 0;
    for _ in 0..1000 {
        let case = Case::random(&mut random);
        let modes = 1 + random.below(3);
        let shape = shape(&mut random, modes);
        let [before, after] = [(); 2].map(|()| case.placements(&mut random, modes, true));
        let [from, to] = [&before, &after].map(|placements| case.layout(&shape, placements).unwrap());
        uneven += usize::from(from.is_uneven() || to.is_uneven());
        let told = format!("{from} to {to} over {}", case.mesh);
        let value = |at: &[i64]| 1.0 + number(&shape, at) as f64;
        let plan = reshard(&from, &to, 4, &Machine::HGX_H200).unwrap_or_else(|error| panic!("{error}: {told}"));
        let done = plan.simulate(&case.memory(&shape, &before, &value)).unwrap();
        case.holds(&done, &shape, &after, &value, &told);
        // No device receives more than the plan says, and none less than it must.
        for rank in 0..case.mesh.size() {
            assert!(plan.received(rank) >= plan.least(rank), "{told}");
        }
    }
    assert!(uneven > 300, "{uneven}");
}

#[test]
fn layouts_with_pitches_of_full_parts_move_too() {
    // The same parts, of which those that are not full keep the strides of those that are; and
    // parts whose elements are dealt out one by one.
    let mesh: Mesh = "x=4".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let layouts = [
        "(6,(3,4)):(1,(6,1@x)) of (6,10)",
        "(6,(3,4)):(3,(1,1@x)) of (6,10)",
        "(6,(3,4)):(3,(1,1@x)) packed (6,10)",
        "((2,4),10):((1,1@x),2) packed (6,10)",
        "(6,10):(10,1) copied 4:1@x",
        "(6,(2,5)):(1,(6,1@x))",
        "((3,2),10):((1@x,1),2)",
    ];
    let mut known = Vec::new();
    for text in layouts {
        match ShardedLayout::parse(&mesh, text) {
            Ok(layout) => {
                assert_eq!(layout.to_string(), text);
                known.push(layout);
            }
            // There are four devices, and no fifth.
            Err(error) => assert_eq!((text, error.code()), ("(6,(2,5)):(1,(6,1@x))", "E1104")),
        }
    }
    for from in &known {
        let mut memory = vec![vec![-1.0; from.reach() as usize]; 4];
        for element in 0..60 {
            for (rank, offset) in from.places(element).unwrap() {
                memory[rank][offset as usize] = element as f64;
            }
        }
        for to in &known {
            let done = reshard(from, to, 8, &Machine::HGX_H200).unwrap().simulate(&memory).unwrap();
            for element in 0..60 {
                for (rank, offset) in to.places(element).unwrap() {
                    assert_eq!(done[rank][offset as usize], element as f64, "{from} to {to}");
                }
            }
        }
    }
    assert_eq!(parse("(6,(3,4)):(3,(1,1@x)) packed (6,10)").reach_on(3), 6);
    assert_eq!(parse("(6,(3,4)):(3,(1,1@x)) of (6,10)").reach_on(3), 16);
}

#[test]
fn operations_come_to_what_the_definition_says() {
    let mut random = Random(0x7777_0000_1111_2222);
    let machine = Machine::HGX_H200;
    for _ in 0..200 {
        let case = Case::random(&mut random);
        let shape = shape(&mut random, 2);
        let [before, after, other] = [true, false, true].map(|sums| case.placements(&mut random, 2, sums));
        let [from, to, second] = [&before, &after, &other].map(|of| case.layout(&shape, of).unwrap());
        let told = format!("{from}, {second} to {to} over {}", case.mesh);
        let value = |at: &[i64]| ((7 * at[0] + 5 * at[1]) % 11) as f64 - 3.0;
        let (x, y) = (case.memory(&shape, &before, &value), case.memory(&shape, &other, &value));
        let both =
            map(&[&from, &second], &to, 8, &machine).unwrap().simulate(&[&x, &y], |of| of[0] * of[1] + 1.0).unwrap();
        case.holds(&both, &shape, &after, &|at| value(at) * value(at) + 1.0, &told);
        // Along the second mode.
        let row = |at: &[i64]| (0..shape[1]).map(|j| value(&[at[0], j])).collect::<Vec<_>>();
        let one: Vec<Placement> =
            after.iter().map(|of| if *of == Placement::Shard(1) { Placement::Replicate } else { *of }).collect();
        let result = case.layout(&[shape[0], 1], &one).unwrap();
        let of = |by| reduce(&from, &[1], by, &result, 8, &machine).unwrap().simulate(&x).unwrap();
        let columns = [shape[0], 1];
        case.holds(&of(Reduction::Sum), &columns, &one, &|at| row(at).iter().sum(), &told);
        case.holds(&of(Reduction::Max), &columns, &one, &|at| row(at).into_iter().fold(f64::MIN, f64::max), &told);
        let mean = |at: &[i64]| row(at).iter().sum::<f64>() / shape[1] as f64;
        case.holds(&of(Reduction::Mean), &columns, &one, &mean, &told);
        let places = argmax(&from, &[1], &result, 8, &machine).unwrap().simulate(&x).unwrap();
        let places: Vec<Vec<f64>> = places.into_iter().map(|of| of.into_iter().map(|at| at as f64).collect()).collect();
        let first = |at: &[i64]| {
            let row = row(at);
            (0..row.len()).rev().fold(0, |best, at| if row[at] >= row[best] { at } else { best }) as f64
        };
        case.holds(&places, &columns, &one, &first, &told);
        let done = softmax(&from, &[1], &to, 8, &machine).unwrap().simulate(&x).unwrap();
        let wanted =
            case.memory(&shape, &after, &|at| value(at).exp() / row(at).iter().map(|value| value.exp()).sum::<f64>());
        for (done, wanted) in done.iter().zip(&wanted) {
            assert!(done.iter().zip(wanted).all(|(done, wanted)| (done - wanted).abs() < 1e-12), "{told}");
        }
    }
}

#[test]
fn products_come_to_what_the_definition_says() {
    let mut random = Random(0x3333_8888_2222_4444);
    for number in 0..120 {
        let case = Case::random(&mut random);
        let [m, n, k] = [(); 3].map(|()| [1, 3, 5, 7, 8, 10][random.below(6)]);
        let shapes = [[m, k], [k, n], [m, n]];
        let placements = shapes.map(|_| case.placements(&mut random, 2, false));
        let layouts: Vec<_> =
            shapes.iter().zip(&placements).map(|(shape, of)| case.layout(shape, of).unwrap()).collect();
        let [a, b, d] = [&layouts[0], &layouts[1], &layouts[2]];
        let told = format!("{a} times {b} to {d} over {}", case.mesh);
        let (left, right) =
            (|at: &[i64]| ((at[0] + 3 * at[1]) % 5) as f64, |at: &[i64]| ((2 * at[0] + at[1]) % 7) as f64);
        let wanted = |at: &[i64]| (0..k).map(|depth| left(&[at[0], depth]) * right(&[depth, at[1]])).sum::<f64>();
        let (x, y) = (case.memory(&shapes[0], &placements[0], &left), case.memory(&shapes[1], &placements[1], &right));
        // Slow devices and fast ones have other schedules.
        let plan = multiply(a, b, d, 8, if number % 2 == 0 { 1e3 } else { 7e14 }, &Machine::HGX_H200).unwrap();
        case.holds(&plan.simulate(&x, &y).unwrap(), &shapes[2], &placements[2], &wanted, &format!("{told}\n{plan}"));
        // Between processes too, of which each has just the memory of its part.
        if number % 8 == 0 && case.mesh.size() <= 6 {
            let done = between(case.mesh.size(), Duration::from_secs(20), |rank, mut engine| {
                let moved = reshard(d, d, 8, &Machine::HGX_H200).unwrap();
                let done = plan.run(&mut engine, &x[rank], &y[rank]).unwrap();
                assert_eq!(moved.run(&mut engine, &done).unwrap(), done);
                done
            });
            case.holds(&done, &shapes[2], &placements[2], &wanted, &told);
        }
    }
}

#[test]
fn steps_between_unequal_parts_have_the_names_of_collectives() {
    let mesh = Mesh::row_major(&[("x", 4)]).unwrap();
    let layout = |text: &str| ShardedLayout::of_placements(&mesh, &[10, 7], &format!("[{text}]")).unwrap();
    for (from, to, kind) in [
        ("Shard(0)", "Shard(0)", StepKind::Nothing),
        ("Shard(0)", "Replicate()", StepKind::AllGather),
        ("Replicate()", "Shard(1)", StepKind::Slice),
        ("Shard(0)", "Shard(1)", StepKind::AllToAll),
        ("Partial()", "Shard(0)", StepKind::ReduceScatter),
    ] {
        let plan = reshard(&layout(from), &layout(to), 4, &Machine::HGX_H200).unwrap();
        assert_eq!(plan.steps()[0].kind, kind, "{from} to {to}: {plan}");
        assert_eq!(plan.steps().len(), 1);
    }
}

#[test]
fn sizes_that_leaves_do_not_allow_are_refused() {
    let mesh: Mesh = "x=2,y=2".parse().unwrap();
    for (text, code) in [
        ("((3,2),4):((1,1@x),3) of (7,4)", "E1106"),
        ("((3,2),4):((1,1@x),3) of (2,4)", "E1106"),
        ("((3,2),4):((1,1@x),3) of (0,4)", "E1106"),
        ("((3,2),4):((1,1@x),3) of (5,)", "E1101"),
        ("((3,2),4):((1,1@x),3) of ((5,5),4)", "E1101"),
        ("((3,2),4):((1,1@x),3) of (3,4)", "E1106"),
        ("((3,2),4):((1,1@x),3) of x", "E1101"),
        ("((2,3),4):((1@x,1),3) of (5,4)", "E1106"),
        ("((3,2,2),4):((1,1@x,3),6) of (11,4)", "E1106"),
        ("(4,(3,2)):(1,(8,1@x)) packed (4,5)", "E1106"),
        ("((3,2),4):((1,1@x),3) of (5,4) packed (5,4)", "E1101"),
        ("((3,2),4):((1,1@x),3) of (9223372036854775807,4)", "E1106"),
    ] {
        let error = ShardedLayout::parse(&mesh, text).unwrap_err();
        assert_eq!(error.code(), code, "{text}: {error}");
    }
    // Sizes that say nothing new are left out.
    let even = ShardedLayout::parse(&mesh, "((3,2),4):((1,1@x),3) of (6,4)").unwrap();
    assert_eq!(even.to_string(), "((3,2),4):((1,1@x),3)");
}
