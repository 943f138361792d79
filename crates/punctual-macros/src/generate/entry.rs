//! `run` and `main`.

use proc_macro2::TokenStream;
use quote::quote;

use crate::analyse::Analysis;
use crate::model::App;

use super::{contexts, names, option, overview, quiet, resources, tasks};

/// `run`, and the type that tells the runtime about `init`, `idle` and `shutdown`.
pub(super) fn run(app: &App, analysis: &Analysis) -> TokenStream {
    let quiet = quiet();
    let [handlers, kept, runtime, f] = ["Handlers", "Kept", "runtime", "F"].map(names::sole);
    let init = &app.init.handler;
    let (init_function, init_type) = (names::function(&init.ident), names::of("Context", &init.ident));
    let init_context = contexts::make(app, analysis, init);
    let params = names::params(&init.args);
    let types = init.args.iter().map(|arg| &arg.ty);
    let (shared, local) = (&app.shared.item.ident, &app.local.item.ident);
    let [worker, kept_value, context, shared_value, local_value, config] =
        ["worker", "kept", "context", "shared", "local", "config"].map(names::var);

    let fill = resources::fill(app);
    let empty = resources::empty(app);
    let (kept_types, kept_values) = kept_fields(app);
    let (has_idle, shares, idle) = idle(app, analysis);
    let shutdown = shutdown(app, analysis);
    let overview = overview::text(app, analysis);
    quote! {
        /// What `init` returned and no static holds.
        #quiet struct #kept {
            #kept_types
        }

        #quiet struct #handlers<#f>(#f);

        #quiet
        impl<#f: ::core::ops::FnOnce(#init_type<'static>) -> (#shared, #local)> ::punctual::export::App
            for #handlers<#f>
        {
            type Kept = #kept;
            const HAS_IDLE: ::core::primitive::bool = #has_idle;
            const IDLE_SHARES: ::core::primitive::bool = #shares;

            unsafe fn init(self, #worker: ::punctual::export::CurrentWorker) -> #kept {
                let #context = #init_context;
                let (#shared_value, #local_value) = (self.0)(#context);
                #fill
                #kept { #kept_values }
            }

            unsafe fn idle(#worker: ::punctual::export::CurrentWorker, #kept_value: &mut #kept) {
                #idle
            }

            unsafe fn shutdown() {
                #shutdown
            }

            unsafe fn drop_resources() {
                #empty
            }
        }

        /// Runs the app until it is shut down, and tells how it went.
        ///
        /// # Errors
        /// If it cannot start; then nothing of it has run.
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

/// The fields of the local struct that stay on the thread of `init`: idle's own, and those nobody uses, which
/// live as long as the app does.
fn kept_fields(app: &App) -> (TokenStream, TokenStream) {
    let (mut types, mut values) = (TokenStream::new(), TokenStream::new());
    let local = names::var("local");
    for field in app.local.fields.iter().filter(|field| !resources::is_static(app, &field.ident)) {
        // Nobody may ever read it.
        let (cfgs, ident, ty) = (&field.cfgs, names::own(&field.ident), &field.ty);
        if resources::is_idles(app, &field.ident) {
            types.extend(quote!(#(#cfgs)* #ident: ::core::option::Option<&'static mut #ty>,));
            let value = option(Some(quote!(::punctual::export::leak(#local.#ident))));
            values.extend(quote!(#(#cfgs)* #ident: #value,));
        } else {
            types.extend(quote!(#(#cfgs)* #ident: #ty,));
            values.extend(quote!(#(#cfgs)* #ident: #local.#ident,));
        }
    }
    (types, values)
}

fn idle(app: &App, analysis: &Analysis) -> (TokenStream, bool, TokenStream) {
    let Some(idle) = &app.idle else { return (quote!(false), false, TokenStream::new()) };
    let (handler, cfgs) = (&idle.handler, &idle.handler.cfgs);
    let (name, context) = (&handler.ident, contexts::make(app, analysis, handler));
    let is = names::var("is");
    let has_idle = match cfgs.is_empty() {
        true => quote!(true),
        // The conjunction of the `#[cfg]`s, as a value.
        false => quote!({
            #[allow(unused_mut)]
            let mut #is = false;
            #(#cfgs)* { #is = true; }
            #is
        }),
    };
    let (variable, ty, function) =
        (names::var("function"), tasks::function_type(handler), names::function(name));
    let call = quote! {
        #(#cfgs)*
        {
            let #variable: #ty = #function;
            // The caller is the idle thread and calls this once.
            #variable(unsafe { #context });
        }
    };
    (has_idle, !handler.shared.is_empty(), call)
}

fn shutdown(app: &App, analysis: &Analysis) -> TokenStream {
    let Some(shutdown) = &app.shutdown else { return TokenStream::new() };
    let (handler, cfgs) = (&shutdown.handler, &shutdown.handler.cfgs);
    let (name, context) = (&handler.ident, contexts::make(app, analysis, handler));
    let (variable, ty, function) =
        (names::var("function"), tasks::function_type(handler), names::function(name));
    // In one expression, so that the locals it declares live as long as the call.
    quote! {
        #(#cfgs)*
        {
            let #variable: #ty = #function;
            // The caller excludes everything else.
            unsafe { #variable(#context) };
        }
    }
}

/// `main`, unless the user writes one.
pub(super) fn main(app: &App) -> TokenStream {
    if !app.generates_main() {
        return TokenStream::new();
    }
    let (module, outer) = (&app.module.ident, app.module.attrs.iter().filter(|a| a.path().is_ident("cfg")));
    quote! {
        #(#outer)*
        /// Runs the app as the environment says, for a `main` of the crate that is elsewhere.
        #[allow(dead_code)]
        pub(crate) fn main() -> ::std::process::ExitCode {
            ::punctual::export::main(#module::run)
        }
    }
}
