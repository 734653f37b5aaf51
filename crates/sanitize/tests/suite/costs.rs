//! Costs: every count against its plain definition, on random addresses; whole launches; and
//! findings and results that do not change with counting.

use std::collections::{BTreeMap, BTreeSet};

use crate::isa::random::Random;
use crate::tools::{kernel, run, run_with};
use tilewright_sanitize::costs::{Costs, Pipe, global_request, product, shared_request};
use tilewright_sanitize::{Argument, Array, Direction, Element, KernelLaunch, Options, sanitize};

/// The bytes of each lane, one by one.
fn bytes_of(mask: u32, addresses: &[u64; 32], bytes: impl Fn(usize) -> u64) -> Vec<(usize, u64)> {
    (0..32)
        .filter(|lane| mask >> lane & 1 == 1)
        .flat_map(|lane| (0..bytes(lane)).map(move |byte| (lane, byte)))
        .map(|(lane, byte)| (lane, addresses[lane] + byte))
        .collect()
}

/// Sectors, the fewest there could be, and lines, by sets of bytes.
fn plain_global(touched: &[(usize, u64)]) -> [u64; 3] {
    let blocks = |size: u64| touched.iter().map(|(_, byte)| byte / size).collect::<BTreeSet<u64>>().len() as u64;
    [blocks(32), blocks(1).div_ceil(32), blocks(128)]
}

/// Wavefronts and the groups of lanes that have a lane, by sets of words. A group of a load has two
/// phases where lanes want what the next one wants, or the one after it.
fn plain_shared(touched: &[(usize, u64)], bytes: u64, loads: bool) -> [u64; 2] {
    let together = match bytes {
        32 => 4,
        16 => 8,
        8 => 16,
        _ => 32,
    };
    let mut wanted: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for (lane, byte) in touched {
        wanted.entry(*lane).or_default().insert(*byte);
    }
    let repeats = |step: usize| {
        (0..32).filter(|lane| lane & step == 0).all(|lane| match (wanted.get(&lane), wanted.get(&(lane + step))) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        })
    };
    let group = |lane: usize| match loads && matches!(bytes, 8 | 16) && (repeats(1) || repeats(2)) {
        true => lane / (2 * together),
        false => lane / together,
    };
    let mut words: BTreeMap<(usize, u64), BTreeSet<u64>> = BTreeMap::new();
    for (lane, byte) in touched {
        words.entry((group(*lane), byte / 4 % 32)).or_default().insert(byte / 4);
    }
    let mut groups: BTreeMap<usize, u64> = BTreeMap::new();
    for ((group, _), words) in &words {
        let most = groups.entry(*group).or_default();
        *most = (*most).max(words.len() as u64);
    }
    [groups.values().sum(), groups.len() as u64]
}

fn random_request(random: &mut Random) -> (u32, u64, [u64; 32]) {
    let mask = match random.below(4) {
        0 => random.bits() as u32,
        1 => 1 << random.below(32),
        _ => u32::MAX,
    };
    let bytes = 1 << random.below(6);
    let (room, stride) = (1 << random.below(8), 1 << random.below(7));
    let base = random.below(100);
    let mut addresses = std::array::from_fn(|lane| match random.below(8) {
        0 => bytes * (base + random.below(room) * stride),
        _ => bytes * (base + lane as u64 * stride % 512),
    });
    // Lanes that want the same as others, in all of the warp or in a part of it.
    let (bit, from) = (random.below(4) as usize, [0, 16, 32][random.below(3) as usize]);
    for lane in (from..32).filter(|lane| lane & bit != 0) {
        addresses[lane] = addresses[lane & !bit];
    }
    (mask, bytes, addresses)
}

#[test]
fn sectors_and_wavefronts_are_those_of_the_definition() {
    let mut random = Random::new(1);
    for _ in 0..4_000 {
        let (mask, bytes, addresses) = random_request(&mut random);
        let touched = bytes_of(mask, &addresses, |_| bytes);
        let mut told = BTreeSet::new();
        let global = global_request(mask, &addresses, |_| bytes as u32, |sector| assert!(told.insert(sector)));
        assert_eq!([global.sectors, global.least_sectors, global.lines], plain_global(&touched), "{addresses:?}");
        assert_eq!(told, touched.iter().map(|(_, byte)| byte / 32).collect());
        assert_eq!((global.requests, global.bytes), (1, touched.len() as u64));
        for loads in [false, true] {
            let shared = shared_request(mask, &addresses, bytes as u32, loads);
            let counted = [shared.wavefronts, shared.least_wavefronts];
            assert_eq!(counted, plain_shared(&touched, bytes, loads), "{bytes}: {mask:#x} {addresses:?}");
            assert_eq!((shared.requests, shared.bytes), (1, touched.len() as u64));
            assert!(shared.wavefronts >= shared.least_wavefronts && global.sectors >= global.least_sectors);
        }
    }
}

