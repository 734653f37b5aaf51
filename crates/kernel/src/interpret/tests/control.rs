//! Loops, conditions, barriers that not all threads reach, instructions of whole warps, and runs
//! that end with a defect.

use super::assembler::{Assembler, finds, is_right, remember, runs};
use crate::element::Element;
use crate::interpret::{Defect, Interpreter, Schedule};
use crate::program::memory::Role;
use crate::program::operation::{Binary, Comparison, Matrix, Number, Operation, Shuffle};
use crate::program::register::Width;
use crate::program::scalar::Scalar;
use crate::program::{Chosen, Program, Step};
use tilewright_layout::symbolic::{Expr, Facts, Parameter};

#[test]
pub(super) fn loops_carry_values_all_at_once() {
    // Fibonacci numbers: the two carried values are swapped.
    let program = |iterations: i64| {
        let mut k = Assembler::new(1, 32);
        let target = k.global(Role::Output, Element::U32, 64);
        let thread = k.thread();
        let (from, to) = (k.constant(3), k.constant(3 + 2 * iterations));
        let (zero, one) = (k.constant(0), k.constant(1));
        let pair = k.iterations_carrying(from, to, 2, &[zero, one], |k, _, current| {
            vec![current[1], k.binary(Binary::Add, current[0], current[1])]
        });
        let address = k.scaled(thread, 8, 0);
        k.store_vector(target, address, 32, &pair);
        k.program()
    };
    for (iterations, expected) in [(0, [0, 1]), (1, [1, 1]), (2, [1, 2]), (10, [55, 89]), (20, [6765, 10946])] {
        assert_eq!(is_right(&program(iterations)).tensor::<u32>(0).unwrap()[..2], expected);
    }
}

#[test]
pub(super) fn loops_in_loops_have_their_own_variables() {
    let mut k = Assembler::new(1, 1);
    let target = k.global(Role::Output, Element::U32, 12);
    let (zero, three, four) = (k.constant(0), k.constant(3), k.constant(4));
    k.iterations(zero, three, |k, i| {
        k.iterations(zero, four, |k, j| {
            let row = k.scaled(i, 4, 0);
            let index = k.binary(Binary::Add, row, j);
            let address = k.scaled(index, 4, 0);
            let value = k.binary(Binary::Multiply, i, j);
            k.store(target, address, value);
        });
    });
    let expected: Vec<u32> = (0..12).map(|at| at / 4 * (at % 4)).collect();
    assert_eq!(is_right(&k.program()).tensor::<u32>(0).unwrap(), expected);
}

#[test]
pub(super) fn conditions_choose_lane_by_lane() {
    let mut k = Assembler::new(1, 64);
    let target = k.global(Role::Output, Element::U32, 64);
    let thread = k.thread();
    let outer = k.compare(Comparison::Less, thread, 40);
    let result = k.register(Width::Bits32);
    let (mut then, mut otherwise) = (thread, thread);
    k.branch(outer, |k| then = k.scaled(thread, 10, 1), |k| otherwise = k.scaled(thread, -1, 0));
    let Some(Step::Branch(branch)) = k.last() else { panic!("a condition comes last") };
    branch.chosen.push(Chosen { then, otherwise, result });
    let address = k.scaled(thread, 4, 0);
    k.store(target, address, result);
    let run = is_right(&k.program());
    let expected: Vec<u32> = (0..64_u32).map(|t| if t < 40 { 10 * t + 1 } else { t.wrapping_neg() }).collect();
    assert_eq!(run.tensor::<u32>(0).unwrap(), expected);
}

#[test]
pub(super) fn loop_bounds_that_differ_are_found() {
    // The bounds depend on the lane, on the warp, or on the block.
    let program = |divisor: i64, blocks: i64| {
        let mut k = Assembler::new(blocks, 64);
        let (thread, block) = (k.thread(), k.block());
        let divisor = k.constant(divisor);
        let count = k.binary(Binary::Divide, thread, divisor);
        let count = k.binary(Binary::Add, count, block);
        let zero = k.constant(0);
        k.iterations(zero, count, |k, iteration| {
            k.scaled(iteration, 2, 0);
        });
        k.program()
    };
    is_right(&program(64, 3));
    finds(&program(32, 1), "E1026");
    finds(&program(16, 1), "E1026");
    finds(&program(1, 2), "E1026");
}

