//! The tasks: their bodies, their statics, and the functions that release them.

use std::fmt;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Path, ReturnType, Type};

use crate::analyze::Analysis;
use crate::model::{App, Duration, Handler, Interval, OnOverrun, Task, TaskKind};

use super::parameters::{Parameters, args_type, parameters};
use super::{contexts, duration, futures, levels, limits, names, option, quiet, statics};

pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let tasks = app.tasks.iter().enumerate();
    tasks
        .map(|(index, task)| {
            let parts = [body(app, analysis, index, task), statics(app, analysis, index, task)];
            quote!(#(#parts)*)
        })
        .collect()
}

/// Returns the path of a task's static, as an expression.
pub(super) fn place(task: &Task) -> TokenStream {
    let name = names::task(&task.handler.ident);
    match task.kind {
        TaskKind::Message | TaskKind::Async => quote!(#name.0),
        TaskKind::Periodic { .. } | TaskKind::Bound { .. } => quote!(#name),
    }
}

/// Returns the type of the static at [`place`], without its arguments.
pub(super) fn kind(task: &Task) -> TokenStream {
    match task.kind {
        TaskKind::Message => quote!(::punctual::export::Task),
        TaskKind::Async => quote!(::punctual::export::AsyncTask),
        TaskKind::Periodic { .. } => quote!(::punctual::export::PeriodicTask),
        TaskKind::Bound { .. } => quote!(::punctual::export::BoundTask),
    }
}

/// Returns the deadline of a task, an `Option`: for a periodic one, by default the period.
pub(super) fn deadline(task: &Task) -> TokenStream {
    option(match (&task.deadline, &task.kind) {
        (Some(deadline), _) => Some(duration(deadline)),
        (None, TaskKind::Periodic { period, clock: Some(_), .. }) => {
            let period = duration(period);
            Some(quote!(::punctual::export::Periodic::shortest(#period)))
        }
        (None, TaskKind::Periodic { period, .. }) => Some(duration(period)),
        (None, _) => None,
    })
}

/// Returns the offset of a periodic task.
pub(super) fn offset(given: Option<&Duration>) -> TokenStream {
    given.map_or(quote!(::punctual::export::Duration::from_ticks(0)), duration)
}

/// Returns the name of an external clock in reports.
pub(super) fn clock_name(clock: &Path) -> String {
    clock.segments.last().map_or_else(String::new, |last| names::plain(&last.ident))
}

/// Returns the type that represents the task, and its implementation of the executor's traits.
fn body(app: &App, analysis: &Analysis, index: usize, task: &Task) -> TokenStream {
    let (handler, quiet) = (&task.handler, quiet());
    let (ident, level) = (&handler.ident, task.priority);
    let (body, runtime, name) = (names::body(ident), names::sole("runtime"), names::plain(ident));
    let partition_index = analysis.partition_of_task[index];
    let partition = names::partition("partition", partition_index);
    let (in_level, base) =
        (names::level("level", partition_index, level), levels::base(app, analysis, index));
    let (args, call, more) = match task.kind {
        TaskKind::Async => (quote!(()), futures::call(task), futures::body(app, analysis, task)),
        _ => (args_type(handler), call(app, analysis, task), bound(app, task)),
    };
    let [worker, release, args_var] = ["worker", "release", "args"].map(names::var);
    let (monitor, profile) = (app.args.monitor(), app.args.profile);
    let deadline = deadline(task);
    let execution =
        task.execution.as_ref().map_or(quote!(::punctual::export::Duration::from_ticks(0)), duration);
    let (free, after) = (free(task), after(task));
    // Checks that the macro and the compiler agree. It also uses the constants, so that they are
    // not dead code.
    let checked = task.computed.iter().map(|(source, value)| {
        let (at, value) = (names::at(source.span()), Literal::i128_unsuffixed(*value));
        let check = quote_spanned!(at=> ::punctual::export::assert_known(#source == #value));
        quote!(const _: () = #check;)
    });
    // The error of `Body::Args` names no alternatives.
    let sent = handler.args.iter().filter(|_| !matches!(task.kind, TaskKind::Async));
    let sent = sent.filter_map(|arg| statics::assert_movable(&arg.ty));
    let (interval_static, interval) = interval(task);
    let limits = limits::checks(task);
    quote! {
        #(#checked)*
        #limits
        #(#sent)*
        #interval_static
        #quiet struct #body;

        #quiet
        impl ::punctual::export::Body for #body {
            type Args = #args;
            const NAME: &'static ::core::primitive::str = #name;
            const LEVEL: ::core::primitive::u8 = #level;
            const MONITOR: ::core::primitive::bool = #monitor;
            const PROFILE: ::core::primitive::bool = #profile;
            const DEADLINE: ::core::option::Option<::punctual::export::Duration> = #deadline;
            const EXECUTION: ::punctual::export::Duration = #execution;

            #interval

            #[inline(always)]
            fn runtime() -> &'static ::punctual::export::Runtime {
                &#runtime
            }

            #[inline(always)]
            fn partition() -> &'static ::punctual::export::PartitionState {
                &#partition
            }

            #[inline(always)]
            fn place() -> (&'static ::punctual::export::Level, ::core::primitive::u32) {
                (&#in_level, #base)
            }

            #[inline(always)]
            unsafe fn call(
                #worker: ::punctual::export::CurrentWorker,
                #release: ::punctual::export::Instant,
                #args_var: ::punctual::export::Arguments,
            ) {
                #call
            }

            #free

            #after
        }

        #more
    }
}

/// Returns the static with a task's minimum inter-arrival time, and the function that names it.
fn interval(task: &Task) -> (TokenStream, TokenStream) {
    let Some(Interval { length, burst, on_early }) = &task.interval else { return Default::default() };
    let (quiet, name) = (quiet(), names::of("interval", &task.handler.ident));
    let (length, burst, on_early) = (duration(length), usize::from(*burst), variant(on_early));
    let statik = quote! {
        #quiet
        static #name: ::punctual::export::Interval<[::core::sync::atomic::AtomicU64; #burst]> =
            ::punctual::export::Interval::<[::core::sync::atomic::AtomicU64; #burst]>::new(
                #length, ::punctual::model::OnEarly::#on_early
            );
    };
    let function = quote! {
        #[inline(always)]
        fn interval() -> ::core::option::Option<&'static ::punctual::export::Interval> {
            ::core::option::Option::Some(&#name)
        }
    };
    (statik, function)
}

/// Returns the runtime's name of a policy, which is the same.
pub(super) fn variant(policy: impl fmt::Debug) -> Ident {
    Ident::new(&format!("{policy:?}"), Span::call_site())
}

/// Returns statements that run one job of a task that is not async.
fn call(app: &App, analysis: &Analysis, task: &Task) -> TokenStream {
    let handler = &task.handler;
    let [args, context_var, function_var] = ["args", "context", "function"].map(names::var);
    let place = quote!(::punctual::export::Arguments::place(#args));
    let (message, mut parts) = message(handler, &place);
    // With the last part, the slot is freed: before the function runs, because it may spawn the
    // task.
    let body = names::body(&handler.ident);
    let taken = match (parts.last_mut(), &task.kind) {
        (Some(last), _) => {
            *last = quote!(unsafe { ::punctual::export::take_last::<#body, _>(#args, #last) });
            None
        }
        (None, TaskKind::Periodic { .. }) => Some(quote!(let _ = #args;)),
        (None, _) => Some(quote!(unsafe { <#body as ::punctual::export::Body>::free(#args) };)),
    };
    let (last, others) = parts.split_last().map_or((None, &[][..]), |(last, others)| (Some(last), others));
    let (function, function_type) = (names::function(&handler.ident), function_type(handler));
    let context = contexts::make(app, analysis, handler);
    quote! {
        #message
        #taken
        let #function_var: #function_type = #function;
        // The caller runs a job of this level on the worker's thread, the only one of this task.
        let #context_var = unsafe { #context };
        // The caller passes the message; each part is read once, directly into the function's
        // parameter.
        #function_var(#context_var, #(unsafe { ::core::ptr::read(#others) },)* #last);
    }
}

/// Returns a statement that gives the message at `place`, an untyped pointer, its type; and
/// pointers to its parts.
pub(super) fn message(handler: &Handler, place: &TokenStream) -> (TokenStream, Vec<TokenStream>) {
    let (message, ty, count) = (names::var("message"), args_type(handler), handler.args.len());
    let parts = (0..count).map(|index| match (count, Literal::usize_unsuffixed(index)) {
        (1, _) => quote!(#message),
        (_, index) => quote!(&raw const (*#message).#index),
    });
    let typed =
        if count > 0 { quote!(let #message: *const #ty = #place.cast();) } else { TokenStream::new() };
    (typed, parts.collect())
}

/// Returns the type of a handler as a function pointer.
///
/// It takes a context of any lifetime, so nothing in the context outlives the job, regardless of
/// the actual signature of a function that an `extern` block declares.
pub(super) fn function_type(handler: &Handler) -> TokenStream {
    let (context, types) = (names::exported("Context", &handler.ident), names::arg_types(handler));
    let output = match &handler.sig().output {
        ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)) => quote!(-> !),
        _ => TokenStream::new(),
    };
    let life = names::lifetime();
    quote!(for<#life> fn(#context<#life>, #(#types),*) #output)
}

/// Returns the function that frees the slot of a job of the task.
fn free(task: &Task) -> TokenStream {
    let (ty, place, args) = (kind(task), place(task), names::var("args"));
    if matches!(task.kind, TaskKind::Async | TaskKind::Periodic { .. }) {
        return TokenStream::new();
    }
    quote! {
        #[inline(always)]
        unsafe fn free(#args: ::punctual::export::Arguments) {
            unsafe { #ty::free(&#place, #args) }
        }
    }
}

fn after(task: &Task) -> TokenStream {
    let (ident, end) = (&task.handler.ident, names::var("end"));
    let statements = match &task.kind {
        TaskKind::Message | TaskKind::Async => return TokenStream::new(),
        TaskKind::Periodic { clock, .. } => {
            let (grid, discipline) = (names::grid(ident), names::discipline(ident));
            let task = names::task(ident);
            let correct = clock
                .as_ref()
                .map(|_| quote!(::punctual::export::Discipline::correct(&#discipline, &#grid);));
            quote! {
                let #end = ::punctual::export::PeriodicTask::end_of_job(&#task, #end);
                ::punctual::export::Periodic::completed(&#grid, #end);
                #correct
                ::core::option::Option::Some(#end)
            }
        }
        TaskKind::Bound { .. } => {
            let task = names::task(ident);
            quote! {
                unsafe { ::punctual::export::BoundTask::after_job(&#task) };
                #end
            }
        }
    };
    quote! {
        #[inline]
        unsafe fn after(#end: ::punctual::export::Stamp) -> ::punctual::export::Stamp {
            #statements
        }
    }
}

fn bound(app: &App, task: &Task) -> TokenStream {
    let TaskKind::Bound { source, .. } = &task.kind else { return TokenStream::new() };
    if !cfg!(feature = "std") {
        return interrupt(task, source);
    }
    let Some(field) = app.local_field(source) else { return TokenStream::new() };
    let (quiet, body, name) = (quiet(), names::body(&task.handler.ident), names::field(source));
    let ty = &field.ty;
    let source = names::var_at("source", ty.span());
    // If the resource is not an event source, the error is reported here, at its type.
    let fd = quote_spanned!(names::at(ty.span())=> ::punctual::export::EventSource::raw_fd(#source));
    quote! {
        #quiet
        impl ::punctual::export::Bound for #body {
            unsafe fn fd() -> ::std::os::fd::RawFd {
                // The caller excludes jobs of the task, the only users of its local.
                let #source: &#ty = unsafe { ::punctual::export::Resource::get(&#name.0) };
                #fd
            }
        }
    }
}

/// Returns the interrupt that a task binds on a bare board, by the name that the board's crate
/// gives it.
fn interrupt(task: &Task, source: &Ident) -> TokenStream {
    let (quiet, body) = (quiet(), names::body(&task.handler.ident));
    quote! {
        #quiet
        impl ::punctual::export::Bound for #body {
            const INTERRUPT: ::core::primitive::u32 = ::punctual_bare::interrupt::#source;
        }
    }
}

/// Returns the release functions of a task, for its module: `spawn`, `spawn_after`, `spawn_at` and
/// `pend`, or replacements whose errors name the alternative.
pub(super) fn release(task: &Task) -> TokenStream {
    let (handler, quiet, place) = (&task.handler, quiet(), place(task));
    let parameters = parameters(handler);
    let (Parameters { types, names, args, .. }, params) = (&parameters, parameters.passed());
    let [spawn, spawn_after, spawn_at] =
        ["spawn", "spawn_after", "spawn_at"].map(|what| names::export(what, &handler.ident));
    match &task.kind {
        TaskKind::Periodic { .. } => {
            refused(&["spawn", "spawn_after", "spawn_at", "pend"], "SpawnsPeriodicTask")
        }
        TaskKind::Async if task.is_local() => {
            let instead = refused(&["spawn_after", "spawn_at"], "SpawnsAsyncTaskForTime");
            quote! {
                #instead

                // The error names the alternative.
                #quiet
                pub fn #spawn(#(#names: #types),*) -> ::core::result::Result<(), ::punctual::SpawnError<#args>>
                where
                    for<'a> &'a (): ::punctual::export::SpawnedAnywhere,
                {
                    ::core::unreachable!()
                }
            }
        }
        TaskKind::Async => {
            let instead = refused(&["spawn_after", "spawn_at"], "SpawnsAsyncTaskForTime");
            let body = parameters
                .pass(|message| quote!(::punctual::export::AsyncTask::spawn(&super::#place, #message)));
            quote! {
                #instead

                /// Starts the task. If its level is above the partition's, it has been polled when
                /// this returns.
                ///
                /// # Errors
                /// Returns `SpawnError` if the task has not completed yet or, on a foreign thread,
                /// if the app is not running.
                #quiet #[inline]
                pub fn #spawn(#params) -> ::core::result::Result<(), ::punctual::SpawnError<#args>> {
                    // Every argument has an `assert_send`, and so the message is `Send`.
                    #body
                }
            }
        }
        TaskKind::Bound { .. } => {
            let instead = refused(&["spawn", "spawn_after", "spawn_at"], "SpawnsBoundTask");
            quote! {
                #instead

                /// Releases a job of this task, as its event source does. Does nothing if one is
                /// already waiting.
                #quiet #[inline]
                pub fn pend() {
                    ::punctual::export::BoundTask::pend(&super::#place)
                }
            }
        }
        TaskKind::Message => {
            let ([after, at], duration) = (["after", "at"].map(names::var), names::sole("D"));
            let call = |function: &str, time: Option<&Ident>| {
                let (function, time) = (Ident::new(function, Span::call_site()), time.into_iter());
                parameters.pass(|message| {
                    quote!(::punctual::export::Task::#function(&super::#place, #(#time,)* #message))
                })
            };
            let (now, after_while, at_time) =
                (call("spawn", None), call("spawn_after", Some(&after)), call("spawn_at", Some(&at)));
            let pend = handler.args.is_empty().then(|| pend(task));
            let spawns = quote! {
                #pend

                /// Releases a job. If its level is above the partition's, it has run when this
                /// returns.
                ///
                /// # Errors
                /// Returns `SpawnError` if the capacity is used up, if it is too early and such
                /// releases are rejected, or, on a foreign thread, if the app is not running.
                #quiet #[inline(always)]
                pub fn #spawn(#params) -> ::core::result::Result<(), ::punctual::SpawnError<#args>> {
                    #now
                }
            };
            if !task.is_timed() {
                let instead = refused(&["spawn_after", "spawn_at"], "SpawnsRestrictedTaskForTime");
                return quote!(#spawns #instead);
            }
            quote! {
                #spawns

                /// A job that will be released; it can be cancelled or moved.
                #quiet
                pub type SpawnHandle = ::punctual::SpawnHandle<#args>;

                /// Releases a job after a duration. Errors are those of `spawn`.
                #quiet
                pub fn #spawn_after<#duration: ::punctual::IntoDuration>(
                    #after: #duration, #params
                ) -> ::core::result::Result<SpawnHandle, ::punctual::SpawnError<#args>> {
                    #after_while
                }

                /// Releases a job at a point in time. Errors are those of `spawn`.
                #quiet
                pub fn #spawn_at(
                    #at: ::punctual::Instant, #params
                ) -> ::core::result::Result<SpawnHandle, ::punctual::SpawnError<#args>> {
                    #at_time
                }
            }
        }
    }
}

/// Returns functions that a handler does not have. A call of one does not compile; the trait's
/// message names the alternative.
pub(super) fn refused(functions: &[&str], reason: &str) -> TokenStream {
    let (quiet, reason) = (quiet(), Ident::new(reason, Span::call_site()));
    let functions = functions.iter().map(|function| {
        let ty = names::sole("T");
        let (ty, time) = match *function {
            "spawn" | "pend" => (None, None),
            _ => (Some(quote!(<#ty>)), Some(quote!(_: #ty))),
        };
        let function = Ident::new(function, Span::call_site());
        quote! {
            // The lifetime defers the error to a call.
            #quiet
            pub fn #function #ty (#time) -> ::core::result::Result<(), ::punctual::SpawnError<()>>
            where
                for<'a> &'a (): ::punctual::export::#reason,
            {
                ::core::unreachable!()
            }
        }
    });
    functions.collect()
}

/// Returns the function that releases a job without a message, like pending an interrupt.
fn pend(task: &Task) -> TokenStream {
    let (quiet, place) = (quiet(), place(task));
    quote! {
        /// Releases a job. Does nothing if as many as the capacity are waiting, or the app is not
        /// running.
        #quiet #[inline]
        pub fn pend() {
            let _ = unsafe { ::punctual::export::Task::spawn(&super::#place, &mut ()) };
        }
    }
}

fn statics(app: &App, analysis: &Analysis, index: usize, task: &Task) -> TokenStream {
    let (ident, quiet) = (&task.handler.ident, quiet());
    let partition = analysis.partition_of_task[index];
    let (statik, body, level) =
        (names::task(ident), names::body(ident), names::level("level", partition, task.priority));
    // No other task uses the node numbers from here on: see `levels::base`.
    let base = levels::base(app, analysis, index);
    match &task.kind {
        TaskKind::Message => {
            let (slots, wrapper) = (slots(task), names::sole("Static"));
            quote! {
                #quiet
                static #statik: #wrapper<::punctual::export::Task<#body, #slots>> =
                    #wrapper(unsafe { ::punctual::export::Task::new(&#level, #base) });
            }
        }
        TaskKind::Async => {
            let (size, wrapper) = (futures::size(task), names::sole("Static"));
            let timers = names::level("timers", partition, task.priority);
            quote! {
                #quiet
                static #statik: #wrapper<::punctual::export::AsyncTask<#body, { #size }>> =
                    #wrapper(unsafe { ::punctual::export::AsyncTask::new(&#level, #base, &#timers) });
            }
        }
        TaskKind::Bound { on_idle, .. } => {
            let on_idle = variant(on_idle);
            let (listener, priority) = (names::listener(ident), task.priority);
            quote! {
                #quiet
                static #listener: ::punctual::export::Worker = ::punctual::export::Worker::new(#priority);
                #quiet
                static #statik: ::punctual::export::BoundTask<#body> =
                    unsafe {
                        ::punctual::export::BoundTask::new(
                            &#level, #base, &#listener, ::punctual::export::OnIdle::#on_idle
                        )
                    };
            }
        }
        TaskKind::Periodic { period, offset, clock, on_overrun } => {
            let (grid, capacity) = (names::grid(ident), u32::from(task.capacity));
            let period = duration(period);
            let offset = self::offset(offset.as_ref());
            let reaction = match on_overrun {
                OnOverrun::Stop => quote!(Call(::punctual::export::stop_on_overrun::<#body>)),
                OnOverrun::Task(handler) => {
                    let handler = names::exported("spawn", handler);
                    // A handler that has not yet processed the last overrun will see this one, too.
                    quote!(Call(|| { let _ = #handler(); }))
                }
                // A reaction of the executor, under the policy's name.
                policy => variant(policy).into_token_stream(),
            };
            let discipline = names::discipline(ident);
            let follows = clock.as_ref().map(|_| quote!(.follows(&#discipline)));
            let discipline = clock.as_ref().map(|clock| {
                let name = clock_name(clock);
                let clock = quote_spanned!(clock.span()=> &#clock);
                quote! {
                    #quiet
                    static #discipline: ::punctual::export::Discipline =
                        ::punctual::export::Discipline::new(#name, #clock, #period, #offset);
                }
            });
            quote! {
                #discipline
                #quiet
                static #grid: ::punctual::export::Periodic = ::punctual::export::Periodic::new(
                    #base, #capacity, #period, #offset, ::punctual::export::Reaction::#reaction
                );
                #quiet
                static #statik: ::punctual::export::PeriodicTask<#body> =
                    ::punctual::export::PeriodicTask::new(&#level, &#grid, #period)#follows;
            }
        }
    }
}

/// Returns the const arguments with a task's number of slots.
fn slots(task: &Task) -> TokenStream {
    let capacity = usize::from(task.capacity);
    let words = capacity.div_ceil(64);
    quote!(#capacity, #words)
}
