//! The `#[punctual::app]` attribute, which `punctual` re-exports.
//!
//! Expansion runs in stages: `parse` makes a `model` of the module, `analyse` derives the ceilings from
//! it, `check` enforces the rules, `generate` writes the code. Every mistake found on the way is
//! reported.

mod analyse;
mod check;
mod errors;
mod generate;
mod model;
mod parse;
#[cfg(test)]
mod testing;

use proc_macro2::TokenStream;

use crate::analyse::Analysis;
use crate::errors::Errors;
use crate::model::App;

/// Declares an application: its resources, its tasks, and how they are released.
///
/// ```text
/// #[punctual::app]
/// mod app {
///     use punctual::prelude::*;
///
///     #[shared]
///     struct Shared { total: u32 }
///
///     #[local]
///     struct Local {}
///
///     #[init]
///     fn init(_: init::Context) -> (Shared, Local) {
///         (Shared { total: 0 }, Local {})
///     }
///
///     #[task(period = 10.millis(), priority = 2, shared = [total])]
///     fn sample(mut cx: sample::Context) {
///         let total = cx.shared.total.lock(|total| { *total += 1; *total });
///         report::spawn(total).ok();
///     }
///
///     #[task]
///     fn report(_: report::Context, total: u32) {
///         println!("{total}");
///     }
/// }
/// ```
///
/// # Arguments
///
/// All are optional.
///
/// * `cpu = <integer or constant expression>`: the processor every task runs on.
/// * `priority_base = <1..=98>`: where the levels begin among the priorities of the operating system.
/// * `strict [= <bool>]`, false by default: fail rather than run with weaker guarantees.
/// * `monitor = <bool>`, true by default: watch deadlines and overruns.
/// * `main = <bool>`, true by default: generate `fn main`, unless `init` takes arguments.
///
/// # Items
///
/// * `#[shared] struct` and `#[local] struct`: the resources. A shared resource may be `#[lock_free]` if all
///   its users run at one level.
/// * `#[init(local = [..])]`: returns the resources. Parameters after the context become those of `run`.
/// * `#[idle(shared = [..], local = [..])]`: runs when nothing else does.
/// * `#[shutdown(shared = [..], local = [..])]`: runs when everything else has stopped.
/// * `#[task(..)]`: released by spawning it, by the clock (`period`), or by an event source (`binds`). Its
///   keys are `priority`, `capacity`, `shared`, `local`, `period`, `offset`, `deadline`, `execution`,
///   `on_overrun` and `binds`.
/// * `extern "Rust" { .. }`: declarations of handlers whose functions are imported into the module.
///
/// Everything else in the module is left as it is.
#[proc_macro_attribute]
pub fn app(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(args.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

fn expand(args: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let front = front(args, item, &mut errors);
    errors.finish()?;
    Ok(front.map(|(app, analysis)| generate::module(&app, &analysis)).unwrap_or_default())
}

/// All of the expansion but the code: the model and its analysis, unless the input is no application at all.
/// They are sound if no errors were recorded.
fn front(args: TokenStream, item: TokenStream, errors: &mut Errors) -> Option<(App, Analysis)> {
    let app = parse::app(args, item, errors)?;
    let analysis = Analysis::new(&app);
    check::run(&app, &analysis, errors);
    Some((app, analysis))
}
