//! Diagrams of layouts as morphisms: morphisms, refinements, squares, spans, and a composition
//! worked step by step.
//!
//! Law: every entry of every tuple is drawn, first entry at the bottom, and every arrow is one of
//! the map. Nothing is drawn from assumptions about a layout. A mode of the domain has the same
//! fill in the whole picture, along all arrows and refinements.

mod board;

use tilewright_layout::morphism::{
    MutualRefinement, NestMorphism, PointedMap, Ref, Refinement, Span, Square, WorkedComposition,
};
use tilewright_layout::{Profile, Tree};

use crate::error::DrawError;
use crate::figure::{Body, Figure, Panel};
use crate::nesting::Side;
use crate::scene::{Point, Scene};
use crate::theme::{Paint, Palette};
use board::{Block, Board, Stack};

/// The largest number of entries of a tuple that is drawn.
pub const MAX_ENTRIES: usize = 64;

/// One fill for each of `count` modes.
fn fills(count: usize) -> Vec<Paint> {
    let paint = |index: usize| Palette::Distinct.paint(index as i64, count.max(1) as i64);
    (0..count).map(paint).collect()
}

/// The fills of the entries to which entries with these fills are sent.
fn sent(map: &PointedMap, from: &[Paint]) -> Vec<Paint> {
    let mut fills = vec![Paint::Void; map.codomain()];
    for (image, paint) in map.images().zip(from) {
        if let Some(fill) = image.and_then(|image| fills.get_mut(image)) {
            *fill = *paint;
        }
    }
    fills
}

/// The fills of the leaves over entries with these fills.
fn spread(refinement: &Refinement, from: &[Paint]) -> Vec<Paint> {
    let parts = refinement.parts().iter().zip(from);
    parts.flat_map(|(part, paint)| std::iter::repeat_n(*paint, part.leaves().len())).collect()
}

fn small(tuples: &[&[i64]]) -> Result<(), DrawError> {
    match tuples.iter().map(|tuple| tuple.len()).max() {
        Some(entries) if entries > MAX_ENTRIES => Err(DrawError::TooLarge {
            what: "the number of entries",
            value: i64::try_from(entries).unwrap_or(i64::MAX),
            limit: MAX_ENTRIES as i64,
        }),
        _ => Ok(()),
    }
}

/// A stack of leaves with its nesting to the left.
fn domain(board: &mut Board, profile: &Profile, entries: &[i64], fills: &[Paint], name: &str) -> Stack {
    let blocks = Block::leaves(entries, fills);
    let room = board.tree_before(profile);
    board.skip(room);
    let stack = board.stack(0.0, &blocks, name);
    board.tree(profile, &blocks, stack.left, Side::Left);
    stack
}

/// A stack of leaves after arrows, with the strides of the codomain, and its nesting to the right.
fn codomain(board: &mut Board, f: &NestMorphism, fills: &[Paint], name: &str) -> Stack {
    let entries = f.flatten().codomain();
    let blocks = Block::leaves(entries, fills);
    let stack = board.beyond_arrows(&blocks, name);
    board.strides(stack, entries);
    let beside = board.right();
    board.tree(f.codomain_profile(), &blocks, beside, Side::Right);
    stack
}

fn arrow_scene(f: &NestMorphism, paints: &[Paint]) -> Scene {
    let mut board = Board::default();
    let from = domain(&mut board, f.domain_profile(), f.flatten().domain(), paints, "domain");
    let to = codomain(&mut board, f, &sent(f.map(), paints), "codomain");
    board.arrows(from, to, f.map().images());
    board.finish()
}

fn panel(heading: impl Into<String>, scene: Scene) -> Panel<'static> {
    Panel::new(heading, Body::Scene(scene))
}

/// The layout that a morphism encodes, as a sentence.
fn encodes(f: &NestMorphism) -> String {
    f.encoded_layout().map_or_else(|_| String::new(), |layout| format!("encodes {layout}"))
}

