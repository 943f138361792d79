//! The `#[punctual::app]` attribute, which `punctual` re-exports. Depend on that crate: generated
//! code names its items, and only it follows semantic versioning.
//!
//! Expansion runs in stages: `parse` resolves the `#[cfg]`s of the module and builds a `model` of
//! it, `analyze` derives the ceilings, `check` enforces the rules, `generate` writes the code. Each
//! stage reports every mistake it finds.

mod analyze;
mod check;
mod errors;
mod generate;
mod message;
mod model;
mod parameters;
mod parse;
mod suggest;
#[cfg(test)]
mod testing;

use proc_macro2::TokenStream;
use quote::quote;

use crate::analyze::Analysis;
use crate::errors::{Errors, Warnings};
use crate::model::App;
use crate::parse::Source;

#[doc = include_str!("app.md")]
#[proc_macro_attribute]
pub fn app(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(args.into(), item.into()).into()
}

/// Makes a struct a message: see `punctual_bridge::Message`, which re-exports it.
#[proc_macro_derive(Message, attributes(message))]
pub fn message(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    message::derive(input.into()).into()
}

/// Makes a struct a set of parameters: see `punctual_bridge::Parameters`, which re-exports it.
#[proc_macro_derive(Parameters, attributes(parameter, message))]
pub fn parameters(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    parameters::derive(input.into()).into()
}

fn expand(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let source = match Source::new(&args, item) {
        Ok(source) => source,
        Err(question) => return question,
    };
    let item = source.tokens.clone();
    let front = front(args.clone(), source, &mut errors);
    match (errors.finish(), front) {
        (Ok(()), Some((app, analysis, warnings))) => generate::module(&app, &analysis, &warnings),
        (Ok(()), None) => TokenStream::new(),
        (Err(error), _) => {
            let args = parse::args(args, &mut Errors::default());
            let (errors, stubs) = (error.into_compile_error(), generate::stubs(&args, item));
            quote!(#errors #stubs)
        }
    }
}

/// Expands up to code generation: returns the model, its analysis and warnings, unless the input is
/// not an application at all. They are valid if no errors were recorded.
fn front(args: TokenStream, source: Source, errors: &mut Errors) -> Option<(App, Analysis, Warnings)> {
    let app = parse::app(args, source, errors)?;
    let analysis = Analysis::new(&app);
    let warnings = check::run(&app, &analysis, errors);
    Some((app, analysis, warnings))
}

/// Requires a file of this package to contain this text. With `BLESS` in the environment, writes
/// the text to it first.
#[cfg(test)]
#[track_caller]
fn assert_current(path: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).expect("the file can be written");
    }
    let current = std::fs::read_to_string(&path).expect("the file can be read");
    let new: Vec<_> = text.lines().filter(|line| !current.lines().any(|other| other == *line)).collect();
    assert!(current == text, "{} lacks {new:#?}\nBLESS=1 rewrites it", path.display());
}
