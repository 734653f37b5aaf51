//! Copies of boxes and of pixels through tensor maps that the driver makes.

use std::fmt::Write;

use tilewright_sanitize::isa::tensor_map::{MapElement, Outside, TensorMap, Walk};
use tilewright_sanitize::{MapSwizzle, MapView, MapWalk};

use crate::program::{Outcome, Program, Random, Shape};

/// Threads of the one block.
const BLOCK: usize = 128;
/// The most bytes of a copy.
const MOST: u32 = 16384;
/// Maps of each kind that are tried.
const CASES: u64 = 40;

/// A map as the driver's functions and the launches of the interpreter take it.
pub(crate) struct GivenMap {
    /// The array, its slowest dimension first.
    pub(crate) shape: Vec<u64>,
    /// What copies move.
    pub(crate) view: MapView,
    /// Bytes of an element; 2 is f16, 4 is f32 and 1 is `u8`.
    pub(crate) bytes: u32,
}

impl GivenMap {
    /// The arguments of `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col` on one line.
    pub(crate) fn line(&self) -> String {
        let numbers = |all: Vec<String>| all.join(",");
        let text = |all: &[u32]| numbers(all.iter().rev().map(u32::to_string).collect());
        let corners = |all: &[i32]| numbers(all.iter().rev().map(i32::to_string).collect());
        let (kind, sizes, lower, upper) = match &self.view.walk {
            MapWalk::Tiled(extents) => ("tiled", text(extents), "0".to_string(), "0".to_string()),
            MapWalk::Im2col { pixels, channels, lower, upper } => {
                ("im2col", format!("{channels},{pixels}"), corners(lower), corners(upper))
            }
        };
        let shape = numbers(self.shape.iter().rev().map(u64::to_string).collect());
        let swizzle = match self.view.swizzle {
            MapSwizzle::None => 0,
            MapSwizzle::Bytes32 => 1,
            MapSwizzle::Bytes64 => 2,
            MapSwizzle::Bytes128 => 3,
        };
        let (bytes, steps, nan) = (self.bytes, text(&self.view.steps), u32::from(self.view.fills_nan));
        format!("{kind} {bytes} {shape} {sizes} {lower} {upper} {steps} {swizzle} {nan}\n")
    }
}

/// The bytes of shared memory that are looked at: those of a copy change places within lines.
fn copied(bytes: u32) -> u32 {
    bytes.next_multiple_of(1024)
}

fn kernel(rank: usize, is_im2col: bool, coordinates: &[i32], offsets: &[u16], [bytes, room]: [u32; 2]) -> String {
    let list = |all: Vec<String>| all.join(", ");
    let place = list(coordinates.iter().map(i32::to_string).collect());
    let mode = if is_im2col { "im2col" } else { "tile" };
    let moved = match is_im2col {
        true => format!(", {{{}}}", list(offsets.iter().map(u16::to_string).collect())),
        false => String::new(),
    };
    let mut text = String::new();
    let _ = write!(
        text,
        ".version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .align 64 .b8 z[128])
{{
    .shared .align 1024 .b8 image[{MOST}];
    .shared .align 8 .b8 full[8];
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    ld.param.u64 %d0, [y];
    cvta.to.global.u64 %d0, %d0;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, image;
    mul.lo.u32 %r2, %r0, 4;
    add.u32 %r1, %r1, %r2;
    mov.u32 %r4, 0;
CLEAR:
    st.shared.b32 [%r1], %r4;
    add.u32 %r1, %r1, {step};
    add.u32 %r2, %r2, {step};
    setp.lt.u32 %p3, %r2, {MOST};
    @%p3 bra CLEAR;
    fence.proxy.async;
    bar.sync 0;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra WAIT;
    mbarrier.init.shared.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], {bytes};
    mov.u64 %d1, z;
    cvta.param.u64 %d1, %d1;
    cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes
        [image], [%d1, {{{place}}}], [full]{moved};
WAIT:
    bar.sync 0;
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
    @!%p1 bra AGAIN;
    mov.u32 %r1, image;
    mul.lo.u32 %r2, %r0, 4;
    add.u32 %r1, %r1, %r2;
    cvt.u64.u32 %d2, %r2;
    add.u64 %d0, %d0, %d2;
COPY:
    setp.ge.u32 %p2, %r2, {copied};
    @%p2 bra DONE;
    ld.shared.b32 %r3, [%r1];
    st.global.b32 [%d0], %r3;
    add.u32 %r1, %r1, {step};
    add.u32 %r2, %r2, {step};
    add.u64 %d0, %d0, {step};
    bra COPY;
DONE:
    ret;
}}
",
        step = 4 * BLOCK,
        copied = copied(room),
    );
    text
}