/// Lanes of `cp.async` read less than they write, and some nothing.
#[test]
fn lanes_of_a_request_may_read_different_bytes() {
    let mut random = Random::new(2);
    for _ in 0..1_000 {
        let addresses: [u64; 32] = std::array::from_fn(|_| 16 * random.below(64));
        let bytes: [u64; 32] = std::array::from_fn(|_| random.below(17));
        let touched = bytes_of(u32::MAX, &addresses, |lane| bytes[lane]);
        let global = global_request(u32::MAX, &addresses, |lane| bytes[lane] as u32, |_| ());
        assert_eq!([global.sectors, global.least_sectors, global.lines], plain_global(&touched));
        assert_eq!(global.bytes, touched.len() as u64);
    }
}

fn array(name: &str, direction: Direction, words: &[u32]) -> Argument {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let shape = vec![words.len() as u64];
    Argument::Array(Array { name: name.to_string(), direction, element: Element::Unsigned(32), shape, bytes })
}

fn costs(text: &str, grid: u32, block: u32, arguments: Vec<Argument>, options: &Options<'_>) -> Costs {
    let launch = KernelLaunch { arguments, ..KernelLaunch::new("f", [grid, 1, 1], [block, 1, 1]) };
    let report = sanitize(text, &launch, options).unwrap();
    assert!(report.unfinished().is_none(), "{report}");
    report.costs.expect("they were asked for")
}

fn counting() -> Options<'static> {
    Options { costs: true, ..Options::default() }
}

/// Each instruction that touches memory, executed by a warp at random addresses: its counts are
/// those of the definition.
#[test]
fn instructions_take_what_their_addresses_say() {
    let cases: [(&str, u64, &str, bool); 13] = [
        ("ld.global.u32", 4, "ld.global.u32 %r1, [%d10];", true),
        ("ld.global.v2.u32", 8, "ld.global.v2.u32 {%r1, %r2}, [%d10];", true),
        ("ld.global.v4.u32", 16, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d10];", true),
        ("ld.global.nc.u8", 1, "ld.global.nc.u8 %h1, [%d10];", true),
        ("st.global.u32", 4, "st.global.u32 [%d10], 7;", true),
        ("red.global.add.u32", 4, "red.global.add.u32 [%d10], 1;", true),
        ("ld.u32", 4, "ld.u32 %r1, [%d10];", true),
        ("ld.shared.u32", 4, "ld.shared.u32 %r1, [%d11];", false),
        ("ld.shared.v4.u32", 16, "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%d11];", false),
        ("st.shared.v2.u32", 8, "st.shared.v2.u32 [%d11], {%r1, %r2};", false),
        ("atom.shared.add.u32", 4, "atom.shared.add.u32 %r1, [%d11], 1;", false),
        (
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
            16,
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%d11];",
            false,
        ),
        ("st.u32", 4, "st.u32 [%d12], 7;", false),
    ];
    let mut random = Random::new(3);
    for (name, bytes, statement, is_global) in cases {
        for _ in 0..6 {
            let (mut mask, room) = (random.bits() as u32 | 1, 1 + random.below(4096 / bytes));
            if name.starts_with("ldmatrix") {
                mask = u32::MAX;
            }
            let offsets: [u64; 32] = std::array::from_fn(|_| bytes * random.below(room));
            let text = kernel(
                2,
                &format!(
                    ".shared .align 16 .b8 s[4096]; add.s64 %d2, %d0, %at4; ld.global.u32 %r10, [%d2];
                     setp.ne.u32 %p1, %r10, 0xffffffff; @!%p1 bra OUT;
                     cvt.u64.u32 %d3, %r10; add.s64 %d10, %d1, %d3; mov.u64 %d4, s; add.s64 %d11, %d4, %d3;
                     cvta.shared.u64 %d5, %d4; add.s64 %d12, %d5, %d3;
                     {statement}
                     OUT: ;"
                ),
            );
            let words: Vec<u32> =
                (0..32).map(|lane| if mask >> lane & 1 == 1 { offsets[lane] as u32 } else { u32::MAX }).collect();
            let arguments =
                vec![array("offsets", Direction::In, &words), array("memory", Direction::InOut, &[0; 1024])];
            let costs = costs(&text, 1, 32, arguments, &counting());
            let own = costs.statements.iter().rfind(|own| own.instruction == name).expect(name);
            let touched = bytes_of(mask, &offsets, |_| bytes);
            let (global, shared) = (&own.counts.global, &own.counts.shared);
            assert_eq!((own.counts.instructions, own.counts.threads), (1, u64::from(mask.count_ones())), "{name}");
            if is_global {
                let counted = [global.sectors, global.least_sectors, global.lines];
                assert_eq!(counted, plain_global(&touched), "{name}");
                assert_eq!((global.bytes, shared.requests), (touched.len() as u64, 0));
                assert_eq!(own.pipe, Pipe::Global, "{name}");
                let worst = own.worst_global.as_ref().unwrap();
                assert_eq!((worst.array.as_str(), worst.request.mask), ("memory", mask));
                let lanes = (0..32).filter(|lane| mask >> lane & 1 == 1);
                lanes.for_each(|lane| assert_eq!(worst.request.addresses[lane], offsets[lane]));
            } else {
                let counted = [shared.wavefronts, shared.least_wavefronts];
                let loads = name.starts_with("ld");
                assert_eq!(counted, plain_shared(&touched, bytes, loads), "{name}");
                assert_eq!((shared.bytes, global.requests), (touched.len() as u64, 0));
                assert_eq!(own.pipe, Pipe::Shared, "{name}");
                assert_eq!(own.worst_shared.as_ref().unwrap().mask, mask);
            }
        }
    }
}