#[test]
pub(super) fn inner_loops_may_differ_from_iteration_to_iteration() {
    let program = |by_warp: bool| {
        let mut k = Assembler::new(1, 64);
        let thread = k.thread();
        let (zero, four, warp) = (k.constant(0), k.constant(4), k.constant(32));
        let warp = k.binary(Binary::Divide, thread, warp);
        k.iterations(zero, four, |k, i| {
            let end = if by_warp { k.binary(Binary::Add, i, warp) } else { i };
            k.iterations(zero, end, |k, j| {
                k.scaled(j, 2, 0);
            });
        });
        k.program()
    };
    is_right(&program(false));
    finds(&program(true), "E1026");
}

#[test]
pub(super) fn loop_variables_stay_in_range() {
    let program = |from: i64, to: i64, step: u32| {
        let mut k = Assembler::new(1, 1);
        let (from, to) = (k.constant(from), k.constant(to));
        k.iterations_carrying(from, to, step, &[], |_, _, _| Vec::new());
        k.program()
    };
    let end = i64::from(i32::MAX);
    is_right(&program(end - 10, end, 1));
    is_right(&program(end - 10, end - 1, 3));
    is_right(&program(end, -end, 3));
    finds(&program(end - 10, end, 3), "E1026");
    finds(&program(end - 1, end, 1 << 31), "E1026");
    finds(&program(0, end, 1 << 31), "E1026");
}

#[test]
pub(super) fn barriers_that_not_all_reach_are_found() {
    // A warp instruction in a condition of lanes, of a warp, and of several warps.
    let program = |end: i64, threads: u32| {
        let mut k = Assembler::new(1, threads);
        k.below(end, |k| k.barrier());
        k.program()
    };
    is_right(&program(128, 128));
    is_right(&program(0, 128));
    is_right(&program(40, 40));
    for (end, threads) in [(16, 128), (32, 128), (64, 128), (96, 128), (33, 40)] {
        finds(&program(end, threads), "E1021");
    }
    // All lanes of a warp take part, independent of other warps.
    let program = |end: i64| {
        let mut k = Assembler::new(1, 64);
        k.below(end, |k| k.plain(Operation::WarpBarrier));
        k.program()
    };
    is_right(&program(32));
    finds(&program(31), "E1021");
    finds(&program(1), "E1021");
}

#[test]
pub(super) fn named_barriers_of_different_numbers_are_found() {
    let program = |first: u32, second: u32| {
        let mut k = Assembler::new(1, 64);
        let thread = k.thread();
        let low = k.compare(Comparison::Less, thread, 32);
        let at = |threads| Operation::NamedBarrier { number: 1, threads };
        k.branch(low, |k| k.plain(at(first)), |k| k.plain(at(second)));
        k.program()
    };
    is_right(&program(64, 64));
    is_right(&program(32, 32));
    finds(&program(64, 96), "E1021");
    finds(&program(96, 64), "E1021");
}

#[test]
pub(super) fn deadlocks_are_found() {
    // Too few threads arrive; or two warps wait for two others in opposite orders.
    let program = |threads: u32| {
        let mut k = Assembler::new(1, 64);
        k.plain(Operation::NamedBarrier { number: 3, threads });
        k.program()
    };
    is_right(&program(64));
    finds(&program(96), "E1022");
    let crossed = |crossed: bool| {
        let mut k = Assembler::new(1, 64);
        let thread = k.thread();
        let low = k.compare(Comparison::Less, thread, 32);
        let at = |number| Operation::NamedBarrier { number, threads: 64 };
        let meet = |k: &mut Assembler, numbers: [u32; 2]| numbers.into_iter().for_each(|number| k.plain(at(number)));
        k.branch(low, |k| meet(k, [1, 2]), |k| meet(k, if crossed { [2, 1] } else { [1, 2] }));
        k.program()
    };
    is_right(&crossed(false));
    finds(&crossed(true), "E1022");
    // One warp waits at barrier 0, and the other one at a named barrier.
    let mixed = |named: bool| {
        let mut k = Assembler::new(1, 64);
        let thread = k.thread();
        let low = k.compare(Comparison::Less, thread, 32);
        let other = if named { Operation::NamedBarrier { number: 1, threads: 64 } } else { Operation::Barrier };
        k.branch(low, |k| k.barrier(), |k| k.plain(other));
        k.program()
    };
    is_right(&mixed(false));
    finds(&mixed(true), "E1022");
    let findings = runs(&mixed(true)).remove(0).unwrap_err();
    let Defect::Deadlock { waiting } = &findings[0].defect else { panic!("{}", findings[0]) };
    let threads: Vec<(u32, u32)> = waiting.iter().map(|waiting| waiting.threads).collect();
    assert_eq!(threads, [(0, 31), (32, 63)]);
    assert!(waiting.iter().all(|waiting| waiting.source.is_some()));
}

