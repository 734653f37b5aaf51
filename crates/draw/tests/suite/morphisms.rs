//! Diagrams of morphisms say what the morphism says: every entry, every arrow, every entry that is
//! sent nowhere.

use tilewright_draw::terminal::{Colours, Window};
use tilewright_draw::{Figure, Item, Mode, Theme, morphism, mutual_refinement, span, square, worked_composition};
use tilewright_layout::Layout;
use tilewright_layout::morphism::{
    MutualRefinement, NestMorphism, Refinement, Span, WorkedComposition, standard_representation,
};

fn text(figure: &Figure<'_>) -> String {
    figure.picture(Window::ALL, Colours::None).text(0, Colours::None, Mode::Light)
}

/// The tiles, the arrowheads and the stars of a figure.
fn counts(figure: &Figure<'_>) -> (usize, usize, usize) {
    let scene = figure.scene();
    let heads =
        scene.items().iter().filter(|item| matches!(item, Item::Path { fill: Some(_), stroke: None, .. })).count();
    let stars =
        scene.items().iter().filter(|item| matches!(item, Item::Text { text, .. } if scene.text_of(*text) == "*"));
    (scene.tiles(), heads, stars.count())
}

#[test]
fn a_morphism_shows_every_entry_and_arrow() {
    for (source, tiles, arrows, stars) in [
        ("(4,5) -> (4,16,5) : (1,3)", 5, 2, 0),
        ("((2,3),4) -> (4,(2,7)) : ((2,*),1)", 6, 2, 1),
        ("() -> (4,5) : ()", 2, 0, 0),
        ("4 -> () : *", 1, 0, 1),
        ("1 -> () : *", 1, 0, 1),
        ("(9223372036854775807,1) -> (9223372036854775807,2) : (1,*)", 4, 1, 1),
    ] {
        let f: NestMorphism = source.parse().unwrap();
        let figure = morphism(&f).unwrap();
        assert_eq!(counts(&figure), (tiles, arrows, stars), "{source}");
        assert!(figure.svg(Theme::Auto).contains(&source.replace('>', "&gt;")), "{source}");
        assert!(figure.tikz(Theme::Light).contains("\\begin{tikzpicture}"));
    }
}

#[test]
fn in_the_terminal_too() {
    let f = standard_representation(&"(4,5):(1,64)".parse::<Layout>().unwrap()).unwrap();
    assert_eq!(
        text(&morphism(&f).unwrap()),
        "\
(4,5) -> (4,16,5) : (1,3)
                      ┌──────┐
                  ╱───▶   5  │ 64
               ╱──    └──────┘
┌──────┐    ╱──       ┌──────┐
│   5  │────          │  16  │ 4
└──────┘              └──────┘
┌──────┐              ┌──────┐
│   4  │──────────────▶   4  │ 1
└──────┘              └──────┘

 domain               codomain stride
encodes (4,5):(1,64)
"
    );
}

#[test]
fn refinements_show_both_tuples_and_their_leaves() {
    let mutual = MutualRefinement::new(&"(6,6)".parse().unwrap(), &"(12,3,6)".parse().unwrap()).unwrap();
    assert_eq!(counts(&mutual_refinement(&mutual).unwrap()), (2 + 4 + 3, 0, 0));
    // An entry 1 that is a piece of nothing has no place.
    let mutual = MutualRefinement::new(&"(1,1)".parse().unwrap(), &"()".parse().unwrap()).unwrap();
    assert_eq!(counts(&mutual_refinement(&mutual).unwrap()).0, 0);

    let f: NestMorphism = "(6,4) -> (4,6,6) : (2,*)".parse().unwrap();
    let fine = Refinement::new(&"(4,(2,3),6)".parse().unwrap(), &f.codomain()).unwrap();
    assert_eq!(counts(&square(&f.pullback(&fine).unwrap()).unwrap()), (2 + 3 + 4 + 3, 2, 1));

    let layout = "((2,2),3):((6,1),2)".parse().unwrap();
    assert_eq!(counts(&span(&Span::of_layout(&layout).unwrap()).unwrap()), (2 + 3 + 3, 3, 0));
}

#[test]
fn a_worked_composition_shows_every_step() {
    let (outer, inner) = ("(12,3,6):(1,72,12)".parse().unwrap(), "(6,6):(1,6)".parse().unwrap());
    let figure = worked_composition(&WorkedComposition::new(&outer, &inner).unwrap()).unwrap();
    assert_eq!(figure.panels().count(), 5);
    // Both morphisms; the refinement; both squares; the chain; the composite.
    let tiles = (4 + 6) + (2 + 4 + 3) + (2 + 3 + 3 + 2) + (3 + 4 + 4 + 3) + (3 + 3 + 4 + 4) + (3 + 4);
    let arrows = (2 + 3) + (3 + 4) + (3 + 3 + 4) + 3;
    assert_eq!(counts(&figure), (tiles, arrows, 0));
    let text = text(&figure);
    for step in ["1. As morphisms", "2. Cut", "3. Refined", "4. Now they meet", "5. Arrows", "(6,(2,3)):(1,(6,72))"] {
        assert!(text.contains(step), "{step} in\n{text}");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let layout = Layout::compact(&tilewright_layout::Tree::flat(vec![1; 70]).unwrap()).unwrap();
    let error = morphism(&standard_representation(&layout).unwrap()).unwrap_err();
    assert_eq!(error.code(), "E0503");
}
