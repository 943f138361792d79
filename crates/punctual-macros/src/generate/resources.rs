//! The statics that hold the resources, and the code that fills and empties them.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, Type};

use crate::model::{App, Handler, LocalOrigin};

use super::{names, quiet, statics};

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

/// The statics, and the functions that make the initial values of what handlers declare.
pub(super) fn all(app: &App) -> TokenStream {
    let shared = app.shared.resources.iter().map(|resource| {
        let (cfgs, ty) = (Vec::from_iter(&resource.cfgs), &resource.ty);
        let shared = statics::resource(&cfgs, &names::shared(&resource.ident), ty);
        let by_reference = app
            .handlers()
            .flat_map(|handler| &handler.shared)
            .any(|used| used.ident == resource.ident && used.access.is_reference());
        let sync = by_reference.then(|| statics::assert("sync", &cfgs, ty));
        quote!(#shared #sync)
    });
    let fields =
        app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
            statics::resource(&Vec::from_iter(&field.cfgs), &names::field(&field.ident), &field.ty)
        });
    let declared = declared(app).map(|Declared { cfgs, handler, local, ty, .. }| {
        statics::resource(&cfgs, &names::declared(handler, local), ty)
    });
    let initial = app.handlers().map(initial_values);
    quote!(#(#shared)* #(#fields)* #(#declared)* #(#initial)*)
}

/// Expressions of the user's, in functions of their own: nothing generated is in scope, `unsafe` least of all.
fn initial_values(handler: &Handler) -> TokenStream {
    let quiet = quiet();
    let values = handler.locals.iter().filter_map(|local| {
        let LocalOrigin::Declared { ty, expr } = &local.origin else { return None };
        let (outer, inner, name) = (&handler.cfgs, &local.cfgs, names::initial(&handler.ident, &local.ident));
        Some(quote!(#(#outer)* #(#inner)* #quiet fn #name() -> #ty { #expr }))
    });
    values.collect()
}

/// Statements that fill every static from the variables `shared` and `local`, which `init` returned.
pub(super) fn fill(app: &App) -> TokenStream {
    let [shared_value, local_value] = ["shared", "local"].map(names::var);
    let shared = app.shared.resources.iter().map(|resource| {
        let (cfgs, ident, name) = (&resource.cfgs, &resource.ident, names::shared(&resource.ident));
        quote! { #(#cfgs)* unsafe { ::punctual::export::Resource::fill(&#name.0, #shared_value.#ident) }; }
    });
    let fields = app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
        let (cfgs, ident, name) = (&field.cfgs, &field.ident, names::field(&field.ident));
        quote! { #(#cfgs)* unsafe { ::punctual::export::Resource::fill(&#name.0, #local_value.#ident) }; }
    });
    let declared = declared(app).map(|Declared { cfgs, handler, local, .. }| {
        let (name, initial) = (names::declared(handler, local), names::initial(handler, local));
        quote! { #(#cfgs)* unsafe { ::punctual::export::Resource::fill(&#name.0, #initial()) }; }
    });
    quote!(#(#declared)* #(#shared)* #(#fields)*)
}

/// Statements that drop what every static holds, in the order of the struct fields.
pub(super) fn empty(app: &App) -> TokenStream {
    let shared = app.shared.resources.iter().map(|resource| {
        let (cfgs, name) = (&resource.cfgs, names::shared(&resource.ident));
        quote! { #(#cfgs)* unsafe { ::punctual::export::Resource::empty(&#name.0) }; }
    });
    let fields = app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
        let (cfgs, name) = (&field.cfgs, names::field(&field.ident));
        quote! { #(#cfgs)* unsafe { ::punctual::export::Resource::empty(&#name.0) }; }
    });
    let declared = declared(app).map(|Declared { cfgs, handler, local, .. }| {
        let name = names::declared(handler, local);
        quote! { #(#cfgs)* unsafe { ::punctual::export::Resource::empty(&#name.0) }; }
    });
    quote!(#(#shared)* #(#fields)* #(#declared)*)
}

/// A local that a task declares itself.
struct Declared<'a> {
    cfgs: Vec<&'a Attribute>,
    handler: &'a Ident,
    local: &'a Ident,
    ty: &'a Type,
}

fn declared(app: &App) -> impl Iterator<Item = Declared<'_>> {
    app.tasks.iter().flat_map(|task| {
        let handler = &task.handler;
        handler.locals.iter().filter_map(|local| {
            let LocalOrigin::Declared { ty, .. } = &local.origin else { return None };
            let cfgs = handler.cfgs.iter().chain(&local.cfgs).collect();
            Some(Declared { cfgs, handler: &handler.ident, local: &local.ident, ty })
        })
    })
}
