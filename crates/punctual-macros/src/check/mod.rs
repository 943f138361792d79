//! The rules of the language that parsing alone cannot enforce.
//!
//! A rule is a function that inspects the model, and the analysis where necessary, and records an
//! error at the location where the user can fix it.

mod access;
mod args;
mod bare;
mod body;
mod init;
mod local;
mod local_task;
mod names;
mod overrun;
mod partitions;
mod release;
mod section;
mod shared;
mod signature;
mod unlisted;

pub(crate) use self::args::lifetimes;
pub(crate) use self::names::is_model;
use crate::analyze::Analysis;
use crate::errors::{Errors, Warnings};
use crate::model::App;

/// Applies every rule, and returns the warnings.
pub(crate) fn run(app: &App, analysis: &Analysis, errors: &mut Errors) -> Warnings {
    let mut warnings = Warnings::default();
    bare::needs_async(app, cfg!(any(feature = "async", test)), errors);
    let bare = !cfg!(any(feature = "std", test));
    if bare {
        bare::check(app, errors);
    }
    names::check(app, errors, &mut warnings);
    signature::check(app, errors);
    args::check(app, errors);
    init::check(app, errors);
    shared::check(app, errors);
    access::check(app, analysis, errors);
    local::check(app, errors);
    release::check(app, errors);
    local_task::check(app, analysis, errors);
    if !bare {
        release::by_event_source(app, errors);
    }
    overrun::check(app, errors);
    body::check(app, analysis, errors, &mut warnings);
    partitions::check(app, analysis, errors);
    unlisted::check(app, &mut warnings);
    warnings
}
