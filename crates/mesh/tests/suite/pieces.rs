//! The pieces of products, multiplied one by one on simulated devices, and compared with the sums
//! that define the product.

use std::collections::BTreeSet;

use tilewright_mesh::{Block, Machine, Mesh, Piece, ShardedLayout, multiply};

const MESHES: [&str; 4] = ["x=2", "x=4", "x=2,y=2", "x=3,y=2"];
/// Rows, columns, or both in parts, in either order in memory, and whole; of 12 x 24 elements.
const CUTS: [&str; 6] = ["rows", "columns", "both", "whole", "rows turned", "summed"];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn layout(mesh: &Mesh, [rows, columns]: [i64; 2], cut: &str) -> Option<ShardedLayout> {
    let axes: Vec<(String, i64)> = mesh.axes().iter().map(|axis| (axis.name.to_string(), axis.extent)).collect();
    let (x, nx) = axes.first()?.clone();
    let others: Vec<String> = axes.iter().skip(1).map(|(name, extent)| format!("{extent}:1@{name}")).collect();
    let copied = |more: &[String]| match more.is_empty() {
        true => String::new(),
        false => format!(" copied {}", if more.len() > 1 { format!("({})", more.join(",")) } else { more[0].clone() }),
    };
    let text = match cut {
        "rows" => format!("(({},{nx}),{columns}):(({columns},1@{x}),1){}", rows / nx, copied(&others)),
        "rows turned" => format!("(({nx},{}),{columns}):((1@{x},1),{}){}", rows / nx, rows / nx, copied(&others)),
        "columns" => format!("({rows},({},{nx})):(1,({rows},1@{x})){}", columns / nx, copied(&others)),
        "whole" => {
            let all: Vec<String> = [format!("{nx}:1@{x}")].into_iter().chain(others).collect();
            if all.len() > 1 { return None } else { format!("({rows},{columns}):({columns},1){}", copied(&all)) }
        }
        "summed" if axes.len() == 1 => format!("({rows},{columns}):({columns},1) summed {nx}:1@{x}"),
        "both" if axes.len() > 1 => {
            let (y, ny) = axes[1].clone();
            let (down, across) = (rows / nx, columns / ny);
            format!("(({down},{nx}),({across},{ny})):(({across},1@{x}),(1,1@{y}))")
        }
        _ => return None,
    };
    ShardedLayout::parse(mesh, &text).ok()
}

fn at(block: &Block, row: i64, column: i64) -> usize {
    let rows = block.layout.mode(0).unwrap().size();
    (block.start + block.layout.eval(&(row + rows * column)).unwrap()) as usize
}

fn sizes(block: &Block) -> [i64; 2] {
    [0, 1].map(|mode| block.layout.mode(mode).unwrap().size())
}

#[test]
fn pieces_make_the_product() {
    let mut random = Random(5);
    let (mut seen, mut with) = (BTreeSet::new(), 0);
    for case in 0..1500 {
        let mesh: Mesh = MESHES[random.below(4) as usize].parse().unwrap();
        let [m, n, k] = [(); 3].map(|()| [12, 24][random.below(2) as usize]);
        let mut chosen = |sizes| layout(&mesh, sizes, CUTS[random.below(6) as usize]);
        let (Some(a), Some(b), Some(d)) = (chosen([m, k]), chosen([k, n]), chosen([m, n])) else { continue };
        let plan = multiply(&a, &b, &d, 8, 1e9, &Machine::HGX_H200).unwrap();
        let Some(pieces) = plan.pieces().unwrap() else { continue };
        assert!(a.sums() == 1 && b.sums() == 1, "summands of a factor are added before");
        with += 1;
        let value = |element: i64, by: i64| (element * by % 23) - 11;
        let memory = |layout: &ShardedLayout, by: i64| {
            let mut memory = vec![vec![i64::MAX / 4; layout.reach() as usize]; mesh.size()];
            for element in 0..layout.size() {
                for (rank, offset) in layout.places(element).unwrap() {
                    memory[rank][offset as usize] = value(element, by);
                }
            }
            memory
        };
        let (of_a, of_b) = (memory(&a, 7), memory(&b, 5));
        // What is not written shows, and so does what is written too often.
        let mut result: Vec<Vec<Vec<(usize, i64)>>> = vec![vec![Vec::new(); d.reach() as usize]; mesh.size()];
        for (rank, own) in pieces.iter().enumerate() {
            let remote = |piece: &Piece| [&piece.a, &piece.b].iter().filter(|block| block.rank != rank).count();
            let first: Vec<usize> = own.iter().map(remote).collect();
            if own.iter().all(|piece| piece.makers.len() == 1) {
                assert_eq!(first.first(), first.iter().min(), "own blocks come first: {first:?}");
            }
            seen.insert(format!("{} {}", own.len(), own.first().map_or(0, |piece| piece.makers.len())));
            for piece in own {
                let ([rows, depth], [columns, terms]) = (sizes(&piece.a), sizes(&piece.b));
                assert_eq!((depth, sizes(&piece.d)), (terms, [rows, columns]));
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    let term = |depth: i64| {
                        of_a[piece.a.rank][at(&piece.a, row, depth)] * of_b[piece.b.rank][at(&piece.b, column, depth)]
                    };
                    let sum = (0..depth).map(term).sum();
                    result[piece.d.rank][at(&piece.d, row, column)].push((rank, sum));
                    assert!(piece.makers.contains(&rank));
                }
            }
        }
        for element in 0..m * n {
            let (row, column) = (element % m, element / m);
            let right: i64 = (0..k).map(|depth| value(row + m * depth, 7) * value(depth + k * column, 5)).sum();
            let places = d.places(element).unwrap();
            let all: i64 = places
                .iter()
                .map(|(rank, offset)| {
                    let mut ranks: Vec<usize> = result[*rank][*offset as usize].iter().map(|(rank, _)| *rank).collect();
                    ranks.sort_unstable();
                    ranks.dedup();
                    assert_eq!(ranks.len(), result[*rank][*offset as usize].len());
                    result[*rank][*offset as usize].iter().map(|(_, sum)| sum).sum::<i64>()
                })
                .sum();
            let copies = d.copies();
            assert_eq!(all, right * copies, "case {case}, element {element}\n{a}\n{b}\n{d}\n{plan}");
        }
    }
    assert!(with > 100 && seen.len() >= 4, "{with} plans of pieces: {seen:?}");
}

#[test]
fn what_moves_in_several_steps_has_no_pieces() {
    let mesh: Mesh = "x=8".parse().unwrap();
    let parse = |text: &str| ShardedLayout::parse(&mesh, text).unwrap();
    let (a, b) = (parse("(4096,(512,8)):(512,(1,1@x))"), parse("((512,8),4096):((4096,1@x),1)"));
    let plan = multiply(&a, &b, &parse("(4096,4096) copied 8:1@x"), 2, 7e14, &Machine::HGX_H200).unwrap();
    assert!(plan.pieces().unwrap().is_none());
}
