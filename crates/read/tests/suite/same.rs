//! Layouts of different systems compared: one function, or the first difference.

use tilewright_notation::{Environment, evaluate};
use tilewright_read::{Comparison, Meaning, Options, Unit, common_unit, compare, expression};

fn meaning(text: &str) -> Meaning {
    match evaluate(text, &mut Environment::new()) {
        Ok(value) => Meaning::Value(value),
        Err(_) => {
            let options = Options { shape: Some(vec![8, 8]), ..Options::default() };
            expression(text, &options).unwrap_or_else(|refused| panic!("{text}: {refused}")).meaning
        }
    }
}

fn same(left: &str, right: &str) -> Comparison {
    compare(&meaning(left), &meaning(right), None).unwrap_or_else(|refused| panic!("{refused}"))
}

fn mma(version: i64, warps: &str, instruction: &str, tile: &str) -> String {
    format!(
        "tensor<{tile}xf32, #ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}, instrShape = {instruction}}}>>"
    )
}

/// "Is my wgmma accumulator in CuTe what Triton's `#mma` says?"
#[test]
fn the_accumulator_of_wgmma_is_what_triton_says() {
    for n in [8, 16, 32, 64, 128, 256] {
        let cute = format!(
            "Layout<Shape<Shape<_4,_8,_4>,Shape<_2,_2,Int<{}>>>,Stride<Stride<_128,_1,_16>,Stride<_64,_8,_512>>>",
            n / 8
        );
        let triton = mma(3, "[4, 1]", &format!("[16, {n}, 16]"), &format!("64x{n}"));
        let found = same(&cute, &triton);
        assert_eq!(found.difference, None, "{n}");
        assert_eq!(found.compared, format!("128 threads hold {} values each of the 64x{n} tile", n / 2));
    }
    let cute = "((4,8),(2,2)):((32,1),(16,8))";
    assert_eq!(same(cute, &mma(2, "[1, 1]", "[16, 8]", "16x8")).difference, None);
    // The fragment of TileLang for the same instruction.
    let fragment = "Fragment([16, 8] -> [4], replicate: 1, thread: 32, forward_thread: _i % 8 * 4 + _j // 2, \
                    forward_index: [_i // 8 * 2 + _j % 2])";
    assert_eq!(same(fragment, &mma(2, "[1, 1]", "[16, 8]", "16x8")).difference, None);
}

#[test]
fn the_first_difference_is_named() {
    let blocked = "tensor<16x8xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [16, 2], warpsPerCTA = [1, 1], order = [1, 0]}>>";
    let found = same(&mma(2, "[1, 1]", "[16, 8]", "16x8"), blocked);
    let wanted = "thread 1 holds (0,2) as value 0 in the first, and (0,4) in the second";
    assert_eq!(found.difference.as_deref(), Some(wanted));
    assert_eq!(found.conversion.unwrap().from.to_string(), "((4,8),(2,2)):((32,1),(16,8))");
    let found = same(&mma(2, "[4, 1]", "[16, 8]", "64x32"), &mma(2, "[1, 1]", "[16, 8]", "64x32"));
    assert!(found.difference.unwrap().starts_with("in the first 128 threads hold 16 values each"));
}

#[test]
fn memory_is_compared_at_every_coordinate() {
    let shared = "!ttg.memdesc<8x64xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>, #ttg.shared_memory>";
    let cute = "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)";
    assert_eq!(same(shared, cute).difference, None);
    let plain = same(shared, "(8,64):(64,1)").difference;
    assert_eq!(plain.as_deref(), Some("at (1,0) the first has 72 and the second 64"));
    let view = "View(shape=(4, 8), strides=(8, 1), offset=0, mask=None, contiguous=True)";
    assert_eq!(same("S[(4, 8) : (8, 1)]", view).difference, None);
    let named = "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))";
    assert_eq!(same(named, "GSPMDSharding({devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate})").difference, None);
    let other = "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec(None, 'tp'))";
    let found = same(named, other).difference.unwrap();
    assert!(found.starts_with("element (1,0) is at offset 8 of device 0 in the first, and at offset 2 in"), "{found}");
    let data = "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('dp', None))";
    let found = same(named, data).difference.unwrap();
    let wanted = "element (0,0) is on devices 0 and 4 in the first, and on devices 0, 1, 2 and 3 in the second";
    assert!(found.starts_with(wanted), "{found}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let refused = |left: &str, right: &str| compare(&meaning(left), &meaning(right), None).unwrap_err().to_string();
    let triton = mma(2, "[1, 1]", "[16, 8]", "16x8");
    assert!(refused(&triton, &mma(2, "[1, 1]", "[16, 8]", "16x16")).contains("other shapes"));
    assert!(refused(&triton, "(32,4):(32,64)").contains("is not in the 16x8 tile"));
    assert!(refused(&triton, "5").contains("two modes"));
    assert!(refused("(4,8):(8,1)", "5").contains("of the kind layout"));
}

/// What is no number of the same thing is not compared: each pair of units, in both orders.
#[test]
fn units_of_two_layouts_must_agree() {
    let elements = |bits| Unit::Elements { bits };
    let all = [elements(None), elements(Some(16)), elements(Some(32)), Unit::Bytes, Unit::Coordinates, Unit::Indices];
    // A row for each of them: `=` agrees, `n` has a note, `x` is refused.
    let wanted = [
        "===x==", // elements of no width: bytes differ from them in any case
        "==nxx=", "=n=xx=", "xxx===", "=xx===", "======",
    ];
    for (first, row) in all.into_iter().zip(wanted) {
        for (second, wanted) in all.into_iter().zip(row.chars()) {
            let found = match common_unit(first, second) {
                Ok(None) => '=',
                Ok(Some(_)) => 'n',
                Err(_) => 'x',
            };
            assert_eq!(found, wanted, "{first} and {second}");
        }
    }
    let refused = common_unit(Unit::Bytes, elements(Some(32))).unwrap_err().to_string();
    assert!(refused.contains("bytes") && refused.contains("elements of 32 bits"), "{refused}");
}
