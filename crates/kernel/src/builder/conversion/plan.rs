//! The moves that convert one distribution into another.
//!
//! Law: after the rounds of a plan, every lane has kept each of its values from a round in which
//! the source lane offered the right register. Plans are compared by their number of instructions.

use super::super::lanes::Sources;
use crate::program::WARP_LANES;

/// Moves from one distribution to another.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// The number of the thread's own value that becomes each value.
    Registers(Vec<usize>),
    /// Rounds of shuffles, the same in all warps.
    Lanes(Vec<Round>),
    /// Through shared memory.
    Shared,
}

/// One shuffle.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Round {
    /// The value that each lane offers: value and lanes. The first entry applies to all lanes that
    /// no other entry names.
    pub(super) offers: Vec<(usize, u32)>,
    /// The lane from which each lane reads.
    pub(super) sources: Sources,
    /// The value of the result that is received, and the lanes that keep it.
    pub(super) keeps: Vec<(usize, u32)>,
}

/// The source of one value of one lane.
#[derive(Debug, Clone, Copy)]
struct Move {
    lane: usize,
    value: usize,
    from: usize,
    register: usize,
}

/// The number of instructions of a shuffle, of a predicate for lanes, and of going through shared
/// memory.
const SHUFFLE: u32 = 2;
const PREDICATE: u32 = 3;
const SHARED: u32 = 40;
/// ... and of each value that is stored and loaded.
const STORED: u32 = 6;

/// The number of values that are adjacent in both tables, wherever they go: a power of two, at most
/// `most`.
pub(super) fn together(from: &[Vec<i64>], to: &[Vec<i64>], most: usize) -> usize {
    let mut count = most;
    while count > 1 {
        let sizes = [from, to].iter().all(|table| table.first().is_none_or(|row| row.len() % count == 0));
        if sizes {
            let groups = from.iter().flat_map(|row| row.chunks(count));
            let known: std::collections::HashMap<i64, &[i64]> = groups.map(|group| (group[0], group)).collect();
            // Each element may be first in only one group, and all threads that hold it must agree
            // on its group.
            let alike = |table: &[Vec<i64>]| {
                table.iter().flat_map(|row| row.chunks(count)).all(|group| known.get(&group[0]) == Some(&group))
            };
            if alike(from) && alike(to) {
                return count;
            }
        }
        count /= 2;
    }
    1
}

/// The approximate number of instructions for a warp in which each thread stores and loads this
/// many values.
pub(super) fn through_shared(stored: u32, loaded: u32) -> u32 {
    SHARED + STORED * (stored + loaded)
}

/// The plan with the fewest instructions, and their approximate number. One value takes `words`
/// shuffles.
pub(super) fn cheapest(from: &[Vec<i64>], to: &[Vec<i64>], words: u32) -> (Plan, u32) {
    if let Some(values) = registers(from, to) {
        return (Plan::Registers(values), 0);
    }
    let [stored, loaded] = [from, to].map(|table| table.first().map_or(0, Vec::len) as u32);
    let shared = through_shared(stored, loaded);
    let Some(moves) = moves(from, to) else { return (Plan::Shared, shared) };
    let slanted = (0..WARP_LANES.trailing_zeros()).map(|shift| slanted_rounds(&moves, shift));
    let plans = pull_rounds(&moves).into_iter().chain([push_rounds(&moves), xor_rounds(&moves)]).chain(slanted);
    let best = plans.map(|rounds| (cost(&rounds, words), rounds)).min_by_key(|(cost, _)| *cost);
    match best {
        Some((cost, rounds)) if cost <= shared => (Plan::Lanes(rounds), cost),
        _ => (Plan::Shared, shared),
    }
}

/// For each value, its number before the conversion, if that is the same in every thread.
fn registers(from: &[Vec<i64>], to: &[Vec<i64>]) -> Option<Vec<usize>> {
    let values = to.first()?.len();
    let own = |value: usize| {
        (0..from[0].len()).find(|own| from.iter().zip(to).all(|(held, wanted)| held[*own] == wanted[value]))
    };
    (0..values).map(own).collect()
}

/// The source lane of each value of each lane, the same in every warp: the lane itself if possible,
/// else the nearest lane. None if some warp does not hold the value.
fn moves(from: &[Vec<i64>], to: &[Vec<i64>]) -> Option<Vec<Move>> {
    if !from.len().is_multiple_of(WARP_LANES) {
        return None;
    }
    let warps = from.len() / WARP_LANES;
    let holders: Vec<std::collections::HashMap<i64, Vec<(usize, usize)>>> = (0..warps)
        .map(|warp| {
            let mut holders: std::collections::HashMap<i64, Vec<(usize, usize)>> = std::collections::HashMap::new();
            for (lane, row) in from[warp * WARP_LANES..(warp + 1) * WARP_LANES].iter().enumerate() {
                for (register, element) in row.iter().enumerate() {
                    holders.entry(*element).or_default().push((lane, register));
                }
            }
            holders
        })
        .collect();
    let mut found = Vec::new();
    for (lane, row) in to.iter().take(WARP_LANES).enumerate() {
        for (value, element) in row.iter().enumerate() {
            let of = |warp: usize| match warp {
                0 => holders[0].get(element),
                warp => holders[warp].get(&to[warp * WARP_LANES + lane][value]),
            };
            let mut places = of(0)?.clone();
            for warp in 1..warps {
                let others = of(warp)?;
                places.retain(|place| others.contains(place));
            }
            let (from, register) = places.into_iter().min_by_key(|(from, register)| (from ^ lane, *register))?;
            found.push(Move { lane, value, from, register });
        }
    }
    Some(found)
}

