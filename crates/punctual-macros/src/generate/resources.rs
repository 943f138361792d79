//! The statics that hold the resources, and the code that fills and empties them.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::analyse::Analysis;
use crate::model::{App, LocalOrigin};

use super::{names, quiet};

/// Whether a field of the `#[local]` struct lives in a static, for tasks and `shutdown`.
///
/// A field that only `idle` uses does not: it never leaves the thread that `init` runs on.
pub(super) fn is_static(app: &App, field: &Ident) -> bool {
    let tasks = app.tasks.iter().map(|task| &task.handler);
    let shutdown = app.shutdown.iter().map(|shutdown| &shutdown.handler);
    tasks.chain(shutdown).any(|handler| handler.local_fields().any(|local| local.ident == *field))
}

/// Whether `idle`, and nobody else, uses a field of the `#[local]` struct, which it then has for ever.
pub(super) fn is_idles(app: &App, field: &Ident) -> bool {
    let mut idle = app.idle.iter().flat_map(|idle| idle.handler.local_fields());
    !is_static(app, field) && idle.any(|local| local.ident == *field)
}

pub(super) fn statics(app: &App, _: &Analysis) -> TokenStream {
    let quiet = quiet();
    let shared = app.shared.resources.iter().map(|resource| {
        let (cfgs, ty, name) = (&resource.cfgs, &resource.ty, names::shared(&resource.ident));
        quote! { #(#cfgs)* #quiet static #name: ::punctual::export::Resource<#ty> = ::punctual::export::Resource::new(); }
    });
    let fields = app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
        let (cfgs, ty, name) = (&field.cfgs, &field.ty, names::field(&field.ident));
        quote! { #(#cfgs)* #quiet static #name: ::punctual::export::Resource<#ty> = ::punctual::export::Resource::new(); }
    });
    let declared = declared(app).map(|local| {
        let Declared { cfgs, name, ty, .. } = local;
        quote! { #cfgs #quiet static #name: ::punctual::export::Resource<#ty> = ::punctual::export::Resource::new(); }
    });
    quote!(#(#shared)* #(#fields)* #(#declared)*)
}

/// Statements that fill every static from `shared` and `local`, which `init` returned.
pub(super) fn fill(app: &App) -> TokenStream {
    let shared = app.shared.resources.iter().map(|resource| {
        let (cfgs, ident, name) = (&resource.cfgs, &resource.ident, names::shared(&resource.ident));
        quote! { #(#cfgs)* unsafe { #name.fill(shared.#ident) }; }
    });
    let fields = app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
        let (cfgs, ident, name) = (&field.cfgs, &field.ident, names::field(&field.ident));
        quote! { #(#cfgs)* unsafe { #name.fill(local.#ident) }; }
    });
    let declared = declared(app).map(|local| {
        let Declared { cfgs, name, ty, expr } = local;
        quote! { #cfgs unsafe { #name.fill({ let value: #ty = #expr; value }) }; }
    });
    quote!(#(#declared)* #(#shared)* #(#fields)*)
}

/// Statements that drop what every static holds, in the order of the struct fields.
pub(super) fn empty(app: &App) -> TokenStream {
    let shared = app.shared.resources.iter().map(|resource| {
        let (cfgs, name) = (&resource.cfgs, names::shared(&resource.ident));
        quote! { #(#cfgs)* unsafe { #name.empty() }; }
    });
    let fields = app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
        let (cfgs, name) = (&field.cfgs, names::field(&field.ident));
        quote! { #(#cfgs)* unsafe { #name.empty() }; }
    });
    let declared =
        declared(app).map(|Declared { cfgs, name, .. }| quote! { #cfgs unsafe { #name.empty() }; });
    quote!(#(#shared)* #(#fields)* #(#declared)*)
}

struct Declared {
    cfgs: TokenStream,
    name: Ident,
    ty: TokenStream,
    expr: TokenStream,
}

/// The locals that tasks declare themselves.
fn declared(app: &App) -> impl Iterator<Item = Declared> {
    app.tasks.iter().flat_map(|task| {
        let handler = &task.handler;
        handler.locals.iter().filter_map(|local| {
            let LocalOrigin::Declared { ty, expr } = &local.origin else { return None };
            let (outer, inner) = (&handler.cfgs, &local.cfgs);
            Some(Declared {
                cfgs: quote!(#(#outer)* #(#inner)*),
                name: names::declared(&handler.ident, &local.ident),
                ty: quote!(#ty),
                expr: quote!(#expr),
            })
        })
    })
}
