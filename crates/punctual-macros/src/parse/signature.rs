//! Splits a handler's signature into its context and its arguments.
//!
//! The checks decide whether the framework allows the signature.

use proc_macro2::Span;
use quote::{ToTokens, format_ident};
use syn::{FnArg, Ident, Pat, PatType, Signature};

use crate::errors::Errors;
use crate::model::{Arg, Context};

pub(super) fn parameters(sig: &Signature, errors: &mut Errors) -> (Option<Context>, Vec<Arg>) {
    let mut typed = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(receiver) => {
            errors.at(receiver, "a handler is a free function; remove the `self`");
            None
        }
    });
    let context = typed.next().map(|parameter| Context { ty: (*parameter.ty).clone() });
    let args = typed.enumerate().map(|(index, parameter)| arg(index, parameter)).collect();
    (context, args)
}

fn arg(index: usize, parameter: &PatType) -> Arg {
    let ident = match &*parameter.pat {
        Pat::Ident(pat) if pat.subpat.is_none() => pat.ident.clone(),
        pat => fresh(index, pat),
    };
    Arg { ident, pat: (*parameter.pat).clone(), ty: (*parameter.ty).clone() }
}

fn fresh(index: usize, pat: &Pat) -> Ident {
    let span = pat.to_token_stream().into_iter().next().map_or_else(Span::call_site, |token| token.span());
    format_ident!("__arg{index}", span = span)
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn names_anonymous_patterns() {
        let sig = syn::parse2(quote! { fn t(_: t::Context, mut a: u8, _: u8, (b, c): (u8, u8)) });
        let (context, args) = parameters(&sig.expect("a signature"), &mut Errors::default());
        assert!(context.is_some());
        let names: Vec<_> = args.iter().map(|arg| arg.ident.to_string()).collect();
        assert_eq!(names, ["a", "__arg1", "__arg2"]);
    }

    #[test]
    fn methods_cannot_be_handlers() {
        let sig = syn::parse2(quote! { fn t(&self, cx: t::Context) }).expect("a signature");
        let mut errors = Errors::default();
        parameters(&sig, &mut errors);
        assert!(errors.finish().is_err_and(|error| error.to_string().contains("remove the `self`")));
    }
}