/// A round of moves in which no two have the same destination lane. None if a lane would have to
/// offer two registers.
fn round(moves: &[&Move]) -> Option<Round> {
    let mut offered: [Option<usize>; WARP_LANES] = [None; WARP_LANES];
    let mut sources = None;
    for one in moves {
        match offered[one.from] {
            Some(other) if other != one.register => return None,
            _ => offered[one.from] = Some(one.register),
        }
        sources = Some(one.from ^ one.lane);
    }
    // Lanes that need nothing do the same as some other lane.
    let other = sources.unwrap_or(0);
    let mut from: [u8; WARP_LANES] = std::array::from_fn(|lane| (lane ^ other) as u8);
    for one in moves {
        from[one.lane] = one.from as u8;
    }
    let collect = |pairs: Vec<(usize, usize)>| {
        let mut sets: Vec<(usize, u32)> = Vec::new();
        for (number, lane) in pairs {
            match sets.iter_mut().find(|(known, _)| *known == number) {
                Some((_, lanes)) => *lanes |= 1 << lane,
                None => sets.push((number, 1 << lane)),
            }
        }
        sets.sort_unstable();
        sets
    };
    let offers = collect((0..WARP_LANES).filter_map(|lane| Some((offered[lane]?, lane))).collect());
    let keeps = collect(moves.iter().map(|one| (one.value, one.lane)).collect());
    Some(Round { offers, sources: Sources(from), keeps })
}

/// Rounds in which every lane receives the same value of the result.
fn pull_rounds(moves: &[Move]) -> Option<Vec<Round>> {
    let values = moves.iter().map(|one| one.value).max()? + 1;
    let mut rounds: Vec<Round> = Vec::new();
    for value in 0..values {
        let next = round(&moves.iter().filter(|one| one.value == value).collect::<Vec<_>>())?;
        match rounds.iter_mut().find(|other| other.offers == next.offers && other.sources == next.sources) {
            Some(other) => other.keeps.extend(next.keeps),
            None => rounds.push(next),
        }
    }
    Some(rounds)
}

/// Groups moves by `key`; in each round, every lane makes one move of a group.
fn grouped(moves: &[Move], key: impl Fn(&Move) -> usize) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut keys: Vec<usize> = moves.iter().map(&key).collect();
    keys.sort_unstable();
    keys.dedup();
    for own in keys {
        let mut rest: Vec<&Move> = moves.iter().filter(|one| key(one) == own).collect();
        while !rest.is_empty() {
            let mut taken: Vec<&Move> = Vec::new();
            rest.retain(|one| {
                let fits = taken
                    .iter()
                    .all(|other| other.lane != one.lane && (other.from != one.from || other.register == one.register));
                if fits {
                    taken.push(one);
                }
                !fits
            });
            rounds.extend(round(&taken));
        }
    }
    rounds
}

/// Rounds in which every lane offers the same register.
fn push_rounds(moves: &[Move]) -> Vec<Round> {
    grouped(moves, |one| one.register)
}

/// Rounds in which every lane reads from the lane whose index differs from its own in the same
/// bits.
fn xor_rounds(moves: &[Move]) -> Vec<Round> {
    grouped(moves, |one| one.lane ^ one.from)
}

/// Rounds in which neighbouring lanes offer different registers, as for a transposition of rows of
/// registers. Lanes count as neighbours from bit `shift` on.
fn slanted_rounds(moves: &[Move], shift: u32) -> Vec<Round> {
    let registers = moves.iter().map(|one| one.register + 1).max().unwrap_or(1).next_power_of_two();
    grouped(moves, |one| one.register ^ ((one.from >> shift) % registers))
}

/// The approximate number of instructions of some rounds.
fn cost(rounds: &[Round], words: u32) -> u32 {
    let mut sets: Vec<u32> = Vec::new();
    let mut numbers: Vec<Sources> = Vec::new();
    let mut parts: Vec<u32> = Vec::new();
    let mut sum = 0;
    for round in rounds {
        if !round.sources.is_identity() {
            sum += SHUFFLE * words;
        }
        if round.sources.mask().is_none() {
            let (based, mask) = round.sources.based();
            sum += u32::from(mask != 0);
            if !numbers.contains(&based) {
                sum += based.cost();
                numbers.push(based);
            }
        }
        for (_, lanes) in round.offers.iter().skip(1) {
            sum += words;
            sets.push(*lanes);
        }
        for (value, lanes) in &round.keeps {
            if parts.len() <= *value {
                parts.resize(value + 1, 0);
            }
            if parts[*value] > 0 {
                sum += words;
                sets.push(*lanes);
            }
            parts[*value] += 1;
        }
    }
    sets.sort_unstable();
    sets.dedup();
    sum + PREDICATE * sets.len() as u32
}
