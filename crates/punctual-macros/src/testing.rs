//! Runs the front end of the macro on quoted applications, for the unit tests.

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::errors::{Errors, Warnings};
use crate::model::App;
use crate::parse::Source;

/// Predicates that hold by default.
const HOLDING: &[&str] = &["all()"];

/// Returns the model of an application without mistakes. A `#[local]` struct and an `#[init]` are
/// supplied.
pub(crate) fn app(items: TokenStream) -> App {
    app_with(TokenStream::new(), items)
}

/// [`app`] with arguments.
pub(crate) fn app_with(args: TokenStream, items: TokenStream) -> App {
    let mut errors = Errors::default();
    let module = quote! {
        mod app {
            #[local] struct Local {}
            #[init] fn init(cx: init::Context) -> (Shared, Local) { (Shared {}, Local {}) }
            #items
        }
    };
    let app = crate::front(args, Source::holding(module, HOLDING), &mut errors);
    errors.finish().expect("the application has no mistakes");
    app.expect("the application is whole").0
}

/// Returns the messages of the errors in an application with only `items` in it.
pub(crate) fn errors_of_module(args: TokenStream, items: TokenStream) -> Vec<String> {
    errors_of(args, quote! { mod app { #items } })
}

/// Returns the messages of the errors in an application with `items`, an `#[init]` without mistakes
/// and, unless `items` has one, a `#[shared]` and a `#[local]` struct.
pub(crate) fn errors(items: TokenStream) -> Vec<String> {
    errors_with(TokenStream::new(), items)
}

/// [`errors`] of an application with arguments.
pub(crate) fn errors_with(args: TokenStream, items: TokenStream) -> Vec<String> {
    errors_of(args, module(items))
}

/// [`errors`] if exactly these predicates hold.
pub(crate) fn errors_holding(predicates: &[&str], items: TokenStream) -> Vec<String> {
    errors_of_source(TokenStream::new(), Source::holding(module(items), predicates))
}

fn module(items: TokenStream) -> TokenStream {
    let text = items.to_string();
    let shared = (!text.contains("# [shared")).then(|| quote! { #[shared] struct Shared {} });
    let local = (!text.contains("# [local")).then(|| quote! { #[local] struct Local {} });
    let init = quote! { #[init] fn init(cx: init::Context) -> (Shared, Local) { loop {} } };
    quote! { mod app { #shared #local #init #items } }
}

/// Returns the messages of the errors in `item`.
pub(crate) fn errors_of(args: TokenStream, item: TokenStream) -> Vec<String> {
    errors_of_source(args, Source::holding(item, HOLDING))
}

fn errors_of_source(args: TokenStream, source: Source) -> Vec<String> {
    let mut errors = Errors::default();
    crate::front(args, source, &mut errors);
    messages(errors)
}

/// Returns the warnings in an application without mistakes, each as `name: message`.
pub(crate) fn warnings(items: TokenStream) -> Vec<String> {
    warnings_with_attrs(TokenStream::new(), items)
}

/// [`warnings`] of a module with attributes.
pub(crate) fn warnings_with_attrs(attrs: TokenStream, items: TokenStream) -> Vec<String> {
    let (mut errors, module) = (Errors::default(), module(items));
    let source = Source::holding(quote!(#attrs #module), HOLDING);
    let (_, _, warnings) =
        crate::front(TokenStream::new(), source, &mut errors).expect("the application is whole");
    errors.finish().expect("the application has no mistakes");
    lines(&warnings)
}

fn lines(warnings: &Warnings) -> Vec<String> {
    warnings.iter().map(|(name, message)| format!("{name}: {message}")).collect()
}

fn messages(errors: Errors) -> Vec<String> {
    errors.finish().err().into_iter().flatten().map(|error| error.to_string()).collect()
}

/// Asserts that there is one error, and that it contains each of `parts`.
#[track_caller]
pub(crate) fn assert_one(errors: &[String], parts: &[&str]) {
    assert_eq!(errors.len(), 1, "{errors:#?}");
    for part in parts {
        assert!(errors[0].contains(part), "{part:?} is not in {:?}", errors[0]);
    }
}

/// Returns the messages of the errors in the input of a derive macro.
pub(crate) fn errors_of_derive(
    input: TokenStream,
    expand: impl FnOnce(&DeriveInput, &mut Errors) -> Option<TokenStream>,
) -> Vec<String> {
    let mut errors = Errors::default();
    let input = syn::parse2(input).expect("it is an item");
    expand(&input, &mut errors);
    messages(errors)
}
