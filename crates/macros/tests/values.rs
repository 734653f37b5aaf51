//! Law: a constant of a macro equals the value of its program at run time, at every index.

use tilewright_layout::{AnyLayout, StaticComposed, StaticLayout, StaticTiler};
use tilewright_macros::{layout, tiler};
use tilewright_notation::{Environment, Value, evaluate};

fn run(program: &str) -> Value {
    evaluate(program, &mut Environment::new()).unwrap()
}

/// Each program with its constant.
macro_rules! constants {
    ($name:ident: $kind:ty = $macro:ident; $($program:literal)*) => {
        const $name: &[(&str, $kind)] = &[$(($program, $macro!($program))),*];
    };
}

constants! { LAYOUTS: StaticLayout = layout;
    "4:1" "(7):(3)" "1:0" "():()" "((),3):((),2)" "(8,16):(16,1)" "(3,5):(7,1)" "(6,2):(1,0)"
    "((2,2),3):((24,2),8)" "(4,(2,(3,5))):(2,(1,(8,-9)))" "((3,(5,7)),(11,13)):((1,(3,15)),(105,1155))"
    "(6,2):(8,2) o (4,3):(3,1)" "A = (128,64):(64,1); zipped_divide(A, [16:1;8:1])" "complement(4:2, 24)"
    "blocked_product((2,5):(5,1), (3,4):(1,3))" "raked_product((2,5):(5,1), (3,4):(1,3))" "right_inverse((3,4):(4,1))"
    "logical_divide((9,10):(10,1), (3,_))" "coalesce((2,(1,6)):(1,(6,2)))" "(5,4):(-1,-5)"
    "((2,2,2,2,2,2),(3,3),(2,2,2),(1,1,2,1)):((1,9,2,8,3,7),(4,6),(5,5,11),(0,7,12,3))"
    "((((((2,3),2),3),2),3),2):((((((1,2),6),12),36),72),216)"
    "(2,2,2,2,2,2,2,2,2,2,2,2,2):(1,4096,2,2048,4,1024,8,512,16,256,32,128,64)" r"(0x10,1_0):(1,16)"
    "(4,\
     8):(\u{38},\x31)"
    "A = 4:1
     A.append(3:7)"
}

constants! { SWIZZLED: StaticComposed = layout;
    "S<3,4,3> o 0 o (8,64):(64,1)" "S<2,0,-3> o 5 o (3,7):(7,1)" "S<0,0,0> o -4 o 5:1"
}

constants! { TILERS: StaticTiler = tiler;
    "[16:1;8:1]" "(16,8)" "4" "_" "(4,_)" "(4,(2,_))" "[(2,4):(4,1);[_;3:2]]" "(2,4):(4,1)" "[]" "<4,8>"
}

#[test]
fn layouts_are_those_of_the_run_time() {
    for (program, constant) in LAYOUTS {
        let Value::Layout(AnyLayout::Integer(layout)) = run(program) else { panic!("{program}") };
        assert_eq!(constant.to_layout(), layout, "{program}");
        for index in -10..layout.size() + 10 {
            assert_eq!(constant.eval(index), layout.eval(&index).ok(), "{program} at {index}");
        }
    }
}

#[test]
fn swizzled_layouts_are_those_of_the_run_time() {
    for (program, constant) in SWIZZLED {
        let Value::Layout(AnyLayout::Composed(composed)) = run(program) else { panic!("{program}") };
        assert_eq!(constant.to_composed(), *composed, "{program}");
        for index in -10..composed.size() + 10 {
            assert_eq!(constant.eval(index), composed.eval(&index).ok(), "{program} at {index}");
        }
    }
}

#[test]
fn tilers_are_those_of_the_run_time() {
    for (program, constant) in TILERS {
        assert_eq!(constant.to_tiler(), run(program).to_tiler().unwrap().unwrap(), "{program}");
    }
}
