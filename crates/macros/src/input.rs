//! Parsing of the tokens of a macro call, and the tokens of its expansion.
//!
//! Law: the expansion is an expression that depends on no name at the place of the call: it is a
//! block that imports the library once, under the given path or as `::tilewright_layout`, and
//! defines a constant. A refusal is a `compile_error!` at the literal.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::literal;

/// A refused call: the message, and the location that the compiler shows.
struct Refusal {
    span: Span,
    message: String,
}

/// Expands a call of the macro `name`. The function `expression` evaluates the program in the
/// literal and returns the type and the value of the constant, both as Rust text.
pub(crate) fn expand(
    input: TokenStream,
    name: &str,
    expression: fn(&str) -> Result<(&'static str, String), String>,
) -> TokenStream {
    expansion(input, name, expression).unwrap_or_else(|refusal| compile_error(&refusal))
}

fn expansion(
    input: TokenStream,
    name: &str,
    expression: fn(&str) -> Result<(&'static str, String), String>,
) -> Result<TokenStream, Refusal> {
    let (path, program) = arguments(input, name)?;
    let refuse = |message| Refusal { span: program.span(), message };
    let source = literal::value(&program.to_string()).ok_or_else(|| refuse(usage(name)))?;
    let (kind, value) = expression(&source).map_err(refuse)?;
    let parse = |text: &str| {
        text.parse::<TokenStream>().map_err(|error| refuse(format!("the expansion of {name} is not Rust: {error}")))
    };
    let mut body = parse("use")?;
    body.extend(if path.is_empty() { parse("::tilewright_layout")? } else { path });
    body.extend(parse(&format!("as __layout; const VALUE: __layout::{kind} = {value}; VALUE"))?);
    Ok(TokenTree::Group(Group::new(Delimiter::Brace, body)).into())
}

fn usage(name: &str) -> String {
    let example = if name == "tiler!" { "[16:1;8:1]" } else { "(8,16):(16,1)" };
    format!("{name} takes a program in a string literal: {name}(\"{example}\")")
}

/// Splits the arguments into the path to the library, which may be missing, and the literal.
fn arguments(input: TokenStream, name: &str) -> Result<(TokenStream, Literal), Refusal> {
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    let mut tokens: Vec<TokenTree> = input.into_iter().collect();
    tokens.pop_if(|last| is_comma(last));
    let Some(last) = tokens.pop() else {
        return Err(Refusal { span: Span::call_site(), message: usage(name) });
    };
    let span = last.span();
    match (tokens.pop(), literal_of(last)) {
        (None, Some(program)) => Ok((TokenStream::new(), program)),
        (Some(comma), Some(program)) if is_comma(&comma) => Ok((tokens.into_iter().collect(), program)),
        _ => Err(Refusal { span, message: usage(name) }),
    }
}

/// The literal in a token. A literal that another macro passed on is wrapped in a group without
/// delimiters.
fn literal_of(token: TokenTree) -> Option<Literal> {
    match token {
        TokenTree::Literal(literal) => Some(literal),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut tokens = group.stream().into_iter();
            let only = tokens.next().filter(|_| tokens.next().is_none())?;
            literal_of(only)
        }
        _ => None,
    }
}

/// `::core::compile_error!("message")`, with all its tokens at the location of the refusal.
fn compile_error(refusal: &Refusal) -> TokenStream {
    let punct = |character, spacing| TokenTree::Punct(Punct::new(character, spacing));
    let ident = |name| TokenTree::Ident(Ident::new(name, refusal.span));
    let mut message = Literal::string(&refusal.message);
    message.set_span(refusal.span);
    let argument = TokenTree::Literal(message).into();
    let tokens = [
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        ident("core"),
        punct(':', Spacing::Joint),
        punct(':', Spacing::Alone),
        ident("compile_error"),
        punct('!', Spacing::Alone),
        TokenTree::Group(Group::new(Delimiter::Parenthesis, argument)),
    ];
    tokens
        .into_iter()
        .map(|mut token| {
            token.set_span(refusal.span);
            token
        })
        .collect()
}
