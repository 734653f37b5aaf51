//! Atoms that the author names: the same meaning by the instruction that is named, or a refusal.

use super::run::{Case, kernel};
use super::{compare, numbers};
use tilewright_kernel::machine::Machine;
use tilewright_kernel::ptx::{self, Target};
use tilewright_layout::Refusal as _;
use tilewright_tile::{Compiled, Program, interpret};

/// A product of which each value may be given by an atom.
fn product([m, n]: [i64; 2], [a, b, sum]: [&str; 3]) -> String {
    let by = |value: &str, atom: &str| match atom {
        "" => value.to_string(),
        atom => format!("atom({value}, \"{atom}\")"),
    };
    let a = by(&format!("load(a, ({m},64), (block.x, k))"), a);
    let b = by(&format!("load(b, (64,{n}), (k, block.y))"), b);
    let sum = by(&format!("dot({a}, {b}, sum)"), sum);
    format!(
        "
tile product {{
    input  a: bf16 (M,K{{div=8}}):(K,1)
    input  b: bf16 (K,N{{div=8}}):(N,1)
    output d: bf16 (M,N):(N,1)
    grid ceil(M/{m}), ceil(N/{n})
    loop k < ceil(K/64) with sum = broadcast(f32(0), ({m},{n})) {{
        next {sum}
    }} -> sum
    store(d, (block.x, block.y), bf16(sum))
}}"
    )
}

/// Checks a program on the interpreters, and returns its PTX.
fn agrees(text: &str, target: Target) -> String {
    let [m, n, k] = [70, 136, 72];
    let [a, b] = [(1, m * k), (2, k * n)].map(|(seed, count)| numbers(seed, count, 1.0));
    let mut wanted = Vec::new();
    for row in 0..m {
        for column in 0..n {
            wanted.push((0..k).map(|at| a[row * k + at] * b[at * n + column]).sum::<f64>());
        }
    }
    let sizes = [("M", m as i64), ("N", n as i64), ("K", k as i64)];
    let case = Case::new(&sizes, &[("a", a), ("b", b)]);
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    // What is printed reads back, atoms and all.
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    let meant = interpret::run(&program, &case.sizes, &case.inputs).unwrap();
    compare("the interpreter", &meant[0].1, &wanted, 1.0 / 16.0);
    let compiled = program.compile(&Machine::of_target(target)).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let found: Vec<Option<f64>> = kernel(&compiled, &case, &meant[0].0).into_iter().map(Some).collect();
    compare("the kernel", &found, &wanted, 1.0 / 16.0);
    ptx_of(&compiled, target)
}

