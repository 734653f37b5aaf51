//! The views of Triton's layouts, drawn here from maps that are written out, and read back.

use std::fmt::Write as _;

use tilewright_layout::{AnyLayout, Refusal as _};
use tilewright_notation::Value;
use tilewright_read::{Meaning, Options, compare, document, expression};

/// The elements that the bits of registers, lanes and warps move to.
struct Map {
    shape: [i64; 2],
    register: Vec<[i64; 2]>,
    lane: Vec<[i64; 2]>,
    warp: Vec<[i64; 2]>,
}

impl Map {
    fn at(&self, register: i64, lane: i64, warp: i64) -> [i64; 2] {
        let mut sum = [0, 0];
        for (bases, at) in [(&self.register, register), (&self.lane, lane), (&self.warp, warp)] {
            for (_, base) in bases.iter().enumerate().filter(|(bit, _)| at >> bit & 1 == 1) {
                sum = [sum[0] ^ base[0], sum[1] ^ base[1]];
            }
        }
        sum
    }

    fn sizes(&self) -> [i64; 3] {
        [&self.register, &self.lane, &self.warp].map(|bases| 1 << bases.len())
    }

    /// As `triton-tensor-layout` prints it.
    fn tensor_view(&self) -> String {
        let [registers, lanes, warps] = self.sizes();
        let mut cells = vec![Vec::new(); (self.shape[0] * self.shape[1]) as usize];
        for thread in 0..lanes * warps {
            for register in 0..registers {
                let [row, column] = self.at(register, thread % lanes, thread / lanes);
                cells[(row * self.shape[1] + column) as usize].push(format!("{:>6}", format!("T{thread}:{register}")));
            }
        }
        let rows = cells.chunks(self.shape[1] as usize).map(|row| {
            let cells: Vec<String> = row.iter().map(|cell| cell.join("|")).collect();
            cells.join(", ")
        });
        format!("[[{}]]\n", rows.collect::<Vec<_>>().join("]\n[ "))
    }

    /// As it is printed with `-use-hw-view`.
    fn hardware_view(&self) -> String {
        let [registers, lanes, warps] = self.sizes();
        let mut text = String::new();
        for warp in 0..warps {
            writeln!(text, "Warp{warp}:").unwrap();
            for register in 0..registers {
                let row = (0..lanes).map(|lane| {
                    let [row, column] = self.at(register, lane, warp);
                    format!("({row:>2},{column:>2})")
                });
                writeln!(text, "{}", row.collect::<Vec<_>>().join(", ")).unwrap();
            }
        }
        text
    }
}

fn maps() -> Vec<Map> {
    let map = |shape, register: &[[i64; 2]], lane: &[[i64; 2]], warp: &[[i64; 2]]| Map {
        shape,
        register: register.to_vec(),
        lane: lane.to_vec(),
        warp: warp.to_vec(),
    };
    vec![
        // An accumulator of mma.m16n8k16, two of it side by side.
        map([16, 16], &[[0, 1], [8, 0], [0, 8]], &[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], &[]),
        // Warps that hold copies, and registers that do.
        map([16, 8], &[[0, 1], [0, 0]], &[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], &[[8, 0], [0, 0]]),
        // Lanes that are XORs.
        map([8, 8], &[[0, 1]], &[[1, 2], [2, 4], [4, 6], [0, 2], [0, 4]], &[]),
        map([4, 2], &[], &[[1, 0], [2, 0], [0, 1]], &[]),
    ]
}

fn number(layout: &AnyLayout, index: i64) -> i64 {
    layout.eval(index).unwrap().to_string().parse().unwrap()
}

#[test]
fn every_element_of_a_view_is_where_it_shows() {
    for map in maps() {
        let [registers, lanes, warps] = map.sizes();
        let text = map.tensor_view();
        let reading = expression(&text, &Options::default()).unwrap_or_else(|refused| panic!("{refused}\n{text}"));
        let layout = reading.layout().unwrap();
        for thread in 0..lanes * warps {
            for register in 0..registers {
                let [row, column] = map.at(register, thread % lanes, thread / lanes);
                let own = number(layout, thread + lanes * warps * register);
                assert_eq!(own, row + map.shape[0] * column, "{layout}: value {register} of {thread} in\n{text}");
            }
        }
        let hardware = map.hardware_view();
        let found =
            expression(&hardware, &Options::default()).unwrap_or_else(|refused| panic!("{refused}\n{hardware}"));
        let Meaning::Value(Value::Linear(linear)) = &found.meaning else { panic!("{hardware}") };
        let spelled = |name: &str, bases: &[[i64; 2]]| {
            let all: Vec<String> = bases.iter().map(|[row, column]| format!("({row},{column})")).collect();
            format!("{name}=[{}]", all.join(","))
        };
        let wanted = format!(
            "{} {} {} -> dim0:{} dim1:{}",
            spelled("register", &map.register),
            spelled("lane", &map.lane),
            spelled("warp", &map.warp),
            map.shape[0],
            map.shape[1]
        );
        assert_eq!(linear.to_string(), wanted);
        // The two views are one function.
        if lanes == 32 {
            let same = compare(&reading.meaning, &found.meaning, None).unwrap();
            assert_eq!(same.difference, None, "{text}");
        }
        for whole in [&text, &hardware] {
            cut_off_and_damaged(whole);
        }
    }
}

