//! Checks of the user's types that only the compiler can make, at the user's spans.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Type};

use crate::model::{App, LocalOrigin, TaskKind};

use super::resources;

/// Everything that may run on more than one thread is `Send`, and `Sync` where it is shared by `&`.
pub(super) fn all(app: &App) -> TokenStream {
    let mut all = TokenStream::new();
    let shared_by_reference = |name: &Ident| {
        let mut uses = app.handlers().flat_map(|handler| &handler.shared);
        uses.any(|used| used.ident == *name && used.access.is_reference())
    };
    for resource in &app.shared.resources {
        all.extend(assert("send", &resource.cfgs, &resource.ty));
        if shared_by_reference(&resource.ident) {
            all.extend(assert("sync", &resource.cfgs, &resource.ty));
        }
    }
    for field in app.local.fields.iter().filter(|field| resources::is_static(app, &field.ident)) {
        all.extend(assert("send", &field.cfgs, &field.ty));
    }
    for task in &app.tasks {
        for arg in &task.handler.args {
            all.extend(assert("send", &task.handler.cfgs, &arg.ty));
        }
        for local in &task.handler.locals {
            if let LocalOrigin::Declared { ty, .. } = &local.origin {
                let cfgs: Vec<_> = task.handler.cfgs.iter().chain(&local.cfgs).cloned().collect();
                all.extend(assert("send", &cfgs, ty));
            }
        }
        if let TaskKind::Bound { source } = &task.kind
            && let Some(field) = app.local_field(source)
        {
            all.extend(assert("event_source", &task.handler.cfgs, &field.ty));
        }
    }
    all
}

fn assert(what: &str, cfgs: &[Attribute], ty: &Type) -> TokenStream {
    let check = quote::format_ident!("assert_{}", what);
    let call = quote_spanned!(ty.span()=> ::punctual::export::#check::<#ty>());
    quote!(#(#cfgs)* const _: () = #call;)
}
