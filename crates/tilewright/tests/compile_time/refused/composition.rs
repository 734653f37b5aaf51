//! error: E0107:
//! the sum carries
//! --> 1:
//! 1 | (6,2):(1,7) o (3,2):(2,3)
//! ^ 
//! = help:
//! --> user/src/bin/composition.rs:10:36
use tilewright::{StaticLayout, layout};

const TILE: StaticLayout = layout!("(6,2):(1,7) o (3,2):(2,3)");

fn main() {
    println!("{TILE}");
}
