//! The type of the statics whose contents are the user's.
//!
//! A static must be `Sync`, which requires the resource to be `Send`. An error at the static would point at the attribute of
//! the app. So the wrapper asserts it, and a separate check reports the type where the user wrote it.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use super::{names, quiet};

/// A wrapper that makes every resource and every task `Sync`.
pub(super) fn wrapper() -> TokenStream {
    let (quiet, wrapper) = (quiet(), names::sole("Static"));
    let [t, b, n, w] = ["T", "B", "N", "W"].map(names::sole);
    let usize = quote!(::core::primitive::usize);
    let of_async_tasks = cfg!(feature = "async").then(|| {
        quote! {
            #quiet unsafe impl<#b: ::punctual::export::AsyncBody, const #n: #usize> ::core::marker::Sync
                for #wrapper<::punctual::export::AsyncTask<#b, #n>> {}

            #quiet const _: () = {
                const fn __punctual_async_tasks_are<#b: ::punctual::export::AsyncBody, const #n: #usize>() {
                    ::punctual::export::assert_sync::<::punctual::export::AsyncTask<#b, #n>>();
                }
            };
        }
    });
    quote! {
        #quiet struct #wrapper<#t>(#t);

        // Every static of a resource has an `assert_send` beside it, unless only one thread ever uses it.
        #quiet unsafe impl<#t> ::core::marker::Sync for #wrapper<::punctual::export::Resource<#t>> {}
        #quiet unsafe impl<#b: ::punctual::export::Body, const #n: #usize, const #w: #usize> ::core::marker::Sync
            for #wrapper<::punctual::export::Task<#b, #n, #w>> {}

        #of_async_tasks

        #quiet const _: () = {
            const fn __punctual_resources_of_send_types_are<#t: ::core::marker::Send>() {
                ::punctual::export::assert_sync::<::punctual::export::Resource<#t>>();
            }
            const fn __punctual_tasks_are<#b: ::punctual::export::Body, const #n: #usize, const #w: #usize>() {
                ::punctual::export::assert_sync::<::punctual::export::Task<#b, #n, #w>>();
            }
        };
    }
}

/// The static of a resource. Needs an [`assert`], unless only one thread ever uses it.
pub(super) fn resource(name: &Ident, held: TokenStream) -> TokenStream {
    let (quiet, wrapper) = (quiet(), names::sole("Static"));
    quote! {
        #quiet
        static #name: #wrapper<::punctual::export::Resource<#held>> =
            #wrapper(::punctual::export::Resource::new());
    }
}

/// A compile-time check that `ty` has the required trait, reported where the user wrote the type.
pub(super) fn assert(what: &str, ty: &Type) -> TokenStream {
    // The compiler says which part of a type is not `Send`, and no more.
    let check = if what == "send" && is_plainly_not_send(ty.to_token_stream()) { "movable" } else { what };
    let check = format_ident!("assert_{}", check);
    let call = quote_spanned!(names::at(ty.span())=> ::punctual::export::#check::<#ty>());
    quote!(const _: () = #call;)
}

/// Whether a type has in it what is never `Send`, unless another type is called so.
fn is_plainly_not_send(ty: TokenStream) -> bool {
    ty.into_iter().any(|token| match token {
        TokenTree::Ident(name) => ["Rc", "Weak", "NonNull", "MutexGuard"].iter().any(|other| name == other),
        TokenTree::Punct(punct) => punct.as_char() == '*',
        TokenTree::Group(group) => is_plainly_not_send(group.stream()),
        TokenTree::Literal(_) => false,
    })
}
