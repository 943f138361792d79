//! The type of the statics with user contents.
//!
//! A static must be `Sync`, which requires the resource to be `Send`. An error at the static would
//! point at the attribute of the app. So the wrapper asserts it, and a separate check reports the
//! type where the user wrote it.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use super::{names, quiet};

/// Returns a wrapper that makes every resource and every task `Sync`.
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

        // Every static of a resource has an `assert_send`, unless only one thread ever uses it.
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

/// Returns the static of a resource. Needs an [`assert`], unless only one thread ever uses it.
pub(super) fn resource(name: &Ident, held: TokenStream) -> TokenStream {
    let (quiet, wrapper) = (quiet(), names::sole("Static"));
    quote! {
        #quiet
        static #name: #wrapper<::punctual::export::Resource<#held>> =
            #wrapper(::punctual::export::Resource::new());
    }
}

/// Returns a compile-time check that `ty` has the required trait, reported where the user wrote the
/// type.
pub(super) fn assert(what: &str, ty: &Type) -> TokenStream {
    // The compiler names the part of a type that lacks the trait, but no alternative. So a type
    // that is known by name to lack it gets a check whose error names the alternatives.
    let check = match what {
        "send" if names_any(&NOT_SEND, ty.to_token_stream()) => "movable",
        "sync" if names_any(&NOT_SYNC, ty.to_token_stream()) => "shareable",
        _ => what,
    };
    let check = format_ident!("assert_{}", check);
    let call = quote_spanned!(names::at(ty.span())=> ::punctual::export::#check::<#ty>());
    quote!(const _: () = #call;)
}

/// Returns the check whose error names the alternatives, for a type known by name not to be `Send`.
pub(super) fn assert_movable(ty: &Type) -> Option<TokenStream> {
    names_any(&NOT_SEND, ty.to_token_stream()).then(|| assert("send", ty))
}

/// Types that are never `Send`.
const NOT_SEND: [&str; 4] = ["Rc", "Weak", "NonNull", "MutexGuard"];

/// Types that are never `Sync`.
const NOT_SYNC: [&str; 8] =
    ["Cell", "NonNull", "OnceCell", "Rc", "Receiver", "RefCell", "UnsafeCell", "Weak"];

/// Returns whether a type contains a pointer or one of `types`, judging by names.
fn names_any(types: &[&str], ty: TokenStream) -> bool {
    ty.into_iter().any(|token| match token {
        TokenTree::Ident(name) => types.iter().any(|other| name == other),
        TokenTree::Punct(punct) => punct.as_char() == '*',
        TokenTree::Group(group) => names_any(types, group.stream()),
        TokenTree::Literal(_) => false,
    })
}
