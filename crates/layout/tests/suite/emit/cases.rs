//! Computations with inputs, and the results that the library gives for them.

use std::sync::LazyLock;

use tilewright_layout::emit::{Computation, EmitError, Map, Promise, Variables, coordinate, inside, value};
use tilewright_layout::symbolic::{Declarations, Expr, Parameter, Symbolic, Values};
use tilewright_layout::{
    BitMatrix, Composed, Coordinate, Layout, Leaf, OuterMap, Profile, Stride, Swizzle, Tree, Xor, idx2crd,
};

/// A computation, and runs of it.
pub struct Case {
    pub title: String,
    pub computation: Computation,
    pub promise: Promise,
    pub runs: Vec<Run>,
}

/// The values of the inputs by name, and the results in order.
pub struct Run {
    pub inputs: Vec<(String, i64)>,
    pub results: Vec<i64>,
}

/// A generator of numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: i64) -> i64 {
        (self.next() % end.max(1) as u64) as i64
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as i64) as usize]
    }
}

const FACTS: &str = "M{div=8,max=4096} N{max=100} K{div=128,max=65536} P{min=3,max=9} X{int,min=-50,max=50} Y{int,div=4,min=-64,max=64}";

const EXTENTS: [&str; 16] = [
    "1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "16",
    "M",
    "M/8",
    "N",
    "ceil(N/8)",
    "ceil(M/64)",
    "K/128",
    "min(N,16)",
    "ceil(N/3)",
    "ceil(M/N)",
];
const STRIDES: [&str; 22] = [
    "0",
    "1",
    "2",
    "3",
    "8",
    "-3",
    "64",
    "K",
    "K/64",
    "M*K/128",
    "N*3",
    "X",
    "Y/4",
    "floor(X/3)",
    "ceil(M/16)",
    "mod(X,7)",
    "mod(X,N)",
    "rem(X,P)",
    "floor(X/P)",
    "ceil(M/P)",
    "rem(X,5)",
    "floor(Y/8)",
];

pub fn declarations() -> Declarations {
    let mut names = Declarations::new();
    names.gather(FACTS).unwrap();
    names
}

