//! What a refusal says is true: its witness is a place where the condition fails, and what it
//! proposes was tried.

use tilewright_notation::{Environment, Value, evaluate};

struct Random(u64);

impl Random {
    /// A number below a bound (splitmix64).
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }

    /// A shape with two levels at most, and strides that nest alike.
    fn layout(&mut self, extents: &[&str], strides: &[&str]) -> String {
        let (mut shape, mut stride) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.below(3) {
            let leaves = if self.below(3) == 0 { 2 } else { 1 };
            let own = |random: &mut Random, all: &[&str]| {
                let items: Vec<&str> = (0..leaves).map(|_| random.pick(all)).collect();
                if leaves == 1 { items[0].to_owned() } else { format!("({})", items.join(",")) }
            };
            shape.push(own(self, extents));
            stride.push(own(self, strides));
        }
        match shape.as_slice() {
            [only] => format!("{only}:{}", stride[0]),
            _ => format!("({}):({})", shape.join(","), stride.join(",")),
        }
    }
}

fn value(text: &str) -> i64 {
    match evaluate(text, &mut Environment::new()) {
        Ok(Value::Int(value)) => value,
        other => panic!("{text}: {other:?}"),
    }
}

/// The leaves of a layout's text.
fn leaves(text: &str) -> Vec<i64> {
    text.split(['(', ')', ',']).filter(|leaf| !leaf.is_empty()).map(|leaf| leaf.parse().unwrap()).collect()
}

/// `L(i)`, from the definition: digits, the last mode without an end.
fn at(layout: &str, mut index: i64) -> i64 {
    let (shape, stride) = layout.split_once(':').unwrap();
    let (shape, stride) = (leaves(shape), leaves(stride));
    let mut sum = 0;
    for (position, (extent, step)) in shape.iter().zip(&stride).enumerate() {
        let digit = if position + 1 == shape.len() { index } else { index % extent };
        sum += digit * step;
        index /= extent;
    }
    sum
}

/// The witness is a coordinate of B that reads back, whatever B's nesting; A at the value there is
/// not what the modes come to.
#[test]
fn witnesses_of_compositions_read_back() {
    let mut random = Random(17);
    let (mut carries, mut nested) = (0, 0);
    for _ in 0..6_000 {
        let a = random.layout(&["2", "3", "4", "5", "6"], &["0", "1", "2", "3", "7", "9"]);
        let b = random.layout(&["2", "3", "4", "6"], &["0", "1", "2", "3", "4", "6", "12", "72"]);
        let Err(error) = evaluate(&format!("{a} o {b}"), &mut Environment::new()) else { continue };
        if error.code != "E0107" {
            continue;
        }
        let witness = error.witness.clone().unwrap();
        // In the message, in the field, and applied as it is printed.
        assert!(error.message.contains(&format!("at coordinate {witness} ")), "{}", error.message);
        let offset = value(&format!("B = {b}; B({witness})"));
        let printed = error.message.split("A(B").nth(1).unwrap().split(" = ").next().unwrap();
        let printed = printed.strip_suffix(')').unwrap();
        assert_eq!(value(&format!("B = {b}; B{printed}")), offset, "{}", error.message);
        let (_, stride) = b.split_once(':').unwrap();
        let by_leaf: Vec<(i64, i64)> = witness.leaves().iter().copied().zip(leaves(stride)).collect();
        assert_eq!(by_leaf.iter().map(|(index, step)| index * step).sum::<i64>(), offset);
        // The sum over the modes is that of A along each of them, unless a mode carries alone.
        let found = at(&a, offset);
        assert!(
            error.message.contains(&format!(" = {found}, but the modes alone give ")),
            "{}: {a} at {offset} is {found}",
            error.message
        );
        let alone: i64 = error.message.rsplit(' ').next().unwrap().parse().unwrap();
        assert_ne!(found, alone, "{a} o {b}: {}", error.message);
        carries += 1;
        nested += usize::from(b.contains("(("));
    }
    assert!(carries > 300 && nested > 50, "{carries} {nested}");
}

/// XOR: where a mode of B is to blame, the witness is a coordinate of the whole of B.
#[test]
fn witnesses_of_xor_read_back() {
    let mut random = Random(18);
    let mut found = 0;
    for _ in 0..4_000 {
        let a = random.layout(&["2", "3", "4", "8"], &["^1", "^2", "^3", "^9"]);
        let b = random.layout(&["2", "3", "4"], &["1", "2", "3", "5"]);
        let Err(error) = evaluate(&format!("{a} o {b}"), &mut Environment::new()) else { continue };
        let Some(witness) = error.witness else { continue };
        let inner = value(&format!("B = {b}; B({witness})"));
        let outer = evaluate(&format!("A = {a}; A({inner})"), &mut Environment::new()).unwrap().to_string();
        assert!(
            error.message.replace("is ^", "is ").contains(&format!("is {},", outer.trim_start_matches('^'))),
            "{a} o {b}: {}",
            error.message
        );
        found += 1;
    }
    assert!(found > 100, "{found}");
}

/// What a message proposes to declare.
fn declaration(message: &str) -> Option<&str> {
    Some(message.split_once("; declare `")?.1.strip_suffix('`').unwrap())
}

/// Programs with names, refused for want of facts: with the declaration that is proposed, they have
/// a value, or are refused for want of another fact, until nothing is proposed any more.
#[test]
fn declarations_settle_what_they_claim() {
    let mut random = Random(19);
    let (mut proposed, mut settled) = (0, 0);
    for round in 0..6_000 {
        let extents = ["2", "4", "M", "K", "M{div=8,max=64}", "K{div=8,max=64}", "8"];
        let strides = ["0", "1", "2", "4", "8", "M", "K", "M{div=8,max=64}"];
        let (a, b) = (random.layout(&extents, &strides), random.layout(&extents, &strides));
        let program = match round % 9 {
            0 => format!("{a} o {b}"),
            1 => format!("complement({a}, 256)"),
            2 => format!("blocked_product({a}, {b})"),
            3 => format!("logical_divide({a}, 4)"),
            4 => format!("recast_layout(32, 16, {a})"),
            5 => format!("logical_product({a}, {b})"),
            6 => format!("is_injective({a})"),
            7 => format!("right_inverse({a})"),
            _ => format!("max_common_layout({a}, {b})"),
        };
        let mut env = Environment::new();
        let mut source = program.clone();
        for step in 0..6 {
            let Err(error) = evaluate(&source, &mut env) else {
                settled += usize::from(step > 0);
                break;
            };
            if error.code != "E0123" {
                assert_eq!(step, 0, "{source}: {}", error.message);
                break;
            }
            let Some(declared) = declaration(&error.message) else { break };
            proposed += 1;
            source = format!("n = {declared}; {source}");
            env = Environment::new();
        }
    }
    assert!(proposed > 300 && settled > 100, "{proposed} {settled}");
}

/// The case that proposed what led to another refusal.
#[test]
fn no_declaration_is_proposed_where_none_helps() {
    let program = "blocked_product((2,M{div=8,max=64}):(M{div=8,max=64},8), (4,1,K{div=8,max=64}):(0,8,1))";
    let error = evaluate(program, &mut Environment::new()).unwrap_err();
    assert_eq!((error.code, declaration(&error.message)), ("E0123", None));
    assert!(error.help.unwrap().contains("no declaration settles it: under `M{div=8,max=8}`"));
}
