//! Caches of keys and values: rows are appended to them, and queries are decoded over them.

use tilewright_ops::{AppendToCache, Attention, AttentionDecode, Operator};

use super::{Case, Exact, Numbers};
use crate::oracle::{Chance, check_kernels_of, close, numbers, run};

/// A cache with rows of no sequence, which are NaN, whole or in pages.
fn decode_agrees(lengths: &[usize], decode: &AttentionDecode, rows: usize) {
    let AttentionDecode { heads, kv_heads, head, value_head, queries, .. } = *decode;
    let options = Attention {
        heads,
        kv_heads,
        head,
        value_head,
        scale: decode.scale,
        softcap: decode.softcap,
        causal: decode.causal,
        window_left: decode.window_left,
        sinks: decode.sinks,
        slopes: decode.slopes,
        ..Attention::default()
    };
    let case = |number: usize| Case { number, ..Case::new([queries as usize, lengths[number]], options.clone()) };
    let cases: Vec<Case> = (0..lengths.len()).map(case).collect();
    let sinks = cases[0].numbers().sinks;
    let given: Vec<Numbers> = cases.iter().map(|own| Numbers { sinks: sinks.clone(), ..own.numbers() }).collect();
    let [_, kv] = cases[0].heads();
    let [wide, value] = cases[0].wide();
    let (batch, page) = (lengths.len(), decode.page as usize);
    // Pages of the sequences, in an order of their own, and one of nobody.
    let each = rows.div_ceil(page);
    let count = batch * each + 1;
    let table: Vec<usize> = (0..batch * each).map(|at| (at * 7 + 3) % count).collect();
    let at = |b: usize, h: usize, t: usize| match decode.paged {
        true => (table[b * each + t / page] * page + t % page) * kv + h,
        false => (b * kv + h) * rows + t,
    };
    let cache = |of: &dyn Fn(usize) -> Vec<f64>, wide: usize| -> Vec<f64> {
        let size = if decode.paged { count * page * kv } else { batch * kv * rows };
        let mut all = vec![f64::NAN; size * wide];
        for (b, length) in lengths.iter().enumerate() {
            let numbers = of(b);
            for h in 0..kv {
                for t in 0..*length {
                    all[at(b, h, t) * wide..][..wide].copy_from_slice(&numbers[(h * length + t) * wide..][..wide]);
                }
            }
        }
        all
    };
    let pages = if decode.paged { table.iter().map(|own| *own as f64).collect() } else { Vec::new() };
    let inputs = [
        ("q", given.iter().flat_map(|own| own.q.clone()).collect()),
        ("k", cache(&|at| given[at].k.clone(), wide)),
        ("v", cache(&|at| given[at].v.clone(), value)),
        ("lengths", lengths.iter().map(|own| *own as f64).collect()),
        ("pages", pages),
        ("sinks", sinks),
        ("slopes", given[0].slopes.clone()),
    ];
    let mut sizes: Vec<(String, i64)> = vec![("B".to_string(), batch as i64)];
    for (name, heads, wide) in [("q", heads, wide), ("o", heads, value)] {
        let wide = wide as i64;
        let strides = [("batch", heads * queries * wide), ("head", queries * wide), ("row", wide)];
        sizes.extend(strides.map(|(axis, stride)| (format!("{name}_{axis}"), stride)));
    }
    for (name, wide) in [("k", wide), ("v", value)] {
        let strides = match decode.paged {
            true => [("page", page * kv * wide), ("row", kv * wide), ("head", wide)],
            false => [("batch", kv * rows * wide), ("head", rows * wide), ("row", wide)],
        };
        sizes.extend(strides.map(|(axis, stride)| (format!("{name}_{axis}"), stride as i64)));
    }
    match decode.paged {
        true => sizes
            .extend([("P", count), ("L", each), ("pages_row", each)].map(|(name, own)| (name.to_string(), own as i64))),
        false => sizes.push(("T".to_string(), rows as i64)),
    }
    let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    let exact: Vec<Exact> = cases.iter().zip(&given).map(|(case, given)| case.exact(given)).collect();
    let found = run(decode.forward(), &sizes, &inputs);
    let about = format!("{decode:?} of {lengths:?}");
    let all = |of: &dyn Fn(&Exact) -> Vec<f64>| -> Vec<f64> { exact.iter().flat_map(of).collect() };
    close(&format!("o: {about}"), found.of("o"), &all(&|own| own.o.clone()), 8e-3);
    close(&format!("lse: {about}"), found.of("lse"), &all(&|own| own.lse.clone()), 1e-4);
}

