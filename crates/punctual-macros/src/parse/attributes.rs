//! Distinguishes the framework's attributes from all others.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, MetaList, Token};

use crate::errors::Errors;
use crate::model::Role;

/// The meaning of a framework attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Shared,
    Local,
    Handler(Role),
}

impl Mark {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mark::Shared => "shared",
            Mark::Local => "local",
            Mark::Handler(role) => role.attribute(),
        }
    }

    pub(super) fn of(meta: &Meta) -> Option<Self> {
        let marks = [Mark::Shared, Mark::Local]
            .into_iter()
            .chain([Role::Init, Role::Idle, Role::Shutdown, Role::Task].map(Mark::Handler));
        marks.into_iter().find(|mark| meta.path().is_ident(mark.name()))
    }
}

/// Removes the framework's attribute from `attrs`; an item has at most one.
pub(crate) fn take_mark(attrs: &mut Vec<Attribute>, errors: &mut Errors) -> Option<(Mark, Attribute)> {
    let mut marks = attrs.extract_if(.., |attr| Mark::of(&attr.meta).is_some());
    let first = marks.next()?;
    for extra in marks {
        errors.at(extra, "an item has at most one attribute of the framework; remove one of them");
    }
    Mark::of(&first.meta).map(|mark| (mark, first))
}

/// Returns the `#[cfg]`s among `attrs`, including those in a `#[cfg_attr]`.
pub(crate) fn cfgs(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs.iter().filter_map(|attr| Some(Attribute { meta: condition(&attr.meta)?, ..attr.clone() })).collect()
}

/// Returns whether an attribute only configures its item in or out.
pub(super) fn is_condition(attr: &Attribute) -> bool {
    fn only_conditions(meta: &Meta) -> bool {
        match meta {
            Meta::List(list) if list.path.is_ident("cfg_attr") => {
                list.parse_args_with(cfg_attr).is_ok_and(|(_, attrs)| attrs.iter().all(only_conditions))
            }
            meta => meta.path().is_ident("cfg"),
        }
    }
    only_conditions(&attr.meta)
}

/// Returns the parts of an attribute that configure its item in or out.
fn condition(meta: &Meta) -> Option<Meta> {
    if meta.path().is_ident("cfg") {
        return Some(meta.clone());
    }
    let Meta::List(list) = meta else { return None };
    if !list.path.is_ident("cfg_attr") {
        return None;
    }
    let (predicate, attrs) = list.parse_args_with(cfg_attr).ok()?;
    let conditions: Vec<Meta> = attrs.iter().filter_map(condition).collect();
    let tokens = quote!(#predicate, #(#conditions),*);
    (!conditions.is_empty()).then(|| Meta::List(MetaList { tokens, ..list.clone() }))
}

/// Parses the inside of a `#[cfg_attr]`: the predicate, and its attributes.
pub(super) fn cfg_attr(input: ParseStream<'_>) -> syn::Result<(TokenStream, Punctuated<Meta, Token![,]>)> {
    let mut predicate = TokenStream::new();
    while !input.peek(Token![,]) {
        predicate.extend([input.parse::<TokenTree>()?]);
    }
    input.parse::<Token![,]>()?;
    Ok((predicate, Punctuated::parse_terminated(input)?))
}

/// Returns the attributes of any item.
pub(crate) fn item_attrs(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::ExternCrate(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::ForeignMod(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        Item::Macro(item) => &mut item.attrs,
        Item::Mod(item) => &mut item.attrs,
        Item::Static(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::TraitAlias(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Union(item) => &mut item.attrs,
        Item::Use(item) => &mut item.attrs,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;
    use syn::parse_quote;

    use super::*;

    #[test]
    fn conditions_are_found_in_cfg_attr() {
        let attrs: [Attribute; 4] = [
            parse_quote!(#[doc = "x"]),
            parse_quote!(#[cfg_attr(all(a, b), inline, cfg(c), cfg_attr(d, cold, cfg(e)))]),
            parse_quote!(#[cfg_attr(a, inline)]),
            parse_quote!(#[cfg(f)]),
        ];
        let found: Vec<_> = cfgs(&attrs).iter().map(|cfg| cfg.to_token_stream().to_string()).collect();
        let expected = ["# [cfg_attr (all (a , b) , cfg (c) , cfg_attr (d , cfg (e)))]", "# [cfg (f)]"];
        assert_eq!(found, expected);
        assert_eq!(attrs.each_ref().map(is_condition), [false, false, false, true]);
        assert!(is_condition(&parse_quote!(#[cfg_attr(all(a, b), cfg(c), cfg_attr(d, cfg(e)))])));
    }
}
