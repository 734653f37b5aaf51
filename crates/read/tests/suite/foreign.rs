//! The suites of others, as far as they are facts: the inputs of CUTLASS' tests of CuTe with their
//! post-conditions, and those of tensor-layouts with the values that it has. `tests/foreign.tsv`
//! has a case in each line.

use tilewright_layout::{AnyLayout, AnyTree};
use tilewright_notation::{Environment, Value, evaluate};
use tilewright_read::{Options, expression};

/// A text of CuTe's print in our notation.
fn ours(text: &str) -> String {
    text.replace('_', "").replace("Sw<", "S<")
}

fn value(program: &str) -> Value {
    evaluate(program, &mut Environment::new()).unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn layout(program: &str) -> AnyLayout {
    match value(program) {
        Value::Layout(layout) => layout,
        other => panic!("{program} is {other}"),
    }
}

/// The value at an index, as text: an integer, or a coordinate.
fn at(layout: &AnyLayout, index: i64) -> String {
    match layout.eval(index).unwrap_or_else(|error| panic!("{layout} at {index}: {error}")) {
        AnyTree::Integer(tree) => tree.to_string(),
        other => other.to_string(),
    }
}

fn number(layout: &AnyLayout, index: i64) -> i64 {
    at(layout, index).parse().unwrap()
}

fn size(layout: &AnyLayout) -> i64 {
    layout.known_shape().unwrap().product().unwrap()
}

fn is_true(program: &str) -> bool {
    value(program).to_string() == "true"
}

/// What the suite asks of an operation.
fn conditions(operation: &str, operands: &[String]) {
    let case = format!("{operation} {}", operands.join(" | "));
    match (operation, operands) {
        ("composition", [a, b]) => {
            let (result, a, inner) = (layout(&format!("composition({a},{b})")), layout(a), layout(b));
            assert!(is_true(&format!("compatible(shape({b}),shape({result}))")), "{case}: {result}");
            for index in 0..size(&inner) {
                let wanted = match inner.eval(index).unwrap() {
                    AnyTree::Integer(tree) if tree.is_leaf() => at(&a, tree.leaves()[0]),
                    // A coordinate of the outer layout.
                    coordinate => value(&format!("crd2idx({coordinate},{a})")).to_string(),
                };
                assert_eq!(at(&result, index), wanted, "{case}: {result} at {index}");
            }
        }
        ("complement", [a, target @ ..]) => {
            let operands = match target {
                [target] => format!("({a},{target})"),
                _ => format!("({a})"),
            };
            // Where no layout completes it, the suite asks for what does not meet it.
            let result = match evaluate(&format!("complement{operands}"), &mut Environment::new()) {
                Ok(Value::Layout(result)) => result,
                _ => layout(&format!("weak_complement{operands}")),
            };
            let own = layout(a);
            let all: Vec<i64> = (0..size(&result)).map(|index| number(&result, index)).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{case}: {result} is in no order");
            for index in 0..size(&own) {
                let place = number(&own, index);
                assert!(!all.iter().skip(1).any(|other| *other == place), "{case}: {result} has {place}");
            }
            let completed = format!("({own},{result})");
            let reach = number_of(&format!("cosize(make_layout{completed})"));
            let wanted = match target {
                [target] => number_of(&format!("size({target})")),
                _ => 1,
            };
            assert!(reach >= wanted, "{case}: {result} reaches {reach}");
            let [own_reach, result_reach] = [&own, &result].map(|layout| number_of(&format!("cosize({layout})")));
            let multiple = (wanted + own_reach - 1) / own_reach * own_reach;
            assert!(result_reach <= multiple.max(1), "{case}: {result} reaches {result_reach}");
        }
        ("logical_divide", [a, tile]) => {
            let result = layout(&format!("logical_divide({a},{tile})"));
            assert_eq!(result.known_shape().unwrap().rank(), 2, "{case}: {result}");
            assert!(is_true(&format!("compatible(shape({tile}),shape(get({result},0)))")), "{case}: {result}");
        }
        ("logical_product", [a, tile]) => {
            let result = layout(&format!("logical_product({a},{tile})"));
            assert_eq!(result.known_shape().unwrap().rank(), 2, "{case}: {result}");
            assert_eq!(layout(&format!("get({result},0)")).to_string(), layout(a).to_string(), "{case}");
            assert!(is_true(&format!("compatible(shape({tile}),shape(get({result},1)))")), "{case}: {result}");
        }
        ("coalesce", [a]) => {
            let (own, result) = (layout(a), layout(&format!("coalesce({a})")));
            assert!(number_of(&format!("depth({result})")) <= 1, "{case}: {result}");
            assert_eq!(size(&own), size(&result), "{case}: {result}");
            (0..size(&own)).for_each(|index| assert_eq!(at(&own, index), at(&result, index), "{case}: {result}"));
        }
        ("left_inverse", [a]) => {
            let (own, back) = (layout(a), layout(&format!("left_inverse({a})")));
            for index in 0..size(&own) {
                let place = number(&own, index);
                assert_eq!(number(&own, number(&back, place)), place, "{case}: {back}");
            }
        }
        ("right_inverse", [a]) => {
            let (own, back) = (layout(a), layout(&format!("right_inverse({a})")));
            for index in 0..size(&back) {
                assert_eq!(number(&own, number(&back, index)), index, "{case}: {back}");
            }
        }
        ("nullspace", [a]) => {
            let (own, kernel) = (layout(a), layout(&format!("nullspace({a})")));
            assert_eq!(size(&kernel), size(&own) / number_of(&format!("size(filter({a}))")), "{case}: {kernel}");
            (0..size(&kernel)).for_each(|index| assert_eq!(number(&own, number(&kernel, index)), 0, "{case}"));
        }
        ("domain_distribute", [a, b]) => {
            let result = layout(&format!("domain_distribute({a},{b})"));
            let all: Vec<i64> = (0..size(&result)).map(|index| number(&result, index)).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{case}: {result}");
            assert!(number_of(&format!("size({b})")) % size(&result) == 0, "{case}: {result}");
        }
        // A row and a column of a layout are what the whole has there.
        ("slices", [a]) => {
            let own = layout(a);
            let shape = own.known_shape().unwrap();
            let [rows, columns] = [0, 1].map(|mode| shape.mode(mode).unwrap().product().unwrap());
            for row in 0..rows {
                for column in 0..columns {
                    let whole = at(&own, row + rows * column);
                    assert_eq!(value(&format!("crd2idx({column},slice({a},({row},_)))")).to_string(), whole, "{case}");
                    assert_eq!(value(&format!("crd2idx({row},slice({a},(_,{column})))")).to_string(), whole, "{case}");
                }
            }
        }
        _ => panic!("{case} is not known"),
    }
}

fn number_of(program: &str) -> i64 {
    value(program).to_string().parse().unwrap_or_else(|_| panic!("{program}"))
}

fn cases(suite: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("../foreign.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect::<Vec<_>>()).filter(move |fields| fields[0].starts_with(suite))
}

#[test]
fn cases_of_cutlass_hold() {
    let mut count = 0;
    for fields in cases("cutlass/") {
        let operands: Vec<String> = fields[2..].iter().map(|text| ours(text)).collect();
        conditions(fields[1], &operands);
        // The reader of prints reads the same layout.
        for (text, own) in fields[2..].iter().zip(&operands).filter(|(text, _)| text.contains("):(")) {
            let read = expression(text, &Options::default()).unwrap_or_else(|refused| panic!("{text}: {refused}"));
            assert_eq!(read.to_string(), layout(own).to_string());
        }
        count += 1;
    }
    assert!(count > 200, "{count}");
}

/// The operations of tensor-layouts by our names.
#[test]
fn cases_of_tensor_layouts_hold() {
    let mut count = 0;
    for fields in cases("tensor-layouts") {
        let [_, operation, operands @ .., stated] = fields.as_slice() else { panic!("{fields:?}") };
        let name = match *operation {
            "compose" => "composition",
            other => other,
        };
        // A target with several extents is cut extent by extent there, and by its size here: both
        // are complements.
        if let ("complement", [a, target]) = (name, operands)
            && target.starts_with('(')
        {
            conditions("complement", &[(*a).to_owned(), (*target).to_owned()]);
            count += 1;
            continue;
        }
        // A tuple of extents is a tiler by mode; modes behind it are kept.
        let modes = number_of(&format!("rank({})", operands[0])) as usize;
        let tiled = |text: &&str| {
            if name != "composition" || text.contains(':') || !text.starts_with('(') {
                return (*text).to_owned();
            }
            let own = number_of(&format!("rank({text})")) as usize;
            let inner = text.replace('(', "[").replace(')', "]").replace(',', ";");
            format!("{}{}]", inner.strip_suffix(']').unwrap(), ";_".repeat(modes.saturating_sub(own)))
        };
        let operands: Vec<String> = operands.iter().map(tiled).collect();
        let program = format!("{name}({})", operands.join(","));
        let result = layout(&program);
        let (shape, values) = stated.strip_prefix("= ").unwrap().rsplit_once(' ').unwrap();
        let sizes = number_of(&format!("size({shape})"));
        assert_eq!(size(&result), sizes, "{program} is {result}, and {shape}");
        for (index, wanted) in values.split(',').enumerate() {
            assert_eq!(at(&result, index as i64), wanted, "{program} is {result}, at {index}");
        }
        count += 1;
    }
    assert!(count > 100, "{count}");
}

/// What CuTe's headers compute for a tiler of fewer modes than the layout, and for a complement in
/// a tuple of extents: the modes that no tile hits are dropped by a composition and kept by a
/// division.
#[test]
fn tilers_of_fewer_modes_and_targets_of_several_extents() {
    let long = "(4,8,3):(1,4,32)";
    for (program, cute) in [
        (format!("composition({long},(2,4))"), "(_2,_4):(_1,_4)"),
        (format!("composition({long},[2:1;4:2])"), "(_2,_4):(_1,_8)"),
        (format!("composition({long},[2])"), "(_2):(_1)"),
        (format!("logical_divide({long},[2;4])"), "((_2,_2),(_4,_2),_3):((_1,_2),(_4,_16),_32)"),
        (format!("zipped_divide({long},[2;4])"), "((_2,_4),(_2,_2,_3)):((_1,_4),(_2,_16,_32))"),
        ("complement(4:2,(8,3))".into(), "(_2,_3):(_1,_8)"),
        ("complement(2:4,(3,4))".into(), "(_4,_2):(_1,_8)"),
        ("complement((2,2):(1,8),(8,4))".into(), "(_4,_2):(_2,_16)"),
        ("complement(4:1,(2,6))".into(), "_3:_4"),
        ("complement(4:1,(8,2))".into(), "_4:_4"),
        ("complement(2:4,((2,2),6))".into(), "(_4,_3):(_1,_8)"),
        ("complement((2,2):(1,6),(4,6))".into(), "(_3,_2):(_2,_12)"),
        ("complement(1:0,(4,5))".into(), "_20:_1"),
    ] {
        assert_eq!(layout(&program).to_string(), layout(&ours(cute)).to_string(), "{program}");
    }
    // CuTe divides the extents one after the other, rounded up: its complement of 4:1 in (6,2) is
    // 4:4, which reaches 16. The size of the target, 12, is reached by 3:4.
    assert_eq!(layout("complement(4:1,(6,2))").to_string(), "3:4");
    assert_eq!(layout("complement(4:1,12)").to_string(), "3:4");
}
