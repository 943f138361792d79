//! From tokens to the model.
//!
//! The parser is lenient: it builds as much of the model as it can, records what it cannot parse,
//! and leaves every rule about more than one construct to the checks.

mod args;
mod attributes;
mod bodies;
mod conditions;
mod constants;
mod duration;
mod handler;
mod items;
mod keys;
mod misspelled;
mod module;
mod partitions;
mod recover;
mod resources;
mod rtic;
mod signature;
mod size;
mod table;
mod task;

use proc_macro2::TokenStream;

use crate::errors::Errors;
use crate::model::App;

pub(crate) use args::parse as args;
pub(crate) use attributes::{Mark, cfgs, item_attrs, take_mark};
pub(crate) use bodies::without_bodies;
pub(crate) use conditions::Source;
pub(crate) use duration::is_unit;
pub(crate) use handler::foreign_fn;
pub(crate) use items::without_broken_items;
pub(crate) use keys::ungrouped;
pub(crate) use misspelled::{misspells, take_misspelled};
pub(crate) use rtic::take_attribute;

/// Returns the model of the application, unless the input is too broken for the checks to mean
/// anything.
pub(crate) fn app(tokens: TokenStream, source: Source, errors: &mut Errors) -> Option<App> {
    let args = args::parse(tokens, errors);
    let Source { tokens: item, module, conditions, absent } = source;
    match module {
        Ok(module) => module::parse(args, module, &conditions, &absent, errors),
        Err(error) => {
            // A broken module has its own error; anything else is an attribute in the wrong
            // position.
            if item.clone().into_iter().any(|token| token.to_string() == "mod") {
                errors.push(error);
            } else {
                errors.at(item, "`#[punctual::app]` goes on an inline module: `mod app { .. }`");
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::testing::{assert_one, errors_of};

    #[test]
    fn rejects_app_on_other_items() {
        let message = "goes on an inline module";
        assert_one(&errors_of(quote!(), quote! { struct App; }), &[message]);
        assert_one(&errors_of(quote!(), quote! { fn app() {} }), &[message]);
        assert_one(&errors_of(quote!(), quote! { mod app; }), &["`mod app { .. }`"]);
    }
}
