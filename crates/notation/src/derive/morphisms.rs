//! Derivations of operations on morphisms: formulas as for layouts, and the image of each entry in
//! words.

use tilewright_layout::morphism::{MutualRefinement, NestMorphism, Refinement, standard_representation};
use tilewright_layout::{AnyLayout, AnyTree, Tree};

use super::plan::{APPLIED, Plan};
use crate::functions;
use crate::value::Value;

/// The plan of an operation on morphisms, if the call is one.
pub(super) fn plan(function: &str, values: &[Value]) -> Option<Plan> {
    match (function, values) {
        ("morphism", [_]) => Some(Plan::form(
            "A",
            "sends each mode of A to its place among the modes and the gaps between them, in the order of strides",
            "R = morphism(A); L = encoded(R)",
        )),
        ("mutual_refinement", [_, _]) => Some(Plan::form(
            "S T",
            "takes off the front of both, each time, the largest piece that both can give",
            "R = mutual_refinement(S, T)",
        )),
        ("composition_by_refinement", [_, _]) => Some(Plan::form(
            "A B",
            "is the weak composite of their morphisms, coalesced over the shape of B",
            "f = morphism(B); g = morphism(coalesce(A)); P = mutual_refinement(codomain(f), domain(g)); F = inclusion(P[0], P[1]) o pullback(f, P[0]); G = pushforward(g, P[1]); W = G o F; L = encoded(W); R = composition_by_refinement(A, B); same = equal(R, A o B)",
        )),
        (_, [Value::Morphism(_), ..]) => of_morphism(function, values.len()),
        _ => None,
    }
}

/// The plan of an operation whose first argument is a morphism.
fn of_morphism(function: &str, arguments: usize) -> Option<Plan> {
    Some(match (function, arguments) {
        ("composition", 2) => Plan::form(
            "g f",
            "follows each arrow of f and then the one of g",
            "R = g o f; same = equivalent(encoded(R), encoded(g) o encoded(f))",
        ),
        ("coalesce", 1) => Plan::form(
            "f",
            "leaves out entries 1 and merges neighbours that are sent to neighbours, on both sides",
            "S = squeeze(f); R = coalesce(f); same = equal(encoded(R), coalesce(encoded(f)))",
        ),
        ("complement", 1) => Plan::form(
            "f",
            "is the inclusion of the entries that f does not hit",
            "R = complement(f); D = concat(f, R); whole = is_isomorphism(D); L = encoded(R)",
        ),
        ("logical_divide", 2) => Plan::form(
            "f g",
            "= f o (g, complement(g))",
            "C = complement(g); D = concat(g, C); R = f o D; L = encoded(R)",
        ),
        ("logical_product", 2) => Plan::form(
            "f g",
            "= (f, complement(f) o g)",
            "C = complement(f); K = C o g; R = concat(f, K); L = encoded(R)",
        ),
        ("encoded", 1) => Plan::form(
            "f",
            "has the shape of the domain; a stride is the product of the codomain before the place where the mode is sent",
            "S = domain(f); R = encoded(f)",
        ),
        ("standard_form", 1) => Plan::form("f", "= morphism(encoded(f))", "L = encoded(f); R = morphism(L)"),
        ("pullback", 2) => Plan::form(
            "f T",
            "cuts each mode as the axis is cut that it walks along",
            "C = codomain(f); R = pullback(f, T); S = domain(R); same = equivalent(f, R)",
        ),
        ("pushforward", 2) => Plan::form(
            "f S",
            "cuts each axis as the mode is cut that walks along it",
            "D = domain(f); R = pushforward(f, S); T = codomain(R); same = equivalent(f, R)",
        ),
        ("weak_composite", 2) => Plan::form(
            "g f",
            "= G after F, where both are cut until they meet",
            "S = codomain(f); T = domain(g); P = mutual_refinement(S, T); F = inclusion(P[0], P[1]) o pullback(f, P[0]); G = pushforward(g, P[1]); R = G o F; L = encoded(R)",
        ),
        ("inverse", 1) => {
            Plan::form("f", "turns every arrow around", "R = inverse(f); R(f(i)) = R o f; f(R(i)) = f o R")
        }
        ("sum", _) => Plan {
            names: "fghijklmn".chars().take(arguments).map(String::from).collect(),
            formula: "puts them side by side, domain beside domain and codomain beside codomain".to_owned(),
            steps: Vec::new(),
        },
        (APPLIED, 2) => Plan::form(
            "f c",
            "= the coordinate of c, moved along the arrows, as an index of the codomain",
            "k = idx2crd(c, domain(f)); R = f(c)",
        ),
        (name, count) => {
            let summary = functions::find(name)?.summary;
            let letters = if matches!(name, "restrict" | "factorise") { "fijklmn" } else { "fghijkl" };
            let names = letters.chars().take(count).map(String::from).collect();
            Plan { names, formula: format!("is {summary}"), steps: Vec::new() }
        }
    })
}

