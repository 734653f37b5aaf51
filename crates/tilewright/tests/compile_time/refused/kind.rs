//! error: layout! needs a layout, and this program has another value: the integer 32
//! --> user/src/bin/kind.rs:6:28
use tilewright::layout;

fn main() {
    println!("{}", layout!("size((4,8):(8,1))"));
}
