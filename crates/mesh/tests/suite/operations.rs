//! Functions of elements, reductions and softmax of random tensors under random sharded layouts, on
//! simulated devices, compared with what defines them. The oracle knows layouts as lists of modes
//! that the generator made, and computes on whole tensors.

use crate::oracle;

use std::collections::BTreeSet;

use oracle::{Axes, Oracle, Random, random_layout, random_mesh};
use tilewright_mesh::{Machine, Mesh, Reduction, ShardedLayout, argmax, map, reduce, softmax};

const CASES: usize = 2000;
/// Far from all values, but without overflow where several are added up by mistake.
const POISON: i64 = 70_000;

struct Case {
    mesh: Mesh,
    axes: Axes,
    sizes: Vec<i64>,
    from: Oracle,
    over: Vec<usize>,
    /// The sizes of a result, and the result's element that each element goes into.
    to_sizes: Vec<i64>,
}

impl Case {
    fn new(random: &mut Random) -> Case {
        let (mesh, axes) = random_mesh(random, 12);
        let sizes: Vec<i64> = (0..1 + random.below(3)).map(|_| [1, 2, 3, 4, 6, 8, 12][random.below(7)]).collect();
        let from = random_layout(random, &axes, &sizes);
        let mut over: Vec<usize> = (0..sizes.len()).filter(|_| random.below(2) == 0).collect();
        if over.is_empty() {
            over.push(random.below(sizes.len()));
        }
        random.shuffle(&mut over);
        let keeps = random.below(2) == 0 || over.len() == sizes.len();
        let to_sizes = sizes.iter().enumerate().filter(|(mode, _)| keeps || !over.contains(mode));
        let to_sizes = to_sizes.map(|(mode, size)| if over.contains(&mode) { 1 } else { *size }).collect();
        Case { mesh, axes, sizes, from, over, to_sizes }
    }

    fn layout(&self, oracle: &Oracle) -> ShardedLayout {
        ShardedLayout::parse(&self.mesh, &oracle.text()).unwrap()
    }

    /// The elements that go into each element of a result, with their indices in the reduced modes:
    /// in their order.
    fn groups(&self) -> Vec<Vec<usize>> {
        let all: i64 = self.sizes.iter().product();
        let mut groups = vec![Vec::new(); self.to_sizes.iter().product::<i64>() as usize];
        for element in 0..all {
            let (mut rest, mut at, mut weight) = (element, 0, 1);
            for (mode, size) in self.sizes.iter().enumerate() {
                let index = rest % size;
                rest /= size;
                if !self.over.contains(&mode) {
                    at += index * weight;
                    weight *= size;
                }
            }
            groups[at as usize].push(element as usize);
        }
        groups
    }

    /// Every place of a result holds what it should; places of one copy are summands.
    fn compare<T: Copy>(&self, of: &Oracle, memory: &[Vec<T>], right: impl Fn(usize, &[T]) -> bool, what: &str) {
        for element in 0..of.size() {
            for copy in of.places(&self.axes, element) {
                let summands: Vec<T> = copy.iter().map(|(rank, at)| memory[*rank as usize][*at as usize]).collect();
                assert!(right(element as usize, &summands), "element {element}: {what}");
            }
        }
    }
}

fn wide(memory: &[Vec<i64>]) -> Vec<Vec<f64>> {
    memory.iter().map(|memory| memory.iter().map(|value| *value as f64).collect()).collect()
}

