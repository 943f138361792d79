//! The statics that store the resources, and the code that fills and empties them.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::Type;

use super::{names, option, quiet, statics};
use crate::analyze::Analysis;
use crate::model::{App, Handler, LocalOrigin, LocalUse, SharedUse, Task};

/// Returns whether a field of the `#[local]` struct is stored in a static, for tasks and
/// `shutdown`.
///
/// A field used only by `idle` is not: it never leaves the thread that `init` runs on.
pub(super) fn is_static(app: &App, field: &Ident) -> bool {
    let tasks = app.tasks.iter().map(|task| &task.handler);
    let shutdown = app.shutdown.iter().map(|shutdown| &shutdown.handler);
    tasks.chain(shutdown).any(|handler| handler.local_fields().any(|local| local.ident == *field))
}

/// Returns whether only `idle` uses a field of the `#[local]` struct, which it then owns for the
/// rest of the run.
pub(super) fn is_idles(app: &App, field: &Ident) -> bool {
    let mut idle = app.idle.iter().flat_map(|idle| idle.handler.local_fields());
    !is_static(app, field) && idle.any(|local| local.ident == *field)
}

/// Returns whether a local belongs to its task forever: that of an async task that never completes,
/// unless `shutdown` takes it over.
///
/// It is not dropped at the end of the run, because values derived from the reference may still
/// exist.
pub(super) fn is_endless(app: &App, handler: &Handler, local: &LocalUse) -> bool {
    let endless = |handler| app.task(handler).is_some_and(Task::is_endless);
    endless(handler) && (!local.is_field() || is_field_endless(app, &local.ident))
}

/// [`is_endless`] for a field of the `#[local]` struct, with any user.
fn is_field_endless(app: &App, field: &Ident) -> bool {
    let uses = |handler: &&Handler| handler.local_fields().any(|local| local.ident == *field);
    let mut users = app.handlers().filter(uses);
    is_static(app, field) && users.all(|user| app.task(user).is_some_and(Task::is_endless))
}

