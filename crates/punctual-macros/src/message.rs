//! `#[derive(Message)]` of the crate `punctual-bridge`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::token::Comma;
use syn::{Attribute, Data, DeriveInput, Field, Fields, GenericParam, Generics, Ident, LitStr, Type};

use crate::errors::{self, Errors};

/// Returns the implementations for a struct, or its errors.
pub(crate) fn derive(input: TokenStream) -> TokenStream {
    errors::derive(input, expand)
}

/// Error messages of the derive macros for fields, in their own terms.
pub(crate) struct Refusals {
    pub(crate) no_fields: &'static str,
    pub(crate) no_struct: &'static str,
    pub(crate) generic: &'static str,
}

const REFUSALS: Refusals = Refusals {
    no_fields: "a message has at least one named field",
    no_struct: "a message is a struct with named fields",
    generic: "a message can be generic only over constants, such as the capacity of a \
                  sequence: recordings identify it by one name",
};

fn expand(input: &DeriveInput, errors: &mut Errors) -> Option<TokenStream> {
    let fields = named_fields(input, errors, &REFUSALS, true)?;
    let name = name(input, errors);
    let described = fields.iter().filter_map(|Field { ident, ty, attrs, .. }| {
        let ident = ident.as_ref()?;
        Some(Described { ident, ty, name: field_name(ident, errors), unit: unit(attrs, errors) })
    });
    let described: Vec<Described<'_>> = described.collect();
    Some(implement(&input.ident, &input.generics, &name, &described))
}

/// Returns the fields of a struct, at least one; a generic struct is an additional error, unless it
/// is generic by constants and this is allowed.
pub(crate) fn named_fields<'a>(
    input: &'a DeriveInput,
    errors: &mut Errors,
    refusals: &Refusals,
    may_have_constants: bool,
) -> Option<&'a Punctuated<Field, Comma>> {
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) if !fields.named.is_empty() => &fields.named,
            _ => {
                errors.at(&input.ident, refusals.no_fields);
                return None;
            }
        },
        _ => {
            errors.at(&input.ident, refusals.no_struct);
            return None;
        }
    };
    let is_constant = |parameter: &GenericParam| matches!(parameter, GenericParam::Const(_));
    if !input.generics.params.iter().all(|parameter| may_have_constants && is_constant(parameter)) {
        errors.at(&input.generics, refusals.generic);
    }
    Some(fields)
}

/// Returns the attributes with this name.
pub(crate) fn named<'a>(
    attributes: &'a [Attribute],
    name: &'static str,
) -> impl Iterator<Item = &'a Attribute> {
    attributes.iter().filter(move |attribute| attribute.path().is_ident(name))
}

/// A field and its attributes.
pub(crate) struct Described<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) ty: &'a Type,
    pub(crate) name: String,
    pub(crate) unit: Option<String>,
}

/// Returns the implementations of a message.
pub(crate) fn implement(
    ident: &Ident,
    generics: &Generics,
    name: &TokenStream,
    fields: &[Described<'_>],
) -> TokenStream {
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let described = fields.iter().map(|Described { ty, name, unit, .. }| {
        let unit = optional(unit.as_ref());
        let kind = kind(ty);
        quote!(::punctual_bridge::message::Field::new(#name, #unit, #kind))
    });
    let idents: Vec<&Ident> = fields.iter().map(|field| field.ident).collect();
    quote! {
        #[automatically_derived]
        impl #parameters ::punctual_bridge::Message for #ident #arguments #bounds {
            const DESCRIPTION: &'static ::punctual_bridge::message::Description =
                &::punctual_bridge::message::Description::new(#name, &[#(#described),*]);
        }

        #[automatically_derived]
        impl #parameters ::punctual_bridge::message::Value for #ident #arguments #bounds {
            const KIND: ::punctual_bridge::message::Kind =
                ::punctual_bridge::message::Kind::Message(<Self as ::punctual_bridge::Message>::DESCRIPTION);
            const EMPTY: Self = Self { #(#idents: ::punctual_bridge::message::Value::EMPTY),* };

            fn encode(&self, to: &mut ::punctual_bridge::message::Encoder) {
                #(::punctual_bridge::message::Value::encode(&self.#idents, to);)*
            }

            fn decode(from: &mut ::punctual_bridge::message::Decoder<'_>) -> Self {
                Self { #(#idents: ::punctual_bridge::message::Value::decode(from)),* }
            }
        }

        #[automatically_derived]
        impl #parameters ::punctual_bridge::message::Element for #ident #arguments #bounds {}
    }
}

/// Returns the tokens of an `Option`.
pub(crate) fn optional(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn kind(ty: &Type) -> TokenStream {
    quote!(<#ty as ::punctual_bridge::message::Value>::KIND)
}

/// Returns the given name, or one made from the crate and the struct.
pub(crate) fn name(input: &DeriveInput, errors: &mut Errors) -> TokenStream {
    let mut given = None;
    for attribute in named(&input.attrs, "message") {
        let parsed = attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("a message accepts only the key `name`"));
            }
            let name: LitStr = meta.value()?.parse()?;
            if !is_type_name(&name.value()) {
                return Err(syn::Error::new(
                    name.span(),
                    "the name of a message has the form `package/msg/Type`",
                ));
            }
            given = Some(name.into_token_stream());
            Ok(())
        });
        errors.take(parsed);
    }
    given.unwrap_or_else(|| {
        let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default().replace('-', "_").to_lowercase();
        let name = format!("{package}/msg/{}", input.ident);
        if !is_type_name(&name) {
            let message = format!(
                "`{name}` is not a valid message name; give one, `#[message(name = \"package/msg/Type\")]`"
            );
            errors.at(&input.ident, message);
        }
        name.into_token_stream()
    })
}

/// Returns whether ROS 2 accepts it: `package/msg/Type`.
fn is_type_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let [package, "msg", ty] = parts[..] else { return false };
    is_snake_case(package)
        && ty.starts_with(|c: char| c.is_ascii_uppercase())
        && ty.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_snake_case(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.ends_with('_')
        && !name.contains("__")
}

pub(crate) fn field_name(ident: &Ident, errors: &mut Errors) -> String {
    let name = ident.to_string();
    if !is_snake_case(&name) {
        errors.at(
            ident,
            "viewers and ROS 2 require field names in snake case: a letter, then letters, digits and \
             single `_`",
        );
    }
    name
}

fn unit(attributes: &[Attribute], errors: &mut Errors) -> Option<String> {
    let mut unit = None;
    for attribute in named(attributes, "message") {
        let parsed = attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("unit") {
                return Err(meta.error("a field accepts only the key `unit`"));
            }
            unit = Some(unit_text(&meta.value()?.parse()?)?);
            Ok(())
        });
        errors.take(parsed);
    }
    unit
}

