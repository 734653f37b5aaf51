//! error: at compile time a layout may be seen through a swizzle, and not through (4,4):(4,1)
//! --> user/src/bin/outer.rs:6:28
use tilewright::layout;

fn main() {
    println!("{}", layout!("(4,4):(4,1) o 3 o (2,4):(1,2)"));
}
