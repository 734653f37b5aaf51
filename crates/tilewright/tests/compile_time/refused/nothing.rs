//! error: tiler! takes a program in a string literal: tiler!("[16:1;8:1]")
//! --> user/src/bin/nothing.rs:6:20
use tilewright::tiler;

fn main() {
    println!("{}", tiler!());
}