/// A kernel whose last loop stands before nothing but its end: lanes that part in it, and before
/// it, meet again.
#[test]
fn lanes_meet_in_a_kernel_that_ends_with_a_loop() {
    let text = kernel(
        1,
        ".shared .align 4 .b8 s[4]; setp.ge.u32 %p9, %i, 1000; @%p9 bra OUT;
         and.b32 %r1, %i, 31; setp.ne.u32 %p1, %r1, 0; @%p1 bra MEET; st.shared.u32 [s], 1; MEET: bar.sync 0;
         mov.u32 %r2, 0;
         LOOP: and.b32 %r3, %r2, %r1; setp.eq.u32 %p2, %r3, 0; @%p2 bra NEXT; add.u32 %r4, %r4, 1;
         NEXT: xor.b32 %r5, %r5, 1; add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 9; @%p3 bra LOOP;
         OUT: ;",
    );
    let costs = costs(&text, 1, 64, vec![array("x", Direction::InOut, &[0])], &counting());
    let of = |name: &str| costs.statements.iter().find(|own| own.instruction == name).unwrap().counts;
    assert_eq!((of("bar.sync").instructions, of("bar.sync").threads), (2, 64));
    assert_eq!((of("xor.b32").instructions, of("xor.b32").threads), (2 * 9, 64 * 9));
}

/// `cp.async` takes sectors of what it reads and wavefronts of what it writes.
#[test]
fn copies_take_sectors_and_wavefronts() {
    let text = kernel(
        1,
        ".shared .align 16 .b8 s[4096]; mul.wide.u32 %d2, %i, 32; add.s64 %d3, %d0, %d2;
         mov.u64 %d4, s; mul.wide.u32 %d5, %i, 128; add.s64 %d4, %d4, %d5;
         cp.async.cg.shared.global [%d4], [%d3], 16;
         cp.async.commit_group; cp.async.wait_group 0;",
    );
    let costs = costs(&text, 1, 32, vec![array("x", Direction::In, &[1; 256])], &counting());
    let own = costs.statements.iter().find(|own| own.instruction.starts_with("cp.async.cg")).unwrap();
    let (global, shared) = (own.counts.global, own.counts.shared);
    assert_eq!((global.sectors, global.least_sectors, global.lines, global.bytes), (32, 16, 8, 512));
    assert_eq!((shared.wavefronts, shared.least_wavefronts, shared.bytes), (32, 4, 512));
    assert_eq!((costs.read_sectors, costs.written_sectors, costs.in_flight_bytes), (32, 0, 512));
}

