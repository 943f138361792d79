//! The reactor of the async tasks: slots, and the worker of its thread.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::analyse::Analysis;
use crate::model::App;

use super::{levels, names, quiet};

/// Returns the partition and the level of its thread, if there are async tasks that may enter the
/// kernel, and a kernel.
pub(super) fn place(app: &App, analysis: &Analysis) -> Option<(usize, u8)> {
    if cfg!(feature = "std") { analysis.reactor(app) } else { None }
}

/// Returns the statics, if there is one.
pub(super) fn all(app: &App, analysis: &Analysis) -> TokenStream {
    let Some((partition, level)) = place(app, analysis) else { return TokenStream::new() };
    let (quiet, worker, reactor) = (quiet(), worker(), name());
    let (partition, slots) = (names::partition("partition", partition), names::sole("slots"));
    // One more: see `Reactor`.
    let count = levels::timers_of(app.tasks.iter()) + 1;
    quote! {
        #quiet static #worker: ::punctual::export::Worker = ::punctual::export::Worker::new(#level);
        #quiet static #slots: [::punctual::export::WaitSlot<::core::task::Waker>; #count] =
            [const { ::punctual::export::WaitSlot::new() }; #count];
        #quiet static #reactor: ::punctual::export::Reactor =
            ::punctual::export::Reactor::new(&#partition, &#worker, &#slots);
    }
}

/// Returns the static of the reactor.
pub(super) fn name() -> Ident {
    names::sole("reactor")
}

/// Returns the worker of its thread.
pub(super) fn worker() -> Ident {
    names::sole("reactor_worker")
}
