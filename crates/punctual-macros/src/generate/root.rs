//! The path of the framework: `::punctual`, unless the user has it under another name.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Path;

/// `tokens` with `root` in place of every `::punctual` that begins a path.
///
/// What generated code mentions of the framework begins so. Where the user's expressions in it do, they cannot mean
/// another crate than this one.
pub(super) fn replaced(tokens: TokenStream, root: Option<&Path>) -> TokenStream {
    let Some(root) = root else { return tokens };
    let mut replaced = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), self::replaced(group.stream(), Some(root)));
                inner.set_span(group.span());
                replaced.push(inner.into());
            }
            TokenTree::Ident(name) if name == "punctual" && begins_path(&replaced) => {
                replaced.truncate(replaced.len() - 2);
                replaced.extend(root.to_token_stream());
            }
            other => replaced.push(other),
        }
    }
    replaced.into_iter().collect()
}

/// Whether `before` ends in a `::` that stands for the root.
fn begins_path(before: &[TokenTree]) -> bool {
    let [before @ .., first, second] = before else { return false };
    let is =
        |token: &TokenTree, expected| matches!(token, TokenTree::Punct(punct) if punct.as_char() == expected);
    let continues = match before {
        [.., TokenTree::Ident(name)] => syn::parse_str::<syn::Ident>(&name.to_string()).is_ok(),
        [.., dash, angle] => is(angle, '>') && !is(dash, '-'),
        _ => false,
    };
    is(first, ':') && is(second, ':') && !continues
}

#[cfg(test)]
mod tests {
    use quote::quote;
    use syn::parse_quote;

    use super::*;

    #[test]
    fn paths_begin_elsewhere() {
        let root: Path = parse_quote!(crate::rt);
        let tokens = quote!(fn f() -> ::punctual::A { punctual(x::punctual::B, (&::punctual::C, impl ::punctual::D)) });
        let expected =
            quote!(fn f() -> crate::rt::A { punctual(x::punctual::B, (&crate::rt::C, impl crate::rt::D)) });
        assert_eq!(replaced(tokens, Some(&root)).to_string(), expected.to_string());
    }
}
