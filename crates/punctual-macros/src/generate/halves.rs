//! What one half of an app has of the other one: spawns of its tasks, what both share, and the task that takes messages.

use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ItemStatic;
use syn::spanned::Spanned;

use crate::model::{App, Beyond, Handler, Task, TaskKind};
use crate::parse;

use super::{contexts, names, quiet, tasks};

/// How often a half shows that it runs, in the time within which the other one is to see that it does not. Half of that time passes
/// before silence counts as one, and a quarter each until the last beat was seen, and until the silence is.
const BEATS: u64 = 4;

/// The app with a task that takes the messages of the other half, at the highest level of those that it spawns, and one that tells
/// the other half that this one runs, if that is wanted.
pub(crate) fn with_receiver(mut app: App) -> App {
    let highest = app.tasks.iter().filter(|task| task.crosses.is_some()).max_by_key(|task| task.priority);
    let level = highest.map_or(1, |task| task.priority);
    let core = highest.and_then(|task| task.core.as_ref());
    let core = core.or_else(|| Some(&app.args.partitions.first()?.ident)).cloned();
    let core = core.expect("an app of two halves has partitions");
    let take = names::sole("take");
    app.tasks.push(parse::receiver(&names::sole("receive"), level, &core, &quote!(#take();)));
    if let Some(heartbeat) = app.beyond.as_ref().and_then(|beyond| beyond.heartbeat) {
        let halves = names::sole("halves");
        // At the lowest level, so that no job of the partition goes on for ever unnoticed.
        app.tasks.push(parse::pulse(
            &names::sole("beat"),
            heartbeat / BEATS,
            &core,
            &quote!(::punctual::export::halves::Halves::pulse(&#halves);),
        ));
    }
    app
}

/// What it waits for on Linux.
pub(super) fn door(task: &Task) -> TokenStream {
    let (quiet, body) = (quiet(), names::body(&task.handler.ident));
    quote! {
        #quiet
        impl ::punctual::export::Bound for #body {
            unsafe fn fd() -> ::std::os::fd::RawFd {
                ::punctual::export::halves::door()
            }
        }
    }
}

/// The beginning of `run`: the halves meet.
pub(super) fn meets(app: &App, config: &Ident) -> TokenStream {
    let Some(beyond) = &app.beyond else { return TokenStream::new() };
    let [halves, region, fill] = ["halves", "Region", "fill"].map(names::sole);
    let met = names::var("met");
    // The region is that of the halves.
    match beyond.is_offline {
        true => quote! {
            unsafe {
                ::punctual::export::halves::meet::<#region>(
                    &#halves,
                    ::punctual::export::halves::Board {
                        memory: ::punctual_bare::amp::memory(),
                        ring: ::punctual_bare::amp::ring,
                        is_to_end: ::punctual_bare::amp::is_to_end,
                        cpu: ::punctual_bare::amp::cpu(),
                        uninterrupted: ::punctual_bare::amp::uninterrupted,
                    },
                    #fill,
                )
            }?;
        },
        false => quote! {
            let #met = unsafe { ::punctual::export::halves::meet::<#region>(&#halves, &#config) }?;
        },
    }
}

pub(super) fn all(app: &App) -> TokenStream {
    let Some(beyond) = &app.beyond else { return TokenStream::new() };
    let own: Vec<&Task> = crossing(&app.tasks).collect();
    let other: Vec<&Task> = crossing(&beyond.tasks).collect();
    // In an order that is the same in both compilations.
    let (first, second) = if beyond.is_offline { (&own, &other) } else { (&other, &own) };
    let inboxes: Vec<&Task> = first.iter().chain(second.iter()).copied().collect();
    let messages = inboxes.iter().map(|task| message(&task.handler));
    let shared = beyond.statics.iter().map(both);
    let beyond_tasks = beyond.tasks.iter().map(|task| abroad(task, beyond));
    [region(app, beyond, &inboxes), take(&own)]
        .into_iter()
        .chain(messages)
        .chain(shared)
        .chain(beyond_tasks)
        .collect()
}

fn crossing(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    tasks.iter().filter(|task| task.crosses.is_some())
}

/// How many tasks the half without Linux has, with those that [`with_receiver`] adds, and which are configured away.
fn tasks_without_linux(app: &App, beyond: &Beyond) -> usize {
    match beyond.is_offline {
        true => app.tasks.len(),
        false => beyond.tasks.len() + 1 + usize::from(beyond.heartbeat.is_some()),
    }
}

/// Where the jobs of a task of the half without Linux are shown: a function of its body.
pub(super) fn shown(app: &App, index: usize) -> TokenStream {
    if !app.beyond.as_ref().is_some_and(|beyond| beyond.is_offline) {
        return TokenStream::new();
    }
    let [halves, region] = ["halves", "Region"].map(names::sole);
    let variable = names::var("region");
    quote! {
        #[inline(always)]
        fn shown() -> ::core::option::Option<&'static ::punctual::export::halves::Shown> {
            // The region is that of the halves.
            match unsafe { ::punctual::export::halves::Halves::region::<#region>(&#halves) } {
                ::core::option::Option::Some(#variable) => ::core::option::Option::Some(&#variable.shown[#index]),
                ::core::option::Option::None => ::core::option::Option::None,
            }
        }
    }
}

/// The fields of a message, for its arguments.
fn fields(handler: &Handler) -> Vec<Ident> {
    (0..handler.args.len()).map(|index| names::sole(&format!("argument{index}"))).collect()
}

/// The type of a task's message: its arguments, in a layout that both compilations agree on.
fn message(handler: &Handler) -> TokenStream {
    let (quiet, name, fields) = (quiet(), names::of("Message", &handler.ident), fields(handler));
    let types: Vec<_> = handler.args.iter().map(|arg| &arg.ty).collect();
    let checks = types.iter().map(|ty| {
        let check =
            quote_spanned!(names::at(ty.span())=> ::punctual::export::halves::assert_crosses::<#ty>());
        quote!(const _: () = #check;)
    });
    quote! {
        #quiet
        #[derive(::core::clone::Clone, ::core::marker::Copy)]
        #[repr(C)]
        struct #name {
            #(#fields: #types,)*
        }
        #(#checks)*
    }
}

fn inbox(handler: &Handler) -> Ident {
    names::of("inbox", &handler.ident)
}

/// The memory that both halves share, what fills it at first, and the static that finds it.
fn region(app: &App, beyond: &Beyond, inboxes: &[&Task]) -> TokenStream {
    let quiet = quiet();
    let [halves, region, fill, runtime] = ["halves", "Region", "fill", "runtime"].map(names::sole);
    let [to, sizes] = ["to", "sizes"].map(names::var);
    let boxes = inboxes.iter().map(|task| {
        let (name, message) = (inbox(&task.handler), names::of("Message", &task.handler.ident));
        let capacity = usize::from(task.capacity);
        quote!(#name: ::punctual::sync::shared::Inbox<#message, #capacity>)
    });
    let statics = &beyond.statics;
    let places: Vec<Ident> = statics.iter().map(|statik| names::of("both", &statik.ident)).collect();
    let initials = statics.iter().map(|statik| names::of("initial", &statik.ident));
    let types: Vec<_> = statics.iter().map(|statik| &statik.ty).collect();
    let arguments = inboxes.iter().flat_map(|task| &task.handler.args).map(|arg| &arg.ty);
    let (own, other) = (beyond.own.to_string(), beyond.other.to_string());
    let declared = Literal::u64_unsuffixed(declared(app, beyond, inboxes));
    let heartbeat = Literal::u64_unsuffixed(beyond.heartbeat.unwrap_or(0));
    let tasks = tasks_without_linux(app, beyond);
    quote! {
        #quiet
        #[repr(C)]
        struct #region {
            head: ::punctual::export::halves::Head,
            shown: [::punctual::export::halves::Shown; #tasks],
            #(#boxes,)*
            #(#places: #types,)*
        }

        #quiet
        const _: () = ::core::assert!(
            ::core::mem::size_of::<#region>() <= ::punctual::export::halves::ROOM,
            "what the halves of the app share has more than 448 KiB: have smaller rings, fewer tasks, or fewer messages wait",
        );

        #quiet
        #[allow(dead_code)]
        // It is called with memory for a region.
        unsafe fn #fill(#to: *mut #region) {
            #(unsafe { ::punctual::export::halves::place(&#initials, &raw mut (*#to).#places) };)*
            let _ = #to;
        }

        #quiet
        static #halves: ::punctual::export::halves::Halves = {
            const #sizes: &[::core::primitive::usize] = &[
                #(::core::mem::size_of::<#arguments>(),)*
                #(::core::mem::size_of::<#types>(),)*
            ];
            // The rows of tasks are a field of the region.
            unsafe {
                ::punctual::export::halves::Halves::new::<#region>(
                    &#runtime,
                    #own,
                    #other,
                    ::punctual::export::halves::declared(#declared, #sizes),
                    #heartbeat,
                    (::core::mem::offset_of!(#region, shown), #tasks),
                )
            }
        };
    }
}

/// A hash of the declarations that both compilations have to agree on, but for the sizes, which the compiler knows.
fn declared(app: &App, beyond: &Beyond, inboxes: &[&Task]) -> u64 {
    let (own, other) = (beyond.own.to_string(), beyond.other.to_string());
    let (offline, linux) = if beyond.is_offline { (own, other) } else { (other, own) };
    let heartbeat = beyond.heartbeat.unwrap_or(0);
    let mut text = format!("{} {offline} {linux} {heartbeat}\n", names::plain(&app.module.ident));
    // Compilers print tokens with more or less space in between.
    let plain =
        |tokens: &dyn ToTokens| tokens.to_token_stream().to_string().split_whitespace().collect::<String>();
    for task in inboxes {
        let types: Vec<String> = task.handler.args.iter().map(|arg| plain(&arg.ty)).collect();
        text += &format!("{}({}) {}\n", names::plain(&task.handler.ident), types.join(","), task.capacity);
    }
    for statik in &beyond.statics {
        text += &format!("{}:{}={}\n", statik.ident, plain(&statik.ty), plain(&statik.expr));
    }
    // FNV-1a (Fowler, Noll, Vo).
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Something that both halves share.
fn both(statik: &ItemStatic) -> TokenStream {
    let quiet = quiet();
    let [halves, region] = ["halves", "Region"].map(names::sole);
    let ItemStatic { attrs, vis, ident, ty, expr, .. } = statik;
    let (place, initial) = (names::of("both", ident), names::of("initial", ident));
    let check = quote_spanned!(names::at(ty.span())=> ::punctual::export::halves::assert_both::<#ty>());
    quote! {
        const _: () = #check;
        #quiet
        #[allow(dead_code)]
        static #initial: #ty = #expr;
        #(#attrs)*
        // It is there when the region is.
        #vis static #ident: ::punctual::export::halves::Both<#ty> = unsafe {
            ::punctual::export::halves::Both::new(&#halves, ::core::mem::offset_of!(#region, #place))
        };
    }
}

/// What can be named of a task of the other half.
fn abroad(task: &Task, beyond: &Beyond) -> TokenStream {
    let (handler, quiet) = (&task.handler, quiet());
    let ident = &handler.ident;
    let module = names::own(ident);
    let doc = format!("The task `{}` of `{}`, the other half of the app.", names::plain(ident), beyond.other);
    if !matches!(task.kind, TaskKind::Message) {
        return quote!(#quiet #[doc = #doc] pub mod #module {});
    }
    let function = if task.crosses.is_some() {
        let [halves, region] = ["halves", "Region"].map(names::sole);
        let (message, inbox, fields) = (names::of("Message", ident), inbox(handler), fields(handler));
        let tasks::Parameters { types, names, args, value } = tasks::parameters(handler);
        let (spawn, variable) = (names::export("spawn", ident), names::var("region"));
        quote! {
            /// Sends the other half a message, which releases a job there.
            ///
            /// # Errors
            /// `SpawnError` if as many messages wait as the capacity, or the other half does not run.
            #quiet
            pub fn #spawn(#(#names: #types),*) -> ::core::result::Result<(), ::punctual::SpawnError<#args>> {
                // The region is that of the halves.
                let #variable = match unsafe {
                    ::punctual::export::halves::Halves::region::<super::#region>(&super::#halves)
                } {
                    ::core::option::Option::Some(#variable)
                        if ::punctual::export::halves::Halves::is_open(&super::#halves) =>
                    {
                        #variable
                    }
                    _ => return ::core::result::Result::Err(::punctual::SpawnError::Stopping(#value)),
                };
                match ::punctual::sync::shared::Inbox::send(
                    &#variable.#inbox,
                    super::#message { #(#fields: #names),* },
                ) {
                    ::core::result::Result::Ok(()) => {
                        ::punctual::export::halves::Halves::sent(&super::#halves);
                        ::core::result::Result::Ok(())
                    }
                    ::core::result::Result::Err(super::#message { #(#fields: #names),* }) => {
                        ::core::result::Result::Err(::punctual::SpawnError::Full(#value))
                    }
                }
            }
        }
    } else {
        let (spawn, names) = (names::export("spawn", ident), names::params(&handler.args));
        quote! {
            // A call does not compile. The lifetime keeps the compiler from noticing before one. The types of the arguments may
            // be there in the other half alone.
            #quiet
            pub fn #spawn(
                #(#names: impl ::core::marker::Sized),*
            ) -> ::core::result::Result<(), ::punctual::SpawnError<()>>
            where
                for<'a> &'a (): ::punctual::export::halves::SpawnedFromBeyond,
            {
                ::core::unreachable!()
            }
        }
    };
    let aliases = task.crosses.is_some().then(|| contexts::arg_aliases(handler));
    quote! {
        #aliases
        #quiet
        #[doc = #doc]
        pub mod #module {
            #function
        }
    }
}

/// What the receiver does.
fn take(own: &[&Task]) -> TokenStream {
    let quiet = quiet();
    let [halves, region, take, receiver] = ["halves", "Region", "take", "receive"].map(names::sole);
    let pend = names::exported("pend", &receiver);
    let variable = names::var("region");
    let each = own.iter().map(|task| {
        let handler = &task.handler;
        let (message, spawn) =
            (names::of("Message", &handler.ident), names::exported("spawn", &handler.ident));
        let (inbox, fields) = (inbox(handler), fields(handler));
        let values = tasks::variables(handler);
        quote! {
            ::punctual::sync::shared::Inbox::drain(&#variable.#inbox, |#message { #(#fields: #values),* }| {
                if ::core::result::Result::is_err(&#spawn(#(#values),*)) {
                    ::punctual::export::halves::Halves::lost(&#halves);
                }
            });
        }
    });
    let inboxes = own.iter().map(|task| inbox(&task.handler));
    quote! {
        #quiet
        fn #take() {
            // The region is that of the halves.
            if let ::core::option::Option::Some(#variable) =
                unsafe { ::punctual::export::halves::Halves::region::<#region>(&#halves) }
            {
                ::punctual::export::halves::Halves::receive(
                    &#halves,
                    || { #(#each)* },
                    || true #(&& ::punctual::sync::shared::Inbox::is_empty(&#variable.#inboxes))*,
                    #pend,
                );
            }
        }
    }
}