/// What is cut off is read as nothing else, and nothing makes the reader panic.
fn cut_off_and_damaged(whole: &str) {
    let wanted = expression(whole, &Options::default()).unwrap().meaning;
    let trimmed = whole.trim_end().len();
    for end in 1..trimmed {
        if let Ok(reading) = expression(&whole[..end], &Options::default()) {
            // Whole lines, or a part of the lanes in one, may be the view of a smaller tensor.
            let is_whole = whole[..end].trim_end().ends_with([')', ',']);
            assert!(is_whole || reading.meaning == wanted, "{}", &whole[..end]);
        }
    }
    for at in (0..trimmed).step_by(7) {
        for byte in [b'(', b'[', b'T', b'9', b'|'] {
            let mut damaged = whole.as_bytes().to_vec();
            damaged[at] = byte;
            let _ = document(&String::from_utf8(damaged).unwrap(), &Options::default());
        }
    }
}

#[test]
fn views_of_shared_memory_give_the_offset_of_each_element() {
    // Which element is at an offset.
    type Element = fn(i64) -> [i64; 2];
    let all: [([i64; 2], Element); 3] = [
        ([4, 16], |offset| [offset / 16, (offset % 16) ^ (offset / 16 * 4)]),
        ([4, 8], |offset| [offset % 4, offset / 4]),
        ([8, 4], |offset| [offset % 2 + offset / 8 * 2, offset / 2 % 4]),
    ];
    for (shape, element) in all {
        let size = shape[0] * shape[1];
        let entry = |offset: i64| {
            let [row, column] = element(offset);
            format!("({row}:{column:>2})")
        };
        let rows = (0..shape[0])
            .map(|row| (0..shape[1]).map(|column| entry(row * shape[1] + column)).collect::<Vec<_>>().join(","));
        let tensor = format!("[[{}]]", rows.collect::<Vec<_>>().join("]\n[ "));
        let mut lines = String::from("Block: 0:\n");
        for offset in 0..size {
            let [row, column] = element(offset);
            writeln!(lines, "Offset: {offset} -> ({row},{column:>2})").unwrap();
        }
        for text in [&tensor, &lines, &lines.replace("Block: 0:\n", "")] {
            let reading = expression(text, &Options::default()).unwrap_or_else(|refused| panic!("{refused}\n{text}"));
            for offset in 0..size {
                let [row, column] = element(offset);
                assert_eq!(number(reading.layout().unwrap(), row + shape[0] * column), offset, "{reading}\n{text}");
            }
        }
        // Lines that are missing leave elements out.
        let cut = lines.lines().take(size as usize - 2).collect::<Vec<_>>().join("\n");
        assert!(document(&cut, &Options::default()).readings().count() == 0, "{cut}");
        let blocks = format!("{lines}Block: 1:\nOffset: 0 -> (0, 0)\n");
        assert_eq!(expression(&blocks, &Options::default()).unwrap_err().code(), "E1304");
    }
}

#[test]
fn what_only_looks_like_a_view_is_none() {
    for text in [
        "[T0:0]",
        "[[1, 2], [3, 4]]",
        "[ T3:4, T5:6 ]",
        "Warp0:\n(hello)",
        "Warp0: started",
        "Block0: 3 threads",
        "a[[T",
        "[(0, 0), (1, 1)]",
        "Block: 0:\nnothing",
        "[ 12:30:01 ] step",
    ] {
        assert!(document(text, &Options::default()).items.is_empty(), "{text}");
    }
    for sign in [
        "[[ T0:0, ",
        "[[",
        "[ ",
        "Warp0:\n(0,0)\n",
        "Block0:\nWarp0:\n",
        "Offset: 0 -> (0,0)\n",
        "[[ T0:0|",
        "[[(0:0),",
    ] {
        let _ = document(&sign.repeat(20_000), &Options::default());
    }
    // Every element once, but lane 6 and 7 exchanged: no linear map. And views with elements left
    // out, of twelve and of sixteen, where the others are a linear map.
    let lanes = |order: [i64; 8]| format!("Warp0:\n{}", order.map(|at| format!("({at},0)")).join(", "));
    for (order, code) in [
        ([0, 1, 2, 3, 4, 5, 7, 6], "E1304"),
        ([0, 1, 2, 3, 8, 9, 10, 11], "E1302"),
        ([0, 1, 6, 7, 8, 9, 14, 15], "E1302"),
    ] {
        assert_eq!(expression(&lanes(order), &Options::default()).unwrap_err().code(), code, "{order:?}");
    }
    assert!(expression(&lanes([0, 2, 1, 3, 4, 6, 5, 7]), &Options::default()).is_ok());
    // Blocks of a cluster count on.
    let text = "[[ B0:T0:0, B0:T1:0]\n[  B1:T0:0, B1:T1:0]]";
    assert_eq!(expression(text, &Options::default()).unwrap().to_string(), "((2,2),1):((2,1),0)");
}
