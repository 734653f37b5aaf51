//! What is written reads back as the same function.

use tilewright_layout::{AnyLayout, LinearLayout, OuterMap, Swizzle};
use tilewright_notation::{Environment, Value, evaluate};
use tilewright_read::{Meaning, Options, System, compare, distributed, expression, thread_value, write};

fn value(text: &str) -> Value {
    evaluate(text, &mut Environment::new()).unwrap_or_else(|error| panic!("{text}: {}", error.message))
}

fn table(layout: &AnyLayout) -> Vec<i64> {
    match layout {
        AnyLayout::Integer(layout) => (0..layout.size()).map(|at| layout.eval(&at).unwrap()).collect(),
        AnyLayout::Composed(layout) => (0..layout.size()).map(|at| layout.eval(&at).unwrap()).collect(),
        other => panic!("{other}"),
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A random layout, nested or not, compact or not, swizzled or not.
    fn layout(&mut self) -> String {
        let modes = 1 + self.below(3);
        let (mut shape, mut stride) = (Vec::new(), Vec::new());
        let mut reach = 1;
        for _ in 0..modes {
            let leaves = 1 + self.below(2);
            let mut own = (Vec::new(), Vec::new());
            for _ in 0..leaves {
                let extent = 1 << self.below(4);
                let step = match self.below(6) {
                    0 => 0,
                    1 => self.below(9),
                    _ => reach,
                };
                reach *= extent;
                own.0.push(extent.to_string());
                own.1.push(step.to_string());
            }
            let nested = own.0.len() > 1 || self.below(8) == 0;
            for (out, own) in [(&mut shape, own.0), (&mut stride, own.1)] {
                out.push(if nested { format!("({})", own.join(",")) } else { own.join(",") });
            }
        }
        let layout = format!("({}):({})", shape.join(","), stride.join(","));
        if self.below(3) == 0 {
            let swizzle = format!("S<{},{},{}>", self.below(4), self.below(4), 3);
            format!("{swizzle} o 0 o {layout}")
        } else {
            layout
        }
    }
}

/// Layouts by chance, through every system that says them: the same function comes back.
#[test]
fn written_layouts_read_back() {
    let mut random = Random(11);
    let mut written = [0; 7];
    let systems = [
        System::CuteCpp,
        System::CuteDsl,
        System::Triton,
        System::Gluon,
        System::TileLang,
        System::Tirx,
        System::PyTorch,
    ];
    for _ in 0..600 {
        let text = random.layout();
        let Value::Layout(layout) = value(&text) else { panic!("{text}") };
        let wanted = table(&layout);
        let shape: Vec<i64> = {
            let shape = layout.known_shape().unwrap();
            (0..shape.rank()).map(|mode| shape.mode(mode).unwrap().product().unwrap()).collect()
        };
        for (at, system) in systems.into_iter().enumerate() {
            let Ok(said) = write(&Meaning::Value(Value::Layout(layout.clone())), system, &Options::default()) else {
                continue;
            };
            let options = Options { shape: Some(shape.clone()), system: Some(system), ..Options::default() };
            let back = expression(&said, &options).unwrap_or_else(|refused| panic!("{text} as {said}: {refused}"));
            let found = back.layout().unwrap_or_else(|| panic!("{text} as {said}: {back}"));
            assert_eq!(table(found), wanted, "{text} as {said} is {back}");
            written[at] += 1;
        }
    }
    assert!(written.iter().all(|count| *count > 20), "{written:?}");
}

/// Bases by chance, each bit along one dimension or a copy: through Triton, Gluon and CuTe.
#[test]
fn distributed_layouts_read_back() {
    let mut random = Random(5);
    let mut fragments = 0;
    for _ in 0..200 {
        let mut images: Vec<String> = Vec::new();
        let bits = [2 + random.below(4), 2 + random.below(4)];
        for (dimension, bits) in bits.iter().enumerate() {
            for bit in 0..*bits {
                let own = 1_u64 << bit;
                images.push(if dimension == 0 { format!("({own},0)") } else { format!("(0,{own})") });
            }
        }
        while images.len() < 7 || random.below(3) == 0 {
            images.push("(0,0)".into());
        }
        for at in (1..images.len()).rev() {
            images.swap(at, random.below(at as u64 + 1) as usize);
        }
        let (lanes, rest) = images.split_at(5);
        let (warps, registers) = rest.split_at(2);
        let text = format!(
            "register=[{}] lane=[{}] warp=[{}] -> dim0:{} dim1:{}",
            registers.join(","),
            lanes.join(","),
            warps.join(","),
            1 << bits[0],
            1 << bits[1]
        );
        let map: LinearLayout = text.parse().unwrap();
        let meaning = Meaning::Value(Value::Linear(Box::new(map.clone())));
        let tile = vec![1_i64 << bits[0], 1 << bits[1]];
        for system in [System::Triton, System::Gluon] {
            let said = write(&meaning, system, &Options::default()).unwrap();
            let options = Options { shape: Some(tile.clone()), ..Options::default() };
            assert_eq!(expression(&said, &options).unwrap().to_string(), map.to_string(), "{said}");
        }
        // A fragment of TileLang says every copy but those that one thread has twice.
        match write(&meaning, System::TileLang, &Options::default()) {
            Ok(said) => {
                let options = Options { system: Some(System::TileLang), ..Options::default() };
                let back = expression(&said, &options).unwrap_or_else(|refused| panic!("{text} as {said}: {refused}"));
                let compared = compare(&back.meaning, &meaning, Some(&tile)).unwrap();
                assert_eq!(compared.difference, None, "{text} as {said}");
                fragments += 1;
            }
            Err(refused) => assert!(registers.contains(&"(0,0)".to_owned()), "{text}: {refused}"),
        }
        // As (thread, value), and back.
        let layout = Value::Layout(AnyLayout::from(thread_value(&map, System::CuteCpp).unwrap()));
        assert_eq!(distributed(&layout, &tile).unwrap(), map);
    }
    assert!(fragments > 40, "{fragments}");
}

/// Bits that move along two dimensions at once, and a layout of threads and values with the shape
/// of its tile.
#[test]
fn fragments_of_tilelang_read_back() {
    let tile = vec![16, 8];
    for text in [
        "register=[(0,1),(8,0)] lane=[(0,2),(0,4),(1,0),(2,0),(4,0)] warp=[] -> dim0:16 dim1:8",
        "register=[(0,1),(8,1)] lane=[(1,2),(0,4),(1,0),(2,4),(4,0)] warp=[] -> dim0:16 dim1:8",
        "register=[(4,3)] lane=[(0,2),(0,0),(1,0),(2,0),(0,1)] warp=[(0,4),(8,0)] -> dim0:16 dim1:8",
    ] {
        let meaning = Meaning::Value(value(text));
        let said = write(&meaning, System::TileLang, &Options::default()).unwrap();
        let back = expression(&said, &Options::default()).unwrap_or_else(|refused| panic!("{said}: {refused}"));
        let compared = compare(&back.meaning, &meaning, Some(&tile)).unwrap();
        assert_eq!(compared.difference, None, "{said}");
    }
    let accumulator = Meaning::Value(value("((4,8),(2,2)):((32,1),(16,8))"));
    let told = Options { shape: Some(tile), ..Options::default() };
    let said = write(&accumulator, System::TileLang, &told).unwrap();
    assert_eq!(said, "T.Fragment([16, 8], forward_fn=lambda i, j: (j // 2 + (i % 8) * 4, j % 2 + (i // 8) * 2))");
    assert_eq!(expression(&said, &told).unwrap().to_string(), "((4,8),(2,2)):((32,1),(16,8))");
}

#[test]
fn what_a_system_cannot_say_is_refused() {
    for (text, system, part) in [
        ("((2,2),4):((1,8),2)", System::PyTorch, "one extent and one stride"),
        ("(4,4):(-4,1)", System::PyTorch, "not negative"),
        ("S<3,3,3> o 0 o (8,64):(64,1)", System::Tirx, "swizzled"),
        ("(4,8):(8,1)", System::Jax, "no strides"),
        ("(4,8):(1@0,1@1)", System::TileLang, "coordinate"),
        ("(3,8):(8,1)", System::Triton, ""),
        ("(4,8):(16,1)", System::Triton, "all the numbers"),
        ("lane=[(1,0),(1,1)] -> dim0:2 dim1:2", System::Triton, "moves along one dimension"),
        ("register=[(0,0)] lane=[(1,0),(0,1)] -> dim0:2 dim1:2", System::TileLang, "several of its values"),
        ("lane=[(1,0)] -> dim0:2 dim1:2", System::TileLang, "held by nobody"),
        ("lane=[(1,0),(0,1)] block=[(1,0)] -> dim0:2 dim1:2", System::TileLang, "the input block"),
        ("(4,8):(8,1)", System::NumPy, "read, and not written"),
    ] {
        let error = write(&Meaning::Value(value(text)), system, &Options::default()).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    let swizzled = value("S<3,4,3> o 0 o (8,64):(64,1)");
    let Value::Layout(AnyLayout::Composed(composed)) = &swizzled else { panic!() };
    assert_eq!(composed.outer(), &OuterMap::Swizzle(Swizzle::new(3, 4, 3).unwrap()));
}

#[test]
fn shardings_read_back() {
    for (system, text) in [
        (System::Jax, "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec('tp', None))"),
        (System::Jax, "NamedSharding(mesh=Mesh('dp': 2, 'tp': 4), spec=PartitionSpec(('dp', 'tp'), None))"),
    ] {
        let options = Options { shape: Some(vec![16, 8]), ..Options::default() };
        let read = expression(text, &options).unwrap();
        let said = write(&read.meaning, system, &Options::default()).unwrap();
        assert_eq!(expression(&said, &options).unwrap().meaning, read.meaning, "{said}");
    }
}
