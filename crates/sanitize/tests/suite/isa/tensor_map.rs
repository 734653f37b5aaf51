//! Boxes of tensor maps against loops over all their elements.

use std::collections::HashMap;

use tilewright_sanitize::isa::tensor_map::{MapElement, Outside, TensorMap, Walk};

use super::random::Random;

/// Each byte of shared memory that a copy touches, with its byte in global memory; each once, and
/// never across a unit of 16 bytes.
fn bytes(map: &TensorMap, coordinates: [i32; 5], offsets: [u16; 3], shared: u64) -> HashMap<u64, Option<u64>> {
    let mut all = HashMap::new();
    map.pieces(coordinates, offsets, shared, |piece| {
        assert!(piece.shared % 16 + u64::from(piece.bytes) <= 16 && piece.bytes > 0);
        for byte in 0..u64::from(piece.bytes) {
            assert!(all.insert(piece.shared + byte, piece.global.map(|at| at + byte)).is_none());
        }
    });
    assert_eq!(all.len(), map.box_bytes() as usize);
    all
}

/// A map of random extents, of which the first has `row` bytes in a box.
fn random_map(random: &mut Random, rank: usize) -> TensorMap {
    let element = [MapElement::F16, MapElement::F32, MapElement::F64, MapElement::Bf16][random.below(4) as usize];
    let units = 1 << random.below(4);
    let row = 16 * (1 + random.below(units as u64)) as u32 / element.bytes();
    let mut map = TensorMap {
        address: 0x4000,
        element,
        rank,
        extents: [1; 5],
        strides: [16; 4],
        steps: [1; 5],
        walk: Walk::Tiled([1; 5]),
        units,
        outside: Outside::Nan,
    };
    let mut boxes = [1; 5];
    boxes[0] = row;
    // The device does not look at it.
    map.steps[0] = 1 + random.below(2) as u32;
    map.extents[0] = 1 + random.below(3 * u64::from(boxes[0]));
    let mut stride = (map.extents[0] * u64::from(element.bytes())).next_multiple_of(16);
    for (at, own) in boxes.iter_mut().enumerate().take(rank).skip(1) {
        map.extents[at] = 1 + random.below(6);
        map.steps[at] = 1 + random.below(2) as u32;
        *own = 1 + random.below(5) as u32;
        map.strides[at - 1] = stride + 16 * random.below(3);
        stride = map.strides[at - 1] * map.extents[at];
    }
    map.walk = Walk::Tiled(boxes);
    map
}

#[test]
fn boxes_are_walked_element_by_element() {
    let mut random = Random::new(70);
    for round in 0..400 {
        let rank = 1 + round % 5;
        let map = random_map(&mut random, rank);
        map.check().unwrap();
        assert_eq!(TensorMap::of_bytes(&map.bytes()), Some(map));
        let Walk::Tiled(boxes) = map.walk else { unreachable!() };
        let coordinates = [0; 5].map(|_| random.below(9) as i32 - 4);
        let shared = 1024 * random.below(4);
        let found = bytes(&map, coordinates, [0; 3], shared);
        let size = u64::from(map.element.bytes());
        let step = |at: usize| if at == 0 { 1 } else { map.steps[at] };
        let counts: Vec<u32> = (0..5).map(|at| if at < rank { boxes[at].div_ceil(step(at)) } else { 1 }).collect();
        let total: u32 = counts.iter().product();
        for (number, index) in (0_u64..).zip(0..total) {
            let mut left = index;
            let (mut address, mut inside) = (map.address as i64, true);
            for at in 0..rank {
                let along = left % counts[at];
                left /= counts[at];
                let place = i64::from(coordinates[at]) + i64::from(along * step(at));
                inside &= (0..map.extents[at] as i64).contains(&place);
                address += place * if at == 0 { size as i64 } else { map.strides[at - 1] as i64 };
            }
            for byte in 0..size {
                // A row takes a whole line of the swizzle.
                let (row, column) = (number / u64::from(counts[0]), number % u64::from(counts[0]) * size);
                let packed = u64::from(counts[0]) * size;
                let pitch = if map.units > 1 { 16 * u64::from(map.units) } else { packed };
                let at = shared + row * pitch + column + byte;
                // The unit within a line of the swizzle, changed by the number of 128 bytes.
                let (line, unit) = (at / 128, at / 16 % u64::from(map.units));
                let swizzled = at - 16 * unit + 16 * (unit ^ (line % u64::from(map.units)));
                let wanted = inside.then_some(address as u64 + byte);
                assert_eq!(found.get(&swizzled), Some(&wanted), "{map:?} {coordinates:?}: element {index}");
            }
        }
    }
}

#[test]
fn pixels_are_walked_as_a_convolution_does() {
    // An image of 3 x 8 x 6 pixels of 16 halves, three images; a filter of 3 x 3 with a margin of
    // 1.
    let mut map = TensorMap::of_array(MapElement::F16, &[3, 6, 8, 16], 0x10000, &[1, 1, 1, 8], 1).unwrap();
    let (channels, pixels) = (8_u32, 64_u32);
    map.walk = Walk::Im2col { lower: [-1, -1, 0], upper: [-1, -1, 0], channels, pixels };
    map.check().unwrap();
    assert_eq!(TensorMap::of_bytes(&map.bytes()), Some(map));
    for filter in 0..9_u16 {
        let (fx, fy) = (filter % 3, filter / 3);
        // From the first output pixel of image 0: its window begins at -1, -1.
        let found = bytes(&map, [8, -1, -1, 0, 0], [fx, fy, 0], 0);
        for pixel in 0..pixels {
            // Outputs of 8 x 6 pixels an image.
            let (x, y, image) = (pixel % 8, pixel / 8 % 6, pixel / 48);
            let (ix, iy) = (x as i64 - 1 + i64::from(fx), y as i64 - 1 + i64::from(fy));
            let inside = (0..8).contains(&ix) && (0..6).contains(&iy);
            for channel in 0..channels {
                let at = u64::from((pixel * channels + channel) * 2);
                let place = ((i64::from(image) * 6 + iy) * 8 + ix) * 16 + 8 + i64::from(channel);
                let wanted = inside.then(|| 0x10000 + 2 * place as u64);
                assert_eq!(found[&at], wanted, "filter {filter}, pixel {pixel}, channel {channel}");
            }
        }
    }
}

#[test]
fn damaged_and_impossible_maps_are_refused() {
    let half = MapElement::U16;
    let map = TensorMap::of_array(half, &[64, 64], 0x1000, &[8, 64], 8).unwrap();
    let mut random = Random::new(71);
    for _ in 0..2000 {
        let mut bytes = map.bytes();
        bytes[random.below(128) as usize] ^= 1 << random.below(8);
        if let Some(other) = TensorMap::of_bytes(&bytes) {
            other.check().unwrap();
        }
    }
    assert!(TensorMap::of_bytes(&[0; 128]).is_none());
    for (shape, address, extents, units) in [
        (&[64, 64][..], 0x1008, &[8, 64][..], 8),
        (&[64, 60], 0x1000, &[8, 60], 1),
        (&[64, 64], 0x1000, &[8, 60], 1),
        (&[64, 64], 0x1000, &[8, 64], 4),
        (&[64, 64], 0x1000, &[512, 64], 8),
        (&[64, 64], 0x1000, &[64], 8),
        (&[2; 6], 0x1000, &[2; 6], 1),
    ] {
        assert!(TensorMap::of_array(half, shape, address, extents, units).is_err(), "{shape:?} {extents:?}");
    }
}
