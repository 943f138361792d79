//! A module without the bodies of its functions: the usable part if one of them has a syntax error.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

/// Returns `module` with the body of every function in it replaced.
pub(crate) fn without_bodies(module: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = module.into_iter().collect();
    if let Some(TokenTree::Group(content)) = tokens.last_mut() {
        *content = with(content, emptied(content.stream()));
    }
    tokens.into_iter().collect()
}

/// Returns the items in `content`: a function is recognized by `fn` before its braces.
fn emptied(content: TokenStream) -> TokenStream {
    let mut function = false;
    let mut emptied = Vec::new();
    for token in content {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let stream = if function { quote!(loop {}) } else { group.stream() };
                emptied.push(TokenTree::Group(with(&group, stream)));
                function = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                function = false;
                emptied.push(punct.into());
            }
            other => {
                function |= matches!(&other, TokenTree::Ident(name) if name == "fn");
                emptied.push(other);
            }
        }
    }
    emptied.into_iter().collect()
}

fn with(group: &Group, stream: TokenStream) -> Group {
    let mut other = Group::new(group.delimiter(), stream);
    other.set_span(group.span());
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_lose_their_bodies() {
        let module = quote! {
            #[a] mod m {
                struct S { f: fn() }
                #[task(local = [x: u8 = { 1 }])] async fn t(cx: t::Context) -> u8 { let = 3; }
                const C: fn() = f;
                impl S { fn g() { 1 + } }
            }
        };
        let emptied = without_bodies(module).to_string();
        let expected = quote! {
            #[a] mod m {
                struct S { f: fn() }
                #[task(local = [x: u8 = { 1 }])] async fn t(cx: t::Context) -> u8 { loop {} }
                const C: fn() = f;
                impl S { fn g() { 1 + } }
            }
        };
        assert_eq!(emptied, expected.to_string());
    }
}
