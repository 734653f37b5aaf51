//! Canonical layouts and descriptors: every atom, tiled to several shapes, gives the fields that
//! the canonical forms say; the address of each element by the layout is the one that the
//! hardware's rule computes from the fields, written here from the documentation alone; and what is
//! not canonical is refused with the condition.

use tilewright_layout::atoms::{AtomError, CanonicalCondition, Major, MatrixDescriptor, OperandMode, SwizzleMode};
use tilewright_layout::{Composed, Tiler, Tree};

/// The fields of a descriptor, cut from its bits as the table of the documentation has them.
struct Fields {
    start: u64,
    leading: u64,
    stride: u64,
    base_offset: u64,
    swizzle: u64,
}

fn fields(bits: u64) -> Fields {
    let field = |low: u32, high: u32| bits >> low & ((1 << (high - low + 1)) - 1);
    let unit = |low, high| field(low, high) * 16;
    let reserved = [(14, 15), (30, 31), (46, 48), (52, 61)];
    assert!(reserved.iter().all(|(low, high)| field(*low, *high) == 0), "{bits:#x}");
    Fields {
        start: unit(0, 13),
        leading: unit(16, 29),
        stride: unit(32, 45),
        base_offset: field(49, 51),
        swizzle: field(62, 63),
    }
}

/// The byte address of element `(mn, k)`, whose bits are `bits`, by the rule of the hardware.
fn address(f: &Fields, major: Major, bits: u64, mn: u64, k: u64) -> u64 {
    // Bytes in a line, by the swizzle field.
    let line = match f.swizzle {
        0 => 16,
        3 => 32,
        2 => 64,
        1 => 128,
        _ => unreachable!(),
    };
    let along = |element: u64| element * bits / 8;
    let linear = match (major, f.swizzle) {
        (Major::K, 0) => mn % 8 * 16 + mn / 8 * f.stride + along(k) % 16 + along(k) / 16 * f.leading,
        (Major::K, _) => mn % 8 * line + mn / 8 * f.stride + along(k),
        (Major::MN, 0) => along(mn) % 16 + along(mn) / 16 * f.stride + k % 8 * 16 + k / 8 * f.leading,
        (Major::MN, _) => along(mn) % line + along(mn) / line * f.leading + k % 8 * line + k / 8 * f.stride,
    };
    let plain = f.start + linear;
    // The pattern: the unit within a line of 128 bytes is flipped by the number of that line since
    // the pattern began.
    let number = (plain / 128).wrapping_sub(f.base_offset);
    plain ^ ((number % (line / 16)) * 16)
}

fn check(layout: &Composed, major: Major, bits: i64, base: i64) -> MatrixDescriptor {
    let descriptor = MatrixDescriptor::of_layout(layout, major, bits, base)
        .unwrap_or_else(|error| panic!("{layout} {major} {bits}: {error}"));
    let f = fields(descriptor.bits());
    assert_eq!(MatrixDescriptor::of_bits(descriptor.bits()).unwrap(), descriptor);
    assert_eq!(f.start as i64, descriptor.start());
    let (rows, columns) = (layout.mode(0).unwrap().size(), layout.mode(1).unwrap().size());
    for (mn, k) in (0..rows).flat_map(|mn| (0..columns).map(move |k| (mn, k))) {
        let offset = layout.eval_at(&Tree::flat([mn, k]).unwrap()).unwrap();
        let found = address(&f, major, bits as u64, mn as u64, k as u64);
        assert_eq!(
            base as u64 + (offset * bits / 8) as u64,
            found,
            "{layout} {major} {bits} at ({mn},{k}): {descriptor}"
        );
    }
    descriptor
}

#[test]
fn atoms_are_the_published_ones() {
    // In bits, as the tables have them; every element width packs them.
    for (mode, bits) in SwizzleMode::ALL.into_iter().zip([128, 256, 512, 1024]) {
        let flipped = mode.units().ilog2();
        for width in [1, 2, 4, 8, 16, 32, 64, 128] {
            let line = bits / width;
            let base = 7 - i64::from((width as u64).ilog2());
            let k = mode.atom(Major::K, width).unwrap().to_string();
            let mn = mode.atom(Major::MN, width).unwrap().to_string();
            assert_eq!(k, format!("S<{flipped},{base},3> o 0 o (8,{line}):({line},1)"));
            assert_eq!(mn, format!("S<{flipped},{base},3> o 0 o ({line},8):(1,{line})"));
        }
    }
    assert_eq!(SwizzleMode::ALL.map(SwizzleMode::code), [0, 3, 2, 1]);
    assert_eq!(SwizzleMode::ALL.map(SwizzleMode::period), [128, 256, 512, 1024]);
    for width in [0, 3, 12, 256, -8] {
        assert_eq!(SwizzleMode::None.atom(Major::K, width).unwrap_err(), AtomError::ElementWidth { bits: width });
    }
}

