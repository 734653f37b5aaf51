//! The table of the book: what each device receives, from 8 devices to 4,096, and how long the
//! links of the stated machine need. Every row is planned anew and compared with the page; the rows
//! of 4,096 devices need `TILEWRIGHT_EXHAUSTIVE=1`. Up to 64 devices the plan is carried out,
//! smaller in each mode, and what its messages carry is counted.

use std::fmt::Write as _;

use tilewright_mesh::{Machine, Mesh, Plan, ShardedLayout, reshard};

const PAGE: &str = include_str!("../../../../docs/book/src/mesh.md");

/// Two sides of a move of a matrix of `n` by `n` elements over `p` devices.
fn moves(n: i64, p: i64) -> [(&'static str, String, String); 4] {
    let part = n / p;
    let rows = format!("(({part},{p}),{n}):(({n},1@x),1)");
    let columns = format!("({n},({part},{p})):({part},(1,1@x))");
    let whole = format!("({n},{n}):({n},1)");
    [
        ("gather rows", rows.clone(), format!("{whole} copied {p}:1@x")),
        ("rows to columns", rows.clone(), columns),
        ("sums to rows", format!("{whole} summed {p}:1@x"), rows),
        ("sums to all", format!("{whole} summed {p}:1@x"), format!("{whole} copied {p}:1@x")),
    ]
}

fn plan(n: i64, p: i64, from: &str, to: &str) -> Plan {
    let mesh: Mesh = format!("x={p}").parse().unwrap();
    let [from, to] = [from, to].map(|text| ShardedLayout::parse(&mesh, text).unwrap());
    assert_eq!(from.size(), n * n);
    reshard(&from, &to, 2, &Machine::HGX_H200).unwrap()
}

#[test]
fn the_table_of_the_book_is_planned() {
    let mut table = String::new();
    let exhaustive = std::env::var_os("TILEWRIGHT_EXHAUSTIVE").is_some();
    for p in [8, 64, 512].into_iter().chain(exhaustive.then_some(4096)) {
        for (name, from, to) in moves(16_384, p) {
            let plan = plan(16_384, p, &from, &to);
            let kinds: Vec<String> = plan.steps().iter().map(|step| step.kind.to_string()).collect();
            let mebibytes = plan.received(0) as f64 / f64::from(1 << 20);
            let least = plan.least(0) as f64 / f64::from(1 << 20);
            let micros = plan.seconds() * 1e6;
            let kinds = kinds.join(", ");
            writeln!(table, "| {p} | {name} | {kinds} | {mebibytes:.2} | {least:.2} | {micros:.0} |").unwrap();
        }
    }
    assert!(PAGE.contains(&table), "the page should have:\n{table}");
}

#[test]
fn what_is_planned_is_what_simulated_devices_send() {
    for p in [8, 64] {
        for (_, from, to) in moves(64, p) {
            let plan = plan(64, p, &from, &to);
            // Small numbers, so that sums are exact in any order.
            let reach = plan.from().reach();
            let memory: Vec<Vec<i64>> =
                (0..p).map(|rank| (0..reach).map(|offset| (rank * 31 + offset * 7) % 101).collect()).collect();
            let mut received = vec![0; p as usize];
            for step in plan.steps() {
                for (rank, received) in received.iter_mut().enumerate() {
                    let messages = step.exchange.messages_to(rank);
                    let remote = messages.iter().filter(|message| message.from != rank);
                    remote.for_each(|message| message.footprint.each(|_, _| *received += 2));
                }
            }
            for (rank, received) in received.into_iter().enumerate() {
                assert_eq!(plan.received(rank), received, "rank {rank}, {from} to {to}");
            }
            let after = plan.simulate(&memory).unwrap();
            for element in 0..64 * 64 {
                let value = |layout: &ShardedLayout, memory: &[Vec<i64>]| -> i64 {
                    let places = layout.places(element).unwrap();
                    let summands = places.iter().step_by(layout.copies() as usize);
                    summands.map(|(rank, offset)| memory[*rank][*offset as usize]).sum()
                };
                assert_eq!(value(plan.to(), &after), value(plan.from(), &memory), "element {element}, {from} to {to}");
            }
        }
    }
}
