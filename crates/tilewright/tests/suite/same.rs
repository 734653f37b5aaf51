//! What moves data between the layouts of different systems.

use tilewright::kernel::{Element, Route};
use tilewright::read::{Options, expression};
use tilewright::same::{Same, same};

fn compare(left: &str, right: &str) -> Same {
    let read =
        |text| expression(text, &Options::default()).unwrap_or_else(|refused| panic!("{text}: {refused}")).meaning;
    same(&read(left), &read(right), None, Element::F32).unwrap_or_else(|refused| panic!("{refused}"))
}

fn mma(warps: &str, tile: &str) -> String {
    format!(
        "tensor<{tile}xf32, #ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = {warps}, instrShape = [16, 8]}}>>"
    )
}

#[test]
fn what_moves_data_between_two_systems() {
    let blocked = "tensor<16x8xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [16, 2], warpsPerCTA = [1, 1], order = [1, 0]}>>";
    let found = compare(&mma("[1, 1]", "16x8"), blocked);
    assert_eq!(found.movement.unwrap().route, Route::Lanes);
    assert!(found.to_string().contains("shuffles in each warp"), "{found}");
    // One function: nothing moves.
    let found = compare("((_4,_8),(_2,_2)):((_32,_1),(_16,_8))", &mma("[1, 1]", "16x8"));
    assert_eq!((found.difference.as_deref(), found.movement), (None, None));
    // The same values of each thread, in another order.
    let found = compare("((_4,_8),(_2,_2)):((_32,_1),(_8,_16))", &mma("[1, 1]", "16x8"));
    assert_eq!(found.movement.map(|movement| (movement.route, movement.instructions)), Some((Route::Registers, 0)));
    // Rows of other warps.
    let found = compare(&mma("[4, 1]", "64x32"), &mma("[1, 4]", "64x32"));
    assert_eq!(found.movement.unwrap().route, Route::Shared);
    assert!(found.to_string().contains("shared memory with a barrier"), "{found}");
}
