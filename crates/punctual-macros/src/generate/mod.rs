//! From the model to code: one file for each construct that is generated.
//!
//! Whatever the user can name (`foo::spawn`, `foo::Context`) is generated beside the user's functions under a
//! mangled name, where the user's types are in scope, and re-exported by its proper name in `mod foo`.

mod assertions;
mod contexts;
mod entry;
mod handlers;
mod levels;
mod names;
mod resources;
mod runtime;
mod tasks;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::AttrStyle;

use crate::analyse::Analysis;
use crate::model::{App, Duration, Handler, HandlerItem};

/// The module, with the framework's attributes gone from its items and the generated code added, and `main`.
pub(crate) fn module(app: &App, analysis: &Analysis) -> TokenStream {
    let (inner, outer): (Vec<_>, Vec<_>) =
        app.module.attrs.iter().partition(|attr| matches!(attr.style, AttrStyle::Inner(_)));
    let (vis, ident) = (&app.module.vis, &app.module.ident);
    let items = &app.items;
    let (shared, local) = (&app.shared.item, &app.local.item);
    let handlers = app.handlers().filter_map(definition);
    let generated = [
        assertions::all(app),
        resources::statics(app, analysis),
        contexts::all(app, analysis),
        handlers::modules(app),
        tasks::all(app, analysis),
        levels::all(app, analysis),
        runtime::all(app, analysis),
        entry::run(app, analysis),
    ];
    let main = entry::main(app);
    quote! {
        #(#outer)*
        #vis mod #ident {
            #(#inner)*
            #(#items)*
            #shared
            #local
            #(#handlers)*
            #(#generated)*
        }
        #main
    }
}

fn definition(handler: &Handler) -> Option<&impl ToTokens> {
    match &handler.item {
        HandlerItem::Defined(item) => Some(item),
        HandlerItem::Extern(_) => None,
    }
}

/// Attributes for everything that is generated: it is not the user's to document or to use up.
fn quiet() -> TokenStream {
    quote! {
        #[doc(hidden)]
        #[allow(
            missing_docs, dead_code, unused_imports, unused_variables, unused_mut, unused_unsafe, private_interfaces,
            unreachable_pub, unreachable_code, unsafe_code, non_camel_case_types, non_snake_case,
            non_upper_case_globals, clippy::all, clippy::undocumented_unsafe_blocks
        )]
    }
}

/// A constant expression of type `punctual::Duration`.
fn duration(duration: &Duration) -> TokenStream {
    match duration.nanos {
        Some(nanos) => quote!(::punctual::export::Duration::from_ticks(#nanos)),
        None => {
            let source = &duration.source;
            quote!({ const DURATION: ::punctual::Duration = #source; DURATION })
        }
    }
}