/// A morphism: domain and codomain as stacks with their nesting, an arrow from each entry to its
/// image, `*` for the base point, and beside each entry of the codomain the stride that is encoded
/// by an arrow to it.
///
/// Errors: more than [`MAX_ENTRIES`] entries.
///
/// ```
/// use tilewright_draw::{Theme, morphism};
/// use tilewright_layout::morphism::standard_representation;
///
/// let f = standard_representation(&"(32,(2,2)):(192,(24,3))".parse().unwrap()).unwrap();
/// let file = morphism(&f).unwrap().svg(Theme::Auto);
/// assert!(file.contains("encodes (32,(2,2)):(192,(24,3))"));
/// ```
pub fn morphism(f: &NestMorphism) -> Result<Figure<'static>, DrawError> {
    small(&[f.flatten().domain(), f.flatten().codomain()])?;
    let scene = arrow_scene(f, &fills(f.flatten().domain().len()));
    Ok(Figure::row([panel(f.to_string(), scene).noted(encodes(f))]).of_source(f.to_string()))
}

fn mutual_scene(mutual: &MutualRefinement, paints: &[Paint]) -> Scene {
    let (first, second) = (mutual.first(), mutual.second());
    let mut board = Board::default();
    let left = Block::over(first.coarse().leaves(), first.parts(), paints);
    let room = board.tree_before(first.coarse().profile());
    board.skip(room);
    let coarse = board.stack(0.0, &left, "first");
    board.tree(first.coarse().profile(), &left, coarse.left, Side::Left);
    let leaves = Block::leaves(second.fine().leaves(), &spread(first, paints));
    let middle = board.beyond_joints(&leaves, "common");
    board.joints(&left, coarse.right, middle.left);
    let right = Block::over(second.coarse().leaves(), second.parts(), &vec![Paint::Paper; second.parts().len()]);
    let other = board.beyond_joints(&right, "second");
    board.joints(&right, other.left, middle.right);
    board.tree(second.coarse().profile(), &right, other.right, Side::Right);
    board.finish()
}

/// A mutual refinement: one stack of leaves between the two tuples, each entry as tall as the
/// leaves over it. Leaves that belong only to the second tuple are pale.
///
/// Errors: more than [`MAX_ENTRIES`] entries.
///
/// ```
/// use tilewright_draw::{Theme, mutual_refinement};
/// use tilewright_layout::morphism::MutualRefinement;
///
/// let mutual = MutualRefinement::new(&"(6,6)".parse().unwrap(), &"(12,3,6)".parse().unwrap()).unwrap();
/// assert!(mutual_refinement(&mutual).unwrap().svg(Theme::Auto).contains("(6,(2,3)) | ((6,2),3,6)"));
/// ```
pub fn mutual_refinement(mutual: &MutualRefinement) -> Result<Figure<'static>, DrawError> {
    small(&[mutual.first().fine().leaves(), mutual.second().fine().leaves()])?;
    let scene = mutual_scene(mutual, &fills(mutual.first().coarse().leaves().len()));
    Ok(Figure::row([panel(mutual.to_string(), scene)]).of_source(mutual.to_string()))
}

/// The coarse entries of a refinement, each with the fill of its leaves if they all have the same.
fn shared(refinement: &Refinement, leaves: &[Paint]) -> Vec<Paint> {
    let parts = refinement.offsets().zip(refinement.parts());
    let fill = |(offset, part): (usize, &Tree<i64>)| {
        let mut over = leaves.iter().skip(offset).take(part.leaves().len());
        let first = over.next().copied().unwrap_or(Paint::Void);
        if over.all(|paint| *paint == first) { first } else { Paint::Paper }
    };
    parts.map(fill).collect()
}

