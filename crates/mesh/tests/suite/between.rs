//! Products, reductions, softmax and functions of elements between processes, here threads that
//! sockets connect. What they hold is what the simulation says, to the bit; other tests compare
//! that with the definition. Products are compared with the sums that define them.

use crate::oracle;
use crate::processes;

use std::collections::BTreeSet;
use std::time::Duration;

use oracle::{Random, random_layout, random_mesh};
use processes::between;
use tilewright_mesh::{
    Machine, Mesh, MeshError, ProductPlan, Reduction, Role, ShardedLayout, argmax, map, multiply, reduce, softmax,
};

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn operations_come_to_what_the_simulation_says() {
    let mut random = Random(0x1357_9bdf_0246_8ace);
    let machine = Machine::HGX_H200;
    for _ in 0..60 {
        let (mesh, axes) = random_mesh(&mut random, 6);
        let sizes: Vec<i64> = (0..2).map(|_| [2, 4, 6, 12][random.below(4)]).collect();
        let [from, other, to] = [(); 3].map(|()| random_layout(&mut random, &axes, &sizes));
        let result = random_layout(&mut random, &axes, &[sizes[0], 1]);
        let parse = |text: String| ShardedLayout::parse(&mesh, &text).unwrap();
        let [a, b, d, r] = [&from, &other, &to, &result].map(|oracle| parse(oracle.text()));
        let values: Vec<i64> = (0..a.size()).map(|_| random.below(50) as i64 - 25).collect();
        let [x, y] = [(&from, &a), (&other, &b)].map(|(oracle, layout)| {
            let memory = oracle.filled(&axes, layout.reach(), &values, -777, &mut random);
            memory.iter().map(|memory| memory.iter().map(|value| *value as f64 / 3.0).collect()).collect()
        });
        let (x, y): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (x, y);
        let reductions = [Reduction::Sum, Reduction::Mean, Reduction::Max];
        let reductions = reductions.map(|by| reduce(&a, &[1], by, &r, 8, &machine).unwrap());
        let place = argmax(&a, &[1], &r, 8, &machine).unwrap();
        let soft = softmax(&a, &[1], &d, 8, &machine).unwrap();
        let both = map(&[&a, &b], &d, 8, &machine).unwrap();
        let function = |of: &[f64]| of[0] * 1.7 - of[1].sin();
        let done = between(mesh.size(), PATIENCE, |rank, mut engine| {
            let mut done: Vec<Vec<u64>> = Vec::new();
            let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect();
            for plan in &reductions {
                done.push(bits(plan.run(&mut engine, &x[rank])?));
            }
            done.push(place.run(&mut engine, &x[rank])?.into_iter().map(|index| index as u64).collect());
            done.push(bits(soft.run(&mut engine, &x[rank])?));
            done.push(bits(both.run(&mut engine, &[&x[rank], &y[rank]], function)?));
            Ok::<_, MeshError>(done)
        });
        let bits = |all: Vec<Vec<f64>>| -> Vec<Vec<u64>> {
            all.into_iter().map(|values| values.into_iter().map(f64::to_bits).collect()).collect()
        };
        let mut wanted: Vec<Vec<Vec<u64>>> = reductions.iter().map(|plan| bits(plan.simulate(&x).unwrap())).collect();
        let indices = place.simulate(&x).unwrap();
        wanted.push(indices.into_iter().map(|of| of.into_iter().map(|index| index as u64).collect()).collect());
        wanted.push(bits(soft.simulate(&x).unwrap()));
        wanted.push(bits(both.simulate(&[&x, &y], function).unwrap()));
        for (rank, done) in done.into_iter().enumerate() {
            for (number, done) in done.unwrap().into_iter().enumerate() {
                assert_eq!(done, wanted[number][rank], "operation {number}, rank {rank} of {mesh}:\n{a}\n{d}\n{r}");
            }
        }
    }
}

/// A matrix under random placements: its layout, and the memory of all devices.
fn matrix(random: &mut Random, mesh: &Mesh, sizes: [i64; 2]) -> ShardedLayout {
    loop {
        let kinds = ["Shard(0)", "Shard(0)", "Shard(1)", "Shard(1)", "Partial()", "Replicate()"];
        let placements: Vec<&str> = mesh.axes().iter().map(|_| kinds[random.below(6)]).collect();
        match ShardedLayout::of_placements(mesh, &sizes, &format!("[{}]", placements.join(", "))) {
            Err(MeshError::Uneven { .. }) => {}
            layout => return layout.unwrap(),
        }
    }
}