#[test]
pub(super) fn instructions_of_whole_warps_need_all_lanes() {
    let operations: [fn(&mut Assembler); 4] = [
        |k| {
            let thread = k.thread();
            k.one(Operation::Shuffle(Shuffle::Butterfly(1)), &[thread], Width::Bits32);
        },
        |k| {
            let thread = k.thread();
            let odd = k.compare(Comparison::Greater, thread, 3);
            k.one(Operation::Ballot, &[odd], Width::Bits32);
        },
        |k| {
            let thread = k.thread();
            k.emit(Operation::Multiply(Matrix::Bf16F32), &[thread; 10], &[Width::Bits32; 4]);
        },
        |k| {
            let shared = k.raw().buffers.iter().position(|buffer| buffer.name == "rows").unwrap();
            let shared = crate::program::memory::BufferId(shared as u32);
            let thread = k.thread();
            let (lane, mask) = (thread, k.constant(31));
            let row = k.binary(Binary::And, lane, mask);
            let address = k.scaled(row, 16, 0);
            let access = k.access(shared, 32, 1);
            k.emit(Operation::StoreMatrix { access, transposed: false }, &[address, thread], &[]);
        },
    ];
    let program = |operation: fn(&mut Assembler), end: i64| {
        let mut k = Assembler::new(1, 32);
        k.shared(Element::U16, 256);
        k.raw().buffers[0].name = "rows".to_string();
        k.below(end, operation);
        k.program()
    };
    for operation in operations {
        is_right(&program(operation, 32));
        is_right(&program(operation, 0));
        finds(&program(operation, 31), "E1027");
        finds(&program(operation, 8), "E1027");
        finds(&program(operation, 1), "E1027");
    }
}

#[test]
pub(super) fn warps_that_are_not_full_have_no_whole_instructions() {
    let program = |threads: u32| {
        let mut k = Assembler::new(1, threads);
        let thread = k.thread();
        k.one(Operation::Shuffle(Shuffle::Down(1)), &[thread], Width::Bits32);
        k.program()
    };
    is_right(&program(64));
    finds(&program(63), "E1027");
    finds(&program(40), "E1027");
    finds(&program(1), "E1027");
}

#[test]
pub(super) fn traps_are_found() {
    let program = |thread: i64, blocks: i64| {
        let mut k = Assembler::new(blocks, 64);
        k.only(thread, |k| k.plain(Operation::Trap));
        k.program()
    };
    is_right(&program(64, 3));
    finds(&program(63, 3), "E1030");
    finds(&program(0, 1), "E1030");
    finds(&program(32, 2), "E1030");
}

#[test]
pub(super) fn a_run_has_a_limit() {
    let mut k = Assembler::new(7, 32);
    let (zero, end) = (k.constant(0), k.constant(100));
    k.iterations(zero, end, |k, iteration| {
        k.scaled(iteration, 1, 1);
    });
    let program = k.program();
    let mut interpreter = Interpreter::new(&program, &[]).unwrap();
    interpreter.run(Schedule::ALL[0]).unwrap();
    // A block has about 400 instructions.
    for (limit, finished) in [(1, 0), (1000, 2), (2500, 6)] {
        interpreter.limit(limit);
        for schedule in Schedule::ALL {
            let findings = interpreter.run(schedule).unwrap_err();
            let Defect::StepLimit { steps, blocks, of } = findings[0].defect else { panic!("{}", findings[0]) };
            assert_eq!((findings[0].code(), steps, blocks, of), ("E1029", limit, finished, 7));
        }
    }
}

