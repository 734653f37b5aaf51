//! Kernels of an operator, one after another on the memory that a launch gives them, beside the
//! meaning of its tile programs.
//!
//! Memory is bytes here, as on a device: a block for each tensor that the caller gives, and one
//! block for all workspaces. Bytes that nobody wrote are 0xff, which makes NaN of every number.

use tilewright_kernel::interpret::{Interpreter, Schedule};
use tilewright_ops::{Embedding, Operator, RmsNorm, Softmax};
use tilewright_tile::{Element, Sequence, TensorPurpose};

use crate::oracle::{close, numbers};

/// The bytes of numbers of f32 or i32.
fn bytes_of(element: Element, all: &[f64]) -> Vec<u8> {
    let bytes = |number: &f64| match element {
        Element::I32 => (*number as i32).to_le_bytes(),
        _ => (*number as f32).to_le_bytes(),
    };
    all.iter().flat_map(bytes).collect()
}

fn numbers_of(element: Element, bytes: &[u8]) -> Vec<f64> {
    let number = |bytes: &[u8]| {
        let bytes = bytes.try_into().unwrap();
        if element == Element::I32 {
            f64::from(i32::from_le_bytes(bytes))
        } else {
            f64::from(f32::from_le_bytes(bytes))
        }
    };
    bytes.chunks(4).map(number).collect()
}

/// Runs the kernels as a device would, and returns what the caller has afterwards.
fn launched(sequence: &Sequence, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> Vec<(String, Vec<f64>)> {
    let kernels = sequence.compile(None).unwrap();
    let at = kernels.at(sizes).unwrap();
    // The caller has all but the workspaces, in an order of its own.
    let mut names: Vec<&str> = kernels
        .tensors()
        .iter()
        .filter(|tensor| tensor.purpose != TensorPurpose::Workspace)
        .map(|tensor| tensor.name.as_str())
        .collect();
    names.reverse();
    let bound = kernels.bind(&names).unwrap();
    let place = |name: &str| kernels.tensors().iter().position(|tensor| tensor.name == name).unwrap();
    let mut given: Vec<Vec<u8>> = names.iter().map(|name| vec![0xff; at.bytes[place(name)] as usize]).collect();
    for (name, values) in inputs {
        let own = given.get_mut(names.iter().position(|own| own == name).unwrap()).unwrap();
        own.copy_from_slice(&bytes_of(kernels.tensors()[place(name)].element, values));
    }
    let mut room = vec![0xff; at.workspace_bytes as usize];
    for (number, kernel) in kernels.kernels().iter().enumerate() {
        let program = kernel.program();
        let mut interpreter = Interpreter::new(program, &at.sizes[number]).unwrap();
        let tensors: Vec<(&str, usize)> =
            program.tensors().map(|buffer| buffer.name.as_str()).zip(kernels.places(number).iter().copied()).collect();
        for (name, place) in &tensors {
            let many = interpreter.bytes_of(*name).unwrap();
            let memory = match (bound[*place], at.workspaces[*place]) {
                (Some(own), _) => &given[own][..many],
                (None, Some(first)) => &room[first as usize..][..many],
                (None, None) => panic!("{name} is neither given nor a workspace"),
            };
            interpreter.bytes(*name, memory).unwrap();
        }
        let run = interpreter.run(Schedule::ALL[0]).unwrap_or_else(|findings| panic!("{findings}\n{sequence}"));
        for (name, place) in &tensors {
            let result = run.bytes(*name).unwrap();
            let memory = match (bound[*place], at.workspaces[*place]) {
                (Some(own), _) => &mut given[own][..],
                (None, first) => &mut room[first.unwrap() as usize..],
            };
            memory[..result.len()].copy_from_slice(result);
        }
    }
    let element = |name: &str| kernels.tensors()[place(name)].element;
    names.iter().zip(&given).map(|(name, bytes)| ((*name).to_string(), numbers_of(element(name), bytes))).collect()
}

/// Compares the kernels with the meaning, and says how many programs and workspaces there are.
fn compared(sequence: &Sequence, sizes: &[(&str, i64)], inputs: &[(&str, Vec<f64>)]) -> [usize; 2] {
    let found = launched(sequence, sizes, inputs);
    for (name, exact) in sequence.run(sizes, inputs).unwrap() {
        let (_, own) = found.iter().find(|(own, _)| *own == name).unwrap();
        // What no program writes stays as it was.
        let exact: Vec<f64> = exact.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect();
        close(&name, own, &exact, 1e-5);
    }
    [sequence.programs().len(), sequence.workspaces().len()]
}

#[test]
fn kernels_joined_by_names_compute_what_their_programs_mean() {
    let norm = RmsNorm { length: 96, weight: true, ..RmsNorm::default() };
    let (rows, pitch) = (70, 100);
    // Rows with gaps, the last without.
    let tensor = |seed| numbers(pitch * (rows - 1) + 96, seed);
    let sizes = [("M", rows as i64), ("x_pitch", pitch as i64), ("y_pitch", pitch as i64)];
    let inputs = [("x", tensor(1)), ("weight", numbers(96, 2))];
    assert_eq!(compared(&norm.forward().unwrap(), &sizes, &inputs), [1, 0]);
    let inputs = [("x", tensor(1)), ("weight", numbers(96, 2)), ("d_y", tensor(3))];
    let [programs, workspaces] = compared(&norm.backward().unwrap(), &sizes, &inputs);
    assert!(programs > 1 && workspaces > 0);

    let softmax = Softmax { length: 33, ..Softmax::default() };
    let sizes = [("M", 5), ("x_pitch", 33), ("y_pitch", 33)];
    assert_eq!(
        compared(&softmax.backward().unwrap(), &sizes, &[("x", numbers(165, 4)), ("d_y", numbers(165, 5))])[0],
        1
    );

    // Sorts in several passes, each with counts: programs that change what earlier ones wrote.
    let embedding = Embedding { vocabulary: 300, length: 8, ..Embedding::default() };
    let indices: Vec<f64> = (0..200).map(|token| f64::from(token * 37 % 300)).collect();
    let inputs = [("indices", indices), ("d_y", numbers(200 * 8, 6))];
    let [programs, workspaces] = compared(&embedding.backward().unwrap(), &[("T", 200)], &inputs);
    assert!(programs > 5 && workspaces > 4);
}
