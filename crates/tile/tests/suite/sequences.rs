//! Sequences: what a tensor is to the caller, and what is refused.

use tilewright_layout::Refusal;
use tilewright_tile::{Element, Program, Sequence, TensorPurpose};

/// A program that adds `by` to what it loads.
fn adding(name: &str, input: &str, output: &str, by: i64, sizes: &str) -> Program {
    let text = format!(
        "tile {name} {{
    input  {input}: f32 {sizes}
    output {output}: f32 {sizes}
    grid ceil(N/4)
    store({output}, (block.x), load({input}, (4), (block.x)) + {by})
}}"
    );
    text.parse().unwrap()
}

/// A program that doubles a tensor in place.
fn doubling(tensor: &str) -> Program {
    let text = format!(
        "tile doubled {{
    inout  {tensor}: f32 N:1
    grid ceil(N/4)
    a = load({tensor}, (4), (block.x))
    store({tensor}, (block.x), a + a)
}}"
    );
    text.parse().unwrap()
}

/// A program that writes 9 to the first element.
fn first(tensor: &str) -> Program {
    let text = format!(
        "tile first {{
    output {tensor}: f32 N:1
    grid 1
    store({tensor}, (0), broadcast(f32(9), (1)))
}}"
    );
    text.parse().unwrap()
}

fn purposes(sequence: &Sequence) -> Vec<(String, TensorPurpose)> {
    sequence.tensors().unwrap().into_iter().map(|tensor| (tensor.name, tensor.purpose)).collect()
}

/// Programs, the purposes of their tensors, and results.
type Case<'n> = (Vec<Program>, Vec<(&'n str, TensorPurpose)>, Vec<(&'n str, [f64; 3])>);

#[test]
fn the_first_program_that_has_a_tensor_says_whether_it_is_given() {
    use TensorPurpose::{Changed, Input, Output, Workspace};

    let n = "N:1";
    // In turn: the programs; what each tensor is; and the results for an `x` of 1, 2, 3.
    let cases: Vec<Case<'_>> = vec![
        (
            vec![adding("a", "x", "w", 1, n), adding("b", "w", "y", 2, n)],
            vec![("x", Input), ("w", Workspace), ("y", Output)],
            vec![("y", [4.0, 5.0, 6.0])],
        ),
        // Written, then changed in place: a result as it is left.
        (
            vec![adding("a", "x", "y", 1, n), doubling("y")],
            vec![("x", Input), ("y", Output)],
            vec![("y", [4.0, 6.0, 8.0])],
        ),
        // Changed in place and read later: still given, and a result.
        (
            vec![doubling("x"), adding("a", "x", "y", 1, n)],
            vec![("x", Changed), ("y", Output)],
            vec![("x", [2.0, 4.0, 6.0]), ("y", [3.0, 5.0, 7.0])],
        ),
        // Read, then written.
        (
            vec![adding("a", "x", "w", 1, n), adding("b", "w", "x", 1, n)],
            vec![("x", Changed), ("w", Workspace)],
            vec![("x", [3.0, 4.0, 5.0])],
        ),
        // Written, changed, then read.
        (
            vec![adding("a", "x", "w", 1, n), doubling("w"), adding("b", "w", "y", 0, n)],
            vec![("x", Input), ("w", Workspace), ("y", Output)],
            vec![("y", [4.0, 6.0, 8.0])],
        ),
        // What the last program does not write stays.
        (
            vec![adding("a", "x", "y", 1, n), first("y")],
            vec![("x", Input), ("y", Output)],
            vec![("y", [9.0, 3.0, 4.0])],
        ),
    ];
    for (programs, wanted, results) in cases {
        let sequence = Sequence::new(programs);
        let own: Vec<(String, TensorPurpose)> =
            wanted.iter().map(|(name, purpose)| ((*name).to_string(), *purpose)).collect();
        assert_eq!(purposes(&sequence), own, "{sequence}");
        let workspaces: Vec<&str> =
            wanted.iter().filter(|(_, purpose)| *purpose == Workspace).map(|(name, _)| *name).collect();
        assert_eq!(sequence.workspaces(), workspaces, "{sequence}");
        let mut found = sequence.run(&[("N", 3)], &[("x", vec![1.0, 2.0, 3.0])]).unwrap();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let results: Vec<(String, Vec<Option<f64>>)> =
            results.iter().map(|(name, values)| ((*name).to_string(), values.map(Some).to_vec())).collect();
        assert_eq!(found, results, "{sequence}");
    }
}

#[test]
fn tensors_of_one_name_have_one_type() {
    let other: Program = "
    tile other {
        input  w: i32 N:1
        output y: i32 N:1
        grid ceil(N/4)
        store(y, (block.x), load(w, (4), (block.x)))
    }"
    .parse()
    .unwrap();
    let sequence = Sequence::new(vec![adding("a", "x", "w", 1, "N:1"), other]);
    let error = sequence.tensors().unwrap_err();
    assert_eq!(error.code(), "E1214");
    assert_eq!(error.to_string(), "`w` has elements of f32 in one program of the sequence, and of i32 in another");
    assert_eq!(sequence.compile(None).unwrap_err(), error);
    assert_eq!(sequence.run(&[("N", 3)], &[("x", vec![0.0; 3])]).unwrap_err(), error);
}

/// Two programs with sizes of their own besides a common one.
fn pitched() -> Sequence {
    let text = "
    tile a {
        input  x: f32 (N,4):(x_pitch{div=4},1)
        output w: f32 (N,4):(4,1)
        grid N
        store(w, (block.x, 0), load(x, (1,4), (block.x, 0)))
    }";
    let more = "
    tile b {
        input  w: f32 (N,4):(4,1)
        output y: f32 (N,4):(y_pitch{div=2},1)
        output z: f32 N:1
        grid N
        a = load(w, (1,4), (block.x, 0))
        store(y, (block.x, 0), a)
        store(z, (block.x), reshape(reduce_sum(a, 1), (1)))
    }";
    Sequence::new(vec![text.parse().unwrap(), more.parse().unwrap()])
}