/// A loop whose threads iterate as often as their number says: a warp as often as its greatest.
#[test]
fn instructions_are_those_of_warps_and_threads() {
    let text = kernel(
        1,
        "mov.u32 %r1, 0;
         LOOP: add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %i; @%p1 bra LOOP;
         setp.ge.u32 %p2, %i, 1000; @%p2 st.global.u32 [%d0], %r1;
         setp.lt.u32 %p3, %i, 3; @%p3 bra SMALL; mul.lo.u32 %r2, %r1, %r1; bra.uni DONE;
         SMALL: shl.b32 %r2, %r1, 3;
         DONE: xor.b32 %r3, %r2, 1;",
    );
    let costs = costs(&text, 2, 40, vec![array("x", Direction::InOut, &[0])], &counting());
    let of = |name: &str, nth: usize| {
        let own = costs.statements.iter().filter(|own| own.instruction == name).nth(nth).expect(name);
        (own.counts.instructions, own.counts.threads)
    };
    // Warps of threads 0 to 31, 32 to 39, 40 to 71 and 72 to 79: 32, 40, 72 and 80 iterations.
    let threads = (1..=80).sum::<u64>();
    assert_eq!(of("add.u32", 0), (32 + 40 + 72 + 80, threads));
    assert_eq!(of("setp.le.u32", 0), (32 + 40 + 72 + 80, threads));
    assert_eq!(of("bra", 0), (32 + 40 + 72 + 80, threads - 80));
    // A guard that is false for all lanes issues the instruction.
    assert_eq!(of("st.global.u32", 0), (4, 0));
    // One warp goes both ways.
    assert_eq!((of("mul.lo.u32", 0), of("shl.b32", 0)), ((4, 77), (1, 3)));
    assert_eq!(of("xor.b32", 0), (4, 80));
    assert_eq!(of("ret", 0), (4, 80));
    let sum: u64 = costs.statements.iter().map(|own| own.counts.instructions).sum();
    assert_eq!((costs.total().instructions, costs.pipes().values().sum::<u64>()), (sum, sum));
    let lines: u64 = costs.lines().iter().map(|line| line.counts.instructions).sum();
    assert_eq!(lines, sum);
}

/// An instruction of a whole warp whose lanes come in parts is executed once, and one that polls as
/// often as it is executed.
#[test]
fn instructions_of_warps_are_counted_when_their_lanes_have_come() {
    let text = kernel(
        1,
        "setp.lt.u32 %p1, %i, 7; @%p1 bra LATE; bra.uni JOIN; LATE: add.u32 %r9, %i, 1; JOIN: ;
         mov.u32 %r1, 0; mov.u32 %r2, 0;
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, {%r1, %r1},
             {%f5, %f6, %f7, %f8};
         shfl.sync.idx.b32 %r3, %i, 0, 31, 0xffffffff;",
    );
    let costs = costs(&text, 1, 64, vec![array("x", Direction::InOut, &[0])], &counting());
    let of = |start: &str| costs.statements.iter().find(|own| own.instruction.starts_with(start)).unwrap();
    assert_eq!((of("mma").counts.instructions, of("mma").counts.threads), (2, 64));
    assert_eq!((of("shfl").counts.instructions, of("shfl").counts.threads), (2, 64));
    assert_eq!((of("mma").pipe, of("shfl").pipe), (Pipe::Tensor, Pipe::Warp));
    assert_eq!(costs.products().into_values().collect::<Vec<u64>>(), [2 * 2 * 16 * 8 * 16]);
}

/// An instruction of a whole warp that waits for lanes which do not come is executed once, when it
/// is let go; a wait for the cluster once, when its phase is over.
#[test]
fn instructions_that_wait_are_counted_once() {
    let text = kernel(
        1,
        "barrier.cluster.arrive; barrier.cluster.wait; setp.lt.u32 %p1, %i, 7; mov.u32 %r1, 0;
         @%p1 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1},
             {%r1, %r1}, {%f5, %f6, %f7, %f8};",
    );
    let costs = costs(&text, 1, 96, vec![array("x", Direction::InOut, &[0])], &counting());
    let of = |start: &str| costs.statements.iter().find(|own| own.instruction.starts_with(start)).unwrap().counts;
    // Two warps are kept from it by the guard, and issue it.
    assert_eq!((of("mma").instructions, of("mma").threads), (3, 7));
    assert_eq!((of("barrier.cluster.arrive").instructions, of("barrier.cluster.arrive").threads), (3, 96));
    assert_eq!((of("barrier.cluster.wait").instructions, of("barrier.cluster.wait").threads), (3, 96));
}