/// The remarks about a call besides its formula: the image of each entry.
pub(super) fn remarks(function: &str, values: &[Value]) -> Vec<String> {
    match (function, values) {
        ("composition", [Value::Morphism(g), Value::Morphism(f)]) => followed(g, f),
        ("encoded", [Value::Morphism(f)]) => strides(f),
        ("morphism", [Value::Layout(AnyLayout::Integer(layout))]) => {
            standard_representation(layout).map_or_else(|_| Vec::new(), |f| axes(&f))
        }
        (APPLIED, [Value::Morphism(f), at]) => coordinate_in_codomain(f, at).into_iter().collect(),
        ("mutual_refinement", [first, second]) => {
            let mutual = |first: &Tree<i64>, second: &Tree<i64>| MutualRefinement::new(first, second).ok();
            tuple(first).zip(tuple(second)).and_then(|(s, t)| mutual(&s, &t)).map_or_else(Vec::new, |m| pieces(&m))
        }
        ("pullback", [Value::Morphism(f), along]) => {
            let along = tuple(along).and_then(|fine| Refinement::new(&fine, &f.codomain()).ok());
            let (modes, images) = (f.flatten().domain(), f.map().images());
            along.map_or_else(Vec::new, |along| {
                cut(modes, images, along.parts(), |mode, part| format!("{mode} walks along {part}, and is cut so"))
            })
        }
        ("pushforward", [Value::Morphism(f), along]) => {
            let along = tuple(along).and_then(|fine| Refinement::new(&fine, &f.domain()).ok());
            let axes = f.flatten().codomain();
            let walkers = (0..axes.len()).map(|axis| f.map().preimage(axis));
            along.map_or_else(Vec::new, |along| {
                cut(axes, walkers, along.parts(), |axis, part| format!("{part} walks along {axis}, which is cut so"))
            })
        }
        _ => Vec::new(),
    }
}

fn tuple(value: &Value) -> Option<Tree<i64>> {
    match value {
        Value::Int(number) => Some(Tree::from(*number)),
        Value::Tree(AnyTree::Integer(tree)) => Some(tree.clone()),
        Value::Layout(AnyLayout::Integer(layout)) => Some(layout.shape()),
        _ => None,
    }
}

/// The image of each entry under the first morphism, and the image of that under the second.
fn followed(g: &NestMorphism, f: &NestMorphism) -> Vec<String> {
    let told = |(entry, image): (usize, Option<usize>)| match image.map(|image| (image, g.map().image(image))) {
        None => format!("entry {} to *", entry + 1),
        Some((image, None)) => format!("entry {} to {}, and from there to *", entry + 1, image + 1),
        Some((image, Some(last))) => format!("entry {} to {}, and from there to {}", entry + 1, image + 1, last + 1),
    };
    f.map().images().enumerate().map(told).collect()
}

/// The text `4*16 = 64` of a product of numbers.
fn product(factors: &[i64]) -> Option<String> {
    let value = factors.iter().try_fold(1_i64, |product, factor| product.checked_mul(*factor))?;
    let written: Vec<String> = factors.iter().map(i64::to_string).collect();
    Some(if factors.len() < 2 { value.to_string() } else { format!("{} = {value}", written.join("*")) })
}

