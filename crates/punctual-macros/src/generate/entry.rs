//! `run` and `main`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::analyze::Analysis;
use crate::model::{App, LocalUse, SharedUse};

use super::{contexts, names, option, overview, quiet, resources, tasks};

/// Returns `run`, and the type that implements `init`, `idle` and `shutdown` for the runtime.
pub(super) fn run(app: &App, analysis: &Analysis) -> TokenStream {
    let quiet = quiet();
    let [handlers, owned, runtime, f] = ["Handlers", "Owned", "runtime", "F"].map(names::sole);
    let init = &app.init.handler;
    let (init_function, init_type) = (names::function(&init.ident), names::exported("Context", &init.ident));
    let init_context = contexts::make(app, analysis, init);
    let params = names::params(&init.args);
    let types = init.args.iter().map(|arg| &arg.ty);
    let (shared, local) = (&app.shared.item.ident, &app.local.item.ident);
    let [worker, owned_value, context, shared_value, local_value, drops, config] =
        ["worker", "owned", "context", "shared", "local", "drops", "config"].map(names::var);

    let fill = resources::fill(app);
    let empty = resources::empty(app);
    let (owned_types, owned_values) = retained_fields(app);
    let (has_idle, idle) = idle(app, analysis);
    let (has_shutdown, shutdown) = shutdown(app, analysis);
    let in_common = in_common(app);
    let overview = overview::text(app, analysis);
    quote! {
        /// The part of `init`'s results that no static stores.
        #quiet struct #owned {
            #owned_types
        }

        #quiet struct #handlers<#f>(#f);

        #quiet
        impl<#f: ::core::ops::FnOnce(#init_type<'static>) -> (#shared, #local)> ::punctual::export::App
            for #handlers<#f>
        {
            type Owned = #owned;
            const HAS_IDLE: ::core::primitive::bool = #has_idle;
            const HAS_SHUTDOWN: ::core::primitive::bool = #has_shutdown;
            const IDLE_AND_SHUTDOWN: &'static [&'static ::core::primitive::str] = &[#in_common];

            unsafe fn init(self, #worker: ::punctual::export::CurrentWorker) -> #owned {
                let #context = #init_context;
                let (#shared_value, #local_value) = (self.0)(#context);
                #fill
                #owned { #owned_values }
            }

            unsafe fn idle(#worker: ::punctual::export::CurrentWorker, #owned_value: &mut #owned) {
                #idle
            }

            unsafe fn shutdown() {
                #shutdown
            }

            unsafe fn drop_resources(#owned_value: #owned, #drops: &::punctual::export::Drops) {
                #empty
            }
        }

        /// Runs the app until it is shut down, and returns the report.
        ///
        /// # Errors
        /// Returns an error if it cannot start; then no code of it has run.
        #[doc = #overview]
        #[allow(private_interfaces, clippy::all, clippy::pedantic)]
        pub fn run(
            #config: ::punctual::Config,
            #(#params: #types),*
        ) -> ::core::result::Result<::punctual::Report, ::punctual::StartError> {
            ::punctual::export::run(
                &#runtime,
                #config,
                #handlers(move |#context: #init_type<'static>| #init_function(#context, #(#params),*)),
            )
        }
    }
}

