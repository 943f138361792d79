//! The tasks: their bodies, their statics, and the functions that release them.

use proc_macro2::TokenStream;
use quote::quote;

use crate::analyse::Analysis;
use crate::model::{App, Arg, Handler, Overrun, Task, TaskKind};

use super::{contexts, duration, levels, names, quiet};

pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let tasks = app.tasks.iter().enumerate();
    tasks
        .map(|(index, task)| {
            let parts = [body(app, analysis, task), release(task), statics(app, analysis, index, task)];
            quote!(#(#parts)*)
        })
        .collect()
}

/// The type that stands for the task, and what the executor asks of it.
fn body(app: &App, analysis: &Analysis, task: &Task) -> TokenStream {
    let (handler, quiet) = (&task.handler, quiet());
    let (cfgs, ident, level) = (&handler.cfgs, &handler.ident, task.priority);
    let (body, runtime, name) = (names::body(ident), names::sole("runtime"), ident.to_string());
    let (args, names) = (args_type(handler), args_pattern(handler));
    let passed = handler.args.iter().map(|Arg { ident, .. }| ident);
    let context = contexts::make(app, analysis, handler);
    let monitor = app.args.monitor();
    let deadline = match (&task.deadline, &task.kind) {
        (Some(deadline), _) => Some(duration(deadline)),
        (None, TaskKind::Periodic { period, .. }) => Some(duration(period)),
        (None, _) => None,
    };
    let deadline = deadline.map_or(quote!(None), |deadline| quote!(Some(#deadline)));
    let execution =
        task.execution.as_ref().map_or(quote!(::punctual::export::Duration::from_ticks(0)), duration);
    let after = after(task);
    let bound = bound(task);
    quote! {
        #(#cfgs)* #quiet pub struct #body;

        #(#cfgs)* #quiet
        impl ::punctual::export::Body for #body {
            type Args = #args;
            const NAME: &'static str = #name;
            const LEVEL: u8 = #level;
            const MONITOR: bool = #monitor;
            const DEADLINE: Option<::punctual::export::Duration> = #deadline;
            const EXECUTION: ::punctual::export::Duration = #execution;

            #[inline(always)]
            fn runtime() -> &'static ::punctual::export::Runtime {
                &#runtime
            }

            #[inline(always)]
            unsafe fn call(
                worker: &'static ::punctual::export::Worker,
                release: ::punctual::export::Instant,
                #names: #args,
            ) {
                // The caller runs a job of this level on `worker`'s thread, the only one of this task.
                let context = unsafe { #context };
                #ident(context, #(#passed),*);
            }

            #after
        }

        #bound
    }
}

fn after(task: &Task) -> TokenStream {
    let ident = &task.handler.ident;
    let statement = match &task.kind {
        TaskKind::Message => return TokenStream::new(),
        TaskKind::Periodic { .. } => {
            let grid = names::grid(ident);
            quote!(#grid.completed(end.unwrap_or_else(::punctual::now)))
        }
        TaskKind::Bound { .. } => {
            let task = names::task(ident);
            quote!(unsafe { #task.after_job() })
        }
    };
    quote! {
        #[inline]
        unsafe fn after(end: ::punctual::export::Stamp) {
            #statement;
        }
    }
}

fn bound(task: &Task) -> TokenStream {
    let TaskKind::Bound { source } = &task.kind else { return TokenStream::new() };
    let (cfgs, quiet, body, field) =
        (&task.handler.cfgs, quiet(), names::body(&task.handler.ident), names::field(source));
    quote! {
        #(#cfgs)* #quiet
        impl ::punctual::export::Bound for #body {
            unsafe fn fd() -> ::std::os::fd::RawFd {
                // The caller excludes jobs of the task, the only users of its local.
                ::punctual::export::raw_fd(unsafe { #field.get() })
            }
        }
    }
}

/// `spawn` and its kin, or `pend`.
fn release(task: &Task) -> TokenStream {
    let (handler, quiet) = (&task.handler, quiet());
    let (cfgs, ident) = (&handler.cfgs, &handler.ident);
    let statik = names::task(ident);
    match &task.kind {
        TaskKind::Periodic { .. } => TokenStream::new(),
        TaskKind::Bound { .. } => {
            let pend = names::of("pend", ident);
            quote! {
                /// Releases a job of this task, as its event source does. Does nothing if one is waiting.
                #(#cfgs)* #quiet #[inline]
                pub fn #pend() {
                    #statik.pend()
                }
            }
        }
        TaskKind::Message => {
            let [spawn, after, at, handle] =
                ["spawn", "spawn_after", "spawn_at", "SpawnHandle"].map(|what| names::of(what, ident));
            let (body, slots) = (names::body(ident), slots(task));
            let args = args_type(handler);
            let value = args_value(handler);
            let params = handler.args.iter().map(|Arg { ident, ty, .. }| quote!(#ident: #ty));
            let params = quote!(#(#params),*);
            quote! {
                /// A job that is going to be released, to be cancelled or moved.
                #(#cfgs)* #quiet
                pub type #handle = ::punctual::SpawnHandle<#body, #slots>;

                /// Releases a job. If its level is above the partition's, it has run when this returns.
                ///
                /// Gives the arguments back if the capacity is used up or the app is not running.
                #(#cfgs)* #quiet #[inline]
                pub fn #spawn(#params) -> ::core::result::Result<(), #args> {
                    #statik.spawn(#value)
                }

                /// Releases a job after a while. Errors are those of `spawn`.
                #(#cfgs)* #quiet
                pub fn #after(
                    after: ::punctual::Duration, #params
                ) -> ::core::result::Result<#handle, #args> {
                    ::punctual::SpawnHandle::after(&#statik, after, #value)
                }

                /// Releases a job at a point in time. Errors are those of `spawn`.
                #(#cfgs)* #quiet
                pub fn #at(at: ::punctual::Instant, #params) -> ::core::result::Result<#handle, #args> {
                    ::punctual::SpawnHandle::at(&#statik, at, #value)
                }
            }
        }
    }
}

fn statics(app: &App, analysis: &Analysis, index: usize, task: &Task) -> TokenStream {
    let (cfgs, ident, quiet) = (&task.handler.cfgs, &task.handler.ident, quiet());
    let (statik, body, level) =
        (names::task(ident), names::body(ident), names::level("level", task.priority));
    let base = levels::base(app, analysis, index);
    match &task.kind {
        TaskKind::Message => {
            let slots = slots(task);
            quote! {
                #(#cfgs)* #quiet
                static #statik: ::punctual::export::Task<#body, #slots> =
                    ::punctual::export::Task::new(&#level, #base);
            }
        }
        TaskKind::Bound { .. } => {
            let (listener, priority) = (names::listener(ident), task.priority);
            quote! {
                #(#cfgs)* #quiet
                static #listener: ::punctual::export::Worker = ::punctual::export::Worker::new(#priority);
                #(#cfgs)* #quiet
                static #statik: ::punctual::export::BoundTask<#body> =
                    ::punctual::export::BoundTask::new(&#level, #base, &#listener);
            }
        }
        TaskKind::Periodic { period, offset, on_overrun } => {
            let (grid, capacity) = (names::grid(ident), u32::from(task.capacity));
            let period = duration(period);
            let offset =
                offset.as_ref().map_or(quote!(::punctual::export::Duration::from_ticks(0)), duration);
            let (policy, hook) = match on_overrun {
                Overrun::Skip => (quote!(Skip), quote!(None)),
                Overrun::Queue => (quote!(Queue), quote!(None)),
                Overrun::Stop => (quote!(Hook), quote!(Some(::punctual::export::stop_on_overrun::<#body>))),
                Overrun::Handler(handler) => {
                    let handler = names::task(handler);
                    // A handler that has not caught up with the last overrun will see this one too.
                    (quote!(Hook), quote!(Some(|| { let _ = #handler.spawn(()); })))
                }
            };
            quote! {
                #(#cfgs)* #quiet
                static #grid: ::punctual::export::Periodic = ::punctual::export::Periodic::new(
                    #base, #capacity, #period, #offset, ::punctual::export::OverrunPolicy::#policy, #hook
                );
                #(#cfgs)* #quiet
                static #statik: ::punctual::export::PeriodicTask<#body> =
                    ::punctual::export::PeriodicTask::new(&#level, &#grid, #period);
            }
        }
    }
}

/// The const arguments that say how many slots a task has.
fn slots(task: &Task) -> TokenStream {
    let capacity = usize::from(task.capacity);
    let words = capacity.div_ceil(64);
    quote!(#capacity, #words)
}

/// One argument stands for itself, several make a tuple.
fn args_type(handler: &Handler) -> TokenStream {
    let types = handler.args.iter().map(|arg| &arg.ty);
    match handler.args.len() {
        1 => quote!(#(#types)*),
        _ => quote!((#(#types),*)),
    }
}

fn args_value(handler: &Handler) -> TokenStream {
    let values = handler.args.iter().map(|arg| &arg.ident);
    match handler.args.len() {
        1 => quote!(#(#values)*),
        _ => quote!((#(#values),*)),
    }
}

/// As a pattern, a value's names look the same.
fn args_pattern(handler: &Handler) -> TokenStream {
    match handler.args.len() {
        0 => quote!(_),
        _ => args_value(handler),
    }
}
