//! Parsing of the tokens of a macro call, and the tokens of its expansion.
//!
//! Law: the expansion is an expression that depends on nothing around it: a block that names the
//! library once, under the given path or as `::tilewright_layout`, and a constant in it. A refusal
//! is a `compile_error!` at the literal.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::literal;

/// A refusal of a call, and its location.
struct Refusal {
    span: Span,
    message: String,
}

/// The expansion of a call of `name`, where `expression` gives the type and the value, as text,
/// that a program stands for.
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

/// The path to the library, which may be missing, and the last argument.
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

/// The literal of a token, also if another macro passed it on.
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