#[test]
fn each_kernel_takes_the_sizes_that_it_names() {
    let kernels = pitched().compile(None).unwrap();
    assert_eq!(kernels.sizes(), ["N", "x_pitch", "y_pitch"]);
    let at = kernels.at(&[("y_pitch", 6), ("N", 3), ("x_pitch", 8)]).unwrap();
    let sorted = |sizes: &Vec<(&'static str, i64)>| {
        let mut sizes = sizes.clone();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sorted(&at.sizes[0]), [("N", 3), ("x_pitch", 8)]);
    assert_eq!(sorted(&at.sizes[1]), [("N", 3), ("y_pitch", 6)]);
    // The last row of a tensor ends with its own elements.
    assert_eq!(at.bytes, [4 * (2 * 8 + 4), 4 * 12, 4 * (2 * 6 + 4), 4 * 3]);
    assert_eq!((at.workspaces, at.workspace_bytes), (vec![None, Some(0), None, None], 48));

    let refused = |sizes: &[(&'static str, i64)]| {
        let error = kernels.at(sizes).unwrap_err();
        assert_eq!(error.code(), "E1002");
        error.to_string()
    };
    assert_eq!(
        refused(&[("N", 3), ("x_pitch", 8)]),
        "the size `y_pitch` is not given: `y`, an output of f32 (N,4):(y_pitch{div=2},1) has `y_pitch`"
    );
    assert!(refused(&[("N", 3)]).starts_with("the sizes x_pitch, y_pitch are not given"));
    let all = [("N", 3), ("x_pitch", 8), ("y_pitch", 6)];
    let more = |size| [&all[..], &[size]].concat();
    assert_eq!(
        refused(&more(("M", 3))),
        "no kernel of the sequence has a size `M`; their sizes are N, x_pitch, y_pitch"
    );
    assert_eq!(refused(&more(("N", 3))), "the size `N` is given twice");
    assert!(refused(&[("N", 3), ("x_pitch", 6), ("y_pitch", 6)]).contains("a multiple of 4"));
}

#[test]
fn tensors_are_given_by_their_names() {
    let kernels = pitched().compile(None).unwrap();
    assert_eq!((kernels.places(0), kernels.places(1), kernels.places(2)), (&[0, 1][..], &[1, 2, 3][..], &[][..]));
    assert_eq!(kernels.bind(&["z", "x", "y"]).unwrap(), [Some(1), None, Some(2), Some(0)]);
    // A workspace may be given.
    assert_eq!(kernels.bind(&["w", "x", "y", "z"]).unwrap(), [Some(1), Some(0), Some(2), Some(3)]);
    let refused = |names: &[&str]| {
        let error = kernels.bind(names).unwrap_err();
        assert_eq!(error.code(), "E1214");
        (error.to_string(), error.help().unwrap())
    };
    assert_eq!(refused(&["x", "y"]).0, "a tensor is not given: `z`, an output of f32 N:1");
    assert!(refused(&["w"]).0.starts_with("tensors are not given: `x`, an input of f32"));
    assert_eq!(refused(&["x", "y", "z", "y"]).0, "`y` is given twice");
    let (message, help) = refused(&["x", "y", "z", "ww"]);
    assert_eq!(message, "no program of the sequence has a tensor `ww`; the tensors are x, w, y, z");
    assert_eq!(help, "leave it out");
}

/// Workspaces lie apart, each where any kernel may access it.
#[test]
fn workspaces_do_not_overlap() {
    let n = "N:1";
    let programs = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "y")];
    let programs = programs.map(|(from, to)| adding(to, from, to, 1, n)).to_vec();
    let kernels = Sequence::new(programs).compile(None).unwrap();
    for count in [1_i64, 63, 64, 65, 1000] {
        let at = kernels.at(&[("N", count)]).unwrap();
        let spaces: Vec<(u64, u64)> =
            at.workspaces.iter().zip(&at.bytes).filter_map(|(at, bytes)| Some(((*at)?, *bytes))).collect();
        assert_eq!(spaces.len(), 3);
        for (number, (start, bytes)) in spaces.iter().enumerate() {
            assert_eq!((start % 256, *bytes), (0, 4 * count as u64));
            assert!(start + bytes <= at.workspace_bytes);
            for (other, more) in &spaces[..number] {
                assert!(other + more <= *start || start + bytes <= *other, "{spaces:?}");
            }
        }
        assert!(at.workspace_bytes <= 3 * 4 * count as u64 + 2 * 255);
    }
}

/// What a kernel takes besides sizes and tensors is known by its name and its type.
#[test]
fn numbers_are_listed_once() {
    let scaled = |name: &str, from: &str, to: &str| -> Program {
        let text = format!(
            "tile {name} {{
    input  {from}: f32 N:1
    output {to}: f32 N:1
    scalar factor: f32
    grid ceil(N/4)
    store({to}, (block.x), load({from}, (4), (block.x)) * factor)
}}"
        );
        text.parse().unwrap()
    };
    let kernels = Sequence::new(vec![scaled("a", "x", "w"), scaled("b", "w", "y")]).compile(None).unwrap();
    assert_eq!(kernels.numbers(), [("factor".to_string(), Element::F32)]);
    assert_eq!(kernels.at(&[("N", 2)]).unwrap().bytes, [8, 8, 8]);
}
