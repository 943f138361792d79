//! Generates code from the model: one file for each generated construct.
//!
//! Items that the user can name (`foo::spawn`, `foo::Context`) are generated in `mod foo`, so that
//! errors show the proper name. Everything else is next to the user's functions under a mangled
//! name.

mod contexts;
mod entry;
mod futures;
#[cfg(test)]
mod hygiene;
mod levels;
mod limits;
mod local;
mod model;
mod names;
mod overview;
mod parameters;
mod resources;
mod root;
mod runtime;
mod statics;
mod stubs;
mod tasks;

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::AttrStyle;
use syn::spanned::Spanned;

pub(crate) use self::stubs::stubs;
use crate::analyze::Analysis;
use crate::errors::Warnings;
use crate::model::{App, Duration, Handler, HandlerItem, Role, Size};

/// The module without the framework's attributes, with the generated code, and `main`.
pub(crate) fn module(app: &App, analysis: &Analysis, warnings: &Warnings) -> TokenStream {
    let (inner, outer): (Vec<_>, Vec<_>) =
        app.module.attrs.iter().partition(|attr| matches!(attr.style, AttrStyle::Inner(_)));
    let (vis, ident) = (&app.module.vis, &app.module.ident);
    let items = &app.items;
    let (shared, local) = (&app.shared.item, &app.local.item);
    let handlers = app.handlers().filter_map(definition);
    let root = app.args.root.as_ref();
    let generated = root::replaced(generated(app, analysis), root);
    let main = root::replaced(entry::main(app), root);
    let warnings = self::warnings(warnings);
    // On Linux the prelude includes it.
    let allocated = cfg!(all(feature = "alloc", not(feature = "std"))).then(|| {
        quote!(
            #[allow(unused_imports)]
            use ::punctual::export::allocated::*;
        )
    });
    let allocated = root::replaced(allocated.unwrap_or_default(), root);
    quote! {
        #(#outer)*
        #vis mod #ident {
            #(#inner)*
            #allocated
            #(#items)*
            #shared
            #local
            #(#handlers)*
            #generated
            #warnings
        }
        #main
    }
}

/// Returns the generated items of the module.
fn generated(app: &App, analysis: &Analysis) -> TokenStream {
    [
        statics::wrapper(),
        resources::all(app, analysis),
        contexts::aliases(app),
        modules(app, analysis),
        tasks::all(app, analysis),
        levels::all(app, analysis),
        resources::locks(app, analysis),
        futures::reactor_statics(app, analysis),
        model::all(app, analysis),
        runtime::all(app, analysis),
        entry::run(app, analysis),
    ]
    .into_iter()
    .collect()
}

/// Returns a use of a deprecated item at the location of each warning, because only the compiler
/// can issue warnings.
fn warnings(warnings: &Warnings) -> TokenStream {
    let quiet = quiet();
    let uses = warnings.iter().map(|(name, message)| {
        // Only the use has the span of the user's name: no lint applies to the item.
        let item = names::own(name);
        quote! {
            #quiet
            const _: () = {
                #[deprecated(note = #message)]
                const #item: () = ();
                #name
            };
        }
    });
    uses.collect()
}

/// A handler takes its context by value whether it needs to or not, is called once, and is not
/// `const`.
fn definition(handler: &Handler) -> Option<TokenStream> {
    match &handler.item {
        HandlerItem::Defined(item) => {
            let item = futures::with_lifetime(item);
            Some(quote! {
                #[allow(clippy::needless_pass_by_value, clippy::single_call_fn, clippy::missing_const_for_fn)]
                #item
            })
        }
        HandlerItem::Extern(_) => None,
    }
}

/// Attributes of everything that is generated.
///
/// The compiler applies few lints to generated code: those allowed here, and `missing_docs`. A lint
/// that is not allowed here may be forbidden by the user, in particular `unsafe_code`.
fn quiet() -> TokenStream {
    quote! {
        #[doc(hidden)]
        #[allow(private_interfaces, clippy::all, clippy::pedantic)]
    }
}

/// Returns a constant expression of type `punctual::Duration`.
fn duration(duration: &Duration) -> TokenStream {
    match duration.nanos {
        Some(nanos) => quote!(::punctual::export::Duration::from_ticks(#nanos)),
        None => {
            let source = &duration.source;
            let convert = quote_spanned!(names::at(source.span())=> ::punctual::export::duration);
            quote!({ const __PUNCTUAL_DURATION: ::punctual::Duration = #convert(#source); __PUNCTUAL_DURATION })
        }
    }
}

/// Returns a constant expression of type `usize`.
fn size(size: &Size) -> TokenStream {
    match size.bytes {
        Some(bytes) => quote!(#bytes),
        None => {
            let source = &size.source;
            quote!({ const __PUNCTUAL_SIZE: usize = #source; __PUNCTUAL_SIZE })
        }
    }
}

/// Returns an `Option` as an expression.
fn option(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

/// Generates `mod foo` for every handler `foo`: the items that the user can name.
fn modules(app: &App, analysis: &Analysis) -> TokenStream {
    app.handlers().map(|handler| handler_module(app, analysis, handler)).collect()
}

fn handler_module(app: &App, analysis: &Analysis, handler: &Handler) -> TokenStream {
    let ident = &handler.ident;
    let types = contexts::types(app, analysis, handler);
    let release =
        app.task(handler).map_or_else(|| tasks::refused(&["spawn"], "SpawnsHandler"), tasks::release);
    let spawner = analysis
        .local_level(app, handler)
        .map(|(partition, level)| local::spawner(app, analysis, partition, level, handler));
    let name = names::plain(ident);
    let doc = match handler.role {
        Role::Task => format!("The task `{name}`: its context and how to release it."),
        _ => format!("The context of `{name}`."),
    };
    let (quiet, module) = (quiet(), names::own(ident));
    quote! {
        #quiet
        #[doc = #doc]
        pub mod #module {
            #types
            #release
            #spawner
        }
    }
}