/// Returns a unit, if this is one.
pub(crate) fn unit_text(text: &LitStr) -> syn::Result<String> {
    let unit = text.value();
    if unit.is_empty() || unit.contains(|c: char| c.is_control() || c == ',' || c == '"') {
        return Err(syn::Error::new(
            text.span(),
            "a unit is a short text without commas, quotes or line breaks",
        ));
    }
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn errors(input: TokenStream) -> Vec<String> {
        testing::errors_of_derive(input, expand)
    }

    #[test]
    fn accepts_numbers_arrays_and_messages() {
        let message = quote! {
            #[message(name = "gimbal_msgs/msg/State2")]
            struct State { #[message(unit = "rad")] pan: f64, last_10: [Angles; 10] }
        };
        assert_eq!(errors(message), [""; 0]);
    }

    #[test]
    fn rejects_items_without_fields() {
        for item in [
            quote!(
                enum E {
                    A,
                }
            ),
            quote!(union U { a: u8 }),
        ] {
            assert_eq!(errors(item), ["a message is a struct with named fields"]);
        }
        for item in [
            quote!(
                struct S;
            ),
            quote!(
                struct S(f64);
            ),
            quote!(
                struct S {}
            ),
        ] {
            assert_eq!(errors(item), ["a message has at least one named field"]);
        }
        let generic = errors(quote!(
            struct S<T> {
                a: T,
            }
        ));
        let expected = "a message can be generic only over constants, such as the capacity of a \
                  sequence: recordings identify it by one name";
        assert_eq!(generic, [expected]);
        let constant = errors(quote!(
            struct S<const N: usize> {
                a: Sequence<f64, N>,
            }
        ));
        assert_eq!(constant, [""; 0]);
    }

    #[test]
    fn rejects_names_unsupported_by_viewers() {
        for name in
            ["Type", "package/Type", "package/srv/Type", "Package/msg/Type", "package/msg/type", "a/msg/T/x"]
        {
            let errors = errors(quote!(
                #[message(name = #name)]
                struct S {
                    a: u8,
                }
            ));
            assert_eq!(errors, ["the name of a message has the form `package/msg/Type`"], "{name}");
        }
        for field in ["_a", "a_", "a__b", "aB", "ä"] {
            let ident = quote::format_ident!("{field}");
            let errors = errors(quote!(struct S { #ident: u8 }));
            assert!(errors.len() == 1 && errors[0].contains("snake case"), "{field}: {errors:?}");
        }
    }

    #[test]
    fn rejects_unknown_attributes() {
        let errors = errors(quote! {
            #[message(title = "x")]
            struct S { #[message(scale = 2)] a: u8, #[message(unit = "a,b")] b: u8 }
        });
        let expected = [
            "a message accepts only the key `name`",
            "a field accepts only the key `unit`",
            "a unit is a short text without commas, quotes or line breaks",
        ];
        assert_eq!(errors, expected);
    }
}