/// A random map, and where a copy through it begins.
fn case(random: &mut Random, is_im2col: bool) -> (GivenMap, Vec<i32>, Vec<u16>) {
    let bytes = [1, 2, 4][random.below(3) as usize];
    let swizzle = [MapSwizzle::None, MapSwizzle::Bytes32, MapSwizzle::Bytes64, MapSwizzle::Bytes128];
    let at = random.below(4) as usize;
    let widest = if at == 0 { 8 } else { 1 << at };
    // Elements of a row, 16 bytes and more.
    let row = 16 / bytes * (1 + random.below(widest) as u32);
    let rank = if is_im2col { 3 + random.below(3) as usize } else { 1 + random.below(5) as usize };
    // Rows of the array are multiples of 16 bytes, as its strides are.
    let width = u64::from(16 / bytes) * (1 + random.below(10));
    let mut shape = vec![width];
    let mut steps = vec![1];
    for _ in 1..rank {
        shape.insert(0, 1 + random.below(7));
        steps.insert(0, 1 + random.below(3) as u32);
    }
    // A copy begins at a multiple of 16 bytes; elsewhere devices trap.
    let unit = 16 / bytes as i32;
    let mut coordinates = vec![(random.below(2 * width) as i32 - width as i32 / 2).div_euclid(unit) * unit];
    let mut offsets = Vec::new();
    let walk = if is_im2col {
        let spatial = rank - 2;
        let corner = |random: &mut Random| random.below(5) as i32 - 2;
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        for dimension in 0..spatial {
            let extent = shape[1 + dimension] as i32;
            let low = corner(random);
            let high = corner(random).max(low + 1 - extent);
            lower.push(low);
            upper.push(high);
        }
        for dimension in (0..spatial).rev() {
            let extent = shape[1 + dimension] as i32 + upper[dimension] - lower[dimension];
            // A copy begins at a pixel that the walk comes to.
            let step = steps[1 + dimension] as i32;
            let place = random.below(extent.max(1) as u64) as i32 / step * step;
            coordinates.push(lower[dimension] + place);
            offsets.push(random.below(3) as u16);
        }
        steps[0] = 1;
        coordinates.push(random.below(shape[0] + 1) as i32);
        let most = (MOST / bytes / row).min(96);
        let pixels = 1 + random.below(u64::from(most)) as u32;
        MapWalk::Im2col { pixels, channels: row, lower, upper }
    } else {
        let mut extents = vec![row];
        for dimension in (0..rank - 1).rev() {
            extents.insert(0, 1 + random.below(5) as u32);
            coordinates.push(random.below(2 * shape[dimension]) as i32 - shape[dimension] as i32 / 2);
        }
        MapWalk::Tiled(extents)
    };
    let fills_nan = bytes > 1 && random.below(2) == 0;
    let view = MapView { walk, swizzle: swizzle[at], steps, fills_nan };
    (GivenMap { shape, view, bytes }, coordinates, offsets)
}

/// The same as the walk that the library has.
fn map_of(given: &GivenMap) -> Result<TensorMap, String> {
    let element = match given.bytes {
        1 => MapElement::U8,
        2 => MapElement::F16,
        _ => MapElement::F32,
    };
    let mut map = TensorMap::dense(element, &given.shape, 0)?;
    let reversed = |all: &[i32]| {
        let mut own = [0; 3];
        for (into, number) in own.iter_mut().zip(all.iter().rev()) {
            *into = *number as i16;
        }
        own
    };
    for (into, step) in map.steps.iter_mut().zip(given.view.steps.iter().rev()) {
        *into = *step;
    }
    match &given.view.walk {
        MapWalk::Tiled(extents) => map.set_box(extents)?,
        MapWalk::Im2col { pixels, channels, lower, upper } => {
            let (lower, upper) = (reversed(lower), reversed(upper));
            map.walk = Walk::Im2col { lower, upper, channels: *channels, pixels: *pixels };
        }
    }
    map.units = match given.view.swizzle {
        MapSwizzle::None => 1,
        MapSwizzle::Bytes32 => 2,
        MapSwizzle::Bytes64 => 4,
        MapSwizzle::Bytes128 => 8,
    };
    if given.view.fills_nan {
        map.outside = Outside::Nan;
    }
    map.check()?;
    Ok(map)
}

/// All of them.
pub(crate) fn programs() -> Vec<Program> {
    let mut all = Vec::new();
    for is_im2col in [false, true] {
        let mut random = Random(if is_im2col { 4100 } else { 4200 });
        let mut number = 0;
        while number < CASES {
            let (given, coordinates, offsets) = case(&mut random, is_im2col);
            let Ok(map) = map_of(&given) else { continue };
            let moved = map.box_bytes();
            if map.room() > MOST || !moved.is_multiple_of(4) {
                continue;
            }
            number += 1;
            let rank = given.shape.len();
            let size = given.shape.iter().product::<u64>() * u64::from(given.bytes);
            let input: Vec<u8> = (0..size).map(|_| random.bits() as u8).collect();
            let mut place = [0; 5];
            place[..rank].copy_from_slice(&coordinates);
            let mut by = [0; 3];
            by[..offsets.len()].copy_from_slice(&offsets);
            let mode = if is_im2col { "im2col" } else { "tile" };
            let held = input.clone();
            let check = move |output: &[u8]| {
                let mut wanted = vec![0; output.len()];
                let fill = map.fill().to_le_bytes();
                map.pieces(place, by, 0, |piece| {
                    for byte in 0..u64::from(piece.bytes) {
                        let value = match piece.global {
                            Some(from) => held[(from + byte) as usize],
                            None => fill[(byte % u64::from(map.element.bytes())) as usize],
                        };
                        wanted[(piece.shared + byte) as usize] = value;
                    }
                });
                let mut outcome = Outcome::default();
                for (at, (found, wanted)) in output.iter().zip(&wanted).enumerate() {
                    outcome.add((*found).into(), (*wanted).into(), Shape::Bits, || format!("byte {at} of {map:?}"));
                }
                outcome
            };
            all.push(Program {
                name: format!("cp.async.bulk.tensor.{rank}d.{mode}-{number}"),
                text: kernel(rank, is_im2col, &coordinates, &offsets, [moved, map.room()]),
                blocks: 1,
                threads: BLOCK,
                input,
                output_bytes: copied(map.room()) as usize,
                approximate: false,
                check: Box::new(check),
                map: Some(given),
            });
        }
    }
    all
}
