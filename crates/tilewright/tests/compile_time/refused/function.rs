//! error: E0206: there is no function 'coalesc'
//! --> 2:7
//! 2 |       coalesc((2,4):(1,2))
//!  |       ^^^^^^^
//! = help: did you mean 'coalesce'?
//! --> user/src/bin/function.rs:12:9
use tilewright::layout;

fn main() {
    println!("{}", layout!(
        // Two lines in the literal.
        "A = 4:1
      coalesc((2,4):(1,2))"
    ));
}
