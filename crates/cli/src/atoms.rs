//! `tilewright atoms`: the instructions that are known by name, and their thread-value layouts.

mod card;

use clap::Args;
use tilewright::atoms::{
    Arch, AtomError, BulkCopy, BulkFamily, CopyAtom, CopyFamily, Family, Known, MmaAtom, MmaFamily, ValueType,
};

use crate::json::{self, Json};
use crate::output::Failure;
use crate::picture::{Paint, Window, painted};
use crate::terminal::Terminal;

#[derive(Debug, Args)]
pub struct AtomsOptions {
    /// The name of an instruction, or a part of names.
    name: Option<String>,
    /// Only those of a machine, such as SM80, GFX942 or AVX512.
    #[arg(long, value_parser = parsed::<Arch>)]
    arch: Option<Arch>,
    /// Only matrix products with values of a type, such as BF16 or E4M3.
    #[arg(long = "type", value_name = "TYPE", value_parser = parsed::<ValueType>)]
    value_type: Option<ValueType>,
    /// Draw all of a tile, however large.
    #[arg(long)]
    all: bool,
}

fn parsed<T: std::str::FromStr<Err = AtomError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: AtomError| match error.help() {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    })
}

pub fn run(options: &AtomsOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    let name = options.name.as_deref().unwrap_or_default();
    let name = &known(name).unwrap_or_else(|| name.to_owned());
    let admits_value = |family: &MmaFamily| options.value_type.is_none_or(|value| takes(family, value));
    let products = || MmaAtom::families().filter(|family| options.admits(*family, name) && admits_value(family));
    // Copies apply to values of any type.
    let any = options.value_type.is_none();
    let copies = || CopyAtom::families().filter(move |family| any && options.admits(*family, name));
    let bulks = || BulkCopy::families().filter(move |family| any && options.admits(*family, name));
    if let Ok(atom) = MmaAtom::named(name) {
        return write_product(&atom, options, terminal);
    }
    if let Ok(atom) = CopyAtom::named(name) {
        return write_copy(&atom, options, terminal);
    }
    if let Ok(copy) = BulkCopy::named(name) {
        return write_bulk(&copy, terminal);
    }
    if products().next().is_none() && copies().next().is_none() && bulks().next().is_none() {
        return Err(Failure::Usage(options.nothing(name)));
    }
    if terminal.json {
        let objects = products().map(|family| object("product", family));
        let objects = objects.chain(copies().map(|family| object("copy", family)));
        for object in objects.chain(bulks().map(|family| object("bulk copy", family))) {
            terminal.object(&object)?;
        }
        return Ok(());
    }
    let mut text = String::new();
    if products().next().is_some() {
        heading(&mut text, "Matrix products", "threads  values: A, B, C", terminal.colour);
        products().for_each(|family| product_line(&mut text, family));
    }
    if copies().next().is_some() {
        if !text.is_empty() {
            text.push('\n');
        }
        heading(&mut text, "Copies", "threads  bits together", terminal.colour);
        copies().for_each(|family| copy_line(&mut text, family));
    }
    if bulks().next().is_some() {
        if !text.is_empty() {
            text.push('\n');
        }
        heading(&mut text, "Bulk copies", "dimensions  what", terminal.colour);
        bulks().for_each(|family| bulk_line(&mut text, family));
    }
    text.push_str("\n{a,b} is a choice. `tilewright atoms NAME` shows the thread-value layouts.\n");
    Ok(terminal.prose(&text)?)
}

impl AtomsOptions {
    /// Whether a family is of the requested machine, and a name, or the pattern of all names,
    /// contains the text.
    fn admits<A: Known>(&self, family: &Family<A>, part: &str) -> bool {
        self.arch.is_none_or(|arch| family.arch() == arch)
            && (contains(family.pattern(), part) || family.names().iter().any(|name| contains(name, part)))
    }

    /// The message that no atom matches, with a list of existing ones.
    fn nothing(&self, name: &str) -> String {
        let mut text = "there is no atom".to_owned();
        if !name.is_empty() {
            text.push_str(&format!(" `{name}`"));
        }
        self.arch.iter().for_each(|arch| text.push_str(&format!(" of {arch}")));
        self.value_type.iter().for_each(|value| text.push_str(&format!(" with values {value}")));
        let errors = [MmaAtom::named(name).err(), CopyAtom::named(name).err(), BulkCopy::named(name).err()];
        match errors.into_iter().flatten().find_map(|error| error.help()) {
            Some(help) if self.arch.is_none() && self.value_type.is_none() => text.push_str(&format!("; {help}")),
            _ => text.push_str("; `tilewright atoms` lists them"),
        }
        text
    }
}

