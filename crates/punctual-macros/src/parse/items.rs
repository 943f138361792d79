//! A module without the items that have syntax errors: the usable part of a broken one.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Item};

/// Returns `module` without the items that cannot be parsed. The names of handlers among them are
/// preserved.
pub(crate) fn without_broken_items(module: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = module.into_iter().collect();
    if let Some(TokenTree::Group(content)) = tokens.last_mut() {
        // The closure consumes all its input, so the parser itself reports nothing.
        let whole = Parser::parse2(items, content.stream()).unwrap_or_default();
        let span = content.span();
        *content = Group::new(content.delimiter(), whole);
        content.set_span(span);
    }
    tokens.into_iter().collect()
}

fn items(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut output = TokenStream::new();
    let inner = input.fork();
    if let Ok(attrs) = inner.call(Attribute::parse_inner) {
        input.advance_to(&inner);
        output.extend(quote!(#(#attrs)*));
    }
    while !input.is_empty() {
        let ahead = input.fork();
        match ahead.parse::<Item>() {
            Ok(item) => {
                input.advance_to(&ahead);
                item.to_tokens(&mut output);
            }
            Err(_) => output.extend(outline(&skip_item(input)?)),
        }
    }
    Ok(output)
}

/// Skips a candidate for an item, up to a semicolon or braces.
fn skip_item(input: ParseStream<'_>) -> syn::Result<Vec<TokenTree>> {
    let mut skipped = Vec::new();
    while !input.is_empty() {
        let token: TokenTree = input.parse()?;
        let ends = match &token {
            TokenTree::Punct(punct) => punct.as_char() == ';',
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Ident(_) | TokenTree::Literal(_) => false,
        };
        skipped.push(token);
        if ends {
            break;
        }
    }
    Ok(skipped)
}

/// Returns the handler that broken tokens were meant to be, if any, with only its role and its
/// name.
///
/// It is generic, which marks its arguments as unknown.
fn outline(tokens: &[TokenTree]) -> Option<TokenStream> {
    let place = tokens.iter().position(|token| is_ident(token, &["fn"]))?;
    let TokenTree::Ident(name) = tokens.get(place + 1)? else { return None };
    let role = tokens[..place].windows(2).rev().find_map(|pair| role(&pair[0], &pair[1]))?;
    Some(quote!(#[#role] fn #name<'unknown>() {}))
}

/// Returns the role given by `#` and brackets.
fn role(hash: &TokenTree, brackets: &TokenTree) -> Option<Ident> {
    let (TokenTree::Punct(hash), TokenTree::Group(brackets)) = (hash, brackets) else { return None };
    let first = brackets.stream().into_iter().next()?;
    match first {
        TokenTree::Ident(role)
            if hash.as_char() == '#'
                && is_ident(&role.clone().into(), &["init", "idle", "shutdown", "task"]) =>
        {
            Some(role)
        }
        _ => None,
    }
}

fn is_ident(token: &TokenTree, names: &[&str]) -> bool {
    matches!(token, TokenTree::Ident(ident) if names.iter().any(|name| ident == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_whole_items_and_names_of_broken_handlers() {
        let module = quote! {
            #[a] pub mod m {
                #![b]
                use x::{y, z};
                struct S { f: }
                #[shared] struct Shared { f: u8 }
                #[init] fn init(_: init::Context) -> (Shared, Local) { loop {} }
                const N: u8 = ;
                #[doc = "d"] #[task(priority = 2)] fn broken(_: broken::Context, _ u8) { loop {} }
                #[task] fn whole(_: whole::Context, n: u8) { loop {} }
                fn helper() -> { loop {} }
            }
        };
        let expected = quote! {
            #[a] pub mod m {
                #![b]
                use x::{y, z};
                #[shared] struct Shared { f: u8 }
                #[init] fn init(_: init::Context) -> (Shared, Local) { loop {} }
                #[task] fn broken<'unknown>() {}
                #[task] fn whole(_: whole::Context, n: u8) { loop {} }
            }
        };
        assert_eq!(without_broken_items(module).to_string(), expected.to_string());
    }
}