#[test]
pub(super) fn results_that_depend_on_the_schedule_are_found() {
    use crate::program::operation::AtomicOperation::{self, Add, CompareExchange, Exchange, Maximum};
    // The last thread wins (an exchange), or the first one (a compare-and-swap), or each thread
    // takes the next place of a list (an addition).
    let program = |operation: AtomicOperation| {
        let mut k = Assembler::new(1, 64);
        let memory = k.global(Role::Both, Element::U32, 1);
        let list = k.global(Role::Both, Element::U32, 64);
        let zero = k.wide_constant(0);
        let (thread, five, one) = (k.thread(), k.constant(5), k.constant(1));
        let inputs = match operation {
            CompareExchange => vec![zero, five, thread],
            Add => vec![zero, one],
            _ => vec![zero, thread],
        };
        let access = k.access(memory, 32, 1);
        let before = k.one(Operation::Atomic(operation, Number::U32, access), &inputs, Width::Bits32);
        if operation == Add {
            let place = k.scaled(before, 4, -20);
            k.store(list, place, thread);
        }
        k.program()
    };
    let check = |program: &Program| {
        let mut interpreter = Interpreter::new(program, &[]).unwrap();
        interpreter.tensor(0, &[5_u32]).unwrap().tensor(1, &[0_u32; 64]).unwrap();
        interpreter.check()
    };
    assert_eq!(check(&program(Maximum)).unwrap().run.tensor::<u32>(0).unwrap(), [63]);
    for operation in [Exchange, CompareExchange, Add] {
        let program = program(operation);
        let findings = check(&program).unwrap_err();
        assert_eq!(findings[0].code(), "E1028");
        remember(&program, findings.iter());
    }
}

#[test]
pub(super) fn floating_point_sums_in_any_order_are_not_compared() {
    use crate::program::operation::AtomicOperation;
    let mut k = Assembler::new(64, 64);
    let memory = k.global(Role::Both, Element::F32, 1);
    let input = k.global(Role::Input, Element::F32, 4096);
    let zero = k.wide_constant(0);
    let (thread, block) = (k.thread(), k.block());
    let row = k.scaled(block, 256, 0);
    let column = k.scaled(thread, 4, 0);
    let address = k.binary(Binary::Add, row, column);
    let value = k.load(input, address);
    let access = k.access(memory, 32, 1);
    k.emit(Operation::Reduce(AtomicOperation::Add, Number::F32, access), &[zero, value], &[]);
    let program = k.program();
    let mut interpreter = Interpreter::new(&program, &[]).unwrap();
    let values: Vec<f32> = (0..4096).map(|at| 1.0 / (at + 1) as f32).collect();
    interpreter.tensor(0, &[0.0_f32]).unwrap().tensor(1, &values).unwrap();
    let checked = interpreter.check().unwrap();
    assert_eq!(checked.uncompared, ["t0"]);
    let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
    let found = checked.run.tensor::<f32>(0).unwrap()[0];
    assert!((f64::from(found) - sum).abs() < 1e-3, "{found} {sum}");
}

#[test]
pub(super) fn sizes_have_to_be_admitted() {
    let mut k = Assembler::new(1, 64);
    let facts = Facts::positive().multiple_of(64).unwrap().at_most(640).unwrap();
    let size = Parameter::named("M", facts).unwrap();
    k.raw().sizes.push(size.clone());
    let target = k.global(Role::Output, Element::U32, 0);
    k.raw().buffers[0].elements = Expr::from(size.clone());
    k.raw().buffers[0].layout = "M:1".to_string();
    k.raw().scalars.push(Scalar::Size { value: Expr::from(size), bits: 32 });
    let (block, thread) = (k.block(), k.thread());
    let count = k.one(Operation::Scalar(0), &[], Width::Bits32);
    let row = k.scaled(block, 64, 0);
    let index = k.binary(Binary::Add, row, thread);
    let address = k.scaled(index, 4, 0);
    k.store(target, address, count);
    let program = k.program();
    let code = |sizes: &[(&str, i64)]| Interpreter::new(&program, sizes).map(|_| ()).unwrap_err().code();
    assert_eq!(code(&[]), "E1002");
    assert_eq!(code(&[("M", 65)]), "E1002");
    assert_eq!(code(&[("M", 704)]), "E1002");
    assert_eq!(code(&[("N", 64)]), "E1002");
    assert_eq!(code(&[("M", 64), ("M", 64)]), "E1002");
    let interpreter = Interpreter::new(&program, &[("M", 64)]).unwrap();
    let run = interpreter.run(Schedule::ALL[0]).unwrap();
    assert_eq!(run.tensor::<u32>(0).unwrap(), [64; 64]);
    assert_eq!(run.tensor::<f32>(0).unwrap_err().code(), "E1003");
    assert_eq!(run.tensor::<u32>(1).unwrap_err().code(), "E1003");
}

