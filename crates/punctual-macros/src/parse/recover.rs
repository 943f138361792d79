//! Parsing a comma-separated list to its end, despite errors in its entries.

use proc_macro2::{TokenStream, TokenTree};
use syn::Token;
use syn::parse::{ParseStream, Parser};

use crate::errors::Errors;

/// Returns the entries of `tokens` that `entry` could parse. After an error, parsing resumes after
/// the next comma.
pub(super) fn separated<T>(
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
    // The closure consumes all its input, so the parser has nothing of its own to report.
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