#[test]
fn reductions_are_what_defines_them() {
    let mut random = Random(0x51ab_cdef_0123_4567);
    let mut kinds = BTreeSet::new();
    for number in 0..CASES {
        let case = Case::new(&mut random);
        let to = random_layout(&mut random, &case.axes, &case.to_sizes);
        let (a, d) = (case.layout(&case.from), case.layout(&to));
        // Few values, so that several are the greatest.
        let values: Vec<i64> = (0..a.size()).map(|_| random.below(7) as i64 - 3).collect();
        let memory = case.from.filled(&case.axes, a.reach(), &values, POISON, &mut random);
        let groups = case.groups();
        for by in [Reduction::Sum, Reduction::Max, Reduction::Mean] {
            let plan = reduce(&a, &case.over, by, &d, 8, &Machine::HGX_H200).unwrap();
            let what = format!("case {number}, {by} over {:?}\n{a}\n{d}\n{plan}", case.over);
            kinds.extend(plan.parts().steps().iter().map(|step| format!("{by} {}", step.kind)));
            let of = |element: usize| groups[element].iter().map(|at| values[*at]);
            if by == Reduction::Mean {
                let after = plan.simulate(&wide(&memory)).unwrap();
                let right = |element: usize, summands: &[f64]| {
                    let mean = of(element).sum::<i64>() as f64 / groups[element].len() as f64;
                    (summands.iter().sum::<f64>() - mean).abs() < 1e-9
                };
                case.compare(&to, &after, right, &what);
            } else {
                let after = plan.simulate(&memory).unwrap();
                let wanted = |element| {
                    if by == Reduction::Sum { of(element).sum() } else { of(element).max().unwrap() }
                };
                let right = |element, summands: &[i64]| summands.iter().sum::<i64>() == wanted(element);
                case.compare(&to, &after, right, &what);
            }
        }
        let plan = argmax(&a, &case.over, &d, 8, &Machine::HGX_H200).unwrap();
        let right = |element: usize, summands: &[i64]| {
            // Elements of a group follow each other in the order of their indices.
            let of: Vec<i64> = groups[element].iter().map(|at| values[*at]).collect();
            let greatest = of.iter().max().unwrap();
            summands.iter().sum::<i64>() == of.iter().position(|value| value == greatest).unwrap() as i64
        };
        let what = format!("case {number}, argmax over {:?}\n{a}\n{d}\n{plan}", case.over);
        case.compare(&to, &plan.simulate(&memory).unwrap(), right, &what);
        case.compare(&to, &plan.simulate(&wide(&memory)).unwrap(), right, &what);
    }
    for kind in ["sum reduce-scatter", "sum all-reduce", "max reduce-scatter", "max all-reduce", "max nothing"] {
        assert!(kinds.contains(kind), "{kind} never: {kinds:?}");
    }
}

#[test]
fn softmax_is_what_defines_it() {
    let mut random = Random(0x0dd0_cafe_1234_5678);
    for number in 0..CASES / 2 {
        let case = Case::new(&mut random);
        let to = random_layout(&mut random, &case.axes, &case.sizes);
        let (a, d) = (case.layout(&case.from), case.layout(&to));
        let values: Vec<i64> = (0..a.size()).map(|_| random.below(40) as i64 - 20).collect();
        let memory = wide(&case.from.filled(&case.axes, a.reach(), &values, POISON, &mut random));
        let plan = softmax(&a, &case.over, &d, 8, &Machine::HGX_H200).unwrap();
        let groups = case.groups();
        let mut wanted = vec![0.0; values.len()];
        for group in &groups {
            let sum: f64 = group.iter().map(|at| (values[*at] as f64).exp()).sum();
            group.iter().for_each(|at| wanted[*at] = (values[*at] as f64).exp() / sum);
        }
        let right = |element: usize, summands: &[f64]| {
            (summands.iter().sum::<f64>() - wanted[element]).abs() <= 1e-12 * wanted[element]
        };
        let what = format!("case {number}, softmax over {:?}\n{a}\n{d}\n{plan}", case.over);
        case.compare(&to, &plan.simulate(&memory).unwrap(), right, &what);
    }
}

