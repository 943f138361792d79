//! The parameters of a handler: in the functions that release it, and as its message.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

use crate::model::Handler;

use super::names;

/// The parameters of a function that releases a task, in its module.
pub(super) struct Parameters {
    pub(super) types: Vec<TokenStream>,
    pub(super) names: Vec<Ident>,
    /// The type of the message.
    pub(super) args: TokenStream,
    /// The message, made of the names.
    pub(super) value: TokenStream,
}

pub(super) fn parameters(handler: &Handler) -> Parameters {
    let types = names::arg_types(handler).into_iter().map(|ty| quote_spanned!(ty.span()=> super::#ty));
    let (types, names) = (Vec::from_iter(types), names::params(&handler.args));
    let (args, value) = (tuple(&types), tuple(&names));
    Parameters { types, names, args, value }
}

impl Parameters {
    /// Returns the parameters of a function whose body is from [`pass`](Self::pass).
    pub(super) fn passed(&self) -> TokenStream {
        let Self { types, names, .. } = self;
        // A single parameter is the message.
        let mutable = (names.len() == 1).then(|| quote!(mut));
        quote!(#(#mutable #names: #types),*)
    }

    /// Returns statements that call `spawn`, an unsafe expression that moves the message out of
    /// this pointer.
    pub(super) fn pass(&self, spawn: impl FnOnce(TokenStream) -> TokenStream) -> TokenStream {
        let Self { names, args, value, .. } = self;
        let [message, result] = ["message", "result"].map(names::var);
        let (message, tuple) = match &**names {
            // Not moved into a variable, which would be another copy on the stack of a debug build.
            [name] => (name, None),
            _ => (&message, Some(quote!(let mut #message = #value;))),
        };
        let spawn = spawn(quote!(&raw mut #message));
        quote! {
            #tuple
            let #result = unsafe { #spawn };
            // The message has been moved out. A call of `forget` would be another copy in a debug
            // build.
            if const { ::core::mem::needs_drop::<#args>() } {
                ::core::mem::forget(#message);
            }
            #result
        }
    }
}

/// Returns the type of a message: a single argument itself, or a tuple of several.
///
/// The tuple has the span of the function's parameters, at which a type that is not `Send` is
/// reported.
pub(super) fn args_type(handler: &Handler) -> TokenStream {
    let types: Vec<_> = handler.args.iter().map(|arg| &arg.ty).collect();
    let mut types = tuple(&types);
    if handler.args.len() > 1 {
        types =
            types.into_iter().map(|token| located(token, handler.sig().paren_token.span.join())).collect();
    }
    types
}

fn located(mut token: TokenTree, span: Span) -> TokenTree {
    token.set_span(span);
    token
}

/// Returns a single item, or a tuple of several. For names, it is both a pattern and an expression.
pub(super) fn tuple(parts: &[impl ToTokens]) -> TokenStream {
    match parts {
        [part] => quote!(#part),
        _ => quote!((#(#parts),*)),
    }
}
