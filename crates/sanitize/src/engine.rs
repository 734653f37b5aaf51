//! The engine: blocks, warps and their schedule.
