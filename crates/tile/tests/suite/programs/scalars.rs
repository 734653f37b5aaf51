//! Numbers of the launch, beside plain loops.

use super::places::exactly;
use super::run::Case;
use tilewright_tile::{CheckOptions, Element, Program, interpret};

const SCALED: &str = "
tile scaled {
    input x: f32 N:1
    output y: f32 N:1
    scalar scale: f32
    scalar n: i32
    scalar shift: i32
    grid ceil(N/64)
    place = block_place
    loop k < [n - 1] with sum = load(x, (64), (block.x)) {
        next sum * scale
    } -> sum
    store(y, (block.x), select(place < 20 * n, sum, f32(shift)))
}";

fn scaled() -> Program {
    SCALED
        .replace("block_place", "index(block.x*64) + arange((64), 0)")
        .parse()
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn numbers_of_the_launch_scale_bound_and_count() {
    let program = scaled();
    assert_eq!(program.to_string().parse::<Program>().unwrap().to_string(), program.to_string());
    assert_eq!(program.scalars().len(), 3);
    for (count, scale, n, shift) in [(64, 0.5, 3, 7), (100, -2.0, 1, -1), (129, 1.25, 6, 0), (70, 3.0, -4, i32::MIN)] {
        let x: Vec<f64> = (0..count).map(|at| f64::from(at % 13) - 6.0).collect();
        let one = |(at, x): (usize, &f64)| {
            let mut sum = *x;
            for _ in 1..n {
                sum *= scale;
            }
            if (at as i64) < 20 * i64::from(n) { sum } else { f64::from(shift as f32) }
        };
        let wanted = x.iter().enumerate().map(one).collect();
        let inputs = [("x", x), ("scale", vec![scale]), ("n", vec![f64::from(n)]), ("shift", vec![f64::from(shift)])];
        exactly(&program, &Case::new(&[("N", count.into())], &inputs), &[("y", wanted)]);
    }
}

#[test]
fn a_check_passes_numbers_of_its_own_or_those_that_are_given() {
    let compiled = scaled().compile(None).unwrap();
    let report = compiled.check(&[("N", 100)]).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(report.outputs[0].compared, 100);
    let given: [(&str, &[u8]); 2] = [("scale", &2.0_f32.to_le_bytes()), ("n", &2_i32.to_le_bytes())];
    assert_eq!(
        compiled.check(CheckOptions { sizes: &[("N", 100)], contents: &given }).unwrap().outputs[0].compared,
        100
    );
    // A number that nothing uses is declared and not passed.
    let text = scaled().to_string().replace("scalar n: i32", "scalar n: i32\n scalar unused: f32");
    let program: Program = text.parse().unwrap();
    assert!(program.compile(None).unwrap().check(&[("N", 10)]).is_ok());
}

#[test]
fn a_number_of_the_launch_is_refused_where_it_does_not_fit() {
    for (line, told) in [
        ("scalar s: bf16", "f32, i32, f64 or i64"),
        ("scalar x: f32", "declared again"),
        ("scalar s: f32\n scalar s: f32", "declared again"),
        ("scalar s", "`:`"),
        ("grid 1\n a = scalar(t)", "number of the launch"),
        ("grid 1\n a = load(x, (8), (0)) + 1\n scalar s: f32", "scalar"),
        ("scalar s: i32\n grid 1\n a = load(x, (8), (0)) * s", "type"),
    ] {
        let text = format!("tile t {{\n input x: f32 8:1\n {line}\n}}");
        let error = text.parse::<Program>().unwrap_err();
        assert!(error.to_string().contains(told) && error.place().is_some(), "{line}: {error}");
    }
    let missing = interpret::run(&scaled(), &[("N", 1)], &[("x", vec![0.0]), ("scale", vec![1.0])]);
    assert!(missing.unwrap_err().to_string().contains("`n` is not given"));
    let two = Program::build("two", |t| {
        t.scalar(Element::F32, "a")?;
        t.input(Element::F32, "a", "8:1").map(|_| ())
    });
    assert!(two.unwrap_err().to_string().contains("declared again"));
}
