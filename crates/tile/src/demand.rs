//! The layouts in which operations use a value.
//!
//! Law: a value is converted once to each layout in which operations use it, however many
//! operations use that layout, and not to the layout that it already has. For few operations, one
//! cost table states this. For more, a variable of its own says whether the value is converted to a
//! layout, and the operations that use the value in that layout require it.

use std::collections::BTreeSet;

use crate::error::Reason;
use crate::held::Held;
use crate::network::{NEVER, Network};

/// The most entries of a cost table over all users of a value.
const MOST: usize = 1 << 14;

/// The layout in which each option of a variable uses a value; None if the option is impossible.
pub(crate) struct Demand {
    pub(crate) variable: usize,
    pub(crate) wants: Vec<Option<Held>>,
}

/// The numbers of the layouts in which each option of a variable uses a value.
struct OptionLayouts {
    variable: usize,
    wants: Vec<Option<BTreeSet<usize>>>,
}

/// Adds the cost of converting a value, whose variable has these layouts, to the layouts that its
/// users need.
pub(crate) fn settle(
    network: &mut Network,
    (from, layouts): (usize, &[Held]),
    demands: &[Demand],
    mut cost: impl FnMut(&Held, &Held) -> Result<u64, Reason>,
) -> Result<(), Reason> {
    let (wanted, takers) = gathered(demands);
    let mut costs = Vec::new();
    for held in layouts {
        costs.push(wanted.iter().map(|want| cost(held, want)).collect::<Result<Vec<u64>, _>>()?);
    }
    let mut scope = vec![from];
    scope.extend(takers.iter().map(|taker| taker.variable));
    let mut apart = scope.clone();
    apart.sort_unstable();
    apart.dedup();
    if network.table(&apart) <= MOST {
        network.together(&scope, |options| {
            let mut all = BTreeSet::new();
            for (taker, option) in takers.iter().zip(&options[1..]) {
                match &taker.wants[*option] {
                    Some(wants) => all.extend(wants),
                    None => return NEVER,
                }
            }
            sum(&costs[options[0]], all.into_iter())
        });
        return Ok(());
    }
    apart_from(network, from, &takers, &costs);
    Ok(())
}

/// The distinct layouts that are wanted, and the layouts that each user wants.
fn gathered(demands: &[Demand]) -> (Vec<&Held>, Vec<OptionLayouts>) {
    let mut wanted: Vec<&Held> = Vec::new();
    let mut takers: Vec<OptionLayouts> = Vec::new();
    for demand in demands {
        let mut number = |held| match wanted.iter().position(|own| *own == held) {
            Some(known) => known,
            None => {
                wanted.push(held);
                wanted.len() - 1
            }
        };
        let wants: Vec<Option<usize>> = demand.wants.iter().map(|held| held.as_ref().map(&mut number)).collect();
        // One operation may use a value twice.
        let known = takers.iter().position(|own| own.variable == demand.variable);
        let at = known.unwrap_or_else(|| {
            let wants = vec![Some(BTreeSet::new()); wants.len()];
            takers.push(OptionLayouts { variable: demand.variable, wants });
            takers.len() - 1
        });
        for (all, own) in takers[at].wants.iter_mut().zip(wants) {
            match (all.as_mut(), own) {
                (Some(all), Some(own)) => {
                    all.insert(own);
                }
                _ => *all = None,
            }
        }
    }
    (wanted, takers)
}