#[test]
fn functions_of_elements_are_what_defines_them() {
    let mut random = Random(0x7777_1234_8765_4321);
    for number in 0..CASES / 2 {
        let case = Case::new(&mut random);
        let [other, to] = [(); 2].map(|()| random_layout(&mut random, &case.axes, &case.sizes));
        let (a, b, d) = (case.layout(&case.from), case.layout(&other), case.layout(&to));
        let [x, y] = [(); 2].map(|()| (0..a.size()).map(|_| random.below(90) as i64 - 45).collect::<Vec<_>>());
        let of_a = case.from.filled(&case.axes, a.reach(), &x, POISON, &mut random);
        let of_b = other.filled(&case.axes, b.reach(), &y, POISON, &mut random);
        let plan = map(&[&a, &b], &d, 8, &Machine::HGX_H200).unwrap();
        let after = plan.simulate(&[&of_a, &of_b], |of| of[0] * of[1] + 1).unwrap();
        let right = |element: usize, summands: &[i64]| summands.iter().sum::<i64>() == x[element] * y[element] + 1;
        case.compare(&to, &after, right, &format!("case {number}\n{a}\n{b}\n{d}\n{plan}"));
    }
}

#[test]
fn numbers_that_are_none_and_infinities_are_found() {
    let mesh: Mesh = "x=2".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let (row, one) = (parse("((2,2),):((1,1@x),)"), parse("1:0 copied 2:1@x"));
    let machine = Machine::HGX_H200;
    let max = reduce(&row, &[0], Reduction::Max, &one, 8, &machine).unwrap();
    let place = argmax(&row, &[0], &one, 8, &machine).unwrap();
    let soft = softmax(&row, &[0], &row, 8, &machine).unwrap();
    for at in 0..4 {
        let mut values = [1.0_f64, 9.0, -3.0, 9.0];
        values[at] = f64::NAN;
        let memory = [values[..2].to_vec(), values[2..].to_vec()];
        assert!(max.simulate(&memory).unwrap().concat().iter().all(|value| value.is_nan()));
        assert_eq!(place.simulate(&memory).unwrap().concat(), [at as i64; 2]);
        assert!(soft.simulate(&memory).unwrap().concat().iter().all(|value| value.is_nan()));
    }
    // One device has nothing but infinities; both have.
    let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
    let done = soft.simulate(&[vec![least, least], vec![0.0, 0.0]]).unwrap();
    assert_eq!(done.concat(), [0.0, 0.0, 0.5, 0.5]);
    for values in [[least; 4], [0.0, most, 0.0, 1.0]] {
        let done = soft.simulate(&[values[..2].to_vec(), values[2..].to_vec()]).unwrap().concat();
        assert!(done.iter().all(|value| value.is_nan()), "{values:?}: {done:?}");
    }
    let least_of_all = max.simulate(&[vec![least; 2], vec![least; 2]]).unwrap();
    assert_eq!(
        (least_of_all.concat(), place.simulate(&[vec![least; 2], vec![least; 2]]).unwrap().concat()),
        (vec![least; 2], vec![0; 2])
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let mesh: Mesh = "x=2".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let (rows, one) = (parse("(2,4):(1@x,1)"), parse("2:1@x"));
    let machine = Machine::HGX_H200;
    for (over, code, part) in [
        (&[][..], "E1116", "no mode"),
        (&[2], "E1116", "there is no mode 2: the tensor has 2 modes"),
        (&[1, 1], "E1116", "mode 1 is given twice"),
        (&[0], "E1105", "modes of sizes"),
    ] {
        let error = reduce(&rows, over, Reduction::Sum, &one, 8, &machine).unwrap_err();
        assert!(error.code() == code && error.to_string().contains(part), "{over:?}: {error}");
        if !over.contains(&0) {
            assert_eq!(softmax(&rows, over, &rows, 8, &machine).unwrap_err().code(), code);
        }
    }
    assert_eq!(map(&[], &rows, 8, &machine).unwrap_err().code(), "E1116");
    let plan = map(&[&rows], &rows, 8, &machine).unwrap();
    assert_eq!(plan.simulate::<i64, i64>(&[], |of| of[0]).unwrap_err().code(), "E1116");
    let plan = reduce(&rows, &[1], Reduction::Max, &one, 8, &machine).unwrap();
    assert_eq!(plan.simulate(&[vec![1, 2, 3, 4], vec![1]]).unwrap_err().code(), "E1109");
}
