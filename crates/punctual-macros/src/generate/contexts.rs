//! The context types of the handlers, and the expressions that create them.
//!
//! The types are in the modules of their handlers, because errors name them. There, the user's
//! types have other names: [`aliases`].

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::analyze::{Analysis, LockKind};
use crate::model::{App, Arg, Handler, IDLE_LEVEL, LocalOrigin, LocalUse, Role, SharedUse, Task, TaskKind};

use super::{local, names, quiet, resources};

/// Returns the names by which the modules of the handlers refer to the user's types.
pub(super) fn aliases(app: &App) -> TokenStream {
    let quiet = quiet();
    let shared = app.shared.resources.iter();
    let shared = shared.map(|resource| (names::shared_type(&resource.ident), &resource.ty));
    let fields = app.local.fields.iter().map(|field| (names::field_type(&field.ident), &field.ty));
    let declared = app.handlers().flat_map(|handler| {
        handler.locals.iter().filter_map(|local| match &local.origin {
            LocalOrigin::Declared { ty, .. } => {
                Some((names::declared_type(&handler.ident, &local.ident), &**ty))
            }
            LocalOrigin::Field => None,
        })
    });
    let all = shared.chain(fields).chain(declared);
    let all = all.map(|(name, ty)| quote!(#quiet type #name = #ty;));
    all.chain(app.tasks.iter().map(|task| arg_aliases(&task.handler))).collect()
}

/// Returns the [`aliases`] of the types of a handler's arguments.
pub(super) fn arg_aliases(handler: &Handler) -> TokenStream {
    let quiet = quiet();
    let args = names::arg_types(handler).into_iter().zip(&handler.args);
    args.map(|(name, Arg { ty, .. })| quote!(#quiet type #name = #ty;)).collect()
}

/// Returns `Context`, `SharedResources` and `LocalResources` of a handler, for its module.
pub(super) fn types(app: &App, analysis: &Analysis, handler: &Handler) -> TokenStream {
    let (quiet, name, life) = (quiet(), &handler.ident, names::lifetime());
    let local = analysis.local_level(app, handler);
    // The context of an async task moves with its future, from thread to thread unless its level is
    // local.
    let bound = match is_async(app, handler) && local.is_none() {
        true => quote!(&#life ()),
        false => quote!((&#life (), *mut ())),
    };
    let bound = &bound;
    let context = names::export("Context", name);
    let mut fields = TokenStream::new();
    let mut all = TokenStream::new();

    if !handler.shared.is_empty() {
        let (ty, doc) = (
            names::export("SharedResources", name),
            format!("The shared resources of `{}`.", names::plain(name)),
        );
        let members = handler.shared.iter().map(|used| {
            let ident = &used.ident;
            let ty = shared_type(app, analysis, handler, used);
            quote!(pub #ident: #ty,)
        });
        fields.extend(quote!(pub shared: #ty<#life>,));
        all.extend(structure(&quiet, handler, &ty, &doc, quote!(#(#members)*), bound));
    }
    if !handler.locals.is_empty() {
        let (ty, doc) = (
            names::export("LocalResources", name),
            format!("The local resources of `{}`.", names::plain(name)),
        );
        let members = handler.locals.iter().map(|local| {
            let ident = &local.ident;
            let (ty, lifetime) = local_type(app, handler, local);
            quote!(pub #ident: &#lifetime mut #ty,)
        });
        fields.extend(quote!(pub local: #ty<#life>,));
        all.extend(structure(&quiet, handler, &ty, &doc, quote!(#(#members)*), bound));
    }
    if is_periodic(app, handler) {
        fields.extend(quote! {
            /// Release of this job: its point on the task's grid.
            pub released: ::punctual::Instant,
        });
    }
    if let Some((partition, level)) = local {
        let home = local::home(app, analysis, partition, level);
        fields.extend(quote! {
            /// Spawns the local tasks of this level.
            pub local_spawner: super::#home::LocalSpawner<#life>,
        });
    }
    let doc = format!("What `{}` is given.", names::plain(name));
    all.extend(structure(&quiet, handler, &context, &doc, fields, bound));
    all
}

fn structure(
    quiet: &TokenStream,
    handler: &Handler,
    ty: &Ident,
    doc: &str,
    fields: TokenStream,
    bound: &TokenStream,
) -> TokenStream {
    let (life, job) = (names::lifetime(), names::job(handler));
    quote! {
        #quiet
        #[doc = #doc]
        #[allow(clippy::partial_pub_fields, clippy::field_scoped_visibility_modifiers)]
        pub struct #ty<#life> {
            #fields
            // Bound to the job, and to its thread unless other threads run the level of an async
            // task as well.
            pub(super) #job: ::core::marker::PhantomData<#bound>,
        }
    }
}

/// Returns the type of a handler's access to a resource; in an app with `profile`, its locks are
/// measured.
fn shared_type(app: &App, analysis: &Analysis, handler: &Handler, used: &SharedUse) -> TokenStream {
    let ty = unmeasured_type(app, analysis, handler, used);
    match is_measured(app, analysis, handler, used) {
        true => quote!(::punctual::export::Profiled<#ty>),
        false => ty,
    }
}

/// Returns whether a handler's critical sections of a resource are measured: if it locks it, and
/// the app has `profile`.
fn is_measured(app: &App, analysis: &Analysis, handler: &Handler, used: &SharedUse) -> bool {
    let kind = analysis.lock_kind(app, level(app, handler), used);
    let locks = !matches!(kind, LockKind::Reference | LockKind::Direct);
    app.args.profile && locks && matches!(handler.role, Role::Task | Role::Idle)
}

fn unmeasured_type(app: &App, analysis: &Analysis, handler: &Handler, used: &SharedUse) -> TokenStream {
    let (ty, life) = (names::shared_type(&used.ident), names::lifetime());
    let ty = quote!(super::#ty);
    let level = level(app, handler);
    match analysis.lock_kind(app, level, used) {
        LockKind::Reference => quote!(&#life #ty),
        _ if handler.role == Role::Shutdown => quote!(&#life mut #ty),
        LockKind::Direct => quote!(&#life mut #ty),
        LockKind::Exclusive if is_async(app, handler) => {
            quote!(::punctual::export::AsyncLocked<#life, #ty, #level, #level>)
        }
        LockKind::Locked(ceiling) if is_async(app, handler) => {
            quote!(::punctual::export::AsyncLocked<#life, #ty, #level, #ceiling>)
        }
        LockKind::Across(_) => quote!(::punctual::export::GroupLocked<#life, #ty, #level>),
        LockKind::Ceiling => quote!(::punctual::export::CeilingLocked<#life, #ty, #level>),
        LockKind::Exclusive => quote!(::punctual::export::Lock<#life, #ty, #level, #level>),
        LockKind::Locked(ceiling) => quote!(::punctual::export::Lock<#life, #ty, #level, #ceiling>),
    }
}

fn local_type(app: &App, handler: &Handler, local: &LocalUse) -> (TokenStream, TokenStream) {
    let ty = match local.origin {
        LocalOrigin::Declared { .. } => names::declared_type(&handler.ident, &local.ident),
        LocalOrigin::Field => names::field_type(&local.ident),
    };
    let for_ever = match handler.role {
        Role::Init => true,
        Role::Idle => !local.is_field() || resources::is_idles(app, &local.ident),
        Role::Task => resources::is_endless(app, handler, local),
        Role::Shutdown => false,
    };
    let life = names::lifetime();
    (quote!(super::#ty), if for_ever { quote!('static) } else { quote!(#life) })
}

fn level(app: &App, handler: &Handler) -> u8 {
    app.task(handler).map_or(IDLE_LEVEL, |task| task.priority)
}

fn is_async(app: &App, handler: &Handler) -> bool {
    app.task(handler).is_some_and(Task::is_async)
}

fn is_periodic(app: &App, handler: &Handler) -> bool {
    app.task(handler).is_some_and(|task| matches!(task.kind, TaskKind::Periodic { .. }))
}

/// Returns an expression that creates the context of `handler`.
///
/// In scope are the variables `worker`, except for an async task, `release` for a periodic task,
/// and `owned` for `idle`. The caller wraps the expression in `unsafe`.
pub(super) fn make(app: &App, analysis: &Analysis, handler: &Handler) -> TokenStream {
    let name = &handler.ident;
    let marker = names::job(handler);
    let job = quote!(#marker: ::core::marker::PhantomData);
    let mut fields = TokenStream::new();
    if !handler.shared.is_empty() {
        let ty = names::exported("SharedResources", name);
        let values = handler.shared.iter().map(|used| {
            let ident = &used.ident;
            let value = shared_value(app, analysis, handler, used);
            quote!(#ident: #value,)
        });
        fields.extend(quote!(shared: #ty { #(#values)* #job },));
    }
    if !handler.locals.is_empty() {
        let ty = names::exported("LocalResources", name);
        let values = handler.locals.iter().map(|local| {
            let ident = &local.ident;
            let value = local_value(app, handler, local);
            quote!(#ident: #value,)
        });
        fields.extend(quote!(local: #ty { #(#values)* #job },));
    }
    if is_periodic(app, handler) {
        let release = names::var("release");
        fields.extend(quote!(released: #release,));
    }
    if let Some((partition, level)) = analysis.local_level(app, handler) {
        let home = local::home(app, analysis, partition, level);
        fields.extend(quote!(local_spawner: self::#home::LocalSpawner(::core::marker::PhantomData),));
    }
    let context = names::exported("Context", name);
    quote!(#context { #fields #job })
}

fn shared_value(app: &App, analysis: &Analysis, handler: &Handler, used: &SharedUse) -> TokenStream {
    let value = unmeasured_value(app, analysis, handler, used);
    let name = names::plain(&used.ident);
    match is_measured(app, analysis, handler, used) {
        true => quote!(::punctual::export::Profiled::new(#value, #name)),
        false => value,
    }
}

fn unmeasured_value(app: &App, analysis: &Analysis, handler: &Handler, used: &SharedUse) -> TokenStream {
    let (resource, worker) = (names::shared(&used.ident), names::var("worker"));
    let partition = names::partition("partition", analysis.partition(app, handler));
    match analysis.lock_kind(app, level(app, handler), used) {
        LockKind::Reference => quote!(::punctual::export::Resource::get(&#resource.0)),
        _ if handler.role == Role::Shutdown => quote!(::punctual::export::Resource::get_mut(&#resource.0)),
        LockKind::Direct => quote!(::punctual::export::Resource::get_mut(&#resource.0)),
        LockKind::Across(group) => {
            let group = names::group(group);
            quote!(::punctual::export::GroupLocked::new(&#resource.0, &#partition, &#group))
        }
        LockKind::Ceiling => {
            let ceiling = names::ceiling(&used.ident);
            quote!(::punctual::export::CeilingLocked::new(&#resource.0, &#partition, &#ceiling))
        }
        LockKind::Exclusive | LockKind::Locked(_) if is_async(app, handler) => {
            quote!(::punctual::export::AsyncLocked::new(&#resource.0, &#partition))
        }
        LockKind::Exclusive | LockKind::Locked(_) => {
            quote!(::punctual::export::Lock::new(&#resource.0, ::punctual::export::PartitionState::core(&#partition), #worker))
        }
    }
}

fn local_value(app: &App, handler: &Handler, local: &LocalUse) -> TokenStream {
    let ident = &local.ident;
    let initial = names::initial(&handler.ident, ident);
    match (&local.origin, handler.role) {
        (LocalOrigin::Declared { .. }, Role::Init | Role::Idle) => {
            quote!(::punctual::export::leak(#initial()))
        }
        (LocalOrigin::Declared { .. }, Role::Shutdown) => quote!(&mut #initial()),
        (LocalOrigin::Declared { .. }, Role::Task) => {
            let name = names::declared(&handler.ident, ident);
            stored(name, resources::is_endless(app, handler, local))
        }
        (LocalOrigin::Field, Role::Idle) if resources::is_idles(app, ident) => {
            let owned = names::var("owned");
            quote! {
                ::core::option::Option::expect(::core::option::Option::take(&mut #owned.#ident), "idle runs once")
            }
        }
        (LocalOrigin::Field, _) => stored(names::field(ident), resources::is_endless(app, handler, local)),
    }
}

/// Returns the contents of a local's static, or the value that it refers to for the rest of the
/// run.
fn stored(name: Ident, for_ever: bool) -> TokenStream {
    let value = quote!(::punctual::export::Resource::get_mut(&#name.0));
    if !for_ever {
        return value;
    }
    quote! {
        ::core::option::Option::expect(::core::option::Option::take(#value), "the task starts once")
    }
}