#[test]
fn queries_are_decoded_over_caches() {
    let decode = AttentionDecode { heads: 4, kv_heads: 2, head: 16, splits: 3, ..AttentionDecode::default() };
    for paged in [false, true] {
        for page in [16, 128, 20] {
            let own = AttentionDecode { paged, page, ..decode.clone() };
            decode_agrees(&[300, 1, 64, 0, 65], &own, 300);
            if !paged {
                break;
            }
        }
        let own = AttentionDecode { paged, queries: 3, sinks: true, ..decode.clone() };
        decode_agrees(&[130, 2, 0], &own, 140);
        let slopes = true;
        let own = AttentionDecode { paged, queries: 2, window_left: 20, softcap: 2.0, slopes, causal: false, ..own };
        decode_agrees(&[200, 30], &own, 200);
        let own =
            AttentionDecode { paged, heads: 24, kv_heads: 1, head: 192, value_head: 128, splits: 1, ..decode.clone() };
        decode_agrees(&[70], &own, 100);
        let own = AttentionDecode { paged, queries: 2, splits: 1, sinks: true, ..decode.clone() };
        decode_agrees(&[150, 1, 0], &own, 150);
    }
}

/// The caches behind rows that are appended, one element after another.
#[test]
fn rows_are_appended_to_caches() {
    let mut chance = Chance::new(11);
    for round in 0..40 {
        let (paged, page): (bool, usize) = (round % 2 == 1, chance.one(&[1, 3, 16]));
        let [kv, new, batch] = [1 + chance.below(3), 1 + chance.below(5), 1 + chance.below(3)];
        let (wide, value): (usize, usize) = (chance.one(&[16, 24]), chance.one(&[16, 64]));
        let rows: usize = chance.one(&[4, 9, 33]);
        let each = rows.div_ceil(page);
        let pages: Vec<f64> = (0..batch * each).map(|at| ((at * 5 + 2) % (batch * each)) as f64).collect();
        // Some sequences are shorter than their new rows, and some have no room for them.
        let lengths: Vec<f64> = (0..batch).map(|_| chance.below(rows + 3) as f64).collect();
        let shape = if paged { [batch * each, page] } else { [batch, rows] };
        let place = |b: usize, h: usize, row: usize, wide: usize| match paged {
            true => ((pages[b * each + row / page] as usize * page + row % page) * kv + h) * wide,
            false => ((b * kv + h) * rows + row) * wide,
        };
        let own = [(wide, 5), (value, 6)].map(|(wide, seed)| numbers(batch * kv * new * wide, seed));
        let size = |wide: usize| shape[0] * shape[1] * kv * wide;
        let caches = [numbers(size(wide), 3), numbers(size(value), 4)];
        let mut wanted = caches.clone();
        for (at, wide) in [wide, value].into_iter().enumerate() {
            for b in 0..batch {
                for row in 0..new {
                    let to = lengths[b] as i64 - new as i64 + row as i64;
                    let room = if paged { each * page } else { rows };
                    if to < 0 || to as usize >= room {
                        continue;
                    }
                    for h in 0..kv {
                        let from = ((b * kv + h) * new + row) * wide;
                        wanted[at][place(b, h, to as usize, wide)..][..wide].copy_from_slice(&own[at][from..][..wide]);
                    }
                }
            }
        }
        let mut sizes: Vec<(String, i64)> =
            [("B", batch), ("R", new)].map(|(name, own)| (name.to_string(), own as i64)).to_vec();
        for (name, wide) in [("k", wide), ("v", value)] {
            let strides = [("batch", kv * new * wide), ("head", new * wide), ("row", wide)];
            sizes.extend(strides.map(|(axis, own)| (format!("{name}_{axis}"), own as i64)));
            let strides = match paged {
                true => [("page", page * kv * wide), ("row", kv * wide), ("head", wide)],
                false => [("batch", kv * rows * wide), ("head", rows * wide), ("row", wide)],
            };
            sizes.extend(strides.map(|(axis, own)| (format!("{name}_cache_{axis}"), own as i64)));
        }
        match paged {
            true => sizes.extend(
                [("P", shape[0]), ("L", each), ("pages_row", each)].map(|(name, own)| (name.to_string(), own as i64)),
            ),
            false => sizes.push(("T".to_string(), rows as i64)),
        }
        let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, own)| (name.as_str(), *own)).collect();
        let append = AppendToCache {
            kv_heads: kv as i64,
            head: wide as i64,
            value_head: value as i64,
            paged,
            page: page as i64,
            ..AppendToCache::default()
        };
        let [k, v] = own;
        let [k_cache, v_cache] = caches;
        let mut inputs =
            vec![("k", k), ("v", v), ("k_cache", k_cache), ("v_cache", v_cache), ("lengths", lengths.clone())];
        if paged {
            inputs.push(("pages", pages.clone()));
        }
        let found = run(append.forward(), &sizes, &inputs);
        for (name, wanted) in ["k_cache", "v_cache"].into_iter().zip(&wanted) {
            assert_eq!(found.of(name), wanted.as_slice(), "{name}: {append:?} of {lengths:?} {sizes:?}");
        }
        let whole = |all: &[f64]| all.iter().map(|own| *own as i32).collect::<Vec<i32>>();
        check_kernels_of(append.forward(), &sizes, &[("lengths", whole(&lengths)), ("pages", whole(&pages))]);
    }
}