#[test]
fn tiled_atoms_round_trip() {
    let mut operands = 0;
    for mode in SwizzleMode::ALL {
        for bits in [8, 16, 32] {
            let unit = 128 / bits;
            for (rows, columns) in [(64, 2), (128, 4), (256, 8), (64, 16)] {
                for major in [Major::K, Major::MN] {
                    let order: Tree<i64> = "(1,0)".parse().unwrap();
                    for order in [None, Some(&order)] {
                        let shape: Tree<i64> = format!("({rows},{})", columns * unit).parse().unwrap();
                        let tile = mode.atom(major, bits).unwrap().tile_to_shape(&shape, order).unwrap();
                        // All operands of one instruction that the tile holds, where their K extent
                        // is whole.
                        let lines = if major == Major::MN { 64.max(mode.units() * unit) } else { 64 };
                        let tiler: Tiler = format!("[{lines}:1;{}:1]", 2 * unit).parse().unwrap();
                        let parts = tile.zipped_divide(&tiler).unwrap();
                        if tile.mode(1).unwrap().size() % (2 * unit) != 0 {
                            continue;
                        }
                        let rests = parts.mode(1).unwrap().size();
                        for rest in 0..rests {
                            let operand =
                                parts.slice(&format!("(_,{rest})").parse().unwrap()).unwrap().mode(0).unwrap();
                            let bases = if rest == 0 { &[0, 1024, 4096 + 128, 8192 + 640][..] } else { &[2048] };
                            for base in bases.iter().copied() {
                                let descriptor = check(&operand, major, bits, base);
                                assert_eq!(descriptor.mode(), mode);
                                operands += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    println!("{operands} operands");
    assert!(operands > 1_000, "{operands}");
}

#[test]
fn fields_are_those_of_the_canonical_forms() {
    let tile = |mode: SwizzleMode, major, shape: &str| mode.tile(major, 16, &shape.parse().unwrap()).unwrap();
    let of = |layout: &Composed, major| {
        let d = MatrixDescriptor::of_layout(layout, major, 16, 0x2000).unwrap();
        (d.start(), d.leading(), d.stride(), d.base_offset())
    };
    // K-major: from eight rows to the next, an atom; without a swizzle also from unit to unit.
    assert_eq!(of(&tile(SwizzleMode::Bytes32, Major::K, "(64,16)"), Major::K), (0x2000, 16, 256, 0));
    assert_eq!(of(&tile(SwizzleMode::None, Major::K, "(64,16)"), Major::K), (0x2000, 1024, 128, 0));
    // MN-major: lines of 64 elements, and from eight columns to the next.
    assert_eq!(of(&tile(SwizzleMode::Bytes128, Major::MN, "(128,16)"), Major::MN), (0x2000, 1024, 2048, 0));
    assert_eq!(of(&tile(SwizzleMode::None, Major::MN, "(64,16)"), Major::MN), (0x2000, 1024, 128, 0));
    // One atom in a dimension: nothing depends on the distance.
    assert_eq!(of(&tile(SwizzleMode::Bytes128, Major::MN, "(64,16)"), Major::MN), (0x2000, 0, 1024, 0));
    let plain: Composed = "S<0,0,0> o 0 o ((8,8),(8,2)):((8,64),(1,512))".parse().unwrap();
    assert_eq!(of(&plain, Major::K), (0x2000, 1024, 128, 0));
}

#[test]
fn what_is_not_canonical_is_refused_with_the_condition() {
    let of = |text: &str, major| {
        let layout: Composed = text.parse().unwrap();
        match MatrixDescriptor::of_layout(&layout, major, 16, 0).unwrap_err() {
            AtomError::NotCanonical { major: found, condition } if found == major => *condition,
            other => panic!("{text}: {other}"),
        }
    };
    assert_eq!(of("S<3,3,3> o 0 o 64:1", Major::K), CanonicalCondition::Rank { found: 1 });
    assert_eq!(of("(4,4):(4,1) o 0 o (64,16):(16,1)", Major::K), CanonicalCondition::Outer);
    assert!(matches!(of("S<3,4,3> o 0 o (64,16):(64,1)", Major::K), CanonicalCondition::Swizzle { .. }));
    assert!(matches!(of("S<3,3,4> o 0 o (64,16):(64,1)", Major::K), CanonicalCondition::Swizzle { .. }));
    assert_eq!(of("S<3,3,3> o 0 o (64,64):(64,1)", Major::K), CanonicalCondition::Depth { found: 64, wanted: 16 });
    assert_eq!(
        of("S<3,3,3> o 0 o (12,16):(64,1)", Major::K),
        CanonicalCondition::Multiple { along: OperandMode::MN, found: 12, of: 8 }
    );
    assert!(matches!(
        of("S<3,3,3> o 0 o (64,16):(32,1)", Major::K),
        CanonicalCondition::Core { along: OperandMode::MN, .. }
    ));
    assert!(matches!(
        of("S<3,3,3> o 0 o (64,16):(64,2)", Major::K),
        CanonicalCondition::Core { along: OperandMode::K, .. }
    ));
    assert!(matches!(
        of("S<3,3,3> o 0 o (64,16):(64,1)", Major::MN),
        CanonicalCondition::Core { along: OperandMode::MN, .. }
    ));
    assert!(matches!(
        of("S<3,3,3> o 0 o ((8,2,2),16):((64,512,2048),1)", Major::K),
        CanonicalCondition::Step { along: OperandMode::MN, .. }
    ));
    assert!(matches!(
        of("S<3,3,3> o 0 o ((8,2),16):((64,-512),1)", Major::K),
        CanonicalCondition::Step { along: OperandMode::MN, .. }
    ));
    // A K-major tile of the wrong mode: the lines are as long as the swizzle says, or the distances
    // would be read wrongly.
    for (given, said) in SwizzleMode::ALL.into_iter().flat_map(|given| SwizzleMode::ALL.map(|said| (given, said))) {
        let tile = given.tile(Major::K, 16, &"(64,64)".parse().unwrap()).unwrap();
        let step = tile.compose_tiler(&"[64:1;16:1]".parse().unwrap()).unwrap();
        let other = Composed::new(said.swizzle(16).unwrap(), 0, step.inner().clone()).unwrap();
        let descriptor = MatrixDescriptor::of_layout(&other, Major::K, 16, 0);
        assert_eq!(descriptor.is_ok(), given == said, "{other}");
    }
}

#[test]
fn fields_that_do_not_fit_are_refused() {
    let tile = SwizzleMode::Bytes128.tile(Major::K, 16, &"(64,64)".parse().unwrap()).unwrap();
    let operand = tile.zipped_divide(&"[64:1;16:1]".parse::<Tiler>().unwrap()).unwrap().mode(0).unwrap();
    let of = |base| MatrixDescriptor::of_layout(&operand, Major::K, 16, base);
    for (base, what) in
        [(8, "the base address"), (-1024, "the base address"), (1 << 18, "the base address"), (16, "the base address")]
    {
        match of(base).unwrap_err() {
            AtomError::Field { what: found, .. } => assert_eq!(found, what),
            other => panic!("{base}: {other}"),
        }
    }
    assert_eq!(of(1024 + 128).unwrap().base_offset(), 1);
    let far: Composed = "S<3,3,3> o 0 o ((8,8),16):((64,131072),1)".parse().unwrap();
    assert_eq!(MatrixDescriptor::of_layout(&far, Major::K, 16, 0).unwrap_err().code(), "E0313");
    let between: Composed = "S<3,3,3> o 3 o ((8,8),16):((64,512),1)".parse().unwrap();
    assert_eq!(
        MatrixDescriptor::of_layout(&between, Major::K, 16, 0).unwrap_err().to_string(),
        "the start address is 6 bytes, but it must be a multiple of 16"
    );
    assert_eq!(MatrixDescriptor::of_bits(1 << 14).unwrap_err(), AtomError::Reserved { bits: 1 << 14 });
}
