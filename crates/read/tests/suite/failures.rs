//! Why builds failed: messages of nvcc 13, gcc 12, clang 14 and CuTe's Python. Those of nvcc and
//! gcc are cut to the frames that speak of layouts.

use tilewright_read::{Failure, Options, Verdict, failures};

fn of(log: &str) -> Vec<Failure> {
    failures(log, &Options::default())
}

/// The operation with its operands, as it would be written.
fn call(failure: &Failure) -> String {
    let operands: Vec<String> = failure.operands.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}({})", failure.operation, operands.join(", "))
}

#[test]
fn the_division_that_the_user_wrote_is_named() {
    for (log, called_at) in [
        (include_str!("../logs/nvcc-divide.log"), "errs.cu:7"),
        (include_str!("../logs/gcc-divide.log"), "errs.cu:7"),
        (include_str!("../logs/clang-divide.log"), "div.cu:6"),
    ] {
        let found = of(log);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(call(&found[0]), "zipped_divide(A=(4,6):(1,10), Tiler=(5,2):(1,12))");
        assert_eq!(found[0].called_at.as_deref(), Some(called_at));
        assert_eq!(found[0].condition, "Shape Divisibility Condition");
        let Verdict::Refused { message, .. } = &found[0].verdict else { panic!("{:?}", found[0].verdict) };
        assert!(!message.is_empty());
    }
}

#[test]
fn a_composition_shows_both_layouts() {
    for (log, called_at) in [
        (include_str!("../logs/nvcc-composition.log"), "errs.cu:4"),
        (include_str!("../logs/gcc-composition.log"), "errs.cu:4"),
        (include_str!("../logs/clang-composition.log"), "comp.cu:5"),
    ] {
        let found = of(log);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(call(&found[0]), "composition(A=(6,2,3):(1,7,24), B=(2,3):(8,1))");
        assert_eq!(found[0].called_at.as_deref(), Some(called_at));
        assert_eq!(found[0].condition, "Stride Divisibility Condition");
    }
}

#[test]
fn extents_that_differ_are_told() {
    for log in [
        include_str!("../logs/nvcc-gemm.log"),
        include_str!("../logs/gcc-gemm.log"),
        include_str!("../logs/clang-gemm.log"),
    ] {
        let found = of(log);
        assert!(found.len() >= 2, "{found:#?}");
        assert_eq!(found[0].operation, "gemm");
        assert_eq!(found[0].condition, "size<1>(B) == size<2>(C)");
        let Verdict::Extents { sides, .. } = &found[0].verdict else { panic!("{:?}", found[0].verdict) };
        assert_eq!(*sides, [("size<1>(B)".to_owned(), Some(3)), ("size<2>(C)".to_owned(), Some(2))]);
        let Verdict::Extents { sides, .. } = &found[1].verdict else { panic!("{:?}", found[1].verdict) };
        assert_eq!(*sides, [("size<2>(A)".to_owned(), Some(2)), ("size<2>(B)".to_owned(), Some(3))]);
    }
}

#[test]
fn a_comparison_without_layouts_says_so() {
    let found = of(include_str!("../logs/gcc-extents.log"));
    let conditions: Vec<&str> = found.iter().map(|failure| failure.condition.as_str()).collect();
    assert_eq!(conditions, ["size<2>(s2r_rA) == size<2>(mma_rA)", "shape<2>(s2r_rA) == shape<2>(mma_rA)"]);
    for failure in &found {
        let Verdict::Extents { sides, .. } = &failure.verdict else { panic!("{:?}", failure.verdict) };
        assert!(sides.iter().all(|(_, extent)| extent.is_none()));
    }
}

/// clang names neither the arguments of a function nor, for the second error, its frames.
#[test]
fn layouts_without_names_are_numbered() {
    let found = of(include_str!("../logs/clang-extents.log"));
    assert_eq!(call(&found[0]), "use(first=(1,4,2):(0,1,4), second=(1,4,4):(0,1,4))");
    let conditions: Vec<&str> = found.iter().map(|failure| failure.condition.as_str()).collect();
    assert_eq!(conditions, ["size<2>(s2r_rA) == size<2>(mma_rA)", "shape<2>(s2r_rA) == shape<2>(mma_rA)"]);
    assert!(found[1].operands.is_empty());
}

/// A condition that compares no extents is shown with the layouts of the function that was called.
#[test]
fn another_condition_has_its_layouts() {
    let found = of(include_str!("../logs/clang-copy.log"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].condition, "TiledCopy uses too few vals for selected CopyAtom");
    assert_eq!(found[0].called_at.as_deref(), Some("copy.cu:7"));
    assert_eq!(call(&found[0]), "make_tiled_copy(first=(16,2):(1,16), second=(4,1):(1,0))");
    assert!(matches!(&found[0].verdict, Verdict::Unread(why) if why.contains("layouts of the call")));
}

#[test]
fn a_division_of_shapes() {
    for log in [include_str!("../logs/gcc-shape-div.log"), include_str!("../logs/clang-shape-div.log")] {
        let found = of(log);
        assert_eq!(call(&found[0]), "shape_div(IntTupleA=(6,4), IntTupleB=(4,3))");
        assert!(matches!(found[0].verdict, Verdict::Refused { .. }), "{:?}", found[0].verdict);
    }
}

