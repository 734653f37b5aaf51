//! error: layout! takes a program in a string literal: layout!("(8,16):(16,1)")
//! --> user/src/bin/literal.rs:6:28
use tilewright::layout;

fn main() {
    println!("{}", layout!((8, 16)));
}