/// Four stages of 512 bytes: three under way beside the one that is waited for.
#[test]
fn bytes_under_way_are_those_that_nobody_has_waited_for() {
    let text = |pending: u32| {
        let copy = "cp.async.cg.shared.global [%d4], [%d3], 16; cp.async.commit_group; add.s64 %d3, %d3, 512;
                    add.s64 %d4, %d4, 512;";
        let body = format!("cp.async.wait_group {pending}; bar.sync 0; {copy}");
        let [first, rest] = [copy.repeat(3), body.repeat(5)];
        kernel(
            1,
            &format!(
                ".shared .align 16 .b8 s[4096]; mul.wide.u32 %d2, %i, 16; add.s64 %d3, %d0, %d2;
                 mov.u64 %d4, s; add.s64 %d4, %d4, %d2; {first} {rest} cp.async.wait_group 0;"
            ),
        )
    };
    let flight = |pending| {
        costs(&text(pending), 1, 32, vec![array("x", Direction::In, &[1; 1024])], &counting()).in_flight_bytes
    };
    assert_eq!([0, 1, 2, 3].map(flight), [1536, 1024 + 512, 1536, 2048]);
}

/// A bulk load is under way from its issue to the wait for its phase.
#[test]
fn bulk_loads_are_under_way_until_their_phase_is_waited_for() {
    let text = kernel(
        1,
        ".shared .align 128 .b8 s[2048]; .shared .align 8 .b64 bar[2];
         setp.eq.u32 %p1, %i, 0; @!%p1 bra WAIT;
         mbarrier.init.shared.b64 [bar], 1; mbarrier.init.shared.b64 [bar+8], 1;
         fence.proxy.async;
         mbarrier.arrive.expect_tx.shared.b64 %d9, [bar], 512;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d0], 512, [bar];
         mbarrier.arrive.expect_tx.shared.b64 %d9, [bar+8], 256;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+512], [%d0], 256, [bar+8];
         A: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra A;
         mbarrier.arrive.expect_tx.shared.b64 %d9, [bar], 384;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+1024], [%d0], 384, [bar];
         B: mbarrier.try_wait.parity.shared.b64 %p2, [bar+8], 0; @!%p2 bra B;
         C: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 1; @!%p2 bra C;
         WAIT: bar.sync 0;",
    );
    let costs = costs(&text, 1, 32, vec![array("x", Direction::In, &[1; 256])], &counting());
    // 512 and 256, then 256 and 384.
    assert_eq!(costs.in_flight_bytes, 768);
    let bulk: Vec<_> = costs.statements.iter().filter(|own| own.pipe == Pipe::Bulk).collect();
    let sectors: Vec<[u64; 2]> =
        bulk.iter().map(|own| [own.counts.global.sectors, own.counts.shared.wavefronts]).collect();
    assert_eq!(sectors, [[16, 4], [8, 2], [12, 3]]);
    assert_eq!(costs.read_sectors, 16);
}

/// What is found, what comes out and what is counted do not depend on cores; nor the first two on
/// counting.
#[test]
fn counting_changes_nothing() {
    let text = kernel(
        2,
        ".shared .align 4 .b8 s[1024]; add.s64 %d2, %d0, %at4; ld.global.u32 %r1, [%d2];
         mul.wide.u32 %d3, %r52, 4; mov.u64 %d4, s; add.s64 %d5, %d4, %d3; st.shared.u32 [%d5], %r1;
         xor.b64 %d5, %d5, 128; ld.shared.u32 %r2, [%d5]; add.s64 %d6, %d1, %at4; st.global.u32 [%d6], %r2;
         atom.global.add.u32 %r3, [%d1], 1;",
    );
    let arguments = ["in:u32[1024]=range", "inout:u32[1024]=zeros"];
    let plain = run(&text, 8, 128, &arguments).unwrap();
    assert!(!plain.findings.is_empty() && plain.costs.is_none());
    let with = |cores| Options { cores: Some(cores), ..counting() };
    let counted = run_with(&text, 8, 128, &arguments, &with(1)).unwrap();
    let told =
        |report: &tilewright_sanitize::Report| report.findings.iter().map(|own| own.text(report)).collect::<Vec<_>>();
    assert_eq!(told(&plain), told(&counted));
    assert_eq!((plain.results, plain.thread_instructions), (counted.results, counted.thread_instructions));
    for cores in [2, 3, 8] {
        assert_eq!(run_with(&text, 8, 128, &arguments, &with(cores)).unwrap().costs, counted.costs);
    }
    // Only the first of several schedules counts.
    let several = Options { schedules: 3, ..with(1) };
    assert_eq!(run_with(&text, 8, 128, &arguments, &several).unwrap().costs, counted.costs);
}

