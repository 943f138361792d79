//! Collects errors, so that one build reports every mistake.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::DeriveInput;

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