/// Returns the fields of the local struct that stay on the thread of `init`: those of `idle`, and
/// unused ones, which live as long as the app.
fn retained_fields(app: &App) -> (TokenStream, TokenStream) {
    let (mut types, mut values) = (TokenStream::new(), TokenStream::new());
    let local = names::var("local");
    for field in app.local.fields.iter().filter(|field| !resources::is_static(app, &field.ident)) {
        // It may never be read.
        let (ident, ty) = (names::own(&field.ident), &field.ty);
        if resources::is_idles(app, &field.ident) {
            types.extend(quote!(#ident: ::core::option::Option<&'static mut #ty>,));
            let value = option(Some(quote!(::punctual::export::leak(#local.#ident))));
            values.extend(quote!(#ident: #value,));
        } else {
            types.extend(quote!(#ident: #ty,));
            values.extend(quote!(#ident: #local.#ident,));
        }
    }
    (types, values)
}

/// Returns the names of the resources that both `idle` and `shutdown` use and one of them may
/// change, as elements of an array.
///
/// While `idle` runs, `shutdown` must use none of these.
fn in_common(app: &App) -> TokenStream {
    let (Some(idle), Some(shutdown)) = (&app.idle, &app.shutdown) else { return TokenStream::new() };
    let (idle, shutdown) = (&idle.handler, &shutdown.handler);
    let changed = |used: &&SharedUse| {
        let read_only = |other: &SharedUse| used.access.is_reference() && other.access.is_reference();
        shutdown.shared.iter().any(|other| other.ident == used.ident && !read_only(other))
    };
    let shared = idle.shared.iter().filter(changed).map(|used| &used.ident);
    // A local that a handler declares belongs to it, whatever its name.
    let both = |used: &&LocalUse| shutdown.local_fields().any(|other| other.ident == used.ident);
    let locals = idle.local_fields().filter(both).map(|used| &used.ident);
    let names = shared.chain(locals).map(names::plain);
    quote!(#(#names),*)
}

fn idle(app: &App, analysis: &Analysis) -> (TokenStream, TokenStream) {
    let Some(idle) = &app.idle else { return (quote!(false), TokenStream::new()) };
    let handler = &idle.handler;
    let (name, context) = (&handler.ident, contexts::make(app, analysis, handler));
    let (variable, ty, function) =
        (names::var("function"), tasks::function_type(handler), names::function(name));
    let call = quote! {
        let #variable: #ty = #function;
        // The caller is the idle thread and calls this once.
        #variable(unsafe { #context });
    };
    (quote!(true), call)
}

fn shutdown(app: &App, analysis: &Analysis) -> (TokenStream, TokenStream) {
    let Some(shutdown) = &app.shutdown else { return (quote!(false), TokenStream::new()) };
    let handler = &shutdown.handler;
    let (name, context) = (&handler.ident, contexts::make(app, analysis, handler));
    let (variable, ty, function) =
        (names::var("function"), tasks::function_type(handler), names::function(name));
    // In one expression, so that the locals it declares live as long as the call.
    let call = quote! {
        let #variable: #ty = #function;
        // The caller excludes all other users.
        unsafe { #variable(#context) };
    };
    (quote!(true), call)
}

/// `main`, unless the user writes one.
pub(super) fn main(app: &App) -> TokenStream {
    if !app.generates_main() {
        return TokenStream::new();
    }
    let (module, outer) = (&app.module.ident, app.module.attrs.iter().filter(|a| a.path().is_ident("cfg")));
    if !cfg!(feature = "std") {
        return quote! {
            #(#outer)*
            const _: () = {
                fn __punctual_main() -> ! {
                    ::punctual::export::main(#module::run)
                }
                ::punctual_bare::entry!(__punctual_main);
            };
        };
    }
    let (outer, place) =
        (Vec::from_iter(outer), Ident::new(&format!("punctual_main_of_{module}"), Span::call_site()));
    // By a glob, over which another `main` takes precedence: the assertion has a better error than
    // two definitions.
    quote! {
        #(#outer)*
        #[doc(hidden)]
        mod #place {
            /// Runs the app as configured by the environment, for a `main` elsewhere in the crate.
            #[allow(dead_code)]
            pub(crate) fn main() -> ::std::process::ExitCode {
                ::punctual::export::main(super::#module::run)
            }
        }
        #(#outer)*
        #[allow(unused_imports)]
        pub(crate) use self::#place::*;
        #(#outer)*
        const _: () = ::punctual::export::assert_only_main(&main, &self::#place::main);
    }
}
