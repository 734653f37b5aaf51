//! The checker, told of histories by hand: each ordering is once there, and nothing is found, and
//! once not there, and what is missing is named.

mod asynchronous;
mod blocks;
mod flags;
mod random;
mod scene;