fn ptx_of(compiled: &Compiled, target: Target) -> String {
    ptx::write(compiled.kernel().program(), target).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn products_are_those_of_the_instruction_that_is_named() {
    const WARP: &str = "SM80_16x8x16_F32BF16BF16F32_TN";
    // Without a name Hopper multiplies by groups, all columns at once.
    let own = agrees(&product([64, 128], ["", "", ""]), Target::Sm90a);
    assert!(own.contains("m64n128k16"), "{own}");
    let warps = agrees(&product([64, 128], ["", "", WARP]), Target::Sm90a);
    assert!(warps.contains("mma.sync.aligned.m16n8k16") && !warps.contains("wgmma"));
    let parts = agrees(&product([64, 128], ["", "", "SM90_64x64x16_F32BF16BF16_SS"]), Target::Sm90a);
    assert!(parts.contains("m64n64k16") && !parts.contains("m64n128k16"));
    assert!(agrees(&product([128, 64], ["", "", WARP]), Target::Sm80).contains("mma.sync"));
}

#[test]
fn operands_come_as_they_are_named() {
    let read = "UniversalCopy<uint64_t>";
    let threads = "SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>";
    let engine = "SM90_TMA_LOAD";
    let copied = agrees(&product([64, 64], [read, threads, ""]), Target::Sm80);
    // One operand goes to registers at once, and the other one through shared memory.
    assert!(copied.contains("cp.async") && copied.contains("ld.global.v2.b32") && !copied.contains("ld.global.v4"));
    let by_threads = agrees(&product([64, 64], [threads, threads, ""]), Target::Sm90a);
    assert!(by_threads.contains("cp.async.cg") && !by_threads.contains("cp.async.bulk"));
    assert!(agrees(&product([64, 64], [engine, engine, ""]), Target::Sm90a).contains("cp.async.bulk.tensor"));
}

#[test]
fn what_cannot_be_given_so_is_refused() {
    let refused = |text: &str, target: Target| match text.parse::<Program>() {
        Ok(program) => program.compile(&Machine::of_target(target)).map(|_| ()).unwrap_err(),
        Err(error) => error,
    };
    let rows = |value: &str| {
        format!("tile t {{\ninput x: f32 (M,64):(64,1)\noutput y: f32 (M,64):(64,1)\nstore(y, (0, 0), {value})\n}}")
    };
    let load = "load(x, (4,64), (0, 0))";
    let cases = [
        (rows(&format!("atom({load}, \"SM80_16X8\")")), "E1203", "no atom `SM80_16X8`"),
        (rows(&format!("atom(exp({load}), \"UniversalCopy<uint64_t>\")")), "E1212", "is neither"),
        (rows(&format!("atom({load}, \"SM75_U32x4_LDSM_N\")")), "E1212", "a load is one by"),
        (rows(&format!("atom({load}, \"UniversalCopy<uint8_t>\")")), "E1212", "reads 8 bits at once"),
        (rows(&format!("atom({load}, \"SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>\")")), "E1212", "only products take"),
        (
            rows(&format!("atom(atom({load}, \"UniversalCopy<uint64_t>\"), \"UniversalCopy<uint32_t>\")")),
            "E1212",
            "another atom",
        ),
        (product([64, 64], ["", "", "SM80_16x8x16_F32F16F16F32_TN"]), "E1212", "operands of bf16"),
        (product([64, 64], ["", "", "SM80_16x8x8_F32BF16BF16F32_TN"]), "E1212", "operands of bf16"),
    ];
    for (text, code, words) in cases {
        let error = refused(&text, Target::Sm80);
        assert_eq!(error.code(), code, "{error}\n{text}");
        assert!(error.to_string().contains(words), "{error}, without `{words}`");
        assert!(error.help().is_some());
        assert!(error.place().is_some(), "{error}");
    }
    // Instructions that need warpgroups, on machines or in programs without them.
    let groups = "SM90_64x64x16_F32BF16BF16_SS";
    let error = refused(&product([64, 64], ["", "", groups]), Target::Sm80);
    assert!(error.to_string().contains("a kernel for sm_90a"), "{error}");
    let error = refused(&product([64, 64], ["", "", "SM90_64x64x16_F32BF16BF16_RS"]), Target::Sm90a);
    assert!(error.to_string().contains("which is `_SS`"), "{error}");
    let error = refused(&product([64, 64], ["", "", "SM90_64x48x16_F32BF16BF16_SS"]), Target::Sm90a);
    assert!(error.to_string().contains("no multiple of its 48"), "{error}");
    let error = refused(&product([256, 64], ["", "", "SM90_64x32x16_F32BF16BF16_SS"]), Target::Sm90a);
    assert!(error.to_string().contains("all columns at once"), "{error}");
    // The columns of B lie in panels of 64, of which an instruction takes whole ones.
    let error = refused(&product([64, 128], ["", "", "SM90_64x32x16_F32BF16BF16_SS"]), Target::Sm90a);
    assert!(error.to_string().contains("not a canonical"), "{error}");
    let error = refused(&product([16, 64], ["", "", groups]), Target::Sm90a);
    assert!(error.to_string().contains("does not fit"), "{error}");
}
