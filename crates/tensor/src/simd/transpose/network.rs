//! The network of shuffles that transposes `N` registers of `N` elements a lane within their lanes.
//!
//! Law: element `i` of register `j` becomes element `j` of register `i`, in each lane.
//!
//! One stage interleaves registers `k` and `k + N/2` into `2k` and `2k + 1`. It moves the highest
//! bit of the register number to the lowest bit of the element number. After `log2(N)` stages the
//! two numbers are exchanged.
//!
//! These are macros, because every register must be a variable of its own: the compiler would keep
//! an array in memory.

/// One stage for 2, 4, 8 or 16 registers.
macro_rules! stage {
    (2, $v:ident, $low:ident, $high:ident) => {
        [$low($v[0], $v[1]), $high($v[0], $v[1])]
    };
    (4, $v:ident, $low:ident, $high:ident) => {
        [$low($v[0], $v[2]), $high($v[0], $v[2]), $low($v[1], $v[3]), $high($v[1], $v[3])]
    };
    (8, $v:ident, $low:ident, $high:ident) => {
        [
            $low($v[0], $v[4]),
            $high($v[0], $v[4]),
            $low($v[1], $v[5]),
            $high($v[1], $v[5]),
            $low($v[2], $v[6]),
            $high($v[2], $v[6]),
            $low($v[3], $v[7]),
            $high($v[3], $v[7]),
        ]
    };
    (16, $v:ident, $low:ident, $high:ident) => {
        [
            $low($v[0], $v[8]),
            $high($v[0], $v[8]),
            $low($v[1], $v[9]),
            $high($v[1], $v[9]),
            $low($v[2], $v[10]),
            $high($v[2], $v[10]),
            $low($v[3], $v[11]),
            $high($v[3], $v[11]),
            $low($v[4], $v[12]),
            $high($v[4], $v[12]),
            $low($v[5], $v[13]),
            $high($v[5], $v[13]),
            $low($v[6], $v[14]),
            $high($v[6], $v[14]),
            $low($v[7], $v[15]),
            $high($v[7], $v[15]),
        ]
    };
}

/// All stages.
macro_rules! transposed {
    (2, $v:ident, $low:ident, $high:ident) => {{ stage!(2, $v, $low, $high) }};
    (4, $v:ident, $low:ident, $high:ident) => {{
        let a = stage!(4, $v, $low, $high);
        stage!(4, a, $low, $high)
    }};
    (8, $v:ident, $low:ident, $high:ident) => {{
        let a = stage!(8, $v, $low, $high);
        let b = stage!(8, a, $low, $high);
        stage!(8, b, $low, $high)
    }};
    (16, $v:ident, $low:ident, $high:ident) => {{
        let a = stage!(16, $v, $low, $high);
        let b = stage!(16, a, $low, $high);
        let c = stage!(16, b, $low, $high);
        stage!(16, c, $low, $high)
    }};
}

/// Evaluates an expression for each register number, and returns an array of the results, or
/// nothing.
macro_rules! registers {
    (2, $call:ident) => {
        [$call!(0), $call!(1)]
    };
    (4, $call:ident) => {
        [$call!(0), $call!(1), $call!(2), $call!(3)]
    };
    (8, $call:ident) => {
        [$call!(0), $call!(1), $call!(2), $call!(3), $call!(4), $call!(5), $call!(6), $call!(7)]
    };
    (16, $call:ident) => {
        [
            $call!(0),
            $call!(1),
            $call!(2),
            $call!(3),
            $call!(4),
            $call!(5),
            $call!(6),
            $call!(7),
            $call!(8),
            $call!(9),
            $call!(10),
            $call!(11),
            $call!(12),
            $call!(13),
            $call!(14),
            $call!(15),
        ]
    };
}

pub(super) use {registers, stage, transposed};
