//! Resources: the `#[shared]` and `#[local]` structs, and the lists of them in handlers.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Attribute, Expr, Field, Fields, Ident, ItemStruct, Meta, Token};

use super::attributes::is_condition;
use super::conditions::Conditions;
use super::keys::not_quoted;
use super::{misspelled, separated};
use crate::errors::Errors;
use crate::model::{Access, Local, LocalField, LocalOrigin, LocalUse, Resource, Shared, SharedUse};

/// Parses the `#[shared]` struct, without its marking attribute.
pub(super) fn shared(mut item: ItemStruct, errors: &mut Errors) -> Shared {
    plain_struct(&item, "shared", errors);
    let mut resources = Vec::new();
    for field in &mut item.fields {
        place(field, errors);
        let lock_free = take_lock_free(field, errors).is_some();
        if let Some(ident) = field.ident.clone() {
            resources.push(Resource { ident, ty: field.ty.clone(), lock_free });
        }
    }
    Shared { item, resources }
}

/// Parses the `#[local]` struct, without its marking attribute.
pub(super) fn local(mut item: ItemStruct, errors: &mut Errors) -> Local {
    plain_struct(&item, "local", errors);
    let mut fields = Vec::new();
    for field in &mut item.fields {
        place(field, errors);
        if let Some(attr) = take_lock_free(field, errors) {
            errors.at(attr, "a local resource has one user and never a lock; remove `#[lock_free]`");
        }
        if let Some(ident) = field.ident.clone() {
            fields.push(LocalField { ident, ty: field.ty.clone() });
        }
    }
    Local { item, fields }
}

fn plain_struct(item: &ItemStruct, attribute: &str, errors: &mut Errors) {
    let name = &item.ident;
    if !item.generics.params.is_empty() || item.generics.where_clause.is_some() {
        let message = format!("the `#[{attribute}]` struct cannot be generic");
        errors.push(syn::Error::new(name.span(), message));
    }
    if !matches!(item.fields, Fields::Named(_)) {
        let message = format!("the `#[{attribute}]` struct has named fields: `struct {name} {{ .. }}`");
        errors.push(syn::Error::new(name.span(), message));
    }
}

/// The user does not choose the storage of a resource: it may be a static or a stack.
fn place(field: &mut Field, errors: &mut Errors) {
    let is = |meta: &Meta| meta.path().is_ident("link_section");
    let is_placement = |attr: &Attribute| {
        is(&attr.meta)
            || attr.path().is_ident("unsafe") && attr.parse_args::<Meta>().is_ok_and(|meta| is(&meta))
    };
    for attr in field.attrs.extract_if(.., |attr| is_placement(attr)) {
        errors.at(
            attr,
            "the framework places resources; put your own `static` there, and a `&'static` to it here",
        );
    }
}

fn take_lock_free(field: &mut Field, errors: &mut Errors) -> Option<Attribute> {
    for attr in &field.attrs {
        misspelled::report(attr, &["lock_free"], errors);
    }
    let mut found = field.attrs.extract_if(.., |attr| attr.path().is_ident("lock_free"));
    let attr = found.next()?;
    if !matches!(attr.meta, Meta::Path(_)) {
        errors.at(&attr, "`#[lock_free]` takes no arguments");
    }
    if let Some(second) = found.next() {
        errors.at(second, "`#[lock_free]` is given twice; remove one");
    }
    Some(attr)
}

/// Parses the inside of `shared = [..]`.
pub(super) fn shared_list(
    tokens: TokenStream,
    conditions: &Conditions,
    errors: &mut Errors,
) -> Vec<SharedUse> {
    list(shared_use, tokens, conditions, errors)
}

/// Returns the entries whose conditions hold.
fn list<T>(
    entry: fn(ParseStream<'_>) -> syn::Result<T>,
    tokens: TokenStream,
    conditions: &Conditions,
    errors: &mut Errors,
) -> Vec<T> {
    let entry = |input: ParseStream<'_>| {
        let mut attrs = input.call(Attribute::parse_outer)?;
        if let Some(other) = attrs.iter().find(|attr| !is_condition(attr)) {
            let message = "only `#[cfg]` is allowed in this list, also within `#[cfg_attr]`";
            return Err(syn::Error::new_spanned(other, message));
        }
        let entry = entry(input)?;
        Ok(conditions.holds(&mut attrs).then_some(entry))
    };
    separated(entry, tokens, errors).into_iter().flatten().collect()
}

fn shared_use(input: ParseStream<'_>) -> syn::Result<SharedUse> {
    not_quoted(input)?;
    let access = match input.parse::<Option<Token![&]>>()? {
        Some(and) => Access::Reference(and),
        None => Access::Lock,
    };
    if let Some(mutable) = input.parse::<Option<Token![mut]>>()? {
        let message = "a shared resource is listed as `x`, to lock, or as `&x`, to read; remove the `mut`";
        return Err(syn::Error::new_spanned(mutable, message));
    }
    let ident: Ident = input.parse()?;
    if input.peek(Token![:]) {
        let message = format!("`{ident}` is a shared resource; declare it in the `#[shared]` struct");
        return Err(syn::Error::new(ident.span(), message));
    }
    Ok(SharedUse { ident, access })
}

