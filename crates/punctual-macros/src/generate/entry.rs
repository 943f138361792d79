//! `run` and `main`.

use proc_macro2::TokenStream;
use quote::quote;

use crate::analyse::Analysis;
use crate::model::{App, Arg};

use super::{contexts, names, quiet, resources};

/// `run`, and the type that tells the runtime about `init`, `idle` and `shutdown`.
pub(super) fn run(app: &App, analysis: &Analysis) -> TokenStream {
    let quiet = quiet();
    let [handlers, kept, runtime] = ["Handlers", "Kept", "runtime"].map(names::sole);
    let init = &app.init.handler;
    let (init_name, init_context) = (&init.ident, contexts::make(app, analysis, init));
    let params = init.args.iter().map(|Arg { ident, ty, .. }| quote!(#ident: #ty));
    let passed = init.args.iter().map(|Arg { ident, .. }| ident);
    let (shared, local) = (&app.shared.item.ident, &app.local.item.ident);

    let fill = resources::fill(app);
    let empty = resources::empty(app);
    let (kept_types, kept_values) = kept_fields(app);
    let (has_idle, diverges, shares, idle) = idle(app, analysis);
    let shutdown = shutdown(app, analysis);
    quote! {
        /// What `init` returned and no static holds.
        #quiet pub struct #kept {
            #kept_types
        }

        #quiet pub struct #handlers<F>(F);

        #quiet
        impl<F: FnOnce(__punctual_Context_init<'static>) -> (#shared, #local)> ::punctual::export::App
            for #handlers<F>
        {
            type Kept = #kept;
            const HAS_IDLE: bool = #has_idle;
            const IDLE_DIVERGES: bool = #diverges;
            const IDLE_SHARES: bool = #shares;

            unsafe fn init(self, worker: &'static ::punctual::export::Worker) -> #kept {
                let context = #init_context;
                let (shared, local) = (self.0)(context);
                #fill
                #kept { #kept_values }
            }

            unsafe fn idle(worker: &'static ::punctual::export::Worker, state: &mut #kept) {
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
        #[allow(missing_docs, dead_code, unreachable_pub, clippy::all)]
        pub fn run(
            config: ::punctual::Config,
            #(#params),*
        ) -> ::core::result::Result<::punctual::Report, ::punctual::StartError> {
            ::punctual::export::run(
                &#runtime,
                config,
                #handlers(move |context: __punctual_Context_init<'static>| #init_name(context, #(#passed),*)),
            )
        }
    }
}

/// The fields of the local struct that stay on the thread of `init`: idle's own, and those nobody uses, which
/// live as long as the app does.
fn kept_fields(app: &App) -> (TokenStream, TokenStream) {
    let (mut types, mut values) = (TokenStream::new(), TokenStream::new());
    for field in app.local.fields.iter().filter(|field| !resources::is_static(app, &field.ident)) {
        let (cfgs, ident, ty) = (&field.cfgs, &field.ident, &field.ty);
        if resources::is_idles(app, ident) {
            types.extend(quote!(#(#cfgs)* pub #ident: Option<&'static mut #ty>,));
            values.extend(quote!(#(#cfgs)* #ident: Some(::punctual::export::leak(local.#ident)),));
        } else {
            types.extend(quote!(#(#cfgs)* pub #ident: #ty,));
            values.extend(quote!(#(#cfgs)* #ident: local.#ident,));
        }
    }
    (types, values)
}

fn idle(app: &App, analysis: &Analysis) -> (TokenStream, bool, bool, TokenStream) {
    let Some(idle) = &app.idle else { return (quote!(false), false, false, TokenStream::new()) };
    let (handler, cfgs) = (&idle.handler, &idle.handler.cfgs);
    let (name, context) = (&handler.ident, contexts::make(app, analysis, handler));
    let has_idle = match cfgs.is_empty() {
        true => quote!(true),
        // The conjunction of the `#[cfg]`s, as a value.
        false => quote!({
            #[allow(unused_mut)]
            let mut is = false;
            #(#cfgs)* { is = true; }
            is
        }),
    };
    let call = quote! {
        #(#cfgs)*
        {
            // The caller is the idle thread and calls this once.
            let context = unsafe { #context };
            #name(context);
        }
    };
    (has_idle, idle.diverges, !handler.shared.is_empty(), call)
}

fn shutdown(app: &App, analysis: &Analysis) -> TokenStream {
    let Some(shutdown) = &app.shutdown else { return TokenStream::new() };
    let (handler, cfgs) = (&shutdown.handler, &shutdown.handler.cfgs);
    let (name, context) = (&handler.ident, contexts::make(app, analysis, handler));
    // In one expression, so that the locals it declares live as long as the call.
    quote! {
        #(#cfgs)*
        {
            // The caller excludes everything else.
            unsafe { #name(#context) };
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
        fn main() -> ::std::process::ExitCode {
            ::punctual::export::main(#module::run)
        }
    }
}
