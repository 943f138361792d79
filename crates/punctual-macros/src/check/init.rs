//! Rules for `init`.

use syn::{Item, ReturnType, Type};

use crate::errors::Errors;
use crate::model::App;

pub(super) fn check(app: &App, errors: &mut Errors) {
    output(app, errors);
    locals(app, errors);
    main(app, errors);
    resources(app, errors);
}

fn output(app: &App, errors: &mut Errors) {
    let (shared, local) = (&app.shared.item.ident, &app.local.item.ident);
    let message = format!("`init` returns the resources: write `-> ({shared}, {local})`");
    match &app.init.handler.sig().output {
        ReturnType::Default => errors.at(&app.init.handler.ident, message),
        ReturnType::Type(_, ty) => {
            let expected = [Some(shared), Some(local)];
            let pair =
                |ty: &Type| matches!(ty, Type::Tuple(pair) if pair.elems.iter().map(single).eq(expected));
            if !pair(ty) {
                errors.at(ty, message);
            }
        }
    }
}

/// Returns the name of a type, by any path: the compiler checks the type itself.
fn single(ty: &Type) -> Option<&syn::Ident> {
    match ty {
        Type::Path(ty) if ty.qself.is_none() => {
            let last = ty.path.segments.last()?;
            last.arguments.is_none().then_some(&last.ident)
        }
        Type::Group(group) => single(&group.elem),
        Type::Paren(paren) => single(&paren.elem),
        _ => None,
    }
}

/// The fields of the `#[local]` struct do not exist until `init` has returned them.
fn locals(app: &App, errors: &mut Errors) {
    for local in app.init.handler.local_fields() {
        let name = &local.ident;
        errors
            .at(name, format_args!("`init` declares its own locals: write `{name}: <type> = <expression>`"));
    }
}

fn main(app: &App, errors: &mut Errors) {
    if let (Some(main), Some(arg)) = (&app.args.main, app.init.handler.args.first())
        && main.value
    {
        errors.at(
            &arg.pat,
            "`init` takes arguments, which no generated `main` could supply; remove `main = true` and \
             call `run` yourself",
        );
    }
}

/// Rejects `Drop` for the resource structs, which are destructured when `init` has returned them.
fn resources(app: &App, errors: &mut Errors) {
    for item in &app.items {
        let Item::Impl(implementation) = item else { continue };
        let Some((None, path, _)) = &implementation.trait_ else { continue };
        let is_drop = path.segments.last().is_some_and(|last| last.ident == "Drop");
        let Type::Path(ty) = &*implementation.self_ty else { continue };
        for name in [&app.shared.item.ident, &app.local.item.ident] {
            if is_drop && ty.path.segments.last().is_some_and(|last| last.ident == *name) {
                errors.at(
                    path,
                    format_args!(
                        "`{name}` is destructured after `init` returns it, so it cannot implement \
                         `Drop`; implement `Drop` for a field, or clean up in `#[shutdown]`"
                    ),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use crate::testing::{assert_one, errors_of_module};

    fn errors(args: TokenStream, init: TokenStream) -> Vec<String> {
        errors_of_module(args, quote! { #[shared] struct S {} #[local] struct L { a: u8 } #init })
    }

    #[test]
    fn init_returns_pair() {
        let message = "`init` returns the resources: write `-> (S, L)`";
        for init in [
            quote! { #[init] fn init(cx: init::Context) {} },
            quote! { #[init] fn init(cx: init::Context) -> S {} },
            quote! { #[init] fn init(cx: init::Context) -> (L, S) {} },
            quote! { #[init] fn init(cx: init::Context) -> (S, L, u8) {} },
        ] {
            assert_one(&errors(quote!(), init), &[message]);
        }
        for init in [
            quote! { #[init] fn init(cx: init::Context) -> (S, L) {} },
            quote! { #[init] fn init(cx: init::Context) -> (self::S, self::L) {} },
            quote! { #[init] fn init(cx: init::Context) -> ((crate::app::S), L) {} },
        ] {
            assert_eq!(errors(quote!(), init), [""; 0]);
        }
    }

    #[test]
    fn init_uses_field_of_local() {
        let init = quote! { #[init(local = [a])] fn init(cx: init::Context) -> (S, L) {} };
        assert_one(&errors(quote!(), init), &["`init` declares its own locals: write `a: <type>"]);
    }

    #[test]
    fn main_with_arguments() {
        let init = quote! { #[init] fn init(cx: init::Context, path: &str) -> (S, L) {} };
        assert_one(&errors(quote!(main = true), init.clone()), &["remove `main = true`"]);
        assert!(errors(quote!(main = false), init.clone()).is_empty());
        assert!(errors(quote!(), init).is_empty());
    }
}