/// Parses the inside of `local = [..]`.
pub(super) fn local_list(tokens: TokenStream, conditions: &Conditions, errors: &mut Errors) -> Vec<LocalUse> {
    list(local_use, tokens, conditions, errors)
}

fn local_use(input: ParseStream<'_>) -> syn::Result<LocalUse> {
    not_quoted(input)?;
    if let Some(and) = input.parse::<Option<Token![&]>>()? {
        let message = "a local resource belongs to one task and is always `&mut`; remove the `&`";
        return Err(syn::Error::new_spanned(and, message));
    }
    let ident: Ident = input.parse()?;
    let mut origin = LocalOrigin::Field;
    if input.parse::<Option<Token![:]>>()?.is_some() {
        if input.is_empty() || input.peek(Token![,]) || input.peek(Token![=]) {
            let message = format!("`{ident}` has no type; write `{ident}: <type> = <expression>`");
            return Err(syn::Error::new(ident.span(), message));
        }
        let ty: Box<syn::Type> = input.parse()?;
        if input.is_empty() || input.peek(Token![,]) {
            let ty = ty.to_token_stream();
            let message = format!("`{ident}` has no initial value; write `{ident}: {ty} = <expression>`");
            return Err(syn::Error::new(ident.span(), message));
        }
        input.parse::<Token![=]>()?;
        let expr: Box<Expr> = input.parse()?;
        origin = LocalOrigin::Declared { ty, expr };
    } else if input.peek(Token![=]) {
        let message = format!("`{ident}` has no type; write `{ident}: <type> = <expression>`");
        return Err(syn::Error::new(ident.span(), message));
    }
    Ok(LocalUse { ident, origin })
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::{ToTokens, quote};

    use crate::testing::{app, assert_one, errors};

    #[track_caller]
    fn rejects(items: TokenStream, parts: &[&str]) {
        assert_one(&errors(items), parts);
    }

    #[test]
    fn fields_keep_their_types() {
        let app = app(quote! {
            #[shared] struct Shared { #[lock_free] x: Vec<u8>, /** docs */ y: u16 }
        });
        let [x, y] = &app.shared.resources[..] else { panic!("there are two resources") };
        assert_eq!((x.lock_free, y.lock_free), (true, false));
        assert_eq!(x.ty.to_token_stream().to_string(), "Vec < u8 >");
        let emitted = app.shared.item.to_token_stream().to_string();
        assert!(!emitted.contains("lock_free") && emitted.contains("docs"), "{emitted}");
    }

    #[test]
    fn lists_take_conditions_references_and_declarations() {
        let app = app(quote! {
            #[shared] struct Shared { a: u8, b: u8, c: u8 }
            #[task(
                shared = [a, &b, #[cfg(x)] c],
                local = [z: HashMap<u32, u8> = HashMap::new(), #[cfg(x)] arr: [u8; 4] = [0; 4],],
            )]
            fn t(cx: t::Context) {}
        });
        let handler = &app.tasks[0].handler;
        let shared: Vec<_> = handler.shared.iter().map(|used| used.access.is_reference()).collect();
        assert_eq!(shared, [false, true]);
        assert_eq!(handler.locals.len(), 1);
        assert!(handler.locals.iter().all(|local| !local.is_field()));
    }

    #[test]
    fn reports_every_bad_list_entry() {
        let errors = errors(quote! {
            #[shared] struct Shared { a: u8, b: u8, c: u8 }
            #[task(shared = [&mut a, b: u8 = 0, 7, #[inline] c], local = [&x, y = 1, z: u8, v:])]
            fn t(cx: t::Context) {}
        });
        let expected = [
            "remove the `mut`",
            "declare it in the `#[shared]` struct",
            "expected identifier",
            "only `#[cfg]`",
            "always `&mut`",
            "`y` has no type",
            "`z` has no initial value; write `z: u8 = <expression>`",
            "`v` has no type; write `v: <type> = <expression>`",
        ];
        assert_eq!(errors.len(), expected.len(), "{errors:#?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.contains(expected), "{expected:?} is not in {error:?}");
        }
    }

    #[test]
    fn resource_structs_are_plain() {
        rejects(quote! { #[shared] struct Shared<T> {} }, &["cannot be generic"]);
        rejects(quote! { #[shared] struct Shared(u8); }, &["named fields: `struct Shared { .. }`"]);
    }

    #[test]
    fn resources_have_no_place() {
        let message = "the framework places resources";
        rejects(quote! { #[shared] struct Shared { #[link_section = ".x"] a: u8 } }, &[message]);
        rejects(quote! { #[local] struct Local { #[unsafe(link_section = ".x")] a: u8 } }, &[message]);
    }

    #[test]
    fn misplaced_lock_free() {
        rejects(quote! { #[local] struct Local { #[lock_free] a: u8 } }, &["remove `#[lock_free]`"]);
        rejects(quote! { #[shared] struct Shared { #[lock_free(3)] a: u8 } }, &["takes no arguments"]);
    }
}