/// The scene of a square, with these fills for its refined domain.
fn square_scene(square: &Square, fine: &[Paint]) -> Scene {
    let (f, from_fine, to_fine) = (&square.morphism, &square.domain, &square.codomain);
    let mut board = Board::default();
    let left = Block::over(from_fine.coarse().leaves(), from_fine.parts(), &shared(from_fine, fine));
    let room = board.tree_before(from_fine.coarse().profile());
    board.skip(room);
    let coarse = board.stack(0.0, &left, "domain");
    board.tree(from_fine.coarse().profile(), &left, coarse.left, Side::Left);
    let from = board.beyond_joints(&Block::leaves(f.flatten().domain(), fine), "refined");
    board.joints(&left, coarse.right, from.left);
    let reached = sent(f.map(), fine);
    let to = board.beyond_arrows(&Block::leaves(f.flatten().codomain(), &reached), "refined");
    board.arrows(from, to, f.map().images());
    let right = Block::over(to_fine.coarse().leaves(), to_fine.parts(), &shared(to_fine, &reached));
    let onto = board.beyond_joints(&right, "codomain");
    board.joints(&right, onto.left, to.right);
    board.tree(to_fine.coarse().profile(), &right, onto.right, Side::Right);
    board.finish()
}

/// A pullback or a pushforward: both tuples outside, each entry as tall as the leaves over it, and
/// the refined morphism between.
///
/// Errors: more than [`MAX_ENTRIES`] entries.
///
/// ```
/// use tilewright_draw::{Theme, square};
/// use tilewright_layout::morphism::{NestMorphism, Refinement};
///
/// let f: NestMorphism = "(6,4) -> (4,6,6) : (2,*)".parse().unwrap();
/// let fine = Refinement::new(&"(4,(2,3),6)".parse().unwrap(), &f.codomain()).unwrap();
/// let figure = square(&f.pullback(&fine).unwrap()).unwrap();
/// assert!(figure.svg(Theme::Auto).contains("((2,3),4) -&gt; (4,(2,3),6) : ((2,3),*)"));
/// ```
pub fn square(square: &Square) -> Result<Figure<'static>, DrawError> {
    small(&[square.morphism.flatten().domain(), square.morphism.flatten().codomain()])?;
    let paints = fills(square.domain.coarse().leaves().len());
    let scene = square_scene(square, &spread(&square.domain, &paints));
    let text = square.morphism.to_string();
    Ok(Figure::row([panel(text.clone(), scene).noted(encodes(&square.morphism))]).of_source(text))
}

/// A flat tuple as text.
fn sizes(entries: &[i64]) -> String {
    let entries: Vec<String> = entries.iter().map(i64::to_string).collect();
    format!("({})", entries.join(","))
}

/// A span: the tuple at its apex, each entry as tall as the leaves into which it is cut, and the
/// morphism of the leaves.
///
/// Errors: more than [`MAX_ENTRIES`] entries.
///
/// ```
/// use tilewright_draw::{Theme, span};
/// use tilewright_layout::morphism::Span;
///
/// let layout = "((2,2),3):((6,1),2)".parse().unwrap();
/// let figure = span(&Span::of_layout(&layout).unwrap()).unwrap();
/// assert!(figure.svg(Theme::Auto).contains("(4,3) &lt;- ((2,2),3)"));
/// ```
pub fn span(span: &Span<Ref>) -> Result<Figure<'static>, DrawError> {
    let f = span.forward();
    small(&[f.domain(), f.codomain()])?;
    let parts: Vec<_> = span.back().tree().modes().collect();
    let paints = fills(parts.len());
    let fine: Vec<Paint> =
        parts.iter().zip(&paints).flat_map(|(part, paint)| std::iter::repeat_n(*paint, part.leaves().len())).collect();
    let mut board = Board::default();
    let left = Block::over(span.domain(), &parts, &paints);
    let coarse = board.stack(0.0, &left, "sizes");
    let from = board.beyond_joints(&Block::leaves(f.domain(), &fine), "leaves");
    board.joints(&left, coarse.right, from.left);
    let to = board.beyond_arrows(&Block::leaves(f.codomain(), &sent(f.map(), &fine)), "codomain");
    board.strides(to, f.codomain());
    board.arrows(from, to, f.map().images());
    let heading = format!("{} <- {}\n{f}", sizes(span.domain()), span.back());
    let note = span.encoded_layout().map_or_else(|_| String::new(), |layout| format!("encodes {layout}"));
    Ok(Figure::row([panel(heading, board.finish()).noted(note)]).of_source(span.to_string()))
}