/// Sectors of arrays are counted once, whoever reads them.
#[test]
fn sectors_of_arrays_are_counted_once() {
    let text = kernel(
        2,
        "and.b32 %r1, %i, 63; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d0, %d2; ld.global.u32 %r2, [%d3];
         mul.wide.u32 %d4, %i, 64; add.s64 %d5, %d1, %d4; st.global.u32 [%d5], %r2;",
    );
    let arguments = vec![array("x", Direction::In, &[1; 64]), array("y", Direction::Out, &[0; 4096])];
    let costs = costs(&text, 2, 128, arguments, &counting());
    assert_eq!((costs.read_sectors, costs.written_sectors), (8, 256));
}

#[test]
fn instructions_have_pipes() {
    let of = |text: &str| {
        let words: Vec<&str> = text.split('.').collect();
        Pipe::of(words[0], &words[1..])
    };
    for (pipe, texts) in [
        (
            Pipe::Integer,
            &[
                "add.s32",
                "mad.lo.u32",
                "setp.lt.s64",
                "mov.b64",
                "lop3.b32",
                "cvta.to.global.u64",
                "popc.b32",
                "and.pred",
            ][..],
        ),
        (Pipe::Float, &["add.rn.ftz.f32", "setp.gt.f32", "fma.rn.f32x2", "neg.f32"]),
        (Pipe::Half, &["fma.rn.f16x2", "add.bf16", "max.bf16x2"]),
        (Pipe::Double, &["fma.rn.f64", "setp.eq.f64"]),
        (Pipe::Transcendental, &["ex2.approx.f32", "div.rn.f32", "sqrt.rn.f64", "tanh.approx.f32"]),
        (Pipe::Conversion, &["cvt.rn.f16.f32", "cvt.u64.u32"]),
        (
            Pipe::Tensor,
            &[
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
            ],
        ),
        (
            Pipe::Global,
            &[
                "ld.global.nc.v4.f32",
                "red.relaxed.gpu.global.add.f32",
                "cp.async.cg.shared.global",
                "prefetch.global.L2",
            ],
        ),
        (Pipe::Shared, &["st.shared::cta.u32", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "atom.shared.add.u32"]),
        (Pipe::Local, &["ld.local.u32"]),
        (Pipe::Constant, &["ld.param.u64", "ld.const.f32"]),
        (
            Pipe::Bulk,
            &[
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32",
                "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32",
            ],
        ),
        (Pipe::Warp, &["shfl.sync.bfly.b32", "vote.sync.ballot.b32", "redux.sync.add.s32"]),
        (
            Pipe::Barrier,
            &[
                "bar.sync",
                "cp.async.wait_group",
                "cp.async.commit_group",
                "cp.async.bulk.commit_group",
                "cp.async.bulk.wait_group.read",
                "cp.async.mbarrier.arrive.shared.b64",
                "mbarrier.try_wait.parity.shared.b64",
                "fence.proxy.async",
                "wgmma.commit_group.sync.aligned",
            ],
        ),
        (Pipe::Control, &["bra.uni", "ret", "call.uni"]),
    ] {
        for text in texts {
            assert_eq!(of(text), Some(pipe), "{text}");
        }
    }
    assert_eq!((of("ld.f32"), of("st.v2.u32")), (None, None));
    let operations = |text: &str| {
        let words: Vec<&str> = text.split('.').collect();
        product(words[0], &words[1..]).map(|(factors, operations)| (factors.name(), operations))
    };
    for (text, expected) in [
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", Some(("f16 in f16", 4096))),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", Some(("i8", 8192))),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", Some(("f64", 512))),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", Some(("f8", 8192))),
        ("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", Some(("tf32", 2 * 16 * 256 * 8))),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", Some(("f16", 8192))),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", None),
        ("fma.rn.f32", None),
    ] {
        assert_eq!(operations(text), expected, "{text}");
    }
}