/// What CuTe's condition refuses, and the algebra has: 9i + j, since B(i,j) = 8i + j never carries.
#[test]
fn a_result_that_exists_is_given() {
    let found = of(include_str!("../logs/nvcc-composition.log"));
    let Verdict::Exists { value, .. } = &found[0].verdict else { panic!("{:?}", found[0].verdict) };
    let (result, [a, b]) = (value.integer_layout().unwrap(), ["(6,2,3):(1,7,24)", "(2,3):(8,1)"]);
    let [a, b]: [tilewright_layout::Layout; 2] = [a, b].map(|text| text.parse().unwrap());
    for index in 0..6 {
        assert_eq!(result.eval(&index).unwrap(), a.eval(&b.eval(&index).unwrap()).unwrap());
    }
}

#[test]
fn the_error_of_cutes_python() {
    let log = "k.cu:9: error: unable to compute the following composition: '!cute.layout<\"(2,3):(4,1)\">' o \
               '!cute.layout<\"(3,4):(3,1)\">'\n";
    let found = of(log);
    assert_eq!(call(&found[0]), "composition(A=(2,3):(4,1), B=(3,4):(3,1))");
    match &found[0].verdict {
        // R(c) = A(B(c)) at every coordinate, or a coordinate at which the sums carry.
        Verdict::Exists { value, .. } => assert!(value.integer_layout().is_some()),
        Verdict::Refused { code, message, .. } => assert!(*code == "E0108" && message.contains("mode"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn clang_names_functions_by_their_arguments() {
    let log = "cute/layout.hpp:1101:24: error: static assertion failed due to requirement 'false': Shape Divisibility Condition\n\
               cute/layout.hpp:1140:10: note: in instantiation of function template specialization \
               'cute::composition<cute::tuple<cute::C<4>, cute::C<6>>, cute::tuple<cute::C<1>, cute::C<10>>, \
               cute::C<5>, cute::C<1>>' requested here\n";
    let found = of(log);
    assert_eq!(call(&found[0]), "composition(A=(4,6):(1,10), B=5:1)");
}

/// The screen of a long log holds the failure once.
#[test]
fn a_long_log_has_one_failure() {
    let mut log = String::new();
    for line in 0..500 {
        log.push_str(&format!("[{line}/500] Building CUDA object kernel_{line}.cu.o\n"));
    }
    log.push_str(include_str!("../logs/nvcc-divide.log"));
    log.push_str(&"warning: variable was declared but never referenced\n".repeat(500));
    let found = of(&log);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].place.line, 501);
}

/// Whatever clang repeats, each failure is told once: 2,904 lines of it have nine.
#[test]
fn repeated_errors_of_clang_are_told_once() {
    let logs = [
        include_str!("../logs/clang-composition.log"),
        include_str!("../logs/clang-copy.log"),
        include_str!("../logs/clang-divide.log"),
        include_str!("../logs/clang-extents.log"),
        include_str!("../logs/clang-gemm.log"),
        include_str!("../logs/clang-shape-div.log"),
    ];
    let log = logs.concat().repeat(12);
    assert_eq!(log.lines().count(), 2_904);
    assert_eq!(of(&log).len(), logs.iter().map(|log| of(log).len()).sum::<usize>());
}

/// Colours of the compilers, and what launchers and loggers write before each line, change nothing.
#[test]
fn a_log_in_colours_and_behind_heads_of_lines_is_the_same() {
    let logs = [
        include_str!("../logs/nvcc-divide.log"),
        include_str!("../logs/nvcc-gemm.log"),
        include_str!("../logs/gcc-divide.log"),
        include_str!("../logs/gcc-gemm.log"),
        include_str!("../logs/gcc-shape-div.log"),
        include_str!("../logs/clang-divide.log"),
        include_str!("../logs/clang-composition.log"),
        include_str!("../logs/clang-gemm.log"),
        include_str!("../logs/clang-shape-div.log"),
    ];
    let coloured = |log: &str| {
        let marked = log
            .replace("error:", "\u{1b}[0;1;31merror: \u{1b}[0m\u{1b}[1m")
            .replace('‘', "‘\u{1b}[01m\u{1b}[K")
            .replace('’', "\u{1b}[m\u{1b}[K’");
        marked.lines().map(|line| format!("\u{1b}[1m{line}\u{1b}[0m\n")).collect::<String>()
    };
    let headed = |log: &str, head: &str| log.lines().map(|line| format!("{head}{line}\n")).collect::<String>();
    for log in logs {
        let plain = of(log);
        assert!(!plain.is_empty());
        let others = [
            coloured(log),
            headed(log, "[rank0]: "),
            headed(log, "2026-03-01T12:30:01.5123456Z "),
            headed(log, "[rank3]: W0312 12:30:01.123456 139812 torch/utils/cpp.py:12] "),
            headed(&coloured(log), "2026-03-01 12:30:01,512 "),
            headed(log, "> "),
            log.replace('\n', "\r\n"),
        ];
        for other in others {
            let found = of(&other);
            let told = |all: &[Failure]| -> Vec<_> {
                let told = all.iter().map(|own| (call(own), own.called_at.clone(), own.condition.clone()));
                told.zip(all.iter().map(|own| (own.verdict.clone(), own.place.line))).collect()
            };
            assert_eq!(told(&found), told(&plain), "{other}");
        }
    }
}