#[test]
pub(super) fn tensors_have_to_fit() {
    let mut k = Assembler::new(1, 32);
    k.global(Role::Input, Element::F32, 8);
    k.raw().scalars.push(Scalar::Given { name: "alpha".to_string(), element: Element::F32 });
    k.one(Operation::Scalar(0), &[], Width::Bits32);
    let program = k.program();
    let mut interpreter = Interpreter::new(&program, &[]).unwrap();
    assert_eq!(interpreter.is_complete().unwrap_err().code(), "E1003");
    assert_eq!(interpreter.tensor(0, &[1.0_f32; 7]).unwrap_err().code(), "E1003");
    assert_eq!(interpreter.tensor(0, &[1_u32; 8]).unwrap_err().code(), "E1003");
    assert_eq!(interpreter.tensor(1, &[1.0_f32; 8]).unwrap_err().code(), "E1003");
    assert_eq!(interpreter.bytes(0, &[0; 31]).unwrap_err().code(), "E1003");
    interpreter.tensor(0, &[1.0_f32; 8]).unwrap();
    assert_eq!(interpreter.is_complete().unwrap_err().code(), "E1003");
    assert_eq!(interpreter.number("beta", 1.0_f32).unwrap_err().code(), "E1003");
    assert_eq!(interpreter.number("alpha", 1_i32).unwrap_err().code(), "E1003");
    interpreter.number("alpha", 1.0_f32).unwrap().is_complete().unwrap();
}

#[test]
pub(super) fn tensors_have_a_limit() {
    let mut k = Assembler::new(1, 32);
    k.global(Role::Both, Element::F64, 1 << 40);
    let error = Interpreter::new(&k.program(), &[]).unwrap_err();
    assert_eq!(error.code(), "E1004");
}

#[test]
fn grids_are_those_that_a_launch_takes() {
    for (axis, most) in [(1 << 31) - 1, 65_535, 65_535].into_iter().enumerate() {
        for (blocks, taken) in [(0, true), (most, true), (most + 1, false), (1 << 40, false), (-1, false)] {
            let mut program = Assembler::new(1, 32).program();
            program.grid[axis] = blocks.into();
            let launch = program.launch(&[]).map(|launch| launch.grid[axis]);
            assert_eq!(launch.as_ref().ok().map(|count| i64::from(*count)), taken.then_some(blocks));
            let refused = launch.err().map(|error| error.code());
            assert_eq!(Interpreter::new(&program, &[]).err().map(|error| error.code()), refused);
            assert_eq!(refused, (!taken).then_some("E1002"));
        }
    }
}

#[test]
pub(super) fn malformed_programs_are_refused() {
    let refused = |write: fn(&mut Assembler)| {
        let mut k = Assembler::new(1, 32);
        k.shared(Element::U32, 32);
        write(&mut k);
        let error = Interpreter::new(&k.program(), &[]).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "E1001", "{error}");
    };
    // Refused registers: not written, of another width, too many, or read outside of the body that
    // wrote them.
    refused(|k| {
        let never = k.register(Width::Bits32);
        k.scaled(never, 1, 1);
    });
    refused(|k| {
        let wide = k.wide_constant(1);
        k.one(Operation::Unary(crate::program::operation::Unary::Negate, Number::I32), &[wide], Width::Bits32);
    });
    refused(|k| {
        let one = k.constant(1);
        k.one(Operation::Select, &[one, one, one], Width::Bits32);
    });
    refused(|k| {
        let mut inner = k.thread();
        k.below(3, |k| inner = k.constant(1));
        k.scaled(inner, 1, 1);
    });
    refused(|k| {
        let one = k.constant(1);
        let access = k.access(crate::program::memory::BufferId(0), 64, 4);
        k.emit(Operation::Store(access), &[one, one], &[]);
    });
    refused(|k| {
        k.one(Operation::Scalar(3), &[], Width::Bits32);
    });
    refused(|k| k.raw().threads = 1025);
    refused(|k| k.raw().threads = 0);
    refused(|k| k.raw().shared_bytes = 64);
    refused(|k| k.raw().buffers[0].alignment = 12);
}

#[test]
pub(super) fn loop_bounds_of_one_warp_that_differ_are_found() {
    let program = |divisor: i64| {
        let mut k = Assembler::new(1, 32);
        let (thread, zero, divisor) = (k.thread(), k.constant(0), k.constant(divisor));
        let count = k.binary(Binary::Divide, thread, divisor);
        k.iterations(zero, count, |_, _| {});
        k.program()
    };
    is_right(&program(32));
    finds(&program(31), "E1026");
    finds(&program(1), "E1026");
}
