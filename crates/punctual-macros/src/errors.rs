//! Collects errors and warnings, so that one build reports every mistake.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, DeriveInput, Ident, Meta, Token};

/// Returns the result of `expand` for the input of a derive macro, or its errors.
pub(crate) fn derive(
    input: TokenStream,
    expand: impl FnOnce(&DeriveInput, &mut Errors) -> Option<TokenStream>,
) -> TokenStream {
    let mut errors = Errors::default();
    let expansion = errors.take(syn::parse2(input)).and_then(|input| expand(&input, &mut errors));
    match (errors.finish(), expansion) {
        (Err(error), _) => error.into_compile_error(),
        (Ok(()), expansion) => expansion.unwrap_or_default(),
    }
}

/// The errors so far, in order.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    /// Records `message` at the source of `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.0.push(syn::Error::new_spanned(tokens, message));
    }

    /// Returns the value of a result, or records its error.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Returns all recorded errors as one, or `Ok` if none exist.
    pub(crate) fn finish(self) -> syn::Result<()> {
        let combined = self.0.into_iter().reduce(|mut all, error| {
            all.combine(error);
            all
        });
        combined.map_or(Ok(()), Err)
    }
}

/// The warnings so far, in order: each at a name in the user's code.
#[derive(Default)]
pub(crate) struct Warnings(Vec<(Ident, String)>);

impl Warnings {
    /// Records `message` at `name`.
    pub(crate) fn at(&mut self, name: &Ident, message: impl Display) {
        self.0.push((name.clone(), message.to_string()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Ident, String)> {
        self.0.iter()
    }
}

/// Returns whether the attributes of an item suppress warnings: about unused items, or all those of
/// this crate, which the compiler issues as uses of deprecated items.
pub(crate) fn suppresses_warnings(attrs: &[Attribute]) -> bool {
    const LINTS: [&str; 4] = ["dead_code", "deprecated", "unused", "warnings"];
    let is_one = |lint: &Meta| LINTS.iter().any(|name| lint.path().is_ident(name));
    attrs.iter().filter(|attr| attr.path().is_ident("allow")).any(|attr| {
        let lints = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
        lints.is_ok_and(|lints| lints.iter().any(is_one))
    })
}
