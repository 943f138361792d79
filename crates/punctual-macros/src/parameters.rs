//! `#[derive(Parameters)]` of the crate `punctual-bridge`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{DeriveInput, Expr, ExprRange, Field, LitStr, RangeLimits, Type, TypePath};

use crate::errors::{self, Errors};
use crate::message::{self, Described, Refusals, optional};

/// Returns the implementations for a struct, or its errors.
pub(crate) fn derive(input: TokenStream) -> TokenStream {
    errors::derive(input, expand)
}

/// Declaration of a number or a `bool`.
struct Declared {
    default: Expr,
    range: Option<(Expr, Expr)>,
    unit: Option<String>,
}

const REFUSALS: Refusals = Refusals {
    no_fields: "a struct of parameters has at least one named field",
    no_struct: "parameters are the named fields of a struct",
    generic: "a struct of parameters cannot be generic: recordings identify it by one name",
};

fn expand(input: &DeriveInput, errors: &mut Errors) -> Option<TokenStream> {
    let fields = message::named_fields(input, errors, &REFUSALS, false)?;
    let name = message::name(input, errors);
    let mut described = Vec::new();
    let mut defaults = Vec::new();
    let mut visits = Vec::new();
    let mut checks = Vec::new();
    for field in fields {
        let Field { ident: Some(ident), ty, .. } = field else { continue };
        let field_name = message::field_name(ident, errors);
        let unit = match declared(field, errors) {
            None => {
                defaults.push(quote!(#ident: <#ty as ::punctual_bridge::Parameters>::DEFAULT));
                visits.push(quote!(visitor.group(#field_name, &mut self.#ident);));
                None
            }
            Some(Declared { default, range, unit }) => {
                checks.extend(range.as_ref().map(|range| check(&field_name, ty, &default, range)));
                let range = optional(range.map(|(min, max)| quote!((#min, #max))));
                let unit_tokens = optional(unit.as_ref());
                defaults.push(quote!(#ident: #default));
                visits.push(quote! {
                    visitor.parameter::<#ty>(#field_name, #unit_tokens, #default, #range, &mut self.#ident);
                });
                unit
            }
        };
        described.push(Described { ident, ty, name: field_name, unit });
    }
    let ident = &input.ident;
    let message = message::implement(ident, &input.generics, &name, &described);
    Some(quote! {
        #message

        #(#checks)*

        #[automatically_derived]
        impl ::punctual_bridge::Parameters for #ident {
            const DEFAULT: Self = Self { #(#defaults),* };

            fn visit(&mut self, visitor: &mut ::punctual_bridge::parameters::Visitor<'_>) {
                #(#visits)*
            }
        }
    })
}

/// Makes the compiler check the numbers, which may be constants.
fn check(name: &str, ty: &Type, default: &Expr, (min, max): &(Expr, Expr)) -> TokenStream {
    let finite = format!("the ends of the range of `{name}` must be finite");
    let within = format!("the default of `{name}` is not within its range");
    quote! {
        #[allow(clippy::eq_op, unused_comparisons)]
        const _: () = {
            const DEFAULT: #ty = #default;
            const MIN: #ty = #min;
            const MAX: #ty = #max;
            // The difference of infinities is NaN, which equals nothing.
            ::core::assert!(MIN - MIN == MIN - MIN && MAX - MAX == MAX - MAX, #finite);
            ::core::assert!(MIN <= DEFAULT && DEFAULT <= MAX, #within);
        };
    }
}

/// Returns the declaration of a field; `None` for nested parameters, or after an error.
fn declared(field: &Field, errors: &mut Errors) -> Option<Declared> {
    let ident = field.ident.as_ref()?;
    let (mut default, mut range, mut unit, mut nested) = (None, None, None, false);
    let mut sound = true;
    for attribute in message::named(&field.attrs, "parameter") {
        let parsed = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("default") {
                default = Some(meta.value()?.parse::<Expr>()?);
            } else if meta.path.is_ident("range") {
                range = Some(closed(meta.value()?.parse()?)?);
            } else if meta.path.is_ident("unit") {
                unit = Some(message::unit_text(&meta.value()?.parse::<LitStr>()?)?);
            } else if meta.path.is_ident("nested") {
                nested = true;
            } else {
                return Err(
                    meta.error("a parameter accepts the keys `default`, `range` and `unit`, or `nested`")
                );
            }
            Ok(())
        });
        sound &= errors.take(parsed).is_some();
    }
    // A missing part may be one that was not understood.
    if !sound {
        return None;
    }
    if nested {
        if default.is_some() || range.is_some() || unit.is_some() {
            errors.at(ident, "nested parameters have their own defaults, ranges and units");
        }
        return None;
    }
    let Some(default) = default else {
        errors.at(
            ident,
            "a parameter needs a default: `#[parameter(default = 1.2, range = 0.0..=10.0)]`; a struct of parameters is `#[parameter(nested)]`",
        );
        return None;
    };
    match (&range, is_bool(&field.ty)) {
        (None, false) => errors.at(
            ident,
            "a number needs a range, such as `range = 0.0..=10.0`: values outside of it are rejected",
        ),
        (Some(_), true) => errors.at(ident, "a `bool` has no range"),
        _ => {}
    }
    Some(Declared { default, range, unit })
}

/// Returns the ends of a range that includes both.
fn closed(range: Expr) -> syn::Result<(Expr, Expr)> {
    let span = range.span();
    match range {
        Expr::Range(ExprRange {
            start: Some(start), limits: RangeLimits::Closed(_), end: Some(end), ..
        }) => Ok((*start, *end)),
        _ => Err(syn::Error::new(span, "a range includes its smallest and its largest value: `0.0..=10.0`")),
    }
}

fn is_bool(ty: &Type) -> bool {
    matches!(ty, Type::Path(TypePath { qself: None, path }) if path.is_ident("bool"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn errors(input: TokenStream) -> Vec<String> {
        testing::errors_of_derive(input, expand)
    }

    #[test]
    fn accepts_numbers_switches_and_groups() {
        let parameters = quote! {
            struct Gains {
                #[parameter(default = 1.2, range = 0.0..=MAX, unit = "A/rad")] kp: f64,
                #[parameter(default = -3, range = -10..=10)] offset: i8,
                #[parameter(default = true)] on: bool,
                #[parameter(nested)] inner: other::Gains,
            }
        };
        assert_eq!(errors(parameters), [""; 0]);
    }

    #[test]
    fn rejects_items_without_fields() {
        let of_enum = errors(quote!(
            enum E {
                A,
            }
        ));
        assert_eq!(of_enum, ["parameters are the named fields of a struct"]);
        let of_tuple = errors(quote!(
            struct S(f64);
        ));
        assert_eq!(of_tuple, ["a struct of parameters has at least one named field"]);
        let generic = errors(quote!(
            struct S<T> {
                #[parameter(nested)]
                a: T,
            }
        ));
        assert_eq!(generic, ["a struct of parameters cannot be generic: recordings identify it by one name"]);
    }

    #[test]
    fn rejects_each_incomplete_declaration() {
        let errors = errors(quote! {
            struct S {
                a: f64,
                #[parameter(default = 1.0)] b: f64,
                #[parameter(default = true, range = false..=true)] c: bool,
                #[parameter(default = 1, range = 0..10)] d: u8,
                #[parameter(default = 1, range = ..=10)] e: u8,
                #[parameter(nested, unit = "m")] f: Inner,
                #[parameter(step = 1)] g: u8,
                #[parameter(default = 1, range = 0..=1, unit = "a,b")] h: u8,
            }
        });
        let begin = [
            "a parameter needs a default",
            "a number needs a range",
            "a `bool` has no range",
            "a range includes its smallest and its largest value",
            "a range includes its smallest and its largest value",
            "nested parameters have their own defaults",
            "a parameter accepts the keys `default`, `range` and `unit`",
            "a unit is a short text",
        ];
        assert_eq!(errors.len(), begin.len(), "{errors:?}");
        for (error, begin) in errors.iter().zip(begin) {
            assert!(error.starts_with(begin), "{error}");
        }
    }
}