/// The stride of each entry of the domain.
fn strides(f: &NestMorphism) -> Vec<String> {
    let codomain = f.flatten().codomain();
    let told = |(extent, image): (&i64, Option<usize>)| {
        let Some(place) = image else { return Some(format!("{extent} is sent to *: stride 0")) };
        let before = product(codomain.get(..place)?)?;
        Some(format!("{extent} is sent to place {}: stride {before}", place + 1))
    };
    f.flatten().domain().iter().zip(f.map().images()).filter_map(told).collect()
}

/// The meaning of each entry of a standard codomain: a mode, or the gap before the next mode.
fn axes(f: &NestMorphism) -> Vec<String> {
    let mut step = 1_i64;
    let mut told = Vec::new();
    for (place, extent) in f.flatten().codomain().iter().enumerate() {
        let end = step.checked_mul(*extent);
        let place_name = place + 1;
        match (f.map().preimage(place), end) {
            (Some(_), _) => told.push(format!("place {place_name}: the mode {extent}:{step}")),
            (None, Some(end)) => told.push(format!("place {place_name}: the gap {extent}, from {step} to {end}")),
            (None, None) => {}
        }
        let Some(end) = end else { break };
        step = end;
    }
    told
}

/// The coordinate of an index in the codomain.
fn coordinate_in_codomain(f: &NestMorphism, at: &Value) -> Option<String> {
    let value = match at {
        Value::Int(index) => f.realise(*index).ok()?,
        Value::Tree(AnyTree::Integer(coordinate)) => f.realise_at(coordinate).ok()?,
        _ => return None,
    };
    let codomain = f.flatten().codomain();
    let (mut rest, mut digits, mut terms, mut step) = (value, Vec::new(), Vec::new(), Some(1_i64));
    for extent in codomain {
        let digit = rest % extent;
        rest /= extent;
        digits.push(digit.to_string());
        if let Some(here) = step.filter(|_| digit > 0) {
            terms.push(format!("{digit}*{here}"));
        }
        step = step.and_then(|step| step.checked_mul(*extent));
    }
    let sum = if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") };
    Some(format!("moved: ({}) in {}, which is {sum} = {value}", digits.join(","), f.codomain()))
}

/// How each entry of a tuple is cut into the part that refines it.
fn cut(
    entries: &[i64],
    owners: impl Iterator<Item = Option<usize>>,
    parts: &[Tree<i64>],
    told: impl Fn(i64, &Tree<i64>) -> String,
) -> Vec<String> {
    let one = |(extent, owner): (&i64, Option<usize>)| match owner.and_then(|owner| parts.get(owner)) {
        None => format!("{extent} stays whole"),
        Some(part) if part.is_leaf() => format!("{extent} stays, as {part} does"),
        Some(part) => told(*extent, part),
    };
    entries.iter().zip(owners).map(one).collect()
}

/// The pieces of a mutual refinement, in the order in which they are taken from the entries.
fn pieces(mutual: &MutualRefinement) -> Vec<String> {
    // For each leaf: the extent, and the rest of its entry from this leaf on.
    let left = |refinement: &Refinement| {
        let mut left = Vec::new();
        for (entry, part) in refinement.coarse().leaves().iter().zip(refinement.parts()) {
            let mut rest = *entry;
            for extent in part.leaves() {
                left.push((*extent, rest));
                rest /= extent;
            }
        }
        left
    };
    let (first, second) = (left(mutual.first()), left(mutual.second()));
    let mut told = Vec::new();
    for ((extent, a), (_, b)) in first.iter().zip(&second) {
        let over = match (a / extent, b / extent) {
            (1, 1) => String::new(),
            (rest, 1) => format!(", and {rest} of the first is left"),
            (_, rest) => format!(", and {rest} of the second is left"),
        };
        told.push(format!("{a} and {b}: {extent} off both{over}"));
    }
    let rest: Vec<String> = second.iter().skip(first.len()).map(|(extent, _)| extent.to_string()).collect();
    if !rest.is_empty() {
        told.push(format!("the first has ended: {} of the second stays", rest.join(", ")));
    }
    told
}
