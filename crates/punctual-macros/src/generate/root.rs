//! The path of the framework: `::punctual`, unless the user has renamed it.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Path;

/// Returns `tokens` with `root` in place of every `::punctual` that begins a path.
///
/// Generated code names items of the framework by such paths. In user expressions, they cannot
/// refer to another crate either.
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

/// Returns whether `before` ends in a `::` that stands for the root.
fn begins_path(before: &[TokenTree]) -> bool {
    let [before @ .., first, second] = before else { return false };
    is(first, ':') && is(second, ':') && !ends_in_segment(before)
}

/// Returns whether `tokens` end in a segment that a `::` continues: a name, or angle brackets after
/// one.
fn ends_in_segment(tokens: &[TokenTree]) -> bool {
    match tokens {
        // A lifetime, as in `&'a ::punctual::A`.
        [.., tick, TokenTree::Ident(_)] if is(tick, '\'') => false,
        [.., TokenTree::Ident(name)] => syn::parse_str::<syn::Ident>(&name.to_string()).is_ok(),
        _ => ends_in_arguments(tokens),
    }
}

/// Returns whether `tokens` end in the arguments of a name or in `<A as B>`, not in the parameters
/// of `impl<..>` and `for<..>`.
fn ends_in_arguments(tokens: &[TokenTree]) -> bool {
    let mut open = 0_u32;
    for (at, token) in tokens.iter().enumerate().rev() {
        let before = &tokens[..at];
        let is_arrow = before.last().is_some_and(|last| is(last, '-') || is(last, '='));
        match open {
            _ if is(token, '>') && !is_arrow => open += 1,
            0 => return false,
            1 if is(token, '<') => {
                let last = before.last();
                return !last.is_some_and(
                    |last| matches!(last, TokenTree::Ident(name) if name == "impl" || name == "for"),
                );
            }
            _ if is(token, '<') => open -= 1,
            _ => {}
        }
    }
    false
}

fn is(token: &TokenTree, expected: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == expected)
}

#[cfg(test)]
mod tests {
    use quote::quote;
    use syn::parse_quote;

    use super::super::hygiene;
    use super::*;

    #[track_caller]
    fn replaces(tokens: TokenStream, expected: TokenStream) {
        let root: Path = parse_quote!(crate::rt);
        assert_eq!(replaced(tokens, Some(&root)).to_string(), expected.to_string());
    }

    #[test]
    fn replaces_start_of_path() {
        replaces(
            quote!(
                fn f() -> ::punctual::A {
                    (&::punctual::B)
                }
            ),
            quote!(
                fn f() -> crate::rt::A {
                    (&crate::rt::B)
                }
            ),
        );
        replaces(
            quote!(impl ::punctual::A for &'a ::punctual::B),
            quote!(impl crate::rt::A for &'a crate::rt::B),
        );
        replaces(quote!(impl<T: A<T>> ::punctual::A<T>), quote!(impl<T: A<T>> crate::rt::A<T>));
        replaces(quote!(F: for<'a> ::punctual::A<'a>), quote!(F: for<'a> crate::rt::A<'a>));
        replaces(quote!(A => ::punctual::a(), B => a), quote!(A => crate::rt::a(), B => a));
    }

    #[test]
    fn keeps_continued_path() {
        for path in [
            quote!(punctual),
            quote!(a::punctual::B),
            quote!(A<fn() -> B>::punctual),
            quote!(<A as B>::punctual),
        ] {
            replaces(path.clone(), path);
        }
    }

    #[test]
    fn generated_code_uses_no_other_crate_root() {
        let root: Path = parse_quote!(crate::rt);
        for generated in hygiene::apps() {
            let text = replaced(generated, Some(&root)).to_string();
            let left =
                text.match_indices(" punctual ").map(|(at, _)| text.get(at.saturating_sub(60)..at + 60));
            assert_eq!(left.collect::<Vec<_>>(), []);
        }
    }
}