/// Two scenes side by side, with their lowest rows at the same height.
fn beside(mut left: Scene, right: &Scene) -> Scene {
    const SPACE: f64 = 56.0;
    let (mine, theirs) = (left.bounds(), right.bounds());
    left.insert(right, Point::new(mine.x + mine.width + SPACE - theirs.x, 0.0));
    left
}

/// The refined morphisms in a row: the inner layout's, the inclusion, the outer layout's.
fn chain_scene(worked: &WorkedComposition, paints: &[Paint]) -> Scene {
    let (below, above) = (&worked.pullback.morphism, &worked.pushforward.morphism);
    let mut board = Board::default();
    let start = spread(&worked.pullback.domain, paints);
    let from = domain(&mut board, below.domain_profile(), below.flatten().domain(), &start, "inner");
    let reached = sent(below.map(), &start);
    let to = board.beyond_arrows(&Block::leaves(below.flatten().codomain(), &reached), "refined");
    board.arrows(from, to, below.map().images());
    let joined = sent(worked.inclusion.map(), &reached);
    let into = board.beyond_arrows(&Block::leaves(above.flatten().domain(), &joined), "refined");
    board.arrows(to, into, worked.inclusion.map().images());
    let last = codomain(&mut board, above, &sent(above.map(), &joined), "outer");
    board.arrows(into, last, above.map().images());
    board.finish()
}

/// A composition by mutual refinement, step by step: both morphisms; the mutual refinement of where
/// the first ends and the second begins; the pullback of the first and the pushforward of the
/// second; the refined morphisms in a row; their composite.
///
/// Errors: more than [`MAX_ENTRIES`] entries.
///
/// ```
/// use tilewright_draw::{Theme, worked_composition};
/// use tilewright_layout::morphism::WorkedComposition;
///
/// let (outer, inner) = ("(12,3,6):(1,72,12)".parse().unwrap(), "(6,6):(1,6)".parse().unwrap());
/// let worked = WorkedComposition::new(&outer, &inner).unwrap();
/// let file = worked_composition(&worked).unwrap().svg(Theme::Auto);
/// assert!(file.contains("(6,(2,3)):(1,(6,72))"));
/// ```
pub fn worked_composition(worked: &WorkedComposition) -> Result<Figure<'static>, DrawError> {
    let (below, above) = (&worked.pullback.morphism, &worked.pushforward.morphism);
    small(&[below.flatten().domain(), above.flatten().domain(), above.flatten().codomain()])?;
    let paints = fills(worked.first.flatten().domain().len());
    let reached = sent(worked.first.map(), &paints);
    // The leaves of the outer domain have the fills of the inner layout's leaves that are sent to
    // them.
    let start = spread(&worked.pullback.domain, &paints);
    let after_inclusion = sent(worked.inclusion.map(), &sent(below.map(), &start));
    let plain = vec![Paint::Paper; worked.second.flatten().domain().len()];
    let composite = format!("{} o {} = {}", worked.outer, worked.inner, worked.composite);
    let merged = if worked.coalesced == worked.outer { String::new() } else { format!(" = {}", worked.coalesced) };
    let table = [
        panel("1. As morphisms", beside(arrow_scene(&worked.first, &paints), &arrow_scene(&worked.second, &plain)))
            .noted(format!("{} is {}; {}{merged} is {}", worked.inner, worked.first, worked.outer, worked.second)),
        panel("2. Cut at the same places", mutual_scene(&worked.mutual, &reached)).noted(worked.mutual.to_string()),
        panel(
            "3. Refined",
            beside(square_scene(&worked.pullback, &start), &square_scene(&worked.pushforward, &after_inclusion)),
        )
        .noted(format!("{below}; {above}")),
        panel("4. Now they meet", chain_scene(worked, &paints)),
        panel("5. Arrows followed through", arrow_scene(&worked.morphism, &start)).noted(encodes(&worked.morphism)),
    ];
    let steps = Figure { table: table.into_iter().map(|panel| vec![Some(panel)]).collect(), ..Figure::default() };
    Ok(steps.captioned(composite.clone()).of_source(composite))
}