fn filled(layout: &ShardedLayout, value: impl Fn(i64) -> i64, random: &mut Random) -> Vec<Vec<f64>> {
    let mut memory = vec![vec![f64::NAN; layout.reach() as usize]; layout.mesh().size()];
    let copies = layout.copies() as usize;
    for element in 0..layout.size() {
        let others: Vec<i64> = (1..layout.sums()).map(|_| random.below(9) as i64 - 4).collect();
        let first = value(element) - others.iter().sum::<i64>();
        for (at, (rank, offset)) in layout.places(element).unwrap().into_iter().enumerate() {
            memory[rank][offset as usize] = if at < copies { first } else { others[at / copies - 1] } as f64;
        }
    }
    memory
}

/// Runs a product of whole numbers between processes and compares every place of the result.
fn check(plan: &ProductPlan, random: &mut Random) {
    let ([m, n, k], [a, b, d]) = (plan.sizes(), plan.moves());
    let (left, right) = (|at: i64| at * 7 % 11 - 5, |at: i64| at * 5 % 13 - 6);
    let (of_a, of_b) = (filled(a.from(), left, random), filled(b.from(), right, random));
    let done = between(a.from().mesh().size(), PATIENCE, |rank, mut engine| {
        plan.run(&mut engine, &of_a[rank], &of_b[rank]).unwrap()
    });
    let layout = d.to();
    for element in 0..m * n {
        let (row, column) = (element % m, element / m);
        let wanted: i64 = (0..k).map(|depth| left(row + m * depth) * right(depth + k * column)).sum();
        let places = layout.places(element).unwrap();
        for copy in 0..layout.copies() as usize {
            let summands = places.iter().skip(copy).step_by(layout.copies() as usize);
            let found: f64 = summands.map(|(rank, offset)| done[*rank][*offset as usize]).sum();
            assert_eq!(found, wanted as f64, "element {element} of {layout}:\n{plan}");
        }
    }
}

#[test]
fn products_between_processes_are_the_sums_that_define_them() {
    let mut random = Random(0x2468_1357_ace0_bdf9);
    let mut seen = BTreeSet::new();
    for _ in 0..60 {
        let mesh: Mesh = ["x=2", "x=2,y=2", "x=4", "x=3", "x=3,y=2"][random.below(5)].parse().unwrap();
        let [m, n, k] = [(); 3].map(|()| [6, 12, 24][random.below(3)]);
        let [a, b, d] = [[m, k], [k, n], [m, n]].map(|sizes| matrix(&mut random, &mesh, sizes));
        let rate = [1e7, 1e9, 1e13][random.below(3)];
        let plan = multiply(&a, &b, &d, 8, rate, &Machine::HGX_H200).unwrap();
        seen.extend(plan.roles().iter().map(|role| format!("{role:?}")));
        seen.extend(plan.moves()[2].steps().iter().map(|step| step.kind.to_string()));
        check(&plan, &mut random);
    }
    for role in [Role::Rows, Role::Columns, Role::Depth] {
        assert!(seen.contains(&format!("{role:?}")), "{role:?} never: {seen:?}");
    }
    assert!(seen.contains("reduce-scatter"), "{seen:?}");
}

#[test]
fn products_in_two_and_three_dimensions_are_the_sums_that_define_them() {
    let mut random = Random(0x1111_2222_3333_4444);
    for (mesh, [a, b, d], roles) in [
        // Each device has a block of each matrix: rows of A and columns of B are gathered.
        ("x=2,y=2", ["((8,2),(8,2)):((1,1@x),(8,1@y))"; 3], vec![Role::Rows, Role::Columns]),
        // The third axis cuts the depth, and sums are scattered along it.
        (
            "x=2,y=2,z=2",
            [
                "((8,2),(8,2)):((1,1@x),(8,1@z)) copied 2:1@y",
                "((8,2),(8,2)):((1,1@z),(8,1@y)) copied 2:1@x",
                "((8,2),(4,2,2)):((1,1@x),(8,1@z,1@y))",
            ],
            vec![Role::Rows, Role::Columns, Role::Depth],
        ),
    ] {
        let mesh: Mesh = mesh.parse().unwrap();
        let [a, b, d] = [a, b, d].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
        let plan = multiply(&a, &b, &d, 8, 1e6, &Machine::HGX_H200).unwrap();
        assert_eq!(plan.roles(), roles, "{plan}");
        check(&plan, &mut random);
    }
}
