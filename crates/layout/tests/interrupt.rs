//! An interrupt ends searches, and nothing but searches. Alone in its process, as the request is
//! one for all of it.

use std::time::Duration;

use tilewright_layout::{Composed, Layout, LayoutError, Xor, interrupt, max_common_layout};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

#[test]
fn searches_end_until_the_request_is_taken_back() {
    let searched = || {
        // Carries that cancel.
        let carries = layout("(2,2,2):(1,1,3)").compose(&layout("(2,2):(3,3)"));
        let overlapping = layout("(65536,65536,65536):(-6,10,14)");
        let xor: Layout<Xor> = "(3,5):(^3,^6)".parse().unwrap();
        let covering: Layout<Xor> = "(3,5):(^1,^3)".parse().unwrap();
        let swizzled: Composed = "S<2,0,3> o 0 o (3,70,30):(1,4,333)".parse().unwrap();
        [
            carries.map(|_| ()),
            overlapping.right_inverse().map(|_| ()),
            layout("(5,7,11,13):(1001,1309,1547,1729)").left_inverse().map(|_| ()),
            layout("(20,20,20):(901,1003,1107)").is_injective().map(|_| ()),
            max_common_layout(&overlapping, &layout("(2,3):(1,1)")).map(|_| ()),
            xor.left_inverse().map(|_| ()),
            covering.right_inverse().map(|_| ()),
            swizzled.cosize().map(|_| ()),
            swizzled.image().map(|_| ()),
            swizzled.is_ordered().map(|_| ()),
        ]
    };
    let stopped = |found: &Result<(), LayoutError>| matches!(found, Err(LayoutError::Interrupted { .. }));
    assert_eq!(searched().iter().position(stopped), None);

    interrupt::request();
    assert!(interrupt::is_requested());
    assert_eq!(searched().iter().position(|found| !stopped(found)), None);
    // An operation without a search is not interrupted.
    assert_eq!(layout("(6,2):(8,2)").compose(&layout("(4,3):(3,1)")).unwrap().to_string(), "((2,2),3):((24,2),8)");
    assert_eq!(layout("(4,8):(1,5)").left_inverse().unwrap().to_string(), "(5,8):(1,4)");
    interrupt::clear();
    assert_eq!(searched().iter().position(stopped), None);

    // The interrupt comes from another thread, before or during a search.
    let other = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(1));
        interrupt::request();
    });
    while !stopped(&searched()[1]) {}
    other.join().unwrap();
    interrupt::clear();
}