/// The existing name that differs from this one only in capitals.
fn known(name: &str) -> Option<String> {
    let products = MmaAtom::families().flat_map(|family| family.names());
    let copies = CopyAtom::families().flat_map(|family| family.names());
    let bulks = BulkCopy::families().flat_map(|family| family.names());
    products.chain(copies).chain(bulks).find(|known| known.eq_ignore_ascii_case(name))
}

/// A family as a JSON object.
fn object<A: Known>(kind: &str, family: &Family<A>) -> Json {
    json::family(kind, family.pattern(), family.arch().name(), family.names().len())
}

/// Whether a text contains another, ignoring case.
fn contains(text: &str, part: &str) -> bool {
    text.to_ascii_uppercase().contains(&part.to_ascii_uppercase())
}

/// Whether some instruction of the family has values of a type.
fn takes(family: &MmaFamily, value: ValueType) -> bool {
    // An instruction whose name has no types matches any type; otherwise the name decides.
    let named = |name: &String| name.contains(value.name()) || !name.contains('_') || name.contains("_DP");
    family.names().iter().filter(|name| named(name)).any(|name| {
        family.member(name).is_ok_and(|atom| {
            let types = atom.types();
            [types.d, types.a, types.b, types.c].contains(&value)
        })
    })
}

fn heading(text: &mut String, title: &str, columns: &str, colour: bool) {
    text.push_str(&painted(title, Paint::Strong, colour));
    text.push_str(&format!("\n{:10}{columns:27}names\n", ""));
}

fn product_line(text: &mut String, family: &MmaFamily) {
    let names = family.names();
    let ends = [names.first(), names.last()].map(|name| name.and_then(|name| family.member(name).ok()));
    let [Some(first), Some(last)] = ends else { return };
    let counts = [(first.a(), last.a()), (first.b(), last.b()), (first.c(), last.c())];
    let values = match counts.iter().all(|(first, last)| first.values() == last.values()) {
        true => counts.map(|(first, _)| first.values().to_string()).join(", "),
        false => "by shape".to_owned(),
    };
    let threads = first.threads().size();
    text.push_str(&format!("{:10}{threads:>7}  {values:18}{}\n", family.arch(), family.pattern()));
}

fn copy_line(text: &mut String, family: &CopyFamily) {
    let names = family.names();
    let ends = [names.first(), names.last()].map(|name| name.and_then(|name| family.member(name).ok()));
    let [Some(first), Some(last)] = ends else { return };
    let bits = match first.bits() {
        1 => "a value".to_owned(),
        bits => span(bits, last.bits()),
    };
    let threads = first.threads().size();
    text.push_str(&format!("{:10}{threads:>7}  {bits:18}{}\n", family.arch(), family.pattern()));
}

fn bulk_line(text: &mut String, family: &BulkFamily) {
    let names = family.names();
    let ends = [names.first(), names.last()].map(|name| name.and_then(|name| family.member(name).ok()));
    let [Some(first), Some(last)] = ends else { return };
    let dimensions = match (first.dimensions(), last.dimensions()) {
        ((_, 0), _) => "-".to_owned(),
        ((fewest, _), (_, most)) if fewest < most => format!("{fewest} to {most}"),
        ((fewest, _), _) => fewest.to_string(),
    };
    text.push_str(&format!("{:10}{dimensions:>10}  {:15}{}\n", family.arch(), first.mode(), family.pattern()));
}

/// `4`, or `4 to 128`.
fn span(first: i64, last: i64) -> String {
    if first == last { first.to_string() } else { format!("{} to {}", first.min(last), first.max(last)) }
}

fn write_product(atom: &MmaAtom, options: &AtomsOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        return Ok(terminal.object(&json::product(atom))?);
    }
    let text = card::product(atom, options.window(terminal), terminal.colour);
    Ok(terminal.prose(&text)?)
}

fn write_copy(atom: &CopyAtom, options: &AtomsOptions, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        return Ok(terminal.object(&json::copy(atom))?);
    }
    let text = card::copy(atom, options.window(terminal), terminal.colour);
    Ok(terminal.prose(&text)?)
}

fn write_bulk(copy: &BulkCopy, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        return Ok(terminal.object(&json::bulk_copy(copy))?);
    }
    Ok(terminal.prose(&card::bulk_copy(copy, terminal.colour))?)
}

impl AtomsOptions {
    fn window(&self, terminal: &Terminal) -> Window {
        if self.all { Window::ALL } else { terminal.window() }
    }
}