/// A shape of up to `leaves` leaves, and strides of the same nesting.
fn random_layout(random: &mut Random, names: &Declarations, numbers: bool) -> Layout<Expr> {
    fn tree(random: &mut Random, depth: usize, numbers: bool) -> (String, String) {
        if depth == 0 || random.below(3) == 0 {
            let known = |all: &[&'static str]| -> Vec<&'static str> {
                all.iter().filter(|text| !numbers || text.parse::<i64>().is_ok()).copied().collect()
            };
            let (extent, stride) = (random.pick(&known(&EXTENTS)), random.pick(&known(&STRIDES)));
            return (extent.to_string(), stride.to_string());
        }
        let modes: Vec<_> = (0..1 + random.below(3)).map(|_| tree(random, depth - 1, numbers)).collect();
        let join = |each: &dyn Fn(&(String, String)) -> String| modes.iter().map(each).collect::<Vec<_>>().join(",");
        (format!("({})", join(&|mode| mode.0.clone())), format!("({})", join(&|mode| mode.1.clone())))
    }
    let (shape, stride) = tree(random, 2, numbers);
    names.layout(&format!("{shape}:{stride}")).unwrap()
}

/// A value for each parameter, at the ends or anywhere between.
fn random_values(random: &mut Random, parameters: &[Parameter]) -> (Values, Vec<(String, i64)>) {
    let (mut values, mut inputs) = (Values::new(), Vec::new());
    for parameter in parameters {
        let facts = parameter.facts();
        let (least, greatest) = (facts.least().unwrap(), facts.greatest().unwrap());
        let steps = (greatest - least) / facts.divisor();
        let step = match random.below(4) {
            0 => 0,
            1 => steps,
            _ => random.below(steps.min(12) + 1),
        };
        let value = least + step * facts.divisor();
        values.set(parameter, value);
        inputs.push((parameter.name().unwrap().to_string(), value));
    }
    (values, inputs)
}

/// An index into a part of this size, as the promise allows.
fn random_index(random: &mut Random, size: i64, promise: Promise) -> i64 {
    match promise {
        Promise::Inside if random.below(4) == 0 => size - 1,
        Promise::Inside => random.below(size),
        Promise::NotNegative => random.below(3 * size),
        Promise::Nothing => random.below(6 * size) - 3 * size,
    }
}

/// The part of a shape at each leaf of a coordinate.
fn sizes(shape: &Tree<i64>, coordinate: &Tree<()>) -> Vec<i64> {
    if coordinate.is_leaf() {
        return vec![shape.leaves().iter().product()];
    }
    shape.modes().zip(coordinate.modes()).flat_map(|(shape, coordinate)| sizes(&shape, &coordinate)).collect()
}

struct Draw {
    place: Variables,
    profile: Profile,
    promise: Promise,
}

fn draw(random: &mut Random, shape: &Profile) -> Draw {
    let promise = [Promise::Inside, Promise::Inside, Promise::NotNegative, Promise::Nothing][random.below(4) as usize];
    let (place, profile) = match random.below(4) {
        0 | 1 => (Variables::index(), Profile::leaf()),
        2 if !shape.is_leaf() => (Variables::modes(), Profile::flat(shape.rank()).unwrap()),
        _ => (Variables::leaves(), shape.clone()),
    };
    Draw { place: place.promised(promise), profile, promise }
}

/// Coordinates of a shape of numbers, and their inputs by name.
fn random_coordinate(random: &mut Random, draw: &Draw, shape: &Tree<i64>) -> (Tree<i64>, Vec<i64>) {
    let leaves = (0..draw.profile.leaves()).map(|_| ());
    let form = Tree::new(draw.profile.clone(), leaves).unwrap();
    let indices: Vec<i64> =
        sizes(shape, &form).into_iter().map(|size| random_index(random, size, draw.promise)).collect();
    (Tree::new(draw.profile.clone(), indices.clone()).unwrap(), indices)
}

fn of_numbers(layout: &Layout<Coordinate<Expr>>, values: &Values) -> Layout<Coordinate> {
    let leaf = |leaf: &Leaf<Coordinate<Expr>>| {
        let mut stride = Coordinate::zero();
        for (path, scale) in leaf.stride.terms() {
            stride = stride.plus(&Coordinate::step(scale.numbers(values).unwrap(), path)).unwrap();
        }
        Leaf { extent: leaf.extent.numbers(values).unwrap(), stride }
    };
    Layout::from_tree(layout.tree().map(leaf)).unwrap()
}

/// The value of the library at values and a coordinate; None if there is none.
type Evaluate<'a> = &'a dyn Fn(&Values, &Tree<i64>) -> Option<Vec<i64>>;

/// The case of one computation, and runs of it; those are left out at which the library has no
/// value.
#[allow(clippy::too_many_arguments)]
fn case(
    random: &mut Random,
    title: String,
    computation: Result<Computation, EmitError>,
    draw: &Draw,
    shape: &Tree<Expr>,
    parameters: &[Parameter],
    runs: usize,
    evaluate: Evaluate<'_>,
) -> Case {
    let computation = computation.unwrap_or_else(|error| panic!("{title}: {error}"));
    let mut done = Vec::new();
    for _ in 0..runs {
        let (values, mut inputs) = random_values(random, parameters);
        let (coordinate, indices) = random_coordinate(random, draw, &shape.numbers(&values).unwrap());
        if let Some(results) = evaluate(&values, &coordinate) {
            inputs.extend(computation.inputs().iter().map(|name| name.to_string()).zip(indices));
            done.push(Run { inputs, results });
        }
    }
    assert!(!done.is_empty(), "{title} has no runs");
    Case { title: format!("{title} {:?}", draw.place), computation, promise: draw.promise, runs: done }
}

/// Computations of every kind.
pub static ALL: LazyLock<Vec<Case>> = LazyLock::new(|| all(200, 8));

fn all(count: usize, runs: usize) -> Vec<Case> {
    let (mut random, names) = (Random(7), declarations());
    let mut cases = Vec::new();
    for number in 0..count {
        let random = &mut random;
        let layout = random_layout(random, &names, number % 4 == 0);
        let (title, parameters) = (layout.with_facts(), layout.parameters());
        let shape = layout.shape();
        let place = draw(random, layout.profile());
        let numbers = |values: &Values| layout.numbers(values).unwrap();
        cases.push(match number % 9 {
            8 => {
                let shift = random.below(7) - 3;
                let swizzle = Swizzle::new(random.below(shift.abs() + 1), random.below(4), shift).unwrap();
                let offset = names.expr(random.pick(&["0", "5", "N", "X"])).unwrap();
                let composed = Composed::new(swizzle, offset.clone(), layout.clone()).unwrap();
                let mut parameters = parameters;
                parameters.extend(offset.parameters());
                parameters.sort();
                parameters.dedup();
                let evaluate = |values: &Values, at: &Tree<i64>| {
                    let composed = Composed::new(swizzle, offset.numbers(values).unwrap(), numbers(values)).ok()?;
                    Some(vec![composed.eval_at(at).ok()?])
                };
                let (title, computed) = (composed.to_string(), value(&composed.into(), &place.place));
                case(random, title, computed, &place, &shape, &parameters, runs, &evaluate)
            }
            0..=3 => {
                let evaluate =
                    |values: &Values, at: &Tree<i64>| numbers(values).eval_at(at).ok().map(|value| vec![value]);
                let computed = value(&layout.clone().into(), &place.place);
                case(random, title, computed, &place, &shape, &parameters, runs, &evaluate)
            }
            4 => {
                let evaluate = |values: &Values, at: &Tree<i64>| {
                    let shape = shape.numbers(values).unwrap();
                    Some(idx2crd(at, &shape).ok()?.leaves().to_vec())
                };
                let computed = coordinate(&shape, &place.place);
                case(random, format!("idx2crd {title}"), computed, &place, &shape, &parameters, runs, &evaluate)
            }
            5 => {
                // Every stride is a step in the mode with its number, or in the one before.
                let mut leaf = 0;
                let steps = layout.tree().map(|own| {
                    leaf += 1;
                    let path = tilewright_layout::ModePath::new(&[leaf / 2]).unwrap();
                    Leaf { extent: own.extent.clone(), stride: Coordinate::step(own.stride.clone(), path) }
                });
                let steps = Layout::from_tree(steps).unwrap();
                let profile = steps.coprofile().unwrap();
                let evaluate = |values: &Values, at: &Tree<i64>| {
                    let value = of_numbers(&steps, values).eval_at(at).ok()?;
                    Some(value.in_profile(&profile).ok()?.leaves().to_vec())
                };
                let computed = value(&steps.clone().into(), &place.place);
                case(random, format!("{steps}"), computed, &place, &shape, &parameters, runs, &evaluate)
            }
            6 => {
                let bound = random.pick(&["M", "N*8", "100", "K/2", "X"]);
                let bound = names.expr(bound).unwrap();
                let mut parameters = parameters;
                parameters.extend(bound.parameters());
                parameters.sort();
                parameters.dedup();
                let evaluate = |values: &Values, at: &Tree<i64>| {
                    let (own, bound) = (numbers(values).eval_at(at).ok()?, bound.numbers(values).unwrap());
                    Some(vec![i64::from(0 <= own && own < bound)])
                };
                let computed = inside(&layout.clone().into(), &Tree::leaf(bound.clone()), &place.place);
                case(random, format!("{title} inside {bound}"), computed, &place, &shape, &parameters, runs, &evaluate)
            }
            _ => {
                let evaluate = |values: &Values, at: &Tree<i64>| {
                    let value = numbers(values).eval_at(at).ok()?;
                    let digits = idx2crd(at, &shape.numbers(values).unwrap()).ok()?;
                    Some(digits.leaves().iter().copied().chain([value]).collect())
                };
                let computed = coordinate(&shape, &place.place)
                    .and_then(|digits| digits.and(&value(&layout.clone().into(), &place.place)?));
                case(random, format!("both {title}"), computed, &place, &shape, &parameters, runs, &evaluate)
            }
        });
    }
    cases.extend(of_bits(&mut random, count, runs));
    cases
}

/// A square matrix, which has values at all integers.
fn random_matrix(random: &mut Random) -> BitMatrix {
    let bits = 1 + random.below(6) as usize;
    BitMatrix::new(bits, (0..bits).map(|_| random.below(1 << bits) as u64).collect::<Vec<_>>()).unwrap()
}

/// XOR strides, swizzles and composed layouts.
fn of_bits(random: &mut Random, count: usize, runs: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    let names = declarations();
    for number in 0..count / 2 {
        let layout = random_layout(random, &names, true).numbers(&Values::new()).unwrap();
        let mut place = draw(random, layout.profile());
        let shape = layout.shape().map(|extent| Expr::from(*extent));
        let shift = random.below(7) - 3;
        let swizzle = Swizzle::new(random.below(shift.abs() + 1), random.below(4), shift).unwrap();
        cases.push(match number % 4 {
            _ if number % 10 == 9 => {
                let inputs = 1 + random.below(6) as usize;
                let columns: Vec<u64> = (0..inputs).map(|_| random.below(100) as u64).collect();
                let matrix = BitMatrix::of_columns(columns).unwrap();
                let draw = Draw { place: Variables::index(), profile: Profile::leaf(), promise: Promise::Inside };
                let shape = Tree::leaf(Expr::from(1 << inputs));
                let evaluate = |_: &Values, at: &Tree<i64>| Some(vec![matrix.apply(at.leaves()[0] as u64) as i64]);
                let computed = value(&matrix.clone().into(), &draw.place);
                case(random, matrix.to_string(), computed, &draw, &shape, &[], runs, &evaluate)
            }
            0 | 1 => {
                let powers = number % 4 == 0;
                let steps = layout.tree().map(|leaf| Leaf {
                    extent: if powers { 1 << (leaf.extent.ilog2()) } else { leaf.extent },
                    stride: Xor::new(random.below(40) as u64).unwrap(),
                });
                let steps = Layout::from_tree(steps).unwrap();
                let shape = steps.shape().map(|extent| Expr::from(*extent));
                let evaluate = |_: &Values, at: &Tree<i64>| Some(vec![steps.eval_at(at).ok()?.bits() as i64]);
                let computed = value(&steps.clone().into(), &place.place);
                case(random, steps.to_string(), computed, &place, &shape, &[], runs, &evaluate)
            }
            2 => {
                let offset = random.below(40);
                let outer = match random.below(4) {
                    0 => OuterMap::Bits(random_matrix(random)),
                    1 => {
                        OuterMap::from(swizzle).after(&random.below(5), &OuterMap::Bits(random_matrix(random))).unwrap()
                    }
                    2 => OuterMap::from(swizzle).after(&random.below(5), &OuterMap::from(layout.clone())).unwrap(),
                    _ => OuterMap::from(swizzle),
                };
                let composed = Composed::new(outer, offset, layout).unwrap();
                let evaluate = |_: &Values, at: &Tree<i64>| Some(vec![composed.eval_at(at).ok()?]);
                let computed = value(&Map::from(composed.clone()), &place.place);
                case(random, composed.to_string(), computed, &place, &shape, &[], runs, &evaluate)
            }
            _ if number % 8 == 3 => {
                let outer = random_layout(random, &names, true).numbers(&Values::new()).unwrap();
                let composed = Composed::new(outer, random.below(9) - 4, layout).unwrap();
                let evaluate = |_: &Values, at: &Tree<i64>| Some(vec![composed.eval_at(at).ok()?]);
                let computed = value(&Map::from(composed.clone()), &place.place);
                case(random, composed.to_string(), computed, &place, &shape, &[], runs, &evaluate)
            }
            _ => {
                place.place = Variables::index().promised(place.promise);
                place.profile = Profile::leaf();
                let evaluate = |_: &Values, at: &Tree<i64>| Some(vec![swizzle.apply(at.leaves()[0])]);
                let computed = value(&swizzle.into(), &place.place);
                let shape = Tree::leaf(Expr::from(1000));
                case(random, swizzle.to_string(), computed, &place, &shape, &[], runs, &evaluate)
            }
        });
    }
    cases
}
