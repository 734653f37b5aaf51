//! Products of sharded matrices, carried out on simulated devices and compared with the sum that
//! defines them.

use std::collections::BTreeSet;

use tilewright_mesh::{Machine, Mesh, MeshError, Role, ShardedLayout, StepKind, multiply};

const CASES: usize = 300;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Memory that holds these values: the first summand is what is left of a value.
fn filled(layout: &ShardedLayout, values: &[i64], random: &mut Random) -> Vec<Vec<i64>> {
    let mut memory = vec![vec![-99_991; layout.reach() as usize]; layout.mesh().size()];
    let copies = layout.copies() as usize;
    for (element, value) in values.iter().enumerate() {
        let places = layout.places(element as i64).unwrap();
        let others: Vec<i64> = (1..layout.sums()).map(|_| random.below(9) as i64 - 4).collect();
        let first = value - others.iter().sum::<i64>();
        for (at, (rank, offset)) in places.into_iter().enumerate() {
            memory[rank][offset as usize] = if at < copies { first } else { others[at / copies - 1] };
        }
    }
    memory
}

#[test]
fn products_are_the_sums_that_define_them() {
    let mut random = Random(11);
    let mut seen = BTreeSet::new();
    for case in 0..CASES {
        let axes = ["x=2", "x=2,y=2", "x=4", "x=3,y=2", "x=2:4,y=2:2,z=2:1"];
        let mesh: Mesh = axes[random.below(5) as usize].parse().unwrap();
        let [m, n, k] = [(); 3].map(|()| [6, 12, 24][random.below(3) as usize]);
        let mut layout = |sizes: [i64; 2]| loop {
            let placements: Vec<String> = mesh
                .axes()
                .iter()
                .map(|_| match random.below(7) {
                    0 | 1 => "Shard(0)".to_owned(),
                    2 | 3 => "Shard(1)".to_owned(),
                    4 => "Partial()".to_owned(),
                    _ => "Replicate()".to_owned(),
                })
                .collect();
            let placements = format!("[{}]", placements.join(", "));
            match ShardedLayout::of_placements(&mesh, &sizes, &placements) {
                Err(MeshError::Uneven { .. }) => {}
                layout => break layout.unwrap(),
            }
        };
        let (a, b, d) = (layout([m, k]), layout([k, n]), layout([m, n]));
        // Slow devices and fast ones, so that all roles come up.
        let rate = [1e8, 1e10, 1e13][random.below(3) as usize];
        let plan = multiply(&a, &b, &d, 8, rate, &Machine::HGX_H200).unwrap();
        seen.extend(plan.roles().iter().map(|role| format!("{role:?}")));
        let [values_a, values_b] =
            [m * k, k * n].map(|size| (0..size).map(|_| random.below(19) as i64 - 9).collect::<Vec<_>>());
        let memory = [filled(&a, &values_a, &mut random), filled(&b, &values_b, &mut random)];
        let result = plan.simulate(&memory[0], &memory[1]).unwrap();
        for element in 0..m * n {
            let (row, column) = (element % m, element / m);
            let product = |depth: i64| values_a[(row + m * depth) as usize] * values_b[(depth + k * column) as usize];
            let right: i64 = (0..k).map(product).sum();
            let places = d.places(element).unwrap();
            let copies = d.copies() as usize;
            for copy in 0..copies {
                let summands = places.iter().skip(copy).step_by(copies);
                let sum: i64 = summands.map(|(rank, offset)| result[*rank][*offset as usize]).sum();
                assert_eq!(sum, right, "case {case}, element {element}\n{a}\n{b}\n{d}\n{plan}");
            }
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

#[test]
fn schedules_follow_from_layouts() {
    let mesh: Mesh = "x=4".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let rows = parse("((2048,4),8192):((8192,1@x),1)");
    let columns = parse("(8192,(2048,4)):(2048,(1,1@x))");
    let kinds = |a: &ShardedLayout, b: &ShardedLayout, d: &ShardedLayout| {
        let plan = multiply(a, b, d, 2, 7e14, &Machine::HGX_H200).unwrap();
        let kinds = plan.moves().map(|plan| plan.steps().iter().map(|step| step.kind).collect::<Vec<_>>());
        (plan.roles().to_vec(), kinds)
    };
    // Columns of A and rows of B lie together: each device multiplies what it has, and the sums are
    // scattered. Columns of D want A gathered, rows of D want B gathered.
    let depth = kinds(&columns, &rows, &rows);
    assert_eq!(
        depth,
        (vec![Role::Depth], [vec![StepKind::Nothing], vec![StepKind::Nothing], vec![StepKind::ReduceScatter]])
    );
    let (roles, [a, b, _]) = kinds(&rows, &columns, &columns);
    assert_eq!((roles, a, b), (vec![Role::Columns], vec![StepKind::AllGather], vec![StepKind::Nothing]));
    let (roles, [a, b, _]) = kinds(&rows, &columns, &rows);
    assert_eq!((roles, a, b), (vec![Role::Rows], vec![StepKind::Nothing], vec![StepKind::AllGather]));
}

#[test]
fn what_is_no_product_is_refused() {
    let mesh: Mesh = "x=2".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let refused = |a: &str, b: &str, d: &str| {
        multiply(&parse(a), &parse(b), &parse(d), 2, 1e12, &Machine::HGX_H200).unwrap_err().code()
    };
    assert_eq!(refused("(4,6)", "(5,4)", "(4,4)"), "E1105");
    assert_eq!(refused("(4,6)", "(6,4)", "(4,5)"), "E1105");
    assert_eq!(refused("(4,6)", "6", "(4,5)"), "E1105");
}
