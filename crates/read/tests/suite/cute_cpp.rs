//! CuTe in C++: types, aliases and source.

use tilewright_layout::Refusal;
use tilewright_read::{Options, System, document, expression};

fn read(text: &str) -> String {
    match expression(text, &Options::default()) {
        Ok(reading) => reading.to_string(),
        Err(refused) => format!("{}: {refused}", refused.code()),
    }
}

#[test]
fn spellings() {
    for (text, meaning) in [
        ("cute::Layout<cute::tuple<cute::C<4>, cute::C<8>>, cute::tuple<cute::C<1>, cute::C<4>>>", "(4,8):(1,4)"),
        (
            "cute::Layout<cute::tuple<cute::_4, cute::Int<8>>, cute::tuple<cute::C<(int)8>, cute::constant<int, 1>>>",
            "(4,8):(8,1)",
        ),
        ("Layout<Shape<_4,_8>,Stride<_8,_1>>", "(4,8):(8,1)"),
        ("Layout<Shape<_4,_8>>{}", "(4,8):(1,4)"),
        (
            "cute::Layout<cute::tuple<int, cute::C<8>>, cute::tuple<std::integral_constant<int, 8>, long>>",
            "(?,8):(8,?)",
        ),
        (
            "cute::Layout<cute::tuple<cute::C<4>, int>, cute::tuple<cute::ScaledBasis<cute::C<1>, 1, 1>, cute::ScaledBasis<cute::ScaledBasis<cute::C<1>, 1>, 0>>>",
            "(4,?):(1@1@1,1@1@0)",
        ),
        (
            "cute::Layout<cute::tuple<cute::C<4>, cute::C<2>>, cute::tuple<cute::ScaledBasis<cute::C<2>, 0, 1>, cute::ScaledBasis<cute::C<1>, 1>>>",
            "(4,2):(2@1@0,1@1)",
        ),
        (
            "cute::ComposedLayout<cute::Swizzle<3, 3, 3>, cute::C<0>, cute::Layout<cute::tuple<cute::C<8>, cute::C<64>>, cute::tuple<cute::C<64>, cute::C<1>>>>",
            "S<3,3,3> o 0 o (8,64):(64,1)",
        ),
        (
            "cute::ComposedLayout<cute::Swizzle<3, 4, 3>, cute::smem_ptr_flag_bits<16>, cute::Layout<cute::tuple<cute::C<8>, cute::C<64>>, cute::tuple<cute::C<64>, cute::C<1>>>>",
            "S<3,3,3> o 0 o (8,64):(64,1)",
        ),
        (
            "cute::ComposedLayout<cute::Swizzle<3, 4, 3>, cute::smem_ptr_flag_bits<32>, cute::Layout<cute::tuple<cute::C<8>, cute::C<32>>, cute::tuple<cute::C<32>, cute::C<1>>>>",
            "S<3,2,3> o 0 o (8,32):(32,1)",
        ),
        ("GMMA::Layout_K_SW128_Atom<half_t>", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("GMMA::Layout_MN_SW64_Atom<float>", "S<2,2,3> o 0 o (16,8):(1,16)"),
        ("GMMA::Layout_K_INTER_Atom<cutlass::half_t>", "(8,8):(8,1)"),
        ("UMMA::Layout_MN_SW128_32B_Atom<tfloat32_t>", "S<2,3,2> o 0 o (32,4):(1,32)"),
        ("composition(Swizzle<3,3,3>{}, Layout<Shape<_8,_64>,Stride<_64,_1>>{})", "S<3,3,3> o 0 o (8,64):(64,1)"),
        ("make_layout(Shape<_4,_8>{}, LayoutRight{})", "(4,8):(8,1)"),
        ("auto l = make_layout(make_shape(M, Int<8>{}), make_stride(_8{}, _1{}));", "(M,8):(8,1)"),
        ("Tile<Layout<Shape<_4,_2>,Stride<_2,_1>>, Underscore>", "[(4,2):(2,1);_]"),
        (
            "tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_16,_64>{})",
            "S<3,3,3> o 0 o ((8,2),(64,1)):((64,512),(1,0))",
        ),
        (
            "cute::Tensor<cute::ViewEngine<cute::gmem_ptr<float*>>, cute::Layout<cute::tuple<int, int>, cute::tuple<int, cute::C<1>>>>",
            "(?,?):(?,1)",
        ),
        ("cute::Tensor<cute::ArrayEngine<cutlass::half_t, 8>, cute::Layout<cute::C<8>, cute::C<1>>>", "8:1"),
    ] {
        assert_eq!(read(text), meaning, "{text}");
    }
}

#[test]
fn aliases_of_the_file_are_followed() {
    let source = "using SmemShape = Shape<_8,_64>;\nusing Stride_ = Stride<_64,_1>;\n\
                  using SmemLayout = ComposedLayout<Swizzle<3,4,3>, smem_ptr_flag_bits<16>, Layout<SmemShape, Stride_>>;\n";
    let found = document(source, &Options::default());
    let told: Vec<_> = found.readings().map(|reading| (reading.name.clone(), reading.to_string())).collect();
    assert_eq!(told, [(Some("SmemLayout".to_owned()), "S<3,3,3> o 0 o (8,64):(64,1)".to_owned())]);
}

/// Aliases in a circle end.
#[test]
fn aliases_in_a_circle() {
    let source = "using A = B;\nusing B = A;\nLayout<A, B> x;\n";
    assert_eq!(document(source, &Options::default()).items.len(), 0);
}

#[test]
fn prose_and_templates_are_no_layouts() {
    for text in [
        "template <class Shape, class Stride> struct Layout<Shape, Stride>;",
        "if (a < b && c > d) return Layout<T>::value;",
        "the composition(A, B) of two layouts",
        "at 12:30:05 file.cu:12:30",
        "std::vector<int> cute::print(x)",
        // An octal number of C++, which is 8.
        "Layout<Shape<_4,Int<010>>,Stride<_8,_1>>",
    ] {
        assert_eq!(document(text, &Options::default()).items.len(), 0, "{text}");
    }
}

#[test]
fn a_system_can_be_asked_for() {
    let log = "(_4,_8):(_8,_1) and Layout<Shape<_4,_8>,Stride<_8,_1>>";
    let told = Options { system: Some(System::CuteCpp), ..Options::default() };
    let systems: Vec<System> = document(log, &told).items.iter().map(|item| item.system).collect();
    assert_eq!(systems, [System::CuteCpp]);
}

/// A definition whose value begins the next line has its name, and an assignment above does not
/// give its name to what stands below it.
#[test]
fn a_name_may_stand_on_the_line_above() {
    let names = |text: &str| -> Vec<Option<String>> {
        let found = tilewright_read::document(text, &Options::default());
        found.items.into_iter().map(|item| item.name).collect()
    };
    let layout = "Layout<Shape<_4,_8>, Stride<_8,_1>>";
    assert_eq!(
        names(&format!("using Tile =\n    {layout};\nusing Other = {layout};")),
        [Some("Tile".to_owned()), Some("Other".to_owned())]
    );
    assert_eq!(names(&format!("x = 3;\n    {layout} a;")), [None]);
    assert_eq!(names(&format!("y =\nf(x);\n{layout} a;")), [None]);
}
