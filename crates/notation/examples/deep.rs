use tilewright_notation::*;
fn main() {
    let kb: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let which: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    std::thread::Builder::new().stack_size(kb << 10).spawn(move || {
        let n = 99;
        let (a, b) = [("(", ")"), ("coalesce(", ")"), ("[", "]"), ("<(", ")>"), ("A((", "))"), ("(4:1 o ", ")")][which];
            let k = n / a.matches(['(', '[', '<']).count();
            let s = format!("A=4:1;{}1{}", a.repeat(k), b.repeat(k));
            is_incomplete(&s);
            match evaluate(&s, &mut Environment::new()) { Ok(v) => println!("{}", v.to_string().len()), Err(e) => println!("{}", e.code) }
            if std::env::args().nth(3).is_some() { let _ = derive(&s, &mut Environment::new()); }
    }).unwrap().join().unwrap();
}