/// Returns the statics, and the functions that create the initial values of declared locals.
pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let shared = app.shared.resources.iter().zip(&analysis.resources).map(|(resource, users)| {
        let ty = &resource.ty;
        let shared = statics::resource(&names::shared(&resource.ident), quote!(#ty));
        // `init`, `idle`, and the end of the run are on one thread; `shutdown` need not be.
        let moves = !users.is_idles() || app.shutdown.iter().any(|hook| uses(&hook.handler, &resource.ident));
        let send = moves.then(|| statics::assert("send", ty));
        // Jobs of one level run in sequence.
        let together = users.levels.len() > 1 || users.partitions.len() > 1;
        // A future that holds such a reference moves from thread to thread; the error has to point
        // at the field first.
        let keeps = |handler: &&Handler| {
            let refers = |used: &SharedUse| used.ident == resource.ident && used.access.is_reference();
            app.task(handler).is_some_and(Task::is_async)
                && analysis.local_level(app, handler).is_none()
                && handler.shared.iter().any(refers)
        };
        // `shutdown` may run concurrently with an `idle` that does not return.
        let beside = users.is_idles() && app.shutdown.iter().any(|hook| uses(&hook.handler, &resource.ident));
        let together = together || beside || app.handlers().any(|handler| keeps(&handler));
        let sync = (users.by_reference && together).then(|| statics::assert("sync", ty));
        quote!(#shared #send #sync)
    });
    let fields = app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
        local_static(&names::field(&field.ident), &field.ty, is_field_endless(app, &field.ident))
    });
    let declared = declared(app).map(|Declared { handler, local, ty, endless }| {
        local_static(&names::declared(handler, local), ty, endless)
    });
    let initial = app.handlers().map(initial_values);
    quote!(#(#shared)* #(#fields)* #(#declared)* #(#initial)*)
}

fn uses(handler: &Handler, resource: &Ident) -> bool {
    handler.shared.iter().any(|used| used.ident == *resource)
}

fn local_static(name: &Ident, ty: &Type, endless: bool) -> TokenStream {
    let held = if endless { quote!(::core::option::Option<&'static mut #ty>) } else { quote!(#ty) };
    let (statik, send) = (statics::resource(name, held), statics::assert("send", ty));
    quote!(#statik #send)
}

/// Returns the value with which the static of a local is filled.
fn held(value: TokenStream, endless: bool) -> TokenStream {
    if endless { option(Some(quote!(::punctual::export::leak(#value)))) } else { value }
}

/// User expressions, in separate functions: no generated name is in scope, in particular no
/// `unsafe`.
fn initial_values(handler: &Handler) -> TokenStream {
    let quiet = quiet();
    let values = handler.locals.iter().filter_map(|local| {
        let LocalOrigin::Declared { ty, expr } = &local.origin else { return None };
        let name = names::initial(&handler.ident, &local.ident);
        Some(quote!(#quiet fn #name() -> #ty { #expr }))
    });
    values.collect()
}

/// Returns statements that fill every static from the variables `shared` and `local`, which `init`
/// returned.
pub(super) fn fill(app: &App) -> TokenStream {
    let [shared_value, local_value] = ["shared", "local"].map(names::var);
    let shared = app.shared.resources.iter().map(|resource| {
        let (ident, name) = (&resource.ident, names::shared(&resource.ident));
        quote! { unsafe { ::punctual::export::Resource::fill(&#name.0, #shared_value.#ident) }; }
    });
    let fields = app.local.fields.iter().filter(|field| is_static(app, &field.ident)).map(|field| {
        let (ident, name) = (&field.ident, names::field(&field.ident));
        let value = held(quote!(#local_value.#ident), is_field_endless(app, ident));
        quote! { unsafe { ::punctual::export::Resource::fill(&#name.0, #value) }; }
    });
    let [done, undo] = ["done", "undo"].map(names::var);
    let declared = declared(app).map(|Declared { handler, local, endless, .. }| {
        let (name, initial) = (names::declared(handler, local), names::initial(handler, local));
        let value = held(quote!(#initial()), endless);
        let empty = quote!(unsafe { ::punctual::export::Resource::empty(&#name.0) });
        quote! {
            unsafe { ::punctual::export::Resource::fill(&#name.0, #value) };
            let #undo = ::punctual::export::Undo(&#done, || #empty);
        }
    });
    // Of these, only the initial values are user code, which may panic.
    quote! {
        let #done = ::core::cell::Cell::new(false);
        #(#declared)*
        #(#shared)*
        #(#fields)*
        ::core::cell::Cell::set(&#done, true);
    }
}

/// Returns statements that drop the contents of every static, in the order of the struct fields,
/// and then those of the variable `owned`; each through the variable `drops`.
pub(super) fn empty(app: &App) -> TokenStream {
    let [drops, value, source] = ["drops", "value", "owned"].map(names::var);
    let shared = app.shared.resources.iter().map(|resource| {
        let (name, text) = (names::shared(&resource.ident), names::plain(&resource.ident));
        emptied(&text, &name)
    });
    let (fields, owned): (Vec<_>, Vec<_>) =
        app.local.fields.iter().partition(|field| is_static(app, &field.ident));
    let fields = fields.into_iter().map(|field| {
        let (name, text) = (names::field(&field.ident), names::plain(&field.ident));
        emptied(&text, &name)
    });
    let declared = declared(app).map(|Declared { handler, local, .. }| {
        let (name, text) = (
            names::declared(handler, local),
            format!("{} of {}", names::plain(local), names::plain(handler)),
        );
        emptied(&text, &name)
    });
    let owned = owned.into_iter().map(|field| {
        let (ident, text) = (names::own(&field.ident), names::plain(&field.ident));
        quote! {
            {
                let #value = #source.#ident;
                ::punctual::export::Drops::resource(#drops, #text, move || ::core::mem::drop(#value));
            }
        }
    });
    quote!(#(#shared)* #(#fields)* #(#declared)* #(#owned)*)
}

/// Returns a statement that drops the contents of the static `name` through the variable `drops`,
/// which reports `text` if that panics.
fn emptied(text: &str, name: &Ident) -> TokenStream {
    let drops = names::var("drops");
    quote! {
        ::punctual::export::Drops::resource(#drops, #text, || unsafe {
            ::punctual::export::Resource::empty(&#name.0)
        });
    }
}

/// A local that a task declares.
struct Declared<'a> {
    handler: &'a Ident,
    local: &'a Ident,
    ty: &'a Type,
    /// See [`is_endless`].
    endless: bool,
}

fn declared(app: &App) -> impl Iterator<Item = Declared<'_>> {
    app.tasks.iter().flat_map(|task| {
        let handler = &task.handler;
        handler.locals.iter().filter_map(|local| {
            let LocalOrigin::Declared { ty, .. } = &local.origin else { return None };
            let endless = task.is_endless();
            Some(Declared { handler: &handler.ident, local: &local.ident, ty, endless })
        })
    })
}

/// Returns the locks of resources whose users run in parallel: in several partitions, or under the
/// global executor.
pub(super) fn locks(app: &App, analysis: &Analysis) -> TokenStream {
    let quiet = quiet();
    let groups = analysis.groups.iter().enumerate().map(|(group, &spins)| {
        let name = names::group(group);
        quote! {
            #quiet static #name: ::punctual::export::Group = ::punctual::export::Group::new(#spins);
        }
    });
    let Some(protocol) = protocol(app) else { return quote!(#(#groups)*) };
    let resources = app.shared.resources.iter().zip(&analysis.resources);
    let mutexes = resources.filter(|(_, users)| users.is_across()).map(|(resource, users)| {
        let (name, ceiling) = (names::ceiling(&resource.ident), users.ceiling());
        quote! {
            #quiet
            static #name: ::punctual::export::CeilingMutex =
                ::punctual::export::CeilingMutex::new(&#protocol, #ceiling, ());
        }
    });
    quote! {
        #quiet static #protocol: ::punctual::export::Ceilings = ::punctual::export::Ceilings::new();
        #(#mutexes)*
    }
}

/// The static that all locks of the global executor belong to.
pub(super) fn protocol(app: &App) -> Option<Ident> {
    app.args.global.is_some().then(|| names::sole("ceilings"))
}
