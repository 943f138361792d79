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
mod resources;
mod signature;
mod size;
mod table;
mod task;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::{Path, PathSegment, Token};

pub(crate) use self::args::parse as args;
pub(crate) use self::attributes::{Mark, cfgs, item_attrs, take_mark};
pub(crate) use self::bodies::without_bodies;
pub(crate) use self::conditions::Source;
pub(crate) use self::duration::is_unit;
pub(crate) use self::handler::foreign_fn;
pub(crate) use self::items::without_broken_items;
pub(crate) use self::keys::ungrouped;
pub(crate) use self::misspelled::{misspells, take_attribute, take_misspelled};
use crate::errors::Errors;
use crate::model::App;

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

/// Returns the entries of `tokens` that `entry` could parse. After an error, parsing resumes after
/// the next comma.
fn separated<T>(
    entry: impl Fn(ParseStream<'_>) -> syn::Result<T>,
    tokens: TokenStream,
    errors: &mut Errors,
) -> Vec<T> {
    let mut entries = Vec::new();
    let parsed = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let parsed = entry(input).and_then(|entry| {
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
                Ok(entry)
            });
            match parsed {
                Ok(entry) => entries.push(entry),
                Err(error) => {
                    errors.push(error);
                    skip_past_comma(input)?;
                }
            }
        }
        Ok(())
    };
    // The closure consumes all its input, so the parser itself reports no error.
    let outcome = parsed.parse2(tokens);
    errors.take(outcome);
    entries
}

fn skip_past_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() {
        if input.parse::<Option<Token![,]>>()?.is_some() {
            break;
        }
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// Returns the last two segments of a path, such as `task` and `spawn` of `app::task::spawn`.
pub(crate) fn last_two(path: &Path) -> Option<(&PathSegment, &PathSegment)> {
    let mut segments = path.segments.iter().rev();
    let (last, owner) = (segments.next()?, segments.next()?);
    Some((owner, last))
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
