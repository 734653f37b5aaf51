//! Random layouts of tiles.

use tilewright_tile::Held;

use crate::random::chance::Chance;

/// A layout of a tile; none if a thread would have more than 64 elements.
pub fn held(shape: &[i64], warps: u32, chance: &mut Chance) -> Option<Held> {
    let bits = chance.order(shape.iter().product::<i64>().trailing_zeros() as usize);
    let threads = 5 + warps.trailing_zeros() as usize;
    let (mut of_threads, mut of_values) = (Vec::new(), Vec::new());
    for bit in bits {
        if of_threads.len() < threads && chance.below(4) > 0 {
            of_threads.push(1_i64 << bit);
        } else {
            of_values.push(1_i64 << bit);
        }
    }
    while of_threads.len() < threads {
        let place = chance.below(of_threads.len() + 1);
        of_threads.insert(place, 0);
    }
    if of_values.len() > 6 {
        return None;
    }
    let list = |steps: &[i64], each: &dyn Fn(&i64) -> i64| {
        let all: Vec<String> = steps.iter().map(|step| each(step).to_string()).collect();
        if all.is_empty() { "1".to_string() } else { format!("({})", all.join(",")) }
    };
    let strides = if of_values.is_empty() { "0".to_string() } else { list(&of_values, &|step| *step) };
    let text = format!(
        "({},{}):({},{strides})",
        list(&of_threads, &|_| 2),
        list(&of_values, &|_| 2),
        list(&of_threads, &|step| *step)
    );
    Some(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
}