/// Adds the same cost if the users have too many options for one table. Each user has its own
/// table. For each layout that several users want, a switch variable says whether that conversion
/// is made.
fn apart_from(network: &mut Network, from: usize, takers: &[OptionLayouts], costs: &[Vec<u64>]) {
    let takes = |taker: &OptionLayouts, want: usize| taker.wants.iter().flatten().any(|wants| wants.contains(&want));
    let count = costs.first().map_or(0, Vec::len);
    let shared: Vec<usize> =
        (0..count).filter(|want| takers.iter().filter(|taker| takes(taker, *want)).count() > 1).collect();
    for taker in takers {
        network.both(from, taker.variable, |own, option| match &taker.wants[option] {
            Some(wants) => sum(&costs[own], wants.iter().copied().filter(|want| !shared.contains(want))),
            None => NEVER,
        });
    }
    for want in shared {
        let switch = network.switch();
        network.both(from, switch, |own, made| if made == 1 { costs[own][want] } else { 0 });
        for taker in takers.iter().filter(|taker| takes(taker, want)) {
            network.both(taker.variable, switch, |option, made| {
                let needs = taker.wants[option].as_ref().is_some_and(|wants| wants.contains(&want));
                if needs && made == 0 { NEVER } else { 0 }
            });
        }
    }
}

/// The sum of the costs of some layouts.
fn sum(costs: &[u64], wants: impl Iterator<Item = usize>) -> u64 {
    wants.fold(0, |sum: u64, want| sum.saturating_add(costs[want]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four distinct layouts of eight elements over two threads.
    fn layouts() -> Vec<Held> {
        let texts = ["(2,4):(1,2)", "(2,4):(4,1)", "(2,(2,2)):(2,(1,4))", "(2,(2,2)):(2,(4,1))"];
        texts.into_iter().map(|text| text.parse().unwrap()).collect()
    }

    /// The cost of a conversion, by the distributions of both layouts.
    fn price(from: &Held, to: &Held) -> Result<u64, Reason> {
        let number = |held: &Held| held.element(1, 1).unsigned_abs();
        Ok(if from == to { 0 } else { 10 + 7 * number(from) + number(to) })
    }

    /// The least cost by exhaustive search, if `count` operations use a value, each in its own
    /// layout.
    fn exhaustive(count: usize, own: &[Vec<u64>]) -> u64 {
        let layouts = layouts();
        let digit = |number: usize, at: usize| number / 4_usize.pow(at as u32) % 4;
        let one = |number: usize| {
            let chosen: Vec<usize> = (0..=count).map(|at| digit(number, at)).collect();
            let alone: u64 = chosen.iter().zip(own).map(|(option, own)| own[*option]).sum();
            let wants: BTreeSet<usize> = chosen[1..].iter().copied().collect();
            alone + wants.iter().map(|want| price(&layouts[chosen[0]], &layouts[*want]).unwrap()).sum::<u64>()
        };
        (0..4_usize.pow(count as u32 + 1)).map(one).min().unwrap()
    }

    #[test]
    fn a_conversion_that_several_take_is_counted_once() {
        let layouts = layouts();
        let mut number = 7_u64;
        let mut chance = |end: u64| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) % end
        };
        // With seven users, the table of all is too large, and switches replace it.
        for (count, rounds) in [(1, 40), (2, 40), (3, 40), (7, 6)] {
            for round in 0..rounds {
                let own: Vec<Vec<u64>> = (0..=count).map(|_| (0..4).map(|_| chance(40)).collect()).collect();
                let mut network = Network::default();
                let variables: Vec<usize> = own
                    .iter()
                    .map(|costs| {
                        let variable = network.variable(4);
                        network.costs(variable, |option| costs[option]);
                        variable
                    })
                    .collect();
                let wants = |variable: &usize| Demand {
                    variable: *variable,
                    wants: layouts.iter().cloned().map(Some).collect(),
                };
                // One of the users uses the value twice.
                let demands: Vec<Demand> = variables[1..].iter().chain(&variables[1..2]).map(wants).collect();
                settle(&mut network, (variables[0], &layouts), &demands, price).unwrap();
                let (found, best) = (network.solve(), exhaustive(count, &own));
                assert_eq!(found.cost, best, "{count} operations, {round}");
                assert_eq!(found.bound, best, "{count} operations, {round}");
            }
        }
    }
}
