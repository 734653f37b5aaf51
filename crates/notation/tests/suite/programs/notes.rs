//! Notes: made where more was asked than there is, and refused where the evaluation is strict.

use tilewright_notation::{Environment, evaluate};

fn noted(text: &str) -> Vec<String> {
    let mut env = Environment::new();
    env.keep_notes();
    evaluate(text, &mut env).unwrap();
    env.take_notes().into_iter().map(|note| note.message).collect()
}

/// A note exactly where an index is not one of the mode's, counted one by one.
#[test]
fn notes_are_made_outside_and_nowhere_else() {
    for i in -2..7 {
        for j in -2..11 {
            let outside = !(0..4).contains(&i) || !(0..8).contains(&j);
            for text in [
                format!("A = (4,8):(8,1); A({i},{j})"),
                format!("((2,2),8):((1,2),4)({i},{j})"),
                format!("crd2idx(({i},{j}), (4,8):(8,1))"),
                format!("crd2idx(({i},{j}), (4,8))"),
                format!("slice((4,8,3):(8,1,32), ({i},{j},_))"),
                format!("slice_and_offset((4,8,3):(8,1,32), ({i},{j},_))"),
                format!("(S<1,0,2> o 0 o (4,8):(8,1))({i},{j})"),
                format!("(4,8):(1@0,1@1)({i},{j})"),
            ] {
                if i < 0 || j < 0 {
                    // Some of these are refused, and none is answered silently.
                    let mut env = Environment::new();
                    env.keep_notes();
                    assert!(evaluate(&text, &mut env).is_err() || !env.take_notes().is_empty(), "{text}");
                    continue;
                }
                assert_eq!(!noted(&text).is_empty(), outside, "{text}");
            }
        }
    }
}

#[test]
fn more_than_was_asked_is_said() {
    for (text, said) in [
        ("local_tile((10,64):(64,1), (16,32), (7,_))", "tile 7 of mode 0 is outside"),
        ("local_tile((10,64):(64,1), (16,32), (0,_))", "tiles of 16 do not divide"),
        ("local_tile((32,64):(64,1), (16,32), (1,_))", ""),
        ("local_tile((32,64):(64,1), (16,32), (1,1))", ""),
        ("local_tile((32,64):(64,1), (16,32), (2,1))", "tile 2 of mode 0"),
        ("local_tile((32,64):(64,1), (16,8,32), (1,9,1), (1,_,1))", ""),
        ("local_tile((32,64):(64,1), (16,8,32), (1,0,2), (1,_,1))", "tile 2 of mode 1"),
        ("tile_to_shape((8,8):(1,8), (4,64))", "mode 0 of the result has 8 indices, and 4 are asked for"),
        ("tile_to_shape((8,8):(1,8), (16,64))", ""),
        ("logical_product((4,4), (2,2))", "copies of the block share offsets"),
        ("logical_product((4,4), 4)", ""),
        ("logical_product((4,4):(1,4), (2,2):(1,2))", ""),
        ("blocked_product((4,4), (2,2))", ""),
        ("logical_divide(10, 4)", "covers 12 indices, and A has 10"),
        ("zipped_divide((10,8):(8,1), (4,4))", "covers 96 indices, and A has 80"),
        ("zipped_divide((8,8):(8,1), (4,4))", ""),
        ("idx2crd(40, (4,8))", "index 40"),
        ("domain_offset((4,8):(8,1), (4,0))", "index 4 of the 4 of mode 0"),
        ("(4,8):(8,1)(32)", "index 32 of 32"),
        ("(4,8):(8,1)(31)", ""),
        ("(M{max=4},8):(8,1)(4,0)", "index 4 of the M of mode 0"),
        ("(M,8):(8,1)(4,0)", ""),
        ("N", "nothing is bound to 'N'"),
        ("S<3,4,3> o base o (8,64):(64,1)", "nothing is bound to 'base'"),
        ("(4,N):(N,1)", ""),
        ("N:1", ""),
    ] {
        let notes = noted(text);
        assert_eq!(notes.is_empty(), said.is_empty(), "{text}: {notes:?}");
        assert!(notes.first().is_none_or(|note| note.contains(said)), "{text}: {notes:?}");
    }
}

/// What has a note is refused where the evaluation is strict, and only that.
#[test]
fn strict_refuses_what_has_a_note() {
    for (text, code) in [
        ("(4,8):(8,1)(9,9)", Some("E0217")),
        ("(4,8):(8,1)(3,7)", None),
        ("local_tile((10,64):(64,1), (16,32), (7,_))", Some("E0217")),
        ("tile_to_shape((8,8):(1,8), (4,64))", Some("E0217")),
        // A free name is what it says.
        ("N", None),
    ] {
        let mut env = Environment::new();
        env.be_strict();
        assert_eq!(evaluate(text, &mut env).err().map(|error| error.code), code, "{text}");
    }
}
