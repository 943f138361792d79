//! The locks of resources whose users run in parallel: in several partitions, or under the global
//! executor.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::analyse::Analysis;
use crate::model::App;

use super::{names, quiet};

/// The statics.
pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let quiet = quiet();
    let groups = analysis.groups.iter().enumerate().map(|(group, &spins)| {
        let name = names::group(group);
        quote! {
            #quiet static #name: ::punctual::export::Group = ::punctual::export::Group::new(#spins);
        }
    });
    let Some(protocol) = protocol(app) else { return quote!(#(#groups)*) };
    let resources = app.shared.resources.iter().zip(&analysis.resources);
    let mutexes = resources.filter(|(_, users)| users.is_across()).map(|(resource, users)| {
        let (name, ceiling) = (names::ceiling(&resource.ident), users.ceiling());
        quote! {
            #quiet
            static #name: ::punctual::export::CeilingMutex =
                ::punctual::export::CeilingMutex::new(&#protocol, #ceiling, ());
        }
    });
    quote! {
        #quiet static #protocol: ::punctual::export::Ceilings = ::punctual::export::Ceilings::new();
        #(#mutexes)*
    }
}

/// The static that all locks of the global executor belong to.
pub(super) fn protocol(app: &App) -> Option<Ident> {
    app.args.global.is_some().then(|| names::sole("ceilings"))
}
