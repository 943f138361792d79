//! What the async tasks wait for descriptors with: slots, and the thread that is woken.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::model::App;

use super::{levels, names, quiet};

/// The statics, if there are async tasks.
pub(super) fn all(app: &App) -> TokenStream {
    let Some(level) = level(app) else { return TokenStream::new() };
    let (quiet, worker, reactor) = (quiet(), worker(), name());
    let (runtime, slots) = (names::sole("runtime"), names::sole("slots"));
    // One more: see `Reactor`.
    let count = levels::timers_of(app.tasks.iter()) + 1;
    quote! {
        #quiet static #worker: ::punctual::export::Worker = ::punctual::export::Worker::new(#level);
        #quiet static #slots: [::punctual::export::WaitSlot<::core::task::Waker>; #count] =
            [const { ::punctual::export::WaitSlot::new() }; #count];
        #quiet static #reactor: ::punctual::export::Reactor =
            ::punctual::export::Reactor::new(&#runtime, &#worker, &#slots);
    }
}

/// The level of the thread: the highest of any async task, so that it can poll there what it wakes.
///
/// Tasks that are configured out count, as they do for the levels.
pub(super) fn level(app: &App) -> Option<u8> {
    app.tasks.iter().filter(|task| task.is_async()).map(|task| task.priority).max()
}

/// The static that is the reactor.
pub(super) fn name() -> Ident {
    names::sole("reactor")
}

/// The worker of its thread.
pub(super) fn worker() -> Ident {
    names::sole("reactor_worker")
}
