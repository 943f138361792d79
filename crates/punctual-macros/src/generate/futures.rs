//! The function that creates an async task's future, whose type has no name, and the reactor.

use std::borrow::Cow;

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{FnArg, ItemFn, Lifetime, PathArguments, Type, parse_quote};

use super::{contexts, levels, names, parameters, quiet, statics, tasks};
use crate::analyze::Analysis;
use crate::model::{App, Task};

/// Returns the function itself. If it is async, the compiler requires an explicit lifetime of its
/// context.
pub(super) fn with_lifetime(item: &ItemFn) -> Cow<'_, ItemFn> {
    let mut item = Cow::Borrowed(item);
    if item.sig.asyncness.is_some()
        && let Some(FnArg::Typed(context)) = item.to_mut().sig.inputs.first_mut()
        && let Type::Path(path) = &mut *context.ty
        && let Some(segment) = path.path.segments.last_mut()
        && segment.arguments.is_none()
    {
        let lifetime = Lifetime::new("'_", segment.ident.span());
        segment.arguments = PathArguments::AngleBracketed(parse_quote!(<#lifetime>));
    }
    item
}

/// Returns the statement that polls the task.
pub(super) fn call(task: &Task) -> TokenStream {
    let name = names::task(&task.handler.ident);
    quote! {
        // The caller runs a job of the task's level, released because there is a future to poll.
        unsafe { ::punctual::export::AsyncTask::poll(&#name.0) }
    }
}

/// Returns the size of the future, an expression.
pub(super) fn size(task: &Task) -> TokenStream {
    let make = make(task);
    quote!(::punctual::export::future_size(&#make))
}

fn make(task: &Task) -> Ident {
    names::of("future", &task.handler.ident)
}

/// Returns the function that creates the future, and its uses.
pub(super) fn body(app: &App, analysis: &Analysis, task: &Task) -> TokenStream {
    let (handler, quiet, make, life) = (&task.handler, quiet(), make(task), names::lifetime());
    let ident = &handler.ident;
    let (body, context_type, args) =
        (names::body(ident), names::exported("Context", ident), parameters::args_type(handler));
    let [context, message, storage, waking] = ["context", "message", "storage", "cx"].map(names::var);
    let (typed, parts) = tasks::message(handler, &quote!(#message));
    let (function, value) = (names::function(ident), contexts::make(app, analysis, handler));
    let stays = match analysis.local_level(app, handler) {
        None => quote!(Nothing),
        Some(_) if task.is_local() => quote!(Everything),
        Some(_) => quote!(Future),
    };
    // The span at which a future that is not `Send` is reported, unless its parts are not `Send`
    // either, which has already been reported.
    let at = names::at(ident.span());
    let place = match analysis.local_level(app, handler) {
        None => quote_spanned! {at=>
            {
                use ::punctual::export::OfUnsent as _;
                ::punctual::export::Place::<(#context_type<'_>, #args)>::NEW
                    .future(#make, (#context, #message), #storage)
            }
        },
        Some(_) => {
            quote_spanned!(at=> ::punctual::export::future_place_local(#make, (#context, #message), #storage))
        }
    };
    let sent = handler.args.iter().filter(|_| !task.is_local());
    let sent = sent.map(|arg| statics::assert("send", &arg.ty));
    quote! {
        #(#sent)*

        // For a context of any lifetime, so nothing in it outlives the future. Before edition 2024
        // the future does not capture the lifetime unless this is written.
        #quiet
        #[allow(impl_trait_redundant_captures)]
        fn #make<#life>(
            (#context, #message): (#context_type<#life>, *mut #args),
        ) -> impl ::core::future::Future + use<#life> {
            #typed
            // The caller passes the message; each part is read once.
            #function(#context, #(unsafe { ::core::ptr::read(#parts) }),*)
        }

        #quiet
        impl ::punctual::export::AsyncBody for #body {
            type Message = #args;
            const NON_SEND: ::punctual::export::NonSend = ::punctual::export::NonSend::#stays;

            unsafe fn make(#storage: *mut ::core::primitive::u8, #message: *mut #args) {
                // The caller has claimed the task, so the previous user of its resources has ended.
                let #context = unsafe { #value };
                unsafe { #place }
            }

            #[inline]
            unsafe fn poll(#storage: *mut ::core::primitive::u8, #waking: &mut ::core::task::Context<'_>) -> ::core::primitive::bool {
                unsafe { ::punctual::export::future_poll(&#make, #storage, #waking) }
            }

            unsafe fn drop(#storage: *mut ::core::primitive::u8) {
                unsafe { ::punctual::export::future_drop(&#make, #storage) }
            }
        }
    }
}

/// Returns the partition and the level of the reactor's thread, if there are async tasks that may
/// enter the kernel, and a kernel.
pub(super) fn reactor_place(app: &App, analysis: &Analysis) -> Option<(usize, u8)> {
    if cfg!(feature = "std") { analysis.reactor(app) } else { None }
}

/// Returns the statics of the reactor, if there is one: slots, and the worker of its thread.
pub(super) fn reactor_statics(app: &App, analysis: &Analysis) -> TokenStream {
    let Some((partition, level)) = reactor_place(app, analysis) else { return TokenStream::new() };
    let (quiet, worker, reactor) = (quiet(), reactor_worker(), reactor());
    let (partition, slots) = (names::partition("partition", partition), names::sole("slots"));
    // One more: see `Reactor`.
    let count = levels::waits_of(app.tasks.iter()) + 1;
    quote! {
        #quiet static #worker: ::punctual::export::Worker = ::punctual::export::Worker::new(#level);
        #quiet static #slots: [::punctual::export::WaitSlot<::core::task::Waker>; #count] =
            [const { ::punctual::export::WaitSlot::new() }; #count];
        #quiet static #reactor: ::punctual::export::Reactor =
            ::punctual::export::Reactor::new(&#partition, &#worker, &#slots);
    }
}

/// Returns the static of the reactor.
pub(super) fn reactor() -> Ident {
    names::sole("reactor")
}

/// Returns the worker of the reactor's thread.
pub(super) fn reactor_worker() -> Ident {
    names::sole("reactor_worker")
}
