//! Facts about a layout in words: its size, and its properties.
//!
//! Law: counts include every index; if that would be too many, they are omitted.

use std::collections::HashSet;

use tilewright_layout::{AnyLayout, Extent, Layout};
use tilewright_notation::Value;

use crate::explain::map::{Map, Point};

/// The facts about a layout, a line for each group. `map` is `value` as a map.
///
/// ```
/// use tilewright_draw::explain::{facts, map};
/// use tilewright_notation::{Environment, evaluate};
///
/// let value = evaluate("(4,2):(1,3)", &mut Environment::new()).unwrap();
/// let lines = facts::of(&value, &map::of(&value).unwrap());
/// assert_eq!(lines[0], "size 8, cosize 7, rank 2, depth 1");
/// assert!(lines.contains(&"indices 3 and 4 share an offset".to_owned()));
/// ```
pub fn of(value: &Value, map: &Map) -> Vec<String> {
    let shape = map.shape();
    let cosize = match value {
        Value::Layout(layout) if !map.has_coordinates() => layout.cosize().ok().and_then(|cosize| cosize.known()),
        _ => None,
    };
    let mut numbers = vec![format!("size {}", map.size())];
    numbers.extend(cosize.map(|cosize| format!("cosize {cosize}")));
    numbers.extend([format!("rank {}", shape.rank()), format!("depth {}", shape.depth())]);
    let mut lines = vec![numbers.join(", ")];
    match value {
        Value::Layout(AnyLayout::Integer(layout)) => lines.extend(predicates(layout)),
        _ => lines.extend(counted(map, cosize)),
    }
    lines
}

/// Facts from counting the offsets of a map, if there are not too many.
fn counted(map: &Map, cosize: Option<i64>) -> Option<String> {
    const MOST: i64 = 1 << 20;
    if map.size() > MOST {
        return None;
    }
    if map.has_coordinates() {
        let points: HashSet<Point> = (0..map.size()).map(|index| map.value(index)).collect::<Result<_, _>>().ok()?;
        let injective = i64::try_from(points.len()) == Ok(map.size());
        return Some(if injective { "injective" } else { "not injective" }.to_owned());
    }
    let offsets: Option<Vec<i64>> = (0..map.size()).map(|index| map.at(index).ok()).collect();
    let mut offsets = offsets?;
    offsets.sort_unstable();
    let (least, greatest) = (offsets.first().copied()?, offsets.last().copied()?);
    offsets.dedup();
    let different = i64::try_from(offsets.len()).ok()?;
    let facts = [
        ("injective", different == map.size()),
        ("surjective", least >= 0 && Some(different) == cosize),
        ("contiguous", greatest - least + 1 == different),
    ];
    let named = |holds: bool| facts.iter().filter(move |fact| fact.1 == holds).map(|fact| fact.0);
    let yes = named(true).map(str::to_owned);
    let no = named(false).map(|name| format!("not {name}"));
    Some(yes.chain(no).collect::<Vec<_>>().join(", "))
}

/// The predicates that are true, those that are false, a witness, and the coalesced form of the
/// layout. Compact means the same as bijective.
fn predicates(layout: &Layout) -> Vec<String> {
    let asked = [
        ("injective", layout.is_injective().ok()),
        ("surjective", Some(layout.is_surjective())),
        ("compact", Some(layout.is_compact())),
        ("contiguous", Some(layout.is_contiguous())),
        ("ordered", Some(layout.is_ordered())),
        ("tractable", Some(layout.is_tractable())),
    ];
    let mut lines = Vec::new();
    for (label, answer) in [("", Some(true)), ("not ", Some(false)), ("perhaps ", None)] {
        let answered = asked.iter().filter(|(_, given)| *given == answer);
        let names: Vec<String> = answered.map(|(name, _)| format!("{label}{name}")).collect();
        if !names.is_empty() {
            lines.push(names.join(", "));
        }
    }
    if let Ok(Some((first, second))) = layout.collision() {
        lines.push(format!("indices {first} and {second} share an offset"));
    }
    if let Ok(least) = layout.coalesce()
        && least != *layout
    {
        lines.push(format!("the same function as {least}"));
    }
    lines
}
